//! Answers for pages equal the execution's data; names arrive as text.

mod common;

use common::{ask, doubtful, page_of, small, talking, viewer_of};
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use taskscope_execution::graph::{Access, DeclaredGraph};
use taskscope_execution::lod::{Flags, Window};
use taskscope_execution::{
    Change, Definition, Execution, ExecutionBuilder, Observer, Place, Section, State, TaskIndex, ThreadIndex,
    TypeIndex,
};
use taskscope_session::cache::Key;
use taskscope_testkit::script::Script;
use taskscope_view::documents::Named;
use taskscope_view::html;
use taskscope_view::page::{Direction, InstanceOf, Page, Position, SectionFacts, TypeFacts, View};

/// Nanoseconds by state of all threads in a range, by a walk over all sections.
fn naive_sums(execution: &Execution, from: u64, to: u64) -> [u64; State::ALL.len()] {
    let base = execution.range().0;
    let mut sums = [0; State::ALL.len()];
    let threads = (0..execution.threads.len() as u32).map(ThreadIndex);
    let edges = [State::NotStarted, State::Ended];
    for span in threads
        .flat_map(|thread| execution.spans_of_run(thread))
        .filter(|s| !edges.contains(&s.section.state))
    {
        let (start, end) = (span.start.max(base + from), span.end.min(base + to));
        sums[span.section.state as usize] += end.saturating_sub(start);
    }
    sums
}

#[test]
fn tables_of_a_range_sum_to_its_sections_and_list_time_off_the_cpu() {
    let page = page_of(small());
    let off = page_of(doubtful());
    let out_of_cpu_ns =
        |from, to| json!(off.range(&off.all_tracks(), from, to))["states"]["out_of_cpu"].as_u64();
    assert!(
        out_of_cpu_ns(0, off.length()).is_some_and(|ns| ns > 40_000)
            && out_of_cpu_ns(250_000, 260_000).is_none()
    );
    add_up(&page);
    add_up(&off);
}

fn add_up(page: &Page) {
    let length = page.length();
    for (from, to) in
        [(0, length), (length / 3, length / 2), (7, 8), (length / 2, length / 2), (0, u64::MAX / 2)]
    {
        let answer = json!(page.range(&page.all_tracks(), from, to));
        let sums = naive_sums(&page.execution, from, to);
        for state in State::ALL {
            assert_eq!(
                answer["states"][state.name()].as_u64().unwrap_or(0),
                sums[state as usize],
                "{}",
                state.name()
            );
        }
        let rows = answer["places"].as_array().unwrap();
        let mut names: Vec<_> =
            rows.iter().map(|row| (row["state"].as_str(), row["place"].as_str())).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        let places: u64 = rows.iter().map(|row| row["ns"].as_u64().unwrap()).sum();
        assert_eq!(places + answer["others_ns"].as_u64().unwrap(), sums.iter().sum::<u64>());
        let threads = answer["threads"].as_array().unwrap().iter();
        let by_thread: u64 = threads
            .flat_map(|t| t["states"].as_object().unwrap().values())
            .map(|v| v.as_u64().unwrap())
            .sum();
        assert_eq!(by_thread, sums.iter().sum::<u64>());
        let out: u64 = rows
            .iter()
            .filter(|row| row["state"] == "out_of_cpu")
            .map(|row| row["ns"].as_u64().unwrap())
            .sum();
        assert_eq!(out, sums[State::OutOfCpu as usize]);
    }
}

#[test]
fn stacked_buckets_add_up_to_the_sums_of_their_range() {
    let page = page_of(small());
    let (start, end) = page.execution.range();
    let window = Window::covering(start, end, 100);
    let buckets = page.timeline.breakdown(&page.execution, &page.all_tracks(), window);
    let mut sums = [0; State::ALL.len()];
    for bucket in buckets {
        sums.iter_mut().zip(bucket).for_each(|(sum, ns)| *sum += ns);
    }
    assert_eq!(sums, naive_sums(&page.execution, 0, u64::MAX / 2));
}

