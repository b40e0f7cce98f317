//! The lanes of a timeline: threads, CPUs, queues of devices, calls, marks of doubt, waits of threads for each other,
//! collective operations.

use super::content::Loss;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use taskscope_execution::devices::Devices;
use taskscope_execution::messages::Participation;
use taskscope_execution::{Execution, NO_TIME, ProcessIndex, ThreadIndex, ThreadKind};

/// The purpose of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// A thread.
    Thread(ThreadIndex),
    /// A CPU, which shows the sections of its threads.
    Cpu(ThreadIndex),
    /// Operations of a queue: its number, and which of its lanes this is.
    Queue(u32, u32),
    /// Calls of a host's thread that concern devices: number of the list, and which of its lanes this is.
    Calls(u32, u32),
    /// Uncertain intervals of a thread, and which of its lanes this is.
    Doubts(ThreadIndex, u32),
    /// Waits of a thread for others, beside its sections, and which of its lanes this is.
    Waits(ThreadIndex, u32),
    /// Parts of a thread in collective operations, from begin to completion, and which of its lanes this is.
    Collectives(ThreadIndex, u32),
}

impl LaneKind {
    /// The thread whose time the lane shows once more, if it does.
    pub fn beside(self) -> Option<ThreadIndex> {
        match self {
            LaneKind::Doubts(thread, _) | LaneKind::Waits(thread, _) | LaneKind::Collectives(thread, _) => {
                Some(thread)
            }
            _ => None,
        }
    }
}

/// The end of the name of a thread or CPU that is not a worker: its time is not capacity. Imports know it.
const NOT_A_WORKER: &str = ", not a worker";

/// A row of a timeline, whose sections do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its purpose.
    pub kind: LaneKind,
    /// Its process; none for queues of imports.
    pub process: ProcessIndex,
    /// Name; any text.
    pub name: String,
    /// Time of its first section, nanoseconds of the trace's clock; 0 if it has none.
    pub first: u64,
    /// Time after its last section.
    pub last: u64,
}

/// All lanes, and the rows of their intervals if these are not a track.
pub(super) struct Lanes {
    pub(super) rows: Vec<Lane>,
    /// Rows of operations, calls, doubts, waits or parts in collective operations in the order of time, for each lane.
    pub(super) intervals: Vec<Vec<u32>>,
    thread_lanes: Vec<u32>,
    /// The lane of each wait of a thread; `u32::MAX` of one that is not shown.
    wait_lanes: Vec<u32>,
    marks: FxHashMap<ThreadIndex, Vec<Mark>>,
    pub(super) dropped: Vec<Loss>,
}

/// The time of a part in a collective operation; one that is not complete lasts until `last`.
pub(super) fn time_of(part: &Participation, last: u64) -> (u64, u64) {
    let end = if part.completed == NO_TIME { last } else { part.completed };
    (part.begun, end.max(part.begun))
}

/// A doubt or a loss of a thread: begin, end, events lost, number of the doubt.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) lost: u64,
    pub(super) doubt: Option<usize>,
}

/// The marks of each thread, uncertain intervals first.
fn marks_of(execution: &Execution) -> FxHashMap<ThreadIndex, Vec<Mark>> {
    let mut marks: FxHashMap<ThreadIndex, Vec<Mark>> = FxHashMap::default();
    for part in &execution.uncertain {
        marks.entry(part.thread).or_default().push(Mark {
            start: part.start,
            end: part.end.max(part.start),
            lost: 0,
            doubt: Some(part.doubt as usize),
        });
    }
    for loss in &execution.losses {
        marks.entry(loss.thread).or_default().push(Mark {
            start: loss.start,
            end: loss.end.max(loss.start),
            lost: loss.events,
            doubt: None,
        });
    }
    marks
}

/// An interval of a list: its row, begin, end.
pub(super) type Row = (u32, u64, u64);

/// The part of an interval in the selected time; `None` if none of it is, or its times are not known.
pub(super) fn within(part: (u64, u64), start: u64, end: u64) -> Option<(u64, u64)> {
    let is_in = start != 0 && start <= end && start < part.1 && end >= part.0;
    is_in.then(|| (start.max(part.0), end.min(part.1)))
}

