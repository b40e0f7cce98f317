//! The task graph of an execution that was recorded as tracks of sections (OpenMP).
//!
//! A task of the graph is a *stretch*: code of one explicit task, or of a thread's own part of a region or of
//! serial code, from one wait to the next. Stretches of one task follow each other; the first waits for the
//! task's creation and for the tasks that its declared accesses order before it; one after a taskwait waits
//! for the children, one after a barrier for the team (for the last activity of each of the others, and for
//! all tasks that its own worker ran; after the last barrier of a region for all tasks), one at the begin of
//! a region for the thread that began it. A lock wait, a call into the runtime or time off the CPU is inside
//! its stretch.

pub(super) mod order;

use crate::messages::MpiCall;

use super::{
    ActivityKind, AwaitedOperation, DeviceWork, GraphBuilder, GraphError, NONE, NewData, NewTask, Operation,
    OperationWait, RecordedFacts, TaskGraph, TaskType,
};
use crate::{
    CutSpan, Execution, Group, Holders, LatePeers, NO_NUMBER, NO_TIME, ObjectIndex, OsSource, Place,
    ProcessIndex, ProcessNames, RegionIndex, SiteIndex, Span, State, TaskIndex, ThreadIndex, ThreadKind,
    TypeIndex,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Names for the contents of the graph.
pub trait Names {
    /// Name of code in a state at a place.
    fn code(&mut self, state: State, place: Place) -> TaskType;
    /// Name of the place that requested a lock.
    fn site(&mut self, site: SiteIndex) -> TaskType;
    /// Name of a lock.
    fn object(&mut self, object: ObjectIndex) -> String;
    /// Names of the data at addresses that tasks declared to access, one for each.
    fn data(&mut self, addresses: &[NamedAddress]) -> Vec<String>;
}

/// An address that tasks declared to access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedAddress {
    /// The process with its memory.
    pub process: ProcessIndex,
    /// The address.
    pub address: u64,
    /// Time of the first declaration.
    pub at: u64,
    /// The type of the task that declared it first.
    pub ty: TypeIndex,
}

pub(super) struct Stretch {
    pub worker: u32,
    state: State,
    place: Place,
    task: TaskIndex,
    region: RegionIndex,
    pub start: u64,
    pub end: u64,
    /// The wait before it, if there was one since the worker's last stretch.
    after: Option<State>,
}

/// The graph, and the number of order relations that were dropped because the clocks of threads contradict them. Waits
/// of threads for devices come from the devices' records.
///
/// # Errors
/// As [`GraphBuilder::finish`]; none is known for an [`Execution`].
pub fn from_execution(
    execution: &Execution,
    devices: &DeviceWork,
    names: &mut dyn Names,
) -> Result<(TaskGraph, u64), Vec<GraphError>> {
    let mut maker = Maker {
        execution,
        builder: GraphBuilder::new(),
        stretches: Vec::new(),
        by_worker: Vec::new(),
        worker_of: FxHashMap::default(),
        threads: Vec::new(),
        hosts: FxHashMap::default(),
        nodes: FxHashMap::default(),
        ended_by: FxHashMap::default(),
        state_names: [NONE; State::ALL.len()],
        edges: Vec::new(),
        edge_data: Vec::new(),
        dropped: 0,
        peers: LatePeers::of(execution),
    };
    maker.add_workers(names);
    maker.add_device_work(devices);
    maker.add_stretches(names);
    let last = maker.last_stretches();
    maker.order_stretches(&last);
    maker.order_tasks(&last, names);
    maker.add_edge_data();
    maker.order_by_messages(&last);
    maker.add_edge_inputs();
    let number = |stretch: &Stretch| execution.tasks.number(stretch.task).unwrap_or(NO_NUMBER);
    let numbers = maker.stretches.iter().map(number).collect();
    let process =
        |stretch: &Stretch| execution.process_of_task(stretch.task).map_or(NONE, |process| process.0);
    let (processes, task_processes) = match execution.process_count() {
        0 | 1 => (Vec::new(), Vec::new()),
        _ => (process_names(execution), maker.stretches.iter().map(process).collect()),
    };
    let (builder, threads, dropped) = maker.into_parts();
    let mut graph = builder.finish()?;
    // Tasks of the graph are numbered as their stretches.
    (graph.tasks.number, graph.tasks.process, graph.processes) = (numbers, task_processes, processes);
    for worker in &mut graph.workers {
        // Workers are numbered as their threads were found.
        let thread = threads.get(worker.id as usize).copied();
        worker.selected &= thread.is_none_or(|thread| execution.is_selected(ThreadIndex(thread)));
    }
    Ok((
        TaskGraph {
            off_cpu: off_cpu_source(execution),
            recorded: recorded(execution, graph.recorded),
            ..graph
        },
        dropped,
    ))
}

