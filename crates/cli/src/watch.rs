//! Progress of a long command, on a terminal and after a second only; removed on `^C`.

use crate::ignored_signals::IgnoredSignals;
use crate::messages::{self, Failure};
use crate::progress::Progress;
use signal_hook::SigId;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use taskscope_session::ReadProgress;

/// Interval between checks of the clock and of signals.
const TICK: Duration = Duration::from_millis(100);

/// The command's current work.
#[derive(Default)]
struct Now {
    stage: &'static str,
    /// Files to remove when the command is interrupted.
    unfinished: Option<PathBuf>,
}

/// A command that is watched until this is dropped.
pub struct Watch {
    /// Updated by the reader of the trace.
    pub progress: Arc<ReadProgress>,
    now: Arc<Mutex<Now>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Whether `^C` ends the program at once, as it does without a watch.
    over: Arc<AtomicBool>,
    signals: Vec<SigId>,
}

impl Watch {
    /// Starts to watch.
    pub fn start() -> Watch {
        let progress = Arc::new(ReadProgress::default());
        let now = Arc::new(Mutex::new(Now { stage: "reading", unfinished: None }));
        let (end, ended) = channel();
        let interrupted = Arc::new(AtomicUsize::new(0));
        // If signals cannot be watched, `^C` ends the program by default.
        let over = Arc::new(AtomicBool::new(false));
        let signals: Vec<_> = IgnoredSignals::ending()
            .flat_map(|signal| {
                let signal = signal as i32;
                [
                    signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, over.clone()),
                    signal_hook::flag::register_usize(signal, interrupted.clone(), signal as usize),
                ]
            })
            .collect();
        let (watched_progress, watched_now) = (progress.clone(), now.clone());
        let watcher = move || {
            let mut line = Progress::new("reading", "events", 0);
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let signal = interrupted.load(Ordering::Relaxed) as i32;
                if signal != 0 {
                    line.finish();
                    if let Some(path) = &lock(&watched_now).unfinished {
                        let _ = if path.is_dir() {
                            std::fs::remove_dir_all(path)
                        } else {
                            std::fs::remove_file(path)
                        };
                    }
                    messages::print(&Failure::new("interrupted").kept("the trace is as it was").into());
                    // 128 plus the signal number, as in shells.
                    std::process::exit(128 + signal);
                }
                let (done, total) = (&watched_progress.events, &watched_progress.of);
                let (done, total) = (done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
                line.show_stage(lock(&watched_now).stage, done, total);
            }
            line.finish();
        };
        // Without a thread nothing is shown, and signals end the program as they always do.
        let thread = std::thread::Builder::new().spawn(watcher).ok();
        if thread.is_none() {
            over.store(true, Ordering::Relaxed);
        }
        let signals = signals.into_iter().flatten().collect();
        Watch { progress, now, end: Some(end), thread, over, signals }
    }

    /// Ends the watch; the caller takes care of `^C` from here on.
    pub fn hand_over(mut self) {
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
    }

    /// The next part of the work.
    pub fn stage(&self, stage: &'static str) {
        lock(&self.now).stage = stage;
    }

    /// A file or directory that is to be taken away if the command is interrupted; `None` when it is whole.
    pub fn unfinished(&self, path: Option<&Path>) {
        lock(&self.now).unfinished = path.map(Path::to_path_buf);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(now: &Mutex<Now>) -> std::sync::MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_when_it_is_dropped() {
        let watch = Watch::start();
        watch.stage("analysing");
        drop(watch);
    }
}
