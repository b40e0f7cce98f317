//! The ledger of a task graph: the use of every nanosecond of every worker, and the charged parties.
//!
//! Each instant of each worker has exactly one [`Cause`], in this order: its own activity first (lock, call,
//! runtime, system), then the body of a task, then the wait of its next task. If that depends on another
//! worker (create, depend, sync), the blame goes to that worker's activity at that instant, or to the reason
//! of *its* wait (mode `root` of [`slo`](crate::slo)). All tables are projections of one [`Ledger`], with
//! leaf causes in place of the states' inner nodes: causes sum to the capacity, rows of the table to their
//! causes, and the SLOW view to the capacity again, all in whole nanoseconds.

mod drain;
mod ready;

pub use ready::{ReadyTable, ReadyWork};

use crate::entries::Entries;
use crate::fine_nanos::Share;
use crate::keys::{Keys, Who};
use crate::ledger::{ByCause, Entry, Ledger};
use crate::slo::{Deciding, deciding_inputs};
use crate::timeline::{
    Limits, Segments, Timeline, Waits, activity_segments, piece_outside, time_outside, uniform_shares,
};
use crate::wait_for_graph::{Charged, Letter, Now, WaitForGraph};
use drain::DrainBlame;
use ready::ReadyAxis;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use taskscope_execution::graph::{ActivityKind, NONE, Piece, TaskGraph};
use taskscope_execution::{Cause, NO_TIME};

/// Time in one cause that is charged to one culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// The cause.
    pub cause: Cause,
    /// The charged party.
    pub who: Who,
    /// Row of the task type that lost the time (its task ran or came next), if that is exact.
    pub symptom: Option<u32>,
    /// Nanoseconds.
    pub ns: u64,
}

/// The use of time, as a task graph knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphEntry {
    /// Row of the worker.
    pub worker: u32,
    /// The charged party; `None` if it is derived from other workers' activities.
    pub who: Option<Who>,
    /// See [`CauseRow::symptom`].
    pub symptom: Option<u32>,
    /// The awaited data, if any.
    pub data: Option<DataOf>,
}

/// Time that is charged, as a task graph knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphCharge {
    /// The charged party.
    pub who: Who,
    /// See [`CauseRow::symptom`].
    pub symptom: Option<u32>,
}

/// Data by the programmer's name for it, else by its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataOf {
    /// Row of the graph's names.
    Name(u32),
    /// Data without a name that tasks of a type produced; row of the type.
    Type(u32),
    /// Data without a name that was there at the start.
    Start,
}

impl DataOf {
    /// The name in tables.
    pub fn label(self, graph: &TaskGraph) -> String {
        match self {
            DataOf::Name(row) => graph.names[row as usize].clone(),
            DataOf::Type(row) => format!("made by {}", graph.types[row as usize].name),
            DataOf::Start => "data that was there at the start".to_owned(),
        }
    }
}

/// The ready tasks of a node, as a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Tasks that could start before they did.
    pub tasks: u64,
    /// Total waiting time, nanoseconds.
    pub wait_ns: u64,
    /// The longest wait.
    pub longest_ns: u64,
    /// The task that waited so long, or [`NONE`].
    pub longest_task: u32,
    /// Most tasks in it at a time.
    pub most: u64,
    /// Time in which workers of the node stood idle before a task that was in it: their share of the cause
    /// `dispatch`.
    pub idle_ns: u64,
}

/// Capacity by the letters of SLOW; sums to the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    /// Time in task bodies.
    pub work_ns: u64,
    /// Too little parallel work.
    pub starvation_ns: u64,
    /// Data under way.
    pub latency_ns: u64,
    /// The runtime and the system.
    pub overhead_ns: u64,
    /// Waiting for objects that others hold.
    pub contention_ns: u64,
}

/// The use of the capacity, and cached sums for reports.
#[derive(Clone, Debug)]
pub struct Causes {
    /// All entries of the selected workers.
    pub entries: Ledger<GraphEntry, GraphCharge>,
    /// Sum of the lifetimes of all selected workers.
    pub capacity_ns: u64,
    /// These workers' time by cause; sums to the capacity.
    pub by_cause: ByCause,
    /// Each worker's time by cause; zeros for unselected workers.
    pub by_worker: Vec<ByCause>,
    /// Time by charged party; rows of a cause sum to it. Largest first.
    pub rows: Vec<CauseRow>,
    /// Time in which workers waited for data to be produced, sent, received or noticed, by that data and
    /// cause; rows of a cause sum to it, if an input decided. Largest first.
    pub by_data: Vec<(DataOf, Cause, u64)>,
    /// Time between readiness and start of tasks, by node.
    pub queues: Vec<Queue>,
    /// Idle time by cause and by whether there was ready work.
    pub ready: ReadyTable,
    /// The same capacity by letters.
    pub slow: Slow,
}

