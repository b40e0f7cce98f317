//! Events of the graph model to a task graph.
//!
//! The caller adds each location, hands over its events in the order of time, and calls
//! [`GraphReader::finish`]. Locations may come one after the other. Events that do not fit are counted.

use crate::payload::{text, u32_at, u64_at};
use rustc_hash::FxHashMap;
use taskscope_event::Code;
use taskscope_event::models::graph as codes;
use taskscope_execution::graph::{
    ActivityKind, GraphBuilder, GraphError, NONE, NewData, NewTask, Role, TaskGraph, TaskType,
};
use taskscope_execution::{Cause, NO_TIME};

/// Collects a [`TaskGraph`] from events.
#[derive(Default)]
pub struct GraphReader {
    builder: GraphBuilder,
    types: FxHashMap<u32, u32>,
    /// The row of each name, and the cause that is called so.
    names: FxHashMap<u32, (u32, Option<Cause>)>,
    tasks: Vec<NewTask>,
    task_rows: FxHashMap<u64, usize>,
    data: Vec<NewData>,
    data_rows: FxHashMap<u64, usize>,
    sent: FxHashMap<(u64, u64), u64>,
    arrived: Vec<(u64, u64, u64)>,
    /// Worker, name, kind, holder's type, start, end: names come in another location.
    activities: Vec<(u64, u32, u32, u32, u64, u64)>,
    location: OpenLocation,
    misfits: u64,
}

/// Open state of the location that is being read.
#[derive(Default)]
struct OpenLocation {
    worker: Option<(u64, u64, u64, Role)>,
    piece: Option<(u64, u64)>,
    last: u64,
}

impl GraphReader {
    /// A reader without events so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next events are those of another location.
    pub fn next_location(&mut self) {
        let OpenLocation { worker, piece, last } = std::mem::take(&mut self.location);
        if let Some((worker, node, begin, role)) = worker {
            // The stream was cut: open sections end at its end.
            self.misfits += 1;
            if let Some((task, start)) = piece {
                self.builder.add_piece(worker, task, start, last);
            }
            self.builder.add_thread(worker, node, begin, last, role);
        }
    }

    /// Takes an event of the location.
    pub fn event(&mut self, at: u64, code: Code, payload: &[u8]) {
        self.location.last = self.location.last.max(at);
        if self.take(at, code, payload).is_none() {
            self.misfits += 1;
        }
    }

    /// The graph, and how many events did not fit.
    ///
    /// # Errors
    /// As [`GraphBuilder::finish`].
    pub fn finish(mut self) -> Result<(TaskGraph, u64), Vec<GraphError>> {
        self.next_location();
        let mut builder = self.builder;
        let types = self.types;
        for mut task in self.tasks {
            task.ty = match types.get(&task.ty) {
                Some(row) => *row,
                None => {
                    builder.add_type(TaskType { name: format!("type {}", task.ty), ..TaskType::default() })
                }
            };
            builder.add_task(task);
        }
        for data in self.data {
            builder.add_data(data);
        }
        for (data, node, arrived) in self.arrived {
            let sent = self.sent.get(&(data, node)).copied().unwrap_or(NO_TIME);
            builder.add_copy(data, node, sent, arrived);
        }
        for (worker, name, kind, holder, start, end) in self.activities {
            let (name, cause) = match self.names.get(&name) {
                Some(known) => *known,
                None => (builder.add_name(&format!("name {name}")), None),
            };
            // The event has the category alone.
            let cause_in = |category: Cause| cause.filter(|cause| cause.is_in(category)).unwrap_or(category);
            let holder = types.get(&holder).copied().unwrap_or(NONE);
            match kind {
                codes::activity::LOCK_WAIT => builder.add_lock_wait(worker, name, (holder, NONE), start, end),
                codes::activity::COMMUNICATION => {
                    builder.add_activity(worker, ActivityKind::Communication, name, start, end)
                }
                codes::activity::PEER_WAIT => {
                    builder.add_activity(worker, ActivityKind::PeerWait, name, start, end)
                }
                codes::activity::DEVICE => {
                    builder.add_activity(worker, ActivityKind::Device, name, start, end)
                }
                codes::activity::START => builder.add_activity(worker, ActivityKind::Start, name, start, end),
                codes::activity::ABSORBING_NOISE => {
                    builder.add_activity(worker, ActivityKind::AbsorbingNoise, name, start, end)
                }
                codes::activity::OFF_CPU => {
                    builder.add_activity(worker, ActivityKind::OffCpu(cause_in(Cause::Cpu)), name, start, end)
                }
                codes::activity::BLOCKED => {
                    builder.add_activity(worker, ActivityKind::Blocked, name, start, end)
                }
                _ => {
                    let kind = ActivityKind::Runtime(cause_in(Cause::Runtime));
                    builder.add_activity(worker, kind, name, start, end);
                }
            }
        }
        builder.finish().map(|graph| (graph, self.misfits))
    }

