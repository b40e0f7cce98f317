//! Small programs written event by event, in the form in which the OMPT tool records them, with
//! answers that are known because the times are chosen.
//!
//! Events may be given in any order; they are played by time, and those of one time in the order in
//! which they were given, those of ovni's models first, a thread's end last of these.

use std::path::Path;
use taskscope_event::models::{MODELS, dictionary, model_of, omp, openmp, ovni, wait};
use taskscope_event::{Code, StreamFile, framing, layout};
use taskscope_execution::samples::NewSample;
use taskscope_execution::{Execution, ExecutionBuilder, Observer};
use taskscope_model::semantic::Interpreter;

/// The process id of a script's process. Its threads have the ids from here on.
pub const PID: i64 = 100;

struct Entry {
    thread: usize,
    at: u64,
    code: Code,
    payload: Vec<u8>,
}

/// A program of one process.
pub struct Script {
    threads: usize,
    entries: Vec<Entry>,
    finished: bool,
}

macro_rules! bytes {
    ($($value:expr),* $(,)?) => { [$(&$value.to_le_bytes()[..]),*].concat() };
}

impl Script {
    /// A program of this many threads that start at time `start` and end at time `end`: the first is
    /// the initial thread, the others are workers.
    pub fn new(threads: usize, start: u64, end: u64) -> Script {
        let mut script = Script { threads, entries: Vec::new(), finished: true };
        for thread in 0..threads {
            script.begin_thread(thread, start);
            script.emit(thread, end, ovni::THREAD_ENDS, &[]);
        }
        script
    }

    /// A program of this many threads without any event.
    pub fn empty(threads: usize) -> Script {
        Script { threads, entries: Vec::new(), finished: true }
    }

    /// A program that is killed: its streams are left as they were.
    pub fn killed(mut self) -> Script {
        self.finished = false;
        self.entries.retain(|entry| entry.code != ovni::THREAD_ENDS);
        self
    }

    /// One event.
    pub fn emit(&mut self, thread: usize, at: u64, code: Code, payload: &[u8]) -> &mut Self {
        self.entries.push(Entry { thread, at, code, payload: payload.to_vec() });
        self
    }

    /// Starts a thread and names it.
    pub fn begin_thread(&mut self, thread: usize, at: u64) -> &mut Self {
        let kind: u32 = if thread == 0 { 1 } else { 2 };
        self.emit(thread, at, ovni::THREAD_EXECUTES, &bytes![-1_i32, 0_i32, 0_u64]);
        self.emit(thread, at, omp::THREAD_TYPE, &bytes![kind])
    }

    /// A code site has this return address.
    pub fn site(&mut self, thread: usize, at: u64, site: u32, address: u64) -> &mut Self {
        self.emit(thread, at, dictionary::SITE, &bytes![site, address])
    }

    /// A task type, with OMPT's flags of explicit tasks.
    pub fn task_type(&mut self, thread: usize, at: u64, ty: u32, site: u32, label: &str) -> &mut Self {
        self.emit(
            thread,
            at,
            openmp::TYPE_CREATE,
            &[&ty.to_le_bytes()[..], label.as_bytes(), b"\0"].concat(),
        );
        self.emit(thread, at, dictionary::TASK_TYPE_SITE, &bytes![ty, site, 4_u32])
    }

    /// A worksharing construct of an OMPT kind.
    pub fn work_type(
        &mut self,
        thread: usize,
        at: u64,
        ty: u32,
        site: u32,
        kind: u32,
        label: &str,
    ) -> &mut Self {
        self.emit(
            thread,
            at,
            openmp::TYPE_CREATE,
            &[&ty.to_le_bytes()[..], label.as_bytes(), b"\0"].concat(),
        );
        self.emit(thread, at, dictionary::WORK_TYPE_SITE, &bytes![ty, site, kind])
    }

    /// The thread begins a region and its own implicit task in it.
    pub fn fork(&mut self, thread: usize, at: u64, region: u32, site: u32, team: u32) -> &mut Self {
        self.emit(thread, at, openmp::RUNTIME_FORK_CALL_BEGIN, &[]);
        self.emit(thread, at, omp::REGION_BEGIN, &bytes![region, team, site, 0_u32]);
        self.join_team(thread, at, region, 0, team)
    }

    /// The thread begins its implicit task in a region.
    pub fn join_team(&mut self, thread: usize, at: u64, region: u32, index: u32, team: u32) -> &mut Self {
        self.emit(thread, at, openmp::RUNTIME_USER_MICROTASK_BEGIN, &[]);
        self.emit(thread, at, omp::IMPLICIT_BEGIN, &bytes![region, index, team])
    }

