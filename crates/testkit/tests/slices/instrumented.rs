//! Slices of programs that report their own tasks and states.

use crate::{first_clock, slice, violations};
use std::ops::ControlFlow;
use std::path::Path;
use taskscope_context::{Behaviour, Lane, Shown};
use taskscope_event::Code;
use taskscope_event::models::{instrument as i, ovni};
use taskscope_session::instrumentation::Names;
use taskscope_testkit::bytes;
use taskscope_testkit::dice::Dice;
use taskscope_testkit::instrumented::InstrumentedThread;
use taskscope_trace::{OpenOptions, Slice, Trace};

/// A process of four threads with tasks that move between them, with states and bursts open everywhere; correct.
fn write_moving_tasks(root: &Path, seed: u64) -> u64 {
    const THREADS: usize = 4;
    let mut dice = Dice::new(seed);
    let mut threads: Vec<InstrumentedThread> =
        (0..THREADS).map(|thread| InstrumentedThread::new(100, 100 + thread as u32)).collect();
    let mut say = |thread: usize, at: u64, code: Code, payload: &[u8]| {
        let old = std::mem::replace(&mut threads[thread], InstrumentedThread::new(0, 0));
        threads[thread] = match code {
            i::TASK_KIND => old.name(at, code, payload, &[b"walker", b"src/walk.rs"]),
            i::KEY => old.name(at, code, payload, &[b"size", b"", b"bytes"]),
            i::STATE => old.name(at, code, payload, &[b"WALK", b""]),
            _ => old.event(at, code, payload),
        };
    };
    say(0, 0, i::TASK_KIND, &bytes![1_u32, 7_u32]);
    say(0, 0, i::KEY, &bytes![1_u32, 2_u32, 0_u32]);
    say(0, 0, i::STATE, &bytes![50_u32, 1_u32]);
    // The open states and bursts of tasks 1 to 5 and, above them, of the threads.
    let mut open: Vec<Vec<(bool, u64)>> = vec![Vec::new(); 6 + THREADS];
    let mut on: Vec<Vec<u64>> = vec![Vec::new(); THREADS];
    for task in 1..=5_u64 {
        say(0, 1, i::TASK_CREATE, &bytes![task, 1_u32]);
    }
    let mut at = 10;
    while at < 99_000 {
        at += 1 + dice.below(100);
        let thread = dice.below(THREADS as u64) as usize;
        let context = on[thread].last().map_or(6 + thread, |task| *task as usize);
        let task = 1 + dice.below(5);
        match dice.below(6) {
            0 if open[context].len() < 6 => {
                open[context].push((true, 50));
                say(thread, at, i::STATE_PUSH, &bytes![50_u32]);
            }
            1 if open[context].len() < 6 => {
                let value = dice.below(9);
                open[context].push((false, value));
                say(thread, at, i::BURST_OPEN, &bytes![1_u32, value]);
            }
            2 | 3 => match open[context].pop() {
                Some((true, _)) => say(thread, at, i::STATE_POP, &bytes![50_u32]),
                Some((false, value)) => say(thread, at, i::BURST_CLOSE, &bytes![1_u32, value]),
                None => {}
            },
            4 if !on.iter().flatten().any(|other| *other == task) => {
                on[thread].push(task);
                say(thread, at, i::TASK_ENTER, &bytes![task]);
            }
            5 => {
                if let Some(task) = on[thread].pop() {
                    let code = if dice.below(2) == 0 { i::TASK_LEAVE } else { i::TASK_YIELD };
                    say(thread, at, code, &bytes![task]);
                }
            }
            _ => {}
        }
    }
    for thread in 0..THREADS {
        while let Some(task) = on[thread].pop() {
            say(thread, 99_500, i::TASK_LEAVE, &bytes![task]);
        }
        while let Some((is_state, value)) = open[6 + thread].pop() {
            let (code, payload) = if is_state {
                (i::STATE_POP, bytes![50_u32])
            } else {
                (i::BURST_CLOSE, bytes![1_u32, value])
            };
            say(thread, 99_600, code, &payload);
        }
    }
    threads.into_iter().for_each(|thread| thread.write(root));
    first_clock(root) as u64
}

/// The sections of threads and tasks open during the range: changes, as they are shown.
fn shown(root: &Path, clocks: (i64, i64)) -> Vec<String> {
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let names = Names::of(&trace);
    let tids: Vec<_> = trace.streams().iter().map(|stream| stream.tid().unwrap()).collect();
    let mut lines = Vec::new();
    taskscope_session::instrumentation::play(
        &trace,
        &names,
        Behaviour::Stacked,
        |_| true,
        |item| {
            if (clocks.0 as u64..clocks.1 as u64).contains(&item.at) {
                let lane = match item.lane {
                    Lane::Thread(thread) => format!("thread {}", tids[thread as usize]),
                    Lane::Task { task, .. } => format!("task {task}"),
                };
                let words = match item.shown {
                    Shown::Resume { task, .. } => format!("resumes {task}"),
                    Shown::Suspend { task, .. } => format!("suspends {task}"),
                    shown => format!("{shown:?}"),
                };
                lines.push(format!("{} {lane} {words}", item.at));
            }
            ControlFlow::Continue(())
        },
    );
    lines.sort();
    lines
}

#[test]
fn slices_of_instrumented_programs_restore_the_open_states() {
    let mut dice = Dice::new(17);
    for seed in 0..6 {
        let root = tempfile::tempdir().unwrap();
        let start = write_moving_tasks(root.path(), seed);
        for _ in 0..12 {
            let begin = start + dice.below(95_000);
            let clocks = (begin as i64, (begin + 1 + dice.below(30_000)) as i64);
            let part = tempfile::tempdir().unwrap();
            slice(root.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });
            assert_eq!(shown(part.path(), clocks), shown(root.path(), clocks), "seed {seed}, {clocks:?}");
            assert_eq!(violations(part.path()), [], "seed {seed}, {clocks:?}");
        }
    }
}

#[test]
fn a_slice_of_threads_has_the_names_and_objects_of_others() {
    let root = tempfile::tempdir().unwrap();
    InstrumentedThread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"walker", b"src/walk.rs"])
        .event(10, i::TASK_CREATE, &bytes![1_u64, 1_u32])
        .event(11, i::TASK_CREATE, &bytes![2_u64, 1_u32])
        .write(root.path());
    InstrumentedThread::new(100, 101)
        .event(500, i::TASK_ENTER, &bytes![2_u64])
        .event(600, i::TASK_END, &bytes![2_u64])
        .write(root.path());
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { threads: vec![101], ..Slice::default() });
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    let codes: Vec<Code> = trace.merge().map(|merged| merged.event.code).collect();
    let ends =
        [ovni::THREAD_EXECUTES, i::TASK_KIND, i::TASK_CREATE, i::TASK_ENTER, i::TASK_END, ovni::THREAD_ENDS];
    assert_eq!(codes, ends, "the task that is not taken up is not created");
}
