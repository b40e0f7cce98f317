//! CPU time of executions that are built by hand: two CPUs, from 0 to 1000 ns.

use super::*;
use crate::Root;
use taskscope_event::models::wait::{kind, outcome};
use taskscope_execution::{
    Change, Definition, ExecutionBuilder, ObjectIndex, Observer, OsTimes, Quota, Section, SiteIndex, State,
    ThreadWaitChange,
};

const LOCK: ObjectIndex = ObjectIndex(0);
const CONDITION: ObjectIndex = ObjectIndex(1);
const SLEEP: ObjectIndex = ObjectIndex(2);
const FILE: ObjectIndex = ObjectIndex(3);
const PEER: ObjectIndex = ObjectIndex(4);

struct Run(ExecutionBuilder, u32);

impl Run {
    fn of(threads: u32) -> Run {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        for tid in 0..threads {
            builder.add_thread(process, tid.into());
        }
        let mut run = Run(builder, threads);
        let kinds = [
            (LOCK, kind::MUTEX),
            (CONDITION, kind::CONDITION),
            (SLEEP, kind::SLEEP),
            (FILE, kind::FILE),
            (PEER, kind::SOCKET),
        ];
        for (object, kind) in kinds {
            run.0.define(Definition::Object { object, process, id: object.0.into(), kind });
        }
        for thread in 0..threads {
            run.0.event(ThreadIndex(thread), 0);
            run.0.change(ThreadIndex(thread), 0, Change::Becomes(Section::of(State::Unknown)));
        }
        run
    }

    fn at(&mut self, thread: u32, at: u64, change: ThreadWaitChange) {
        self.0.event(ThreadIndex(thread), at);
        self.0.change(ThreadIndex(thread), at, Change::ThreadWait(change));
    }

    fn begins(&mut self, thread: u32, at: u64, object: ObjectIndex) {
        self.at(thread, at, ThreadWaitChange::Begins { object, site: SiteIndex(9) });
    }

    fn ends(&mut self, thread: u32, at: u64) {
        self.at(thread, at, ThreadWaitChange::Ends { outcome: outcome::DONE });
    }

    /// A wait that is recorded at its end.
    fn waited(&mut self, thread: u32, (from, until): (u64, u64), object: ObjectIndex) {
        let change = ThreadWaitChange::Waited {
            object,
            begun: until - from,
            ended: 0,
            site: SiteIndex(9),
            outcome: outcome::DONE,
            waker_site: SiteIndex::NONE,
            waker: 0,
            woken: 0,
        };
        self.at(thread, until, change);
    }

    /// Ends at 1000; `off` are times of threads without a CPU.
    fn finish(mut self, millicpus: u64, off: &[(u32, u64, u64)]) -> Execution {
        for thread in 0..self.1 {
            self.0.event(ThreadIndex(thread), 1000);
            self.0.change(ThreadIndex(thread), 1000, Change::ThreadEnds);
        }
        let mut execution = self.0.finish();
        for thread in 0..self.1 {
            let own = off.iter().filter(|(of, ..)| *of == thread);
            let runnable = own.map(|(_, from, until)| (*from, *until)).collect();
            let times = OsTimes { runnable, ..OsTimes::default() };
            execution.add_os_times(ThreadIndex(thread), OsSource::Switches, times);
        }
        let quota = Some(Quota { millicpus, cgroup: String::new() });
        execution.processes[0].cpus =
            Some(CpuFacts { allowed: CpuSet::of(0..2), quota, ..CpuFacts::default() });
        execution
    }
}

/// The used time and the losses, whose sum is the capacity.
fn losses(execution: &Execution) -> (u64, Vec<(LostTo, u64)>) {
    let time = cpu_time(execution).unwrap();
    let sum: u64 = time.losses.iter().map(|loss| loss.ns).sum();
    assert_eq!(time.used_ns + sum, time.capacity_ns, "{time:?}");
    let rows = time.losses.iter().filter(|loss| loss.ns > 0).map(|loss| (loss.to, loss.ns)).collect();
    (time.used_ns, rows)
}

fn is_wait(to: LostTo, of: u32) -> bool {
    matches!(to, LostTo::Wait { kind, .. } if kind == of)
}

