//! How far a long command is, on a terminal and after a second only; `^C` meanwhile leaves nothing behind.

use crate::ignored_signals::IgnoredSignals;
use crate::messages::{self, Failure};
use signal_hook::SigId;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use taskscope_session::ReadProgress;

/// Between two looks at the clock and at signals.
const TICK: Duration = Duration::from_millis(100);

/// What the command is at.
#[derive(Default)]
struct Now {
    stage: &'static str,
    /// What must not stay when the command is interrupted.
    unfinished: Option<PathBuf>,
}

/// A command that is watched until this is dropped.
pub struct Watch {
    /// To be told by whoever reads the trace.
    pub progress: Arc<ReadProgress>,
    now: Arc<Mutex<Now>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Whether `^C` ends the program at once, as it does where nobody watches.
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
        // Where signals cannot be watched, `^C` ends the program as it always does.
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
            let mut line = Line::new();
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let signal = interrupted.load(Ordering::Relaxed) as i32;
                if signal != 0 {
                    line.clear();
                    if let Some(path) = &lock(&watched_now).unfinished {
                        let _ = std::fs::remove_file(path);
                    }
                    messages::print(&Failure::new("interrupted").kept("the trace is as it was").into());
                    // 128 and the signal, as shells tell it.
                    std::process::exit(128 + signal);
                }
                line.show(lock(&watched_now).stage, &watched_progress);
            }
            line.clear();
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

    /// A file that is to be taken away if the command is interrupted; `None` when it is whole.
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

/// The line at the bottom of a terminal.
struct Line {
    enabled: bool,
    started: Instant,
    shown: bool,
}

impl Line {
    fn new() -> Line {
        Line { enabled: io::stderr().is_terminal(), started: Instant::now(), shown: false }
    }

    fn show(&mut self, stage: &str, progress: &ReadProgress) {
        let elapsed = self.started.elapsed();
        if !self.enabled || elapsed < Duration::from_secs(1) {
            return;
        }
        self.shown = true;
        let (done, of) = (progress.events.load(Ordering::Relaxed), progress.of.load(Ordering::Relaxed));
        let text = progress_text(stage, done, of, elapsed);
        let mut out = io::stderr().lock();
        let _ = write!(out, "\r{text} \x1b[K").and_then(|()| out.flush());
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let mut out = io::stderr().lock();
            let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
        }
    }
}

/// While events are read: a bar, the rate, the time left; later the stage and the time since the start.
fn progress_text(stage: &str, done: u64, of: u64, elapsed: Duration) -> String {
    if done >= of {
        return format!("{stage}, {:.0} s", elapsed.as_secs_f64());
    }
    const WIDTH: usize = 24;
    let share = done as f64 / of as f64;
    let full = (share * WIDTH as f64) as usize;
    let rate = done as f64 / elapsed.as_secs_f64();
    let left = (of - done) as f64 / rate.max(1.0);
    format!(
        "{stage} {}{} {:3.0} %  {:.1} M events/s  {left:.0} s left",
        "█".repeat(full),
        "░".repeat(WIDTH - full),
        share * 100.0,
        rate / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_progress() {
        let text = progress_text("reading", 6_000_000, 24_000_000, Duration::from_secs(2));
        assert_eq!(
            text,
            format!("reading {}{}  25 %  3.0 M events/s  6 s left", "█".repeat(6), "░".repeat(18))
        );
        assert_eq!(progress_text("analysing", 5, 5, Duration::from_secs(3)), "analysing, 3 s");
        assert_eq!(progress_text("opening", 0, 0, Duration::from_secs(1)), "opening, 1 s");
    }

    #[test]
    fn a_watch_ends_when_it_is_dropped() {
        let watch = Watch::start();
        watch.stage("analysing");
        drop(watch);
    }
}
