//! Waits of threads for each other in a profile (`record --threads --mode profile`).
//!
//! ```text
//!   thread: ring ─┐
//!   thread: ring ─┼─ the profile's own thread ─▶ fold ─▶ rows ─▶ HOST.PID.tsprof
//!   thread: ring ─┘   (in the order of time)
//! ```
//! Threads store events in rings of a fixed size, without a lock. The profile's own thread takes them out a few times a second, and
//! when a ring is half full. It takes those until a moment ago, as a thread may be about to store one. A thread that ends the process takes
//! them all. [`fold`] has the rules, [`cpus`] those of the CPUs, [`ring`] and [`rows`] the bounds: what finds no room is counted, and written with the profile.

mod cpus;
mod fold;
mod history;
mod ring;
mod rows;
mod sweep;

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use taskscope_profile::{NO_MODULE, NodeId, Profile, WaitCall, WaitPart, WaitRow, WaitTie, cpu_sum};
use taskscope_record::clock;
use taskscope_record::thread_sums::ThreadSums;

use super::contexts::{body_of, descend_path, expand};
use super::places::Places;
use fold::Fold;
use history::{Blame, Tie};
pub use ring::{RecordedCall, Ring, WaitEvent};
use rows::PartSum;
use taskscope_event::models::wait::kind;
use taskscope_profile::FrameKind;

/// Time between two rounds.
pub const ROUND: Duration = Duration::from_millis(200);
/// A thread may store an event this long after its time, nanoseconds.
const GUARD_NS: u64 = 2_000_000;
/// A thread may store an announced wake this long after its time, nanoseconds: it may have no CPU after the call that wakes.
const MAX_WAKE_NS: u64 = 1_000_000_000;

/// The waits of a process's threads.
#[derive(Default)]
pub struct ThreadWaits {
    rings: Mutex<Vec<(u32, Arc<Ring>)>>,
    fold: Mutex<Fold>,
    next: AtomicU32,
    is_used: AtomicBool,
    lost: AtomicU64,
    lost_ns: AtomicU64,
    /// CPUs that the process may use, in thousandths; 0 if their use is not to be known.
    millicpus: AtomicU64,
}

