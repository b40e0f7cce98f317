//! What instrumented threads or tasks showed, in `taskscope report`.

use super::dump_shown::{By, behaviour_of};
use super::report::Args;
use anyhow::Context;
use taskscope_event::models::{instrument, model_of};
use taskscope_session::Session;
use taskscope_session::instrumentation::{Names, Times, TimesOptions};
use taskscope_trace::{OpenOptions, Trace};
use taskscope_view::instrumentation::{Instrumentation, LANES_IN_JSON, ShownTimes};

/// How to look at what programs tell of themselves.
#[derive(clap::Args)]
pub struct ShownArgs {
    /// Times of what instrumented threads show, or tasks in their own time (--section instrumentation) [default: thread]
    #[arg(long, value_name = "BY", value_enum, conflicts_with_all = ["html", "timeline"])]
    shown: Option<By>,
    /// With it, how a switch of tasks looks: plain, stacked-states, stacked-bursts or stacked [default: stacked]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["html", "timeline"])]
    behaviour: Option<String>,
}

/// Whether it is asked for by name.
pub fn asked(args: &Args) -> bool {
    let by_section = args.section.iter().any(|name| name == "instrumentation");
    by_section || args.shown.shown.is_some() || args.shown.behaviour.is_some()
}

/// Whether the program tells something of itself.
pub fn is_told(session: &Session) -> bool {
    let model = model_of(instrument::LETTER).map(|model| model.name);
    session.events_by_model.iter().any(|(name, _)| Some(*name) == model)
}

/// The section as text.
pub fn text(args: &Args, width: usize) -> anyhow::Result<String> {
    let top = args.top_or(10);
    let mut text = with_times(args, top, |shown| shown.text(top, width))?;
    if let Some(part) = args.selection.parse()?.words {
        text.push_str(&format!("  only {part}\n"));
    }
    Ok(text)
}

/// The section for JSON.
pub fn facts(args: &Args) -> anyhow::Result<Instrumentation> {
    with_times(args, args.top_or(LANES_IN_JSON), |shown| shown.facts())
}

fn with_times<T>(args: &Args, lanes: usize, with: impl FnOnce(ShownTimes<'_>) -> T) -> anyhow::Result<T> {
    let by = args.shown.shown.unwrap_or(By::Thread).into();
    let behaviour = behaviour_of(args.shown.behaviour.as_deref().unwrap_or("stacked"), false)?;
    let trace = Trace::open(&args.trace, &OpenOptions::default())
        .with_context(|| format!("cannot read {}", args.trace.display()))?;
    let names = Names::of(&trace);
    let options = TimesOptions { by, behaviour, lanes };
    let times = Times::of(&trace, &names, &args.selection.parse()?, options);
    Ok(with(ShownTimes { trace: &trace, names: &names, options, times }))
}
