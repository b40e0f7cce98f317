//! Views of instrumentation: their names and drawn rows.

use super::{Behaviour, By};
use crate::model_views::KeptView;
use std::fmt;
use std::str::FromStr;

/// The kind of a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Drawn {
    /// States.
    States,
    /// States that were hidden.
    Substates,
    /// Per thread, the kind of the task on it; per task, its thread.
    Tasks,
    /// Bursts of a key: an index into [`Views::keys`](super::views::Views).
    Bursts(u32),
}

/// A view. Written `shown.thread.stacked.states`, `shown.task.plain.key-3`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DrawnName {
    /// Thread or task.
    pub by: By,
    /// The behaviour.
    pub behaviour: Behaviour,
    /// Kind of the view.
    pub what: Drawn,
}

impl fmt::Display for DrawnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shown.{}.{}.{}", self.by.name(), self.behaviour.name(), self.what)
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Drawn::States => write!(f, "states"),
            Drawn::Substates => write!(f, "sub-states"),
            Drawn::Tasks => write!(f, "tasks"),
            Drawn::Bursts(key) => write!(f, "key-{key}"),
        }
    }
}

impl FromStr for DrawnName {
    type Err = ();

    fn from_str(text: &str) -> Result<DrawnName, ()> {
        let mut parts = text.strip_prefix("shown.").ok_or(())?.splitn(3, '.');
        let mut next = || parts.next().ok_or(());
        let by = next()?;
        let by = By::ALL.into_iter().find(|known| known.name() == by).ok_or(())?;
        let behaviour = Behaviour::from_name(next()?).filter(|b| *b != Behaviour::Raw).ok_or(())?;
        let what = match next()? {
            "states" => Drawn::States,
            "sub-states" => Drawn::Substates,
            "tasks" => Drawn::Tasks,
            key => Drawn::Bursts(key.strip_prefix("key-").and_then(|key| key.parse().ok()).ok_or(())?),
        };
        Ok(DrawnName { by, behaviour, what })
    }
}

/// A row of a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrawnRow {
    /// Text for users.
    pub label: String,
    /// The stream of a thread's row.
    pub stream: Option<usize>,
}

/// A view that was played.
#[derive(Clone, Debug)]
pub struct DrawnView {
    /// Its rows and words, as of a view of a model; its labels are at most some hundred.
    pub kept: KeptView,
    /// Description of each row.
    pub rows: Vec<DrawnRow>,
    /// Words of all values: that of value 1 first.
    pub words: Vec<String>,
    /// Tasks that it has no room for.
    pub tasks_left_out: u64,
    /// Whether a stack was deeper than there are rows for it.
    pub is_cut: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_views_round_trip_and_nothing_else_is_one() {
        for by in By::ALL {
            for behaviour in &Behaviour::ALL[..4] {
                for what in [Drawn::States, Drawn::Substates, Drawn::Tasks, Drawn::Bursts(17)] {
                    let name = DrawnName { by, behaviour: *behaviour, what };
                    assert_eq!(name.to_string().parse(), Ok(name));
                }
            }
        }
        let wrong = ["", "shown", "shown.thread", "shown.thread.raw.states", "shown.rank.plain.states"];
        for text in wrong.into_iter().chain(["shown.task.plain.key-", "shown.task.plain.key-x", "thread.4"]) {
            assert_eq!(text.parse::<DrawnName>(), Err(()), "{text}");
        }
    }
}
