//! Rows of the models' views and of device queues: answers for pages equal the replayed and recorded data.

mod common;

use common::{ask, viewer_of_trace};
use serde_json::{Value, json};
use std::sync::Arc;
use taskscope_event::models::instrument as i;
use taskscope_execution::ThreadIndex;
use taskscope_execution::lod::Window;
use taskscope_execution::view::ViewFamily;
use taskscope_session::Session;
use taskscope_session::cache::Key;
use taskscope_session::model_views::{KeptView, ModelViews, ViewName};
use taskscope_testkit::bytes;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::instrumented::InstrumentedThread;
use taskscope_testkit::trace_builder::StreamBuilder;
use taskscope_view::page::{CounterKind, Page, packed_model_rows};
use taskscope_view::server::Viewer;

#[test]
fn values_over_the_network_are_those_that_were_played() {
    let (folder, page, viewer) = viewer_of_trace();
    let models: Value = serde_json::from_slice(&ask(&viewer, "/api/models").body).unwrap();
    let families = models["families"].as_array().unwrap();
    let names: Vec<&str> = families.iter().map(|f| f["family"].as_str().unwrap()).collect();
    assert_eq!(names, ["thread", "cpu", "nosv-breakdown"]);
    let (mut views, mut values) = (0, 0);
    for family in families {
        for known in family["types"].as_array().unwrap() {
            let name: ViewName = known["name"].as_str().unwrap().parse().unwrap();
            let view = page.model_view(name).unwrap();
            assert_eq!(view.rows.len(), family["rows"].as_array().unwrap().len());
            views += 1;
            for (number, row) in view.rows.iter().enumerate() {
                for at in (0..row.values.start.len()).step_by(97) {
                    let start = row.values.start[at];
                    let target =
                        format!("/api/section?view={name}&track={number}&at={}", start - page.start());
                    let answer: Value = serde_json::from_slice(&ask(&viewer, &target).body).unwrap();
                    assert_eq!(answer["value"], row.values.value[at], "{target}");
                    assert_eq!(answer["start"], start - page.start());
                    let next = row.values.start.get(at + 1).copied().unwrap_or(row.values.end);
                    assert_eq!(answer["end"], next - page.start());
                    let after: Value =
                        serde_json::from_slice(&ask(&viewer, &format!("{target}&step=next")).body).unwrap();
                    assert_eq!(after["value"].as_i64(), row.values.value.get(at + 1).copied(), "{target}");
                    values += 1;
                }
            }
            // Buckets of one nanosecond hold exactly one value.
            let first = page.start() + page.length() / 2;
            let bytes = packed_model_rows(&view, &[0], Window { first, count: 64, width_log2: 0 });
            for (at, packed) in (first..).zip(bytes[64 * 4..].chunks_exact(4)) {
                let shown = u32::from_le_bytes(packed.try_into().unwrap());
                let answer = page.value_at(name, 0, at - page.start(), None);
                let value = answer.map_or(0, |answer| answer.value);
                assert_eq!(i64::from(shown), value, "{name} at {at}");
            }
        }
    }
    assert!(views > 10 && values > 200, "{views} {values}");
    // Rows of threads name their tracks.
    let rows = families[0]["rows"].as_array().unwrap();
    for row in rows {
        let track = row["thread"].as_u64().unwrap() as usize;
        let tid = page.execution.threads[track].tid.to_string();
        assert!(row["label"].as_str().unwrap().ends_with(&tid), "{row}");
    }
    let state = ViewName { family: ViewFamily::Thread, number: 4 };
    assert!(page.model_view(state).unwrap().labels.contains(&(1, "Running".to_string())));
    for query in
        ["rows?view=thread.9999&level=9&first=0&count=9", "rows?view=cpu.4&level=9&first=0&count=9&tracks=77"]
    {
        assert_eq!(ask(&viewer, &format!("/api/{query}")).status, 400, "{query}");
    }
    drop(folder);
}

