//! Names in scripts of other widths: tables have their columns where they are with ASCII names.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of tasks, data, activities, functions, kernels and queues, each as wide as its counterpart, and in the same
/// place of an order by name.
const WIDE: [&str; 6] =
    ["日本語の仕事", "z🙂🙂データ", "zhe\u{301}te\u{301}rogène", "関数の名前", "👩‍👩‍👧カーネル", "待ち行列"];
const ASCII: [&str; 6] =
    ["zzworkofjapn", "zz122daataa", "zheterogene", "zzfunction", "zzkernel12", "zstream2"];

fn graph([task, data, other, function, ..]: [&str; 6]) -> String {
    format!(
        r#"{{"schema": "slo-case/1", "name": "names", "trace": {{"time_unit": "ns",
        "workers": [{{"id": 0, "node": 0, "begin": 0, "end": 4000}}, {{"id": 1, "node": 1, "begin": 0, "end": 4000}}],
        "tasks": [
            {{"id": 1, "type": "{task}", "node": 0, "worker": 0, "start": 100, "end": 1000, "created": 0,
              "function": "{function}", "file": "{data}.c", "line": 7}},
            {{"id": 2, "type": "{other}", "node": 1, "worker": 1, "start": 1500, "end": 3000, "inputs": [7], "created": 20}},
            {{"id": 3, "type": "{task}", "node": 0, "worker": 0, "start": 3100, "end": 3900, "inputs": [8], "created": 30}}],
        "data": [
            {{"id": 7, "producer": 1, "produced": 1000, "home": 0, "name": "{data}", "bytes": 4096,
              "copies": [{{"node": 1, "sent": 1050, "arrived": 1400}}]}},
            {{"id": 8, "producer": 2, "produced": 3000, "home": 1, "name": "{other}",
              "copies": [{{"node": 0, "sent": 3010, "arrived": 3050}}]}}],
        "runtime": [{{"worker": 1, "start": 1400, "end": 1500, "kind": "{other}"}}]}}}}"#
    )
}

fn records([.., kernel, queue]: [&str; 6]) -> String {
    format!(
        "queue,id,start,end,append,name\n{queue},1,10,20,5,{kernel}\n{queue},2,30,40,25,{kernel}\nq,3,10,90,1,k\n"
    )
}

fn taskscope(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_taskscope")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Paths of a graph's trace and of a trace of device queues.
fn traces(root: &Path, names: [&str; 6]) -> [PathBuf; 2] {
    std::fs::create_dir(root).unwrap();
    std::fs::write(root.join("g.json"), graph(names)).unwrap();
    std::fs::write(root.join("r.csv"), records(names)).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    taskscope(&["import", &text("g.json"), "-o", &text("g.trace")]);
    taskscope(&["import", "--from", "device-records", &text("r.csv"), "-o", &text("r.trace")]);
    ["g.trace", "r.trace"].map(|name| root.join(name))
}

#[test]
fn tables_are_the_same_with_names_of_other_scripts() {
    let directory = tempfile::tempdir().unwrap();
    // Paths of the same width, which are shown too.
    let [wide, ascii] =
        [("a", WIDE), ("b", ASCII)].map(|(name, names)| traces(&directory.path().join(name), names));
    let (shown_wide, shown_ascii) = (directory.path().join("a"), directory.path().join("b"));
    let mut compared = 0;
    for (wide, ascii) in wide.iter().zip(&ascii) {
        for width in ["60", "80", "120"] {
            let reports =
                [&["report", "--section", "all", "--width", width][..], &["report", "--width", width]];
            // An imported task graph has no events for the others to show.
            let others = if wide.ends_with("r.trace") { &[&["info"][..], &["dump"]][..] } else { &[] };
            for command in reports.iter().chain(others) {
                let run = |trace: &Path| taskscope(&[*command, &[trace.to_str().unwrap()]].concat());
                let mut expected =
                    run(ascii).replace(shown_ascii.to_str().unwrap(), shown_wide.to_str().unwrap());
                let text = run(wide);
                for (wide, ascii) in WIDE.into_iter().zip(ASCII) {
                    expected = expected.replace(ascii, wide);
                }
                compared += WIDE.iter().filter(|name| text.contains(*name)).count();
                assert_eq!(text, expected, "{command:?}");
            }
        }
    }
    assert!(compared >= 30, "names are in {compared} texts only");
}
