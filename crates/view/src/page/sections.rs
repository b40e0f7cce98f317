//! One section in full: its state, its wait, and the cause of the wait.

use super::Page;
use super::between_calls::BetweenCalls;
use super::messages::{MessageFacts, ThreadWaitFacts};
use super::operations::Submissions;
use super::tasks::TaskReference;
use crate::documents::Named;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use taskscope_execution::messages::MpiCall;
use taskscope_execution::{
    Group, Hold, Holders, NO_NUMBER, NO_TIME, OsSource, Place, RegionIndex, Span, State, ThreadIndex,
};

/// A section of a track, with everything that is known of it. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SectionFacts {
    /// The track.
    pub track: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// The state.
    pub state: Named<State>,
    /// The state in words.
    pub label: &'static str,
    /// The state's group.
    pub group: &'static str,
    /// The name that its bar has.
    pub name: String,
    /// The place in words; may be empty.
    pub place: String,
    /// File and line of the place; null if unknown.
    pub line: Option<String>,
    /// The task's number in its process; null for none.
    pub task: Option<u64>,
    /// The task.
    pub task_ref: Option<TaskReference>,
    /// The task's type; only in a task.
    #[serde(flatten)]
    pub task_type: Option<TypeWords>,
    /// The recorder's number of the region.
    pub region: Option<u64>,
    /// The region in words.
    pub region_name: Option<String>,
    /// The awaited object; only for waits for an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The reason for the wait.
    #[serde(flatten)]
    pub reason: WaitReason,
    /// The calls around it and the processes that waited for it; only of code between calls of a communication library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_calls: Option<BetweenCalls>,
    /// Operations of device queues that were submitted in it; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submissions: Option<Submissions>,
    /// Length from which waits of this state are the longest of their kind, nanoseconds; absent if none is exceptional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_from_ns: Option<u64>,
    /// Nanoseconds off the CPU; absent if 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_cpu_ns: Option<u64>,
    /// Whether they are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_cpu_estimated: Option<bool>,
    /// Events lost in it; absent if 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_events: Option<u64>,
    /// The reason of its uncertainty; absent if it is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<&'static str>,
}

/// A task type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TypeWords {
    /// Its name.
    pub task_type: String,
    /// File and line; empty if unknown.
    pub task_line: String,
}

/// The reason for a section's wait; only the keys of its kind of wait are present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct WaitReason {
    /// The call of a communication library; null if its function is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Option<&'static str>>,
    /// Bytes of the call; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_bytes: Option<u64>,
    /// Messages that the call sent or received; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageFacts>,
    /// The longest wait for another thread in the section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_wait: Option<ThreadWaitFacts>,
    /// The process that the call waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerFacts>,
    /// Holders of a lock while it was waited for, the longest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Vec<HolderFacts>>,
    /// Concurrent work of the process's other workers, the longest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub culprits: Option<Vec<WorkMeanwhile>>,
    /// Workers of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// The work that ended last before the wait did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_last: Option<EndedLast>,
}

/// A process that a call waited for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PeerFacts {
    /// The kind of waiting.
    pub kind: &'static str,
    /// Nanoseconds.
    pub ns: u64,
    /// Its rank; null if unknown.
    pub rank: Option<u32>,
    /// Its process id.
    pub pid: Option<i64>,
}

/// A holder of a lock.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HolderFacts {
    /// Its track.
    pub track: u32,
    /// Nanoseconds that were waited for it.
    pub ns: u64,
    /// The place that took the lock.
    pub place: String,
    /// Acquisition time.
    pub start: u64,
    /// Release time.
    pub end: u64,
    /// Its task's number in its process.
    pub task: Option<u64>,
    /// Its task in words.
    pub task_name: Option<String>,
}

/// Work of other workers while one waited.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorkMeanwhile {
    /// The state in words.
    pub state: &'static str,
    /// The place in words.
    pub place: String,
    /// Nanoseconds of useful work.
    pub useful_ns: u64,
    /// Number of threads.
    pub threads: u32,
}

/// The work that ended last before a wait did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EndedLast {
    /// Its track.
    pub track: u32,
    /// End time.
    pub end: u64,
    /// The state in words.
    pub state: &'static str,
    /// The place in words.
    pub place: String,
    /// Its task's number in its process.
    pub task: Option<u64>,
    /// Its task in words.
    pub task_name: Option<String>,
}

impl Page {
    /// The section of a track at a time, with all known facts; `None` if the track has none.
    pub fn section_at(&self, track: ThreadIndex, at: u64) -> Option<SectionFacts> {
        let thread = self.execution.threads.get(track.index())?;
        let row = thread.track.row_at(self.start().checked_add(at)?)?;
        Some(self.section(track, thread.track.span(row)))
    }