#[test]
fn a_trace_that_is_gone_has_no_views_of_models() {
    let (_, viewer) = common::viewer_of(common::small());
    assert_eq!(ask(&viewer, "/api/models").body, br#"{"families":[]}"#);
    assert_eq!(ask(&viewer, "/api/rows?view=thread.4&level=9&first=0&count=9").status, 400);
}

#[test]
fn every_operation_of_a_queue_is_found_at_its_time_and_from_its_neighbours() {
    let (_folder, page, viewer) = viewer_of_trace();
    let rows = page.overview().devices.rows;
    assert_eq!(rows.len(), 3, "two lanes of one queue, one of the other: {rows:?}");
    let mut seen = 0;
    for (number, queue) in [(0, 0), (1, 0), (2, 1)] {
        let queue = &page.queues.queues()[queue];
        let lane = if number == 1 { 1 } else { 0 };
        let own: Vec<_> = queue.operations.iter().filter(|o| o.lane == lane).collect();
        let mut at = 0;
        for operation in &own {
            let since = operation.start - page.start();
            let found = page.operation(number, since, None).unwrap();
            assert_eq!((found.start, found.seq), (since, operation.seq));
            assert_eq!(found.label, queue.names[operation.name as usize]);
            assert_eq!(found.waited_ns, Some(operation.start - operation.append));
            let target = format!("/api/section?view=devices&track={number}&at={at}&step=next");
            let next: Value = serde_json::from_slice(&ask(&viewer, &target).body).unwrap();
            assert_eq!(next["seq"], operation.seq, "{target}");
            at = since;
            seen += 1;
        }
        let last = own.last().unwrap();
        assert!(page.operation(number, last.end - page.start(), None).is_none());
        let before = page.operation(number, last.start - page.start(), Some(false)).unwrap();
        assert_eq!(before.seq, own[own.len() - 2].seq);
    }
    assert!(seen > 100, "{seen}");
    // The time that a row shows is that of its operations.
    let window = Window::covering(page.start(), page.start() + page.length(), 500);
    let bytes = page.queues.packed(&[0, 2], window, None);
    assert_eq!(bytes.len(), 2 * 2 * 4 * window.count as usize);
    let lost = bytes[..bytes.len() / 2].chunks_exact(4).filter(|bucket| bucket[2] & 2 != 0).count();
    assert_eq!(lost, 1, "the lost operation is flagged in one bucket");
}

#[test]
fn queues_and_the_way_to_the_models_are_in_the_cache() {
    use std::sync::atomic::AtomicBool;
    use taskscope_session::cache::{Key, places};
    let (folder, page, _viewer) = viewer_of_trace();
    let key = Key::of(folder.path()).unwrap();
    page.store(folder.path(), &key, &AtomicBool::new(false)).unwrap();
    let stored = taskscope_view::page::Page::stored(folder.path(), &key).expect("a cache that fits");
    for place in places(folder.path()) {
        let _ = std::fs::remove_file(place);
    }
    assert_eq!(stored.queues.queues(), page.queues.queues());
    assert_eq!((stored.start(), stored.length()), (page.start(), page.length()));
    for at in (0..page.length()).step_by(page.length() as usize / 50) {
        assert_eq!(stored.operation(1, at, Some(true)), page.operation(1, at, Some(true)));
    }
    assert_eq!(stored.model_families(), page.model_families());
}

#[test]
fn cpus_that_are_workers_are_listed_with_the_threads() {
    let (_folder, page, _viewer) = viewer_of_trace();
    let overview = json!(page.overview());
    let tracks = overview["tracks"].as_array().unwrap();
    let cpus: Vec<&Value> = tracks.iter().filter(|track| track["kind"] == "cpu").collect();
    assert_eq!((cpus.len(), tracks.len()), (6, 12));
    for cpu in cpus {
        assert_eq!(cpu["worker"], true);
        let process = cpu["process"].as_u64().unwrap() as usize;
        assert_eq!(overview["processes"][process]["cpus"], true);
    }
}

/// Ranks that occur only in the metadata of streams.
#[test]
fn ranks_of_metadata_order_the_threads_and_the_cpus_of_their_looms() {
    let root = tempfile::tempdir().unwrap();
    // A loom a rank, as Nanos6 has it; the launcher gave process ids as it liked.
    for (loom, pid, rank) in [(1, 100, 2), (2, 101, 0), (3, 102, 1)] {
        let stream = StreamBuilder::new(loom, pid, pid).require(&["ovni", "nosv"]).cpus(1).rank(rank, 3);
        stream.execute(0, 0).end(1000).write(root.path()).unwrap();
    }
    let execution = Session::open(root.path()).unwrap().execution;
    let mut threads: Vec<ThreadIndex> = (0..execution.threads.len() as u32).map(ThreadIndex).collect();
    execution.sort_by_rank(&mut threads);
    let cpus_and_rank = |thread: &ThreadIndex| {
        let process = execution.threads[thread.index()].process;
        let rank = execution.communication.ranks.get(&process.0).map(|rank| (rank.rank, rank.ranks));
        (execution.processes[process.index()].has_cpus, rank)
    };
    let expected: Vec<_> =
        (0..3).flat_map(|rank| [(false, Some((rank, 3))), (true, Some((rank, 3)))]).collect();
    assert_eq!(threads.iter().map(cpus_and_rank).collect::<Vec<_>>(), expected);
}

/// A thread with a backward clock, on a CPU: both rows, from a run and from a file.
#[test]
fn rows_of_models_are_marked_where_they_are_uncertain() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x.trace");
    let stream = StreamBuilder::new(1, 5, 5).require(&["ovni", "nosv"]).cpus(1).execute(1000, 0);
    let [begins, ends] = [*b"VAs", *b"VAS"].map(taskscope_event::Code);
    let stream = stream.point(3000, begins).point(2000, ends).end(5000);
    stream.write(&root).unwrap();
    let window = Window { first: 0, count: 60, width_log2: 7 };
    let flagged = |view: &KeptView| {
        let bytes = packed_model_rows(view, &[0], window);
        let buckets = bytes[..4 * 60].chunks_exact(4).enumerate();
        buckets.filter(|(_, bucket)| bucket[2] & 4 != 0).map(|(at, _)| at as u64 * 128).collect::<Vec<_>>()
    };
    let within =
        |from: u64, to: u64| (0..60).map(|at| at * 128).filter(move |at| at + 128 > from && *at < to);
    for name in ["thread.13", "cpu.13"].map(|name| name.parse::<ViewName>().unwrap()) {
        let mut views = ModelViews::open(&root).unwrap();
        views.keep_files(Key::of(&root), 0);
        let played = views.view(name).unwrap();
        let stored = views.stored(name).expect("the file fits");
        assert_eq!(flagged(&played), within(2000, 3000).collect::<Vec<_>>(), "{name}");
        assert_eq!(flagged(&stored), flagged(&played), "{name}");
    }
    let plain = ModelViews::open(&root).unwrap();
    assert!(plain.families().iter().all(|(_, family)| family.types.iter().all(|known| known.number != 60)));
}

