//! The head of the report of profile files: what ran, and the sums over the run.

use super::{BOLD, DIM, SHORTEST_NAME};
use crate::format::{Unit, counted, fit, percent, wrap};
use std::fmt::Write;
use taskscope_execution::{Group, State};
use taskscope_profile::named::CallTree;
use taskscope_profile::{Process, Profile, key};

/// The head of the report of profile files: what ran, and the sums over the run.
pub fn profile_summary(tree: &CallTree, width: usize) -> String {
    let mut out = String::new();
    let number = |process: &Process, key: &str| Profile::number(process, key).unwrap_or(0);
    let wall = tree.processes.iter().map(|process| number(process, key::WALL_NS)).max().unwrap_or(0);
    let threads: u64 = tree.processes.iter().map(|process| number(process, key::THREADS)).sum();
    let command = tree.processes.iter().find_map(|process| process.get(key::COMMAND));
    let what = format!(
        "{}  {}  {}",
        crate::format::time(wall),
        counted(tree.processes.len() as u64, "process"),
        counted(threads, "thread"),
    );
    let command = command.map_or("profile", String::as_str);
    // Where it cannot lie beside most of the command, it has a line of its own.
    let (room, between) = match width.checked_sub(what.chars().count() + 2) {
        Some(room) if room >= 20 => (room, " "),
        _ => (width.saturating_sub(1), "\n  "),
    };
    let _ = writeln!(out, "{}:{between}{what}", fit(command, room));
    let lost: u64 = tree.processes.iter().map(|process| number(process, key::LOST_SAMPLES)).sum();
    if lost > 0 {
        let _ = writeln!(out, "  {} were lost", crate::format::counted(lost, "sample"));
    }
    for line in incomplete_profiles(&tree.processes)
        .iter()
        .flat_map(|note| wrap(note, width.saturating_sub(2).max(38)))
    {
        let _ = writeln!(out, "  {line}");
    }
    let states = states_of(tree);
    let capacity: u64 = states.iter().map(|(_, ns)| ns).sum();
    if capacity > 0 {
        let (useful, largest) = useful_and_largest_loss(&states);
        let _ = write!(out, "\n  {BOLD}Parallel efficiency {}{BOLD:#}", percent(useful, capacity));
        if let Some((name, ns)) = largest {
            let most = format!("most was lost to {}: {}", words_of(name), percent(ns, capacity));
            let fits = "  Parallel efficiency 100.0 %; ".len() + most.chars().count() <= width;
            let _ = write!(out, ";{}{most}", if fits { " " } else { "\n  " });
        }
        out.push('\n');
        let unit = Unit::for_total(capacity);
        let _ = writeln!(out, "\n  {BOLD}Where the time went{BOLD:#}  {DIM}({}){DIM:#}", unit.of_workers());
        for (name, ns) in states {
            let name = fit(&words_of(name), width.saturating_sub(24).max(SHORTEST_NAME));
            let _ = writeln!(out, "  {:>12} {:>7}  {name}", unit.show(ns), percent(ns, capacity));
        }
    }
    out.push('\n');
    out
}

/// Says of how many processes a profile tells not all. Why is not known to it.
pub fn incomplete_profiles(processes: &[Process]) -> Option<String> {
    let is_incomplete =
        |process: &&Process| process.get(key::FINISHED).is_some_and(|finished| finished == "no");
    let incomplete = processes.iter().filter(is_incomplete).count();
    let all = counted(processes.len() as u64, "process");
    (incomplete > 0).then(|| {
        format!(
            "incomplete: {incomplete} of {all} did not write a profile at the end, so it is of the last time before: still \
             running, killed, gone by `exec`, or without room (full disk, `ulimit -f`)"
        )
    })
}

/// The workers' time by state, most first.
pub(super) fn states_of(tree: &CallTree) -> Vec<(&str, u64)> {
    let mut states: Vec<(&str, u64)> = (tree.totals.iter())
        .filter_map(|(name, ns)| Some((name.strip_prefix("state.")?, *ns)))
        .filter(|(_, ns)| *ns > 0)
        .collect();
    states.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
    states
}

fn state_named(name: &str) -> Option<State> {
    State::ALL.iter().copied().find(|state| state.name() == name)
}

fn words_of(name: &str) -> String {
    state_named(name).map_or_else(|| name.replace('_', " "), |state| state.label().to_string())
}

/// As `--live` tells them: useful nanoseconds, and the state in which most others were spent.
pub(super) fn useful_and_largest_loss<'a>(states: &[(&'a str, u64)]) -> (u64, Option<(&'a str, u64)>) {
    let is_useful = |name: &str| state_named(name).is_some_and(|state| state.group() == Group::Useful);
    let (useful, lost): (Vec<_>, Vec<_>) = states.iter().copied().partition(|(name, _)| is_useful(name));
    (useful.iter().map(|(_, ns)| ns).sum(), lost.first().copied())
}
