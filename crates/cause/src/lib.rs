//! The vocabulary of lost time, from `causes.toml`.
//!
//! Every worker-nanosecond has one [`Cause`], a node of a tree of two levels. A source without the causes of
//! a category uses the category, so sums of a category are comparable over sources of any depth: a profile,
//! the states of a trace, the task graph. The blamed code is a second dimension, [`Blamed`]. A [`State`] is a
//! runtime's own word for the activity of a thread; each counts as one cause, and is in one [`Group`].
#![forbid(unsafe_code)]

/// A name's texts.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The name in JSON, in filters and for `explain`.
    pub name: &'static str,
    /// The words in text.
    pub label: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    /// The computation; may be empty.
    pub computed: &'static str,
    /// The usual remedy; may be empty.
    pub helps: &'static str,
    /// For causes, the blamed code, in words.
    pub blames: &'static str,
    /// For causes, names in publications and other tools.
    pub published: &'static str,
    /// For causes, the runtime that decides about it if it takes part in the run. Its words come first.
    pub decided_by: Option<Runtime>,
    /// Remedies in the words of runtimes.
    pub advice: &'static [(&'static [Runtime], &'static str)],
}

impl Text {
    /// The remedy in the words of a runtime.
    pub fn advice_for(&self, runtime: Runtime) -> Option<&'static str> {
        self.advice.iter().find(|(runtimes, _)| runtimes.contains(&runtime)).map(|(_, text)| *text)
    }
}

/// A runtime, or another source of a program's parallelism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// OpenMP with its own threads.
    OpenMp,
    /// OpenMP-V, which runs on nOS-V.
    OpenMpV,
    /// OmpSs-2 on Nanos6.
    Nanos6,
    /// OmpSs-2 on NODES, which runs on nOS-V.
    Nodes,
    /// nOS-V's own interface.
    Nosv,
    /// A program that instruments itself.
    Instrumented,
    /// MPI, and no runtime of tasks in its processes.
    Mpi,
    /// Threads that only samples show.
    Threads,
    /// Device queues, of which no thread of the host is recorded.
    Devices,
}

impl Runtime {
    /// The name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Runtime::OpenMp => "OpenMP",
            Runtime::OpenMpV => "OpenMP-V",
            Runtime::Nanos6 => "Nanos6",
            Runtime::Nodes => "NODES",
            Runtime::Nosv => "nOS-V",
            Runtime::Instrumented => "instrumented",
            Runtime::Mpi => "MPI",
            Runtime::Threads => "threads",
            Runtime::Devices => "device queues",
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));

impl Cause {
    /// The category that contains it, or itself if it is one.
    pub const fn category(self) -> Cause {
        CATEGORIES[self as usize]
    }

    /// Whether it is `other`, or in it.
    pub const fn is_in(self, other: Cause) -> bool {
        self as u8 == other as u8 || self.category() as u8 == other as u8
    }
}

/// The texts that determine the remedy for a loss: those of its pattern; for waiting, and for a rank that comes late to the start
/// of its job, those of the blamed code; otherwise those of its cause.
pub const fn deciding(pattern: Option<Pattern>, cause: Cause, blamed: Blamed) -> &'static Text {
    match pattern {
        Some(pattern) => pattern.text(),
        None if cause.is_in(Cause::Wait) || matches!(cause, Cause::Runtime) => blamed.text(),
        None if matches!((cause, blamed), (Cause::MpiStart, Blamed::Rank)) => blamed.text(),
        None => cause.text(),
    }
}

impl State {
    /// Whether the program's own code runs.
    pub const fn is_useful(self) -> bool {
        matches!(self.group(), Group::Useful)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_variant_at_its_number() {
        assert!(Cause::ALL.iter().enumerate().all(|(number, row)| *row as usize == number));
        assert!(State::ALL.iter().enumerate().all(|(number, row)| *row as usize == number));
        assert!(Group::ALL.iter().enumerate().all(|(number, row)| *row as usize == number));
        assert_eq!(State::Unknown as usize + 1, State::ALL.len());
    }

    #[test]
    fn names_are_a_tree_of_two_levels() {
        for cause in Cause::ALL {
            assert_eq!(cause.name().contains('.'), cause.category() != cause, "{}", cause.name());
            assert!(cause.name().matches('.').count() < 2, "{}", cause.name());
            assert!(!cause.text().helps.is_empty() && !cause.text().blames.is_empty(), "{}", cause.name());
        }
        let mut names: Vec<_> = Cause::ALL.iter().map(|row| row.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Cause::ALL.len());
    }

    #[test]
    fn groups_have_states_and_glyphs_of_their_own() {
        for group in Group::ALL {
            assert!(State::ALL.iter().any(|state| state.group() == group), "{}", group.name());
            let alike = Group::ALL.iter().filter(|other| other.glyph() == group.glyph());
            assert_eq!(alike.count(), 1, "{}", group.glyph());
            assert!(group.ansi().is_none_or(|number| number < 16), "{}", group.name());
        }
    }

    #[test]
    fn useful_states_are_work_and_no_others() {
        for state in State::ALL {
            assert_eq!(state.is_useful(), state.cause() == Cause::Work, "{}", state.name());
        }
    }

    #[test]
    fn advice_names_no_settings_of_another_runtime() {
        use Runtime::{Nanos6, Nodes, Nosv, OpenMp, OpenMpV};
        let all = Cause::ALL.map(Cause::text).into_iter().chain(Blamed::ALL.map(Blamed::text));
        for text in all.chain(Pattern::ALL.map(Pattern::text)) {
            let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
            assert!(
                text.decided_by.is_none_or(|runtime| text.advice_for(runtime).is_some()),
                "{}",
                text.name
            );
            for (runtimes, advice) in text.advice {
                let only = |of: &[Runtime]| runtimes.iter().all(|runtime| of.contains(runtime));
                assert!(!has(advice, &["OMP_", "KMP_"]) || only(&[OpenMp]), "{}", text.name);
                assert!(!has(advice, &["NANOS6_", "cpumanager"]) || only(&[Nanos6]), "{}", text.name);
                let names_nosv = has(advice, &["NOSV_", "governor", "topology."]);
                assert!(!names_nosv || only(&[Nodes, Nosv, OpenMpV]), "{}", text.name);
            }
            let own = ["OMP_WAIT", "OMP_PROC", "OMP_NUM", "KMP_", "NANOS6_", "NOSV_", "schedule("];
            assert!(!has(text.helps, &own), "{}", text.name);
        }
    }
}
