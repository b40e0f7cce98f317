//! The wait-for relation of workers at each instant.
//!
//! At each instant every node of the forest either *has* a cause or *sees* that of another node:
//!
//! ```text
//!   worker 2 idle ── sees ──▶ worker 0 idle ── sees ──▶ worker 1: executes task type 4
//!   worker 3 idle ── sees ──▶ worker 0                  (so 3 idle workers wait for that type)
//! ```
//!
//! Two things are kept up to date when a node changes, each in time proportional to the length of the chain
//! below it: the sums of causes that a node has had or seen since the start, and the weight of each node,
//! that is how many idle workers see it, which charges causes by key. No segment of time is ever visited
//! once per waiting worker.
//!
//! The caller calls [`WaitForGraph::set`] in the order of time, and sets no node to see one that sees it.

use crate::fine_nanos::{FineNanos, Share};
use rustc_hash::FxHashMap;

/// The loss of an idle instant. The names are those of SLOW (Sterling's starvation, latency, overhead,
/// waiting for contention).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Letter {
    /// There is not enough parallel work.
    Starvation,
    /// Data is under way.
    Latency,
    /// The runtime, or the system, has it in hand.
    Overhead,
    /// Another worker holds the needed object.
    Contention,
}

impl Letter {
    /// All letters.
    pub const ALL: [Letter; 4] = [Letter::Starvation, Letter::Latency, Letter::Overhead, Letter::Contention];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Letter::Starvation => "starvation",
            Letter::Latency => "latency",
            Letter::Overhead => "overhead",
            Letter::Contention => "contention",
        }
    }
}

/// Number of letters.
const LETTERS: usize = Letter::ALL.len();

/// Number of waiting nodes by class; classes are the caller's numbers. Each class occurs once.
type Weights = Vec<(u32, i32)>;

/// The charges of a key for one class of waiting workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charged {
    /// Whole nanoseconds.
    pub ns: u64,
    /// Shares, in units of 2⁻⁶⁰ ns.
    pub fine: i128,
    /// The same shares as single nanoseconds ([`Share::turns_between`]).
    pub shared_ns: i64,
}

impl Charged {
    /// All charges, in nanoseconds of which each belongs to one key.
    pub fn whole_ns(&self) -> u64 {
        self.ns.saturating_add_signed(self.shared_ns)
    }
}

/// Time by letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    ns: [i64; LETTERS],
    /// Time stored in the first letter that counts in the third: overhead at unknown positions.
    uniform: i128,
}

impl Shares {
    /// `ns` nanoseconds, all lost to `letter`.
    pub fn of(letter: Letter, ns: u64) -> Shares {
        let mut shares = Shares::default();
        shares.ns[letter as usize] = ns as i64;
        shares
    }

    /// Time lost to `letter`.
    pub fn get(&self, letter: Letter) -> FineNanos {
        let whole = FineNanos::from_nanos(self.ns[letter as usize]);
        match letter {
            Letter::Starvation => whole - FineNanos::from_raw(self.uniform),
            Letter::Overhead => whole + FineNanos::from_raw(self.uniform),
            Letter::Latency | Letter::Contention => whole,
        }
    }

    /// Time of all letters: always a whole number of nanoseconds.
    pub fn total(&self) -> i64 {
        self.ns.iter().sum()
    }

    /// Adds another's time.
    pub fn add(&mut self, other: &Shares) {
        for (sum, ns) in self.ns.iter_mut().zip(other.ns) {
            *sum += ns;
        }
        self.uniform += other.uniform;
    }

    /// The increase over `earlier`.
    pub fn since(&self, earlier: &Shares) -> Shares {
        let mut rest = *self;
        for (sum, ns) in rest.ns.iter_mut().zip(earlier.ns) {
            *sum -= ns;
        }
        rest.uniform -= earlier.uniform;
        rest
    }

