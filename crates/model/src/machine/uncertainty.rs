//! Marks uncertain rows, and removes the marks.

use super::uncertain_rows::{CLOCK_GOES_BACK, CPU_SHARED, DOES_NOT_FIT, DOUBT_TYPE, STREAM_ENDS};
use super::{Machine, ThreadState};
use crate::violation::Severity;
use taskscope_execution::view::{ViewChange, ViewFamily, ViewObserver};

impl<O: ViewObserver> Machine<'_, O> {
    /// Marks the thread if its event broke a rule (there were `violations` before it), and ends its mark if
    /// it did not.
    #[cold]
    pub(super) fn doubt_or_trust(&mut self, thread: u32, violations: usize, time_ns: i64) {
        // A violation for only one of the two judges leaves no doubt about the state.
        let is_broken = self.violations[violations..]
            .iter()
            .any(|v| v.code.severity() == Severity::Error && v.code.ovni_severity() == Severity::Error);
        match self.doubts.broken.iter().position(|other| *other == thread) {
            None if is_broken => self.doubts.broken.push(thread),
            Some(place) if !is_broken => drop(self.doubts.broken.swap_remove(place)),
            _ => return,
        }
        self.doubt_thread(thread, DOES_NOT_FIT, is_broken, time_ns);
    }

    /// Marks the thread of a stream after its last event, if the thread has not ended.
    pub fn stream_ends(&mut self, stream: usize, time_ns: i64) {
        if let Some(thread) = self.system.thread_of_stream.get(stream).copied().flatten()
            && O::WANTS_VIEWS
            && self.threads[thread as usize].state != ThreadState::Dead
        {
            self.doubt_thread(thread, STREAM_ENDS, true, time_ns);
        }
    }

    /// The thread's clock goes back over the time that begins, or ends, at `time_ns`. Call it before the events that
    /// are not earlier.
    pub fn clock_goes_back(&mut self, stream: usize, time_ns: i64, begins: bool) {
        self.time_comes_to(time_ns);
        if let Some(thread) = self.system.thread_of_stream.get(stream).copied().flatten()
            && O::WANTS_VIEWS
        {
            self.doubt_thread(thread, CLOCK_GOES_BACK, begins, time_ns);
        }
    }

    fn doubt_thread(&mut self, thread: u32, reason: i64, holds: bool, time_ns: i64) {
        let before = self.doubts.thread_doubt(thread);
        self.doubts.reasons.resize(self.threads.len(), 0);
        let reasons = &mut self.doubts.reasons[thread as usize];
        *reasons = if holds { *reasons | 1 << reason } else { *reasons & !(1 << reason) };
        let value = self.doubts.thread_doubt(thread);
        if value != before {
            self.show_doubt(ViewFamily::Thread, thread, value, time_ns);
            if let Some(cpu) = self.threads[thread as usize].cpu {
                self.doubt_cpu(cpu, time_ns);
            }
        }
    }

    /// Marks a CPU while several threads run on it, or its thread is marked; otherwise removes its mark.
    pub(super) fn doubt_cpu(&mut self, cpu: u32, time_ns: i64) {
        let state = &mut self.cpus[cpu as usize];
        state.is_shared &= state.running >= 2;
        let value = match state.only_running() {
            _ if state.is_shared => CPU_SHARED,
            Some(thread) => self.doubts.thread_doubt(thread),
            None => 0,
        };
        if std::mem::replace(&mut state.shown_doubt, value) != value {
            self.show_doubt(ViewFamily::Cpu, cpu, value, time_ns);
        }
    }

    fn show_doubt(&mut self, view: ViewFamily, row: u32, value: i64, time_ns: i64) {
        self.doubts.used[usize::from(view == ViewFamily::Cpu)] = true;
        self.observer.view_change(ViewChange { time_ns, view, row, view_type: DOUBT_TYPE, value });
    }
}
