//! Rows of instrumented threads or tasks: answers for pages, in each behaviour, for a task that moves.

mod common;

use common::ask;
use serde_json::Value;
use std::sync::Arc;
use taskscope_event::models::instrument as i;
use taskscope_execution::lod::Window;
use taskscope_session::Session;
use taskscope_session::instrumentation::{DrawnName, DrawnRow, DrawnView};
use taskscope_session::model_views::ValueRow;
use taskscope_testkit::bytes;
use taskscope_testkit::instrumented::{InstrumentedThread, write_walker};
use taskscope_view::page::{Page, packed_model_rows};
use taskscope_view::server::Viewer;

fn viewer_of_walker() -> (tempfile::TempDir, Arc<Page>, Viewer) {
    let folder = tempfile::tempdir().unwrap();
    write_walker(folder.path());
    let page = Arc::new(Page::analysed(Session::open(folder.path()).unwrap()));
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    (folder, page, viewer)
}

/// Each row: its label, then its values with their start times, nanoseconds since the start.
fn row_texts(page: &Page, view: &DrawnView) -> Vec<String> {
    let row = |(row, values): (&DrawnRow, &ValueRow)| {
        let word = |value: i64| match usize::try_from(value - 1) {
            Ok(value) => view.words[value].as_str(),
            Err(_) => "-",
        };
        let steps = values.values.start.iter().zip(values.values.value.iter());
        let steps = steps.map(|(at, value)| format!("{} {}", at - page.start(), word(*value)));
        format!("{}: {}", row.label, steps.collect::<Vec<_>>().join(", "))
    };
    view.rows.iter().zip(&view.kept.rows).map(row).collect()
}

#[test]
fn each_behaviour_has_its_rows_per_thread_and_per_task() {
    let (_folder, page, _viewer) = viewer_of_walker();
    let rows = |name: &str| row_texts(&page, &page.shown_view(name.parse().unwrap()).unwrap());
    let plain = [
        "thread 100: 0 RUNTIME, 1000 RUNNING, 3000 CACHE, 5000 RUNTIME, 90000 -",
        "thread 101: 7000 CACHE, 9000 RUNNING, 13000 -",
    ];
    let stacked = [
        "thread 100: 0 RUNTIME, 1000 RUNNING, 5000 RUNTIME, 90000 -",
        "thread 100 · 2: 3000 CACHE, 5000 -",
        "thread 101: 7000 RUNNING, 13000 -",
        "thread 101 · 2: 7000 CACHE, 9000 -",
    ];
    assert_eq!(rows("shown.thread.plain.states"), plain);
    assert_eq!(rows("shown.thread.stacked-bursts.states"), plain);
    assert_eq!(rows("shown.thread.stacked-states.states"), stacked);
    assert_eq!(rows("shown.thread.stacked.states"), stacked);
    // The task's rows are empty while it is on no thread.
    let task_rows = ["walker 1: 1000 RUNNING, 3000 CACHE, 5000 -, 7000 CACHE, 9000 RUNNING, 13000 -"];
    assert_eq!(rows("shown.task.plain.states"), task_rows);
    let task_rows = [
        "walker 1: 1000 RUNNING, 5000 -, 7000 RUNNING, 13000 -",
        "walker 1 · 2: 3000 CACHE, 5000 -, 7000 CACHE, 9000 -",
    ];
    assert_eq!(rows("shown.task.stacked.states"), task_rows);
    let newest = [
        "thread 100: 2000 10 bytes, 4000 twenty bytes, 5000 -",
        "thread 101: 7000 twenty bytes, 8000 10 bytes, 12000 -",
    ];
    assert_eq!(rows("shown.thread.plain.key-0"), newest);
    assert_eq!(rows("shown.thread.stacked-states.key-0"), newest);
    let task_rows = [
        "walker 1: 2000 10 bytes, 5000 -, 7000 10 bytes, 12000 -",
        "walker 1 · 2: 4000 twenty bytes, 5000 -, 7000 twenty bytes, 8000 -",
    ];
    assert_eq!(rows("shown.task.stacked-bursts.key-0"), task_rows);
    assert_eq!(rows("shown.thread.plain.sub-states"), ["thread 101: 10500 SYNCHRONIZATION, 11000 -"]);
    assert_eq!(
        rows("shown.thread.plain.tasks"),
        ["thread 100: 1000 walker, 5000 -", "thread 101: 7000 walker, 14000 -"]
    );
    assert_eq!(
        rows("shown.task.plain.tasks"),
        ["walker 1: 1000 thread 100, 5000 -, 7000 thread 101, 14000 -"]
    );
    assert!(page.shown_view("shown.task.plain.key-1".parse().unwrap()).is_none(), "there is one key");
}

