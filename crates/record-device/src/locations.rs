//! Output of the collector: a location for each queue, and one for each thread's calls.

use crate::clocks::LiveClock;
use crate::exchange::{Exchange, lock};
use crate::message::{Floor, KindAndName, Poll, Queue};
use std::sync::atomic::Ordering::Relaxed;
use taskscope_event::models::device;
use taskscope_record::{Json, LocationStream};
use taskscope_reorder::clock::ClockMap;
use taskscope_reorder::{Account, Output, QueueIndex, QueueOrder, Released, Reorder};

/// Content of a location.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LocationKind {
    /// A queue of the device of this number.
    Queue { device: u32, floor: Floor, poll: Option<Poll> },
    /// Calls of a thread, as they end.
    Calls { tid: u32 },
    /// Calls and overhead of a thread that a vendor's interface reports late.
    HostRecords,
}

/// A location while it is written.
struct OpenLocation {
    stream: LocationStream,
    clock: u64,
    /// Names already written in it.
    named: Vec<bool>,
    /// Members of `taskscope.json` that do not change.
    about: Vec<(&'static str, Json)>,
}

/// All locations, by index of the ordering core; `None` if the files could not be created.
pub(crate) struct Locations {
    exchange: &'static Exchange,
    open: Vec<Option<OpenLocation>>,
}

impl Locations {
    pub fn new(exchange: &'static Exchange) -> Self {
        Locations { exchange, open: Vec::new() }
    }

    pub fn begin_queue(&mut self, index: QueueIndex, number: u32, queue: &Queue, clock: &LiveClock) {
        let device = lock(&self.exchange.devices)[queue.device as usize].name.clone();
        let order = if queue.order == QueueOrder::InOrder { "in-order" } else { "out-of-order" };
        let about = vec![
            ("kind", Json::string("device-queue")),
            ("number", Json::integer(number)),
            ("name", Json::string(&queue.name)),
            ("device", Json::string(&device)),
            ("interface", Json::string(queue.interface)),
            ("order", Json::string(order)),
            ("order_from", Json::string("told")),
        ];
        self.begin(index, &format!("queue.{number}"), about);
        // A reader of an unfinished stream needs a map too.
        if let Some(open) = self.get(index) {
            let mut members = open.about.clone();
            members.push(("clock", clock_json(clock)));
            let _ = open.stream.write_metadata(&Json::object(members));
        }
    }

    /// Begins a location of `calls`, written as they end, or of a vendor's `records` of the host.
    pub fn begin_calls(&mut self, index: QueueIndex, tid: u32, what: &str) {
        let about = vec![("kind", Json::string("device-calls")), ("tid", Json::integer(tid))];
        self.begin(index, &format!("{what}.{tid}"), about);
        if let Some(open) = self.get(index) {
            let _ = open.stream.write_metadata(&Json::object(open.about.clone()));
        }
    }

