//! Compares Paraver traces by content: records of one nanosecond in any order, types and values of configurations in
//! any order.

use std::collections::BTreeMap;

/// The first difference of two `.prv` texts; `None` if their contents are equal.
pub fn prv_difference(ours: &str, reference: &str) -> Option<String> {
    let (our_header, our_records) = split(ours);
    let (their_header, their_records) = split(reference);
    if our_header != their_header {
        return Some(format!("header `{our_header}` instead of `{their_header}`"));
    }
    let (ours, theirs) = (sorted(our_records), sorted(their_records));
    let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
    match first {
        Some(index) => Some(format!("`{}` instead of `{}`", ours[index].1, theirs[index].1)),
        None if ours.len() != theirs.len() => {
            Some(format!("{} records instead of {}", ours.len(), theirs.len()))
        }
        None => None,
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// Records by time, then text.
fn sorted(records: &str) -> Vec<(i64, &str)> {
    let time = |record: &str| record.split(':').nth(5).and_then(|time| time.parse().ok()).unwrap_or(-1);
    let mut records: Vec<(i64, &str)> = records.lines().map(|record| (time(record), record)).collect();
    records.sort_unstable();
    records
}

/// Differences between two `.pcf` texts in types, titles, values and labels; `None` without any.
pub fn pcf_difference(ours: &str, reference: &str) -> Option<String> {
    let (ours, theirs) = (types(ours), types(reference));
    let keys = ours.keys().chain(theirs.keys());
    let differing = keys.into_iter().find(|key| ours.get(*key) != theirs.get(*key))?;
    Some(format!("{differing}: {:?} instead of {:?}", ours.get(differing), theirs.get(differing)))
}

/// Values with labels by the line that names their type.
fn types(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line {
            "EVENT_TYPE" => {
                let title = lines.next().unwrap_or_default().to_owned();
                types.entry(title.clone()).or_default();
                current = Some(title);
            }
            "VALUES" | "" => {}
            value => {
                if let Some(values) = current.as_ref().and_then(|title| types.get_mut(title)) {
                    values.push(value.to_owned());
                }
            }
        }
    }
    types.values_mut().for_each(|values| values.sort());
    types
}
