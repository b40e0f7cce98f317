//! The report and the viewer in a real browser: the scripts of `scripts/browser` drive Chromium.
//!
//! Skipped, with the reason, without Node, Chromium, or a way to get Playwright.

mod common;

use common::{devices as devices_of, doubtful, page_of, sampled, small, talking, viewer_of, viewer_of_trace};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use taskscope_execution::lod::Window;
use taskscope_execution::view::ViewFamily;
use taskscope_execution::{
    Change, Execution, ExecutionBuilder, Group, NO_TIME, Observer, RegionIndex, Section, SiteIndex, Span,
    State, TaskIndex, ThreadIndex,
};
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{FrameKind, Metric, ROOT};
use taskscope_session::Session;
use taskscope_session::model_views::ViewName;
use taskscope_testkit::instrumented::write_walker;
use taskscope_view::comparison::{Comparison, ShownRun, Side};
use taskscope_view::documents::Notice;
use taskscope_view::history::{DatedRun, History};
use taskscope_view::html;
use taskscope_view::page::{Direction, InstanceOf, LineHeat, Page, SampleView, SourceOf, View, packed_rows};
use taskscope_view::server::Viewer;
use taskscope_view::source_files::SourceRoots;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/browser")
}

/// The first section that a test can use, with its track.
fn find(page: &Page, wanted: impl Fn(&Span) -> bool) -> (ThreadIndex, Span) {
    let threads = page.execution.threads.iter().enumerate();
    let mut found = threads.filter_map(|(index, thread)| {
        let spans = thread.track.spans().skip(thread.track.len() / 3);
        Some((ThreadIndex(index as u32), spans.into_iter().find(|span| wanted(span))?))
    });
    found.next().expect("the generator makes such sections")
}

/// The library's answers to the browser's requests.
fn expected(page: &Page, address: &str) -> Value {
    let base = page.start();
    let (start, end) = page.execution.range();
    let section = |(track, span): (ThreadIndex, Span)| json!({ "track": track.0, "answer": page.section_at(track, span.start - base) });
    let task_section = find(page, |s| s.section.state == State::Task && s.nanos() > 1500);
    let wait = find(page, |s| s.section.state == State::Barrier && s.nanos() > 1500);
    // A task with a critical predecessor and a creator, so that every kind of edge is drawn.
    let tasks = &page.execution.tasks;
    let task = (0..tasks.len() as u32).map(TaskIndex).skip(tasks.len() / 3).find(|task| {
        let row = task.index();
        let known = tasks.ended[row] != NO_TIME && tasks.ended[row] - tasks.began[row] > 1500;
        known && page.dependences().critical_predecessor(&page.execution, *task).is_some()
    });
    let task = task.expect("the generator makes such tasks");
    let mut searches = Vec::new();
    let mut at = 0;
    for _ in 0..3 {
        let found = page.search("trsm", at, Direction::Next).expect("three matches");
        at = found.start();
        searches.push(found);
    }
    let (from, to) = (page.length() / 4, page.length() / 3);
    let rows: Vec<Value> = [(View::State, 1000), (View::Type, 500), (View::Task, 64)]
        .into_iter()
        .map(|(view, least)| {
            let window = Window::covering(start, end, least);
            let bytes = packed_rows(page, view, &[ThreadIndex(6)], window);
            let numbers: Vec<u32> =
                bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            json!({
                "view": view.name(), "track": 6, "level": window.width_log2, "count": window.count,
                "first": window.first - (start >> window.width_log2), "numbers": numbers,
            })
        })
        .collect();
    json!({
        "address": address,
        "length_ns": page.length(),
        "section": section(task_section),
        "wait": section(wait),
        "task": { "track": tasks.runner[task.index()].0, "answer": page.task(task) },
        "search": { "text": "trsm", "answers": searches },
        "range": { "from": from, "to": to, "answer": page.range(&page.all_tracks(), from, to) },
        "rows": rows,
    })
}

/// A view of threads of which words for values are known only once it was played, and one of these words.
fn named_when_played(page: &Page) -> (ViewName, String) {
    let models = page.models().expect("the trace has models");
    let families = models.families().iter().filter(|(family, _)| *family == ViewFamily::Thread);
    let found = families.flat_map(|(_, description)| &description.types).find_map(|known| {
        let name = ViewName { family: ViewFamily::Thread, number: known.number };
        let later = models.kept(name)?.labels.iter().find(|label| !known.values.contains(label))?.1.clone();
        Some((name, later))
    });
    found.expect("events name the task types")
}

