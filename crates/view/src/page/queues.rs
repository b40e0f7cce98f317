//! Device queues as rows of the timeline: one for each lane of a queue, in which nothing overlaps.

use super::matches::Matches;
use super::packing::packed_values;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use taskscope_execution::devices::{Class, DeviceOperation, Devices};
use taskscope_execution::lod::{Flags, Marks, Values, Window};
use taskscope_session::model_views::ValueRow;

/// The value of unnamed operations; 0 means idle.
const UNNAMED: i64 = 1;

/// An operation on the timeline. Times are nanoseconds of the trace's clock, 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOperation {
    /// Its number in the queue.
    pub seq: u64,
    /// Begin on the device.
    pub start: u64,
    /// End on the device.
    pub end: u64,
    /// Begin of its submission.
    pub append: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// The thread that submitted it.
    pub thread: i64,
    /// Delay of its record.
    pub late_by: u64,
    /// A number of `taskscope_event::models::device::kind`.
    pub kind: u32,
    /// Index into [`Queue::names`].
    pub name: u32,
    /// The lane, in which it overlaps no other operation.
    pub lane: u32,
    /// Bits of `taskscope_event::models::device::anomaly`.
    pub anomalies: u32,
}

/// A queue with its operations that have times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its device.
    pub device: String,
    /// Process of the program, if known.
    pub pid: Option<i64>,
    /// Names of operations.
    pub names: Vec<String>,
    /// Operations by start.
    pub operations: Vec<QueueOperation>,
    /// Submission times of operations without a record.
    pub lost: Vec<u64>,
}

/// A lane of a queue.
#[derive(Debug)]
struct Lane {
    queue: usize,
    lane: u32,
    row: ValueRow,
    /// The operation of each row of its values; `u32::MAX` between operations.
    operations: Vec<u32>,
    lost: Marks,
}

/// The rows of device queues as a page lists them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LaneList {
    /// A row for each lane.
    pub rows: Vec<LaneRow>,
    /// Names of operations by value.
    pub values: Vec<(usize, String)>,
}

/// A lane of a device queue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LaneRow {
    /// Number of the row.
    pub track: usize,
    /// The queue in words, with the lane if there are several.
    pub label: String,
    /// The device.
    pub group: String,
    /// Process id; null if unknown.
    pub pid: Option<i64>,
    /// The track of the thread that submitted most of its operations; null if none of them is in the trace.
    pub thread: Option<usize>,
    /// Threads that submitted its operations.
    pub submitters: usize,
}

/// The operations of a device queue in a range.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueTimes {
    /// The queue.
    pub name: String,
    /// Operations that began in the range.
    pub operations_begun: u64,
    /// Nanoseconds of kernels.
    pub kernels_ns: u64,
    /// Nanoseconds of copies and fills.
    pub transfers_ns: u64,
    /// Nanoseconds of other operations.
    pub other_ns: u64,
}

/// All queues and their lanes.
#[derive(Debug, Default)]
pub struct Queues {
    queues: Vec<Queue>,
    lanes: Vec<Lane>,
    /// Names of operations, by value from 1 on.
    names: Vec<String>,
}

impl Queues {
    /// The queues of a session, with what waits or runs in a part of the time.
    pub fn of(devices: &Devices, part: (u64, u64)) -> Queues {
        let is_there = |time| taskscope_analysis::devices::reaches_into(time, part);
        let is_in = |o: &&DeviceOperation| {
            let from = if o.append > 0 { o.append.min(o.start) } else { o.start };
            o.start > 0 && o.end >= o.start && is_there((from, o.end))
        };
        let queues = devices.queues.iter().map(|queue| {
            let timed = queue.operations.iter().filter(is_in);
            Queue {
                name: queue.name.clone(),
                device: queue.device.clone(),
                pid: queue.pid,
                names: queue.names.clone(),
                operations: timed.filter_map(shown).collect(),
                lost: (queue.lost.iter().map(|lost| lost.append))
                    .filter(|at| *at > 0 && is_there((*at, *at)))
                    .collect(),
            }
        });
        Queues::new(queues.collect())
    }

