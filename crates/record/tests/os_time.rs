//! Times off the CPU: content of the side stream for threads that share a CPU, sleep, and hand over to each
//! other.

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use support::*;
use taskscope_event::models::{recorder, system};
use taskscope_record::{os_time, process, thread};
use taskscope_trace::{OpenOptions, Trace};

/// Sums of one thread, nanoseconds.
#[derive(Default, Debug)]
struct Stored {
    runnable: u64,
    blocked: u64,
    blocked_intervals: u64,
    coalesced: u64,
    blocks_since: bool,
    on_cpu: Vec<u64>,
    run_delay: Vec<u64>,
}

impl Stored {
    fn grown(of: &[u64]) -> u64 {
        assert_eq!(of.len(), 2, "at the begin and at the end");
        of[1] - of[0]
    }
}

/// By thread id.
fn stored(directory: &std::path::Path) -> HashMap<u64, Stored> {
    let trace = Trace::open(directory, &OpenOptions::default()).unwrap();
    let location = trace.locations().iter().find(|location| location.metadata["kind"] == "os-time");
    let (mut tids, mut all) = (HashMap::new(), HashMap::<u64, Stored>::new());
    let mut last = 0;
    // Jumbo events are about the process and its CPUs.
    for event in location.iter().flat_map(|location| location.events()).filter(|event| !event.is_jumbo) {
        let (code, payload) = (event.code, event.payload);
        assert!(event.clock_ns >= std::mem::replace(&mut last, event.clock_ns));
        let word = u64::from_le_bytes(*payload.first_chunk().unwrap());
        let half = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().unwrap());
        let number = half(payload.len() - 4);
        if code == system::THREAD {
            tids.insert(number, word);
        }
        let own = all.entry(tids[&number]).or_default();
        match code {
            system::PREEMPTED | system::RUN_DELAY => own.runnable += word,
            system::BLOCKED => {
                let delay = u64::from(half(8));
                assert!(delay <= word);
                own.runnable += delay;
                own.blocked += word - delay;
                own.blocked_intervals += 1;
            }
            system::BLOCKED_SUM => own.blocked += word,
            system::BLOCKS => own.blocks_since = true,
            system::COALESCED => own.coalesced += word,
            system::TOTAL_ON_CPU => own.on_cpu.push(word),
            system::TOTAL_RUN_DELAY => own.run_delay.push(word),
            _ => {}
        }
    }
    all
}

fn start_with_os_time(directory: &std::path::Path) {
    process::start(process::Config {
        trace_directory: directory.to_owned(),
        app_id: 1,
        require: vec![],
        own_require: vec![("taskscope-recorder", recorder::VERSION), ("taskscope-system", system::VERSION)],
        attributes: vec![],
    })
    .unwrap();
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn pin_to_one_cpu() {
    // SAFETY: plain memory of the right type, and a CPU that this thread may use.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut one);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one);
    }
}

/// Whether the side stream has sums of a thread.
fn is_watched(directory: &std::path::Path, tid: u64) -> bool {
    let Ok(trace) = Trace::open(directory, &OpenOptions::default()) else { return false };
    let is_os_time = |location: &&taskscope_trace::Location| location.metadata["kind"] == "os-time";
    let mut events = trace.locations().iter().filter(is_os_time).flat_map(|location| location.events());
    events.any(|event| event.code == system::THREAD && event.payload.starts_with(&tid.to_le_bytes()))
}

/// Whether the method that the environment names has a source of the calling thread's times here.
fn has_source() -> bool {
    let has_sums =
        || std::fs::read_to_string("/proc/thread-self/schedstat").is_ok_and(|text| text.trim() != "0 0 0");
    match std::env::var("TASKSCOPE_OS_TIME").as_deref() {
        Ok("switches") => os_time::sees_context_switches(),
        Ok("schedstat") => has_sums(),
        _ => os_time::sees_context_switches() || has_sums(),
    }
}

/// Attaches, and waits until the housekeeping thread watches the calling thread, if there is a source of its times.
fn attach_and_settle(directory: &std::path::Path) -> u64 {
    let has_source = has_source();
    assert!(attach());
    // SAFETY: no arguments.
    let tid = u64::from(unsafe { libc::gettid() }.cast_unsigned());
    let begin = Instant::now();
    while has_source && !is_watched(directory, tid) {
        assert!(begin.elapsed() < PATIENCE, "thread {tid} is not watched");
        std::thread::sleep(Duration::from_millis(5));
    }
    tid
}

