//! Every reader of a file that is not a stream's events: damaged ones are refused or read in part, never a
//! panic, a hang or a loss of memory.
//!
//! Like `hostile_input.rs`; `make soak-input` runs both for as long as wanted and says how many inputs there were.

use std::path::Path;
use taskscope_event::framing::file_header;
use taskscope_event::models::{ovni, samples};
use taskscope_event::{FNV_START, fnv1a};
use taskscope_filter::{Filter, TimeRange};
use taskscope_session::selection::FIELDS_OF_EVENTS;
use taskscope_session::{Places, Session};
use taskscope_testkit::trace_builder::{StreamBuilder, push_event};

/// Replacement bytes: half of the time characters of the formats.
const KNOWN: &[u8] = b"0123456789-+.eE{}[]\",:/*\n\t %#=<>~'() ";
/// Numbers at which arithmetic breaks.
const EXTREME: [&str; 8] = [
    "18446744073709551615",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "1e308",
    "-1",
    "NaN",
    "",
];

type Changes = Vec<(u16, u8, u8)>;

fn iterations() -> usize {
    std::env::var("BOLERO_RANDOM_ITERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(50)
}

/// A copy of `valid` with a few changes.
fn damaged(valid: &[u8], changes: &Changes) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for (place, value, kind) in changes.iter().take(20) {
        if bytes.is_empty() {
            break;
        }
        let place = usize::from(*place) % bytes.len();
        let known = KNOWN[usize::from(*value) % KNOWN.len()];
        match kind % 8 {
            0 => bytes[place] ^= 1 << (value % 8),
            1 => bytes[place] = *value,
            2 => bytes[place] = known,
            3 => bytes.insert(place, known),
            4 => bytes.truncate(place),
            5 => bytes[place..].iter_mut().take(8).for_each(|byte| *byte = 255),
            6 => {
                let end = bytes[place..].iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(0);
                bytes.splice(place..place + end, EXTREME[usize::from(*value) % EXTREME.len()].bytes());
            }
            _ => {
                let piece = bytes[place..(place + usize::from(*value)).min(bytes.len())].to_vec();
                bytes.splice(place..place, piece);
            }
        }
    }
    bytes
}

fn check_all(valid: &[u8], read: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    read(valid);
    bolero::check!().with_iterations(iterations()).with_type::<Changes>().for_each(|changes| {
        read(&damaged(valid, changes));
    });
    // For `make soak-input`, which adds these up.
    println!("\ninputs: {}", iterations());
}

fn check_text(valid: &str, read: impl Fn(&str) + std::panic::RefUnwindSafe) {
    check_all(valid.as_bytes(), |bytes| read(&String::from_utf8_lossy(bytes)));
}

/// An unfinished trace: its newest events are in a tail.
fn unfinished() -> StreamBuilder {
    let mut stream = StreamBuilder::new(0, 1, 1).require(&["ovni"]).cpus(1).execute(10, 0);
    stream.metadata["ovni"].as_object_mut().unwrap().remove("finished");
    stream
}

/// Opens a trace in which `file` lies beside the stream and holds `bytes`.
fn open_with(stream: &StreamBuilder, file: &str, bytes: &[u8]) {
    let root = tempfile::tempdir().unwrap();
    let directory = stream.write(root.path()).unwrap();
    let directory: &Path =
        if file.ends_with(".txt") || file.ends_with(".json") { root.path() } else { &directory };
    std::fs::write(directory.join(file), bytes).unwrap();
    if let Ok(session) = Session::open(root.path()) {
        let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
        taskscope_view::report_json(&session, &analysis, &problems);
        let _ = Places::of(&session.execution);
    }
}

#[test]
fn tails_and_checkpoints() {
    let mut tail = vec![0; 4096 + 2048];
    tail[..8].copy_from_slice(&(36_u64 << 3).to_le_bytes());
    let mut events = Vec::new();
    (20..40).for_each(|clock| push_event(&mut events, ovni::BURST, clock, &[]));
    tail[4096..4096 + events.len()].copy_from_slice(&events);
    tail[2048..2048 + 24].copy_from_slice(&events[..24]);
    check_all(&tail, |bytes| open_with(&unfinished(), "stream.tail", bytes));
    let checkpoint = [&24_u64.to_le_bytes()[..], &events].concat();
    check_all(&checkpoint, |bytes| open_with(&unfinished(), "stream.checkpoint", bytes));
}

