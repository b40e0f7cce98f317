//! The borders of a slice: sections open at the begin of the range are opened in the nanoseconds before it, and
//! sections open at its end are closed after it.

use super::Slicer;
use crate::Event;
use crate::slice::bytes::{first_u32, push};
use crate::slice::instrument::{push_all, push_work};
use crate::slice::regions::Region;
use crate::slice::thread_state::{Key, Life, OpenPair};
use crate::slice::waits::{Hold, Lock};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::StreamFile;
use taskscope_event::models::{dictionary, mpi, omp, openmp, ovni, recorder};

/// A hold of a lock that ended before the range, with its stream.
struct Released<'a> {
    stream: usize,
    lock: Lock,
    hold: Hold<'a>,
}

impl<'a> Slicer<'a> {
    /// Restores every thread's state at the begin of the range.
    pub(super) fn open_states(
        &mut self,
        (begin, end): (i64, i64),
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
        let ended = self.ended_regions(&living);
        let gone = self.ended_streams(begin, end, &living);
        let earliest = self.late_earliest(&living);
        let released = self.released_holds(&living);
        // Two for each thread, one more for each further clock, one for the ends of regions, one for ends of holds and one for
        // waits that began after these.
        let clocks: Vec<i64> = living.iter().map(|stream| self.states[*stream].opening_clocks()).collect();
        self.opening_ns = clocks.iter().map(|clocks| 1 + clocks).sum::<i64>()
            + 2 * gone.len() as i64
            + i64::from(!ended.is_empty())
            + 2 * i64::from(!released.is_empty())
            + i64::from(!earliest.is_empty());
        let mut start = begin.saturating_sub(self.opening_ns);
        let present: FxHashSet<usize> = living.iter().chain(&gone).copied().collect();
        let mut recorders = FxHashMap::default();
        for (stream, event) in std::mem::take(&mut self.dictionary) {
            let clock = start.saturating_sub(1);
            // Names alone do not keep a stream: another thread that uses them may be there.
            let recorder = match present.contains(&stream) {
                true => stream,
                false => *recorders
                    .entry(self.process_of(stream))
                    .or_insert_with(|| self.recorder_of_names(stream, &present)),
            };
            push(&mut own[recorder], clock, event.code, event.is_jumbo, event.payload);
        }
        let mut creations = std::mem::take(&mut self.creations);
        let mut resting_cpus = self.resting_cpus(&living);
        for stream in gone {
            touched[stream] = true;
            // The first thread of a loom moves over its idle CPUs, as they are idle only after use. If others live, it
            // is one of these.
            let loom = self.trace.streams()[stream].loom();
            let mut cpus = Vec::new();
            if !living.iter().any(|other| self.trace.streams()[*other].loom() == loom) {
                cpus.extend(resting_cpus.extract_if(.., |(other, _)| *other == loom).map(|(_, cpu)| cpu));
            }
            self.push_short_life(stream, (&mut standard[stream], &mut own[stream]), start, cpus);
            start = start.saturating_add(2);
        }
        for stream in &earliest {
            push_execution(&mut standard[*stream], start, NO_CPU);
        }
        start = start.saturating_add(i64::from(!earliest.is_empty()));
        for (slot, stream) in living.iter().enumerate() {
            // Objects and places of waits precede these.
            let mut clock = start.saturating_add(1);
            let bytes = &mut standard[*stream];
            let state = &self.states[*stream];
            touched[*stream] = true;
            let loom = self.trace.streams()[*stream].loom();
            let passed = resting_cpus.extract_if(.., |(other, _)| *other == loom).map(|(_, cpu)| cpu);
            let mut cpus = passed.chain([state.cpu]);
            if !earliest.contains(stream) {
                push_execution(bytes, start, cpus.next().unwrap_or(state.cpu));
            }
            cpus.for_each(|cpu| push(bytes, start, ovni::SET_AFFINITY, false, &cpu.to_le_bytes()));
            // The type of the whole run, which may be recorded after the begin.
            if let Some(openmp_type) = state.openmp_type.or(self.capacity.openmp_type(*stream)) {
                push(&mut own[*stream], start, omp::THREAD_TYPE, false, &openmp_type.to_le_bytes());
            }
            let holds = released.iter().filter(|released| released.stream == *stream);
            let is_wait_open = !self.known_waits.are_known();
            let holds = holds.map(|released| released.hold);
            self.waits[*stream].write(start, holds, is_wait_open, &mut own[*stream]);
            let (sends, sends_in_call) = self.sends_on_their_way(*stream, &living);
            let (operations, operations_in_call) = self.split_at_call(*stream, self.operations.of(*stream));
            for event in sends.iter().chain(&operations) {
                push(&mut own[*stream], start, event.code, event.is_jumbo, event.payload);
            }
            for (_, region) in ended.iter().filter(|(master, _)| master == stream) {
                let begin = &region.begin;
                push(&mut own[*stream], start, begin.code, begin.is_jumbo, begin.payload);
            }
            if state.is_worker {
                push(bytes, start, openmp::RUNTIME_USER_MICROTASK_BEGIN, false, &[]);
                push(bytes, clock, openmp::RUNTIME_USER_MICROTASK_END, false, &[]);
            }
            // The first thread of a process repeats the process's creations.
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
            let mut opened_at = None;
            let late = self.late_wait(*stream, &released);
            let is_now = |open: &&OpenPair| open.key != Key::OutOfCpu && late != Some(open.clock_ns);
            for open in state.open.iter().filter(is_now) {
                let is_later = opened_at.replace(open.clock_ns).is_some_and(|before| before != open.clock_ns);
                clock = clock.saturating_add(i64::from(is_later));
                let (code, is_jumbo, payload) = &open.begin;
                let bytes = if open.file == StreamFile::Own { &mut own[*stream] } else { &mut *bytes };
                push(bytes, clock, *code, *is_jumbo, payload);
            }
            for event in operations_in_call.iter().chain(&sends_in_call) {
                push(&mut own[*stream], clock, event.code, event.is_jumbo, event.payload);
            }
            let into_state = match state.running {
                Life::Paused => &[ovni::THREAD_PAUSES][..],
                Life::Warming => &[ovni::THREAD_PAUSES, ovni::THREAD_WARMS],
                Life::Cooling => &[ovni::THREAD_COOLS],
                _ => &[],
            };
            into_state.iter().for_each(|code| push(bytes, clock, *code, false, &[]));
            for open in state.open.iter().filter(|open| open.key == Key::OutOfCpu) {
                let (code, is_jumbo, payload) = &open.begin;
                push(bytes, clock, *code, *is_jumbo, payload);
            }
            if state.is_paused {
                push(&mut own[*stream], clock, recorder::PAUSE_BEGIN, false, &[]);
            }
            push_all(&mut own[*stream], clock, &self.instrumented.opening(&living, slot));
            start = start.saturating_add(1 + clocks[slot]);
        }
        for (stream, region) in &ended {
            if let Some(end) = &region.end {
                push(&mut own[*stream], start, end.code, end.is_jumbo, end.payload);
            }
        }
        start = start.saturating_add(i64::from(!ended.is_empty()));
        for released in &released {
            released.hold.end(start, &mut own[released.stream]);
        }
        let late_clock = start.saturating_add(1);
        for stream in &living {
            let late = self.late_wait(*stream, &released);
            for open in self.states[*stream].open.iter().filter(|open| late == Some(open.clock_ns)) {
                let (code, is_jumbo, payload) = &open.begin;
                push(&mut standard[*stream], late_clock, *code, *is_jumbo, payload);
            }
        }
        self.creations = creations;
    }

