//! The tables of a slice are those of the same time of the whole run.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use taskscope_analysis::call_paths::{CallPathOptions, profile_of};
use taskscope_analysis::devices::ledgers;
use taskscope_analysis::{Analysis, Culprit, ThreadStates, analyse, lives_of_threads, thread_states};
use taskscope_event::StreamFile;
use taskscope_event::framing::file_header;
use taskscope_event::models::{ovni, samples, system};
use taskscope_execution::{ProcessIndex, State};
use taskscope_session::devices::operations_of_part;
use taskscope_session::{Session, off_cpu_of_run, waits_of_part};
use taskscope_testkit::bytes;
use taskscope_testkit::corpus::{all_traces, on_all_cpus, shown_traces};
use taskscope_testkit::dice::{Dice, seeds};
use taskscope_testkit::script::{PID, Script};
use taskscope_testkit::trace_builder::{StreamBuilder, push_event, push_jumbo};
use taskscope_trace::{OpenOptions, Slice, Trace};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            _ = std::fs::copy(entry.path(), target).unwrap()
        }
    }
}

/// Adds side streams: times in which threads were blocked or had no CPU, sums of such times, and readings of the CPUs' times
/// between them.
fn add_os_times(root: &Path, session: &Session, dice: &mut Dice) {
    let execution = &session.execution;
    let (first, last) = execution.range();
    for (number, process) in execution.processes.iter().enumerate().filter(|(_, process)| !process.has_cpus) {
        let directory = root.join(format!("loom.{}/proc.{}/os-time", process.loom, process.pid));
        std::fs::create_dir_all(&directory).unwrap();
        let about = json!({
            "version": 1, "require": { "taskscope-system": system::VERSION }, "kind": "os-time",
            "source": "context-switches", "loom": process.loom, "pid": process.pid, "finished": 1,
        });
        std::fs::write(directory.join("taskscope.json"), about.to_string()).unwrap();
        let mut events = Vec::new();
        let threads = execution.threads.iter().filter(|thread| thread.process.index() == number);
        for (number, thread) in (0_u32..).zip(threads.filter(|thread| !thread.track.is_empty())) {
            let tid = (thread.tid as u64).to_le_bytes();
            events.push((process.first, system::THREAD, [&tid[..], &number.to_le_bytes()].concat()));
            let mut at = thread.track.start();
            let longest = (thread.track.end() - at) / 8 + 2;
            while dice.chance(80) {
                let start = at + dice.below(longest);
                let (ns, delay) = (dice.between(1, longest), dice.below(longest / 4 + 1) as u32);
                at = start + ns + u64::from(delay);
                let period = (at - start) as u32;
                let some = dice.below(at - start + 1).to_le_bytes();
                let ns = (at - start).to_le_bytes();
                let number = number.to_le_bytes();
                events.push(match dice.below(4) {
                    0 => (at, system::PREEMPTED, [&ns[..], &number].concat()),
                    1 => (at, system::BLOCKED, [&ns[..], &delay.to_le_bytes(), &number].concat()),
                    2 => (at, system::RUN_DELAY, [&some[..], &period.to_le_bytes(), &number].concat()),
                    _ => (at, system::BLOCKED_SUM, [&some[..], &period.to_le_bytes(), &number].concat()),
                });
            }
        }
        // With fewer CPUs than workers, which of those that wait lose time to the system is a choice.
        if dice.chance(50) {
            events.push((process.first, system::CPUS, [&1_u32.to_le_bytes()[..], &[1]].concat()));
        }
        // The same of every process: they share the CPUs.
        for at in (first..=last).step_by(((last - first) / 20 + 1) as usize) {
            let reading = [at, (at - first) / 2, 0, 0].map(u64::to_le_bytes).concat();
            events.push((at, system::CPU_TIME, reading));
        }
        events.sort_by_key(|(at, code, _)| (*at, *code != system::THREAD));
        let mut bytes = file_header().to_vec();
        for (at, code, payload) in &events {
            match matches!(*code, system::CPU_TIME | system::CPUS) {
                true => push_jumbo(&mut bytes, *code, *at, payload),
                false => push_event(&mut bytes, *code, *at, payload),
            }
        }
        std::fs::write(directory.join("taskscope.obs"), bytes).unwrap();
    }
}

/// States whose times come from the side streams.
const OFF_CPU: [State; 3] = [State::OutOfCpu, State::Oversubscribed, State::Blocked];

