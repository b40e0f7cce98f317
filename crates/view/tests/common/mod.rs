//! Test runs, and a client of the viewer's server that sends exactly the given bytes.
#![allow(dead_code)] // each test file uses its own part

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use taskscope_event::models::device::kind;
use taskscope_event::models::messages::function_number;
use taskscope_event::models::samples::{flag, state};
use taskscope_execution::devices::{DeviceOperation, Devices, LostOperation, Queue};
use taskscope_execution::messages::{Message, MpiCall, PeerWait, PeerWaitKind, Rank};
use taskscope_execution::samples::{Level, NewSample};
use taskscope_execution::{
    Anomaly, Change, Doubt, Execution, ExecutionBuilder, Module, Observer, OsSource, OsTimes, ProcessIndex,
    RegionIndex, RunDelay, Section, State, TaskIndex, Uncertain,
};
use taskscope_session::Session;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::synthetic::{Shape, execution};
use taskscope_view::page::Page;
use taskscope_view::server::Viewer;

/// A run of two processes with four threads each.
pub fn small() -> Execution {
    execution(Shape { threads: 8, team: 4, processes_of_node: 1, events: 30_000, seed: 3 })
}

/// A run of three threads of which something is missing or odd. Each is in serial code from 1000 on, in tasks from 101 000 on,
/// at a barrier from 201 000 to 301 000.
///
/// - the first lost seven events in its task, and its system kept it off the CPU from 1000 to 41 000;
/// - of the second an end came that does not fit, at the end of its task, and it is estimated to have had no CPU for
///   3000 ns of its serial code;
/// - the stream of the third ends in its barrier.
pub fn doubtful() -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.1", 1);
    let threads = [1, 2, 3].map(|tid| builder.add_thread(process, tid));
    for thread in threads {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::Becomes(Section::of(State::Serial)));
    }
    for thread in threads {
        builder.event(thread, 101_000);
        builder.change(thread, 101_000, Change::Becomes(Section::of(State::Task)));
    }
    builder.event(threads[0], 201_000);
    builder.change(threads[0], 201_000, Change::Lost { events: 7, lasts: false });
    builder.event(threads[1], 201_000);
    builder.anomaly(threads[1], 201_000, Anomaly::EndWithoutBegin);
    for thread in threads {
        builder.event(thread, 201_000);
        builder.change(thread, 201_000, Change::Becomes(Section::of(State::Barrier)));
    }
    for thread in &threads[..2] {
        builder.event(*thread, 301_000);
        builder.change(*thread, 301_000, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let (thread, doubt) = (threads[2], Doubt::StreamEnds);
    execution.uncertain.push(Uncertain { thread, start: 201_000, end: 301_000, doubt });
    execution.add_off_cpu(threads[0], OsSource::Switches, &[(1000, 41_000)], &[]);
    let delay = RunDelay { start: 1000, end: 101_000, ns: 3000 };
    execution.add_off_cpu(threads[1], OsSource::Estimated, &[], &[delay]);
    execution.attribute_system_time();
    execution
}

/// Two processes, ranks 0 and 1: the first receives from 11 000 to 51 000, and waited until 41 000 for the second, which sends
/// 4096 bytes then.
pub fn talking() -> Execution {
    let mut builder = ExecutionBuilder::new();
    let threads = [17, 18].map(|pid| {
        let process = builder.add_process("node1", pid);
        builder.add_thread(process, pid)
    });
    for thread in threads {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::Becomes(Section::of(State::Serial)));
    }
    builder.event(threads[0], 11_000);
    builder.change(threads[0], 11_000, Change::Becomes(Section::of(State::Communication)));
    builder.event(threads[0], 51_000);
    builder.change(threads[0], 51_000, Change::Becomes(Section::of(State::Serial)));
    for thread in threads {
        builder.event(thread, 101_000);
        builder.change(thread, 101_000, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let culprit = ProcessIndex(1);
    let wait = Some(PeerWait { kind: PeerWaitKind::LateSender, culprit, until: 41_000 });
    let function = function_number("Recv");
    let (place, count, bytes) = (taskscope_execution::Place::UNKNOWN, 1, 0);
    let call =
        MpiCall { thread: threads[0], function, place, start: 11_000, end: 51_000, count, bytes, wait };
    execution.communication.calls.push(call);
    let (sender, receiver) = (threads[1], threads[0]);
    let message = Message {
        sender,
        sent: 41_000,
        receiver,
        posted: 11_000,
        received: 51_000,
        call: 0,
        bytes: 4096,
        tag: Some(7),
    };
    execution.communication.messages.push(message);
    for rank in 0..2 {
        execution.communication.ranks.insert(rank, Rank { job: 1, rank, ranks: 2 });
    }
    execution
}

/// A function to be sampled, which calls others.
#[inline(never)]
pub fn outer_for_samples(number: u64) -> u64 {
    inner_for_samples(number) + other_for_samples(number)
}

#[inline(never)]
pub fn inner_for_samples(number: u64) -> u64 {
    std::hint::black_box(number) + 1
}

#[inline(never)]
pub fn other_for_samples(number: u64) -> u64 {
    std::hint::black_box(number) + 2
}

/// This program as a module of a process.
pub fn own_module(process: ProcessIndex) -> Module {
    let path = std::env::current_exe().unwrap().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.lines().find(|line| line.ends_with(&path)).unwrap();
    let bias = u64::from_str_radix(own.split('-').next().unwrap(), 16).unwrap();
    Module { process, at: 0, start: bias, end: bias + (1 << 32), bias, build_id: String::new(), path }
}

/// A run of two threads of which samples are all that is known, from 1000 to 14 000, each sample for the 1000 ns before it.
///
/// - the first is in `outer ▸ inner` until 5000, in `outer ▸ other` until 8000, has no CPU until 8500, is blocked until 11 000, and in `inner`
///   until 12 000;
/// - the second is in `other` until 13 000, and its switches are not recorded.
pub fn sampled() -> Execution {
    let address = |function: fn(u64) -> u64| function as usize as u64;
    assert_eq!(outer_for_samples(1), 5);
    // A return address is after its call.
    let outer = address(outer_for_samples) + 8;
    let (inner, other) = (address(inner_for_samples), address(other_for_samples));
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.1", 1);
    let threads = [1, 2].map(|tid| builder.add_thread(process, tid));
    for thread in threads {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::Becomes(Section::of(State::Unknown)));
    }
    let mut sample = |thread, at, addresses: &[u64]| {
        let end = addresses.len() as u16;
        let levels = [Level { first: 0, end, region: RegionIndex::NONE, task: TaskIndex::NONE }];
        let (weight_ns, flags, state) = (1000, flag::REACHED_ROOT, state::NO_OPENMP);
        builder.sample(&NewSample { thread, at, weight_ns, flags, state, levels: &levels, addresses });
    };
    for at in 2..=5 {
        sample(threads[0], 1000 * at, &[inner, outer]);
    }
    for at in 6..=8 {
        sample(threads[0], 1000 * at, &[other, outer]);
    }
    sample(threads[0], 12_000, &[inner]);
    for at in 2..=13 {
        sample(threads[1], 1000 * at, &[other]);
    }
    for thread in threads {
        builder.event(thread, 14_000);
        builder.change(thread, 14_000, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let times = OsTimes { runnable: vec![(8000, 8500)], blocked: vec![(8500, 11_000)], ..OsTimes::default() };
    execution.add_os_times(threads[0], OsSource::Switches, times);
    execution.catalog.modules.push(own_module(process));
    execution
}

/// The page of a run.
pub fn page_of(execution: Execution) -> Page {
    let session = Session::in_memory("synthetic.trace", execution);
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    Page::new(session, &analysis, &problems)
}

/// A viewer of a run.
pub fn viewer_of(execution: Execution) -> (Arc<Page>, Viewer) {
    let page = Arc::new(page_of(execution));
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    (page, viewer)
}

/// Operations of two queues, one of them with two lanes, over a time.
pub fn devices(start: u64, end: u64) -> Devices {
    let step = (end - start) / 120;
    let operation = |seq: u64, lane: u32, kind: u32| {
        let begin = start + seq * step + step / 8;
        DeviceOperation {
            seq,
            start: begin,
            end: begin + step * (2 + u64::from(lane)) / 3,
            append: begin - step / 16,
            bytes: seq * 1000,
            lane: Some(lane),
            kind,
            name: 1 + (seq % 3) as u32,
            ..DeviceOperation::default()
        }
    };
    let names = ["", "gemm_kernel\u{202e}", "<i>copy</i>", "fill"].map(str::to_string).to_vec();
    let queue = |name: &str, operations| Queue {
        name: name.to_string(),
        device: "simulated".to_string(),
        operations,
        names: names.clone(),
        ..Queue::default()
    };
    let mut first =
        queue("queue 1", (0..90).map(|seq| operation(seq, (seq % 2) as u32, kind::KERNEL)).collect());
    first.lost.push(LostOperation { seq: 90, append: start + 95 * step, id: 0, thread: 0, name: 1 });
    let second = queue("queue 2", (5..110).map(|seq| operation(seq, 0, kind::COPY_IN)).collect());
    Devices { queues: vec![first, second], calls: Vec::new(), ..Devices::default() }
}

/// A viewer of a trace of nOS-V on disk, with device queues; the folder must outlive it.
pub fn viewer_of_trace() -> (tempfile::TempDir, Arc<Page>, Viewer) {
    let folder = tempfile::tempdir().unwrap();
    let generator =
        Generator { runtime: Runtime::Nosv, threads: 6, threads_per_loom: 3, events: 6000, seed: 5 };
    generator.write(folder.path()).unwrap();
    let mut session = Session::open(folder.path()).unwrap();
    let (start, end) = session.execution.range();
    session.devices = devices(start, end);
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    let page = Arc::new(Page::new(session, &analysis, &problems));
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    (folder, page, viewer)
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// Sends bytes as they are and reads the answer to its end.
pub fn send(viewer: &Viewer, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", viewer.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
    // The server may refuse before it has read everything.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let split = bytes.windows(4).position(|w| w == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes[split..].to_vec() }
}

/// A question as the page asks it.
pub fn ask(viewer: &Viewer, target: &str) -> Answer {
    let host = format!("127.0.0.1:{}", viewer.port());
    ask_with(viewer, target, &[("Host", &host), ("X-Taskscope-Token", viewer.token())])
}

/// A question with these headers and no others.
pub fn ask_with(viewer: &Viewer, target: &str, headers: &[(&str, &str)]) -> Answer {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    send(viewer, format!("GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").as_bytes())
}
