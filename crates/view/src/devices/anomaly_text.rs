//! Sentences on what was delivered late, twice or not at all.

use crate::format::{count, counted, time};
use rustc_hash::FxHashMap;
use taskscope_execution::devices::{DeviceOperation, Queue};

/// Delivery problems that the recorder or the import reported, largest first.
pub(super) fn account_sentences(queue: &Queue) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut add = |number: u64, text: String| {
        if number > 0 {
            sentences.push(text);
        }
    };
    let lost = queue.lost.len() as u64;
    add(lost, format!("{} lost: submitted, but no record came", counted(lost, "operation")));
    let untimed = queue.count("untimed");
    add(untimed, format!("{} without usable times", counted(untimed, "record")));
    let out_of_place = queue.count("out_of_place");
    add(
        out_of_place,
        format!(
            "{} came out of place, by {} at most; {} held for others at most",
            counted(out_of_place, "record"),
            time(queue.count("worst_late_ns")),
            count(queue.count("held_peak"))
        ),
    );
    add(
        queue.foreign.len() as u64,
        format!("foreign: {}", queue.foreign.first().cloned().unwrap_or_default()),
    );
    add(queue.duplicates, format!("{} came twice", counted(queue.duplicates, "record")));
    let overlaps = queue.count("overlaps");
    add(
        overlaps,
        format!(
            "overlaps on this in-order queue: {}, by {} at most; its clock is wrong by as much",
            counted(overlaps, "record"),
            time(queue.count("worst_overlap_ns"))
        ),
    );
    for (name, number) in anomalies(queue).into_iter().filter(|(name, _)| *name != "overlap") {
        add(number, format!("{}: {name}", counted(number, "record")));
    }
    if !queue.finished {
        sentences
            .push("the program ended before the queue's stream did: later records are missing".to_owned());
    }
    sentences
}

/// Number of operations with each kind of anomaly, by name.
pub(super) fn anomalies(queue: &Queue) -> Vec<(&'static str, u64)> {
    let mut by_name: FxHashMap<&'static str, u64> = FxHashMap::default();
    for name in queue.operations.iter().flat_map(DeviceOperation::anomaly_names) {
        *by_name.entry(name).or_default() += 1;
    }
    let mut anomalies: Vec<_> = by_name.into_iter().collect();
    anomalies.sort_unstable();
    anomalies
}
