//! Invariants of any sequence of events: time is partitioned, and every sum is exact.

use proptest::prelude::*;
use taskscope_analysis::call_paths::{CallPathOptions, TaskContext, profile_of};
use taskscope_analysis::hybrid::hybrid;
use taskscope_analysis::{Culprit, Ledger, Whose, analyse, split_lock_waits};
use taskscope_event::models::samples::{flag, state};
use taskscope_execution::samples::{Level, NewSample};
use taskscope_execution::{Cause, Execution, Group, OsSource, RegionIndex, State, TaskIndex, ThreadIndex};
use taskscope_profile::{Marker, Metric};
use taskscope_testkit::script::any_program;

fn check(execution: &Execution) {
    for (index, thread) in execution.threads.iter().enumerate().filter(|(_, t)| t.events > 0) {
        let process = &execution.processes[thread.process.index()];
        let mut at = process.first;
        for span in execution.spans_of_run(ThreadIndex(index as u32)) {
            assert_eq!(span.start, at, "sections of a thread leave no gap and do not overlap");
            assert!(span.end > span.start);
            at = span.end;
        }
        assert_eq!(at, process.last.max(process.first), "sections reach to the end of the process");
    }
    let (analysis, _) = analyse(execution);
    check_call_paths(execution);
    let ledger = &analysis.ledger;
    let useful = ledger.by_state.group_ns(Group::Useful);
    assert_eq!(ledger.causes.iter().map(|c| c.ns).sum::<u64>(), ledger.capacity_ns);
    assert_eq!(ledger.by_state.total(), ledger.capacity_ns);
    let workers = ledger.threads.iter().filter(|t| t.worker);
    assert_eq!(workers.map(|t| t.by_state.total()).sum::<u64>(), ledger.capacity_ns);

    // The entries: within a cause, charges are part of the spent time.
    let Ledger { spent, charged } = &ledger.entries;
    let worker_ns = |cause| spent.total(|entry| entry.of.whose == Whose::Worker && entry.cause.is_in(cause));
    assert_eq!(
        Cause::ALL.into_iter().filter(|cause| cause.category() == *cause).map(worker_ns).sum::<u64>(),
        ledger.capacity_ns
    );
    for (category, ns) in charged.by(|entry| Some(entry.cause.category())).iter() {
        assert!(ns <= worker_ns(*category), "{category:?}");
    }

    // Blame given equals wait taken, state by state.
    for (state, waited) in ledger.by_state.iter() {
        let charged: u64 = analysis.charges.iter().map(|c| c.by_state.get(state)).sum();
        match state.group() {
            // Charged to processes, not to code.
            _ if state == State::Communication => assert_eq!(charged, 0, "{state:?}"),
            Group::Sync | Group::Device | Group::Mutex | Group::Idle => {
                assert_eq!(charged, waited, "{state:?}")
            }
            _ => assert_eq!(charged, 0, "{state:?}"),
        }
    }
    assert_eq!(analysis.findings.iter().map(|f| f.ns).sum::<u64>(), ledger.capacity_ns - useful);

    // The same for each lock.
    let mut parts = 0;
    split_lock_waits(execution, |part| parts += part.ns);
    assert_eq!(parts, ledger.by_state.group_ns(Group::Mutex));
    for lock in &analysis.locks {
        let charged: u64 = lock.holders.iter().map(|h| h.ns).sum();
        assert_eq!(charged + lock.unheld_ns, lock.waited_ns);
    }

    // The factors multiply to the efficiency.
    let e = &analysis.efficiency;
    let losses = e.cpu_availability_ns
        + e.serialization_ns
        + e.load_balance_ns
        + e.device_offload_ns
        + e.blocked_ns
        + e.runtime_overhead_ns
        + e.unknown_ns;
    // Starting and ending MPI is in none.
    let started = ledger.started();
    assert_eq!(e.useful_ns + losses, started.total());
    if ledger.capacity_ns > 0 && e.useful_ns > 0 {
        let product = e.cpu_availability
            * e.serialization
            * e.load_balance
            * e.device_offload
            * e.blocked
            * e.runtime_overhead
            * e.known;
        assert!((product - e.parallel).abs() < 1e-9);
    }
    // And so do those of processes × threads.
    let h = hybrid(execution, &analysis);
    let omp = h.omp_serialization_ns + h.omp_load_imbalance_ns + h.omp_scheduling_ns;
    assert_eq!(h.useful_ns + h.mpi_ns + h.mpi_worker_idle_ns + omp, started.total());
    assert!((h.mpi_parallel * h.omp_parallel - h.parallel).abs() < 1e-9);
    let chain = h.omp_serialization * h.omp_load_balance * h.omp_scheduling;
    assert!(h.useful_ns == 0 || (chain - h.omp_parallel).abs() < 1e-9);
    for finding in &analysis.findings {
        assert!(finding.sole_ns <= finding.ns);
    }
    // No party is charged twice for one wait.
    let mut culprits: Vec<Culprit> = analysis.charges.iter().map(|c| c.culprit).collect();
    culprits.sort();
    culprits.dedup();
    assert_eq!(culprits.len(), analysis.charges.len());
}

