//! The end of an event: every cell that shows something written is written once.

use super::thread::ThreadState;
use super::{CPU_COLUMNS, Machine, THREAD_COLUMNS};
use crate::views::breakdown::{Breakdown, BreakdownRules, CpuShows, TouchedBreakdown};
use crate::views::table::{NANOS6_IN_BODY, NOSV_IN_BODY, Repeat, Track, UNKNOWN_SUBSYSTEM, channel};
use taskscope_event::models::nosv;
use taskscope_execution::view::{ViewChange, ViewFamily, ViewObserver};

/// Paraver types of the columns before those of channels.
const AFFINITY_TYPE: u32 = 6;
const STATE_TYPE: u32 = 4;
pub(crate) const TID_TYPE: u32 = 2;
pub(crate) const PID_TYPE: u32 = 1;
pub(crate) const RUNNING_TYPE: u32 = 3;

impl<O: ViewObserver> Machine<'_, O> {
    /// Notes that a thread's state or place changed.
    pub(super) fn note_thread(&mut self, thread: u32) {
        if O::WANTS_VIEWS && !self.changed_threads.contains(&thread) {
            self.changed_threads.push(thread);
        }
    }

    /// Notes that the running threads of a CPU changed.
    pub(super) fn note_cpu(&mut self, cpu: u32) {
        let state = &mut self.cpus[cpu as usize];
        if O::WANTS_VIEWS && !state.noted {
            state.noted = true;
            self.changed_cpus.push(cpu);
        }
    }

    /// Writes all cells that changed since the last call.
    #[inline]
    pub(super) fn commit(&mut self, time_ns: i64) {
        if !O::WANTS_VIEWS {
            return;
        }
        if !self.changed_cpus.is_empty() || !self.changed_threads.is_empty() {
            self.commit_rows(time_ns);
        }
        for index in 0..self.written.len() {
            let (thread, slot) = self.written[index];
            self.commit_slot(time_ns, thread, slot);
        }
        self.written.clear();
        if !self.touched_breakdowns.is_empty() {
            self.commit_breakdowns(time_ns);
        }
    }

    #[inline]
    fn commit_slot(&mut self, time_ns: i64, thread: u32, slot: u16) {
        let state = &self.threads[thread as usize];
        let spec = &self.slots[slot as usize];
        let value = state.channels[slot as usize].value();
        let row_is_new = state.row_written_at == self.event_number && spec.track != Track::Any;
        if is_visible(spec.track, state.state) && !row_is_new {
            let column = THREAD_COLUMNS + slot as usize;
            self.thread_cells.write(
                &mut self.observer,
                time_ns,
                thread,
                column,
                spec.view_type,
                value,
                spec.repeat,
            );
        }
        if state.state != ThreadState::Running {
            return;
        }
        let Some(cpu) = state.cpu else { return };
        let cpu_state = &self.cpus[cpu as usize];
        if cpu_state.shown == Some(thread) && cpu_state.row_written_at != self.event_number {
            let column = CPU_COLUMNS + slot as usize;
            self.cpu_cells.write(
                &mut self.observer,
                time_ns,
                cpu,
                column,
                spec.view_type,
                value,
                spec.repeat,
            );
            self.note_breakdown(cpu, slot);
        }
    }

    fn commit_rows(&mut self, time_ns: i64) {
        for index in 0..self.changed_threads.len() {
            let thread = self.changed_threads[index];
            self.commit_thread(time_ns, thread);
        }
        self.changed_threads.clear();
        for index in 0..self.changed_cpus.len() {
            let cpu = self.changed_cpus[index];
            self.commit_cpu(time_ns, cpu);
        }
        self.changed_cpus.clear();
    }

    fn commit_thread(&mut self, time_ns: i64, thread: u32) {
        let tid = self.system.threads[thread as usize].tid;
        let state = &mut self.threads[thread as usize];
        let (cells, observer) = (&mut self.thread_cells, &mut self.observer);
        if std::mem::take(&mut state.affinity_written) {
            let cpu = state.cpu.map(|cpu| i64::from(cpu) + 1);
            cells.write(observer, time_ns, thread, 0, AFFINITY_TYPE, cpu, Repeat::Skip);
        }
        if !std::mem::take(&mut state.state_written) {
            return;
        }
        cells.write(observer, time_ns, thread, 1, STATE_TYPE, Some(state.state.value()), Repeat::Skip);
        let active_tid = state.state.is_active().then_some(tid);
        cells.write(observer, time_ns, thread, 2, TID_TYPE, active_tid, Repeat::Skip);
        for (slot, spec) in self.slots.iter().enumerate() {
            if spec.track != Track::Any {
                let visible = is_visible(spec.track, state.state);
                let value = if visible { state.channels[slot].value() } else { None };
                let column = THREAD_COLUMNS + slot;
                cells.write(observer, time_ns, thread, column, spec.view_type, value, spec.repeat);
            }
        }
        state.row_written_at = self.event_number;
    }

    fn commit_cpu(&mut self, time_ns: i64, cpu: u32) {
        self.doubt_cpu(cpu, time_ns);
        let state = &mut self.cpus[cpu as usize];
        state.noted = false;
        let (cells, observer) = (&mut self.cpu_cells, &mut self.observer);
        if state.shown_running != Some(state.running) {
            state.shown_running = Some(state.running);
            let running = Some(i64::from(state.running));
            cells.write(observer, time_ns, cpu, 2, RUNNING_TYPE, running, Repeat::Skip);
        }
        let shown = state.only_running();
        if shown == state.shown {
            return;
        }
        state.shown = shown;
        state.row_written_at = self.event_number;
        let ids = shown.map(|thread| {
            let thread = &self.system.threads[thread as usize];
            (thread.tid, self.system.processes[thread.process as usize].pid)
        });
        cells.write(observer, time_ns, cpu, 0, TID_TYPE, ids.map(|(tid, _)| tid), Repeat::Skip);
        cells.write(observer, time_ns, cpu, 1, PID_TYPE, ids.map(|(_, pid)| pid), Repeat::Skip);
        for (slot, spec) in self.slots.iter().enumerate() {
            let value = match shown {
                Some(thread) => self.threads[thread as usize].channels[slot].value(),
                None => spec.idle_cpu,
            };
            cells.write(observer, time_ns, cpu, CPU_COLUMNS + slot, spec.view_type, value, spec.repeat);
        }
        for index in 0..self.breakdowns.len() {
            self.touched_breakdowns.push(TouchedBreakdown { index: index as u16, cpu, subsystem: true });
        }
    }

    #[inline]
    fn note_breakdown(&mut self, cpu: u32, slot: u16) {
        for (index, breakdown) in self.breakdowns.iter().enumerate() {
            let rules = &breakdown.rules;
            let subsystem = rules.subsystem == slot;
            if subsystem || rules.task == slot || rules.idle == Some(slot) {
                self.touched_breakdowns.push(TouchedBreakdown { index: index as u16, cpu, subsystem });
            }
        }
    }

    fn commit_breakdowns(&mut self, time_ns: i64) {
        for TouchedBreakdown { index, cpu, subsystem } in self.touched_breakdowns.drain(..) {
            let breakdown = &mut self.breakdowns[index as usize];
            let shown = self.cpus[cpu as usize].shown;
            let value = |slot: u16| match shown {
                Some(thread) => self.threads[thread as usize].channels[slot as usize].value(),
                None => self.slots[slot as usize].idle_cpu,
            };
            let shows = CpuShows {
                subsystem: value(breakdown.rules.subsystem),
                task: value(breakdown.rules.task),
                idle: breakdown.rules.idle.and_then(value),
                subsystem_written: subsystem,
            };
            breakdown.update(cpu, shows);
        }
        for breakdown in &mut self.breakdowns {
            let (view, view_type) = (breakdown.rules.view, breakdown.rules.view_type);
            breakdown.flush(|row, value| {
                self.observer.view_change(ViewChange { time_ns, view, row, view_type, value });
            });
        }
    }

    /// Sets up the breakdown of each enabled runtime that has one.
    pub(super) fn prepare_breakdowns(&mut self) {
        let physical: Vec<bool> = self.system.cpus.iter().map(|cpu| cpu.phyid.is_some()).collect();
        let slot = |index| self.slot_of.channel(index);
        let mut rules = Vec::new();
        if let (Some(subsystem), Some(task), Some(idle)) =
            (slot(channel::NANOS6_SUBSYSTEM), slot(channel::NANOS6_TYPE), slot(channel::NANOS6_IDLE))
        {
            rules.push(BreakdownRules {
                view: ViewFamily::Nanos6Breakdown,
                view_type: 41,
                subsystem,
                task,
                idle: Some(idle),
                in_body: Some(NANOS6_IN_BODY),
                no_section: Some(UNKNOWN_SUBSYSTEM),
            });
        }
        if let (Some(subsystem), Some(task), Some(idle)) =
            (slot(channel::NOSV_SUBSYSTEM), slot(channel::NOSV_TYPE), slot(channel::NOSV_IDLE))
        {
            let (suitable, all) = self.system.nosv_breakdown;
            if suitable == all {
                rules.push(BreakdownRules {
                    view: ViewFamily::NosvBreakdown,
                    view_type: 17,
                    subsystem,
                    task,
                    idle: Some(idle),
                    in_body: Some(NOSV_IN_BODY),
                    no_section: Some(UNKNOWN_SUBSYSTEM),
                });
            } else if self.enabled[nosv::LETTER as usize] {
                if let Some(stream) = self.system.nosv_breakdown_unknown {
                    let place = super::Current { stream, ..super::Current::default() };
                    let text = format!("missing nosv.can_breakdown key: {}", self.system.paths[stream]);
                    self.report_at(crate::ViolationCode::BreakdownUnknown, text, place);
                }
                let text =
                    format!("cannot enable breakdown for nOS-V model, suitable {suitable}/{all} threads");
                let place = super::Current { stream: usize::MAX, ..super::Current::default() };
                self.report_at(crate::ViolationCode::NoBreakdown, text, place);
            }
        }
        if let (Some(subsystem), Some(task)) =
            (self.slot_of.channel(channel::OPENMP_SUBSYSTEM), self.slot_of.channel(channel::OPENMP_LABEL))
        {
            rules.push(BreakdownRules {
                view: ViewFamily::OpenmpBreakdown,
                view_type: 53,
                subsystem,
                task,
                idle: None,
                in_body: None,
                no_section: None,
            });
        }
        self.breakdowns = rules.into_iter().map(|rules| Breakdown::new(rules, &physical)).collect();
    }
}

#[inline]
fn is_visible(track: Track, state: ThreadState) -> bool {
    match track {
        Track::Any => true,
        Track::Running => state == ThreadState::Running,
        Track::Active => state.is_active(),
    }
}
