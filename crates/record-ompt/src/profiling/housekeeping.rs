//! A thread of the profile's own: collects what threads have counted, writes the profile and the totals
//! so far, so that a process that is killed leaves what the last round knew.

use core::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use super::live;
use super::run::Run;
use super::write::write;

/// The first rounds come early: short runs are killed too.
const FIRST: Duration = Duration::from_secs(1);
/// The usual time between two rounds: a round takes some milliseconds.
const USUAL: Duration = Duration::from_secs(10);

/// Starts it; without it there is a profile at the end only.
pub fn start(run: &'static Run) {
    let thread = std::thread::Builder::new().name("taskscope-profile".to_owned()).stack_size(256 << 10);
    let _ = taskscope_record::own_threads::start(|| thread.spawn(|| keep_house(run)));
}

fn keep_house(run: &Run) {
    let interval = live::interval();
    let mut pause = FIRST;
    loop {
        // Asked for, rounds come as asked for; else rarer and rarer.
        let next = interval.unwrap_or(pause);
        std::thread::sleep(next);
        if run.ended.load(Acquire) {
            return;
        }
        write(run, false);
        if interval.is_some() {
            live::write_line(run);
        }
        pause = (pause * 2).min(USUAL);
    }
}