/// By path too, in either task context: the given plus the shared time equals the taken time.
fn check_call_paths(execution: &Execution) {
    let (analysis, _) = analyse(execution);
    for task_context in [TaskContext::Creation, TaskContext::Execution] {
        let (profile, _) = profile_of(execution, CallPathOptions { task_context });
        let tree = &profile.tree;
        for wait in Marker::ALL.into_iter().filter(|marker| marker.is_wait() && marker.metric() == *marker) {
            let taken = tree.total(Metric::taken(wait));
            let (given, shared) = (tree.total(Metric::given(wait)), tree.total(Metric::shared(wait)));
            let never_shared =
                [Marker::Target, Marker::Critical, Marker::Lock, Marker::Ordered, Marker::Atomic];
            let directed = wait != Marker::Idle;
            assert_eq!(given, if directed { taken } else { 0 }, "{wait:?} given, {task_context:?}");
            assert_eq!(shared, if never_shared.contains(&wait) { 0 } else { taken }, "{wait:?} shared");
        }
        let by_state = &analysis.ledger.by_state;
        let all: u64 = Metric::all().filter(|metric| metric.is_taken()).map(|m| tree.total(m)).sum();
        let waits =
            [Group::Sync, Group::Device, Group::Mutex, Group::Idle].map(|group| by_state.group_ns(group));
        assert_eq!(all, waits.iter().sum::<u64>() - by_state.get(State::Communication));
        let creators = execution.tasks.creator.iter().filter(|creator| execution.is_selected(**creator));
        assert_eq!(tree.total(Metric::TASKS), creators.count() as u64);
        assert_eq!(tree.total(Metric::REGIONS), execution.regions.len() as u64);
        assert_eq!(tree.unfit(), 0);
    }
}

/// The time of all paths is the ledger's, for any samples.
fn check_times_of_paths(execution: &Execution) {
    let ledger = taskscope_analysis::book(execution);
    let (profile, quality) = profile_of(execution, CallPathOptions::default());
    let total = |metric| profile.tree.total(metric);
    if quality.samples == 0 {
        return assert_eq!(total(Metric::TIME), 0);
    }
    assert_eq!(total(Metric::TIME), ledger.capacity_ns + quality.other_threads_ns);
    if quality.other_threads_ns > 0 {
        return;
    }
    let group = |group| ledger.by_state.group_ns(group);
    let code = group(Group::Useful) + group(Group::Runtime) + group(Group::Unknown);
    // In unknown states paths set time off the CPU apart, the ledger does not.
    let off = total(Metric::OUT_OF_CPU).checked_sub(group(Group::Off)).unwrap();
    let blocked = total(Metric::BLOCKED).checked_sub(group(Group::Blocked)).unwrap();
    assert!(off + blocked <= group(Group::Unknown));
    // The end of a thread that was killed is not even known to be on a CPU.
    let not_known = code.checked_sub(total(Metric::WORK) + total(Metric::RUNTIME) + off + blocked).unwrap();
    let states = taskscope_analysis::thread_states(execution).into_iter().zip(&execution.threads);
    let recorded = states.filter(|(_, thread)| thread.os_source != OsSource::Unknown);
    assert!(not_known <= recorded.map(|(row, _)| row.unknown_ns).sum::<u64>());
    let taken: u64 = Metric::all().filter(|metric| metric.is_taken()).map(total).sum();
    assert_eq!(total(Metric::WAITING), taken);
}

