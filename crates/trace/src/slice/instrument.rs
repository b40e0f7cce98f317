//! Instrumented programs: the open sections of their tasks and threads at the borders of a slice.
//!
//! Tasks move between threads, so all threads of a process are followed up to the slice, the selected ones within it.
//! Contexts and their restoration are defined in [`taskscope_context`].

use taskscope_context::{Behaviour, Contexts, Item, Out, Raw};
use taskscope_event::models::instrument;

use super::bytes::push;
use crate::Event;
use crate::stream::Stream;
use rustc_hash::FxHashMap;

pub(super) struct Instrumented {
    contexts: Contexts,
    /// Process number of each stream.
    processes: Vec<u32>,
    /// An event of theirs was seen.
    pub is_used: bool,
}

struct Nobody;

impl Out for Nobody {
    fn show(&mut self, _item: Item<'_>) {}
}

impl Instrumented {
    pub fn new(streams: &[Stream]) -> Self {
        let mut contexts = Contexts::new(Behaviour::Raw);
        let mut numbers = FxHashMap::default();
        let process_of = |stream: &Stream| {
            let fresh = numbers.len() as u32;
            *numbers.entry((stream.loom().map(str::to_owned), stream.pid())).or_insert(fresh)
        };
        let processes: Vec<u32> = streams.iter().map(process_of).collect();
        for process in &processes {
            contexts.add_thread(*process);
        }
        Instrumented { contexts, processes, is_used: false }
    }

    /// Follows an event of a stream.
    pub fn follow(&mut self, stream: usize, event: &Event<'_>) {
        if event.code.model() == instrument::LETTER
            && let Ok(Some(raw)) = Raw::decode(event.code, event.payload)
        {
            self.is_used = true;
            self.contexts.event(stream as u32, event.clock_ns.max(0) as u64, &raw, &mut Nobody);
        }
    }

    /// A thread has ended.
    pub fn thread_ends(&mut self, stream: usize, clock_ns: i64) {
        if self.is_used {
            self.contexts.thread_ends(stream as u32, clock_ns.max(0) as u64, &mut Nobody);
        }
    }

    /// The events of stream number `slot` of `living` that restore tasks and states at the begin of the slice.
    pub fn opening(&self, living: &[usize], slot: usize) -> Vec<Raw<'static>> {
        let (stream, process) = (living[slot], self.processes[living[slot]]);
        if !self.is_used {
            return Vec::new();
        }
        let peers = || living.iter().filter(|other| self.processes[**other] == process);
        let mut events = Vec::new();
        if peers().next() == Some(&stream) {
            events.extend(self.contexts.created(process));
        }
        if peers().find(|other| self.contexts.runs_tasks(**other as u32)) == Some(&stream) {
            let stays = |thread: u32| living.contains(&(thread as usize));
            events.extend(self.contexts.put_aside(process, stays));
        }
        events.extend(self.contexts.taken_up(stream as u32));
        events
    }

    /// Whether a stream has taken up a task.
    pub fn runs_tasks(&self, stream: usize) -> bool {
        self.contexts.runs_tasks(stream as u32)
    }

    /// The events that end everything open on a stream's thread.
    pub fn closing(&self, stream: usize) -> Vec<Raw<'static>> {
        if self.is_used { self.contexts.closing(stream as u32) } else { Vec::new() }
    }
}

/// Writes that a thread takes up a task once: a worker. The task and its kind are ones that no program has.
pub(super) fn push_work(bytes: &mut Vec<u8>, clock_ns: i64, stream: usize) {
    let (kind, task) = (u32::MAX, u64::MAX - stream as u64);
    let name = [&kind.to_le_bytes()[..], &0_u32.to_le_bytes(), b"work outside of the slice\0\0"].concat();
    push(bytes, clock_ns, instrument::TASK_KIND, true, &name);
    let events = [Raw::TaskCreate { task, kind }, Raw::TaskEnter { task }, Raw::TaskEnd { task }];
    push_all(bytes, clock_ns, &events);
}

pub(super) fn push_all(bytes: &mut Vec<u8>, clock_ns: i64, events: &[Raw<'_>]) {
    for raw in events {
        let (code, is_jumbo, payload) = raw.encode();
        push(bytes, clock_ns, code, is_jumbo, &payload);
    }
}

/// Whether an event creates a task.
pub(super) fn is_creation(event: &Event<'_>) -> bool {
    event.code == instrument::TASK_CREATE
}

/// The task that a thread takes up.
pub(super) fn task_taken_up(event: &Event<'_>) -> Option<u64> {
    match Raw::decode(event.code, event.payload) {
        Ok(Some(Raw::TaskEnter { task } | Raw::TaskSwitch { new: task, .. })) => Some(task),
        _ => None,
    }
}
