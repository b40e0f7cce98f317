//! Labels of states, types and values (`.pcf`), and names of rows (`.row`). Both files may be missing.

use rustc_hash::FxHashMap;

/// States without a label of the file.
const STATES: [&str; 18] = [
    "Idle",
    "Running",
    "Not created",
    "Waiting a message",
    "Blocking Send",
    "Synchronization",
    "Test/Probe",
    "Scheduling and Fork/Join",
    "Wait/WaitAll",
    "Blocked",
    "Immediate Send",
    "Immediate Receive",
    "I/O",
    "Group Communication",
    "Tracing Disabled",
    "Others",
    "Send Receive",
    "Memory transfer",
];

/// The labels of a `.pcf`.
#[derive(Default)]
pub(super) struct Labels {
    states: FxHashMap<u64, String>,
    values: FxHashMap<(u64, u64), String>,
}

impl Labels {
    /// Reads the file, with the values of the types that are read: many types may share many values. Lines of other forms are
    /// not labels.
    pub fn parse(text: &str, is_read: impl Fn(u64) -> bool) -> Labels {
        let (mut labels, mut section, mut types) = (Labels::default(), "", Vec::<u64>::new());
        for line in text.lines().map(str::trim) {
            let first = line.split_whitespace().next().unwrap_or_default();
            match line {
                "" => {}
                "EVENT_TYPE" => {
                    section = line;
                    types.clear();
                }
                _ if line.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') => {
                    section = match line {
                        "STATES" => "STATES",
                        "VALUES" => "VALUES",
                        _ => "",
                    };
                }
                _ if section == "EVENT_TYPE" => {
                    let ty = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
                    if let Some(ty) = ty.filter(|ty| is_read(*ty) && !types.contains(ty)) {
                        types.push(ty);
                    }
                }
                _ => {
                    let Ok(number) = first.parse::<u64>() else { continue };
                    let label = line[first.len()..].trim().to_owned();
                    match section {
                        "STATES" => drop(labels.states.insert(number, label)),
                        "VALUES" => {
                            labels.values.extend(types.iter().map(|ty| ((*ty, number), label.clone())));
                        }
                        _ => {}
                    }
                }
            }
        }
        labels
    }

    /// The name of a state.
    pub fn state(&self, number: u64) -> String {
        let usual = || {
            STATES.get(number as usize).map_or_else(|| format!("state {number}"), |name| (*name).to_owned())
        };
        self.states.get(&number).cloned().filter(|name| !name.is_empty()).unwrap_or_else(usual)
    }

    /// The name of a value, if it has one.
    pub fn value(&self, ty: u64, value: u64) -> Option<&str> {
        self.values.get(&(ty, value)).map(String::as_str).filter(|name| !name.is_empty())
    }
}

/// The names of rows of a level in a `.row`, if there are `count`.
pub(super) fn row_names<'t>(text: &'t str, level: &str, count: usize) -> Vec<&'t str> {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() == 4 && words[0] == "LEVEL" && words[1] == level && words[3].parse() == Ok(count) {
            let names: Vec<&str> = lines.take(count).map(str::trim).collect();
            return if names.len() == count { names } else { Vec::new() };
        }
    }
    Vec::new()
}
