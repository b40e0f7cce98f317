//! The path at which most of a number of a call tree is.

use crate::format::{count, percent};
use rustc_hash::FxHashMap;
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{NodeId, ROOT};

/// A path that has at least half of a number at each of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HotPath {
    /// Functions and constructs, outermost first; a state is the last step.
    pub steps: Vec<String>,
    /// The part of the number at the last step and further in.
    pub part: u64,
}

impl HotPath {
    /// Finds the hot path of values at nodes: descends while one step has at least half of the total.
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
        let whole = sum(&ROOT);
        let mut path = HotPath { steps: Vec::new(), part: whole };
        let mut at = ROOT;
        while let Some(next) = inner
            .get(&at)
            .and_then(|all| all.iter().max_by_key(|node| (sum(node), std::cmp::Reverse(**node))))
        {
            if sum(next) < whole.div_ceil(2) {
                break;
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

    /// The steps of the program: reserved names (`__futex_wait`) at the end are the inside of a library, and only the
    /// called function among them is a step.
    fn program_frames(&self) -> &[String] {
        let inside = self.steps.iter().rev().take_while(|step| step.starts_with('_')).count();
        &self.steps[..(self.steps.len() + 1 - inside.max(1))]
    }

    /// The innermost step of the program and its caller, after words for the whole; these alone without steps.
    pub fn after(&self, words: &str, whole: u64) -> String {
        let most = if self.part < whole { ", most of it" } else { "" };
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
            false => format!("{} at {}", percent(self.part.min(whole), whole), self.steps.join(" ▸ ")),
        }
    }

    /// The evidence of a count of things.
    pub fn evidence_of(&self, things: &str, whole: u64) -> String {
        match self.steps.is_empty() {
            true => String::new(),
            false => {
                format!("{} of {} {things} at {}", count(self.part), count(whole), self.steps.join(" ▸ "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inside_of_a_library_is_one_step() {
        let of = |steps: &[&str]| {
            let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
            HotPath { steps, part: 1 }.after("waits", 1)
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
