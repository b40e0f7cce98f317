//! Starvation, latency, overhead: why a worker is idle before each of its tasks.
//!
//! The algorithm of V. S. Litvinov (bachelor thesis, Novosibirsk State University, 2017), in three
//! [modes](Mode). For an idle interval that the start of task m ends, each instant has one cause:
//!
//! 1. before the last produced input of m was computed: *starvation*, except if the worker that was to
//!    compute it was in the runtime (*overhead*) or, by mode, was itself idle for some other cause;
//! 2. then, before the last input arrived on m's node: *latency*, or *overhead* while it was complete and not
//!    sent (if the source has send times);
//! 3. then *overhead*: m could have started.
//!
//! Time after a worker's last task is *tail*: drain while some task still runs, shutdown after. So
//! starvation + latency + overhead + execution + tail = capacity, exactly.
//!
//! One sweep over the instants at which anything changes: of order n log W for n changes on W workers, times the
//! length of chains of idle workers.

mod inputs;
mod window;

pub use inputs::{Deciding, deciding_inputs};
pub use window::{WindowTimes, window_times};

use crate::fine_nanos::{FineNanos, Share};
use crate::keys::{Keys, Who};
use crate::timeline::{Idle, Limits, Segments, Timeline, Waits, overhead_segments, uniform_shares};
use crate::wait_for_graph::{Letter, Now, Shares, WaitForGraph};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use taskscope_execution::graph::{ActivityKind, NONE, TaskGraph};

/// The cause of an instant at which the worker that is to compute the last input is itself idle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// Starvation: the published formula.
    Direct,
    /// Overhead as far as that worker's own cause is overhead, else starvation.
    Chained,
    /// That worker's own cause, of any kind.
    Root,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 3] = [Mode::Direct, Mode::Chained, Mode::Root];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Direct => "direct",
            Mode::Chained => "chained",
            Mode::Root => "root",
        }
    }
}

/// The part of the run, and the values to compute beyond the totals.
#[derive(Clone, Debug)]
pub struct SloOptions {
    /// Whether to keep every idle interval.
    pub intervals: bool,
    /// Windows of time for which partial sums are wanted: begin, end; cut at the borders of the range.
    pub windows: Vec<(u64, u64)>,
    /// The part of the run that all values cover: begin (included) and end (excluded). The cause of lost time
    /// is that of the whole, so parts that tile a time add up to it.
    pub range: (u64, u64),
}

impl Default for SloOptions {
    fn default() -> Self {
        SloOptions { intervals: false, windows: Vec::new(), range: (0, u64::MAX) }
    }
}

/// One idle interval and its causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Row of the worker.
    pub worker: u32,
    /// First nanosecond.
    pub begin: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Row of the task that ended it.
    pub task: u32,
    /// Its causes.
    pub shares: Shares,
    /// The inputs that decide.
    pub deciding: Deciding,
}

/// Charges to one culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The cause of the lost time.
    pub letter: Letter,
    /// The charged party.
    pub who: Who,
    /// The lost time.
    pub time: FineNanos,
}

/// The use of the capacity.
#[derive(Clone, Debug)]
pub struct Slo {
    /// The mode.
    pub mode: Mode,
    /// Idle time before tasks, by letter.
    pub total: Shares,
    /// Shares by worker, in the order of the graph.
    pub by_worker: Vec<Shares>,
    /// Shares by node.
    pub by_node: Vec<Shares>,
    /// Shares by window.
    pub windows: Vec<Shares>,
    /// Lost time by charged party; the times of a letter sum to its total. Largest first within a letter.
    pub blame: Vec<Blame>,
    /// All idle intervals by (end, worker), cut at the borders of the range, if requested.
    pub intervals: Vec<Interval>,
    /// Time in tasks, nanoseconds.
    pub execution_ns: u64,
    /// Time after a worker's last task while some task still ran.
    pub drain_ns: u64,
    /// Time after a worker's last task and the end of all tasks.
    pub shutdown_ns: u64,
    /// Sum of the lives of all workers, in the range.
    pub capacity_ns: u64,
}

/// Data common to all modes; make it once.
pub struct Prepared<'a> {
    graph: &'a TaskGraph,
    deciding: Vec<Deciding>,
    segments: Segments<'a>,
    /// Uniform shares by task; empty if no task has uniform runtime work.
    uniform: Vec<Share>,
}

impl<'a> Prepared<'a> {
    /// Finds deciding inputs and runtime segments.
    pub fn new(graph: &'a TaskGraph) -> Self {
        let segments = overhead_segments(graph);
        let uniform = uniform_shares(graph, &segments);
        Prepared { graph, deciding: deciding_inputs(graph), segments, uniform }
    }