#[test]
fn a_section_is_found_at_each_of_its_nanoseconds_and_has_its_neighbours() {
    let page = page_of(small());
    let base = page.start();
    let track = ThreadIndex(5);
    let spans: Vec<_> = page.execution.threads[5].track.spans().collect();
    for at in [0, 1, spans.len() / 2, spans.len() - 1] {
        let span = spans[at];
        for time in [span.start, span.end - 1] {
            let found = page.section_at(track, time - base).unwrap();
            assert_eq!(found.start, span.start - base);
            assert_eq!(found.end, span.end - base);
            assert_eq!(found.state.0, span.section.state);
            let start = |found: Option<SectionFacts>| found.map(|found| found.start + base);
            assert_eq!(start(page.neighbour(track, time - base, true)), spans.get(at + 1).map(|s| s.start));
            let before = at.checked_sub(1).map(|at| spans[at].start);
            assert_eq!(start(page.neighbour(track, time - base, false)), before);
        }
    }
    assert!(page.section_at(track, u64::MAX).is_none());
}

#[test]
fn a_section_with_lost_events_is_marked() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.1", 1);
    let thread = builder.add_thread(process, 1);
    let mut change = |at, change| {
        builder.event(thread, at);
        builder.change(thread, at, change);
    };
    change(10, Change::Becomes(Section::of(State::Serial)));
    change(500, Change::Becomes(Section::of(State::Task)));
    change(1000, Change::Lost { events: 7, lasts: false });
    change(2000, Change::Becomes(Section::of(State::Barrier)));
    change(3000, Change::ThreadEnds);
    let page = page_of(builder.finish());
    let lost = |at: u64| page.section_at(thread, at - 10).unwrap().lost_events;
    assert_eq!([lost(100), lost(700), lost(2500)], [None, Some(7), None]);
}

#[test]
fn missing_and_doubtful_parts_are_flagged_and_explained() {
    let page = page_of(doubtful());
    let window = Window::covering(1000, 301_000, 60);
    let flagged = |track: u32, flag| -> Vec<u64> {
        let buckets = page.timeline.buckets(&page.execution, ThreadIndex(track), window);
        let times = (window.first..).map(|bucket| bucket << window.width_log2);
        let found: Vec<u64> =
            times.zip(&buckets).filter(|(_, bucket)| bucket.flags.has(flag)).map(|(at, _)| at).collect();
        found.first().into_iter().chain(found.last()).copied().collect()
    };
    // First and last bucket, each 4096 ns wide.
    assert_eq!(flagged(0, Flags::LOST), [98_304, 200_704]);
    assert_eq!(flagged(0, Flags::OFF_CPU), [0, 40_960]);
    assert_eq!(flagged(0, Flags::UNCERTAIN), [98_304, 200_704], "what was lost is not known");
    assert_eq!(flagged(1, Flags::UNCERTAIN), [98_304, 200_704]);
    assert_eq!(flagged(1, Flags::OFF_CPU), [94_208, 98_304], "the share of serial code, at its end");
    assert_eq!(flagged(2, Flags::UNCERTAIN), [200_704, 299_008]);
    // The breakdown equals the report: 40 µs known and 3 µs estimated out of CPU, with the same total.
    let breakdown = |threads: &[ThreadIndex], state: State| -> u64 {
        let buckets = page.timeline.breakdown(&page.execution, threads, window);
        buckets.iter().map(|sums| sums[state as usize]).sum()
    };
    let all = page.all_tracks();
    assert_eq!(breakdown(&all, State::OutOfCpu), 43_000);
    assert_eq!(breakdown(&all, State::Serial), 3 * 100_000 - 43_000);
    assert_eq!(State::ALL.iter().map(|state| breakdown(&all, *state)).sum::<u64>(), 3 * 300_000);
    let causes = page.report.causes.iter();
    let reported = causes.filter(|row| row.state == Named(State::OutOfCpu)).map(|row| row.ns);
    let workers: Vec<ThreadIndex> = page.execution.workers().map(|(index, _)| index).collect();
    assert_eq!(breakdown(&workers, State::OutOfCpu), reported.sum::<u64>());
    let value =
        |track: u32, at: u64, name: &str| json!(page.section_at(ThreadIndex(track), at))[name].clone();
    assert_eq!(value(0, 50_000, "off_cpu_ns"), 40_000);
    assert_eq!(value(0, 50_000, "off_cpu_estimated"), false);
    assert_eq!(value(1, 50_000, "off_cpu_ns"), 3000);
    assert_eq!(value(1, 50_000, "off_cpu_estimated"), true);
    assert_eq!(value(1, 250_000, "off_cpu_ns"), Value::Null);
    assert_eq!(value(1, 150_000, "uncertain"), "does-not-fit");
    assert_eq!(value(2, 250_000, "uncertain"), "stream-ends");
    assert_eq!(value(2, 150_000, "uncertain"), Value::Null);
}