/// Thread 0 holds the lock, for which thread 1 waits from 100 to 900.
fn locked() -> Run {
    let mut run = Run::of(2);
    run.begins(1, 100, LOCK);
    run.at(0, 900, ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(5) });
    run.ends(1, 900);
    run
}

#[test]
fn a_wait_for_a_lock_is_charged_to_its_holder() {
    let (used, rows) = losses(&locked().finish(2000, &[]));
    assert_eq!(used, 1200);
    assert!(matches!(rows[..], [(to, 800)] if is_wait(to, kind::MUTEX)), "{rows:?}");
}

#[test]
fn while_the_holder_has_no_cpu_the_system_is_charged() {
    let (used, rows) = losses(&locked().finish(2000, &[(0, 200, 500)]));
    assert_eq!(used, 900);
    let [(to, 600), (wait, 500)] = rows[..] else { panic!("{rows:?}") };
    assert!(to == LostTo::NoCpu && is_wait(wait, kind::MUTEX), "{rows:?}");
}

/// Threads 0 and 1 are bound to CPU 0, on which thread 0 runs until 400 and after 900, and thread 2 waits for thread 1.
#[test]
fn threads_that_are_bound_to_an_occupied_cpu_are_charged_to_their_binding() {
    let mut run = Run::of(3);
    run.begins(2, 100, LOCK);
    run.at(1, 800, ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(5) });
    run.ends(2, 800);
    let mut execution = run.finish(2000, &[(0, 400, 900), (1, 0, 700), (1, 900, 1000)]);
    for thread in &mut execution.threads[..2] {
        thread.cpus = Some(CpuSet::of([0]));
    }
    let (_, rows) = losses(&execution);
    let bound = |time: &CpuTime| {
        let rows = time.losses.iter().filter(|loss| matches!(loss.to, LostTo::Bound(ThreadIndex(0))));
        rows.map(|loss| loss.threads_ns).sum::<u64>()
    };
    // Thread 1 until 400 and from 900, thread 0 from 700 until 900, thread 2 from 100 until 400, which waits for thread 1. From 400
    // until 700, another program has the CPU.
    assert_eq!(bound(&cpu_time(&execution).unwrap()), 500 + 200 + 300, "{rows:?}");
}

#[test]
fn threads_that_would_run_share_the_unused_cpus() {
    let mut run = Run::of(3);
    run.begins(1, 0, LOCK);
    run.at(0, 1000, ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(5) });
    run.ends(1, 1000);
    let (used, rows) = losses(&run.finish(2000, &[(2, 0, 1000)]));
    assert_eq!(used, 1000);
    assert_eq!(rows.iter().map(|(_, ns)| *ns).collect::<Vec<_>>(), [500, 500], "{rows:?}");
}

#[test]
fn a_pool_without_jobs_is_no_loss_but_the_code_that_runs_alone() {
    let mut run = Run::of(4);
    for thread in 1..4 {
        run.begins(thread, 0, CONDITION);
    }
    run.at(0, 1000, ThreadWaitChange::Wakes { object: CONDITION, site: SiteIndex(3), all: true });
    for thread in 1..4 {
        run.ends(thread, 1000);
    }
    let execution = run.finish(2000, &[]);
    let (_, rows) = losses(&execution);
    assert!(matches!(rows[..], [(LostTo::Alone, 1000)]), "{rows:?}");
    assert_eq!(cpu_time(&execution).unwrap().alone, [(ThreadIndex(0), 0, 1000)]);
}

#[test]
fn a_starved_consumer_is_charged_to_its_producer() {
    let mut run = Run::of(2);
    for round in 0..9 {
        run.begins(1, 100 * round + 20, CONDITION);
        let wake = ThreadWaitChange::Wakes { object: CONDITION, site: SiteIndex(3), all: false };
        run.at(0, 100 * round + 100, wake);
        run.ends(1, 100 * round + 100);
    }
    let (_, rows) = losses(&run.finish(2000, &[]));
    assert!(matches!(rows[..], [(to, 720)] if is_wait(to, kind::CONDITION)), "{rows:?}");
}

