//! The order of events equals that of ovni's own dump, on every reference trace that is present.

use std::path::Path;
use taskscope_trace::{ClockSource, OpenOptions, ReadOrder, Trace};

#[test]
fn events_are_in_ovnidumps_order() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/ovni");
    let Ok(cases) = std::fs::read_dir(&corpus) else {
        taskscope_prerequisite::skip(format_args!("no reference traces in {}", corpus.display()));
        return;
    };
    let mut compared = 0;
    for case in cases {
        let case = case.unwrap().path();
        let Ok(expected) = std::fs::read_to_string(case.join("ovnidump.txt")) else { continue };
        // Runs that ended in an error stop somewhere; those are judged by other tests.
        if std::fs::read_to_string(case.join("ovnidump.rc")).unwrap_or_default().trim() != "0" {
            continue;
        }
        let (clocks, order) = (ClockSource::None, ReadOrder::Stored);
        let options = OpenOptions { clocks, order, own_events: false, ..OpenOptions::default() };
        let trace = Trace::open(case.join("ovni"), &options).unwrap();
        let actual: Vec<String> = trace
            .merge()
            .map(|merged| {
                let stream = &trace.streams()[merged.stream];
                format!("{} {} {}", merged.event.clock_ns, merged.event.code, stream.relative_path)
            })
            .collect();
        let expected: Vec<String> = expected
            .lines()
            .map(|line| line.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
            .collect();
        let difference = actual.iter().zip(&expected).position(|(a, e)| a != e);
        assert_eq!((difference, actual.len()), (None, expected.len()), "{}", case.display());
        compared += 1;
    }
    assert!(compared > 50, "only {compared} traces were compared");
}
