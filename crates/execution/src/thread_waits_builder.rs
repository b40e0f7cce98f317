//! Builds waits between threads from their events; [`thread_waits`](crate::thread_waits) has the rules.

use crate::thread_waits::{
    KNOWN_OTHER_PROCESS, ThreadWait, ThreadWaitChange, ThreadWaits, WaitOutcome, Waker,
};
use crate::{Hold, Object, ObjectIndex, ProcessIndex, SiteIndex, TaskIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use taskscope_event::models::wait::{self, kind, outcome};

fn outcome_of(number: u32) -> WaitOutcome {
    match number {
        outcome::DONE => WaitOutcome::Done,
        outcome::TIMED_OUT => WaitOutcome::TimedOut,
        outcome::OPEN => WaitOutcome::Open,
        _ => WaitOutcome::Failed,
    }
}

/// An open wait.
#[derive(Clone, Copy, Debug)]
struct OpenWait {
    object: ObjectIndex,
    of: Option<Object>,
    site: SiteIndex,
    start: u64,
    /// The holder that the thread found, and the place of its acquisition.
    found: Option<(ThreadIndex, SiteIndex)>,
}

/// The known state of an object while events arrive.
#[derive(Debug, Default)]
struct State {
    waiting: u32,
    /// The begin of open holds, as seen by other threads.
    boundary: u64,
    /// The last release.
    released: u64,
    /// Wakes since the oldest open wait began, by time, and how many threads each may still wake.
    wakes: Vec<(Waker, WakeKind)>,
    /// Releases without a known waiting thread: threads that were woken from a condition record that they waited when they have the lock.
    unawaited: Vec<Hold>,
}

impl State {
    /// The wake that ended a wait of a thread. It ends no other wait, unless it was for all threads.
    fn take_wake(&mut self, kind: u32, thread: ThreadIndex, (start, end): (u64, u64)) -> Option<Waker> {
        // The last thread to arrive at a barrier wakes itself, too.
        let may_wake_itself = kind == kind::THREAD_BARRIER;
        let first = self.wakes.partition_point(|(wake, _)| wake.at < start);
        let mut since = self.wakes.get_mut(first..)?.iter_mut();
        let fits = |(wake, kind): &&mut (Waker, WakeKind)| {
            wake.at <= end && *kind != WakeKind::Used && (wake.thread != thread || may_wake_itself)
        };
        let found = match kind {
            kind::PIPE_ROOM | kind::SOCKET_PAIR_ROOM => since.rfind(fits),
            _ => since.find(fits),
        };
        let waker = found.map(|(wake, kind)| {
            if *kind == WakeKind::One {
                *kind = WakeKind::Used;
            }
            *wake
        });
        let used = self.wakes.iter().take_while(|(_, kind)| *kind == WakeKind::Used).count();
        self.wakes.drain(..used);
        waker
    }
}

/// Wakes and unawaited releases of an object that are kept, at most: those of waits that are recorded when they are over may belong to
/// none.
const MAX_WAKES: usize = 1 << 16;

/// Whether waits for an object may be recorded after the wakes that ended them.
fn ends_late(object: Option<Object>) -> bool {
    object.is_some_and(|of| kind::is_blocking(of.kind) || of.kind == kind::SEMAPHORE)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakeKind {
    One,
    All,
    Used,
}

/// Builds the waits from events, in the order of time over all threads of a process.
#[derive(Debug, Default)]
pub(crate) struct ThreadWaitsBuilder {
    waits: ThreadWaits,
    open: FxHashMap<ThreadIndex, OpenWait>,
    objects: FxHashMap<ObjectIndex, State>,
    /// The end of each thread's last wait.
    ended: FxHashMap<ThreadIndex, u64>,
    /// Threads by process and thread pointer, and by process and handle with their routine.
    by_pointer: FxHashMap<(ProcessIndex, u64), ThreadIndex>,
    by_handle: FxHashMap<(ProcessIndex, u64), (ThreadIndex, SiteIndex)>,
    /// Threads by process and id, once there are known waits.
    by_id: FxHashMap<(ProcessIndex, u32), ThreadIndex>,
}

impl ThreadWaitsBuilder {
    /// The thread of a process with an id, by which known waits name it. `threads` has all threads with their processes and ids.
    pub fn thread_by_id(
        &mut self,
        process: ProcessIndex,
        id: u32,
        threads: impl Iterator<Item = (ThreadIndex, ProcessIndex, i64)>,
    ) -> Option<ThreadIndex> {
        if self.by_id.is_empty() {
            self.by_id.extend(
                threads
                    .filter_map(|(thread, process, id)| Some(((process, u32::try_from(id).ok()?), thread))),
            );
        }
        self.by_id.get(&(process, id)).copied()
    }

    /// Takes a change of a thread. `object_of` returns an object's row.
    pub fn change(
        &mut self,
        thread: ThreadIndex,
        process: ProcessIndex,
        at: u64,
        change: ThreadWaitChange,
        object_of: impl Fn(ObjectIndex) -> Option<Object>,
    ) {
        match change {
            ThreadWaitChange::Begins { object, site } => {
                self.ends(thread, at, WaitOutcome::Failed);
                let state = self.objects.entry(object).or_default();
                let of = object_of(object);
                if state.waiting == 0 {
                    (state.boundary, state.released) = (at, 0);
                    state.unawaited.clear();
                    if !ends_late(of) {
                        state.wakes.clear();
                    }
                }
                state.waiting += 1;
                self.open.insert(thread, OpenWait { object, of, site, start: at, found: None });
            }
            ThreadWaitChange::FoundHeld { holder, site } => {
                let found = self.by_pointer.get(&(process, holder)).map(|holder| (*holder, site));
                if let Some(wait) = self.open.get_mut(&thread) {
                    wait.found = found.filter(|(holder, _)| *holder != thread);
                }
            }
            ThreadWaitChange::Ends { outcome } => self.ends(thread, at, outcome_of(outcome)),
            ThreadWaitChange::Waited { object, begun, ended, site, outcome, waker_site, waker, woken } => {
                if let Some(open) = self.open.get(&thread) {
                    let is_of = |of: Option<Object>, kind: u32| of.is_some_and(|of| of.kind == kind);
                    let is_for_mutex =
                        is_of(open.of, kind::CONDITION) && is_of(object_of(object), kind::MUTEX);
                    // Calls of a signal handler within a wait are a part of it.
                    if !is_for_mutex {
                        return;
                    }
                    let woken = at.saturating_sub(begun);
                    self.ends_at(thread, (woken, at), WaitOutcome::Done);
                    if let Some(state) = self.objects.get_mut(&object) {
                        for hold in std::mem::take(&mut state.unawaited) {
                            if hold.end > woken {
                                let start = state.boundary.max(woken).min(hold.end);
                                state.boundary = hold.end;
                                self.waits.holds.push(Hold { start, ..hold });
                            }
                        }
                    }
                }
                let before = self.ended.get(&thread).copied().unwrap_or(0);
                let (start, end) = (at.saturating_sub(begun).max(before), at.saturating_sub(ended));
                let is_of_others = waker == wait::OTHER_PROCESS;
                let waker = self.by_pointer.get(&(process, waker)).filter(|waker| **waker != thread);
                let woken = at.saturating_sub(woken);
                let waker = waker.map(|waker| Waker { thread: *waker, site: waker_site, at: woken });
                let outcome = outcome_of(outcome);
                if start < end {
                    let kind = object_of(object).map_or(0, |of| of.kind);
                    let state = self.objects.get_mut(&object).filter(|_| outcome == WaitOutcome::Done);
                    let found = state.and_then(|state| state.take_wake(kind, thread, (start, end)));
                    let waker = waker.or(found);
                    let is_of_others = is_of_others && waker.is_none();
                    self.waits.waits.push(ThreadWait {
                        thread,
                        object,
                        site,
                        start,
                        end,
                        outcome,
                        waker,
                        is_of_others,
                    });
                    self.ended.insert(thread, end);
                }
            }
            ThreadWaitChange::HandsOver { object, site } => {
                let state = self.objects.entry(object).or_default();
                let is_awaited = state.waiting > 0;
                let start = if is_awaited { std::mem::replace(&mut state.boundary, at).min(at) } else { at };
                let hold = Hold { object, thread, site, task: TaskIndex::NONE, start, end: at };
                if !is_awaited {
                    if state.unawaited.len() >= MAX_WAKES {
                        state.unawaited.drain(..MAX_WAKES / 2);
                    }
                    return state.unawaited.push(hold);
                }
                state.released = at;
                self.waits.holds.push(hold);
            }
            ThreadWaitChange::Wakes { object, site, all } => {
                let state = self.objects.entry(object).or_default();
                if state.waiting == 0 && !ends_late(object_of(object)) {
                    return;
                }
                if state.wakes.len() >= MAX_WAKES {
                    state.wakes.drain(..MAX_WAKES / 2);
                }
                let kind = if all { WakeKind::All } else { WakeKind::One };
                state.wakes.push((Waker { thread, site, at }, kind));
            }
            ThreadWaitChange::KnownWait {
                object,
                site,
                start,
                end,
                outcome,
                waker,
                waker_site,
                woken,
                ..
            } => {
                let by = self.by_id.get(&(process, waker)).copied();
                self.waits.waits.push(ThreadWait {
                    thread,
                    object,
                    site,
                    start,
                    end: end.max(start),
                    outcome: outcome_of(u32::from(outcome)),
                    waker: by.map(|thread| Waker { thread, site: waker_site, at: woken }),
                    is_of_others: waker == KNOWN_OTHER_PROCESS,
                });
            }
            ThreadWaitChange::KnownHold { object, holder, site, start, end, .. } => {
                if let Some(thread) = self.by_id.get(&(process, holder)).copied() {
                    let hold =
                        Hold { object, thread, site, task: TaskIndex::NONE, start, end: end.max(start) };
                    self.waits.holds.push(hold);
                }
            }
            ThreadWaitChange::KnownThread { end, works } => {
                self.waits.lives.insert(thread, (end, works));
            }
            ThreadWaitChange::Starts { handle, pointer, site } => {
                self.by_pointer.insert((process, pointer), thread);
                self.by_handle.insert((process, handle), (thread, site));
            }
        }
    }

    fn ends(&mut self, thread: ThreadIndex, at: u64, outcome: WaitOutcome) {
        self.ends_at(thread, (at, at), outcome);
    }

    /// A wait ends at the first time, or at its wake if that is later; it is `at` now.
    fn ends_at(&mut self, thread: ThreadIndex, (end, at): (u64, u64), outcome: WaitOutcome) {
        let Some(OpenWait { object, of, site, start, found }) = self.open.remove(&thread) else { return };
        let mut waker = None;
        if let Some(state) = self.objects.get_mut(&object) {
            state.waiting = state.waiting.saturating_sub(1);
            if let Some((holder, taken_at)) = found.filter(|_| state.released < start) {
                let begin = state.boundary.max(start).min(at);
                (state.boundary, state.released) = (at, at);
                self.waits.holds.push(Hold {
                    object,
                    thread: holder,
                    site: taken_at,
                    task: TaskIndex::NONE,
                    start: begin,
                    end: at,
                });
            }
            // A wait that ends by itself does not consume a wake.
            if outcome == WaitOutcome::Done {
                waker = state.take_wake(of.map_or(0, |of| of.kind), thread, (start, at));
            }
        }
        // A thread that is joined may start after the wait for it.
        if let Some(of) = of.filter(|of| of.kind == kind::JOIN && outcome == WaitOutcome::Done)
            && let Some((joined, routine)) = self.by_handle.get(&(of.process, of.id))
        {
            waker = Some(Waker { thread: *joined, site: *routine, at });
        }
        let is_of_others = false;
        // The clocks of two threads differ a little.
        let end = waker.map_or(end, |waker| end.max(waker.at)).max(start);
        self.waits.waits.push(ThreadWait { thread, object, site, start, end, outcome, waker, is_of_others });
        self.ended.insert(thread, end);
    }

    /// The waits, when all events have come; open ones last to the end of their threads, or to `last` of those that did not end.
    /// `ended` is when a thread ended, if it did.
    pub fn finish(
        mut self,
        last: impl Fn(ThreadIndex) -> u64,
        ended: impl Fn(ThreadIndex) -> Option<u64>,
    ) -> ThreadWaits {
        let mut open: Vec<ThreadIndex> = self.open.keys().copied().collect();
        open.sort_unstable();
        for thread in open {
            let start = self.open.get(&thread).map_or(0, |wait| wait.start);
            // Threads of an idle pool are ended with the process, or cancelled before.
            let end = ended(thread).unwrap_or_else(|| last(thread));
            self.ends(thread, end.max(start), WaitOutcome::Open);
        }
        // The C library and the recorder do something after that.
        for waker in self.waits.waits.iter_mut().filter_map(|wait| wait.waker.as_mut()) {
            waker.at = ended(waker.thread).map_or(waker.at, |ended| waker.at.min(ended));
        }
        self.waits.waits.sort_by_key(|wait| (wait.thread, wait.start, wait.end));
        self.waits.holds.sort_by_key(|hold| (hold.object, hold.start, hold.end));
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: ObjectIndex = ObjectIndex(0);
    const CONDITION: ObjectIndex = ObjectIndex(1);
    const CHILD: ObjectIndex = ObjectIndex(2);
    const DATA: ObjectIndex = ObjectIndex(3);
    const ROOM: ObjectIndex = ObjectIndex(4);

    fn play(changes: &[(u32, u64, ThreadWaitChange)]) -> ThreadWaits {
        let mut builder = ThreadWaitsBuilder::default();
        for (thread, at, change) in changes {
            builder.change(ThreadIndex(*thread), ProcessIndex(0), *at, *change, |object| {
                let kind = match object {
                    CHILD => kind::JOIN,
                    DATA => kind::PIPE,
                    ROOM => kind::PIPE_ROOM,
                    _ => kind::MUTEX,
                };
                Some(Object { process: ProcessIndex(0), id: 77, kind })
            });
        }
        builder.finish(|_| 1000, |thread| (thread == ThreadIndex(3)).then_some(450))
    }

    fn begins(object: ObjectIndex) -> ThreadWaitChange {
        ThreadWaitChange::Begins { object, site: SiteIndex(9) }
    }

    fn ends() -> ThreadWaitChange {
        ThreadWaitChange::Ends { outcome: outcome::DONE }
    }

    fn hands_over(site: u32) -> ThreadWaitChange {
        ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(site) }
    }

    fn wakes(site: u32, all: bool) -> ThreadWaitChange {
        ThreadWaitChange::Wakes { object: CONDITION, site: SiteIndex(site), all }
    }

    fn starts(pointer: u64) -> ThreadWaitChange {
        ThreadWaitChange::Starts { handle: 77, pointer, site: SiteIndex(5) }
    }

    fn holds(waits: &ThreadWaits) -> Vec<(u32, u64, u64)> {
        waits.holds.iter().map(|hold| (hold.site.0, hold.start, hold.end)).collect()
    }

    fn wakers(waits: &ThreadWaits) -> Vec<Option<(u32, u64)>> {
        waits.waits.iter().map(|wait| wait.waker.map(|waker| (waker.thread.0, waker.at))).collect()
    }

    #[test]
    fn holds_begin_at_the_release_before_or_the_first_wait() {
        let waits = play(&[
            (1, 100, begins(LOCK)),
            (2, 150, begins(LOCK)),
            (0, 200, hands_over(1)),
            (1, 210, ends()),
            (1, 300, hands_over(2)),
            (2, 310, ends()),
            (2, 400, hands_over(3)),
        ]);
        assert_eq!(holds(&waits), [(1, 100, 200), (2, 200, 300)]);
    }

    #[test]
    fn without_a_release_the_holder_that_was_found_is_to_blame() {
        let found = ThreadWaitChange::FoundHeld { holder: 0xab, site: SiteIndex(4) };
        let timed_out = ThreadWaitChange::Ends { outcome: outcome::TIMED_OUT };
        let waits =
            play(&[(0, 10, starts(0xab)), (1, 100, begins(LOCK)), (1, 100, found), (1, 160, timed_out)]);
        assert_eq!(holds(&waits), [(4, 100, 160)]);
        assert_eq!(waits.waits[0].outcome, WaitOutcome::TimedOut);
    }

    #[test]
    fn each_signal_wakes_one_thread_and_a_broadcast_all() {
        let waits = play(&[
            (1, 100, begins(CONDITION)),
            (2, 110, begins(CONDITION)),
            (0, 200, wakes(1, false)),
            (3, 210, wakes(2, false)),
            (2, 220, ends()),
            (1, 230, ends()),
            (1, 300, begins(CONDITION)),
            (2, 310, begins(CONDITION)),
            (0, 400, wakes(1, true)),
            (1, 410, ends()),
            (2, 420, ends()),
        ]);
        assert_eq!(wakers(&waits), [Some((3, 210)), Some((0, 400)), Some((0, 200)), Some((0, 400))]);
    }

    #[test]
    fn a_wake_before_a_wait_does_not_end_it() {
        let waits = play(&[
            (1, 100, begins(CONDITION)),
            (0, 150, wakes(1, false)),
            (2, 200, begins(CONDITION)),
            (2, 300, ends()),
            (1, 310, ends()),
        ]);
        assert_eq!(wakers(&waits), [Some((0, 150)), None]);
    }

    #[test]
    fn a_wait_that_is_recorded_at_its_end_begins_after_the_wait_before_it() {
        let waited = |begun, waker| ThreadWaitChange::Waited {
            object: CONDITION,
            begun,
            ended: 5,
            site: SiteIndex(9),
            outcome: outcome::DONE,
            waker_site: SiteIndex(3),
            waker,
            woken: 20,
        };
        let waits = play(&[
            (0, 10, starts(0xab)),
            (1, 100, begins(LOCK)),
            (1, 120, waited(10, 0xab)),
            (1, 150, ends()),
            (1, 205, waited(65, 0xab)),
            (1, 265, waited(65, 0)),
        ]);
        let rows: Vec<_> = waits.waits.iter().map(|wait| (wait.start, wait.end)).collect();
        assert_eq!(rows, [(100, 150), (150, 200), (200, 260)]);
        assert_eq!(wakers(&waits), [None, Some((0, 185)), None]);
    }

    #[test]
    fn wakes_before_the_record_of_a_wait_end_it_in_order_and_room_is_made_by_the_last() {
        let pipe = |object: u32, begun, waker| ThreadWaitChange::Waited {
            object: ObjectIndex(object),
            begun,
            ended: 1,
            site: SiteIndex(9),
            outcome: outcome::DONE,
            waker_site: SiteIndex(0),
            waker,
            woken: 1,
        };
        let writes = |object: u32, site| ThreadWaitChange::Wakes {
            object: ObjectIndex(object),
            site: SiteIndex(site),
            all: false,
        };
        let (data, room) = (DATA.0, ROOM.0);
        let waits = play(&[
            (0, 90, writes(data, 1)),
            (0, 120, writes(data, 2)),
            (3, 125, writes(data, 3)),
            (1, 131, pipe(data, 31, 0)),
            (2, 141, pipe(data, 31, 0)),
            (0, 210, writes(room, 4)),
            (3, 220, writes(room, 5)),
            (1, 231, pipe(room, 31, wait::OTHER_PROCESS)),
            (1, 331, pipe(room, 31, wait::OTHER_PROCESS)),
        ]);
        assert_eq!(wakers(&waits), [Some((0, 120)), Some((3, 220)), None, Some((3, 125))]);
        let are_of_others: Vec<_> = waits.waits.iter().map(|wait| wait.is_of_others).collect();
        assert_eq!(are_of_others, [false, false, true, false]);
    }

    /// All are woken at 200. The first one has the mutex until 300, the second one until 400; at 420 the third one has it.
    #[test]
    fn threads_that_are_woken_at_once_wait_for_the_mutex_of_each_other() {
        const MUTEX: ObjectIndex = LOCK;
        const OF: ObjectIndex = ObjectIndex(5);
        let mut builder = ThreadWaitsBuilder::default();
        let waited = |begun| ThreadWaitChange::Waited {
            object: MUTEX,
            begun,
            ended: 0,
            site: SiteIndex(9),
            outcome: outcome::DONE,
            waker_site: SiteIndex(0),
            waker: 0,
            woken: 0,
        };
        let changes = [
            (1, 100, begins(OF)),
            (2, 110, begins(OF)),
            (3, 120, begins(OF)),
            // Before the wake: no part of these waits.
            (0, 150, hands_over(1)),
            (0, 200, ThreadWaitChange::Wakes { object: OF, site: SiteIndex(2), all: true }),
            (1, 210, ends()),
            (1, 300, hands_over(3)),
            (2, 310, waited(111)),
            (2, 310, ends()),
            (2, 400, hands_over(4)),
            (3, 420, waited(221)),
            (3, 420, ends()),
        ];
        for (thread, at, change) in changes {
            builder.change(ThreadIndex(thread), ProcessIndex(0), at, change, |object| {
                let kind = if object == OF { kind::CONDITION } else { kind::MUTEX };
                Some(Object { process: ProcessIndex(0), id: 77, kind })
            });
        }
        let waits = builder.finish(|_| 1000, |_| None);
        let rows: Vec<_> =
            waits.waits.iter().map(|wait| (wait.thread.0, wait.object, wait.start, wait.end)).collect();
        assert_eq!(
            rows,
            [
                (1, OF, 100, 210),
                (2, OF, 110, 200),
                (2, MUTEX, 200, 310),
                (3, OF, 120, 200),
                (3, MUTEX, 200, 420)
            ]
        );
        let wakers = [Some((0, 200)), Some((0, 200)), None, Some((0, 200)), None];
        assert_eq!(self::wakers(&waits), wakers);
        let ends = |from, until| -> Vec<_> {
            waits.holds_of(MUTEX, from, until).iter().map(|hold| (hold.thread.0, hold.end)).collect()
        };
        assert_eq!(ends(200, 310), [(1, 300)]);
        assert_eq!(ends(200, 420), [(1, 300), (2, 400)]);
    }

    #[test]
    fn a_join_is_ended_by_the_end_of_the_joined_thread() {
        let waits = play(&[(1, 100, begins(CHILD)), (3, 110, starts(0xcd)), (1, 500, ends())]);
        assert_eq!(wakers(&waits), [Some((3, 450))]);
    }

    #[test]
    fn a_wait_that_is_not_over_lasts_to_the_end_and_one_without_end_to_the_next() {
        let waits = play(&[(1, 100, begins(LOCK)), (1, 300, begins(CONDITION))]);
        let rows: Vec<_> = waits.waits.iter().map(|wait| (wait.start, wait.end, wait.outcome)).collect();
        assert_eq!(rows, [(100, 300, WaitOutcome::Failed), (300, 1000, WaitOutcome::Open)]);
        // A thread that was cancelled in it waits no longer.
        let waits = play(&[(3, 100, begins(LOCK))]);
        assert_eq!((waits.waits[0].end, waits.waits[0].outcome), (450, WaitOutcome::Open));
    }
}
