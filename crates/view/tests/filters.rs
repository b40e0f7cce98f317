//! Matches of a filter are flagged at every zoom; invalid filters are rejected; ranges become traces.

mod common;

use common::{ask, small, viewer_of, viewer_of_trace};
use serde_json::json;
use taskscope_execution::lod::{Flags, Window};
use taskscope_execution::{Group, ThreadIndex};
use taskscope_session::Session;
use taskscope_view::page::{View, packed_rows_with};

#[test]
fn every_bucket_that_holds_a_match_is_flagged_and_no_other() {
    let (page, _viewer) = viewer_of(small());
    let (start, end) = page.execution.range();
    let matches = page.matches("group = sync and duration > 2us");
    for least in [1, 40, 900] {
        let window = Window::covering(start, end, least);
        let bytes = packed_rows_with(&page, View::State, &[ThreadIndex(2)], window, Some(&matches));
        let mut flagged = 0;
        for (bucket, packed) in (window.first..).zip(bytes.chunks_exact(4)) {
            let (from, to) = (bucket << window.width_log2, (bucket + 1) << window.width_log2);
            let spans = page.execution.threads[2].track.spans();
            let holds = spans.into_iter().any(|s| {
                s.section.state.group() == Group::Sync && s.nanos() > 2000 && s.start < to && s.end > from
            });
            assert_eq!(packed[2] & Flags::MATCH.0 != 0, holds, "bucket {bucket} of {least}");
            flagged += usize::from(holds);
        }
        assert!(flagged > 0);
    }
}

#[test]
fn a_filter_that_cannot_be_meant_is_refused_with_the_reason() {
    let (_, viewer) = viewer_of(small());
    for (text, why) in [
        ("stat%3Dbarrier", "sections have no field called `stat`"),
        ("state%3D", "this is not a filter"),
        ("duration%3E%3E1", "this is not a filter"),
        ("%28state%3Dbarrier", "this is not a filter"),
        (
            "duration%3E1xs",
            "`xs` in `1xs` is no unit of time; units are: ns, us, ms, s, min (at character 10)",
        ),
        ("state%3Dbarier", "no state is called `barier`"),
        ("group%3Dsink", "no group is called `sink`; one of: useful, runtime, start, sync, mutex"),
        ("thread%3D5ms", "a number and no time"),
        ("time%20in%209ms..3ms", "the range ends before it begins"),
    ] {
        for target in [
            format!("/api/search?at=0&text={text}"),
            format!("/api/rows?level=9&first=0&count=9&tracks=0&where={text}"),
            format!("/api/filter?where={text}"),
        ] {
            let answer = ask(&viewer, &target);
            let body = String::from_utf8_lossy(&answer.body);
            assert!(answer.status == 400 && body.contains(why), "{target}: {} {body}", answer.status);
        }
    }
    for text in
        ["gemm", "barrier", "state%3Dbarrier", "task%2012", "nothing%20of%20this%20name", "sum%20in%20loop"]
    {
        assert_eq!(ask(&viewer, &format!("/api/filter?where={text}")).body, b"true", "{text}");
    }
}

#[test]
fn a_search_finds_operations_of_queues_too() {
    use taskscope_view::page::Direction;
    let (_folder, page, _viewer) = viewer_of_trace();
    let first = json!(page.search("gemm_KERNEL", 0, Direction::Next));
    assert_eq!((&first["view"], &first["label"]), (&"devices".into(), &"gemm_kernel\u{202e}".into()));
    let mut at = first["start"].as_u64().unwrap();
    let mut count = 1;
    while let Some(found) = page.search("gemm_kernel", at, Direction::Next) {
        at = found.start();
        count += 1;
    }
    // Every third of 90 and of 105 operations; those that begin together are one step.
    assert!((35..=65).contains(&count), "{count}");
    let last = page.search("gemm_kernel", page.length(), Direction::Previous).unwrap();
    assert_eq!(last.start(), at);
}

#[test]
fn search_matches_are_flagged_in_device_queues() {
    let (_folder, page, viewer) = viewer_of_trace();
    let window = Window::covering(page.start(), page.start() + page.length(), 4000);
    let flagged = |text: &str, row: u32| -> Vec<bool> {
        let bytes = page.queues.packed(&[row], window, Some(&page.matches(text)));
        let buckets = bytes[..bytes.len() / 2].chunks_exact(4);
        buckets.map(|packed| packed[2] & Flags::MATCH.0 != 0).collect()
    };
    // The first queue has lanes; the last row is the second queue, whose operations do not overlap.
    let row = page.queues.len() as u32 - 1;
    let queue = &page.queues.queues()[1];
    let named: Vec<_> = queue
        .operations
        .iter()
        .filter(|operation| queue.names[operation.name as usize].contains("gemm_kernel"))
        .collect();
    assert!(named.len() > 10 && named.len() < queue.operations.len());
    for (bucket, is_flagged) in (window.first..).zip(flagged(" GEMM_kernel ", row)) {
        let (from, to) = (bucket << window.width_log2, (bucket + 1) << window.width_log2);
        let holds = named.iter().any(|o| o.start < to && o.end.max(o.start + 1) > from);
        assert_eq!(is_flagged, holds, "bucket {bucket}");
    }
    for text in ["state=barrier", "no such name"] {
        assert!(!flagged(text, row).contains(&true), "{text}");
    }
    // The name of an operation, with any characters, is not taken as a malformed filter.
    for (text, status) in [("%3Ci%3Ecopy%3C%2Fi%3E", 200), ("%3Ci%3Ecopi%3C%2Fi%3E", 400)] {
        assert_eq!(ask(&viewer, &format!("/api/filter?where={text}")).status, status, "{text}");
        let rows = format!("/api/rows?view=devices&level=9&first=0&count=9&tracks=0&where={text}");
        assert_eq!(ask(&viewer, &rows).status, status, "{text}");
    }
}

#[test]
fn a_range_becomes_a_trace_that_opens() {
    let (_folder, page, viewer) = viewer_of_trace();
    let (from, to) = (page.length() / 4, page.length() / 2);
    let answer = ask(&viewer, &format!("/api/slice?from={from}&to={to}"));
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body[..answer.body.len().min(200)]));
    let place = tempfile::tempdir().unwrap();
    tar::Archive::new(&answer.body[..]).unpack(place.path()).unwrap();
    let sliced = Session::open(place.path().join("slice.trace")).unwrap();
    let whole = page.report.events;
    assert!(sliced.events > whole / 8 && sliced.events < whole / 2, "{} of {whole}", sliced.events);
    let (start, end) = sliced.execution.range();
    // Sections open at the borders are opened just before and closed just after.
    assert!(start + 1000 >= page.start() + from && end <= page.start() + to + 1000);
    for query in ["slice?from=9&to=9", "slice?from=10&to=5", "slice?from=x&to=5", "slice?from=0"] {
        assert_eq!(ask(&viewer, &format!("/api/{query}")).status, 400, "{query}");
    }
    let beyond = page.length() * 1000;
    let answer = ask(&viewer, &format!("/api/slice?from={beyond}&to={}", beyond + 5));
    assert_eq!(answer.status, 404);
    assert!(String::from_utf8_lossy(&answer.body).contains("no thread lives in this range"));
    // Nothing of a run that was never on disk.
    let (_, nowhere) = viewer_of(small());
    assert_eq!(ask(&nowhere, "/api/slice?from=0&to=500").status, 500);
}