#[test]
fn sleep_counts_if_the_thread_has_other_work_or_nothing_else_is_to_be_done() {
    let mut run = Run::of(2);
    run.waited(1, (100, 600), SLEEP);
    let (_, rows) = losses(&run.finish(2000, &[]));
    assert!(matches!(rows[..], [(LostTo::Blocked(kind::SLEEP, _), 500)]), "{rows:?}");
    // A thread that only sleeps beside one that works.
    let mut run = Run::of(2);
    run.waited(1, (0, 1000), SLEEP);
    assert!(matches!(losses(&run.finish(2000, &[])).1[..], [(LostTo::Alone, 1000)]));
    // A file is waited for, a peer may send requests.
    let mut run = Run::of(2);
    run.waited(0, (0, 1000), PEER);
    run.waited(1, (0, 400), FILE);
    let (used, rows) = losses(&run.finish(2000, &[]));
    assert_eq!(used, 600);
    let ns = |is: fn(LostTo) -> bool| rows.iter().filter(|(to, _)| is(*to)).map(|(_, ns)| ns).sum::<u64>();
    assert_eq!(ns(|to| matches!(to, LostTo::Blocked(kind::FILE, _))), 400, "{rows:?}");
    assert_eq!((ns(|to| to == LostTo::Idle), ns(|to| to == LostTo::Alone)), (400, 600), "{rows:?}");
}

/// The request has come at 600, and the thread has no CPU until 900.
#[test]
fn after_a_wait_for_the_outside_the_thread_has_no_cpu() {
    for object in [PEER, FILE, SLEEP] {
        let mut run = Run::of(1);
        run.waited(0, (100, 900), object);
        let execution = run.finish(1000, &[(0, 600, 900)]);
        let (used, rows) = losses(&execution);
        let no_cpu = rows.iter().find(|(to, _)| *to == LostTo::NoCpu);
        assert_eq!((used, no_cpu.map(|(_, ns)| *ns)), (200, Some(300)), "{object:?} {rows:?}");
        let states = &thread_states(&execution)[0];
        assert_eq!((states.no_cpu_ns, states.waits.iter().map(|(_, ns)| ns).sum()), (300, 500_u64));
    }
}

/// Signals of samples wake the thread at 200 and at 400; each time it has no CPU at once, and sleeps again. The request comes at 800.
#[test]
fn a_thread_that_sleeps_again_in_its_wait_was_not_without_a_cpu() {
    // A wait for a file may consist of several, which signals do not end.
    for (object, without) in [(PEER, 100), (SLEEP, 100), (FILE, 300)] {
        let mut run = Run::of(1);
        run.waited(0, (100, 900), object);
        let mut execution = run.finish(1000, &[]);
        let times = OsTimes {
            runnable: vec![(200, 300), (400, 500), (800, 900)],
            blocked: vec![(100, 200), (300, 400), (500, 800)],
            ..OsTimes::default()
        };
        execution.add_os_times(ThreadIndex(0), OsSource::Switches, times);
        let (used, rows) = losses(&execution);
        let no_cpu = rows.iter().find(|(to, _)| *to == LostTo::NoCpu);
        assert_eq!((used, no_cpu.map(|(_, ns)| *ns)), (200, Some(without)), "{object:?} {rows:?}");
        let states = &thread_states(&execution)[0];
        assert_eq!((states.no_cpu_ns, states.waits.iter().map(|(_, ns)| ns).sum()), (without, 800 - without));
    }
}

/// Thread 1 waits for the lock; a signal wakes it at 400, and it has no CPU until 600.
#[test]
fn a_signal_within_a_wait_for_a_lock_takes_nothing_from_the_wait() {
    let execution = locked().finish(2000, &[(1, 400, 600)]);
    let (used, rows) = losses(&execution);
    assert_eq!(used, 1200);
    assert!(matches!(rows[..], [(to, 800)] if is_wait(to, kind::MUTEX)), "{rows:?}");
    let states = &thread_states(&execution)[1];
    assert_eq!((states.no_cpu_ns, &states.waits[..]), (0, &[(kind::MUTEX, 800)][..]));
}

