//! Duration and frequency of each state, burst, point, message and task shown by instrumented threads or tasks.
//!
//! Thread time is wall time; task time stops while the task is on no thread or below another task. Overlapping
//! intervals, such as a state within itself, count once.

use super::{Behaviour, By, Item, Lane, Names, Showing, Shown, ShownPart, Space, Turn, play};
use crate::run_file::{PartOfRun, RunFile};
use crate::selection::Selection;
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;
use taskscope_event::models::instrument::DOMAIN_TASK;
use taskscope_trace::Trace;

/// The kind of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Tasks of a kind.
    Task,
    /// A state.
    State,
    /// A state that was hidden.
    Substate,
    /// Bursts of a key, or of a value of it that has a name.
    Burst,
    /// Points of a key, or of a value of it that has a name.
    Point,
    /// Message halves sent in a domain.
    Send,
    /// Message halves received in a domain.
    Receive,
}

impl Kind {
    /// The name, for people and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::State => "state",
            Kind::Substate => "sub-state",
            Kind::Burst => "burst",
            Kind::Point => "point",
            Kind::Send => "send",
            Kind::Receive => "receive",
        }
    }
}

/// A row of a lane, or of all lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Kind of the row.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Nanoseconds for which it was shown; 0 for kinds without a length.
    pub ns: u64,
    /// Number of begins, or of passages.
    pub begins: u64,
    /// Lanes that showed it.
    pub lanes: u64,
}

/// The subject of times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whose {
    /// The thread of this stream.
    Thread(usize),
    /// A task.
    Task {
        /// Its process: an index into [`Names::processes`]' numbers.
        process: u32,
        /// Its number in it.
        task: u64,
        /// The name of its kind; empty if its creation is missing.
        kind: String,
    },
}

/// The times of one thread or task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneTimes {
    /// The thread or task.
    pub whose: Whose,
    /// A thread: nanoseconds from its first to its last event. A task: that it was on threads.
    pub ns: u64,
    /// Its rows, the longest first.
    pub rows: Vec<Row>,
}

/// Options of the computation.
#[derive(Clone, Copy, Debug)]
pub struct TimesOptions {
    /// The kind of lanes: threads or tasks.
    pub by: By,
    /// The behaviour; not [`Behaviour::Raw`], in which a thread shows nothing of its tasks.
    pub behaviour: Behaviour,
    /// Lanes to keep, those with most time.
    pub lanes: usize,
}

/// The times of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// Over all lanes, the longest first.
    pub rows: Vec<Row>,
    /// Some lanes, the longest first.
    pub lanes: Vec<LaneTimes>,
    /// Total number.
    pub lane_count: u64,
    /// The time of all, nanoseconds.
    pub ns: u64,
}

impl Times {
    /// Plays the selected part of a trace; of a slice, what is in its range.
    pub fn of(trace: &Trace, names: &Names, selection: &Selection, options: TimesOptions) -> Times {
        let selected = selection.of(trace);
        let clock = |time_ns: i64| selected.origin_ns.saturating_add(time_ns).max(0) as u64;
        let sliced = RunFile::load(trace.root()).ok().flatten().and_then(|run| run.part);
        let (begin, end) = sliced.map_or((0, u64::MAX), PartOfRun::clocks);
        let range = (clock(selected.begin_ns.max(0)).max(begin), clock(selected.end_ns).min(end));
        let mut counting = Counting {
            names,
            options,
            range,
            lanes: FxHashMap::default(),
            kinds: FxHashMap::default(),
            ids: FxHashMap::default(),
            words: FxHashMap::default(),
            rows: Vec::new(),
            times: Times::default(),
        };
        play(
            trace,
            names,
            options.behaviour,
            |merged| selected.plays(merged),
            |item| {
                if item.at >= range.1 {
                    return ControlFlow::Break(());
                }
                counting.take(&item);
                ControlFlow::Continue(())
            },
        );
        counting.finish(trace)
    }
}

/// State of one row of a lane.
#[derive(Clone, Copy, Default)]
struct Cell {
    ns: u64,
    begins: u64,
    /// Number of open instances, and the time since when on the lane's clock.
    open: u32,
    since: u64,
}

struct Counted {
    showing: Showing,
    cells: FxHashMap<u32, Cell>,
    /// The lane's clock: its value, and the time since which it runs.
    ran_ns: u64,
    since: Option<u64>,
    /// The thread that it is on.
    thread: u32,
}

impl Counted {
    fn clock(&self, at: u64) -> u64 {
        self.ran_ns.saturating_add(self.since.map_or(0, |since| at.saturating_sub(since)))
    }

    fn begin(&mut self, id: u32, at: u64, counts: bool) {
        let now = self.clock(at);
        let cell = self.cells.entry(id).or_default();
        cell.begins += u64::from(counts);
        if cell.open == 0 {
            cell.since = now;
        }
        cell.open += 1;
    }

