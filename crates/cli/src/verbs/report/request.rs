//! The arguments of `taskscope report`, parsed once into a typed request.

use super::call_paths::{PathsArgs, PathsRequest};
use super::graph_args::GraphArgs;
use super::shown::{ShownArgs, ShownRequest};
use crate::newest::UNNAMED;
use crate::opening::SelectionArgs;
use crate::output;
use crate::verbs::choices::SectionChoice;
use std::path::PathBuf;
use taskscope_session::selection::Selection;
use taskscope_view::Section;

/// Report where the workers' time went, and the causes of losses.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory; or a profile, or a directory of profiles [default: the newest in the working directory].
    #[arg(value_name = "TRACE", default_value = UNNAMED, hide_default_value = true)]
    pub trace: PathBuf,
    /// Print JSON (schemas: docs/report.schema.json, docs/causes.schema.json, docs/profile.schema.json).
    #[arg(long)]
    pub json: bool,
    /// Write the report as one self-contained HTML file, and print nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
    /// With --html: compare with an earlier run or set of runs; TRACE is the run after (see diff --help).
    #[arg(long, value_name = "BEFORE", requires = "html", conflicts_with_all = ["section", "top", "timeline"])]
    pub compare: Option<PathBuf>,
    /// With --html: show the numbers of many runs in the order of their starts, and the changes. DIR is a trace, or a
    /// directory of traces.
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "html", conflicts_with_all = ["section", "top", "timeline", "compare"])]
    pub history: Vec<PathBuf>,
    /// Print a text timeline instead (with --json: docs/timeline.schema.json).
    #[arg(long, conflicts_with_all = ["html", "section"])]
    pub timeline: bool,
    /// Parts to print.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    pub section: Vec<SectionChoice>,
    /// Maximum rows per table [default: 3; call paths: 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub top: Option<u16>,
    /// Summarize findings below this percentage of the workers' time in one line [default: 1].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub floor: Option<f64>,
    /// Suppress notices of this name; names of later recorder versions are accepted.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Output width in columns [default: the terminal's width, or 100].
    #[arg(long, value_name = "N")]
    pub width: Option<u16>,
    /// Begin as the summary of `record`, with this text about the trace.
    #[arg(long, value_name = "TEXT", hide = true)]
    pub recorded: Option<String>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub graph: GraphArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
    #[command(flatten)]
    pub paths: PathsArgs,
}

/// A share of 1 from a number of percent, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>();
    let share = number.map_err(|_| "not a number of percent".to_owned())? / 100.0;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("not between 0 and 100".to_owned()) }
}

/// The form of the report.
#[derive(Clone, Debug)]
pub enum Form {
    /// Lines for a person.
    Text,
    /// One JSON document.
    Json,
    /// An HTML page in this file.
    Page(PathBuf),
    /// A timeline of characters, or its JSON document.
    Timeline {
        /// Whether as JSON.
        json: bool,
    },
}

/// A request for a report.
pub struct Request {
    /// The trace or profile.
    pub trace: PathBuf,
    /// The form.
    pub form: Form,
    /// The named sections.
    pub sections: Vec<Section>,
    /// Whether all sections but those of the task graph are requested.
    pub all: bool,
    /// Rows of each table, if given.
    pub top: Option<usize>,
    /// Columns of the output.
    pub width: usize,
    /// Share of the workers' time below which findings share one line, if given.
    pub floor: Option<f64>,
    /// Notices that are not printed.
    pub allow: Vec<String>,
    /// Text about the trace, before the summary of `record`.
    pub recorded: Option<String>,
    /// The part of the trace.
    pub selection: Selection,
    /// Options of the task graph.
    pub graph: GraphArgs,
    /// Instrumentation.
    pub shown: ShownRequest,
    /// Call paths.
    pub paths: PathsRequest,
}

impl Request {
    /// Parses the arguments.
    ///
    /// # Errors
    /// If the selection cannot be understood, or options contradict each other.
    pub fn of(args: Args) -> anyhow::Result<Request> {
        let form = match (args.html, args.timeline, args.json) {
            (Some(file), ..) => Form::Page(file),
            (None, true, json) => Form::Timeline { json },
            (None, false, true) => Form::Json,
            (None, false, false) => Form::Text,
        };
        let top = args.top.map(usize::from);
        let sections = args.section.iter().filter_map(|choice| match choice {
            SectionChoice::One(section) => Some(*section),
            SectionChoice::All => None,
        });
        let sections: Vec<Section> = sections.collect();
        let names = |section| sections.contains(&section);
        Ok(Request {
            form,
            top,
            width: args.width.map(usize::from).or_else(output::terminal_width).unwrap_or(100),
            shown: ShownRequest::of(&args.shown, names(Section::Instrumentation))?,
            paths: PathsRequest::of(args.paths, names(Section::CallPaths), top),
            trace: args.trace,
            all: args.section.contains(&SectionChoice::All),
            sections,
            floor: args.floor,
            allow: args.allow,
            recorded: args.recorded,
            selection: args.selection.parse()?,
            graph: args.graph,
        })
    }

    /// Whether a section is named, or all are.
    pub fn names(&self, section: Section) -> bool {
        self.all || self.sections.contains(&section)
    }

    /// Whether nothing is requested by name.
    pub fn is_short(&self) -> bool {
        self.sections.is_empty() && !self.all && !self.paths.is_asked && !self.shown.is_asked
    }

    /// The requested sections of threads' time.
    pub fn run_sections(&self) -> Vec<Section> {
        if self.is_short() {
            return Section::SHORT.to_vec();
        }
        Section::OF_THREADS.into_iter().filter(|section| self.names(*section)).collect()
    }

    /// The requested sections of the task graph.
    pub fn graph_sections(&self) -> Vec<Section> {
        Section::OF_GRAPH.into_iter().filter(|section| self.sections.contains(section)).collect()
    }
}