#[test]
fn files_beside_streams() {
    let stream = StreamBuilder::new(0, 1, 1).require(&["ovni"]).cpus(1).execute(10, 0).end(50);
    let mut sampled = file_header().to_vec();
    let frames: Vec<u8> = [1_u64, 2, 3, 4, 5, 6].iter().flat_map(|word| word.to_le_bytes()).collect();
    (20..30).for_each(|clock| push_event(&mut sampled, samples::SAMPLE, clock, &frames[..16]));
    check_all(&sampled, |bytes| open_with(&stream, "samples.obs", bytes));
    let offsets = b"rank hostname offset_median offset_mean offset_std\n0 node0 0 0.5 1\n1 node1 -20 1e3 7\n";
    check_all(offsets, |bytes| open_with(&stream, "clock-offsets.txt", bytes));
    let run = br#"{"schema":"taskscope.run.1","command":["a","b"],"host":"h","start_unix_ns":17,"wall_ns":18,
        "exit_code":0,"signal":null,"recording_cost_ns_per_event":15.5,"notices":[]}"#;
    check_all(run, |bytes| open_with(&stream, "taskscope-run.json", bytes));
}

#[test]
fn filters_and_ranges() {
    let filter =
        "not (thread = 101 or taskid in 1..7) and name ~ 'TASK_*' and time in 1.5ms..2s and label != \"x\"";
    check_text(filter, |text| drop(Filter::parse(text, &FIELDS_OF_EVENTS)));
    check_text("10%..1.5s", |text| drop(TimeRange::parse(text)));
    // Nothing nests deeper than the stack.
    for deep in ["(", "not ", "not("] {
        drop(Filter::parse(&deep.repeat(1 << 20), &FIELDS_OF_EVENTS));
    }
}

#[test]
fn foreign_task_graphs() {
    use taskscope_import::{neutral, starpu};
    let rec = "Name: chol\nModel: potrf\nJobId: 3\nSubmitOrder: 1\nDependsOn: 1 2\nPriority: 0\nWorkerId: 1\n\
        MemoryNode: 0\nSubmitTime: 1.5\nStartTime: 10.25\nEndTime: 20.5\n\n\
        Name: b\nJobId: 4\nDependsOn: 3\nWorkerId: 0\nStartTime: 21.0\nEndTime: 22.0\n\n";
    check_text(rec, |text| drop(starpu::read_tasks_rec(text)));
    let json = r#"{"schema": "slo-case/1", "name": "two tasks", "trace": {"time_unit": "ns",
        "workers": [{"id": 0, "node": 0, "begin": 0, "end": 400}, {"id": 1, "node": 1, "begin": 0, "end": 400}],
        "tasks": [{"id": 1, "type": "a", "node": 0, "worker": 0, "start": 0, "end": 100, "inputs": []},
        {"id": 2, "type": "b", "node": 1, "worker": 1, "start": 150, "end": 300, "inputs": [7]}],
        "data": [{"id": 7, "producer": 1, "produced": 100, "home": 0, "bytes": 8,
        "copies": [{"node": 1, "sent": 105, "arrived": 140}]}],
        "runtime": [{"worker": 1, "start": 140, "end": 150, "kind": "dispatch"}]}, "windows": [[0, 200]]}"#;
    check_text(json, |text| {
        if let Ok(case) = neutral::read_json(text) {
            // Accepted input can be analysed.
            taskscope_analysis::causes::book_causes(&case.graph);
        }
    });
}

