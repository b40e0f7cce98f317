//! `taskscope emulate --nanos`: instrumented programs as a Paraver trace in Nanos++'s numbers.

use anyhow::Context;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use taskscope_event::models::instrument::{self as i, class};
use taskscope_execution::view::ViewType;
use taskscope_export::paraver::nanos::{KEYS, NanosTrace, Row, STATE, SUBSTATE};
use taskscope_session::instrumentation::{
    self, Behaviour, Item, Lane, Names, Showing, Shown, ShownPart, Space,
};
use taskscope_trace::Trace;

/// Keys that are not Nanos++'s have numbers from here.
const FIRST_OWN_KEY: u32 = 1000;
/// Nanos++'s keys of the running task: its number, its function, the place of that function.
const WD_ID: u32 = 2;
const USER_FUNCTION: u32 = 11;
const USER_LOCATION: u32 = 21;
/// … and of all: how many could run and are on no thread, and how many there are.
const READY_TASKS: u32 = 22;
const LIVE_TASKS: u32 = 23;
/// Keys derived from tasks, unless the program has the key itself.
const DERIVED: [(u32, &str); 5] = [
    (WD_ID, "Work Descriptor id:"),
    (USER_FUNCTION, "User Function Name"),
    (USER_LOCATION, "User Function Location"),
    (READY_TASKS, "Number of ready tasks in the queues"),
    (LIVE_TASKS, "Number tasks in the graph"),
];

