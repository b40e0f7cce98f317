//! Opens a trace: plays it through the models, keeps the execution and everything that is wrong.
//!
//! [`Session::open`] takes a directory; names of code places are resolved when they are asked for
//! ([`Session::places`]). Damaged and unfinished traces give what can be read; only a directory without
//! any stream is an error. Speed of opening: see `docs/performance.md`.
#![forbid(unsafe_code)]

pub mod cache;
mod call_tree;
mod cpus;
mod data_names;
pub mod device_check;
mod device_work;
pub mod devices;
mod doubts;
pub mod emulation;
pub mod graph;
mod in_memory;
mod in_order;
pub mod instrumentation;
pub mod judgement;
pub mod model_views;
mod os_time;
mod places;
mod playing;
mod profiles;
mod recorders;
mod run_file;
pub mod selection;
mod stops;
mod task_graph;
mod told_ranks;
mod track_file;

pub use call_tree::name_call_paths;
pub use device_work::{CallWait, call_waits};
pub use places::Places;
pub use profiles::{MAX_PROFILE_BYTES, MergedProfiles, ProfileProblem, merge_profiles, profile_files};
pub use run_file::{NotRecorded, Notice, RunFile};
pub use taskscope_symbol::KeptModules;
pub use taskscope_trace::{OpenError, Problem, ProblemKind};

use playing::Playing;
use recorders::{Joined, OfProcesses, RecorderName, name_of};
use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Part, Selected, Selection};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use taskscope_event::StreamFile;
use taskscope_event::models::{MODELS, samples};
use taskscope_execution::{Doubt, Execution, ExecutionBuilder, ProcessIndex, ThreadIndex, ThreadKind};
use taskscope_filter::TimeRange;
use taskscope_model::semantic::{Interpreter, LoomNumber};
use taskscope_trace::{ClockOffsets, OpenOptions, Stream, Trace};
use track_file::TrackFile;

/// A thread's stream, as far as a reader of the report needs it.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// Path of its directory below the trace's root.
    pub path: String,
    /// The thread.
    pub thread: ThreadIndex,
    /// Whether the thread ended its stream properly.
    pub finished: bool,
    /// Whether all of its bytes could be read as events.
    pub whole: bool,
    /// Events of both files.
    pub events: u64,
    /// Time of the last event, or of a later sample, if there is one.
    pub last: Option<u64>,
    /// What was added to its clocks, nanoseconds.
    pub clock_offset_ns: i64,
}

