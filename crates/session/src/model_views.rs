//! The views of a trace's models, kept for any time at any zoom.
//!
//! These are the views that `emulate` writes for Paraver: rows are threads, CPUs, or ranks of a breakdown. A view is
//! one type of a family, such as `cpu.13`, nOS-V's subsystem of the thread on each CPU. [`ModelViews::open`] reads the
//! list of views. The trace is replayed when a view is first requested: for a small trace once for all views, else for
//! the requested one. Results of a pass over a large trace are kept in a file beside the trace's cache, so that no view
//! is replayed twice.

use crate::cache::{self, Cache, Key};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use taskscope_check::emulation;
use taskscope_execution::Column;
use taskscope_execution::lod::{FlagRules, Flags, Marks, Pyramid, Values};
use taskscope_execution::view::{NoViews, ViewChange, ViewDescription, ViewFamily, ViewObserver, ViewType};
use taskscope_model::{DOUBT_TYPE, Machine, MachineOptions, PLAIN_CPU_TYPES, System};
use taskscope_trace::{OpenError, OpenOptions, Trace};

/// Maximum events for which one pass keeps all views; beyond it, only the requested one.
pub const ALL_AT_ONCE_EVENTS: u64 = 3_000_000;

/// Blocks of a row in its view's file: two of its values, nine of its pyramid.
const OF_ROW: usize = 11;

/// One type of a family of views. Written `thread.4`, `cpu.13`, `nosv-breakdown.17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewName {
    /// The family.
    pub family: ViewFamily,
    /// The type's number, as in Paraver.
    pub number: u32,
}

impl fmt::Display for ViewName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.family.file_name(), self.number)
    }
}

impl FromStr for ViewName {
    type Err = ();

    fn from_str(text: &str) -> Result<ViewName, ()> {
        let (family, number) = text.rsplit_once('.').ok_or(())?;
        let family = ViewFamily::ALL.into_iter().find(|view| view.file_name() == family).ok_or(())?;
        Ok(ViewName { family, number: number.parse().map_err(|_| ())? })
    }
}

/// A row of a view: its values over time, and their summary at any zoom.
#[derive(Clone, Debug, Default)]
pub struct ValueRow {
    /// Its values with their begins; times are nanoseconds of the trace's clock, 0 is "nothing".
    pub values: Values,
    /// Its levels of detail.
    pub pyramid: Pyramid,
}

impl ValueRow {
    /// Builds the levels of detail.
    pub fn of(values: Values) -> ValueRow {
        ValueRow { pyramid: Pyramid::build(&values, &FlagRules::default()), values }
    }
}

/// A view that was played.
#[derive(Clone, Debug, Default)]
pub struct KeptView {
    /// Its title, as in Paraver.
    pub title: String,
    /// Words for those of its values that it shows, those shown longest first.
    pub labels: Vec<(i64, String)>,
    /// Row by row.
    pub rows: Vec<ValueRow>,
    /// Uncertain intervals of each row; none for a family without such marks.
    pub doubts: Vec<Marks>,
}

impl KeptView {
    /// A view with these labels of its values.
    fn of(title: &str, words: Vec<(i64, String)>, rows: Vec<ValueRow>, doubts: Vec<Marks>) -> KeptView {
        let shown = if words.is_empty() { FxHashMap::default() } else { shown_for(&rows) };
        let mut labels: Vec<(i64, String)> =
            words.into_iter().filter(|(value, _)| shown.contains_key(value)).collect();
        labels.sort_by_key(|(value, _)| std::cmp::Reverse(shown[value]));
        KeptView { title: title.trim().to_string(), labels, rows, doubts }
    }

    /// Whether it never shows anything.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.values.value.iter().all(|value| *value == 0))
    }
}