/// A loaded machine may keep the housekeeping thread from running for long.
const PATIENCE: Duration = Duration::from_secs(600);

const NAPS: u32 = 60;

/// A thread that naps and works on the CPU of one that only works, and one that sleeps to the end.
fn run_sharing_threads(directory: &std::path::Path) {
    pin_to_one_cpu();
    start_with_os_time(directory);
    let (ends, all_settled) = (AtomicBool::new(false), Arc::new(Barrier::new(3)));
    let (sender, lines) = std::sync::mpsc::channel();
    let sleeper_inputs = (sender.clone(), all_settled.clone(), directory.to_owned());
    std::thread::spawn(move || {
        let (sender, all_settled, directory) = sleeper_inputs;
        sender.send(format!("sleeper {}\n", attach_and_settle(&directory))).unwrap();
        all_settled.wait();
        std::thread::sleep(Duration::from_secs(3600));
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            let tid = attach_and_settle(directory);
            all_settled.wait();
            for _ in 0..NAPS {
                std::thread::sleep(Duration::from_millis(2));
                spin(Duration::from_millis(1));
            }
            ends.store(true, Relaxed);
            // All that is recorded of the thread is within the time that it measures.
            thread::detach();
            sender.send(format!("napper {tid} {}\n", began.elapsed().as_nanos())).unwrap();
        });
        scope.spawn(|| {
            let tid = attach_and_settle(directory);
            all_settled.wait();
            while !ends.load(Relaxed) {
                spin(Duration::from_millis(1));
            }
            sender.send(format!("rival {tid}\n")).unwrap();
            thread::detach();
        });
        let text: String = lines.iter().take(3).collect();
        std::fs::write(directory.join("threads"), text).unwrap();
    });
    process::finish();
    leave(0);
}

fn check_sharing_threads(name: &str, mode: &str) {
    let directory = temporary(name);
    std::fs::create_dir_all(&directory).unwrap();
    let status = child(name, &directory).env("TASKSCOPE_OS_TIME", mode).status().unwrap();
    assert!(status.success());
    let Ok(names) = std::fs::read_to_string(directory.join("threads")) else { panic!("no names") };
    let mut all = stored(&directory);
    let line = |wanted: &str| names.lines().find_map(|line| line.strip_prefix(wanted)).unwrap();
    let mut of = |wanted: &str| {
        let tid = line(wanted).split(' ').next().unwrap();
        all.remove(&tid.parse().unwrap()).unwrap_or_default()
    };
    let (napper, rival, sleeper) = (of("napper "), of("rival "), of("sleeper "));
    if napper.run_delay.is_empty() {
        taskscope_prerequisite::skip("no source of times off the CPU here");
        return;
    }
    for thread in [&napper, &rival] {
        let delay = Stored::grown(&thread.run_delay);
        // The kernel stamps a switch and its sums at different moments.
        let granularity = delay / 10 + 2_000_000;
        assert!(thread.runnable.abs_diff(delay) <= granularity, "{thread:?} against {delay}");
    }
    let naps = u64::from(NAPS) * 2_000_000;
    assert!(napper.blocked >= naps, "{napper:?}");
    // By its own clock: all but its time on a CPU or runnable.
    let lived: u64 = line("napper ").split(' ').nth(1).unwrap().parse().unwrap();
    let others = Stored::grown(&napper.on_cpu) + napper.runnable;
    assert!(napper.blocked + others <= lived + 10_000_000, "{napper:?} of {lived}");
    assert!(rival.runnable > 0, "{rival:?}");
    assert!(sleeper.blocked > naps && sleeper.blocked > Stored::grown(&sleeper.on_cpu), "{sleeper:?}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn runnable_time_is_the_run_delay_and_sleep_is_blocked() {
    if let Some(directory) = role() {
        run_sharing_threads(&directory);
    }
    check_sharing_threads("runnable_time_is_the_run_delay_and_sleep_is_blocked", "auto");
}

#[test]
fn sums_of_schedstat_split_time_as_well() {
    if let Some(directory) = role() {
        run_sharing_threads(&directory);
    }
    check_sharing_threads("sums_of_schedstat_split_time_as_well", "schedstat");
}

/// Threads in turns on one CPU, from their first moment on, each with `work`. Their sums as they began and ended.
fn run_from_the_begin(name: &str, mode: &str, threads: usize, work: fn()) -> Vec<Stored> {
    if let Some(directory) = role() {
        pin_to_one_cpu();
        start_with_os_time(&directory);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(move || {
                    assert!(attach());
                    work();
                    thread::detach();
                });
            }
        });
        process::finish();
        leave(0);
    }
    let directory = temporary(name);
    assert!(child(name, &directory).env("TASKSCOPE_OS_TIME", mode).status().unwrap().success());
    let all: Vec<Stored> = stored(&directory).into_values().filter(|own| !own.on_cpu.is_empty()).collect();
    std::fs::remove_dir_all(&directory).unwrap();
    if all.is_empty() {
        taskscope_prerequisite::skip("no source of times off the CPU here");
    }
    all
}