    /// The stream that has the names by a thread of its process that is not there: one that is, or the next one that begins.
    fn recorder_of_names(&self, stream: usize, present: &FxHashSet<usize>) -> usize {
        let process = self.process_of(stream);
        let process_streams = || {
            (0..self.states.len()).filter(|other| self.selected[*other] && self.process_of(*other) == process)
        };
        let coming = process_streams().filter(|other| self.states[*other].running == Life::NotStarted);
        let next = coming.min_by_key(|other| self.trace.streams()[*other].first_clock_ns());
        process_streams().find(|other| present.contains(other)).or(next).unwrap_or(stream)
    }

    /// The wait for a lock in which a thread is: the lock, and the clock of its begin.
    fn open_wait(&self, stream: usize) -> Option<(Lock, i64)> {
        let last = self.states[stream].open.iter().rev().find(|open| open.key != Key::OutOfCpu)?;
        let is_wait = last.begin.0 == openmp::CRITICAL_ACQUIRING_BEGIN;
        self.waits[stream].lock_of_wait().filter(|_| is_wait).zip(Some(last.clock_ns))
    }

    /// Holds that ended in the waits of these threads, before the range: until the next hold they are the cause of these waits. Of
    /// each lock the last one, unless it is held again.
    fn released_holds(&self, living: &[usize]) -> Vec<Released<'a>> {
        let mut released: Vec<Released<'a>> = Vec::new();
        for waiter in living {
            let Some((lock, since)) = self.open_wait(*waiter) else { continue };
            let process = self.process_of(*waiter);
            let process_streams = || living.iter().filter(|other| self.process_of(**other) == process);
            let is_known =
                |known: &Released<'_>| known.lock == lock && self.process_of(known.stream) == process;
            if released.iter().any(is_known) || process_streams().any(|other| self.waits[*other].holds(lock))
            {
                continue;
            }
            let holds = process_streams().filter(|other| *other != waiter);
            let holds = holds.filter_map(|other| Some((*other, self.waits[*other].last_hold(lock)?)));
            let last = holds.max_by_key(|(_, hold)| hold.released_ns);
            let last = last.filter(|(_, hold)| hold.released_ns > since);
            released.extend(last.map(|(stream, hold)| Released { stream, lock, hold }));
        }
        released
    }

    /// The begin of a thread's wait for a lock, if the hold before it ended earlier. It is restored after the end of that hold.
    fn late_wait(&self, stream: usize, released: &[Released<'_>]) -> Option<i64> {
        let (lock, since) = self.open_wait(stream)?;
        let state = &self.states[stream];
        let acts = state.running == Life::Running && !state.is_off_cpu() && !state.is_paused;
        let process = self.process_of(stream);
        let is_late = |known: &Released<'_>| {
            known.lock == lock && self.process_of(known.stream) == process && known.hold.released_ns <= since
        };
        (acts && released.iter().any(is_late)).then_some(since)
    }

    /// Sends that are received in the range, of a stream or, by the first of these threads of a process, of others that have ended:
    /// those before the stream's current call, and those in it.
    fn sends_on_their_way(&self, stream: usize, living: &[usize]) -> (Vec<Event<'a>>, Vec<Event<'a>>) {
        let process = self.process_of(stream);
        let own = self.sends.get(&stream).cloned().unwrap_or_default();
        let (mut before, in_call) = self.split_at_call(stream, own);
        if living.iter().find(|other| self.process_of(**other) == process) == Some(&stream) {
            let has_ended = |other: &usize| !living.contains(other) && self.process_of(*other) == process;
            let ended = self.sends.iter().filter(|(other, _)| has_ended(other));
            before.extend(ended.flat_map(|(_, events)| events.iter().copied()));
        }
        (before, in_call)
    }

    /// Events before the call of MPI in which a thread is, and those in it.
    fn split_at_call(&self, stream: usize, events: Vec<Event<'a>>) -> (Vec<Event<'a>>, Vec<Event<'a>>) {
        let is_call = |open: &&OpenPair| matches!(open.key, Key::Call(_) | Key::Section(mpi::LETTER, ..));
        let call = self.states[stream].open.iter().find(is_call).map(|open| open.clock_ns);
        events.into_iter().partition(|event| call.is_none_or(|begun| event.clock_ns < begun))
    }

    /// Regions that are over and have members among these threads, or are the last ones of these threads, with the thread
    /// that repeats their begin and end: the master, or another one that is not a member.
    fn ended_regions(&self, living: &[usize]) -> Vec<(usize, Region<'a>)> {
        let mut known = FxHashSet::default();
        let mut ended = Vec::new();
        for stream in living {
            let process = self.process_of(*stream);
            for number in self.states[*stream].member_of().filter(|number| known.insert((process, *number))) {
                let Some(region) = self.regions.get(process, number).filter(|region| region.end.is_some())
                else {
                    continue;
                };
                let is_member = |other: &usize| self.states[*other].member_of().any(|of| of == number);
                let others =
                    living.iter().filter(|other| self.process_of(**other) == process && !is_member(other));
                let master = living.iter().filter(|other| **other == region.master);
                if let Some(recorder) = master.chain(others).next() {
                    ended.push((*recorder, *region));
                }
            }
        }
        for stream in living.iter().filter(|stream| !self.states[**stream].is_master()) {
            let last = self.regions.last_of(*stream).filter(|region| {
                region
                    .begin
                    .payload
                    .first_chunk()
                    .is_some_and(|number| known.insert((self.process_of(*stream), *number)))
            });
            ended.extend(last.map(|region| (*stream, *region)));
        }
        ended
    }

    /// The next parallel region of each of these threads in serial code, after which this is named, too: the names that came
    /// between, the begin and the end of the region, by stream.
    fn coming_regions(&self, end: i64, living: &[usize]) -> Vec<(usize, Event<'a>)> {
        let is_serial = |stream: &usize| {
            let state = &self.states[*stream];
            !state.is_master() && state.member_of().next().is_none()
        };
        let mut coming = Vec::new();
        for stream in living.iter().copied().filter(is_serial) {
            let events = self.own_events_from(stream, end);
            let mut own = events.skip_while(|event| event.code != omp::REGION_BEGIN);
            let Some(region) = own.next() else { continue };
            let number = region.payload.first_chunk::<4>();
            let is_end =
                |event: &Event<'_>| event.code == omp::REGION_END && event.payload.first_chunk() == number;
            let process = self.process_of(stream);
            let process_streams = (0..self.states.len()).filter(|other| self.process_of(*other) == process);
            for other in process_streams {
                let until =
                    self.own_events_from(other, end).take_while(|event| event.clock_ns <= region.clock_ns);
                let names = until.filter(|event| event.code.model() == dictionary::LETTER);
                coming.extend(names.map(|event| (stream, event)));
            }
            coming.push((stream, region));
            coming.extend(own.find(is_end).map(|event| (stream, event)));
        }
        coming
    }

    /// The events of a stream's own file from a clock on, of the models that the slice keeps.
    fn own_events_from(&self, stream: usize, clock_ns: i64) -> impl Iterator<Item = Event<'a>> + '_ {
        let events = self.trace.streams()[stream].events_of(StreamFile::Own);
        events.filter(move |event| event.clock_ns >= clock_ns && self.keeps_model(event.code))
    }

    /// Threads that ended before the range, of which the slice has short lives.
    fn ended_streams(&self, begin: i64, end: i64, living: &[usize]) -> Vec<usize> {
        let living: FxHashSet<usize> = living.iter().copied().collect();
        let has_ended = |stream: usize| self.selected[stream] && self.states[stream].running == Life::Ended;
        let missing = self.capacity.missing((begin, end), has_ended, |stream| living.contains(&stream));
        self.with_awaited(missing, has_ended)
    }

    /// Threads that begin after the range, of which the slice has short lives.
    fn coming_streams(&self, begin: i64, end: i64) -> Vec<usize> {
        let comes = |stream: usize| self.selected[stream] && self.states[stream].running == Life::NotStarted;
        let missing = self.capacity.missing((begin, end), comes, |stream| self.lives(stream));
        self.with_awaited(missing, comes)
    }

    /// Adds the threads outside of the range that others in it waited for.
    fn with_awaited(&self, mut missing: Vec<usize>, is_outside: impl Fn(usize) -> bool) -> Vec<usize> {
        let streams = 0..self.states.len();
        let awaited = streams.filter(|stream| is_outside(*stream) && self.known_waits.needs(*stream));
        let awaited: Vec<usize> = awaited.filter(|stream| !missing.contains(stream)).collect();
        missing.extend(awaited);
        missing
    }

    /// Living threads that are workers because they are the first of their processes, and are restored after others.
    fn late_earliest(&self, living: &[usize]) -> FxHashSet<usize> {
        let mut processes = FxHashSet::default();
        let is_late = |stream: &usize| {
            !processes.insert(self.process_of(*stream)) && self.capacity.is_earliest(*stream)
        };
        living.iter().copied().filter(is_late).collect()
    }

    /// CPUs that threads have used and on which none of those that live is, by loom and index.
    fn resting_cpus(&self, living: &[usize]) -> Vec<(Option<&str>, i32)> {
        let streams = self.trace.streams();
        let place = |stream: &usize| (streams[*stream].loom(), self.states[*stream].cpu);
        let taken: FxHashSet<_> = living.iter().map(place).collect();
        let known: FxHashSet<_> = (streams.iter())
            .flat_map(|stream| {
                stream.metadata.loom_cpus.iter().flatten().map(|cpu| (stream.loom(), cpu.index))
            })
            .collect();
        let rests = |(loom, cpu): &(Option<&str>, i32)| {
            !taken.contains(&(*loom, *cpu)) && known.contains(&(*loom, i64::from(*cpu)))
        };
        self.used_cpus.iter().copied().filter(rests).collect()
    }

    /// Ends every thread that lives when the range ends. Those that run go first.
    pub(super) fn close_states(
        &mut self,
        (begin, end): (i64, i64),
        standard: &mut [Vec<u8>],
        own: &mut [Vec<u8>],
        touched: &mut [bool],
    ) {
        let mut living = self.living();
        if end == i64::MAX {
            // Nothing was cut off: a thread that never ended is left as it is.
            return;
        }
        living.reverse();
        for (stream, event) in self.coming_regions(end, &living) {
            push(&mut own[stream], end, event.code, event.is_jumbo, event.payload);
        }
        let mut processes = FxHashSet::default();
        for stream in living.iter().filter(|stream| processes.insert(self.process_of(**stream))) {
            for event in self.known_waits.later_names(self.trace, *stream, end) {
                push(&mut own[*stream], end, event.code, event.is_jumbo, event.payload);
            }
        }
        // Of one clock, standard events come first, so sections of own models are closed before it.
        let is_own = |open: &&OpenPair| open.file == StreamFile::Own && open.close.is_some();
        let has_own = |stream: &usize| self.states[*stream].open.iter().any(|open| is_own(&open));
        let ends_own = self.instrumented.is_used || living.iter().any(has_own);
        for (slot, stream) in living.into_iter().enumerate() {
            let clock = end.saturating_add(slot as i64).saturating_add(i64::from(ends_own));
            push_all(&mut own[stream], end, &self.instrumented.closing(stream));
            for open in self.states[stream].open.iter().rev().filter(is_own) {
                if let Some((code, payload)) = &open.close {
                    push(&mut own[stream], end, *code, false, payload);
                }
            }
            let (bytes, state) = (&mut standard[stream], &self.states[stream]);
            let to_run = match state.running {
                Life::Paused | Life::Warming => &[ovni::THREAD_RESUMES][..],
                Life::Cooling => &[ovni::THREAD_PAUSES, ovni::THREAD_RESUMES],
                _ => &[],
            };
            let on_cpu = |open: &&OpenPair| open.key == Key::OutOfCpu;
            // Off its CPU a thread can do nothing else.
            for open in state.open.iter().filter(on_cpu) {
                if let Some((code, payload)) = &open.close {
                    push(bytes, clock, *code, false, payload);
                }
            }
            to_run.iter().for_each(|code| push(bytes, clock, *code, false, &[]));
            for open in state.open.iter().rev().filter(|open| !on_cpu(open) && !is_own(open)) {
                if let Some((code, payload)) = &open.close {
                    push(bytes, clock, *code, false, payload);
                }
            }
            // It joins a team only after the range.
            if self.capacity.has_worked(stream) && !state.is_worker {
                push(bytes, clock, openmp::RUNTIME_USER_MICROTASK_BEGIN, false, &[]);
                push(bytes, clock, openmp::RUNTIME_USER_MICROTASK_END, false, &[]);
            }
            if self.capacity.takes_up_tasks(stream) && !self.instrumented.runs_tasks(stream) {
                push_work(&mut own[stream], end, stream);
            }
            // It is recorded only after the range.
            if let Some(openmp_type) =
                self.capacity.openmp_type(stream).filter(|_| state.openmp_type.is_none())
            {
                push(&mut own[stream], end, omp::THREAD_TYPE, false, &openmp_type.to_le_bytes());
            }
            push(bytes, clock, ovni::THREAD_ENDS, false, &[]);
        }
        for stream in self.coming_streams(begin, end) {
            touched[stream] = true;
            self.push_short_life(stream, (&mut standard[stream], &mut own[stream]), end, Vec::new());
        }
    }

    /// Writes the life of a thread outside of the range: two nanoseconds, on these CPUs or none.
    fn push_short_life(
        &self,
        stream: usize,
        (standard, own): (&mut Vec<u8>, &mut Vec<u8>),
        clock_ns: i64,
        cpus: Vec<i32>,
    ) {
        let mut cpus = cpus.into_iter();
        push_execution(standard, clock_ns, cpus.next().unwrap_or(NO_CPU));
        cpus.for_each(|cpu| push(standard, clock_ns, ovni::SET_AFFINITY, false, &cpu.to_le_bytes()));
        if let Some(openmp_type) = self.capacity.openmp_type(stream) {
            push(own, clock_ns, omp::THREAD_TYPE, false, &openmp_type.to_le_bytes());
        }
        let end = clock_ns.saturating_add(1);
        if self.capacity.has_worked(stream) {
            push(standard, clock_ns, openmp::RUNTIME_USER_MICROTASK_BEGIN, false, &[]);
            push(standard, end, openmp::RUNTIME_USER_MICROTASK_END, false, &[]);
        }
        if self.capacity.takes_up_tasks(stream) {
            push_work(own, clock_ns, stream);
        }
        push(standard, end, ovni::THREAD_ENDS, false, &[]);
    }
}

/// No CPU, as events name it.
const NO_CPU: i32 = -1;

fn push_execution(standard: &mut Vec<u8>, clock_ns: i64, cpu: i32) {
    let payload = [&cpu.to_le_bytes()[..], &(-1_i32).to_le_bytes(), &0_u64.to_le_bytes()].concat();
    push(standard, clock_ns, ovni::THREAD_EXECUTES, false, &payload);
}
