//! Readings of threads, and the windows of all workers.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::OnceLock;

use taskscope_record::cpus::{Cgroups, Mask, Throttled};
use taskscope_record::thread_sums::{ThreadSums, is_runnable};

use super::elapsed::Elapsed;
use super::estimate::{Moved, divide, estimate, none_running_ns, own_delays};
use super::watch::Last;
use crate::profiling::account::{Account, Reading};
use crate::profiling::states::{STATES, State, Sums, book};

/// A handler closes no window that is shorter, nanoseconds, for each [`THREADS`] threads that it has to read.
const MIN_WINDOW_NS: u64 = 100_000_000;
const THREADS: u64 = 8;

/// While the profile's own thread is overdue by so much, nanoseconds, sleep of this length may be a stop of the process.
const MIN_STOP_NS: u64 = 5_000_000;

/// The kernel's sums and the clock are read within this time of each other, nanoseconds: less was not slept.
const MIN_SLEEP_NS: u64 = 20_000;

/// The parts of some work without a CPU, and blocked in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    off: u64,
    blocked: u64,
    of: u64,
    is_deferred: bool,
}

impl Share {
    const DEFERRED: Share = Share { off: 0, blocked: 0, of: 0, is_deferred: true };

    /// Whether the parts are not known before the profile's own thread is awake: the next share has those of this time, too.
    pub fn is_deferred(self) -> bool {
        self.is_deferred
    }

    /// The part of `ns` that corresponds to the one without a CPU.
    pub fn off_cpu(self, ns: u64) -> u64 {
        super::estimate::part_of(ns, self.off, self.of)
    }

    /// The part of `ns` that corresponds to the blocked one.
    pub fn blocked(self, ns: u64) -> u64 {
        super::estimate::part_of(ns, self.off + self.blocked, self.of) - self.off_cpu(ns)
    }
}

/// Reads the thread's sums and adds its time since the previous reading to the workers' time, if it `counts`
/// as one. Returns the parts of its work in that time without a CPU, and blocked; `None` if reading failed, or another
/// thread is reading. `is_own` means that the thread itself reads, which has a CPU then. Async-signal-safe;
/// on the thread itself not while its account changes.
pub fn read(
    is_own: bool,
    account: &Account,
    times: (impl Fn() -> u64, impl Fn(u32) -> Option<u64>),
    workers: &Observed,
    counts: impl Fn(&Reading) -> bool,
) -> Option<Share> {
    account.watch.with_last(|last| read_since(last, (is_own, 0), account, times, workers, counts))
}

/// Reads another thread's sums after the process was stopped for so many nanoseconds. Returns false while another
/// thread is reading.
pub fn read_stopped(
    stopped_ns: u64,
    account: &Account,
    times: (impl Fn() -> u64, impl Fn(u32) -> Option<u64>),
    workers: &Observed,
    counts: impl Fn(&Reading) -> bool,
) -> bool {
    let read = account.watch.with_last(|last| {
        read_since(last, (false, stopped_ns), account, times, workers, counts);
        Some(())
    });
    read.is_some()
}

