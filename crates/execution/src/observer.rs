//! The receiver of what models derive from events.

use crate::change::{Anomaly, Change, Definition, Numbers};
use crate::ids::ThreadIndex;
use crate::open_thread::OpenTrack;
use crate::samples::NewSample;

/// Receives the changes that models derive from events.
///
/// Changes of one thread come in time order. Between threads only [`complete_until`](Observer::complete_until) is
/// promised. Times are nanoseconds of the trace's clock.
pub trait Observer {
    /// A name for a number that changes use. May come after the first use of the number.
    fn define(&mut self, definition: Definition<'_>);

    /// Applies `change` of `thread` at `at`.
    fn change(&mut self, thread: ThreadIndex, at: u64, change: Change);

    /// The receiver for the sections of one thread: for many changes without a lookup each time.
    fn open_track(&mut self, thread: ThreadIndex) -> OpenTrack<'_>;

    /// An event contradicts the known state; the model continued as the anomaly's name states.
    fn anomaly(&mut self, thread: ThreadIndex, at: u64, anomaly: Anomaly) {
        self.open_track(thread).anomaly(at, anomaly);
    }

    /// A sample of a call stack. Samples may come in any order, after everything that they name.
    fn sample(&mut self, _sample: &NewSample<'_>) {}

    /// All events have been interpreted, and these are the numbers of tasks and regions.
    fn numbers(&mut self, _numbers: Numbers) {}

    /// No further change on any thread has a time before `at`.
    fn complete_until(&mut self, _at: u64) {}
}
