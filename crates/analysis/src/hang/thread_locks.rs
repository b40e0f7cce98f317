//! Open waits of threads for locks (`record --threads`), which are not in the states of their tracks.

use super::{Needed, OpenWait};
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, Place, Section, Span, State, ThreadWait, WaitOutcome};

/// A shorter wait may be over although its thread has not recorded that yet.
const MIN_WAIT_NS: u64 = 100_000_000;

/// The waits for locks that are not over at the end of the recording.
pub(super) fn open_waits(execution: &Execution) -> impl Iterator<Item = &ThreadWait> {
    execution.thread_waits.waits.iter().filter(|wait| {
        let object = execution.catalog.objects.get(wait.object.index());
        wait.outcome == WaitOutcome::Open
            && wait.end.saturating_sub(wait.start) >= MIN_WAIT_NS
            && object.is_some_and(|object| kind::has_holder(object.kind))
    })
}

/// Such a wait as that for a lock of a runtime.
pub(super) fn open_wait(execution: &Execution, wait: &ThreadWait) -> OpenWait {
    let (object, place) = (wait.object, Place::site(wait.site));
    let section = Section { object, place, ..Section::of(State::LockWait) };
    let span = Span { start: wait.start, end: wait.end, section };
    let needs = holder(execution, wait).into_iter().collect();
    OpenWait { thread: wait.thread, span, function: None, needs, any: false }
}

/// The holder of the lock at the end, if it is known.
fn holder(execution: &Execution, wait: &ThreadWait) -> Option<Needed> {
    let holds = execution.thread_waits.holds_of(wait.object, wait.start, u64::MAX);
    let last = holds.last().filter(|hold| hold.end >= wait.end)?;
    Some(Needed::Holder { thread: last.thread, since: last.start, site: last.site })
}
