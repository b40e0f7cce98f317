//! The tasks of a finished job, as Ballista 55 reports them at `/api/job/JOB/stages`.
//!
//! A stage has a list of all tasks it ever started, with the partitions that each read: a task that was lost or failed stays in
//! the list when another one has repeated it. A stage that is rolled back begins a new list, but then the stage whose rows it
//! lost has the lost task in its list, and so on down to a stage that reads files.

use serde_json::Value;
use std::collections::BTreeSet;

/// A reason not to trust the result of a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place and the words of the scheduler.
    pub words: String,
    /// Whether the cluster is the reason, rather than the query.
    pub lost: bool,
}

/// The first fault of a job. One of the query comes before one of the cluster.
///
/// # Errors
/// If the document has not the form of Ballista 55.
pub fn fault(stages: &Value) -> Result<Option<Fault>, String> {
    let list = stages["stages"].as_array().filter(|list| !list.is_empty()).ok_or("the job has no stages")?;
    let mut faults = Vec::new();
    for stage in list {
        let id: u64 = text(stage, "stage_id")?.parse().map_err(|_| unknown("stage_id"))?;
        let status = text(stage, "stage_status")?;
        if status != "Successful" {
            faults.push((id, Fault { words: format!("stage {id} is {status}"), lost: true }));
        }
        let mut read = BTreeSet::new();
        for task in array(stage, "tasks")? {
            faults.extend(fault_of(task, id, &mut read)?.map(|fault| (id, fault)));
        }
    }
    // A task knows more than the state of its stage.
    faults.sort_by_key(|(id, fault)| (fault.lost, !fault.words.starts_with("task"), *id));
    Ok(faults.into_iter().next().map(|(_, fault)| fault))
}

fn fault_of(task: &Value, stage: u64, read: &mut BTreeSet<u64>) -> Result<Option<Fault>, String> {
    let id = task["id"].as_u64().ok_or_else(|| unknown("id"))?;
    let place = format!("task {id} of stage {stage}");
    let status = &task["status"];
    if status == "Successful" {
        for partition in array(task, "partition_id")? {
            let partition = partition.as_u64().ok_or_else(|| unknown("partition_id"))?;
            if !read.insert(partition) {
                let words = format!("{place} read partition {partition} once more");
                return Ok(Some(Fault { words, lost: true }));
            }
        }
        return Ok(None);
    }
    if let Some(failed) = status.get("Failed") {
        let (reason, error) = (text(failed, "reason")?, text(failed, "error")?);
        let error = error.lines().next().unwrap_or_default();
        let words = format!("{place} has {reason}: {error}");
        return Ok(Some(Fault { words, lost: reason != "ExecutionError" }));
    }
    if status == "Running" {
        return Ok(Some(Fault { words: format!("{place} is still running"), lost: true }));
    }
    Err(unknown("status"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| unknown(key))
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    value[key].as_array().map(Vec::as_slice).ok_or_else(|| unknown(key))
}

fn unknown(key: &str) -> String {
    format!("its list of tasks has another form than that of Ballista 55: {key}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(id: u64, partitions: &[u64], status: &Value) -> Value {
        json!({"id": id, "partition_id": partitions, "status": status, "input_rows": 1})
    }

    fn job(tasks: &[Value]) -> Value {
        let first = json!({"stage_id": "1", "stage_status": "Successful",
            "tasks": [task(0, &[0], &json!("Successful"))]});
        json!({"stages": [{"stage_id": "2", "stage_status": "Successful", "tasks": tasks}, first]})
    }

    fn failed(reason: &str, error: &str) -> Value {
        json!({"Failed": {"reason": reason, "error": error}})
    }

    fn words(tasks: &[Value]) -> Option<(String, bool)> {
        fault(&job(tasks)).unwrap().map(|fault| (fault.words, fault.lost))
    }

    #[test]
    fn jobs_whose_partitions_are_read_once_are_trusted() {
        let good = json!("Successful");
        assert_eq!(words(&[task(0, &[0, 1], &good), task(1, &[2], &good)]), None);
    }

    #[test]
    fn lost_and_repeated_tasks_are_faults() {
        let good = json!("Successful");
        let lost = failed("ResultLost", "Task failure due to Executor x lost\nmore");
        let found = words(&[task(0, &[0], &lost), task(1, &[0], &good)]);
        let expected = "task 0 of stage 2 has ResultLost: Task failure due to Executor x lost".to_owned();
        assert_eq!(found, Some((expected, true)));
        let found = words(&[task(0, &[0], &good), task(1, &[1, 0], &good)]);
        assert_eq!(found, Some(("task 1 of stage 2 read partition 0 once more".to_owned(), true)));
        assert_eq!(
            words(&[task(0, &[0], &json!("Running"))]),
            Some(("task 0 of stage 2 is still running".to_owned(), true))
        );
    }

    #[test]
    fn an_error_of_the_query_comes_before_a_loss() {
        let tasks = [
            task(0, &[0], &failed("TaskKilled", "cancelled")),
            task(1, &[1], &failed("ExecutionError", "Divide by zero")),
        ];
        let expected = "task 1 of stage 2 has ExecutionError: Divide by zero".to_owned();
        assert_eq!(words(&tasks), Some((expected, false)));
    }

    #[test]
    fn other_forms_are_refused() {
        let good = json!("Successful");
        for document in [
            json!({}),
            json!({"stages": []}),
            json!({"stages": [{"stage_id": 1, "stage_status": "Successful", "tasks": []}]}),
            json!({"stages": [{"stage_id": "1", "stage_status": "Successful"}]}),
            job(&[json!(null)]),
            job(&[json!({"id": 0, "status": "Successful"})]),
            job(&[task(0, &[0], &json!("Done"))]),
            job(&[task(0, &[0], &json!({"Failed": {}})), task(1, &[0], &good)]),
        ] {
            assert!(fault(&document).is_err(), "{document}");
        }
    }
}
