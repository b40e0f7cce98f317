//! One line a path: `main;advance;<idle> 1200`, as flamegraph.pl and inferno read it.

use std::io::{self, Write};
use taskscope_profile::Metric;
use taskscope_profile::named::CallTree;

/// Writes the paths with the sums that `takes` selects; returns the number of lines.
///
/// # Errors
/// Errors of `out`.
pub fn write_folded(
    tree: &CallTree,
    takes: impl Fn(Metric) -> bool,
    out: &mut dyn Write,
) -> io::Result<usize> {
    let tree = tree.functions();
    let mut lines = 0;
    for node in tree.nodes() {
        let values = tree.tree.values(node).filter(|(metric, _)| takes(*metric));
        let own = values.fold(0_u64, |sum, (_, value)| sum.saturating_add(value));
        if own == 0 {
            continue;
        }
        let mut frames: Vec<String> =
            tree.tree.path(node).map(|frame| one_word(&tree.text_of(frame))).collect();
        frames.reverse();
        if frames.is_empty() {
            frames.push("<whole run>".to_string());
        }
        writeln!(out, "{} {own}", frames.join(";"))?;
        lines += 1;
    }
    Ok(lines)
}

/// The form separates frames by `;`, paths by line ends, and the value by the last blank.
fn one_word(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == ';' {
                ','
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect()
}
