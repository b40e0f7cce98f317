//! Call paths in `taskscope report`.

use crate::verbs::choices::Choice;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::Column;
use taskscope_view::{PathsOptions, PathsView, TOP_PATHS, TableOptions};

/// Options of call paths.
#[derive(clap::Args)]
pub struct PathsArgs {
    /// Views of the call paths to print.
    #[arg(long, value_name = "VIEW", value_delimiter = ',', value_enum)]
    pub view: Vec<Choice<PathsView>>,
    /// Sort call paths by this column or metric (taken_lock_wait_ns, given_barrier_ns, shared_idle_ns, …).
    #[arg(long, value_name = "COLUMN", value_enum)]
    pub sort: Option<Choice<Column>>,
    /// Show the runtime's frames in call paths.
    #[arg(long)]
    pub runtime_frames: bool,
    /// Attribute a task's callers by its creation or, in traces, by its execution. Profiles have the creation only.
    #[arg(long, value_name = "CONTEXT", value_enum, default_value_t)]
    pub task_context: Choice<TaskContext>,
}

/// The requested call paths.
pub struct PathsRequest {
    /// Whether they are requested by name.
    pub is_asked: bool,
    /// The views; the usual ones by default.
    pub views: Vec<PathsView>,
    /// The column by which rows are sorted; by default it depends on the data.
    pub sort: Option<Column>,
    /// Whether the runtime's frames are shown.
    pub runtime_frames: bool,
    /// The callers of tasks.
    pub context: TaskContext,
    /// Rows of each table, if given.
    pub top: Option<usize>,
}

impl PathsRequest {
    /// Takes the arguments; `by_section` if the section is named.
    pub fn of(args: PathsArgs, by_section: bool, top: Option<usize>) -> PathsRequest {
        let is_asked = by_section || !args.view.is_empty() || args.sort.is_some() || args.runtime_frames;
        let mut views: Vec<PathsView> = args.view.into_iter().map(|choice| choice.0).collect();
        if views.is_empty() {
            views = PathsView::USUAL.to_vec();
        }
        let (sort, context) = (args.sort.map(|choice| choice.0), args.task_context.0);
        let runtime_frames = args.runtime_frames;
        PathsRequest { is_asked, views, sort, runtime_frames, context, top }
    }

    /// Output options.
    pub fn options(&self, width: usize, samples_alone: bool) -> PathsOptions {
        PathsOptions {
            views: self.views.clone(),
            sort: self.sort,
            runtime: self.runtime_frames,
            top: self.top.unwrap_or(20),
            width,
            samples_alone,
        }
    }

    /// Options of the outermost call paths: the end of the report on a run with samples alone.
    pub fn short_options(&self, width: usize) -> PathsOptions {
        let (views, top) = (vec![PathsView::TopDown], self.top.unwrap_or(10));
        PathsOptions { views, top, ..self.options(width, true) }
    }

    /// The tables of JSON and pages.
    pub fn whole_tables(&self) -> TableOptions {
        TableOptions::whole(self.runtime_frames, self.sort, self.top.unwrap_or(TOP_PATHS))
    }
}
