//! The one thread that puts records in order and writes them.

use crate::clocks::{self, LiveClock};
use crate::hub::{Call, Hub, Message, What, lock};
use crate::locations::Locations;
use rustc_hash::FxHashMap;
use std::time::Duration;
use taskscope_reorder::{Detail, Limits, Output, QueueIndex, QueueOrder, Reorder, WithoutId};

/// How long to sleep when nothing comes.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Collector {
    hub: &'static Hub,
    reorder: Reorder,
    devices: Vec<LiveClock>,
    /// By index in the ordering core.
    places: Vec<Place>,
    /// By the hub's queue number: index in the ordering core.
    queues: Vec<QueueIndex>,
    /// By thread: its place for calls, and the start of its last call.
    calls: FxHashMap<u32, (QueueIndex, u64)>,
    locations: Locations,
}

/// What an index of the ordering core stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A queue of the device of this number.
    Queue { device: u32 },
    /// Calls of a thread.
    Calls { tid: u32 },
}

impl Collector {
    pub fn new(hub: &'static Hub) -> Self {
        let limits = Limits { spill_directory: Some(hub.directory().to_owned()), ..Limits::default() };
        Collector {
            hub,
            reorder: Reorder::new(limits),
            devices: Vec::new(),
            places: Vec::new(),
            queues: Vec::new(),
            calls: FxHashMap::default(),
            locations: Locations::new(hub),
        }
    }

    pub fn run(mut self) {
        loop {
            let stopping = self.hub.is_stopping();
            let taken = self.pass();
            if stopping && taken == 0 {
                break;
            }
            if taken == 0 {
                std::thread::park_timeout(PAUSE);
            }
        }
        let (locations, places, devices) = (&mut self.locations, &self.places, &self.devices);
        self.reorder.finish(&mut |output| write(locations, places, devices, output));
        self.locations.finish(&self.reorder, &self.places, &self.devices);
    }

    /// Takes what is there; returns how much.
    fn pass(&mut self) -> usize {
        // Operations that are not known after this pass start after this time.
        let before = clocks::now();
        self.learn();
        for device in &mut self.devices {
            device.sample(before);
        }
        let mut messages = Vec::new();
        let taken = self.hub.rings().drain(|message| messages.push(message));
        for message in messages {
            self.take(message);
        }
        let (locations, places, devices) = (&mut self.locations, &self.places, &self.devices);
        let mut out = |output: Output| write(locations, places, devices, output);
        for (index, place) in self.places.iter().enumerate() {
            let floor = match *place {
                Place::Queue { device } => devices[device as usize].earliest_ticks(before),
                // A thread's calls come one after the other.
                Place::Calls { tid } => self.calls.get(&tid).map_or(0, |(_, last)| last + 1),
            };
            self.reorder.no_append_before(QueueIndex(index as u32), floor, &mut out);
        }
        taken
    }

    /// Devices and queues that were added since.
    fn learn(&mut self) {
        let hub = self.hub;
        let known = self.devices.len();
        self.devices.extend(lock(&hub.devices).iter().skip(known).map(|device| LiveClock::new(device.clock)));
        let known = self.queues.len();
        let added: Vec<_> = lock(&hub.queues).iter().skip(known).cloned().collect();
        for queue in added {
            let number = self.queues.len() as u32;
            let index = self.reorder.add_queue(queue.order);
            self.places.push(Place::Queue { device: queue.device });
            self.queues.push(index);
            let clock = &mut self.devices[queue.device as usize];
            clock.sample(0);
            self.locations.begin_queue(index, number, &queue, clock);
        }
    }

    fn index_of(&mut self, queue: QueueIndex) -> Option<QueueIndex> {
        if queue.0 as usize >= self.queues.len() {
            self.learn();
        }
        self.queues.get(queue.0 as usize).copied()
    }

    fn take(&mut self, message: Message) {
        let queue = match message {
            Message::Append(notice) => notice.queue,
            Message::Complete(completion, _) => completion.queue,
            Message::Cancel(queue, _) | Message::Lost(queue, _) => queue,
            Message::Call(call) => return self.take_call(call),
            Message::Anchor(device, ticks, before, after) => {
                self.learn();
                if let Some(device) = self.devices.get_mut(device as usize) {
                    device.anchor(ticks, before, after);
                }
                return;
            }
        };
        let Some(index) = self.index_of(queue) else { return };
        let Place::Queue { device } = self.places[index.0 as usize] else { return };
        if let Message::Complete(completion, observed) = message
            && completion.start != 0
            && completion.end >= completion.start
        {
            let clock = &mut self.devices[device as usize];
            clock.fit.not_after(completion.end, observed);
        }
        let (locations, places, devices) = (&mut self.locations, &self.places, &self.devices);
        let mut out = |output: Output| write(locations, places, devices, output);
        match message {
            Message::Append(mut notice) => {
                notice.queue = index;
                notice.earliest_start = devices[device as usize].earliest_ticks(notice.append);
                self.reorder.append(&notice, &mut out);
            }
            Message::Complete(mut completion, _) => {
                completion.queue = index;
                self.reorder.complete(&completion, &mut out);
            }
            Message::Cancel(_, seq) => self.reorder.cancel(index, seq, &mut out),
            Message::Lost(_, before) => self.reorder.declare_lost(index, before, &mut out),
            Message::Call(_) | Message::Anchor(..) => {}
        }
    }

    fn take_call(&mut self, call: Call) {
        let location = match self.calls.get_mut(&call.tid) {
            Some((location, last)) => {
                *last = (*last).max(call.start);
                *location
            }
            None => {
                let location = self.reorder.add_queue(QueueOrder::OutOfOrder);
                self.places.push(Place::Calls { tid: call.tid });
                self.calls.insert(call.tid, (location, call.start));
                self.locations.begin_calls(location, call.tid);
                location
            }
        };
        let Call { tid, start, end, what: What(what), operation } = call;
        // The queue and sequence of the submitted operation travel as id and amount.
        let (id, amount) = operation.map_or((u64::MAX, 0), |(queue, seq)| (u64::from(queue.0), seq));
        let detail = Detail { id, amount, what };
        let record = WithoutId { location, thread: tid, start, end, detail };
        let (locations, places, devices) = (&mut self.locations, &self.places, &self.devices);
        self.reorder.put_without_id(&record, &mut |output| write(locations, places, devices, output));
    }
}

fn write(locations: &mut Locations, places: &[Place], devices: &[LiveClock], output: Output) {
    locations.write(places, devices, &output);
}

/// Calls `work` with all signals blocked, so that a thread that it starts never takes the program's.
pub(crate) fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid for writing; the mask is put back as it was.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}