/// The answers for a trace with views of models and with device queues.
fn expected_of_models(page: &Page, address: &str) -> Value {
    let name = ViewName { family: ViewFamily::Cpu, number: 13 };
    let view = page.model_view(name).expect("nOS-V's subsystem of each CPU");
    let values = &view.rows[1].values;
    let long = |row: &usize| values.value[*row] != 0 && values.start[row + 1] - values.start[*row] > 500;
    let row =
        (values.start.len() / 3..values.start.len() - 1).find(long).expect("the generator makes such values");
    let answer = page.value_at(name, 1, values.start[row] - page.start(), None);
    let operation = page.operation(2, page.length() / 2, Some(true));
    let range = page.range(&page.all_tracks(), page.length() / 4, page.length() / 2);
    json!({ "address": address, "view": name.to_string(), "row": 1, "value": answer, "operation": operation, "range": range })
}

fn notice(name: &str, text: &str) -> Notice {
    Notice { name: name.to_owned(), text: text.to_owned(), minor: false }
}

/// A trace with only device queues, with a note and a name with many marks.
fn queues_alone() -> Page {
    let mut session = Session::in_memory("devices.trace", Execution::default());
    session.devices = devices_of(1_000_000, 3_000_000);
    session.devices.queues[1].name = format!("que{}ue\n2", "\u{301}".repeat(60));
    let mut page = Page::reported(session);
    page.report.notices = vec![notice("note", "a note for a test")];
    page
}

#[test]
fn the_report_and_the_viewer_show_the_library_s_answers() {
    if !taskscope_prerequisite::has_browser(&scripts()) {
        return;
    }
    let (page, viewer) = viewer_of(small());
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let mut reported = page_of(small());
    let path = |frames: &[&str], ns: u64| json!({ "frames": frames, "ns": ns, "values": {} });
    let no_rows = json!({ "all": 0, "with_line": 0 });
    let call_paths = json!({
        "sorted_by": "time_ns", "is_time_sampled": false, "other_threads_ns": 0, "totals": {},
        "paths": [
            path(&["main", "solve", "gemm"], 700_000),
            path(&["main", "solve", "<b>trsm</b>"], 200_000),
            path(&["main", "\u{2067}write\u{202e}"], 100_000),
        ],
        "top_down": [], "bottom_up": [], "functions": [], "loops": [], "lines": [], "balances": [],
        "row_counts": { "functions": no_rows, "loops": no_rows, "lines": no_rows },
        "samples": { "count": 0 }, "counted_further_out": 0, "run_totals": {}, "processes": [],
        "notes": ["taken for a test"],
    });
    reported.report.start_unix_ns = Some(1_795_819_176_959_805_356);
    reported.report.call_paths = serde_json::from_value(call_paths).unwrap();
    // One table is longer than the page shows at first.
    let threads = &mut reported.report.thread_states;
    *threads = threads.iter().cycle().take(3 * threads.len()).cloned().collect();
    write("report.html", html::report(&reported));
    write("report.json", json!(reported.report).to_string());
    // Names without an end and without a blank, and a trace in which there are only device queues.
    let mut long = page_of(small());
    let endless = "W".repeat(100_000);
    long.report.findings[0].text = format!("threads wait for {endless}");
    long.report.notices = vec![notice("truncated-event", &format!("loom/{}", &endless[..300]))];
    write("long.html", html::report(&long));
    // A part of a run: of all threads but one no event is in it.
    let mut selected = small();
    selected.threads[1..].iter_mut().for_each(|thread| (thread.events, thread.selected) = (0, false));
    let mut part = page_of(selected);
    part.report.part = Some("--where 'thread = 1000'".to_owned());
    write("part.html", html::report(&part));
    write("devices.html", html::report(&queues_alone()));
    let (_trace, models, viewer_of_models) = viewer_of_trace();
    let mut answers = expected(&page, &viewer.address());
    answers["models"] = expected_of_models(&models, &viewer_of_models.address());
    // The same trace, without any requested view yet.
    let (_trace, _, viewer_of_unplayed) = viewer_of_trace();
    let (view, label) = named_when_played(&models);
    answers["unplayed"] =
        json!({ "address": viewer_of_unplayed.address(), "view": view.to_string(), "label": label });
    let walker = tempfile::tempdir().unwrap();
    write_walker(walker.path());
    let page_of_walker = Page::analysed(Session::open(walker.path()).unwrap());
    let viewer_of_walker = Viewer::start(Arc::new(page_of_walker), 0).unwrap();
    answers["walker"] = viewer_of_walker.address().into();
    let part = (models.length() / 4, models.length() / 2);
    let report = models.report_of_range(part.0, part.1).unwrap();
    answers["part"] = json!({ "from": part.0, "to": part.1, "report": *report });
    let (_, viewer_of_doubtful) = viewer_of(doubtful());
    answers["doubtful"] = viewer_of_doubtful.address().into();
    let (_, viewer_of_talking) = viewer_of(talking());
    answers["talking"] = viewer_of_talking.address().into();
    let queues = Arc::new(queues_alone());
    let viewer_of_queues = Viewer::start(queues.clone(), 0).unwrap();
    let devices = queues.report.devices.as_ref().unwrap();
    let remarks: Vec<&String> = devices.queues.iter().flat_map(|row| &row.queue.remarks).collect();
    let range = queues.range(&[], queues.length() / 4, queues.length() / 2);
    answers["queues"] = json!({ "address": viewer_of_queues.address(), "range": range, "remarks": remarks });
    write("expected.json", answers.to_string());
    for script in ["report.js", "pages.js", "viewer.js", "models.js", "doubtful.js"] {
        run(script, folder.path());
    }
}

