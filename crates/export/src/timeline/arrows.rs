//! Arrows between lanes: creations, dependences, messages, submissions, wakes.
//!
//! Each end is bound to a section: the one that holds its position. An arrow that leaves at the end of a task belongs
//! to the section that ends there, so its position is one nanosecond earlier; likewise for the arrival of a message,
//! which is known at the end of a call, and for the end of a wait.

use super::lanes::{LaneKind, Lanes};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use taskscope_execution::devices::Devices;
use taskscope_execution::graph::{Access, DeclaredGraph};
use taskscope_execution::{Execution, NO_TIME, TaskIndex, ThreadIndex, WaitOutcome};

/// The meaning of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    /// A task is created, and starts.
    Creation,
    /// A task ends, and one that depends on it starts.
    Dependence,
    /// A message is sent, and known to have arrived.
    Message,
    /// An operation is submitted to a device, and begins there.
    Submission,
    /// A thread ends the wait of another one: it releases a lock, signals, arrives, ends.
    Wake,
}

impl ArrowKind {
    /// All kinds.
    pub const ALL: [ArrowKind; 5] = [
        ArrowKind::Creation,
        ArrowKind::Dependence,
        ArrowKind::Message,
        ArrowKind::Submission,
        ArrowKind::Wake,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ArrowKind::Creation => "creation",
            ArrowKind::Dependence => "dependence",
            ArrowKind::Message => "message",
            ArrowKind::Submission => "submission",
            ArrowKind::Wake => "wake",
        }
    }
}

/// An arrow from one lane to another, or to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Its meaning.
    pub kind: ArrowKind,
    /// Lane of its begin.
    pub from: u32,
    /// Lane of its end.
    pub to: u32,
    /// Time of its begin, nanoseconds of the trace's clock.
    pub start: u64,
    /// Time of its end; not before the begin.
    pub end: u64,
    /// The created task; none for other arrows.
    pub task: TaskIndex,
    /// Size of a message in bytes; `u64::MAX` if not known, and of other arrows.
    pub bytes: u64,
}

impl Arrow {
    /// The time at which its begin or its end is delivered: within the section that it belongs to.
    pub fn position(&self, is_end: bool) -> u64 {
        match (self.kind, is_end) {
            (ArrowKind::Dependence, false) => self.start.saturating_sub(1),
            (ArrowKind::Message, true) => self.end.saturating_sub(1).max(self.start),
            (ArrowKind::Wake, false) => self.start.min(self.end.saturating_sub(1)),
            (ArrowKind::Wake, true) => self.end.saturating_sub(1),
            (_, false) => self.start,
            (_, true) => self.end,
        }
    }
}

const BACKWARDS: &str = "they end before they begin: the clocks of their threads differ";
const OUTSIDE: &str = "one end is outside of the selected time or threads, or of the lives of their threads";
const UNKNOWN: &str = "the thread of one end is not known";

/// The tables that arrows are in.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub execution: &'a Execution,
    pub lanes: &'a Lanes,
    /// The thread of the last section of each task.
    pub last_thread: &'a [ThreadIndex],
}

impl Facts<'_> {
    fn creation(&self, task: TaskIndex) -> Arrow {
        let (tasks, row) = (&self.execution.tasks, task.index());
        Arrow {
            kind: ArrowKind::Creation,
            from: self.lanes.thread_lane(tasks.creator[row]),
            to: self.lanes.thread_lane(tasks.runner[row]),
            start: tasks.created[row],
            end: tasks.began[row],
            task,
            bytes: u64::MAX,
        }
    }

    fn dependence(&self, before: TaskIndex, task: TaskIndex) -> Arrow {
        let tasks = &self.execution.tasks;
        Arrow {
            kind: ArrowKind::Dependence,
            from: self.lanes.thread_lane(self.last_thread[before.index()]),
            to: self.lanes.thread_lane(tasks.runner[task.index()]),
            start: tasks.ended[before.index()],
            end: tasks.began[task.index()],
            task: TaskIndex::NONE,
            bytes: u64::MAX,
        }
    }
}

/// All arrows and their ends in each lane. Those between tasks are many: only their tasks are kept, whose tables have the rest.
pub(super) struct Arrows {
    /// Created tasks, then pairs of tasks with a dependence, then all others.
    creations: Vec<TaskIndex>,
    dependences: Vec<(TaskIndex, TaskIndex)>,
    others: Vec<Arrow>,
    /// Per lane, by position: twice the row, and one more for the arrow's end.
    pub(super) ends: Vec<Vec<u32>>,
    pub(super) dropped: BTreeMap<&'static str, u64>,
}

