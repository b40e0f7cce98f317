//! The borders of a slice: sections open at the begin of the range are opened in the nanoseconds before it, and
//! sections open at its end are closed after it.

use super::{Slicer, opening_ns};
use crate::slice::bytes::{first_u32, push};
use crate::slice::instrument::push_all;
use crate::slice::thread_state::{Key, Life, Open};
use rustc_hash::FxHashSet;
use taskscope_event::models::{omp, ovni, recorder};

impl Slicer<'_> {
    /// Restores every thread's state at the begin of the range.
    pub(super) fn open_states(
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
            let clock = begin.saturating_sub(opening_ns(living.len()) + 1);
            // Names alone do not keep a stream: threads that need them are alive, and have them.
            push(&mut own[stream], clock, event.code, event.is_jumbo, event.payload);
        }
        let mut creations = std::mem::take(&mut self.creations);
        let mut resting_cpus = self.resting_cpus(&living);
        for (slot, stream) in living.iter().enumerate() {
            let start = begin.saturating_sub(opening_ns(living.len() - slot));
            // Objects and places of waits precede these.
            let clock = start.saturating_add(1);
            let bytes = &mut standard[*stream];
            let state = &self.states[*stream];
            touched[*stream] = true;
            // The first thread of a loom moves over its idle CPUs, as they are idle only after use.
            let loom = self.trace.streams()[*stream].loom();
            let passed = resting_cpus.extract_if(.., |(other, _)| *other == loom).map(|(_, cpu)| cpu);
            let mut cpus = passed.chain([state.cpu]);
            let mut payload = cpus.next().unwrap_or(state.cpu).to_le_bytes().to_vec();
            payload.extend((-1i32).to_le_bytes());
            payload.extend(0u64.to_le_bytes());
            push(bytes, start, ovni::THREAD_EXECUTES, false, &payload);
            cpus.for_each(|cpu| push(bytes, start, ovni::SET_AFFINITY, false, &cpu.to_le_bytes()));
            if let Some(openmp_type) = state.openmp_type {
                push(&mut own[*stream], start, omp::THREAD_TYPE, false, &openmp_type.to_le_bytes());
            }
            self.waits[*stream].write(start, &mut own[*stream]);
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
    pub(super) fn close_states(&mut self, end: i64, standard: &mut [Vec<u8>], own: &mut [Vec<u8>]) {
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
}
