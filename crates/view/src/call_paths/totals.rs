//! The head of the report of profile files: the program, and the sums over the run.

use super::json::{CallPathTables, ProfileReport};
use super::profile_facts::{cpu_note, incomplete_profiles, is_estimated, state_named, states_of};
use super::{BOLD, DIM, MIN_NAME_COLUMNS};
use crate::efficiency_text::EfficiencyBlock;
use crate::format::{Unit, columns, counted, fit, percent, wrap};
use crate::sheet::Sheet;
use std::collections::BTreeMap;
use std::fmt::Write;
use taskscope_profile::{Process, Profile, key};

/// The head of the report of profile files: the program, lines of the verdict, and warnings. `recorded` is the text about the
/// profile in the summary of `record`, which does not repeat the command.
pub fn profile_summary(run: &CallPathTables, verdict: &str, width: usize, recorded: Option<&str>) -> String {
    let mut out = String::new();
    let number = |process: &Process, key: &str| Profile::number(process, key).unwrap_or(0);
    let wall = run.processes.iter().map(|process| number(process, key::WALL_NS)).max().unwrap_or(0);
    let threads =
        run.processes.iter().map(|process| number(process, key::THREADS)).fold(0, u64::saturating_add);
    let command = run.processes.iter().find_map(|process| process.get(key::COMMAND));
    let cpus = crate::cpus::header_of_profiles(&run.processes);
    let cpus = cpus.map(|cpus| format!(" on {cpus}")).unwrap_or_default();
    let (wall, threads) = (crate::format::time(wall), counted(threads, "thread"));
    let processes = counted(run.processes.len() as u64, "process");
    if let Some(about) = recorded {
        let _ = writeln!(out, "taskscope: {wall}  profile of {processes}  {threads}{cpus}  {about}");
    } else {
        let what = format!("{wall}  {processes}  {threads}{cpus}");
        let command = command.map_or("profile", String::as_str);
        // A text that does not fit beside most of the command gets its own line.
        let (room, between) = match width.checked_sub(columns(&what) + 2) {
            Some(room) if room >= 20 => (room, " "),
            _ => (width.saturating_sub(1), "\n  "),
        };
        let _ = writeln!(out, "{}:{between}{what}", fit(command, room));
    }
    let lost =
        run.processes.iter().map(|process| number(process, key::LOST_SAMPLES)).fold(0, u64::saturating_add);
    if lost > 0 {
        let _ = writeln!(out, "  {} were lost", crate::format::counted(lost, "sample"));
    }
    for line in incomplete_profiles(&run.processes)
        .iter()
        .flat_map(|note| wrap(note, width.saturating_sub(2).max(38)))
    {
        let _ = writeln!(out, "  {line}");
    }
    let states = states_of(&run.run_totals);
    let capacity = states.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    out.push_str(verdict);
    for line in
        cpu_note(&run.processes, &states).iter().flat_map(|note| wrap(note, width.saturating_sub(2).max(38)))
    {
        let _ = writeln!(out, "  {line}");
    }
    for line in runnable_line(&run.run_totals, capacity)
        .iter()
        .flat_map(|line| wrap(line, width.saturating_sub(2).max(38)))
    {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// The efficiency of profile files with its factors; empty if workers have no time.
pub fn profile_efficiency(report: &ProfileReport, width: usize) -> String {
    let Some(factors) = &report.efficiency else { return String::new() };
    let number = |process: &Process, key: &str| Profile::number(process, key).unwrap_or(0);
    let processes = &report.call_paths.processes;
    let workers = processes.iter().map(|process| number(process, key::WORKERS)).fold(0, u64::saturating_add);
    let losses = [
        factors.useful_ns,
        factors.mpi_start_ns,
        factors.cpu_availability_loss_ns,
        factors.load_balance_loss_ns,
        factors.serialization_loss_ns,
        factors.device_offload_loss_ns,
        factors.blocked_loss_ns,
        factors.runtime_overhead_loss_ns,
        factors.unknown_ns,
    ];
    let block = EfficiencyBlock {
        factors,
        capacity_ns: losses.into_iter().fold(0, u64::saturating_add),
        wall_ns: processes.iter().map(|process| number(process, key::WALL_NS)).max().unwrap_or(0),
        workers: counted(workers, "worker"),
        overhead: String::new(),
    };
    let mut sheet = Sheet::new(width);
    block.write(&mut sheet);
    sheet.text
}

/// The workers' time by state, of profile files; empty if they have none.
pub fn profile_times(run: &CallPathTables, width: usize) -> String {
    let mut out = String::new();
    let states = states_of(&run.run_totals);
    let capacity = states.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    if capacity > 0 {
        let unit = Unit::for_total(capacity);
        let _ = writeln!(out, "\n  {BOLD}Where the time went{BOLD:#}  {DIM}({}){DIM:#}", unit.worker_label());
        for (name, ns) in states {
            let name = fit(&words_of(name), width.saturating_sub(24).max(MIN_NAME_COLUMNS));
            let _ = writeln!(out, "  {:>12} {:>7}  {name}", unit.show(ns), percent(ns, capacity));
        }
    }
    out
}

/// The workers' runnable time without a CPU, from the kernel, if at least 1 % of their time.
fn runnable_line(totals: &BTreeMap<String, u64>, capacity: u64) -> Option<String> {
    let runnable = *totals.get("runnable_ns").filter(|_| capacity > 0)?;
    let is_large = runnable.saturating_mul(100) >= capacity;
    is_large.then(|| {
        let share = percent(runnable, capacity);
        format!("Workers could run and had no CPU for {share} of their time (run_delay), lost or while others ran for whom they waited.")
    })
}

fn label_of(name: &str) -> String {
    state_named(name).map_or_else(|| name.replace('_', " "), |state| state.label().to_string())
}

fn words_of(name: &str) -> String {
    let label = label_of(name);
    if is_estimated(name) { format!("{label} (estimated)") } else { label }
}
