//! Records a running process from outside, without a change to it: call paths of its threads, and the times in which they were on a
//! CPU, able to run, and blocked.
//!
//! ```text
//!  kernel ── samples of threads on a CPU: registers, stack ──▶ sample_ring ──┐
//!  /proc/PID/task/TID/syscall, /proc/PID/mem: blocked threads ──▶ target ────┼─ code: call path ─▶ thread_stream ─▶ trace
//!  kernel ── context switches, sums of schedstat ──▶ record::os_time ────────┴──────────────────▶ os-time
//! ```
//!
//! Invariants:
//! - No thread of the process is stopped, interrupted or signalled, and its memory is only read: its system calls continue.
//! - A sample of a blocked thread is taken only if the thread was in the same call, with the same stack pointer, before and after its
//!   stack was read.
//! - Each thread has a sample at least once per period in which it was blocked all the time, or ran for a whole period.
//!
//! Linux only; x86-64 and aarch64.

mod code;
mod module_files;
mod sample_ring;
mod target;
mod thread_stream;

use code::{Code, LoadedModule};
use rustc_hash::FxHashSet;
use sample_ring::{Registers, SampleRing, UNKNOWN_FRAME};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use target::{InSystemCall, Target};
use taskscope_record::clock::kernel_ns;
use taskscope_record::cpus::Mask;
use taskscope_record::os_time::Outside;
use thread_stream::{ProcessPlace, ThreadStream, create_process_directory};

/// New threads are looked for this often.
const LOOK_FOR_THREADS: Duration = Duration::from_millis(20);
/// Modules are looked for no sooner than this after the last time.
const LOOK_FOR_MODULES: Duration = Duration::from_millis(100);
/// Times off the CPU are read this often.
const ROUND: Duration = Duration::from_millis(40);
const ROUND_OF_SUMS: Duration = Duration::from_millis(10);
/// Bytes of a blocked thread's stack that are read at once.
const STACK_BYTES: usize = 64 << 10;
/// A thread is in the same call as before if so many bytes of its stack are the same: a loop that calls again has the same path.
const SAME_STACK_BYTES: usize = 4 << 10;

/// A process that can be recorded.
pub struct Process {
    target: Target,
}

/// The result of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Threads.
    pub threads: u64,
    /// Samples.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Whether the process ended meanwhile.
    pub has_ended: bool,
    /// Whether threads on a CPU could be sampled; otherwise only blocked ones were.
    pub saw_running: bool,
    /// Whether context switches were seen; otherwise times off the CPU are estimated.
    pub saw_switches: bool,
}

impl Process {
    /// Opens a running process.
    ///
    /// # Errors
    /// If there is none, or this process may not read its memory.
    pub fn open(pid: i32) -> io::Result<Process> {
        Ok(Process { target: Target::open(pid)? })
    }

    /// Its command, and the file that runs.
    pub fn command(&self) -> (Vec<String>, PathBuf) {
        self.target.command()
    }

    /// Its working directory.
    pub fn directory(&self) -> PathBuf {
        std::fs::read_link(self.target.file("cwd")).unwrap_or_default()
    }

    /// Its environment as it began.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = std::fs::read(self.target.file("environ")).unwrap_or_default();
        let variable = |one: &[u8]| {
            let one = String::from_utf8_lossy(one);
            one.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        text.split(|byte| *byte == 0).filter_map(variable).collect()
    }

    /// How long it has run.
    pub fn age(&self) -> Option<Duration> {
        self.target.age()
    }

    /// Records it into `trace` until it ends or `is_over`, with a sample every `period`.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub fn record(
        &self,
        trace: &Path,
        host: &str,
        period: Duration,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<Recorded> {
        let pid = self.target.pid;
        let loom = format!("{host}.{pid}");
        let directory = create_process_directory(trace, &loom, pid)?;
        let cpus = Mask::thread_affinity(pid).map(|mask| mask.cpus().collect()).unwrap_or_default();
        let period_ns = period.as_nanos() as u64;
        let outside = Outside::new(&directory, &loom, pid);
        let place = ProcessPlace { directory, loom, pid, cpus, period_ns };
        let mut recording = Recording {
            target: &self.target,
            program: self.command().1,
            trace: trace.to_owned(),
            place,
            outside,
            code: Code::default(),
            modules: Vec::new(),
            threads: BTreeMap::new(),
            seen: FxHashSet::default(),
            recorded: Recorded { saw_switches: true, ..Recorded::default() },
            modules_read: None,
            stack: vec![0; STACK_BYTES],
        };
        recording.run(period, is_over)
    }
}