    /// The section after (or before) the one at a time on the same track.
    pub fn neighbour(&self, track: ThreadIndex, at: u64, later: bool) -> Option<SectionFacts> {
        let thread = self.execution.threads.get(track.index())?;
        let at = self.start().checked_add(at)?;
        let row = match thread.track.row_at(at) {
            Some(row) if later => row + 1,
            Some(row) => row.checked_sub(1)?,
            None if later == (at < thread.track.start()) => {
                if later {
                    0
                } else {
                    thread.track.len().checked_sub(1)?
                }
            }
            None => return None,
        };
        (row < thread.track.len()).then(|| self.section(track, thread.track.span(row)))
    }

    pub(super) fn section(&self, track: ThreadIndex, span: Span) -> SectionFacts {
        let section = span.section;
        let place = self.place_words(section.state, section.place);
        let task_type = self.execution.tasks.ty.get(section.task.index()).copied().map(|ty| {
            self.names.ask(move |places| TypeWords {
                task_type: places.type_name(ty),
                task_line: places.line(places.type_site(ty)).unwrap_or_default(),
            })
        });
        let object = section.object;
        let off = self.timeline.off_cpu_ns(&self.execution, track, span.start, span.end);
        let is_estimated = || self.execution.threads[track.index()].os_source == OsSource::Estimated;
        let overlaps = |start: u64, end: u64| start < span.end && end.max(start + 1) > span.start;
        let losses = self.execution.losses.iter();
        let losses = losses.filter(|loss| loss.thread == track && overlaps(loss.start, loss.end));
        let lost: u64 = losses.map(|loss| loss.events).sum();
        let mut doubts = self.execution.uncertain.iter();
        let doubt = doubts.find(|part| part.thread == track && overlaps(part.start, part.end));
        SectionFacts {
            track: track.0,
            start: self.since_start(span.start),
            end: self.since_start(span.end),
            state: Named(section.state),
            label: section.state.label(),
            group: section.state.group().name(),
            name: self.bar_name(track, &span),
            place,
            line: self.names.ask(move |places| places.line(places.site_of(section.place))),
            task: self.execution.tasks.number(section.task),
            task_ref: self.task_reference(section.task),
            task_type,
            region: self.region_number(section.region),
            region_name: self.region_name(section.region),
            object: object.is_some().then(|| self.object_words(vec![object]).pop().unwrap_or_default()),
            reason: WaitReason {
                thread_wait: self.thread_wait_of(track, (span.start, span.end)),
                ..self.wait_reason(track, span)
            },
            between_calls: self.between_calls(track, &span),
            submissions: self.submissions_of(track, &span),
            long_from_ns: self.timeline.long_wait_ns(section.state),
            off_cpu_ns: (off > 0).then_some(off),
            off_cpu_estimated: (off > 0).then(is_estimated),
            lost_events: (lost > 0).then_some(lost),
            uncertain: doubt.map(|part| part.doubt.name()),
        }
    }

    /// The reason for a section's wait.
    fn wait_reason(&self, track: ThreadIndex, span: Span) -> WaitReason {
        let state = span.section.state;
        if state == State::Communication
            && let Some(reason) = self.peer(track, span)
        {
            return reason;
        }
        match state.group() {
            Group::Mutex => WaitReason { holders: Some(self.holders(track, &span)), ..WaitReason::default() },
            Group::Sync | Group::Idle => self.workers_meanwhile(track, span),
            _ => WaitReason::default(),
        }
    }

    pub(super) fn place_words(&self, state: State, place: Place) -> String {
        self.names.ask(move |places| places.name(state, place))
    }

    /// The threads that held or handed over the awaited object, and for how much of the section.
    fn holders(&self, track: ThreadIndex, wait: &Span) -> Vec<HolderFacts> {
        let object = wait.section.object;
        let holders = Holders::of(self.execution.holds.iter().filter(|hold| hold.object == object));
        let mut rows: Vec<(u64, Hold)> = Vec::new();
        self.execution.split_wait(&holders, track, wait, |holder, start, end| {
            match (holder, rows.last_mut()) {
                (Some(hold), Some((ns, last))) if *last == hold => *ns += end - start,
                (Some(hold), _) => rows.push((end - start, hold)),
                (None, _) => {}
            }
        });
        rows.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let rows = rows.into_iter().take(8).map(|(ns, hold)| HolderFacts {
            track: hold.thread.0,
            ns,
            place: self.place_words(State::LockWait, Place::site(hold.site)),
            start: self.since_start(hold.start),
            end: self.since_start(hold.end),
            task: self.execution.tasks.number(hold.task),
            task_name: self.task_name(hold.task),
        });
        rows.collect()
    }

