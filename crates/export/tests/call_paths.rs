//! Exports of call trees, read back by other means than they were written by.

use flate2::read::GzDecoder;
use prost::Message;
use serde_json::Value;
use std::io::Read;
use taskscope_export::call_paths::{write_folded, write_pprof, write_speedscope};
use taskscope_profile::named::{CallTree, Label, What};
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT};

fn below(tree: &mut CallTree, from: NodeId, what: What, function: &str, line: Option<u32>) -> NodeId {
    let file = line.map(|_| "/src/heat;er.c".to_string());
    let kind = if function.starts_with("__kmp") { FrameKind::Runtime } else { FrameKind::User };
    let label = Label { what, function: function.to_string(), file, line, module: "heat".to_string() };
    tree.child(from, kind, label)
}

const STEP: &str = "a;b::step<int, 2>";

/// main ▸ step (called at 9) ▸ step [parallel at 41] ▸ line 43, and ▸ wait ▸ frame of the runtime
fn tree() -> CallTree {
    let mut tree = CallTree::default();
    let main = below(&mut tree, ROOT, What::Function, "main", None);
    let step = below(&mut tree, main, What::Function, STEP, Some(9));
    let body = below(&mut tree, step, What::Parallel, STEP, Some(41));
    let line = below(&mut tree, body, What::Line, STEP, Some(43));
    let wait = tree.tree.child(body, Frame::state(Marker::Barrier));
    let inside = below(&mut tree, wait, What::Function, "__kmp_wait", None);
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

/// The messages as pprof's profile.proto declares them.
mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

#[test]
fn pprof_decodes_with_its_lines() {
    let mut out = Vec::new();
    write_pprof(&tree(), &mut out).unwrap();
    let mut message = Vec::new();
    GzDecoder::new(&*out).read_to_end(&mut message).unwrap();
    let profile = proto::Profile::decode(&*message).unwrap();
    let text = |number: i64| profile.string_table[number as usize].as_str();
    let types: Vec<(&str, &str)> =
        profile.sample_type.iter().map(|t| (text(t.r#type), text(t.unit))).collect();
    assert_eq!((text(0), types.len(), types[0]), ("", 4, ("time", "nanoseconds")));
    assert_eq!(text(profile.default_sample_type), "time");
    // pprof takes names that are the linker's too for C++, and `<idle>` for one without anything.
    assert!(profile.function.iter().all(|function| function.system_name != function.name));
    let place = |id: &u64| {
        let location = profile.location.iter().find(|location| location.id == *id).unwrap();
        let line = &location.line[0];
        let function = profile.function.iter().find(|function| function.id == line.function_id).unwrap();
        (text(function.name), line.line)
    };
    let working = profile.sample.iter().find(|sample| sample.value[0] == 700).unwrap();
    let path: Vec<(&str, i64)> = working.location_id.iter().map(place).collect();
    assert_eq!(path, [("a;b::step<int, 2> [parallel at heat;er.c:41]", 43), (STEP, 41), ("main", 9)]);
    assert_eq!(working.value, [700, 0, 250, 7]);
    let sums: Vec<i64> = (0..4).map(|i| profile.sample.iter().map(|sample| sample.value[i]).sum()).collect();
    assert_eq!(sums, [1000, 250, 250, 10]);
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
