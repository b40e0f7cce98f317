//! The file of a process's profile: written at an interval, at the program's request, and at its end.

use std::collections::BTreeMap;

use taskscope_profile::{Marker, Metric, Process, Profile, Tree, key, move_to};
use taskscope_record::{clock, cpus};

use super::housekeeper::Charge;
use super::idleness;
use super::open_ends;
use super::run::{Run, Totals, current};
use super::states::State;
use crate::pause;
use crate::sampler::{Clock, code_map, settings};
use crate::worker_count;

/// The process has ended, and its threads with it.
pub fn write_last() {
    if let Some(run) = current().filter(|run| run.is_of_this_process()) {
        run.housekeeping.end();
        write(run, true);
        run.housekeeping.wait_for_end();
    }
}

/// The calling thread ends the process by `_exit`, maybe in a signal handler; `charge` gets its state. Async-signal-safe.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn write_before_exit(charge: Charge) {
    // The child of a `vfork` is not the process that the run is of.
    let Some(run) = current().filter(|run| run.is_of_this_process()) else { return };
    // In a handler that interrupted an event, the recorder is in use already.
    let is_free =
        |recording: &taskscope_record::Recording| !pause::is_paused() && !recording.user().is_null();
    let thread = match taskscope_record::enter().filter(is_free) {
        Some(recording) => {
            let thread = recording.user();
            // Never to be left: its handler stays out while its state is in other hands.
            core::mem::forget(recording);
            thread
        }
        None => core::ptr::null_mut(),
    };
    run.housekeeping.write_before_exit(thread, charge);
}

/// Writes the profile so far, if the process has one.
pub fn write_unfinished() {
    if let Some(run) = current().filter(|run| run.is_of_this_process()) {
        write(run, false);
    }
}

pub(super) fn write(run: &Run, finished: bool) {
    let Ok(_writing) = run.writing.lock() else { return };
    run.collect();
    let mut merged = run.merged();
    if merged.is_written || merged.threads + run.living() == 0 {
        return;
    }
    merged.is_written = finished;
    let threads = merged.threads + run.living();
    let mut tree = merged.tree.clone();
    drop(merged);
    let Some((_, name)) = &run.place else { return };
    let all = run.totals();
    let idle = IDLE.iter().map(|state| all.whole(*state)).sum();
    let period_ns = settings().map_or(0, |settings| settings.period_ns);
    open_ends::add(&mut tree, &run.workers);
    idleness::add_unsampled(&mut tree, &run.workers, clock::now(), period_ns);
    idleness::settle(&mut tree, &run.workers.pool, idle, &all.late);
    move_blame(&mut tree, &all);
    let mut profile = Profile {
        processes: vec![describe(run, name, all.wall, threads, finished)],
        modules: code_map::all_modules(),
        tree,
        totals: totals(&all, run.no_cpu.runnable_ns(), run.no_cpu.stops().2),
        thread_waits: Vec::new(),
    };
    run.thread_waits.add_to(&mut profile, clock::now(), finished);
    store(run, &profile, finished);
}

