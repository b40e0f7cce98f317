//! The use of CPUs beside the waits of threads: which waits left CPUs unused.
//!
//! ```text
//!   readings of the kernel's sums, by thread ──▶ rounds ─┐ each instant of a round: CPUs − running threads,
//!   parts of waits that are over ──────────────▶ pieces ─┴▶ in equal parts to those that would run otherwise
//! ```
//! The rules are those of traces (`taskscope_analysis::cpu_time`): threads without a CPU and those that wait for others share the
//! unused CPUs; the rest is charged to running code (*alone*), to sleep, or is *idle*. The instants of waits are exact. Of the
//! time outside of waits, the kernel's sums (`schedstat`) say how much of a round a thread ran, had no CPU, or was blocked. Time
//! without a CPU beyond that was in waits that had been ended: by wakes, or by requests, sleep's and files' ends. In other waits,
//! signals of samples wake a thread, and it sleeps again: no loss.
//!
//! A wait counts when it is over. So instants are divided late: not before the open waits, and the threads that have been off the
//! CPU since in a call that is reported at its end. The numbers of pieces and of ended threads are limited; beyond, threads in such waits count as without work.
//!
//! The thread that others wait for may have had no CPU: waits for running threads are the system's in the part that the process's
//! running threads had none in the round.

use rustc_hash::FxHashMap;
use taskscope_record::thread_sums::ThreadSums;

use super::sweep::{CpuSums, Doing, Piece, Round, Sweep};

/// Pieces that are kept until their time is divided.
const MAX_PIECES: usize = 1 << 14;
/// Ended threads that are kept until their time is divided.
const MAX_ENDED: usize = 4096;
/// Rounds at a time; beyond, neighbours become one.
const MAX_ROUNDS: usize = 128;
/// The shortest round, nanoseconds, and threads that are read in it.
const MIN_ROUND_NS: u64 = 100_000_000;
const THREADS_READ: u64 = 64;
/// The last wait before a thread's end is known after this time, nanoseconds.
const LAG_NS: u64 = 200_000_000;
/// A thread is quiet that was on a CPU, or could have been, for less than one part in this many of a round.
const QUIET_PARTS: u64 = 100;
/// A thread ends after a wait without having worked, if it lives for less than one part in this many of the wait.
const ENDS_PARTS: u64 = 20;

#[derive(Clone)]
struct Life {
    thread: u32,
    from: u64,
    until: u64,
    /// The kernel's sums at the last reading.
    last: ThreadSums,
    /// Nanoseconds outside of waits in which it ran, or could, of the divided time.
    active: f64,
    /// Since when it is off the CPU outside of recorded waits.
    quiet_since: Option<u64>,
}

/// The division so far.
#[derive(Clone, Default)]
pub struct Cpus {
    /// CPUs that the process may use, in thousandths; 0 before they are known.
    pub millicpus: u64,
    pub sums: CpuSums,
    /// Until when time is divided; 0 before the first thread.
    horizon: u64,
    lives: Vec<Life>,
    /// How many of these have ended.
    ended: usize,
    pieces: Vec<Piece>,
    rounds: Vec<Round>,
    /// Time of threads that have ended since the last reading, as in a round.
    pending: FxHashMap<u32, (u64, u64)>,
    /// Begin and end of the process's stops since the last reading.
    stops: Vec<(u64, u64)>,
}

fn grow(spent: &mut FxHashMap<u32, (u64, u64)>, thread: u32, (ran, delay): (u64, u64)) {
    let sum = spent.entry(thread).or_default();
    *sum = (sum.0 + ran, sum.1 + delay);
}

fn growth(now: ThreadSums, before: ThreadSums) -> (u64, u64) {
    (now.on_cpu.saturating_sub(before.on_cpu), now.delay.saturating_sub(before.delay))
}