#[test]
fn a_search_finds_the_nearest_match_on_any_thread() {
    let page = page_of(small());
    let base = page.start();
    let ty = |name: &str| page.execution.catalog.types.iter().position(|t| t.label == name).unwrap() as u32;
    let mut starts: Vec<u64> = Vec::new();
    let types: Vec<Place> = [ty("trsm"), ty("trsm") + 6].map(|t| Place::task_type(TypeIndex(t))).to_vec();
    for thread in &page.execution.threads {
        let spans = thread.track.spans().filter(|s| types.contains(&s.section.place));
        starts.extend(spans.map(|s| s.start));
    }
    starts.sort_unstable();
    let found = |at: u64, direction| page.search("TRSM", at, direction).map(|found| found.start() + base);
    assert!(starts.len() > 20);
    assert_eq!(found(0, Direction::Next), Some(starts[0]));
    let middle = starts[starts.len() / 2];
    assert_eq!(found(middle - base, Direction::Next), starts.iter().copied().find(|s| *s > middle));
    assert_eq!(found(middle - base, Direction::Previous), starts.iter().copied().rfind(|s| *s < middle));
    assert_eq!(found(page.length(), Direction::Next), None);
    assert!(page.search("no such name", 0, Direction::Next).is_none());
    let task = json!(page.search("task 17", 0, Direction::Next));
    assert_eq!(task["task"], 17);
}

#[test]
fn tasks_have_the_edges_of_the_task_graph() {
    let page = page_of(small());
    let tasks = &page.execution.tasks;
    let mut graph = DeclaredGraph::default();
    let mut expected: std::collections::BTreeMap<TaskIndex, Vec<TaskIndex>> = Default::default();
    for declared in &page.execution.dependences {
        let row = declared.task.index();
        let scope = (
            u64::from(tasks.parent[row].0) << 32 | u64::from(tasks.creator[row].0),
            u64::from(tasks.region[row].0),
        );
        let access = Access::from_ompt(declared.kind).expect("the generator declares in and out");
        let task_predecessors = expected.entry(declared.task).or_default();
        graph.access(scope, declared.task.0, declared.address, access, |before| {
            task_predecessors.push(TaskIndex(before))
        });
    }
    let mut edges = 0;
    for (task, mut others) in expected {
        others.sort();
        others.dedup();
        let found: Vec<TaskIndex> = page.dependences().predecessors(task).iter().map(|e| e.task).collect();
        assert_eq!(found, others, "{task:?}");
        for other in &others {
            let successors = page.dependences().successors(*other);
            assert!(successors.iter().any(|edge| edge.task == task), "{other:?} → {task:?}");
        }
        edges += others.len();
    }
    assert!(edges > 500, "{edges}");
}

