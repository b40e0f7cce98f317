//! Sums up the waits of threads, in the order of time over all threads, while the program runs.
//!
//! ```text
//!   events ─▶ open waits, holds, wakes ─▶ a wait ends: its parts ┬▶ rows (object, call, charged code)
//!                                              ▲                 │
//!                 history of the thread waited for ◀─────────────┘ history of the waiting thread
//! ```
//! The rules are those of traces (`taskscope_execution::thread_waits`, `taskscope_analysis::wait_chains`). A chain is followed
//! through the history of the thread waited for, whose own waits are charged to the end of their chains by then.
//!
//! **Bounds.** Objects, ended threads, holds, wakes and rows are limited in number. Waits beyond them are kept, without a charge.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use taskscope_event::models::wait::{kind, outcome};
use taskscope_profile::{WaitEnd, WaitMeaning};
use taskscope_record::thread_sums::ThreadSums;

use super::cpus::Cpus;
use super::history::{Blame, History, Part, Tie};
use super::ring::{RecordedCall, WaitEvent};
use super::rows::Rows;
use super::sweep::{CpuSums, Doing};

/// Objects whose state is kept at a time.
const MAX_OBJECTS: usize = 8192;
/// Holds, and wakes, of an object.
const MAX_HOLDS: usize = 256;
const MAX_WAKES: usize = 4096;
/// Threads that have ended, whose history is kept for those that join them later, or wait for locks that they hold.
const MAX_ENDED: usize = 256;
/// Stops of the process, the newest: of longer waits, only these are known.
const MAX_STOPS: usize = 4096;

/// A kind and an identity.
type ObjectKey = (u32, u64);

/// An open wait.
#[derive(Clone, Copy)]
struct Open {
    of: ObjectKey,
    call: RecordedCall,
    start: u64,
    /// The holder that the thread found, and the place of its acquisition.
    found: Option<(u32, RecordedCall)>,
}

/// A wait that is over, or open at the end.
struct Wait {
    thread: u32,
    of: ObjectKey,
    call: RecordedCall,
    time: (u64, u64),
    result: Outcome,
    waker: Option<Waker>,
    is_of_others: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    TimedOut,
    Failed,
    Open,
}

impl Outcome {
    fn of(number: u32) -> Outcome {
        match number {
            outcome::DONE => Outcome::Done,
            outcome::TIMED_OUT => Outcome::TimedOut,
            outcome::OPEN => Outcome::Open,
            _ => Outcome::Failed,
        }
    }
}

#[derive(Clone, Copy)]
struct Waker {
    thread: u32,
    call: RecordedCall,
    at: u64,
}

/// A hold of a lock that ended while others waited. It began, as others see it, at the release before or at the first wait.
#[derive(Clone, Copy)]
struct Hold {
    thread: u32,
    call: RecordedCall,
    end: u64,
}

struct Wake {
    by: Waker,
    /// Threads that it may still wake; `u32::MAX` are all.
    left: u32,
}

/// The state of an object.
#[derive(Default)]
struct Object {
    waiting: u32,
    /// The last release, or the end of a wait without one.
    released: u64,
    holds: VecDeque<Hold>,
    wakes: VecDeque<Wake>,
}

/// A thread.
#[derive(Default)]
struct Thread {
    open: Option<Open>,
    history: History,
    routine: RecordedCall,
    handle: u64,
    pointer: u64,
    /// The end of its last wait, and the times of that wait if it was for a wake.
    waited_until: u64,
    last_wait: Option<(u64, u64)>,
    began: u64,
    ended: Option<u64>,
}

/// The sums so far.
#[derive(Default)]
pub struct Fold {
    threads: FxHashMap<u32, Thread>,
    /// Threads that have ended, the oldest first.
    ended: VecDeque<u32>,
    by_pointer: FxHashMap<u64, u32>,
    by_handle: FxHashMap<u64, u32>,
    objects: FxHashMap<ObjectKey, Object>,
    rows: Rows,
    /// The use of CPUs.
    pub cpus: Cpus,
    /// Life of the threads that have ended.
    ended_ns: u64,
    scratch: Vec<Part>,
    /// Begin and end of the stops of the process, by time.
    stops: VecDeque<(u64, u64)>,
}

/// Whether waits for an object may be recorded after the wakes that ended them.
fn ends_late(kind: u32) -> bool {
    kind::is_blocking(kind) || kind == kind::SEMAPHORE
}

