//! The labels of a mark's values, as metadata declare them.
//!
//! A program may have hundreds of thousands, and each of its streams declares them all: they are in one text, which
//! streams that declare the same share.

use rustc_hash::FxHashSet;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Values, as text, and their labels, in the order of the file.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    text: String,
    entries: Vec<Entry>,
}

/// The end of a value in the text, and the end of its label. A value begins at the end of the previous label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    value_end: u32,
    label_end: u32,
    has_label: bool,
}

impl Labels {
    /// Values and labels; `None` for labels that are not text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.entries.iter().enumerate().map(|(index, entry)| {
            let label = &self.text[entry.value_end as usize..entry.label_end as usize];
            (self.value(index), entry.has_label.then_some(label))
        })
    }

    fn value(&self, index: usize) -> &str {
        let begin = index.checked_sub(1).map_or(0, |before| self.entries[before].label_end);
        &self.text[begin as usize..self.entries[index].value_end as usize]
    }

    fn push(&mut self, value: &str, label: Option<&str>) {
        self.text.push_str(value);
        let value_end = self.text.len() as u32;
        self.text.push_str(label.unwrap_or_default());
        let label_end = self.text.len() as u32;
        self.entries.push(Entry { value_end, label_end, has_label: label.is_some() });
    }

    /// Without those of a value that is given again later.
    fn without_repeats(self) -> Labels {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|index| self.value(*index));
        let is_repeated = |pair: &&[usize]| self.value(pair[0]) == self.value(pair[1]);
        let repeated: FxHashSet<usize> = order.windows(2).filter(is_repeated).map(|pair| pair[0]).collect();
        if repeated.is_empty() {
            return self;
        }
        let mut labels = Labels::default();
        let kept = self.iter().enumerate().filter(|(index, _)| !repeated.contains(index));
        kept.for_each(|(_, (value, label))| labels.push(value, label));
        labels
    }
}

/// In their order; a value may be given once.
impl<'l> FromIterator<(&'l str, Option<&'l str>)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'l str, Option<&'l str>)>>(entries: I) -> Labels {
        let mut labels = Labels::default();
        entries.into_iter().for_each(|(value, label)| labels.push(value, label));
        labels
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Reads a JSON object.
impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                use serde::de::Error;
                let mut labels = Labels::default();
                while let Some((value, label)) = map.next_entry::<String, &RawValue>()? {
                    let is_text = label.get().starts_with('"');
                    let label = is_text.then(|| serde_json::from_str::<String>(label.get())).transpose();
                    labels.push(&value, label.map_err(A::Error::custom)?.as_deref());
                }
                labels = labels.without_repeats();
                labels.text.shrink_to_fit();
                labels.entries.shrink_to_fit();
                Ok(labels)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The labels that streams have declared so far.
#[derive(Default)]
pub struct SharedLabels(Mutex<FxHashSet<Arc<Labels>>>);

impl SharedLabels {
    /// Returns the stored copy of equal labels.
    pub fn share(&self, labels: Labels) -> Arc<Labels> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&labels) {
            return known.clone();
        }
        let labels = Arc::new(labels);
        known.insert(labels.clone());
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_and_shared() {
        let text = r#"{"1": "on\u0065", "": "", "2": 7, "x": {"1": "no"}, "1": "uno", "3": "drei"}"#;
        let read = || serde_json::from_str::<Labels>(text).unwrap();
        let expected = [("", Some("")), ("2", None), ("x", None), ("1", Some("uno")), ("3", Some("drei"))];
        assert_eq!(read().iter().collect::<Vec<_>>(), expected, "of a value given twice the last counts");
        let shared = SharedLabels::default();
        assert!(Arc::ptr_eq(&shared.share(read()), &shared.share(read())));
        let one = serde_json::from_str::<Labels>(r#"{"1": "on\u0065"}"#).unwrap();
        assert_eq!(one.iter().collect::<Vec<_>>(), [("1", Some("one"))]);
        assert!(!Arc::ptr_eq(&shared.share(one), &shared.share(read())));
        assert!(serde_json::from_str::<Labels>(r#"{"1": "\ud800"}"#).is_err());
    }
}
