//! Threads, processes and CPUs of the execution, from the metadata of the streams.

use crate::recorders::{JoinedRecorders, RecorderName, recorder_name};
use crate::selection::{Part, Selected};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use taskscope_event::models::{MODELS_OF_CPUS, system};
use taskscope_execution::{ExecutionBuilder, ProcessIndex, ThreadIndex};
use taskscope_model::semantic::{Interpreter, LoomNumber};
use taskscope_trace::{Stream, Trace};

/// The streams of a trace as threads of the execution.
pub(crate) struct Threads {
    /// Thread of each stream.
    pub threads: Vec<ThreadIndex>,
    /// Recorder of each stream, which is a process to the interpreter.
    pub recorders: Vec<ProcessIndex>,
    /// Process of each recorder.
    pub processes: Vec<ProcessIndex>,
    /// Processes by the names of their recorders.
    pub names: FxHashMap<RecorderName, ProcessIndex>,
    /// Looms with CPUs as workers.
    looms_of_cpus: Vec<String>,
}

impl Threads {
    /// Streams of threads with several recorders, so that each stream has a part.
    pub fn shared(&self) -> Vec<bool> {
        let mut streams_of: Vec<u32> = Vec::new();
        for thread in &self.threads {
            streams_of.resize(streams_of.len().max(thread.index() + 1), 0);
            streams_of[thread.index()] += 1;
        }
        self.threads.iter().map(|thread| streams_of[thread.index()] > 1).collect()
    }

    /// The part of each stream that is replayed. A CPU's state is that of its threads, one after the other: if only
    /// some threads of its loom are selected, the others' events are left out.
    pub fn parts(&self, trace: &Trace, selected: &Selected<'_>) -> Vec<Part> {
        let mut parts: Vec<Part> =
            (0..trace.streams().len()).map(|stream| selected.part_of(stream)).collect();
        for loom in &self.looms_of_cpus {
            let own = || trace.streams().iter().map(|stream| stream.loom().unwrap_or_default() == *loom);
            let loom_has = |part| own().zip(&parts).any(|(own, other)| own && *other == part);
            if loom_has(Part::Whole) && loom_has(Part::Others) {
                let own = own().zip(&mut parts).filter(|(own, part)| *own && **part == Part::Others);
                own.for_each(|(_, part)| *part = Part::Passing);
            }
        }
        parts
    }
}

/// Adds one thread per stream, or one for several recorders of the same thread; processes are distinguished by loom and
/// process id.
pub(crate) fn add_threads(
    trace: &Trace,
    builder: &mut ExecutionBuilder,
    interpreter: &mut Interpreter,
) -> Threads {
    let joined = JoinedRecorders::of(trace);
    let mut all = Threads {
        threads: Vec::with_capacity(trace.streams().len()),
        recorders: Vec::with_capacity(trace.streams().len()),
        processes: Vec::new(),
        names: FxHashMap::default(),
        looms_of_cpus: Vec::new(),
    };
    // Few traces have the kernel's switches among the runtime's events.
    let has_switches = trace.streams().iter().any(|stream| requires(stream, &["kernel"]));
    let with_os_times = if has_switches { threads_with_os_times(trace) } else { FxHashSet::default() };
    let mut recorders = FxHashMap::default();
    for (number, stream) in trace.streams().iter().enumerate() {
        let name = recorder_name(stream);
        let shown = joined.process_of(name.clone());
        let process =
            *all.names.entry(shown.clone()).or_insert_with(|| builder.add_process(&shown.0, shown.1));
        all.names.entry(name.clone()).or_insert(process);
        let recorder = *recorders.entry(name.clone()).or_insert_with(|| {
            all.processes.push(process);
            ProcessIndex::of(all.processes.len() - 1)
        });
        all.recorders.push(recorder);
        let on_cpus = requires(stream, &MODELS_OF_CPUS);
        let first = joined.first_stream[number];
        let thread = if first < number {
            let thread = all.threads[first];
            interpreter.add_recorder(thread, recorder, on_cpus);
            thread
        } else {
            builder.add_thread(process, stream.tid().unwrap_or(0));
            interpreter.add_thread_of(recorder, process)
        };
        all.threads.push(thread);
        builder.name_thread(thread, trace.thread_name(stream));
        if stream.metadata.recorder.is_beside {
            builder.thread_is_beside(thread);
        }
        if on_cpus {
            interpreter.has_subsystems(thread);
        }
        if has_openmp_tool(stream) {
            interpreter.is_of_openmp(thread);
        }
        if has_switches && with_os_times.contains(&(name.clone(), stream.tid().unwrap_or(0))) {
            interpreter.has_os_times(thread);
        }
        if stream.metadata.recorder.ended_with_process {
            interpreter.ends_with_process(thread);
        }
        let reports_itt = stream.metadata.recorder.has_itt;
        let is_beside = stream.metadata.recorder.is_beside;
        let works = (works_on_threads(stream) && !is_beside) || reports_itt;
        if works && stream.tid().unwrap_or(0) == name.1 {
            interpreter.is_initial(thread);
            // It takes part in the work, even if it takes up no task.
            if reports_itt {
                builder.thread_works(thread);
            }
        }
    }
    add_cpus(trace, &mut all, builder, interpreter);
    all
}

