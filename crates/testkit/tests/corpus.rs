//! Views and verdicts equal those of ovniemu on every reference trace that is present.

mod common;

use common::emulate;
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use taskscope_model::MachineOptions;
use taskscope_session::judgement::Judge;
use taskscope_testkit::paraver_files::{pcf_difference, prv_difference};

const BASES: [&str; 5] = ["thread", "cpu", "nosv-breakdown", "nanos6-breakdown", "openmp-breakdown"];

fn corpus(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: no reference traces in {}", path.display());
    None
}

/// A file's text, unpacked if there is only a packed one; `None` if there is none or it is empty.
fn text(directory: &Path, name: &str) -> Option<String> {
    let mut text = String::new();
    if let Ok(packed) = fs::File::open(directory.join(format!("{name}.gz"))) {
        GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    } else {
        text = fs::read_to_string(directory.join(name)).ok()?;
    }
    Some(text).filter(|text| !text.is_empty())
}

fn differences(ours: &Path, reference: &Path, bases: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for base in bases {
        let name = |suffix: &str| format!("{base}.{suffix}");
        let (our_prv, their_prv) = (text(ours, &name("prv")), text(reference, &name("prv")));
        let difference = match (&our_prv, &their_prv) {
            (Some(ours), Some(theirs)) => prv_difference(ours, theirs),
            (None, None) => continue,
            (Some(_), None) => Some("not in the reference".to_owned()),
            (None, Some(_)) => Some("missing".to_owned()),
        };
        found.extend(difference.map(|difference| format!("{base}.prv: {difference}")));
        if let (Some(ours), Some(theirs)) = (text(ours, &name("pcf")), text(reference, &name("pcf"))) {
            found
                .extend(pcf_difference(&ours, &theirs).map(|difference| format!("{base}.pcf: {difference}")));
        }
        if text(ours, &name("row")) != text(reference, &name("row")) && our_prv.is_some() {
            found.push(format!("{base}.row differs"));
        }
    }
    found
}

#[test]
fn ovnis_own_cases_and_synthetic_ones_are_equal() {
    let Some(corpus) = corpus("ovni") else { return };
    let index = fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let mut failures = Vec::new();
    let mut compared = 0;
    for line in index.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (name, steps) = (columns[0], columns[4]);
        for (variant, lint, breakdown) in [("none", false, false), ("l", true, false), ("lb", true, true)] {
            let reference = corpus.join(name).join("ref").join(variant);
            let Ok(codes) = fs::read_to_string(reference.join("rc")) else { continue };
            let accepted = codes.split_whitespace().all(|code| code == "0");
            let output = tempfile::tempdir().unwrap();
            let options = MachineOptions { all_models: false, breakdown };
            let emulated = emulate(&corpus.join(name).join("ovni"), output.path(), options);
            // The references of cases that sort are those of the sorted trace; the raw one, which is
            // read here, is refused by ovniemu.
            let expected = accepted && !steps.contains("ovnisort");
            if emulated.verdict.accepts(Judge::Ovni { lint }) != expected {
                failures.push(format!(
                    "{name} {variant}: the verdict is not {expected}: {:?}",
                    emulated.violations
                ));
            }
            if accepted {
                let found = differences(output.path(), &reference, &BASES);
                failures
                    .extend(found.into_iter().map(|difference| format!("{name} {variant}: {difference}")));
            }
            compared += 1;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(compared > 240, "only {compared} comparisons");
}

#[test]
fn recorded_traces_are_equal() {
    let Some(corpus) = corpus("runtimes") else { return };
    let mut compared = 0;
    for case in fs::read_dir(&corpus).unwrap() {
        let case = case.unwrap().path();
        if !case.join("trace").is_dir() {
            continue;
        }
        let output = tempfile::tempdir().unwrap();
        let options = MachineOptions { all_models: false, breakdown: true };
        emulate(&case.join("trace"), output.path(), options);
        let plain = case.join("ref/plain");
        if text(&plain, "thread.prv").is_some() {
            let found = differences(output.path(), &plain, &BASES[..2]);
            assert!(found.is_empty(), "{}: {found:?}", case.display());
            let found = differences(output.path(), &case.join("ref/breakdown"), &BASES[2..]);
            assert!(found.is_empty(), "{}: {found:?}", case.display());
            compared += 1;
        }
    }
    assert!(compared >= 10, "only {compared} traces were compared");
}

/// In Nanos6's breakdown the sections of the runtime (small values) lie on one side of the idle
/// states (100 to 102) and the tasks (values of labels) on the other, at every moment.
#[test]
fn the_heat_breakdown_is_stacked_as_documented() {
    let Some(corpus) = corpus("runtimes") else { return };
    let output = tempfile::tempdir().unwrap();
    let options = MachineOptions { all_models: false, breakdown: true };
    emulate(&corpus.join("nanos6-heat-l2/trace"), output.path(), options);
    let prv = text(output.path(), "nanos6-breakdown.prv").unwrap();
    let labels = text(output.path(), "nanos6-breakdown.pcf").unwrap();
    let label_of = |value: i64| {
        let line = labels.lines().find(|line| line.split(' ').next() == Some(&value.to_string()));
        line.map_or(String::new(), |line| line[value.to_string().len()..].trim().to_owned())
    };
    let mut rows = [0i64; 2];
    let mut last = 0;
    // Nanoseconds by value, and by the number of rows that show a value.
    let mut time: std::collections::BTreeMap<i64, [i64; 3]> = std::collections::BTreeMap::new();
    let mut records = prv
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<i64> = line.split(':').map(|field| field.parse().unwrap()).collect();
            (fields[5], fields[4] as usize - 1, fields[7])
        })
        .peekable();
    while let Some((now, row, value)) = records.next() {
        for value in rows.iter().collect::<std::collections::BTreeSet<_>>() {
            let count = rows.iter().filter(|other| *other == value).count();
            time.entry(*value).or_default()[count] += now - last;
        }
        last = now;
        rows[row] = value;
        // Within one nanosecond rows are written one after the other.
        if records.peek().is_none_or(|(next, ..)| *next != now) {
            assert!(rows.is_sorted(), "{rows:?} at {now}");
        }
    }
    let tasks = time.iter().filter(|(value, _)| **value >= 1000);
    let (main, [_, one, both]) = tasks.max_by_key(|(_, time)| time[1] + 2 * time[2]).unwrap();
    println!("main task type: {}", label_of(*main));
    println!("  on both CPUs    {:>12} ns  {:5.1} %", both, 100.0 * *both as f64 / last as f64);
    println!("  on one CPU      {:>12} ns  {:5.1} %", one, 100.0 * *one as f64 / last as f64);
    println!(
        "  on none         {:>12} ns  {:5.1} %",
        last - one - both,
        100.0 * (last - one - both) as f64 / last as f64
    );
    assert_eq!(label_of(*main), "gauss seidel block");
    assert!(one + both > 0 && one + both <= last);
}
