//! The one thread that orders records and writes them.

use crate::clocks::{self, LiveClock};
use crate::exchange::{Exchange, lock};
use crate::locations::{LocationKind, Locations};
use crate::message::{Call, Floor, KindAndName, Message, Queue};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;
use taskscope_reorder::{Detail, Limits, Output, QueueIndex, QueueOrder, Reorder, WithoutId};

/// Sleep of the collector when nothing arrives.
const PAUSE: Duration = Duration::from_millis(1);
/// Minimum interval between queries to drivers, and number of operations of a queue per query.
const POLL_EVERY_NS: u64 = 100_000;
const MAX_POLLED: usize = 64;

pub(crate) struct Collector {
    exchange: &'static Exchange,
    reorder: Reorder,
    devices: Vec<LiveClock>,
    /// By index in the ordering core.
    kinds: Vec<LocationKind>,
    /// By the hub's queue number: index in the ordering core.
    queues: Vec<QueueIndex>,
    /// By thread: its place for calls, and the start of its last call.
    calls: FxHashMap<u32, (QueueIndex, u64)>,
    /// By thread: its place for records of the host that come late.
    host_records: FxHashMap<u32, QueueIndex>,
    polled: u64,
    /// Operations that were announced and have not ended.
    open: u64,
    /// Messages about operations that will have no record. Records handed over before may still be in the
    /// rings of other threads, so these messages apply after the next pass over all rings.
    settled: Vec<Message>,
    /// Messages of the last pass that wait for the submissions announced before them.
    pending: Vec<Message>,
    locations: Locations,
}

impl Collector {
    pub fn new(exchange: &'static Exchange) -> Self {
        let limits = Limits { spill_directory: Some(exchange.directory().to_owned()), ..Limits::default() };
        Collector {
            exchange,
            reorder: Reorder::new(limits),
            devices: Vec::new(),
            kinds: Vec::new(),
            queues: Vec::new(),
            calls: FxHashMap::default(),
            host_records: FxHashMap::default(),
            polled: 0,
            open: 0,
            settled: Vec::new(),
            pending: Vec::new(),
            locations: Locations::new(exchange),
        }
    }

    pub fn run(mut self) {
        loop {
            let stopping = self.exchange.is_stopping();
            let taken = self.pass();
            if stopping && taken == 0 {
                break;
            }
            if taken == 0 {
                self.exchange.wake.sleep(PAUSE);
            }
        }
        let (locations, kinds, devices) = (&mut self.locations, &self.kinds, &mut self.devices);
        self.reorder.finish(&mut |output| write(locations, kinds, devices, output));
        self.locations.finish(&self.reorder, &self.kinds, &self.devices);
    }

    /// Takes the pending messages; returns their number.
    fn pass(&mut self) -> usize {
        // Operations that are not known after this pass start after this time.
        let before = clocks::now();
        self.learn();
        for device in &mut self.devices {
            device.sample(before);
        }
        let settled = std::mem::take(&mut self.settled);
        // A completion may be taken before an earlier announcement in the ring of another thread: what was put
        // before any message of the first round is in one of the two rounds.
        let (mut first, mut second) = (std::mem::take(&mut self.pending), Vec::new());
        self.exchange.rings.drain(|message| first.push(message));
        self.exchange.rings.drain(|message| second.push(message));
        let taken = first.len() + second.len() + settled.len();
        let is_early = |message: &Message| matches!(message, Message::Append(..) | Message::Anchor(..));
        first.extract_if(.., |message| is_early(message)).for_each(|message| self.take(message));
        second.extract_if(.., |message| is_early(message)).for_each(|message| self.take(message));
        first.into_iter().for_each(|message| self.take(message));
        self.pending = second;
        settled.into_iter().for_each(|message| self.settle(message));
        self.exchange.open.store(self.open, Relaxed);
        self.exchange.passes.fetch_add(1, Release);
        self.raise_floors(before);
        if before >= self.polled + POLL_EVERY_NS {
            self.polled = before;
            self.poll();
        }
        taken
    }

    fn raise_floors(&mut self, before: u64) {
        for index in 0..self.kinds.len() {
            let floor = match self.kinds[index] {
                LocationKind::Queue { device, floor: Floor::Now, .. } => {
                    self.devices[device as usize].earliest_ticks(before)
                }
                // A thread's calls come one after the other.
                LocationKind::Calls { tid } => self.calls.get(&tid).map_or(0, |(_, last)| last + 1),
                LocationKind::Queue { .. } | LocationKind::HostRecords => continue,
            };
            let (reorder, mut out) = self.parts();
            reorder.no_append_before(QueueIndex(index as u32), floor, &mut out);
        }
    }

    /// Queries drivers about the operations that hold others back: one that has not started now starts later,
    /// whenever it was submitted.
    fn poll(&mut self) {
        for index in 0..self.kinds.len() {
            let LocationKind::Queue { device, poll: Some(poll), .. } = self.kinds[index] else { continue };
            let queue = QueueIndex(index as u32);
            for _ in 0..MAX_POLLED {
                let Some(seq) = self.reorder.holding_back(queue) else { break };
                let asked = clocks::now();
                let number = self.queues.iter().position(|known| *known == queue).unwrap_or(0);
                if !(poll.not_started)(QueueIndex(number as u32), seq) {
                    break;
                }
                let time = self.devices[device as usize].earliest_ticks(asked);
                let (reorder, mut out) = self.parts();
                reorder.not_started_before(queue, seq, time, &mut out);
            }
            (poll.look)();
        }
    }