/// Whether the stream belongs to a process with our tool in its OpenMP runtime.
fn has_openmp_tool(stream: &Stream) -> bool {
    requires(stream, &["openmp"]) && stream.metadata.recorder.has_openmp_tool
}

/// Whether the stream belongs to a program with threads as workers, by its recorder.
fn works_on_threads(stream: &Stream) -> bool {
    stream.metadata.recorder.threads_are_workers
}

/// Whether the stream has events of one of these models.
pub(crate) fn requires(stream: &Stream, models: &[&str]) -> bool {
    stream.metadata.require.iter().flatten().any(|(model, _)| models.contains(&model.as_str()))
}

/// Adds the CPUs of looms with such a runtime as workers. They belong to the loom: each stream may name some of them.
fn add_cpus(trace: &Trace, all: &mut Threads, builder: &mut ExecutionBuilder, interpreter: &mut Interpreter) {
    let mut looms: BTreeMap<&str, BTreeMap<i64, i64>> = BTreeMap::new();
    for stream in trace.streams().iter().filter(|stream| !works_on_threads(stream)) {
        if requires(stream, &MODELS_OF_CPUS) {
            looms.entry(stream.loom().unwrap_or_default()).or_default();
        }
    }
    for stream in trace.streams() {
        if let Some(cpus) = looms.get_mut(stream.loom().unwrap_or_default()) {
            let named = stream.metadata.loom_cpus.iter().flatten();
            cpus.extend(named.map(|cpu| (cpu.phyid, cpu.index)));
        }
    }
    // Without a named CPU the threads stay the workers.
    looms.retain(|_, cpus| !cpus.is_empty());
    for (number, (loom, cpus)) in looms.iter().enumerate() {
        let number = LoomNumber(number as u32);
        let process = builder.add_cpus_of(loom);
        all.looms_of_cpus.push((*loom).to_owned());
        all.processes.push(process);
        let holder = ProcessIndex::of(all.processes.len() - 1);
        for (phyid, index) in cpus {
            builder.add_thread(process, *phyid);
            interpreter.add_cpu(holder, number, *index as i32);
        }
        for (stream, thread) in trace.streams().iter().zip(&all.threads) {
            if stream.loom().unwrap_or_default() == *loom && !works_on_threads(stream) {
                interpreter.works_on_cpus_of(*thread, number, stream.tid().unwrap_or(0) as i32);
            }
        }
    }
}

/// The threads with times off the CPU in side streams, by loom, process and thread id.
fn threads_with_os_times(trace: &Trace) -> FxHashSet<(RecorderName, i64)> {
    let mut all = FxHashSet::default();
    for location in trace.locations().iter().filter(|location| location.metadata["kind"] == "os-time") {
        let (loom, pid) = (&location.metadata["loom"], &location.metadata["pid"]);
        let (Some(loom), Some(pid)) = (loom.as_str(), pid.as_i64()) else { continue };
        let watched = location.events().filter(|event| event.code == system::THREAD);
        let tids = watched.filter_map(|event| Some(u64::from_le_bytes(*event.payload.first_chunk()?)));
        all.extend(tids.map(|tid| ((loom.to_owned(), pid), tid as i64)));
    }
    all
}
