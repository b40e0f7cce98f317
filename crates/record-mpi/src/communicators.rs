//! The program's communicators, and the windows and files that their members share: a number that all members
//! of one compute without communication.
//!
//! The number is a hash of data common to all members: the number of the parent communicator, the members'
//! ranks in the job, and how many with equal values were created before. Creating a communicator is
//! collective, so all members count alike.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use taskscope_event::models::messages;
use taskscope_event::{FNV_START, fnv1a};
use taskscope_ompt::shared::Moment;

use crate::handle_kind::Kind;
use crate::library::Library;

/// A communicator as this process knows it.
pub struct Communicator {
    /// The number in this process's events.
    pub number: u32,
    id: u64,
    /// Ranks in the job of the peers of messages.
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
    by_handle: HashMap<(Kind, usize), Arc<Communicator>>,
    /// Number of communicators made of one parent with the same members.
    made: HashMap<u64, u64>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// The number of this job.
static JOB: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Stores the job of which this process is a rank.
pub fn set_job(job: u64) {
    JOB.store(job, Relaxed);
}

/// The communicator of a handle; a new one is recorded in the trace. `parent` is its parent, if known. `None`
/// without memory or for handles that MPI rejects.
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
    if let Some(communicator) = known.by_handle.get(&(Kind::Communicator, handle)) {
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
    Some(known.add((Kind::Communicator, handle), hash, remote.unwrap_or(own), (rank, size), moment))
}

/// The window or file that the members of `parent` have just made together.
pub fn made_on(
    parent: &Communicator,
    (kind, handle): (Kind, usize),
    moment: &mut Moment<'_>,
) -> Arc<Communicator> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let hash = Hash::of([parent.id, kind as u64 + 1]);
    let size = parent.peers.len() as u32;
    known.add((kind, handle), hash, parent.peers.clone(), (messages::NO_RANK, size), moment)
}

/// The port of this name, at which the processes of two sides meet.
pub fn port(name: &[u8], moment: &mut Moment<'_>) -> Arc<Communicator> {
    let hash = Hash::of(name.iter().map(|byte| u64::from(*byte)));
    // No handle of a session is one of a port.
    named((Kind::Session, hash), Vec::new(), (messages::NO_RANK, 0), moment)
}

/// The processes that make a communicator of members of this parent with these ranks.
pub fn meeting(parent: Option<&Communicator>, ranks: &[u32], moment: &mut Moment<'_>) -> Arc<Communicator> {
    let mut hash = Hash::of([parent.map_or(0, |parent| parent.id)]);
    hash.add(ranks.iter().copied());
    named((Kind::Group, hash), ranks.to_vec(), (messages::NO_RANK, ranks.len() as u32), moment)
}

/// The processes of a job of a launcher that start it, of which this one has this rank of so many.
pub fn start_of_job(job: u64, place: (u32, u32), moment: &mut Moment<'_>) -> Arc<Communicator> {
    named((Kind::Group, Hash::of([job])), Vec::new(), place, moment)
}

/// The object that its members know by a hash alone, of a kind whose handles are not stored.
fn named(
    (kind, hash): (Kind, Hash),
    peers: Vec<u32>,
    place: (u32, u32),
    moment: &mut Moment<'_>,
) -> Arc<Communicator> {
    let key = (kind, hash.0 as usize);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    match known.by_handle.get(&key) {
        Some(known) => known.clone(),
        None => known.add(key, hash, peers, place, moment),
    }
}

/// The window or file of a handle, if its creation was seen.
pub fn known(kind: Kind, handle: usize) -> Option<Arc<Communicator>> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.as_ref()?.by_handle.get(&(kind, handle)).cloned()
}

impl Known {
    /// Adds a communicator with this `hash`, which equals only those of the same parent and members, and
    /// records it.
    fn add(
        &mut self,
        key: (Kind, usize),
        hash: Hash,
        peers: Vec<u32>,
        (rank, size): (u32, u32),
        moment: &mut Moment<'_>,
    ) -> Arc<Communicator> {
        let made = self.made.entry(hash.0).or_insert(0);
        let id = Hash::of([hash.0, *made]).0;
        *made += 1;
        let number = NEXT.fetch_add(1, Relaxed);
        let communicator = Arc::new(Communicator { number, id, peers, operations: AtomicU64::new(0) });
        moment.recorder.own_jumbo(
            moment.at,
            messages::COMMUNICATOR,
            &[&id.to_le_bytes(), &number.to_le_bytes(), &rank.to_le_bytes(), &size.to_le_bytes()],
        );
        self.by_handle.insert(key, communicator.clone());
        communicator
    }
}

/// The handle is about to be freed, and may come again for another object.
pub fn forget(kind: Kind, handle: usize) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_mut() {
        known.by_handle.remove(&(kind, handle));
    }
}

/// A hash that is the same on every machine (FNV-1a over words).
pub struct Hash(pub u64);

impl Hash {
    pub fn of(words: impl IntoIterator<Item = u64>) -> Hash {
        let mut hash = Hash(FNV_START);
        words.into_iter().for_each(|word| hash.word(word));
        hash
    }

    fn add(&mut self, ranks: impl Iterator<Item = u32>) {
        ranks.for_each(|rank| self.word(u64::from(rank)));
        self.word(u64::MAX);
    }

    fn word(&mut self, word: u64) {
        self.0 = fnv1a(self.0, &word.to_le_bytes());
    }
}