    /// The ordering core, and its output.
    fn parts(&mut self) -> (&mut Reorder, impl FnMut(Output)) {
        let (locations, kinds, devices) = (&mut self.locations, &self.kinds, &mut self.devices);
        (&mut self.reorder, move |output| write(locations, kinds, devices, output))
    }

    /// Devices and queues that were added since.
    fn learn(&mut self) {
        let exchange = self.exchange;
        let known = self.devices.len();
        self.devices
            .extend(lock(&exchange.devices).iter().skip(known).map(|device| LiveClock::new(device.clock)));
        let known = self.queues.len();
        let added: Vec<_> = lock(&exchange.queues).iter().skip(known).cloned().collect();
        for queue in added {
            let number = self.queues.len() as u32;
            let index = self.reorder.add_queue(queue.order);
            let Queue { device, floor, poll, .. } = queue;
            self.kinds.push(LocationKind::Queue { device, floor, poll });
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
            Message::Append(notice, _) => notice.queue,
            Message::Complete(completion, _) | Message::CompleteAgain(completion, _) => completion.queue,
            Message::Cancel(queue, _) => queue,
            Message::Lost(..) | Message::NoneBefore(..) => return self.settled.push(message),
            Message::Amend(queue, ..) | Message::Number(queue, ..) => queue,
            Message::Call(call) => return self.take_call(call),
            Message::HostRecord(call) => return self.take_host_record(call),
            Message::Anchor(device, ticks, before, after) => {
                self.learn();
                if let Some(device) = self.devices.get_mut(device as usize) {
                    device.anchor(ticks, before, after);
                }
                return;
            }
        };
        let Some(index) = self.index_of(queue) else { return };
        let LocationKind::Queue { device, .. } = self.kinds[index.0 as usize] else { return };
        let device = device as usize;
        match message {
            Message::Append(mut notice, beside) => {
                self.open += 1;
                notice.queue = index;
                notice.earliest_start = self.devices[device].earliest_ticks(notice.append);
                let (reorder, mut out) = self.parts();
                match beside {
                    Some(first) => reorder.append_concurrent(&notice, first, &mut out),
                    None => reorder.append(&notice, &mut out),
                }
            }
            Message::Complete(mut completion, observed)
            | Message::CompleteAgain(mut completion, observed) => {
                if matches!(message, Message::Complete(..)) {
                    self.open = self.open.saturating_sub(1);
                }
                completion.queue = index;
                let append = self.reorder.append_time(index, completion.seq);
                let clock = &mut self.devices[device];
                clock.unwrap(&mut completion, append, observed);
                if completion.start != 0 && completion.end >= completion.start {
                    clock.fit.not_after(completion.end, observed);
                }
                let (reorder, mut out) = self.parts();
                reorder.complete(&completion, &mut out);
            }
            Message::Amend(_, seq, KindAndName(what), bytes) => self.reorder.amend(index, seq, what, bytes),
            Message::Number(_, seq, name, value) => self.locations.number(index, seq, name, value),
            Message::Cancel(_, seq) => {
                self.open = self.open.saturating_sub(1);
                let (reorder, mut out) = self.parts();
                reorder.cancel(index, seq, &mut out);
            }
            _ => {}
        }
    }

    /// Settles operations that will have no record.
    fn settle(&mut self, message: Message) {
        let (Message::Lost(queue, _) | Message::NoneBefore(queue, _)) = message else { return };
        let Some(index) = self.index_of(queue) else { return };
        let (reorder, mut out) = self.parts();
        match message {
            Message::Lost(_, before) => reorder.declare_lost(index, before, &mut out),
            Message::NoneBefore(_, time) => reorder.no_append_before(index, time, &mut out),
            _ => {}
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
                self.kinds.push(LocationKind::Calls { tid: call.tid });
                self.calls.insert(call.tid, (location, call.start));
                self.locations.begin_calls(location, call.tid, "calls");
                location
            }
        };
        self.put_call(location, &call);
    }

    /// Takes overhead and calls that the vendor reports; later records may precede them.
    fn take_host_record(&mut self, call: Call) {
        let location = match self.host_records.get(&call.tid) {
            Some(location) => *location,
            None => {
                let location = self.reorder.add_queue(QueueOrder::OutOfOrder);
                self.kinds.push(LocationKind::HostRecords);
                self.host_records.insert(call.tid, location);
                self.locations.begin_calls(location, call.tid, "records");
                location
            }
        };
        self.put_call(location, &call);
    }

    fn put_call(&mut self, location: QueueIndex, call: &Call) {
        let Call { tid, start, end, what: KindAndName(what), operation } = *call;
        // The queue and sequence of the submitted operation travel as id and amount.
        let (id, amount) = operation.map_or((u64::MAX, 0), |(queue, seq)| (u64::from(queue.0), seq));
        let detail = Detail { id, amount, what };
        let record = WithoutId { location, thread: tid, start, end, detail };
        let (reorder, mut out) = self.parts();
        reorder.put_without_id(&record, &mut out);
    }
}

/// Writes an output; the submissions of released operations bound the clock from below.
fn write(locations: &mut Locations, kinds: &[LocationKind], devices: &mut [LiveClock], output: Output) {
    if let Output::Released(record) = &output
        && let LocationKind::Queue { device, .. } = kinds[record.queue.0 as usize]
        && record.lane.is_some()
        && record.append != 0
    {
        devices[device as usize].fit.not_before(record.start, record.append);
    }
    locations.write(kinds, devices, &output);
}
