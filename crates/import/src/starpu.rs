//! StarPU's `tasks.rec`: one record a task, `Key: value` lines, an empty line between records (the form
//! that `starpu_fxt_tool` writes).
//!
//! Fields: `JobId`, `Name` or `Model`, `WorkerId`, `MemoryNode`, `SubmitTime`, `StartTime`, `EndTime`
//! (milliseconds, with a fraction), `DependsOn` (job ids). A job that another depends on
//! produces one result, at its end. The file has no transfers and no lives of workers: the lives are taken from
//! the first submission or start to the last end. Records without a worker (control tasks) never ran.

use crate::{ImportError, ImportErrors};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{GraphBuilder, NONE, NewData, NewTask, Table, TaskGraph, TaskType};

#[derive(Default)]
struct Record<'a> {
    /// Line of its first field.
    line: usize,
    /// Field, value, line.
    fields: Vec<(&'a str, &'a str, usize)>,
}

impl<'a> Record<'a> {
    fn get(&self, name: &str) -> Option<(&'a str, usize)> {
        self.fields.iter().find(|(key, ..)| *key == name).map(|(_, value, line)| (*value, *line))
    }
}

struct Job {
    id: u64,
    name: String,
    line: usize,
    submitted: u64,
    /// Worker, node, start, end.
    run: Option<(u64, u64, u64, u64)>,
    depends_on: Vec<u64>,
}

/// Whether the text looks like `tasks.rec`.
pub fn is_tasks_rec(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with(['#', '%']));
    let keys =
        ["Tag", "Name", "Model", "JobId", "SubmitOrder", "SubmitTime", "Footprint", "Control", "Priority"];
    lines.next().and_then(|line| line.split_once(':')).is_some_and(|(key, _)| keys.contains(&key))
}

/// Reads `tasks.rec`.
///
/// # Errors
/// Every error that was found, each with line and field.
pub fn read_tasks_rec(text: &str) -> Result<TaskGraph, ImportErrors> {
    let mut errors = Vec::new();
    let mut jobs = Vec::new();
    for record in records(text) {
        match job(&record) {
            Ok(Some(job)) => jobs.push(job),
            Ok(None) => {}
            Err(error) if errors.len() < 100 => errors.push(error),
            Err(_) => break,
        }
    }
    if jobs.is_empty() && errors.is_empty() {
        errors.push(error(0, "", "there is no record with a JobId".to_owned()));
    }
    if !errors.is_empty() {
        return Err(ImportErrors(errors));
    }
    graph(&jobs)
}

fn records(text: &str) -> Vec<Record<'_>> {
    let mut all = vec![Record::default()];
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            all.push(Record::default());
        } else if let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with(['#', '%', '+']))
            && let Some(record) = all.last_mut()
        {
            if record.fields.is_empty() {
                record.line = number + 1;
            }
            record.fields.push((key, value.trim(), number + 1));
        }
    }
    all.retain(|record| !record.fields.is_empty());
    all
}

fn error(line: usize, field: &str, text: String) -> ImportError {
    ImportError { file: String::new(), line, field: field.to_owned(), text }
}

fn job(record: &Record<'_>) -> Result<Option<Job>, ImportError> {
    let Some((id, line)) = record.get("JobId") else { return Ok(None) };
    let number = |field: &'static str, text: &str, line| {
        text.parse::<u64>().map_err(|_| error(line, field, format!("`{text}` is no number from 0 on")))
    };
    let id = number("JobId", id, line)?;
    let time = |field: &'static str| match record.get(field) {
        Some((text, line)) => nanoseconds(text).map(Some).map_err(|why| error(line, field, why)),
        None => Ok(None),
    };
    let name = record.get("Name").or_else(|| record.get("Model")).map_or("task", |(name, _)| name);
    let mut depends_on = Vec::new();
    if let Some((list, line)) = record.get("DependsOn") {
        for text in list.split_whitespace() {
            depends_on.push(number("DependsOn", text, line)?);
        }
    }
    let (start, end) = (time("StartTime")?, time("EndTime")?);
    let run = match (record.get("WorkerId"), start, end) {
        (Some((worker, line)), Some(start), Some(end)) => {
            let node =
                record.get("MemoryNode").map_or(Ok(0), |(node, line)| number("MemoryNode", node, line))?;
            if end < start {
                let line = record.get("EndTime").map_or(record.line, |(_, line)| line);
                return Err(error(line, "EndTime", format!("job {id} ends before it starts")));
            }
            // StarPU's clock has a resolution of a nanosecond in the file, and empty tasks are real.
            Some((number("WorkerId", worker, line)?, node, start, end.max(start + 1)))
        }
        _ => None,
    };
    let submitted = time("SubmitTime")?.unwrap_or(NO_TIME);
    Ok(Some(Job { id, name: name.to_owned(), line: record.line, submitted, run, depends_on }))
}

