//! Notes on a filter.

use crate::format;
use taskscope_session::Session;

/// A note on a filter that affects every number of a session; `None` without one.
pub(crate) fn filtered(session: &Session) -> Option<&'static str> {
    session.filtered.then_some(
        "--where leaves events out: states and blame follow from the remaining events; \
         --range takes a part of the time without loss",
    )
}

/// A note on the selected threads; `None` if all are selected.
pub fn selected(session: &Session) -> Option<String> {
    let threads = &session.execution.threads;
    let asked = threads.iter().filter(|thread| thread.selected).count();
    (asked < threads.len()).then(|| {
        format!(
            "--where: times, tasks and waits are those of {asked} of {}; culprits are searched among all; the \
             critical path, what-if, and the balance of loops and regions are of the whole run",
            format::counted(threads.len() as u64, "thread")
        )
    })
}

/// The effects of a filter on the numbers of a session: a note each.
pub fn notes_of_filter(session: &Session) -> Vec<String> {
    selected(session).into_iter().chain(filtered(session).map(str::to_owned)).collect()
}
