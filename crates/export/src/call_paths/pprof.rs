//! pprof's `profile.proto`, compressed with gzip (google/pprof, proto/profile.proto).
//!
//! The messages are few and flat, so they are written by hand: a field is a varint `number << 3 | type`,
//! then a varint (type 0) or a length and bytes (type 2).

use super::{occurring, value, with_lines};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::{self, Write};
use taskscope_profile::named::{CallTree, What};
use taskscope_profile::{FrameKind, Profile, key};

/// Numbers of fields.
mod field {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLE: u64 = 2;
    pub const LOCATION: u64 = 4;
    pub const FUNCTION: u64 = 5;
    pub const STRING: u64 = 6;
    pub const TIME_NANOS: u64 = 9;
    pub const DURATION_NANOS: u64 = 10;
    pub const COMMENT: u64 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// Writes the paths, a sample each, with a value for each column that occurs.
///
/// # Errors
/// Those of `out`.
pub fn write_pprof(tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    let tree = with_lines(tree);
    let types = occurring(&tree);
    let mut made = Builder::default();
    made.text("");
    let mut message = Vec::new();
    for ty in &types {
        let mut row = Vec::new();
        number(&mut row, 1, made.text(ty.name));
        number(&mut row, 2, made.text(ty.unit));
        bytes(&mut message, field::SAMPLE_TYPE, &row);
    }
    for node in tree.nodes() {
        let values: Vec<u64> = types.iter().map(|ty| value(&tree, node, ty)).collect();
        if values.iter().all(|value| *value == 0) {
            continue;
        }
        // Innermost first; a line belongs to the function around it.
        let mut locations = Vec::new();
        let mut line: (String, u64) = Default::default();
        for frame in tree.tree.path(node) {
            match tree.label_of(frame) {
                Some(label) if label.what == What::Line => {
                    line = (label.file.clone().unwrap_or_default(), label.line.unwrap_or(0).into());
                }
                label => {
                    let name = tree.text_of(frame);
                    locations.push(made.location(&name, &line.0, line.1));
                    line = label.map_or_else(Default::default, |label| {
                        (label.file.clone().unwrap_or_default(), label.line.unwrap_or(0).into())
                    });
                    if frame.kind == FrameKind::State {
                        line = Default::default();
                    }
                }
            }
        }
        if locations.is_empty() {
            locations.push(made.location("<whole run>", "", 0));
        }
        let mut row = Vec::new();
        packed(&mut row, 1, &locations);
        packed(&mut row, 2, &values);
        bytes(&mut message, field::SAMPLE, &row);
    }
    message.extend_from_slice(&made.rows);
    let of = |key| tree.processes.iter().filter_map(move |process| Profile::number(process, key));
    if let Some(start) = of(key::START_UNIX_NS).min() {
        number(&mut message, field::TIME_NANOS, start);
    }
    if let Some(wall) = of(key::WALL_NS).max() {
        number(&mut message, field::DURATION_NANOS, wall);
    }
    let comment =
        made.text("taskscope: waiting is where it was felt, blame and idleness are where it was caused");
    number(&mut message, field::COMMENT, comment);
    // Else it shows the last one.
    if let Some(first) = types.first() {
        number(&mut message, field::DEFAULT_SAMPLE_TYPE, made.text(first.name));
    }
    for text in &made.texts {
        bytes(&mut message, field::STRING, text.as_bytes());
    }
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&message)?;
    compressed.finish()?.flush()
}

/// Strings, functions and locations, each once, numbered from 1 (strings from 0).
#[derive(Default)]
struct Builder {
    texts: Vec<String>,
    numbers: HashMap<String, u64>,
    functions: HashMap<(u64, u64), u64>,
    locations: HashMap<(u64, u64), u64>,
    rows: Vec<u8>,
}

impl Builder {
    fn text(&mut self, text: &str) -> u64 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let next = self.texts.len() as u64;
        self.texts.push(text.to_string());
        self.numbers.insert(text.to_string(), next);
        next
    }

    fn location(&mut self, name: &str, file: &str, line: u64) -> u64 {
        let (name, file) = (self.text(name), self.text(file));
        let next = self.functions.len() as u64 + 1;
        let function = *self.functions.entry((name, file)).or_insert(next);
        if function == next {
            let mut row = Vec::new();
            number(&mut row, 1, function);
            // Without the linker's name, which is of another form for pprof only where it differs: it takes names that
            // are the same in both for C++, and what is in angle brackets out of them, of `<idle>` all.
            number(&mut row, 2, name);
            number(&mut row, 4, file);
            bytes(&mut self.rows, field::FUNCTION, &row);
        }
        let next = self.locations.len() as u64 + 1;
        let location = *self.locations.entry((function, line)).or_insert(next);
        if location == next {
            let (mut row, mut place) = (Vec::new(), Vec::new());
            number(&mut place, 1, function);
            number(&mut place, 2, line);
            number(&mut row, 1, location);
            bytes(&mut row, 4, &place);
            bytes(&mut self.rows, field::LOCATION, &row);
        }
        location
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A number; zero is the default and not written.
fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    if value > 0 {
        varint(out, field << 3);
        varint(out, value);
    }
}

fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn packed(out: &mut Vec<u8>, field: u64, values: &[u64]) {
    let mut content = Vec::new();
    values.iter().for_each(|value| varint(&mut content, *value));
    bytes(out, field, &content);
}
