//! The path at which most of a number of a call tree is.

use crate::format::{count, fit, percent};
use rustc_hash::FxHashMap;
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{NodeId, ROOT};
use taskscope_symbol::is_of_language_library;

/// Steps of a path that the evidence names at most: so many outermost and innermost ones. Paths through templates are longer than pages.
const OUTER: usize = 2;
const INNER: usize = 6;
/// The width of a step in the evidence.
const STEP_WIDTH: usize = 80;

/// A path that has at least half of a number at each of its steps. If these are only of a language's library, in which all threads start,
/// it continues at the largest part of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HotPath {
    /// Functions and constructs, outermost first; a state is the last step.
    pub steps: Vec<String>,
    /// The part of the number at the last step and further in.
    pub part: u64,
    /// All of the number.
    pub whole: u64,
}

impl HotPath {
    /// Finds the hot path of values at nodes: descends while one step has at least half of the total, or of the largest part.
    pub fn of(tree: &CallTree, values: &[(NodeId, u64)]) -> HotPath {
        let mut sums: FxHashMap<NodeId, u64> = FxHashMap::default();
        let mut inner: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (node, value) in values.iter().filter(|(_, value)| *value > 0) {
            let mut at = *node;
            loop {
                let sum = sums.entry(at).or_insert_with(|| {
                    if at != ROOT {
                        inner.entry(tree.tree.parent(at)).or_default().push(at);
                    }
                    0
                });
                *sum = sum.saturating_add(*value);
                if at == ROOT {
                    break;
                }
                at = tree.tree.parent(at);
            }
        }
        let sum = |node: &NodeId| sums.get(node).copied().unwrap_or(0);
        let mut whole = sum(&ROOT);
        let mut path = HotPath { steps: Vec::new(), part: whole, whole };
        let mut at = ROOT;
        while let Some(next) = inner
            .get(&at)
            .and_then(|all| all.iter().max_by_key(|node| (sum(node), std::cmp::Reverse(**node))))
        {
            if sum(next) < whole.div_ceil(2) {
                if path.steps.is_empty() || !path.steps.iter().all(|step| is_of_library(step)) {
                    break;
                }
                whole = sum(next);
            }
            at = *next;
            // Lines and loops are places in their function, which is a step already.
            if tree.label(at).is_none_or(|label| !matches!(label.what, StepKind::Line | StepKind::Loop)) {
                path.steps.push(tree.text_of(tree.tree.frame(at)));
                path.part = sum(&at);
            }
        }
        path
    }

    /// What a part is named of: the path's own number, unless that is less than half of all.
    pub fn base(&self) -> u64 {
        if self.part < self.whole.div_ceil(2) { self.whole } else { self.part }
    }

    /// The steps of the program: reserved names (`__futex_wait`) at the end are the inside of a library, and only the
    /// called function among them is a step.
    fn program_frames(&self) -> &[String] {
        let inside = self.steps.iter().rev().take_while(|step| step.starts_with('_')).count();
        &self.steps[..(self.steps.len() + 1 - inside.max(1))]
    }

    /// The innermost step of the program and its caller, after words for the whole; these alone without steps.
    pub fn after(&self, words: &str, whole: u64) -> String {
        let most = match self.part {
            part if part >= whole => String::new(),
            part if part >= whole.div_ceil(2) => ", most of it".to_owned(),
            part => format!(", {} of it", percent(part, whole)),
        };
        match self.program_frames() {
            [] => words.to_owned(),
            [one] => format!("{words}{most} in {one}"),
            [.., caller, innermost] => format!("{words}{most} in {innermost}, called by {caller}"),
        }
    }

    /// The innermost step of the program; empty without steps.
    pub fn place(&self) -> String {
        self.program_frames().last().cloned().unwrap_or_default()
    }

    /// The path and its share, for the evidence; empty without steps.
    pub fn evidence(&self, whole: u64) -> String {
        match self.steps.is_empty() {
            true => String::new(),
            false => format!("{} at {}", percent(self.part.min(whole), whole), self.text()),
        }
    }

    /// The evidence of a count of things.
    pub fn evidence_of(&self, things: &str, whole: u64) -> String {
        match self.steps.is_empty() {
            true => String::new(),
            false => format!("{} of {} {things} at {}", count(self.part), count(whole), self.text()),
        }
    }

    /// The steps in one line, a long path without its middle.
    fn text(&self) -> String {
        let step = |step: &String| fit(step, STEP_WIDTH);
        let shown: Vec<String> = match self.steps.len() <= OUTER + 1 + INNER {
            true => self.steps.iter().map(step).collect(),
            false => {
                let outer = self.steps[..OUTER].iter().map(step);
                let inner = self.steps[self.steps.len() - INNER..].iter().map(step);
                outer.chain(["…".to_owned()]).chain(inner).collect()
            }
        };
        shown.join(" ▸ ")
    }
}

/// Whether a step is in a language's library: by its name, or by that of its file.
fn is_of_library(step: &str) -> bool {
    const FILES: [&str; 3] = ["libstdc++.so", "libc++.so", "libc.so"];
    is_of_language_library(step) || FILES.iter().any(|file| step.starts_with(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_part_of_the_program_is_named_if_threads_start_in_a_library() {
        assert!(
            is_of_library("libstdc++.so.6+0xd4490")
                && is_of_library("core::ops::function::FnOnce::call_once")
        );
        assert!(!is_of_library("main") && !is_of_library("solve"));
        let path = HotPath {
            steps: vec!["FnOnce::call_once".into(), "solve".into(), "burn".into()],
            part: 40,
            whole: 100,
        };
        assert_eq!(
            path.after("few threads have work", 100),
            "few threads have work, 40.0 % of it in burn, called by solve"
        );
        assert_eq!(path.base(), 100);
        let most = HotPath { part: 50, ..path };
        assert_eq!(most.base(), 50);
        assert_eq!(most.after("few", 100), "few, most of it in burn, called by solve");
    }

    #[test]
    fn long_paths_are_shown_without_their_middle() {
        let of = |steps: Vec<String>| HotPath { steps, part: 1, whole: 2 }.evidence_of("samples", 2);
        let steps = |count: usize| (0..count).map(|step| format!("f{step}")).collect::<Vec<_>>();
        assert_eq!(of(steps(2)), "1 of 2 samples at f0 ▸ f1");
        assert!(of(steps(9)).ends_with("f0 ▸ f1 ▸ f2 ▸ f3 ▸ f4 ▸ f5 ▸ f6 ▸ f7 ▸ f8"));
        assert!(of(steps(40)).ends_with("at f0 ▸ f1 ▸ … ▸ f34 ▸ f35 ▸ f36 ▸ f37 ▸ f38 ▸ f39"));
        assert!(of(vec!["std::function<".repeat(100)]).chars().count() < 120);
    }

    #[test]
    fn the_inside_of_a_library_is_one_step() {
        let of = |steps: &[&str]| {
            let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
            HotPath { steps, part: 1, whole: 1 }.after("waits", 1)
        };
        assert_eq!(
            of(&["main", "pthread_join", "__join", "__futex"]),
            "waits in __join, called by pthread_join"
        );
        assert_eq!(of(&["main", "__join", "__futex", "__futex64"]), "waits in __join, called by main");
        assert_eq!(of(&["main", "solve"]), "waits in solve, called by main");
        assert_eq!(of(&["__futex"]), "waits in __futex");
        assert_eq!(of(&[]), "waits");
    }
}
