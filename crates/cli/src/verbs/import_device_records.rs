//! `taskscope import --from device-records`: a vendor's records, in the order of delivery, become device queues;
//! irregularities are reported.

use crate::messages::Failure;
use crate::output;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_event::Noun;
use taskscope_import::device_records::{Error, Imported, ImportedQueue, Options, ReadError, import};
use taskscope_view::format::{Cell, count, counted, fit, time};

/// Options of this format.
#[derive(clap::Args)]
pub struct DeviceRecordsArgs {
    /// Device records: this queue runs its operations in any order. Without it, a queue is assumed to do so if it runs
    /// three at once.
    #[arg(long, value_name = "QUEUE")]
    out_of_order: Vec<String>,
    /// Device records: this queue runs its operations one after the other.
    #[arg(long, value_name = "QUEUE")]
    in_order: Vec<String>,
}

/// The queues of an import, and their irregularities.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-import-device-records/1")]
pub struct ImportReport<'i> {
    /// The imported queues.
    #[serde(flatten)]
    imported: &'i Imported,
}

/// Imports the files into the new trace `root`, and prints the irregularities of each queue.
pub fn run(files: &[PathBuf], root: &Path, args: DeviceRecordsArgs, json: bool) -> anyhow::Result<ExitCode> {
    if std::fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::new(format!("cannot write {}", root.display()))
            .why("the directory is not empty")
            .remedy("give a directory that does not exist yet, with -o")
            .into());
    }
    let options = Options { out_of_order: args.out_of_order, in_order: args.in_order, ..Options::default() };
    let imported = import(files, root, &options).map_err(failure)?;
    for problem in imported.problems.iter().take(20) {
        eprintln!("taskscope: {}", taskscope_view::format::harmless(&problem.to_string()));
    }
    if imported.problems.len() > 20 {
        eprintln!(
            "taskscope: and {} more (see taskscope.json of the first queue)",
            imported.problems.len() - 20
        );
    }
    let mut out = output::results();
    if json {
        output::write_json(&mut out, &ImportReport { imported: &imported })?;
    } else {
        print(&imported, root, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: Error) -> Failure {
    match &error {
        Error::Read(ReadError::NoColumns { .. }) => Failure::new(error.to_string())
            .why("records need a start and an end, in a line of column names or a comment that names them")
            .remedy("name them as `taskscope import --help` says; further columns are kept"),
        Error::NoRecords { problems } => Failure::new(error.to_string()).why(match problems.as_slice() {
            [] => "every line is empty or a comment".to_owned(),
            [one] => one.clone(),
            [first, ..] => {
                format!("{first}, and {} like this", counted(problems.len() as u64 - 1, "more line"))
            }
        }),
        _ => Failure::new(error.to_string()),
    }
}

fn print(imported: &Imported, root: &Path, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(
        out,
        "{}, {}, {} held at most for records that came late  →  {}",
        counted(imported.records, "record"),
        counted(imported.queues.len() as u64, "queue"),
        count(imported.held_peak),
        taskscope_view::format::path(root)
    )?;
    for queue in &imported.queues {
        writeln!(
            out,
            "  {:<26} {:>8} {}, {} ({}), by {}{}",
            Cell(fit(&queue.name, 26)),
            count(queue.delivered),
            Noun(queue.delivered, "operation"),
            queue.order,
            taskscope_view::order_source(queue.order_from),
            queue.sequence_from,
            if queue.lanes > 1 { format!(", {} lanes", queue.lanes) } else { String::new() }
        )?;
        for sentence in sentences(queue) {
            writeln!(out, "    {sentence}")?;
        }
    }
    for foreign in imported.foreign.iter().take(10) {
        let id = foreign.id.map_or("a record".to_owned(), |id| format!("id {id}"));
        writeln!(
            out,
            "  foreign: {id} of queue {} (sequence {}, thread {}) was in {}, with other records of thread {}",
            foreign.queue, foreign.seq, foreign.thread, foreign.file, foreign.files_thread
        )?;
    }
    if imported.foreign.len() > 10 {
        writeln!(out, "  and {}", counted(imported.foreign.len() as u64 - 10, "more foreign record"))?;
    }
    Ok(())
}

fn sentences(queue: &ImportedQueue) -> Vec<String> {
    let mut sentences = Vec::new();
    if queue.out_of_place > 0 {
        sentences.push(format!(
            "{} came after a record that comes after them: {} to {} late ({} and {} ns), {} held at most",
            count(queue.out_of_place),
            time(queue.least_late_ns),
            time(queue.latest_ns),
            queue.least_late_ns,
            queue.latest_ns,
            count(queue.held_peak)
        ));
    }
    if queue.duplicates > 0 {
        sentences.push(format!("{} came twice; delivered once", count(queue.duplicates)));
    }
    if queue.overlaps > 0 {
        sentences.push(format!(
            "{} start before an earlier operation of this in-order queue ends, by {} ns at most: the clock or its mapping is wrong, sorting cannot repair it",
            count(queue.overlaps),
            queue.longest_overlap_ns
        ));
    }
    for (name, number) in queue.anomalies.iter().filter(|(name, _)| *name != "overlap") {
        sentences.push(format!("{} with anomaly {name}", count(*number)));
    }
    sentences
}
