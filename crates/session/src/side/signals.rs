//! Times without a CPU that the recorder's own signals have caused.
//!
//! ```text
//!   thread  ── blocked ──┤ no CPU ┤ handler ├── blocked ──     a signal of a sample, within one system call
//!   thread  ── blocked ────────────────────────────────────     without a recorder
//! ```
//! A sample by the time that passes wakes a thread that sleeps in a system call, and the thread sleeps again. The recorder marks such
//! samples ([`flag::IN_SYSTEM_CALL`]). On a busy machine the thread waits for a CPU before its handler runs; without the signal it had no
//! use for one.

use taskscope_event::models::samples::flag;
use taskscope_execution::samples::Sample;
use taskscope_execution::{OsTimes, RunDelay};

/// The longest time on a CPU between two times of sleep that is the handler's alone, nanoseconds.
const MAX_HANDLER_NS: u64 = 500_000;

/// Turns times without a CPU into blocked time if a signal of a sample woke the thread, and it slept again at once. `samples` are those of
/// the thread, in order; it ends at `end`.
pub(super) fn sleep_through_signals(times: &mut OsTimes, samples: &[Sample], end: u64) {
    let wakes = |sample: &&Sample| sample.flags & flag::IN_SYSTEM_CALL != 0;
    let woken: Vec<u64> = samples.iter().filter(wakes).map(|sample| sample.at).collect();
    if woken.is_empty() {
        return;
    }
    times.runnable.sort_unstable();
    times.blocked.sort_unstable();
    let mut added = Vec::new();
    let (mut next, mut sample) = (0, 0);
    let mut is_own = vec![false; times.runnable.len()];
    for (row, (_, from)) in times.blocked.iter().enumerate() {
        let until = times.blocked.get(row + 1).map_or(end, |(start, _)| *start);
        next += times.runnable[next..].partition_point(|(start, _)| start < from);
        let count = times.runnable[next..].partition_point(|(_, end)| *end <= until);
        let between = &times.runnable[next..next + count];
        sample += woken[sample..].partition_point(|at| at < from);
        let is_woken = woken.get(sample).is_some_and(|at| *at <= until);
        let without: u64 = between.iter().map(|(start, end)| end.saturating_sub(*start)).sum();
        let ran = until.saturating_sub(*from).saturating_sub(without);
        if is_woken && ran <= MAX_HANDLER_NS {
            added.extend_from_slice(between);
            is_own[next..next + count].fill(true);
        }
        next += count;
    }
    let mut row = is_own.into_iter();
    times.runnable.retain(|_| !row.next().unwrap_or(false));
    times.blocked.extend(added);
    // Of sums over periods it is not known when the thread slept: those in which it was always found asleep.
    let OsTimes { run_delays, blocked_sums, .. } = times;
    run_delays.retain(|delay| {
        let first = samples.partition_point(|sample| sample.at <= delay.start);
        let count = samples[first..].partition_point(|sample| sample.at <= delay.end);
        let met = &samples[first..first + count];
        let is_own = !met.is_empty() && met.iter().all(|sample| wakes(&sample));
        if is_own {
            add(blocked_sums, *delay);
        }
        !is_own
    });
}

/// Adds a sum to that of the same period, or as one of its own.
fn add(sums: &mut Vec<RunDelay>, delay: RunDelay) {
    let at = sums.partition_point(|sum| sum.end < delay.end);
    match sums.get_mut(at).filter(|sum| sum.end == delay.end) {
        Some(sum) => {
            sum.start = sum.start.min(delay.start);
            sum.ns = sum.ns.saturating_add(delay.ns);
        }
        None => sums.insert(at, delay),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::samples::NewSample;
    use taskscope_execution::{ExecutionBuilder, Observer};

    const MS: u64 = 1_000_000;

    /// Samples of one thread: their times, and whether the signal woke it in a system call.
    fn samples(of: &[(u64, bool)]) -> Vec<Sample> {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let thread = builder.add_thread(process, 1);
        for (at, is_woken) in of {
            let flags = if *is_woken { flag::IN_SYSTEM_CALL } else { 0 };
            builder.event(thread, *at);
            builder.sample(&NewSample {
                thread,
                at: *at,
                weight_ns: 10 * MS,
                flags,
                state: 0,
                levels: &[],
                addresses: &[1],
            });
        }
        builder.finish().samples.rows
    }

    #[test]
    fn a_thread_that_signals_wake_in_one_call_is_blocked() {
        // Signals at 10 and 20 ms, a CPU 8 ms later, and 0.1 ms for the handler. The program wakes the thread at 40 ms, and it runs.
        let times = |blocked: &[(u64, u64)]| OsTimes {
            runnable: vec![(10 * MS, 18 * MS), (20 * MS, 28 * MS), (40 * MS, 45 * MS)],
            blocked: blocked.to_vec(),
            ..OsTimes::default()
        };
        let blocked = [(0, 10 * MS), (18 * MS + 100_000, 20 * MS), (28 * MS + 100_000, 40 * MS)];
        let mut own = times(&blocked);
        let at = samples(&[(18 * MS + 10, true), (28 * MS + 10, true), (48 * MS, false)]);
        sleep_through_signals(&mut own, &at, 60 * MS);
        assert_eq!(own.runnable, [(40 * MS, 45 * MS)]);
        own.blocked.sort_unstable();
        let all = [blocked[0], (10 * MS, 18 * MS), blocked[1], (20 * MS, 28 * MS), blocked[2]];
        assert_eq!(own.blocked, all);
        // A thread that runs for long after the signal had use for a CPU.
        let mut own = times(&[(0, 10 * MS)]);
        sleep_through_signals(&mut own, &at, 60 * MS);
        assert_eq!((own.runnable.len(), own.blocked.len()), (3, 1));
        // So had one that no signal has woken.
        let mut own = times(&blocked);
        sleep_through_signals(&mut own, &samples(&[(18 * MS + 10, false), (28 * MS + 10, false)]), 60 * MS);
        assert_eq!((own.runnable.len(), own.blocked.len()), (3, 3));
    }

    #[test]
    fn sums_of_periods_with_woken_samples_alone_are_blocked() {
        let sum = |start: u64, ns: u64| RunDelay { start: start * MS, end: (start + 10) * MS, ns: ns * MS };
        let mut times = OsTimes {
            run_delays: vec![sum(0, 8), sum(10, 7), sum(20, 6), sum(30, 5)],
            blocked_sums: vec![sum(0, 2), sum(20, 1)],
            ..OsTimes::default()
        };
        let at = samples(&[(5 * MS, true), (15 * MS, true), (22 * MS, true), (28 * MS, false)]);
        sleep_through_signals(&mut times, &at, 40 * MS);
        assert_eq!(times.run_delays, [sum(20, 6), sum(30, 5)]);
        assert_eq!(times.blocked_sums, [sum(0, 10), sum(10, 7), sum(20, 1)]);
    }
}
