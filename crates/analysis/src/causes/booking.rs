//! One walk over all workers in the order of time, which books each nanosecond.

mod totals;

use super::drain::DrainBlame;
use super::ready::ReadyAxis;
use super::tables::{CauseInterval, Causes, DataOf};
use crate::fine_nanos::Share;
use crate::keys::{Keys, Who};
use crate::slo::Deciding;
use crate::timeline::{Limits, Segments, Timeline, Waits, uniform_shares};
use crate::wait_for_graph::{Charged, Letter, Now, WaitForGraph};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use taskscope_execution::graph::{ActivityKind, NONE, TaskGraph};
use taskscope_execution::{Cause, NO_TIME};

/// The cause of a worker at an instant, and its own key in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Position {
    cause: Cause,
    /// Own key; unused if the cause is another worker's.
    key: u32,
    /// Row of the task type that loses the time, or [`NONE`].
    symptom: u32,
    /// The awaited data, if any.
    data: Option<DataOf>,
}

/// Ready times of tasks, and their nodes, in order.
type Coming = std::iter::Peekable<std::vec::IntoIter<(u64, u32)>>;

/// The booked time of the window.
#[derive(Default)]
struct Booked {
    spent: FxHashMap<(u32, Position), u64>,
    /// The charges for waits that follow other workers, by key and class.
    followed: FxHashMap<(u32, u32), Charged>,
    /// Nanoseconds of draining by task type.
    drained: FxHashMap<u32, u64>,
}

pub(super) struct Booking<'a> {
    graph: &'a TaskGraph,
    segments: &'a Segments<'a>,
    deciding: &'a [Deciding],
    uniform: Vec<Share>,
    timelines: Vec<Timeline<'a>>,
    forest: WaitForGraph,
    keys: Keys,
    positions: Vec<Option<(Position, u64)>>,
    spent: FxHashMap<(u32, Position), u64>,
    /// The intervals of the window, in the order of their ends; `None` if they are not wanted.
    intervals: Option<Vec<CauseInterval>>,
    ready: ReadyAxis,
    drain: DrainBlame,
    begin: u64,
    all_done: u64,
    /// The booked window: begin (included) and end (excluded).
    window: (u64, u64),
}

impl<'a> Booking<'a> {
    pub(super) fn new(
        graph: &'a TaskGraph,
        segments: &'a Segments<'a>,
        deciding: &'a [Deciding],
        window: (u64, u64),
    ) -> Self {
        let workers = graph.workers.len();
        let mut keys = Keys::new(graph);
        let startup = Now::has(Letter::Overhead, keys.number(Who::Startup));
        Booking {
            graph,
            segments,
            deciding,
            uniform: uniform_shares(graph, segments),
            timelines: (0..workers).map(|w| Timeline::new(graph, segments, w)).collect(),
            forest: WaitForGraph::new(workers, startup, [true; 4]),
            keys,
            positions: vec![None; workers],
            spent: FxHashMap::default(),
            intervals: None,
            ready: ReadyAxis::new(graph.nodes.len()),
            drain: DrainBlame::new(workers),
            begin: graph.range().0,
            all_done: graph.pieces.iter().filter_map(|p| p.last()).map(|p| p.end).max().unwrap_or(0),
            window,
        }
    }

    /// Whether the window has time of the run.
    fn has_time(&self) -> bool {
        let ((begin, end), (first, last)) = (self.window, self.graph.range());
        begin < end && first < end && (begin < last || begin <= first)
    }

    /// Books the window, and keeps its intervals.
    pub(super) fn run_with_intervals(mut self) -> (Causes, Vec<CauseInterval>) {
        self.intervals = Some(Vec::new());
        let booked = self.walk();
        let intervals = self.intervals.take().unwrap_or_default();
        (self.finish(&booked), intervals)
    }

    /// Books the window.
    pub(super) fn run(mut self) -> Causes {
        let booked = self.walk();
        self.finish(&booked)
    }

