//! The JSON of speedscope (<https://www.speedscope.app/file-format-schema.json>): a sampled profile for each column.

use super::{occurring, value};
use serde::Serialize;
use std::io::{self, Write};
use taskscope_profile::Frame;
use taskscope_profile::named::CallTree;

/// A file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared,
    profiles: Vec<Sampled<'a>>,
    name: &'a str,
    active_profile_index: usize,
    exporter: &'static str,
}

/// Frames of all profiles.
#[derive(Serialize)]
struct Shared {
    frames: Vec<ShownFrame>,
}

/// A frame by its name, and its place if known.
#[derive(Serialize)]
struct ShownFrame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// A profile: paths of frames and their weights.
#[derive(Serialize)]
#[serde(tag = "type", rename = "sampled", rename_all = "camelCase")]
struct Sampled<'a> {
    name: &'a str,
    unit: &'a str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes the paths; `name` is shown as the file's title.
///
/// # Errors
/// Those of `out`.
pub fn write_speedscope(tree: &CallTree, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let tree = tree.functions();
    let mut numbers = std::collections::HashMap::new();
    let mut frames = Vec::new();
    let mut number = |frame: Frame| -> usize {
        *numbers.entry(frame).or_insert_with(|| {
            let label = tree.label_of(frame);
            frames.push(ShownFrame {
                name: tree.text_of(frame).to_string(),
                file: label.and_then(|label| label.file.clone()),
                line: label.and_then(|label| label.line),
            });
            frames.len() - 1
        })
    };
    let mut profiles = Vec::new();
    for ty in occurring(&tree) {
        let (mut samples, mut weights, mut sum) = (Vec::new(), Vec::new(), 0_u64);
        for node in tree.nodes() {
            let own = value(&tree, node, ty);
            if own > 0 {
                let mut path: Vec<usize> = tree.tree.path(node).map(&mut number).collect();
                path.reverse();
                samples.push(path);
                weights.push(own);
                sum = sum.saturating_add(own);
            }
        }
        let unit = if ty.unit == "count" { "none" } else { ty.unit };
        profiles.push(Sampled { name: ty.name, unit, start_value: 0, end_value: sum, samples, weights });
    }
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared { frames },
        profiles,
        name,
        active_profile_index: 0,
        exporter: concat!("taskscope@", env!("CARGO_PKG_VERSION")),
    };
    serde_json::to_writer(&mut *out, &file)?;
    out.flush()
}