/// Writes `nanos.prv`, `.pcf`, `.row` into `directory`.
pub fn write(trace: &Trace, directory: &Path, behaviour: Behaviour) -> anyhow::Result<()> {
    let names = Names::of(trace);
    let numbers = Numbers::of(&names);
    let cannot_write = || format!("cannot write nanos.prv into {}", directory.display());
    let out = NanosTrace::create(directory).with_context(cannot_write)?;
    let mut writer = Writer::new(trace, &names, &numbers, behaviour, out);
    instrumentation::play(
        trace,
        &names,
        behaviour,
        |_| true,
        |item| {
            writer.take(&item);
            if writer.out.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    let (threads, rows) = (writer.threads.clone(), writer.row_names.clone());
    writer.finish().finish(&threads, numbers.types(), rows).with_context(cannot_write)
}

/// Numbers over all processes, by name.
#[derive(Default)]
struct Numbers {
    keys: BTreeMap<String, u32>,
    states: BTreeMap<String, u32>,
    domains: BTreeMap<String, u32>,
    kinds: BTreeMap<String, u64>,
    /// Source places of kinds of tasks.
    locations: BTreeMap<String, u64>,
    /// Names of values, by key's name and value.
    values: BTreeMap<(String, u64), String>,
    titles: BTreeMap<String, String>,
}

impl Numbers {
    fn of(names: &Names) -> Numbers {
        let mut numbers = Numbers::default();
        for (number, (name, _)) in (0..).zip(i::STATES) {
            numbers.states.insert(name.to_owned(), number);
        }
        for (number, name) in (0..).zip(i::DOMAINS) {
            numbers.domains.insert(name.to_owned(), number);
        }
        let mut all: Vec<_> = names.all().collect();
        all.sort_by(|a, b| (a.1, &a.3.name, a.0, a.2).cmp(&(b.1, &b.3.name, b.0, b.2)));
        let mut next = (FIRST_OWN_KEY, i::FIRST_OWN_STATE, i::FIRST_OWN_DOMAIN);
        for (process, space, number, named) in all {
            let name = named.name.clone();
            let give = |numbers: &mut BTreeMap<String, u32>, next: &mut u32| {
                numbers.entry(name.clone()).or_insert_with(|| {
                    *next += 1;
                    *next - 1
                });
            };
            match space {
                Space::Key => {
                    let unit =
                        if named.unit.is_empty() { String::new() } else { format!(" [{}]", named.unit) };
                    numbers.titles.insert(name.clone(), format!("{name}: {}{unit}", named.description));
                    match i::NANOS_KEYS.iter().position(|known| *known == name) {
                        Some(row) => drop(numbers.keys.insert(name, row as u32 + 1)),
                        None => give(&mut numbers.keys, &mut next.0),
                    }
                }
                Space::State => give(&mut numbers.states, &mut next.1),
                Space::Domain => give(&mut numbers.domains, &mut next.2),
                Space::Kind => {
                    let dense = numbers.kinds.len() as u64 + 1;
                    numbers.kinds.entry(name).or_insert(dense);
                    let dense = numbers.locations.len() as u64 + 1;
                    if !named.description.is_empty() {
                        numbers.locations.entry(named.description.clone()).or_insert(dense);
                    }
                }
                Space::ValueOf(key) => {
                    let key = names.name(process, Space::Key, u64::from(key));
                    // Programs that name a value differently keep their own numbers.
                    numbers.values.entry((key, number)).or_insert(name);
                }
            }
        }
        numbers
    }

    /// Whether the program itself has this key of Nanos++'s.
    fn has(&self, key: u32) -> bool {
        i::NANOS_KEYS.get(key as usize - 1).is_some_and(|name| self.keys.contains_key(*name))
    }

    fn types(&self) -> Vec<ViewType> {
        let labels = |of: &BTreeMap<String, u32>| -> Vec<(i64, String)> {
            let mut values: Vec<(i64, String)> =
                of.iter().map(|(name, number)| (i64::from(*number), name.clone())).collect();
            values.push((0, "End".to_owned()));
            values.sort();
            values.dedup_by_key(|(number, _)| *number);
            values
        };
        let states = labels(&self.states);
        let mut types = vec![
            ViewType { number: STATE, title: "Thread state".to_owned(), values: states.clone() },
            ViewType { number: SUBSTATE, title: "Thread substate".to_owned(), values: states },
        ];
        for (key, title) in DERIVED.into_iter().filter(|(key, _)| !self.has(*key)) {
            let of = match key {
                USER_FUNCTION => Some(&self.kinds),
                USER_LOCATION => Some(&self.locations),
                _ => None,
            };
            let names = of.into_iter().flatten().map(|(name, number)| (*number as i64, name.clone()));
            let end = of.map(|_| (0, "End".to_owned()));
            let values = end.into_iter().chain(names).collect();
            types.push(ViewType { number: KEYS + key, title: title.to_owned(), values });
        }
        for (name, number) in &self.keys {
            let key_values = self.values.range((name.clone(), 0)..=(name.clone(), u64::MAX));
            let values = key_values
                .filter_map(|((_, value), label)| Some((i64::try_from(*value).ok()?, label.clone())));
            types.push(ViewType {
                number: KEYS + number,
                title: self.titles.get(name).unwrap_or(name).clone(),
                values: values.collect(),
            });
        }
        types
    }
}

struct Writer<'a> {
    names: &'a Names,
    numbers: &'a Numbers,
    out: NanosTrace,
    origin: u64,
    /// The row of each stream.
    rows: Vec<Row>,
    row_names: Vec<String>,
    threads: Vec<u32>,
    /// The task on each stream, Paraver's state, and its begin.
    now: Vec<Now>,
    /// Shown state of each stream.
    showing: Vec<Showing>,
    /// Tasks that exist.
    tasks: HashMap<(u32, u64), LiveTask>,
    /// Number of ready tasks of each process.
    ready: Vec<u64>,
    live: Vec<u64>,
    /// Halves that wait for the other, by domain's name and id: sent or received.
    halves: HashMap<(u32, u64), VecDeque<UnmatchedMessage>>,
}

/// A task that exists.
#[derive(Clone, Copy, Default)]
struct LiveTask {
    kind: u32,
    is_ready: bool,
}

/// A half of a message that waits for the other.
#[derive(Clone, Copy)]
struct UnmatchedMessage {
    sends: bool,
    row: Row,
    at: u64,
    size: u64,
}

#[derive(Clone, Copy, Default)]
struct Now {
    task: u64,
    since: u64,
    state: u32,
}

impl<'a> Writer<'a> {
    fn new(
        trace: &Trace,
        names: &'a Names,
        numbers: &'a Numbers,
        behaviour: Behaviour,
        out: NanosTrace,
    ) -> Writer<'a> {
        let processes = names.processes.iter().max().map_or(0, |last| *last as usize + 1);
        let mut writer = Writer {
            names,
            numbers,
            out,
            origin: trace.first_clock_ns().unwrap_or(0).max(0) as u64,
            rows: Vec::new(),
            row_names: Vec::new(),
            threads: vec![0; processes],
            now: vec![Now::default(); trace.streams().len()],
            showing: vec![Showing::new(behaviour); trace.streams().len()],
            tasks: HashMap::new(),
            ready: vec![0; processes],
            live: vec![0; processes],
            halves: HashMap::new(),
        };
        for process in &names.processes {
            let thread = writer.threads[*process as usize];
            writer.threads[*process as usize] += 1;
            writer.rows.push(Row { process: *process, thread, cpu: 0 });
        }
        let mut order: Vec<usize> = (0..writer.rows.len()).collect();
        order.sort_by_key(|row| (writer.rows[*row].process, writer.rows[*row].thread));
        for (cpu, row) in (0..).zip(&order) {
            writer.rows[*row].cpu = cpu;
        }
        writer.row_names = order
            .into_iter()
            .map(|row| {
                let Row { process, thread, .. } = writer.rows[row];
                let tid = trace.streams()[row].tid().unwrap_or(0);
                format!("THREAD 1.{}.{} ({tid})", process + 1, thread + 1)
            })
            .collect();
        writer
    }

    fn take(&mut self, item: &Item<'_>) {
        let at = item.at.saturating_sub(self.origin);
        match item.lane {
            Lane::Thread(thread) => self.thread_shows(thread as usize, at, &item.shown),
            Lane::Task { process, .. } => self.task_moves(process, at, &item.shown, item.thread as usize),
        }
    }

    fn key(&self, process: u32, key: u32) -> u32 {
        let name = self.names.name(process, Space::Key, u64::from(key));
        KEYS + self.numbers.keys.get(&name).copied().unwrap_or(0)
    }

    fn thread_shows(&mut self, thread: usize, at: u64, shown: &Shown<'_>) {
        let (row, process) = (self.rows[thread], self.names.processes[thread]);
        let state = |writer: &Self, state: u32| {
            let name = writer.names.name(process, Space::State, u64::from(state));
            u64::from(writer.numbers.states.get(&name).copied().unwrap_or(state))
        };
        match shown {
            Shown::StateStart(number) => {
                let value = state(self, *number);
                self.out.events(row, at, [(STATE, value)]);
                self.showing[thread].take(shown);
                self.show_state(thread, at);
            }
            Shown::StateEnd(_) => {
                self.out.events(row, at, [(STATE, 0)]);
                self.showing[thread].take(shown);
                self.show_state(thread, at);
            }
            Shown::SubstateStart(number) => {
                let value = state(self, *number);
                self.out.events(row, at, [(SUBSTATE, value)]);
            }
            Shown::SubstateEnd(_) => self.out.events(row, at, [(SUBSTATE, 0)]),
            Shown::BurstStart { key, value } | Shown::Point { key, value } => {
                let ty = self.key(process, *key);
                self.out.events(row, at, [(ty, *value)]);
            }
            Shown::BurstEnd { key, .. } => {
                let ty = self.key(process, *key);
                self.out.events(row, at, [(ty, 0)]);
            }
            Shown::Composite(pairs) => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| (self.key(process, key), value)).collect();
                self.out.events(row, at, pairs);
            }
            Shown::Send(m) | Shown::Receive(m) => {
                let name = self.names.name(process, Space::Domain, u64::from(m.domain));
                let domain = self.numbers.domains.get(&name).copied().unwrap_or(m.domain);
                let size = if m.key == 0 { m.id } else { m.value };
                // Ids of tasks' own ways are those of a process.
                let id = if m.domain == i::DOMAIN_TASK { m.id ^ u64::from(process) << 48 } else { m.id };
                self.half((domain, id), matches!(shown, Shown::Send(_)), row, at, size);
            }
            _ => {}
        }
    }

    fn half(&mut self, message: (u32, u64), sends: bool, row: Row, at: u64, size: u64) {
        let here = UnmatchedMessage { sends, row, at, size };
        let waiting = self.halves.entry(message).or_default();
        match waiting.front().copied() {
            Some(there) if there.sends != sends => {
                waiting.pop_front();
                let (from, to) = if sends { (here, there) } else { (there, here) };
                self.out.message((from.row, from.at), (to.row, to.at), from.size, message.0);
            }
            _ => waiting.push_back(here),
        }
        if self.halves.get(&message).is_some_and(VecDeque::is_empty) {
            self.halves.remove(&message);
        }
    }

    /// Which task is on which thread: Nanos++'s keys of the running task, and of the tasks there are.
    fn task_moves(&mut self, process: u32, at: u64, shown: &Shown<'_>, by: usize) {
        match *shown {
            Shown::Created { task, kind, .. } => {
                self.tasks.insert((process, task), LiveTask { kind, is_ready: true });
                self.live[process as usize] += 1;
                self.ready[process as usize] += 1;
                self.derived(by, at, &[(LIVE_TASKS, self.live[process as usize])]);
                self.derived(by, at, &[(READY_TASKS, self.ready[process as usize])]);
            }
            Shown::Ready { task } => self.is_ready(process, task, true, by, at),
            Shown::Resume { task, thread } => {
                self.is_ready(process, task, false, by, at);
                let kind = self.tasks.get(&(process, task)).map_or(0, |task| task.kind);
                let named = self.names.get(process, Space::Kind, u64::from(kind)).unwrap_or_default();
                let number = |of: &BTreeMap<String, u64>, name| of.get(name).copied().unwrap_or(0);
                let function = number(&self.numbers.kinds, &named.name);
                let location = number(&self.numbers.locations, &named.description);
                let running = [(USER_FUNCTION, function), (USER_LOCATION, location), (WD_ID, task)];
                self.derived(thread as usize, at, &running);
                self.now[thread as usize].task = task;
                self.show_state(thread as usize, at);
            }
            Shown::Suspend { task, thread, last } => {
                if self.now[thread as usize].task == task {
                    let none = [(USER_FUNCTION, 0), (USER_LOCATION, 0), (WD_ID, 0)];
                    self.derived(thread as usize, at, &none);
                    self.now[thread as usize].task = 0;
                    self.show_state(thread as usize, at);
                }
                if last {
                    self.is_ready(process, task, false, by, at);
                    if self.tasks.remove(&(process, task)).is_some() {
                        self.live[process as usize] -= 1;
                        self.derived(by, at, &[(LIVE_TASKS, self.live[process as usize])]);
                    }
                }
            }
            _ => {}
        }
    }

    fn is_ready(&mut self, process: u32, task: u64, now: bool, by: usize, at: u64) {
        let Some(known) = self.tasks.get_mut(&(process, task)) else { return };
        if known.is_ready == now {
            return;
        }
        known.is_ready = now;
        let ready = &mut self.ready[process as usize];
        *ready = if now { *ready + 1 } else { *ready - 1 };
        self.derived(by, at, &[(READY_TASKS, self.ready[process as usize])]);
    }

    /// Values of keys that the program does not have itself, on a thread.
    fn derived(&mut self, thread: usize, at: u64, values: &[(u32, u64)]) {
        let numbers = self.numbers;
        let wanted = values.iter().filter(|(key, _)| !numbers.has(*key));
        self.out.events(self.rows[thread], at, wanted.map(|(key, value)| (KEYS + key, *value)));
    }

    /// Closes the state record of the thread, and begins one for its current state.
    fn show_state(&mut self, thread: usize, at: u64) {
        let shown = self.showing[thread].of(ShownPart::States).last().copied();
        let process = self.names.processes[thread];
        let Now { since, state, task, .. } = self.now[thread];
        self.out.state(self.rows[thread], since, at, state);
        let class_of = |number: u64| {
            self.names.get(process, Space::State, number).map_or(class::USEFUL, |named| named.number)
        };
        let state = match shown.map(class_of) {
            None if task != 0 => 1,
            None => 0,
            Some(class::USEFUL) => 1,
            Some(class::RUNTIME | class::SCHEDULING | class::CREATION | class::YIELD) => 7,
            Some(class::SYNCHRONISATION | class::LOCK) => 5,
            Some(class::COMMUNICATION) => 3,
            Some(class::STOPPED) => 9,
            Some(_) => 0,
        };
        self.now[thread] = Now { task, since: at, state };
    }

    fn finish(mut self) -> NanosTrace {
        let ends: Vec<u64> = self.now.iter().map(|now| now.since).collect();
        let end = ends.iter().copied().max().unwrap_or(0);
        for thread in 0..self.now.len() {
            self.show_state(thread, end);
        }
        self.out
    }
}
