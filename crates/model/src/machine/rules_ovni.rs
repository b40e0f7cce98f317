//! Rules of ovni's base model and of the kernel's: thread states, affinity, marks, flushes.

use super::action::Rule;
use super::channel::ChannelError;
use super::{Contested, InputEvent, Machine, ThreadState};
use crate::payload::{i32_at, i64_at};
use crate::views::table::channel;
use crate::violation::ViolationCode;
use taskscope_event::models::{kernel, ovni};
use taskscope_execution::view::ViewObserver;

/// The value of the kernel channel while a thread is off its CPU.
const OUT_OF_CPU: i64 = 3;
/// The value of the flush channel during a flush.
const FLUSHING: i64 = 1;
/// A flush that takes longer is worth a remark.
const LONG_FLUSH_NS: i64 = 10_000_000;
/// Statistics are made of so many bursts in a row.
const BURSTS: usize = 100;

impl<O: ViewObserver> Machine<'_, O> {
    pub(super) fn apply_rule(&mut self, thread: u32, event: InputEvent<'_>, rule: Rule) {
        let letter = event.code.model();
        if letter == ovni::LETTER && self.threads[thread as usize].out_of_cpu {
            let text = format!("current thread {} out of CPU", self.tid(thread));
            self.report(ViolationCode::ThreadOutOfCpu, text);
        }
        match rule {
            Rule::NotEnabled => self.not_enabled(event),
            Rule::Create => {}
            Rule::Execute => self.execute(thread, event),
            Rule::End => self.end(thread),
            Rule::Pause => self.change_state(thread, ThreadState::Paused),
            Rule::Resume => self.change_state(thread, ThreadState::Running),
            Rule::Cool => self.change_state(thread, ThreadState::Cooling),
            Rule::Warm => self.change_state(thread, ThreadState::Warming),
            Rule::SetAffinity => self.set_affinity(thread, event),
            Rule::RemoteAffinity => self.remote_affinity(thread, event),
            Rule::Burst => self.burst(thread, event),
            Rule::Old => {
                self.report(ViolationCode::OldEvent, format!("ignoring old event {}", event.code));
            }
            Rule::FlushBegin => self.flush(thread, event, Some(FLUSHING)),
            Rule::FlushEnd => self.flush(thread, event, None),
            Rule::UnsortedBorder => self.after_end(thread),
            Rule::MarkPush | Rule::MarkPop | Rule::MarkSet => self.mark(thread, event, rule),
            Rule::OutOfCpu | Rule::BackOnCpu => self.context_switch(thread, rule),
            _ => self.apply_task_rule(thread, event, rule),
        }
    }

    pub(super) fn tid(&self, thread: u32) -> i64 {
        self.system.threads[thread as usize].tid
    }

    #[cold]
    fn not_enabled(&mut self, event: InputEvent<'_>) {
        let name = taskscope_event::models::model_of(event.code.model()).map_or("?", |model| model.name);
        let text = format!(
            "model {name} not enabled for event {}: no thread requires it (option -a enables all models)",
            event.code
        );
        self.report(ViolationCode::ModelNotEnabled, text);
    }

    /// Notes activity of a thread after its end; one note per kind is enough, but each event is an own entry
    /// in a list of violations.
    fn after_end(&mut self, thread: u32) {
        if self.threads[thread as usize].state == ThreadState::Dead {
            let text = format!("thread {} has ended and goes on", self.tid(thread));
            self.report(ViolationCode::EventAfterEnd, text);
        }
    }

    fn execute(&mut self, thread: u32, event: InputEvent<'_>) {
        let tid = self.tid(thread);
        let state = self.threads[thread as usize].state;
        if state == ThreadState::Running {
            let text = format!("cannot execute thread {tid}, is already running");
            self.report(ViolationCode::ThreadState, text);
        } else if state == ThreadState::Dead {
            self.report(ViolationCode::ThreadRestarted, format!("thread {tid} has ended and executes again"));
        }
        let cpu = match i32_at(event.payload, 0) {
            None => {
                let text = format!("missing payload in thread {tid} execute event");
                self.report(ViolationCode::PayloadSize, text);
                None
            }
            Some(index) => self.find_cpu(thread, index),
        };
        if let Some(old) = self.threads[thread as usize].cpu {
            if state != ThreadState::Running {
                let text = format!("thread {tid} executes, but is already on{}", self.system.cpu_label(old));
                self.report(ViolationCode::ThreadHasCpu, text);
            }
            self.uncount_on_cpu(thread);
        }
        self.threads[thread as usize].cpu = cpu;
        self.threads[thread as usize].affinity_written = true;
        self.set_state(thread, ThreadState::Running);
    }

    fn end(&mut self, thread: u32) {
        self.change_state(thread, ThreadState::Dead);
        self.check_end_of_thread(thread);
        let state = &mut self.threads[thread as usize];
        state.affinity_written = state.cpu.take().is_some();
    }

    /// Puts a running thread into the count of its CPU.
    fn count_on_cpu(&mut self, thread: u32) {
        let state = &mut self.threads[thread as usize];
        let Some(cpu) = state.cpu else { return };
        if state.state == ThreadState::Running && !state.counted_on_cpu {
            state.counted_on_cpu = true;
            self.cpus[cpu as usize].add_running(thread);
            self.check_cpu(thread, cpu);
        }
        self.note_cpu(cpu);
    }

    /// Takes it out of that count.
    fn uncount_on_cpu(&mut self, thread: u32) {
        let state = &mut self.threads[thread as usize];
        let Some(cpu) = state.cpu else { return };
        if std::mem::take(&mut state.counted_on_cpu) {
            self.cpus[cpu as usize].remove_running(thread);
        }
        self.note_cpu(cpu);
    }

    fn change_state(&mut self, thread: u32, new: ThreadState) {
        use ThreadState::{Cooling, Dead, Paused, Running, Unknown, Warming};
        let old = self.threads[thread as usize].state;
        let (verb, needed, allowed) = match new {
            Paused => ("pause", "running or cooling", matches!(old, Running | Cooling)),
            Running => ("resume", "paused or warming", matches!(old, Paused | Warming)),
            Cooling => ("cool", "running", old == Running),
            Warming => ("warm", "paused", old == Paused),
            Dead => ("end", "running or cooling", matches!(old, Running | Cooling)),
            Unknown => ("forget", "unknown", true),
        };
        if !allowed {
            let text = format!("cannot {verb} thread {}: state not {needed}", self.tid(thread));
            self.report(ViolationCode::ThreadState, text);
        }
        self.set_state(thread, new);
    }

    fn set_state(&mut self, thread: u32, new: ThreadState) {
        let state = &mut self.threads[thread as usize];
        state.state = new;
        state.state_written = true;
        if new == ThreadState::Running {
            self.count_on_cpu(thread);
        } else {
            self.uncount_on_cpu(thread);
        }
        self.note_thread(thread);
    }

    /// Remembers that a physical CPU has several running threads.
    fn check_cpu(&mut self, thread: u32, cpu: u32) {
        if self.cpus[cpu as usize].running >= 2 && self.system.cpus[cpu as usize].phyid.is_some() {
            self.contested.push(Contested { cpu, thread, since: self.current });
        }
    }

    /// Advances the time: earlier events are complete.
    #[inline]
    pub(super) fn time_comes_to(&mut self, time_ns: i64) {
        if self.contested.first().is_some_and(|contested| contested.since.time_ns < time_ns) {
            self.settle_contested();
        }
    }

    /// Advances the time: a CPU that still has several running threads breaks a rule; if one left within the
    /// nanosecond, only ovniemu's rule is broken.
    pub(super) fn settle_contested(&mut self) {
        for Contested { cpu, thread, since } in std::mem::take(&mut self.contested) {
            let running = self.cpus[cpu as usize].running;
            let label = self.system.cpu_label(cpu);
            let tid = self.tid(thread);
            if running >= 2 {
                if O::WANTS_VIEWS {
                    self.cpus[cpu as usize].is_shared = true;
                    self.doubt_cpu(cpu, since.time_ns);
                }
                let text = format!(
                    "physical cpu {label} has {running} threads running at the same time since thread {tid} came"
                );
                self.report_at(ViolationCode::TwoThreadsOnCpu, text, since);
            } else {
                let text = format!(
                    "physical cpu {label} has 2 threads running at the same time, for no time: \
                     another thread leaves in the nanosecond in which thread {tid} comes"
                );
                self.report_at(ViolationCode::SameInstantHandover, text, since);
            }
        }
    }

    fn find_cpu(&mut self, thread: u32, index: i32) -> Option<u32> {
        let loom = &self.system.looms[self.system.threads[thread as usize].loom as usize];
        let cpu = loom.cpu_of_index.get(&i64::from(index)).copied();
        if cpu.is_none() {
            let text = format!("cannot find CPU with index {index} in loom {}", loom.name);
            self.report(ViolationCode::UnknownCpu, text);
        }
        cpu
    }

    fn set_affinity(&mut self, thread: u32, event: InputEvent<'_>) {
        let tid = self.tid(thread);
        let state = &self.threads[thread as usize];
        if state.cpu.is_none() {
            self.report(ViolationCode::ThreadNoCpu, format!("thread {tid} doesn't have CPU set"));
        } else if !state.state.is_active() {
            let text = format!("thread {tid} is not active: it cannot change its affinity");
            self.report(ViolationCode::ThreadNotActive, text);
        }
        match i32_at(event.payload, 0).filter(|_| event.payload.len() == 4) {
            Some(index) => {
                let cpu = self.find_cpu(thread, index);
                self.migrate(thread, cpu);
            }
            None => self.report_payload(event, "4 bytes"),
        }
    }

    fn remote_affinity(&mut self, thread: u32, event: InputEvent<'_>) {
        let (Some(index), Some(tid)) = (i32_at(event.payload, 0), i32_at(event.payload, 4)) else {
            return self.report_payload(event, "8 bytes");
        };
        if event.payload.len() != 8 {
            self.report_payload(event, "8 bytes");
        }
        let Some(remote) = self.find_thread(thread, i64::from(tid)) else {
            let text =
                format!("cannot find thread {tid} in the process or loom of thread {}", self.tid(thread));
            return self.report(ViolationCode::UnknownThread, text);
        };
        let state = &self.threads[remote as usize];
        if matches!(state.state, ThreadState::Dead | ThreadState::Unknown) {
            let what = if state.state == ThreadState::Dead { "has ended" } else { "has not started" };
            let text = format!("thread {tid}, which {what}, cannot be moved to another CPU");
            return self.report(ViolationCode::ThreadState, text);
        }
        if state.cpu.is_none() {
            self.report(ViolationCode::ThreadNoCpu, format!("thread {tid} doesn't have CPU set"));
        }
        let cpu = self.find_cpu(remote, index);
        self.migrate(remote, cpu);
    }

    /// The thread with this id: in the process, else in the loom.
    fn find_thread(&self, from: u32, tid: i64) -> Option<u32> {
        let from = &self.system.threads[from as usize];
        let candidates = self.threads_of_tid.get(&tid)?;
        let threads = &self.system.threads;
        let same_process =
            candidates.iter().find(|thread| threads[**thread as usize].process == from.process);
        let same_loom = || candidates.iter().find(|thread| threads[**thread as usize].loom == from.loom);
        same_process.or_else(same_loom).copied()
    }

    /// Moves a thread to another CPU; to none if that is unknown.
    fn migrate(&mut self, thread: u32, cpu: Option<u32>) {
        let state = &self.threads[thread as usize];
        if cpu.is_some() && state.cpu == cpu {
            let tid = self.tid(thread);
            let text = format!("thread {tid} moves to its present CPU, {}", self.cpu_name(cpu).trim_start());
            return self.report(ViolationCode::AffinityUnchanged, text);
        }
        self.uncount_on_cpu(thread);
        let state = &mut self.threads[thread as usize];
        state.cpu = cpu;
        state.affinity_written = true;
        self.count_on_cpu(thread);
        self.note_thread(thread);
    }

    fn cpu_name(&self, cpu: Option<u32>) -> String {
        cpu.map_or_else(|| " no CPU".to_owned(), |cpu| self.system.cpu_label(cpu))
    }

    pub(super) fn report_payload(&mut self, event: InputEvent<'_>, needed: &str) {
        let kind = if event.is_jumbo { "jumbo" } else { "plain" };
        let text = format!(
            "`{}` has {} bytes of {kind} payload and needs {needed}",
            event.code,
            event.payload.len()
        );
        self.report(ViolationCode::PayloadSize, text);
    }

    fn burst(&mut self, thread: u32, event: InputEvent<'_>) {
        self.after_end(thread);
        let bursts = &mut self.threads[thread as usize].bursts;
        bursts.push(event.time_ns);
        if bursts.len() < BURSTS {
            return;
        }
        let mut deltas: Vec<i64> = bursts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        bursts.clear();
        deltas.sort_unstable();
        let median = deltas[deltas.len() / 2];
        let average = deltas.iter().sum::<i64>() as f64 / deltas.len() as f64;
        let highest = deltas[deltas.len() - 1];
        let loom = &self.system.looms[self.system.threads[thread as usize].loom as usize].name;
        self.notes
            .push(format!("{loom} burst stats: median/avg/max = {median:3}/{average:3.0}/{highest:3} ns"));
    }

    /// Also after the thread's end: runtimes flush before they free the thread.
    fn flush(&mut self, thread: u32, event: InputEvent<'_>, value: Option<i64>) {
        let Some(slot) = self.slot_of.channel(channel::FLUSH) else { return };
        let state = &mut self.threads[thread as usize];
        let result = state.channels[slot as usize].set(value, false);
        if value.is_some() {
            state.flush_begin_ns = event.time_ns;
        } else if event.time_ns - state.flush_begin_ns > LONG_FLUSH_NS {
            let milliseconds = (event.time_ns - state.flush_begin_ns) as f64 / 1e6;
            let tid = self.tid(thread);
            self.notes.push(format!(
                "large flush of {milliseconds:.1} ms at dclock={} ns in tid={tid}",
                event.time_ns
            ));
        }
        if result == Err(ChannelError::Same) {
            let verb = if value.is_some() { "begins" } else { "ends" };
            let text = format!("thread {} {verb} a flush twice", self.tid(thread));
            self.report(ViolationCode::FlushTwice, text);
        }
        self.wrote(thread, slot, FLUSHING, Ok(()));
    }

    fn mark(&mut self, thread: u32, event: InputEvent<'_>, rule: Rule) {
        self.after_end(thread);
        let (Some(value), Some(mark_type)) = (i64_at(event.payload, 0), i32_at(event.payload, 8)) else {
            return self.report_payload(event, "12 bytes");
        };
        if event.payload.len() != 12 {
            self.report_payload(event, "12 bytes");
        }
        let Some(slot) = self.slot_of.mark(mark_type) else {
            let text = format!("cannot find mark with type {mark_type}");
            return self.report(ViolationCode::UnknownMark, text);
        };
        if value == 0 {
            self.report(ViolationCode::MarkZero, format!("mark {mark_type} has value 0"));
        }
        let is_stack = self.slots[slot as usize].is_stack;
        if is_stack != (rule != Rule::MarkSet) {
            let (verb, kind) = if is_stack { ("set", "stack") } else { ("push or pop", "single") };
            let text = format!("cannot {verb} mark {mark_type}, whose channel is {kind}");
            return self.report(ViolationCode::MarkKind, text);
        }
        let channel = &mut self.threads[thread as usize].channels[slot as usize];
        let result = match rule {
            Rule::MarkPush => channel.push(value, true),
            Rule::MarkPop => channel.pop(value),
            _ => channel.set(Some(value), true),
        };
        self.wrote(thread, slot, value, result);
    }

    fn context_switch(&mut self, thread: u32, rule: Rule) {
        let Some(slot) = self.slot_of.channel(channel::KERNEL) else { return };
        debug_assert_eq!(self.slots[slot as usize].model, kernel::LETTER);
        let state = &mut self.threads[thread as usize];
        let result = if rule == Rule::OutOfCpu {
            state.out_of_cpu = true;
            state.channels[slot as usize].push(OUT_OF_CPU, false)
        } else {
            state.out_of_cpu = false;
            state.channels[slot as usize].pop(OUT_OF_CPU)
        };
        self.wrote(thread, slot, OUT_OF_CPU, result);
    }
}
