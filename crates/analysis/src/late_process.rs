//! Processes that were late in a call of a communication library, and the waits for them.
//!
//! A call that waits for another process has two parts: until that one has come, its time is the late process's
//! doing; the rest is communication, or the start of the job.

use rustc_hash::FxHashMap;
use taskscope_execution::messages::MpiCall;
use taskscope_execution::{Execution, ProcessIndex, Section, State};

/// A process that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LateProcess {
    /// Index of the process.
    pub process: ProcessIndex,
    /// Its process id.
    pub pid: i64,
    /// Its rank, if it has one.
    pub rank: Option<u32>,
}

impl LateProcess {
    /// Names a process of an execution.
    pub fn of(execution: &Execution, process: ProcessIndex) -> LateProcess {
        let pid = execution.processes.get(process.index()).map_or(0, |process| process.pid);
        let rank = execution.communication.ranks.get(&process.0).map(|rank| rank.rank);
        LateProcess { process, pid, rank }
    }
}

/// Passes the waits of selected workers for late processes to `take`: the process, the section of the wait,
/// nanoseconds. (Off-CPU time is not part of calls.)
pub(crate) fn waits_for_late(execution: &Execution, mut take: impl FnMut(ProcessIndex, &Section, u64)) {
    let mut by_thread: FxHashMap<u32, Vec<&MpiCall>> = FxHashMap::default();
    for call in execution.communication.calls.iter().filter(|call| call.wait.is_some()) {
        by_thread.entry(call.thread.0).or_default().push(call);
    }
    for (thread, row) in execution.selected_workers() {
        let Some(calls) = by_thread.get_mut(&thread.0) else { continue };
        calls.sort_by_key(|call| call.start);
        let is_call = |state: State| matches!(state, State::Communication | State::MpiStart);
        let spans = row.track.spans().filter(|span| is_call(span.section.state));
        spans.for_each(|span| {
            let Some(call) = calls[..calls.partition_point(|call| call.start <= span.start)].last() else {
                return;
            };
            let Some(wait) = call.wait.filter(|wait| call.end > span.start && wait.until > span.start) else {
                return;
            };
            if execution.processes.get(wait.culprit.index()).is_some() {
                take(wait.culprit, &span.section, wait.until.min(span.end) - span.start);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::{Finding, LateProcess, analyse};
    use taskscope_execution::messages::{MpiCall, PeerWait, PeerWaitKind, Rank};
    use taskscope_execution::{
        Cause, Change, ExecutionBuilder, Observer, Place, ProcessIndex, Section, State, ThreadIndex,
    };

    /// Rank 0 receives from 10 to 60 a message that rank 1 sends at 50.
    #[test]
    fn a_late_rank_is_a_finding_and_all_findings_sum_to_the_loss() {
        let mut builder = ExecutionBuilder::new();
        for pid in [100, 101] {
            let process = builder.add_process("host", pid);
            let thread = builder.add_thread(process, pid);
            let sections: &[_] = &[(0, State::Serial), (10, State::Communication), (60, State::Serial)];
            for (at, state) in &sections[..if pid == 100 { 3 } else { 1 }] {
                builder.event(thread, *at);
                builder.change(thread, *at, Change::Becomes(Section::of(*state)));
            }
            builder.event(thread, 100);
        }
        let mut execution = builder.finish();
        let late = PeerWait { kind: PeerWaitKind::LateSender, culprit: ProcessIndex(1), until: 50 };
        let (place, count, bytes) = (Place::UNKNOWN, 1, 0);
        let call = MpiCall {
            thread: ThreadIndex(0),
            function: 0,
            place,
            start: 10,
            end: 60,
            count,
            bytes,
            wait: Some(late),
        };
        execution.communication.calls = vec![call];
        execution.communication.ranks.insert(1, Rank { job: 1, rank: 1, ranks: 2 });
        let (analysis, _) = analyse(&execution);
        let reported = |f: &Finding| (f.cause, f.ns, f.late.map(|LateProcess { pid, rank, .. }| (pid, rank)));
        let reported: Vec<_> = analysis.findings.iter().map(reported).collect();
        let expected = [(Cause::MpiLate, 40, Some((101, Some(1)))), (Cause::MpiTransfer, 10, None)];
        assert_eq!(reported, expected);
    }
}