/// Lanes in which intervals do not overlap: each goes to the first lane that is free at its begin, in the order of
/// begins, so these are the fewest lanes.
fn spread(mut intervals: Vec<Row>) -> Vec<Vec<Row>> {
    intervals.sort_by_key(|(_, start, end)| (*start, *end));
    let mut lanes: Vec<Vec<Row>> = Vec::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for interval in intervals {
        while let Some(Reverse((_, lane))) = busy.peek().copied().filter(|next| next.0.0 <= interval.1) {
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push(interval);
        busy.push(Reverse((interval.2, lane)));
    }
    lanes
}

impl Lanes {
    pub(super) fn of(execution: &Execution, devices: &Devices) -> Lanes {
        let mut lanes = Lanes {
            rows: Vec::new(),
            intervals: Vec::new(),
            thread_lanes: Vec::new(),
            wait_lanes: vec![u32::MAX; execution.thread_waits.waits.len()],
            marks: marks_of(execution),
            dropped: Vec::new(),
        };
        let part = execution.part_of_time();
        let beside = Beside::of(execution);
        let mut order: Vec<ThreadIndex> = (0..execution.threads.len() as u32).map(ThreadIndex).collect();
        execution.sort_by_rank(&mut order);
        lanes.thread_lanes = vec![u32::MAX; order.len()];
        for thread in order {
            lanes.add_thread(execution, thread, &beside);
        }
        // The first process with each id that ran code.
        let mut processes: FxHashMap<i64, ProcessIndex> = FxHashMap::default();
        for (row, process) in execution.processes.iter().enumerate().filter(|(_, row)| !row.has_cpus) {
            processes.entry(process.pid).or_insert(ProcessIndex::of(row));
        }
        let process_of = |pid| processes.get(&pid).copied().unwrap_or(ProcessIndex::NONE);
        for (number, queue) in devices.queues.iter().enumerate() {
            let process = queue.pid.map_or(ProcessIndex::NONE, process_of);
            let times = queue.operations.iter().map(|operation| (operation.start, operation.end));
            let spans = rows_within(part, times);
            let unknown = queue.operations.iter().filter(|of| of.start == 0 || of.end < of.start).count();
            let lost = queue.lost.len() + queue.late.len() + unknown;
            lanes.drop_operations(lost as u64);
            let name = if queue.device.is_empty() {
                queue.name.clone()
            } else {
                format!("{} ({})", queue.name, queue.device)
            };
            lanes.add_spread(spans, process, &name, |lane| LaneKind::Queue(number as u32, lane));
        }
        for (number, thread) in devices.calls.iter().enumerate() {
            let process = process_of(thread.pid);
            let spans = rows_within(part, thread.calls.iter().map(|call| (call.start, call.end)));
            let name = format!("device calls of thread {}", thread.tid);
            lanes.add_spread(spans, process, &name, |lane| LaneKind::Calls(number as u32, lane));
        }
        lanes
    }

    fn add_thread(&mut self, execution: &Execution, thread: ThreadIndex, beside: &Beside) {
        let row = &execution.threads[thread.index()];
        if row.track.is_empty() || !row.selected {
            return;
        }
        let kind = match row.kind {
            ThreadKind::Cpu => LaneKind::Cpu(thread),
            _ => LaneKind::Thread(thread),
        };
        let plain = match row.kind {
            ThreadKind::Cpu if row.name.is_empty() => format!("CPU {}", row.tid),
            _ if row.name.is_empty() => format!("thread {}", row.tid),
            ThreadKind::Cpu => row.name.clone(),
            _ => format!("{} ({})", row.name, row.tid),
        };
        self.thread_lanes[thread.index()] = self.rows.len() as u32;
        let (first, last) = (row.track.start(), row.track.end());
        let name = if row.worker { plain.clone() } else { format!("{plain}{NOT_A_WORKER}") };
        self.rows.push(Lane { kind, process: row.process, name, first, last });
        self.intervals.push(Vec::new());
        let spans =
            self.marks_of(thread).iter().zip(0..).map(|(mark, row)| (row, mark.start, mark.end)).collect();
        let name = format!("uncertain: {plain}");
        self.add_spread(spans, row.process, &name, |lane| LaneKind::Doubts(thread, lane));
        let waits = beside.waits.get(&thread).cloned().unwrap_or_default();
        let first = self.rows.len();
        let name = format!("waits: {plain}");
        self.add_spread(waits, row.process, &name, |lane| LaneKind::Waits(thread, lane));
        for lane in first..self.rows.len() {
            self.intervals[lane].iter().for_each(|wait| self.wait_lanes[*wait as usize] = lane as u32);
        }
        let parts = beside.collectives.get(&thread).cloned().unwrap_or_default();
        let name = format!("collective operations: {plain}");
        self.add_spread(parts, row.process, &name, |lane| LaneKind::Collectives(thread, lane));
    }

    /// The marks of a thread.
    pub(super) fn marks_of(&self, thread: ThreadIndex) -> &[Mark] {
        self.marks.get(&thread).map_or(&[][..], Vec::as_slice)
    }

    /// The lane of a wait of a thread, by its row; `u32::MAX` if it has none.
    pub(super) fn wait_lane(&self, wait: usize) -> u32 {
        self.wait_lanes.get(wait).copied().unwrap_or(u32::MAX)
    }

    fn add_spread(
        &mut self,
        spans: Vec<Row>,
        process: ProcessIndex,
        name: &str,
        kind: impl Fn(u32) -> LaneKind,
    ) {
        for (number, rows) in spread(spans).into_iter().enumerate() {
            let name = if number == 0 { name.to_owned() } else { format!("{name}, lane {}", number + 1) };
            let (first, last) = (rows.first().map_or(0, |row| row.1), rows.last().map_or(0, |row| row.2));
            self.rows.push(Lane { kind: kind(number as u32), process, name, first, last });
            self.intervals.push(rows.into_iter().map(|row| row.0).collect());
        }
    }

    /// Intervals of lanes of a kind.
    pub(super) fn count(&self, is_of_kind: impl Fn(LaneKind) -> bool) -> u64 {
        let lanes = self.rows.iter().zip(&self.intervals).filter(|(lane, _)| is_of_kind(lane.kind));
        lanes.map(|(_, rows)| rows.len() as u64).sum()
    }

    fn drop_operations(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        match self.dropped.first_mut() {
            Some(loss) => loss.count += count,
            None => self.dropped.push(Loss { content: "device operations", count, why: NO_TIMES }),
        }
    }

    /// The lane of a thread; `u32::MAX` if it has none.
    pub(super) fn thread_lane(&self, thread: ThreadIndex) -> u32 {
        self.thread_lanes.get(thread.index()).copied().unwrap_or(u32::MAX)
    }
}

/// Intervals beside the sections of threads, in the selected time.
#[derive(Default)]
struct Beside {
    waits: FxHashMap<ThreadIndex, Vec<Row>>,
    collectives: FxHashMap<ThreadIndex, Vec<Row>>,
}

impl Beside {
    fn of(execution: &Execution) -> Beside {
        let (part, last) = (execution.part_of_time(), execution.range().1);
        let mut beside = Beside::default();
        for (wait, row) in execution.thread_waits.waits.iter().zip(0..) {
            if let Some((start, end)) = within(part, wait.start, wait.end) {
                beside.waits.entry(wait.thread).or_default().push((row, start, end));
            }
        }
        for (of, row) in execution.communication.participations.iter().zip(0..) {
            let (start, end) = time_of(of, last);
            if let Some((start, end)) = within(part, start, end) {
                beside.collectives.entry(of.thread).or_default().push((row, start, end));
            }
        }
        beside
    }
}

const NO_TIMES: &str = "their records are lost, came too late, or have no usable times";

/// Intervals in a part of the time, with their rows.
fn rows_within(part: (u64, u64), times: impl Iterator<Item = (u64, u64)>) -> Vec<Row> {
    let rows = times.zip(0..).filter_map(|((start, end), row)| {
        let (start, end) = within(part, start, end)?;
        Some((row, start, end))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    fn lanes(intervals: &[(u64, u64)]) -> Vec<Vec<u32>> {
        let rows = intervals.iter().zip(0..).map(|((start, end), row)| (row, *start, *end));
        spread(rows.collect()).into_iter().map(|lane| lane.into_iter().map(|row| row.0).collect()).collect()
    }

    #[test]
    fn overlapping_intervals_are_in_the_fewest_lanes() {
        let expected = [vec![0, 3], vec![1, 2], vec![4]];
        assert_eq!(lanes(&[(0, 10), (5, 8), (8, 9), (10, 20), (6, 7)]), expected);
        assert!(lanes(&[]).is_empty());
    }

    #[test]
    fn empty_intervals_at_one_time_share_a_lane() {
        assert_eq!(lanes(&[(5, 5), (5, 5), (5, 6)]).len(), 1);
    }
}