impl Fold {
    /// Takes an event of a thread.
    pub fn take(&mut self, thread: u32, at: u64, event: WaitEvent) {
        match event {
            WaitEvent::Begins { kind, object, call, found } => {
                self.begins(thread, at, (kind, object), call, found)
            }
            WaitEvent::Ends { outcome } => self.ends(thread, at, Outcome::of(outcome)),
            WaitEvent::HandsOver { kind, object, call } => {
                self.threads.entry(thread).or_default().met(call);
                // Threads that were woken from a condition record that they waited when they have the lock.
                if let Some(object) = self.object((kind, object)) {
                    object.add(Hold { thread, call, end: at });
                }
            }
            WaitEvent::Wakes { kind, object, call, threads } => {
                self.wakes(thread, at, (kind, object), call, threads)
            }
            WaitEvent::Waited { kind, outcome, is_of_others, object, call, time } => {
                self.ends_for_mutex(thread, kind, time);
                self.waited(thread, (kind, object), call, Outcome::of(outcome), is_of_others, time);
            }
            WaitEvent::Starts { handle, pointer, routine } => {
                let own = self.threads.entry(thread).or_default();
                (own.handle, own.pointer, own.routine, own.began) = (handle, pointer, routine, at);
                self.by_handle.insert(handle, thread);
                self.by_pointer.insert(pointer, thread);
            }
        }
    }

    /// The process was stopped from then until then, after the stops before.
    pub fn was_stopped(&mut self, stop: (u64, u64)) {
        if self.stops.len() >= MAX_STOPS {
            self.stops.pop_front();
        }
        self.stops.push_back(stop);
        self.cpus.was_stopped(stop);
    }

    fn object(&mut self, of: ObjectKey) -> Option<&mut Object> {
        if self.objects.len() >= MAX_OBJECTS && !self.objects.contains_key(&of) {
            self.objects.retain(|_, object| object.waiting > 0);
            if self.objects.len() >= MAX_OBJECTS {
                return None;
            }
        }
        Some(self.objects.entry(of).or_default())
    }

    fn begins(&mut self, thread: u32, at: u64, of: ObjectKey, call: RecordedCall, found: (u64, u64)) {
        self.ends(thread, at, Outcome::Failed);
        if let Some(object) = self.object(of) {
            if object.waiting == 0 {
                object.released = 0;
                object.holds.clear();
                if !ends_late(of.0) {
                    object.wakes.clear();
                }
            }
            object.waiting += 1;
        }
        let found = self
            .by_pointer
            .get(&found.0)
            .filter(|holder| **holder != thread)
            .map(|holder| (*holder, RecordedCall { site: found.1, path: 0, context: 0 }));
        let own = self.threads.entry(thread).or_default();
        own.open = Some(Open { of, call, start: at, found });
        own.met(call);
    }

    fn wakes(&mut self, thread: u32, at: u64, of: ObjectKey, call: RecordedCall, threads: u32) {
        let late = ends_late(of.0);
        let Some(object) = self.object(of).filter(|object| object.waiting > 0 || late) else { return };
        if object.wakes.len() >= MAX_WAKES {
            object.wakes.drain(..MAX_WAKES / 2);
        }
        object.wakes.push_back(Wake { by: Waker { thread, call, at }, left: threads });
        self.threads.entry(thread).or_default().met(call);
    }

    /// A wait for a mutex within one for a condition is the end of that: it began with the wake.
    fn ends_for_mutex(&mut self, thread: u32, of: u32, time: (u64, u64)) {
        let open = self.threads.get(&thread).and_then(|own| own.open);
        if of == kind::MUTEX && open.is_some_and(|open| open.of.0 == kind::CONDITION) {
            self.ends_at(thread, time, Outcome::Done);
        }
    }

    fn ends(&mut self, thread: u32, at: u64, result: Outcome) {
        self.ends_at(thread, (at, at), result);
    }

