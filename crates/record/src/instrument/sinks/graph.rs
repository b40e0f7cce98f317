//! The executed graph of tasks: creations, wakes and messages.
//!
//! Nodes are tasks, with their kind and running time. Edges: *made* from a task to one that it created,
//! *woke* from a task to one that it made able to run, *message* between the halves of a message (except the
//! domain of tasks' own moves). Node 0 stands for events outside of tasks.

use taskscope_context::Shown;

use super::{LiveEvent, Sink};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write;
use taskscope_event::models::instrument::DOMAIN_TASK;

/// Collects the graph, and writes it at the end.
pub struct TaskGraph {
    out: Box<dyn Write + Send>,
    json: bool,
    nodes: BTreeMap<u64, Node>,
    /// Times that each edge was seen.
    edges: BTreeMap<(u64, u64, &'static str), u64>,
    /// The task on each thread, since when.
    on: HashMap<i32, (u64, u64)>,
    /// Halves of messages that wait for the other: sender or receiver, and whether it is the sender.
    halves: HashMap<(u32, u64), (u64, bool)>,
}

#[derive(Default)]
struct Node {
    kind: String,
    ran_ns: u64,
    pieces: u64,
    ended: bool,
}

impl TaskGraph {
    /// In the language of Graphviz.
    pub fn dot(out: Box<dyn Write + Send>) -> TaskGraph {
        TaskGraph {
            out,
            json: false,
            nodes: BTreeMap::new(),
            edges: BTreeMap::new(),
            on: HashMap::new(),
            halves: HashMap::new(),
        }
    }

    /// As JSON: `{"schema":"taskscope.task-graph.1","nodes":[{"id","kind","duration_ns","pieces","ended"}],
    /// "edges":[{"from","to","type","count"}]}`.
    pub fn json(out: Box<dyn Write + Send>) -> TaskGraph {
        TaskGraph { json: true, ..TaskGraph::dot(out) }
    }

    fn task_on(&self, thread: i32) -> u64 {
        self.on.get(&thread).map_or(0, |(task, _)| *task)
    }

    fn edge(&mut self, from: u64, to: u64, kind: &'static str) {
        *self.edges.entry((from, to, kind)).or_default() += 1;
    }

    fn half(&mut self, thread: i32, domain: u32, id: u64, sends: bool) {
        if domain == DOMAIN_TASK {
            return;
        }
        let here = self.task_on(thread);
        match self.halves.remove(&(domain, id)) {
            Some((there, other_sends)) if other_sends != sends => {
                let (from, to) = if sends { (here, there) } else { (there, here) };
                self.edge(from, to, "message");
            }
            _ => {
                self.halves.insert((domain, id), (here, sends));
            }
        }
    }

    fn text(&self) -> String {
        let outside = self.edges.keys().any(|(from, to, _)| *from == 0 || *to == 0);
        let all = self.nodes.iter().filter(|(task, _)| **task != 0);
        if self.json {
            let mut nodes: Vec<String> = all
                .map(|(task, node)| {
                    format!(
                        "{{\"id\":{task},\"kind\":{},\"duration_ns\":{},\"pieces\":{},\"ended\":{}}}",
                        crate::Json::string(&node.kind).as_str(),
                        node.ran_ns,
                        node.pieces,
                        node.ended
                    )
                })
                .collect();
            if outside {
                nodes.insert(
                    0,
                    "{\"id\":0,\"kind\":\"outside of tasks\",\"duration_ns\":0,\"pieces\":0,\"ended\":false}"
                        .to_owned(),
                );
            }
            let edges: Vec<String> = self
                .edges
                .iter()
                .map(|((from, to, kind), count)| {
                    format!("{{\"from\":{from},\"to\":{to},\"type\":\"{kind}\",\"count\":{count}}}")
                })
                .collect();
            return format!(
                "{{\"schema\":\"taskscope.task-graph.1\",\"nodes\":[\n{}\n],\"edges\":[\n{}\n]}}\n",
                nodes.join(",\n"),
                edges.join(",\n")
            );
        }
        let mut text = String::from("digraph tasks {\n  node [shape=box];\n");
        if outside {
            text += "  t0 [label=\"outside of tasks\", shape=ellipse];\n";
        }
        for (task, node) in all {
            let label = node.kind.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
            let ms = node.ran_ns as f64 / 1e6;
            let _ = writeln!(text, "  t{task} [label=\"{label}\\n{task}: {ms:.3} ms\"];");
        }
        for ((from, to, kind), count) in &self.edges {
            let style = match *kind {
                "made" => "color=grey",
                "woke" => "style=dashed",
                _ => "style=solid",
            };
            let times = if *count > 1 { format!(", label=\"{count}\"") } else { String::new() };
            let _ = writeln!(text, "  t{from} -> t{to} [{style}{times}];");
        }
        text += "}\n";
        text
    }
}

impl Sink for TaskGraph {
    fn event(&mut self, event: &LiveEvent<'_>) {
        match event.shown {
            Shown::Created { task, kind, parent } => {
                self.nodes.entry(task).or_default().kind = event.names.task_kind(kind);
                self.edge(parent, task, "made");
            }
            Shown::Ready { task } => {
                let by = self.task_on(event.thread);
                if by != task {
                    self.edge(by, task, "woke");
                }
            }
            Shown::Resume { task, .. } => {
                self.on.insert(event.thread, (task, event.at));
            }
            Shown::Suspend { task, last, .. } => {
                let node = self.nodes.entry(task).or_default();
                node.ended |= last;
                if let Some((_, since)) = self.on.remove(&event.thread).filter(|(on, _)| *on == task) {
                    node.ran_ns += event.at - since;
                    node.pieces += 1;
                }
            }
            Shown::Send(m) => self.half(event.thread, m.domain, m.id, true),
            Shown::Receive(m) => self.half(event.thread, m.domain, m.id, false),
            _ => {}
        }
    }

    fn finish(&mut self) {
        let text = self.text();
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}