    fn task(&mut self, id: u64) -> &mut NewTask {
        let tasks = &mut self.tasks;
        let row = *self.task_rows.entry(id).or_insert_with(|| {
            tasks.push(NewTask::new(id, NONE));
            tasks.len() - 1
        });
        &mut self.tasks[row]
    }

    fn data(&mut self, id: u64) -> &mut NewData {
        let data = &mut self.data;
        let row = *self.data_rows.entry(id).or_insert_with(|| {
            data.push(NewData {
                id,
                producer: None,
                produced: 0,
                home: 0,
                bytes: 0,
                name: NONE,
                synchronises: false,
            });
            data.len() - 1
        });
        &mut self.data[row]
    }

    /// Takes an event; `None` if it does not fit.
    fn take(&mut self, at: u64, code: Code, payload: &[u8]) -> Option<()> {
        let first = || u64_at(payload, 0);
        let second = || u64_at(payload, 8);
        match code {
            codes::TYPE => {
                let (number, line, implicit) =
                    (u32_at(payload, 0)?, u32_at(payload, 4)?, u32_at(payload, 8)?);
                let (name, rest) = text(payload.get(12..)?);
                let (function, rest) = text(rest);
                let (file, _) = text(rest);
                let ty = TaskType {
                    name: name.into_owned(),
                    function: function.into_owned(),
                    file: file.into_owned(),
                    line,
                    implicit: implicit != 0,
                };
                let row = self.builder.add_type(ty);
                self.types.insert(number, row);
            }
            codes::NAME => {
                let (name, _) = text(payload.get(4..)?);
                let row = self.builder.add_name(&name);
                self.names.insert(u32_at(payload, 0)?, (row, Cause::named(&name)));
            }
            codes::WORKER_BEGIN => {
                self.location.worker = Some((first()?, second()?, at, Role::Executes));
            }
            codes::WORKER_OF_RUNTIME => self.location.worker.as_mut()?.3 = Role::Runtime,
            codes::WORKER_END => {
                let (worker, node, begin, role) = self.location.worker.take()?;
                self.builder.add_thread(worker, node, begin, at, role);
                if let Some((task, start)) = self.location.piece.take() {
                    if start < at {
                        self.builder.add_piece(worker, task, start, at);
                    }
                    return None;
                }
            }
            codes::PIECE_BEGIN => {
                let open = self.location.piece.replace((first()?, at));
                return open.is_none().then_some(());
            }
            codes::PIECE_END => {
                let (task, start) = self.location.piece.take().filter(|(task, _)| Some(*task) == first())?;
                let (worker, ..) = self.location.worker?;
                self.builder.add_piece(worker, task, start, at);
            }
            codes::ACTIVITY => {
                let (worker, ..) = self.location.worker?;
                let (name, kind, end) = (u32_at(payload, 0)?, u32_at(payload, 4)?, second()?);
                self.activities.push((worker, name, kind, NONE, at, end));
            }
            codes::ACTIVITY_HOLDER => self.activities.last_mut()?.3 = u32_at(payload, 0)?,
            codes::TASK => self.task(first()?).ty = u32_at(payload, 8)?,
            codes::TASK_CREATED => {
                let creator = second()?;
                let task = self.task(first()?);
                (task.created, task.creator) = (at, (creator != codes::NO_ID).then_some(creator));
            }
            codes::TASK_READY => self.task(first()?).ready = at,
            codes::TASK_UNIFORM => self.task(first()?).uniform = second()?,
            codes::TASK_READS => self.builder.add_input(first()?, second()?),
            codes::DATA => {
                let producer = second()?;
                let data = self.data(first()?);
                (data.produced, data.producer) = (at, (producer != codes::NO_ID).then_some(producer));
            }
            codes::DATA_HOME => self.data(first()?).home = second()?,
            codes::DATA_BYTES => self.data(first()?).bytes = second()?,
            codes::DATA_NAME => {
                let (name, _) = text(payload.get(8..)?);
                let row = self.builder.add_name(&name);
                self.data(first()?).name = row;
            }
            codes::DATA_SYNCHRONISES => self.data(first()?).synchronises = true,
            codes::SENT => {
                self.sent.insert((first()?, second()?), at);
            }
            codes::ARRIVED => self.arrived.push((first()?, second()?, at)),
            _ => return None,
        }
        Some(())
    }
}