/// Runs a script of the browser with a folder.
fn run(script: &str, folder: &Path) {
    let output = Command::new("node").arg(scripts().join(script)).arg(folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("steps passed"), "{out}");
}

/// The names of a thread's bars in a part of a run.
fn names_in(page: &Page, track: ThreadIndex, from: u64, to: u64) -> Value {
    let window = Window::covering(page.start() + from, page.start() + to, 400);
    let found = page.bars(View::State, &[track], window);
    let bars = found
        .bars
        .iter()
        .map(|(track, start, end, word, _)| json!([track, start, end, found.words[*word as usize]]));
    json!({ "from": from, "to": to, "track": track.0, "bars": bars.collect::<Vec<_>>() })
}

/// Tracks in each order of threads.
fn orders_of(page: &Page) -> Value {
    let threads = &page.execution.threads;
    let all: Vec<usize> = page.listed_tracks().into_iter().map(|track| track.index()).collect();
    let workers: Vec<usize> = all.iter().copied().filter(|track| threads[*track].worker).collect();
    // By the report's times: of useful code without a CPU, the time is lost.
    let (report, overview) = (json!(page.report), json!(page.overview()));
    let states = overview["states"].as_array().unwrap();
    let useful: Vec<&str> = (states.iter())
        .filter(|state| state["group"] == Group::Useful.name())
        .map(|state| state["name"].as_str().unwrap())
        .collect();
    let useful_share = |track: usize| {
        let (tid, pid) = (threads[track].tid, page.execution.processes[threads[track].process.index()].pid);
        let mut rows = report["thread_states"].as_array().unwrap().iter();
        let row = rows.find(|row| row["tid"] == tid && row["pid"] == pid).unwrap();
        let times = row["states"].as_object().unwrap();
        let sum = |is_counted: &dyn Fn(&str) -> bool| {
            let counted = times.iter().filter(|(name, _)| is_counted(name));
            counted.map(|(_, ns)| ns.as_u64().unwrap()).sum::<u64>() as f64
        };
        sum(&|name| useful.contains(&name)) / sum(&|_| true)
    };
    let mut lost = workers.clone();
    lost.sort_by(|a, b| useful_share(*a).total_cmp(&useful_share(*b)));
    let nth = |track: &usize| {
        let before = all.iter().take_while(|other| *other != track);
        before.filter(|other| threads[**other].process == threads[*track].process).count()
    };
    let mut together = all.clone();
    together.sort_by_key(nth);
    json!({ "workers": workers, "lost": lost, "nth": together })
}