    /// Puts the operations of queues into lanes.
    pub fn new(mut queues: Vec<Queue>) -> Queues {
        let mut lanes = Vec::new();
        // Operations with the same name have one value, and so one colour, on all queues.
        let mut names = vec![String::new()];
        let mut number_of = HashMap::from([(String::new(), UNNAMED)]);
        for (number, queue) in queues.iter_mut().enumerate() {
            queue.operations.sort_by_key(|o| (o.start, Reverse(o.end), o.seq));
            // Once over all operations: a trace may name a lane of its own for each.
            let mut rows_by_lane: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (index, operation) in queue.operations.iter().enumerate() {
                rows_by_lane.entry(operation.lane).or_default().push(index as u32);
            }
            if rows_by_lane.is_empty() && !queue.lost.is_empty() {
                rows_by_lane.insert(0, Vec::new());
            }
            let first = rows_by_lane.keys().next().copied();
            let value_of = queue.names.iter().map(|name| {
                *number_of.entry(name.clone()).or_insert_with(|| {
                    names.push(name.clone());
                    names.len() as i64
                })
            });
            let value_of: Vec<i64> = value_of.collect();
            let lane_of = |(lane, rows): (u32, Vec<u32>)| Lane {
                queue: number,
                ..Lane::of(queue, (lane, &rows), &value_of, Some(lane) == first)
            };
            lanes.extend(rows_by_lane.into_iter().map(lane_of));
        }
        Queues { queues, lanes, names }
    }

    /// All queues.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// First begin or submission, and last end; `None` without operations.
    pub fn range(&self) -> Option<(u64, u64)> {
        let operations = || self.queues.iter().flat_map(|queue| &queue.operations);
        let starts = operations().map(|o| if o.append > 0 { o.append.min(o.start) } else { o.start });
        Some((starts.min()?, operations().map(|o| o.end).max()?))
    }

    /// The rows as a page lists them, with the track of a thread by process and thread id.
    pub fn list(&self, track_of: impl Fn(Option<i64>, i64) -> Option<usize>) -> LaneList {
        let mut counts = vec![0_usize; self.queues.len()];
        self.lanes.iter().for_each(|lane| counts[lane.queue] += 1);
        let rows = self.lanes.iter().enumerate().map(|(row, lane)| {
            let queue = &self.queues[lane.queue];
            let several = counts[lane.queue] > 1;
            let label =
                if several { format!("{} lane {}", queue.name, lane.lane) } else { queue.name.clone() };
            let mut by_thread: HashMap<i64, usize> = HashMap::new();
            for operation in lane.operations.iter().filter_map(|at| queue.operations.get(*at as usize)) {
                *by_thread.entry(operation.thread).or_default() += 1;
            }
            let submitters = by_thread.len();
            let mut by_thread: Vec<(i64, usize)> = by_thread.into_iter().collect();
            by_thread.sort_unstable_by_key(|(thread, count)| (Reverse(*count), *thread));
            let thread = by_thread.iter().find_map(|(thread, _)| track_of(queue.pid, *thread));
            let (group, pid) = (queue.device.clone(), queue.pid);
            LaneRow { track: row, label, group, pid, thread, submitters }
        });
        let named = (1..).zip(&self.names).filter(|(_, name)| !name.is_empty());
        LaneList { rows: rows.collect(), values: named.map(|(value, name)| (value, name.clone())).collect() }
    }

