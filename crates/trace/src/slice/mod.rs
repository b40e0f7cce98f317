//! A part of a trace as a trace of its own: by time, threads and models.
//!
//! A thread that was in the middle of something when the range begins is brought there: in the
//! nanoseconds before it, one per thread, the thread starts on its CPU, and what is open (tasks,
//! sections, marks, states) is opened again. What is open when the range ends is closed after it,
//! again one nanosecond per thread. Task types and the tasks that the range uses are created first, and what
//! later events name by number is named, whichever thread named it. Where threads that are left out move one
//! that is kept to another CPU, it moves itself; what its metadata leaves to others (CPUs, marks, ranks) is there.
//!
//! ```text
//! clock   begin - threads … begin - 1 │ begin …  end - 1 │ end … end + threads - 1
//! events  each thread's open state    │ as recorded      │ each thread's ends
//! ```
//!
//! Threads that do not run come first and leave last, so that no CPU ever has two running threads.

mod instrument;

use self::instrument::{Instrumented, push_all};
use crate::clock_offsets::{ClockOffset, ClockOffsets, FILE};
use crate::decode::EventHead;
use crate::problem::ProblemKind;
use crate::rewrite::replace_file;
use crate::stream::{File, Stream};
use crate::trace::Trace;
use crate::{Event, MergedEvent};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use taskscope_event::Code;
use taskscope_event::framing::{
    FILE_HEADER_BYTES, JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, head_word, size_code,
};
use taskscope_event::models::{
    self, dictionary, kernel, model_of, nanos6, nosv, openmp, ovni, recorder, samples,
};
use taskscope_event::spec::{Channel, Effect};

/// Events between two looks at whether to stop.
const EVENTS_PER_ROUND: u64 = 1 << 14;

/// What to keep.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Corrected clocks: begin (included) and end (not included); `None` keeps all.
    pub clocks: Option<(i64, i64)>,
    /// Thread ids; empty keeps all.
    pub threads: Vec<i64>,
    /// Names of models besides `ovni`; empty keeps all.
    pub models: Vec<String>,
}

/// Loom and process id.
type Process<'a> = (Option<&'a str>, Option<i64>);

/// What was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sliced {
    /// Streams that have events in the slice.
    pub streams: u64,
    /// Events, those that open and close states not counted.
    pub events: u64,
}