impl Arrows {
    pub(super) fn of(
        execution: &Execution,
        devices: &Devices,
        lanes: &Lanes,
        last_thread: &[ThreadIndex],
    ) -> Arrows {
        let facts = Facts { execution, lanes, last_thread };
        let arrows = Arrows {
            creations: Vec::new(),
            dependences: Vec::new(),
            others: Vec::new(),
            ends: Vec::new(),
            dropped: BTreeMap::new(),
        };
        let mut found = Finder { execution, lanes, begin: execution.part_of_time().0, arrows };
        found.creations(&facts);
        found.dependences(&facts);
        found.messages();
        found.submissions(devices);
        found.wakes();
        let mut arrows = found.arrows;
        let mut ends = vec![Vec::new(); lanes.rows.len()];
        for number in 0..arrows.count() {
            let arrow = arrows.get(number, &facts);
            ends[arrow.from as usize].push(number * 2);
            ends[arrow.to as usize].push(number * 2 + 1);
        }
        for lane_ends in &mut ends {
            lane_ends.sort_unstable_by_key(|end| (arrows.position(*end, &facts), *end));
            lane_ends.shrink_to_fit();
        }
        arrows.ends = ends;
        arrows
    }

    pub(super) fn count(&self) -> u32 {
        (self.creations.len() + self.dependences.len() + self.others.len()) as u32
    }

    /// The number of arrows of a kind.
    pub(super) fn count_of(&self, kind: ArrowKind) -> u64 {
        let count = match kind {
            ArrowKind::Creation => self.creations.len(),
            ArrowKind::Dependence => self.dependences.len(),
            _ => self.others.iter().filter(|arrow| arrow.kind == kind).count(),
        };
        count as u64
    }

    /// An arrow by its number.
    pub(super) fn get(&self, number: u32, facts: &Facts<'_>) -> Arrow {
        let number = number as usize;
        if let Some(task) = self.creations.get(number) {
            return facts.creation(*task);
        }
        let number = number - self.creations.len();
        match self.dependences.get(number) {
            Some((before, task)) => facts.dependence(*before, *task),
            None => self.others[number - self.dependences.len()],
        }
    }

    /// The position of an end, as in [`Arrows::ends`].
    pub(super) fn position(&self, end: u32, facts: &Facts<'_>) -> u64 {
        self.get(end / 2, facts).position(end % 2 == 1)
    }
}

struct Finder<'a> {
    execution: &'a Execution,
    lanes: &'a Lanes,
    begin: u64,
    arrows: Arrows,
}