/// An opened trace.
pub struct Session {
    /// The directory, as it was given.
    pub root: PathBuf,
    /// What happened.
    pub execution: Execution,
    /// The part of the run that is asked about, nanoseconds of the trace's clock; `None` for all of it.
    pub range: Option<(u64, u64)>,
    /// The part of the time that the execution was cut to, first and last + 1 by the trace's clock; all time where it was not.
    pub times: (u64, u64),
    /// What `taskscope record` says about the run.
    pub run: Option<RunFile>,
    /// All streams.
    pub streams: Vec<StreamInfo>,
    /// What is wrong with the streams.
    pub problems: Vec<Problem>,
    /// What is wrong with the run file, if it cannot be used.
    pub run_file_problem: Option<String>,
    /// Events of all streams.
    pub events: u64,
    /// Events by model, ovni's models first, zeros left out.
    pub events_by_model: Vec<(&'static str, u64)>,
    /// Events with clocks too far from the first one to be true; they were taken at the limit.
    pub clocks_too_far: u64,
    /// Samples shorter than they say.
    pub unreadable_samples: u64,
    /// Queues of devices and the calls that concern them.
    pub devices: taskscope_execution::devices::Devices,
    /// The offsets between the clocks of hosts that were applied, where there is a table of them.
    pub clock_offsets: Option<ClockOffsets>,
    /// Names of code places.
    pub places: Places,
    /// Which part of the trace this is, in words; `None` for the whole.
    pub part: Option<String>,
    /// Whether a filter leaves events out of it.
    pub filtered: bool,
    /// Whether nOS-V was recorded without its idle states: a CPU that serves tasks and has none seems to be scheduling.
    pub lacks_resting: bool,
}

pub use in_order::{LONGEST_NS, ReadProgress};

/// A task has at least three events of its own, and hardly ever fewer than this with those around it. Where it has,
/// memory is made for it later.
const EVENTS_OF_TASK: u64 = 8;

/// How the time from an event of this code on counts, where the event alone tells.
pub fn state_of_event(code: [u8; 3]) -> Option<taskscope_execution::State> {
    taskscope_model::semantic::state_of_event(taskscope_event::Code(code))
}

/// Kinds of damage that mean that events are missing. Of clocks that cannot be true the events are there, and the
/// timeline is marked.
pub fn is_damage(kind: ProblemKind) -> bool {
    !matches!(
        kind,
        ProblemKind::UnfinishedStream
            | ProblemKind::ClockGoesBack
            | ProblemKind::ClockTooLarge
            | ProblemKind::MissingAttribute
            | ProblemKind::MetadataVersion
            | ProblemKind::EmptyStream
            | ProblemKind::UnsortedRegion
            | ProblemKind::OpenUnsortedRegion
            | ProblemKind::ClockOffsets
            | ProblemKind::NoClockOffsets
            | ProblemKind::ClockGate
            | ProblemKind::UnknownPart
    )
}

/// Whether a reader should know of it. Regions that declare themselves unsorted are the way in which nOS-V records the
/// kernel's events: sorting them while reading is all that they need.
pub fn is_reported(kind: ProblemKind) -> bool {
    kind != ProblemKind::UnsortedRegion
}

impl Session {
    /// Opens the trace in `root` and plays it.
    ///
    /// # Errors
    /// Only where there is no stream to read.
    pub fn open(root: impl AsRef<Path>) -> Result<Session, OpenError> {
        Session::open_part(root, &Selection::default(), &ReadProgress::default())
    }

    /// The same for somebody who waits and watches how far it is: a long run is stored on a second thread, for less
    /// time and more processor time (`docs/performance.md`).
    ///
    /// # Errors
    /// Only where there is no stream to read.
    pub fn open_soon(root: impl AsRef<Path>, progress: &ReadProgress) -> Result<Session, OpenError> {
        Session::play(root.as_ref(), &Selection::default(), progress, true)
    }

    /// Opens the trace in `root` and plays what is selected: of a range, the whole is played and then cut, so that everything in
    /// it is what it is in the whole; events that do not pass the filter make no states (see [`selection`]).
    ///
    /// # Errors
    /// Only where there is no stream to read.
    pub fn open_part(
        root: impl AsRef<Path>,
        selection: &Selection,
        progress: &ReadProgress,
    ) -> Result<Session, OpenError> {
        Session::play(root.as_ref(), selection, progress, false)
    }

