//! Exports of call trees, read back by other means than they were written by.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use taskscope_export::call_paths::{write_folded, write_pprof, write_speedscope};
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT};

fn below(tree: &mut CallTree, from: NodeId, what: StepKind, function: &str, line: Option<u32>) -> NodeId {
    let file = line.map(|_| "/src/heat;er.c".to_string());
    let kind = if function.starts_with("__kmp") { FrameKind::Runtime } else { FrameKind::User };
    let label = Label { what, function: function.to_string(), file, line, module: "heat".to_string() };
    tree.child(from, kind, label)
}

const STEP: &str = "a;b::step<int, 2>";

/// main ▸ step (called at 9) ▸ step [parallel at 41] ▸ line 43, and ▸ wait ▸ frame of the runtime
fn tree() -> CallTree {
    let mut tree = CallTree::default();
    let main = below(&mut tree, ROOT, StepKind::Function, "main", None);
    let step = below(&mut tree, main, StepKind::Function, STEP, Some(9));
    let body = below(&mut tree, step, StepKind::Parallel, STEP, Some(41));
    let line = below(&mut tree, body, StepKind::Line, STEP, Some(43));
    let wait = tree.tree.child(body, Frame::state(Marker::Barrier));
    let inside = below(&mut tree, wait, StepKind::Function, "__kmp_wait", None);
    for (node, metric, value) in [
        (line, Metric::TIME, 700),
        (line, Metric::SAMPLES, 7),
        (line, Metric::given(Marker::Barrier), 250),
        (inside, Metric::TIME, 300),
        (inside, Metric::SAMPLES, 3),
        (wait, Metric::taken(Marker::Barrier), 250),
    ] {
        tree.tree.add(node, metric, value);
    }
    tree
}

#[test]
fn folded_stacks_are_one_line_a_path() {
    let mut out = Vec::new();
    let lines = write_folded(&tree(), |metric| metric == Metric::TIME, &mut out).unwrap();
    let step = "main;a,b::step<int, 2>;a,b::step<int, 2> [parallel at heat,er.c:41]";
    assert_eq!(lines, 2);
    assert_eq!(String::from_utf8(out).unwrap(), format!("{step} 700\n{step};<barrier> 300\n"));
}

#[test]
fn speedscope_has_a_profile_for_each_column() {
    let mut out = Vec::new();
    write_speedscope(&tree(), "heat", &mut out).unwrap();
    let file: Value = serde_json::from_slice(&out).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<&str> = profiles.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["time", "waiting", "blame", "samples"]);
    for profile in profiles {
        let samples = profile["samples"].as_array().unwrap();
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!(samples.len(), weights.len());
        assert_eq!(profile["endValue"], weights.iter().map(|w| w.as_u64().unwrap()).sum::<u64>());
        let mut all = samples.iter().flat_map(|path| path.as_array().unwrap());
        assert!(all.all(|number| (number.as_u64().unwrap() as usize) < frames.len()));
    }
    let path = profiles[1]["samples"][0].as_array().unwrap();
    let named = |at: usize| frames[path[at].as_u64().unwrap() as usize]["name"].as_str().unwrap();
    assert_eq!((named(0), named(3)), ("main", "<barrier>"));
}

#[test]
fn sums_end_at_the_largest_number() {
    let mut tree = CallTree::default();
    let main = below(&mut tree, ROOT, StepKind::Function, "main", None);
    let other = below(&mut tree, ROOT, StepKind::Function, "other", None);
    for metric in [Metric::taken(Marker::Barrier), Metric::taken(Marker::Lock)] {
        tree.tree.add(main, metric, u64::MAX);
    }
    tree.tree.add(other, Metric::taken(Marker::Lock), 1);
    let mut folded = Vec::new();
    write_folded(&tree, Metric::is_taken, &mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    assert!(folded.contains(&format!("main {}\n", u64::MAX)), "{folded}");
    let mut speedscope = Vec::new();
    write_speedscope(&tree, "large", &mut speedscope).unwrap();
    let file: Value = serde_json::from_slice(&speedscope).unwrap();
    assert_eq!(file["profiles"][0]["endValue"], u64::MAX);
}

/// A profile as pprof itself prints it; `None` if Go, which has pprof, is not installed.
fn printed_by_pprof(profile: &[u8]) -> Option<String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), profile).unwrap();
    let Ok(run) = Command::new("go").args(["tool", "pprof", "-raw"]).arg(file.path()).output() else {
        taskscope_prerequisite::missing("go is not installed");
        return None;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(String::from_utf8(run.stdout).unwrap())
}

#[test]
fn pprof_reads_every_value_and_line() {
    let mut out = Vec::new();
    write_pprof(&tree(), &mut out).unwrap();
    let Some(printed) = printed_by_pprof(&out) else { return };
    let section = |begin: &str, end: &str| -> Vec<&str> {
        let lines = printed.lines().skip_while(|line| *line != begin).skip(1);
        lines.take_while(|line| *line != end).collect()
    };
    let samples = section("Samples:", "Locations");
    let types: Vec<&str> = samples[0].split_whitespace().collect();
    assert_eq!(
        types,
        ["time/nanoseconds[dflt]", "waiting/nanoseconds", "blame/nanoseconds", "samples/count"]
    );
    let numbers =
        |text: &str| -> Vec<u64> { text.split_whitespace().map(|number| number.parse().unwrap()).collect() };
    let samples: Vec<(Vec<u64>, Vec<u64>)> = samples[1..]
        .iter()
        .map(|line| line.split_once(':').map(|(values, path)| (numbers(values), numbers(path))).unwrap())
        .collect();
    let sums: Vec<u64> = (0..4).map(|i| samples.iter().map(|(values, _)| values[i]).sum()).collect();
    assert_eq!(sums, [1000, 250, 250, 10]);
    // `1: 0x0 M=1 FUNCTION FILE:LINE s=0(NAME OF THE LINKER)`, where newer versions have a column behind the line.
    let locations: BTreeMap<u64, &str> = section("Locations", "Mappings")
        .iter()
        .map(|line| {
            let (number, place) = line.split_once(": 0x0 M=1 ").unwrap();
            (number.trim().parse().unwrap(), place)
        })
        .collect();
    // pprof takes names that are the linker's too for C++, and `<idle>` for one without anything.
    assert!(locations.values().all(|place| place.ends_with(" s=0()")), "{printed}");
    let (values, path) = samples.iter().find(|(values, _)| values[0] == 700).unwrap();
    assert_eq!(*values, [700, 0, 250, 7]);
    let expected = [
        format!("{STEP} [parallel at heat;er.c:41] /src/heat;er.c:43"),
        format!("{STEP} /src/heat;er.c:41"),
        "main /src/heat;er.c:9".to_owned(),
    ];
    assert_eq!(path.len(), expected.len(), "{printed}");
    for (number, place) in path.iter().zip(expected) {
        let found = locations[number];
        let rest = found.strip_prefix(&place).unwrap_or_else(|| panic!("{found} instead of {place}"));
        assert!(rest.starts_with([' ', ':']), "{found}");
    }
}

#[test]
fn a_tree_without_paths_can_be_exported() {
    let mut tree = CallTree::default();
    tree.tree.add(ROOT, Metric::TIME, 5);
    for tree in [CallTree::default(), tree] {
        let mut out = Vec::new();
        write_speedscope(&tree, "", &mut out).unwrap();
        assert!(serde_json::from_slice::<Value>(&out).unwrap()["profiles"].is_array());
        write_pprof(&tree, &mut out).unwrap();
        write_folded(&tree, |_| true, &mut out).unwrap();
    }
}