    fn walk(&mut self) -> Booked {
        if !self.has_time() {
            return Booked::default();
        }
        let (begin, end) = self.window;
        let mut is_before = begin > self.begin;
        let mut becoming_ready = self.becoming_ready().into_iter().peekable();
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> =
            self.timelines.iter().enumerate().map(|(w, t)| Reverse((t.next, w as u32))).collect();
        // Draining turns into shutdown when the last task ends, which is an instant of every worker.
        let mut done = false;
        let mut together = Vec::new();
        let mut last = 0;
        while let Some(Reverse((now, _))) = queue.peek().copied().filter(|next| next.0.0 != u64::MAX) {
            if is_before && begin <= now {
                is_before = false;
                self.become_ready(&mut becoming_ready, begin);
                self.take(begin);
                self.intervals.iter_mut().for_each(Vec::clear);
                self.ready.restart(begin);
            }
            if end <= now {
                last = end;
                break;
            }
            self.become_ready(&mut becoming_ready, now);
            last = now;
            together.clear();
            while let Some(top) = queue.peek_mut().filter(|top| top.0.0 == now) {
                together.push(PeekMut::pop(top).0.1);
            }
            if together.len() > 1 {
                for worker in &together {
                    if matches!(self.forest.now(*worker), Now::Sees { .. }) {
                        self.forest.set(*worker, now, Now::has(Letter::Overhead, 0));
                    }
                }
            }
            for worker in &together {
                self.step(*worker, now);
                queue.push(Reverse((self.timelines[*worker as usize].next, *worker)));
            }
            if now >= self.all_done && !done {
                done = true;
                for worker in 0..self.timelines.len() {
                    self.update_position(worker as u32, now);
                }
            }
        }
        self.become_ready(&mut becoming_ready, last);
        self.take(last)
    }

    /// Takes out the time booked so far.
    fn take(&mut self, at: u64) -> Booked {
        for worker in 0..self.positions.len() {
            if let Some((position, since)) = self.positions[worker].filter(|(_, since)| *since < at) {
                self.spend(worker as u32, position, (since, at));
                self.positions[worker] = Some((position, at));
            }
        }
        self.forest.charge_all(at);
        self.ready.settle_all(at);
        Booked {
            spent: std::mem::take(&mut self.spent),
            followed: std::mem::take(&mut self.forest.charges),
            drained: self.drain.take(at),
        }
    }

    /// Tasks join the queues until `at`.
    fn become_ready(&mut self, coming: &mut Coming, at: u64) {
        while let Some((at, node)) = coming.next_if(|(ready, _)| *ready <= at) {
            self.ready.ready(node, at, true);
        }
    }

    /// The ready time of each task that had to wait for a worker, and its node.
    fn becoming_ready(&self) -> Vec<(u64, u32)> {
        let tasks = &self.graph.tasks;
        let mut times: Vec<(u64, u32)> = (0..tasks.len() as u32)
            .filter(|task| tasks.worker[*task as usize] != NONE)
            .filter_map(|task| Some((self.queued_since(task)?, self.graph.node_of_task(task))))
            .collect();
        times.sort_unstable();
        times
    }

    /// Since when a task waited for a worker, if it did. Code outside of tasks waits in no queue.
    fn queued_since(&self, task: u32) -> Option<u64> {
        let tasks = &self.graph.tasks;
        if self.graph.types.get(tasks.ty[task as usize] as usize).is_some_and(|ty| ty.implicit) {
            return None;
        }
        // Without a recorded creation the ready time is unknown.
        if self.graph.recorded.creation && tasks.created(task as usize) == NO_TIME {
            return None;
        }
        let limits = self.limits(task, self.graph.node_of_task(task));
        let ready = limits.created.max(limits.produced).max(limits.arrived).max(limits.ready);
        let ready = ready.max(self.begin);
        (ready < tasks.start[task as usize]).then_some(ready)
    }

    fn limits(&self, task: u32, node: u32) -> Limits {
        Limits::of(self.graph, task, self.deciding[task as usize], node)
    }