    /// The process that a call of a communication library waited for; `None` if no call is known.
    fn peer(&self, track: ThreadIndex, span: Span) -> Option<WaitReason> {
        let communication = &self.execution.communication;
        let call = self.call_at(track, &span)?;
        let peer = call.wait.filter(|wait| wait.until > span.start).map(|wait| {
            let process = self.execution.processes.get(wait.culprit.index());
            PeerFacts {
                kind: wait.kind.name(),
                ns: wait.until.min(span.end) - span.start,
                rank: communication.ranks.get(&wait.culprit.0).map(|rank| rank.rank),
                pid: process.map(|process| process.pid),
            }
        });
        let call_bytes = Some(call.bytes).filter(|bytes| *bytes != u64::MAX);
        let messages = self.messages_of(track, &span);
        Some(WaitReason {
            call: Some(call.function_name()),
            call_bytes,
            messages,
            peer,
            ..WaitReason::default()
        })
    }

    /// The call of a communication library that covers a section.
    pub(super) fn call_at(&self, track: ThreadIndex, span: &Span) -> Option<&MpiCall> {
        let calls = &self.execution.communication.calls;
        let thread_calls = self.derived.calls.get_or_init(|| {
            let mut rows = vec![Vec::new(); self.execution.threads.len()];
            for (row, call) in (0..).zip(calls) {
                if let Some(rows) = rows.get_mut(call.thread.index()) {
                    rows.push(row);
                }
            }
            rows.iter_mut()
                .for_each(|rows: &mut Vec<u32>| rows.sort_by_key(|row| calls[*row as usize].start));
            rows
        });
        let rows = thread_calls.get(track.index())?;
        let begun = rows.partition_point(|row| calls[*row as usize].start <= span.start);
        // Calls of one thread are nested a few deep at most: a call that the library makes itself is in the one before.
        let last = rows[..begun].iter().rev().take(4).map(|row| &calls[*row as usize]);
        last.into_iter().find(|call| call.end >= span.end)
    }

    /// Activity of the process's other workers during the wait: the busy ones are to blame. Includes the last
    /// section that ended before the wait did.
    fn workers_meanwhile(&self, track: ThreadIndex, span: Span) -> WaitReason {
        let process = self.execution.threads[track.index()].process;
        let mut busy: BTreeMap<(State, Place), (u64, u32)> = BTreeMap::new();
        let mut released: Option<(u64, ThreadIndex, Span)> = None;
        let mut workers = 0_u32;
        for (index, thread) in self.execution.workers().filter(|(_, thread)| thread.process == process) {
            workers += 1;
            if index == track {
                continue;
            }
            let sums = self.timeline.sums(&self.execution, index, span.start, span.end);
            let useful: u64 = State::ALL.iter().filter(|s| s.is_useful()).map(|s| sums[*s as usize]).sum();
            // The section in the middle represents the thread's activity, which is accurate enough for blame.
            let middle = span.start + (span.end - span.start) / 2;
            let at = |time| thread.track.row_at(time).map(|row| thread.track.span(row));
            if let Some(there) = at(middle).filter(|there| useful > 0 && there.section.state.is_useful()) {
                let entry = busy.entry((there.section.state, there.section.place)).or_default();
                *entry = (entry.0 + useful, entry.1 + 1);
            }
            let Some(row) = thread.track.row_at(span.end.saturating_sub(1)) else { continue };
            for row in [row, row.saturating_sub(1)] {
                let ended = thread.track.span(row);
                let counts =
                    ended.section.state.is_useful() && ended.end <= span.end && ended.end > span.start;
                if counts && released.is_none_or(|(latest, _, _)| ended.end > latest) {
                    released = Some((ended.end, index, ended));
                }
            }
        }
        let mut busy: Vec<_> = busy.into_iter().collect();
        busy.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
        let culprits = busy.into_iter().take(4).map(|((state, place), (ns, threads))| WorkMeanwhile {
            state: state.label(),
            place: self.place_words(state, place),
            useful_ns: ns,
            threads,
        });
        let ended_last = released.map(|(end, thread, last)| EndedLast {
            track: thread.0,
            end: self.since_start(end),
            state: last.section.state.label(),
            place: self.place_words(last.section.state, last.section.place),
            task: self.execution.tasks.number(last.section.task),
            task_name: self.task_name(last.section.task),
        });
        WaitReason {
            culprits: Some(culprits.collect()),
            workers: Some(workers),
            ended_last,
            ..WaitReason::default()
        }
    }

    /// The recorder's number of a region.
    pub(super) fn region_number(&self, region: RegionIndex) -> Option<u64> {
        let number = self.execution.regions.get(region.index())?.number;
        Some(number).filter(|number| *number != NO_NUMBER)
    }

    /// A region by its number, and its process if there are several.
    pub(super) fn region_name(&self, region: RegionIndex) -> Option<String> {
        let number = self.region_number(region)?;
        let master = self.execution.regions[region.index()].master;
        let process = self.execution.threads.get(master.index()).map(|thread| thread.process);
        Some(match process.and_then(|process| self.execution.process_name(process)) {
            Some(process) => format!("{number} of {process}"),
            None => number.to_string(),
        })
    }

    /// A time since the start of the trace, if known.
    pub(super) fn known_time(&self, at: u64) -> Option<u64> {
        (at != NO_TIME).then(|| self.since_start(at))
    }
}