/// Time for which each value is shown, in nanoseconds over all rows.
fn shown_for(rows: &[ValueRow]) -> FxHashMap<i64, u64> {
    let times_in_row = |row: &ValueRow| {
        let mut times: FxHashMap<i64, u64> = FxHashMap::default();
        let Values { start, value, end } = &row.values;
        let ends = start.iter().skip(1).chain(std::iter::once(end));
        for ((start, end), value) in start.iter().zip(ends).zip(value.iter()) {
            let sum = times.entry(*value).or_default();
            *sum = sum.saturating_add(end.saturating_sub(*start));
        }
        times
    };
    let join = |mut left: FxHashMap<i64, u64>, right: FxHashMap<i64, u64>| {
        for (value, ns) in right {
            let sum = left.entry(value).or_default();
            *sum = sum.saturating_add(ns);
        }
        left
    };
    rows.par_iter().map(times_in_row).reduce(FxHashMap::default, join)
}

/// The header of a view's file, besides its columns.
#[derive(Serialize, Deserialize)]
struct StoredView {
    title: String,
    labels: Vec<(i64, String)>,
    /// End of each row.
    ends: Vec<u64>,
    /// Uncertain intervals of each row: begin, end.
    doubts: Vec<Vec<(u64, u64)>>,
}

/// The views of a trace.
pub struct ModelViews {
    trace: Trace,
    system: System,
    families: Vec<(ViewFamily, ViewDescription)>,
    kept: Mutex<FxHashMap<ViewName, Arc<KeptView>>>,
    /// Held during a replay, so that it is done once.
    playing: Mutex<()>,
    played: AtomicU64,
    stop: AtomicBool,
    root: PathBuf,
    /// State of the trace when it was opened, if views may be kept in files.
    key: Option<Key>,
    /// Maximum number of events for which one pass keeps all views.
    all_at_once: u64,
}

/// Locks a mutex, also after a panic of its holder: the guarded value is always replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const OPTIONS: MachineOptions = MachineOptions { all_models: false, breakdown: true };

