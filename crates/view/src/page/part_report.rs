//! The report and the page of a range of time: those of `report --range`.

use super::{Page, report_with_paths};
use crate::report_json::Report;
use std::sync::Arc;
use taskscope_filter::TimeRange;
use taskscope_session::cache::Key;
use taskscope_session::{ReadProgress, Session};

use taskscope_session::selection::Selection;

impl Page {
    /// The report of `[from, to)`, nanoseconds since the start of the trace. The trace is replayed and cut, so that
    /// states and causes are those of the whole run. One replay runs at a time; the last report is kept.
    ///
    /// # Errors
    /// Returns a sentence if the range is empty, or if the trace cannot be read or has changed since it was opened.
    pub fn report_of_range(&self, from: u64, to: u64) -> Result<Arc<Report>, String> {
        let mut last = self.derived.last_part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((range, report)) = last.as_ref()
            && *range == (from, to)
        {
            return Ok(report.clone());
        }
        let session = self.session_of_range(from, to)?;
        let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
        let report = Arc::new(report_with_paths(&session, &analysis, &problems).0);
        *last = Some(((from, to), report.clone()));
        Ok(report)
    }

    /// A page of `[from, to)` alone, nanoseconds since the start of the trace, for a report in one file.
    ///
    /// # Errors
    /// Those of [`report_of_range`](Page::report_of_range).
    pub fn page_of_range(&self, from: u64, to: u64) -> Result<Page, String> {
        Ok(Page::reported(self.session_of_range(from, to)?))
    }

    /// The range `[from, to)`, nanoseconds since the start of the trace, as `--range` takes it: since the first event of a thread,
    /// which device queues may precede.
    pub(super) fn words_of_range(&self, from: u64, to: u64) -> String {
        let origin = match self.execution.whole().range() {
            (0, 0) => self.start(),
            (origin, _) => origin,
        };
        let since_origin = |at: u64| self.start().saturating_add(at).saturating_sub(origin);
        format!("{}ns..{}ns", since_origin(from), since_origin(to))
    }

    /// Replays the trace and cuts the range out.
    fn session_of_range(&self, from: u64, to: u64) -> Result<Session, String> {
        if self.key.is_some() && self.key != Key::of(&self.root) {
            return Err("the trace has changed since it was opened".to_owned());
        }
        let words = self.words_of_range(from, to);
        let range = TimeRange::parse(&words).map_err(|error| error.text)?;
        let selection = Selection { range, words: Some(format!("--range {words}")), ..Selection::default() };
        Session::open_part(&self.root, &selection, &ReadProgress::default())
            .map_err(|error| error.to_string())
    }
}
