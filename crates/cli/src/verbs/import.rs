//! `taskscope import`: a foreign file becomes a trace directory.

use super::import_device_records::{self, DeviceRecordsArgs};
use super::import_gpu;
use crate::messages::Failure;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_execution::graph::{Role, TaskGraph};
use taskscope_files::{open_regular, read_regular};
use taskscope_import::chrome::{is_chrome, read_chrome};
use taskscope_import::neutral::{CsvTables, read_csv, read_json, unread_columns};
use taskscope_import::otf2::{anchor_of, read_otf2};
use taskscope_import::paraver::{ParaverFiles, is_paraver, read_paraver};
use taskscope_import::perfetto::{is_perfetto, read_perfetto};
use taskscope_import::spans::{Run, write_run};
use taskscope_import::starpu::{is_tasks_rec, read_tasks_rec};
use taskscope_import::{ImportErrors, write_graph};
use taskscope_view::format::{counted, fit, harmless, path as path_shown};

/// Longest file of another tool.
const MAX_FILE_BYTES: u64 = 8 << 30;
/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// First bytes of an SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// A table that each directory of the neutral form has.
const NEUTRAL_TABLE: &str = "workers.csv";
/// A table that each export of Nsight Systems has.
const NSIGHT_TABLE: &str = "StringIds.parquet";
/// Characters of a list of threads in a message.
const MAX_LISTED: usize = 200;

/// Make a trace from other tools' files.
///
/// Formats are recognised by their content: Chrome's trace events (PyTorch, viztracer, Taskflow, APEX; also compressed
/// with gzip), Perfetto's traces, OTF2 archives, Paraver's traces (.prv with .pcf and .row beside it), the neutral JSON or CSV form,
/// StarPU's tasks.rec, profiles of rocprofv3 (rocpd) and Nsight Systems (SQLite or parquetdir; needs python3). Dumps of device
/// records need --from.
#[derive(clap::Args)]
pub struct Args {
    /// A file, the directory of an OTF2 archive, of a Paraver trace or of Parquet files of Nsight Systems, or a directory with the CSV tables of the neutral form; or dumps of device records (TSV or CSV) in the
    /// order of delivery.
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
    match read(file)? {
        Content::Graph(graph, unread) => put_graph(file, &graph, &unread, &args.output),
        Content::Run(run) => put_run(file, &run, &args.output),
    }
}

/// The content of a file.
enum Content {
    /// A task graph, and names in the file that its form does not have.
    Graph(Box<TaskGraph>, Vec<String>),
    /// A run over time.
    Run(Box<Run>),
}

fn unwritable(output: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}", output.display()))
        .why(error.to_string())
        .remedy("give a directory that does not exist yet, with -o")
}