    /// Attributes all idle time in one mode.
    pub fn attribute(&self, mode: Mode, options: &SloOptions) -> Slo {
        Sweep::new(self, mode, options).run()
    }
}

/// Attributes all idle time of `graph` in one mode.
pub fn attribute(graph: &TaskGraph, mode: Mode, options: &SloOptions) -> Slo {
    Prepared::new(graph).attribute(mode, options)
}

struct Sweep<'a> {
    prepared: &'a Prepared<'a>,
    graph: &'a TaskGraph,
    mode: Mode,
    keep_intervals: bool,
    timelines: Vec<Timeline<'a>>,
    /// Nodes 0 to W − 1: the cause of each worker's idleness. Nodes W to 2W − 1: the shares that others
    /// waiting for a worker see.
    forest: WaitForGraph,
    keys: Keys,
    /// The accumulated shares of each idle worker's cause node at the begin of the interval.
    at_begin: Vec<Shares>,
    by_worker: Vec<Shares>,
    intervals: Vec<Interval>,
    /// Starvation and latency by key, if the forest does not charge them.
    own_charges: Vec<FineNanos>,
    windows: Windows,
    range: (u64, u64),
}

impl<'a> Sweep<'a> {
    fn new(prepared: &'a Prepared<'a>, mode: Mode, options: &SloOptions) -> Self {
        let graph = prepared.graph;
        let workers = graph.workers.len();
        let mut keys = Keys::new(graph);
        let before_begin = before_begin(mode, &mut keys);
        let root = mode == Mode::Root;
        Sweep {
            prepared,
            graph,
            mode,
            keep_intervals: options.intervals,
            timelines: (0..workers).map(|w| Timeline::new(graph, &prepared.segments, w)).collect(),
            forest: WaitForGraph::new(2 * workers, before_begin, [root, root, true, true]),
            keys,
            at_begin: vec![Shares::default(); workers],
            by_worker: vec![Shares::default(); workers],
            intervals: Vec::new(),
            own_charges: Vec::new(),
            windows: Windows::new(&options.windows, options.range),
            range: options.range,
        }
    }

    fn run(mut self) -> Slo {
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> =
            self.timelines.iter().enumerate().map(|(w, t)| Reverse((t.next, w as u32))).collect();
        let mut together = Vec::new();
        let mut last = 0;
        let (begin, end) = self.range;
        let mut restart = Some(begin).filter(|begin| *begin > 0);
        while let Some(Reverse((now, _))) = queue.peek().copied().filter(|next| next.0.0 < end) {
            if let Some(begin) = restart.take_if(|begin| *begin <= now) {
                self.restart(begin);
            }
            while let Some(border) = self.windows.next_border(now) {
                let so_far = self.idle_until(border);
                self.windows.note(so_far);
            }
            last = now;
            together.clear();
            while let Some(top) = queue.peek_mut().filter(|top| top.0.0 == now) {
                together.push(PeekMut::pop(top).0.1);
            }
            // Workers that change together are first detached: else one could be made to see another that
            // still sees it.
            if together.len() > 1 {
                for worker in &together {
                    self.detach(*worker, now);
                }
            }
            for worker in &together {
                self.step(*worker, now);
                queue.push(Reverse((self.timelines[*worker as usize].next, *worker)));
            }
        }
        if let Some(begin) = restart {
            last = last.max(begin);
            self.restart(last);
        }
        while let Some(border) = self.windows.next_border(u64::MAX) {
            let so_far = self.idle_until(border.max(last));
            self.windows.note(so_far);
        }
        // If the range ends within the run, open intervals end with it.
        if queue.peek().is_some_and(|next| next.0.0 != u64::MAX) {
            last = end;
        }
        for worker in 0..self.timelines.len() {
            if let Some(idle) = self.timelines[worker].idle {
                self.close(worker as u32, &Idle { end: idle.end.min(last), ..idle });
            }
        }
        self.forest.charge_all(last);
        self.finish()
    }

    /// Discards the losses before `at`.
    fn restart(&mut self, at: u64) {
        for worker in 0..self.timelines.len() {
            if self.timelines[worker].idle.is_some() {
                self.at_begin[worker] = self.forest.sum(worker as u32, at);
            }
        }
        self.forest.charge_all(at);
        self.forest.charges.clear();
        self.by_worker.fill(Shares::default());
        self.own_charges.clear();
        self.intervals.clear();
    }

    fn detach(&mut self, worker: u32, now: u64) {
        for node in [worker, worker + self.graph.workers.len() as u32] {
            if matches!(self.forest.now(node), Now::Sees { .. }) {
                self.forest.set(node, now, Now::has(Letter::Overhead, 0));
            }
        }
    }

