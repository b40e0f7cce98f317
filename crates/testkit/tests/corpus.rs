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