/// Milliseconds with a fraction, as text, to nanoseconds.
fn nanoseconds(text: &str) -> Result<u64, String> {
    if text.starts_with('-') {
        return Err(format!("{text} is negative; times are milliseconds from 0 on"));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(format!("`{text}` is no time in milliseconds"));
    }
    // Six digits behind the point are nanoseconds; more than those are cut.
    let fraction = format!("{fraction:0<6.6}");
    let too_large = || format!("{text} ms are too long for a clock of nanoseconds");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let part: u64 = fraction.parse().map_err(|_| too_large())?;
    let ns = whole.checked_mul(1_000_000).and_then(|ns| ns.checked_add(part));
    ns.filter(|ns| *ns <= i64::MAX as u64).ok_or_else(too_large)
}

fn graph(jobs: &[Job]) -> Result<TaskGraph, ImportErrors> {
    let mut errors = Vec::new();
    let known: FxHashMap<u64, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
    let runs = || jobs.iter().filter_map(|job| job.run.map(|run| (job, run)));
    let begin = runs().map(|(job, run)| run.2.min(job.submitted)).min().unwrap_or(0);
    let end = runs().map(|(_, run)| run.3).max().unwrap_or(0);
    let mut builder = GraphBuilder::new();
    let mut workers: Vec<(u64, u64)> = runs().map(|(_, run)| (run.0, run.1)).collect();
    workers.sort_unstable();
    workers.dedup_by_key(|worker| worker.0);
    for (worker, node) in workers {
        builder.add_worker(worker, node, begin, end);
    }
    let mut reported = FxHashSet::default();
    for job in jobs {
        let ty = builder.add_type(TaskType { name: job.name.clone(), ..TaskType::default() });
        // StarPU may start a job a moment before it notes the submission.
        let created = job.run.map_or(job.submitted, |run| {
            if job.submitted == NO_TIME { NO_TIME } else { job.submitted.min(run.2) }
        });
        builder.add_task(NewTask { created, ..NewTask::new(job.id, ty) });
        let Some((worker, _, start, end)) = job.run else { continue };
        builder.add_piece(worker, job.id, start, end);
        for before in &job.depends_on {
            let Some(producer) = known.get(before) else {
                let text = format!("job {} depends on job {before}, which has no record", job.id);
                errors.push(error(job.line, "DependsOn", text));
                continue;
            };
            let Some((_, node, _, produced)) = producer.run else { continue };
            if reported.insert(*before) {
                builder.add_data(NewData {
                    id: *before,
                    producer: Some(*before),
                    produced,
                    home: node,
                    bytes: 0,
                    name: NONE,
                    synchronises: false,
                });
            }
            builder.add_input(job.id, *before);
        }
    }
    if !errors.is_empty() {
        return Err(ImportErrors(errors));
    }
    builder.finish().map_err(|errors| {
        let line = |table: Table, row: usize| match table {
            Table::Tasks => jobs.get(row).map_or(0, |job| job.line),
            _ => 0,
        };
        ImportErrors(errors.into_iter().map(|e| error(line(e.table, e.row), e.field, e.text)).collect())
    })
}
