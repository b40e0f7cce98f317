//! The hub, which all sources pass their data to: one per process, created on first use.

use crate::clocks;
use crate::collector::{self, Collector};
pub(crate) use crate::message::Message;
pub use crate::message::{Call, Device, Floor, Poll, Queue, Source, What};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use taskscope_record::own_threads;
use taskscope_reorder::{Completion, Detail, Notice, Producer, QueueIndex, Rings};

/// Messages that a thread's ring takes; more go a slower way.
const RING_MESSAGES: usize = 8192;

/// Connects the sources with the collector.
pub struct Hub {
    pid: i32,
    trace: PathBuf,
    /// Created with the first location; `None` on failure.
    directory: OnceLock<Option<PathBuf>>,
    rings: Arc<Rings<Message>>,
    pub(crate) devices: Mutex<Vec<Device>>,
    pub(crate) queues: Mutex<Vec<Queue>>,
    pub(crate) names: Mutex<Vec<String>>,
    name_numbers: RwLock<FxHashMap<String, u32>>,
    /// Operations that were announced and have not ended, as the collector knows it.
    pub(crate) open: AtomicU64,
    /// Number of the collector's passes.
    pub(crate) passes: AtomicU64,
    /// Number of records that vendors' interfaces have dropped.
    dropped: AtomicU64,
    sources: Mutex<Vec<Source>>,
    stop: AtomicBool,
    collector: Mutex<Option<JoinHandle<()>>>,
}

static HUB: OnceLock<Option<Hub>> = OnceLock::new();

thread_local! {
    static PRODUCER: RefCell<Option<Producer<Message>>> = const { RefCell::new(None) };
}

/// The hub of this process; `None` if recording is off, in a forked child, and after the end.
pub fn hub() -> Option<&'static Hub> {
    let hub = HUB.get_or_init(Hub::start).as_ref()?;
    // SAFETY: no preconditions.
    let same_process = hub.pid == unsafe { libc::getpid() };
    (same_process && !hub.stop.load(Relaxed)).then_some(hub)
}

/// The calling thread's system id.
pub fn tid() -> u32 {
    thread_local! {
        // SAFETY: no preconditions.
        static TID: u32 = (unsafe { libc::syscall(libc::SYS_gettid) }) as u32;
    }
    TID.try_with(|tid| *tid).unwrap_or(0)
}

impl Hub {
    fn start() -> Option<Hub> {
        let trace = std::env::var_os("TASKSCOPE_TRACE_DIR").filter(|value| !value.is_empty())?;
        // SAFETY: no preconditions.
        let pid = unsafe { libc::getpid() };
        let hub = Hub {
            pid,
            trace: trace.into(),
            directory: OnceLock::new(),
            rings: Rings::new(RING_MESSAGES),
            devices: Mutex::default(),
            queues: Mutex::default(),
            names: Mutex::new(vec![String::new()]),
            name_numbers: RwLock::default(),
            open: AtomicU64::new(0),
            passes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            sources: Mutex::default(),
            stop: AtomicBool::new(false),
            collector: Mutex::default(),
        };
        // SAFETY: the function lives as long as the library, which is linked to stay loaded.
        unsafe { libc::atexit(at_exit) };
        Some(hub)
    }

    /// Starts the collector, which needs the hub to be in its place.
    fn collect(&'static self) {
        let mut collector = lock(&self.collector);
        if collector.is_some() || self.stop.load(Acquire) {
            return;
        }
        if self.directory.get_or_init(|| make_directory(&self.trace, self.pid)).is_none() {
            // The directory cannot be created: further records are not taken.
            self.stop.store(true, Release);
            return;
        }
        // Without it, records are written when the process ends, as far as they find room.
        if !own_threads::may_start() {
            return;
        }
        // The program's signals are not for this thread.
        let spawned = collector::with_signals_blocked(|| {
            std::thread::Builder::new()
                .name("taskscope-dev".to_owned())
                .spawn(move || Collector::new(self).run())
        });
        *collector = spawned.ok();
    }

    pub(crate) fn rings(&self) -> &Rings<Message> {
        &self.rings
    }

