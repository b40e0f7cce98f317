//! Ranges of a report add up to the whole, in every table, to the nanosecond.

mod common;

use common::{output, taskscope};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use taskscope_testkit::corpus::{all_traces, on_all_cpus};
use taskscope_testkit::dice::Dice;

/// Fields that identify the rows of a table.
const IDENTITY: [&str; 22] = [
    "name",
    "state",
    "cause",
    "where",
    "blamed",
    "blamed_state",
    "tid",
    "pid",
    "rank",
    "thread",
    "file",
    "line",
    "function",
    "kind",
    "type",
    "what",
    "frames",
    "call",
    "operation",
    "address",
    "path",
    "label",
];
/// Parts of names of times that are not sums: extremes, means, and times of the whole run.
const NO_SUMS: [&str; 15] = [
    "start_unix",
    "longest",
    "max",
    "p95",
    "p50",
    "median",
    "mean",
    "first",
    "last",
    "cost",
    "imbalance",
    "run_wall",
    "clock",
    "period",
    "own_ns_per",
];

/// Nanoseconds by table, row and column.
type Sums = BTreeMap<String, u64>;

fn report(trace: &Path, range: Option<(u64, u64)>) -> Option<Value> {
    let mut command = taskscope();
    command.args(["report", "--json", "--section", "all", "--top", "65535"]).arg(trace);
    if let Some((begin, end)) = range {
        command.arg("--range").arg(format!("{begin}ns..{end}ns"));
    }
    let printed = output(&mut command);
    printed.status.success().then(|| serde_json::from_slice(&printed.stdout).unwrap())
}

fn identity(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten();
    let fields = fields.filter(|(key, value)| IDENTITY.contains(&key.as_str()) && !value.is_object());
    fields.map(|(key, value)| format!("{key}={value} ")).collect()
}

/// Adds all times below a value; `in_times` if the keys of an object are names of times rather than columns.
fn add(sums: &mut Sums, place: &str, value: &Value, in_times: bool) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_sum = !NO_SUMS.iter().any(|part| key.contains(part));
                let is_time = key == "ns" || key.ends_with("_ns");
                let are_times = ["states", "victims"].contains(&key.as_str()) || is_time;
                if is_sum && (in_times || is_time || value.is_object() || value.is_array()) {
                    add(sums, &format!("{place}.{key}"), value, are_times);
                }
            }
        }
        Value::Array(rows) => {
            rows.iter().for_each(|row| add(sums, &format!("{place}[{}]", identity(row)), row, false))
        }
        Value::Number(number) => {
            *sums.entry(place.to_owned()).or_default() += number.as_u64().unwrap_or(0);
        }
        _ => {}
    }
}

fn sums_of(report: &Value) -> Sums {
    let mut sums = Sums::new();
    let Value::Object(fields) = report else { return sums };
    for (table, value) in fields {
        match table.as_str() {
            // The absence of threads that are not workers is in no ledger.
            "thread_states" => {
                let mut rows = value.clone();
                for row in rows.as_array_mut().unwrap().iter_mut().filter(|row| row["worker"] == false) {
                    let states = row["states"].as_object_mut().unwrap();
                    states.retain(|state, _| state != "ended" && state != "not_started");
                }
                add(&mut sums, "", &serde_json::json!({ table: rows }), false);
            }
            "findings" => {
                for row in value.as_array().unwrap() {
                    // A part in the middle of a run does not lack tasks, though the run may, mostly at its ends.
                    let of = ["cause", "blamed", "state", "where"].map(|key| row[key].to_string());
                    *sums.entry(format!("findings {}", of.join(" "))).or_default() +=
                        row["ns"].as_u64().unwrap();
                }
            }
            "call_paths" => {
                for (key, value) in value["totals"].as_object().unwrap() {
                    if key.ends_with("_ns") {
                        *sums.entry(format!("call_paths.{key}")).or_default() += value.as_u64().unwrap();
                    }
                }
            }
            _ => add(&mut sums, "", &serde_json::json!({ table: value }), false),
        }
    }
    sums.retain(|_, ns| *ns > 0);
    sums
}

/// The tables with sums of a trace, and the sums in which four parts at most differ from the whole.
fn compare_parts(seed: usize, trace: &Path) -> (BTreeSet<String>, Vec<String>) {
    let (mut tables, mut wrong) = (BTreeSet::new(), Vec::new());
    // Damaged traces of the corpus have no report.
    let Some(whole) = report(trace, None) else { return (tables, wrong) };
    let mut dice = Dice::new(seed as u64);
    let wall = whole["wall_ns"].as_u64().unwrap();
    let mut borders: Vec<u64> = (0..dice.between(1, 3)).map(|_| dice.below(wall.max(1))).collect();
    borders.extend([0, wall + 1]);
    borders.sort_unstable();
    borders.dedup();
    let ranges: Vec<(u64, u64)> = borders.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let mut parts = Sums::new();
    for range in &ranges {
        let part = report(trace, Some(*range));
        let part = part.unwrap_or_else(|| panic!("{}: {range:?} has no report", trace.display()));
        for (name, ns) in sums_of(&part) {
            *parts.entry(name).or_default() += ns;
        }
    }
    let whole = sums_of(&whole);
    for name in whole.keys().chain(parts.keys()).collect::<BTreeSet<_>>() {
        let table = name.split(['.', '[', ' ']).find(|part| !part.is_empty());
        tables.insert(table.unwrap_or_default().to_owned());
        let (whole_sum, parts_sum) = (whole.get(name).unwrap_or(&0), parts.get(name).unwrap_or(&0));
        if whole_sum != parts_sum {
            let case = format!("{} {ranges:?}", trace.display());
            wrong.push(format!("{case}: {name}: whole {whole_sum}, parts {parts_sum}"));
        }
    }
    (tables, wrong)
}

#[test]
fn ranges_of_reports_add_up_in_every_table() {
    let all = on_all_cpus(&all_traces(), |seed, trace| compare_parts(seed, trace));
    let wrong: Vec<&String> = all.iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{} sums differ: {:#?}", wrong.len(), &wrong[..wrong.len().min(40)]);
    let tables: BTreeSet<&str> = all.iter().flat_map(|(tables, _)| tables).map(String::as_str).collect();
    for table in [
        "capacity_ns",
        "causes",
        "blame",
        "findings",
        "efficiency",
        "thread_states",
        "task_types",
        "regions",
        "devices",
    ] {
        assert!(tables.contains(table), "no sums of {table} in {tables:?}");
    }
}
