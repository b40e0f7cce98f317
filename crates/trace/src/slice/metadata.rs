//! The metadata of a slice's streams, with declarations of streams that are not in it.

use super::request::{Process, Slice};
use crate::metadata::read_whole;
use crate::stream::Stream;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Declarations of a trace's streams for each other.
pub(super) struct Declared<'a> {
    /// Logical index and shown number of the CPUs of each loom.
    cpus: FxHashMap<Option<&'a str>, BTreeSet<(i64, i64)>>,
    /// Application id, rank, and number of ranks of each process.
    processes: FxHashMap<Process<'a>, [Option<i64>; 3]>,
    /// `ovni.mark` of all.
    marks: Option<Value>,
    /// `nosv.hwc` of the thread that declares the hardware counters of all.
    counters: Option<Value>,
}

impl<'a> Declared<'a> {
    pub fn by(streams: &'a [Stream]) -> Self {
        let mut declared = Declared {
            cpus: FxHashMap::default(),
            processes: FxHashMap::default(),
            marks: None,
            counters: None,
        };
        for stream in streams {
            let metadata = &stream.metadata;
            if let Some(cpus) = &metadata.loom_cpus {
                let known = declared.cpus.entry(stream.loom()).or_default();
                known.extend(cpus.iter().map(|cpu| (cpu.index, cpu.phyid)));
            }
            let numbers = declared.processes.entry((stream.loom(), stream.pid())).or_default();
            for (known, number) in numbers.iter_mut().zip([metadata.app_id, metadata.rank, metadata.nranks]) {
                *known = known.or(number);
            }
            if !metadata.hardware_counters.is_empty() && declared.counters.is_none() {
                declared.counters = Some(read_whole(&stream.directory)["nosv"]["hwc"].take());
            }
            if !metadata.marks.is_empty() {
                let whole = read_whole(&stream.directory);
                add_missing(declared.marks.get_or_insert_default(), &whole["ovni"]["mark"]);
            }
        }
        declared
    }

    /// The stream's metadata with the remaining models, and with declarations of streams that are not in the slice.
    /// Clocks are corrected already.
    pub fn metadata_of(&mut self, stream: &Stream, slice: &Slice) -> Value {
        let mut metadata = read_whole(&stream.directory);
        if !metadata["ovni"].is_object() {
            metadata = json!({"version": 3, "ovni": {"part": "thread", "tid": stream.tid(), "pid": stream.pid(), "loom": stream.loom()}});
        }
        let ovni = &mut metadata["ovni"];
        let closes = slice.clocks.is_some_and(|(_, end)| end != i64::MAX);
        if closes {
            ovni["finished"] = json!(1);
        }
        if let Some(require) = ovni.get_mut("require").and_then(Value::as_object_mut)
            && !slice.models.is_empty()
        {
            require.retain(|name, _| name == "ovni" || slice.models.contains(name));
        }
        if let Some(cpus) = self.cpus.get(&stream.loom()) {
            let entries = cpus.iter().map(|(index, phyid)| json!({"index": index, "phyid": phyid}));
            ovni["loom_cpus"] = entries.collect();
        }
        if let Some(numbers) = self.processes.get(&(stream.loom(), stream.pid())) {
            for (key, number) in ["app_id", "rank", "nranks"].into_iter().zip(numbers) {
                if let Some(number) = number {
                    ovni[key] = json!(number);
                }
            }
        }
        // Marks are those of the whole trace: one stream declares them.
        if let Some(marks) = self.marks.take() {
            add_missing(&mut ovni["mark"], &marks);
        }
        if let Some(counters) = self.counters.take() {
            if !metadata["nosv"].is_object() {
                metadata["nosv"] = json!({});
            }
            metadata["nosv"]["hwc"] = counters;
        }
        metadata
    }
}

/// Adds the missing members of a JSON object from another one, at any depth.
fn add_missing(object: &mut Value, other: &Value) {
    if object.is_null() {
        *object = other.clone();
    } else if let (Some(object), Some(other)) = (object.as_object_mut(), other.as_object()) {
        for (key, value) in other {
            add_missing(object.entry(key).or_insert(Value::Null), value);
        }
    }
}
