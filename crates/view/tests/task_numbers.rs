//! Tasks have the numbers of their runtimes wherever they are shown or searched for.

mod common;

use common::{ask, page_of, small};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use taskscope_event::models::{instrument as i, nanos6, nosv};
use taskscope_execution::{NO_NUMBER, State, TaskIndex};
use taskscope_session::Session;
use taskscope_session::cache::Key;
use taskscope_testkit::bytes;
use taskscope_testkit::instrumented::InstrumentedThread;
use taskscope_testkit::script::Script;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};
use taskscope_view::page::{Direction, Page, Position, TaskQuery};
use taskscope_view::server::Viewer;

fn page(root: &Path) -> Page {
    Page::analysed(Session::open(root).unwrap())
}

/// All sections that a search finds, as task, its name, and its begin in milliseconds.
fn found(page: &Page, text: &str) -> Vec<(Value, String, u64)> {
    let mut all = Vec::new();
    let mut next = page.search(text, 0, Direction::First);
    while let Some(section) = next {
        let section = json!(section);
        let (at, track) = (section["start"].as_u64().unwrap(), section["track"].as_u64().unwrap() as u32);
        let name = section["task_ref"]["name"].as_str().unwrap_or_default().to_string();
        all.push((section["task"].clone(), name, at / 1_000_000));
        let from = Position::on_track(at, taskscope_execution::ThreadIndex(track));
        next = page.search(text, from, Direction::Next);
    }
    all
}

/// Tasks 500, 90 000 and, twice one after the other, 7; in region 31.
fn openmp(root: &Path) {
    let ms = |ms: u64| ms * 1_000_000;
    let mut script = Script::new(2, ms(1), ms(20));
    script.site(0, ms(1), 1, 0x100).site(0, ms(1), 3, 0x300).task_type(0, ms(1), 5, 3, "work");
    script.fork(0, ms(2), 31, 1, 2).join_team(1, ms(2), 31, 1, 2);
    script.create(0, ms(3), 500, 5).create(0, ms(3), 90_000, 5).create(0, ms(3), 7, 5);
    script.run(0, ms(4), ms(6), 500).run(0, ms(7), ms(8), 7).run(1, ms(4), ms(9), 90_000);
    script.create(0, ms(9), 7, 5).run(0, ms(11), ms(14), 7);
    script.arrive(0, ms(15)).arrive(1, ms(12)).join(0, ms(15), 31).depart(1, ms(15), 31);
    script.write(root).unwrap();
}

#[test]
fn openmp_tasks_and_regions_have_the_recorders_numbers() {
    let here = tempfile::tempdir().unwrap();
    openmp(here.path());
    let page = page(here.path());
    assert_eq!(found(&page, "task 500"), [(500.into(), "task 500".to_string(), 3)]);
    let twice = [(7.into(), "task 7".to_string(), 6), (7.into(), "task 7".to_string(), 10)];
    assert_eq!(found(&page, "task 7"), twice);
    assert_eq!(found(&page, "task = 7 and state = task"), twice);
    assert_eq!(found(&page, "task 0"), []);
    assert_eq!(found(&page, "task 1"), []);
    let section = json!(page.search("task 90000", 0, Direction::First));
    assert_eq!((&section["region"], &section["region_name"]), (&31.into(), &"31".into()));
    assert_eq!(found(&page, "region = 31 and state = task").len(), 4);

    // The second of two tasks of one number, addressed by its link.
    let viewer = Viewer::start(Arc::new(page), 0).unwrap();
    let task = |query: &str| -> Value {
        let answer = ask(&viewer, &format!("/api/task?{query}"));
        assert_eq!(answer.status, 200, "{query}");
        serde_json::from_slice(&answer.body).unwrap()
    };
    let first = task("task=7");
    assert_eq!(
        (&first["task"], &first["others_count"], &first["began"]),
        (&7.into(), &1.into(), &6_000_000.into())
    );
    let other = &first["others"][0];
    let second =
        task(&format!("task={}&pid={}&at={}", other["number"].as_str().unwrap(), other["pid"], other["at"]));
    assert_eq!((&second["task"], &second["began"]), (&7.into(), &10_000_000.into()));
    assert_eq!(task("task=500")["others_count"], 0);
    assert_eq!(ask(&viewer, "/api/task?task=1").status, 404);
}

#[test]
fn steps_of_the_critical_path_have_numbers_only_where_they_are_of_tasks() {
    let here = tempfile::tempdir().unwrap();
    openmp(here.path());
    let session = Session::open(here.path()).unwrap();
    let (graph, _) = session.task_graph().unwrap();
    let numbers: BTreeSet<Option<u64>> = (0..graph.tasks.len()).map(|row| graph.tasks.number(row)).collect();
    assert_eq!(numbers, [None, Some(7), Some(500), Some(90_000)].into());
    for row in 0..graph.tasks.len() {
        let is_code = graph.types[graph.tasks.ty[row] as usize].implicit;
        assert_eq!(graph.tasks.number(row).is_none(), is_code, "{row}");
    }
    assert_eq!(graph.data_number(0), None);
}