/// All processes in words.
fn process_names(execution: &Execution) -> Vec<String> {
    let names = ProcessNames::of(execution);
    let processes = (0..execution.processes.len()).map(ProcessIndex::of);
    processes.map(|process| names.process(process).unwrap_or_default()).collect()
}

/// The facts that the recorders report. The OpenMP tool reports dependences and locks. Those of nOS-V, Nanos6 and
/// NODES, and instrumented programs, report no dependences, and locks only if there was a wait.
fn recorded(execution: &Execution, found: RecordedFacts) -> RecordedFacts {
    let kinds = || execution.workers().map(|(_, thread)| thread.kind);
    let openmp = kinds().any(|kind| kind == ThreadKind::Initial)
        && kinds().all(|kind| matches!(kind, ThreadKind::Initial | ThreadKind::Worker));
    let has_no_cpu = || {
        execution
            .workers()
            .any(|(_, thread)| thread.track.spans().any(|s| s.section.state == State::OutOfCpu))
    };
    RecordedFacts {
        creation: true,
        dependences: openmp || execution.tasks.is_empty(),
        locks: openmp || found.locks,
        off_cpu: execution.knows_off_cpu() || has_no_cpu(),
    }
}

/// The source of the times off the CPU of all workers; the weakest one decides.
fn off_cpu_source(execution: &Execution) -> OsSource {
    let sources = || execution.workers().map(|(_, thread)| thread.os_source);
    if !execution.knows_off_cpu() {
        OsSource::Unknown
    } else if sources().any(|source| source == OsSource::Estimated) {
        OsSource::Estimated
    } else {
        OsSource::Switches
    }
}

/// The input that a stretch waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Awaited {
    /// Whether that ends a wait.
    synchronises: bool,
    /// The stretch that is to end.
    before: u32,
    /// The name of the data for which it waits, among the builder's names; [`NONE`] for the order of a program.
    name: u32,
}

#[derive(Clone, Copy)]
struct Edge {
    stretch: u32,
    awaits: Awaited,
}

pub(super) struct Maker<'a> {
    pub execution: &'a Execution,
    pub builder: GraphBuilder,
    pub stretches: Vec<Stretch>,
    /// Stretches of each worker, in order.
    pub by_worker: Vec<Vec<u32>>,
    pub worker_of: FxHashMap<u32, u32>,
    /// Threads of workers.
    pub threads: Vec<u32>,
    /// Numbers of hosts.
    pub hosts: FxHashMap<String, usize>,
    /// Nodes of processes, once they were asked for.
    pub nodes: FxHashMap<ProcessIndex, u64>,
    /// Data that ended the task of a stretch after its body, and when.
    pub ended_by: FxHashMap<u32, Vec<(u64, u64)>>,
    /// The builder's names of states, once they were used.
    state_names: [u32; State::ALL.len()],
    /// Edges from stretches to the stretches that wait for them.
    edges: Vec<Edge>,
    /// The inputs of edges, once each; positions are the numbers of data.
    pub edge_data: Vec<Awaited>,
    pub dropped: u64,
    /// Why processes were late.
    pub peers: LatePeers,
}

