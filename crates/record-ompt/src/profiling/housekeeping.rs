//! The profile's own thread: collects the threads' counts, and writes the profile and the totals so far, so a
//! killed process leaves the state of the last round.
//!
//! It also writes the last profile for a thread that ends the process by `_exit`. That may be in a signal
//! handler, or between `fork` and the end of a child, when nothing may be allocated or locked: the thread
//! only sends a request and waits.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use taskscope_profile::FIRST_MS;
use taskscope_record::clock;
use taskscope_record::own_threads::{self, OwnThread};

use super::live;
use super::no_cpu::StopWatch;
use super::run::{Run, current};
use super::thread_waits;
use super::write::write;
use crate::sampler::{Clock, code_map, now};

/// The first round comes after this.
const MIN_PAUSE: Duration = Duration::from_millis(FIRST_MS);
/// Maximum pause between two rounds, if rounds are short.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Rounds take no larger part of a CPU than this.
const PART_OF_CPU: u32 = 250;

/// Starts it; without it there is a profile at the end only.
pub fn start(run: &'static Run) {
    if !own_threads::may_start() {
        return run.housekeeping.end();
    }
    own_threads::ends_by(|| current()?.housekeeping.give_way());
    let started = own_threads::start(c"taskscope-profile", 256 << 10, || keep_house(run));
    if started.is_none() {
        run.housekeeping.end();
    }
    run.housekeeping.set_thread(started);
}

fn write_for_leaver(run: &Run) {
    run.housekeeping.charge_leaver();
    write(run, true);
    run.housekeeping.last_is_written();
}

fn keep_house(run: &Run) {
    let own = OwnThread::begin();
    let (began, interval) = (Instant::now(), live::interval());
    let watch = RefCell::new(StopWatch::begin(run.no_cpu.is_wanted()));
    run.no_cpu.read_limit();
    run.thread_waits.set_cpus(run.millicpus());
    let mut took = Duration::ZERO;
    loop {
        // A requested interval is kept; otherwise rounds become rarer.
        let pause = interval.unwrap_or_else(|| pause_after(began.elapsed(), took));
        let meanwhile = || {
            run.thread_waits.round(clock::now());
            let round = run.thread_waits.is_used().then_some(thread_waits::ROUND);
            round.into_iter().chain(watch.borrow().nap()).min()
        };
        run.housekeeping.sleep(&own, pause, meanwhile, |length| nap(run, &mut watch.borrow_mut(), length));
        if run.housekeeping.has_ended() {
            return;
        }
        if run.housekeeping.is_last_asked_for() {
            return write_for_leaver(run);
        }
        let before = now(Clock::Cpu);
        // A program between regions enters no callback that would check for loaded modules.
        code_map::refresh_if_suspected();
        write(run, false);
        if interval.is_some() {
            live::write_line(run);
        }
        took = Duration::from_nanos(now(Clock::Cpu).saturating_sub(before));
    }
}

/// Sleeps until it is woken, for this long at most.
fn nap(run: &Run, watch: &mut StopWatch, length: Duration) {
    watch.nap_begins(length);
    run.no_cpu.expect(clock::now().saturating_add(length.as_nanos() as u64));
    run.housekeeping.nap(length);
    run.was_stopped(watch.nap_ends());
    run.no_cpu.expect(0);
}

/// Returns the pause until the next round, by the age of the run and the duration of the last round: until
/// the age has doubled, because frequent rounds in a short run would be noticeable when all CPUs work.
fn pause_after(age: Duration, took: Duration) -> Duration {
    age.clamp(MIN_PAUSE, MAX_PAUSE).max(took * PART_OF_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_lost_and_rounds_are_few() {
        let (mut age, mut rounds) = (Duration::ZERO, 0);
        while age < Duration::from_secs(3600) {
            let pause = pause_after(age, Duration::from_micros(400));
            assert!(pause <= MIN_PAUSE.max(age) && pause <= MAX_PAUSE);
            (age, rounds) = (age + pause, rounds + 1);
        }
        assert!((360..380).contains(&rounds), "{rounds} in an hour");
        let pause_after_long_round = |age| pause_after(Duration::from_secs(age), Duration::from_millis(100));
        assert_eq!([1, 100].map(pause_after_long_round), [Duration::from_secs(25); 2]);
    }
}
