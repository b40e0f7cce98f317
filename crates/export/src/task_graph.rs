//! The task graph as a graph of other programs: Graphviz's DOT, GraphML, and JSON of nodes and links.
//!
//! A node is a task. An edge is a value that one task computes and another one reads, with its size and the times at which
//! it was computed and arrived; or the creation of a task by another one. Values that were there at the start have no edge.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{NONE, TaskGraph};

/// A form of a task graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphForm {
    /// Graphviz's language.
    Dot,
    /// GraphML, XML.
    GraphMl,
    /// JSON with `nodes` and `links`, as networkx and D3 read it.
    Json,
}

/// Counts of a written graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Tasks.
    pub nodes: u64,
    /// Values between tasks, and creations.
    pub edges: u64,
}

/// Properties of nodes and edges: name, type in GraphML.
const NODE_PROPERTIES: [(&str, &str); 9] = [
    ("type", "string"),
    ("worker", "long"),
    ("start_ns", "long"),
    ("end_ns", "long"),
    ("created_ns", "long"),
    ("ready_ns", "long"),
    ("function", "string"),
    ("file", "string"),
    ("line", "long"),
];
const EDGE_PROPERTIES: [(&str, &str); 7] = [
    ("kind", "string"),
    ("data", "long"),
    ("name", "string"),
    ("bytes", "long"),
    ("produced_ns", "long"),
    ("sent_ns", "long"),
    ("arrived_ns", "long"),
];

/// Writes a graph.
///
/// # Errors
/// If it cannot be written.
pub fn write_task_graph(graph: &TaskGraph, form: GraphForm, out: &mut dyn Write) -> io::Result<GraphCounts> {
    let mut counts = GraphCounts::default();
    let mut writer = Writer { form, out };
    writer.begin()?;
    for task in 0..graph.tasks.len() {
        writer.node(graph.tasks.id[task], &node(graph, task), counts.nodes == 0)?;
        counts.nodes += 1;
    }
    writer.between()?;
    for task in 0..graph.tasks.len() {
        let id = graph.tasks.id[task];
        let creator = graph.tasks.creator(task);
        let creation = (creator != NONE).then(|| (creator, creation_of(graph, task)));
        let inputs = graph.inputs.get(task).iter().filter_map(|data| {
            let producer = graph.data.producer[*data as usize];
            (producer != NONE).then(|| (producer, value(graph, *data as usize, task)))
        });
        for (from, properties) in creation.into_iter().chain(inputs) {
            writer.edge(graph.tasks.id[from as usize], id, &properties, counts.edges)?;
            counts.edges += 1;
        }
    }
    writer.end()?;
    Ok(counts)
}

fn node(graph: &TaskGraph, task: usize) -> Map<String, Value> {
    let (tasks, mut members) = (&graph.tasks, Map::new());
    let ty = &graph.types[tasks.ty[task] as usize];
    members.insert("type".to_owned(), ty.name.as_str().into());
    let worker = graph.workers.get(tasks.worker[task] as usize).map(|worker| worker.id);
    let time = |at: u64| (at != NO_TIME).then_some(at);
    for (key, number) in [
        ("worker", worker),
        ("start_ns", worker.and_then(|_| time(tasks.start[task]))),
        ("end_ns", worker.and_then(|_| time(tasks.end[task]))),
        ("created_ns", time(tasks.created(task))),
        ("ready_ns", time(tasks.ready(task))),
        ("line", Some(u64::from(ty.line)).filter(|line| *line > 0)),
    ] {
        members.extend(number.map(|number| (key.to_owned(), number.into())));
    }
    for (key, text) in [("function", &ty.function), ("file", &ty.file)] {
        if !text.is_empty() {
            members.insert(key.to_owned(), text.as_str().into());
        }
    }
    members
}

fn creation_of(graph: &TaskGraph, task: usize) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("kind".to_owned(), "creation".into());
    let at = graph.tasks.created(task);
    if at != NO_TIME {
        members.insert("produced_ns".to_owned(), at.into());
    }
    members
}

