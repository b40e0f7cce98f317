//! Times in which a whole process was stopped by a signal, and its threads' blocked time in them.
//!
//! The recorder knows when its own thread was kept from running. The process was stopped then if all its other threads were off
//! their CPUs meanwhile, blocked for most of it; else that thread waited for one of them. A stop wakes sleeping threads, too, as it
//! begins and as it ends: one that slept before it and long after it was not stopped.

use taskscope_execution::{OsTimes, RunDelay, join_intervals};

/// A thread's times off the CPU, and its lifetime.
pub(crate) struct Watched {
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Times off the CPU.
    pub times: OsTimes,
}

/// Maximum running time of a thread in a stop: until the signal has reached it, and its system call has returned.
const MAX_RUNNING_NS: u64 = 1_000_000;
/// In long stops: at least so many nanoseconds of the stop per nanosecond of running.
const STOP_PER_RUNNING: u64 = 20;
/// A stopped thread has a CPU within this time after the stop, on a busy machine too, as it was woken.
const MAX_WAKE_NS: u64 = 100_000_000;

/// Finds the stops of the process among the times in which the recorder's thread was `kept` from running. Blocked time
/// of its threads in stops becomes runnable time: they were able to run.
pub(crate) fn apply_stops(kept: Vec<(u64, u64)>, threads: &mut [Watched]) -> Vec<(u64, u64)> {
    if kept.is_empty() {
        return kept;
    }
    let mut stops = kept;
    join_intervals(&mut stops);
    for thread in threads.iter_mut() {
        thread.times.blocked.sort_unstable();
        thread.times.runnable.sort_unstable();
    }
    stops.retain(|stop| {
        let mut known = threads.iter().filter_map(|thread| was_off(thread, *stop)).peekable();
        known.peek().is_some() && known.all(|was_off| was_off)
    });
    if !stops.is_empty() {
        threads.iter_mut().for_each(|thread| free(thread, &stops));
    }
    stops
}

/// Whether the thread was off its CPU during a stop, and blocked for most of it; `None` if it did not live then.
fn was_off(thread: &Watched, (start, end): (u64, u64)) -> Option<bool> {
    let (start, end) = (start.max(thread.start), end.min(thread.end));
    let all = end.checked_sub(start).filter(|all| *all > 0)?;
    let within = |times: &[(u64, u64)]| -> u64 {
        let first = times.partition_point(|time| time.1 <= start);
        let inside = times[first..].iter().take_while(|time| time.0 < end);
        total(inside.map(|time| time.1.min(end).saturating_sub(time.0.max(start))))
    };
    let in_sums = |sums: &[RunDelay]| total(sums.iter().map(|sum| taken(sum, start, end)));
    let times = &thread.times;
    let blocked = within(&times.blocked).saturating_add(in_sums(&times.blocked_sums));
    let runnable = within(&times.runnable).saturating_add(in_sums(&times.run_delays));
    let off = blocked.saturating_add(runnable);
    let running = MAX_RUNNING_NS.max(all / STOP_PER_RUNNING);
    let is_off = blocked >= all.div_ceil(2) && off.saturating_add(running) >= all;
    Some(is_off && !slept_through(&times.blocked, (start, end)))
}

/// Whether one of a thread's blocked times, by its context switches, began before a stop and lasted until long after it.
fn slept_through(blocked: &[(u64, u64)], (start, end): (u64, u64)) -> bool {
    let first = blocked.partition_point(|time| time.1 <= end.saturating_add(MAX_WAKE_NS));
    blocked.get(first).is_some_and(|time| time.0.saturating_add(MAX_RUNNING_NS) < start)
}

/// Their sum; those of a damaged stream may overlap, and be more than all time.
fn total(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}

/// The most of a sum that can have been within an interval.
fn taken(sum: &RunDelay, start: u64, end: u64) -> u64 {
    sum.ns.min(sum.end.min(end).saturating_sub(sum.start.max(start)))
}