/// Holds of one object never overlap.
fn check_holds(execution: &Execution) {
    let mut holds = execution.holds.clone();
    holds.sort_by_key(|h| (h.object, h.start, h.end));
    for pair in holds.windows(2).filter(|pair| pair[0].object == pair[1].object) {
        assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_events_are_partitioned_exactly(
        threads in 1_usize..5,
        choices in prop::collection::vec((0_usize..5, 0_u16..50, 0_usize..200, any::<[u8; 16]>()), 1..300),
    ) {
        let execution = any_program(threads, &choices).play();
        check(&execution);
        check_holds(&execution);
    }

    #[test]
    fn the_time_of_all_paths_is_the_ledgers(
        threads in 1_usize..5,
        choices in prop::collection::vec((0_usize..5, 0_u16..50, 0_usize..200, any::<[u8; 16]>()), 1..300),
        samples in prop::collection::vec((0_usize..5, 0_u64..8000, 1_u64..500, 0_u32..2, any::<[u8; 3]>()), 0..60),
        off in prop::collection::vec(0_u64..8000, 0..8),
    ) {
        let levels = [Level { first: 0, end: 1, region: RegionIndex::NONE, task: TaskIndex::NONE }];
        let states = [0, state::BARRIER_EXPLICIT, state::OVERHEAD, state::LOCK, state::IDLE];
        let stacks: Vec<[u64; 2]> =
            samples.iter().map(|(.., bytes)| [u64::from(bytes[0] % 3), 9]).collect();
        let samples: Vec<NewSample<'_>> = (samples.iter().zip(&stacks))
            .map(|((thread, at, weight_ns, flags, bytes), stack)| NewSample {
                thread: ThreadIndex((thread % threads) as u32),
                at: 1000 + at,
                weight_ns: *weight_ns,
                flags: flags * flag::IN_RUNTIME,
                state: states[usize::from(bytes[1]) % states.len()],
                levels: &levels[..usize::from(bytes[2] % 2)],
                addresses: stack,
            })
            .collect();
        let mut execution = any_program(threads, &choices).play_with_samples(&samples);
        check_times_of_paths(&execution);
        let mut off: Vec<u64> = off.iter().map(|at| 1000 + at).collect();
        off.sort_unstable();
        let off: Vec<(u64, u64)> = off.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &off, &[]);
        execution.attribute_system_time();
        check_times_of_paths(&execution);
    }

    /// For some threads every sum is exact, their time is the same as in the whole, and the charges over all
    /// of them equal those of the whole.
    #[test]
    fn a_selection_of_threads_has_exact_sums(
        threads in 1_usize..5,
        selected in prop::collection::vec(any::<bool>(), 5),
        choices in prop::collection::vec((0_usize..5, 0_u16..50, 0_usize..200, any::<[u8; 16]>()), 1..300),
    ) {
        let whole = any_program(threads, &choices).play();
        let (whole_analysis, _) = analyse(&whole);
        let part = |wanted: bool| {
            let mut part = whole.clone();
            for (thread, selected) in part.threads.iter_mut().zip(&selected) {
                thread.selected = *selected == wanted;
            }
            part
        };
        let mut waited = 0;
        for part in [part(true), part(false)] {
            check(&part);
            let (analysis, _) = analyse(&part);
            for time in &analysis.ledger.threads {
                prop_assert!(part.threads[time.thread.index()].selected);
                let same = whole_analysis.ledger.threads.iter().find(|row| row.thread == time.thread);
                prop_assert_eq!(same.map(|row| row.by_state), Some(time.by_state));
            }
            waited += analysis.charges.iter().map(|charge| charge.total()).sum::<u64>();
        }
        prop_assert_eq!(waited, whole_analysis.charges.iter().map(|charge| charge.total()).sum::<u64>());
    }
}

/// Thread 1 waits for a lock while thread 0 holds it, and in a barrier while 0 works; thread 2 waits for both all the time.
#[test]
fn a_selected_threads_wait_is_charged_to_an_unselected_thread() {
    use taskscope_execution::Change::{Becomes, ThreadWorks};
    use taskscope_execution::{
        ExecutionBuilder, Hold, ObjectIndex, Observer, Place, Section, SiteIndex, TaskIndex,
    };
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("host", 1);
    for tid in 1..=3 {
        let thread = builder.add_thread(process, tid);
        builder.event(thread, 0);
        builder.change(thread, 0, ThreadWorks);
    }
    let at = |site| Place::site(SiteIndex(site));
    let object = ObjectIndex(0);
    let sections: [&[(u64, State, u32)]; 3] = [
        &[(0, State::ImplicitTask, 1), (50, State::Worksharing, 2), (90, State::Barrier, 3)],
        &[(0, State::LockWait, 4), (40, State::Worksharing, 2), (60, State::Barrier, 3)],
        &[(0, State::LockWait, 5), (70, State::Barrier, 3)],
    ];
    for (thread, sections) in (0..).map(ThreadIndex).zip(sections) {
        for (begin, state, site) in sections {
            let object = if *state == State::LockWait { object } else { ObjectIndex::NONE };
            builder.event(thread, *begin);
            builder.change(
                thread,
                *begin,
                Becomes(Section { place: at(*site), object, ..Section::of(*state) }),
            );
        }
        builder.event(thread, 100);
    }
    let mut execution = builder.finish();
    let (site, task) = (SiteIndex(9), TaskIndex::NONE);
    let hold = Hold { object, thread: ThreadIndex(0), task, site, start: 0, end: 40 };
    execution.holds.to_mut().push(hold);
    for (thread, row) in execution.threads.iter_mut().enumerate() {
        row.selected = thread == 1;
    }
    check(&execution);
    let (analysis, _) = analyse(&execution);
    assert_eq!((analysis.ledger.workers, analysis.ledger.capacity_ns), (1, 100));
    let charges: Vec<(Culprit, u64)> = analysis.charges.iter().map(|c| (c.culprit, c.total())).collect();
    let expected = [
        (Culprit::Holder(Place::site(site)), 40),
        (Culprit::Code(State::Worksharing, at(2)), 30),
        (Culprit::Nobody(at(3)), 10),
    ];
    assert_eq!(charges, expected);
}
