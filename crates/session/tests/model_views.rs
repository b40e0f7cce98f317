//! Kept views equal those that ovni's emulator wrote for the same traces, value by value.

use std::collections::BTreeMap;
use std::path::Path;
use taskscope_execution::lod::Values;
use taskscope_execution::view::ViewFamily;
use taskscope_session::model_views::{ModelViews, ViewName};
use taskscope_trace::{OpenOptions, Trace};

/// Rows of values by `(type, row)` of a `.prv` file; times since the trace's start.
fn rows_of_prv(text: &str) -> BTreeMap<(u32, usize), Values> {
    let mut rows: BTreeMap<(u32, usize), Values> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("2:")) {
        let numbers: Vec<i64> = line.split(':').map(|word| word.parse().unwrap()).collect();
        let (row, time) = (numbers[4] as usize - 1, numbers[5] as u64);
        for pair in numbers[6..].chunks_exact(2) {
            rows.entry((pair[0] as u32, row)).or_default().write(time, pair[1]);
        }
    }
    rows
}

/// Values of a row: changes, without "nothing" before the first value.
fn shown(values: &Values, origin: u64) -> Vec<(u64, i64)> {
    let changes = values.start.iter().map(|at| at - origin).zip(values.value.iter().copied());
    changes.skip_while(|(_, value)| *value == 0).collect()
}

#[test]
fn every_view_of_the_corpus_has_the_values_of_its_reference() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let (mut traces, mut rows_seen, mut values_seen) = (0, 0, 0);
    for (folder, inner) in [("ovni", "ovni"), ("runtimes", "trace")] {
        for case in std::fs::read_dir(corpus.join(folder)).into_iter().flatten().flatten() {
            let reference = ["ref/lb", "ref/breakdown", "ref/plain"].map(|name| case.path().join(name));
            let Some(reference) = reference.into_iter().find(|path| path.join("thread.prv").exists()) else {
                continue;
            };
            // For traces that it rejects, ovniemu writes a part.
            let accepted = std::fs::read_to_string(reference.join("rc")).unwrap_or("0".to_string());
            let root = case.path().join(inner);
            if accepted.trim() != "0" || !root.is_dir() {
                continue;
            }
            let views = ModelViews::open(&root).unwrap();
            let origin = origin_of(&root);
            traces += 1;
            for (family, description) in views.families() {
                let path = reference.join(format!("{}.prv", family.file_name()));
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let expected = rows_of_prv(&text);
                for known in &description.types {
                    let name = ViewName { family: *family, number: known.number };
                    let view = views.view(name).unwrap();
                    assert_eq!(view.rows.len(), description.rows.len());
                    for (number, row) in view.rows.iter().enumerate() {
                        let nothing = Values::default();
                        let expected = expected.get(&(name.number, number)).unwrap_or(&nothing);
                        let found = shown(&row.values, origin);
                        assert_eq!(
                            found,
                            shown(expected, 0),
                            "{} {name} row {number}",
                            case.path().display()
                        );
                        rows_seen += 1;
                        values_seen += found.len();
                    }
                }
                // No type of the file is missing among the views.
                for (number, _) in expected.keys() {
                    let known = description.types.iter().any(|known| known.number == *number);
                    assert!(known, "{} {} {number}", case.path().display(), family.file_name());
                }
            }
        }
    }
    if traces == 0 {
        taskscope_prerequisite::skip(format_args!(
            "there is no {} with traces and what ovniemu made of them",
            corpus.display()
        ));
        return;
    }
    assert!(traces > 30 && rows_seen > 1000 && values_seen > 10_000, "{traces} {rows_seen} {values_seen}");
}

fn origin_of(root: &Path) -> u64 {
    let trace = Trace::open(root, &OpenOptions { own_events: false, ..OpenOptions::default() }).unwrap();
    trace.first_clock_ns().unwrap_or(0).max(0) as u64
}

#[test]
fn a_view_that_is_not_there_is_none_and_stopping_ends_a_play() {
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/ovni/nosv-task-types/ovni");
    let Ok(views) = ModelViews::open(&corpus) else {
        taskscope_prerequisite::skip(format_args!("there is no {}", corpus.display()));
        return;
    };
    assert!(views.view(ViewName { family: ViewFamily::Thread, number: 9999 }).is_none());
    assert!(views.view(ViewName { family: ViewFamily::Nanos6Breakdown, number: 41 }).is_none());
    views.stop();
    assert!(
        views.view(ViewName { family: ViewFamily::Thread, number: 4 }).is_some(),
        "a short trace is played to its end"
    );
    assert!(views.progress().is_none());
    assert_eq!(views.thread_streams().count(), views.families()[0].1.rows.len());
}