    /// A wait ends at the first time, or at its wake if that is later; it is `at` now.
    fn ends_at(&mut self, thread: u32, (end, at): (u64, u64), result: Outcome) {
        let Some(open) = self.threads.get_mut(&thread).and_then(|own| own.open.take()) else { return };
        let at = at.max(open.start);
        let mut waker = None;
        if let Some(object) = self.objects.get_mut(&open.of) {
            object.waiting = object.waiting.saturating_sub(1);
            if let Some(hold) = object.found_hold(&open, at) {
                object.add(hold);
            }
            // A wait that ends by itself does not consume a wake.
            if result == Outcome::Done {
                waker = object.take_wake(open.of.0, thread, (open.start, at));
            }
        }
        if open.of.0 == kind::JOIN && result == Outcome::Done {
            waker = self.joined(open.of.1, at);
        }
        // The clocks of two threads differ a little.
        let end = if end < at { waker.map_or(end, |waker| end.max(waker.at)).max(open.start) } else { at };
        let time = (open.start, end);
        self.settle(&Wait { thread, of: open.of, call: open.call, time, result, waker, is_of_others: false });
    }

    fn joined(&self, handle: u64, at: u64) -> Option<Waker> {
        let thread = *self.by_handle.get(&handle)?;
        let own = self.threads.get(&thread)?;
        Some(Waker { thread, call: own.routine, at: own.ended.map_or(at, |ended| ended.min(at)) })
    }

    fn waited(
        &mut self,
        thread: u32,
        of: ObjectKey,
        call: RecordedCall,
        result: Outcome,
        is_of_others: bool,
        (begun, ended): (u64, u64),
    ) {
        let own = self.threads.entry(thread).or_default();
        // Calls of a signal handler within a wait are a part of it.
        if own.open.is_some() {
            return;
        }
        own.met(call);
        let begun = begun.max(own.waited_until);
        if begun >= ended {
            return;
        }
        let object = self.objects.get_mut(&of).filter(|_| result == Outcome::Done);
        let waker = object.and_then(|object| object.take_wake(of.0, thread, (begun, ended)));
        let is_of_others = is_of_others && waker.is_none();
        self.settle(&Wait { thread, of, call, time: (begun, ended), result, waker, is_of_others });
    }

    /// Charges a wait that is over.
    fn settle(&mut self, wait: &Wait) {
        let mut parts = core::mem::take(&mut self.scratch);
        parts.clear();
        let holds = self.objects.get(&wait.of).map(|object| object.holds_during(wait)).unwrap_or_default();
        self.parts(wait, &holds, &mut parts);
        let cpus = &mut self.cpus;
        let has_work = wait.of.0 != kind::SLEEP || cpus.has_work(wait.thread);
        self.rows.add(wait.of, wait.call, wait.thread, &parts, |part, number| {
            cpus.add(wait.thread, (part.from, part.until), doing(wait.of.0, &part.blame, number, has_work));
        });
        if let Some(own) = self.threads.get_mut(&wait.thread) {
            parts.iter().for_each(|part| own.history.push(*part));
            own.waited_until = wait.time.1;
            let is_lock = kind::has_holder(wait.of.0) || wait.of.0 == kind::THREAD_BARRIER;
            own.last_wait = (!is_lock).then_some(wait.time);
        }
        self.scratch = parts;
    }

    /// The parts of a wait, which sum to it.
    fn parts(&self, wait: &Wait, holds: &[Hold], to: &mut Vec<Part>) {
        let ((from, until), of) = (wait.time, wait.of.0);
        let mut end = |blame: Blame, from: u64, until: u64| {
            // A thread that ran, or was about to, had no CPU in a stop. Sleep and requests do not end earlier without it.
            let may_run = matches!(blame.end, WaitEnd::Ran | WaitEnd::Handover);
            let first = self.stops.partition_point(|stop| stop.1 <= from);
            let stops = self.stops.range(first..).take_while(|stop| may_run && stop.0 < until);
            let mut at = from;
            let mut push = |from: u64, until: u64, blame: Blame| {
                if until > from {
                    to.push(Part { from, until, blame });
                }
            };
            for (begin, end) in stops {
                let (begin, end) = ((*begin).max(at), (*end).min(until));
                push(at, begin, blame);
                push(begin, end, Blame { end: WaitEnd::NoCpu, ..blame });
                at = at.max(end);
            }
            push(at, until, blame);
        };
        if kind::has_holder(of) {
            let mut at = from;
            for hold in holds {
                let release = hold.end.clamp(at, until);
                self.follow(hold.thread, Tie::Holds(hold.call), at, release, &mut end);
                at = release;
            }
            let rest = match wait.result {
                _ if !holds.is_empty() => WaitEnd::Handover,
                Outcome::TimedOut => WaitEnd::TimedOut,
                Outcome::Open => WaitEnd::Open,
                _ => WaitEnd::NotKnown,
            };
            return end(Blame::of(rest), at, until);
        }
        // A thread of the process may have ended such a wait.
        let may_be_own =
            matches!(of, kind::PIPE | kind::EVENT | kind::PIPE_ROOM..=kind::FILE_LOCK) && !wait.is_of_others;
        let is_open = (may_be_own || of == kind::SLEEP) && wait.result == Outcome::Open;
        let rest = match (wait.waker, wait.result) {
            (Some(waker), _) if waker.thread == wait.thread => WaitEnd::Handover,
            (Some(waker), _) => {
                let tie = if of == kind::JOIN { Tie::IsJoined(waker.call) } else { Tie::Wakes(waker.call) };
                let woken = waker.at.clamp(from, until);
                self.follow(waker.thread, tie, from, woken, &mut end);
                return end(Blame::of(WaitEnd::Handover), woken, until);
            }
            (None, result) if kind::is_blocking(of) && !is_open => {
                let root = match of {
                    kind::SLEEP => WaitEnd::Slept,
                    _ if wait.is_of_others => WaitEnd::Outside,
                    _ if may_be_own => WaitEnd::NotKnown,
                    _ if result == Outcome::TimedOut => WaitEnd::TimedOut,
                    _ => WaitEnd::Outside,
                };
                return end(Blame { blocked: Some((of, wait.call)), ..Blame::of(root) }, from, until);
            }
            (None, Outcome::TimedOut) => WaitEnd::TimedOut,
            (None, Outcome::Open) => WaitEnd::Open,
            (None, _) => WaitEnd::NotKnown,
        };
        end(Blame::of(rest), from, until);
    }

