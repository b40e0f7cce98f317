//! Threads that begin and end to count.

use core::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::Arc;

use taskscope_record::own_threads;

use super::housekeeping;
use super::run::{Counted, Run, current};

static STARTING: AtomicU32 = AtomicU32::new(0);

/// The run of this process; begins if it has not.
fn process_run() -> &'static Run {
    let pid = std::process::id();
    loop {
        if let Some(run) = current().filter(|run| run.is_of_this_process()) {
            return run;
        }
        let before = STARTING.load(Acquire);
        // Threads that were starting in the parent do not start here.
        if before != pid && STARTING.compare_exchange(before, pid, AcqRel, Relaxed).is_ok() {
            let run: &'static Run = Box::leak(Box::new(Run::new(pid)));
            run.make_current();
            housekeeping::start(run);
            return run;
        }
        std::thread::yield_now();
    }
}

/// Begins the calling thread's counting.
pub fn begin() -> Arc<Counted> {
    process_run().begin_thread()
}

/// Ends a thread's counting: its counts are added to the run's.
pub fn end(counted: &Arc<Counted>) {
    if let Some(run) = current() {
        run.end_thread(counted);
        if own_threads::initial_leaves() {
            run.housekeeping.wake();
        }
    }
}
