//! Jobs in which nothing was recorded, and no thread worked, for long before their ends.

use super::ends::{End, Ends, is_idle, is_wait};
use super::{Hang, OpenWait};
use taskscope_execution::{Group, ProcessIndex, Section, State, ThreadIndex};

/// A silence is at least as long, nanoseconds.
const MIN_SILENCE_NS: u64 = 200_000_000;
/// A silence of this length is long however long the run is.
const LONG_SILENCE_NS: u64 = 5_000_000_000;
/// A shorter silence counts from this fraction of the run on.
const SHARE_OF_RUN: u64 = 10;
/// A silence is at least this multiple of the longest earlier wait on one of the waiting threads.
const TIMES_OF_WAITS: u64 = 3;

impl Ends<'_> {
    /// A job without progress for a long time.
    pub fn silence(&self, job: &[ProcessIndex]) -> Option<Hang> {
        let threads = &self.execution.threads;
        let own = || self.all().filter(|(thread, _)| job.contains(&self.process(*thread)));
        let end = job.iter().map(|process| self.execution.processes[process.index()].last).max()?;
        let begin = job.iter().map(|process| self.execution.processes[process.index()].first).min()?;
        // A process that had ended is silent.
        let is_open = |thread: &ThreadIndex| !self.proper[self.process(*thread).index()];
        let alive = || own().filter(|(thread, end)| is_open(thread) && !end.gone);
        let last = own().map(|(thread, _)| threads[thread.index()].last_event).max()?;
        let silence = end.checked_sub(last)?;
        let is_long = silence >= LONG_SILENCE_NS || silence >= end.saturating_sub(begin) / SHARE_OF_RUN;
        if silence < MIN_SILENCE_NS || !is_long {
            return None;
        }
        let slept = |thread: ThreadIndex| {
            threads[thread.index()].asleep_since.is_some_and(|since| end - since.min(end) >= silence / 2)
        };
        let rests = |(thread, end): (ThreadIndex, &End)| {
            let state = end.span.section.state;
            // A device, or another host, may be at work.
            let waits = self.waits.contains_key(&thread) && state != State::TargetWait;
            waits || is_idle(state) || state == State::JoinBarrier || slept(thread)
        };
        // Threads without a runtime may wait for any time, as those of a server do.
        let waiting: Vec<&OpenWait> = alive()
            .filter(|(_, end)| is_wait(end.span.section.state))
            .filter_map(|(thread, _)| self.waits.get(&thread))
            .filter(|wait| self.is_longest(wait))
            .collect();
        if waiting.is_empty() || !alive().all(rests) || waiting.iter().any(|wait| self.is_gathering(wait)) {
            return None;
        }
        // Calls with unrecorded partners may wait for activity elsewhere; those that start the job know theirs.
        let in_calls = |wait: &&OpenWait| wait.span.section.state == State::Communication;
        let is_whole = job
            .iter()
            .filter_map(|process| self.execution.communication.ranks.get(&process.0))
            .all(|rank| rank.ranks as usize == job.len());
        if waiting.iter().all(in_calls) && !is_whole {
            return None;
        }
        let since = last.max(waiting.iter().map(|wait| wait.span.start).min()?);
        Some(self.hang(false, &[], waiting.iter().map(|wait| wait.thread), since))
    }

    /// Whether members of the team of a barrier have not started yet.
    fn is_gathering(&self, wait: &OpenWait) -> bool {
        let Section { state, region, .. } = wait.span.section;
        let team = self.execution.regions.get(region.index());
        matches!(state, State::Barrier | State::JoinBarrier)
            && team.is_some_and(|team| team.members < team.requested)
    }

    /// Whether the wait is far longer than all waits of its thread before.
    fn is_longest(&self, wait: &OpenWait) -> bool {
        let mut longest = 0;
        self.execution.threads[wait.thread.index()].track.for_each_in(
            |state, _| is_wait(state) && state.group() != Group::Start,
            |span| {
                if span.end < wait.span.end {
                    longest = longest.max(span.nanos());
                }
            },
        );
        wait.span.nanos() / TIMES_OF_WAITS >= longest
    }
}
