//! Profile of one process: its threads, and the counts of ended threads.
//!
//! A forked child has a run of its own, which begins with its first thread: inherited counts are its
//! parent's, and inherited locks may be held for ever.

use core::sync::atomic::{AtomicPtr, Ordering::*};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use taskscope_profile::{FrameKind, Metric, Tree};
use taskscope_record::nap::nap_for;
use taskscope_record::{clock, os_time, process};

use super::account::{Account, Reading, Standing};
use super::contexts::body_of;
use super::counts::{Counts, merge_row};
use super::double_buffer::DoubleBuffer;
use super::files::Files;
use super::housekeeper::Housekeeping;
use super::idleness::{ByEpoch, Late};
use super::integrals::EPOCHS;
use super::no_cpu::{self, Moved, Observed, Share};
use super::rows::Rows;
use super::samples::SampleTree;
use super::states::{STATES, State, Sums, book};
use super::teams;
use super::thread_waits::{Ring, ThreadWaits};
use super::workers::Workers;
use crate::worker_count;

/// Paths of a process; beyond, values count further out.
const MAX_PATHS: usize = 1 << 20;

/// Counts of one thread.
pub struct Counted {
    /// Time by state. In memory that is never freed, since other threads read it.
    pub account: &'static Account,
    /// Counts of the handler.
    pub samples: DoubleBuffer<SampleTree>,
    /// Counts of callbacks.
    pub counts: DoubleBuffer<Counts>,
    /// Counts of callbacks, by context.
    pub rows: Rows,
    /// Its waits for other threads.
    pub waits: Arc<Ring>,
}

impl Counted {
    /// A task was created in this context.
    pub fn created(&self, context: u32) {
        // When contexts run out, tasks have a region's context.
        match self.rows.of(context).filter(|_| body_of(context) != FrameKind::Region) {
            Some(row) => row.created(),
            None => self.counts.count(|counts| counts.add(context, Metric::TASKS, 1)),
        }
    }

    /// A region of this context began.
    #[inline(always)]
    pub fn begun(&self, context: u32) {
        match self.rows.of(context).filter(|_| body_of(context) == FrameKind::Region) {
            Some(row) => row.created(),
            None => self.counts.count(|counts| counts.add(context, Metric::REGIONS, 1)),
        }
    }

    /// A task of this context ran for so long.
    #[inline(always)]
    pub fn ran(&self, context: u32, ns: u64) {
        match self.rows.of(context) {
            Some(row) => row.ran(ns),
            None => self.counts.count(|counts| counts.add(context, Metric::TASK_TIME, ns)),
        }
    }

    fn merge_rows(&self, merged: &mut Tree) {
        self.rows.collect(|context, sums, codeptr| merge_row(merged, context, sums, codeptr));
    }
}

/// Counts of all threads, merged.
pub struct Merged {
    pub tree: Tree,
    /// Threads seen.
    pub threads: u64,
    /// Time by state of workers that have ended.
    pub ended: Sums,
    /// The time before they began and after they ended in which no thread with work had a CPU.
    pub absent: Sums,
    /// For how long these were not there before, by epoch.
    pub late: ByEpoch,
    /// Number of workers, those that have ended included.
    pub workers: u64,
    /// Whether the last word has been written.
    pub is_written: bool,
}

/// The profile of a process.
pub struct Run {
    pid: u32,
    /// When it began, nanoseconds of the recorder's clock.
    pub began: u64,
    /// Directory, and host and number of the process.
    pub place: Option<(PathBuf, String)>,
    files: OnceLock<Files>,
    threads: Mutex<Vec<Arc<Counted>>>,
    merged: Mutex<Merged>,
    /// Held during collection and writing.
    pub writing: Mutex<()>,
    /// Its threads and workers.
    pub workers: Workers,
    /// Their time without a CPU.
    pub no_cpu: Observed,
    pub housekeeping: Housekeeping,
    /// Waits of its threads for each other.
    pub thread_waits: ThreadWaits,
}

