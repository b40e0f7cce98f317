//! A task graph as a trace directory: one location for each worker, and one for the facts that belong to
//! no worker. The events are those of `taskscope_event::models::graph`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::framing::{JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, size_code};
use taskscope_event::models::graph as codes;
use taskscope_event::{Code, StreamFile, layout};
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{ActivityKind, NONE, Role, TaskGraph};
use taskscope_files::{NewDirectory, write_file};

/// Writes `graph` into the directory `root`, which is new or empty. It appears when it is complete.
///
/// # Errors
/// If `root` is not empty, or a system error.
pub fn write_graph(graph: &TaskGraph, root: &Path) -> io::Result<()> {
    let trace = NewDirectory::create(root)?;
    facts(graph).write(&trace.path().join("graph"), "graph")?;
    for worker in 0..graph.workers.len() {
        let name = format!("worker.{}", graph.workers[worker].id);
        worker_events(graph, worker).write(&trace.path().join(&name), "worker")?;
    }
    trace.commit()
}

fn worker_events(graph: &TaskGraph, row: usize) -> Events {
    let mut events = Events::default();
    let worker = graph.workers[row];
    let node = graph.nodes[worker.node as usize].id;
    events.plain(worker.begin, codes::WORKER_BEGIN, &[&worker.id.to_le_bytes(), &node.to_le_bytes()]);
    if worker.role == Role::Runtime {
        events.plain(worker.begin, codes::WORKER_OF_RUNTIME, &[]);
    }
    for piece in graph.pieces.get(row) {
        let task = graph.tasks.id[piece.task as usize].to_le_bytes();
        events.plain(piece.start, codes::PIECE_BEGIN, &[&task]);
        events.plain(piece.end, codes::PIECE_END, &[&task]);
    }
    for activity in graph.activities.get(row) {
        let kind = match activity.kind {
            ActivityKind::LockWait => codes::activity::LOCK_WAIT,
            ActivityKind::PeerWait => codes::activity::PEER_WAIT,
            ActivityKind::Communication => codes::activity::COMMUNICATION,
            ActivityKind::Device => codes::activity::DEVICE,
            ActivityKind::Start => codes::activity::START,
            ActivityKind::AbsorbingNoise => codes::activity::ABSORBING_NOISE,
            ActivityKind::Runtime(_) => codes::activity::RUNTIME,
            ActivityKind::OffCpu(_) => codes::activity::OFF_CPU,
            ActivityKind::Blocked => codes::activity::BLOCKED,
        };
        let fields: [&[u8]; 3] =
            [&activity.name.to_le_bytes(), &kind.to_le_bytes(), &activity.end.to_le_bytes()];
        events.plain(activity.start, codes::ACTIVITY, &fields);
        if activity.holder != NONE {
            events.plain(activity.start, codes::ACTIVITY_HOLDER, &[&activity.holder.to_le_bytes()]);
        }
    }
    events.plain(worker.end, codes::WORKER_END, &[]);
    events
}