impl Causes {
    /// The time in a cause, or in all of its category if it is one.
    pub fn total(&self, cause: Cause) -> u64 {
        let all = Cause::ALL.into_iter().zip(self.by_cause);
        all.filter(|(other, _)| other.is_in(cause)).map(|(_, ns)| ns).sum()
    }
}

/// Books every nanosecond of every worker.
pub fn book_causes(graph: &TaskGraph) -> Causes {
    let segments = activity_segments(graph);
    let deciding = deciding_inputs(graph);
    Booking::new(graph, &segments, &deciding, (0, u64::MAX)).run()
}

/// Books the nanoseconds from `begin` (included) to `end` (not included), of the trace's clock: each in the cause, and charged to
/// the same, as in the whole, so that parts which tile a time add up to it.
pub fn book_causes_in(graph: &TaskGraph, (begin, end): (u64, u64)) -> Causes {
    let segments = activity_segments(graph);
    let deciding = deciding_inputs(graph);
    Booking::new(graph, &segments, &deciding, (begin, end.max(begin))).run()
}

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

struct Booking<'a> {
    graph: &'a TaskGraph,
    segments: &'a Segments<'a>,
    deciding: &'a [Deciding],
    uniform: Vec<Share>,
    timelines: Vec<Timeline<'a>>,
    forest: WaitForGraph,
    keys: Keys,
    positions: Vec<Option<(Position, u64)>>,
    spent: FxHashMap<(u32, Position), u64>,
    ready: ReadyAxis,
    drain: DrainBlame,
    begin: u64,
    all_done: u64,
    /// The booked window: begin (included) and end (excluded).
    window: (u64, u64),
}

