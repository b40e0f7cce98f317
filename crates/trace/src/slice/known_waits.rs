//! What the analysis of a whole run has found about waits of threads for each other, in the streams of a slice.
//!
//! The rows replace the events from which they were found. A row is on the waiting thread, at the begin of its wait or of the range;
//! the holds of the wait come before it. Threads that ended a wait, and names of calls, may come after the range: the slice has
//! these, too.

use super::bytes::{first_u32, merge, push};
use super::request::{KnownCall, KnownThread, KnownWait, ProcessId, Slice};
use crate::stream::Stream;
use crate::trace::Trace;
use crate::{Event, MergedEvent};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::{dictionary, samples, wait};
use taskscope_event::{Code, StreamFile};

impl Trace {
    /// Whether threads wait for each other in it, so that [`Slice::waits`] keeps their ends.
    pub fn has_thread_waits(&self) -> bool {
        let is_wait = |event: Event<'_>| is_of_waits(event.code);
        self.streams().iter().any(|stream| stream.events_of(StreamFile::Own).any(is_wait))
    }
}

/// Whether an event is one of those that known waits replace.
fn is_of_waits(code: Code) -> bool {
    matches!(
        code,
        wait::WAIT_BEGIN
            | wait::FOUND_HELD
            | wait::WAIT_END
            | wait::HANDED_OVER
            | wait::WAKES_ONE
            | wait::WAKES_ALL
            | wait::WAITED
            | wait::KNOWN_WAIT
            | wait::KNOWN_HOLD
            | wait::KNOWN_THREAD
    )
}

/// The known waits of a slice, by the streams of their threads.
#[derive(Default)]
pub(super) struct RowsOfWaits<'a> {
    /// Whether they are known.
    are_known: bool,
    by_stream: FxHashMap<usize, Vec<&'a KnownWait>>,
    threads: FxHashMap<usize, &'a KnownThread>,
    /// Streams of threads that ended a wait or held a lock.
    others: FxHashSet<usize>,
}