fn facts(graph: &TaskGraph) -> Events {
    let mut events = Events::default();
    let first = graph.range().0;
    for (row, ty) in graph.types.iter().enumerate() {
        let numbers = [row as u32, ty.line, u32::from(ty.implicit)].map(u32::to_le_bytes);
        let mut data = numbers.concat();
        for text in [&ty.name, &ty.function, &ty.file] {
            data.extend(c_string(text));
        }
        events.jumbo(first, codes::TYPE, &data);
    }
    for (row, name) in graph.names.iter().enumerate() {
        events.jumbo(first, codes::NAME, &[&(row as u32).to_le_bytes()[..], &c_string(name)].concat());
    }
    let tasks = &graph.tasks;
    for row in 0..tasks.len() {
        let id = tasks.id[row].to_le_bytes();
        let known = [tasks.created(row), tasks.ready(row), tasks.start[row]].into_iter().min();
        let known = known.filter(|at| *at != NO_TIME).unwrap_or(first);
        events.plain(known, codes::TASK, &[&id, &tasks.ty[row].to_le_bytes()]);
        if tasks.created(row) != NO_TIME || tasks.creator(row) != NONE {
            let creator = tasks.creator(row);
            let creator = if creator == NONE { codes::NO_ID } else { tasks.id[creator as usize] };
            let at = if tasks.created(row) == NO_TIME { known } else { tasks.created(row) };
            events.plain(at, codes::TASK_CREATED, &[&id, &creator.to_le_bytes()]);
        }
        if tasks.ready(row) != NO_TIME {
            events.plain(tasks.ready(row), codes::TASK_READY, &[&id]);
        }
        if tasks.uniform(row) != 0 {
            events.plain(known, codes::TASK_UNIFORM, &[&id, &tasks.uniform(row).to_le_bytes()]);
        }
        for input in graph.inputs.get(row) {
            events.plain(known, codes::TASK_READS, &[&id, &graph.data.id[*input as usize].to_le_bytes()]);
        }
    }
    let data = &graph.data;
    for row in 0..data.len() {
        let id = data.id[row].to_le_bytes();
        let at = data.produced[row];
        let producer = match data.producer[row] {
            NONE => codes::NO_ID,
            task => tasks.id[task as usize],
        };
        events.plain(at, codes::DATA, &[&id, &producer.to_le_bytes()]);
        let home = graph.nodes[data.home[row] as usize].id;
        events.plain(at, codes::DATA_HOME, &[&id, &home.to_le_bytes()]);
        events.plain(at, codes::DATA_BYTES, &[&id, &data.bytes[row].to_le_bytes()]);
        if let Some(name) = graph.names.get(data.name(row) as usize) {
            events.jumbo(at, codes::DATA_NAME, &[&id[..], &c_string(name)].concat());
        }
        if data.synchronises(row) {
            events.plain(at, codes::DATA_SYNCHRONISES, &[&id]);
        }
        for copy in graph.copies.get(row) {
            let node = graph.nodes[copy.node as usize].id.to_le_bytes();
            if copy.sent != NO_TIME {
                events.plain(copy.sent, codes::SENT, &[&id, &node]);
            }
            events.plain(copy.arrived, codes::ARRIVED, &[&id, &node]);
        }
    }
    events
}

/// The bytes of `text` up to its first NUL, and a NUL.
fn c_string(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    bytes.push(0);
    bytes
}

/// Events of one location, in any order.
#[derive(Default)]
struct Events {
    bytes: Vec<u8>,
    /// Clock and range of bytes.
    order: Vec<(u64, usize, u32)>,
}

impl Events {
    fn head(&mut self, clock: u64, flags: u8, code: Code) -> usize {
        let start = self.bytes.len();
        self.bytes.push(flags);
        self.bytes.extend(code.0);
        self.bytes.extend(clock.to_le_bytes());
        start
    }

    fn plain(&mut self, clock: u64, code: Code, fields: &[&[u8]]) {
        let size = fields.iter().map(|field| field.len()).sum();
        let start = self.head(clock, size_code(size), code);
        for field in fields {
            self.bytes.extend_from_slice(field);
        }
        self.order.push((clock, start, (self.bytes.len() - start) as u32));
    }

    fn jumbo(&mut self, clock: u64, code: Code, data: &[u8]) {
        let start = self.head(clock, JUMBO_FLAG | JUMBO_SIZE_CODE, code);
        self.bytes.extend((data.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(data);
        self.order.push((clock, start, (self.bytes.len() - start) as u32));
    }

    fn write(mut self, directory: &Path, kind: &str) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        // Stable: events of one instant keep their input order.
        self.order.sort_by_key(|event| event.0);
        write_file(&directory.join(StreamFile::Own.name()), |file| {
            file.write_all(&file_header())?;
            self.order
                .iter()
                .try_for_each(|(_, start, size)| file.write_all(&self.bytes[*start..*start + *size as usize]))
        })?;
        let metadata = serde_json::json!({
            "version": 1,
            "kind": kind,
            "require": {"taskscope-graph": codes::VERSION},
            "finished": 1,
        });
        write_file(&directory.join(layout::LOCATION_METADATA), |file| writeln!(file, "{metadata:#}"))
    }
}