    fn play(
        root: &Path,
        selection: &Selection,
        progress: &ReadProgress,
        is_waited_for: bool,
    ) -> Result<Session, OpenError> {
        // Of a part of the trace all events are played in order.
        let trace =
            Trace::open(root, &OpenOptions { turns: selection.is_everything(), ..OpenOptions::default() })?;
        let (run, run_file_problem) = match RunFile::load(root) {
            Ok(run) => (run, None),
            Err(problem) => (None, Some(problem)),
        };
        let mut builder = ExecutionBuilder::new();
        let mut interpreter = Interpreter::new();
        let all = add_threads(&trace, &mut builder, &mut interpreter);
        let track_file = TrackFile::for_events(trace.event_count());
        if let Some(file) = &track_file {
            builder.keep_long_tracks_in(file.clone());
            if is_waited_for {
                builder.store_beside();
            }
        }
        if selection.is_everything() {
            // An event changes what its thread is in at most once, or hardly ever more often.
            for (stream, thread) in trace.streams().iter().zip(&all.threads) {
                builder.expect_sections(*thread, stream.event_count());
            }
            let tasks = trace.event_count() / EVENTS_OF_TASK;
            builder.expect_tasks(tasks);
            interpreter.expect_tasks(tasks);
        }
        let selected = selection.of(&trace);
        let parts = all.parts(&trace, &selected);
        let in_order = match selected.is_everything() {
            true => all.shared(),
            false => vec![true; all.threads.len()],
        };
        let needs_order = in_order::NeedsOrder::with_all_of(in_order);
        let mut playing = Playing::new(&mut builder, &mut interpreter, &all);
        let latest = in_order::play(&trace, selected, &parts, &needs_order, progress, &mut playing);
        let events_of_streams = playing.finish();
        let Playing { by_letter, clocks_too_far, .. } = playing;
        let Threads { threads, recorders, processes, names, .. } = all;
        // Events with later clocks were taken at the latest time that can be true.
        let clock_at = |time_ns: i64| {
            let clock = selected.origin_ns.saturating_add(time_ns).max(0) as u64;
            clock.min(latest.unwrap_or(u64::MAX))
        };
        // A killed thread may have been in one section for long: it lives on to its last sample, or to the last sign of life of
        // its process.
        for (stream, thread) in trace.streams().iter().zip(&threads) {
            let later = stream.last_clock_of(StreamFile::Samples).max(stream.alive_until_ns());
            if let Some(last) = later {
                let at = (last.max(0) as u64).min(latest.unwrap_or(u64::MAX));
                builder.lives_at(*thread, at);
                interpreter.lives_at(*thread, at);
            }
        }
        let mut out = OfProcesses { builder: &mut builder, processes: &processes };
        interpreter.finish(&mut out);
        let mut unreadable_samples = 0;
        for (number, stream) in trace.streams().iter().enumerate() {
            interpreter.speaks(threads[number], recorders[number]);
            unreadable_samples += read_samples(stream, threads[number], &interpreter, &mut out, latest);
        }
        let mut places = None;
        let mut execution = builder.finish_doubting(
            |catalog| {
                let kept = KeptModules::of_trace(root);
                places.insert(Places::of_catalog(catalog).with_kept(kept)).joined()
            },
            |execution| doubts::of_streams(&trace, &threads, execution),
        );
        if let Some(error) = track_file.as_ref().and_then(|file| file.failure()) {
            return Err(OpenError::PlayedLost { path: root.to_path_buf(), text: error.to_string() });
        }
        cpus::add_cpus(&trace, &threads, &names, &mut execution);
        os_time::add_os_times(&trace, &names, &mut execution);
        let devices = devices::read_devices(&trace);
        execution.attribute_system_time_and_devices(&device_work::device_waits(&execution, &devices));
        told_ranks::add_told_ranks(&trace, &threads, &mut execution);
        for (stream, thread) in trace.streams().iter().zip(&threads) {
            let since = stream.asleep_since_ns().map(|since| since.max(0) as u64);
            execution.threads[thread.index()].asleep_since = since;
        }
        let (begin_ns, end_ns) = selection.range.resolve(emulation::length_ns(&trace));
        let range =
            (selection.range != TimeRange::default()).then(|| (clock_at(begin_ns.max(0)), clock_at(end_ns)));
        let cut = range.filter(|_| !selection.whole);
        if let Some((begin, end)) = cut {
            execution.cut(begin, end);
        }
        select(&mut execution, &trace, &threads, &parts);
        for (thread, events) in threads.iter().zip(&events_of_streams) {
            execution.threads[thread.index()].events = *events;
        }
        // Recorders without a stream of their own tell their losses in the metadata.
        for (stream, thread) in trace.streams().iter().zip(&threads) {
            let told = stream.metadata.raw["taskscope"]["lost_events"].as_u64().unwrap_or(0);
            let lost = &mut execution.threads[thread.index()].lost_events;
            *lost = told.max(*lost);
        }
        let damaged: FxHashSet<&str> =
            trace.problems().iter().filter(|p| is_damage(p.kind)).map(|p| p.stream.as_str()).collect();
        let streams = (trace.streams().iter().zip(&threads))
            .map(|(stream, thread)| StreamInfo {
                path: stream.relative_path.clone(),
                thread: *thread,
                finished: stream.is_finished(),
                whole: !damaged.contains(stream.relative_path.as_str()),
                events: stream.event_count(),
                last: doubts::known_until(stream).map(|clock| clock.max(0) as u64),
                clock_offset_ns: stream.clock.offset_ns,
            })
            .collect();
        execution.filtered = selection.filter.is_some() && parts.contains(&Part::Passing);
        device_work::add_target_waits(&mut execution, &devices);
        Ok(Session {
            root: root.to_path_buf(),
            devices,
            places: places.map_or_else(|| Places::of(&execution), |places| places.with_calls_of(&execution)),
            unreadable_samples,
            filtered: execution.filtered,
            execution,
            range,
            times: cut.unwrap_or((0, u64::MAX)),
            run,
            run_file_problem,
            streams,
            part: selection.words.clone(),
            lacks_resting: trace.streams().iter().any(|stream| {
                requires(stream, &["nosv"]) && stream.metadata.raw["nosv"]["can_breakdown"] == false
            }),
            problems: trace.problems().iter().filter(|problem| is_reported(problem.kind)).cloned().collect(),
            clock_offsets: trace.clock_offsets().cloned(),
            events: by_letter.iter().sum(),
            clocks_too_far,
            events_by_model: MODELS
                .iter()
                .map(|model| (model.name, by_letter[model.letter as usize]))
                .filter(|(_, events)| *events > 0)
                .collect(),
        })
    }

