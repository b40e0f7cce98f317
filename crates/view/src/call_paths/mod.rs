//! Call paths as text and as JSON: top-down, bottom-up, flat.

pub(crate) mod columns;
mod difference;
pub mod json;
pub(crate) mod profile_facts;
mod python;
mod rows;
mod text;
mod totals;

pub use difference::{PathsDifferenceReport, paths_difference};
pub use profile_facts::incomplete_profiles;
pub use totals::{profile_efficiency, profile_summary, profile_times};

use crate::filter_notes::notes_of_filter;
use crate::format::{count, counted};
use crate::names::missing_names;
use crate::profile_waits::{ProfileWaits, missing_waits};
use anstyle::Style;
use taskscope_analysis::call_paths::{CallPathOptions, SampleQuality, TaskContext, profile_with_samples};
use taskscope_analysis::call_views::{Column, FlatBy, FlatRow};
use taskscope_execution::Execution;
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{Metric, NodeId, Profile, conservation};
use taskscope_session::{KeptModules, NamedNode, Session};
use taskscope_symbol::Missing;

/// A view of call paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathsView {
    /// Call paths from the program's start inwards.
    TopDown,
    /// Call paths from the innermost frames to their callers.
    BottomUp,
    /// Functions, lines or loops, wherever they were called.
    Flat(FlatBy),
}

impl PathsView {
    /// The default views.
    pub const USUAL: [PathsView; 3] =
        [PathsView::TopDown, PathsView::BottomUp, PathsView::Flat(FlatBy::Function)];
}

/// Options of the call-path views.
#[derive(Clone, Debug)]
pub struct PathsOptions {
    /// The views, in this order.
    pub views: Vec<PathsView>,
    /// The sort column; chosen by the available data if not given.
    pub sort: Option<Column>,
    /// Whether the runtime's frames are shown.
    pub runtime: bool,
    /// Rows of each view.
    pub top: usize,
    /// Characters of a line.
    pub width: usize,
    /// Whether samples are all that is known: waiting and its causes are not shown.
    pub samples_alone: bool,
}

impl Default for PathsOptions {
    fn default() -> Self {
        let (views, top) = (PathsView::USUAL.to_vec(), 20);
        PathsOptions { views, sort: None, runtime: false, top, width: 100, samples_alone: false }
    }
}

/// A named tree with its notes.
pub struct CallPaths {
    /// Paths with names.
    pub tree: CallTree,
    /// The reasons for missing names.
    pub missing: Vec<Missing>,
    /// Samples of a trace; none for a file of a profile.
    pub quality: Option<SampleQuality>,
    /// Number of paths that found no room in the recorder.
    pub unfit: u64,
    /// Waits of threads for each other, of a profile.
    pub waits: ProfileWaits,
    /// Effects of a filter on the numbers, if there was one.
    pub filtered: Vec<String>,
    /// A note on functions of Python that are not known.
    pub unknown_python: Option<String>,
}

/// The samples of a run in its call paths.
#[derive(Debug, Default)]
pub(crate) struct SampleNodes {
    /// The named step of each node of the profile.
    pub nodes: Vec<NamedNode>,
    /// The profile's node of each sample of the whole run.
    pub sample_nodes: Vec<NodeId>,
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Characters that a name has in any case.
const MIN_NAME_COLUMNS: usize = 8;

/// Default maximum of rows per view in JSON.
pub const TOP_PATHS: usize = 1000;

impl CallPaths {
    /// The call paths of a recorded run.
    pub fn from_session(session: &Session, task_context: TaskContext) -> CallPaths {
        CallPaths::from_execution(session, &session.execution, task_context)
    }

    /// The call paths of an execution of a session, which may have a part of the samples.
    pub(crate) fn from_execution(
        session: &Session,
        execution: &Execution,
        task_context: TaskContext,
    ) -> CallPaths {
        CallPaths::with_samples_of(session, execution, task_context).0
    }

    /// The call paths of a recorded run, and the place of each of its samples in them.
    pub(crate) fn with_samples(session: &Session) -> (CallPaths, SampleNodes) {
        CallPaths::with_samples_of(session, &session.execution, TaskContext::Creation)
    }

    fn with_samples_of(
        session: &Session,
        execution: &Execution,
        task_context: TaskContext,
    ) -> (CallPaths, SampleNodes) {
        let (profile, quality, sample_nodes) =
            profile_with_samples(execution, CallPathOptions { task_context });
        let (paths, nodes) = CallPaths::named(&profile, KeptModules::in_trace(&session.root), Some(quality));
        (CallPaths { filtered: notes_of_filter(session), ..paths }, SampleNodes { nodes, sample_nodes })
    }

    /// Names the paths of a profile, with files that were kept of modules.
    pub fn of(profile: &Profile, kept: KeptModules, quality: Option<SampleQuality>) -> CallPaths {
        CallPaths::named(profile, kept, quality).0
    }