/// Nanoseconds by table and row.
type Sums = BTreeMap<String, u64>;

fn sums_of(session: &Session, analysis: &Analysis, part: (u64, u64)) -> Sums {
    let mut sums = Sums::from([("capacity".to_owned(), analysis.ledger.capacity_ns)]);
    let mut add = |name: String, ns: u64| {
        if ns > 0 {
            *sums.entry(name).or_default() += ns;
        }
    };
    let execution = &session.execution;
    for time in analysis.ledger.threads.iter().filter(|time| time.worker) {
        let thread = &execution.threads[time.thread.index()];
        let process = &execution.processes[thread.process.index()];
        for (state, ns) in time.by_state.iter() {
            let kind = if OFF_CPU.contains(&state) { "off the CPU" } else { "thread" };
            add(format!("{kind}: {} {} {} {}", process.loom, process.pid, thread.tid, state.name()), ns);
        }
    }
    // Types without names are numbered by their order in the trace.
    let name = |state: State, place| {
        let name = session.places.name(state, place);
        if name.starts_with("task type ") { "a task type".to_owned() } else { name }
    };
    for row in &analysis.ledger.causes {
        add(format!("{} at {}", row.state.name(), name(row.state, row.place)), row.ns);
    }
    let pid = |process: ProcessIndex| execution.processes[process.index()].pid;
    for charge in &analysis.charges {
        let culprit = match charge.culprit {
            Culprit::Code(state, place) => format!("{} at {}", state.name(), name(state, place)),
            Culprit::Holder(place) => format!("holder {}", name(State::LockWait, place)),
            Culprit::Device(Some(operation)) => execution.catalog.operations[operation as usize].clone(),
            Culprit::Device(None) => "an idle device".to_owned(),
            Culprit::Rank(process) => format!("process {}", pid(process)),
            Culprit::Nobody(place) => format!("nobody at {}", name(State::LockWait, place)),
        };
        for (state, ns) in charge.by_state.iter() {
            add(format!("{culprit} is charged with {}", state.name()), ns);
        }
    }
    for row in &analysis.thread_waits {
        let object = execution.catalog.objects.get(row.object.index()).map_or(0, |object| object.id);
        for part in &row.parts {
            let culprit = execution.threads.get(part.thread.index()).map_or(0, |thread| thread.tid);
            let kind = row.kind;
            add(format!("wait {kind} for {object}, charged to {culprit} {:?}", part.root), part.ns);
        }
    }
    for lock in &analysis.locks {
        add("locks".to_owned(), lock.waited_ns);
        add("locks unheld".to_owned(), lock.unheld_ns);
    }
    let ledgers = ledgers(&session.devices, part);
    for (queue, ledger) in session.devices.queues.iter().zip(ledgers) {
        let time = ledger.time;
        for (use_of_time, ns) in [
            ("busy", time.busy()),
            ("host-bound", time.host_bound),
            ("transfer-bound", time.transfer_bound),
            ("other queues", time.device_busy),
            ("dependency-bound", time.dependency_bound),
            ("unknown", time.unknown),
            ("operations", ledger.timed),
            ("queueing", ledger.queueing),
        ] {
            add(format!("queue {} {use_of_time}", queue.path), ns);
        }
    }
    let thread = |row: taskscope_execution::ThreadIndex| {
        let thread = &execution.threads[row.index()];
        format!("{} {}", pid(thread.process), thread.tid)
    };
    for message in &execution.communication.messages {
        add(format!("messages from {} to {}", thread(message.sender), thread(message.receiver)), 1);
    }
    for call in &execution.communication.calls {
        if let Some(wait) = call.wait {
            let kind = format!("{} {}", wait.kind.name(), pid(wait.culprit));
            add(format!("call of {} waits: {kind}", thread(call.thread)), wait.until - call.start);
        }
    }
    sums
}

/// What two slices of a trace showed.
#[derive(Default)]
struct Compared {
    slices: u64,
    /// Compared sums of time off the CPU.
    off_cpu: u64,
    /// Sums that differ, as sentences.
    wrong: Vec<String>,
}

