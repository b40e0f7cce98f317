//! The second axis of the ledger: was there ready work while a worker was idle?

use taskscope_execution::Cause;

/// The location of ready work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ReadyWork {
    /// On the idle worker's node: a scheduling problem.
    Here,
    /// On other nodes only: a placement or balance problem.
    Elsewhere,
    /// Nowhere: a true lack of parallelism.
    Nowhere,
}

impl ReadyWork {
    /// All places.
    pub const ALL: [ReadyWork; 3] = [ReadyWork::Here, ReadyWork::Elsewhere, ReadyWork::Nowhere];

    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ReadyWork::Here => "here",
            ReadyWork::Elsewhere => "elsewhere",
            ReadyWork::Nowhere => "nowhere",
        }
    }
}

/// Idle nanoseconds by cause and [`ReadyWork`].
pub type ReadyTable = [[u64; 3]; Cause::ALL.len()];

#[derive(Clone)]
struct Node {
    ready: u64,
    /// Most that were ready at a time.
    most: u64,
    idle: [u64; Cause::ALL.len()],
    since: u64,
}

impl Node {
    /// No task and no worker.
    const NONE: Node = Node { ready: 0, most: 0, idle: [0; Cause::ALL.len()], since: 0 };
}

/// Counts ready tasks and idle workers by node over time.
#[derive(Clone)]
pub(super) struct ReadyAxis {
    nodes: Vec<Node>,
    all_ready: u64,
    pub table: ReadyTable,
}

impl ReadyAxis {
    pub fn new(nodes: usize) -> Self {
        ReadyAxis { nodes: vec![Node::NONE; nodes], all_ready: 0, table: [[0; 3]; Cause::ALL.len()] }
    }

    /// A task becomes ready on `node`, or stops being so as it starts.
    pub fn ready(&mut self, node: u32, at: u64, becomes: bool) {
        let row = &self.nodes[node as usize];
        let was_none = row.ready == 0;
        if was_none && becomes || row.ready == 1 && !becomes {
            self.settle(node, at);
        }
        // The other nodes see a difference only if all work ends or begins.
        if self.all_ready == u64::from(!becomes) {
            for other in 0..self.nodes.len() as u32 {
                self.settle(other, at);
            }
        }
        let row = &mut self.nodes[node as usize];
        if becomes {
            row.ready += 1;
            row.most = row.most.max(row.ready);
            self.all_ready += 1;
        } else {
            row.ready -= 1;
            self.all_ready -= 1;
        }
    }

    /// The most tasks that were ready at a time, by node.
    pub fn most(&self) -> impl Iterator<Item = u64> + '_ {
        self.nodes.iter().map(|node| node.most)
    }

    /// A worker of `node` becomes idle in `cause`, or stops being so.
    pub fn idle(&mut self, node: u32, at: u64, cause: Cause, becomes: bool) {
        self.settle(node, at);
        let count = &mut self.nodes[node as usize].idle[cause as usize];
        if becomes { *count += 1 } else { *count -= 1 }
    }

    pub fn settle_all(&mut self, at: u64) {
        for node in 0..self.nodes.len() as u32 {
            self.settle(node, at);
        }
    }

    /// Discards the counts before `at`.
    pub fn restart(&mut self, at: u64) {
        self.settle_all(at);
        self.table = [[0; 3]; Cause::ALL.len()];
        self.nodes.iter_mut().for_each(|node| node.most = node.ready);
    }

    fn settle(&mut self, node: u32, at: u64) {
        let row = &mut self.nodes[node as usize];
        let passed = at - row.since;
        row.since = at;
        if passed == 0 {
            return;
        }
        let place = match (row.ready, self.all_ready) {
            (0, 0) => ReadyWork::Nowhere,
            (0, _) => ReadyWork::Elsewhere,
            _ => ReadyWork::Here,
        };
        for (sums, count) in self.table.iter_mut().zip(&row.idle).filter(|(_, count)| **count > 0) {
            sums[place as usize] += count * passed;
        }
    }
}
