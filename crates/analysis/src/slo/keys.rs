//! Who is blamed, as small numbers while sums are made.

use rustc_hash::FxHashMap;
use taskscope_execution::graph::TaskGraph;

/// Who is blamed for time lost.
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
    /// Data under way between two nodes (latency).
    Link(u32, u32),
    /// Data that was complete and not sent (overhead).
    Send,
    /// A worker that had not begun (overhead).
    Startup,
}

impl Who {
    /// The name in tables, after the names of the source.
    pub fn label(self, graph: &TaskGraph) -> String {
        let ty = |row: u32| graph.types.get(row as usize).map_or("?", |ty| ty.name.as_str());
        let node = |row: u32| graph.nodes.get(row as usize).map_or(u64::MAX, |node| node.id);
        match self {
            Who::Task(row) => format!("task {}", ty(row)),
            Who::Uniform(row) => format!("uniform {}", ty(row)),
            Who::Dispatch(row) => format!("dispatch {}", ty(row)),
            Who::Runtime(row) => format!("runtime {}", graph.names.get(row as usize).map_or("?", |n| n)),
            Who::Link(from, to) => format!("link {}->{}", node(from), node(to)),
            Who::Send => "send".to_owned(),
            Who::Startup => "startup".to_owned(),
        }
    }
}

/// Numbers for [`Who`]: those that depend on tables of the graph by arithmetic, links as they occur.
pub(crate) struct Keys {
    types: u32,
    names: u32,
    links: Vec<(u32, u32)>,
    link_keys: FxHashMap<(u32, u32), u32>,
}

const SEND: u32 = 0;
const STARTUP: u32 = 1;
const FIRST: u32 = 2;

impl Keys {
    pub fn new(graph: &TaskGraph) -> Keys {
        let (types, names) = (graph.types.len() as u32, graph.names.len() as u32);
        Keys { types, names, links: Vec::new(), link_keys: FxHashMap::default() }
    }

    /// Number of keys so far.
    pub fn len(&self) -> usize {
        (FIRST + 3 * self.types + self.names) as usize + self.links.len()
    }

    pub fn number(&mut self, who: Who) -> u32 {
        match who {
            Who::Send => SEND,
            Who::Startup => STARTUP,
            Who::Task(row) => FIRST + row,
            Who::Uniform(row) => FIRST + self.types + row,
            Who::Dispatch(row) => FIRST + 2 * self.types + row,
            Who::Runtime(row) => FIRST + 3 * self.types + row,
            Who::Link(from, to) => {
                let next = self.len() as u32;
                let links = &mut self.links;
                *self.link_keys.entry((from, to)).or_insert_with(|| {
                    links.push((from, to));
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
        let links = 3 * self.types + self.names;
        match row.checked_div(self.types).unwrap_or(3) {
            0 => Who::Task(row),
            1 => Who::Uniform(row - self.types),
            2 => Who::Dispatch(row - 2 * self.types),
            _ if row < links => Who::Runtime(row - 3 * self.types),
            _ => {
                let (from, to) = self.links[(row - links) as usize];
                Who::Link(from, to)
            }
        }
    }
}
