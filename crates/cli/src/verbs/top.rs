//! `taskscope top`: how often each event occurs.

use crate::opening::{SelectionArgs, TraceArgs, TracePart};
use crate::output;
use crate::reading::{Interruption, ProblemLine, problem_lines};
use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use taskscope_event::{Code, models};
use taskscope_trace::Trace;
use taskscope_view::format::counted;

/// Count the events of a trace by kind.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Also count by thread
    #[arg(long)]
    pub per_thread: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Count only ovni's models (`stream.obs`), not taskscope's own
    #[arg(long)]
    pub standard: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// Number of occurrences of each event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-top/1")]
pub struct TopReport<'t> {
    /// Counts over all streams, the most frequent event first.
    events: Vec<EventCount>,
    /// Counts of each stream; empty without `--per-thread`.
    threads: Vec<StreamCounts<'t>>,
    /// Unreadable or irregular parts.
    problems: Vec<ProblemLine<'t>>,
}

/// Number of occurrences of an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct EventCount {
    /// The event's code, such as `OHx`.
    event: String,
    /// Its name; null of an unknown event.
    name: Option<&'static str>,
    /// Number of events.
    count: u64,
}

/// The events of a stream.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct StreamCounts<'t> {
    /// Its directory below the trace's root.
    stream: &'t str,
    /// Counts, the most frequent event first.
    events: Vec<EventCount>,
}

fn event_counts(counts: &BTreeMap<Code, u64>) -> Vec<EventCount> {
    let one = |(code, count): (Code, u64)| EventCount {
        event: code.to_string(),
        name: models::find(code).map(|spec| spec.name),
        count,
    };
    sorted(counts).into_iter().map(one).collect()
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let part = TracePart::open(args.trace, args.selection.parse()?, !args.standard)?
        .print_problems()
        .require_events()?
        .require_range()?;
    let (trace, selected) = (&part.trace, part.selected());
    let interruption = Interruption::watch()?;
    let mut progress = part.progress();
    let mut per_thread: Vec<BTreeMap<Code, u64>> = Vec::new();
    let mut read = 0;
    // No order is needed to count, so streams are read one after the other.
    for (stream, found) in trace.streams().iter().enumerate() {
        let mut counts = BTreeMap::new();
        for (file, event) in found.events() {
            read += 1;
            progress.show_sometimes(read);
            if read.is_multiple_of(1 << 14) && interruption.is_requested() {
                progress.finish();
                let kept = format!(
                    "nothing is printed: counted {read} of {}",
                    counted(trace.event_count(), "event")
                );
                return Err(interruption.failure(kept).into());
            }
            if selected.passes(&taskscope_trace::MergedEvent { stream, file, event }) {
                *counts.entry(event.code).or_insert(0) += 1;
            }
        }
        per_thread.push(counts);
    }
    progress.finish();
    // Device queues are not threads: their events are counted unless a filter is given.
    let locations: Vec<_> =
        trace.locations().iter().filter(|_| part.selection.filter.is_none() && !args.standard).collect();
    for location in &locations {
        let mut counts = BTreeMap::new();
        for event in location.events() {
            if (selected.begin_ns..selected.end_ns)
                .contains(&event.clock_ns.saturating_sub(selected.origin_ns))
            {
                *counts.entry(event.code).or_insert(0) += 1;
            }
        }
        per_thread.push(counts);
    }
    let paths = || {
        let streams = trace.streams().iter().map(|stream| &stream.relative_path);
        streams.chain(locations.iter().map(|location| &location.relative_path))
    };
    let mut out = output::results();
    let total = sum(&per_thread);
    part.print_if_empty(total.is_empty());
    if args.json {
        let threads = paths().zip(&per_thread).filter(|_| args.per_thread);
        let document = TopReport {
            events: event_counts(&total),
            threads: threads
                .map(|(path, counts)| StreamCounts { stream: path, events: event_counts(counts) })
                .collect(),
            problems: problem_lines(trace),
        };
        output::write_json_line(&mut out, &document).context("cannot print")?;
    } else {
        print_counts(&mut out, &total).context("cannot print")?;
        if args.per_thread {
            for (path, counts) in paths().zip(&per_thread) {
                writeln!(out, "\n{path}").context("cannot print")?;
                print_counts(&mut out, counts).context("cannot print")?;
            }
        }
    }
    out.flush().context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}

fn print_counts(out: &mut impl Write, counts: &BTreeMap<Code, u64>) -> std::io::Result<()> {
    for (code, count) in sorted(counts) {
        // Without values, as they are many.
        let meaning = models::find(code).map(|spec| spec.sentence(&[]).to_string());
        writeln!(out, "{count:>12}  {code}  {}", meaning.as_deref().unwrap_or("unknown event"))?;
    }
    Ok(())
}

/// All events of all streams by code.
pub fn count_all(trace: &Trace) -> BTreeMap<Code, u64> {
    let mut counts = BTreeMap::new();
    for (_, event) in trace.streams().iter().flat_map(|stream| stream.events()) {
        *counts.entry(event.code).or_insert(0) += 1;
    }
    counts
}

fn sum(per_thread: &[BTreeMap<Code, u64>]) -> BTreeMap<Code, u64> {
    let mut total = BTreeMap::new();
    for (code, count) in per_thread.iter().flatten() {
        *total.entry(*code).or_insert(0) += count;
    }
    total
}

/// The most frequent first, equal ones by code.
pub fn sorted(counts: &BTreeMap<Code, u64>) -> Vec<(Code, u64)> {
    let mut sorted: Vec<(Code, u64)> = counts.iter().map(|(code, count)| (*code, *count)).collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
}
