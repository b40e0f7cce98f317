//! The tables of a profile: metadata with categories and schemas of markers, and the stacks of a thread.

use crate::timeline::{Code, Timeline};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use taskscope_execution::{Group, State};

/// Categories: name and colour. The first is that of everything without a state.
const CATEGORIES: [(&str, &str); 11] = [
    ("Other", "grey"),
    ("useful", "blue"),
    ("runtime", "yellow"),
    ("synchronisation", "red"),
    ("locks", "magenta"),
    ("idle", "lightblue"),
    ("waiting for a device", "purple"),
    ("start and end", "green"),
    ("no CPU", "orange"),
    ("blocked", "brown"),
    ("not known", "darkgrey"),
];

/// The category of a state.
pub(super) fn category_of(state: Option<State>) -> usize {
    match state.map(State::group) {
        None => 0,
        Some(Group::Useful) => 1,
        Some(Group::Runtime) => 2,
        Some(Group::Sync) => 3,
        Some(Group::Mutex) => 4,
        Some(Group::Idle) => 5,
        Some(Group::Device) => 6,
        Some(Group::Start) => 7,
        Some(Group::Off) => 8,
        Some(Group::Blocked) => 9,
        Some(Group::Unknown) => 10,
    }
}

/// The metadata of a profile.
pub(super) fn meta(timeline: &Timeline<'_>) -> Value {
    let categories =
        CATEGORIES.map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}));
    let field = |key: &str, label: &str, format: &str| json!({"key": key, "label": label, "format": format});
    let mut schemas = vec![
        json!({
            "name": "section",
            "tooltipLabel": "{marker.name}",
            "tableLabel": "{marker.data.state}: {marker.name}",
            "chartLabel": "{marker.name}",
            "display": ["marker-chart", "marker-table"],
            "fields": [
                field("state", "State", "string"),
                field("task", "Task", "integer"),
                field("region", "Region", "integer"),
                field("awaits", "Waits for", "string"),
                field("source", "Source", "string"),
                field("bytes", "Bytes", "bytes"),
                field("lost", "Lost events", "integer"),
                field("communicator", "Communicator", "string"),
                field("operation", "Operation", "integer"),
                field("root", "Root", "string"),
            ],
        }),
        json!({
            "name": "arrow begin",
            "tooltipLabel": "begin of a {marker.name}",
            "display": ["marker-chart", "marker-table"],
            "fields": [field("begins", "Flow", "flow-id"), field("bytes", "Bytes", "bytes")],
        }),
        json!({
            "name": "arrow end",
            "tooltipLabel": "end of a {marker.name}",
            "display": ["marker-chart", "marker-table"],
            "fields": [field("ends", "Flow", "terminating-flow-id"), field("bytes", "Bytes", "bytes")],
        }),
    ];
    let mut counters: Vec<_> =
        timeline.counters().iter().map(|counter| (counter.name, counter.meaning)).collect();
    counters.sort_unstable();
    counters.dedup();
    for (name, meaning) in counters {
        schemas.push(json!({
            "name": name,
            "tooltipLabel": meaning,
            "display": ["marker-table"],
            "fields": [field("value", meaning, "integer")],
            "graphs": [{"key": "value", "type": "line"}],
        }));
    }
    let start_ms = timeline.run().start_unix_ns.map_or(0.0, |ns| ns as f64 / 1e6);
    json!({
        "preprocessedProfileVersion": 55,
        "version": 30,
        "product": timeline.run().name,
        "importedFrom": "taskscope",
        "startTime": start_ms,
        "interval": 1,
        "processType": 0,
        "stackwalk": 0,
        "debug": false,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "pausedRanges": [],
        "categories": categories,
        "markerSchema": schemas,
    })
}

/// Names and stacks of a thread.
#[derive(Default)]
pub(super) struct LaneTables {
    strings: FxHashMap<String, u32>,
    string_count: u32,
    numbers: FxHashMap<u32, u32>,
    codes: Vec<u32>,
    begun: u32,
    /// Number of samples.
    pub samples: u64,
    /// Number of markers.
    pub markers: u64,
    /// End of the last section.
    pub end: Option<u64>,
}