/// The thread is woken at 800, or has the lock then: before that, signals of samples alone have woken it.
#[test]
fn a_wait_is_over_when_its_waker_the_last_holder_or_the_kernel_has_ended_it() {
    let times = || OsTimes {
        runnable: vec![(200, 300), (800, 900)],
        blocked: vec![(100, 200), (300, 790)],
        ..OsTimes::default()
    };
    let ended_at = |mut run: Run, wait: fn(&mut Run)| {
        wait(&mut run);
        let mut execution = run.finish(2000, &[]);
        execution.add_os_times(ThreadIndex(1), OsSource::Switches, times());
        let waits = &execution.thread_waits.waits;
        let wait = waits.iter().find(|wait| wait.thread == ThreadIndex(1)).unwrap();
        crate::wait_chains::ended_at(&execution, wait)
    };
    let held = |run: &mut Run| {
        run.begins(1, 100, LOCK);
        run.at(0, 800, ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(5) });
        run.ends(1, 900);
    };
    let woken = |run: &mut Run| {
        run.begins(1, 100, CONDITION);
        run.at(0, 780, ThreadWaitChange::Wakes { object: CONDITION, site: SiteIndex(5), all: false });
        run.ends(1, 900);
    };
    assert_eq!(ended_at(Run::of(2), held), 800);
    assert_eq!(ended_at(Run::of(2), woken), 780);
    assert_eq!(ended_at(Run::of(2), |run| run.waited(1, (100, 900), PEER)), 790);
    // A wait for a file may consist of several, which signals do not end.
    assert_eq!(ended_at(Run::of(2), |run| run.waited(1, (100, 900), FILE)), 100);
}

#[test]
fn a_limit_bounds_the_capacity() {
    let execution = locked().finish(1500, &[(0, 0, 300)]);
    assert_eq!(cpu_time(&execution).unwrap().capacity_ns, 1500);
    losses(&execution);
    // More threads run at once than the limit allows in the long run.
    losses(&Run::of(4).finish(1500, &[(0, 500, 1000), (1, 500, 1000), (2, 500, 1000), (3, 500, 1000)]));
}

#[test]
fn without_the_cpus_or_the_scheduling_nothing_is_claimed() {
    let mut execution = locked().finish(2000, &[]);
    execution.processes[0].cpus = None;
    assert_eq!(cpu_time(&execution), None);
    let mut execution = locked().finish(2000, &[]);
    execution.threads.iter_mut().for_each(|thread| thread.os_source = OsSource::Unknown);
    assert_eq!(cpu_time(&execution), None);
    // A process that is killed loses the newest records.
    let mut execution = locked().finish(2000, &[(0, 200, 500)]);
    execution.threads[1].ended = false;
    let (_, rows) = losses(&execution);
    assert!(rows.iter().any(|(to, ns)| *to == LostTo::Unknown && *ns > 0), "{rows:?}");
}

#[test]
fn the_states_of_a_thread_sum_to_its_life() {
    let states = thread_states(&locked().finish(2000, &[(1, 50, 200)]));
    let of = &states[1];
    // The lock is held meanwhile: the thread would wait with a CPU, too.
    assert_eq!((of.running_ns, of.no_cpu_ns, of.blocked_ns, of.unknown_ns), (150, 50, 0, 0));
    assert_eq!(of.waits, [(kind::MUTEX, 800)]);
}

/// Blocked times of a thread.
fn blocked(execution: &mut Execution, thread: u32, times: &[(u64, u64)]) {
    let times = OsTimes { blocked: times.to_vec(), ..OsTimes::default() };
    execution.add_os_times(ThreadIndex(thread), OsSource::Switches, times);
}

/// Thread 1 waits from 100 until thread 0 wakes it at 900; that thread is asleep from 200 to 800, in no recorded wait.
fn woken(meanwhile: impl FnOnce(&mut Run)) -> Run {
    let mut run = Run::of(2);
    run.begins(1, 100, CONDITION);
    meanwhile(&mut run);
    run.at(0, 900, ThreadWaitChange::Wakes { object: CONDITION, site: SiteIndex(3), all: false });
    run.ends(1, 900);
    run
}