    /// Only the overhead; all else is starvation.
    fn only_overhead(&self) -> Shares {
        let overhead = self.ns[Letter::Overhead as usize];
        let mut ns = [0; LETTERS];
        ns[Letter::Starvation as usize] = self.total() - overhead;
        ns[Letter::Overhead as usize] = overhead;
        Shares { ns, uniform: self.uniform }
    }
}

/// The current source of a node's shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Now {
    /// A cause of its own.
    Has {
        letter: Letter,
        key: u32,
        /// This share of it is overhead, charged to the other key. Only with starvation.
        share: Share,
        share_key: u32,
    },
    /// The shares of another node; all except overhead as starvation, if so marked.
    Sees { node: u32, only_overhead: bool },
}

impl Now {
    pub fn has(letter: Letter, key: u32) -> Now {
        Now::Has { letter, key, share: Share::ZERO, share_key: key }
    }
}

struct Node {
    now: Now,
    since: u64,
    /// Its shares at `since`.
    sum: Shares,
    /// The shares at `since` of the node that it sees.
    base: Shares,
    /// The number of nodes that see it, including itself if the caller requested that.
    weights: Weights,
    /// Time until which its key has been charged.
    charged: u64,
}

/// All nodes and the charges by key.
pub(crate) struct WaitForGraph {
    nodes: Vec<Node>,
    /// Charges by key and class.
    pub charges: FxHashMap<(u32, u32), Charged>,
    /// Letters that are charged to their keys; the others are the caller's affair.
    charged: [bool; LETTERS],
}

impl WaitForGraph {
    /// Creates a forest in which all nodes have `now` from time 0 on.
    pub fn new(nodes: usize, now: Now, charged: [bool; LETTERS]) -> WaitForGraph {
        let node = || Node {
            now,
            since: 0,
            sum: Shares::default(),
            base: Shares::default(),
            weights: Weights::new(),
            charged: 0,
        };
        WaitForGraph { nodes: (0..nodes).map(|_| node()).collect(), charges: FxHashMap::default(), charged }
    }

    /// The accumulated shares of `node` until `at`.
    pub fn sum(&self, node: u32, at: u64) -> Shares {
        let mut sum = Shares::default();
        let mut masked = false;
        let mut index = node as usize;
        // No chain is longer than the number of nodes; a longer walk means that the caller's times are wrong.
        for _ in 0..=self.nodes.len() {
            let node = &self.nodes[index];
            let mut part = node.sum;
            match node.now {
                Now::Has { letter, share, .. } => {
                    let passed = at - node.since;
                    part.ns[letter as usize] += passed as i64;
                    if !share.is_zero() {
                        part.uniform += share.scale_nanos(passed);
                    }
                    sum.add(&if masked { part.only_overhead() } else { part });
                    break;
                }
                Now::Sees { node: target, only_overhead } => {
                    sum.add(&if masked { part.only_overhead() } else { part });
                    masked |= only_overhead;
                    let base = if masked { node.base.only_overhead() } else { node.base };
                    sum = sum.since(&base);
                    index = target as usize;
                }
            }
        }
        sum
    }

    /// The current source of `node`.
    pub fn now(&self, node: u32) -> Now {
        self.nodes[node as usize].now
    }

    /// Sets the source of `node` from `at` on.
    pub fn set(&mut self, node: u32, at: u64, now: Now) {
        let sum = self.sum(node, at);
        let weights = match self.nodes[node as usize].now {
            Now::Has { .. } => {
                self.charge(node as usize, at);
                std::mem::take(&mut self.nodes[node as usize].weights)
            }
            Now::Sees { node: target, .. } => {
                let weights = std::mem::take(&mut self.nodes[node as usize].weights);
                self.weigh_all(target, at, &weights, -1);
                weights
            }
        };
        let base = match now {
            Now::Sees { node: target, .. } => self.sum(target, at),
            Now::Has { .. } => Shares::default(),
        };
        let row = &mut self.nodes[node as usize];
        (row.now, row.since, row.sum, row.base, row.charged) = (now, at, sum, base, at);
        if let Now::Sees { node: target, .. } = now {
            self.weigh_all(target, at, &weights, 1);
        }
        self.nodes[node as usize].weights = weights;
    }