impl Finder<'_> {
    fn drop_for(&mut self, why: &'static str) {
        *self.arrows.dropped.entry(why).or_default() += 1;
    }

    /// Whether an arrow between lanes is drawn, else counts it; `u32::MAX` is a lane that is not shown.
    fn takes(&mut self, arrow: &Arrow) -> bool {
        let why = self.why_not(arrow);
        if let Some(why) = why {
            self.drop_for(why);
        }
        why.is_none()
    }

    fn why_not(&self, arrow: &Arrow) -> Option<&'static str> {
        if self.arrows.count() >= u32::MAX / 2 {
            return Some("there are more than 2,147,483,647");
        }
        let is_in = |lane: u32, at: u64| {
            self.lanes
                .rows
                .get(lane as usize)
                .is_some_and(|lane| lane.first <= at && at < lane.last.max(lane.first + 1))
        };
        // The times before a part are those of its begin.
        let starts_before = self.begin > 0 && arrow.start <= self.begin;
        match arrow {
            _ if starts_before || arrow.start == NO_TIME || arrow.end == NO_TIME => Some(OUTSIDE),
            _ if arrow.start > arrow.end => Some(BACKWARDS),
            _ if !is_in(arrow.from, arrow.position(false)) || !is_in(arrow.to, arrow.position(true)) => {
                Some(OUTSIDE)
            }
            _ => None,
        }
    }

    fn add(&mut self, arrow: Arrow) {
        if self.takes(&arrow) {
            self.arrows.others.push(arrow);
        }
    }

    fn creations(&mut self, facts: &Facts<'_>) {
        let tasks = &self.execution.tasks;
        for row in 0..tasks.len() {
            let (creator, runner) = (tasks.creator[row], tasks.runner[row]);
            if tasks.created[row] == NO_TIME || tasks.began[row] == NO_TIME {
                continue;
            }
            if !creator.is_some() || !runner.is_some() {
                self.drop_for(UNKNOWN);
                continue;
            }
            let task = TaskIndex::of(row);
            if self.takes(&facts.creation(task)) {
                self.arrows.creations.push(task);
            }
        }
    }

    fn dependences(&mut self, facts: &Facts<'_>) {
        let tasks = &self.execution.tasks;
        let mut declared = DeclaredGraph::default();
        let mut before: Vec<u32> = Vec::new();
        let mut rows = self.execution.dependences.iter().peekable();
        while let Some(dependence) = rows.next() {
            let task = dependence.task;
            if let (true, Some(access)) = (task.index() < tasks.len(), Access::from_ompt(dependence.kind)) {
                let scope = DeclaredGraph::scope(tasks, task);
                declared.access(scope, task.0, dependence.address, access, |other| before.push(other));
            }
            if rows.peek().is_some_and(|next| next.task == task) {
                continue;
            }
            before.sort_unstable();
            before.dedup();
            for other in before.drain(..).map(TaskIndex) {
                if tasks.ended[other.index()] == NO_TIME || tasks.began[task.index()] == NO_TIME {
                    continue;
                }
                let (from, to) = (facts.last_thread[other.index()], tasks.runner[task.index()]);
                if !from.is_some() || !to.is_some() {
                    self.drop_for(UNKNOWN);
                } else if self.takes(&facts.dependence(other, task)) {
                    self.arrows.dependences.push((other, task));
                }
            }
        }
    }

    fn messages(&mut self) {
        for message in &self.execution.communication.messages {
            self.add(Arrow {
                kind: ArrowKind::Message,
                from: self.lanes.thread_lane(message.sender),
                to: self.lanes.thread_lane(message.receiver),
                start: message.sent,
                end: message.received,
                task: TaskIndex::NONE,
                bytes: message.bytes,
            });
        }
    }

    /// From the release of a lock by its last holder, or the call that woke a thread, to the end of the wait.
    fn wakes(&mut self) {
        let waits = &self.execution.thread_waits;
        for (row, wait) in waits.waits.iter().enumerate() {
            let to = self.lanes.wait_lane(row);
            if to == u32::MAX || wait.outcome != WaitOutcome::Done {
                continue;
            }
            let holds = waits.holds_of(wait.object, wait.start, wait.end);
            let released = holds.last().map(|hold| (hold.thread, hold.end));
            let Some((by, at)) = wait.waker.map(|waker| (waker.thread, waker.at)).or(released) else {
                self.drop_for(UNKNOWN);
                continue;
            };
            let from = self.lanes.thread_lane(by);
            // A thread that is joined wakes by its end.
            let last = self.lanes.rows.get(from as usize).map_or(0, |lane| lane.last.saturating_sub(1));
            self.add(Arrow {
                kind: ArrowKind::Wake,
                from,
                to,
                start: at.min(last),
                end: if wait.end > wait.start { wait.end } else { NO_TIME },
                task: TaskIndex::NONE,
                bytes: u64::MAX,
            });
        }
    }

    fn submissions(&mut self, devices: &Devices) {
        let submitters = self.submitters(devices);
        for (to, lane) in self.lanes.rows.iter().enumerate() {
            let LaneKind::Queue(number, _) = lane.kind else { continue };
            let queue = &devices.queues[number as usize];
            for row in &self.lanes.intervals[to] {
                let operation = &queue.operations[*row as usize];
                if operation.append == 0 {
                    continue;
                }
                let known = queue.pid.and_then(|pid| submitters.get(&(pid, operation.thread)));
                let Some(lanes) = known else {
                    self.drop_for(UNKNOWN);
                    continue;
                };
                // The call that submits it, else the thread's section.
                let in_call = lanes.iter().find(|lane| self.has_call_at(**lane, devices, operation.append));
                let Some(from) = in_call.or(lanes.last()) else { continue };
                self.add(Arrow {
                    kind: ArrowKind::Submission,
                    from: *from,
                    to: to as u32,
                    start: operation.append,
                    end: operation.start,
                    task: TaskIndex::NONE,
                    bytes: u64::MAX,
                });
            }
        }
    }

    /// The lanes of host threads, by process and thread id: those of calls first, then the thread's own.
    fn submitters(&self, devices: &Devices) -> FxHashMap<(i64, i64), Vec<u32>> {
        let mut submitters: FxHashMap<(i64, i64), Vec<u32>> = FxHashMap::default();
        for (number, lane) in self.lanes.rows.iter().enumerate() {
            if let LaneKind::Calls(list, _) = lane.kind {
                let thread = &devices.calls[list as usize];
                submitters.entry((thread.pid, thread.tid)).or_default().push(number as u32);
            }
        }
        for (number, lane) in self.lanes.rows.iter().enumerate() {
            if let LaneKind::Thread(thread) = lane.kind {
                let pid = self.execution.processes[lane.process.index()].pid;
                let tid = self.execution.threads[thread.index()].tid;
                submitters.entry((pid, tid)).or_default().push(number as u32);
            }
        }
        submitters
    }

    fn has_call_at(&self, lane: u32, devices: &Devices, at: u64) -> bool {
        let LaneKind::Calls(list, _) = self.lanes.rows[lane as usize].kind else { return false };
        let (calls, rows) = (&devices.calls[list as usize].calls, &self.lanes.intervals[lane as usize]);
        let after = rows.partition_point(|row| calls[*row as usize].start <= at);
        after.checked_sub(1).is_some_and(|row| at < calls[rows[row] as usize].end)
    }
}
