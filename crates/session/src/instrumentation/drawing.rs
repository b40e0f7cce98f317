//! Turns the shown states of lanes into rows of values.

use super::drawn::{Drawn, DrawnName, DrawnRow, DrawnView};
use super::{By, Item, Lane, Names, Showing, Shown, ShownPart, Space};
use crate::model_views::{KeptView, ValueRow};
use rustc_hash::FxHashMap;
use taskscope_execution::lod::Values;
use taskscope_trace::Trace;

/// Tasks that a view shows: those that were on threads longest.
const MAX_TASKS: usize = 500;
/// Levels of a stack that have rows.
const MAX_LEVELS: usize = 32;
/// Labels of values that pages receive at once; all others are sent on request.
const MAX_LABELS: usize = 1000;

/// A lane's rows, as far as they are drawn.
struct LaneRows {
    showing: Showing,
    levels: Vec<Values>,
    label: String,
    /// First time of a task on a thread, its last arrival there, and its total time there by then.
    first: u64,
    since: u64,
    ran_ns: u64,
    /// The task is on no thread.
    rests: bool,
    thread: u32,
}

/// A view while the trace is played.
pub(super) struct Drawing<'a> {
    trace: &'a Trace,
    names: &'a Names,
    name: DrawnName,
    key: Option<&'a str>,
    /// Which numbers of processes are the key.
    is_key: FxHashMap<(u32, u32), bool>,
    lanes: FxHashMap<Lane, LaneRows>,
    ended: Vec<(Lane, LaneRows)>,
    kinds: FxHashMap<(u32, u64), u32>,
    /// Values by the numbers of a process, and by their words.
    numbers: FxHashMap<(u32, u64), i64>,
    by_word: FxHashMap<String, i64>,
    words: Vec<String>,
    tasks: u64,
    is_cut: bool,
}