#[test]
fn the_timeline_shows_names_colours_and_flows() {
    if !taskscope_prerequisite::has_browser(&scripts()) {
        return;
    }
    let (page, viewer) = viewer_of(small());
    let folder = tempfile::tempdir().unwrap();
    let (track, span) = find(&page, |s| s.section.state == State::Task && s.nanos() > 1500);
    let start = span.start - page.start();
    // A task with predecessors that waited in the queue.
    let tasks = &page.execution.tasks;
    let task = (0..tasks.len() as u32).map(TaskIndex).filter_map(|task| page.task(task));
    let task = task.skip(tasks.len() / 3).find(|task| {
        let is_split = task.start.as_ref().is_some_and(|start| Some(start.ready) < task.began);
        is_split && task.critical_predecessor.is_some() && task.ended.is_some()
    });
    let task = task.expect("the generator makes such tasks");
    let (talking_page, talking) = viewer_of(talking());
    std::fs::write(folder.path().join("talking.html"), html::report(&talking_page)).unwrap();
    let matrix = talking_page.communication_matrix(0, talking_page.length());
    let (from, to) = (start, start + 30_000);
    let types = [1, 2].map(|number| page.type_facts(0, InstanceOf::Number(number)));
    let expected = json!({
        "address": viewer.address(),
        "task": { "answer": task },
        "orders": orders_of(&page),
        "flows": { "from": from, "to": to, "answer": page.flows(from, to) },
        "totals": { "text": "trsm", "answer": page.search_totals("trsm") },
        "talking": { "address": talking.address(), "at": 20_000, "matrix": matrix },
        "section": { "track": track.0, "answer": page.section_at(track, start) },
        "type": types,
        "names": [names_in(&page, track, start, start + 20_000), names_in(&page, track, start - 1000, start + 4000)],
    });
    std::fs::write(folder.path().join("expected.json"), expected.to_string()).unwrap();
    run("timeline.js", folder.path());
}

/// Two ranks that talk, of which the first submits the operations of one of two queues.
fn talking_and_submitting() -> Page {
    let mut session = Session::in_memory("talking.trace", talking());
    session.devices = devices_of(12_000, 90_000);
    session.devices.queues[1].pid = Some(17);
    session.devices.queues[1].operations.iter_mut().for_each(|operation| operation.thread = 17);
    Page::analysed(session)
}

