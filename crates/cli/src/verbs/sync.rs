//! `taskscope sync`: the offsets between the clocks of hosts, put into a trace.

use crate::messages::Failure;
use crate::output;
use crate::reading::{TraceArgs, open_in_order};
use anyhow::Context;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use taskscope_trace::{ClockOffsets, ClockSource, ReadOrder, replace_file};

/// Check an offset file against a trace and put it into the trace, or show what is there.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Only show what would be written
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let trace = open_in_order(&args.trace, false, ClockSource::None, ReadOrder::Repaired)?;
    let hosts: BTreeSet<&str> = trace
        .streams()
        .iter()
        .filter_map(|stream| stream.loom())
        .map(|loom| loom.split('.').next().unwrap_or(loom))
        .collect();
    let inside = trace.root().join("clock-offsets.txt");
    let source = args.trace.clock_offsets.as_ref().unwrap_or(&inside);
    if args.trace.clock_offsets.is_none() && !inside.exists() {
        let names: Vec<&str> = hosts.iter().copied().collect();
        return Err(Failure::new(format!("{} has no clock-offsets.txt", trace.root().display()))
            .why(format!("its hosts are: {}", names.join(", ")))
            .remedy("give a measured table: taskscope sync -c FILE TRACE")
            .into());
    }
    let offsets = ClockOffsets::load(source).map_err(Failure::new)?;
    for entry in &offsets.entries {
        if !hosts.contains(entry.host.as_str()) {
            return Err(Failure::new(format!("the offsets name host `{}`, which no loom is on", entry.host))
                .why(format!("the hosts are: {}", hosts.iter().copied().collect::<Vec<_>>().join(", ")))
                .into());
        }
    }
    for host in hosts.iter().filter(|host| offsets.offset_ns(host).is_none()) {
        eprintln!("warning: host `{host}` has no offset; its clocks stay as they are");
    }
    let mut out = output::results();
    write!(out, "{}", offsets.to_text()).and_then(|()| out.flush()).context("cannot print")?;
    if args.trace.clock_offsets.is_some() && !args.dry_run {
        replace_file(&inside, |file| file.write_all(offsets.to_text().as_bytes()))
            .with_context(|| format!("cannot write {}", inside.display()))?;
        eprintln!("written to {}", inside.display());
    }
    Ok(ExitCode::SUCCESS)
}
