//! A run as a trace directory: a stream for each thread, a location for each queue.

use super::device_events::write_devices;
use super::numbers::{Numbers, loom};
use super::run::{Activity, Kind, Run, Span, Thread};
use super::stream::{EventFile, text};
use super::thread_events::{Irregular, Mark, Step, play};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::models::{instrument, ovni};
use taskscope_event::{StreamFile, layout};
use taskscope_files::{NewDirectory, create_directory_below, write_file};
use taskscope_metadata::run_file_without_command;

/// State of a thread outside of its spans.
const OUTSIDE: u32 = instrument::FIRST_OWN_STATE;
const OUTSIDE_NAME: &str = "not recorded";
/// Words for the classes of states, by number.
const CLASS_WORDS: [&str; 11] = [
    "useful",
    "runtime",
    "scheduling",
    "creation",
    "synchronisation",
    "lock",
    "communication",
    "idle",
    "stopped",
    "yield",
    "not known",
];

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Spans that end below another one: each instant of the overlap belongs to the newer one.
    pub overlaps: u64,
    /// Spans in thousands of others, which were left out.
    pub too_deep: u64,
    /// Sections that outlast too many others in which they begin, which are left out.
    pub too_crossed: u64,
}

/// Writes a run into the directory `root`, which is new or empty. It appears when it is complete.
///
/// # Errors
/// If `root` is not empty, or a system error.
pub fn write_run(run: &Run, root: &Path) -> io::Result<Written> {
    let trace = NewDirectory::create(root)?;
    let numbers = Numbers::of(run);
    let lives = lives(run);
    let marks = marks(run);
    let mut written = Written::default();
    let mut named = FxHashSet::default();
    let classes = classes(run);
    let mut own: Vec<Vec<&Thread>> = vec![Vec::new(); run.processes.len()];
    run.threads.iter().for_each(|thread| own[thread.process as usize].push(thread));
    let mut domains: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); run.processes.len()];
    for flow in &run.flows {
        for thread in [flow.from, flow.to] {
            domains[run.threads[thread as usize].process as usize].insert(flow.domain);
        }
    }
    let mut tasks = vec![0_u64; run.processes.len()];
    for (row, thread) in run.threads.iter().enumerate() {
        let process = thread.process as usize;
        let life = lives[row];
        let mut file = EventFile::new();
        if named.insert(process) {
            names(run, (&own[process][..], &domains[process]), &classes, &mut file, life.0);
        }
        let irregular = thread_events(run, thread, &marks[row], life, &mut tasks[process], &mut file);
        written.overlaps += irregular.overlaps;
        written.too_deep += irregular.too_deep;
        written.too_crossed += irregular.too_crossed;
        write_thread(run, row, &numbers, life, &file, trace.path())?;
    }
    write_devices(run, &numbers, trace.path())?;
    if let Some(run_file) = run_file(run, &lives) {
        write_file(&trace.path().join(layout::RUN_FILE), |out| writeln!(out, "{run_file:#}"))?;
    }
    trace.commit()?;
    Ok(written)
}

/// The life of each thread: its own if it is known, else from the first to the last content of its process. It ends a
/// nanosecond after its last event: at one time, the end of a thread comes before its other events.
fn lives(run: &Run) -> Vec<(u64, u64)> {
    let mut process_lives = vec![(u64::MAX, 0_u64); run.processes.len()];
    let mut thread_lives = vec![(u64::MAX, 0_u64); run.threads.len()];
    let mut add = |thread: usize, start: u64, end: u64| {
        for life in [&mut thread_lives[thread], &mut process_lives[run.threads[thread].process as usize]] {
            *life = (life.0.min(start), life.1.max(end));
        }
    };
    for (row, thread) in run.threads.iter().enumerate() {
        thread.life.iter().for_each(|(start, end)| add(row, *start, *end));
        thread.spans.iter().for_each(|span| add(row, span.start, span.end));
        thread.points.iter().for_each(|point| add(row, point.at, point.at));
    }
    run.calls.iter().for_each(|call| add(call.thread as usize, call.start, call.end));
    for flow in &run.flows {
        add(flow.from as usize, flow.from_at, flow.from_at);
        add(flow.to as usize, flow.to_at, flow.to_at);
    }
    let whole = process_lives.iter().fold((u64::MAX, 0), |all, life| (all.0.min(life.0), all.1.max(life.1)));
    let whole = if whole.0 > whole.1 { (0, 0) } else { whole };
    let life = |(row, thread): (usize, &Thread)| match thread.life {
        Some(_) => thread_lives[row],
        None => {
            Some(process_lives[thread.process as usize]).filter(|(start, end)| start <= end).unwrap_or(whole)
        }
    };
    run.threads.iter().enumerate().map(life).map(|(start, end)| (start, end + 1)).collect()
}