impl<'a> Drawing<'a> {
    pub fn new(trace: &'a Trace, names: &'a Names, name: DrawnName, key: Option<&'a str>) -> Drawing<'a> {
        Drawing {
            trace,
            names,
            name,
            key,
            is_key: FxHashMap::default(),
            lanes: FxHashMap::default(),
            ended: Vec::new(),
            kinds: FxHashMap::default(),
            numbers: FxHashMap::default(),
            by_word: FxHashMap::default(),
            words: Vec::new(),
            tasks: 0,
            is_cut: false,
        }
    }

    pub fn take(&mut self, item: &Item<'_>) {
        let process = self.names.processes[item.thread as usize];
        if let Lane::Task { process, task } = item.lane {
            self.task_moves(process, task, item);
        }
        if !self.name.by.wants(item.lane) || self.name.what == Drawn::Tasks {
            return;
        }
        let rows = self.lane(item.lane);
        let Some(what) = rows.showing.take(&item.shown).map(|turn| turn.what) else { return };
        if self.is_drawn(process, what) {
            self.draw(process, item.lane, what, item.at);
        }
    }

    fn is_drawn(&mut self, process: u32, what: ShownPart) -> bool {
        match (self.name.what, what) {
            (Drawn::States, ShownPart::States) | (Drawn::Substates, ShownPart::Substates) => true,
            (Drawn::Bursts(_), ShownPart::Bursts(key)) => {
                let (names, wanted) = (self.names, self.key);
                let known = self.is_key.entry((process, key));
                *known.or_insert_with(|| Some(&*names.name(process, Space::Key, u64::from(key))) == wanted)
            }
            _ => false,
        }
    }

    /// Records the values that the lane shows from now on.
    fn draw(&mut self, process: u32, lane: Lane, what: ShownPart, at: u64) {
        let Some(rows) = self.lanes.get(&lane) else { return };
        let stack: Vec<u64> = if rows.rests { Vec::new() } else { rows.showing.of(what).to_vec() };
        self.is_cut |= stack.len() > MAX_LEVELS;
        let values: Vec<i64> =
            stack.into_iter().take(MAX_LEVELS).map(|number| self.value(process, what, number)).collect();
        let Some(rows) = self.lanes.get_mut(&lane) else { return };
        rows.write(at, &values);
    }

    fn task_moves(&mut self, process: u32, task: u64, item: &Item<'_>) {
        let (draws_tasks, by) = (self.name.what == Drawn::Tasks, self.name.by);
        match item.shown {
            Shown::Created { kind, .. } => drop(self.kinds.insert((process, task), kind)),
            Shown::Resume { thread, .. } => match by {
                By::Thread if draws_tasks => {
                    let value = self.kind_of(process, task);
                    self.lane(Lane::Thread(thread)).write(item.at, &[value]);
                }
                By::Thread => {}
                By::Task => {
                    let rows = self.lane(item.lane);
                    rows.first = rows.first.min(item.at);
                    (rows.rests, rows.thread) = (false, thread);
                    (rows.since, rows.ran_ns) = (item.at, item.own_ns);
                    if draws_tasks {
                        let stream = self.trace.streams().get(thread as usize);
                        let tid = stream.and_then(|stream| stream.tid()).unwrap_or(0);
                        let value = self.number_of_word(format!("thread {tid}"));
                        self.lane(item.lane).write(item.at, &[value]);
                    }
                    self.draw_again(process, item.lane, item.at);
                }
            },
            Shown::Suspend { thread, last, .. } => {
                match by {
                    By::Thread if draws_tasks => self.lane(Lane::Thread(thread)).write(item.at, &[]),
                    By::Thread => {}
                    By::Task => {
                        let rows = self.lane(item.lane);
                        (rows.rests, rows.ran_ns) = (true, item.own_ns);
                        rows.write(item.at, &[]);
                        if last {
                            self.lane_ends(item.lane);
                        }
                    }
                }
                if last {
                    self.kinds.remove(&(process, task));
                }
            }
            _ => {}
        }
    }

    /// Everything that the task's rows are about, as it is again on a thread.
    fn draw_again(&mut self, process: u32, lane: Lane, at: u64) {
        let Some(rows) = self.lanes.get(&lane) else { return };
        let all: Vec<ShownPart> = rows.showing.all().map(|(what, _)| what).collect();
        for what in all {
            if self.is_drawn(process, what) {
                self.draw(process, lane, what, at);
            }
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut LaneRows {
        let (trace, names, kinds, name) = (self.trace, self.names, &self.kinds, self.name);
        let several = || names.processes.iter().any(|process| *process > 0);
        self.lanes.entry(lane).or_insert_with(|| {
            let pid_and_tid = |stream: usize| {
                let stream = trace.streams().get(stream);
                (stream.and_then(|s| s.pid()).unwrap_or(0), stream.and_then(|s| s.tid()).unwrap_or(0))
            };
            let (pid, label) = match lane {
                Lane::Thread(thread) => {
                    let (pid, tid) = pid_and_tid(thread as usize);
                    (pid, format!("thread {tid}"))
                }
                Lane::Task { process, task } => {
                    let first = names.processes.iter().position(|of| *of == process).unwrap_or(0);
                    let kind = kinds.get(&(process, task));
                    let kind = kind.map(|kind| names.name(process, Space::Kind, u64::from(*kind)));
                    (pid_and_tid(first).0, format!("{} {task}", kind.as_deref().unwrap_or("task")))
                }
            };
            let label = if several() { format!("{pid}: {label}") } else { label };
            LaneRows {
                showing: Showing::new(name.behaviour),
                levels: Vec::new(),
                label,
                first: u64::MAX,
                since: 0,
                ran_ns: 0,
                rests: matches!(lane, Lane::Task { .. }),
                thread: 0,
            }
        })
    }

    fn kind_of(&mut self, process: u32, task: u64) -> i64 {
        let kind = self.kinds.get(&(process, task));
        let word = kind.map(|kind| self.names.name(process, Space::Kind, u64::from(*kind)));
        self.number_of_word(word.unwrap_or_else(|| "task".to_owned()))
    }

    fn number_of_word(&mut self, word: String) -> i64 {
        if let Some(value) = self.by_word.get(&word) {
            return *value;
        }
        self.words.push(word.clone());
        let value = self.words.len() as i64;
        self.by_word.insert(word, value);
        value
    }

    fn value(&mut self, process: u32, what: ShownPart, number: u64) -> i64 {
        if let Some(value) = self.numbers.get(&(process, number)) {
            return *value;
        }
        let word = match what {
            ShownPart::States | ShownPart::Substates => self.names.name(process, Space::State, number),
            ShownPart::Bursts(key) => {
                let value = self.names.name(process, Space::ValueOf(key), number);
                let unit =
                    self.names.get(process, Space::Key, u64::from(key)).map_or(String::new(), |k| k.unit);
                if unit.is_empty() { value } else { format!("{value} {unit}") }
            }
        };
        let value = self.number_of_word(word);
        self.numbers.insert((process, number), value);
        value
    }

    fn lane_ends(&mut self, lane: Lane) {
        let Some(rows) = self.lanes.remove(&lane).filter(LaneRows::has_drawn) else { return };
        self.tasks += u64::from(matches!(lane, Lane::Task { .. }));
        self.ended.push((lane, rows));
        if self.ended.len() > 2 * MAX_TASKS && self.name.by == By::Task {
            self.keep_longest();
        }
    }

    fn keep_longest(&mut self) {
        self.ended.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.ran_ns));
        self.ended.truncate(MAX_TASKS);
    }

    pub fn finish(mut self) -> DrawnView {
        let trace = self.trace;
        let last = |stream: usize| {
            let last = trace.streams().get(stream).and_then(|stream| stream.last_clock_ns());
            last.map_or(0, |last| last.max(0) as u64)
        };
        let mut left: Vec<Lane> = self.lanes.keys().copied().collect();
        left.sort_unstable();
        for lane in left {
            let Some(rows) = self.lanes.get_mut(&lane) else { continue };
            let end = match lane {
                Lane::Thread(thread) => last(thread as usize),
                Lane::Task { .. } => last(rows.thread as usize),
            };
            if !rows.rests {
                rows.ran_ns = rows.ran_ns.saturating_add(end.saturating_sub(rows.since));
            }
            rows.levels.iter_mut().for_each(|row| row.end = row.end.max(end));
            self.lane_ends(lane);
        }
        match self.name.by {
            By::Thread => self.ended.sort_by_key(|(lane, _)| *lane),
            By::Task => {
                self.keep_longest();
                self.ended.sort_by_key(|(lane, rows)| (rows.first, *lane));
            }
        }
        let (first, end) =
            (trace.first_clock_ns().unwrap_or(0).max(0) as u64, trace.duration_ns().max(0) as u64);
        let shown = self.ended.len() as u64;
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (lane, mut drawn) in self.ended {
            for (level, row) in drawn.levels.drain(..).enumerate() {
                let label = match level {
                    0 => drawn.label.clone(),
                    _ => format!("{} · {}", drawn.label, level + 1),
                };
                let stream = match lane {
                    Lane::Thread(thread) => Some(thread as usize),
                    Lane::Task { .. } => None,
                };
                rows.push(DrawnRow { label, stream });
                values.push(row);
            }
        }
        values.iter_mut().for_each(|row| row.end = row.end.min(first + end));
        let words = in_order(self.words, &mut values);
        let labels = (1..).zip(words.iter().cloned()).take(MAX_LABELS).collect();
        let kept = KeptView {
            title: title(self.name, self.key),
            labels,
            rows: values.into_iter().map(ValueRow::of).collect(),
            doubts: Vec::new(),
        };
        let tasks_left_out = if self.name.by == By::Task { self.tasks - shown } else { 0 };
        DrawnView { kept, rows, words, tasks_left_out, is_cut: self.is_cut }
    }
}

impl LaneRows {
    /// Sets the levels from now on.
    fn write(&mut self, at: u64, values: &[i64]) {
        while self.levels.len() < values.len() {
            self.levels.push(Values::default());
        }
        for (level, row) in self.levels.iter_mut().enumerate() {
            row.set(at, values.get(level).copied().unwrap_or(0));
        }
    }

    fn has_drawn(&self) -> bool {
        self.levels.iter().any(|row| !row.start.is_empty())
    }
}

/// Numbers words in their order, so that views of one thing give it one colour.
fn in_order(words: Vec<String>, values: &mut [Values]) -> Vec<String> {
    let number = |word: &str| word.split(' ').next().and_then(|first| first.parse::<u64>().ok());
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|word| (number(&words[*word]), &words[*word]));
    let mut place = vec![0_i64; words.len() + 1];
    for (new, old) in (1..).zip(&order) {
        place[old + 1] = new;
    }
    for value in values.iter_mut().flat_map(|row| row.value.to_mut()) {
        *value = place[*value as usize];
    }
    order.into_iter().map(|word| words[word].clone()).collect()
}

/// The title of a view.
fn title(name: DrawnName, key: Option<&str>) -> String {
    let what = match name.what {
        Drawn::States => "states".to_owned(),
        Drawn::Substates => "sub-states".to_owned(),
        Drawn::Tasks => "tasks".to_owned(),
        Drawn::Bursts(_) => format!("bursts of {}", key.unwrap_or_default()),
    };
    format!("{what} per {}, {}", name.by.name(), name.behaviour.name())
}
