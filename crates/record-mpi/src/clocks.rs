//! The job's number and the offsets between the clocks of its nodes, at `MPI_Init` and `MPI_Finalize`.
//!
//! Processes of one host share a clock. The lowest rank of every other host queries rank 0 for its time
//! repeatedly; the fastest answer has the smallest error, half its round-trip time (Cristian, "Probabilistic
//! clock synchronization", 1989). Two measurements give the drift.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::collections::HashSet;

use taskscope_event::models::messages;
use taskscope_ompt::shared::{Moment, record};
use taskscope_record::clock;

use crate::communicators::Hash;
use crate::library::Library;

/// Number of queries; the first ones set up connections.
const QUESTIONS: u32 = 100;

/// Our own communicator; 0 before `MPI_Init`.
static OWN_WORLD: AtomicUsize = AtomicUsize::new(0);

/// Identity of a process's job.
#[derive(Clone, Copy)]
pub struct Job {
    pub number: u64,
    pub rank: u32,
    pub ranks: u32,
}

/// Makes our communicator and agrees on the job's number. All ranks call this, in `MPI_Init`.
pub fn meet(library: &Library) -> Option<Job> {
    let comm = library.own_world()?;
    OWN_WORLD.store(comm, Relaxed);
    let (rank, ranks) = library.rank_and_size(comm)?;
    // SAFETY: no preconditions.
    let pid = unsafe { libc::getpid() } as u64;
    let proposal = Hash::of([host(), pid, clock::now()]).0;
    Some(Job { number: library.broadcast_word(proposal, comm), rank, ranks })
}

/// Whether the job has been met in `MPI_Init`, and not been left.
pub fn has_met() -> bool {
    OWN_WORLD.load(Relaxed) != 0
}

/// Measures this process's clock, if it is the one of its host that does. All ranks call this.
pub fn measure(library: &Library) {
    let comm = OWN_WORLD.load(Relaxed);
    let Some((rank, ranks)) = (comm != 0).then(|| library.rank_and_size(comm)).flatten() else { return };
    for leader in leaders(&library.gather_words(host(), ranks, comm)) {
        if leader == 0 {
            if rank == 0 {
                record(|moment| record_offset(moment, 0, 0));
            }
        } else if rank == 0 {
            for _ in 0..QUESTIONS {
                library.receive_word(leader, comm);
                library.send_word(clock::now(), leader, comm);
            }
        } else if rank == leader {
            let (offset, error) = ask(clock::now, || {
                library.send_word(0, 0, comm);
                library.receive_word(0, comm)
            });
            record(|moment| record_offset(moment, offset, error));
        }
    }
}

/// The lowest rank of each host, by the hosts of all ranks. Looks each rank up once: there may be very many.
fn leaders(hosts: &[u64]) -> impl Iterator<Item = u32> {
    let mut met = HashSet::new();
    (0..).zip(hosts).filter_map(move |(rank, host)| met.insert(*host).then_some(rank))
}

/// Frees our communicator, before `MPI_Finalize`.
pub fn part(library: &Library) {
    let comm = OWN_WORLD.swap(0, Relaxed);
    if comm != 0 {
        library.free(comm);
    }
}

/// Offset from the clock `now` to the other's, and its maximum error.
fn ask(mut now: impl FnMut() -> u64, mut answer: impl FnMut() -> u64) -> (i64, u64) {
    let mut best = (0, u64::MAX);
    for _ in 0..QUESTIONS {
        let asked = now();
        let other = answer();
        let took = now() - asked;
        if took / 2 < best.1 {
            best = (other.wrapping_sub(asked + took / 2) as i64, took / 2);
        }
    }
    best
}

fn record_offset(moment: &mut Moment<'_>, offset: i64, error: u64) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::CLOCK,
        &[&offset.to_le_bytes(), &error.to_le_bytes(), &0u32.to_le_bytes()],
    );
}

/// A number for the host, as the trace names it: up to the first dot.
fn host() -> u64 {
    let mut name = [0u8; 256];
    // SAFETY: the buffer has the given length.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    Hash::of(name.iter().take_while(|byte| **byte != 0 && **byte != b'.').map(|byte| u64::from(*byte))).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn the_lowest_rank_of_each_host_leads() {
        assert!(leaders(&[7, 9, 7, 9, 5, 7]).eq([0, 1, 4]));
    }

    #[test]
    fn the_fastest_answer_counts() {
        // A clock that only answers move, and the other, which is 5 ms ahead.
        let time = Cell::new(1_000_000_u64);
        let pass = |ns| time.set(time.get() + ns);
        let mut round = 0;
        let result = ask(
            || time.get(),
            || {
                round += 1;
                // All answers but one are late in one of the two directions.
                let (there, back) = if round == 40 { (800, 1_200) } else { (200_000, 3_000) };
                pass(there);
                let other = time.get() + 5_000_000;
                pass(back);
                other
            },
        );
        assert_eq!(result, (5_000_000 - 200, 1_000));
    }
}