#[test]
fn a_search_understands_the_filters_of_the_command_line() {
    let page = page_of(small());
    let base = page.start();
    let first = |wanted: &dyn Fn(&taskscope_execution::Span) -> bool| {
        let threads = page.execution.threads.iter();
        let spans =
            threads.flat_map(|thread| thread.track.spans().filter(|span| wanted(span)).map(|s| s.start));
        spans.min().map(|start| start - base)
    };
    let found = |text: &str| page.search(text, 0, Direction::Next).map(|found| found.start());
    let long = first(&|s| s.section.state == State::Barrier && s.nanos() > 20_000 && s.start > base);
    assert!(long.is_some());
    assert_eq!(found("state=barrier and duration>20us"), long);
    assert_eq!(found("group = sync and duration in 20us..2s and state != taskwait"), long);
    let gemm = page.execution.catalog.types.iter().position(|t| t.label == "gemm").unwrap() as u32;
    let gemms = [Place::task_type(TypeIndex(gemm)), Place::task_type(TypeIndex(gemm + 6))];
    assert_eq!(found("place ~ gem*"), first(&|s| gemms.contains(&s.section.place)));
    assert_eq!(found("type = gemm and state = lock_wait"), first(&|s| s.section.state == State::LockWait));
    assert_eq!(found("duration > 100s"), None);
}

/// A run with one task type, of this label.
fn labelled(label: &str) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.1", 1);
    let thread = builder.add_thread(process, 1);
    builder.define(Definition::Type { ty: TypeIndex(0), process, label });
    let mut change = |at, change| {
        builder.event(thread, at);
        builder.change(thread, at, change);
    };
    let (task, ty) = (TaskIndex(0), TypeIndex(0));
    let region = taskscope_execution::RegionIndex::NONE;
    change(10, Change::ThreadWorks);
    change(20, Change::TaskCreated { task, ty, parent: TaskIndex::NONE, region });
    change(30, Change::TaskStarts { task });
    change(30, Change::Becomes(Section { task, place: Place::task_type(ty), ..Section::of(State::Task) }));
    change(5000, Change::TaskEnds { task });
    change(5000, Change::Becomes(Section::of(State::Serial)));
    change(6000, Change::ThreadEnds);
    builder.finish()
}

/// The small timelines of findings mark uncertain intervals too.
#[test]
fn timelines_of_findings_mark_uncertain_intervals() {
    let text = html::report(&page_of(doubtful()));
    assert!(text.contains("\"uncertain\":[["));
    assert!(!html::report(&page_of(small())).contains("\"uncertain\":[["));
}

#[test]
fn names_with_markup_of_any_length_stay_text() {
    let invalid = String::from_utf8_lossy(b"\xff\xfe\x80 bad \xc3").into_owned();
    for label in ["</script><script>alert(1)</script>", "<!--", "]]>", "\u{202e}\0\r\n\"'&", &invalid] {
        let page = page_of(labelled(label));
        let text = html::report(&page);
        assert_eq!(text.matches("<script").count(), 3, "{label}");
        assert_eq!(text.matches("<!--").count(), 0, "{label}");
        assert!(text.contains("default-src 'none'"));
        let (_, viewer) = viewer_of(labelled(label));
        let answer = ask(&viewer, "/api/overview");
        let overview: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(overview["report"]["task_types"][0]["name"], label);
        assert!(
            answer.head.contains("application/json") && answer.head.contains("nosniff"),
            "{}",
            answer.head
        );
    }
}

#[test]
fn a_report_is_small_for_any_names_and_threads() {
    let long = "x".repeat(100_000);
    let text = html::report(&page_of(labelled(&long)));
    assert!(text.len() <= html::MAX_REPORT_BYTES);
    assert!(text.contains(&long), "100 kB fit");
    let longer = "y".repeat(3_000_000);
    assert!(html::report(&page_of(labelled(&longer))).len() <= html::MAX_REPORT_BYTES);
    let shape = taskscope_testkit::synthetic::Shape {
        threads: 2048,
        team: 64,
        processes_of_node: 4,
        events: 100_000,
        seed: 1,
    };
    let page: Page = page_of(taskscope_testkit::synthetic::execution(shape));
    let text = html::report(&page);
    assert!(text.len() <= html::MAX_REPORT_BYTES, "{}", text.len());
}

#[test]
fn the_report_of_a_page_is_the_report() {
    let session = taskscope_session::Session::in_memory("synthetic.trace", small());
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    let expected = json!(taskscope_view::report_json(&session, &analysis, &problems));
    assert_eq!(json!(page_of(small()).report), expected);
}

