//! Signals that end a query on a cluster: its job has to end first.
//!
//! A query of this machine has no watch: signals end the process, and with it the query. The same holds on a cluster while there is
//! no unfinished job, such as behind its end, when rows are written to a reader that may be slow.

use crate::failure::{Failure, reason};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::time::Duration;
use tokio::sync::oneshot::{Receiver, channel};

/// Signals that end a program.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The first signal while there is a job; further ones are ignored, so that a second key press does not leave the job behind.
pub struct Interruption(Receiver<u8>);

impl Interruption {
    /// Begins to watch the signals that the process does not ignore, as nohup makes it ignore the end of the terminal.
    /// `longest` is the time after a signal at which the process ends in any case.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(
        has_job: impl Fn() -> bool + Send + 'static,
        longest: Duration,
    ) -> Result<Interruption, Failure> {
        let failed = |error: std::io::Error| Failure::new("cannot watch signals").why(reason(&error));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let watched = ENDING.into_iter().filter(|signal| !is_ignored(*signal, &status));
        let mut signals = Signals::new(watched).map_err(failed)?;
        let (sender, receiver) = channel();
        let wait = move || {
            let Some(signal) = signals.forever().next() else { return };
            // Without a receiver, the query has ended.
            if has_job() && sender.send(signal as u8).is_ok() {
                std::thread::sleep(longest);
            }
            // If the system refuses, the process goes on, and ends with its query.
            let _ = emulate_default_handler(signal);
        };
        std::thread::Builder::new().spawn(wait).map_err(failed)?;
        Ok(Interruption(receiver))
    }

    /// Waits for the signal. Returns its number.
    pub async fn signal(self) -> u8 {
        match self.0.await {
            Ok(signal) => signal,
            // The thread has ended, and with it the watch.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Whether a process with this `/proc/PID/status` ignores a signal.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\n";
        assert_eq!(
            [1, 2, 12, 13, 15].map(|signal| is_ignored(signal, status)),
            [true, false, false, true, false]
        );
        assert!(!is_ignored(1, ""));
    }
}