    /// Directory of the locations; the trace's own before there is one.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.get().and_then(Option::as_deref).unwrap_or(&self.trace)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Id of the process, which is that of its first thread.
    pub(crate) fn process(&self) -> u32 {
        self.pid as u32
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Acquire)
    }

    /// Adds a device; its number.
    pub fn add_device(&self, device: Device) -> u32 {
        let mut devices = lock(&self.devices);
        devices.push(device);
        devices.len() as u32 - 1
    }

    /// Adds a queue.
    pub fn add_queue(&'static self, queue: Queue) -> QueueIndex {
        let mut queues = lock(&self.queues);
        queues.push(queue);
        let index = QueueIndex(queues.len() as u32 - 1);
        drop(queues);
        self.collect();
        index
    }

    /// The number of a name.
    pub fn name(&self, text: &str) -> u32 {
        let known = self.name_numbers.read().unwrap_or_else(PoisonError::into_inner).get(text).copied();
        if let Some(number) = known {
            return number;
        }
        let mut numbers = self.name_numbers.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get(text) {
            return *number;
        }
        let mut names = lock(&self.names);
        names.push(text.to_owned());
        let number = names.len() as u32 - 1;
        numbers.insert(text.to_owned(), number);
        number
    }

    /// An operation is about to be submitted by the calling thread: queue, number, and the first one of the queue that
    /// another thread is submitting.
    pub(crate) fn append_beside(
        &self,
        (queue, seq, beside): (QueueIndex, u64, Option<u64>),
        what: What,
        id: u64,
        bytes: u64,
        append: u64,
    ) {
        let detail = Detail { id, amount: bytes, what: what.0 };
        let notice = Notice { queue, seq, thread: tid(), append, earliest_start: 0, detail };
        self.put(Message::Append(notice, beside));
    }

    /// An operation was submitted at a time of `CLOCK_MONOTONIC`, by a thread that the source knows.
    #[allow(clippy::too_many_arguments, reason = "each is one field of the notice")]
    pub fn append_at(
        &self,
        queue: QueueIndex,
        seq: u64,
        what: What,
        id: u64,
        bytes: u64,
        append: u64,
        thread: u32,
    ) {
        let detail = Detail { id, amount: bytes, what: what.0 };
        let notice = Notice { queue, seq, thread, append, earliest_start: 0, detail };
        self.put(Message::Append(notice, None));
    }

    /// The submission has failed.
    pub fn cancel(&self, queue: QueueIndex, seq: u64) {
        self.put(Message::Cancel(queue, seq));
    }

    /// Completes an operation by its record. Stamps are in ticks of the device; 0 if unknown.
    pub fn complete(&self, queue: QueueIndex, seq: u64, submit: u64, start: u64, end: u64) {
        let observed = clocks::now();
        self.put(Message::Complete(Completion { queue, seq, submit, start, end }, observed));
    }

    /// Takes a record of an ended operation: a duplicate, unless it was declared lost.
    pub fn complete_again(&self, queue: QueueIndex, seq: u64, submit: u64, start: u64, end: u64) {
        self.put(Message::CompleteAgain(Completion { queue, seq, submit, start, end }, clocks::now()));
    }

    /// Replaces the kind of an operation, before its completion, if its record is more exact than its
    /// submission.
    pub fn amend(&self, queue: QueueIndex, seq: u64, what: What, bytes: u64) {
        self.put(Message::Amend(queue, seq, what, bytes));
    }

    /// A number that the vendor's record has for an operation, under a name of [`Hub::name`].
    pub fn number(&self, queue: QueueIndex, seq: u64, name: u32, value: u64) {
        self.put(Message::Number(queue, seq, name, value));
    }

    /// A record of the host without an id, which may come late: a call that the vendor saw, or overhead.
    pub fn host_record(&'static self, call: Call) {
        self.collect();
        self.put(Message::HostRecord(call));
    }

    /// Counts records that the vendor's interface has dropped.
    pub fn dropped(&self, records: u64) {
        self.dropped.fetch_add(records, Relaxed);
    }

    pub(crate) fn dropped_records(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Adds an interface that holds records back.
    pub fn add_source(&self, source: Source) {
        lock(&self.sources).push(source);
    }

    /// The name of a device became known.
    pub fn name_device(&self, device: u32, name: &str) {
        if let Some(device) = lock(&self.devices).get_mut(device as usize) {
            name.clone_into(&mut device.name);
        }
    }

    /// A call of the host has ended.
    pub fn call(&self, call: Call) {
        self.put(Message::Call(call));
    }

    /// The device showed `ticks` between two times of the host.
    pub fn anchor(&self, device: u32, ticks: u64, before: u64, after: u64) {
        self.put(Message::Anchor(device, ticks, before, after));
    }

    /// After a barrier and a flush: no record will come of the queue's operations below `before`.
    pub fn lost(&self, queue: QueueIndex, before: u64) {
        self.put(Message::Lost(queue, before));
    }

    /// Declares that operations of a queue of [`Floor::Unknown`] with records not handed over before this
    /// call start at `time` or later, by the clock of the stamps.
    pub fn none_before(&self, queue: QueueIndex, time: u64) {
        self.put(Message::NoneBefore(queue, time));
    }

    fn put(&self, message: Message) {
        let put = PRODUCER.try_with(|producer| {
            // A signal handler that interrupts this very place loses its message.
            if let Ok(mut producer) = producer.try_borrow_mut() {
                producer.get_or_insert_with(|| self.rings.producer()).put(message);
            }
        });
        if put.is_err() {
            // The thread is ending: its own ring is gone.
            self.rings.producer().put(message);
        }
    }

    /// Ends recording: waits a limited time for outstanding records, then for the collector to write
    /// everything.
    pub fn finish(&'static self) {
        let sources = lock(&self.sources).clone();
        sources.iter().for_each(|source| (source.flush)());
        // Records get a second to arrive, as long as some arrive; the driver is not queried any more.
        self.wait_for_records(1000, 200);
        sources.iter().for_each(|source| (source.force)());
        self.stop.store(true, Release);
        let collector = lock(&self.collector).take();
        match collector {
            Some(collector) => {
                collector.thread().unpark();
                let _ = collector.join();
            }
            // No thread could be created.
            None if self.directory.get().is_some_and(Option::is_some) => Collector::new(self).run(),
            None => {}
        }
    }

    /// Waits until no operation is in flight, at most this long, and this long after the last record.
    pub(crate) fn wait_for_records(&self, max_ms: u32, max_quiet_ms: u32) {
        let pause = || std::thread::sleep(std::time::Duration::from_millis(1));
        // After two more passes the collector has all earlier messages.
        let known_by = self.passes.load(Acquire) + 2;
        for _ in 0..max_ms {
            if self.passes.load(Acquire) >= known_by || lock(&self.collector).is_none() {
                break;
            }
            pause();
        }
        let (mut open, mut quiet_ms) = (self.open.load(Relaxed), 0);
        for _ in 0..max_ms {
            if open == 0 || quiet_ms > max_quiet_ms {
                break;
            }
            pause();
            let now = self.open.load(Relaxed);
            quiet_ms = if now == open { quiet_ms + 1 } else { 0 };
            open = now;
        }
    }
}

extern "C" fn at_exit() {
    if let Some(hub) = hub() {
        hub.finish();
    }
}

/// `devices.<host>.<pid>`, under a number if a process of that id has been here.
fn make_directory(trace: &Path, pid: i32) -> Option<PathBuf> {
    std::fs::create_dir_all(trace).ok()?;
    let host = host_name();
    for copy in 1..10_000 {
        let name =
            if copy == 1 { format!("devices.{host}.{pid}") } else { format!("devices.{host}.{pid}-{copy}") };
        let directory = trace.join(name);
        match std::fs::create_dir(&directory) {
            Ok(()) => return std::path::absolute(directory).ok(),
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(_) => return None,
        }
    }
    None
}

fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer has the given length, and stays NUL-terminated.
    unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let length = buffer.iter().position(|byte| *byte == 0).unwrap_or(0);
    let name = String::from_utf8_lossy(&buffer[..length]);
    let name = name.split('.').next().unwrap_or_default().replace('/', "_");
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// A panic while the lock was held leaves these lists whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