/// A forked child has waits of its own: nobody holds these for ever.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadWaits {
    /// The ring of a thread that begins.
    pub fn new_ring(&self) -> Arc<Ring> {
        let ring = Arc::new(Ring::default());
        let mut rings = lock(&self.rings);
        if !self.is_used() {
            // No round takes those of ended threads out.
            rings.retain(|(_, ring)| ring.ended().is_none());
        }
        rings.push((self.next.fetch_add(1, Relaxed), ring.clone()));
        ring
    }

    /// Waits are recorded from now on.
    pub fn use_rings(&self) {
        self.is_used.store(true, Release);
    }

    /// Whether waits are recorded.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Acquire)
    }

    /// The process may use so many CPUs, in thousandths: the rounds from now on divide their time.
    pub fn set_cpus(&self, millicpus: u64) {
        self.millicpus.store(millicpus, Relaxed);
    }

    /// The process was stopped at these times, after those before.
    pub fn was_stopped(&self, stops: &[[u64; 2]]) {
        if self.is_used() {
            let mut fold = lock(&self.fold);
            stops.iter().for_each(|[begin, end]| fold.was_stopped((*begin, *end)));
        }
    }

    /// Takes the events until a moment ago, or until an announced wake without its event; at time `now`.
    pub fn round(&self, now: u64) {
        self.take_until(self.known_until(now), false);
    }

    /// The time until which all events are stored.
    fn known_until(&self, now: u64) -> u64 {
        let announced = lock(&self.rings).iter().filter_map(|(_, ring)| ring.announced()).min();
        let missing = announced.filter(|at| now.saturating_sub(*at) < MAX_WAKE_NS);
        let until = now.saturating_sub(GUARD_NS);
        missing.map_or(until, |at| until.min(at.saturating_sub(1)))
    }

    /// Takes the events until a time; `is_last` if the process is over.
    fn take_until(&self, until: u64, is_last: bool) {
        if !self.is_used() {
            return;
        }
        // One round at a time. Threads that begin or end wait for the list alone.
        let mut fold = lock(&self.fold);
        let mut events: Vec<(u64, u32, WaitEvent)> = Vec::new();
        let mut begun: FxHashMap<u32, ThreadSums> = FxHashMap::default();
        fold.cpus.millicpus = self.millicpus.load(Relaxed);
        for (thread, ring) in &*lock(&self.rings) {
            ring.take(until, |at, event| events.push((at, *thread, event)));
            // Later than its events: a thread has its sums before it stores the first one.
            begun.extend(ring.sums(false).map(|sums| (*thread, sums)));
            let (lost, lost_ns) = ring.take_lost();
            self.lost.fetch_add(lost, Relaxed);
            self.lost_ns.fetch_add(lost_ns, Relaxed);
        }
        // Stable: those of one thread stay in their order.
        events.sort_by_key(|(at, ..)| *at);
        for (at, thread, event) in events {
            fold.take(thread, at, event);
            if matches!(event, WaitEvent::Starts { .. }) {
                // Without them (no free descriptor) those of a new thread.
                fold.cpus.begin_thread(thread, at, begun.get(&thread).copied().unwrap_or_default());
            }
        }
        lock(&self.rings).retain(|(thread, ring)| {
            let ended = ring.ended();
            if let Some(at) = ended {
                fold.end_thread(*thread, at, ring.sums(true));
            }
            ended.is_none()
        });
        if is_last || fold.cpus.is_due(until) {
            // Threads that begin do not wait for the readings.
            let rings = lock(&self.rings).clone();
            // The sums are those of now: to sum up events until a moment ago took time.
            let read_at = clock::now();
            let known = if is_last { read_at } else { until };
            let sums_now = |(thread, ring): &(u32, Arc<Ring>)| Some((*thread, ring.sums_now()?));
            let now: Vec<(u32, ThreadSums)> = rings.iter().filter_map(sums_now).collect();
            fold.divide_cpus((read_at, known), is_last, &now);
        }
    }

    /// Adds the waits until now to a profile; of an unfinished process those until a moment ago.
    pub fn add_to(&self, profile: &mut Profile, now: u64, is_finished: bool) {
        if !self.is_used() {
            return;
        }
        match is_finished {
            true => self.take_until(u64::MAX, true),
            false => self.round(now),
        }
        let (rows, lived_ns, cpus) = lock(&self.fold).rows_at(now);
        let mut calls = Calls { profile, known: FxHashMap::default(), places: Places::now() };
        let written: Vec<WaitRow> = (rows.rows.iter())
            .map(|((of, object, call), row)| {
                let (module, object) = calls.object(*of, *object);
                let parts = row.parts.iter().map(|(blame, sum)| calls.part(blame, rows.sum(*sum))).collect();
                let (waits, threads, longest_ns) = (row.waits, row.threads(), row.longest_ns);
                WaitRow {
                    process: 0,
                    kind: *of,
                    module,
                    object,
                    call: calls.call(*call),
                    waits,
                    threads,
                    longest_ns,
                    parts,
                }
            })
            .collect();
        profile.thread_waits = written;
        let is_known = cpus.used > 0.0;
        let cpu_sums = [
            (cpu_sum::MILLICPUS, self.millicpus.load(Relaxed)),
            (cpu_sum::CAPACITY_NS, cpus.capacity as u64),
            (cpu_sum::THREADS_NS, lived_ns),
            (cpu_sum::USED_NS, cpus.used as u64),
            (cpu_sum::NO_CPU_NS, cpus.no_cpu as u64),
            (cpu_sum::NO_CPU_THREADS_NS, cpus.no_cpu_threads as u64),
            (cpu_sum::BLOCKED_NS, cpus.blocked as u64),
            (cpu_sum::BLOCKED_THREADS_NS, cpus.blocked_threads as u64),
            (cpu_sum::ALONE_NS, cpus.alone as u64),
            (cpu_sum::IDLE_NS, cpus.idle as u64),
        ];
        for (name, sum) in cpu_sums.into_iter().filter(|_| is_known) {
            profile.totals.insert(name.to_owned(), sum);
            if let Some(process) = profile.processes.first_mut() {
                process.insert(name.to_owned(), sum.to_string());
            }
        }
        let sums = [
            ("thread_waits.lost", self.lost.load(Relaxed)),
            ("thread_waits.lost_ns", self.lost_ns.load(Relaxed)),
            ("thread_waits.unfit", rows.unfit),
            ("thread_waits.threads_ns", lived_ns),
        ];
        profile
            .totals
            .extend(sums.into_iter().filter(|(_, sum)| *sum > 0).map(|(name, sum)| (name.to_owned(), sum)));
    }
}