/// Puts the time of a thread without a CPU that does not fit between the last reading and `at` into the rounds before: the kernel adds a
/// delay when it ends, so a thread that had no CPU at a reading has its delay at a later one. Returns the part since the last
/// reading. `ran` and `delay` are what the thread's sums grew by since then.
fn put_back(
    rounds: &mut [Round],
    horizon: u64,
    (thread, born): (u32, u64),
    at: u64,
    (ran, delay): (u64, u64),
) -> (u64, u64) {
    let last = rounds.last().map_or(horizon, |round| round.until);
    let own = delay.min(at.saturating_sub(last.max(born)).saturating_sub(ran));
    let mut rest = delay - own;
    for number in (0..rounds.len()).rev() {
        if rest == 0 {
            break;
        }
        let from =
            number.checked_sub(1).and_then(|before| rounds.get(before)).map_or(horizon, |round| round.until);
        let Some(round) = rounds.get_mut(number) else { break };
        // A stopped thread is not runnable.
        if round.stopped > 0 {
            continue;
        }
        let before = round.spent.get(&thread).map_or(0, |(ran, delay)| ran + delay);
        let part = rest.min(round.until.saturating_sub(from.max(born)).saturating_sub(before));
        if part > 0 {
            grow(&mut round.spent, thread, (0, part));
        }
        rest -= part;
    }
    (ran, own)
}

/// The rounds of the time from `from` to the end of a round with stops: those have rounds of their own, and what threads spent is in
/// proportion to the lengths of the others.
fn split_at_stops(round: Round, from: u64, stops: &[(u64, u64)]) -> Vec<Round> {
    let mut parts = Vec::new();
    let mut at = from;
    for (begin, end) in stops {
        let (begin, end) = ((*begin).clamp(at, round.until), (*end).clamp(at, round.until));
        if begin < end {
            parts.extend((begin > at).then_some((at, begin, 0)));
            parts.push((begin, end, end - begin));
            at = end;
        }
    }
    parts.extend((round.until > at).then_some((at, round.until, 0)));
    let running: u64 =
        parts.iter().filter(|(.., stopped)| *stopped == 0).map(|(from, until, _)| until - from).sum();
    let mut rounds = Vec::with_capacity(parts.len());
    let (mut seen, mut given) = (0, FxHashMap::<u32, (u64, u64)>::default());
    for (from, until, stopped) in parts {
        let mut spent = FxHashMap::default();
        if stopped == 0 {
            seen += until - from;
            let share = |ns: u64| (u128::from(ns) * u128::from(seen) / u128::from(running)) as u64;
            for (thread, (ran, delay)) in &round.spent {
                let given = given.entry(*thread).or_default();
                let now = (share(*ran), share(*delay));
                spent.insert(*thread, (now.0 - given.0, now.1 - given.1));
                *given = now;
            }
        }
        rounds.push(Round { until, spent, stopped });
    }
    rounds
}

impl Cpus {
    /// The process was stopped from then until then.
    pub fn was_stopped(&mut self, stop: (u64, u64)) {
        self.stops.push(stop);
    }

    /// A thread begins, with the kernel's sums by then.
    pub fn begin_thread(&mut self, thread: u32, at: u64, last: ThreadSums) {
        if self.horizon == 0 {
            self.horizon = at;
        }
        self.lives.retain(|life| life.thread != thread);
        self.lives.push(Life {
            thread,
            from: at.max(self.horizon),
            until: u64::MAX,
            last,
            active: 0.0,
            quiet_since: None,
        });
    }

    /// A thread has ended, with these sums. Its last wait, with these times, was for no work if it did little afterwards.
    pub fn end_thread(
        &mut self,
        thread: u32,
        at: u64,
        sums: Option<ThreadSums>,
        last_wait: Option<(u64, u64)>,
    ) {
        let Some(life) = self.lives.iter_mut().find(|life| life.thread == thread) else { return };
        self.ended += usize::from(life.until == u64::MAX);
        life.until = at;
        if let Some(sums) = sums {
            let spent = growth(sums, life.last);
            let spent = put_back(&mut self.rounds, self.horizon, (thread, life.from), at, spent);
            grow(&mut self.pending, thread, spent);
        }
        let Some((from, until)) = last_wait else { return };
        if at.saturating_sub(until).saturating_mul(ENDS_PARTS) < until - from {
            let own = self.pieces.iter_mut().filter(|piece| piece.thread == thread && piece.until > from);
            own.filter(|piece| matches!(piece.doing, Doing::Wants(..)))
                .for_each(|piece| piece.doing = Doing::Rests);
        }
    }

