//! Writes a slice.

mod borders;
mod files;
mod moves;

use super::bytes::{events_in, first_clock, first_u32, place_clocks, push};
use super::capacity::{Capacity, Seen};
use super::instrument::{self, Instrumented};
use super::known_waits::RowsOfWaits;
use super::messages::{self, Operations};
use super::metadata::Declared;
use super::regions::Regions;
use super::request::{Process, Slice, Sliced};
use super::run_file;
use super::thread_state::{Life, ThreadState, is_task_step};
use super::waits::Waits;
use crate::stream::Stream;
use crate::trace::Trace;
use crate::{Event, MergedEvent};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use taskscope_event::framing::file_header;
use taskscope_event::models::{self, dictionary, kernel, nanos6, nosv, omp, openmp, ovni, recorder, samples};
use taskscope_event::{Code, StreamFile};

/// The CPU of a thread that is bound to none, as events name it.
const VIRTUAL_CPU: [u8; 4] = (-1_i32).to_le_bytes();

/// Events between two looks at whether to stop.
const EVENTS_PER_ROUND: u64 = 1 << 14;

impl Trace {
    /// Writes the slice as a trace into `output`, which must not exist or be empty.
    ///
    /// # Errors
    /// Errors of the file system; the partial output is then removed.
    pub fn write_slice(&self, slice: &Slice, output: &Path) -> io::Result<Sliced> {
        self.write_part(slice, output, |_| true, |_| ControlFlow::Continue(()))
    }

    /// Writes the slice as a trace into `output`, which must not exist or be empty: the events that `slice` selects and
    /// `keeps` accepts. `between` receives the number of read events now and then, and may stop the work; then, as
    /// after an error, the partial output is removed.
    ///
    /// # Errors
    /// Errors of the file system; [`io::ErrorKind::Interrupted`] if it was stopped.
    pub fn write_part<'a>(
        &'a self,
        slice: &'a Slice,
        output: &Path,
        keeps: impl Fn(&MergedEvent<'a>) -> bool,
        mut between: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<Sliced> {
        let existed = output.exists();
        let result = Slicer::new(self, slice).write(output, keeps, &mut between);
        if result.is_err() {
            // The first error matters more than the fate of the leftovers. All of them are ours: the
            // directory was empty. It may be a link to another one, which stays.
            let _ = if existed { remove_contents(output) } else { std::fs::remove_dir_all(output) };
        }
        result
    }
}

fn remove_contents(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_directory = path.symlink_metadata()?.is_dir();
        if is_directory { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }?;
    }
    Ok(())
}

