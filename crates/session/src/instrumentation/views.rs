//! Shown states of instrumented threads or tasks, as rows for the viewer, for any time at any zoom.
//!
//! A view has one kind (states, sub-states, the bursts of a key, tasks) for all threads or all tasks, through one
//! behaviour. A lane has a row for each level of its stack, the outermost on top; without stacking it has one. The row
//! of a task is empty while the task is on no thread or below another one. The trace is replayed when a view is first
//! requested.

use super::drawing::Drawing;
use super::drawn::{Drawn, DrawnName, DrawnView};
use super::marks::Marks;
use super::{Names, Space, play};
use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskscope_trace::{OpenError, OpenOptions, Trace};

/// Views that are kept.
const KEPT: usize = 16;

/// The views of a trace's instrumentation.
pub struct Views {
    trace: Trace,
    names: Names,
    keys: Vec<String>,
    kept: Mutex<VecDeque<(DrawnName, Arc<DrawnView>)>>,
    /// Held during a replay, so that it is done once.
    playing: Mutex<()>,
    played: AtomicU64,
    stop: AtomicBool,
}

/// Locks a mutex, also after a panic of its holder: the guarded value is always replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Views {
    /// Reads the names in the trace in `root`.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn open(root: &Path) -> Result<Views, OpenError> {
        let trace = Trace::open(root, &OpenOptions::default())?;
        let names = Names::of(&trace);
        let keys: BTreeSet<&str> =
            names.all().filter(|(_, space, ..)| *space == Space::Key).map(|(.., n)| &*n.name).collect();
        let keys = keys.into_iter().map(str::to_owned).collect();
        Ok(Views {
            trace,
            names,
            keys,
            kept: Mutex::default(),
            playing: Mutex::default(),
            played: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }

    /// Whether the program is instrumented.
    pub fn is_known(&self) -> bool {
        self.names.all().next().is_some()
    }

    /// The names of all keys.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The available kinds with their labels.
    pub fn drawn(&self) -> Vec<(Drawn, String)> {
        let own = [(Drawn::States, "states"), (Drawn::Substates, "sub-states"), (Drawn::Tasks, "tasks")];
        let own = own.into_iter().map(|(what, label)| (what, label.to_owned()));
        let keys =
            (0..).zip(&self.keys).map(|(number, key)| (Drawn::Bursts(number), format!("bursts of {key}")));
        own.chain(keys).collect()
    }

    /// The marks of all threads: a pass over all events.
    pub fn marks(&self) -> Marks {
        Marks::of(&self.trace, &self.names)
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

    /// The view; replays the trace if necessary. `None` for an unknown view, or after [`stop`](Self::stop).
    pub fn view(&self, name: DrawnName) -> Option<Arc<DrawnView>> {
        if let Drawn::Bursts(key) = name.what {
            self.keys.get(key as usize)?;
        }
        let kept = || lock(&self.kept).iter().find(|(of, _)| *of == name).map(|(_, view)| view.clone());
        if let Some(known) = kept() {
            return Some(known);
        }
        let _turn = lock(&self.playing);
        if let Some(known) = kept() {
            return Some(known);
        }
        let view = Arc::new(self.play(name)?);
        let mut kept = lock(&self.kept);
        kept.push_front((name, view.clone()));
        kept.truncate(KEPT);
        Some(view)
    }

    fn play(&self, name: DrawnName) -> Option<DrawnView> {
        let key = match name.what {
            Drawn::Bursts(key) => Some(&**self.keys.get(key as usize)?),
            _ => None,
        };
        let mut drawing = Drawing::new(&self.trace, &self.names, name, key);
        let mut played = 0_u64;
        play(
            &self.trace,
            &self.names,
            name.behaviour,
            |_| {
                played += 1;
                if played.is_multiple_of(4096) {
                    self.played.store(played, Ordering::Relaxed);
                }
                true
            },
            |item| {
                drawing.take(&item);
                if self.stop.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        );
        self.played.store(0, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        Some(drawing.finish())
    }
}
