//! Signals that were ignored when the program was started, and stay so, such as `nohup`'s for the end of the terminal.

use nix::sys::signal::Signal;

/// The signals that this process ignores, as the kernel shows them.
pub struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// The currently ignored signals; none if the kernel does not report them.
    pub fn now() -> IgnoredSignals {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        // Bit 0 is signal 1.
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        IgnoredSignals(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
    }

    /// Signals that end a command: `^C`, SIGTERM and, unless it is ignored, the end of the terminal.
    pub fn ending() -> impl Iterator<Item = Signal> {
        let hang_up = (!IgnoredSignals::now().contain(Signal::SIGHUP)).then_some(Signal::SIGHUP);
        [Signal::SIGINT, Signal::SIGTERM].into_iter().chain(hang_up)
    }

    /// Whether this one is among them.
    pub fn contain(&self, signal: Signal) -> bool {
        self.0 >> (signal as i32 - 1) & 1 == 1
    }
}
