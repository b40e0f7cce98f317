//! Options whose values are a fixed set that another crate defines.

use clap::ValueEnum;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::slo::Mode;
use taskscope_session::instrumentation::Behaviour;

/// The callers of a task in call paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum TaskContextChoice {
    /// Where it was created
    #[default]
    Creation,
    /// What ran it; not known in profiles
    Execution,
}

impl From<TaskContextChoice> for TaskContext {
    fn from(choice: TaskContextChoice) -> TaskContext {
        match choice {
            TaskContextChoice::Creation => TaskContext::Creation,
            TaskContextChoice::Execution => TaskContext::Execution,
        }
    }
}

/// What waiting for a worker that is itself idle counts as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ModeChoice {
    /// Starvation: the published formula
    Direct,
    /// Overhead as far as that worker's own cause is overhead, else starvation
    Chained,
    /// That worker's own cause
    Root,
}

impl From<ModeChoice> for Mode {
    fn from(choice: ModeChoice) -> Mode {
        match choice {
            ModeChoice::Direct => Mode::Direct,
            ModeChoice::Chained => Mode::Chained,
            ModeChoice::Root => Mode::Root,
        }
    }
}

/// What a switch of tasks ends and begins again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BehaviourChoice {
    /// The innermost state and, of each key, the newest burst
    Plain,
    /// All states; bursts as in plain
    StackedStates,
    /// All bursts; states as in plain
    StackedBursts,
    /// All states and all bursts
    Stacked,
    /// Nothing; for receivers that keep contexts themselves
    Raw,
}

impl From<BehaviourChoice> for Behaviour {
    fn from(choice: BehaviourChoice) -> Behaviour {
        match choice {
            BehaviourChoice::Plain => Behaviour::Plain,
            BehaviourChoice::StackedStates => Behaviour::StackedStates,
            BehaviourChoice::StackedBursts => Behaviour::StackedBursts,
            BehaviourChoice::Stacked => Behaviour::Stacked,
            BehaviourChoice::Raw => Behaviour::Raw,
        }
    }
}
