//! Ranges of every reference trace add up to the whole, for every state at every place and every leaf of the task graph.

use std::collections::BTreeMap;
use std::path::Path;
use taskscope_analysis::book;
use taskscope_analysis::causes::book_causes_in;
use taskscope_filter::TimeRange;
use taskscope_session::selection::Selection;
use taskscope_session::{ReadProgress, Session};
use taskscope_testkit::corpus::{on_all_cpus, reference_traces};

type Sums = BTreeMap<String, u64>;

fn add(sums: &mut Sums, name: String, ns: u64) {
    if ns > 0 {
        *sums.entry(name).or_default() += ns;
    }
}

/// The sums of the states; their parts are cut before they are analysed.
fn add_states(session: &Session, sums: &mut Sums) {
    let ledger = book(&session.execution);
    add(sums, "capacity".to_owned(), ledger.capacity_ns);
    for cause in &ledger.causes {
        add(sums, format!("{:?} at {:?}", cause.state, cause.place), cause.ns);
    }
    for charge in ledger.charges() {
        for (state, ns) in charge.by_state.iter() {
            add(sums, format!("{state:?} charged"), ns);
        }
    }
}

/// Returns whether the trace could be opened, and whether it has a task graph.
fn assert_ranges_add_up(trace: &Path) -> (bool, bool) {
    let Ok(session) = Session::open(trace) else { return (false, false) };
    let mut whole = Sums::new();
    add_states(&session, &mut whole);
    let mut parts = Sums::new();
    let ranges = ["..13%", "13%..37.5%", "37.5%..81%", "81%.."].map(|text| TimeRange::parse(text).unwrap());
    let mut clocks = Vec::new();
    for range in ranges {
        let selection = Selection { range, ..Selection::default() };
        let part = Session::open_part(trace, &selection, &ReadProgress::default()).unwrap();
        clocks.extend(part.range);
        add_states(&part, &mut parts);
    }
    assert_eq!(whole, parts, "{}", trace.display());
    let Ok((graph, _)) = session.task_graph() else { return (true, false) };
    let all = book_causes_in(&graph, (0, u64::MAX));
    let mut times = all.by_cause.map(|_| 0);
    for range in clocks {
        let part = book_causes_in(&graph, range);
        times.iter_mut().zip(part.by_cause).for_each(|(sum, ns)| *sum += ns);
    }
    assert_eq!(all.by_cause, times, "{}", trace.display());
    (true, true)
}

#[test]
fn ranges_of_reference_traces_add_up() {
    let traces = reference_traces();
    let divided = on_all_cpus(&traces, |_, trace| assert_ranges_add_up(trace));
    let is_empty = traces.is_empty();
    assert!(is_empty || divided.iter().any(|(is_open, _)| *is_open), "no trace could be opened");
    assert!(is_empty || divided.iter().any(|(_, has_graph)| *has_graph), "no trace has a task graph");
}
