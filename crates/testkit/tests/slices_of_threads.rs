//! Waits of threads for each other are the same in a slice and in the same time of the whole run: by object, call and culprit.

use std::collections::BTreeMap;
use std::path::Path;
use taskscope_analysis::{Root, ThreadCall, Tie, lives_of_threads, thread_waits};
use taskscope_event::Code;
use taskscope_event::framing::file_header;
use taskscope_event::models::{dictionary, samples, wait};
use taskscope_execution::{Execution, PathIndex, SiteIndex, ThreadIndex};
use taskscope_session::{Session, waits_of_part};
use taskscope_testkit::bytes;
use taskscope_testkit::dice::{Dice, seeds};
use taskscope_testkit::trace_builder::{StreamBuilder, push_event, push_jumbo};
use taskscope_trace::{OpenOptions, Slice, Trace};

const THREADS: u32 = 5;
const LAST: u64 = 20_000;
/// Objects by their number, with the kinds of waits for them.
const OBJECTS: [(u64, u32); 9] = [
    (1, wait::kind::MUTEX),
    (2, wait::kind::RW_LOCK),
    (3, wait::kind::CONDITION),
    (4, wait::kind::SEMAPHORE),
    (5, wait::kind::THREAD_BARRIER),
    (6, wait::kind::PIPE),
    (7, wait::kind::PIPE_ROOM),
    (8, wait::kind::SLEEP),
    (handle_of(3), wait::kind::JOIN),
];

const fn handle_of(tid: u32) -> u64 {
    0x100 + tid as u64
}

const fn pointer_of(tid: u32) -> u64 {
    0x200 + tid as u64
}

/// A thread with its two files.
struct ThreadFiles {
    tid: u32,
    life: (u64, u64),
    own: Vec<u8>,
}

impl ThreadFiles {
    fn event(&mut self, at: u64, code: Code, payload: &[u8]) {
        match code {
            wait::FOUND_HELD | wait::WAITED | wait::THREAD_STARTS | samples::PATH => {
                push_jumbo(&mut self.own, code, at, payload);
            }
            _ => push_event(&mut self.own, code, at, payload),
        }
    }
}

/// Threads of a process that begin and end at any time, and record any events of waits, in and out of place.
fn write_run(root: &Path, dice: &mut Dice) {
    let life = |tid: u32, dice: &mut Dice| match tid {
        1 => (100, LAST),
        _ => {
            let begin = 100 + dice.below(LAST / 2);
            (begin, begin + 1000 + dice.below(LAST - begin - 1000))
        }
    };
    let mut threads: Vec<ThreadFiles> = (1..=THREADS)
        .map(|tid| ThreadFiles { tid, life: life(tid, dice), own: file_header().to_vec() })
        .collect();
    for thread in &mut threads {
        let site = 50 + thread.tid;
        thread.event(thread.life.0, dictionary::SITE, &bytes![site, u64::from(0x5000 + site)]);
        let starts = bytes![handle_of(thread.tid), pointer_of(thread.tid), site];
        thread.event(thread.life.0, wait::THREAD_STARTS, &starts);
    }
    let (mut sites, mut paths) = ([false; 6], [false; 4]);
    let mut at = 100;
    while at < LAST - 200 {
        at += 1 + dice.below(60);
        let tid = 1 + dice.below(u64::from(THREADS)) as u32;
        let thread = &mut threads[tid as usize - 1];
        if at <= thread.life.0 || at >= thread.life.1 {
            continue;
        }
        let site = 1 + dice.below(5) as u32;
        // A number is defined by the thread that first uses it.
        if !std::mem::replace(&mut sites[site as usize], true) {
            thread.event(at, dictionary::SITE, &bytes![site, u64::from(0x4000 + site)]);
        }
        if dice.chance(20) {
            let path = 1 + dice.below(3) as u32;
            if !std::mem::replace(&mut paths[path as usize], true) {
                let addresses = [u64::from(0x7000 + path), 0x8000];
                thread.event(at, samples::PATH, &bytes![path, 0_u32, addresses[0], addresses[1]]);
            }
            thread.event(at, samples::CALL_PATH, &bytes![site, path]);
        }
        let (object, kind) = OBJECTS[dice.below(OBJECTS.len() as u64) as usize];
        let other = 1 + dice.below(u64::from(THREADS)) as u32;
        match dice.below(10) {
            0..4 => {
                thread.event(at, wait::WAIT_BEGIN, &bytes![object, site, kind]);
                if wait::kind::has_holder(kind) && dice.chance(70) {
                    thread.event(at, wait::FOUND_HELD, &bytes![pointer_of(other), site]);
                }
            }
            4..6 => {
                let outcome = [0_u32, 0, 0, 1, 2][dice.below(5) as usize];
                thread.event(at, wait::WAIT_END, &bytes![kind, outcome]);
            }
            6 => thread.event(at, wait::HANDED_OVER, &bytes![object, site, kind]),
            7 => thread.event(at, wait::WAKES_ONE, &bytes![object, site, kind]),
            8 => thread.event(at, wait::WAKES_ALL, &bytes![object, site, kind]),
            _ => {
                let begun = 1 + dice.below((at - thread.life.0).min(2000));
                let ended = dice.below(begun);
                let waker = [0, pointer_of(other), wait::OTHER_PROCESS][dice.below(3) as usize];
                let woken = ended + dice.below(begun - ended);
                let times = bytes![object, begun, ended];
                let rest = bytes![site, kind, dice.below(3) as u32, 50 + other, waker, woken];
                thread.event(at, wait::WAITED, &[times, rest].concat());
            }
        }
    }
    for thread in threads {
        let mut stream = StreamBuilder::new(0, 1, thread.tid).require(&["ovni"]).cpus(1);
        stream = stream.execute(thread.life.0, -1);
        // A killed program's threads have no end.
        if thread.tid > 1 || dice.chance(50) {
            stream = stream.end(thread.life.1);
        }
        stream.own = Some(thread.own);
        stream.write(root).unwrap();
    }
}

