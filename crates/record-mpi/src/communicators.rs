//! The program's communicators: a number that all members of one know without having asked each other.
//!
//! The number is made from what all members see alike: the number of the communicator that it was made
//! from, the members' ranks in the job, and how many with the same of both were made before. Making a
//! communicator is collective, so all members count alike.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use taskscope_event::models::messages;
use taskscope_ompt::shared::Moment;

use crate::library::Library;

/// A communicator as this process knows it.
pub struct Communicator {
    /// The number in this process's events.
    pub number: u32,
    id: u64,
    /// Ranks in the job of those whom messages go to and come from.
    peers: Vec<u32>,
    /// Collective operations so far.
    operations: AtomicU64,
}

impl Communicator {
    /// The rank in the job of a peer's rank in this communicator.
    pub fn peer(&self, rank: i32) -> u32 {
        usize::try_from(rank).ok().and_then(|rank| self.peers.get(rank)).copied().unwrap_or(messages::NO_RANK)
    }

    /// The number of the next collective operation.
    pub fn next_operation(&self) -> u64 {
        self.operations.fetch_add(1, Relaxed)
    }

    /// Members whom arrays of counts are about.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }
}

#[derive(Default)]
struct Known {
    by_handle: HashMap<usize, Arc<Communicator>>,
    /// How many were made of one parent with the same members.
    made: HashMap<u64, u64>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// The number of this job.
static JOB: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Says which job this process is a rank of.
pub fn set_job(job: u64) {
    JOB.store(job, Relaxed);
}

/// The communicator of a handle; one that was not met before is told to the trace. `parent` is what it
/// was made from, if that is known. `None` without memory or for handles that MPI rejects.
pub fn find(
    library: &Library,
    handle: usize,
    parent: Option<&Communicator>,
    moment: &mut Moment<'_>,
) -> Option<Arc<Communicator>> {
    if handle == library.comm_null {
        return None;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(communicator) = known.by_handle.get(&handle) {
        return Some(communicator.clone());
    }
    let (own, remote) = library.members(handle)?;
    let (rank, size) = library.rank_and_size(handle)?;
    let mut hash = Hash::of([JOB.load(Relaxed), parent.map_or(0, |parent| parent.id)]);
    match &remote {
        None => hash.add(own.iter().copied()),
        // Both sides see the lists in the same order.
        Some(remote) if own < *remote => {
            hash.add(own.iter().copied());
            hash.add(remote.iter().copied());
        }
        Some(remote) => {
            hash.add(remote.iter().copied());
            hash.add(own.iter().copied());
        }
    }
    let made = known.made.entry(hash.0).or_insert(0);
    let id = Hash::of([hash.0, *made]).0;
    *made += 1;
    let communicator = Arc::new(Communicator {
        number: NEXT.fetch_add(1, Relaxed),
        id,
        peers: remote.unwrap_or(own),
        operations: AtomicU64::new(0),
    });
    let number = communicator.number.to_le_bytes();
    moment.recorder.own_jumbo(
        moment.at,
        messages::COMMUNICATOR,
        &[&id.to_le_bytes(), &number, &rank.to_le_bytes(), &size.to_le_bytes()],
    );
    known.by_handle.insert(handle, communicator.clone());
    Some(communicator)
}

/// The handle is about to be freed, and may come again for another communicator.
pub fn forget(handle: usize) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_mut() {
        known.by_handle.remove(&handle);
    }
}

/// A hash that is the same on every machine (FNV-1a over words).
pub struct Hash(pub u64);

impl Hash {
    pub fn of(words: impl IntoIterator<Item = u64>) -> Hash {
        let mut hash = Hash(0xcbf2_9ce4_8422_2325);
        words.into_iter().for_each(|word| hash.word(word));
        hash
    }

    fn add(&mut self, ranks: impl Iterator<Item = u32>) {
        ranks.for_each(|rank| self.word(u64::from(rank)));
        self.word(u64::MAX);
    }

    fn word(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