impl<'a> Booking<'a> {
    fn new(
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

    fn run(mut self) -> Causes {
        if !self.has_time() {
            return self.finish(&Booked::default());
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
        let booked = self.take(last);
        self.finish(&booked)
    }

    /// Takes out the time booked so far.
    fn take(&mut self, at: u64) -> Booked {
        for (worker, row) in (0..).zip(&mut self.positions) {
            if let Some((position, since)) = row.as_mut().filter(|(_, since)| *since < at) {
                *self.spent.entry((worker, *position)).or_default() += at - *since;
                *since = at;
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
            *self.spent.entry((worker, position)).or_default() += now - since;
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

    fn finish(self, booked: &Booked) -> Causes {
        let spent = self.entries(booked);
        let mut by_worker = vec![[0; Cause::ALL.len()]; self.graph.workers.len()];
        let mut by_cause = [0; Cause::ALL.len()];
        for (entry, ns) in spent.iter() {
            by_worker[entry.of.worker as usize][entry.cause as usize] += ns;
            by_cause[entry.cause as usize] += ns;
        }
        let charged = self.charged(&spent, booked);
        let rows: Vec<CauseRow> = (charged.largest_first().into_iter())
            .map(|(Entry { cause, of: GraphCharge { who, symptom } }, ns)| CauseRow {
                cause,
                who,
                symptom,
                ns,
            })
            .collect();
        let by_data = spent.by(|Entry { cause, of }| Some((*cause, of.data?)));
        let by_data = by_data.largest_first().into_iter().map(|((cause, data), ns)| (data, cause, ns));
        let (begin, end) = self.window;
        let inside = |from: u64, to: u64| to.min(end).saturating_sub(from.max(begin));
        let capacity = self.graph.selected_workers().map(|worker| inside(worker.begin, worker.end)).sum();
        Causes {
            capacity_ns: capacity,
            by_cause,
            slow: slow(&rows),
            rows,
            queues: self.queues(&by_worker),
            by_data: by_data.collect(),
            by_worker,
            ready: self.ready.table,
            entries: Ledger { spent, charged },
        }
    }

    /// The time that workers spent.
    fn entries(&self, booked: &Booked) -> Entries<Entry<GraphEntry>> {
        let entry = |((worker, position), ns): (&(u32, Position), &u64)| {
            let Position { cause, key, symptom, data } = *position;
            let is_own = !follows_another(cause) && cause != Cause::WaitDrain;
            let who = is_own.then(|| self.keys.who(key as usize));
            let of = GraphEntry { worker: *worker, who, symptom: (symptom != NONE).then_some(symptom), data };
            (Entry { cause, of }, *ns)
        };
        let spent = Entries::of(booked.spent.iter().map(entry));
        if self.uniform.is_empty() { spent } else { spent.moving(self.uniform_times()) }
    }

    /// The charges for it.
    fn charged(&self, spent: &Entries<Entry<GraphEntry>>, booked: &Booked) -> Entries<Entry<GraphCharge>> {
        let charge = |cause, who, symptom| Entry { cause, of: GraphCharge { who, symptom } };
        let own = spent.by(|Entry { cause, of }| of.who.map(|who| charge(*cause, who, of.symptom)));
        let mut charges: Vec<(Entry<GraphCharge>, u64)> = own.iter().map(|(key, ns)| (*key, ns)).collect();
        let classes = self.graph.types.len() as u32 + 1;
        charges.extend(booked.followed.iter().map(|((key, class), charged)| {
            let (cause, symptom) = (Cause::ALL[(class / classes) as usize], class % classes);
            let symptom = (symptom + 1 < classes).then_some(symptom);
            (charge(cause, self.keys.who(*key as usize), symptom), charged.whole_ns())
        }));
        let drained = booked.drained.iter();
        charges.extend(drained.map(|(ty, ns)| (charge(Cause::WaitDrain, Who::Task(*ty), None), *ns)));
        // No worker executes.
        for cause in [Cause::WaitCreate, Cause::WaitDepend, Cause::WaitSync, Cause::WaitDrain] {
            let given: u64 = charges.iter().filter(|(entry, _)| entry.cause == cause).map(|(_, ns)| ns).sum();
            let rest = spent.total(|entry| entry.cause == cause).saturating_sub(given);
            charges.push((charge(cause, Who::Nobody, None), rest));
        }
        Entries::of(charges)
    }

    /// The ready tasks of each node.
    fn queues(&self, by_worker: &[ByCause]) -> Vec<Queue> {
        let mut queues = vec![Queue { longest_task: NONE, ..Queue::default() }; self.graph.nodes.len()];
        for (worker, by_cause) in self.graph.workers.iter().zip(by_worker) {
            queues[worker.node as usize].idle_ns += by_cause[Cause::WaitDispatch as usize];
        }
        let tasks = &self.graph.tasks;
        for task in (0..tasks.len() as u32).filter(|task| tasks.worker[*task as usize] != NONE) {
            let Some(ready) = self.queued_since(task) else { continue };
            let (begin, end) = self.window;
            if ready >= end || tasks.start[task as usize] <= begin {
                continue;
            }
            let wait = tasks.start[task as usize].min(end) - ready.max(begin);
            let queue = &mut queues[self.graph.node_of_task(task) as usize];
            queue.tasks += 1;
            queue.wait_ns = queue.wait_ns.saturating_add(wait);
            if wait > queue.longest_ns {
                (queue.longest_ns, queue.longest_task) = (wait, task);
            }
        }
        for (queue, most) in queues.iter_mut().zip(self.ready.most()) {
            queue.most = most;
        }
        queues
    }

    /// Runtime work at unknown positions is inside task bodies; its amount is known, so it is moved. For a
    /// part of a body, the moved amount is that of the whole up to the part's end minus that up to its begin,
    /// so parts add up.
    fn uniform_times(&self) -> Entries<(Entry<GraphEntry>, Entry<GraphEntry>)> {
        let mut moves = Vec::new();
        let (graph, segments, (begin, end)) = (self.graph, self.segments, self.window);
        let outside = time_outside(graph, segments);
        let mut pieces: Vec<(usize, &Piece)> = Vec::new();
        for (worker, own) in graph.pieces.iter().enumerate() {
            let moved = own.iter().filter(|piece| graph.tasks.uniform(piece.task as usize) > 0);
            pieces.extend(moved.map(|piece| (worker, piece)));
        }
        pieces.sort_unstable_by_key(|(_, piece)| (piece.task, piece.start));
        let (mut task, mut before) = (NONE, 0);
        for (worker, piece) in pieces {
            if std::mem::replace(&mut task, piece.task) != piece.task {
                before = 0;
            }
            let outside = outside[task as usize];
            let owed = graph.tasks.uniform(task as usize).min(outside);
            let own = segments.get(worker);
            let until = |at: u64| {
                let passed = before + piece_outside(piece, own, at);
                (u128::from(owed) * u128::from(passed) / u128::from(outside.max(1))) as u64
            };
            let moved = until(end) - until(begin);
            before += piece_outside(piece, own, u64::MAX);
            if moved == 0 || !graph.workers[worker].selected {
                continue;
            }
            let ty = graph.tasks.ty[task as usize];
            let entry = |cause, who, symptom| {
                let of = GraphEntry { worker: worker as u32, who: Some(who), symptom, data: None };
                Entry { cause, of }
            };
            let work = entry(Cause::Work, Who::Task(ty), None);
            moves.push(((work, entry(Cause::Runtime, Who::Uniform(ty), Some(ty))), moved));
        }
        Entries::of(moves)
    }
}

/// Whether the time in such a wait is charged to another worker's activity.
const fn follows_another(cause: Cause) -> bool {
    matches!(cause, Cause::WaitCreate | Cause::WaitDepend | Cause::WaitSync)
}

fn slow(charges: &[CauseRow]) -> Slow {
    let mut slow = Slow::default();
    for charge in charges {
        let sum = match charge.who.letter() {
            _ if charge.cause == Cause::Work => &mut slow.work_ns,
            Letter::Starvation => &mut slow.starvation_ns,
            Letter::Latency => &mut slow.latency_ns,
            Letter::Overhead => &mut slow.overhead_ns,
            Letter::Contention => &mut slow.contention_ns,
        };
        *sum += charge.ns;
    }
    slow
}