impl Maker<'_> {
    /// The rows of the graph, the threads of its workers, and how many relations were dropped; nothing else stays in memory.
    fn into_parts(self) -> (GraphBuilder, Vec<u32>, u64) {
        (self.builder, self.threads, self.dropped)
    }

    fn add_workers(&mut self, names: &mut dyn Names) {
        let holders = Holders::of(&self.execution.holds);
        let calls = self.calls_by_thread();
        for (thread, row) in self.execution.workers() {
            let process = &self.execution.processes[row.process.index()];
            let node = self.node_of(row.process);
            let mut calls = calls.get(&thread.0).map_or(&[][..], Vec::as_slice).iter().peekable();
            self.threads.push(thread.0);
            let worker = self.by_worker.len() as u32;
            self.worker_of.insert(thread.0, worker);
            self.by_worker.push(Vec::new());
            self.builder.add_worker(worker.into(), node, process.first, process.last);
            let mut open: Option<Stretch> = None;
            let mut after = None;
            for CutSpan { span, under } in self.execution.shown_spans_of_run(thread) {
                let section = span.section;
                let off = match section.state.group() {
                    Group::Off => Some(ActivityKind::OffCpu(section.state.cause())),
                    Group::Blocked => Some(ActivityKind::Blocked),
                    _ => None,
                };
                let is_lost = off.is_some();
                if let Some(kind) = off {
                    let name = self.state_name(section.state);
                    self.builder.go_on_with_activity(worker.into(), kind, name, (span.start, span.end));
                }
                // Off-CPU time of code counts within its task, which may be off for all of its length.
                let inside = match under.group() {
                    Group::Useful => {
                        let same = open.as_ref().is_some_and(|s| {
                            (s.state, s.place, s.task, s.region)
                                == (under, section.place, section.task, section.region)
                        });
                        if !same {
                            self.close(&mut open);
                            open = Some(Stretch {
                                worker,
                                state: under,
                                place: section.place,
                                task: section.task,
                                region: section.region,
                                start: span.start,
                                end: span.end,
                                after: after.take(),
                            });
                        }
                        true
                    }
                    Group::Mutex => {
                        if !is_lost {
                            self.add_lock_wait(worker, &span, &holders, thread, names);
                        }
                        true
                    }
                    Group::Runtime | Group::Unknown => {
                        if !is_lost {
                            let name = self.state_name(section.state);
                            let time = (span.start, span.end);
                            let kind = match section.state {
                                State::AbsorbingNoise => ActivityKind::AbsorbingNoise,
                                state => ActivityKind::Runtime(state.cause()),
                            };
                            self.builder.go_on_with_activity(worker.into(), kind, name, time);
                        }
                        matches!(under, State::TaskCreation | State::Dependences)
                    }
                    Group::Off | Group::Blocked => true,
                    Group::Start => {
                        while calls.next_if(|call| call.end <= span.start).is_some() {}
                        let call = calls.peek().filter(|call| call.start <= span.start);
                        let name = call.and_then(|call| call.function_name());
                        let name = name.map_or(section.state.label().into(), |name| format!("MPI_{name}"));
                        let name = self.builder.add_name(&name);
                        let (start, end) = (span.start, span.end);
                        self.builder.add_activity(worker.into(), ActivityKind::Start, name, start, end);
                        after = Some(section.state);
                        false
                    }
                    Group::Sync if section.state == State::Communication => {
                        while calls.next_if(|call| call.end <= span.start).is_some() {}
                        let call = calls.peek().filter(|call| call.start <= span.start).copied().copied();
                        self.add_call(worker, span.start, span.end, call.as_ref());
                        after = Some(section.state);
                        false
                    }
                    Group::Sync | Group::Device | Group::Idle => {
                        after = Some(under);
                        false
                    }
                };
                match &mut open {
                    Some(stretch) if inside => stretch.end = span.end,
                    _ => self.close(&mut open),
                }
            }
            self.close(&mut open);
        }
    }

    fn state_name(&mut self, state: State) -> u32 {
        let name = &mut self.state_names[state as usize];
        if *name == NONE {
            *name = self.builder.add_name(state.label());
        }
        *name
    }

    /// Adds the work of devices. Waits of threads that are not workers are left out.
    fn add_device_work(&mut self, devices: &DeviceWork) {
        for operation in &devices.operations {
            let submitter = operation.submitter.and_then(|thread| self.worker_of.get(&thread.0).copied());
            let operation = Operation {
                name: self.builder.add_name(&operation.name),
                submitter: submitter.unwrap_or(NONE),
                submitted: operation.submitted,
                start: operation.start,
                end: operation.end,
                after: operation.after.unwrap_or(NONE),
            };
            self.builder.add_operation(operation);
        }
        for wait in &devices.awaited {
            if let Some(worker) = self.worker_of.get(&wait.thread.0).copied() {
                let AwaitedOperation { start, end, operation, .. } = *wait;
                self.builder.add_operation_wait(worker.into(), OperationWait { start, end, operation });
            }
        }
        for wait in &devices.waits {
            if let Some(worker) = self.worker_of.get(&wait.thread.0).copied() {
                let process = self.execution.threads[wait.thread.index()].process;
                let life = &self.execution.processes[process.index()];
                let (start, end) = (wait.start.max(life.first), wait.end.min(life.last));
                if start < end {
                    let name = self.builder.add_name(&wait.name);
                    self.builder.add_activity(worker.into(), ActivityKind::Device, name, start, end);
                }
            }
        }
    }

    fn calls_by_thread(&self) -> FxHashMap<u32, Vec<MpiCall>> {
        let mut calls: FxHashMap<u32, Vec<MpiCall>> = FxHashMap::default();
        for call in &self.execution.communication.calls {
            calls.entry(call.thread.0).or_default().push(*call);
        }
        calls
    }

    fn close(&mut self, open: &mut Option<Stretch>) {
        if let Some(stretch) = open.take() {
            self.by_worker[stretch.worker as usize].push(self.stretches.len() as u32);
            self.stretches.push(stretch);
        }
    }

    /// Splits a wait over the holders in sequence, as each instant is the holder's doing.
    fn add_lock_wait(
        &mut self,
        worker: u32,
        span: &Span,
        holders: &Holders,
        thread: ThreadIndex,
        names: &mut dyn Names,
    ) {
        let name = self.builder.add_name(&names.object(span.section.object));
        let waiter = self.builder.add_type(names.code(span.section.state, span.section.place));
        let execution = self.execution;
        execution.split_wait(holders, thread, span, |hold, start, end| {
            let holder = hold.map_or(NONE, |hold| self.builder.add_type(names.site(hold.site)));
            self.builder.add_lock_wait(worker.into(), name, (holder, waiter), start, end);
        });
    }

    fn add_stretches(&mut self, names: &mut dyn Names) {
        let mut types: FxHashMap<(State, Place), u32> = FxHashMap::default();
        let mut begun = vec![false; self.execution.tasks.len()];
        for number in 0..self.stretches.len() {
            let stretch = &self.stretches[number];
            let builder = &mut self.builder;
            let ty = *types
                .entry((stretch.state, stretch.place))
                .or_insert_with(|| builder.add_type(names.code(stretch.state, stretch.place)));
            let mut task = NewTask::new(number as u64, ty);
            // Only the first of a task's intervals has its creation time.
            let tasks = &self.execution.tasks;
            let row = stretch.task.index();
            if stretch.task.is_some()
                && tasks.began.get(row).is_some_and(|began| stretch.start <= *began)
                && !std::mem::replace(&mut begun[row], true)
            {
                task.created = tasks.created[row].min(stretch.start);
                if tasks.created[row] == NO_TIME {
                    task.created = NO_TIME;
                }
                task.creator = self.stretch_at(tasks.creator[row].0, tasks.created[row]).map(u64::from);
            }
            let (worker, start, end) = (stretch.worker, stretch.start, stretch.end);
            self.builder.add_task(task);
            self.builder.add_piece(worker.into(), number as u64, start, end);
        }
    }

    /// The stretch that a thread was in at a time.
    fn stretch_at(&self, thread: u32, at: u64) -> Option<u32> {
        let own = &self.by_worker[*self.worker_of.get(&thread)? as usize];
        let next = own.partition_point(|number| self.stretches[*number as usize].start < at);
        let number = *own.get(next.checked_sub(1)?)?;
        (at <= self.stretches[number as usize].end).then_some(number)
    }

    /// The last stretch of a worker that had ended by `at`.
    pub(super) fn last_before(&self, worker: usize, at: u64) -> Option<u32> {
        let own = &self.by_worker[worker];
        let next = own.partition_point(|number| self.stretches[*number as usize].end <= at);
        own.get(next.checked_sub(1)?).copied()
    }

    fn wait_for(&mut self, stretch: u32, before: u32, synchronises: bool) {
        self.wait_for_data(stretch, Awaited { synchronises, before, name: NONE });
    }

    fn wait_for_data(&mut self, stretch: u32, awaits: Awaited) {
        if self.stretches[awaits.before as usize].end <= self.stretches[stretch as usize].start {
            self.edges.push(Edge { stretch, awaits });
        } else {
            self.dropped += 1;
        }
    }

    /// Adds the inputs of edges. Of the products of one stretch, named data comes first, the ends of waits last: ties
    /// of "last" go to the smaller number.
    fn add_edge_data(&mut self) {
        self.edge_data = self.edges.iter().map(|edge| edge.awaits).collect();
        self.edge_data.par_sort_unstable();
        self.edge_data.dedup();
        for (id, awaited) in self.edge_data.iter().enumerate() {
            self.builder.add_data(NewData {
                id: id as u64,
                producer: Some(awaited.before.into()),
                produced: self.stretches[awaited.before as usize].end,
                home: 0,
                bytes: 0,
                name: awaited.name,
                synchronises: awaited.synchronises,
            });
        }
    }

    fn add_edge_inputs(&mut self) {
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(self.edges.len());
        for edge in std::mem::take(&mut self.edges) {
            if let Ok(data) = self.edge_data.binary_search(&edge.awaits) {
                pairs.push((edge.stretch, data as u32));
            }
        }
        pairs.par_sort_unstable();
        pairs.dedup();
        for (number, data) in pairs {
            self.builder.add_input(number.into(), data.into());
            let start = self.stretches[number as usize].start;
            let before = self.edge_data[data as usize].before;
            for (id, at) in self.ended_by.get(&before).into_iter().flatten() {
                // Work that waits only for the task's body is not delayed by it.
                if *at <= start {
                    self.builder.add_input(number.into(), *id);
                }
            }
        }
    }
}
