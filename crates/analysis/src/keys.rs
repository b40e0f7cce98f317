//! Charged parties as small numbers while sums are made.

use crate::wait_for_graph::Letter;
use rustc_hash::FxHashMap;
use taskscope_execution::graph::TaskGraph;
use taskscope_execution::{Blamed, Cause};

/// The party charged with lost time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Who {
    /// Tasks of this type took so long (starvation).
    Task(u32),
    /// Runtime work inside tasks of this type (overhead).
    Uniform(u32),
    /// A task of this type could start and did not (overhead).
    Dispatch(u32),
    /// A section of the runtime; row of the graph's names (overhead).
    Runtime(u32),
    /// The start or the end of a library of the job; row of the graph's names (overhead).
    Start(u32),
    /// Left free for the noise of the system; row of the graph's names (overhead).
    AbsorbingNoise(u32),
    /// Data under way between two nodes (latency).
    Link(u32, u32),
    /// Data that was complete and not sent (overhead).
    Send,
    /// A worker that had not begun (overhead).
    Startup,
    /// The holder of a lock (row of the graph's names), which requested it at the place of a type:
    /// [`NONE`](taskscope_execution::graph::NONE) if unknown (contention).
    Lock(u32, u32),
    /// A communication call; row of the graph's names (latency).
    Call(u32),
    /// Another process that had not come to a communication call yet; row of the graph's names (starvation).
    Peer(u32),
    /// A device's operation, or its idleness; row of the graph's names (latency).
    Device(u32),
    /// Code of this type, blocked in the kernel (latency).
    Blocked(u32),
    /// Another program on the CPU; row of the graph's names (overhead).
    System(u32),
    /// The runtime of a node, which had not yet noticed that all had arrived (overhead).
    Delivery(u32),
    /// The future creator of tasks of this type, if unknown (starvation).
    Creator(u32),
    /// No worker executed anything (overhead).
    Nobody,
}

impl Who {
    /// The letter under which its time counts in the SLOW view.
    pub const fn letter(self) -> Letter {
        match self {
            Who::Task(_) | Who::Creator(_) | Who::Peer(_) => Letter::Starvation,
            Who::Link(..) | Who::Call(_) | Who::Device(_) | Who::Blocked(_) => Letter::Latency,
            Who::Lock(..) => Letter::Contention,
            _ => Letter::Overhead,
        }
    }

    /// The root cause of waiting for it: its state or activity.
    pub const fn cause(self) -> Cause {
        match self {
            Who::Task(_) | Who::Creator(_) => Cause::Wait,
            Who::Peer(_) => Cause::MpiLate,
            Who::Call(_) => Cause::MpiTransfer,
            Who::Start(_) => Cause::MpiStart,
            Who::Link(..) => Cause::WaitTransfer,
            Who::Device(_) => Cause::Device,
            Who::Blocked(_) => Cause::Blocked,
            Who::Lock(..) => Cause::Lock,
            Who::System(_) => Cause::Cpu,
            Who::AbsorbingNoise(_) => Cause::RuntimeNoise,
            _ => Cause::Runtime,
        }
    }

    /// The kind of the culprit.
    pub const fn blamed(self) -> Blamed {
        match self {
            Who::Task(_) => Blamed::Task,
            Who::Creator(_) => Blamed::Creation,
            Who::Peer(_) => Blamed::Rank,
            Who::Link(..) => Blamed::Link,
            Who::Call(_) | Who::Start(_) => Blamed::Call,
            Who::Device(_) => Blamed::Operation,
            Who::Blocked(_) => Blamed::Code,
            Who::Lock(..) => Blamed::Holder,
            Who::System(_) => Blamed::System,
            Who::Uniform(_)
            | Who::Dispatch(_)
            | Who::Runtime(_)
            | Who::AbsorbingNoise(_)
            | Who::Send
            | Who::Startup
            | Who::Delivery(_) => Blamed::Runtime,
            Who::Nobody => Blamed::Nobody,
        }
    }