struct Slicer<'a> {
    trace: &'a Trace,
    slice: &'a Slice,
    selected: Vec<bool>,
    states: Vec<ThreadState>,
    streams_of_tid: FxHashMap<i64, Vec<usize>>,
    /// Type and task creations before the range: process key, event.
    creations: Vec<(usize, Event<'a>)>,
    dictionary: Vec<(usize, Event<'a>)>,
    instrumented: Instrumented,
    /// Parallel regions.
    regions: Regions<'a>,
    /// The time before the range in which states are restored.
    opening_ns: i64,
    /// Waits of each stream at the begin of the range.
    waits: Vec<Waits<'a>>,
    /// Operations of MPI that are on their way.
    operations: Operations<'a>,
    /// Sends before the range that are received in it, by stream.
    sends: FxHashMap<usize, Vec<Event<'a>>>,
    /// Moves of preempted threads by removed threads, while no other thread of the process can record them: moved
    /// stream and event.
    moves: Vec<(usize, Event<'a>)>,
    /// CPUs on which threads of the slice have run, by loom and index: they rest while no thread runs.
    used_cpus: BTreeSet<(Option<&'a str>, i32)>,
    /// The workers of the whole run.
    capacity: Capacity<'a>,
    /// Waits of threads for each other, by the analysis of the whole run.
    known_waits: RowsOfWaits<'a>,
}

impl<'a> Slicer<'a> {
    fn new(trace: &'a Trace, slice: &'a Slice) -> Self {
        let mut streams_of_tid: FxHashMap<i64, Vec<usize>> = FxHashMap::default();
        for (index, stream) in trace.streams().iter().enumerate() {
            if let Some(tid) = stream.tid() {
                streams_of_tid.entry(tid).or_default().push(index);
            }
        }
        let wanted = |stream: &Stream| {
            slice.threads.is_empty() || stream.tid().is_some_and(|tid| slice.threads.contains(&tid))
        };
        Slicer {
            trace,
            slice,
            selected: trace.streams().iter().map(wanted).collect(),
            states: vec![ThreadState::new(); trace.streams().len()],
            streams_of_tid,
            creations: Vec::new(),
            dictionary: Vec::new(),
            instrumented: Instrumented::new(trace.streams()),
            regions: Regions::default(),
            opening_ns: 0,
            waits: vec![Waits::default(); trace.streams().len()],
            operations: Operations::default(),
            sends: FxHashMap::default(),
            moves: Vec::new(),
            used_cpus: BTreeSet::new(),
            capacity: Capacity::of(trace.streams(), &[]),
            known_waits: RowsOfWaits::default(),
        }
    }

    fn keeps_model(&self, code: Code) -> bool {
        self.slice.keeps_model(code)
    }

    fn write(
        mut self,
        output: &Path,
        keeps: impl Fn(&MergedEvent<'a>) -> bool,
        between: &mut impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<Sliced> {
        let mut read = 0;
        let mut go_on = |more: u64| {
            read += more;
            // Without an event it is a whole file that comes next.
            let asks = more == 0 || read.is_multiple_of(EVENTS_PER_ROUND);
            let stops = asks && between(read).is_break();
            if stops { Err(io::Error::from(io::ErrorKind::Interrupted)) } else { Ok(()) }
        };
        let count = self.trace.streams().len();
        let (begin, end) = self.slice.clocks.unwrap_or((i64::MIN, i64::MAX));
        let mut standard = vec![file_header().to_vec(); count];
        let mut own = vec![file_header().to_vec(); count];
        let mut touched = vec![false; count];
        let mut sliced = Sliced::default();
        let mut opened = false;
        let used = self.survey(begin, end);
        self.known_waits = RowsOfWaits::of(self.trace, self.slice, |stream| self.selected[stream]);
        let in_slice: FxHashSet<Process<'a>> = (0..count)
            .filter(|stream| self.selected[*stream])
            .map(|stream| self.process_of(stream))
            .collect();
        let shares_process: Vec<bool> =
            (0..count).map(|stream| in_slice.contains(&self.process_of(stream))).collect();
        // Tasks that nothing in the range names need not be created.
        let trace = self.trace;
        let is_wanted = |stream: usize, file: StreamFile, event: &Event<'a>| {
            let pid = trace.streams()[stream].pid().unwrap_or(0);
            let key = (pid, event.code.model(), first_u32(event.payload));
            is_name(file, event) || event.is_jumbo || used.contains(&key)
        };
        let mut foreign: Vec<(usize, StreamFile, Event<'a>)> = Vec::new();
        for merged in self.trace.merge() {
            go_on(1)?;
            let MergedEvent { stream, file, event } = merged;
            if is_after(event.clock_ns, end) {
                break;
            }
            if event.clock_ns >= begin && !std::mem::replace(&mut opened, true) && self.slice.clocks.is_some()
            {
                self.open_states((begin, end), &used, &mut standard, &mut own, &mut touched);
                // Creations that no living thread of its process could record yet.
                let creations = self.creations.drain(..);
                let creations = creations.map(|(stream, event)| (stream, StreamFile::Standard, event));
                foreign.extend(creations.filter(|(stream, file, event)| is_wanted(*stream, *file, event)));
            }
            let in_range = event.clock_ns >= begin;
            let is_needed_by_others =
                is_name(file, &event) || is_creation(event.code) || instrument::is_creation(&event);
            let is_needed_by_others = is_needed_by_others && shares_process[stream];
            if !self.selected[stream] && is_needed_by_others && self.keeps_model(event.code) {
                if in_range {
                    if is_wanted(stream, file, &event) {
                        foreign.push((stream, file, event));
                    }
                } else {
                    let heir = if file == StreamFile::Own { self.heir(stream) } else { None };
                    self.remember(heir.unwrap_or(stream), file, event);
                }
            }
            if !self.selected[stream] || !self.keeps_model(event.code) || !keeps(&merged) {
                // A remote move still changes the CPU of another thread.
                if file == StreamFile::Standard && event.code == ovni::REMOTE_AFFINITY {
                    self.follow(stream, &event);
                    let moved = self.moved(stream, &event);
                    if let Some(moved) = moved.filter(|moved| in_range && self.lives(*moved)) {
                        self.moves.push((moved, event));
                        if let Some(recorder) = self.recorder_of(moved) {
                            self.write_moves(recorder, event.clock_ns, &mut standard[recorder]);
                            touched[recorder] = true;
                        }
                    }
                }
                if !in_range && file == StreamFile::Own && self.keeps_model(event.code) {
                    self.instrumented.follow(stream, &event);
                }
                continue;
            }
            if in_range && !self.moves.is_empty() {
                self.write_moves(stream, event.clock_ns, &mut standard[stream]);
            }
            // A thread of the slice repeats the creations and names of the process's other threads as early
            // as possible: it uses nothing of a model before it may create it.
            if in_range && !foreign.is_empty() {
                foreign.retain(|(creator, file, created)| {
                    let is_reported = self.process_of(*creator) == self.process_of(stream)
                        && self.may_create(stream, created.code.model());
                    if is_reported {
                        let bytes =
                            if *file == StreamFile::Own { &mut own[stream] } else { &mut standard[stream] };
                        push(bytes, event.clock_ns, created.code, created.is_jumbo, created.payload);
                    }
                    !is_reported
                });
            }
            if !in_range {
                let process = self.process_of(stream);
                self.operations.follow(stream, &event, |other| process_of(trace, other) == process);
            }
            if file == StreamFile::Standard {
                self.follow(stream, &event);
            } else {
                self.instrumented.follow(stream, &event);
                self.states[stream].follow_own(&event);
                if !in_range {
                    self.waits[stream].follow(&event);
                    self.regions.follow(process_of(self.trace, stream), stream, &event);
                }
                match event.code {
                    recorder::PAUSE_BEGIN => self.states[stream].is_paused = true,
                    recorder::PAUSE_END => self.states[stream].is_paused = false,
                    omp::THREAD_TYPE => self.states[stream].openmp_type = Some(first_u32(event.payload)),
                    _ => {}
                }
            }
            if event.clock_ns < begin {
                self.remember(stream, file, event);
                continue;
            }
            // Threads that are not there cannot be moved.
            if file == StreamFile::Standard
                && event.code == ovni::REMOTE_AFFINITY
                && self.moved(stream, &event).is_some_and(|moved| !self.selected[moved])
            {
                continue;
            }
            touched[stream] = true;
            if self.known_waits.replace(&merged) {
                continue;
            }
            sliced.events += 1;
            let bytes = if file == StreamFile::Standard { &mut standard[stream] } else { &mut own[stream] };
            let (cpu, rest) = event.payload.split_at(event.payload.len().min(4));
            let executes = event.code == ovni::THREAD_EXECUTES;
            if !self.moves.is_empty() && executes && cpu != VIRTUAL_CPU {
                // Its CPU may be one that a thread which must be moved first still has.
                push(
                    bytes,
                    event.clock_ns,
                    event.code,
                    event.is_jumbo,
                    &[VIRTUAL_CPU.as_slice(), rest].concat(),
                );
                self.write_moves(stream, event.clock_ns, bytes);
                push(bytes, event.clock_ns, ovni::SET_AFFINITY, false, cpu);
                continue;
            }
            push(bytes, event.clock_ns, event.code, event.is_jumbo, event.payload);
            if !self.moves.is_empty() && (executes || event.code == kernel::BACK_ON_CPU) {
                self.write_moves(stream, event.clock_ns, bytes);
            }
        }
        if !opened && self.slice.clocks.is_some() {
            self.open_states((begin, end), &used, &mut standard, &mut own, &mut touched);
        }
        self.close_states((begin, end), &mut standard, &mut own, &mut touched);
        for (stream, bytes) in own.iter_mut().enumerate().filter(|(stream, _)| touched[*stream]) {
            self.known_waits.add(stream, (first_clock(&standard[stream]).unwrap_or(begin), begin), bytes);
        }
        // Clocks that were corrected to before 0 are so in the slice, too.
        let first = self.trace.streams().iter().filter_map(Stream::first_clock_ns).min().unwrap_or(0);
        let shift = first.max(begin).min(0).saturating_neg();
        // Open sections are opened before the range, after the names.
        let may_be_negative = first.max(begin) <= self.opening_ns;
        let shift = may_be_negative.then_some(shift);
        for bytes in standard.iter_mut().chain(&mut own) {
            place_clocks(bytes, shift);
        }
        let mut declared = Declared::by(self.trace.streams());
        for (index, stream) in self.trace.streams().iter().enumerate() {
            if touched[index] {
                go_on(0)?;
                sliced.streams += 1;
                sliced.added += events_in(&standard[index]) + events_in(&own[index]);
                let metadata = declared.metadata_of(stream, self.slice);
                self.write_stream(stream, output, &standard[index], &own[index], &metadata, shift)?;
            }
        }
        sliced.is_shifted = shift.is_some_and(|shift| shift != 0);
        self.write_os_times(output, &touched, shift.unwrap_or(0))?;
        self.write_signs_of_life(output, &touched, shift.unwrap_or(0))?;
        if !sliced.is_shifted {
            self.write_devices(output, &touched)?;
        }
        self.write_clock_offsets(output, &touched, shift.unwrap_or(0))?;
        if sliced.streams > 0 {
            run_file::write_run_file(self.trace, self.slice, sliced.is_shifted, output)?;
            self.write_modules(output)?;
        }
        sliced.added -= sliced.events;
        Ok(sliced)
    }

    /// Finds the workers of the run, and the tasks that events of the range name, by process, model, and the lower half of
    /// their numbers.
    fn survey(&mut self, begin: i64, end: i64) -> FxHashSet<(i64, u8, u32)> {
        let mut used = FxHashSet::default();
        let mut seen: Vec<Option<Seen>> = Vec::with_capacity(self.selected.len());
        for (stream, is_selected) in self.trace.streams().iter().zip(&self.selected) {
            if !is_selected {
                seen.push(None);
                continue;
            }
            let mut stream_seen = Seen::default();
            for event in stream.events_of(StreamFile::Standard) {
                if self.keeps_model(event.code) {
                    stream_seen.take(&event);
                }
                let in_range = begin <= event.clock_ns && !is_after(event.clock_ns, end);
                if in_range && is_task_step(event.code) {
                    used.insert((stream.pid().unwrap_or(0), event.code.model(), first_u32(event.payload)));
                }
            }
            for event in stream.events_of(StreamFile::Own) {
                if self.keeps_model(event.code) {
                    stream_seen.take(&event);
                }
                if (begin..end).contains(&event.clock_ns)
                    && let Some(task) = instrument::task_taken_up(&event)
                {
                    used.insert((stream.pid().unwrap_or(0), event.code.model(), task as u32));
                }
            }
            seen.push(Some(stream_seen));
        }
        self.capacity = Capacity::of(self.trace.streams(), &seen);
        if self.slice.clocks.is_some() && self.keeps_model(models::messages::SEND) {
            let is_selected = |stream: usize| self.selected[stream];
            self.sends = messages::sends_into(self.trace.streams(), (begin, end), is_selected);
        }
        used
    }

    /// Keeps data from before the range that may be needed later.
    fn remember(&mut self, stream: usize, file: StreamFile, event: Event<'a>) {
        match event.code {
            code if is_creation(code) => self.creations.push((stream, event)),
            _ if is_name(file, &event) => self.dictionary.push((stream, event)),
            _ => {}
        }
    }

    /// Applies an event to the state of its thread.
    fn follow(&mut self, stream: usize, event: &Event<'a>) {
        self.states[stream].follow(event);
        match event.code {
            ovni::THREAD_ENDS => self.instrumented.thread_ends(stream, event.clock_ns),
            ovni::THREAD_EXECUTES | ovni::THREAD_RESUMES | ovni::SET_AFFINITY => self.uses_cpu(stream),
            ovni::REMOTE_AFFINITY => {
                if let Some(moved) = self.moved(stream, event) {
                    self.states[moved].cpu = first_u32(event.payload) as i32;
                    self.uses_cpu(moved);
                }
            }
            _ => {}
        }
    }

    /// The thread has come to a CPU, or runs there again.
    fn uses_cpu(&mut self, stream: usize) {
        let state = &self.states[stream];
        if self.selected[stream] && state.running == Life::Running && state.cpu >= 0 {
            self.used_cpus.insert((self.trace.streams()[stream].loom(), state.cpu));
        }
    }

    /// Whether a model lets a thread create types and tasks in the state that it is in.
    fn may_create(&self, stream: usize, model: u8) -> bool {
        let life = self.states[stream].running;
        let is_active = matches!(life, Life::Running | Life::Warming | Life::Cooling);
        match model {
            nanos6::LETTER => is_active,
            openmp::LETTER => life == Life::Running,
            _ => is_active && !self.is_off_cpu(stream),
        }
    }

    fn is_off_cpu(&self, stream: usize) -> bool {
        self.states[stream].is_off_cpu()
    }

    /// The stream that takes over the names given by another one of its process.
    fn heir(&self, stream: usize) -> Option<usize> {
        let process = self.process_of(stream);
        (0..self.selected.len()).find(|other| self.selected[*other] && self.process_of(*other) == process)
    }

    fn process_of(&self, stream: usize) -> Process<'a> {
        process_of(self.trace, stream)
    }

    /// Whether a thread of the slice lives.
    fn lives(&self, stream: usize) -> bool {
        self.selected[stream] && !matches!(self.states[stream].running, Life::NotStarted | Life::Ended)
    }

    /// Threads that live, those that do not run first, and members of a team after its master.
    fn living(&self) -> Vec<usize> {
        let mut living: Vec<usize> = (0..self.states.len()).filter(|stream| self.lives(*stream)).collect();
        living.sort_by_key(|stream| self.states[*stream].running == Life::Running);
        self.regions.order(&living, |stream| self.process_of(stream), &self.states)
    }
}

/// Whether an event gives a meaning to numbers that later events of its process use.
fn is_name(file: StreamFile, event: &Event<'_>) -> bool {
    let code = event.code;
    file == StreamFile::Own
        && (code.model() == dictionary::LETTER
            || matches!(
                code,
                samples::PATH | samples::TASK_PATH | models::messages::JOB | models::messages::COMMUNICATOR
            )
            || models::instrument::NAMES.contains(&code))
}

/// Whether an event creates a task type or a task.
fn is_creation(code: Code) -> bool {
    matches!(
        code,
        nanos6::TYPE_CREATE
            | nosv::TYPE_CREATE
            | openmp::TYPE_CREATE
            | nanos6::TASK_CREATE
            | nosv::TASK_CREATE
            | nosv::PARALLEL_TASK_CREATE
            | openmp::TASK_CREATE
    )
}

/// Whether a clock is after a range that ends at `end`; a range without an end is unlimited.
fn is_after(clock_ns: i64, end: i64) -> bool {
    clock_ns >= end && end != i64::MAX
}

/// The process of a stream.
fn process_of(trace: &Trace, stream: usize) -> Process<'_> {
    let stream = &trace.streams()[stream];
    (stream.loom(), stream.pid())
}