fn describe(run: &Run, name: &str, wall: u64, threads: u64, finished: bool) -> Process {
    let mut says = Process::new();
    let mut say = |key: &str, value: String| {
        says.insert(key.to_owned(), value);
    };
    let (host, pid) = name.rsplit_once('.').unwrap_or((name, ""));
    say(key::HOST, host.to_owned());
    say(key::PID, pid.to_owned());
    let command: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    say(key::COMMAND, command.join(" "));
    say(key::WALL_NS, wall.to_string());
    say(key::THREADS, threads.to_string());
    say(key::WORKERS, worker_count::most().to_string());
    say(key::CPUS, run.no_cpu.cpus().to_string());
    say(key::NO_CPU, if run.no_cpu.is_known() { "schedstat" } else { "none" }.to_owned());
    if let Some(mask) = cpus::Mask::process_affinity() {
        say(key::CPU_MASK, mask.bytes().iter().map(|byte| format!("{byte:02x}")).collect());
    }
    say(key::CPUS_ONLINE, cpus::online().to_string());
    let (stops, stopped_ns, _) = run.no_cpu.stops();
    if stops > 0 {
        say(key::STOPS, stops.to_string());
        say(key::STOPPED_NS, stopped_ns.to_string());
    }
    if let Some((millicpus, throttled)) = run.no_cpu.quota() {
        say(key::CPU_QUOTA, millicpus.to_string());
        say(key::THROTTLED_PERIODS, throttled.periods.to_string());
        say(key::THROTTLED_NS, throttled.ns.to_string());
    }
    if let Some(settings) = settings() {
        say(key::SAMPLE_PERIOD_NS, settings.period_ns.to_string());
        let clock = if settings.clock == Clock::Cpu { "cpu" } else { "wall" };
        say(key::SAMPLE_CLOCK, clock.to_owned());
    }
    say(key::TASK_CONTEXT, "creation".to_owned());
    say(key::FINISHED, if finished { "yes" } else { "no" }.to_owned());
    says
}

fn totals(all: &Totals, runnable_ns: Option<u64>, stopped_ns: u64) -> BTreeMap<String, u64> {
    let mut totals =
        BTreeMap::from([("wall_ns".to_owned(), all.wall), ("capacity_ns".to_owned(), all.sums.iter().sum())]);
    totals.extend(runnable_ns.map(|ns| ("runnable_ns".to_owned(), ns)));
    totals.extend((stopped_ns > 0).then(|| (key::STOPPED_NS.to_owned(), stopped_ns)));
    let mut insert = |family: &str, state: State, ns: u64| {
        if ns > 0 {
            totals.insert(format!("{family}.{}", state.name()), ns);
        }
    };
    for (state, ns) in State::ALL.into_iter().zip(all.sums) {
        insert("state", state, ns);
        let (out_of_cpu, oversubscribed) = all.moved.of(state);
        insert("no_cpu", state, out_of_cpu + oversubscribed);
    }
    totals
}

const IDLE: [State; 3] = [State::Idle, State::NotStarted, State::Ended];

/// Causes of waiting, and the metric of their blame.
const BLAMED: [(&[State], Metric); 10] = [
    (&[State::Barrier], Metric::given(Marker::Barrier)),
    (&[State::JoinBarrier], Metric::given(Marker::JoinBarrier)),
    (&[State::Taskwait], Metric::given(Marker::Taskwait)),
    (&[State::TaskwaitDepend], Metric::given(Marker::TaskwaitDepend)),
    (&[State::Taskgroup], Metric::given(Marker::Taskgroup)),
    (&[State::CriticalWait], Metric::given(Marker::Critical)),
    (&[State::LockWait], Metric::given(Marker::Lock)),
    (&[State::OrderedWait], Metric::given(Marker::Ordered)),
    (&[State::AtomicWait], Metric::given(Marker::Atomic)),
    (&IDLE, Metric::shared(Marker::Idle)),
];

/// Moves waiting without available CPUs out of the blame. The times of such parts are unknown, so each
/// charged path has the same share.
fn move_blame(tree: &mut Tree, all: &Totals) {
    for (states, metric) in BLAMED {
        let sum = |part: &dyn Fn(State) -> u64| states.iter().map(|state| part(*state)).sum::<u64>();
        let whole = sum(&|state| all.whole(state));
        let parts = [
            (Marker::OutOfCpu, sum(&|state| all.moved.of(state).0)),
            (Marker::Oversubscribed, sum(&|state| all.moved.of(state).1)),
        ];
        let given = tree.total(metric);
        for (marker, ns) in parts.into_iter().filter(|_| whole > 0) {
            let part = u128::from(given) * u128::from(ns) / u128::from(whole);
            move_to(tree, metric, marker, part as u64);
        }
    }
}

/// Stores a profile completely or not at all, as the previous file may be in use by a reader.
fn store(run: &Run, profile: &Profile, finished: bool) {
    if let Some(files) = run.files() {
        files.replace_profile(|out| profile.write(out), finished);
    }
}