/// Calls as places of a profile.
struct Calls<'a> {
    profile: &'a mut Profile,
    known: FxHashMap<(u32, u32), NodeId>,
    places: Places,
}

impl Calls<'_> {
    fn call(&mut self, RecordedCall { site, path, context }: RecordedCall) -> WaitCall {
        let tree = &mut self.profile.tree;
        let path = *self.known.entry((context, path)).or_insert_with(|| {
            let from = expand(tree, context);
            if path == 0 { from } else { descend_path(tree, from, body_of(context), path) }
        });
        if site == 0 {
            return WaitCall { module: NO_MODULE, offset: 0, path };
        }
        let frame = self.places.frame(FrameKind::User, site - 1);
        WaitCall { module: frame.module, offset: frame.offset, path }
    }

    fn tie(&mut self, tie: Tie) -> WaitTie {
        match tie {
            Tie::Holds(call) => WaitTie::Holds(self.call(call)),
            Tie::Wakes(call) => WaitTie::Wakes(self.call(call)),
            Tie::IsJoined(call) => WaitTie::IsJoined(self.call(call)),
        }
    }

    fn part(&mut self, blame: &Blame, sum: PartSum) -> WaitPart {
        WaitPart {
            end: blame.end,
            first: blame.first.map(|tie| self.tie(tie)),
            last: blame.last.map(|tie| self.tie(tie)),
            blocked: blame.blocked.map(|(kind, call)| (kind, self.call(call))),
            length: blame.length,
            ns: sum.ns,
            cpu_ns: sum.cpu as u64,
        }
    }

    /// The module that contains an object, and its address there.
    fn object(&mut self, of: u32, object: u64) -> (u32, u64) {
        if kind::is_blocking(of) || object == 0 {
            return (NO_MODULE, object);
        }
        let frame = self.places.frame(FrameKind::User, object);
        (frame.module, frame.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A waker has no CPU between the call that wakes and its event.
    #[test]
    fn events_are_taken_until_an_announced_wake() {
        let waits = ThreadWaits::default();
        let (waker, _other) = (waits.new_ring(), waits.new_ring());
        let now = 10 * MAX_WAKE_NS;
        assert_eq!(waits.known_until(now), now - GUARD_NS);
        waker.announce_wake(now - MAX_WAKE_NS / 2);
        assert_eq!(waits.known_until(now), now - MAX_WAKE_NS / 2 - 1);
        // Its thread may never come back.
        assert_eq!(waits.known_until(now + MAX_WAKE_NS), now + MAX_WAKE_NS - GUARD_NS);
        waker.wake_is_over();
        assert_eq!(waits.known_until(now), now - GUARD_NS);
        waker.announce_wake(now - 1);
        waker.end(now);
        assert_eq!(waits.known_until(now), now - GUARD_NS);
    }
}