fn read_since(
    last: &mut Last,
    (is_own, stopped_ns): (bool, u64),
    account: &Account,
    (now, idle_since): (impl Fn() -> u64, impl Fn(u32) -> Option<u64>),
    workers: &Observed,
    counts: impl Fn(&Reading) -> bool,
) -> Option<Share> {
    let os_tid = account.watch.os_tid;
    let stat = match is_own {
        _ if !last.is_known => return None,
        true => last.own.read(os_tid)?,
        false => ThreadSums::read(os_tid)?,
    };
    let now = now();
    let reading = account.try_read(now, idle_since)?;
    // The time before a thread is a worker counts when it is one.
    if !counts(&reading) {
        last.stopped += stopped_ns;
        workers.stopped_others.fetch_add(stopped_ns, Relaxed);
        let age = reading.sums.iter().sum();
        return is_own.then(|| share_of_other(last, stat, (age, now), workers)).flatten();
    }
    let mut spent = reading.sums;
    spent.iter_mut().zip(&last.sums).for_each(|(sum, before)| *sum = sum.saturating_sub(*before));
    let wall: u64 = spent.iter().sum();
    let mut all_delay = stat.delay.saturating_sub(last.stat.delay);
    let ran = stat.on_cpu.saturating_sub(last.stat.on_cpu);
    if stopped_ns == 0 && workers.may_be_stop(wall.saturating_sub(all_delay + ran), now) {
        return Some(Share::DEFERRED);
    }
    let (pending, of) = last.pending;
    let known = pending.min(all_delay);
    all_delay -= known;
    last.pending.0 -= known;
    if is_own {
        // It was blocked instead.
        workers.block_delayed(of, core::mem::take(&mut last.pending).0);
    }
    let delay = all_delay.min(wall);
    // Times are read one after the other: a thread that is delayed between them has the difference at its next reading.
    workers.unblock(&mut last.blocked, (ran + delay).saturating_sub(wall));
    let sleep = wall - delay - ran.min(wall - delay);
    let sleep = if sleep < MIN_SLEEP_NS { 0 } else { sleep };
    let sleep = sleep - workers.stop(last, stopped_ns.min(sleep), account.state(), &mut spent);
    let (mut off, mut blocked) = divide(delay, sleep, &spent, &workers.late());
    if let Some(state) = account.state() {
        // A delay that began before the previous reading belongs to one state.
        book(&mut off, state, all_delay - delay);
        let may_be_delayed = !is_own && state.is_useful() && of.is_none_or(|of| of == state);
        if may_be_delayed && is_runnable(account.watch.os_tid) != Some(false) {
            let slept = core::mem::replace(&mut blocked, [0; STATES]).iter().sum();
            book(&mut off, state, slept);
            last.pending = (last.pending.0 + slept, Some(state));
        }
    }
    if last.sums == [0; STATES] && reading.began < workers.closed.load(Relaxed) {
        workers.add_early((reading.began, now), &spent, &off);
    }
    workers.add(&spent, &off, &blocked);
    last.blocked = blocked;
    (last.stat, last.sums) = (stat, reading.sums);
    let useful = |sums: &Sums| -> u64 {
        State::ALL.iter().zip(sums).filter(|(state, _)| state.is_useful()).map(|(_, ns)| ns).sum()
    };
    let stopped = if is_own { core::mem::take(&mut last.stopped) } else { 0 };
    let (off, blocked, of) = (useful(&off) + stopped, useful(&blocked), useful(&spent) + stopped);
    Some(Share { off, blocked, of, is_deferred: false })
}

/// The parts since the previous sample of a thread that is not a worker: all of it is work but for these. `age` is the time since the thread began.
fn share_of_other(
    last: &mut Last,
    stat: ThreadSums,
    (age, now): (u64, u64),
    workers: &Observed,
) -> Option<Share> {
    let (before, since) = last.other_sums;
    let of = age.saturating_sub(since);
    let off = stat.delay.saturating_sub(before.delay).min(of);
    let ran = stat.on_cpu.saturating_sub(before.on_cpu).min(of - off);
    let sleep = of - off - ran;
    let stopped = core::mem::take(&mut last.stopped).min(sleep);
    if workers.may_be_stop(sleep - stopped, now) {
        last.stopped = stopped;
        return Some(Share::DEFERRED);
    }
    last.other_sums = (stat, age);
    workers.is_known.store(true, Relaxed);
    let sleep = sleep - stopped;
    let blocked = if sleep < MIN_SLEEP_NS { 0 } else { sleep };
    Some(Share { off: off + stopped, blocked, of, is_deferred: false })
}