    /// Activity of each queue in `[low, high)` of the trace's clock: operations begun, and operation time by
    /// class. Overlapping operations count each.
    pub(super) fn in_range(&self, low: u64, high: u64) -> Vec<QueueTimes> {
        let rows = self.queues.iter().map(|queue| {
            let [mut kernels, mut transfers, mut other, mut begun] = [0_u64; 4];
            // Sorted by start: later ones are outside.
            for operation in queue.operations.iter().take_while(|operation| operation.start < high) {
                let ns = operation.end.min(high).saturating_sub(operation.start.max(low));
                begun += u64::from(operation.start >= low);
                let as_device = DeviceOperation { kind: operation.kind, ..DeviceOperation::default() };
                *match as_device.class() {
                    Class::Kernel => &mut kernels,
                    Class::Transfer => &mut transfers,
                    Class::Other => &mut other,
                } += ns;
            }
            QueueTimes {
                name: queue.name.clone(),
                operations_begun: begun,
                kernels_ns: kernels,
                transfers_ns: transfers,
                other_ns: other,
            }
        });
        rows.collect()
    }

    /// Buckets of some rows, packed as those of threads, with flags on the buckets that contain matches.
    pub fn packed(&self, rows: &[u32], window: Window, matches: Option<&Matches>) -> Vec<u8> {
        let known = rows.iter().filter_map(|row| Some((*row, self.lanes.get(*row as usize)?)));
        let (rows, lanes): (Vec<u32>, Vec<&Lane>) = known.unzip();
        let values: Vec<&ValueRow> = lanes.iter().map(|lane| &lane.row).collect();
        packed_values(&values, window, |row, buckets| {
            if !lanes[row].lost.is_empty() {
                lanes[row].lost.flag(window, buckets);
            }
            if let Some(marks) = matches.and_then(|matches| matches.lane_marks(self, rows[row])) {
                marks.flag(window, buckets);
            }
        })
    }

    /// Whether an operation has a wanted name.
    pub(super) fn has_name(&self, wanted: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| wanted(name))
    }

    /// Number of operations with a wanted name.
    pub(super) fn count_named(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let count_in_queue = |queue: &Queue| {
            let names: Vec<bool> = queue.names.iter().map(|name| wanted(name)).collect();
            let named =
                queue.operations.iter().filter(|o| names.get(o.name as usize).copied().unwrap_or(false));
            named.count() as u64
        };
        self.queues.iter().map(count_in_queue).sum()
    }

    /// Marks of a row's operations with a wanted name.
    pub(super) fn named_marks(&self, row: u32, wanted: impl Fn(&str) -> bool) -> Marks {
        let Some(lane) = self.lanes.get(row as usize) else { return Marks::default() };
        let queue = &self.queues[lane.queue];
        let names: Vec<bool> = queue.names.iter().map(|name| wanted(name)).collect();
        let is_wanted = |o: &&QueueOperation| names.get(o.name as usize).copied().unwrap_or(false);
        let shown = lane.operations.iter().filter_map(|index| queue.operations.get(*index as usize));
        Marks::new(Flags::MATCH, shown.filter(is_wanted).map(|o| (o.start, o.end)).collect())
    }

    /// The begin of the next (or previous) operation with a wanted name on a row; one that begins at `at`
    /// counts if `same`.
    pub(super) fn named_start(
        &self,
        row: u32,
        at: u64,
        later: bool,
        same: bool,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<u64> {
        let lane = self.lanes.get(row as usize)?;
        let queue = &self.queues[lane.queue];
        let names: Vec<bool> = queue.names.iter().map(|name| wanted(name)).collect();
        let starts = &lane.row.values.start;
        let matches = |row: &usize| {
            let operation = queue.operations.get(lane.operations[*row] as usize);
            operation.is_some_and(|o| names.get(o.name as usize).copied().unwrap_or(false))
        };
        let found = if later {
            (starts.partition_point(|s| *s < at || (*s == at && !same))..starts.len()).find(matches)
        } else {
            (0..starts.partition_point(|s| *s < at || (*s == at && same))).rev().find(matches)
        };
        found.map(|row| starts[row])
    }

    /// The operations that begin in `[low, high)` of the trace's clock, with their rows.
    pub(super) fn begun(&self, low: u64, high: u64) -> impl Iterator<Item = (u32, &Queue, QueueOperation)> {
        (0..).zip(&self.lanes).flat_map(move |(row, lane)| {
            let queue = &self.queues[lane.queue];
            let starts = &lane.row.values.start;
            let (first, end) =
                (starts.partition_point(|at| *at < low), starts.partition_point(|at| *at < high));
            let operations = lane.operations[first..end].iter();
            operations.filter_map(move |index| Some((row, queue, *queue.operations.get(*index as usize)?)))
        })
    }

    /// The operations that a thread submitted in `[low, high)` of the trace's clock, with their rows, by begin.
    pub(super) fn submitted(
        &self,
        pid: Option<i64>,
        tid: i64,
        (low, high): (u64, u64),
    ) -> Vec<(u32, QueueOperation, &str)> {
        let lane_operations = |(row, lane): (u32, &Lane)| {
            let queue = &self.queues[lane.queue];
            let is_of_process = queue.pid.is_none() || queue.pid == pid;
            let operations = lane.operations.iter().filter_map(|at| queue.operations.get(*at as usize));
            let own = operations.filter(move |o| {
                is_of_process && o.thread == tid && o.append > 0 && o.append >= low && o.append < high
            });
            let name = |o: &QueueOperation| queue.names.get(o.name as usize).map_or("", String::as_str);
            own.map(move |o| (row, *o, name(o))).collect::<Vec<_>>()
        };
        let mut found: Vec<_> = (0..).zip(&self.lanes).flat_map(lane_operations).collect();
        found.sort_by_key(|(row, operation, _)| (operation.start, *row));
        found
    }

    /// The operation of a row at a time of the trace's clock, or the one after or before it.
    pub(super) fn find(&self, row: u32, at: u64, step: Option<bool>) -> Option<(&Queue, QueueOperation)> {
        let lane = self.lanes.get(row as usize)?;
        let starts = &lane.row.values.start;
        let first = starts.partition_point(|start| *start <= at);
        let is_operation = |row: &usize| lane.operations[*row] != u32::MAX;
        let found = match step {
            None if at >= lane.row.values.end => None,
            None => first.checked_sub(1).filter(is_operation),
            Some(true) => (first..starts.len()).find(is_operation),
            Some(false) => (0..first.saturating_sub(1)).rev().find(is_operation),
        }?;
        let queue = &self.queues[lane.queue];
        Some((queue, *queue.operations.get(lane.operations[found] as usize)?))
    }
}