impl<'a> RowsOfWaits<'a> {
    pub fn of(trace: &Trace, slice: &'a Slice, is_selected: impl Fn(usize) -> bool) -> Self {
        let Some(slice_waits) = &slice.waits else { return RowsOfWaits::default() };
        let mut known = RowsOfWaits { are_known: true, ..RowsOfWaits::default() };
        let mut streams_of: FxHashMap<(Option<i64>, Option<i64>), Vec<usize>> = FxHashMap::default();
        for (index, stream) in trace.streams().iter().enumerate().filter(|(index, _)| is_selected(*index)) {
            streams_of.entry((stream.pid(), stream.tid())).or_default().push(index);
        }
        // A thread with several recorders has several streams: the waits are in that of their recorder.
        let mut found: FxHashMap<(&ProcessId, i64), Option<usize>> = FxHashMap::default();
        let mut stream_of = |process: &'a ProcessId, tid: i64| {
            *found.entry((process, tid)).or_insert_with(|| {
                let candidates = streams_of.get(&(Some(process.1), Some(tid)))?;
                let records = |stream: &Stream| {
                    let own = stream.events_of(StreamFile::Own);
                    own.into_iter().any(|event| event.code == wait::THREAD_STARTS || is_of_waits(event.code))
                };
                let fit = |index: &&usize| {
                    let stream = &trace.streams()[**index];
                    (records(stream), stream.loom() == Some(&process.0))
                };
                let best = candidates.iter().max_by_key(fit)?;
                let is_of_host = host(trace.streams()[*best].loom().unwrap_or_default()) == host(&process.0);
                is_of_host.then_some(*best)
            })
        };
        for thread in &slice_waits.threads {
            if let Some(stream) = stream_of(&thread.process, thread.thread) {
                known.threads.insert(stream, thread);
            }
        }
        for wait in &slice_waits.waits {
            let Some(stream) = stream_of(&wait.process, wait.thread) else { continue };
            known.by_stream.entry(stream).or_default().push(wait);
            let others = wait.waker.iter().map(|(tid, ..)| *tid);
            let others = others.chain(wait.holds.iter().map(|hold| hold.thread));
            known.others.extend(others.filter_map(|tid| stream_of(&wait.process, tid)));
        }
        known
    }

    /// Whether an event of the trace is replaced by them.
    pub fn replace(&self, merged: &MergedEvent<'_>) -> bool {
        self.are_known && merged.file == StreamFile::Own && is_of_waits(merged.event.code)
    }

    /// Whether they replace the open waits at the begin of the range.
    pub fn are_known(&self) -> bool {
        self.are_known
    }

    /// Whether another thread waited for this one.
    pub fn needs(&self, stream: usize) -> bool {
        self.others.contains(&stream)
    }

    /// Adds the rows of a stream, which has its first event at `first`, to the events of its own file.
    pub fn add(&self, stream: usize, (first, begin): (i64, i64), own: &mut Vec<u8>) {
        let mut rows = Vec::new();
        if let Some(thread) = self.threads.get(&stream) {
            let ended = first.saturating_sub(thread.end).to_le_bytes();
            let payload = [&ended[..], &u32::from(thread.works).to_le_bytes()].concat();
            push(&mut rows, first, wait::KNOWN_THREAD, true, &payload);
        }
        let waits = self.by_stream.get(&stream).into_iter().flatten();
        let mut waits: Vec<(i64, &KnownWait)> =
            waits.map(|wait| (wait.start.max(begin).max(first), *wait)).collect();
        waits.sort_by_key(|(clock, wait)| (*clock, wait.start));
        for (clock, wait) in waits {
            push_wait(&mut rows, clock, wait);
        }
        if !rows.is_empty() {
            merge(own, &rows);
        }
    }

    /// The definitions from `end` on of the numbers that the rows of a stream's process use.
    pub fn later_names<'t>(&self, trace: &'t Trace, stream: usize, end: i64) -> Vec<Event<'t>> {
        let process = |stream: usize| (trace.streams()[stream].loom(), trace.streams()[stream].pid());
        let is_own = |other: &usize| process(*other) == process(stream);
        let waits = self.by_stream.iter().filter(|(other, _)| is_own(other)).flat_map(|(_, waits)| waits);
        let calls = waits.flat_map(|wait| {
            let waker = wait.waker.iter().map(|(_, call, _)| *call);
            waker.chain(wait.holds.iter().map(|hold| hold.call)).chain([wait.call])
        });
        let (sites, paths): (FxHashSet<u32>, FxHashSet<u32>) =
            calls.map(|call| (call.site, call.path)).unzip();
        if sites.is_empty() {
            return Vec::new();
        }
        let streams = (0..trace.streams().len()).filter(is_own).map(|other| &trace.streams()[other]);
        let events = streams.flat_map(|other| other.events_of(StreamFile::Own));
        let is_used = |event: &Event<'_>| match event.code {
            dictionary::SITE | dictionary::SITE_BODY => sites.contains(&first_u32(event.payload)),
            samples::PATH => paths.contains(&first_u32(event.payload)),
            dictionary::MODULE => true,
            _ => false,
        };
        events.filter(|event| event.clock_ns >= end && is_used(event)).collect()
    }
}

/// The host of a loom.
fn host(loom: &str) -> &str {
    loom.split('.').next().unwrap_or(loom)
}

fn push_wait(rows: &mut Vec<u8>, clock: i64, wait: &KnownWait) {
    let ago = |at: i64| clock.saturating_sub(at).to_le_bytes();
    for hold in &wait.holds {
        let payload = [
            &wait.object.to_le_bytes()[..],
            &ago(hold.start),
            &ago(hold.end),
            &hold.thread.to_le_bytes(),
            &hold.call.site.to_le_bytes(),
            &hold.call.path.to_le_bytes(),
            &wait.kind.to_le_bytes(),
        ];
        push(rows, clock, wait::KNOWN_HOLD, true, &payload.concat());
    }
    let (tid, call, at) = wait.waker.unwrap_or((0, KnownCall::default(), clock));
    let waker = if wait.is_of_others { wait::OTHER_PROCESS } else { tid.cast_unsigned() };
    let payload = [
        &wait.object.to_le_bytes()[..],
        &ago(wait.start),
        &ago(wait.end),
        &ago(at),
        &waker.to_le_bytes(),
        &wait.call.site.to_le_bytes(),
        &wait.call.path.to_le_bytes(),
        &wait.kind.to_le_bytes(),
        &wait.outcome.to_le_bytes(),
        &call.site.to_le_bytes(),
        &call.path.to_le_bytes(),
    ];
    push(rows, clock, wait::KNOWN_WAIT, true, &payload.concat());
}