/// Readings of all workers of a process.
pub struct Observed {
    /// Whether threads are watched at all.
    is_wanted: bool,
    /// CPUs that the process may use: those of its mask, limited by its quota once that is known.
    cpus: AtomicU64,
    limit: OnceLock<Limit>,
    /// Time of workers by state, and the part of it without a CPU.
    spent: [AtomicU64; STATES],
    off: [AtomicU64; STATES],
    /// The parts of both before the window in which a thread was first read as a worker; and the span of the first such thread.
    early_spent: [AtomicU64; STATES],
    early_off: [AtomicU64; STATES],
    early_from: AtomicU64,
    early_until: AtomicU64,
    /// The part of it blocked in the kernel, of useful states.
    blocked: [AtomicU64; STATES],
    /// The part of it in which a signal had stopped the process: in neither of the two, nor in the time of the windows.
    stopped: [AtomicU64; STATES],
    /// The time of stops of threads that are not workers.
    stopped_others: AtomicU64,
    /// Stops, their length, and the part of that since the last window was closed.
    stops: AtomicU64,
    stops_ns: AtomicU64,
    stops_in_window: AtomicU64,
    /// When the profile's own thread is to be awake again; 0 if it is.
    awake_at: AtomicU64,
    /// Samples by state, and those that were late.
    samples: [AtomicU64; STATES],
    late: [AtomicU64; STATES],
    /// Whether anything was read.
    is_known: AtomicBool,
    /// Set while a thread closes a window, or reads them.
    busy: AtomicBool,
    /// When the last window was closed.
    closed: AtomicU64,
    windows: UnsafeCell<Windows>,
}

/// The limits of the process's control groups.
struct Limit {
    cgroups: Cgroups,
    /// Cost of the limits at their first reading.
    before: Option<Throttled>,
}

/// Sums until the last window was closed.
struct Windows {
    spent: Sums,
    off: Sums,
    early_spent: Sums,
    early_off: Sums,
    blocked: Sums,
    waiting: Moved,
    /// Time in which no thread with work had a CPU.
    none_running: Elapsed,
}

// SAFETY: only the thread that has set `busy` accesses `windows`.
unsafe impl Sync for Observed {}

fn load(sums: &[AtomicU64; STATES]) -> Sums {
    core::array::from_fn(|index| sums.get(index).map_or(0, |sum| sum.load(Relaxed)))
}

fn add(sums: &[AtomicU64; STATES], more: &Sums) {
    for (sum, more) in sums.iter().zip(more).filter(|(_, more)| **more > 0) {
        sum.fetch_add(*more, Relaxed);
    }
}

fn take(sum: &AtomicU64, ns: u64) {
    if ns > 0 {
        let _ = sum.fetch_update(Relaxed, Relaxed, |sum| Some(sum.saturating_sub(ns)));
    }
}

impl Observed {
    /// Creates the state for a process that begins at `now`. Before its runtime binds its threads, so that
    /// the CPUs are those of the process.
    pub fn new(now: u64, is_wanted: bool) -> Observed {
        let zeros = || [const { AtomicU64::new(0) }; STATES];
        Observed {
            is_wanted,
            cpus: AtomicU64::new(Mask::process_affinity().map_or(1, |mask| mask.cpus().count() as u64)),
            limit: OnceLock::new(),
            spent: zeros(),
            off: zeros(),
            early_spent: zeros(),
            early_off: zeros(),
            early_from: AtomicU64::new(0),
            early_until: AtomicU64::new(0),
            blocked: zeros(),
            stopped: zeros(),
            stopped_others: AtomicU64::new(0),
            stops: AtomicU64::new(0),
            stops_ns: AtomicU64::new(0),
            stops_in_window: AtomicU64::new(0),
            awake_at: AtomicU64::new(0),
            samples: zeros(),
            late: zeros(),
            is_known: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            closed: AtomicU64::new(now),
            windows: UnsafeCell::new(Windows {
                spent: [0; STATES],
                off: [0; STATES],
                early_spent: [0; STATES],
                early_off: [0; STATES],
                blocked: [0; STATES],
                waiting: Moved::NONE,
                none_running: Elapsed::new(now),
            }),
        }
    }