    /// Whether a thread has work besides sleep: it runs, or could, for more than a small part of its life. Outside of waits, as far as
    /// time is divided: a thread that polls is without a CPU after each sleep.
    pub fn has_work(&self, thread: u32) -> bool {
        const WORKS_PARTS: u64 = 20;
        let read_at = self.rounds.last().map_or(self.horizon, |round| round.until);
        let life = self.lives.iter().find(|life| life.thread == thread);
        life.is_none_or(|life| {
            if life.from < self.horizon {
                return life.active * WORKS_PARTS as f64 >= (self.horizon - life.from) as f64;
            }
            let active = life.last.on_cpu + life.last.delay;
            // Not known before the first reading.
            life.from >= read_at || active.saturating_mul(WORKS_PARTS) >= read_at - life.from
        })
    }

    /// Adds a part of a wait that is over.
    pub fn add(&mut self, thread: u32, (from, until): (u64, u64), doing: Doing) {
        let from = from.max(self.horizon);
        if from < until && self.millicpus > 0 {
            self.pieces.push(Piece { thread, from, until, doing });
        }
    }

    /// Whether the kernel's sums are to be read at a time.
    pub fn is_due(&self, at: u64) -> bool {
        let last = self.rounds.last().map_or(self.horizon, |round| round.until);
        let living = self.lives.len().saturating_sub(self.ended) as u64;
        let round = MIN_ROUND_NS * (living.div_ceil(THREADS_READ).max(1));
        at > last && (at - last >= round || self.is_full())
    }

    fn is_full(&self) -> bool {
        self.pieces.len() > MAX_PIECES || self.ended > MAX_ENDED
    }

    /// Takes the kernel's sums of the living threads, those that have an open wait or not: ends a round at a time.
    pub fn read(&mut self, at: u64, now: &[(u32, ThreadSums)], has_wait: impl Fn(u32) -> bool) {
        let last = self.rounds.last().map_or(self.horizon, |round| round.until);
        if at <= last {
            return;
        }
        let mut round = Round { until: at, spent: core::mem::take(&mut self.pending), stopped: 0 };
        for (thread, sums) in now {
            let Some(life) = self.lives.iter_mut().find(|life| life.thread == *thread) else { continue };
            let (ran, delay) = growth(*sums, life.last);
            life.last = *sums;
            let spent = put_back(&mut self.rounds, self.horizon, (*thread, life.from), at, (ran, delay));
            grow(&mut round.spent, *thread, spent);
            let is_quiet = (ran + delay) * QUIET_PARTS < at - last && life.from <= last && !has_wait(*thread);
            life.quiet_since = is_quiet.then(|| life.quiet_since.unwrap_or(last));
        }
        self.rounds.extend(split_at_stops(round, last, &core::mem::take(&mut self.stops)));
        if self.rounds.len() > MAX_ROUNDS {
            let mut rounds = core::mem::take(&mut self.rounds).into_iter();
            while let Some(mut first) = rounds.next() {
                if let Some(second) = rounds.next() {
                    first.until = second.until;
                    first.stopped += second.stopped;
                    second.spent.into_iter().for_each(|(thread, more)| grow(&mut first.spent, thread, more));
                }
                self.rounds.push(first);
            }
        }
    }