    fn step(&mut self, worker: u32, now: u64) {
        let w = worker as usize;
        let node = self.graph.workers[w].node;
        let (graph, deciding) = (self.graph, &self.prepared.deciding);
        let limits = |task: u32| Limits::from_inputs(graph, deciding[task as usize], node);
        let was_idle = self.timelines[w].idle.is_some();
        let mut ended = None;
        self.timelines[w].step(limits, |idle| ended = Some(*idle));
        if let Some(idle) = &ended {
            self.close(worker, idle);
        }
        let is_idle = self.timelines[w].idle.is_some();
        if is_idle {
            let cause = self.cause(worker);
            self.put(worker, now, cause);
            if !was_idle && self.graph.workers[w].selected {
                self.forest.weigh(worker, now, 0, 1);
                self.at_begin[w] = self.forest.sum(worker, now);
            }
        }
        let view = self.view(worker);
        self.put(worker + self.graph.workers.len() as u32, now, view);
    }

    fn put(&mut self, node: u32, at: u64, now: Now) {
        if self.forest.now(node) != now {
            self.forest.set(node, at, now);
        }
    }

    /// The cause of an idle worker's idleness.
    fn cause(&mut self, worker: u32) -> Now {
        let Some(idle) = self.timelines[worker as usize].idle else { return Now::has(Letter::Overhead, 0) };
        let who = match idle.waits {
            Waits::Production => {
                let node = idle.limits.producer_worker + self.graph.workers.len() as u32;
                return Now::Sees { node, only_overhead: false };
            }
            Waits::Send => Who::Send,
            Waits::Transfer => Who::Link(idle.limits.from, self.graph.workers[worker as usize].node),
            Waits::Creation | Waits::Delivery | Waits::Dispatch => {
                Who::Dispatch(self.graph.tasks.ty[idle.task as usize])
            }
        };
        let letter = if idle.waits == Waits::Transfer { Letter::Latency } else { Letter::Overhead };
        let key = self.keys.number(who);
        Now::has(letter, key)
    }

    /// The source that workers waiting for this one see.
    fn view(&mut self, worker: u32) -> Now {
        let timeline = &self.timelines[worker as usize];
        if let Some(section) = timeline.section {
            let who = match section.kind {
                ActivityKind::Start => Who::Start(section.name),
                ActivityKind::AbsorbingNoise => Who::AbsorbingNoise(section.name),
                _ => Who::Runtime(section.name),
            };
            return Now::has(Letter::Overhead, self.keys.number(who));
        }
        if timeline.executes != NONE {
            let task = timeline.executes as usize;
            let ty = self.graph.tasks.ty[task];
            return Now::Has {
                letter: Letter::Starvation,
                key: self.keys.number(Who::Task(ty)),
                share: self.prepared.uniform.get(task).copied().unwrap_or_default(),
                share_key: self.keys.number(Who::Uniform(ty)),
            };
        }
        if !timeline.begun {
            return before_begin(self.mode, &mut self.keys);
        }
        match self.mode {
            _ if timeline.in_tail() => Now::has(Letter::Starvation, 0),
            Mode::Direct => Now::has(Letter::Starvation, 0),
            Mode::Chained => Now::Sees { node: worker, only_overhead: true },
            Mode::Root => Now::Sees { node: worker, only_overhead: false },
        }
    }

    /// Books an idle interval that ends now.
    fn close(&mut self, worker: u32, idle: &Idle) {
        let w = worker as usize;
        if !self.graph.workers[w].selected {
            return;
        }
        let shares = self.forest.sum(worker, idle.end).since(&self.at_begin[w]);
        self.forest.weigh(worker, idle.end, 0, -1);
        self.by_worker[w].add(&shares);
        let deciding = self.prepared.deciding[idle.task as usize];
        if self.mode != Mode::Root {
            // Direct starvation is blamed on the producer's type; latency can only be its own.
            if deciding.last_produced != NONE {
                let producer = self.graph.data.producer[deciding.last_produced as usize];
                let key = self.keys.number(Who::Task(self.graph.tasks.ty[producer as usize]));
                self.own_charge(key, Letter::Starvation, &shares);
            }
            if deciding.last_arrived != NONE {
                let to = self.graph.workers[w].node;
                let key = self.keys.number(Who::Link(idle.limits.from, to));
                self.own_charge(key, Letter::Latency, &shares);
            }
        }
        if self.keep_intervals {
            let Idle { begin, end, task, .. } = *idle;
            let begin = begin.max(self.range.0);
            self.intervals.push(Interval { worker, begin, end, task, shares, deciding });
        }
    }