#[test]
fn a_page_from_the_cache_answers_as_the_one_that_was_stored() {
    use taskscope_view::page::{View, packed_rows};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("small.trace");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("stream.obs"), b"stands for a trace").unwrap();
    let key = Key::of(&root).unwrap();
    assert!(Page::stored(&root, &key).is_none());
    let page = page_of(small());
    page.store(&root, &key, &AtomicBool::new(false)).unwrap();
    let stored = Page::stored(&root, &key).expect("a cache that fits");
    let (one, other) = (json!(stored.overview()), json!(page.overview()));
    for (name, value) in other.as_object().unwrap() {
        assert_eq!(one[name], *value, "{name}");
    }
    let (start, end) = page.execution.range();
    for least in [3, 100, 5000] {
        let window = Window::covering(start + least / 3, end, least as u32);
        for view in View::ALL {
            let rows = |page: &Page| packed_rows(page, view, &page.all_tracks()[..3], window);
            assert!(rows(&stored) == rows(&page), "{} of {least}", view.name());
        }
    }
    for (page, other) in page.execution.threads.iter().zip(&stored.execution.threads) {
        assert!(page.track.spans().eq(other.track.spans()));
    }
    for at in [0, 1000, page.length() / 2, page.length() - 1] {
        let track = ThreadIndex(3);
        assert_eq!(stored.section_at(track, at), page.section_at(track, at));
        assert_eq!(stored.search("gemm", at, Direction::Next), page.search("gemm", at, Direction::Next));
    }
    for task in (0..page.execution.tasks.len() as u32).step_by(97) {
        assert_eq!(stored.task(TaskIndex(task)), page.task(TaskIndex(task)));
    }
    let range = |page: &Page| page.range(&page.all_tracks(), 5000, 90_000);
    assert_eq!(range(&stored), range(&page));
    assert_eq!(html::report(&stored), html::report(&page));
    std::fs::remove_file(folder.path().join("small.trace.cache")).unwrap();
    // Its bytes stay readable for open pages.
    assert_eq!(range(&stored), range(&page));
    assert!(Page::stored(&root, &key).is_none());
}

#[test]
fn a_page_from_the_cache_has_the_messages_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("talking.trace");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("stream.obs"), b"stands for a trace").unwrap();
    let key = Key::of(&root).unwrap();
    let page = page_of(talking());
    page.store(&root, &key, &AtomicBool::new(false)).unwrap();
    let stored = Page::stored(&root, &key).expect("a cache that fits");
    let all = |page: &Page| {
        let sections = page.all_tracks().into_iter().map(|track| page.section_at(track, 30_000));
        json!([
            page.communication_matrix(0, page.length()),
            page.flows(0, page.length()),
            sections.collect::<Vec<_>>()
        ])
    };
    assert_eq!(all(&stored), all(&page));
    assert!(!page.execution.communication.messages.is_empty());
}

#[test]
fn code_between_calls_names_them_and_the_processes_that_wait_for_it() {
    let page = page_of(talking());
    let around = |thread, at| json!(page.section_at(ThreadIndex(thread), at))["between_calls"].clone();
    let before_the_call = json!({ "after": null, "before": "MPI_Recv", "awaited_by": [], "waits": 0 });
    assert_eq!(around(0, 5000), before_the_call);
    assert_eq!(around(0, 20_000), Value::Null, "a call");
    let wait = json!({ "rank": 0, "pid": 17, "place": "MPI_Recv", "ns": 30_000 });
    let late = json!({ "after": null, "before": null, "awaited_by": [wait], "waits": 1 });
    assert_eq!(around(1, 20_000), late);
}

