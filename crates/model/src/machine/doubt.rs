//! Uncertain rows of threads and CPUs: a type of its own in their views, which exists only if a row is
//! marked. Traces that ovniemu accepts have none.

use super::{Machine, ThreadState};
use crate::violation::Severity;
use taskscope_execution::view::{View, ViewChange, ViewObserver};

/// Paraver type of the marks.
pub const DOUBT_TYPE: u32 = 60;
/// Titles of that type in the views of threads and of CPUs.
pub(crate) const DOUBT_TITLES: [&str; 2] = ["Thread: uncertain (taskscope)", "CPU: uncertain (taskscope)"];
/// From an event that breaks a rule to the thread's next one that does not …
const DOES_NOT_FIT: i64 = 1;
/// … from the last event of a stream that ends before its thread …
const STREAM_ENDS: i64 = 2;
/// … between a clock and an earlier one to which it goes back …
const CLOCK_GOES_BACK: i64 = 3;
/// … and, for CPUs only, while several threads run there. Otherwise a CPU has the doubt of the thread that it
/// shows.
const CPU_SHARED: i64 = 4;
/// Labels of the values; those of threads are all but the last.
pub(crate) const DOUBT_LABELS: [(i64, &str); 4] = [
    (DOES_NOT_FIT, "An event contradicts earlier ones"),
    (STREAM_ENDS, "The stream ends before its thread"),
    (CLOCK_GOES_BACK, "The clock of the thread goes back"),
    (CPU_SHARED, "Several threads run on the CPU at once"),
];

/// The current marks.
#[derive(Default)]
pub(crate) struct Doubts {
    /// Threads after an event that broke a rule.
    broken: Vec<u32>,
    /// Current reasons per thread, one bit each.
    reasons: Vec<u8>,
    /// Whether there ever was a mark of a thread, and of a CPU.
    pub(crate) used: [bool; 2],
}

impl Doubts {
    #[inline]
    pub(super) fn any_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// The most severe reason of a thread, shown in its row.
    fn of_thread(&self, thread: u32) -> i64 {
        let reasons = self.reasons.get(thread as usize).copied().unwrap_or_default();
        let by_weight = [STREAM_ENDS, DOES_NOT_FIT, CLOCK_GOES_BACK];
        by_weight.into_iter().find(|reason| reasons & (1 << reason) != 0).unwrap_or(0)
    }
}

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
        let before = self.doubts.of_thread(thread);
        self.doubts.reasons.resize(self.threads.len(), 0);
        let reasons = &mut self.doubts.reasons[thread as usize];
        *reasons = if holds { *reasons | 1 << reason } else { *reasons & !(1 << reason) };
        let value = self.doubts.of_thread(thread);
        if value != before {
            self.show_doubt(View::Thread, thread, value, time_ns);
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
            Some(thread) => self.doubts.of_thread(thread),
            None => 0,
        };
        if std::mem::replace(&mut state.told_doubt, value) != value {
            self.show_doubt(View::Cpu, cpu, value, time_ns);
        }
    }

    fn show_doubt(&mut self, view: View, row: u32, value: i64, time_ns: i64) {
        self.doubts.used[usize::from(view == View::Cpu)] = true;
        self.observer.view_change(ViewChange { time_ns, view, row, view_type: DOUBT_TYPE, value });
    }
}