#[test]
fn a_view_of_a_large_trace_is_played_once_and_again_when_the_trace_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x.trace");
    let generator =
        Generator { runtime: Runtime::Nosv, threads: 4, threads_per_loom: 2, events: 4000, seed: 1 };
    generator.write(&root).unwrap();
    let name: ViewName = "cpu.13".parse().unwrap();
    let open = || {
        let mut views = ModelViews::open(&root).unwrap();
        views.keep_files(Key::of(&root), 0);
        views
    };
    let shown = |view: &KeptView| {
        let rows = view
            .rows
            .iter()
            .map(|row| (row.values.start.to_vec(), row.values.value.to_vec(), row.values.end));
        (view.title.clone(), view.labels.clone(), rows.collect::<Vec<_>>())
    };
    let played = open().view(name).unwrap();
    assert!(folder.path().join("x.trace.cache.cpu.13").exists());
    assert!(!played.is_empty());
    let stored = open().stored(name).expect("the file fits");
    assert_eq!(shown(&stored), shown(&played));
    assert_eq!(shown(&open().view(name).unwrap()), shown(&played));
    let whole = ModelViews::open(&root).unwrap().view(name).unwrap();
    assert_eq!(shown(&whole), shown(&played), "one pass for all shows the same");
    // Another view has no file yet, and a trace that has changed none that fits.
    assert!(open().stored("cpu.11".parse().unwrap()).is_none());
    let stream = root.join("loom.node.0/proc.1000/thread.10000/stream.json");
    let text = std::fs::read_to_string(&stream).unwrap();
    std::fs::write(&stream, text + " ").unwrap();
    assert!(open().stored(name).is_none());
    // A truncated file is rejected too.
    open().view(name).unwrap();
    let path = folder.path().join("x.trace.cache.cpu.13");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    assert!(open().stored(name).is_none());
}

#[test]
fn nested_sections_and_recorded_counters_are_those_of_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let value = |key: u32, value: u64| bytes![key, value];
    let thread = InstrumentedThread::new(7, 7)
        .name(0, i::STATE, &bytes![40_u32, 0_u32], &[b"solve", b""])
        .name(0, i::STATE, &bytes![41_u32, 0_u32], &[b"factor", b""])
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"residual", b"", b"ppm"])
        .name(0, i::KEY, &bytes![2_u32, 2_u32, 0_u32], &[b"constant", b"", b""])
        .event(0, i::STATE_PUSH, &bytes![40_u32])
        .event(1000, i::STATE_PUSH, &bytes![41_u32])
        .event(2000, i::POINT, &value(1, 900))
        .event(2500, i::POINT, &value(2, 5))
        .event(3000, i::STATE_POP, &bytes![41_u32])
        .event(4000, i::POINT, &value(1, 20))
        .event(4500, i::POINT, &value(2, 5))
        .event(8000, i::STATE_POP, &bytes![40_u32]);
    thread.write(folder.path());
    let page = Arc::new(Page::analysed(Session::open(folder.path()).unwrap()));
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    let list: Value = serde_json::from_slice(&ask(&viewer, "/api/nested").body).unwrap();
    let labels: Vec<_> = list["rows"].as_array().unwrap().iter().map(|row| &row["label"]).collect();
    assert_eq!(labels, ["level 1", "level 2"]);
    assert_eq!((&list["tells_more"], &list["is_cut"]), (&true.into(), &false.into()));
    let found = |row: u32, at: u64, step| {
        page.nested_at(row, at, step).map(|found| (found.label.unwrap(), found.start, found.end))
    };
    let factor = Some(("factor".to_owned(), 1000, 3000));
    assert_eq!(found(1, 1500, None), factor);
    assert_eq!(found(1, 0, Some(true)), factor);
    assert_eq!(found(1, 3500, None), None);
    assert_eq!(found(0, 1500, None), Some(("solve".to_owned(), 0, 8000)));
    // A number that never changes is not a counter.
    let counters = [json!({ "name": "recorded.0", "label": "residual [ppm], last value" })];
    assert_eq!(list["counters"].as_array().unwrap()[..], counters);
    let buckets = page.counter(CounterKind::Recorded(0)).range(page.start() + 2000, page.start() + 6000);
    assert_eq!((buckets.min, buckets.max, buckets.mean()), (20, 900, Some(460.0)));
}