    fn step(&mut self, worker: u32, now: u64) {
        let w = worker as usize;
        let node = self.graph.workers[w].node;
        let (graph, deciding) = (self.graph, self.deciding);
        let limits = |task: u32| Limits::of(graph, task, deciding[task as usize], node);
        let executed = self.timelines[w].executes;
        self.timelines[w].step(limits, |_| ());
        let executes = self.timelines[w].executes;
        if executes != executed {
            let ty = if executes == NONE { NONE } else { self.graph.tasks.ty[executes as usize] };
            self.drain.executes(w, now, ty);
            let first = executes != NONE && self.graph.tasks.start[executes as usize] == now;
            if first && self.queued_since(executes).is_some() {
                self.ready.ready(node, now, false);
            }
        }
        self.update_position(worker, now);
    }

    /// Moves the worker to its current position.
    fn update_position(&mut self, worker: u32, now: u64) {
        let (position, seen) = self.position(worker, now);
        if self.forest.now(worker) != seen {
            self.forest.set(worker, now, seen);
        }
        if self.positions[worker as usize].map(|(position, _)| position) != position {
            self.leave(worker, now);
            if let Some(position) = position {
                self.enter(worker, now, position);
            }
        }
    }

    /// Books an interval of a worker.
    fn spend(&mut self, worker: u32, position: Position, (start, end): (u64, u64)) {
        *self.spent.entry((worker, position)).or_default() += end - start;
        if let Some(intervals) = &mut self.intervals {
            intervals.push(CauseInterval { worker, start, end, cause: position.cause });
        }
    }

    fn enter(&mut self, worker: u32, now: u64, position: Position) {
        let node = self.graph.workers[worker as usize].node;
        self.positions[worker as usize] = Some((position, now));
        if follows_another(position.cause) {
            self.forest.weigh(worker, now, self.class(position), 1);
        }
        if position.cause.is_in(Cause::Wait) {
            self.ready.idle(node, now, position.cause, true);
        }
        if position.cause == Cause::WaitDrain {
            self.drain.drains(now, true);
        }
    }

    fn leave(&mut self, worker: u32, now: u64) {
        let w = worker as usize;
        let Some((position, since)) = self.positions[w].take() else { return };
        let node = self.graph.workers[w].node;
        if now > since {
            self.spend(worker, position, (since, now));
        }
        if follows_another(position.cause) {
            self.forest.weigh(worker, now, self.class(position), -1);
        }
        if position.cause.is_in(Cause::Wait) {
            self.ready.idle(node, now, position.cause, false);
        }
        if position.cause == Cause::WaitDrain {
            self.drain.drains(now, false);
        }
    }

    /// The number of a wait's cause and symptom for the forest.
    fn class(&self, position: Position) -> u32 {
        position.cause as u32 * (self.graph.types.len() as u32 + 1)
            + position.symptom.min(self.graph.types.len() as u32)
    }

    /// The data that a task waits for in a cause.
    fn awaited_data(&self, cause: Cause, task: u32) -> Option<DataOf> {
        let deciding = self.deciding[task as usize];
        let data = match cause {
            Cause::WaitDepend => deciding.last_produced,
            Cause::WaitSend | Cause::WaitTransfer | Cause::WaitDeliver => deciding.last_arrived,
            _ => NONE,
        };
        if data == NONE {
            return None;
        }
        let name = self.graph.data.name(data as usize);
        Some(match self.graph.data.producer[data as usize] {
            _ if name != NONE => DataOf::Name(name),
            NONE => DataOf::Start,
            producer => DataOf::Type(self.graph.tasks.ty[producer as usize]),
        })
    }

