//! `taskscope sync`: the offsets between the clocks of hosts, put into a trace: from a file, or as MPI programs
//! measured them while they were recorded.

use crate::messages::Failure;
use crate::opening::{NAMED_TRACE, TraceArgs, open_trace};
use crate::output;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;
use taskscope_event::layout;
use taskscope_event::models::messages;
use taskscope_trace::{
    ClockDrift, ClockOffset, ClockOffsets, ClockSource, OpenOptions, Trace, drifts_to_text, replace_file,
};

/// Store the clock offsets of hosts in a trace, from a file or as measured by the recorder of an MPI program; or show
/// the stored ones.
#[derive(clap::Args)]
#[command(mut_arg("trace", |trace| trace.help(NAMED_TRACE)))]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Only show the offsets that would be written
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.trace.require_named("sync")?;
    let trace =
        open_trace(&args.trace.trace, &OpenOptions { clocks: ClockSource::None, ..OpenOptions::default() })?;
    let hosts: BTreeSet<&str> = trace.streams().iter().map(|stream| stream.metadata.host()).collect();
    let inside = trace.root().join(layout::CLOCK_OFFSETS);
    let (offsets, drifts, is_new) = match &args.trace.clock_offsets {
        Some(file) => (ClockOffsets::load(file).map_err(Failure::new)?, Vec::new(), true),
        None if inside.exists() => (ClockOffsets::load(&inside).map_err(Failure::new)?, Vec::new(), false),
        None => {
            let (offsets, drifts) = measured_offsets(&trace).ok_or_else(|| no_offsets(&trace, &hosts))?;
            (offsets, drifts, true)
        }
    };
    if let Err(text) = ClockOffsets::parse(&offsets.to_text()) {
        return Err(Failure::new("the measured offsets cannot be used").why(text).into());
    }
    for entry in &offsets.entries {
        if !hosts.contains(entry.host.as_str()) {
            return Err(Failure::new(format!("the offsets name host `{}`, which no loom is on", entry.host))
                .why(format!("the hosts are: {}", hosts.iter().copied().collect::<Vec<_>>().join(", ")))
                .into());
        }
    }
    for host in hosts.iter().filter(|host| offsets.offset_ns(host).is_none()) {
        let host = taskscope_view::format::harmless(host);
        eprintln!("warning: host `{host}` has no offset; its clocks stay as they are");
    }
    let mut out = output::results();
    write!(out, "{}", offsets.to_text()).and_then(|()| out.flush()).context("cannot print")?;
    if is_new && !args.dry_run {
        replace_file(&inside, |file| file.write_all(offsets.to_text().as_bytes()))
            .with_context(|| format!("cannot write {}", inside.display()))?;
        eprintln!("written to {}", taskscope_view::format::path(&inside));
        let beside = trace.root().join(layout::CLOCK_DRIFTS);
        if !drifts.is_empty() {
            let text = drifts_to_text(&drifts);
            replace_file(&beside, |file| file.write_all(text.as_bytes()))
                .with_context(|| format!("cannot write {}", beside.display()))?;
            let beside = taskscope_view::format::path(&beside);
            eprintln!("the drift is corrected too: written to {beside}");
        } else if beside.exists() {
            // It belonged to other offsets.
            std::fs::remove_file(&beside).with_context(|| format!("cannot remove {}", beside.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn no_offsets(trace: &Trace, hosts: &BTreeSet<&str>) -> Failure {
    let names: Vec<&str> = hosts.iter().copied().collect();
    let failure = Failure::new(format!("{} has no clock offsets", trace.root().display()));
    match names.as_slice() {
        [host] => failure.why(format!("it has one host, {host}; offsets relate the clocks of several hosts")),
        _ => failure
            .why(format!(
                "no clock-offsets.txt, and no offsets measured while recording; hosts: {}",
                names.join(", ")
            ))
            .remedy("taskscope sync -c FILE TRACE        (with a table of offsets)"),
    }
}

/// A host's measurement: its time on its own clock; its offset; the largest error of that.
type Measured = (i64, i64, u64);

/// The mean of each host's measurements, with the larger error, and the drift of hosts with measurements that differ by
/// more than their errors. Measurements are printed on stderr.
fn measured_offsets(trace: &Trace) -> Option<(ClockOffsets, Vec<ClockDrift>)> {
    let mut ranks: BTreeMap<usize, i64> = BTreeMap::new();
    let mut measured: BTreeMap<&str, (i64, Vec<Measured>)> = BTreeMap::new();
    for event in trace.merge() {
        let (clock, payload) = (event.event.clock_ns, event.event.payload);
        let stream = &trace.streams()[event.stream];
        if event.event.code == messages::JOB && payload.len() >= 12 {
            ranks.insert(event.stream, i64::from(u32::from_le_bytes(*payload[8..].first_chunk()?)));
        } else if event.event.code == messages::CLOCK && payload.len() >= 16 {
            let offset = i64::from_le_bytes(*payload.first_chunk()?);
            let error = u64::from_le_bytes(*payload[8..].first_chunk()?);
            let rank = ranks.get(&event.stream).copied().unwrap_or(0);
            let own = measured.entry(stream.metadata.host()).or_insert((rank, Vec::new()));
            own.1.push((clock, offset, error));
        }
    }
    let (mut entries, mut drifts) = (Vec::new(), Vec::new());
    for (host, (rank, rows)) in measured {
        let mean = rows.iter().map(|(_, offset, _)| *offset as f64).sum::<f64>() / rows.len() as f64;
        let error = rows.iter().map(|(_, _, error)| *error).max().unwrap_or(0);
        if let [(begin, before, error_before), .., (end, after, error_after)] = rows[..]
            && end > begin
            && error > 0
        {
            let grown = after.saturating_sub(before);
            if grown.unsigned_abs() > error_before.saturating_add(error_after) {
                let drift = i128::from(grown) * 1_000_000_000_000 / (i128::from(end) - i128::from(begin));
                let since_ns = begin + (end - begin) / 2;
                drifts.push(ClockDrift { host: host.to_owned(), since_ns, drift: drift as i64 });
            }
            let per_million = grown as f64 / (end - begin) as f64 * 1e6;
            let seconds = (end - begin) as f64 / 1e9;
            let host = taskscope_view::format::harmless(host);
            eprintln!(
                "host {host}: offset {before} ns at first, {after} ns {seconds:.3} s later, each within {error} ns: \
                 drift {per_million:.3} ns a millisecond"
            );
        }
        entries.push(ClockOffset {
            rank,
            host: host.to_owned(),
            median_ns: mean.round(),
            mean_ns: mean,
            deviation_ns: error as f64,
        });
    }
    (!entries.is_empty()).then_some((ClockOffsets { entries }, drifts))
}
