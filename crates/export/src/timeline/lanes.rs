//! The lanes of a timeline: threads, CPUs, queues of devices, calls, marks of doubt.

use super::content::Loss;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use taskscope_execution::devices::Devices;
use taskscope_execution::{Execution, ProcessIndex, ThreadIndex, ThreadKind};

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
}

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
    /// Rows of operations, calls or doubts in the order of time, for each lane.
    pub(super) intervals: Vec<Vec<u32>>,
    of_thread: Vec<u32>,
    pub(super) dropped: Vec<Loss>,
}

/// A doubt or a loss of a thread: begin, end, events lost, number of the doubt.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) lost: u64,
    pub(super) doubt: Option<usize>,
}

/// The marks of a thread, uncertain intervals first.
pub(super) fn marks_of(execution: &Execution, thread: ThreadIndex) -> Vec<Mark> {
    let doubts = execution.uncertain.iter().filter(|part| part.thread == thread).map(|part| Mark {
        start: part.start,
        end: part.end.max(part.start),
        lost: 0,
        doubt: Some(part.doubt as usize),
    });
    let losses = execution.losses.iter().filter(|loss| loss.thread == thread).map(|loss| Mark {
        start: loss.start,
        end: loss.end.max(loss.start),
        lost: loss.events,
        doubt: None,
    });
    doubts.chain(losses).collect()
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
        let mut lanes =
            Lanes { rows: Vec::new(), intervals: Vec::new(), of_thread: Vec::new(), dropped: Vec::new() };
        let part = execution.part_of_time();
        let mut order: Vec<ThreadIndex> = (0..execution.threads.len() as u32).map(ThreadIndex).collect();
        execution.sort_by_rank(&mut order);
        lanes.of_thread = vec![u32::MAX; order.len()];
        for thread in order {
            lanes.add_thread(execution, thread);
        }
        for (number, queue) in devices.queues.iter().enumerate() {
            let process = queue.pid.map_or(ProcessIndex::NONE, |pid| process_of(execution, pid));
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
            let process = process_of(execution, thread.pid);
            let spans = rows_within(part, thread.calls.iter().map(|call| (call.start, call.end)));
            let name = format!("device calls of thread {}", thread.tid);
            lanes.add_spread(spans, process, &name, |lane| LaneKind::Calls(number as u32, lane));
        }
        lanes
    }

    fn add_thread(&mut self, execution: &Execution, thread: ThreadIndex) {
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
        self.of_thread[thread.index()] = self.rows.len() as u32;
        let (first, last) = (row.track.start(), row.track.end());
        self.rows.push(Lane { kind, process: row.process, name: plain.clone(), first, last });
        self.intervals.push(Vec::new());
        let marks = marks_of(execution, thread);
        let spans = marks.iter().zip(0..).map(|(mark, row)| (row, mark.start, mark.end)).collect();
        let name = format!("uncertain: {plain}");
        self.add_spread(spans, row.process, &name, |lane| LaneKind::Doubts(thread, lane));
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
    pub(super) fn of_thread(&self, thread: ThreadIndex) -> u32 {
        self.of_thread.get(thread.index()).copied().unwrap_or(u32::MAX)
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

/// The process with this id that ran code.
fn process_of(execution: &Execution, pid: i64) -> ProcessIndex {
    let found = execution.processes.iter().position(|process| process.pid == pid && !process.has_cpus);
    found.map_or(ProcessIndex::NONE, |row| ProcessIndex(row as u32))
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