    /// Whether threads are watched.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Reads the limit of the process's control groups, unless already read. It is in several files, which
    /// must not delay a program's start. A fraction of a CPU is rounded up.
    pub fn read_limit(&self) {
        self.limit();
    }

    fn limit(&self) -> &Limit {
        self.limit.get_or_init(|| {
            let cgroups = Cgroups::calling_process();
            // Without a limit it is 0.
            let quota = cgroups.quota().map(|quota| quota.millicpus);
            if let Some(millicpus) = quota.filter(|millicpus| *millicpus > 0) {
                self.cpus.fetch_min(millicpus.div_ceil(1000), Relaxed);
            }
            Limit { before: cgroups.throttled(), cgroups }
        })
    }

    /// Returns the lowest limit of the control groups in thousandths of a CPU, and the cost of limits since
    /// their first reading.
    pub fn quota(&self) -> Option<(u64, Throttled)> {
        let Limit { cgroups, before } = self.limit();
        let quota = cgroups.quota().filter(|quota| quota.millicpus > 0)?;
        let (before, now) = (before.unwrap_or_default(), cgroups.throttled().unwrap_or_default());
        let cost = Throttled {
            periods: now.periods.saturating_sub(before.periods),
            ns: now.ns.saturating_sub(before.ns),
        };
        Some((quota.millicpus, cost))
    }

    /// The profile's own thread is asleep until `at`; at 0 it is awake.
    pub fn expect(&self, at: u64) {
        self.awake_at.store(at, Relaxed);
    }

    /// Whether so much sleep of a thread may be a stop of the process that is not known yet.
    fn may_be_stop(&self, sleep: u64, now: u64) -> bool {
        let at = self.awake_at.load(Relaxed);
        sleep >= MIN_STOP_NS && at > 0 && now.saturating_sub(at) >= MIN_STOP_NS
    }

    /// The process was stopped.
    pub fn count_stops(&self, stops: u64, ns: u64) {
        self.stops.fetch_add(stops, Relaxed);
        self.stops_ns.fetch_add(ns, Relaxed);
        self.stops_in_window.fetch_add(ns, Relaxed);
    }

    /// Number and time of the stops of the process, and the time in them of workers, or of all threads if no worker has any.
    pub fn stops(&self) -> (u64, u64, u64) {
        let stopped_workers: u64 = load(&self.stopped).iter().sum();
        let stopped_threads =
            if stopped_workers > 0 { stopped_workers } else { self.stopped_others.load(Relaxed) };
        (self.stops.load(Relaxed), self.stops_ns.load(Relaxed), stopped_threads)
    }

    /// Takes a stop out of the time of the state that the thread is in, or else of the one with most time. Returns its part of
    /// the thread's sleep.
    fn stop(&self, last: &mut Last, ns: u64, state: Option<State>, spent: &mut Sums) -> u64 {
        if ns == 0 {
            return 0;
        }
        let of = |state: State, spent: &Sums| spent.get(state as usize).copied().unwrap_or(0);
        let most = || State::ALL.into_iter().max_by_key(|state| of(*state, spent));
        let Some(state) = state.filter(|state| of(*state, spent) >= ns).or_else(most) else { return 0 };
        let ns = ns.min(of(state, spent));
        if let (Some(spent), Some(stopped)) =
            (spent.get_mut(state as usize), self.stopped.get(state as usize))
        {
            *spent -= ns;
            stopped.fetch_add(ns, Relaxed);
        }
        if state.is_useful() {
            last.stopped += ns;
        }
        ns
    }

    /// Run delay of workers in any state, nanoseconds; `None` if unknown.
    pub fn runnable_ns(&self) -> Option<u64> {
        self.is_known().then(|| load(&self.off).iter().sum())
    }

