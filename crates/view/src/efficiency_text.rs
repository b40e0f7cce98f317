//! The efficiency with its factors, as lines for a terminal; of traces and of profiles.

use crate::efficiency_factors::EfficiencyFactors;
use crate::format::{Unit, bar, columns, time};
use crate::sheet::{BOLD, DIM, Sheet};
use anstyle::{AnsiColor, Style};

const GREEN: Style = AnsiColor::Green.on_default();

/// The efficiency of a recording.
pub(crate) struct EfficiencyBlock<'r> {
    /// The factors and their losses.
    pub factors: &'r EfficiencyFactors,
    /// All time of the workers, nanoseconds.
    pub capacity_ns: u64,
    /// Wall time, nanoseconds.
    pub wall_ns: u64,
    /// The number of workers, in words.
    pub workers: String,
    /// The parts of the runtime's overhead, in words; may be empty.
    pub overhead: String,
}

impl EfficiencyBlock<'_> {
    /// Writes the lines; the largest loss is marked, with its findings.
    pub fn write(&self, sheet: &mut Sheet) {
        let (efficiency, unit) = (self.factors, Unit::for_total(self.capacity_ns));
        let lost = self.capacity_ns - efficiency.mpi_start_ns - efficiency.useful_ns;
        let base = format!(
            "({} × {}; {} {} lost)",
            self.workers,
            time(self.wall_ns),
            unit.show(lost),
            unit.worker_label()
        );
        let mut factors = vec![
            ("load_balance", "Load balance", efficiency.load_balance, efficiency.load_balance_loss_ns),
            ("serialization", "Serialization", efficiency.serialization, efficiency.serialization_loss_ns),
        ];
        if efficiency.cpu_availability_loss_ns > 0 {
            let loss = efficiency.cpu_availability_loss_ns;
            factors.insert(0, ("cpu_availability", "CPU availability", efficiency.cpu_availability, loss));
        }
        if efficiency.device_offload_loss_ns > 0 {
            let loss = efficiency.device_offload_loss_ns;
            factors.push(("device_offload", "Device offload", efficiency.device_offload, loss));
        }
        if efficiency.blocked_loss_ns > 0 {
            factors.push(("blocked", "Blocked", efficiency.blocked, efficiency.blocked_loss_ns));
        }
        let loss = efficiency.runtime_overhead_loss_ns;
        factors.push(("runtime_overhead", "Runtime overhead", efficiency.runtime_overhead, loss));
        // A factor printed as 1.00 is not a loss to look at.
        if efficiency.known < 0.995 {
            factors.push(("known", "Known", efficiency.known, efficiency.unknown_ns));
        }
        let largest = efficiency.largest_loss.as_ref();
        let drawn = format!("{GREEN}{}{GREEN:#}", bar(efficiency.parallel, 20));
        let pad = 22 - columns(&bar(efficiency.parallel, 20));
        sheet.line("");
        sheet.line(&format!(
            "  {BOLD}Parallel efficiency  {:.2}{BOLD:#}   {drawn}{:pad$}{DIM}{base}{DIM:#}",
            efficiency.parallel, ""
        ));
        let last = factors.len() - 1;
        for (number, (key, name, factor, loss)) in factors.into_iter().enumerate() {
            let branch = if number == last { "└" } else { "├" };
            let mark = match largest.filter(|largest| largest.factor == key) {
                Some(largest) if largest.findings.is_empty() => "   ← largest loss".to_owned(),
                Some(largest) => format!("   ← largest loss: {}", largest.findings.join(", ")),
                None => String::new(),
            };
            let parts = if key == "runtime_overhead" { self.overhead.as_str() } else { "" };
            let lost = if loss > 0 { format!("{} lost", unit.show(loss)) } else { String::new() };
            sheet.line(&format!("   {branch} {name:<18} {factor:.2}  {lost:>12}{mark}{parts}"));
        }
        if efficiency.mpi_start_ns > 0 {
            sheet.line(&format!(
                "     {DIM}without {} {} while ranks start or end MPI{DIM:#}",
                unit.show(efficiency.mpi_start_ns),
                unit.worker_label()
            ));
        }
    }
}