/// Makes a thread's blocked time in stops runnable time.
fn free(thread: &mut Watched, stops: &[(u64, u64)]) {
    let (first, last) = (thread.start, thread.end);
    let times = &mut thread.times;
    let mut blocked = Vec::with_capacity(times.blocked.len());
    for (mut start, end) in std::mem::take(&mut times.blocked) {
        let next = stops.partition_point(|stop| stop.1 <= start);
        for stop in stops[next..].iter().take_while(|stop| stop.0 < end) {
            let freed = (stop.0.max(start), stop.1.min(end));
            if start < freed.0 {
                blocked.push((start, freed.0));
            }
            times.runnable.push(freed);
            start = freed.1;
        }
        if start < end {
            blocked.push((start, end));
        }
    }
    times.blocked = blocked;
    for sum in &mut times.blocked_sums {
        let next = stops.partition_point(|stop| stop.1 <= sum.start);
        for stop in stops[next..].iter().take_while(|stop| stop.0 < sum.end) {
            let ns = taken(sum, stop.0, stop.1);
            if ns > 0 {
                sum.ns -= ns;
                let end = stop.1.min(sum.end).min(last);
                times.runnable.push((end.saturating_sub(ns).max(first), end));
            }
        }
    }
    times.blocked_sums.retain(|sum| sum.ns > 0);
    times.runnable.retain(|time| time.0 < time.1);
    join_intervals(&mut times.runnable);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn thread(blocked: &[(u64, u64)], runnable: &[(u64, u64)]) -> Watched {
        let ms = |times: &[(u64, u64)]| times.iter().map(|time| (time.0 * MS, time.1 * MS)).collect();
        let times = OsTimes { blocked: ms(blocked), runnable: ms(runnable), ..OsTimes::default() };
        Watched { start: 0, end: 1000 * MS, times }
    }

    fn stops(kept: &[(u64, u64)], threads: &mut [Watched]) -> Vec<(u64, u64)> {
        let kept = kept.iter().map(|time| (time.0 * MS, time.1 * MS)).collect();
        apply_stops(kept, threads).into_iter().map(|time| (time.0 / MS, time.1 / MS)).collect()
    }

    #[test]
    fn a_stop_is_off_the_cpu_for_all_threads_and_their_blocked_time_becomes_runnable() {
        // One that ran before, one that sleeps all the time, one that had no CPU at first.
        let mut threads = [
            thread(&[(100, 160)], &[]),
            thread(&[(50, 100), (100, 160), (160, 300)], &[]),
            thread(&[(120, 160), (400, 500)], &[(90, 120)]),
        ];
        assert_eq!(stops(&[(100, 160)], &mut threads), [(100, 160)]);
        let blocked = |row: usize| -> u64 {
            threads[row].times.blocked.iter().map(|time| (time.1 - time.0) / MS).sum()
        };
        assert_eq!([blocked(0), blocked(1), blocked(2)], [0, 190, 100]);
        assert_eq!(threads[2].times.runnable, [(90 * MS, 160 * MS)]);
    }

    #[test]
    fn a_recorder_that_waits_for_a_thread_is_no_stop() {
        // A thread runs; has no CPU; no thread is known.
        assert!(stops(&[(100, 160)], &mut [thread(&[(100, 160)], &[]), thread(&[], &[])]).is_empty());
        let mut runnable = [thread(&[(100, 160)], &[]), thread(&[], &[(90, 170)])];
        assert!(stops(&[(100, 160)], &mut runnable).is_empty());
        assert_eq!(runnable[0].times.blocked, [(100 * MS, 160 * MS)]);
        assert!(stops(&[(100, 160)], &mut []).is_empty());
    }

    /// A server's threads sleep; another one, which is not known yet, held a lock that the recorder's thread waited for.
    #[test]
    fn threads_that_sleep_on_were_not_stopped() {
        let sleepers = || [thread(&[(50, 108), (108, 300)], &[]), thread(&[(20, 900)], &[])];
        assert!(stops(&[(100, 108)], &mut sleepers()).is_empty());
        assert_eq!(sleepers()[1].times.blocked, [(20 * MS, 900 * MS)]);
        // Woken to be stopped, and at the end of the stop, by a busy CPU.
        let mut stopped = [thread(&[(50, 101), (101, 150)], &[]), thread(&[(20, 160), (160, 900)], &[])];
        assert_eq!(stops(&[(100, 108)], &mut stopped), [(100, 108)]);
    }

    #[test]
    fn stops_in_sums_are_taken_from_them() {
        let summed = |ns: u64| {
            let blocked_sums = vec![RunDelay { start: 95 * MS, end: 165 * MS, ns: ns * MS }];
            Watched { start: 0, end: 1000 * MS, times: OsTimes { blocked_sums, ..OsTimes::default() } }
        };
        let mut threads = [summed(64), summed(60)];
        assert_eq!(stops(&[(100, 160)], &mut threads), [(100, 160)]);
        assert_eq!(threads[0].times.runnable, [(100 * MS, 160 * MS)]);
        assert_eq!(threads[0].times.blocked_sums[0].ns, 4 * MS);
        assert!(threads[1].times.blocked_sums.is_empty());
        assert!(stops(&[(100, 160)], &mut [summed(30)]).is_empty());
    }

    #[test]
    fn times_that_overlap_do_no_harm() {
        let mut threads = [thread(&[(0, 100), (1, 90), (10, 20)], &[])];
        assert_eq!(stops(&[(50, 60)], &mut threads), [(50, 60)]);
    }
}
