//! The progress of long commands: one line on stderr, on a terminal and after a second only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Commands that take less show nothing.
const QUIET: Duration = Duration::from_secs(1);
/// Redraws of the line, per second.
const REDRAWS: u8 = 5;

/// A line with a bar, the rate and the time left; once all is read, with the stage and the time since the start.
pub struct Progress {
    bar: ProgressBar,
    unit: &'static str,
    has_bar: bool,
    /// `None` if progress is hidden, or once the line is shown.
    begins: Option<Instant>,
}

impl Progress {
    /// The progress of `total` events or bytes in a stage of a command.
    pub fn new(stage: &'static str, unit: &'static str, total: u64) -> Progress {
        let begins = io::stderr().is_terminal().then(|| Instant::now() + QUIET);
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let mut progress = Progress { bar: bar.with_message(stage), unit, has_bar: false, begins };
        progress.set_style(true);
        progress
    }

    /// Hides it if results go to a terminal meanwhile.
    pub fn beside_results(mut self) -> Progress {
        self.begins = self.begins.filter(|_| !io::stdout().is_terminal());
        self
    }

    /// Enters a stage, of which `done` of `total` are done.
    pub fn show_stage(&mut self, stage: &'static str, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_message(stage);
        self.set_style(done < total);
        self.show(done);
    }

    /// Shows that `done` of them are done.
    pub fn show(&mut self, done: u64) {
        if self.begins.is_some_and(|begins| begins <= Instant::now()) {
            self.begins = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
        }
        self.bar.set_position(done);
    }

    /// [`show`](Self::show) for callers that count every single thing.
    #[inline]
    pub fn show_sometimes(&mut self, done: u64) {
        if done.is_multiple_of(1 << 14) {
            self.show(done);
        }
    }

    /// Clears the line.
    pub fn finish(&mut self) {
        self.bar.finish_and_clear();
    }

    fn set_style(&mut self, has_bar: bool) {
        if std::mem::replace(&mut self.has_bar, has_bar) == has_bar {
            return;
        }
        let template =
            if has_bar { "{msg} {bar:24} {percent:>3} %  {rate}  {eta} left" } else { "{msg}, {elapsed}" };
        let unit = self.unit;
        let rate = move |state: &ProgressState, text: &mut dyn Write| {
            let _ = write!(text, "{:.1} M {unit}/s", state.per_sec() / 1e6);
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("█░").with_key("rate", rate));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::InMemoryTerm;

    #[test]
    fn a_bar_shows_the_share_and_a_stage_without_total_its_name() {
        let terminal = InMemoryTerm::new(4, 80);
        let mut progress = Progress::new("reading", "events", 0);
        progress.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        progress.show_stage("reading", 6_000_000, 24_000_000);
        progress.bar.tick();
        let shown = terminal.contents();
        let bar = format!("reading {}{}  25 %  ", "█".repeat(6), "░".repeat(18));
        assert!(
            shown.starts_with(&bar) && shown.contains(" M events/s  ") && shown.ends_with(" left"),
            "{shown}"
        );
        progress.show_stage("analysing", 24_000_000, 24_000_000);
        progress.bar.tick();
        assert!(terminal.contents().starts_with("analysing, "), "{}", terminal.contents());
        progress.finish();
        assert_eq!(terminal.contents(), "");
    }

    #[test]
    fn nothing_is_drawn_where_stderr_is_no_terminal() {
        let mut progress = Progress::new("reading", "bytes", 10);
        progress.begins = None;
        progress.show(5);
        assert!(progress.bar.is_hidden());
    }
}