    fn end(&mut self, id: u32, at: u64) {
        let now = self.clock(at);
        let Some(cell) = self.cells.get_mut(&id).filter(|cell| cell.open > 0) else { return };
        cell.open -= 1;
        if cell.open == 0 {
            cell.ns = cell.ns.saturating_add(now.saturating_sub(cell.since));
        }
    }
}

struct Counting<'a> {
    names: &'a Names,
    options: TimesOptions,
    range: (u64, u64),
    lanes: FxHashMap<Lane, Counted>,
    /// The kinds of tasks that exist.
    kinds: FxHashMap<(u32, u64), u32>,
    /// Rows by the numbers of a process, and by their words.
    ids: FxHashMap<(u32, Kind, u32, Option<u64>), u32>,
    words: FxHashMap<(Kind, String), u32>,
    rows: Vec<Row>,
    times: Times,
}

impl Counting<'_> {
    fn take(&mut self, item: &Item<'_>) {
        let process = self.names.processes[item.thread as usize];
        if let Lane::Task { process, task } = item.lane {
            match item.shown {
                Shown::Created { kind, .. } => drop(self.kinds.insert((process, task), kind)),
                Shown::Resume { thread, .. } => self.runs(process, task, thread, item, true),
                Shown::Suspend { thread, last, .. } => {
                    self.runs(process, task, thread, item, false);
                    if last {
                        self.lane_ends(item.lane, item.at);
                        self.kinds.remove(&(process, task));
                    }
                    return;
                }
                _ => {}
            }
        }
        if !self.options.by.wants(item.lane) {
            return;
        }
        let (at, counts) = (self.clipped(item.at), self.counts(item.at));
        match item.shown {
            Shown::Point { key, value } => self.passes(item, process, Kind::Point, key, value),
            Shown::Composite(pairs) => {
                pairs.iter().for_each(|(key, value)| self.passes(item, process, Kind::Point, key, value));
            }
            Shown::Send(m) if m.domain != DOMAIN_TASK => {
                self.passes(item, process, Kind::Send, m.domain, 0);
            }
            Shown::Receive(m) if m.domain != DOMAIN_TASK => {
                self.passes(item, process, Kind::Receive, m.domain, 0);
            }
            _ => {
                let Some(Turn { what, ended, began }) = self.lane(item.lane).showing.take(&item.shown) else {
                    return;
                };
                let mut id = |number| match what {
                    ShownPart::States => self.id(process, Kind::State, number as u32, 0),
                    ShownPart::Substates => self.id(process, Kind::Substate, number as u32, 0),
                    ShownPart::Bursts(key) => self.id(process, Kind::Burst, key, number),
                };
                let (ended, began) = (ended.map(&mut id), began.map(&mut id));
                let lane = self.lane(item.lane);
                ended.into_iter().for_each(|id| lane.end(id, at));
                began.into_iter().for_each(|id| lane.begin(id, at, counts));
            }
        }
    }

    fn passes(&mut self, item: &Item<'_>, process: u32, kind: Kind, number: u32, value: u64) {
        if self.counts(item.at) {
            let id = self.id(process, kind, number, value);
            self.lane(item.lane).cells.entry(id).or_default().begins += 1;
        }
    }

    /// A thread takes a task up, or puts it down.
    fn runs(&mut self, process: u32, task: u64, thread: u32, item: &Item<'_>, begins: bool) {
        let (at, counts) = (self.clipped(item.at), self.counts(item.at));
        let kind = self.kinds.get(&(process, task)).copied();
        let kind = kind.map(|kind| self.id(process, Kind::Task, kind, 0));
        let lane = match self.options.by {
            By::Thread => self.lane(Lane::Thread(thread)),
            By::Task => self.lane(item.lane),
        };
        if begins {
            lane.thread = thread;
            lane.since = lane.since.or(Some(at));
            kind.into_iter().for_each(|id| lane.begin(id, at, counts));
        } else {
            kind.into_iter().for_each(|id| lane.end(id, at));
            if self.options.by == By::Task {
                let lane = self.lane(item.lane);
                (lane.ran_ns, lane.since) = (lane.clock(at), None);
            }
        }
    }

    fn clipped(&self, at: u64) -> u64 {
        at.clamp(self.range.0, self.range.1.max(self.range.0))
    }

    fn counts(&self, at: u64) -> bool {
        self.range.0 <= at && at < self.range.1
    }

    fn lane(&mut self, lane: Lane) -> &mut Counted {
        // All time of a thread is known; it is cut to that of its events at the end.
        let (since, thread) = match lane {
            Lane::Thread(thread) => (Some(0), thread),
            Lane::Task { .. } => (None, 0),
        };
        let behaviour = self.options.behaviour;
        self.lanes.entry(lane).or_insert_with(|| Counted {
            showing: Showing::new(behaviour),
            cells: FxHashMap::default(),
            ran_ns: 0,
            since,
            thread,
        })
    }

    fn id(&mut self, process: u32, kind: Kind, number: u32, value: u64) -> u32 {
        let names = self.names;
        let has_values = matches!(kind, Kind::Burst | Kind::Point);
        // Values without names share a row.
        let value =
            Some(value).filter(|value| has_values && names.has(process, Space::ValueOf(number), *value));
        let key = (process, kind, number, value);
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let space = match kind {
            Kind::Task => Space::Kind,
            Kind::State | Kind::Substate => Space::State,
            Kind::Burst | Kind::Point => Space::Key,
            Kind::Send | Kind::Receive => Space::Domain,
        };
        let mut name = names.name(process, space, u64::from(number));
        if let Some(value) = value {
            name = format!("{name} = {}", names.name(process, Space::ValueOf(number), value));
        }
        let next = self.rows.len() as u32;
        let id = *self.words.entry((kind, name.clone())).or_insert(next);
        if id == next {
            self.rows.push(Row { kind, name, ns: 0, begins: 0, lanes: 0 });
        }
        self.ids.insert(key, id);
        id
    }

    /// Sums up a lane.
    fn lane_ends(&mut self, lane: Lane, at: u64) {
        let at = self.clipped(at);
        let Some(mut counted) = self.lanes.remove(&lane) else { return };
        let open: Vec<u32> = counted.cells.keys().copied().collect();
        for id in open {
            while counted.cells[&id].open > 0 {
                counted.end(id, at);
            }
        }
        let mut rows = Vec::new();
        for (id, cell) in counted.cells.iter().filter(|(_, cell)| cell.ns > 0 || cell.begins > 0) {
            let all = &mut self.rows[*id as usize];
            all.ns = all.ns.saturating_add(cell.ns);
            all.begins += cell.begins;
            all.lanes += 1;
            rows.push(Row { ns: cell.ns, begins: cell.begins, lanes: 1, ..all.clone() });
        }
        if rows.is_empty() {
            return;
        }
        longest_first(&mut rows);
        let (whose, ns) = match lane {
            Lane::Thread(thread) => (Whose::Thread(thread as usize), 0),
            Lane::Task { process, task } => {
                let kind = self.kinds.get(&(process, task));
                let kind = kind
                    .map(|kind| self.names.name(process, Space::Kind, u64::from(*kind)))
                    .unwrap_or_default();
                (Whose::Task { process, task, kind }, counted.clock(at))
            }
        };
        self.times.lane_count += 1;
        self.times.ns = self.times.ns.saturating_add(ns);
        self.times.lanes.push(LaneTimes { whose, ns, rows });
        if self.times.lanes.len() > 2 * self.options.lanes.max(1024) && matches!(lane, Lane::Task { .. }) {
            self.keep_longest();
        }
    }

    fn keep_longest(&mut self) {
        // Stable: of equal ones the first to end.
        self.times.lanes.sort_by_key(|lane| std::cmp::Reverse(lane.ns));
        self.times.lanes.truncate(self.options.lanes);
    }

    fn finish(mut self, trace: &Trace) -> Times {
        let last_of = |thread: u32| {
            let stream = trace.streams().get(thread as usize);
            stream.and_then(|stream| stream.last_clock_ns()).map_or(0, |last| last.max(0) as u64)
        };
        let mut left: Vec<(Lane, u64)> =
            self.lanes.iter().map(|(lane, counted)| (*lane, last_of(counted.thread))).collect();
        left.sort_unstable();
        left.into_iter().for_each(|(lane, last)| self.lane_ends(lane, last));
        for lane in &mut self.times.lanes {
            if let Whose::Thread(stream) = lane.whose {
                let first = trace.streams()[stream].first_clock_ns().map_or(0, |first| first.max(0) as u64);
                let clip = |at: u64| at.clamp(self.range.0, self.range.1.max(self.range.0));
                lane.ns = clip(last_of(stream as u32)) - clip(first);
                self.times.ns = self.times.ns.saturating_add(lane.ns);
            }
        }
        self.keep_longest();
        self.times.rows = self.rows.into_iter().filter(|row| row.lanes > 0).collect();
        longest_first(&mut self.times.rows);
        self.times
    }
}

fn longest_first(rows: &mut [Row]) {
    rows.sort_by(|a, b| (a.kind, b.ns, b.begins, &a.name).cmp(&(b.kind, a.ns, a.begins, &b.name)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_damaged_traces_are_summed_up_to_the_largest_number() {
        let mut lane = Counted {
            showing: Showing::new(Behaviour::Stacked),
            cells: FxHashMap::default(),
            ran_ns: u64::MAX - 5,
            since: Some(0),
            thread: 0,
        };
        assert_eq!((lane.clock(3), lane.clock(1 << 62)), (u64::MAX - 2, u64::MAX));
        lane.cells.insert(7, Cell { ns: u64::MAX - 1, begins: 1, open: 1, since: 0 });
        lane.end(7, 1 << 62);
        assert_eq!(lane.cells[&7].ns, u64::MAX);
    }
}