/// Rows of waits in words: times, counts and culprits by object and call.
fn rows(execution: &Execution) -> BTreeMap<String, String> {
    let site = |site: SiteIndex| execution.catalog.sites.get(site.index()).map_or(0, |row| row.address);
    let path = |path: PathIndex| execution.samples.paths.get(path.index()).map(|row| row.addresses.clone());
    let call =
        |call: ThreadCall| format!("{:#x} by {:x?}", site(call.site), path(call.path).unwrap_or_default());
    let tid = |thread: ThreadIndex| execution.threads.get(thread.index()).map(|row| row.tid);
    let tie = |tie: Option<Tie>| match tie {
        None => "nobody".to_owned(),
        Some(Tie::Holds(of)) => format!("holds, taken in {}", call(of)),
        Some(Tie::Wakes(of)) => format!("wakes in {}", call(of)),
        Some(Tie::IsJoined(thread, of)) => format!("joined {:?} of {:#x}", tid(thread), site(of)),
    };
    let mut rows = BTreeMap::new();
    for row in thread_waits(execution) {
        let object = execution.catalog.objects.get(row.object.index()).map(|object| object.id);
        let key = format!("{object:?} kind {} in {}", row.kind, call(row.call));
        let mut parts: Vec<String> = (row.parts.iter())
            .map(|part| {
                let blocked = part.blocked.map(|(kind, of)| format!("{kind} in {}", call(of)));
                let (first, last, root): (_, _, Root) = (tie(part.first), tie(part.last), part.root);
                let thread = tid(part.thread);
                format!("{} ns: {first}; {last}; {root:?} {blocked:?} {} {thread:?}", part.ns, part.length)
            })
            .collect();
        parts.sort();
        let counts = [row.waits, u64::from(row.threads), row.waited_ns, row.longest_ns];
        rows.insert(key, format!("{counts:?} {parts:#?}"));
    }
    rows
}

fn compare(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("whole");
    write_run(&root, &mut dice);
    let whole = Session::open(&root).unwrap();
    let trace = Trace::open(&root, &OpenOptions::default()).unwrap();
    assert!(trace.has_thread_waits());
    let mut compared = 0;
    for case in 0..3 {
        let mut cuts = [dice.between(50, LAST), dice.between(50, LAST)];
        cuts.sort_unstable();
        let [begin, end] = cuts;
        let clocks = (begin as i64, end as i64);
        let part = folder.path().join(format!("part{case}"));
        let waits = Some(waits_of_part(&whole.execution, clocks, &[], &lives_of_threads(&whole.execution)));
        let slice = Slice { clocks: Some(clocks), waits, ..Slice::default() };
        if trace.write_slice(&slice, &part).unwrap().streams == 0 {
            continue;
        }
        let mut range = Session::open(&root).unwrap();
        range.execution.cut(begin, end);
        let sliced = Session::open(&part).unwrap();
        assert!(sliced.problems.is_empty(), "{seed} {clocks:?}: {:?}", sliced.problems);
        let (expected, found) = (rows(&range.execution), rows(&sliced.execution));
        for (key, row) in &expected {
            assert_eq!(found.get(key), Some(row), "{seed} {clocks:?}: {key}");
        }
        assert_eq!(found.len(), expected.len(), "{seed} {clocks:?}");
        compared += expected.len();

        // A slice of the slice.
        let middle = begin.midpoint(end);
        let clocks = (begin as i64, middle as i64);
        let again = folder.path().join(format!("again{case}"));
        let waits = Some(waits_of_part(&sliced.execution, clocks, &[], &lives_of_threads(&sliced.execution)));
        let slice = Slice { clocks: Some(clocks), waits, ..Slice::default() };
        let slice_trace = Trace::open(&part, &OpenOptions::default()).unwrap();
        if middle > begin && slice_trace.write_slice(&slice, &again).unwrap().streams > 0 {
            let mut range = Session::open(&root).unwrap();
            range.execution.cut(begin, middle);
            let sliced = Session::open(&again).unwrap();
            assert_eq!(rows(&sliced.execution), rows(&range.execution), "{seed} {clocks:?}");
        }
    }
    compared
}

#[test]
fn waits_of_slices_are_those_of_ranges() {
    let compared: usize = seeds(6).map(compare).sum();
    assert!(compared > 50, "{compared}");
}