#[test]
fn foreign_task_graphs_in_tables() {
    use taskscope_import::neutral::{CsvTables, read_csv};
    // The tables of a run, one after the other.
    let tables = "id,node,begin,end\n0,0,0,400\n1,1,0,400\n\u{c}id,type,node,worker,start,end,inputs,runtime_uniform\n\
        1,a,0,0,0,100,,5\n2,b,1,1,150,300,7,0\n\u{c}id,producer,produced,home\n7,1,100,0\n8,,,1\n\u{c}\
        data,node,sent,arrived\n7,1,105,140\n8,0,,20\n\u{c}worker,start,end,kind\n1,140,150,dispatch\n";
    assert!(read_csv(csv_tables(tables)).is_ok(), "{:?}", read_csv(csv_tables(tables)));
    fn csv_tables(text: &str) -> CsvTables<'_> {
        let mut parts = text.split('\u{c}');
        let mut next = || parts.next().unwrap_or("");
        CsvTables { workers: next(), tasks: next(), data: next(), copies: next(), runtime: next() }
    }
    check_text(tables, |text| {
        if let Ok(graph) = read_csv(csv_tables(text)) {
            taskscope_analysis::causes::book_causes(&graph);
        }
    });
}

/// Profiles, unchanged and with the hash of the changed content, so that readers get past the hash.
#[test]
fn profiles() {
    use taskscope_profile::{Frame, Marker, Metric, Module, Profile, ROOT};
    let mut profile = Profile { modules: vec![Module::default(); 2], ..Profile::default() };
    profile.modules[1].path = "/lib/x.so".to_owned();
    profile.processes.push([("host".to_owned(), "a".to_owned()), ("pid".to_owned(), "7".to_owned())].into());
    for (depth, metric) in [Metric::TIME, Metric::WORK].into_iter().cycle().take(20).enumerate() {
        let frames =
            (0..depth).map(|n| if n % 3 == 0 { Frame::state(Marker::ALL[n % 14]) } else { Frame::cut() });
        let node = profile.tree.descend(ROOT, frames);
        profile.tree.add(node, metric, 1 << depth);
    }
    profile.totals.insert("wall_ns".to_owned(), 99);
    let mut bytes = Vec::new();
    profile.write(&mut bytes).unwrap();
    assert!(Profile::read(&bytes).is_ok());
    // The end section: its tag, its length, eight bytes of hash.
    let hashed = bytes.len() - 10;
    let signed = |content: &[u8]| [content, &[255, 8], &fnv1a(FNV_START, content).to_le_bytes()[..]].concat();
    assert_eq!(signed(&bytes[..hashed]), bytes);
    let read = |bytes: &[u8]| {
        let root = tempfile::tempdir().unwrap();
        let files = [root.path().join("a.tsprof"), root.path().join("b.tsprof")];
        files.iter().for_each(|file| std::fs::write(file, bytes).unwrap());
        let merged = taskscope_session::merge_profiles(&files);
        assert_eq!(merged.files + merged.problems.len(), 2);
        taskscope_profile::conservation(&merged.profile.tree);
    };
    check_all(&bytes, read);
    check_all(&bytes[..hashed], |content| read(&signed(content)));
}

/// A cache is used only if it is unchanged; otherwise the trace is read again.
#[test]
fn caches() {
    use taskscope_session::cache::{Key, places};
    use taskscope_view::page::Page;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x.trace");
    let stream = StreamBuilder::new(0, 1, 1).require(&["ovni"]).cpus(1).execute(10, 0).end(50);
    stream.write(&root).unwrap();
    let key = Key::of(&root).unwrap();
    let page = Page::analysed(Session::open(&root).unwrap());
    page.store(&root, &key, &std::sync::atomic::AtomicBool::new(false)).unwrap();
    let place = places(&root).remove(0);
    let bytes = std::fs::read(&place).unwrap();
    let overview = serde_json::to_string(&page.overview()).unwrap();
    assert!(Page::stored(&root, &key).is_some());
    let other = folder.path().join("other.cache");
    check_all(&bytes, |bytes| {
        std::fs::write(&other, bytes).unwrap();
        std::fs::rename(&other, &place).unwrap();
        if let Some(stored) = Page::stored(&root, &key) {
            assert_eq!(serde_json::to_string(&stored.overview()).unwrap(), overview);
        }
    });
}

#[test]
fn dumps_of_device_records() {
    let dump =
        b"queue,id,append,start,end,kind\nq0,1,1,10,20,kernel\nq0,2,2,20,30,copy\nq1,1,3,15,18,kernel\n";
    check_all(dump, |bytes| {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("dump.csv");
        std::fs::write(&file, bytes).unwrap();
        let options = taskscope_import::device_records::Options::default();
        let _ = taskscope_import::device_records::import(&[file], &root.path().join("trace"), &options);
    });
}
