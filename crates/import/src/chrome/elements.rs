//! The rows of a file of trace events, with their places.
//!
//! Rows are cut out of the text first and read one by one, so that every error knows its place. An array that ends early
//! is read as far as its last whole row: the format allows the final bracket to be missing.

use crate::{ImportError, ImportErrors};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// The key of the rows.
const EVENTS: &str = "traceEvents";

/// The rows of a file.
pub(super) struct Elements<'a> {
    text: &'a str,
    rows: Vec<&'a RawValue>,
    /// The other members of the document.
    pub others: BTreeMap<String, &'a RawValue>,
    /// Whether the array ended early.
    pub is_cut: bool,
}

impl<'a> Elements<'a> {
    /// Cuts a file into its rows.
    ///
    /// # Errors
    /// If it is not JSON, or has no rows.
    pub fn of(text: &'a str) -> Result<Elements<'a>, ImportErrors> {
        let mut elements = Elements { text, rows: Vec::new(), others: BTreeMap::new(), is_cut: false };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = if text.trim_start().starts_with('[') {
            match deserializer.deserialize_seq(Rows(&mut elements.rows)) {
                Err(error) if error.is_eof() && !elements.rows.is_empty() => {
                    elements.is_cut = true;
                    Ok(())
                }
                Ok(()) => deserializer.end(),
                other => other,
            }
        } else {
            let mut document = Document { elements: &mut elements, has_rows: false };
            match deserializer.deserialize_map(&mut document) {
                Ok(()) if document.has_rows => deserializer.end(),
                Ok(()) => return Err(whole("the member `traceEvents` is missing".to_owned(), 0)),
                other => other,
            }
        };
        match read {
            Ok(()) => Ok(elements),
            Err(error) => {
                let message = error.to_string();
                let end = message.find(" at line ").unwrap_or(message.len());
                let text = match elements.rows.len() {
                    0 => message[..end].to_owned(),
                    1 => format!("{}, after a whole event", &message[..end]),
                    count => format!("{}, after {count} whole events", &message[..end]),
                };
                Err(whole(text, error.line()))
            }
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// A row.
    pub fn row(&self, number: usize) -> &'a RawValue {
        self.rows[number]
    }

    /// The place of a row in words.
    pub fn place(&self, number: usize) -> String {
        format!("line {}, {EVENTS}[{number}]", self.line(number))
    }

    /// An error of a row.
    pub fn error(&self, number: usize, field: &str, text: String) -> ImportError {
        let dot = if field.is_empty() { "" } else { "." };
        let field = format!("{EVENTS}[{number}]{dot}{field}");
        ImportError { file: String::new(), line: self.line(number), field, text }
    }

    fn line(&self, number: usize) -> usize {
        let start = self.rows[number].get().as_ptr() as usize;
        let offset = start.saturating_sub(self.text.as_ptr() as usize).min(self.text.len());
        1 + self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
    }
}

fn whole(text: String, line: usize) -> ImportErrors {
    ImportErrors(vec![ImportError { file: String::new(), line, field: String::new(), text }])
}

/// Reads an array into a list that keeps its rows if a later one is broken.
struct Rows<'l, 'a>(&'l mut Vec<&'a RawValue>);

impl<'a> Visitor<'a> for Rows<'_, 'a> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<&'a RawValue>()? {
            self.0.push(row);
        }
        Ok(())
    }
}

impl<'a> DeserializeSeed<'a> for Rows<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

struct Document<'l, 'a> {
    elements: &'l mut Elements<'a>,
    has_rows: bool,
}

impl<'a> Visitor<'a> for &mut Document<'_, 'a> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            if key == EVENTS {
                self.has_rows = true;
                members.next_value_seed(Rows(&mut self.elements.rows))?;
            } else {
                let value = members.next_value::<&'a RawValue>()?;
                self.elements.others.insert(key, value);
            }
        }
        Ok(())
    }
}

/// Whether the text looks like trace events: an object that has them before the members of other forms, or an array whose
/// first element has a phase.
pub(super) fn is_chrome(text: &str) -> bool {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix('[') {
        #[derive(Deserialize)]
        struct First {
            #[serde(rename = "ph")]
            _phase: IgnoredAny,
        }
        let mut first = serde_json::Deserializer::from_str(rest).into_iter::<First>();
        return rest.trim_start().starts_with('{') && first.next().is_some_and(|first| first.is_ok());
    }
    let mut found = false;
    // The visitor stops at the first known member, which is an error to the parser.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(First(&mut found));
    found
}

struct First<'l>(&'l mut bool);

impl<'a> Visitor<'a> for First<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            if key == EVENTS {
                *self.0 = true;
                return Ok(());
            }
            if key == "trace" {
                return Ok(());
            }
            members.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}
