//! Call paths in `taskscope report`, of traces and of profiles.

use super::report::Args;
use crate::messages::Failure;
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_analysis::call_paths::{CallPathOptions, TaskContext, profile_of};
use taskscope_analysis::call_views::Column;
use taskscope_profile::Profile;
use taskscope_profile::named::CallTree;
use taskscope_session::{KeptModules, Session, merge_profiles, profile_files};
use taskscope_view::{
    CallPathTables, CallPaths, PathsOptions, PathsView, ProfileReport, TOP_PATHS, format, profile_summary,
};

/// The sections of a report that a profile has.
const PROFILE_SECTIONS: [&str; 6] = ["summary", "efficiency", "time", "call-paths", "profile", "all"];

/// What only call paths know.
#[derive(clap::Args)]
pub struct PathsArgs {
    /// Views of the call paths: top-down, bottom-up, flat, loops, lines.
    #[arg(long, value_name = "VIEW", value_delimiter = ',', value_parser = views())]
    view: Vec<String>,
    /// Column by which call paths are sorted: time, work, overhead, out_of_cpu, waiting, blame, idleness, samples, tasks,
    /// task_time, or one metric (taken_lock_ns, given_barrier_ns, shared_idle_ns, …).
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    sort: Option<Column>,
    /// Show the runtime's frames in call paths.
    #[arg(long)]
    runtime_frames: bool,
    /// Where the call path of a task goes on outwards: where it was created, or, in traces, what ran it. Profiles know
    /// where it was created alone.
    #[arg(long, value_name = "CONTEXT", default_value = "creation", value_parser = ["creation", "execution"])]
    task_context: String,
}

fn views() -> clap::builder::PossibleValuesParser {
    PathsView::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().into()
}

pub(super) fn column(text: &str) -> Result<Column, String> {
    Column::named(text).ok_or_else(|| format!("`{text}` is no column"))
}

impl PathsArgs {
    pub(super) fn context(&self) -> TaskContext {
        if self.task_context == "execution" { TaskContext::Execution } else { TaskContext::Creation }
    }
}

/// Whether call paths are asked for by name.
pub fn asked(args: &Args) -> bool {
    let by_section = args.section.iter().any(|name| name == "call-paths" || name == "profile");
    by_section || !args.paths.view.is_empty() || args.paths.sort.is_some() || args.paths.runtime_frames
}

fn options(args: &Args, width: usize, samples_alone: bool) -> PathsOptions {
    let named = |name: &String| PathsView::ALL.iter().find(|(known, _)| known == name).map(|(_, view)| *view);
    let mut views: Vec<PathsView> = args.paths.view.iter().filter_map(named).collect();
    if views.is_empty() {
        views = PathsView::ALL[..3].iter().map(|(_, view)| *view).collect();
    }
    PathsOptions {
        views,
        sort: args.paths.sort,
        runtime: args.paths.runtime_frames,
        top: args.top_or(20),
        width,
        samples_alone,
    }
}

/// The call paths of a trace, as text.
pub fn text(session: &Session, args: &Args, width: usize, samples_alone: bool) -> String {
    CallPaths::of_session(session, args.paths.context()).text(&options(args, width, samples_alone))
}

/// The outermost of them, and how to see all: what there is to say first of a run of which nothing else is known.
pub fn short_text(session: &Session, args: &Args, width: usize) -> String {
    let options =
        PathsOptions { views: vec![PathsView::TopDown], top: args.top_or(10), ..options(args, width, true) };
    let paths = CallPaths::of_session(session, args.paths.context()).text(&options);
    let trace = format::shell_word(&args.trace);
    format!("\n{paths}\n  next:  taskscope report --section call-paths {trace}\n")
}

/// The call paths of a trace, for JSON.
pub fn tables(session: &Session, args: &Args) -> CallPathTables {
    let paths = CallPaths::of_session(session, args.paths.context());
    paths.tables(args.paths.runtime_frames, args.paths.sort, args.top_or(TOP_PATHS))
}

/// Reports profiles, if that is what was given.
///
/// # Errors
/// If none of the files can be read, the report not be written, or what is asked for is not in a profile.
pub fn run_profile(args: &Args) -> anyhow::Result<Option<ExitCode>> {
    let Some((profile, kept)) = open_profile(&args.trace)? else { return Ok(None) };
    let part = &args.selection;
    let asks_for_more = args.section.iter().any(|name| !PROFILE_SECTIONS.contains(&name.as_str()));
    if args.timeline || part.range.is_some() || part.filter.is_some() || asks_for_more {
        return Err(super::open_trace::a_profile(&args.trace).into());
    }
    check_context(&args.trace, args.paths.context())?;
    let paths = CallPaths::of(&profile, kept, None);
    let mut out = output::results();
    if args.json || args.html.is_some() {
        let report = ProfileReport {
            trace: args.trace.display().to_string(),
            call_paths: paths.tables(args.paths.runtime_frames, args.paths.sort, args.top_or(TOP_PATHS)),
        };
        if let Some(file) = &args.html {
            return super::report::write_page(file, &taskscope_view::html::profile_page(&report), None)
                .map(Some);
        }
        output::write_json(&mut out, &report)?;
    } else {
        let width = args.width_of_lines();
        out.write_all(profile_summary(&paths.tree, width).as_bytes())?;
        out.write_all(paths.text(&options(args, width, false)).as_bytes())?;
    }
    out.flush().context("cannot write the report")?;
    Ok(Some(ExitCode::SUCCESS))
}

/// In a profile a task's path goes on where it was created.
fn check_context(profile: &Path, context: TaskContext) -> anyhow::Result<()> {
    match context {
        TaskContext::Creation => Ok(()),
        TaskContext::Execution => Err(super::open_trace::a_profile(profile).into()),
    }
}

/// The profiles at a path, merged, and files that were kept beside them; `None` where there are none. Damaged files are told on stderr.
///
/// # Errors
/// If there are files and none can be read.
pub fn open_profile(path: &Path) -> anyhow::Result<Option<(Profile, KeptModules)>> {
    let files = profile_files(path);
    if files.is_empty() {
        return Ok(None);
    }
    let merged = merge_profiles(&files);
    if merged.files == 0 {
        let why = merged.problems.first().map(ToString::to_string).unwrap_or_default();
        return Err(Failure::new(format!("cannot read the profile {}", path.display())).why(why).into());
    }
    for problem in &merged.problems {
        eprintln!("warning: {}; it is left out", taskscope_view::format::harmless(&problem.to_string()));
    }
    let kept = KeptModules::of_profiles(files.iter().map(PathBuf::as_path));
    Ok(Some((merged.profile, kept)))
}

/// Whether `path` is a profile or a directory of profiles.
pub fn is_profile(path: &Path) -> bool {
    !profile_files(path).is_empty()
}

/// The named paths of a trace or a profile, for verbs that take either.
///
/// # Errors
/// If there is nothing to read.
pub fn open_tree(path: &Path, context: TaskContext) -> anyhow::Result<CallTree> {
    let (profile, kept) = match open_profile(path)? {
        Some(found) => {
            check_context(path, context)?;
            found
        }
        None => {
            let session = super::open(path)?;
            let options = CallPathOptions { task_context: context };
            (profile_of(&session.execution, options).0, KeptModules::of_trace(&session.root))
        }
    };
    let (tree, missing) = taskscope_session::name_call_paths(&profile, kept);
    for missing in missing.iter().take(3) {
        eprintln!("warning: names are missing: {}", taskscope_view::format::harmless(&missing.to_string()));
    }
    Ok(tree)
}
