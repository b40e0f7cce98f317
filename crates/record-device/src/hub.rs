//! The hub, which all sources pass their data to: one per process, created on first use.

use crate::clocks;
use crate::collector::Collector;
use crate::exchange::Exchange;
pub(crate) use crate::exchange::lock;
use crate::message::Message;
pub use crate::message::{Call, Device, Floor, KindAndName, Poll, Queue, Source};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::atomic::Ordering::*;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use taskscope_record::own_threads::{self, Started};
use taskscope_reorder::{Completion, Detail, Notice, Producer, QueueIndex};

/// Connects the sources with the collector.
pub struct Hub {
    exchange: Exchange,
    name_numbers: RwLock<FxHashMap<String, u32>>,
    sources: Mutex<Vec<Source>>,
    collector: Mutex<Option<Started>>,
}

static HUB: OnceLock<Option<Hub>> = OnceLock::new();

thread_local! {
    static PRODUCER: RefCell<Option<Producer<Message>>> = const { RefCell::new(None) };
}

/// The hub of this process; `None` if recording is off, in a forked child, and after the end.
pub fn hub() -> Option<&'static Hub> {
    let hub = HUB.get_or_init(Hub::start).as_ref()?;
    // SAFETY: no preconditions.
    let same_process = hub.exchange.pid == unsafe { libc::getpid() };
    (same_process && !hub.exchange.is_stopping()).then_some(hub)
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
            exchange: Exchange::new(trace.into(), pid),
            name_numbers: RwLock::default(),
            sources: Mutex::default(),
            collector: Mutex::default(),
        };
        // SAFETY: the function lives as long as the library, which is linked to stay loaded.
        unsafe { libc::atexit(at_exit) };
        Some(hub)
    }

    /// Starts the collector, which needs the hub to be in its place.
    fn collect(&'static self) {
        let mut collector = lock(&self.collector);
        if collector.is_some() || self.exchange.is_stopping() {
            return;
        }
        if !self.exchange.make_directory() {
            // The directory cannot be created: further records are not taken.
            self.exchange.stop();
            return;
        }
        // Without it, records are written when the process ends, as far as they find room.
        if !own_threads::may_start() {
            return;
        }
        // The program's signals are not for this thread.
        let run = || Collector::new(&self.exchange).run();
        *collector = own_threads::start(c"taskscope-dev", own_threads::LARGE_STACK, run);
    }

    /// Id of the process, which is that of its first thread.
    pub(crate) fn process(&self) -> u32 {
        self.exchange.pid as u32
    }

    /// Adds a device; its number.
    pub fn add_device(&self, device: Device) -> u32 {
        let mut devices = lock(&self.exchange.devices);
        devices.push(device);
        devices.len() as u32 - 1
    }

    /// Adds a queue.
    pub fn add_queue(&'static self, queue: Queue) -> QueueIndex {
        let mut queues = lock(&self.exchange.queues);
        queues.push(queue);
        let index = QueueIndex(queues.len() as u32 - 1);
        drop(queues);
        self.collect();
        index
    }

    /// Number of queues added so far.
    pub(crate) fn queue_count(&self) -> usize {
        lock(&self.exchange.queues).len()
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
        let mut names = lock(&self.exchange.names);
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
        what: KindAndName,
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
        what: KindAndName,
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
    pub fn amend(&self, queue: QueueIndex, seq: u64, what: KindAndName, bytes: u64) {
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
        self.exchange.dropped.fetch_add(records, Relaxed);
    }

    /// Adds an interface that holds records back.
    pub fn add_source(&self, source: Source) {
        lock(&self.sources).push(source);
    }

    /// The name of a device became known.
    pub fn name_device(&self, device: u32, name: &str) {
        if let Some(device) = lock(&self.exchange.devices).get_mut(device as usize) {
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
                producer.get_or_insert_with(|| self.exchange.rings.producer()).put(message);
            }
        });
        if put.is_err() {
            // The thread is ending: its own ring is gone.
            self.exchange.rings.producer().put(message);
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
        self.exchange.stop();
        let collector = lock(&self.collector).take();
        match collector {
            Some(collector) => {
                self.exchange.wake.wake();
                collector.join();
            }
            // No thread could be created.
            None if self.exchange.has_directory() => Collector::new(&self.exchange).run(),
            None => {}
        }
    }

    /// Waits until no operation is in flight, at most this long, and this long after the last record.
    pub(crate) fn wait_for_records(&self, max_ms: u32, max_quiet_ms: u32) {
        // On a thread of the program's, whose sleep this is not.
        let pause = taskscope_record::nap::nap;
        // After two more passes the collector has all earlier messages.
        let known_by = self.exchange.passes.load(Acquire) + 2;
        for _ in 0..max_ms {
            if self.exchange.passes.load(Acquire) >= known_by || lock(&self.collector).is_none() {
                break;
            }
            pause();
        }
        let (mut open, mut quiet_ms) = (self.exchange.open.load(Relaxed), 0);
        for _ in 0..max_ms {
            if open == 0 || quiet_ms > max_quiet_ms {
                break;
            }
            pause();
            let now = self.exchange.open.load(Relaxed);
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