    /// The thread ends its implicit task's code and waits at the end of the region.
    pub fn arrive(&mut self, thread: usize, at: u64) -> &mut Self {
        self.emit(thread, at, openmp::RUNTIME_USER_MICROTASK_END, &[]);
        self.emit(thread, at, openmp::BARRIER_JOIN_BEGIN, &[])
    }

    /// The runtime reports the end of the wait at the end of a region and of the implicit task.
    pub fn depart(&mut self, thread: usize, at: u64, region: u32) -> &mut Self {
        self.emit(thread, at, openmp::BARRIER_JOIN_END, &[]);
        self.emit(thread, at, omp::IMPLICIT_END, &bytes![region])
    }

    /// The thread that began the region ends it; its own wait ends too.
    pub fn join(&mut self, thread: usize, at: u64, region: u32) -> &mut Self {
        self.depart(thread, at, region);
        self.emit(thread, at, openmp::RUNTIME_FORK_CALL_END, &[]);
        self.emit(thread, at, omp::REGION_END, &bytes![region])
    }

    /// The thread's share of a loop of this type from `start` to `end`.
    pub fn work(&mut self, thread: usize, start: u64, end: u64, ty: u32) -> &mut Self {
        self.emit(thread, start, openmp::WORK_DISTRIBUTION_STATIC_FOR_CHUNK_BEGIN, &[]);
        self.emit(thread, start, openmp::WORKSHARE_EXECUTE, &bytes![ty]);
        self.emit(thread, end, openmp::WORKSHARE_END, &bytes![ty]);
        self.emit(thread, end, openmp::WORK_DISTRIBUTION_STATIC_FOR_CHUNK_END, &[])
    }

    /// The thread creates a task.
    pub fn create(&mut self, thread: usize, at: u64, task: u32, ty: u32) -> &mut Self {
        self.emit(thread, at, openmp::TASK_CREATE, &bytes![task, ty])
    }

    /// The thread executes a task from `start` to `end`.
    pub fn run(&mut self, thread: usize, start: u64, end: u64, task: u32) -> &mut Self {
        self.emit(thread, start, openmp::TASK_EXECUTE, &bytes![task]);
        self.emit(thread, end, openmp::TASK_END, &bytes![task])
    }

    /// The thread waits for its children.
    pub fn taskwait(&mut self, thread: usize, start: u64, end: u64, site: u32) -> &mut Self {
        self.emit(thread, start, openmp::TASK_TASKWAIT_BEGIN, &[]);
        self.emit(thread, start, wait::WAIT_SITE, &bytes![wait::kind::TASKWAIT, site]);
        self.emit(thread, end, openmp::TASK_TASKWAIT_END, &[])
    }

    /// The thread waits for a lock from `start`, and has it from `end` on.
    pub fn lock(&mut self, thread: usize, start: u64, end: u64, object: u64, site: u32) -> &mut Self {
        self.emit(thread, start, openmp::CRITICAL_ACQUIRING_BEGIN, &[]);
        self.emit(thread, start, wait::WAIT_OBJECT, &bytes![object, site, wait::kind::LOCK]);
        self.emit(thread, end, openmp::CRITICAL_ACQUIRING_END, &[]);
        self.emit(thread, end, wait::ACQUIRED, &bytes![object, wait::kind::LOCK])
    }

    /// The thread reports that it has released a lock.
    pub fn unlock(&mut self, thread: usize, at: u64, object: u64) -> &mut Self {
        self.emit(thread, at, wait::RELEASED, &bytes![object, wait::kind::LOCK])
    }

    /// The entries in the order of play.
    fn in_order(&self) -> Vec<&Entry> {
        let mut order: Vec<&Entry> = self.entries.iter().collect();
        order.sort_by_key(|entry| (entry.at, is_own(entry.code), entry.code == ovni::THREAD_ENDS));
        order
    }

    /// Plays the program through the semantic model.
    pub fn play(&self) -> Execution {
        self.play_with_samples(&[])
    }