    /// Whether every stream ended properly and not before its thread, could be read to its end, and none was left out.
    pub fn is_complete(&self) -> bool {
        self.streams.iter().all(|stream| stream.finished && stream.whole)
            && self.endless_threads().next().is_none()
            && self.devices.queues.iter().all(|queue| queue.finished)
            && !self.problems.iter().any(|problem| is_damage(problem.kind))
    }

    /// Threads whose streams end before the threads do.
    pub fn endless_threads(&self) -> impl Iterator<Item = ThreadIndex> + '_ {
        let ends = self.execution.uncertain.iter().filter(|part| part.doubt == Doubt::StreamEnds);
        ends.map(|part| part.thread)
    }

    /// Events that recorders say they lost.
    pub fn lost_events(&self) -> u64 {
        self.execution.threads.iter().fold(0, |lost, thread| lost.saturating_add(thread.lost_events))
    }
}

/// Hands the samples of a stream over; how many could not be read.
fn read_samples(
    stream: &Stream,
    thread: ThreadIndex,
    interpreter: &Interpreter,
    out: &mut OfProcesses<'_>,
    latest: Option<u64>,
) -> u64 {
    let mut unreadable = 0;
    for event in stream.events_of(StreamFile::Samples).filter(|event| event.code == samples::SAMPLE) {
        let at = (event.clock_ns.max(0) as u64).min(latest.unwrap_or(u64::MAX));
        unreadable += u64::from(!interpreter.sample(thread, at, event.payload, out));
    }
    unreadable
}

/// What streams are in the execution.
struct Threads {
    /// Of each stream.
    threads: Vec<ThreadIndex>,
    /// Of each stream: its recorder, which is a process to the interpreter.
    recorders: Vec<ProcessIndex>,
    /// Of each recorder.
    processes: Vec<ProcessIndex>,
    /// Processes by the names of their recorders.
    names: FxHashMap<RecorderName, ProcessIndex>,
    /// Looms whose CPUs are the workers.
    looms_of_cpus: Vec<String>,
}

impl Threads {
    /// What is played of each stream. A CPU is in what its threads are in, one after the other: where only some of its loom's
    /// threads are asked about, the others' events are left out.
    fn parts(&self, trace: &Trace, selected: &Selected<'_>) -> Vec<Part> {
        let mut parts: Vec<Part> =
            (0..trace.streams().len()).map(|stream| selected.part_of(stream)).collect();
        for loom in &self.looms_of_cpus {
            let own = || trace.streams().iter().map(|stream| stream.loom().unwrap_or_default() == *loom);
            let of_loom = |part| own().zip(&parts).any(|(own, other)| own && *other == part);
            if of_loom(Part::Whole) && of_loom(Part::Others) {
                let own = own().zip(&mut parts).filter(|(own, part)| *own && **part == Part::Others);
                own.for_each(|(_, part)| *part = Part::Passing);
            }
        }
        parts
    }
}