    fn named(
        profile: &Profile,
        kept: KeptModules,
        quality: Option<SampleQuality>,
    ) -> (CallPaths, Vec<NamedNode>) {
        let waits = ProfileWaits::of(profile, kept.clone());
        let (tree, missing, nodes) = taskscope_session::name_nodes(profile, kept);
        let unknown_python =
            python::unknown_functions(profile.modules.iter().map(|module| module.path.as_str()));
        let paths = CallPaths {
            tree,
            missing,
            quality,
            unfit: profile.tree.unfit(),
            waits,
            filtered: Vec::new(),
            unknown_python,
        };
        (paths, nodes)
    }

    /// Whether times are those of the samples. In traces they are the workers' ledger, apportioned among samples.
    fn is_sampled(&self) -> bool {
        self.quality.is_none_or(|quality| quality.is_time_sampled)
    }

    fn shown(&self, runtime: bool) -> CallTree {
        if runtime { self.tree.functions_and_runtime() } else { self.tree.functions() }
    }

    /// The tree of the flat views.
    fn shown_flat(&self, by: FlatBy, runtime: bool) -> CallTree {
        match by {
            FlatBy::Function => self.shown(runtime),
            FlatBy::Loop | FlatBy::Line if runtime => self.tree.clone(),
            FlatBy::Loop | FlatBy::Line => self.tree.without_runtime(),
        }
    }

    fn note_lines(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let total = |metric| self.tree.tree.total(metric);
        if let Some(quality) = self.quality.filter(|quality| quality.samples > 0) {
            notes.push(format!(
                "{}: {} followed to the root of the stack, {} taken inside the runtime, \
                 whatever time each represents",
                counted(quality.samples, "sample"),
                count(quality.reached_root),
                count(quality.in_runtime)
            ));
            notes.push(if quality.is_time_sampled {
                "times (samples) are CPU time of the threads' samples; waiting, blame and idleness are of events"
                    .to_string()
            } else if quality.knows_samples_alone {
                "time is that of the threads: the kernel has when they ran, had no CPU and were blocked, samples have the place"
                    .to_string()
            } else {
                "time is the workers' capacity: each state's time at a place is divided among the samples taken there"
                    .to_string()
            });
            if quality.other_threads_ns > 0 && !quality.knows_samples_alone {
                notes.push(format!(
                    "{} of the time is of threads that are not workers, outside the capacity",
                    crate::format::time(quality.other_threads_ns)
                ));
            }
            if quality.levels_unknown > 0 {
                notes.push(format!(
                    "the tasks on the stack are not known of {}",
                    counted(quality.levels_unknown, "sample")
                ));
            }
        } else if self.quality.is_some() {
            notes.push(
                "no samples: time by path is not known; waiting and blame are at the constructs' own lines, idleness \
                 beside serial code is at the function that forks next or forked last. To take samples: \
                 record --sample 100 (`ulimit -i` limits their timers)"
                    .to_string(),
            );
        } else if total(Metric::SAMPLES) > 0 {
            notes.push(format!(
                "{}; times (samples) are theirs, waiting, blame and idleness are of events",
                counted(total(Metric::SAMPLES), "sample")
            ));
        } else {
            notes.push(
                "no samples: time by path is not known; waiting and blame are at the constructs' own lines. The run was short, \
                 the system had no timers left (`ulimit -i`), or the program blocks SIGURG"
                    .to_string(),
            );
        }
        if self.tree.totals.keys().any(|name| name.starts_with("no_cpu.")) {
            notes.push(
                "waiting includes the time without a CPU (estimated), which the states set apart: no_cpu.NAME of run_totals"
                    .to_string(),
            );
        }
        for balance in conservation(&self.tree.tree).iter().filter(|balance| !balance.holds()) {
            notes.push(format!(
                "of {}, {} ns were waited, {} charged to one, {} shared: the recorder lost some",
                balance.wait.name(),
                balance.taken,
                balance.given,
                balance.shared
            ));
        }
        if self.unfit > 0 {
            notes.push(format!(
                "the recorder's memory was full: {} times, something was counted further out than it was",
                count(self.unfit)
            ));
        }
        notes.extend(self.filtered.iter().chain(&self.unknown_python).cloned());
        notes.extend(missing_waits(&self.tree.totals));
        notes.extend(missing_names(&self.missing).iter().map(|why| format!("names are missing: {why}")));
        notes
    }
}

fn flat_name(row: &FlatRow) -> String {
    match (&row.label, row.marker) {
        (Some(label), _) if label.what == StepKind::Line && !label.function.is_empty() => {
            format!("{}  in {}", label.text(), label.function)
        }
        (Some(label), _) if !label.module.is_empty() && label.what == StepKind::Function => {
            format!("{}  [{}]", label.text(), label.module)
        }
        (Some(label), _) => label.text(),
        (None, Some(marker)) => marker.label(),
        (None, None) => String::new(),
    }
}