static RUN: AtomicPtr<Run> = AtomicPtr::new(core::ptr::null_mut());

/// The run of this process, if it has begun.
pub fn current() -> Option<&'static Run> {
    // SAFETY: null, or a leaked box.
    unsafe { RUN.load(Acquire).as_ref() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the calling thread's time without a CPU at its sample, and at times that of all workers. `late_ns`
/// is the delay of the sample, if known. Returns the parts of its work without a CPU, and blocked, since the previous
/// sample. Async-signal-safe, while no state of the thread changes.
pub fn sample_no_cpu(counted: &Counted, late_ns: Option<u64>) -> Option<Share> {
    let run = current().filter(|run| run.no_cpu.is_wanted())?;
    let account = counted.account;
    if let Some((state, late_ns)) = account.activity(teams::over_since).zip(late_ns) {
        run.no_cpu.sampled(state, late_ns);
    }
    let share = run.read_no_cpu(account, true);
    if run.no_cpu.is_due(clock::now(), run.workers.used()) {
        run.close_window();
    }
    share
}

/// Time of all workers.
pub struct Totals {
    /// When: nanoseconds since the run began.
    pub wall: u64,
    pub workers: u64,
    /// By state, as a trace's ledger books it: each worker has a state from the begin of the run on.
    pub sums: Sums,
    /// Time moved from other states to states without a CPU, and to the blocked one.
    pub moved: Moved,
    /// The part of it before workers began, by epoch.
    pub late: Vec<Late>,
}

impl Totals {
    /// Time of a state before some was taken from it.
    pub fn whole(&self, state: State) -> u64 {
        self.sums.get(state as usize).copied().unwrap_or(0) + self.moved.all_of(state)
    }
}

fn add<const N: usize>(sums: &mut [u64; N], more: &[u64; N]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl Run {
    /// The run of this process, which begins now.
    pub fn new(pid: u32) -> Run {
        worker_count::begin();
        let began = clock::now();
        Run {
            pid,
            began,
            place: process::place(),
            files: OnceLock::new(),
            threads: Mutex::default(),
            merged: Mutex::new(Merged {
                tree: Tree::growing_to(MAX_PATHS),
                threads: 0,
                ended: [0; STATES],
                absent: [0; STATES],
                late: [0; EPOCHS],
                workers: 0,
                is_written: false,
            }),
            writing: Mutex::default(),
            workers: Workers::new(began),
            no_cpu: Observed::new(began, os_time::is_wanted()),
            housekeeping: Housekeeping::default(),
            thread_waits: ThreadWaits::default(),
        }
    }

    /// Makes it the run of this process.
    pub fn make_current(&'static self) {
        self.workers.make_current();
        RUN.store(core::ptr::from_ref(self).cast_mut(), Release);
    }

    /// Whether it is not that of a parent.
    pub fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Its files; names are chosen before the first write.
    pub fn files(&self) -> Option<&Files> {
        let (directory, name) = self.place.as_ref()?;
        Some(self.files.get_or_init(|| Files::choose(directory, name)))
    }

    /// Begins a thread's counting.
    pub fn begin_thread(&self) -> Arc<Counted> {
        let samples = DoubleBuffer::new(SampleTree::without_memory(), SampleTree::without_memory());
        samples.count(SampleTree::prepare);
        let counted = Arc::new(Counted {
            account: self.workers.new_account(self.no_cpu.is_wanted()),
            samples,
            counts: DoubleBuffer::new(Counts::new(), Counts::without_memory()),
            rows: Rows::new(),
            waits: self.thread_waits.new_ring(),
        });
        lock(&self.threads).push(counted.clone());
        counted
    }

    /// Ends a thread's counting: its counts are added to the run's.
    pub fn end_thread(&self, counted: &Arc<Counted>) {
        self.read_no_cpu(counted.account, true);
        counted.waits.end(clock::now());
        if self.housekeeping.has_ended() {
            // Nobody else takes the rings' events out, and frees those of ended threads.
            self.thread_waits.round(clock::now());
        }
        let _writing = lock(&self.writing);
        lock(&self.threads).retain(|known| !Arc::ptr_eq(known, counted));
        // Until its account is free: `totals` finds the thread as one that lives or as one that has ended.
        let mut merged = lock(&self.merged);
        // SAFETY: the thread is at its end, and its handler does not run again.
        unsafe {
            counted.samples.both(|samples| samples.merge_into(&mut merged.tree));
            counted.counts.both(|counts| counts.merge_into(&mut merged.tree));
        }
        counted.merge_rows(&mut merged.tree);
        merged.threads += 1;
        let now = clock::now();
        let reading = counted.account.read(now, teams::over_since);
        if self.counts(&reading) {
            merged.workers += 1;
            add(&mut merged.ended, &reading.sums);
            book(&mut merged.ended, State::NotStarted, reading.began.saturating_sub(self.began));
            add(&mut merged.late, &self.workers.pool.late(reading.began));
            // Grows with the run: the rest up to the run's end is added when that is known.
            book(&mut merged.ended, State::Ended, now.saturating_sub(self.began).wrapping_neg());
            let [before, until_now] = [reading.began, now].map(|at| self.no_cpu.none_running_until(at));
            book(&mut merged.absent, State::NotStarted, before);
            book(&mut merged.absent, State::Ended, until_now.wrapping_neg());
        }
        self.workers.free_account(counted.account);
    }

    /// CPUs that the process may use, in thousandths; 0 if times without a CPU are not wanted.
    pub fn millicpus(&self) -> u64 {
        let mask_millicpus = 1000 * self.no_cpu.cpus();
        let all = self.no_cpu.quota().map_or(mask_millicpus, |(quota, _)| quota.min(mask_millicpus));
        if self.no_cpu.is_wanted() { all } else { 0 }
    }

    /// Whether an account belongs to a worker. A process without OpenMP activity has one, its initial thread.
    fn counts(&self, reading: &Reading) -> bool {
        match reading.standing {
            Standing::Worker => true,
            Standing::Initial => !self.workers.pool.has_begun(),
            Standing::Other => false,
        }
    }

    /// Reads a thread's time without a CPU; with `is_own`, that of the calling one. Async-signal-safe; on the thread itself not
    /// while its account changes.
    fn read_no_cpu(&self, account: &Account, is_own: bool) -> Option<Share> {
        no_cpu::read(is_own, account, (clock::now, teams::over_since), &self.no_cpu, |reading| {
            self.counts(reading)
        })
    }

    /// The process was stopped at these times.
    pub fn was_stopped(&self, stops: &[[u64; 2]]) {
        let ns = stops.iter().map(|[begin, end]| end.saturating_sub(*begin)).sum();
        if ns == 0 {
            return;
        }
        self.thread_waits.was_stopped(stops);
        self.no_cpu.count_stops(stops.len() as u64, ns);
        for account in self.workers.accounts() {
            let read = || {
                let times = (clock::now, teams::over_since);
                no_cpu::read_stopped(ns, account, times, &self.no_cpu, |reading| self.counts(reading))
            };
            // A handler that reads may have lost its CPU.
            for _ in 0..100 {
                if read() {
                    break;
                }
                nap_for(50_000);
            }
        }
    }

    /// Closes the window for workers' time without a CPU. Async-signal-safe.
    pub fn close_window(&self) {
        if !self.no_cpu.is_wanted() {
            return;
        }
        self.no_cpu.close(worker_count::most(), clock::now, || {
            for account in self.workers.accounts() {
                self.read_no_cpu(account, false);
            }
        });
    }

    /// Workers that have not begun yet, or have ended, wait as others do: they have lost the time in which none of those with work
    /// had a CPU (`out_of_cpu`). With more workers than CPUs they could not all work either: beside one that works, the other CPUs
    /// are free.
    fn absent(&self, sums: &Sums, out_of_cpu: Sums) -> Moved {
        let mut moved = Moved { out_of_cpu, ..Moved::NONE };
        let (workers, cpus) = (worker_count::most(), self.no_cpu.cpus());
        if workers > cpus && self.no_cpu.is_known() {
            for state in [State::NotStarted, State::Ended] {
                let index = state as usize;
                if let (Some(moved), Some(ns)) = (moved.oversubscribed.get_mut(index), sums.get(index)) {
                    let ns = ns.saturating_sub(out_of_cpu.get(index).copied().unwrap_or(0));
                    *moved = (u128::from(ns) * u128::from(workers - cpus) / u128::from(workers - 1)) as u64;
                }
            }
        }
        moved
    }

    /// Workers' time by state until now.
    pub fn totals(&self) -> Totals {
        self.no_cpu.read_limit();
        self.close_window();
        let merged = lock(&self.merged);
        // While it is held no thread ends: none has ended after this moment.
        let now = clock::now();
        let (mut sums, mut late, mut workers) = (merged.ended, merged.late, merged.workers);
        let mut absent = merged.absent;
        book(&mut absent, State::Ended, workers * self.no_cpu.none_running_until(now));
        let wall = now.saturating_sub(self.began);
        book(&mut sums, State::Ended, workers * wall);
        for account in self.workers.accounts() {
            let reading = account.read(now, teams::over_since);
            if self.counts(&reading) {
                workers += 1;
                book(&mut sums, State::NotStarted, reading.began.saturating_sub(self.began));
                book(&mut absent, State::NotStarted, self.no_cpu.none_running_until(reading.began));
                add(&mut sums, &reading.sums);
                add(&mut late, &self.workers.pool.late(reading.began));
            }
        }
        drop(merged);
        let mut moved = self.no_cpu.moved();
        moved.add(&self.absent(&sums, absent));
        moved.take_from(&mut sums);
        Totals { wall, workers, sums, moved, late: self.workers.pool.all_late(&late, now) }
    }

    /// Collects the threads' counts. A buffer that is being written is left for the next round.
    pub fn collect(&self) {
        let threads: Vec<Arc<Counted>> = lock(&self.threads).clone();
        for counted in &threads {
            counted.samples.swap(SampleTree::prepare);
            counted.counts.swap(|counts| *counts = Counts::new());
        }
        let fenced = taskscope_record::fence_all_threads();
        let mut merged = lock(&self.merged);
        for counted in &threads {
            counted.merge_rows(&mut merged.tree);
        }
        for counted in threads.iter().filter(|_| fenced) {
            // A thread inside for longer than this has lost its CPU; its buffer is drained in a later round.
            for _ in 0..20 {
                if counted.samples.drain_inactive(|samples| samples.merge_into(&mut merged.tree)) {
                    break;
                }
                nap_for(50_000);
            }
            for _ in 0..20 {
                if counted.counts.drain_inactive(|counts| counts.merge_into(&mut merged.tree)) {
                    break;
                }
                nap_for(50_000);
            }
        }
    }

    /// The counts merged so far.
    pub fn merged(&self) -> MutexGuard<'_, Merged> {
        lock(&self.merged)
    }

    /// Threads that live.
    pub fn living(&self) -> u64 {
        lock(&self.threads).len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_during_a_query_is_ended_or_alive() {
        for _ in 0..500 {
            let run = Run::new(std::process::id());
            let counted = run.begin_thread();
            counted.account.set_standing(Standing::Worker);
            let together = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    together.wait();
                    run.end_thread(&counted);
                });
                together.wait();
                for _ in 0..50 {
                    let totals = run.totals();
                    let longest = totals.sums.into_iter().max();
                    assert!(totals.workers == 1 && longest <= Some(totals.wall), "{:?}", totals.sums);
                }
            });
        }
    }
}