/// Marks the threads that are not asked about, and CPUs on which only such threads run.
fn select(execution: &mut Execution, trace: &Trace, threads: &[ThreadIndex], parts: &[Part]) {
    if !parts.contains(&Part::Others) {
        return;
    }
    let asked = |stream: &usize| parts[*stream] != Part::Others;
    let mut looms: FxHashSet<&str> = FxHashSet::default();
    let mut of_threads: FxHashSet<ThreadIndex> = FxHashSet::default();
    for stream in (0..threads.len()).filter(asked) {
        looms.insert(trace.streams()[stream].loom().unwrap_or_default());
        of_threads.insert(threads[stream]);
    }
    let processes = &execution.processes;
    for (index, thread) in execution.threads.iter_mut().enumerate() {
        thread.selected = match thread.kind {
            ThreadKind::Cpu => looms.contains(processes[thread.process.index()].loom.as_str()),
            _ => of_threads.contains(&ThreadIndex(index as u32)),
        };
    }
}

/// One thread a stream, but where several recorders wrote of the same one; processes are told apart by loom and
/// process id.
fn add_threads(trace: &Trace, builder: &mut ExecutionBuilder, interpreter: &mut Interpreter) -> Threads {
    let joined = Joined::of(trace);
    let mut all = Threads {
        threads: Vec::with_capacity(trace.streams().len()),
        recorders: Vec::with_capacity(trace.streams().len()),
        processes: Vec::new(),
        names: FxHashMap::default(),
        looms_of_cpus: Vec::new(),
    };
    // Few traces have the kernel's switches among the runtime's events.
    let has_switches = trace.streams().iter().any(|stream| requires(stream, &["kernel"]));
    let with_os_times = if has_switches { os_time::threads(trace) } else { FxHashSet::default() };
    let mut recorders = FxHashMap::default();
    for (number, stream) in trace.streams().iter().enumerate() {
        let name = name_of(stream);
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
        builder.name_thread(thread, thread_name(trace, stream));
        if on_cpus {
            interpreter.has_subsystems(thread);
        }
        if tells_openmp(stream) {
            interpreter.is_of_openmp(thread);
        }
        if has_switches && with_os_times.contains(&(name.clone(), stream.tid().unwrap_or(0))) {
            interpreter.has_os_times(thread);
        }
        if works_on_threads(stream) && stream.tid().unwrap_or(0) == name.1 {
            interpreter.is_initial(thread);
        }
    }
    add_cpus(trace, &mut all, builder, interpreter);
    all
}

/// Name that a thread had when it was stored last; empty without one. Of a killed thread it is in the process's side stream.
pub(crate) fn thread_name<'a>(trace: &'a Trace, stream: &'a Stream) -> &'a str {
    let in_process = || {
        let (loom, pid, tid) = (stream.loom()?, stream.pid()?, stream.tid()?.to_string());
        let is_its = |location: &&taskscope_trace::Location| {
            let about = &location.metadata;
            about["kind"] == "os-time" && about["loom"] == loom && about["pid"] == pid
        };
        let own = trace.locations().iter().filter(is_its);
        own.filter_map(|location| location.metadata["thread_names"][&tid].as_str()).next_back()
    };
    let later = if stream.is_finished() { None } else { in_process() };
    later.or_else(|| stream.metadata.raw["taskscope"]["thread_name"].as_str()).unwrap_or_default()
}

/// Whether the stream is of a process whose OpenMP runtime took our tool.
fn tells_openmp(stream: &Stream) -> bool {
    requires(stream, &["openmp"]) && !stream.metadata.raw["taskscope"]["require"]["taskscope-omp"].is_null()
}

/// Whether the stream is of a program whose recorder says that its threads are its workers.
fn works_on_threads(stream: &Stream) -> bool {
    stream.metadata.raw["taskscope"]["workers"] == "threads"
}

/// Whether the stream has events of one of these models.
fn requires(stream: &Stream, models: &[&str]) -> bool {
    stream.metadata.require.iter().flatten().any(|(model, _)| models.contains(&model.as_str()))
}

/// The models whose workers are CPUs, and which tell their sections as a stack.
const MODELS_OF_CPUS: [&str; 3] = ["nanos6", "nosv", "nodes"];

/// In looms where such a runtime runs, the CPUs are the workers. They belong to the loom: each
/// stream may name some of them.
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
