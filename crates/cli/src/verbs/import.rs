//! `taskscope import`: a foreign file becomes a trace directory.

use super::import_device_records::{self, DeviceRecordsArgs};
use crate::messages::Failure;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_execution::graph::{Role, TaskGraph};
use taskscope_files::read_regular;
use taskscope_import::neutral::{CsvTables, read_csv, read_json, unread_columns};
use taskscope_import::starpu::{is_tasks_rec, read_tasks_rec};
use taskscope_import::{ImportErrors, write_graph};
use taskscope_view::format::{counted, fit, harmless, path as path_shown};

/// Longest file of another tool.
const MAX_FILE_BYTES: u64 = 8 << 30;
/// Characters of a list of threads in a message.
const MAX_LISTED: usize = 200;

/// Make a trace from other tools' files: the neutral JSON or CSV form, StarPU's tasks.rec, or dumps of device records.
#[derive(clap::Args)]
pub struct Args {
    /// A neutral trace (*.json), a directory with its CSV tables, or StarPU's tasks.rec; or dumps of device records
    /// (TSV or CSV) in the order of delivery.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the files, if it cannot be detected.
    #[arg(long, value_name = "FORMAT", value_enum)]
    from: Option<Form>,
    /// Trace directory to write; must be new or empty.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Device records: print irregularities as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device_records: DeviceRecordsArgs,
}

/// A format that is not clear from the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Form {
    /// Dumps of device records (TSV or CSV)
    DeviceRecords,
}

/// Reads the files and writes the trace.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.from == Some(Form::DeviceRecords) {
        return import_device_records::run(&args.files, &args.output, args.device_records, args.json);
    }
    let [file] = &args.files[..] else {
        return Err(Failure::new("this form is one file or one directory")
            .remedy("for dumps of device records: --from device-records")
            .into());
    };
    let shown = path_shown(file);
    let (graph, unread) = read(file)?;
    write_graph(&graph, &args.output).map_err(|error| {
        Failure::new(format!("cannot write {}", args.output.display()))
            .why(error.to_string())
            .remedy("give a directory that does not exist yet, with -o")
    })?;
    eprintln!(
        "taskscope: {shown}: {}, {} data, {} on {}  →  {}",
        counted(graph.tasks.len() as u64, "task"),
        graph.data.len(),
        counted(graph.executing_workers().count() as u64, "worker"),
        counted(graph.nodes.len() as u64, "node"),
        path_shown(&args.output)
    );
    let of_runtime = graph.workers.iter().filter(|worker| worker.role == Role::Runtime);
    let of_runtime: Vec<String> = of_runtime.map(|worker| worker.id.to_string()).collect();
    if !of_runtime.is_empty() {
        eprintln!(
            "taskscope: threads of the runtime, which execute no tasks and do not count as capacity: {}",
            fit(&of_runtime.join(", "), MAX_LISTED)
        );
    }
    if !unread.is_empty() {
        eprintln!(
            "taskscope: not read, as the form has no such names: {}  (docs/neutral-trace.md)",
            harmless(&unread.join(", "))
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The graph, and names in the file that its form does not have.
fn read(path: &Path) -> anyhow::Result<(TaskGraph, Vec<String>)> {
    let shown = path.display();
    let broken = |errors: ImportErrors| {
        Failure::new(format!("cannot import {shown}"))
            .why(errors.to_string())
            .kept("nothing: a trace with wrong times or ids would give wrong answers")
    };
    if path.is_dir() {
        return Ok(read_tables(path)?.map_err(broken)?);
    }
    let text = read_text(path)?;
    if text.trim_start().starts_with('{') {
        let case = read_json(&text).map_err(broken)?;
        return Ok((case.graph, case.unread));
    }
    if is_tasks_rec(&text) {
        return Ok((read_tasks_rec(&text).map_err(broken)?, Vec::new()));
    }
    Err(Failure::new(format!("{shown} has a form that is not known"))
        .why("it is not a JSON object, a directory of CSV tables, or a tasks.rec")
        .remedy("write the neutral form (docs/neutral-trace.md), which any runtime can write")
        .into())
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let unreadable = |why: String| Failure::new(format!("cannot read {}", path.display())).why(why);
    let bytes = read_regular(path, MAX_FILE_BYTES).map_err(|error| unreadable(error.to_string()))?;
    Ok(String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        unreadable(format!("line {line}: invalid UTF-8"))
    })?)
}

/// The CSV tables in a directory; a table without rows may be missing.
fn read_tables(directory: &Path) -> anyhow::Result<Result<(TaskGraph, Vec<String>), ImportErrors>> {
    let table = |name: &str, needed: bool| {
        let path = directory.join(name);
        if !needed && !path.exists() { Ok(String::new()) } else { read_text(&path) }
    };
    let (workers, tasks) = (table("workers.csv", true)?, table("tasks.csv", true)?);
    let (data, copies) = (table("data.csv", false)?, table("copies.csv", false)?);
    let runtime = table("runtime.csv", false)?;
    let tables =
        CsvTables { workers: &workers, tasks: &tasks, data: &data, copies: &copies, runtime: &runtime };
    let unread = unread_columns(&tables);
    Ok(read_csv(tables).map(|graph| (graph, unread)))
}
