//! Marks of instrumented threads as intervals: states, bursts and points, with names.

use super::{Behaviour, Item, Lane, Names, Shown, Space, play};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;
use std::path::Path;
use taskscope_trace::{OpenError, OpenOptions, Trace};

/// The kind of a mark.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MarkKind {
    /// A state, or a change of it while states were hidden.
    State,
    /// A value of a key over a time.
    Burst,
    /// A value of a key at an instant: also the values of counters.
    Point,
}

impl MarkKind {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            MarkKind::State => "state",
            MarkKind::Burst => "burst",
            MarkKind::Point => "point",
        }
    }
}

/// A mark of a thread. A task that leaves the thread takes its marks with it: they end there, and begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Row of [`Marks::threads`].
    pub thread: u32,
    /// Begin, by the trace's clock.
    pub start: u64,
    /// End; that of a point is its begin; `None` if the recording has none.
    pub end: Option<u64>,
    /// Its kind.
    pub kind: MarkKind,
    /// Row of [`Marks::words`]: the state or key.
    pub name: u32,
    /// The value of a key.
    pub value: Option<u64>,
    /// Row of [`Marks::words`]: the name of the value, if it has one.
    pub value_name: Option<u32>,
    /// Row of [`Marks::words`]: unit of the values, if known.
    pub unit: Option<u32>,
}

/// A thread of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedThread {
    /// Its loom, as far as it is known.
    pub loom: String,
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
}

/// The marks of a trace, those of each thread by their ends.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Threads, in the order of the trace's streams.
    pub threads: Vec<MarkedThread>,
    /// Names and units.
    pub words: Vec<String>,
    /// All marks.
    pub marks: Vec<Mark>,
}

impl Marks {
    /// Reads the marks of the trace in `root`: a pass over all events.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn read(root: &Path) -> Result<Marks, OpenError> {
        let trace = Trace::open(root, &OpenOptions::default())?;
        let names = Names::of(&trace);
        Ok(Marks::of(&trace, &names))
    }

    /// The marks of an opened trace: a pass over all events.
    pub fn of(trace: &Trace, names: &Names) -> Marks {
        let mut builder = Builder {
            names,
            numbers: FxHashMap::default(),
            open: FxHashMap::default(),
            marks: Marks::default(),
        };
        builder.marks.threads = (trace.streams().iter())
            .map(|stream| MarkedThread {
                loom: stream.loom().unwrap_or_default().to_owned(),
                pid: stream.pid().unwrap_or(0),
                tid: stream.tid().unwrap_or(0),
            })
            .collect();
        play(
            trace,
            names,
            Behaviour::Stacked,
            |_| true,
            |item| {
                builder.take(&item);
                ControlFlow::Continue(())
            },
        );
        builder.finish()
    }
}

/// What has an end: a state, or a value of a key.
type What = (MarkKind, u32, Option<u64>);

struct Builder<'a> {
    names: &'a Names,
    /// Rows of words.
    numbers: FxHashMap<String, u32>,
    /// Begins of open marks, outer ones first.
    open: FxHashMap<(u32, What), Vec<u64>>,
    marks: Marks,
}

impl Builder<'_> {
    fn take(&mut self, item: &Item<'_>) {
        let Lane::Thread(thread) = item.lane else { return };
        let state = |number| (MarkKind::State, number, None);
        match item.shown {
            Shown::StateStart(number) | Shown::SubstateStart(number) => {
                self.begin(thread, state(number), item.at)
            }
            Shown::StateEnd(number) | Shown::SubstateEnd(number) => self.end(thread, state(number), item.at),
            Shown::BurstStart { key, value } => {
                self.begin(thread, (MarkKind::Burst, key, Some(value)), item.at)
            }
            Shown::BurstEnd { key, value } => self.end(thread, (MarkKind::Burst, key, Some(value)), item.at),
            Shown::Point { key, value } => {
                self.push(thread, (MarkKind::Point, key, Some(value)), item.at, Some(item.at));
            }
            Shown::Composite(pairs) => {
                for (key, value) in pairs.iter() {
                    self.push(thread, (MarkKind::Point, key, Some(value)), item.at, Some(item.at));
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, thread: u32, what: What, at: u64) {
        self.open.entry((thread, what)).or_default().push(at);
    }

    /// Ends the innermost one; an end without a begin is left to `check`.
    fn end(&mut self, thread: u32, what: What, at: u64) {
        if let Some(start) = self.open.get_mut(&(thread, what)).and_then(Vec::pop) {
            self.push(thread, what, start, Some(at));
        }
    }

    fn push(&mut self, thread: u32, (kind, number, value): What, start: u64, end: Option<u64>) {
        let process = self.names.processes[thread as usize];
        let space = if kind == MarkKind::State { Space::State } else { Space::Key };
        let named = self.names.get(process, space, u64::from(number)).unwrap_or_default();
        let name = self.names.name(process, space, u64::from(number));
        let value_name = value
            .filter(|value| self.names.has(process, Space::ValueOf(number), *value))
            .map(|value| self.names.name(process, Space::ValueOf(number), value));
        let mark = Mark {
            thread,
            start,
            end,
            kind,
            name: self.word(name),
            value,
            value_name: value_name.map(|name| self.word(name)),
            unit: (!named.unit.is_empty()).then(|| self.word(named.unit)),
        };
        self.marks.marks.push(mark);
    }

    fn word(&mut self, word: String) -> u32 {
        let next = self.marks.words.len() as u32;
        *self.numbers.entry(word).or_insert_with_key(|word| {
            self.marks.words.push(word.clone());
            next
        })
    }

    /// Adds the marks without an end.
    fn finish(mut self) -> Marks {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_unstable();
        for ((thread, what), starts) in open {
            starts.into_iter().for_each(|start| self.push(thread, what, start, None));
        }
        self.marks
    }
}