    /// CPUs that the process may use.
    pub fn cpus(&self) -> u64 {
        self.cpus.load(Relaxed).max(1)
    }

    /// Whether the kernel's sums could be read.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Relaxed)
    }

    /// A thread in this state was sampled so many nanoseconds after its timer expired. Async-signal-safe.
    pub fn sampled(&self, state: State, late_ns: u64) {
        let count = |counts: &[AtomicU64; STATES]| {
            counts.get(state as usize).map(|count| count.fetch_add(1, Relaxed));
        };
        count(&self.samples);
        if late_ns >= super::LATE_NS {
            count(&self.late);
        }
    }

    /// Moves time of a state from without a CPU to blocked.
    fn block_delayed(&self, state: Option<State>, ns: u64) {
        let Some(state) = state.map(|state| state as usize).filter(|_| ns > 0) else { return };
        if let (Some(off), Some(blocked)) = (self.off.get(state), self.blocked.get(state)) {
            take(off, ns);
            blocked.fetch_add(ns, Relaxed);
        }
    }

    /// Subtracts time counted as blocked at a thread's previous reading.
    fn unblock(&self, before: &mut Sums, mut ns: u64) {
        for (sum, before) in self.blocked.iter().zip(before) {
            let part = ns.min(*before);
            (*before, ns) = (*before - part, ns - part);
            take(sum, part);
        }
    }

    fn add(&self, spent: &Sums, off: &Sums, blocked: &Sums) {
        add(&self.spent, spent);
        add(&self.off, off);
        add(&self.blocked, blocked);
        self.is_known.store(true, Relaxed);
    }

    /// Times of a thread that has become a worker, from its begin in an earlier window on: they are not of the present one.
    fn add_early(&self, (from, until): (u64, u64), spent: &Sums, off: &Sums) {
        if self.early_until.compare_exchange(0, until, AcqRel, Relaxed).is_ok() {
            self.early_from.store(from, Relaxed);
        }
        add(&self.early_spent, spent);
        add(&self.early_off, off);
    }

    /// How likely a thread has no CPU, by state: as of two samples in each state that are late as often as all are.
    fn late(&self) -> [f64; STATES] {
        let (samples, late) = (load(&self.samples), load(&self.late));
        let sum = |counts: &Sums| counts.iter().sum::<u64>() as f64;
        let usual = (sum(&late) + 1.0) / (sum(&samples) + 2.0);
        core::array::from_fn(|index| {
            let of = |counts: &Sums| counts.get(index).copied().unwrap_or(0) as f64;
            (of(&late) + 2.0 * usual) / (of(&samples) + 2.0)
        })
    }

    /// Whether a handler closes the window now, of so many workers.
    pub fn is_due(&self, now: u64, workers: u64) -> bool {
        let shortest = MIN_WINDOW_NS * workers.div_ceil(THREADS).max(1);
        now.saturating_sub(self.closed.load(Relaxed)) >= shortest
    }

    /// Closes the window, after all threads were `read`, unless another thread is closing it.
    /// Async-signal-safe.
    pub fn close(&self, max_workers: u64, now: impl Fn() -> u64, read: impl FnOnce()) -> bool {
        if self.busy.swap(true, Acquire) {
            return false;
        }
        read();
        let now = now();
        let wall = now.saturating_sub(self.closed.swap(now, Relaxed));
        let wall = wall.saturating_sub(self.stops_in_window.swap(0, Relaxed));
        let (spent, off) = (load(&self.spent), load(&self.off));
        // SAFETY: this thread has set `busy`.
        let windows = unsafe { &mut *self.windows.get() };
        let since = |sums: &Sums, before: &Sums| -> Sums {
            let mut since = *sums;
            since.iter_mut().zip(before).for_each(|(sum, before)| *sum = sum.saturating_sub(*before));
            since
        };
        let (early_spent, early_off) = (load(&self.early_spent), load(&self.early_off));
        let early = [since(&early_spent, &windows.early_spent), since(&early_off, &windows.early_off)];
        let spent_since = since(&since(&spent, &windows.spent), &early[0]);
        let off_since = since(&since(&off, &windows.off), &early[1]);
        let mut none_running = none_running_ns(wall, &spent_since, &off_since);
        if windows.early_spent == [0; STATES] && early_spent != [0; STATES] {
            // Before, no other thread worked, as far as is known.
            let (from, until) = (self.early_from.load(Relaxed), self.early_until.load(Relaxed));
            let before = none_running_ns(until.saturating_sub(from), &early[0], &early[1]);
            none_running = (none_running + windows.none_running.add_early((from, until), before)).min(wall);
        }
        (windows.early_spent, windows.early_off) = (early_spent, early_off);
        windows.waiting.add(&estimate(wall, (max_workers, self.cpus()), &spent_since, &off_since));
        windows.none_running.add(now, none_running);
        (windows.spent, windows.off, windows.blocked) = (spent, off, load(&self.blocked));
        self.busy.store(false, Release);
        true
    }

    /// Time moved out of the states that it was counted for, until the last closed window.
    pub fn moved(&self) -> Moved {
        let moved = self.with_windows(|windows| {
            let mut moved = windows.waiting;
            let (out_of_cpu, blocked) = (own_delays(&windows.off), windows.blocked);
            moved.add(&Moved { out_of_cpu, blocked, ..Moved::NONE });
            moved.add(&Moved { out_of_cpu: load(&self.stopped), ..Moved::NONE });
            moved
        });
        moved.unwrap_or(Moved::NONE)
    }

    /// The time until `at` in which no thread with work had a CPU, as far as windows are closed: workers that had not begun, or
    /// had ended, lost it to the system.
    pub fn none_running_until(&self, at: u64) -> u64 {
        self.with_windows(|windows| windows.none_running.until(at)).unwrap_or(0)
    }

    fn with_windows<R>(&self, look: impl FnOnce(&Windows) -> R) -> Option<R> {
        // Held for microseconds, but in a handler that may have lost its CPU.
        for _ in 0..1000 {
            if !self.busy.swap(true, Acquire) {
                // SAFETY: this thread has set `busy`.
                let found = look(unsafe { &*self.windows.get() });
                self.busy.store(false, Release);
                return Some(found);
            }
            std::thread::sleep(core::time::Duration::from_micros(20));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread that begins the team is known as a worker late: it had no CPU for 180 of 200 ms.
    #[test]
    fn time_before_workers_are_known_is_not_of_the_window() {
        const MS: u64 = 1_000_000;
        let of = |state: State, ms: u64| {
            let mut sums = [0; STATES];
            book(&mut sums, state, ms * MS);
            sums
        };
        let observed = Observed::new(0, true);
        observed.close(1, || 100 * MS, || {});
        observed.close(
            1,
            || 200 * MS,
            || {
                let (spent, off) = (of(State::Serial, 200), of(State::Serial, 180));
                observed.add_early((0, 200 * MS), &spent, &off);
                observed.add(&spent, &off, &[0; STATES]);
            },
        );
        assert_eq!([100, 200].map(|ms| observed.none_running_until(ms * MS)), [90 * MS, 180 * MS]);
        // It works, and the other one waits for it.
        observed.close(
            1,
            || 300 * MS,
            || {
                let mut spent = of(State::ImplicitTask, 100);
                book(&mut spent, State::JoinBarrier, 100 * MS);
                observed.add(&spent, &of(State::ImplicitTask, 50), &[0; STATES]);
            },
        );
        assert_eq!(observed.none_running_until(300 * MS), 230 * MS);
        let (out_of_cpu, over) = observed.moved().of(State::JoinBarrier);
        assert_eq!((out_of_cpu, over), (50 * MS, 0));
        assert_eq!(observed.moved().of(State::Serial), (180 * MS, 0));
    }
}
