//! Waits for locks that are the system's doing.

use crate::intervals::{Times, add_parts};
use crate::{Execution, Group, Holders, Span, ThreadIndex};

/// Maximum length of a followed chain of threads, each of which holds the object that the previous one waits for.
const MAX_CHAIN: usize = 16;

/// The waits for locks, by culprit.
pub(super) struct LockWaits<'a> {
    execution: &'a Execution,
    holders: Holders,
}

impl<'a> LockWaits<'a> {
    pub fn of(execution: &'a Execution) -> LockWaits<'a> {
        LockWaits { execution, holders: Holders::of(&execution.holds) }
    }

    /// The times in which waits of a thread, which could run and had no CPU in `own`, are the system's: the holder has
    /// code to run and no CPU, or the lock is free and the thread has no CPU. A holder that waits for a lock itself is
    /// followed to the holder of that one; in a circle no thread could run, with a CPU or without.
    pub fn system_times(&self, thread: ThreadIndex, own: &Times) -> Vec<(u64, u64)> {
        let mut times = Vec::new();
        self.execution.threads[thread.index()].track.for_each_in(
            |state, _| state.group() == Group::Mutex,
            |wait| {
                let off = |from, to, times: &mut Vec<(u64, u64)>| add_parts(own, (from, to), times);
                self.add_wait(&wait, (wait.start, wait.end), &mut vec![thread], off, &mut times);
            },
        );
        times
    }

    /// Adds the system's part of a wait between two times; `waiting` ends with the thread that waits, `off` adds when that had
    /// no CPU.
    fn add_wait(
        &self,
        wait: &Span,
        (begin, end): (u64, u64),
        waiting: &mut Vec<ThreadIndex>,
        off: impl Fn(u64, u64, &mut Vec<(u64, u64)>),
        times: &mut Vec<(u64, u64)>,
    ) {
        let Some(thread) = waiting.last().copied() else { return };
        self.holders.split(thread, wait, |hold, start, end_of_part| {
            let (start, end) = (start.max(begin), end_of_part.min(end));
            if start >= end {
                return;
            }
            let Some(hold) = hold else { return off(start, end, times) };
            let (from, to) = (hold.start.clamp(start, end), hold.end.clamp(start, end));
            off(start, from, times);
            if !waiting.contains(&hold.thread) && waiting.len() < MAX_CHAIN {
                waiting.push(hold.thread);
                self.add_holder(hold.thread, (from, to), waiting, times);
                waiting.pop();
            }
            off(to, end, times);
        });
    }

    /// Adds when a holder, the last of `waiting`, keeps others waiting by the system's doing.
    fn add_holder(
        &self,
        holder: ThreadIndex,
        (from, to): (u64, u64),
        waiting: &mut Vec<ThreadIndex>,
        times: &mut Vec<(u64, u64)>,
    ) {
        let execution = self.execution;
        let off = |from, to, times: &mut Vec<(u64, u64)>| {
            let own = execution.off_cpu_of(holder);
            let first = own.partition_point(|off| off.end <= from);
            let parts = own[first..].iter().take_while(|off| off.start < to);
            times.extend(parts.map(|off| (off.start.max(from), off.end.min(to))));
        };
        let spans = execution.spans_of_run_from(holder, from).take_while(|span| span.start < to);
        for span in spans {
            let part = (span.start.max(from), span.end.min(to));
            match span.section.state.group() {
                Group::Mutex => self.add_wait(&span, part, waiting, off, times),
                _ => off(part.0, part.1, times),
            }
        }
    }
}