    /// Changes the weight of `node`, and of all that it sees, by `by` in one class.
    pub fn weigh(&mut self, node: u32, at: u64, class: u32, by: i32) {
        self.weigh_all(node, at, &[(class, by)], 1);
    }

    fn weigh_all(&mut self, node: u32, at: u64, changes: &[(u32, i32)], sign: i32) {
        if changes.is_empty() {
            return;
        }
        let mut index = node as usize;
        for _ in 0..=self.nodes.len() {
            let now = self.nodes[index].now;
            if let Now::Has { .. } = now {
                self.charge(index, at);
            }
            let weights = &mut self.nodes[index].weights;
            for (class, by) in changes {
                match weights.iter().position(|(known, _)| known == class) {
                    Some(place) if weights[place].1 == -(by * sign) => {
                        weights.swap_remove(place);
                    }
                    Some(place) => weights[place].1 += by * sign,
                    None => weights.push((*class, by * sign)),
                }
            }
            match now {
                Now::Has { .. } => return,
                Now::Sees { node: target, .. } => index = target as usize,
            }
        }
    }

    /// Charges every node's cause until `at`.
    pub fn charge_all(&mut self, at: u64) {
        for index in 0..self.nodes.len() {
            self.charge(index, at);
        }
    }

    #[inline]
    fn charge(&mut self, index: usize, at: u64) {
        let node = &mut self.nodes[index];
        let since = std::mem::replace(&mut node.charged, at);
        let passed = at - since;
        let Now::Has { letter, key, share, share_key } = node.now else { return };
        if passed == 0 {
            return;
        }
        for (class, weight) in &node.weights {
            // Weights fall below zero only if the caller's times are wrong.
            let weight = (*weight).max(0) as u64;
            let time = weight * passed;
            if self.charged[letter as usize] {
                self.charges.entry((key, *class)).or_default().ns += time;
            }
            if !share.is_zero() && time > 0 {
                let (fine, ns) = (share.scale_nanos(time), (weight * share.turns_between(since, at)) as i64);
                if self.charged[letter as usize] {
                    let charged = self.charges.entry((key, *class)).or_default();
                    charged.fine -= fine;
                    charged.shared_ns -= ns;
                }
                let charged = self.charges.entry((share_key, *class)).or_default();
                charged.fine += fine;
                charged.shared_ns += ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Letter::*;

    #[test]
    fn a_chain_hands_its_cause_up_and_its_weight_down() {
        let mut forest = WaitForGraph::new(3, Now::has(Overhead, 0), [true; 4]);
        for node in 0..2 {
            forest.weigh(node, 0, 0, 1);
        }
        forest.set(2, 10, Now::has(Starvation, 1));
        forest.set(1, 10, Now::Sees { node: 2, only_overhead: false });
        forest.set(0, 20, Now::Sees { node: 1, only_overhead: true });
        forest.set(2, 30, Now::has(Latency, 2));
        let sum = forest.sum(0, 50);
        assert_eq!(sum.ns, [30, 0, 20, 0]);
        assert_eq!(forest.sum(1, 50).ns, [20, 20, 10, 0]);
        forest.charge_all(50);
        assert_eq!([0, 1, 2].map(|key| forest.charges[&(key, 0)].ns), [30, 30, 40]);
    }

    #[test]
    fn a_circle_ends() {
        let mut forest = WaitForGraph::new(2, Now::has(Overhead, 0), [true; 4]);
        forest.set(0, 5, Now::Sees { node: 1, only_overhead: false });
        forest.set(1, 6, Now::Sees { node: 0, only_overhead: false });
        forest.weigh(0, 7, 0, 1);
        forest.sum(0, 8);
    }
}