#[test]
fn a_task_in_the_queue_names_the_code_that_workers_are_in() {
    let mut script = Script::new(2, 1000, 200_000);
    script.task_type(0, 1000, 1, 0, "long").task_type(0, 1000, 2, 0, "late");
    script.fork(0, 2000, 1, 0, 2).join_team(1, 2000, 1, 1, 2);
    script.create(0, 10_000, 1, 1).create(0, 11_000, 2, 1).create(0, 12_000, 3, 2);
    script.arrive(1, 9000).arrive(0, 13_000);
    script.run(0, 14_000, 100_000, 1).run(1, 20_000, 90_000, 2).run(1, 90_000, 95_000, 3);
    script.depart(1, 110_000, 1).join(0, 110_000, 1);
    let page = page_of(script.play());
    let created = &page.execution.tasks.created;
    let task = |at| json!(page.task(TaskIndex(created.iter().position(|time| *time == at).unwrap() as u32)));
    let start = &task(12_000)["start"];
    assert_eq!(
        (&start["ready"], &start["workers"], &start["free_ns"]),
        (&json!(11_000), &json!(2), &json!(9000))
    );
    assert_eq!(start["without_cpu_ns"], json!(0));
    let busy = start["busy"].as_array().unwrap();
    assert_eq!((&busy[0]["name"], &busy[0]["ns"]), (&task(10_000)["short_type"], &json!(146_000)));
    let all: u64 = busy.iter().map(|row| row["ns"].as_u64().unwrap()).sum();
    assert_eq!(all + 9000, 2 * 78_000, "each worker is free or in code: {busy:?}");
}

#[test]
fn a_row_of_a_task_type_has_its_instances_in_their_order() {
    let mut script = Script::new(2, 1000, 200_000);
    script.task_type(0, 1000, 1, 0, "long").task_type(0, 1000, 2, 0, "late");
    script.fork(0, 2000, 1, 0, 2).join_team(1, 2000, 1, 1, 2);
    script.create(0, 10_000, 1, 1).create(0, 11_000, 2, 1).create(0, 12_000, 3, 2);
    script.arrive(1, 9000).arrive(0, 13_000);
    script.run(0, 14_000, 100_000, 1).run(1, 20_000, 90_000, 2).run(1, 90_000, 95_000, 3);
    script.depart(1, 110_000, 1).join(0, 110_000, 1);
    let page = page_of(script.play());
    let base = page.start();
    let facts = |slot, of| page.type_facts(slot, of);
    let first = facts(0, InstanceOf::Time(0)).unwrap();
    assert_eq!((first.tasks, first.shares, first.threads), (2, 0, 2));
    assert_eq!((first.sum_ns, first.median_ns), (156_000, 86_000));
    let times =
        |facts: &TypeFacts| facts.shown.as_ref().map(|row| (row.number, row.track, row.start, row.end));
    assert_eq!(times(&first), Some((1, 0, 14_000 - base, 100_000 - base)));
    let longest: Vec<(usize, u64)> = first.longest.iter().map(|row| (row.number, row.ns)).collect();
    assert_eq!(longest, [(1, 86_000), (2, 70_000)]);
    // Of two that run the newer one; after the end the last one.
    let second = Some((2, 1, 20_000 - base, 90_000 - base));
    for of in [InstanceOf::Time(50_000 - base), InstanceOf::Number(2), InstanceOf::Time(199_000)] {
        assert_eq!(times(&facts(0, of).unwrap()), second, "{of:?}");
    }
    assert_eq!(times(&facts(0, InstanceOf::Time(95_000 - base)).unwrap()).unwrap().0, 1, "the one that runs");
    assert_eq!(facts(0, InstanceOf::Number(3)).unwrap().shown, None);
    assert_eq!(facts(1, InstanceOf::Time(0)).unwrap().tasks, 1);
    assert_eq!(facts(2, InstanceOf::Time(0)), None);
}

#[test]
fn a_search_hints_at_names_with_lines_and_at_times_without_a_unit() {
    let page = page_of(labelled("main [task at a.c:30]"));
    let totals = |text: &str| page.search_totals(text);
    assert_eq!(totals("mian:30").hints, ["main:30"]);
    assert_eq!(totals("type=main:31").hints.first().map(String::as_str), Some("type=main:30"));
    assert!(totals("main:30").sections > 0 && totals("main:30").hints.is_empty());
    assert_eq!(totals("duration>5 and time<1ms").bare_times, ["5"]);
    assert!(totals("duration>5us").bare_times.is_empty() && totals("main").bare_times.is_empty());
}