/// Ranks of nOS-V, each of which calls its first task 5.
fn ranks(root: &Path) {
    for rank in 0..2 {
        let (pid, begin) = (10 + rank, 2000 + 500 * u64::from(rank));
        let stream = StreamBuilder::new(rank, pid, pid).require(&["ovni", "nosv"]).rank(rank, 2).cpus(1);
        stream
            .execute(1000, 0)
            .jumbo(1010, nosv::TYPE_CREATE, &type_payload(1, "solve"))
            .event(1020, nosv::TASK_CREATE, &pair(5, 1))
            .event(1030, nosv::TASK_CREATE, &pair(60 + rank, 1))
            .event(begin, nosv::TASK_EXECUTE, &pair(5, 0))
            .event(begin + 100, nosv::TASK_END, &pair(5, 0))
            .event(begin + 200, nosv::TASK_EXECUTE, &pair(60 + rank, 0))
            .event(begin + 300, nosv::TASK_END, &pair(60 + rank, 0))
            .end(9000)
            .write(root)
            .unwrap();
    }
}

#[test]
fn a_number_is_found_in_every_process_with_its_process() {
    let here = tempfile::tempdir().unwrap();
    ranks(here.path());
    let page = page(here.path());
    let names = |text: &str| {
        let names: BTreeSet<String> = found(&page, text).into_iter().map(|(_, name, _)| name).collect();
        names.into_iter().collect::<Vec<_>>()
    };
    let all = names("task 5");
    assert_eq!(all.len(), 2, "{all:?}");
    for name in &all {
        assert!(name.starts_with("task 5 of "), "{name}");
        assert_eq!(names(name), std::slice::from_ref(name));
    }
    assert_eq!(names("task 60").len(), 1);
    let (graph, _) = Session::open(here.path()).unwrap().task_graph().unwrap();
    let processes: BTreeSet<Option<&str>> =
        (0..graph.tasks.len() as u32).map(|t| graph.process_of(t)).collect();
    assert_eq!(processes.len(), 2, "{processes:?}");
}

#[test]
fn tasks_of_a_program_have_its_own_numbers_and_bodies_of_task_fors_none() {
    let here = tempfile::tempdir().unwrap();
    let large = 0xffff_ffff_0000_0003_u64;
    InstrumentedThread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"walker", b""])
        .event(0, i::TASK_CREATE, &bytes![large, 1_u32])
        .event(0, i::TASK_CREATE, &bytes![9_u64, 1_u32])
        .event(1000, i::TASK_ENTER, &bytes![9_u64])
        .event(5000, i::TASK_END, &bytes![9_u64])
        .event(6000, i::TASK_ENTER, &bytes![large])
        .event(7000, i::TASK_END, &bytes![large])
        .write(here.path());
    let session = Session::open(here.path()).unwrap();
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    let report = json!(taskscope_view::report_json(&session, &analysis, &problems));
    let starver = &report["starvation"]["by"][0];
    assert_eq!((&starver["longest_task"], &starver["longest_pid"]), (&9.into(), &100.into()));
    let page = page(here.path());
    let section = json!(page.search(&format!("task {large}"), 0, Direction::First));
    assert_eq!(section["task"], large);
    assert_eq!(section["task_ref"]["number"], large.to_string());

    let here = tempfile::tempdir().unwrap();
    let stream = StreamBuilder::new(0, 1, 10).require(&["ovni", "nanos6"]).cpus(1).execute(1000, 0);
    stream
        .point(1000, nanos6::MAIN_BEGIN)
        .point(1300, nanos6::TASK_RUNNING_TASK_FOR_BEGIN)
        .point(1500, nanos6::TASK_RUNNING_TASK_FOR_END)
        .point(2000, nanos6::MAIN_END)
        .end(2000)
        .write(here.path())
        .unwrap();
    let page = self::page(here.path());
    let section = json!(page.search("state = task", 0, Direction::First));
    assert_eq!(
        (&section["task"], &section["task_ref"]["name"]),
        (&Value::Null, &"a task without number".into())
    );
    let query = TaskQuery { number: None, pid: Some(1), at: section["task_ref"]["at"].as_u64() };
    let task = json!(page.task(page.find_tasks(&query)[0]));
    assert_eq!((&task["task"], &task["type"]), (&Value::Null, &"task for".into()));
}

#[test]
fn numbers_survive_the_cache_and_parts_of_the_time() {
    let here = tempfile::tempdir().unwrap();
    openmp(here.path());
    let whole = page(here.path());
    let key = Key::of(here.path()).unwrap();
    whole.store(here.path(), &key, &Default::default()).unwrap();
    let stored = Page::stored(here.path(), &key).unwrap();
    assert_eq!(found(&stored, "task 7"), found(&whole, "task 7"));
    assert_eq!(found(&stored, "region = 31"), found(&whole, "region = 31"));
    let mut execution = Session::open(here.path()).unwrap().execution;
    let execution = &mut execution;
    execution.cut(10_500_000, 13_000_000);
    let kept: Vec<u64> = execution.tasks.number.iter().copied().collect();
    assert_eq!(kept, [7]);

    let synthetic = page_of(small());
    let tasks = &synthetic.execution.tasks;
    assert!(tasks.number.iter().all(|number| *number != NO_NUMBER));
    assert_eq!(synthetic.find_tasks(&TaskQuery { number: Some(17), ..TaskQuery::default() }).len(), 2);
    let is_of_task = |s: &taskscope_execution::Span| s.section.state == State::Task;
    let track = &synthetic.execution.threads[0].track;
    let span = track.spans().find(is_of_task).unwrap();
    let number = tasks.number(span.section.task).unwrap();
    let at = span.start - synthetic.start();
    assert_eq!(synthetic.section_at(taskscope_execution::ThreadIndex(0), at).unwrap().task, Some(number));
    assert_eq!(tasks.number(TaskIndex::NONE), None);
}
