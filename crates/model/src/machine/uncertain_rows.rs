//! Uncertain rows of threads and CPUs: a type of its own in their views, which exists only if a row is
//! marked. Traces that ovniemu accepts have none.

/// Paraver type of the marks.
pub const DOUBT_TYPE: u32 = 60;
/// Titles of that type in the views of threads and of CPUs.
pub(crate) const DOUBT_TITLES: [&str; 2] = ["Thread: uncertain (taskscope)", "CPU: uncertain (taskscope)"];
/// From an event that breaks a rule to the thread's next one that does not …
pub(super) const DOES_NOT_FIT: i64 = 1;
/// … from the last event of a stream that ends before its thread …
pub(super) const STREAM_ENDS: i64 = 2;
/// … between a clock and an earlier one to which it goes back …
pub(super) const CLOCK_GOES_BACK: i64 = 3;
/// … and, for CPUs only, while several threads run there. Otherwise a CPU has the doubt of the thread that it
/// shows.
pub(super) const CPU_SHARED: i64 = 4;
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
    pub(super) broken: Vec<u32>,
    /// Current reasons per thread, one bit each.
    pub(super) reasons: Vec<u8>,
    /// Whether there ever was a mark of a thread, and of a CPU.
    pub(crate) used: [bool; 2],
}

impl Doubts {
    #[inline]
    pub(super) fn any_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// The most severe reason of a thread, shown in its row.
    pub(super) fn thread_doubt(&self, thread: u32) -> i64 {
        let reasons = self.reasons.get(thread as usize).copied().unwrap_or_default();
        let by_weight = [STREAM_ENDS, DOES_NOT_FIT, CLOCK_GOES_BACK];
        by_weight.into_iter().find(|reason| reasons & (1 << reason) != 0).unwrap_or(0)
    }
}
