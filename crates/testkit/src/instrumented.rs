//! Threads of programs that instrument themselves, event by event.

use crate::trace_builder::{StreamBuilder, push_event, push_jumbo};
use std::path::Path;
use taskscope_event::Code;
use taskscope_event::framing::file_header;
use taskscope_event::models::instrument as i;

/// The little-endian bytes of some numbers.
#[macro_export]
macro_rules! bytes {
    ($($value:expr),* $(,)?) => { [$(&$value.to_le_bytes()[..]),*].concat() };
}

/// A thread with its own events, which begins at 1000 ns and ends 100 µs later. Times are those since its begin.
pub struct InstrumentedThread {
    /// Its stream of standard events, with its metadata.
    pub stream: StreamBuilder,
    own: Vec<u8>,
    end: u64,
}

impl InstrumentedThread {
    /// Creates a thread of a process in which threads are the workers.
    pub fn new(pid: u32, tid: u32) -> InstrumentedThread {
        let mut stream = StreamBuilder::new(1, pid, tid).require(&["ovni", "nosv"]).cpus(1).execute(1000, -1);
        stream.metadata["taskscope"] = serde_json::json!({ "workers": "threads" });
        InstrumentedThread { stream, own: file_header().to_vec(), end: 100_000 }
    }

    /// An event.
    pub fn event(mut self, at: u64, code: Code, payload: &[u8]) -> InstrumentedThread {
        push_event(&mut self.own, code, 1000 + at, payload);
        self
    }

    /// An event with a jumbo payload that ends in texts.
    pub fn name(mut self, at: u64, code: Code, head: &[u8], texts: &[&[u8]]) -> InstrumentedThread {
        let texts: Vec<u8> = texts.iter().flat_map(|text| [text, &b"\0"[..]].concat()).collect();
        push_jumbo(&mut self.own, code, 1000 + at, &[head, &texts].concat());
        self
    }

    /// An event with a jumbo payload.
    pub fn data(mut self, at: u64, code: Code, data: &[u8]) -> InstrumentedThread {
        push_jumbo(&mut self.own, code, 1000 + at, data);
        self
    }

    /// Writes the thread's stream below `root`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(self, root: &Path) {
        let InstrumentedThread { stream, own, end } = self;
        let mut stream = stream.end(1000 + end);
        stream.own = Some(own);
        stream.write(root).unwrap();
    }
}

/// A task that moves from thread 100 to thread 101 of process 100: in a state within a state, with two bursts of one key
/// open, and with a sub-state on the way. Its thread has a state of its own around it.
pub fn write_walker(root: &Path) {
    let size = |value: u64| bytes![1_u32, value];
    let first = InstrumentedThread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"walker", b"src/walk.rs"])
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"size", b"", b"bytes"])
        .name(0, i::KEY_VALUE, &bytes![1_u32, 20_u32, 0_u32], &[b"twenty", b""])
        .event(0, i::STATE_PUSH, &bytes![RUNTIME])
        .event(0, i::TASK_CREATE, &bytes![1_u64, 1_u32])
        .event(1000, i::TASK_ENTER, &bytes![1_u64])
        .event(1000, i::STATE_PUSH, &bytes![RUNNING])
        .event(2000, i::BURST_OPEN, &size(10))
        .event(3000, i::STATE_PUSH, &bytes![CACHE])
        .event(4000, i::BURST_OPEN, &size(20))
        .event(5000, i::TASK_LEAVE, &bytes![1_u64])
        .event(90_000, i::STATE_POP, &bytes![RUNTIME]);
    let second = InstrumentedThread::new(100, 101)
        .event(7000, i::TASK_ENTER, &bytes![1_u64])
        .event(8000, i::BURST_CLOSE, &size(20))
        .event(9000, i::STATE_POP, &bytes![CACHE])
        .event(10_000, i::STATES_HIDE, &[])
        .event(10_500, i::STATE_PUSH, &bytes![SYNCHRONIZATION])
        .event(11_000, i::STATE_POP, &bytes![SYNCHRONIZATION])
        .event(11_500, i::STATES_SHOW, &[])
        .event(12_000, i::BURST_CLOSE, &size(10))
        .event(13_000, i::STATE_POP, &bytes![RUNNING])
        .event(14_000, i::TASK_END, &bytes![1_u64]);
    first.write(root);
    second.write(root);
}

const RUNTIME: u32 = 6;
const RUNNING: u32 = 7;
const SYNCHRONIZATION: u32 = 8;
const CACHE: u32 = 12;