fn compare_slices(seed: usize, stored: &Path) -> Compared {
    let mut compared = Compared::default();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("whole");
    copy(stored, &root);
    let Ok(session) = Session::open(&root) else { return compared };
    // Events that break rules, and clocks that cannot be true, are raised or left out in a slice.
    if !session.problems.is_empty()
        || session.clocks_too_far > 0
        || stored.to_string_lossy().contains("-bad-")
    {
        return compared;
    }
    let mut dice = Dice::new(seed as u64);
    add_os_times(&root, &session, &mut dice);
    let whole = Session::open(&root).unwrap();
    let known = off_cpu_of_run(&whole.execution);
    let (first, last) = session.execution.range();
    for case in 0..2 {
        let mut cuts = [dice.between(first, last + 1), dice.between(first, last + 1)];
        cuts.sort_unstable();
        let [begin, end] = cuts;
        let part = folder.path().join(format!("part{case}"));
        let trace = Trace::open(&root, &OpenOptions::default()).unwrap();
        let clocks = (begin as i64, end as i64);
        let slice = Slice {
            clocks: Some(clocks),
            off_cpu: Some(known.clone()),
            waits: Some(waits_of_part(&whole.execution, clocks, &[], &lives_of_threads(&whole.execution))),
            operations: Some(operations_of_part(&whole.devices, clocks)),
            ..Slice::default()
        };
        if trace.write_slice(&slice, &part).unwrap().streams == 0 {
            continue;
        }
        let of = |session: Session| {
            assert!(session.problems.is_empty(), "{}: {:?}", stored.display(), session.problems);
            let analysis = analyse(&session.execution).0;
            sums_of(&session, &analysis, (begin, end))
        };
        let mut range = Session::open(&root).unwrap();
        range.execution.cut(begin, end);
        // The slice is read as it is: it is its range.
        let sliced = Session::open(&part).unwrap();
        assert_eq!(sliced.times, (begin, end), "{}", stored.display());
        let (whole, sliced) = (of(range), of(sliced));
        compared.slices += 1;
        for name in whole.keys().chain(sliced.keys()).collect::<BTreeSet<_>>() {
            let [expected, found] = [&whole, &sliced].map(|sums| sums.get(name).copied().unwrap_or(0));
            compared.off_cpu += u64::from(name.starts_with("off the CPU"));
            if expected != found {
                let case = format!("{} {begin}..{end}", stored.display());
                compared.wrong.push(format!("{case}: {name}: {expected}, in the slice {found}"));
            }
        }
    }
    compared
}

#[test]
fn tables_of_slices_are_those_of_ranges() {
    let traces = [all_traces(), shown_traces()].concat();
    let all = on_all_cpus(&traces, |seed, trace| compare_slices(seed, trace));
    let wrong: Vec<&String> = all.iter().flat_map(|one| &one.wrong).collect();
    assert!(wrong.is_empty(), "{} sums differ: {wrong:#?}", wrong.len());
    let sum = |count: fn(&Compared) -> u64| all.iter().map(count).sum::<u64>();
    let (slices, off_cpu) = (sum(|one| one.slices), sum(|one| one.off_cpu));
    assert!(slices > 0 && off_cpu > 0, "{slices}, {off_cpu}");
}

/// Two of three threads live at a time, on one CPU, and no times off the CPU are recorded. Where one thread lives alone, the number of
/// workers is still too large for the CPU.
#[test]
fn more_workers_than_cpus_of_a_run_without_times_off_the_cpu_are_so_in_its_slices() {
    let mut script = Script::empty(3);
    for (thread, begin, end) in [(0, 0, 9000), (1, 0, 4000), (2, 5000, 9000)] {
        script.begin_thread(thread, begin).emit(thread, end, ovni::THREAD_ENDS, &[]);
    }
    script.site(0, 0, 1, 0x100).fork(0, 10, 1, 1, 2).join_team(1, 10, 1, 1, 2);
    script.arrive(0, 3000).arrive(1, 2000).join(0, 3000, 1).depart(1, 3000, 1);
    script.fork(0, 6000, 2, 1, 2).join_team(2, 6000, 2, 1, 2);
    script.arrive(0, 7000).arrive(2, 8000).join(0, 8000, 2).depart(2, 8000, 2);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("whole");
    script.write(&root).unwrap();
    // The recorder names the CPUs that its process may use.
    for thread in 0..3 {
        let file = root.join(format!("loom.host.{PID}/proc.{PID}/thread.{}/stream.json", PID + thread));
        let mut about: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        about["taskscope"] = json!({ "process_image": "1", "require": { "taskscope-omp": "1.0.0" } });
        std::fs::write(&file, about.to_string()).unwrap();
    }
    let trace = Trace::open(&root, &OpenOptions::default()).unwrap();
    assert!(trace.may_have_os_times(), "three threads on one CPU");
    let known = off_cpu_of_run(&Session::open(&root).unwrap().execution);
    let is_short = |sums: &BTreeMap<String, u64>| {
        sums.iter().any(|(name, ns)| name.ends_with(State::Oversubscribed.name()) && *ns > 0)
    };
    for (begin, end) in [(4200, 4900), (0, 3500), (3500, 6500), (100, 8900), (7100, 7900)] {
        let part = folder.path().join(format!("part{begin}"));
        let (clocks, off_cpu) = (Some((begin as i64, end as i64)), Some(known.clone()));
        trace.write_slice(&Slice { clocks, off_cpu, ..Slice::default() }, &part).unwrap();
        let of = |session: &Session| sums_of(session, &analyse(&session.execution).0, (begin, end));
        let mut range = Session::open(&root).unwrap();
        range.execution.cut(begin, end);
        let (range, slice) = (of(&range), of(&Session::open(&part).unwrap()));
        assert!(is_short(&range), "{begin}..{end}: {range:#?}");
        assert_eq!(slice, range, "{begin}..{end}");
    }
}