/// Writes a run, and prints its content and what is lost.
fn put_run(file: &Path, run: &Run, output: &Path) -> anyhow::Result<ExitCode> {
    let written = write_run(run, output).map_err(|error| unwritable(output, &error))?;
    let operations = run.queues.iter().map(|queue| queue.operations.len() as u64).sum();
    let mut contents = vec![
        counted(run.span_count(), "section"),
        counted(run.threads.len() as u64, "thread"),
        counted(run.process_count(), "process"),
    ];
    let further = [
        (run.flows.len() as u64, "dependence"),
        (operations, "device operation"),
        (run.calls.len() as u64, "device call"),
    ];
    contents
        .extend(further.iter().filter(|(count, _)| *count > 0).map(|(count, name)| counted(*count, name)));
    let shown = path_shown(file);
    eprintln!("taskscope: {shown}: {}: {}  →  {}", run.source, contents.join(", "), path_shown(output));
    if written.overlaps > 0 {
        let sections = counted(written.overlaps, "section");
        eprintln!(
            "note: {sections} overlap without nesting: this time belongs to the section that began last"
        );
    }
    let mut losses = run.losses.clone();
    losses.add_many("sections in thousands of others", "a trace has no room for them", written.too_deep);
    let why = "threads have one stack of sections: each end below them costs events";
    losses.add_many("sections that outlast many others", why, written.too_crossed);
    for loss in losses.iter() {
        let first = if loss.first.is_empty() { String::new() } else { format!("; first: {}", loss.first) };
        eprintln!("note: not imported: {} {} ({}{first})", loss.count, loss.content, loss.why);
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a graph, and prints its content.
fn put_graph(file: &Path, graph: &TaskGraph, unread: &[String], output: &Path) -> anyhow::Result<ExitCode> {
    let shown = path_shown(file);
    write_graph(graph, output).map_err(|error| unwritable(output, &error))?;
    eprintln!(
        "taskscope: {shown}: {}, {} data, {} on {}  →  {}",
        counted(graph.tasks.len() as u64, "task"),
        graph.data.len(),
        counted(graph.executing_workers().count() as u64, "worker"),
        counted(graph.nodes.len() as u64, "node"),
        path_shown(output)
    );
    let runtime_workers = graph.workers.iter().filter(|worker| worker.role == Role::Runtime);
    let runtime_workers: Vec<String> = runtime_workers.map(|worker| worker.id.to_string()).collect();
    if !runtime_workers.is_empty() {
        eprintln!(
            "taskscope: threads of the runtime, which execute no tasks and do not count as capacity: {}",
            fit(&runtime_workers.join(", "), MAX_LISTED)
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

fn read(path: &Path) -> anyhow::Result<Content> {
    let shown = path.display();
    let broken = |errors: ImportErrors| {
        Failure::new(format!("cannot import {shown}"))
            .why(errors.to_string())
            .kept("nothing: a trace with wrong times or ids would give wrong answers")
    };
    if let Some(anchor) = anchor_of(path) {
        return Ok(Content::Run(Box::new(read_otf2(&anchor).map_err(broken)?)));
    }
    if let Some(records) = only_prv(path) {
        return read(&records);
    }
    if path.join(NSIGHT_TABLE).is_file() {
        return Ok(Content::Run(Box::new(import_gpu::read(path, MAX_FILE_BYTES, broken)?)));
    }
    if path.is_dir() && !path.join(NEUTRAL_TABLE).exists() {
        return Err(unknown(path).into());
    }
    if path.is_dir() {
        let (graph, unread) = read_tables(path)?.map_err(broken)?;
        return Ok(Content::Graph(Box::new(graph), unread));
    }
    if begins_with(path, SQLITE) {
        return Ok(Content::Run(Box::new(import_gpu::read(path, MAX_FILE_BYTES, broken)?)));
    }
    let bytes = read_bytes(path)?;
    if is_perfetto(&bytes) {
        return Ok(Content::Run(Box::new(read_perfetto(&bytes).map_err(broken)?)));
    }
    if !begins_as_text(&bytes) {
        return Err(unknown(path).into());
    }
    let text = text_of(path, bytes)?;
    if is_paraver(&text) {
        let (labels, rows) = (beside(path, "pcf")?, beside(path, "row")?);
        let files = ParaverFiles { records: &text, labels: &labels, rows: &rows };
        return Ok(Content::Run(Box::new(read_paraver(files).map_err(broken)?)));
    }
    if is_chrome(&text) {
        return Ok(Content::Run(Box::new(read_chrome(&text).map_err(broken)?)));
    }
    if text.trim_start().starts_with('{') {
        let case = read_json(&text).map_err(broken)?;
        return Ok(Content::Graph(Box::new(case.graph), case.unread));
    }
    if is_tasks_rec(&text) {
        return Ok(Content::Graph(Box::new(read_tasks_rec(&text).map_err(broken)?), Vec::new()));
    }
    Err(unknown(path).into())
}

fn unknown(path: &Path) -> Failure {
    Failure::new(format!("unknown format: {}", path.display()))
        .why("the content is none of: neutral JSON, a directory of neutral CSV tables, trace events of Chrome, a trace of Perfetto or Paraver, an OTF2 archive, a profile of rocprofv3 or Nsight Systems, a tasks.rec")
        .remedy("write the neutral form (docs/neutral-trace.md), which any runtime can write")
}

/// The records of a Paraver trace in a directory, if it has one trace.
fn only_prv(path: &Path) -> Option<PathBuf> {
    let files_with_ending = |ending: &str| -> Option<Vec<PathBuf>> {
        let names = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path());
        let has_ending = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(ending.as_bytes());
        Some(names.filter(has_ending).take(2).collect())
    };
    let plain = files_with_ending(".prv")?;
    let records = if plain.is_empty() { files_with_ending(".prv.gz")? } else { plain };
    // A directory of this name may hold itself, by a link.
    records.first().filter(|first| records.len() == 1 && first.is_file()).cloned()
}

/// The text of a file that belongs to records of Paraver, `NAME.prv` or `NAME.prv.gz`; empty if it is missing. Its labels may
/// have any encoding.
fn beside(records: &Path, extension: &str) -> anyhow::Result<String> {
    let is_packed = records.extension().is_some_and(|extension| extension == "gz");
    let records = if is_packed { records.with_extension("") } else { records.to_owned() };
    let path = records.with_extension(extension);
    if !path.exists() {
        return Ok(String::new());
    }
    Ok(String::from_utf8_lossy(&read_bytes(&path)?).into_owned())
}

/// Whether a regular file begins with these bytes.
fn begins_with(path: &Path, bytes: &[u8]) -> bool {
    let mut found = vec![0; bytes.len()];
    open_regular(path).is_ok_and(|(mut file, _)| file.read_exact(&mut found).is_ok()) && found == bytes
}

/// Whether the first bytes are text: in a file of another kind, the place of the first wrong byte means nothing.
fn begins_as_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(8)];
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
    let is_control = |byte: &u8| *byte < b' ' && !b"\t\n\r".contains(byte);
    !head.iter().any(is_control) && std::str::from_utf8(head).err().is_none_or(is_cut)
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    text_of(path, read_bytes(path)?)
}

/// The content of a file, decompressed.
fn read_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let unreadable = |error: std::io::Error| {
        Failure::new(format!("cannot read {}", path.display())).why(error.to_string())
    };
    let bytes = read_regular(path, MAX_FILE_BYTES).map_err(unreadable)?;
    Ok(if bytes.starts_with(&GZIP) { decompressed(&bytes).map_err(unreadable)? } else { bytes })
}

fn text_of(path: &Path, bytes: Vec<u8>) -> anyhow::Result<String> {
    Ok(String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        Failure::new(format!("cannot read {}", path.display())).why(format!("line {line}: invalid UTF-8"))
    })?)
}

/// The content of a gzip file.
fn decompressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(bytes).take(MAX_FILE_BYTES + 1);
    reader.read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        let text = format!("its content is longer than {} GiB", MAX_FILE_BYTES >> 30);
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text));
    }
    Ok(content)
}

/// The CSV tables in a directory; a table without rows may be missing.
fn read_tables(directory: &Path) -> anyhow::Result<Result<(TaskGraph, Vec<String>), ImportErrors>> {
    let table = |name: &str, needed: bool| {
        let path = directory.join(name);
        if !needed && !path.exists() { Ok(String::new()) } else { read_text(&path) }
    };
    let (workers, tasks) = (table(NEUTRAL_TABLE, true)?, table("tasks.csv", true)?);
    let (data, copies) = (table("data.csv", false)?, table("copies.csv", false)?);
    let runtime = table("runtime.csv", false)?;
    let tables =
        CsvTables { workers: &workers, tasks: &tasks, data: &data, copies: &copies, runtime: &runtime };
    let unread = unread_columns(&tables);
    Ok(read_csv(tables).map(|graph| (graph, unread)))
}