    /// The activity of a thread during a wait of another one for it.
    fn follow(&self, thread: u32, tie: Tie, from: u64, until: u64, end: &mut impl FnMut(Blame, u64, u64)) {
        if from >= until {
            return;
        }
        let Some(own) = self.threads.get(&thread) else {
            return end(Blame { end: WaitEnd::NotKnown, ..Blame::ran(tie) }, from, until);
        };
        // Its own wait is not over: each waits for the other, as far as is known.
        let cut = own.open.map_or(until, |open| open.start.clamp(from, until));
        own.history.over(from, cut, |from, until, blame| {
            end(blame.map_or(Blame::ran(tie), |blame| blame.seen_through(tie)), from, until);
        });
        end(Blame { end: WaitEnd::NotKnown, ..Blame::ran(tie) }, cut, until);
    }

    /// A thread has ended, with the kernel's sums of it.
    pub fn end_thread(&mut self, thread: u32, at: u64, sums: Option<ThreadSums>) {
        self.ends(thread, at, Outcome::Open);
        let Some(own) = self.threads.get_mut(&thread) else { return };
        own.ended = Some(at);
        self.cpus.end_thread(thread, at, sums, own.last_wait);
        self.ended_ns = self.ended_ns.saturating_add(at.saturating_sub(own.began));
        self.ended.push_back(thread);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
            && let Some(own) = self.threads.remove(&oldest)
        {
            for (by, key) in [(&mut self.by_handle, own.handle), (&mut self.by_pointer, own.pointer)] {
                if by.get(&key) == Some(&oldest) {
                    by.remove(&key);
                }
            }
        }
    }

    /// Ends a round of the use of CPUs at a time, with the kernel's sums of the living threads, and divides those that can be, as
    /// the events until `known` are.
    pub fn divide_cpus(&mut self, (at, known): (u64, u64), is_last: bool, now: &[(u32, ThreadSums)]) {
        let threads = &self.threads;
        let open_of = |thread: &u32| threads.get(thread).and_then(|own| own.open);
        self.cpus.read(at, now, |thread| open_of(&thread).is_some());
        let open = self.open_waits();
        let rows = &mut self.rows;
        self.cpus.divide(known, is_last, &open, |number, ns| rows.charge(number, ns));
    }

    /// The open waits: thread, begin, and whether it waits for a thread's end.
    fn open_waits(&self) -> Vec<(u32, u64, bool)> {
        (self.threads.iter())
            .filter(|(_, own)| own.ended.is_none())
            .filter_map(|(thread, own)| own.open.map(|open| (*thread, open.start, open.of.0 == kind::JOIN)))
            .collect()
    }