fn value(graph: &TaskGraph, row: usize, reader: usize) -> Map<String, Value> {
    let (data, mut members) = (&graph.data, Map::new());
    let kind = if data.synchronises(row) { "synchronisation" } else { "data" };
    members.insert("kind".to_owned(), kind.into());
    members.insert("data".to_owned(), data.id[row].into());
    if let Some(name) = graph.names.get(data.name(row) as usize) {
        members.insert("name".to_owned(), name.as_str().into());
    }
    if data.bytes[row] > 0 {
        members.insert("bytes".to_owned(), data.bytes[row].into());
    }
    members.insert("produced_ns".to_owned(), data.produced[row].into());
    let node = graph.workers.get(graph.tasks.worker[reader] as usize).map(|worker| worker.node);
    let copy = graph.copies.get(row).iter().find(|copy| Some(copy.node) == node);
    if let Some(copy) = copy {
        if copy.sent != NO_TIME {
            members.insert("sent_ns".to_owned(), copy.sent.into());
        }
        members.insert("arrived_ns".to_owned(), copy.arrived.into());
    }
    members
}

struct Writer<'w> {
    form: GraphForm,
    out: &'w mut dyn Write,
}

impl Writer<'_> {
    fn begin(&mut self) -> io::Result<()> {
        match self.form {
            GraphForm::Dot => writeln!(self.out, "digraph tasks {{"),
            GraphForm::Json => write!(self.out, "{{\"directed\": true, \"multigraph\": true, \"nodes\": ["),
            GraphForm::GraphMl => {
                writeln!(self.out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
                writeln!(self.out, "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">")?;
                for (of, properties) in [("node", &NODE_PROPERTIES[..]), ("edge", &EDGE_PROPERTIES)] {
                    for (name, ty) in properties {
                        let id = format!("{of}.{name}");
                        writeln!(
                            self.out,
                            "  <key id=\"{id}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{ty}\"/>"
                        )?;
                    }
                }
                writeln!(self.out, "  <graph edgedefault=\"directed\">")
            }
        }
    }

    fn node(&mut self, id: u64, members: &Map<String, Value>, is_first: bool) -> io::Result<()> {
        match self.form {
            GraphForm::Dot => writeln!(self.out, "  {id} [{}];", dot(members, "type")),
            GraphForm::GraphMl => writeln!(self.out, "    <node id=\"{id}\">{}</node>", xml(members, "node")),
            GraphForm::Json => {
                let mut members = members.clone();
                members.insert("id".to_owned(), id.into());
                write!(self.out, "{}\n {}", if is_first { "" } else { "," }, Value::from(members))
            }
        }
    }

    fn between(&mut self) -> io::Result<()> {
        if self.form == GraphForm::Json { write!(self.out, "\n], \"links\": [") } else { Ok(()) }
    }

    fn edge(&mut self, from: u64, to: u64, members: &Map<String, Value>, number: u64) -> io::Result<()> {
        match self.form {
            GraphForm::Dot => writeln!(self.out, "  {from} -> {to} [{}];", dot(members, "name")),
            GraphForm::GraphMl => {
                let data = xml(members, "edge");
                writeln!(
                    self.out,
                    "    <edge id=\"e{number}\" source=\"{from}\" target=\"{to}\">{data}</edge>"
                )
            }
            GraphForm::Json => {
                let mut link = json!({"source": from, "target": to, "key": number});
                if let Some(link) = link.as_object_mut() {
                    link.extend(members.clone());
                }
                write!(self.out, "{}\n {link}", if number == 0 { "" } else { "," })
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self.form {
            GraphForm::Dot => writeln!(self.out, "}}"),
            GraphForm::GraphMl => writeln!(self.out, "  </graph>\n</graphml>"),
            GraphForm::Json => writeln!(self.out, "\n]}}"),
        }
    }
}

/// Attributes of DOT; the member `label` is the label, too.
fn dot(members: &Map<String, Value>, label: &str) -> String {
    let quoted = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut quoted = String::from("\"");
        for c in text.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '\n' => quoted.push_str("\\n"),
                c if c.is_control() => quoted.push('\u{fffd}'),
                c => quoted.push(c),
            }
        }
        quoted + "\""
    };
    let label = members.get(label).map(|value| format!("label={}", quoted(value)));
    let others = members.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    label.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

fn xml(members: &Map<String, Value>, of: &str) -> String {
    let mut data = String::new();
    for (name, value) in members {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(data, "<data key=\"{of}.{name}\">");
        for c in text.chars() {
            match c {
                '<' => data.push_str("&lt;"),
                '>' => data.push_str("&gt;"),
                '&' => data.push_str("&amp;"),
                // XML 1.0 has no other control characters.
                c if c.is_control() && !matches!(c, '\t' | '\n') => data.push('\u{fffd}'),
                '\u{fffe}' | '\u{ffff}' => data.push('\u{fffd}'),
                c => data.push(c),
            }
        }
        data.push_str("</data>");
    }
    data
}