    /// The worker's current position, if it is alive, and the source that its waiters see.
    fn position(&mut self, worker: u32, now: u64) -> (Option<Position>, Now) {
        let w = worker as usize;
        let timeline = &self.timelines[w];
        // The time of others is not booked, but workers that wait for them see their activities.
        let lives = timeline.begun && now < self.graph.workers[w].end && self.graph.workers[w].selected;
        let (executes, section, idle) = (timeline.executes, timeline.section, timeline.idle);
        let ty = |task: u32| self.graph.tasks.ty[task as usize];
        let symptom = match idle {
            // A thread that waits for a lock appears at the place of its request.
            _ if section.is_some_and(|s| s.waiter != NONE) => section.map_or(NONE, |s| s.waiter),
            _ if executes != NONE => ty(executes),
            Some(idle) => ty(idle.task),
            None => NONE,
        };
        let executing = |keys: &mut Keys, ty: u32| Now::Has {
            letter: Letter::Starvation,
            key: keys.number(Who::Task(ty)),
            share: self.uniform.get(executes as usize).copied().unwrap_or_default(),
            share_key: keys.number(Who::Uniform(ty)),
        };
        // Others wait for the code, whether it runs or is blocked.
        if section.is_some_and(|section| section.kind == ActivityKind::Blocked) && executes != NONE {
            let key = self.keys.number(Who::Blocked(symptom));
            let position = Position { cause: Cause::Blocked, key, symptom, data: None };
            return (lives.then_some(position), executing(&mut self.keys, symptom));
        }
        let (cause, who) = if let Some(segment) = section {
            let who = match segment.kind {
                ActivityKind::LockWait => Who::Lock(segment.name, segment.holder),
                ActivityKind::Communication => Who::Call(segment.name),
                ActivityKind::PeerWait => Who::Peer(segment.name),
                ActivityKind::Device => Who::Device(segment.name),
                ActivityKind::Start => Who::Start(segment.name),
                ActivityKind::AbsorbingNoise => Who::AbsorbingNoise(segment.name),
                ActivityKind::Runtime(_) => Who::Runtime(segment.name),
                ActivityKind::OffCpu(_) => Who::System(segment.name),
                ActivityKind::Blocked => Who::Blocked(NONE),
            };
            (segment.kind.cause(), who)
        } else if executes != NONE {
            let key = self.keys.number(Who::Task(symptom));
            let position = Position { cause: Cause::Work, key, symptom: NONE, data: None };
            return (lives.then_some(position), executing(&mut self.keys, symptom));
        } else if let Some(idle) = idle {
            let limits = idle.limits;
            let sees = match idle.waits {
                Waits::Creation => Some((Cause::WaitCreate, limits.creator_worker)),
                Waits::Production if limits.synchronises => Some((Cause::WaitSync, limits.producer_worker)),
                Waits::Production => Some((Cause::WaitDepend, limits.producer_worker)),
                _ => None,
            };
            if let Some((cause, node)) = sees {
                let data = self.awaited_data(cause, idle.task);
                let position = Position { cause, key: 0, symptom, data };
                let now = if node == NONE || node == worker {
                    Now::has(Letter::Starvation, self.keys.number(Who::Creator(symptom)))
                } else {
                    Now::Sees { node, only_overhead: false }
                };
                return (lives.then_some(position), now);
            }
            match idle.waits {
                Waits::Send => (Cause::WaitSend, Who::Send),
                Waits::Transfer => (Cause::WaitTransfer, Who::Link(limits.from, self.graph.workers[w].node)),
                Waits::Delivery => (Cause::WaitDeliver, Who::Delivery(self.graph.workers[w].node)),
                _ => (Cause::WaitDispatch, Who::Dispatch(symptom)),
            }
        } else if !timeline.begun {
            (Cause::WaitStart, Who::Startup)
        } else if now < self.all_done {
            (Cause::WaitDrain, Who::Nobody)
        } else {
            (Cause::WaitEnd, Who::Nobody)
        };
        let key = self.keys.number(who);
        let data = idle.filter(|_| section.is_none()).and_then(|idle| self.awaited_data(cause, idle.task));
        (lives.then_some(Position { cause, key, symptom, data }), Now::has(who.letter(), key))
    }
}

/// Whether the time in such a wait is charged to another worker's activity.
const fn follows_another(cause: Cause) -> bool {
    matches!(cause, Cause::WaitCreate | Cause::WaitDepend | Cause::WaitSync)
}