    fn begin(&mut self, index: QueueIndex, name: &str, about: Vec<(&'static str, Json)>) {
        let mut members = vec![
            ("version", Json::integer(1)),
            ("require", Json::object([("taskscope-device", Json::string(device::VERSION))])),
            ("pid", Json::integer(self.exchange.pid)),
        ];
        members.extend(about);
        let stream = LocationStream::create(&self.exchange.directory().join(name)).ok();
        self.open.resize_with(index.0 as usize, || None);
        self.open.push(stream.map(|stream| OpenLocation {
            stream,
            clock: 0,
            named: Vec::new(),
            about: members,
        }));
    }

    fn get(&mut self, index: QueueIndex) -> Option<&mut OpenLocation> {
        self.open.get_mut(index.0 as usize)?.as_mut()
    }

    pub fn write(&mut self, kinds: &[LocationKind], devices: &[LiveClock], output: &Output) {
        let exchange = self.exchange;
        match output {
            Output::Released(record) => match kinds[record.queue.0 as usize] {
                LocationKind::Queue { device, .. } => {
                    self.operation(record, &devices[device as usize], device::OPERATION)
                }
                LocationKind::Calls { .. } | LocationKind::HostRecords => {
                    if let Some(open) = self.get(record.queue) {
                        open.call(exchange, record);
                    }
                }
            },
            Output::Late(record) => {
                if let LocationKind::Queue { device, .. } = kinds[record.queue.0 as usize] {
                    self.operation(record, &devices[device as usize], device::LATE);
                }
            }
            Output::Duplicate(again) => {
                if let Some(open) = self.get(again.queue) {
                    let data = words(&[again.seq, again.start, again.end, again.submit]);
                    open.stream.jumbo(open.clock, device::DUPLICATE, &[&data]);
                }
            }
            Output::Lost { queue, seq, thread, append, detail } => {
                let what = KindAndName(detail.what);
                if let Some(open) = self.get(*queue) {
                    let name = open.name(exchange, what.name());
                    let mut data = words(&[*seq, *append, detail.id, u64::from(*thread)]);
                    data.extend(what.kind().to_le_bytes());
                    data.extend(name.to_le_bytes());
                    open.stream.jumbo(open.clock, device::LOST, &[&data]);
                }
            }
        }
    }

    fn operation(&mut self, record: &Released, clock: &LiveClock, code: taskscope_event::Code) {
        let exchange = self.exchange;
        let Some(open) = self.get(record.queue) else { return };
        let what = KindAndName(record.detail.what);
        let name = open.name(exchange, what.name());
        if record.lane.is_some() {
            open.clock = open.clock.max(clock.host(record.start));
        }
        let mut data = words(&[
            record.seq,
            record.start,
            record.end,
            record.append,
            record.submit,
            record.detail.id,
            u64::from(record.thread),
            record.detail.amount,
            record.late_by,
        ]);
        for word in [record.lane.unwrap_or(device::NO_LANE), what.kind(), name, record.anomalies.0] {
            data.extend(word.to_le_bytes());
        }
        open.stream.jumbo(open.clock, code, &[&data]);
    }

    /// A number that the vendor's record has for an operation.
    pub fn number(&mut self, index: QueueIndex, seq: u64, name: u32, value: u64) {
        let exchange = self.exchange;
        let Some(open) = self.get(index) else { return };
        let name = open.name(exchange, name);
        let [seq, value] = [seq, value].map(u64::to_le_bytes);
        open.stream.jumbo(open.clock, device::NUMBER, &[&seq, &name.to_le_bytes(), &value]);
    }

    /// Completes the metadata of all locations and ends their streams.
    pub fn finish(&mut self, reorder: &Reorder, kinds: &[LocationKind], devices: &[LiveClock]) {
        let mut dropped = Some(self.exchange.dropped.load(Relaxed));
        for (index, open) in self.open.iter_mut().enumerate() {
            let Some(open) = open.take() else { continue };
            let mut members = open.about;
            if let LocationKind::Queue { device, .. } = kinds[index] {
                // Some vendors name their devices later than their queues.
                let name = lock(&self.exchange.devices)[device as usize].name.clone();
                if let Some((_, known)) = members.iter_mut().find(|(member, _)| *member == "device") {
                    *known = Json::string(&name);
                }
                members.push(("clock", clock_json(&devices[device as usize])));
                let account = reorder.account(QueueIndex(index as u32));
                members.push(("account", account_json(account)));
                // The vendor counts it per process: the first queue has it.
                if let Some(records) = dropped.take() {
                    members.push(("vendor_dropped", Json::integer(records)));
                }
            }
            members.push(("lost_events", Json::integer(open.stream.lost_events())));
            members.push(("finished", Json::integer(1)));
            let _ = open.stream.finish(&Json::object(members));
        }
    }
}

impl OpenLocation {
    fn call(&mut self, exchange: &Exchange, record: &Released) {
        let what = KindAndName(record.detail.what);
        let name = self.name(exchange, what.name());
        self.clock = self.clock.max(record.start);
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&record.end.to_le_bytes());
        payload[8..12].copy_from_slice(&name.to_le_bytes());
        payload[12..].copy_from_slice(&what.kind().to_le_bytes());
        self.stream.point(self.clock, device::CALL, payload);
        if record.detail.id != u64::MAX {
            payload[..8].copy_from_slice(&record.detail.id.to_le_bytes());
            payload[8..].copy_from_slice(&record.detail.amount.to_le_bytes());
            self.stream.point(self.clock, device::CALL_OPERATION, payload);
        }
    }

    /// A name's number, written before its first use in this location.
    fn name(&mut self, exchange: &Exchange, name: u32) -> u32 {
        let place = name as usize;
        if self.named.len() <= place {
            self.named.resize(place + 1, false);
        }
        if name != 0 && !std::mem::replace(&mut self.named[place], true) {
            let text = lock(&exchange.names).get(place).cloned().unwrap_or_default().replace('\0', " ");
            self.stream.jumbo(self.clock, device::NAME, &[&name.to_le_bytes(), text.as_bytes(), &[0]]);
        }
        name
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn clock_json(clock: &LiveClock) -> Json {
    let map = clock.fit.fit().unwrap_or_else(|| ClockMap::with_host_offset(0));
    let pair = |ticks: u64, nanos: i64| Json::array([Json::integer(ticks), Json::integer(nanos)]);
    let slack = |slack: Option<u64>| slack.map_or(Json::integer(-1), Json::integer);
    Json::object([
        ("source", Json::string(&clock.clock.describe())),
        ("nanos_per_tick", float(map.nanos_per_tick)),
        ("knots", Json::array(map.knots.iter().map(|knot| pair(knot.ticks, knot.nanos)))),
        ("bounds", Json::integer(map.bounds)),
        ("violated", Json::integer(map.violated)),
        ("worst_violation_ns", Json::integer(map.worst_violation)),
        ("lower_slack_ns", slack(map.slack.0)),
        ("upper_slack_ns", slack(map.slack.1)),
        ("steps", Json::array(map.steps.iter().map(|(ticks, nanos)| pair(*ticks, *nanos)))),
        ("drift_ppm", float(map.drift_ppm)),
    ])
}

fn float(value: f64) -> Json {
    Json::float(if value.is_finite() { value } else { 0.0 })
}

fn account_json(account: &Account) -> Json {
    let members = [
        ("appended", account.appended),
        ("delivered", account.delivered),
        ("cancelled", account.cancelled),
        ("lost", account.lost),
        ("untimed", account.untimed),
        ("duplicates", account.duplicates),
        ("late_after_lost", account.late),
        ("unannounced", account.unannounced),
        ("refused", account.refused),
        ("out_of_place", account.out_of_place),
        ("worst_late_ns", account.worst_late),
        ("inversions", account.inversions),
        ("overlaps", account.overlaps),
        ("worst_overlap_ns", account.worst_overlap),
        ("anomalous", account.anomalous),
        ("held_peak", account.held_peak),
        ("spilled", account.spilled),
        ("lanes", u64::from(account.lanes)),
    ];
    Json::object(members.map(|(name, count)| (name, Json::integer(count))))
}
