//! States of instrumented threads or tasks, in `taskscope report`.

use crate::messages::Failure;
use crate::opening::open_trace;
use crate::verbs::choices::Choice;
use std::path::Path;
use taskscope_event::models::{instrument, model_of};
use taskscope_session::Session;
use taskscope_session::instrumentation::{Behaviour, By, Names, Times, TimesOptions};
use taskscope_session::selection::Selection;
use taskscope_trace::OpenOptions;
use taskscope_view::instrumentation::{Instrumentation, ShownTimes};

/// Options for instrumented programs.
#[derive(clap::Args)]
pub struct ShownArgs {
    /// Report instrumentation per thread, or per task in the task's own time (--section instrumentation) [default:
    /// thread]
    #[arg(long, value_name = "BY", value_enum, conflicts_with_all = ["html", "timeline"])]
    shown: Option<Choice<By>>,
    /// Form of a task switch in section instrumentation [default: stacked]
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["html", "timeline"])]
    behaviour: Option<Choice<Behaviour>>,
}

/// The requested times of instrumentation.
pub struct ShownRequest {
    /// Whether they are requested by name.
    pub is_asked: bool,
    by: By,
    behaviour: Behaviour,
}

impl ShownRequest {
    /// Takes the arguments; `by_section` if the section is named.
    ///
    /// # Errors
    /// If the behaviour has no times.
    pub fn of(args: &ShownArgs, by_section: bool) -> anyhow::Result<ShownRequest> {
        if args.behaviour == Some(Choice(Behaviour::Raw)) {
            return Err(Failure::new("--behaviour raw is for dump --shown")
                .why("it does not end sections at a task switch, so none has a length")
                .remedy("one of: plain, stacked-states, stacked-bursts, stacked")
                .into());
        }
        Ok(ShownRequest {
            is_asked: by_section || args.shown.is_some() || args.behaviour.is_some(),
            by: args.shown.map_or(By::Thread, |choice| choice.0),
            behaviour: args.behaviour.map_or(Behaviour::Stacked, |choice| choice.0),
        })
    }

    /// The section with so many lanes.
    ///
    /// # Errors
    /// If the trace cannot be opened.
    pub fn facts(
        &self,
        trace: &Path,
        selection: &Selection,
        lanes: usize,
    ) -> anyhow::Result<Instrumentation> {
        let trace = open_trace(trace, &OpenOptions::default())?;
        let names = Names::of(&trace);
        let options = TimesOptions { by: self.by, behaviour: self.behaviour, lanes };
        let times = Times::of(&trace, &names, selection, options);
        Ok(ShownTimes { trace: &trace, names: &names, options, times }.facts())
    }
}

/// Whether the program is instrumented.
pub fn is_in(session: &Session) -> bool {
    let model = model_of(instrument::LETTER).map(|model| model.name);
    session.events_by_model.iter().any(|(name, _)| Some(*name) == model)
}