/// Flows and points of each thread, in the order of time.
fn marks(run: &Run) -> Vec<Vec<(u64, Mark)>> {
    let mut marks: Vec<Vec<(u64, Mark)>> = vec![Vec::new(); run.threads.len()];
    for (thread, marks) in run.threads.iter().zip(&mut marks) {
        marks.extend(thread.points.iter().zip(0..).map(|(point, row)| (point.at, Mark::Point(row))));
    }
    for (flow, row) in run.flows.iter().zip(0..) {
        marks[flow.from as usize].push((flow.from_at, Mark::Send(row)));
        marks[flow.to as usize].push((flow.to_at, Mark::Receive(row)));
    }
    marks.iter_mut().for_each(|marks| marks.sort_unstable());
    marks
}

/// The classes of states of one name.
type Classes<'r> = FxHashMap<&'r str, FxHashSet<u32>>;

fn classes(run: &Run) -> Classes<'_> {
    let mut classes = Classes::default();
    for kind in &run.kinds {
        if let Activity::State(class) = kind.activity {
            classes.entry(&kind.name).or_default().insert(class);
        }
    }
    for thread in run.threads.iter().filter(|thread| thread.is_beside) {
        for span in &thread.spans {
            let kind = &run.kinds[span.kind as usize];
            if let Activity::State(class) = activity_in(thread, kind) {
                classes.entry(&kind.name).or_default().insert(class);
            }
        }
    }
    classes
}

/// The meaning of a kind's time in a thread.
fn activity_in(thread: &Thread, kind: &Kind) -> Activity {
    match kind.activity {
        Activity::Task if thread.is_beside => Activity::State(instrument::class::USEFUL),
        activity => activity,
    }
}

/// The meanings of the numbers that the threads of a process use, of domains those that its flows have.
fn names(
    run: &Run,
    (threads, domains): (&[&Thread], &BTreeSet<u32>),
    classes: &Classes<'_>,
    file: &mut EventFile,
    at: u64,
) {
    let none = text("");
    let outside = (OUTSIDE.to_le_bytes(), instrument::class::UNKNOWN.to_le_bytes());
    file.jumbo(at, instrument::STATE, &[&outside.0, &outside.1, &text(OUTSIDE_NAME), &none]);
    let mut used: BTreeSet<(u32, Activity)> = BTreeSet::new();
    for thread in threads {
        let kind_and_activity =
            |span: &Span| (span.kind, activity_in(thread, &run.kinds[span.kind as usize]));
        used.extend(thread.spans.iter().map(kind_and_activity));
    }
    for (row, activity) in used {
        let kind = &run.kinds[row as usize];
        match activity {
            Activity::Task => {
                let numbers = [row + 1, kind.line].map(u32::to_le_bytes).concat();
                file.jumbo(at, instrument::TASK_KIND, &[&numbers, &text(&kind.name), &text(&kind.file)]);
            }
            Activity::State(class) => {
                let numbers = [state_number(row), class].map(u32::to_le_bytes).concat();
                // A name has one meaning in a trace.
                let is_unique = classes[kind.name.as_str()].len() == 1 && !is_built_in(&kind.name);
                let word = CLASS_WORDS.get(class as usize).copied().unwrap_or_default();
                let name = if is_unique { kind.name.clone() } else { format!("{} ({word})", kind.name) };
                file.jumbo(at, instrument::STATE, &[&numbers, &text(&name), &none]);
            }
        }
    }
    for row in domains {
        let number = (instrument::FIRST_OWN_DOMAIN + row).to_le_bytes();
        file.jumbo(at, instrument::DOMAIN, &[&number, &text(&run.domains[*row as usize]), &none]);
    }
    if threads.iter().any(|thread| !thread.points.is_empty()) {
        let key = [POINTS, instrument::level::USER, 0].map(u32::to_le_bytes).concat();
        file.jumbo(
            at,
            instrument::KEY,
            &[&key, &text("points"), &text("moments of the imported file"), &none],
        );
        let mut point_kinds: Vec<u32> =
            threads.iter().flat_map(|thread| thread.points.iter().map(|point| point.kind)).collect();
        point_kinds.sort_unstable();
        point_kinds.dedup();
        for row in point_kinds {
            let numbers = [&POINTS.to_le_bytes()[..], &(u64::from(row) + 1).to_le_bytes()].concat();
            file.jumbo(at, instrument::KEY_VALUE, &[&numbers, &text(&run.kinds[row as usize].name), &none]);
        }
    }
}

/// The key of points; its values are the kinds of points.
const POINTS: u32 = 1;

/// Whether a state of this name exists in every trace of an import.
fn is_built_in(name: &str) -> bool {
    name == OUTSIDE_NAME || instrument::STATES.iter().any(|(known, _)| *known == name)
}

fn state_number(kind: u32) -> u32 {
    OUTSIDE + 1 + kind
}