    /// Divides the rounds that are complete by `until`, if no wait that began before is open, or too many pieces are kept. `open` are
    /// the open waits: thread, begin, and whether it waits for a thread's end. Charges parts by their numbers.
    pub fn divide(
        &mut self,
        until: u64,
        is_last: bool,
        open: &[(u32, u64, bool)],
        mut charge: impl FnMut(u32, f64),
    ) {
        let mut limit = until;
        let mut waits: Vec<(u32, u64, Doing)> = Vec::new();
        for (thread, from, is_join) in open {
            waits.push((*thread, *from, Doing::Rests));
            if !is_join && !is_last && !self.is_full() {
                limit = limit.min(*from);
            }
        }
        if !is_last {
            for life in self.lives.iter().filter(|life| life.until > until) {
                let Some(since) = life.quiet_since else { continue };
                match self.is_full() {
                    true => waits.push((life.thread, since, Doing::Listens)),
                    // It may have been off the CPU since some time in the round before.
                    false => {
                        let round = self.rounds.partition_point(|round| round.until < since);
                        let before = round.checked_sub(1).and_then(|before| self.rounds.get(before));
                        limit = limit.min(before.map_or(self.horizon, |round| round.until));
                    }
                }
            }
            limit = limit.min(until.saturating_sub(if self.is_full() { 0 } else { LAG_NS }));
        }
        let count = self.rounds.partition_point(|round| round.until <= limit);
        let Some(end) = count.checked_sub(1).and_then(|last| self.rounds.get(last)).map(|round| round.until)
        else {
            return;
        };
        let rounds: Vec<Round> = self.rounds.drain(..count).collect();
        for (thread, from, doing) in waits {
            let from = from.max(self.horizon);
            if from < end {
                self.pieces.push(Piece { thread, from, until: end, doing });
            }
        }
        let lives = self.lives.iter().map(|life| (life.thread, life.from, life.until));
        let mut sweep = Sweep::over((self.horizon, end), &rounds, lives, &self.pieces);
        sweep.run(self.millicpus as f64 / 1000.0, &mut self.sums);
        for piece in self.pieces.iter().filter(|piece| piece.from < end) {
            if let Some((number, ns)) = sweep.charged(piece, end) {
                charge(number, ns);
            }
        }
        for life in &mut self.lives {
            life.active += sweep.active(life.thread);
        }
        self.horizon = end;
        self.pieces.retain_mut(|piece| {
            piece.from = piece.from.max(end);
            piece.from < piece.until
        });
        self.lives.retain(|life| life.until > end);
        self.ended = self.lives.iter().filter(|life| life.until != u64::MAX).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sums(on_cpu: u64, delay: u64) -> ThreadSums {
        ThreadSums { on_cpu: on_cpu * MS, delay: delay * MS }
    }

    /// Two CPUs, and threads that begin at 0 with numbers from 0.
    fn cpus(threads: u32) -> Cpus {
        let mut cpus = Cpus { millicpus: 2000, horizon: 1, ..Cpus::default() };
        (0..threads).for_each(|thread| cpus.begin_thread(thread, 1, ThreadSums::default()));
        cpus
    }

    /// Divides the whole time. Returns the charges of parts, milliseconds.
    fn divided(cpus: &mut Cpus, at: u64) -> Vec<(u32, f64)> {
        let mut charges = Vec::new();
        cpus.divide(at * MS, true, &[], |number, ns| charges.push((number, (ns / MS as f64).round())));
        charges
    }

    fn ms(ns: f64) -> f64 {
        (ns / MS as f64).round()
    }

    fn adds_up(cpus: &Cpus, charges: &[(u32, f64)]) {
        let CpuSums { capacity, used, no_cpu, blocked, alone, idle, .. } = cpus.sums;
        let charged: f64 = charges.iter().map(|(_, ms)| ms).sum();
        let sum = ms(used + no_cpu + blocked + alone + idle) + charged;
        assert!((ms(capacity) - sum).abs() <= 3.0, "{:?} {charges:?}", cpus.sums);
    }

    #[test]
    fn more_waiting_threads_lose_no_more_cpus_than_are_unused() {
        // Thread 0 holds a lock for 400 ms, and ten others wait for it.
        let mut cpus = cpus(11);
        (1..11).for_each(|thread| cpus.add(thread, (0, 400 * MS), Doing::Wants(thread, true)));
        let mut now: Vec<_> = (1..11).map(|thread| (thread, sums(0, 0))).collect();
        now.push((0, sums(400, 0)));
        cpus.read(400 * MS, &now, |thread| thread != 0);
        let charges = divided(&mut cpus, 400);
        assert_eq!(charges, (1..11).map(|thread| (thread, 40.0)).collect::<Vec<_>>());
        assert_eq!((ms(cpus.sums.used), ms(cpus.sums.alone)), (400.0, 0.0));
        adds_up(&cpus, &charges);
    }

    #[test]
    fn the_system_is_charged_for_a_holder_without_a_cpu() {
        let mut cpus = cpus(2);
        cpus.add(1, (0, 400 * MS), Doing::Wants(7, true));
        cpus.read(400 * MS, &[(0, sums(100, 300)), (1, sums(0, 0))], |thread| thread == 1);
        let charges = divided(&mut cpus, 400);
        assert_eq!(ms(cpus.sums.used), 100.0);
        // Three quarters of both threads' demand.
        assert_eq!((charges[0].1, ms(cpus.sums.no_cpu)), (100.0, 600.0));
        adds_up(&cpus, &charges);
    }

    #[test]
    fn waits_for_requests_are_no_loss() {
        let mut cpus = cpus(3);
        cpus.add(1, (0, 400 * MS), Doing::Listens);
        cpus.add(2, (0, 400 * MS), Doing::Rests);
        cpus.read(400 * MS, &[(0, sums(200, 0))], |thread| thread != 0);
        let charges = divided(&mut cpus, 400);
        assert!(charges.is_empty());
        // Thread 0 was blocked for half of its time, in calls that are not recorded.
        let CpuSums { used, blocked, alone, idle, .. } = cpus.sums;
        assert_eq!([used, blocked, alone, idle].map(ms), [200.0, 200.0, 200.0, 200.0]);
        adds_up(&cpus, &charges);
    }

    #[test]
    fn a_request_that_waits_for_a_cpu_is_the_systems() {
        let mut cpus = cpus(2);
        cpus.add(0, (0, 400 * MS), Doing::Listens);
        cpus.add(1, (0, 400 * MS), Doing::Listens);
        cpus.read(400 * MS, &[(0, sums(0, 100)), (1, sums(0, 60))], |_| true);
        let charges = divided(&mut cpus, 400);
        assert!(charges.is_empty());
        // The other CPU has no thread with work meanwhile.
        let CpuSums { no_cpu, alone, idle, .. } = cpus.sums;
        assert_eq!([no_cpu, alone, idle].map(ms), [160.0, 256.0, 384.0]);
        adds_up(&cpus, &charges);
    }

    /// The kernel adds a delay when it ends: at 350 ms, after three readings.
    #[test]
    fn a_thread_without_a_cpu_at_a_reading_was_not_blocked() {
        let mut cpus = cpus(1);
        cpus.read(100 * MS, &[(0, sums(50, 0))], |_| false);
        cpus.read(200 * MS, &[(0, sums(50, 0))], |_| false);
        cpus.read(300 * MS, &[(0, sums(50, 0))], |_| false);
        cpus.read(400 * MS, &[(0, sums(100, 300))], |_| false);
        divided(&mut cpus, 400);
        let CpuSums { used, no_cpu, no_cpu_threads, blocked_threads, .. } = cpus.sums;
        assert_eq!([used, no_cpu, no_cpu_threads, blocked_threads].map(ms), [100.0, 300.0, 300.0, 0.0]);
        adds_up(&cpus, &[]);
    }

    #[test]
    fn an_ended_thread_without_a_cpu_at_a_reading_was_not_blocked() {
        let mut cpus = cpus(2);
        let other = |at| (0, sums(at, 0));
        cpus.read(100 * MS, &[other(100), (1, sums(50, 0))], |_| false);
        cpus.read(200 * MS, &[other(200), (1, sums(50, 0))], |_| false);
        cpus.end_thread(1, 250 * MS, Some(sums(60, 190)), None);
        cpus.read(300 * MS, &[other(300)], |_| false);
        divided(&mut cpus, 300);
        let CpuSums { used, no_cpu_threads, blocked_threads, .. } = cpus.sums;
        assert_eq!([used, no_cpu_threads, blocked_threads].map(ms), [360.0, 190.0, 0.0]);
    }

    /// A server's thread waits for requests nearly all the time, and the kernel sends its answers in calls that wait.
    #[test]
    fn time_on_a_cpu_in_calls_is_used() {
        let mut cpus = cpus(1);
        cpus.add(0, (0, 390 * MS), Doing::Listens);
        cpus.read(400 * MS, &[(0, sums(120, 20))], |_| true);
        let charges = divided(&mut cpus, 400);
        let CpuSums { used, no_cpu, .. } = cpus.sums;
        assert_eq!([used, no_cpu].map(ms), [120.0, 20.0]);
        adds_up(&cpus, &charges);
    }

    /// Thread 0 runs until 200 ms, and from 500 ms on; thread 1 is in a call that is not recorded.
    #[test]
    fn stopped_threads_have_no_cpu() {
        let mut cpus = cpus(2);
        cpus.was_stopped((200 * MS, 500 * MS));
        cpus.read(600 * MS, &[(0, sums(300, 0)), (1, sums(0, 0))], |_| false);
        assert_eq!(cpus.rounds.iter().map(|round| round.until / MS).collect::<Vec<_>>(), [200, 500, 600]);
        divided(&mut cpus, 600);
        let CpuSums { used, no_cpu, no_cpu_threads, blocked_threads, .. } = cpus.sums;
        assert_eq!([used, no_cpu, no_cpu_threads, blocked_threads].map(ms), [300.0, 600.0, 600.0, 300.0]);
        adds_up(&cpus, &[]);
    }

    /// A wait for a thread that was stopped meanwhile.
    #[test]
    fn waits_for_stopped_threads_are_the_systems() {
        let mut cpus = cpus(2);
        cpus.was_stopped((200 * MS, 500 * MS));
        cpus.add(1, (0, 600 * MS), Doing::Wants(7, true));
        cpus.read(600 * MS, &[(0, sums(300, 0)), (1, sums(0, 0))], |thread| thread == 1);
        let charges = divided(&mut cpus, 600);
        assert_eq!((charges[0].1, ms(cpus.sums.used), ms(cpus.sums.no_cpu)), (300.0, 300.0, 600.0));
        adds_up(&cpus, &charges);
    }

    /// Signals of samples wake thread 1 in its wait, and it has no CPU at once.
    #[test]
    fn a_thread_that_is_woken_within_its_wait_lacks_no_cpu() {
        for doing in [Doing::Wants(7, true), Doing::Rests, Doing::NotKnown(7)] {
            let mut cpus = cpus(2);
            cpus.add(1, (0, 400 * MS), doing);
            cpus.read(400 * MS, &[(0, sums(400, 0)), (1, sums(1, 200))], |thread| thread == 1);
            let charges = divided(&mut cpus, 400);
            let CpuSums { no_cpu, no_cpu_threads, .. } = cpus.sums;
            assert_eq!([no_cpu, no_cpu_threads].map(ms), [0.0, 0.0], "{doing:?} {charges:?}");
            adds_up(&cpus, &charges);
        }
    }

    #[test]
    fn the_last_wait_of_a_thread_is_no_loss() {
        let mut cpus = cpus(2);
        cpus.add(1, (0, 300 * MS), Doing::Wants(7, true));
        cpus.end_thread(1, 301 * MS, Some(sums(1, 0)), Some((0, 300 * MS)));
        cpus.read(400 * MS, &[(0, sums(399, 0))], |_| false);
        let charges = divided(&mut cpus, 400);
        assert!(charges.is_empty(), "{charges:?}");
        adds_up(&cpus, &charges);
    }

    #[test]
    fn time_is_not_divided_before_open_waits_and_quiet_threads_are_known() {
        let mut cpus = cpus(3);
        for round in 1..=10 {
            cpus.read(round * 100 * MS, &[(0, sums(100 * round, 0)), (2, sums(0, 0))], |thread| thread == 1);
        }
        let open = [(1, 500 * MS, false)];
        cpus.divide(1000 * MS, false, &open, |_, _| {});
        assert_eq!(cpus.horizon, 1, "thread 2 has been quiet since its begin");
        cpus.read(1100 * MS, &[(0, sums(1100, 0)), (2, sums(50, 0))], |thread| thread == 1);
        cpus.divide(1100 * MS, false, &open, |_, _| {});
        assert_eq!(cpus.horizon, 500 * MS);
        // Waits for the ends of threads are known.
        cpus.divide(1100 * MS, false, &[(1, 500 * MS, true)], |_, _| {});
        assert_eq!(cpus.horizon, 900 * MS);
    }

    #[test]
    fn a_wait_that_is_reported_at_its_end_counts_from_its_begin() {
        let mut cpus = cpus(2);
        for round in 1..=10 {
            let now = [(0, sums(100 * round, 0)), (1, sums((100 * round).min(250), 0))];
            cpus.read(round * 100 * MS, &now, |_| false);
            cpus.divide(round * 100 * MS, false, &[], |_, _| {});
        }
        cpus.add(1, (250 * MS, 1000 * MS), Doing::Listens);
        divided(&mut cpus, 1000);
        assert_eq!(ms(cpus.sums.blocked_threads), 0.0, "{:?}", cpus.sums);
    }

    #[test]
    fn ended_threads_are_limited() {
        let mut cpus = cpus(1);
        for thread in 1..20_000 {
            let at = u64::from(thread) * MS;
            cpus.begin_thread(thread, at, ThreadSums::default());
            cpus.end_thread(thread, at + MS / 2, Some(sums(0, 0)), None);
            if cpus.is_due(at + MS) {
                cpus.read(at + MS, &[(0, sums(0, 0))], |_| true);
                // Thread 0 waits all the time.
                cpus.divide(at + MS, false, &[(0, 1, false)], |_, _| {});
            }
            assert!(cpus.lives.len() <= 2 * MAX_ENDED);
        }
    }

    #[test]
    fn a_thread_has_work_until_a_reading_denies_it() {
        let mut cpus = cpus(2);
        assert!(cpus.has_work(0) && cpus.has_work(1));
        cpus.read(100 * MS, &[(0, sums(1, 0)), (1, sums(10, 0))], |_| false);
        assert!(!cpus.has_work(0) && cpus.has_work(1));
    }

    /// Thread 1 sleeps for 18 of each 20 ms; then the time is over, and it has no CPU for 2.
    #[test]
    fn a_thread_that_polls_has_no_work() {
        let mut cpus = cpus(3);
        for poll in 0..20 {
            cpus.add(1, (poll * 20 * MS, (poll + 1) * 20 * MS - MS / 10), Doing::Sleeps(1));
        }
        cpus.read(400 * MS, &[(0, sums(200, 200)), (1, sums(1, 40)), (2, sums(0, 0))], |_| false);
        assert!(cpus.has_work(1), "not known before the time is divided");
        divided(&mut cpus, 400);
        assert!(cpus.has_work(0) && !cpus.has_work(1) && !cpus.has_work(2));
    }

    #[test]
    fn pieces_and_rounds_are_limited() {
        let mut cpus = cpus(2);
        let mut at = 0;
        for round in 1..=1000 {
            for _ in 0..100 {
                cpus.add(1, (at, at + MS / 10), Doing::Wants(1, true));
                at += MS;
            }
            cpus.read(at, &[(0, sums(100 * round, 0)), (1, sums(90 * round, 0))], |_| false);
            // A thread that waits all the time.
            cpus.divide(at, false, &[(5, 1, false)], |_, _| {});
            assert!(cpus.pieces.len() <= 2 * MAX_PIECES && cpus.rounds.len() <= MAX_ROUNDS + 1);
        }
        assert!(cpus.horizon > at / 2);
    }
}
