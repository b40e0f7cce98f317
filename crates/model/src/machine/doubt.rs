//! Where a thread's row is uncertain: a type of its own in the views of threads, which is there only where
//! something is. Traces that ovniemu accepts have none.

use super::Machine;
use crate::violation::Severity;
use taskscope_execution::view::{View, ViewChange, ViewObserver};

/// Paraver type of the marks.
pub(crate) const DOUBT_TYPE: u32 = 60;
/// Title of that type.
pub(crate) const DOUBT_TITLE: &str = "Thread: uncertain (taskscope)";
/// Its values: from an event that breaks a rule to the thread's next one that does not …
const DOES_NOT_FIT: i64 = 1;
/// … and from the last event of a stream that ends before its thread.
const STREAM_ENDS: i64 = 2;
/// Labels of the values.
pub(crate) const DOUBT_LABELS: [(i64, &str); 2] = [
    (DOES_NOT_FIT, "An event does not fit what was recorded before it"),
    (STREAM_ENDS, "The stream ends before its thread"),
];

/// What is marked.
#[derive(Default)]
pub(crate) struct Doubts {
    /// Threads whose rows are marked now.
    now: Vec<u32>,
    /// Whether there ever was a mark.
    pub(crate) used: bool,
}

impl Doubts {
    #[inline]
    pub(super) fn any_now(&self) -> bool {
        !self.now.is_empty()
    }
}

impl<O: ViewObserver> Machine<'_, O> {
    /// Marks the thread if its event broke a rule (there were `violations` before it), and ends its mark if
    /// it did not.
    #[cold]
    pub(super) fn doubt_or_trust(&mut self, thread: u32, violations: usize, time_ns: i64) {
        // What only one of the two judges minds leaves no doubt of what was.
        let is_broken = self.violations[violations..]
            .iter()
            .any(|v| v.code.severity() == Severity::Error && v.code.ovni_severity() == Severity::Error);
        match (self.doubts.now.iter().position(|other| *other == thread), is_broken) {
            (None, true) => {
                self.doubts.now.push(thread);
                self.show_doubt(thread, time_ns, DOES_NOT_FIT);
            }
            (Some(place), false) => {
                self.doubts.now.swap_remove(place);
                self.show_doubt(thread, time_ns, 0);
            }
            _ => {}
        }
    }

    /// Marks the thread of a stream whose last event was just played although the thread has not ended.
    pub fn stream_ends(&mut self, stream: usize, time_ns: i64) {
        if let Some(thread) = self.system.thread_of_stream.get(stream).copied().flatten()
            && O::WANTS_VIEWS
            && self.threads[thread as usize].state != super::ThreadState::Dead
        {
            self.show_doubt(thread, time_ns, STREAM_ENDS);
        }
    }

    fn show_doubt(&mut self, row: u32, time_ns: i64, value: i64) {
        self.doubts.used = true;
        self.observer.view_change(ViewChange {
            time_ns,
            view: View::Thread,
            row,
            view_type: DOUBT_TYPE,
            value,
        });
    }
}