    /// Replays the program and then adds samples of its threads; their rows are the threads' numbers in the script.
    pub fn play_with_samples(&self, samples: &[NewSample<'_>]) -> Execution {
        let mut builder = ExecutionBuilder::new();
        let mut interpreter = Interpreter::new();
        let process = builder.add_process("host.100", PID);
        let threads: Vec<_> = (0..self.threads)
            .map(|thread| {
                interpreter.add_thread(process);
                builder.add_thread(process, PID + thread as i64)
            })
            .collect();
        for entry in self.in_order() {
            builder.event(threads[entry.thread], entry.at);
            interpreter.event(threads[entry.thread], entry.at, entry.code, &entry.payload, &mut builder);
        }
        samples.iter().for_each(|sample| builder.sample(sample));
        builder.finish()
    }

    /// Writes the program as a trace directory.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(&self, root: &Path) -> std::io::Result<()> {
        for thread in 0..self.threads {
            let tid = PID + thread as i64;
            let directory = root.join(format!("loom.host.{PID}/proc.{PID}/thread.{tid}"));
            std::fs::create_dir_all(&directory)?;
            let mut files = [framing::file_header().to_vec(), framing::file_header().to_vec()];
            let mut models: Vec<&str> = vec!["\"ovni\": \"1.1.0\""];
            for entry in self.in_order().into_iter().filter(|entry| entry.thread == thread) {
                encode(entry, &mut files[is_own(entry.code) as usize]);
                if entry.code.model() == openmp::LETTER && models.len() == 1 {
                    models.push("\"openmp\": \"1.2.1\"");
                }
            }
            let finished = if self.finished { "\"finished\": 1, " } else { "" };
            let metadata = format!(
                "{{ \"version\": 3, \"ovni\": {{ \"part\": \"thread\", {finished}\"tid\": {tid}, \"pid\": {PID}, \
                 \"loom\": \"host.{PID}\", \"app_id\": 1, \"require\": {{ {} }}, \
                 \"loom_cpus\": [ {{ \"index\": 0, \"phyid\": 0 }} ], \
                 \"lib\": {{ \"version\": \"1.14.0\", \"commit\": \"unknown\" }} }} }}\n",
                models.join(", ")
            );
            std::fs::write(directory.join(layout::STREAM_METADATA), metadata)?;
            if !self.finished {
                // As the recorder leaves them: room for more events, zeros so far.
                files.iter_mut().for_each(|file| file.resize(file.len() + 4096, 0));
            }
            std::fs::write(directory.join(StreamFile::Standard.name()), &files[0])?;
            std::fs::write(directory.join(StreamFile::Own.name()), &files[1])?;
        }
        Ok(())
    }
}

fn is_own(code: Code) -> bool {
    model_of(code.model()).is_some_and(|model| model.own)
}

fn encode(entry: &Entry, file: &mut Vec<u8>) {
    let jumbo = taskscope_event::models::find(entry.code).is_some_and(|spec| spec.jumbo);
    let flags = if jumbo {
        framing::JUMBO_FLAG | framing::JUMBO_SIZE_CODE
    } else {
        framing::size_code(entry.payload.len())
    };
    file.extend(framing::head_word(flags, entry.code).to_le_bytes());
    file.extend(entry.at.to_le_bytes());
    if jumbo {
        file.extend((entry.payload.len() as u32).to_le_bytes());
    }
    file.extend(&entry.payload);
}

/// Any program, valid or not, given event by event by `choices`. Each choice is thread, nanoseconds since the previous
/// event, number of the event among those of OpenMP, ovni's threads and taskscope's own models, and bytes for its
/// payload.
pub fn any_program(threads: usize, choices: &[(usize, u16, usize, [u8; 16])]) -> Script {
    let letters = [
        ovni::LETTER,
        openmp::LETTER,
        omp::LETTER,
        wait::LETTER,
        dictionary::LETTER,
        taskscope_event::models::recorder::LETTER,
        taskscope_event::models::kernel::LETTER,
        taskscope_event::models::mpi::LETTER,
        taskscope_event::models::messages::LETTER,
    ];
    let events: Vec<_> = MODELS
        .iter()
        .filter(|model| letters.contains(&model.letter))
        .flat_map(|model| model.events)
        .collect();
    let mut script = Script::empty(threads);
    let mut at = 1000;
    for (thread, passed, event, payload) in choices {
        at += u64::from(*passed);
        let event = events[event % events.len()];
        // Small numbers, so that ids of different events meet; every now and then a short payload.
        let small: Vec<u8> =
            payload.iter().enumerate().map(|(i, b)| if i % 4 == 0 { b % 5 } else { 0 }).collect();
        let size = if event.jumbo { 16 } else { event.fields.iter().filter_map(|f| f.ty.size()).sum() };
        let size = if payload[1] == 0 { payload[2] as usize % 17 } else { size };
        let size = if size == 1 { 2 } else { size };
        script.emit(thread % threads, at, event.code, &small[..size]);
    }
    script
}