#[test]
fn a_waker_in_a_call_that_is_not_recorded_is_not_known_to_compute() {
    let mut execution = woken(|_| ()).finish(2000, &[]);
    blocked(&mut execution, 0, &[(200, 800)]);
    let rows = &crate::thread_waits::thread_waits(&execution)[0];
    let parts: Vec<_> = rows.parts.iter().map(|part| (part.root, part.thread, part.ns)).collect();
    assert_eq!(parts, [(Root::Unrecorded, ThreadIndex(0), 600), (Root::Ran, ThreadIndex(0), 200)]);
    let (used, rows) = losses(&execution);
    assert_eq!(used, 600);
    let ns =
        |is: &dyn Fn(LostTo) -> bool| rows.iter().filter(|(to, _)| is(*to)).map(|(_, ns)| ns).sum::<u64>();
    assert_eq!(ns(&|to| is_wait(to, kind::CONDITION)), 200, "{rows:?}");
    let is_unrecorded = |to: LostTo| matches!(to, LostTo::WaitUnrecorded { thread: ThreadIndex(0), .. });
    assert_eq!(ns(&is_unrecorded) + ns(&|to| to == LostTo::BlockedUnknown), 1200, "{rows:?}");
    assert!(ns(&is_unrecorded) > 0);
}

/// The lock is held, whatever the holder does.
#[test]
fn a_holder_in_a_call_that_is_not_recorded_stays_the_holder() {
    let mut execution = locked().finish(2000, &[]);
    blocked(&mut execution, 0, &[(200, 800)]);
    let rows = &crate::thread_waits::thread_waits(&execution)[0];
    let parts: Vec<_> = rows.parts.iter().map(|part| (part.root, part.ns)).collect();
    assert_eq!(parts, [(Root::Unrecorded, 600), (Root::Ran, 200)]);
    let (_, rows) = losses(&execution);
    let ns =
        |is: &dyn Fn(LostTo) -> bool| rows.iter().filter(|(to, _)| is(*to)).map(|(_, ns)| ns).sum::<u64>();
    assert_eq!(ns(&|to| is_wait(to, kind::MUTEX)), 800, "{rows:?}");
    assert_eq!(ns(&|to| matches!(to, LostTo::WaitUnrecorded { .. })), 0, "{rows:?}");
}

/// The waker is blocked in its recorded wait, or in one of its runtime's.
#[test]
fn recorded_waits_of_a_waker_are_no_calls_that_are_not_recorded() {
    let mut execution = woken(|run| run.waited(0, (190, 810), PEER)).finish(2000, &[]);
    blocked(&mut execution, 0, &[(200, 800)]);
    let roots = |execution: &Execution| -> Vec<Root> {
        let rows = crate::thread_waits::thread_waits(execution);
        let row = rows.iter().find(|row| row.kind == kind::CONDITION).unwrap();
        row.parts.iter().map(|part| part.root).collect()
    };
    assert_eq!(roots(&execution), [Root::Outside, Root::Ran]);
    let barrier = |run: &mut Run| {
        run.0.event(ThreadIndex(0), 190);
        run.0.change(ThreadIndex(0), 190, Change::Becomes(Section::of(State::Barrier)));
    };
    let mut execution = woken(barrier).finish(2000, &[]);
    blocked(&mut execution, 0, &[(200, 800)]);
    assert_eq!(roots(&execution), [Root::Ran]);
}

/// Thread 0 receives from a peer from 100 to 800, asleep from 150 to 750: the kernel copies for it in the rest. Thread 1 waits for its lock
/// from 100 to 900, at first on a CPU.
#[test]
fn a_thread_on_a_cpu_in_a_call_runs_but_in_one_for_a_lock() {
    let run = |are_known: bool| {
        let mut run = Run::of(2);
        run.begins(1, 100, LOCK);
        run.waited(0, (100, 800), PEER);
        run.at(0, 900, ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(5) });
        run.ends(1, 900);
        let mut execution = run.finish(2000, &[]);
        if are_known {
            blocked(&mut execution, 0, &[(150, 750)]);
            blocked(&mut execution, 1, &[(200, 900)]);
        }
        let states = thread_states(&execution);
        for states in &states {
            let waited: u64 = states.waits.iter().map(|(_, ns)| ns).sum();
            assert_eq!(states.running_ns + states.no_cpu_ns + states.blocked_ns + waited, 1000);
        }
        let time = cpu_time(&execution).unwrap();
        (states[0].running_ns, states[1].running_ns, time.used_ns)
    };
    assert_eq!(run(true), (400, 200, 600));
    // A recorded wait in which the thread gave up no CPU, as far as is known.
    assert_eq!(run(false), (300, 200, 500));
}