/// Two threads of samples alone, each sampled at 0x10 and 0x20 in turn, after times of any length; the kernel's times are any, too.
fn write_sampled(root: &Path, dice: &mut Dice) {
    for tid in [1, 2] {
        let mut stream = StreamBuilder::new(0, 1, tid).require(&["ovni"]).cpus(1).execute(100, -1);
        let mut sampled = file_header().to_vec();
        let mut at = 100;
        for number in 0..40 {
            let weight_ns = dice.between(10, 600);
            at += weight_ns;
            let (object, flags, state) = (0_u64, samples::flag::REACHED_ROOT, samples::state::NO_OPENMP);
            // One level of one frame.
            let head = bytes![weight_ns, object, flags, state, 0_u32, 0_u32, 1_u32];
            let stack = bytes![1_u32 << 16, 0_u32, 0_u32, 0x10 * (1 + u64::from(number % 2 == 0))];
            push_jumbo(&mut sampled, samples::SAMPLE, at, &[head, stack].concat());
        }
        stream = stream.end(at);
        let directory = stream.write(root).unwrap();
        std::fs::write(directory.join(StreamFile::Samples.name()), sampled).unwrap();
    }
    let session = Session::open(root).unwrap();
    add_os_times(root, &session, dice);
}

/// Nanoseconds by metric, over all paths, and what the threads did.
fn path_sums(session: &Session) -> (BTreeMap<String, u64>, Vec<ThreadStates>) {
    let tree = profile_of(&session.execution, CallPathOptions::default()).0.tree;
    let mut sums = BTreeMap::new();
    for (metric, ns) in tree.ids().flat_map(|node| tree.values(node).collect::<Vec<_>>()) {
        *sums.entry(format!("{metric:?}")).or_default() += ns;
    }
    (sums, thread_states(&session.execution))
}

/// Which path a short run has may depend on samples behind the slice.
#[test]
fn sums_of_call_paths_of_slices_of_samples_are_those_of_ranges() {
    let mut compared = 0;
    for seed in seeds(20) {
        let mut dice = Dice::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("whole");
        write_sampled(&root, &mut dice);
        let whole = Session::open(&root).unwrap();
        let (first, last) = whole.execution.range();
        let mut cuts = [dice.between(first, last), dice.between(first, last)];
        cuts.sort_unstable();
        let [begin, end] = cuts;
        let part = folder.path().join("part");
        let (clocks, off_cpu) = (Some((begin as i64, end as i64)), Some(off_cpu_of_run(&whole.execution)));
        let trace = Trace::open(&root, &OpenOptions::default()).unwrap();
        if trace.write_slice(&Slice { clocks, off_cpu, ..Slice::default() }, &part).unwrap().streams == 0 {
            continue;
        }
        let mut range = Session::open(&root).unwrap();
        range.execution.cut(begin, end);
        let (expected, found) = (path_sums(&range), path_sums(&Session::open(&part).unwrap()));
        assert_eq!(found, expected, "{seed}: {begin}..{end}");
        compared += expected.0.len();
    }
    assert!(compared > 50, "{compared}");
}