struct Thread {
    stream: ThreadStream,
    /// None if the kernel refuses.
    ring: Option<SampleRing>,
    leaving: Option<SampleRing>,
    /// Registers with which it left a CPU last.
    left_with: Registers,
    /// Its last blocked call.
    blocked: Option<Blocked>,
}

/// A blocked call of a thread, and its path.
struct Blocked {
    call: InSystemCall,
    /// The top of its stack.
    stack: Vec<u8>,
    path: code::Path,
}

struct Recording<'t> {
    target: &'t Target,
    /// The file that runs.
    program: PathBuf,
    trace: PathBuf,
    place: ProcessPlace,
    outside: Outside,
    code: Code,
    /// Modules that no stream names yet.
    modules: Vec<LoadedModule>,
    threads: BTreeMap<i32, Thread>,
    /// All threads so far.
    seen: FxHashSet<i32>,
    recorded: Recorded,
    modules_read: Option<Instant>,
    stack: Vec<u8>,
}

impl Recording<'_> {
    fn run(&mut self, period: Duration, is_over: &dyn Fn() -> bool) -> io::Result<Recorded> {
        self.find_threads()?;
        if self.threads.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.find_modules();
        let (mut looked, mut rounded, mut next) = (Instant::now(), Instant::now(), Instant::now());
        while !is_over() {
            next += period;
            let now = Instant::now();
            match next.checked_duration_since(now) {
                Some(pause) => std::thread::sleep(pause),
                // No CPU for long: what was missed is not made up for.
                None => next = now,
            }
            if looked.elapsed() >= LOOK_FOR_THREADS {
                looked = Instant::now();
                self.find_threads()?;
                if self.threads.is_empty() {
                    self.recorded.has_ended = true;
                    break;
                }
            }
            let tids: Vec<i32> = self.threads.keys().copied().collect();
            tids.into_iter().for_each(|tid| self.sample(tid));
            let every = if self.recorded.saw_switches { ROUND } else { ROUND_OF_SUMS };
            if rounded.elapsed() >= every {
                rounded = Instant::now();
                self.round()?;
            }
        }
        let end = kernel_ns();
        for (tid, mut thread) in std::mem::take(&mut self.threads) {
            self.take_samples(&mut thread);
            self.modules.drain(..).for_each(|module| thread.stream.module(&module));
            self.outside.leave(tid);
            thread.stream.end(end)?;
        }
        self.outside.finish();
        Ok(self.recorded)
    }

    fn round(&mut self) -> io::Result<()> {
        self.outside.round();
        self.recorded.saw_switches = !self.outside.has_sums();
        for (tid, thread) in &mut self.threads {
            if let Some(name) = self.target.thread_name(*tid, &self.program) {
                thread.stream.set_name(name);
            }
            thread.stream.store()?;
        }
        Ok(())
    }

    /// Begins new threads, and ends those that are gone.
    fn find_threads(&mut self) -> io::Result<()> {
        let mut living = self.target.threads();
        // A process that has ended keeps its first thread until its parent has been told.
        if living == [self.target.pid] && matches!(self.target.state(self.target.pid), None | Some('Z' | 'X'))
        {
            living.clear();
        }
        living.sort_unstable();
        let gone: Vec<i32> =
            self.threads.keys().copied().filter(|tid| living.binary_search(tid).is_err()).collect();
        for tid in gone {
            let Some(mut thread) = self.threads.remove(&tid) else { continue };
            self.take_samples(&mut thread);
            self.modules.drain(..).for_each(|module| thread.stream.module(&module));
            self.outside.leave(tid);
            thread.stream.end(kernel_ns())?;
        }
        for tid in living {
            if !self.threads.contains_key(&tid) {
                self.begin_thread(tid)?;
            }
        }
        Ok(())
    }

    fn begin_thread(&mut self, tid: i32) -> io::Result<()> {
        // The number of a thread that has ended: one stream has one thread.
        if !self.seen.insert(tid) {
            return Ok(());
        }
        let ring = SampleRing::open(tid, self.place.period_ns).ok();
        let leaving = SampleRing::open_leaving(tid).ok();
        self.outside.watch(tid);
        // From here on all of its time is known.
        let stream = ThreadStream::begin(&self.place, tid, kernel_ns())?;
        self.recorded.saw_running |= ring.is_some();
        self.recorded.threads += 1;
        self.threads
            .insert(tid, Thread { stream, ring, leaving, left_with: Registers::default(), blocked: None });
        Ok(())
    }

    fn find_modules(&mut self) {
        if self.modules_read.is_some_and(|read| read.elapsed() < LOOK_FOR_MODULES) {
            return;
        }
        self.modules_read = Some(Instant::now());
        for module in self.code.update(self.target) {
            // Without the file its names are missing, which reports say.
            let _ = module_files::keep(self.target, &module, &self.trace);
            self.modules.push(module);
        }
    }

    fn sample(&mut self, tid: i32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        self.take_samples(&mut thread);
        self.sample_blocked(tid, &mut thread);
        self.modules.drain(..).for_each(|module| thread.stream.module(&module));
        self.threads.insert(tid, thread);
    }

    /// Takes the samples of the kernel.
    fn take_samples(&mut self, thread: &mut Thread) {
        if let Some(leaving) = &mut thread.leaving {
            leaving.take(|sample| thread.left_with = sample.registers);
        }
        let Some(ring) = &mut thread.ring else { return };
        let mut found = Vec::new();
        let lost = ring.take(|sample| found.push(sample));
        thread.stream.lose(lost);
        self.recorded.lost += lost;
        for sample in found {
            let stack = &sample.stack;
            let path = self.path(sample.registers, |address| word(stack, sample.registers.stack, address));
            thread.stream.sample(sample.at, &path);
            self.recorded.samples += 1;
        }
    }

    /// Samples a thread that is in a system call and not on a CPU.
    fn sample_blocked(&mut self, tid: i32, thread: &mut Thread) {
        let Some(call) = self.target.system_call(tid) else { return };
        let mut top = vec![0; SAME_STACK_BYTES];
        let top_length = self.target.read(call.stack, &mut top);
        top.truncate(top_length);
        let is_same = |blocked: &Blocked| blocked.call == call && blocked.stack == top;
        let at = kernel_ns();
        if let Some(blocked) = thread.blocked.as_ref().filter(|blocked| is_same(blocked)) {
            if self.target.system_call(tid) == Some(call) {
                thread.stream.sample(at, &blocked.path);
                self.recorded.samples += 1;
            }
            return;
        }
        thread.blocked = None;
        let mut stack = std::mem::take(&mut self.stack);
        let length = self.target.read(call.stack, &mut stack);
        if self.target.system_call(tid) == Some(call) {
            let is_of_call = |left: &Registers| (left.address, left.stack) == (call.address, call.stack);
            let frame = Some(thread.left_with).filter(is_of_call).map_or(UNKNOWN_FRAME, |left| left.frame);
            let registers = Registers { address: call.address, stack: call.stack, frame, link: 0 };
            let path = self.blocked_path(registers, &stack[..length]);
            thread.stream.sample(at, &path);
            self.recorded.samples += 1;
            thread.blocked = Some(Blocked { call, stack: top, path });
        }
        self.stack = stack;
    }

    fn blocked_path(&mut self, registers: Registers, stack: &[u8]) -> code::Path {
        let (pointer, target) = (registers.stack, self.target);
        self.path(registers, |address| {
            word(stack, pointer, address).or_else(|| {
                let mut far = [0; 8];
                let is_read = address > pointer && target.read(address, &mut far) == far.len();
                is_read.then(|| u64::from_le_bytes(far))
            })
        })
    }

    fn path(&mut self, registers: Registers, read: impl FnMut(u64) -> Option<u64> + Clone) -> code::Path {
        let path = self.code.path(registers, read.clone());
        let is_new = path.addresses.last().is_some_and(|address| self.code.is_new(*address));
        if path.reached_root || !is_new {
            return path;
        }
        // A module that was loaded since.
        self.find_modules();
        self.code.path(registers, read)
    }
}

/// A word of the stack, of which `bytes` are known from `pointer` on.
fn word(bytes: &[u8], pointer: u64, address: u64) -> Option<u64> {
    let at = usize::try_from(address.checked_sub(pointer)?).ok()?;
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