impl ModelViews {
    /// Reads the list of views of the trace in `root`.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn open(root: &Path) -> Result<ModelViews, OpenError> {
        let trace = Trace::open(root, &OpenOptions { own_events: false, ..OpenOptions::default() })?;
        let (system, _) = emulation::system_of(&trace);
        let machine = Machine::new(&system, OPTIONS, NoViews);
        let families = ViewFamily::ALL.into_iter().filter_map(|view| Some((view, machine.describe(view)?)));
        let mut families: Vec<_> = families.filter(|(_, found)| !found.rows.is_empty()).collect();
        for (_, description) in families.iter_mut().filter(|(view, _)| *view == ViewFamily::Cpu) {
            let plain = PLAIN_CPU_TYPES.iter();
            let plain = plain.map(|(number, title)| ViewType {
                number: *number,
                title: title.to_string(),
                values: Vec::new(),
            });
            description.types.splice(0..0, plain);
        }
        drop(machine);
        Ok(ModelViews {
            trace,
            system,
            families,
            kept: Mutex::default(),
            playing: Mutex::default(),
            played: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            root: root.to_path_buf(),
            key: None,
            all_at_once: ALL_AT_ONCE_EVENTS,
        })
    }

    /// Keeps views from now on in files beside the cache of the trace, which had this key when it was opened,
    /// unless one pass keeps all, as it does up to so many events.
    pub fn keep_files(&mut self, key: Option<Key>, all_at_once_events: u64) {
        self.key = key;
        self.all_at_once = all_at_once_events;
    }

    /// Families with their rows and types; labels of task types are known only of kept views.
    pub fn families(&self) -> &[(ViewFamily, ViewDescription)] {
        &self.families
    }

    /// The stream of each row of the view of threads, as its directory below the trace's root.
    pub fn thread_streams(&self) -> impl Iterator<Item = &str> {
        let streams = self.trace.streams();
        self.system
            .threads
            .iter()
            .map(|thread| streams.get(thread.stream).map_or("", |s| s.relative_path.as_str()))
    }

    /// The replayed share of the events, while a view is being made.
    pub fn progress(&self) -> Option<f64> {
        let played = self.played.load(Ordering::Relaxed);
        (played > 0).then(|| played as f64 / self.trace.event_count().max(1) as f64)
    }

    /// Stops running replays.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The view, if it was played already.
    pub fn kept(&self, name: ViewName) -> Option<Arc<KeptView>> {
        lock(&self.kept).get(&name).cloned()
    }

    /// The view; replays the trace if necessary. `None` for an unknown view, or after [`stop`](Self::stop).
    pub fn view(&self, name: ViewName) -> Option<Arc<KeptView>> {
        let (_, description) = self.families.iter().find(|(family, _)| *family == name.family)?;
        description.types.iter().find(|known| known.number == name.number)?;
        if let Some(kept) = self.kept(name) {
            return Some(kept);
        }
        let _turn = lock(&self.playing);
        if self.kept(name).is_none() {
            let found = if self.trace.event_count() <= self.all_at_once {
                self.play(None)?
            } else if let Some(stored) = self.stored(name) {
                vec![(name, Arc::new(stored))]
            } else {
                let found = self.play(Some(name))?;
                for (name, view) in &found {
                    self.store(*name, view);
                }
                found
            };
            lock(&self.kept).extend(found);
        }
        self.kept(name)
    }

    /// A view from its file; `None` if there is none that fits.
    pub fn stored(&self, name: ViewName) -> Option<KeptView> {
        let cache: Cache<StoredView> = Cache::open_part(&self.root, &name.to_string(), self.key.as_ref()?)?;
        let ends = &cache.header.ends;
        if cache.blocks().len() != ends.len() * OF_ROW {
            return None;
        }
        let rows = cache.blocks().chunks_exact(OF_ROW).zip(ends).map(|(at, end)| {
            let (start, value) = (at[0].clone(), at[1].clone());
            let values = Values {
                start: Column::shared(cache.bytes(), start)?,
                value: Column::shared(cache.bytes(), value)?,
                end: *end,
            };
            let pyramid =
                Pyramid::from_stored(cache.bytes(), at[2..].try_into().ok()?, &FlagRules::default())?;
            (values.start.len() == values.value.len()).then_some(ValueRow { values, pyramid })
        });
        let rows = rows.collect::<Option<_>>()?;
        let StoredView { title, labels, doubts, .. } = cache.header;
        Some(KeptView { title, labels, rows, doubts: doubts.into_iter().map(uncertain).collect() })
    }

    /// Writes a view's file, unless the trace has changed since it was opened. A failure is ignored: the view is then
    /// replayed next time.
    fn store(&self, name: ViewName, view: &KeptView) {
        let Some(key) = self.key.as_ref().filter(|key| Key::of(&self.root).as_ref() == Some(key)) else {
            return;
        };
        let more = StoredView {
            title: view.title.clone(),
            labels: view.labels.clone(),
            ends: view.rows.iter().map(|row| row.values.end).collect(),
            doubts: view.doubts.iter().map(|row| row.stretches().collect()).collect(),
        };
        let blocks = view.rows.iter().flat_map(|row| {
            let values = [row.values.start.as_bytes(), row.values.value.as_bytes()];
            values.into_iter().chain(row.pyramid.stored())
        });
        let blocks: Vec<&[u8]> = blocks.collect();
        let _ = cache::save_part(&self.root, &name.to_string(), key, &more, &blocks, &self.stop);
    }

    /// Plays the trace and keeps one view, or all.
    fn play(&self, only: Option<ViewName>) -> Option<Vec<(ViewName, Arc<KeptView>)>> {
        let breakdown = only.is_none_or(|name| !matches!(name.family, ViewFamily::Thread | ViewFamily::Cpu));
        let mut collector = Collector::default();
        let origin = self.trace.first_clock_ns().unwrap_or(0);
        collector.origin = origin;
        for (family, description) in &self.families {
            for known in &description.types {
                let name = ViewName { family: *family, number: known.number };
                if only.is_none_or(|only| only == name) {
                    collector.rows.insert(name, vec![Values::default(); description.rows.len()]);
                    let doubts = ViewName { number: DOUBT_TYPE, ..name };
                    collector.doubts.insert(doubts, vec![Values::default(); description.rows.len()]);
                }
            }
        }
        let options = MachineOptions { breakdown, ..OPTIONS };
        let mut machine = Machine::new(&self.system, options, collector);
        let played = emulation::play(&self.trace, &mut machine, |played, machine| {
            // `emulate` and `check` report violations; here they would only take memory.
            drop(machine.take_violations());
            drop(machine.take_notes());
            self.played.store(played.events, Ordering::Relaxed);
            if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.played.store(0, Ordering::Relaxed);
        if played.interrupted {
            return None;
        }
        let described: Vec<(ViewFamily, ViewDescription)> =
            (self.families.iter()).filter_map(|(view, _)| Some((*view, machine.describe(*view)?))).collect();
        let end = nanos(origin, self.trace.duration_ns());
        let Collector { rows, doubts, .. } = machine.into_observer();
        let doubts: FxHashMap<ViewFamily, Vec<Marks>> = (doubts.into_iter())
            .filter(|(_, rows)| rows.iter().any(|row| !row.start.is_empty()))
            .map(|(name, rows)| (name.family, rows.iter().map(|row| uncertain_in(row, end)).collect()))
            .collect();
        let kept = rows.into_par_iter().map(|(name, mut rows)| {
            rows.iter_mut().filter(|row| !row.start.is_empty()).for_each(|row| row.end = row.end.max(end));
            let rows = rows.into_par_iter().map(ValueRow::of).collect();
            let all = described.iter().chain(&self.families).filter(|(view, _)| *view == name.family);
            let known = all.flat_map(|(_, d)| &d.types).find(|known| known.number == name.number);
            let (title, labels) = known.map(|t| (t.title.clone(), t.values.clone())).unwrap_or_default();
            let doubts = doubts.get(&name.family).cloned().unwrap_or_default();
            (name, Arc::new(KeptView::of(&title, labels, rows, doubts)))
        });
        Some(kept.collect())
    }
}

fn uncertain(stretches: Vec<(u64, u64)>) -> Marks {
    Marks::new(Flags::UNCERTAIN, stretches)
}

/// The uncertain intervals in a row of marks, which extends to `end`.
fn uncertain_in(row: &Values, end: u64) -> Marks {
    let ends = row.start.iter().skip(1).chain(std::iter::once(&end));
    let stretches = row.start.iter().zip(ends).zip(row.value.iter());
    uncertain(stretches.filter(|(_, value)| **value != 0).map(|((start, end), _)| (*start, *end)).collect())
}

/// A time of views on the trace's clock.
fn nanos(origin: i64, time_ns: i64) -> u64 {
    origin.saturating_add(time_ns).max(0) as u64
}

/// Keeps the changes of the wanted views.
#[derive(Default)]
struct Collector {
    origin: i64,
    rows: FxHashMap<ViewName, Vec<Values>>,
    /// Uncertain intervals of the rows of their families.
    doubts: FxHashMap<ViewName, Vec<Values>>,
}

impl ViewObserver for Collector {
    #[inline]
    fn view_change(&mut self, change: ViewChange) {
        let name = ViewName { family: change.view, number: change.view_type };
        let views = if change.view_type == DOUBT_TYPE { &mut self.doubts } else { &mut self.rows };
        if let Some(row) = views.get_mut(&name).and_then(|rows| rows.get_mut(change.row as usize)) {
            row.write(nanos(self.origin, change.time_ns), change.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_views_round_trip_and_nothing_else_is_one() {
        for family in ViewFamily::ALL {
            let name = ViewName { family, number: 113 };
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in ["", "thread", "thread.", "thread.-1", "threads.4", "cpu.4.5", ".4", "state"] {
            assert_eq!(text.parse::<ViewName>(), Err(()), "{text}");
        }
    }
}
