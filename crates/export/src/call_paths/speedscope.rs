//! The JSON of speedscope (<https://www.speedscope.app/file-format-schema.json>): a sampled profile for each column.

use super::{occurring, value};
use serde_json::json;
use std::io::{self, Write};
use taskscope_profile::Frame;
use taskscope_profile::named::CallTree;

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
            let mut shown = json!({ "name": tree.text_of(frame) });
            if let Some(label) = tree.label_of(frame)
                && let Some(row) = shown.as_object_mut()
            {
                label.file.iter().for_each(|file| drop(row.insert("file".into(), file.clone().into())));
                label.line.iter().for_each(|line| drop(row.insert("line".into(), (*line).into())));
            }
            frames.push(shown);
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
                sum += own;
            }
        }
        let unit = if ty.unit == "count" { "none" } else { ty.unit };
        profiles.push(json!({
            "type": "sampled", "name": ty.name, "unit": unit, "startValue": 0, "endValue": sum,
            "samples": samples, "weights": weights,
        }));
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": { "frames": frames },
        "profiles": profiles,
        "name": name,
        "activeProfileIndex": 0,
        "exporter": concat!("taskscope@", env!("CARGO_PKG_VERSION")),
    });
    serde_json::to_writer(&mut *out, &file)?;
    out.flush()
}
