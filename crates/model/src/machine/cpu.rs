//! The state of a CPU: which thread runs on it.

/// State of a CPU in the machine.
#[derive(Clone, Default)]
pub(crate) struct CpuState {
    /// Number of running threads.
    pub(crate) running: u32,
    /// Sum of the running threads' indices, so that the only one is known without a list.
    running_sum: u64,
    /// Last values passed to views: number of running threads, and the thread shown.
    pub(crate) shown_running: Option<u32>,
    pub(crate) shown: Option<u32>,
    /// Whether several threads ran on it when time moved on, and still do.
    pub(crate) is_shared: bool,
    /// The doubt last passed to views.
    pub(crate) shown_doubt: i64,
    /// Number of the last event that rewrote the whole row.
    pub(crate) row_written_at: u64,
    /// Whether the row is noted as changed in the current event.
    pub(crate) noted: bool,
}

impl CpuState {
    pub(crate) fn add_running(&mut self, thread: u32) {
        self.running += 1;
        self.running_sum += u64::from(thread);
    }

    pub(crate) fn remove_running(&mut self, thread: u32) {
        self.running -= 1;
        self.running_sum -= u64::from(thread);
    }

    /// The running thread, if there is exactly one.
    pub(crate) fn only_running(&self) -> Option<u32> {
        (self.running == 1).then_some(self.running_sum as u32)
    }
}