#[test]
fn threads_that_end_at_once_have_their_times() {
    for mode in ["auto", "schedstat"] {
        let all = run_from_the_begin("threads_that_end_at_once_have_their_times", mode, 4, || {
            spin(Duration::from_millis(4));
            std::thread::sleep(Duration::from_millis(3));
        });
        assert!(all.is_empty() || all.len() == 4, "{all:?}");
        for own in &all {
            let delay = Stored::grown(&own.run_delay);
            assert!(own.runnable.abs_diff(delay) <= delay / 10 + 2_000_000, "{own:?}");
            assert!(own.blocked >= 2_900_000, "{own:?}");
        }
    }
}

#[test]
fn full_rings_lose_no_runnable_time() {
    let all = run_from_the_begin("full_rings_lose_no_runnable_time", "auto", 3, || {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(300) {
            std::thread::yield_now();
        }
    });
    for own in &all {
        let delay = Stored::grown(&own.run_delay);
        assert!(own.runnable.abs_diff(delay) <= delay / 10 + 2_000_000, "{own:?}");
        // A yielding thread is runnable.
        assert!(delay > own.blocked, "{own:?}");
    }
}

#[test]
fn many_brief_waits_are_bounded_and_counted() {
    const NAME: &str = "many_brief_waits_are_bounded_and_counted";
    const ROUNDS: u32 = 20_000;
    if let Some(directory) = role() {
        pin_to_one_cpu();
        start_with_os_time(&directory);
        let (to, from) = (std::sync::mpsc::sync_channel(0), std::sync::mpsc::sync_channel(0));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                attach_and_settle(&directory);
                (0..ROUNDS).for_each(|round| {
                    to.0.send(round).unwrap();
                    from.1.recv().unwrap();
                });
                thread::detach();
            });
            scope.spawn(move || (0..ROUNDS).for_each(|_| from.0.send(to.1.recv().unwrap()).unwrap()));
        });
        process::finish();
        leave(0);
    }
    let directory = temporary(NAME);
    assert!(child(NAME, &directory).env("TASKSCOPE_OS_TIME", "switches").status().unwrap().success());
    let Some(own) = stored(&directory).into_values().next() else {
        taskscope_prerequisite::skip("no perf_event_open here");
        return;
    };
    // Each round blocks once at least. How many records the kernel keeps depends on when its ring is read.
    assert!(own.coalesced + own.blocked_intervals > 0, "{own:?}");
    assert!(own.blocked_intervals < u64::from(ROUNDS) / 2, "{own:?}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_killed_process_has_its_blocked_threads() {
    const NAME: &str = "a_killed_process_has_its_blocked_threads";
    if let Some(directory) = role() {
        start_with_os_time(&directory);
        attach_and_settle(&directory);
        std::thread::sleep(Duration::from_secs(3600));
    }
    let directory = temporary(NAME);
    let mut process = child(NAME, &directory).env("TASKSCOPE_OS_TIME", "switches").spawn().unwrap();
    let begin = Instant::now();
    let is_blocked = || {
        let has_stream = std::fs::exists(&directory).unwrap() && !streams(&directory).is_empty();
        let side = |stream: &std::path::PathBuf| stream.parent().unwrap().join("os-time/taskscope.obs");
        has_stream
            && std::fs::exists(side(&streams(&directory)[0])).unwrap()
            && stored(&directory).values().any(|own| own.blocks_since)
    };
    let mut found = is_blocked();
    while !found && begin.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(50));
        found = is_blocked();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let os_time = streams(&directory)[0].parent().unwrap().join("os-time");
    assert!(found || !std::fs::exists(os_time).unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
}