/// Something that is open on a thread, with the event that opens it and the one that closes it.
#[derive(Clone)]
struct Open {
    key: Key,
    begin: (Code, bool, Vec<u8>),
    close: Option<(Code, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Section(u8, Channel, i64),
    State(u8, Channel),
    Task(u8, [u8; 8]),
    TaskPaused(u8, [u8; 8]),
    Workshare([u8; 4]),
    Mark([u8; 12]),
    MarkState([u8; 4]),
    Flush,
    OutOfCpu,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Life {
    #[default]
    NotStarted,
    Running,
    Paused,
    Cooling,
    Warming,
    Ended,
}

#[derive(Clone, Default)]
struct ThreadState {
    running: Life,
    cpu: i32,
    open: Vec<Open>,
    /// Recording is paused.
    is_paused: bool,
}

impl Trace {
    /// Writes the slice as a trace into `output`, which must not exist or be empty.
    ///
    /// # Errors
    /// Those of the file system; then nothing is left of what was written.
    pub fn write_slice(&self, slice: &Slice, output: &Path) -> io::Result<Sliced> {
        self.write_part(slice, output, |_| true, |_| ControlFlow::Continue(()))
    }

    /// Writes the slice as a trace into `output`, which must not exist or be empty: the events that `slice`
    /// tells and `keeps` holds for. `between` hears now and then how many events were read, and may stop the
    /// work; then, as after an error, nothing is left of what was written.
    ///
    /// # Errors
    /// Those of the file system; [`io::ErrorKind::Interrupted`] where it was stopped.
    pub fn write_part<'a>(
        &'a self,
        slice: &'a Slice,
        output: &Path,
        keeps: impl Fn(&MergedEvent<'a>) -> bool,
        mut between: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<Sliced> {
        let existed = output.exists();
        let result = Slicer::new(self, slice).write(output, keeps, &mut between);
        if result.is_err() {
            // The first error matters more than what happens to the remains. All of them are ours: the
            // directory was empty.
            let _ = std::fs::remove_dir_all(output);
            if existed {
                let _ = std::fs::create_dir(output);
            }
        }
        result
    }
}

struct Slicer<'a> {
    trace: &'a Trace,
    slice: &'a Slice,
    selected: Vec<bool>,
    states: Vec<ThreadState>,
    streams_of_tid: FxHashMap<i64, Vec<usize>>,
    /// Type and task creations before the range: process key, event.
    creations: Vec<(usize, Event<'a>)>,
    dictionary: Vec<(usize, Event<'a>)>,
    instrumented: Instrumented,
    /// Moves by threads that are left out, of threads that the kernel has taken off their CPUs, while there is no
    /// other thread of the process that could tell: which is moved, and how.
    moves: Vec<(usize, Event<'a>)>,
}

impl<'a> Slicer<'a> {
    fn new(trace: &'a Trace, slice: &'a Slice) -> Self {
        let mut streams_of_tid: FxHashMap<i64, Vec<usize>> = FxHashMap::default();
        for (index, stream) in trace.streams().iter().enumerate() {
            if let Some(tid) = stream.tid() {
                streams_of_tid.entry(tid).or_default().push(index);
            }
        }
        let wanted = |stream: &Stream| {
            slice.threads.is_empty() || stream.tid().is_some_and(|tid| slice.threads.contains(&tid))
        };
        Slicer {
            trace,
            slice,
            selected: trace.streams().iter().map(wanted).collect(),
            states: vec![ThreadState { cpu: -1, ..ThreadState::default() }; trace.streams().len()],
            streams_of_tid,
            creations: Vec::new(),
            dictionary: Vec::new(),
            instrumented: Instrumented::new(trace.streams()),
            moves: Vec::new(),
        }
    }

    fn keeps_model(&self, code: Code) -> bool {
        let models = &self.slice.models;
        models.is_empty()
            || code.model() == ovni::LETTER
            || model_of(code.model()).is_some_and(|model| models.iter().any(|name| name == model.name))
    }

    fn write(
        mut self,
        output: &Path,
        keeps: impl Fn(&MergedEvent<'a>) -> bool,
        between: &mut impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<Sliced> {
        let mut read = 0;
        let mut go_on = |more: u64| {
            read += more;
            // Without an event it is a whole file that comes next.
            let asks = more == 0 || read.is_multiple_of(EVENTS_PER_ROUND);
            let stops = asks && between(read).is_break();
            if stops { Err(io::Error::from(io::ErrorKind::Interrupted)) } else { Ok(()) }
        };
        let count = self.trace.streams().len();
        let (begin, end) = self.slice.clocks.unwrap_or((i64::MIN, i64::MAX));
        let mut standard = vec![file_header().to_vec(); count];
        let mut own = vec![file_header().to_vec(); count];
        let mut touched = vec![false; count];
        let mut sliced = Sliced::default();
        let mut opened = false;
        let used = self.used_tasks(begin, end);
        let mut foreign: Vec<(usize, File, Event<'a>)> = Vec::new();
        for merged in self.trace.merge() {
            go_on(1)?;
            let MergedEvent { stream, file, event } = merged;
            if event.clock_ns >= end {
                break;
            }
            if event.clock_ns >= begin && !std::mem::replace(&mut opened, true) && self.slice.clocks.is_some()
            {
                self.open_states(begin, &used, &mut standard, &mut own, &mut touched);
                // What no living thread of its process could create yet.
                let creations = self.creations.drain(..);
                foreign.extend(creations.map(|(stream, event)| (stream, File::Standard, event)));
            }
            let in_range = event.clock_ns >= begin;
            let is_needed_by_others =
                is_name(file, &event) || is_creation(event.code) || instrument::is_creation(&event);
            if !self.selected[stream] && is_needed_by_others && self.keeps_model(event.code) {
                if in_range {
                    foreign.push((stream, file, event));
                } else {
                    let heir = if file == File::Own { self.heir(stream) } else { None };
                    self.remember(heir.unwrap_or(stream), file, event);
                }
            }
            if !self.selected[stream] || !self.keeps_model(event.code) || !keeps(&merged) {
                // A remote move still changes where another thread is.
                if file == File::Standard && event.code == ovni::REMOTE_AFFINITY {
                    self.follow(stream, &event);
                    let moved = self.moved(stream, &event);
                    if let Some(moved) = moved.filter(|moved| in_range && self.lives(*moved)) {
                        self.moves.push((moved, event));
                        if let Some(speaker) = self.speaker(moved) {
                            self.write_moves(speaker, event.clock_ns, &mut standard[speaker]);
                            touched[speaker] = true;
                        }
                    }
                }
                if !in_range && file == File::Own && self.keeps_model(event.code) {
                    self.instrumented.follow(stream, &event);
                }
                continue;
            }
            if in_range && !self.moves.is_empty() {
                self.write_moves(stream, event.clock_ns, &mut standard[stream]);
            }
            // What other threads of the process created and named, a running thread of the slice creates and names.
            let can_create = self.states[stream].running == Life::Running && !self.is_off_cpu(stream);
            if in_range && !foreign.is_empty() && can_create {
                let pid = self.trace.streams()[stream].pid().unwrap_or(0);
                foreign.retain(|(creator, file, created)| {
                    let same = self.process_of(*creator) == self.process_of(stream);
                    let key = (pid, created.code.model(), first_u32(created.payload));
                    if same && (is_name(*file, created) || created.is_jumbo || used.contains(&key)) {
                        let bytes = if *file == File::Own { &mut own[stream] } else { &mut standard[stream] };
                        push(bytes, event.clock_ns, created.code, created.is_jumbo, created.payload);
                    }
                    !same
                });
            }
            if file == File::Standard {
                self.follow(stream, &event);
            } else {
                self.instrumented.follow(stream, &event);
                match event.code {
                    recorder::PAUSE_BEGIN => self.states[stream].is_paused = true,
                    recorder::PAUSE_END => self.states[stream].is_paused = false,
                    _ => {}
                }
            }
            if event.clock_ns < begin {
                self.remember(stream, file, event);
                continue;
            }
            // Threads that are not there cannot be moved.
            if file == File::Standard
                && event.code == ovni::REMOTE_AFFINITY
                && self.moved(stream, &event).is_some_and(|moved| !self.selected[moved])
            {
                continue;
            }
            touched[stream] = true;
            sliced.events += 1;
            let bytes = if file == File::Standard { &mut standard[stream] } else { &mut own[stream] };
            if !self.moves.is_empty() && event.code == ovni::THREAD_EXECUTES {
                // Its CPU may be one that a thread which must be moved first still has.
                let (cpu, rest) = event.payload.split_at(event.payload.len().min(4));
                push(
                    bytes,
                    event.clock_ns,
                    event.code,
                    event.is_jumbo,
                    &[&(-1_i32).to_le_bytes(), rest].concat(),
                );
                self.write_moves(stream, event.clock_ns, bytes);
                push(bytes, event.clock_ns, ovni::SET_AFFINITY, false, cpu);
                continue;
            }
            push(bytes, event.clock_ns, event.code, event.is_jumbo, event.payload);
            if !self.moves.is_empty() && event.code == kernel::BACK_ON_CPU {
                self.write_moves(stream, event.clock_ns, bytes);
            }
        }
        if !opened && self.slice.clocks.is_some() {
            self.open_states(begin, &used, &mut standard, &mut own, &mut touched);
        }
        self.close_states(end, &mut standard, &mut own);
        // Clocks that were corrected to before 0 are so in the slice, too.
        let first = self.trace.streams().iter().filter_map(Stream::first_clock_ns).min().unwrap_or(0);
        let shift = first.max(begin).min(0).saturating_neg();
        // What is open is opened a nanosecond earlier for each thread.
        let may_be_negative = first.max(begin) < count as i64;
        let shift = may_be_negative.then_some(shift);
        for bytes in standard.iter_mut().chain(&mut own) {
            place_clocks(bytes, shift);
        }
        let mut declared = Declared::by(self.trace.streams());
        for (index, stream) in self.trace.streams().iter().enumerate() {
            if touched[index] {
                go_on(0)?;
                sliced.streams += 1;
                let metadata = self.metadata_of(stream, &mut declared);
                self.write_stream(stream, output, &standard[index], &own[index], &metadata, shift)?;
            }
        }
        self.write_clock_offsets(output, &touched, shift.unwrap_or(0))?;
        Ok(sliced)
    }

    /// Clocks are corrected in the slice, but for `shift`. Where several hosts are left, a table says so.
    fn write_clock_offsets(&self, output: &Path, touched: &[bool], shift: i64) -> io::Result<()> {
        let streams = self.trace.streams().iter().zip(touched).filter(|(_, touched)| **touched);
        let hosts: BTreeSet<&str> = streams.map(|(stream, _)| stream.metadata.host()).collect();
        let are_known =
            !self.trace.problems().iter().any(|problem| problem.kind == ProblemKind::NoClockOffsets);
        if (hosts.len() < 2 || !are_known) && shift == 0 {
            return Ok(());
        }
        let median_ns = 0.0 - shift as f64;
        let entry = |(rank, host): (i64, &str)| ClockOffset {
            rank,
            host: host.to_owned(),
            median_ns,
            ..ClockOffset::default()
        };
        let table = ClockOffsets { entries: (0..).zip(hosts).map(entry).collect() };
        std::fs::write(output.join(FILE), table.to_text())
    }

    /// Tasks that events of the range name, by process, model, and the lower half of their numbers.
    fn used_tasks(&self, begin: i64, end: i64) -> FxHashSet<(i64, u8, u32)> {
        let mut used = FxHashSet::default();
        for (_, stream) in self.trace.streams().iter().enumerate().filter(|(index, _)| self.selected[*index])
        {
            for event in stream.events_of(File::Standard) {
                if (begin..end).contains(&event.clock_ns) && task_step(event.code).is_some() {
                    used.insert((stream.pid().unwrap_or(0), event.code.model(), first_u32(event.payload)));
                }
            }
            for event in stream.events_of(File::Own) {
                if (begin..end).contains(&event.clock_ns)
                    && let Some(task) = instrument::task_taken_up(&event)
                {
                    used.insert((stream.pid().unwrap_or(0), event.code.model(), task as u32));
                }
            }
        }
        used
    }

    /// Keeps what may be needed later from before the range.
    fn remember(&mut self, stream: usize, file: File, event: Event<'a>) {
        match event.code {
            code if is_creation(code) => self.creations.push((stream, event)),
            _ if is_name(file, &event) => self.dictionary.push((stream, event)),
            _ => {}
        }
    }

    /// Applies an event to the state of its thread.
    fn follow(&mut self, stream: usize, event: &Event<'a>) {
        let payload = event.payload;
        let model = event.code.model();
        let state = &mut self.states[stream];
        match event.code {
            ovni::THREAD_EXECUTES => {
                state.running = Life::Running;
                state.cpu = first_u32(payload) as i32;
            }
            ovni::THREAD_ENDS => {
                state.running = Life::Ended;
                self.instrumented.thread_ends(stream, event.clock_ns);
            }
            ovni::THREAD_PAUSES => state.running = Life::Paused,
            ovni::THREAD_RESUMES => state.running = Life::Running,
            ovni::THREAD_COOLS => state.running = Life::Cooling,
            ovni::THREAD_WARMS => state.running = Life::Warming,
            ovni::SET_AFFINITY => state.cpu = first_u32(payload) as i32,
            ovni::REMOTE_AFFINITY => {
                if let Some(moved) = self.moved(stream, event) {
                    self.states[moved].cpu = first_u32(payload) as i32;
                }
            }
            ovni::FLUSH_BEGIN => state.open(Key::Flush, event, Some((ovni::FLUSH_END, Vec::new()))),
            ovni::FLUSH_END => state.close(Key::Flush),
            kernel::OUT_OF_CPU => state.open(Key::OutOfCpu, event, Some((kernel::BACK_ON_CPU, Vec::new()))),
            kernel::BACK_ON_CPU => state.close(Key::OutOfCpu),
            ovni::MARK_PUSH => {
                let Some(mark) = payload.first_chunk() else { return };
                state.open(Key::Mark(*mark), event, Some((ovni::MARK_POP, payload.to_vec())));
            }
            ovni::MARK_POP => {
                let Some(mark) = payload.first_chunk() else { return };
                state.close(Key::Mark(*mark));
            }
            ovni::MARK_SET => {
                let Some(mark) = payload.get(8..).and_then(|rest| rest.first_chunk()) else { return };
                state.close(Key::MarkState(*mark));
                state.open(Key::MarkState(*mark), event, None);
            }
            openmp::WORKSHARE_EXECUTE => {
                let Some(id) = payload.first_chunk() else { return };
                state.open(Key::Workshare(*id), event, Some((openmp::WORKSHARE_END, payload.to_vec())));
            }
            openmp::WORKSHARE_END => {
                let Some(id) = payload.first_chunk() else { return };
                state.close(Key::Workshare(*id));
            }
            code => match (task_step(code), models::find(code).map(|spec| spec.effect)) {
                (Some(step), _) => state.follow_task(step, event),
                (None, Some(Effect::Push(channel, value, _))) => {
                    let end = end_of(code, channel, value);
                    state.open(Key::Section(model, channel, value), event, end.map(|end| (end, Vec::new())));
                }
                (None, Some(Effect::Pop(channel, value, _))) => {
                    state.close(Key::Section(model, channel, value))
                }
                (None, Some(Effect::Set(channel, ..))) => {
                    state.close(Key::State(model, channel));
                    // The initial value of both idle channels need not be set again.
                    if !matches!(code, nanos6::IDLE_PROGRESSING | nosv::IDLE_PROGRESSING) {
                        state.open(Key::State(model, channel), event, None);
                    }
                }
                _ => {}
            },
        }
    }

    /// Writes what was kept back of the moves of threads of a process, if this thread of it can tell now.
    fn write_moves(&mut self, stream: usize, clock_ns: i64, bytes: &mut Vec<u8>) {
        if self.can_tell(stream) {
            let mut moves = std::mem::take(&mut self.moves);
            let is_of_process = |moved: usize| self.process_of(moved) == self.process_of(stream);
            for (_, event) in moves.extract_if(.., |(moved, _)| is_of_process(*moved)) {
                push(bytes, clock_ns, event.code, event.is_jumbo, event.payload);
            }
            self.moves = moves;
        }
    }

    /// Who tells of a move: the thread itself, or where the kernel keeps it, another one of its process.
    fn speaker(&self, moved: usize) -> Option<usize> {
        let others =
            (0..self.selected.len()).filter(|other| self.process_of(*other) == self.process_of(moved));
        std::iter::once(moved).chain(others).find(|stream| self.can_tell(*stream))
    }

    fn can_tell(&self, stream: usize) -> bool {
        self.lives(stream) && !self.is_off_cpu(stream)
    }

    fn is_off_cpu(&self, stream: usize) -> bool {
        self.states[stream].open.iter().any(|open| open.key == Key::OutOfCpu)
    }

    /// The thread that a remote move concerns.
    fn moved(&self, from: usize, event: &Event<'_>) -> Option<usize> {
        let tid = i64::from(event.payload.get(4..8).map_or(0, first_u32) as i32);
        let streams = self.trace.streams();
        let candidates = self.streams_of_tid.get(&tid)?;
        let same_process = candidates.iter().find(|other| {
            streams[**other].pid() == streams[from].pid() && streams[**other].loom() == streams[from].loom()
        });
        let same_loom = || candidates.iter().find(|other| streams[**other].loom() == streams[from].loom());
        same_process.or_else(same_loom).copied()
    }

    /// The stream that takes over what another one of its process named.
    fn heir(&self, stream: usize) -> Option<usize> {
        let process = self.process_of(stream);
        (0..self.selected.len()).find(|other| self.selected[*other] && self.process_of(*other) == process)
    }

    fn process_of(&self, stream: usize) -> Process<'_> {
        let stream = &self.trace.streams()[stream];
        (stream.loom(), stream.pid())
    }

    /// Whether a thread of the slice lives.
    fn lives(&self, stream: usize) -> bool {
        self.selected[stream] && !matches!(self.states[stream].running, Life::NotStarted | Life::Ended)
    }

    /// Threads that live, those that do not run first.
    fn living(&self) -> Vec<usize> {
        let mut living: Vec<usize> = (0..self.states.len()).filter(|stream| self.lives(*stream)).collect();
        living.sort_by_key(|stream| self.states[*stream].running == Life::Running);
        living
    }

    /// Brings every thread to where it was when the range begins.
    fn open_states(
        &mut self,
        begin: i64,
        used: &FxHashSet<(i64, u8, u32)>,
        standard: &mut [Vec<u8>],
        own: &mut [Vec<u8>],
        touched: &mut [bool],
    ) {
        let living = self.living();
        let mut open_tasks = used.clone();
        for stream in &living {
            let pid = self.trace.streams()[*stream].pid().unwrap_or(0);
            for open in &self.states[*stream].open {
                if let Key::Task(model, id) = open.key {
                    open_tasks.insert((pid, model, first_u32(&id)));
                }
            }
        }
        for (stream, event) in std::mem::take(&mut self.dictionary) {
            let clock = begin.saturating_sub(living.len() as i64 + 1);
            touched[stream] = true;
            push(&mut own[stream], clock, event.code, event.is_jumbo, event.payload);
        }
        let mut creations = std::mem::take(&mut self.creations);
        for (slot, stream) in living.iter().enumerate() {
            let clock = begin.saturating_sub(living.len() as i64).saturating_add(slot as i64);
            let bytes = &mut standard[*stream];
            let state = &self.states[*stream];
            touched[*stream] = true;
            let mut payload = state.cpu.to_le_bytes().to_vec();
            payload.extend((-1i32).to_le_bytes());
            payload.extend(0u64.to_le_bytes());
            push(bytes, clock, ovni::THREAD_EXECUTES, false, &payload);
            // The first thread of a process creates what the process had created.
            let pid = self.trace.streams()[*stream].pid().unwrap_or(0);
            creations.retain(|(creator, event)| {
                if self.process_of(*creator) != self.process_of(*stream) {
                    return true;
                }
                let key = (pid, event.code.model(), first_u32(event.payload));
                if event.is_jumbo || open_tasks.contains(&key) {
                    push(bytes, clock, event.code, event.is_jumbo, event.payload);
                }
                false
            });
            let reopen = |bytes: &mut Vec<u8>, off_cpu: bool| {
                for open in state.open.iter().filter(|open| (open.key == Key::OutOfCpu) == off_cpu) {
                    let (code, is_jumbo, payload) = &open.begin;
                    push(bytes, clock, *code, *is_jumbo, payload);
                }
            };
            reopen(bytes, false);
            let into_state = match state.running {
                Life::Paused => &[ovni::THREAD_PAUSES][..],
                Life::Warming => &[ovni::THREAD_PAUSES, ovni::THREAD_WARMS],
                Life::Cooling => &[ovni::THREAD_COOLS],
                _ => &[],
            };
            into_state.iter().for_each(|code| push(bytes, clock, *code, false, &[]));
            reopen(bytes, true);
            if state.is_paused {
                push(&mut own[*stream], clock, recorder::PAUSE_BEGIN, false, &[]);
            }
            push_all(&mut own[*stream], clock, &self.instrumented.opening(&living, slot));
        }
        self.creations = creations;
    }

    /// Ends every thread that lives when the range ends. Those that run go first.
    fn close_states(&mut self, end: i64, standard: &mut [Vec<u8>], own: &mut [Vec<u8>]) {
        let mut living = self.living();
        if end == i64::MAX {
            // Nothing was cut off: a thread that never ended is left as it is.
            return;
        }
        living.reverse();
        for (slot, stream) in living.into_iter().enumerate() {
            let clock = end.saturating_add(slot as i64).saturating_add(i64::from(self.instrumented.is_used));
            push_all(&mut own[stream], end, &self.instrumented.closing(stream));
            let (bytes, state) = (&mut standard[stream], &self.states[stream]);
            let to_run = match state.running {
                Life::Paused | Life::Warming => &[ovni::THREAD_RESUMES][..],
                Life::Cooling => &[ovni::THREAD_PAUSES, ovni::THREAD_RESUMES],
                _ => &[],
            };
            let on_cpu = |open: &&Open| open.key == Key::OutOfCpu;
            // Off its CPU a thread can do nothing else.
            for open in state.open.iter().filter(on_cpu) {
                if let Some((code, payload)) = &open.close {
                    push(bytes, clock, *code, false, payload);
                }
            }
            to_run.iter().for_each(|code| push(bytes, clock, *code, false, &[]));
            for open in state.open.iter().rev().filter(|open| !on_cpu(open)) {
                if let Some((code, payload)) = &open.close {
                    push(bytes, clock, *code, false, payload);
                }
            }
            push(bytes, clock, ovni::THREAD_ENDS, false, &[]);
        }
    }

    fn write_stream(
        &self,
        stream: &Stream,
        output: &Path,
        standard: &[u8],
        own: &[u8],
        metadata: &Value,
        shift: Option<i64>,
    ) -> io::Result<()> {
        // Names that are no UTF-8 as they are: as they are shown, two may be one.
        let below = stream.directory.strip_prefix(self.trace.root());
        let directory = output.join(below.unwrap_or(Path::new(&stream.relative_path)));
        std::fs::create_dir_all(&directory)?;
        replace_file(&directory.join(File::Standard.name()), |out| out.write_all(standard))?;
        if own.len() > file_header().len() {
            replace_file(&directory.join(File::Own.name()), |out| out.write_all(own))?;
        }
        let mut sampled = self.samples_of(stream);
        place_clocks(&mut sampled, shift);
        if sampled.len() > file_header().len() {
            replace_file(&directory.join(File::Samples.name()), |out| out.write_all(&sampled))?;
        }
        replace_file(&directory.join("stream.json"), |out| writeln!(out, "{metadata:#}"))
    }

    /// The samples of the range.
    fn samples_of(&self, stream: &Stream) -> Vec<u8> {
        let mut bytes = file_header().to_vec();
        let (begin, end) = self.slice.clocks.unwrap_or((i64::MIN, i64::MAX));
        for event in stream.events_of(File::Samples) {
            if (begin..end).contains(&event.clock_ns) && self.keeps_model(event.code) {
                push(&mut bytes, event.clock_ns, event.code, event.is_jumbo, event.payload);
            }
        }
        bytes
    }

    /// The stream's metadata with the models that are left, and with what streams that are not in the slice may
    /// have told for it. Clocks are corrected already.
    fn metadata_of(&self, stream: &Stream, declared: &mut Declared<'_>) -> Value {
        let mut metadata = stream.metadata.raw.clone();
        if !metadata["ovni"].is_object() {
            metadata = json!({"version": 3, "ovni": {"part": "thread", "tid": stream.tid(), "pid": stream.pid(), "loom": stream.loom()}});
        }
        let ovni = &mut metadata["ovni"];
        let closes = self.slice.clocks.is_some_and(|(_, end)| end != i64::MAX);
        if closes {
            ovni["finished"] = json!(1);
        }
        if let Some(require) = ovni.get_mut("require").and_then(Value::as_object_mut)
            && !self.slice.models.is_empty()
        {
            require.retain(|name, _| name == "ovni" || self.slice.models.contains(name));
        }
        if let Some(cpus) = declared.cpus.get(&stream.loom()) {
            let entries = cpus.iter().map(|(index, phyid)| json!({"index": index, "phyid": phyid}));
            ovni["loom_cpus"] = entries.collect();
        }
        if let Some(numbers) = declared.processes.get(&(stream.loom(), stream.pid())) {
            for (key, number) in ["app_id", "rank", "nranks"].into_iter().zip(numbers) {
                if let Some(number) = number {
                    ovni[key] = json!(number);
                }
            }
        }
        // Marks are those of the whole trace: one stream declares them.
        if let Some(marks) = declared.marks.take() {
            add_missing(&mut ovni["mark"], &marks);
        }
        metadata
    }
}

/// What the streams of a trace declare for each other.
struct Declared<'a> {
    /// Of each loom: logical index and shown number.
    cpus: FxHashMap<Option<&'a str>, BTreeSet<(i64, i64)>>,
    /// Of each process: application id, rank, and number of ranks.
    processes: FxHashMap<Process<'a>, [Option<i64>; 3]>,
    /// `ovni.mark` of all.
    marks: Option<Value>,
}

impl<'a> Declared<'a> {
    fn by(streams: &'a [Stream]) -> Self {
        let mut declared =
            Declared { cpus: FxHashMap::default(), processes: FxHashMap::default(), marks: None };
        for stream in streams {
            let metadata = &stream.metadata;
            if let Some(cpus) = &metadata.loom_cpus {
                let known = declared.cpus.entry(stream.loom()).or_default();
                known.extend(cpus.iter().map(|cpu| (cpu.index, cpu.phyid)));
            }
            let numbers = declared.processes.entry((stream.loom(), stream.pid())).or_default();
            for (known, number) in numbers.iter_mut().zip([metadata.app_id, metadata.rank, metadata.nranks]) {
                *known = known.or(number);
            }
            let marks = &metadata.raw["ovni"]["mark"];
            if marks.is_object() {
                add_missing(declared.marks.get_or_insert_default(), marks);
            }
        }
        declared
    }
}

/// Adds to a JSON object what only another one has, at any depth.
fn add_missing(object: &mut Value, other: &Value) {
    if object.is_null() {
        *object = other.clone();
    } else if let (Some(object), Some(other)) = (object.as_object_mut(), other.as_object()) {
        for (key, value) in other {
            add_missing(object.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Whether an event gives a meaning to numbers that later events of its process use.
fn is_name(file: File, event: &Event<'_>) -> bool {
    let code = event.code;
    file == File::Own
        && (code.model() == dictionary::LETTER
            || matches!(code, samples::PATH | samples::TASK_PATH)
            || models::instrument::NAMES.contains(&code))
}

/// Whether an event creates a task type or a task.
fn is_creation(code: Code) -> bool {
    matches!(
        code,
        nanos6::TYPE_CREATE
            | nosv::TYPE_CREATE
            | openmp::TYPE_CREATE
            | nanos6::TASK_CREATE
            | nosv::TASK_CREATE
            | nosv::PARALLEL_TASK_CREATE
            | openmp::TASK_CREATE
    )
}

/// What an event does to a task that it names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskStep {
    Execute,
    End,
    Pause,
    Resume,
}

fn task_step(code: Code) -> Option<TaskStep> {
    Some(match code {
        nanos6::TASK_EXECUTE | nosv::TASK_EXECUTE | openmp::TASK_EXECUTE => TaskStep::Execute,
        nanos6::TASK_END | nosv::TASK_END | openmp::TASK_END => TaskStep::End,
        nanos6::TASK_PAUSE | nosv::TASK_PAUSE => TaskStep::Pause,
        nanos6::TASK_RESUME | nosv::TASK_RESUME => TaskStep::Resume,
        _ => return None,
    })
}

impl ThreadState {
    fn open(&mut self, key: Key, event: &Event<'_>, close: Option<(Code, Vec<u8>)>) {
        self.open.push(Open { key, begin: (event.code, event.is_jumbo, event.payload.to_vec()), close });
    }

    fn close(&mut self, key: Key) {
        if let Some(position) = self.open.iter().rposition(|open| open.key == key) {
            self.open.remove(position);
        }
    }

    fn follow_task(&mut self, step: TaskStep, event: &Event<'_>) {
        let model = event.code.model();
        let mut id = [0; 8];
        let length = event.payload.len().min(8);
        id[..length].copy_from_slice(&event.payload[..length]);
        let payload = event.payload.to_vec();
        let (end, resume) = match model {
            nanos6::LETTER => (nanos6::TASK_END, nanos6::TASK_RESUME),
            nosv::LETTER => (nosv::TASK_END, nosv::TASK_RESUME),
            _ => (openmp::TASK_END, openmp::TASK_END),
        };
        match step {
            TaskStep::Execute => self.open(Key::Task(model, id), event, Some((end, payload))),
            TaskStep::End => self.close(Key::Task(model, id)),
            TaskStep::Pause => self.open(Key::TaskPaused(model, id), event, Some((resume, payload))),
            TaskStep::Resume => self.close(Key::TaskPaused(model, id)),
        }
    }
}

/// The event that leaves the section that `begin` enters.
fn end_of(begin: Code, channel: Channel, value: i64) -> Option<Code> {
    let events = model_of(begin.model())?.events;
    let end = events
        .iter()
        .find(|event| matches!(event.effect, Effect::Pop(c, v, _) if c == channel && v == value));
    end.map(|event| event.code)
}

fn first_u32(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Makes clocks that [`push`] has written those of a file, which has none below 0: each is later by `shift`, or 0.
/// `None` where none can be.
fn place_clocks(bytes: &mut [u8], shift: Option<i64>) {
    let Some(shift) = shift else { return };
    let mut at = FILE_HEADER_BYTES;
    while let Some(head) = EventHead::read(bytes, at) {
        let clock = (head.raw_clock as i64).saturating_add(shift).max(0);
        bytes[at + 4..at + 12].copy_from_slice(&clock.to_le_bytes());
        at = head.end;
    }
}

/// Appends an event. Clocks are corrected ones, and may be negative until [`place_clocks`].
fn push(bytes: &mut Vec<u8>, clock_ns: i64, code: Code, is_jumbo: bool, payload: &[u8]) {
    let flags = if is_jumbo { JUMBO_FLAG | JUMBO_SIZE_CODE } else { size_code(payload.len()) };
    bytes.extend(head_word(flags, code).to_le_bytes());
    bytes.extend(clock_ns.to_le_bytes());
    if is_jumbo {
        bytes.extend((payload.len() as u32).to_le_bytes());
    }
    bytes.extend(payload);
}