#[test]
fn a_search_finds_the_names_that_bars_have() {
    let page = page_of(small());
    let window = Window::covering(page.start(), page.start() + page.length(), 4000);
    let bars = page.bars(View::State, &page.all_tracks(), window);
    assert!(bars.words.len() > 3, "{:?}", bars.words);
    for name in &bars.words {
        assert!(page.search(name, 0, Direction::First).is_some(), "{name}");
    }
}

#[test]
fn a_search_from_either_end_finds_sections_that_begin_there() {
    let page = page_of(small());
    let spans = || page.execution.threads.iter().flat_map(|thread| thread.track.spans());
    let base = page.start();
    let mut begins_with_the_run = 0;
    for state in State::ALL {
        let state_starts =
            || spans().filter(|span| span.section.state == state).map(|span| span.start - base);
        let filter = format!("state={}", state.name());
        let found = |direction| page.search(&filter, 7, direction).map(|found| found.start());
        assert_eq!(found(Direction::First), state_starts().min(), "{filter}");
        assert_eq!(found(Direction::Last), state_starts().max(), "{filter}");
        begins_with_the_run += usize::from(state_starts().min() == Some(0));
    }
    assert!(begins_with_the_run > 0);
}

#[test]
fn a_search_continues_to_sections_of_the_same_nanosecond_on_another_thread() {
    let mut execution = small();
    let copy = execution.threads[1].clone();
    execution.threads.push(copy);
    let page = page_of(execution);
    let last = ThreadIndex(page.tracks() as u32 - 1);
    let is_barrier = |span: &taskscope_execution::Span| span.section.state == State::Barrier;
    let mut expected: Vec<(u64, u32)> = Vec::new();
    for (track, thread) in page.execution.threads.iter().enumerate() {
        let starts = thread.track.spans().filter(is_barrier).map(|span| span.start - page.start());
        expected.extend(starts.map(|start| (start, track as u32)));
    }
    expected.sort_unstable();
    assert!(expected.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[1].1 == last.0));
    let walk = |from: Direction, step: Direction| {
        let mut walked = Vec::new();
        let mut next = page.search("state=barrier", 0, from);
        while let Some(found) = next {
            let found = json!(found);
            let at = |name: &str| found[name].as_u64().unwrap();
            walked.push((at("start"), at("track") as u32));
            let here = Position::on_track(at("start"), ThreadIndex(at("track") as u32));
            next = page.search("state=barrier", here, step);
        }
        walked
    };
    assert!(walk(Direction::First, Direction::Next) == expected);
    expected.reverse();
    assert!(walk(Direction::Last, Direction::Previous) == expected);
}

#[test]
fn the_small_timeline_of_a_finding_shows_time_off_the_cpu() {
    let page = page_of(doubtful());
    let text = html::report(&page);
    let data = text.split_once("id=\"overview\">").unwrap().1.split_once("</script>").unwrap().0;
    let overview: Value = serde_json::from_str(data).unwrap();
    let instances = overview["instance_sections"].as_array().unwrap();
    let mut off = 0;
    for instance in instances.iter().filter(|instance| instance["whole"] == true) {
        let (from, to) = (instance["from"].as_u64().unwrap(), instance["to"].as_u64().unwrap());
        assert!(from < to && to <= page.length(), "{instance}");
        for row in instance["tracks"].as_array().unwrap() {
            let thread = ThreadIndex(row["track"].as_u64().unwrap() as u32);
            let base = page.start();
            let mut expected = Vec::new();
            for span in page.execution.spans_of_run(thread) {
                let edge = matches!(span.section.state, State::NotStarted | State::Ended);
                let (start, end) = ((span.start - base).max(from), (span.end - base).min(to));
                if start < end && !edge {
                    expected.push((start, end, span.section.state as u64));
                }
            }
            let numbers = |section: &Value| [0, 1, 2].map(|at| section[at].as_u64().unwrap());
            let shown = row["sections"].as_array().unwrap().iter().map(numbers).map(|[a, b, c]| (a, b, c));
            assert!(shown.eq(expected.iter().copied()), "{row} {expected:?}");
            off += expected.iter().filter(|(.., state)| *state == State::OutOfCpu as u64).count();
        }
    }
    assert!(off > 0, "{instances:?}");
}
