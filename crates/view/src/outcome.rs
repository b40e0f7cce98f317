//! How a run ended, as far as it decides what its numbers are worth: a job that a rank aborted, a run too short to judge.

use crate::format::time;
use taskscope_cause::State;
use taskscope_session::{RunFile, Session};

/// Recorded runs below this length have no verdict: the start of threads and of the recorder is a large part of them, and a
/// single wait for a CPU can be all of the rest.
const MIN_RUN_NS: u64 = 1_000_000;

/// The verdict on a run, after its outcome.
pub(crate) fn verdict(session: &Session, times_verdict: String) -> String {
    let (first, last) = session.execution.whole().range();
    // Other traces need not have real times, and a slice is as short as its range.
    let is_whole = |run: &&RunFile| !run.notices.iter().any(|notice| notice.name == "slice");
    let run = session.run.as_ref().filter(is_whole);
    let too_short = run.and_then(|_| too_short(last.saturating_sub(first)));
    let times_verdict = too_short.unwrap_or(times_verdict);
    match aborted(session) {
        Some(aborted) => after(&aborted, &times_verdict),
        None => times_verdict,
    }
}

/// The verdict on the time before an abort, whose reason is to be mended.
fn after(aborted: &str, times_verdict: &str) -> String {
    match times_verdict.strip_prefix("Nothing to mend: ") {
        Some(times_verdict) => format!("{aborted} Until then, {times_verdict}"),
        None => format!("{aborted} {times_verdict}"),
    }
}

/// The verdict on a run that is too short for one.
fn too_short(ns: u64) -> Option<String> {
    (0 < ns && ns < MIN_RUN_NS).then(|| {
        format!(
            "The recorded run took {}, which is too short to judge: much of it is the start of threads and of the recorder.",
            time(ns)
        )
    })
}

/// The rank that aborted its job, in a sentence; the first one of several.
fn aborted(session: &Session) -> Option<String> {
    let execution = session.execution.whole();
    let calls = execution.communication.calls.iter().filter(|call| call.function_name() == Some("Abort"));
    let call = calls.min_by_key(|call| call.start)?;
    let thread = execution.threads.get(call.thread.index())?;
    let rank = execution.communication.ranks.get(&thread.process.0);
    let who = match rank {
        Some(rank) => format!("Rank {}", rank.rank),
        None => format!("Process {}", execution.processes.get(thread.process.index())?.pid),
    };
    let after = time(call.start.saturating_sub(execution.range().0));
    let place = session.places.name(State::Communication, call.place);
    let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
    Some(format!("{who} aborted the job after {after}{place}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_below_a_millisecond_have_no_verdict() {
        assert!(too_short(312_000).unwrap().starts_with("The recorded run took 312 µs, which is too short"));
        assert_eq!((too_short(MIN_RUN_NS), too_short(0)), (None, None));
    }

    #[test]
    fn an_aborted_job_is_not_called_well() {
        let well =
            after("Rank 2 aborted the job.", "Nothing to mend: 98.5 % of 3 worker-seconds are useful.");
        assert_eq!(well, "Rank 2 aborted the job. Until then, 98.5 % of 3 worker-seconds are useful.");
        let lossy = after("Rank 2 aborted the job.", "Of 3 worker-seconds, 2 are lost.");
        assert_eq!(lossy, "Rank 2 aborted the job. Of 3 worker-seconds, 2 are lost.");
    }
}
