//! Weights at paths, and how they become sums.

use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

use super::pool::{Late, Pool};
use crate::profiling::integrals::Share;
use crate::profiling::recent::Part;

/// The metrics of weights. They are in no file: [`settle`] takes them away.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    present: Metric,
    first_turn: u16,
}

pub(super) const KNOWN: Kind = Kind { present: Metric(0x400), first_turn: 0x500 };
pub(super) const SAMPLED: Kind = Kind { present: Metric(0x401), first_turn: 0x600 };

impl Kind {
    fn turn(self, epoch: usize) -> Metric {
        Metric(self.first_turn + epoch as u16)
    }
}

/// Weights of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Owed {
    pub epoch: usize,
    pub weights: Weights,
}

impl Owed {
    pub fn add_to(self, tree: &mut Tree, node: NodeId) {
        self.weights.add_to(tree, node, (KNOWN, self.epoch));
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weights {
    pub present: u64,
    pub turn: u64,
}

impl Weights {
    pub fn of(ns: u64, workers: u64) -> Weights {
        Weights { present: ns * workers, turn: ns }
    }

    pub fn and(self, more: Weights) -> Weights {
        Weights { present: self.present + more.present, turn: self.turn + more.turn }
    }

    pub fn add_to(self, tree: &mut Tree, node: NodeId, (kind, epoch): (Kind, usize)) {
        for (metric, weight) in [(kind.present, self.present), (kind.turn(epoch), self.turn)] {
            if weight > 0 {
                tree.add(node, metric, weight);
            }
        }
    }

    pub fn take(&mut self, part: Part) -> Weights {
        Weights { present: part.take_from(&mut self.present), turn: part.take_from(&mut self.turn) }
    }
}

/// Charge of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idled {
    pub(super) sampled: Option<Share>,
    /// Weights of the previous epoch, and of this one.
    pub(super) known: [Owed; 2],
    pub(super) unattributed: Owed,
}

pub(super) fn add_unattributed(tree: &mut Tree, owed: Owed) {
    if owed.weights.turn > 0 {
        let unattributed = tree.child(ROOT, Frame::state(Marker::Nobody));
        owed.add_to(tree, unattributed);
    }
}

/// A sample at the path `code` is charged with this. Async-signal-safe.
pub fn add_sample(tree: &mut Tree, code: NodeId, idled: &Idled) {
    let weights = |present, turn| Weights { present, turn };
    if let Some(share) = &idled.sampled {
        weights(share.present, 0).add_to(tree, code, (SAMPLED, 0));
        for (epoch, turn) in share.turns {
            weights(0, turn).add_to(tree, code, (SAMPLED, epoch));
        }
    }
    idled.known.into_iter().for_each(|owed| owed.add_to(tree, code));
    add_unattributed(tree, idled.unattributed);
}

/// Divides the idleness of all workers among the paths, in proportion to their weights: `idle` in all, of which `late`
/// before they began.
pub fn settle(tree: &mut Tree, pool: &Pool, idle: u64, late: &[Late]) {
    let unattributed = tree.child(ROOT, Frame::state(Marker::Nobody));
    let (present, turns) = pool.sampled.unattributed();
    Weights { present, turn: 0 }.add_to(tree, unattributed, (SAMPLED, 0));
    for (epoch, turn) in turns.enumerate() {
        Weights { present: 0, turn }.add_to(tree, unattributed, (SAMPLED, epoch));
    }
    let symptom = tree.child(ROOT, Frame::state(Marker::Idle));
    tree.add(symptom, Metric::taken(Marker::Idle), idle);
    let nodes: Vec<NodeId> = std::iter::once(ROOT).chain(tree.ids()).collect();
    let weights = |tree: &mut Tree, metric: Metric, times: (u64, u64)| -> Vec<(NodeId, u128)> {
        let node_weight = |node: &NodeId| {
            (*node, u128::from(tree.take(*node, metric)) * u128::from(times.0) / u128::from(times.1.max(1)))
        };
        nodes.iter().map(node_weight).filter(|(_, weight)| *weight > 0).collect()
    };
    let all_late: u64 = late.iter().map(|late| late.owed).sum();
    divide(tree, idle.saturating_sub(all_late), |tree, kind| weights(tree, kind.present, (1, 1)));
    let begun = pool.epoch();
    // No weight belongs to an epoch that has not begun.
    for (epoch, Late { owed, length }) in
        late.iter().enumerate().filter(|(epoch, late)| *epoch <= begun || late.length > 0)
    {
        divide(tree, *owed, |tree, kind| weights(tree, kind.turn(epoch), (*owed, *length)));
    }
}

/// Divides `owed`: known weights get their exact value, sampled ones the rest; time without samples is
/// unattributed.
fn divide(tree: &mut Tree, owed: u64, mut weights: impl FnMut(&mut Tree, Kind) -> Vec<(NodeId, u128)>) {
    let (known, sampled) = (weights(tree, KNOWN), weights(tree, SAMPLED));
    if owed == 0 {
        return;
    }
    let sum: u128 = known.iter().map(|(_, weight)| weight).sum();
    let known_ns = sum.min(owed.into()) as u64;
    for (ns, shares) in [(known_ns, known), (owed - known_ns, sampled)] {
        if ns > 0 {
            taskscope_profile::settle(tree, Metric::shared(Marker::Idle), ns, &shares);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiling::integrals::EPOCHS;

    #[test]
    fn idleness_is_divided_by_the_weights_of_its_epoch() {
        let mut tree = Tree::growing();
        let [one, two] = [1, 2].map(|at| tree.child(ROOT, Frame::user(0, at)));
        for (node, metric, weight) in [
            // An epoch of 40: all of it known.
            (one, KNOWN.turn(0), 30),
            (two, KNOWN.turn(0), 10),
            // One of 10, of which 4 are known; samples represent slightly more than the rest.
            (one, KNOWN.turn(1), 4),
            (one, SAMPLED.turn(1), 3),
            (two, SAMPLED.turn(1), 5),
            (one, KNOWN.present, 6),
            (two, SAMPLED.present, 3),
        ] {
            tree.add(node, metric, weight);
        }
        let late = [(400, 40), (50, 10), (7, 7)].map(|(owed, length)| Late { owed, length });
        settle(&mut tree, &Pool::new(0), 400 + 50 + 7 + 8, &late);
        let unattributed = tree.child(ROOT, Frame::state(Marker::Nobody));
        let shared = [one, two, unattributed].map(|node| tree.value(node, Metric::shared(Marker::Idle)));
        assert_eq!(shared, [300 + 20 + 11 + 6, 100 + 19 + 2, 7]);
        assert!([KNOWN, SAMPLED].iter().all(|kind| {
            tree.total(kind.present) == 0 && (0..EPOCHS).all(|epoch| tree.total(kind.turn(epoch)) == 0)
        }));
        assert!(taskscope_profile::conservation(&tree).iter().all(taskscope_profile::Balance::holds));
    }
}
