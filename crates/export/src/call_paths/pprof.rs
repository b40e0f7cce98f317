//! pprof's `profile.proto`, compressed with gzip (google/pprof, proto/profile.proto).
//!
//! Messages that follow each other are one message with the fields of all, so each sample is written when it is made.

mod proto;

use super::{occurring, value, with_lines};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use proto::{Function, Line, Location, Sample};
use std::collections::HashMap;
use std::io::{self, Write};
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{FrameKind, Profile, key};

/// Writes the paths, a sample each, with a value for each column that occurs.
///
/// # Errors
/// Those of `out`.
pub fn write_pprof(tree: &CallTree, out: &mut dyn Write) -> io::Result<()> {
    let tree = with_lines(tree);
    let types = occurring(&tree);
    let mut out = GzEncoder::new(out, Compression::default());
    let mut made = Builder::default();
    made.text("");
    let sample_type = |ty: &&super::ValueType, made: &mut Builder| proto::ValueType {
        ty: made.text(ty.name),
        unit: made.text(ty.unit),
    };
    made.profile.sample_type = types.iter().map(|ty| sample_type(ty, &mut made)).collect();
    for node in tree.nodes() {
        let values: Vec<u64> = types.iter().map(|ty| value(&tree, node, ty)).collect();
        if values.iter().all(|value| *value == 0) {
            continue;
        }
        // Innermost first; a line belongs to the function around it.
        let mut locations = Vec::new();
        let mut line: (String, i64) = Default::default();
        for frame in tree.tree.path(node) {
            match tree.label_of(frame) {
                Some(label) if label.what == StepKind::Line => {
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
        let value = values.into_iter().map(signed).collect();
        let sample = Sample { location_id: locations, value };
        write(&proto::Profile { sample: vec![sample], ..Default::default() }, &mut out)?;
    }
    let of = |key| tree.processes.iter().filter_map(move |process| Profile::number(process, key));
    made.profile.time_nanos = of(key::START_UNIX_NS).min().map_or(0, signed);
    made.profile.duration_nanos = of(key::WALL_NS).max().map_or(0, signed);
    let comment =
        made.text("taskscope: waiting is where it was felt, blame and idleness are where it was caused");
    made.profile.comment.push(comment);
    // Else it shows the last one.
    made.profile.default_sample_type = types.first().map_or(0, |first| made.text(first.name));
    write(&made.profile, &mut out)?;
    out.finish()?.flush()
}

fn write(message: &proto::Profile, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&message.encode_to_vec())
}

/// pprof's values are signed.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Texts, functions and locations, each once, numbered from 1 (texts from 0).
#[derive(Default)]
struct Builder {
    profile: proto::Profile,
    texts: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    locations: HashMap<(u64, i64), u64>,
}

impl Builder {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(known) = self.texts.get(text) {
            return *known;
        }
        let next = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_string());
        self.texts.insert(text.to_string(), next);
        next
    }

    fn location(&mut self, name: &str, file: &str, line: i64) -> u64 {
        let (name, filename) = (self.text(name), self.text(file));
        let next = self.functions.len() as u64 + 1;
        let function_id = *self.functions.entry((name, filename)).or_insert(next);
        if function_id == next {
            // Without the linker's name, which is of another form for pprof only where it differs: it takes names that
            // are the same in both for C++, and what is in angle brackets out of them, of `<idle>` all.
            self.profile.function.push(Function { id: function_id, name, filename });
        }
        let next = self.locations.len() as u64 + 1;
        let id = *self.locations.entry((function_id, line)).or_insert(next);
        if id == next {
            self.profile.location.push(Location { id, line: vec![Line { function_id, line }] });
        }
        id
    }
}