/// The stored form of an operation; `None` without a lane.
fn shown(operation: &DeviceOperation) -> Option<QueueOperation> {
    Some(QueueOperation {
        seq: operation.seq,
        start: operation.start,
        end: operation.end,
        append: operation.append,
        bytes: operation.bytes,
        thread: operation.thread,
        late_by: operation.late_by,
        kind: operation.kind,
        name: operation.name,
        lane: operation.lane?,
        anomalies: operation.anomalies,
    })
}

impl Lane {
    fn of(queue: &Queue, (lane, rows): (u32, &[u32]), value_of: &[i64], takes_losses: bool) -> Lane {
        let mut values = Values::default();
        let mut operations = Vec::new();
        let mut cursor = None;
        for (index, operation) in rows.iter().map(|index| (*index, &queue.operations[*index as usize])) {
            // Lanes of damaged traces may overlap; shorter operations are shown as one nanosecond.
            let start = cursor.map_or(operation.start, |cursor: u64| operation.start.max(cursor));
            if let Some(cursor) = cursor.filter(|cursor| *cursor < start) {
                values.start.to_mut().push(cursor);
                values.value.to_mut().push(0);
                operations.push(u32::MAX);
            }
            values.start.to_mut().push(start);
            values.value.to_mut().push(value_of.get(operation.name as usize).copied().unwrap_or(UNNAMED));
            operations.push(index);
            cursor = Some(operation.end.max(start.saturating_add(1)));
        }
        values.end = cursor.unwrap_or(0);
        let lost = if takes_losses { queue.lost.iter().map(|at| (*at, *at)).collect() } else { Vec::new() };
        let lost = Marks::new(Flags::LOST, lost);
        Lane { queue: 0, lane, row: ValueRow::of(values), operations, lost }
    }
}
