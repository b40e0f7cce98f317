//! Undirected blame against its definition: each nanosecond of waits is charged to one of the working threads, in turns.

use proptest::prelude::*;
use std::collections::BTreeMap;
use taskscope_analysis::{Culprit, analyse};
use taskscope_execution::{
    CutSpan, Execution, Group, OsSource, ProcessIndex, State, Thread, ThreadIndex, ThreadKind,
};
use taskscope_testkit::script::any_program;

const WAITS: [State; 10] = [
    State::Barrier,
    State::JoinBarrier,
    State::Taskwait,
    State::TaskwaitDepend,
    State::Taskgroup,
    State::Taskyield,
    State::Idle,
    State::Paused,
    State::NotStarted,
    State::Ended,
];

/// Nanoseconds by culprit and the state of those that waited, and of these the culprit's while it worked alone.
type Charges = BTreeMap<(Culprit, State), u64>;

fn by_definition(execution: &Execution) -> (Charges, BTreeMap<Culprit, u64>) {
    let (mut charges, mut sole) = (Charges::new(), BTreeMap::new());
    for process in 0..execution.processes.len() {
        // The runtime's own threads run target tasks; their waits do not count.
        let runs_code = |thread: &Thread| thread.worker || thread.kind == ThreadKind::Helper;
        let is_in_process = |thread: &Thread| thread.process == ProcessIndex(process as u32);
        let threads: Vec<(ThreadIndex, Vec<CutSpan>)> = (0..execution.threads.len() as u32)
            .map(ThreadIndex)
            .filter(|at| {
                runs_code(&execution.threads[at.index()]) && is_in_process(&execution.threads[at.index()])
            })
            .map(|thread| (thread, execution.cut_spans_of_run(thread).collect()))
            .collect();
        let spans =
            || threads.iter().flat_map(|(thread, spans)| spans.iter().map(move |span| (*thread, span)));
        let mut times: Vec<u64> = spans().flat_map(|(_, cut)| [cut.span.start, cut.span.end]).collect();
        times.sort_unstable();
        times.dedup();
        for between in times.windows(2) {
            let ns = between[1] - between[0];
            let (mut waiting, mut working, mut acquiring) = (Vec::new(), Vec::new(), Vec::new());
            for (thread, CutSpan { span, .. }) in
                spans().filter(|(_, cut)| cut.span.start <= between[0] && between[0] < cut.span.end)
            {
                let state = span.section.state;
                // System time is not charged.
                if state.group() == Group::Off {
                    continue;
                }
                if WAITS.contains(&state) {
                    let counts = execution.threads[thread.index()].worker && execution.is_selected(thread);
                    waiting.extend(counts.then_some((state, span.section.place)));
                } else {
                    let culprits = if state.group() == Group::Mutex { &mut acquiring } else { &mut working };
                    culprits.push(Culprit::Code(state, span.section.place));
                }
            }
            if working.is_empty() {
                working = acquiring;
            }
            for (state, place) in waiting {
                if working.is_empty() {
                    *charges.entry((Culprit::Nobody(place), state)).or_default() += ns;
                }
                for at in (between[0]..between[1]).filter(|_| !working.is_empty()) {
                    let culprit = working[(at % working.len() as u64) as usize];
                    *charges.entry((culprit, state)).or_default() += 1;
                }
                if let [only] = working[..] {
                    *sole.entry(only).or_default() += ns;
                }
            }
        }
    }
    (charges, sole)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn working_threads_take_turns_in_the_waiting_of_others(
        threads in 1_usize..6,
        selected in prop::collection::vec(any::<bool>(), 6),
        part in prop::option::of((0_u64..100, 1_u64..100)),
        off in prop::collection::vec((0_u32..6, 0_u64..5_000, 1_u64..500), 0..6),
        choices in prop::collection::vec((0_usize..6, 0_u16..50, 0_usize..200, any::<[u8; 16]>()), 1..300),
    ) {
        let mut execution = any_program(threads, &choices).play();
        for (thread, at, ns) in off {
            if (thread as usize) < execution.threads.len() {
                execution.add_off_cpu(ThreadIndex(thread), OsSource::Switches, &[(at, at + ns)], &[]);
            }
        }
        execution.attribute_system_time();
        // A part of the run, in hundredths: threads may not be there in it.
        if let Some((begin, length)) = part {
            let (first, last) = execution.range();
            let at = |hundredths: u64| first + (last - first) * hundredths / 100;
            execution.cut(at(begin), at(begin + length));
        }
        for (thread, selected) in execution.threads.iter_mut().zip(selected) {
            thread.selected = selected;
        }
        let (expected, sole) = by_definition(&execution);
        let (analysis, _) = analyse(&execution);
        let mut charges = Charges::new();
        for charge in &analysis.charges {
            for state in WAITS.into_iter().filter(|state| charge.by_state.get(*state) > 0) {
                charges.insert((charge.culprit, state), charge.by_state.get(state));
            }
        }
        prop_assert_eq!(charges, expected);
        for charge in analysis.charges.iter().filter(|charge| matches!(charge.culprit, Culprit::Code(..))) {
            let expected = sole.get(&charge.culprit).copied().unwrap_or(0);
            prop_assert_eq!(charge.sole_ns, expected, "{:?}", charge);
        }
    }
}
