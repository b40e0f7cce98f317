//! Views and verdicts equal those of ovniemu on every reference trace that is present.

mod common;

use common::{Emulated, emulate};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use taskscope_check::verdict::Judge;
use taskscope_model::{MachineOptions, Severity};
use taskscope_testkit::paraver_files::{pcf_difference, prv_difference};
use taskscope_trace::{ClockSource, MergedEvent, OpenOptions, ReadOrder, Trace};

const BASES: [&str; 5] = ["thread", "cpu", "nosv-breakdown", "nanos6-breakdown", "openmp-breakdown"];

fn corpus(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus").join(name);
    if path.exists() {
        return Some(path);
    }
    taskscope_prerequisite::skip(format_args!("no reference traces in {}", path.display()));
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

/// Comparison of our answers with ovniemu's, over a corpus.
#[derive(Default)]
struct Table {
    /// Verdict of `emulate -l` and views.
    equal: u32,
    /// ovniemu refuses, and so leaves no whole views; so do we.
    both_refuse: u32,
    /// `check` decides otherwise, by a rule that the compatibility page lists.
    check_differs: BTreeMap<&'static str, u32>,
    unexplained: Vec<String>,
}

impl Table {
    /// Notes one comparison: the differences in verdict and views, and the output of `check`.
    fn note(
        &mut self,
        case: &str,
        accepted: bool,
        emulated: &Emulated,
        lint: bool,
        differences: Vec<String>,
    ) {
        let ours = emulated.verdict.accepts(Judge::Ovni { lint });
        if ours != accepted {
            self.unexplained
                .push(format!("{case}: the verdict is not {accepted}: {:?}", emulated.violations));
        } else if !differences.is_empty() {
            self.unexplained.push(format!("{case}: {differences:?}"));
        } else if accepted {
            self.equal += 1;
        } else {
            self.both_refuse += 1;
        }
        if emulated.verdict.accepts(Judge::Own) == accepted {
            return;
        }
        let weighs = |judge: Judge, code| judge.severity(code) == Severity::Error;
        let rules = emulated
            .verdict
            .counts
            .keys()
            .filter(|code| weighs(Judge::Own, **code) != weighs(Judge::Ovni { lint }, **code));
        let mut explained = false;
        for rule in rules {
            explained = true;
            *self.check_differs.entry(rule.name()).or_default() += 1;
        }
        if !explained {
            self.unexplained.push(format!("{case}: check differs: {:?}", emulated.violations));
        }
    }

    fn print(&self, corpus: &str) {
        println!(
            "{corpus}: equal {}, both refuse {}, unexplained {}",
            self.equal,
            self.both_refuse,
            self.unexplained.len()
        );
        for (rule, count) in &self.check_differs {
            println!("  check differs from ovniemu by {rule}: {count}");
        }
        assert!(self.unexplained.is_empty(), "{}", self.unexplained.join("\n"));
    }
}

#[test]
fn ovnis_own_cases_and_synthetic_ones_are_equal() {
    let Some(corpus) = corpus("ovni") else { return };
    let index = fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let mut table = Table::default();
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
            let found = if accepted { differences(output.path(), &reference, &BASES) } else { Vec::new() };
            // The references of cases that sort are those of the sorted trace; the raw one, which is
            // read here, is refused by ovniemu.
            let expected = accepted && !steps.contains("ovnisort");
            table.note(&format!("{name} {variant}"), expected, &emulated, lint, found);
        }
    }
    table.print("corpus/ovni");
    assert!(table.equal + table.both_refuse > 240, "too few comparisons");
}

/// Whether ovniemu accepts the recorded trace as it lies there, by the log of its run.
fn accepted_raw(case: &Path) -> bool {
    let meta: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(case.join("meta.json")).unwrap()).unwrap();
    let runs = meta["emu"].as_object().unwrap();
    let is_accepted = |run: &str| runs.get(run).map(|run| run["rc"] == 0);
    let unsorted = is_accepted("unsorted").unwrap_or(meta["sort_needed"] != true);
    unsorted && is_accepted("linter").unwrap_or(true)
}

#[test]
fn recorded_traces_are_equal() {
    let Some(corpus) = corpus("runtimes") else { return };
    let mut table = Table::default();
    let (mut with_views, mut dumped) = (0, 0);
    for case in fs::read_dir(&corpus).unwrap() {
        let case = case.unwrap().path();
        if !case.join("trace").is_dir() {
            continue;
        }
        let name = case.file_name().unwrap().to_str().unwrap();
        let output = tempfile::tempdir().unwrap();
        emulate(&case.join("trace"), output.path(), MachineOptions { all_models: false, breakdown: true });
        // `-l` does not decide whether a nOS-V trace can have a breakdown.
        let plain_output = tempfile::tempdir().unwrap();
        let emulated = emulate(&case.join("trace"), plain_output.path(), MachineOptions::default());
        let plain = case.join("ref/plain");
        let mut found = Vec::new();
        if text(&plain, "thread.prv").is_some() {
            with_views += 1;
            found.extend(differences(output.path(), &plain, &BASES[..2]));
            found.extend(differences(output.path(), &case.join("ref/breakdown"), &BASES[2..]));
        }
        table.note(name, accepted_raw(&case), &emulated, true, found);
        dumped += u32::from(compare_dump(&case));
    }
    table.print("corpus/runtimes");
    assert!(with_views >= 10 && dumped >= 10, "only {with_views} views and {dumped} dumps were compared");
}

/// The first lines of ovnidump and the counts of ovnitop are those of our readers.
fn compare_dump(case: &Path) -> bool {
    let Some(lines) = text(&case.join("ref"), "ovnidump.head200") else { return false };
    let (clocks, order) = (ClockSource::None, ReadOrder::Stored);
    let options = OpenOptions { clocks, order, own_events: false, ..OpenOptions::default() };
    let trace = Trace::open(case.join("trace"), &options).unwrap();
    let first_words = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
    // It complains of clocks that go back between the lines.
    let expected: Vec<_> = lines.lines().filter(|line| !line.contains("ovnidump")).map(first_words).collect();
    let line_of = |merged: MergedEvent<'_>| {
        let stream = &trace.streams()[merged.stream].relative_path;
        first_words(&format!("{} {} {stream}", merged.event.clock_ns, merged.event.code))
    };
    let ours: Vec<_> = trace.merge().take(expected.len()).map(line_of).collect();
    assert_eq!(ours, expected, "{}", case.display());
    let counts = text(&case.join("ref"), "ovnitop.out").unwrap_or_default();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for words in counts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        if let [code, count] = words[..] {
            expected.insert(code.to_owned(), count.parse().unwrap());
        }
    }
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    trace.merge().for_each(|merged| *ours.entry(merged.event.code.to_string()).or_default() += 1);
    assert_eq!(ours, expected, "{}", case.display());
    true
}

/// In Nanos6's breakdown the sections of the runtime (small values) are on one side of the idle states (100
/// to 102) and the tasks (values of labels) on the other, at every moment.
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
    let mut time: BTreeMap<i64, [i64; 3]> = std::collections::BTreeMap::new();
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