fn thread_events(
    run: &Run,
    thread: &Thread,
    marks: &[(u64, Mark)],
    life: (u64, u64),
    last_task: &mut u64,
    file: &mut EventFile,
) -> Irregular {
    let outside = OUTSIDE.to_le_bytes();
    file.plain(life.0, instrument::STATE_PUSH, &[&outside]);
    let mut tasks: FxHashMap<u32, u64> = FxHashMap::default();
    play(thread, marks, |at, step| {
        let kind_of = |row: u32| thread.spans[row as usize].kind;
        let activity = |row: u32| activity_in(thread, &run.kinds[kind_of(row) as usize]);
        match step {
            Step::Enter(row) if activity(row) == Activity::Task => {
                *last_task += 1;
                tasks.insert(row, *last_task);
                let task = last_task.to_le_bytes();
                file.plain(at, instrument::TASK_CREATE, &[&task, &(kind_of(row) + 1).to_le_bytes()]);
                file.plain(at, instrument::TASK_ENTER, &[&task]);
            }
            Step::Leave(row) | Step::Suspend(row) | Step::Resume(row) if activity(row) == Activity::Task => {
                let task = tasks.get(&row).copied().unwrap_or(0).to_le_bytes();
                let code = match step {
                    Step::Leave(_) => instrument::TASK_END,
                    Step::Suspend(_) => instrument::TASK_YIELD,
                    _ => instrument::TASK_ENTER,
                };
                file.plain(at, code, &[&task]);
                if matches!(step, Step::Leave(_)) {
                    tasks.remove(&row);
                }
            }
            Step::Enter(row) | Step::Resume(row) => {
                file.plain(at, instrument::STATE_PUSH, &[&state_number(kind_of(row)).to_le_bytes()]);
            }
            Step::Leave(row) | Step::Suspend(row) => {
                file.plain(at, instrument::STATE_POP, &[&state_number(kind_of(row)).to_le_bytes()]);
            }
            Step::Mark(Mark::Point(row)) => {
                let value = u64::from(thread.points[row as usize].kind) + 1;
                file.plain(at, instrument::POINT, &[&POINTS.to_le_bytes(), &value.to_le_bytes()]);
            }
            Step::Mark(Mark::Send(row)) => half(run, file, at, instrument::SEND, row),
            Step::Mark(Mark::Receive(row)) => half(run, file, at, instrument::RECEIVE, row),
        }
    })
}

/// A half of the message that a flow is. Its id is its row, so that each begin has its end.
fn half(run: &Run, file: &mut EventFile, at: u64, code: taskscope_event::Code, row: u32) {
    let domain = instrument::FIRST_OWN_DOMAIN + run.flows[row as usize].domain;
    let head = [domain, instrument::NO_PARTNER].map(u32::to_le_bytes).concat();
    let id = u64::from(row).to_le_bytes();
    file.jumbo(at, code, &[&head, &id, &0_u32.to_le_bytes(), &0_u64.to_le_bytes()]);
}

fn write_thread(
    run: &Run,
    row: usize,
    numbers: &Numbers,
    life: (u64, u64),
    file: &EventFile,
    root: &Path,
) -> io::Result<()> {
    let thread = &run.threads[row];
    let process = &run.processes[thread.process as usize];
    let (pid, tid) = (numbers.pids[thread.process as usize], numbers.tids[row]);
    let loom = loom(&process.host, pid);
    let below = format!("loom.{loom}/proc.{pid}/thread.{tid}");
    let directory = create_directory_below(root, below)?;
    let mut metadata = json!({
        "version": 3,
        "ovni": {
            "lib": {"version": "1.14.0", "commit": concat!("taskscope-", env!("CARGO_PKG_VERSION"))},
            "part": "thread", "tid": tid, "pid": pid, "loom": loom, "app_id": 1,
            "require": {"ovni": ovni::VERSION},
            "finished": 1,
        },
        "taskscope": {
            "version": env!("CARGO_PKG_VERSION"),
            "require": {"taskscope-instrument": instrument::VERSION},
            "thread_name": thread.name.replace('\0', "␀"),
            "imported": run.source,
            "closed": true,
            // The state outside of spans is open until the end.
            "ended_with_process": true,
            "workers": "threads",
            "beside": thread.is_beside,
        },
    });
    if let Some((rank, ranks)) = process.rank {
        metadata["ovni"]["rank"] = rank.into();
        metadata["ovni"]["nranks"] = ranks.into();
    }
    let mut standard = EventFile::new();
    let begin = [(-1_i32).to_le_bytes(), (-1_i32).to_le_bytes()].concat();
    standard.plain(life.0, ovni::THREAD_EXECUTES, &[&begin, &0_u64.to_le_bytes()]);
    standard.plain(life.1, ovni::THREAD_ENDS, &[]);
    write_file(&directory.join(layout::STREAM_METADATA), |out| writeln!(out, "{metadata}"))?;
    write_file(&directory.join(StreamFile::Standard.name()), |out| out.write_all(standard.bytes()))?;
    write_file(&directory.join(StreamFile::Own.name()), |out| out.write_all(file.bytes()))
}

/// The run file with the time of the start, if that is known.
fn run_file(run: &Run, lives: &[(u64, u64)]) -> Option<serde_json::Value> {
    let begin = lives.iter().map(|life| life.0).min()?;
    let end = lives.iter().map(|life| life.1).max()?;
    let start = u64::try_from(run.origin_unix_ns? + i128::from(begin)).ok()?;
    let mut run_file = run_file_without_command();
    run_file["start_unix_ns"] = start.into();
    run_file["wall_ns"] = (end - begin).into();
    Some(run_file)
}