#[test]
fn rows_of_threads_have_their_queues_and_nested_sections_below() {
    if !taskscope_prerequisite::has_browser(&scripts()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = Arc::new(talking_and_submitting());
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    std::fs::write(folder.path().join("talking.html"), html::report(&page)).unwrap();
    let (sampled_page, viewer_of_samples) = viewer_of(sampled());
    std::fs::write(folder.path().join("sampled.html"), html::report(&sampled_page)).unwrap();
    let code = |at| sampled_page.sample_at(SampleView::Code, 0, at, None);
    // A part in which no thread has an event.
    let mut part = sampled();
    part.threads[1].name = "mill".to_owned();
    part.cut(4000, 12_500);
    part.threads.iter_mut().for_each(|thread| thread.events = 0);
    std::fs::write(folder.path().join("sampled-part.html"), html::report(&page_of(part))).unwrap();
    let root = folder.path().join("walker.trace");
    write_walker(&root);
    let walker = Arc::new(Page::analysed(Session::open(&root).unwrap()));
    let viewer_of_walker = Viewer::start(walker.clone(), 0).unwrap();
    let is_known =
        |section: &Section| !matches!(section.state, State::Unknown | State::NotStarted | State::Ended);
    let threads = walker.execution.threads.iter().enumerate();
    let unrecorded = threads
        .filter(|(_, thread)| !thread.track.spans().any(|span| is_known(&span.section)))
        .map(|(track, thread)| json!({ "track": track, "label": format!("thread {}", thread.tid) }));
    let expected = json!({
        "talking": { "address": viewer.address(), "section": page.section_at(ThreadIndex(0), 20_000) },
        "sampled": {
            "address": viewer_of_samples.address(),
            "lists": sampled_page.sample_lists(),
            "bar": code(2500),
            "blocked": code(9000),
            "functions": sampled_page.range(&sampled_page.all_tracks(), 0, 7000).functions,
        },
        "walker": {
            "address": viewer_of_walker.address(),
            "nested": walker.nested_list(),
            "unrecorded": unrecorded.collect::<Vec<Value>>(),
        },
    });
    std::fs::write(folder.path().join("expected.json"), expected.to_string()).unwrap();
    run("rows.js", folder.path());
}

#[test]
fn notes_and_links_outlive_the_page() {
    if !taskscope_prerequisite::has_browser(&scripts()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x.trace");
    std::fs::create_dir(&root).unwrap();
    let page = Arc::new(Page::analysed(Session::in_memory(&root, small())));
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    let (track, span) = find(&page, |s| s.section.state == State::Task && s.nanos() > 1500);
    let expected = json!({
        "address": viewer.address(),
        "token": viewer.token(),
        "section": { "track": track.0, "start": span.start - page.start(), "end": span.end - page.start() },
        "stored": folder.path().join("x.trace.notes.json"),
    });
    std::fs::write(folder.path().join("expected.json"), expected.to_string()).unwrap();
    run("notes.js", folder.path());
}

#[test]
fn sources_have_the_time_of_their_lines() {
    if !taskscope_prerequisite::has_browser(&scripts()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources");
    std::fs::create_dir_all(sources.join("src")).unwrap();
    let text: String = (1..=9000).map(|line| format!("\tline<b>{line}</b> \u{202e}= {line};\n")).collect();
    std::fs::write(sources.join("src/gemm.c"), text).unwrap();
    let row = |file: &str, line: u32, own: u64| json!({ "name": format!("{file}:{line}"), "function": "f", "file": file, "line": line, "state": null, "own": own, "total": own });
    let files = ["/build/src/gemm.c", "/build/src/gone.c", "/etc/passwd"];
    let lines = [
        row(files[0], 5000, 600),
        row("gemm.c", 5000, 100),
        row("src/gemm.c", 5002, 200),
        row(files[1], 7, 100),
        row(files[2], 1, 50),
    ];
    let work: Vec<Value> = (lines.iter())
        .map(|row| json!({ "file": row["file"], "line": row["line"], "work_ns": row["own"].as_u64().unwrap() / 2 }))
        .collect();
    let no_rows = json!({ "all": 0, "with_line": 0 });
    let call_paths = json!({
        "sorted_by": "time_ns", "is_time_sampled": false, "other_threads_ns": 0, "totals": {}, "paths": [], "top_down": [],
        "bottom_up": [], "functions": [], "loops": [], "lines": lines, "work_by_line": work, "balances": [],
        "row_counts": { "functions": no_rows, "loops": no_rows, "lines": no_rows }, "samples": { "count": 4 },
        "counted_further_out": 0, "run_totals": {}, "processes": [], "notes": [],
    });
    let mut page = page_of(small());
    page.report.call_paths = serde_json::from_value(call_paths).unwrap();
    page.report.start_unix_ns = Some(1);
    page.report.blame[0].place = Some("f [task at gemm.c:5001]".to_owned());
    let blamed = page.report.blame[0].ns;
    page.look_for_sources(SourceRoots::of([sources]));
    let answer = page.source(&SourceOf::Hottest, 0, page.length()).unwrap();
    // Of the time of samples, half is work.
    let heat = |line: u32, blamed_ns: u64, sampled_ns: u64| LineHeat {
        line,
        blamed_ns,
        sampled_ns,
        work_ns: sampled_ns / 2,
        ..LineHeat::default()
    };
    assert_eq!(answer.heat, [heat(5000, 0, 700), heat(5001, blamed, 0), heat(5002, 0, 200)]);
    assert_eq!((answer.lines.len(), answer.first_line, answer.lines_count), (4000, 3001, 9000));
    assert_eq!((answer.line, answer.is_newer), (Some(5000), Some(true)));
    assert_eq!(answer.files.iter().map(|row| row.file.as_str()).collect::<Vec<_>>(), files);
    assert_eq!(page.source(&SourceOf::File("/etc/hostname".to_owned()), 0, 9), None, "no file of the run");
    let refused = page.source(&SourceOf::File(files[2].to_owned()), 0, 9).unwrap();
    assert_eq!((refused.lines.len(), refused.path), (0, None), "outside of the roots");
    let viewer = Viewer::start(Arc::new(page), 0).unwrap();
    let expected = json!({ "address": viewer.address(), "answer": answer });
    std::fs::write(folder.path().join("expected.json"), expected.to_string()).unwrap();
    run("source.js", folder.path());
}

/// A run of four threads with a parallel region of each length, 10 µs apart; tasks fill them but on the first thread.
fn run_of_regions(lengths: &[u64]) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.1", 1);
    let threads = [1, 2, 3, 4].map(|tid| builder.add_thread(process, tid));
    let mut at = 1000;
    for thread in threads {
        builder.event(thread, at);
        builder.change(thread, at, Change::Becomes(Section::of(State::Serial)));
    }
    for (number, length) in lengths.iter().enumerate() {
        at += 10_000;
        let region = RegionIndex(number as u32);
        let (parent, site) = (RegionIndex::NONE, SiteIndex::NONE);
        builder.change(threads[0], at, Change::RegionBegins { region, parent, site, requested: 4 });
        for (thread, state) in
            threads.into_iter().zip([State::Barrier, State::Task, State::Task, State::Task])
        {
            builder.event(thread, at);
            builder.change(thread, at, Change::Becomes(Section::of(state)));
        }
        at += length;
        builder.change(threads[0], at, Change::RegionEnds { region });
        for thread in threads {
            builder.event(thread, at);
            builder.change(thread, at, Change::Becomes(Section::of(State::Serial)));
        }
    }
    for thread in threads {
        builder.event(thread, at + 10_000);
        builder.change(thread, at + 10_000, Change::ThreadEnds);
    }
    builder.finish()
}

/// Call paths below `main`, milliseconds.
fn tree(paths: &[(&str, u64)]) -> CallTree {
    let mut tree = CallTree::default();
    let label = |function: &str| Label {
        what: StepKind::Function,
        function: function.to_owned(),
        file: None,
        line: None,
        module: String::new(),
    };
    let main = tree.child(ROOT, FrameKind::User, label("main"));
    for (function, ms) in paths {
        let node = tree.child(main, FrameKind::User, label(function));
        tree.tree.add(node, Metric::TIME, ms * 1_000_000);
    }
    tree
}

#[test]
fn two_runs_are_compared_side_by_side() {
    if !taskscope_prerequisite::has_browser(&scripts()) {
        return;
    }
    let side = |name: &str, execution: Execution, paths: &[(&str, u64)]| {
        let (shown, _) = ShownRun::of(Session::in_memory(format!("{name}.trace"), execution));
        let numbers = vec![shown.numbers.clone()];
        Side { name: name.to_owned(), numbers, shown: Some(shown), tree: Some(tree(paths)) }
    };
    let before = [("gone", 200), ("grown", 300), ("same", 500)];
    let after = [("grown", 320), ("same", 480), ("new", 400)];
    let before = side("before", run_of_regions(&[100_000, 50_000, 200_000]), &before);
    let after = side("after", run_of_regions(&[100_000, 80_000, 50_000]), &after);
    let comparison = Comparison::of(&before, &after);
    let (Some(first), Some(second)) = (before.shown, after.shown) else { panic!("both have timelines") };
    let folder = tempfile::tempdir().unwrap();
    let text = html::comparison(&comparison, Some([&first.page, &second.page]));
    std::fs::write(folder.path().join("compare.html"), text).unwrap();
    // Twelve runs, the last six of which are longer.
    let runs = (0..12_u64).map(|run| {
        let length = if run < 6 { 100_000 } else { 180_000 } + 100 * (run % 5);
        let (shown, _) = ShownRun::of(Session::in_memory("run.trace", run_of_regions(&[length, 50_000])));
        DatedRun {
            name: format!("{run}.trace"),
            start_unix_ns: Some(1_795_819_176_000_000_000 + run),
            numbers: shown.numbers,
        }
    });
    let history = History::of(runs.collect());
    std::fs::write(folder.path().join("history.html"), html::history(&history)).unwrap();
    let longest = first.page.length().max(second.page.length());
    let pages = [first.page, second.page].map(Arc::new);
    let viewer = Viewer::start_of_two(&comparison, pages, 0).unwrap();
    let expected = json!({
        "address": viewer.address(),
        "comparison": comparison,
        "longest": longest,
        "history": history,
    });
    std::fs::write(folder.path().join("expected.json"), expected.to_string()).unwrap();
    run("compare.js", folder.path());
}