impl LaneTables {
    /// Whether the next element of a list is its first.
    pub fn is_first(&mut self, list: usize) -> bool {
        let bit = 1 << list;
        let is_first = self.begun & bit == 0;
        self.begun |= bit;
        is_first
    }

    /// The number of a string, and whether it is new.
    pub fn string(&mut self, text: &str) -> (u32, bool) {
        if let Some(number) = self.strings.get(text) {
            return (*number, false);
        }
        let number = self.next_string();
        self.strings.insert(text.to_owned(), number);
        (number, true)
    }

    /// The number of a string that occurs once.
    pub fn next_string(&mut self) -> u32 {
        self.string_count += 1;
        self.string_count - 1
    }

    /// The stack of a code: its state's name, and its own below it. Each code has two stacks and frames.
    pub fn stack_of(&mut self, number: u32, code: &Code) -> u32 {
        let next = self.codes.len() as u32;
        let local = *self.numbers.entry(number).or_insert(next);
        if local == next {
            self.codes.push(number);
        }
        local * 2 + u32::from(code.name != code.kind)
    }

    /// Rows of [`Timeline::codes`] that the thread runs.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The fields of the thread that follow its lists. `strings` has kind, name and file of its codes.
    pub fn finish(&self, codes: &[Code], strings: &[[u32; 3]]) -> String {
        let (mut functions, mut frames) = (Columns::default(), Columns::default());
        let mut stacks: [Vec<Value>; 2] = Default::default();
        let mut roots_by_kind: FxHashMap<u32, usize> = FxHashMap::default();
        for (row, ([kind, name, file], code)) in strings.iter().zip(&self.codes).enumerate() {
            let code = &codes[*code as usize];
            let category = category_of(code.state);
            let root = *roots_by_kind.entry(*kind).or_insert_with(|| functions.function(*kind, None, 0));
            let has_file = !code.file.is_empty();
            let leaf = functions.function(*name, has_file.then_some(*file), code.line);
            frames.frame(root, category, 0);
            frames.frame(leaf, category, code.line);
            let stack = [(json!(2 * row), Value::Null), (json!(2 * row + 1), json!(2 * row))];
            for (frame, prefix) in stack {
                stacks[0].push(frame);
                stacks[1].push(prefix);
            }
        }
        let [frame, prefix] = stacks;
        let tail = json!({
            "stackTable": {"length": frame.len(), "frame": frame, "prefix": prefix},
            "frameTable": frames.frames(),
            "funcTable": functions.functions(),
            "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
            "nativeSymbols": {"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []},
        });
        let text = tail.to_string();
        format!("],{}", &text[1..])
    }
}

/// Columns of functions or frames.
#[derive(Default)]
struct Columns {
    first: Vec<Value>,
    second: Vec<Value>,
    third: Vec<Value>,
}

impl Columns {
    fn function(&mut self, name: u32, file: Option<u32>, line: u32) -> usize {
        self.first.push(name.into());
        self.second.push(file.map_or(Value::Null, Value::from));
        self.third.push(if line == 0 { Value::Null } else { line.into() });
        self.first.len() - 1
    }

    fn frame(&mut self, function: usize, category: usize, line: u32) {
        self.function(function as u32, Some(category as u32), line);
    }

    fn functions(self) -> Value {
        let length = self.first.len();
        json!({
            "length": length,
            "name": self.first,
            "fileName": self.second,
            "lineNumber": self.third,
            "columnNumber": vec![Value::Null; length],
            "isJS": vec![false; length],
            "relevantForJS": vec![false; length],
            "resource": vec![-1; length],
        })
    }

    fn frames(self) -> Value {
        let length = self.first.len();
        json!({
            "length": length,
            "func": self.first,
            "category": self.second,
            "subcategory": vec![0; length],
            "line": self.third,
            "column": vec![Value::Null; length],
            "address": vec![-1; length],
            "inlineDepth": vec![0; length],
            "nativeSymbol": vec![Value::Null; length],
            "innerWindowID": vec![0; length],
        })
    }
}