    /// The name in tables, after the names of the source.
    pub fn label(self, graph: &TaskGraph) -> String {
        let ty = |row: u32| graph.types.get(row as usize).map_or("?", |ty| ty.name.as_str());
        let name = |row: u32| graph.names.get(row as usize).map_or("?", |name| name.as_str());
        let node = |row: u32| graph.nodes.get(row as usize).map_or(u64::MAX, |node| node.id);
        match self {
            Who::Task(row) => format!("task {}", ty(row)),
            Who::Uniform(row) => format!("uniform {}", ty(row)),
            Who::Dispatch(row) => format!("dispatch {}", ty(row)),
            Who::Runtime(row) => format!("runtime {}", name(row)),
            Who::Start(row) => format!("start {}", name(row)),
            Who::AbsorbingNoise(row) => format!("CPUs left free: {}", name(row)),
            Who::Link(from, to) => format!("link {}->{}", node(from), node(to)),
            Who::Send => "send".to_owned(),
            Who::Startup => "startup".to_owned(),
            Who::Lock(row, holder) if (holder as usize) < graph.types.len() => {
                format!("lock {}, held from {}", name(row), ty(holder))
            }
            Who::Lock(row, _) => format!("lock {}", name(row)),
            Who::Call(row) | Who::Peer(row) => format!("call {}", name(row)),
            Who::Device(row) => format!("device {}", name(row)),
            Who::Blocked(row) if (row as usize) < graph.types.len() => format!("blocked in {}", ty(row)),
            Who::Blocked(_) => "blocked outside of tasks".to_owned(),
            Who::System(row) => format!("system {}", name(row)),
            Who::Delivery(row) => format!("delivery on {}", node(row)),
            Who::Creator(row) => format!("creator of {}", ty(row)),
            Who::Nobody => "nobody".to_owned(),
        }
    }
}

/// Numbers for [`Who`]: the frequent ones by arithmetic, others as they occur.
pub(crate) struct Keys {
    types: u32,
    names: u32,
    others: Vec<Who>,
    other_keys: FxHashMap<Who, u32>,
}

const SEND: u32 = 0;
const STARTUP: u32 = 1;
const FIRST: u32 = 2;

impl Keys {
    pub fn new(graph: &TaskGraph) -> Keys {
        let (types, names) = (graph.types.len() as u32, graph.names.len() as u32);
        Keys { types, names, others: Vec::new(), other_keys: FxHashMap::default() }
    }

    /// Number of keys so far.
    pub fn len(&self) -> usize {
        (FIRST + 3 * self.types + self.names) as usize + self.others.len()
    }

    pub fn number(&mut self, who: Who) -> u32 {
        match who {
            Who::Send => SEND,
            Who::Startup => STARTUP,
            Who::Task(row) => FIRST + row,
            Who::Uniform(row) => FIRST + self.types + row,
            Who::Dispatch(row) => FIRST + 2 * self.types + row,
            Who::Runtime(row) => FIRST + 3 * self.types + row,
            other => {
                let next = self.len() as u32;
                let others = &mut self.others;
                *self.other_keys.entry(other).or_insert_with(|| {
                    others.push(other);
                    next
                })
            }
        }
    }

    pub fn who(&self, key: usize) -> Who {
        let key = key as u32;
        let Some(row) = key.checked_sub(FIRST) else {
            return if key == SEND { Who::Send } else { Who::Startup };
        };
        let others = 3 * self.types + self.names;
        match row.checked_div(self.types).unwrap_or(3) {
            0 => Who::Task(row),
            1 => Who::Uniform(row - self.types),
            2 => Who::Dispatch(row - 2 * self.types),
            _ if row < others => Who::Runtime(row - 3 * self.types),
            _ => self.others[(row - others) as usize],
        }
    }
}