    fn own_charge(&mut self, key: u32, letter: Letter, shares: &Shares) {
        let time = shares.get(letter);
        if time == FineNanos::ZERO {
            return;
        }
        let key = key as usize;
        if self.own_charges.len() <= key {
            self.own_charges.resize(key + 1, FineNanos::ZERO);
        }
        self.own_charges[key] += time;
    }

    /// All idle time before `at`, which is not before the last change.
    fn idle_until(&self, at: u64) -> Shares {
        let mut sum = Shares::default();
        for (worker, timeline) in self.timelines.iter().enumerate() {
            sum.add(&self.by_worker[worker]);
            if timeline.idle.is_some() && self.graph.workers[worker].selected {
                sum.add(&self.forest.sum(worker as u32, at).since(&self.at_begin[worker]));
            }
        }
        sum
    }

    fn finish(mut self) -> Slo {
        let mut total = Shares::default();
        let mut by_node = vec![Shares::default(); self.graph.nodes.len()];
        for (worker, shares) in self.graph.workers.iter().zip(&self.by_worker) {
            total.add(shares);
            by_node[worker.node as usize].add(shares);
        }
        let mut blame = Vec::new();
        for key in 0..self.keys.len() {
            let who = self.keys.who(key);
            let charged = self.forest.charges.get(&(key as u32, 0)).copied().unwrap_or_default();
            let charged = FineNanos::from_nanos(charged.ns as i64) + FineNanos::from_raw(charged.fine);
            let own = self.own_charges.get(key).copied().unwrap_or_default();
            let letter = match who {
                Who::Task(_) => Letter::Starvation,
                Who::Link(..) => Letter::Latency,
                _ => Letter::Overhead,
            };
            if charged + own != FineNanos::ZERO {
                blame.push(Blame { letter, who, time: charged + own });
            }
        }
        blame.sort_by_key(|b| (b.letter as u8, Reverse(b.time), b.who));
        self.intervals.sort_by_key(|interval| (interval.end, interval.worker));
        let all_done = self.graph.pieces.iter().filter_map(|p| p.last()).map(|p| p.end).max().unwrap_or(0);
        let inside = |from: u64, to: u64| to.min(self.range.1).saturating_sub(from.max(self.range.0));
        let (mut drain_ns, mut shutdown_ns, mut execution_ns, mut capacity_ns) = (0, 0, 0, 0);
        for (w, timeline) in
            self.timelines.iter().enumerate().filter(|(w, _)| self.graph.workers[*w].selected)
        {
            execution_ns += self.graph.pieces.get(w).iter().map(|p| inside(p.start, p.end)).sum::<u64>();
            let (begin, end) = timeline.tail();
            let border = all_done.clamp(begin, end);
            drain_ns += inside(begin, border);
            shutdown_ns += inside(border, end);
            capacity_ns += inside(self.graph.workers[w].begin, self.graph.workers[w].end);
        }
        Slo {
            mode: self.mode,
            total,
            by_node,
            windows: self.windows.sums(),
            by_worker: self.by_worker,
            blame,
            intervals: self.intervals,
            execution_ns,
            drain_ns,
            shutdown_ns,
            capacity_ns,
        }
    }
}

fn before_begin(mode: Mode, keys: &mut Keys) -> Now {
    match mode {
        Mode::Direct => Now::has(Letter::Starvation, 0),
        Mode::Chained | Mode::Root => Now::has(Letter::Overhead, keys.number(Who::Startup)),
    }
}

/// Idle time before the borders of windows.
struct Windows {
    wanted: Vec<(u64, u64)>,
    borders: Vec<u64>,
    before: Vec<Shares>,
}

impl Windows {
    fn new(wanted: &[(u64, u64)], range: (u64, u64)) -> Windows {
        let inside = |at: u64| at.clamp(range.0, range.1.max(range.0));
        let wanted: Vec<_> = wanted.iter().map(|(begin, end)| (inside(*begin), inside(*end))).collect();
        let mut borders: Vec<u64> = wanted.iter().flat_map(|(begin, end)| [*begin, *end]).collect();
        borders.sort_unstable();
        borders.dedup();
        Windows { wanted, borders, before: Vec::new() }
    }

    /// The next border, if it is not after `now`.
    fn next_border(&self, now: u64) -> Option<u64> {
        self.borders.get(self.before.len()).copied().filter(|border| *border <= now)
    }

    fn note(&mut self, so_far: Shares) {
        self.before.push(so_far);
    }

    fn sums(&self) -> Vec<Shares> {
        let until = |border: u64| &self.before[self.borders.partition_point(|b| *b < border)];
        self.wanted.iter().map(|(begin, end)| until((*end).max(*begin)).since(until(*begin))).collect()
    }
}
