//! OTF2: an archive written by libotf2, own exports, and damaged archives.

mod common;

use common::opened;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use taskscope_execution::State;
use taskscope_import::otf2::{anchor_of, read_otf2};
use taskscope_import::spans::Run;
use taskscope_session::Session;

/// An archive of two ranks, written by the Python package otf2 3.2 with a resolution of a microsecond. The second location
/// has two regions under each other's number, and a clock that is 7 ticks ahead.
fn archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archive")
}

fn read(directory: &Path) -> Result<Run, String> {
    read_otf2(&anchor_of(directory).expect("an anchor")).map_err(|errors| errors.to_string())
}

/// Time of each state and name over all threads, nanoseconds.
fn times(session: &Session) -> BTreeMap<(State, String), u64> {
    let mut times = BTreeMap::new();
    for span in session.execution.threads.iter().flat_map(|thread| thread.track.spans()) {
        let name = session.places.name(span.section.state, span.section.place);
        *times.entry((span.section.state, name)).or_default() += span.end - span.start;
    }
    times.retain(|_, time| *time > 0);
    times
}

#[test]
fn an_archive_of_libotf2_is_read() {
    let run = read(&archive()).unwrap();
    assert_eq!((run.span_count(), run.process_count(), run.flows.len()), (6, 2, 1));
    assert_eq!(run.losses.iter().count(), 0, "{:?}", run.losses);
    let flow = run.flows[0];
    assert_eq!((flow.from, flow.from_at, flow.to, flow.to_at), (0, 1_011_000, 1, 1_023_000));
    assert_eq!(run.threads[1].life, Some((993_000, 1_193_000)), "7 µs earlier than its own clock");
    let session = opened(&run);
    let found: BTreeMap<(State, &str), u64> = BTreeMap::from([
        ((State::Task, "work [task at a.c:12]"), 90_000 + 144_000),
        ((State::Task, "!$omp task"), 10_000),
        ((State::Taskwait, "!$omp taskwait"), 20_000),
        ((State::Communication, "MPI_Send"), 10_000),
        ((State::Communication, "MPI_Recv"), 26_000),
        // From the begin of the program to the first region, from the last one to its end; the ends of both threads.
        ((State::Unknown, "not recorded"), 100_000 + 200_000 + 2),
    ]);
    let expected: BTreeMap<(State, String), u64> =
        found.into_iter().map(|((state, name), time)| ((state, name.to_owned()), time)).collect();
    assert_eq!(times(&session), expected);
    assert_eq!(session.execution.communication.messages.len(), 1);
}

/// A copy of the archive.
fn copy() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("traces")).unwrap();
    for name in ["traces.otf2", "traces.def", "traces/0.def", "traces/0.evt", "traces/1.def", "traces/1.evt"]
    {
        fs::copy(archive().join(name), root.path().join(name)).unwrap();
    }
    root
}

/// A copy of the archive with one changed file, read.
fn changed(file: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<Run, String> {
    let root = copy();
    let path = root.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    read(root.path()).map_err(|error| error.replace(&root.path().display().to_string(), ""))
}

#[test]
fn damaged_archives_are_refused_with_file_and_byte() {
    let cut = |length: usize| move |bytes: &mut Vec<u8>| bytes.truncate(length);
    let set = |at: usize, new: &'static [u8]| {
        move |bytes: &mut Vec<u8>| bytes[at..at + new.len()].copy_from_slice(new)
    };
    let event = "traces/0.evt";
    for (result, expected) in [
        (
            changed("traces.otf2", set(7, &[9])),
            "/traces.otf2: byte 7: the archive has version 9 of the format; this reads 1 to 3",
        ),
        (
            changed("traces.otf2", set(1, &[0x23])),
            "/traces.otf2: byte 1: the archive is big-endian; these are not read",
        ),
        (
            changed("traces.otf2", set(29, &[2])),
            "/traces.otf2: byte 29: the archive is compressed; these are not read",
        ),
        (
            changed("traces.otf2", cut(20)),
            "/traces.otf2: byte 20: it ends in a record, 8 bytes were expected",
        ),
        (
            changed("traces.otf2", set(12, &[0; 8])),
            "/traces.otf2: byte 12: chunks of 0 bytes have no room for a record",
        ),
        (changed(event, cut(60)), "/traces/0.evt: byte 60: the file ends without its end mark"),
        (changed(event, cut(40)), "/traces/0.evt: byte 33: it ends in a record, 8 bytes were expected"),
        (changed(event, set(0, &[7])), "/traces/0.evt: byte 0: there is no header of a chunk"),
        // The first time is that of the begin of the program, at byte 19; the region of the first Enter is at byte 42.
        (
            changed(event, set(19, &[0xff; 8])),
            "/traces/0.evt: byte 18: time 18446744073709551615 is beyond the clock of 2^63 ns",
        ),
        (
            changed(event, set(19, &[0xff, 0xff, 0, 0])),
            "/traces/0.evt: byte 32: time 1000 is before the time 65535 of the event before",
        ),
        (changed(event, set(42, &[0xff])), "/traces/0.evt: byte 42: region 4294967295 is not defined"),
        (changed("traces.def", cut(100)), "/traces.def"),
        (
            changed("traces.def", |bytes| bytes[18] = 99),
            "/traces.def: byte 0: the clock is not defined, or has no ticks",
        ),
        // The first location's number, and the first clock offset of the second one.
        (
            changed("traces.def", set(159, &[0xff])),
            "/traces.def: byte 157: a location has the number of none, 2^64 - 1",
        ),
        (
            changed("traces/1.def", set(0x35, &[0, 0, 0, 0, 0, 0, 0, 0x80])),
            "/traces/1.evt: byte 18: time 1000 is not on the global clock by the location's clock offsets",
        ),
    ] {
        let error = result.unwrap_err();
        assert!(error.starts_with(expected), "{error}\ninstead of\n{expected}");
    }
}

#[test]
fn no_damage_of_a_byte_is_a_panic() {
    let root = copy();
    let mut accepted = 0;
    for file in ["traces.def", "traces/0.evt", "traces/1.def"] {
        let path = root.path().join(file);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(7) {
            for value in [1, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                fs::write(&path, bytes).unwrap();
                accepted += u32::from(read(root.path()).is_ok());
            }
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(accepted > 0, "names and unread fields may have any value");
}

#[test]
fn a_directory_with_no_or_two_anchors_is_not_an_archive() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(anchor_of(root.path()), None);
    fs::write(root.path().join("a.otf2"), "not it").unwrap();
    assert_eq!(anchor_of(root.path()), None);
    for name in ["b.otf2", "c.otf2"] {
        fs::copy(archive().join("traces.otf2"), root.path().join(name)).unwrap();
    }
    assert_eq!(anchor_of(root.path()), None);
    assert!(anchor_of(&root.path().join("b.otf2")).is_some());
}
