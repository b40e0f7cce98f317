//! Processes that were late in a call of a communication library, and the waits for them.
//!
//! A call that waits for another process has two parts: until that one has come, its time is the late process's
//! doing; the rest is communication, or the start of the job.

use taskscope_execution::{Execution, KeptBy, LatePeers, ProcessIndex, Section, Span, State};

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

/// Passes the waits of selected workers for late processes to `take`: the process that kept them waiting, the section
/// of the wait, nanoseconds. A late process that waited for another one itself is followed ([`LatePeers`]); while it only waited for
/// messages in transit, no process is late. The system's part of a wait is not in the section of a call: the process had no CPU.
pub(crate) fn waits_for_late(execution: &Execution, mut take: impl FnMut(ProcessIndex, &Section, u64)) {
    if execution.communication.calls.iter().all(|call| call.wait.is_none()) {
        return;
    }
    let peers = LatePeers::of(execution);
    for (thread, row) in execution.selected_workers() {
        let waits = peers.waits_of(thread);
        if waits.is_empty() {
            continue;
        }
        let mut charge = |span: Span| {
            let first = waits.partition_point(|wait| wait.1 <= span.start);
            for (start, until, process) in waits[first..].iter().take_while(|wait| wait.0 < span.end) {
                for part in peers.parts(*process, (*start).max(span.start), (*until).min(span.end)) {
                    let late = match part.kept_by {
                        KeptBy::Process(late) => late,
                        KeptBy::System => *process,
                        KeptBy::Transfer => continue,
                    };
                    take(late, &span.section, part.end - part.start);
                }
            }
        };
        let is_call = |state: State| matches!(state, State::Communication | State::MpiStart);
        let is_wait = |span: &Span| is_call(span.section.state) && span.end > span.start;
        if execution.system_time_of(thread).is_empty() {
            row.track.spans().filter(is_wait).for_each(&mut charge);
        } else {
            execution.spans_of_run(thread).filter(is_wait).for_each(&mut charge);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Finding, LateProcess, analyse};
    use taskscope_event::models::messages::function_number;
    use taskscope_execution::messages::{MpiCall, PeerWait, PeerWaitKind, Rank};
    use taskscope_execution::{
        Cause, Change, Execution, ExecutionBuilder, Observer, OsSource, Place, ProcessIndex, Section, State,
        ThreadIndex,
    };

    /// Rank 0 receives from 10 to 60 a message that rank 1 sends at 50.
    fn late_sender() -> Execution {
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
        execution
    }

    fn findings(execution: &Execution) -> Vec<(Cause, u64, Option<(i64, Option<u32>)>)> {
        let (analysis, _) = analyse(execution);
        let reported = |f: &Finding| (f.cause, f.ns, f.late.map(|LateProcess { pid, rank, .. }| (pid, rank)));
        analysis.findings.iter().map(reported).collect()
    }

    #[test]
    fn a_late_rank_is_a_finding_and_all_findings_sum_to_the_loss() {
        let expected = [(Cause::MpiLate, 40, Some((101, Some(1)))), (Cause::MpiTransfer, 10, None)];
        assert_eq!(findings(&late_sender()), expected);
    }

    #[test]
    fn a_rank_without_a_cpu_is_late_by_the_systems_doing() {
        let mut execution = late_sender();
        for (thread, off) in [(0, &[][..]), (1, &[(15, 30), (40, 45)][..])] {
            execution.add_off_cpu(ThreadIndex(thread), OsSource::Switches, off, &[]);
        }
        execution.attribute_system_time();
        let expected = [
            // Of each rank.
            (Cause::CpuNone, 20, None),
            (Cause::CpuNone, 20, None),
            (Cause::MpiLate, 20, Some((101, Some(1)))),
            (Cause::MpiTransfer, 10, None),
        ];
        assert_eq!(findings(&execution), expected);
    }

    /// Rank 0 waits for rank 1 from 0 to 100; that one is in a call of a function from 20 to 70, and waits there for rank 2 until a time.
    fn in_a_call_itself(function: &str, until: u64) -> Execution {
        let mut builder = ExecutionBuilder::new();
        let all: [&[(u64, State)]; 3] = [
            &[(0, State::Communication)],
            &[(0, State::Serial), (20, State::Communication), (70, State::Serial)],
            &[(0, State::Serial)],
        ];
        for (rank, sections) in (0..).zip(all) {
            let process = builder.add_process("host", 100 + rank);
            let thread = builder.add_thread(process, 100 + rank);
            for (at, state) in sections {
                builder.event(thread, *at);
                builder.change(thread, *at, Change::Becomes(Section::of(*state)));
            }
            builder.event(thread, 100);
        }
        let mut execution = builder.finish();
        let call = |thread, (start, end), late, until| MpiCall {
            thread: ThreadIndex(thread),
            function: function_number(function),
            place: Place::UNKNOWN,
            start,
            end,
            count: 1,
            bytes: 0,
            wait: (until > start).then_some(PeerWait {
                kind: PeerWaitKind::LateMember,
                culprit: ProcessIndex(late),
                until,
            }),
        };
        execution.communication.calls = vec![call(0, (0, 100), 1, 100), call(1, (20, 70), 2, until)];
        for rank in 0..3 {
            execution.communication.ranks.insert(rank, Rank { job: 1, rank, ranks: 3 });
        }
        execution
    }

    #[test]
    fn a_late_rank_that_waits_itself_is_followed() {
        let late = |rank: u32| Some((100 + i64::from(rank), Some(rank)));
        let execution = in_a_call_itself("Bcast", 70);
        assert_eq!(findings(&execution), [(Cause::MpiLate, 100, late(2)), (Cause::MpiLate, 50, late(1))]);
        // From 60 on its message is in transit, and nobody is late.
        let execution = in_a_call_itself("Bcast", 60);
        assert_eq!(
            findings(&execution),
            [(Cause::MpiLate, 80, late(2)), (Cause::MpiLate, 50, late(1)), (Cause::MpiTransfer, 20, None)]
        );
        let execution = in_a_call_itself("Bcast", 0);
        assert_eq!(findings(&execution), [(Cause::MpiTransfer, 100, None), (Cause::MpiLate, 50, late(1))]);
        // Its file keeps it busy.
        let execution = in_a_call_itself("File_write", 0);
        assert_eq!(findings(&execution), [(Cause::MpiLate, 100, late(1)), (Cause::MpiTransfer, 50, None)]);
    }
}