#[test]
fn the_server_returns_rows_values_and_choices() {
    let (_folder, page, viewer) = viewer_of_walker();
    let json = |target: &str| -> Value { serde_json::from_slice(&ask(&viewer, target).body).unwrap() };
    let choice = json("/api/shown");
    let names = |of: &Value| -> Vec<String> {
        of.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&choice["what"]), ["states", "sub-states", "tasks", "key-0"]);
    assert_eq!(choice["what"][3]["label"], "bursts of size");
    assert_eq!(choice["per"], serde_json::json!(["thread", "task"]));
    assert_eq!(
        choice["behaviours"],
        serde_json::json!(["plain", "stacked-states", "stacked-bursts", "stacked"])
    );
    let view = json("/api/shown?view=shown.thread.stacked.states");
    assert_eq!(view["rows"].as_array().unwrap().len(), 4);
    assert_eq!(view["tasks_left_out"], 0);
    // A thread's row names its track, so that its own section can be shown beside it.
    let track = view["rows"][3]["thread"].as_u64().unwrap() as usize;
    assert_eq!(page.execution.threads[track].tid, 101);
    let found = json("/api/section?view=shown.task.plain.states&track=0&at=8000");
    assert_eq!(
        (&found["label"], &found["start"], &found["end"]),
        (&"CACHE".into(), &7000.into(), &9000.into())
    );
    assert_eq!(found["title"], "states per task, plain");
    let next = json("/api/section?view=shown.task.plain.states&track=0&at=8000&step=next");
    assert_eq!((&next["label"], &next["start"]), (&"RUNNING".into(), &9000.into()));
    let bytes = ask(&viewer, "/api/rows?view=shown.task.plain.states&level=0&first=6990&count=20").body;
    let name: DrawnName = "shown.task.plain.states".parse().unwrap();
    let window = Window { first: page.start() + 6990, count: 20, width_log2: 0 };
    assert_eq!(bytes, packed_model_rows(&page.shown_view(name).unwrap().kept, &[0], window));
    let values: Vec<u32> =
        bytes[80..].chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!((values[9], values[10] > 0), (0, true), "{values:?}");
    for wrong in [
        "shown.thread.raw.states&track=0",
        "shown.task.plain.key-9&track=0",
        "shown.task.plain.states&track=7",
    ] {
        let status = ask(&viewer, &format!("/api/section?view={wrong}&at=1")).status;
        assert_eq!(status, 400, "{wrong}");
    }
    assert_eq!(ask(&viewer, "/api/shown?view=shown").status, 400);
}

#[test]
fn the_longest_of_many_tasks_and_the_outer_levels_of_deep_stacks_have_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut thread = InstrumentedThread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"job", b""])
        .event(0, i::STATE_PUSH, &bytes![7_u32]);
    for task in 1..=1200_u64 {
        let begin = 70 * task;
        let length = if [5, 700, 1199].contains(&task) { 60 } else { 40 };
        thread = thread
            .event(begin, i::TASK_CREATE, &bytes![task, 1_u32])
            .event(begin, i::TASK_ENTER, &bytes![task])
            .event(begin, i::STATE_PUSH, &bytes![12_u32])
            .event(begin + length, i::STATE_POP, &bytes![12_u32])
            .event(begin + length, i::TASK_END, &bytes![task]);
    }
    for _ in 0..40 {
        thread = thread.event(90_000, i::STATE_PUSH, &bytes![7_u32]);
    }
    thread.write(folder.path());
    let page = Page::analysed(Session::open(folder.path()).unwrap());
    let view = page.shown_view("shown.task.stacked.states".parse().unwrap()).unwrap();
    assert_eq!((view.rows.len(), view.tasks_left_out, view.is_cut), (500, 700, false));
    let labels: Vec<&str> = view.rows.iter().map(|row| row.label.as_str()).collect();
    assert!(["job 5", "job 700", "job 1199"].iter().all(|long| labels.contains(long)));
    let starts: Vec<u64> = view.kept.rows.iter().map(|row| row.values.start[0]).collect();
    assert!(starts.is_sorted(), "by their first time on a thread");
    let view = page.shown_view("shown.thread.stacked.states".parse().unwrap()).unwrap();
    assert_eq!((view.rows.len(), view.tasks_left_out, view.is_cut), (32, 0, true));
}

#[test]
fn a_program_without_instrumentation_has_no_such_views() {
    let (_folder, _page, viewer) = common::viewer_of_trace();
    let choice: Value = serde_json::from_slice(&ask(&viewer, "/api/shown").body).unwrap();
    assert_eq!(choice["what"], serde_json::json!([]));
    let (_, viewer) = common::viewer_of(common::small());
    assert_eq!(ask(&viewer, "/api/shown").status, 200);
    assert_eq!(ask(&viewer, "/api/shown?view=shown.thread.plain.states").status, 400);
}