    /// The rows so far, with the waits that are open at a time, the life of all threads until then, nanoseconds, and the use of
    /// CPUs until the last reading, as if the run ended there.
    pub fn rows_at(&self, at: u64) -> (Rows, u64, CpuSums) {
        let (mut rows, mut lived) = (self.rows.clone(), self.ended_ns);
        let mut cpus = self.cpus.clone();
        cpus.divide(at, true, &self.open_waits(), |number, ns| rows.charge(number, ns));
        let mut parts = Vec::new();
        for (thread, own) in self.threads.iter().filter(|(_, own)| own.ended.is_none()) {
            lived = lived.saturating_add(at.saturating_sub(own.began));
            let Some(open) = own.open.filter(|open| open.start < at) else { continue };
            let time = (open.start, at);
            let (waker, is_of_others, result) = (None, false, Outcome::Open);
            let wait =
                Wait { thread: *thread, of: open.of, call: open.call, time, result, waker, is_of_others };
            let object = self.objects.get(&open.of);
            let mut holds = object.map(|object| object.holds_during(&wait)).unwrap_or_default();
            holds.extend(object.and_then(|object| object.found_hold(&open, at)));
            parts.clear();
            self.parts(&wait, &holds, &mut parts);
            rows.add(wait.of, wait.call, *thread, &parts, |_, _| {});
        }
        (rows, lived, cpus.sums)
    }
}

/// The activity of a waiting thread, as far as CPUs are concerned, in the part of a wait with this number.
fn doing(of: u32, blame: &Blame, number: u32, has_work: bool) -> Doing {
    let holds = blame.first.map(|first| matches!(first, Tie::Holds(_)));
    match WaitMeaning::of(of, blame.end, holds, blame.blocked.map(|(kind, _)| kind)) {
        WaitMeaning::Charged => Doing::Wants(number, blame.end == WaitEnd::Ran),
        WaitMeaning::NoCpu => Doing::Wants(number, false),
        WaitMeaning::Device => Doing::WaitsAlone(number),
        WaitMeaning::Sleeps if has_work => Doing::WaitsAlone(number),
        WaitMeaning::Sleeps => Doing::Sleeps(number),
        WaitMeaning::HandedOver => Doing::IsHandedOver(number),
        WaitMeaning::NotKnown => Doing::NotKnown(number),
        WaitMeaning::Listens => Doing::Listens,
        WaitMeaning::Rests => Doing::Rests,
    }
}

impl Thread {
    /// It has made a call: the first one tells the functions that it runs.
    fn met(&mut self, call: RecordedCall) {
        if self.routine.path == 0 {
            (self.routine.path, self.routine.context) = (call.path, call.context);
        }
    }
}

impl Object {
    fn add(&mut self, hold: Hold) {
        self.released = hold.end;
        if self.holds.len() >= MAX_HOLDS {
            self.holds.drain(..MAX_HOLDS / 2);
        }
        self.holds.push_back(hold);
    }

    /// The hold of the lock's holder that a waiting thread has found, if no release of it has been seen until `at`.
    fn found_hold(&self, open: &Open, at: u64) -> Option<Hold> {
        let (holder, taken_at) = open.found.filter(|_| self.released < open.start)?;
        Some(Hold { thread: holder, call: taken_at, end: at })
    }

    /// The holds of other threads that ended during a wait.
    fn holds_during(&self, wait: &Wait) -> Vec<Hold> {
        let (from, until) = wait.time;
        let all = self.holds.iter().filter(|hold| hold.end > from && hold.end <= until);
        all.filter(|hold| hold.thread != wait.thread).copied().collect()
    }

    /// The wake that ended a wait of a thread. It ends no other wait, unless it was for all threads.
    fn take_wake(&mut self, of: u32, thread: u32, (start, end): (u64, u64)) -> Option<Waker> {
        // The last thread to arrive at a barrier wakes itself, too.
        let may_wake_itself = of == kind::THREAD_BARRIER;
        let fits = |wake: &&mut Wake| {
            let is_other = wake.by.thread != thread || may_wake_itself;
            wake.left > 0 && (start..=end).contains(&wake.by.at) && is_other
        };
        let mut wakes = self.wakes.iter_mut();
        let found = match of {
            kind::PIPE_ROOM | kind::SOCKET_PAIR_ROOM => wakes.rfind(fits),
            _ => wakes.find(fits),
        };
        let waker = found.map(|wake| {
            if wake.left != u32::MAX {
                wake.left -= 1;
            }
            wake.by
        });
        while self.wakes.front().is_some_and(|wake| wake.left == 0) {
            self.wakes.pop_front();
        }
        waker
    }
}

#[cfg(test)]
mod tests;
