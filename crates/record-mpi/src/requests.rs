//! The program's requests, from their creation to their completion.
//!
//! A call that may complete a request takes it out before it goes to MPI, and puts it back if it did
//! not complete: as soon as MPI has completed it, another thread may get the same handle for a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::communicators::Communicator;

/// A posted receive.
#[derive(Clone)]
pub struct Receive {
    pub post: u64,
    /// Nanoseconds.
    pub posted: u64,
    pub comm: Arc<Communicator>,
    /// The sender's rank in the communicator and the tag, either of which may be a wildcard.
    pub source: i32,
    pub tag: i32,
}

/// A send that can be started again and again.
#[derive(Clone)]
pub struct PreparedSend {
    pub comm: Arc<Communicator>,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    /// Partitions; 0 for a message that leaves as a whole when it is started.
    pub partitions: u64,
    /// Partitions that are not ready yet, since it was started.
    pub missing: u64,
}

/// A receive that can be started again and again.
#[derive(Clone)]
pub struct PreparedReceive {
    pub comm: Arc<Communicator>,
    pub source: i32,
    pub tag: i32,
}

/// A collective operation that can be started again and again.
#[derive(Clone)]
pub struct PreparedCollective {
    pub comm: Arc<Communicator>,
    pub root: u32,
    pub bytes: u64,
    /// Number of the function that prepared it.
    pub number: u32,
}

/// An object that exists after a request has completed: its communicator's parent, and the address of the
/// handle.
pub struct Making {
    pub parent: Arc<Communicator>,
    pub place: usize,
}

/// Operation of a request.
pub enum Pending {
    Send { post: u64 },
    Receive(Receive),
    Exchange { post: u64, receive: Receive },
    Collective { sequence: u64, comm: u32, makes: Option<Making> },
    PreparedSend(PreparedSend, Option<u64>),
    PreparedReceive(PreparedReceive, Option<Receive>),
    PreparedCollective(PreparedCollective, Option<u64>),
}

const SHARDS: usize = 16;

type Shard = Mutex<Option<HashMap<usize, Pending>>>;

static REQUESTS: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];
/// Messages that a matching probe has taken, by the same keys.
static MESSAGES: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];
/// Split collective operations, by the handles of their files.
static SPLIT: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

/// The table.
#[derive(Clone, Copy)]
pub enum Table {
    Requests,
    Messages,
    Split,
}

fn shard(table: Table, handle: usize) -> Option<MutexGuard<'static, Option<HashMap<usize, Pending>>>> {
    let shards = match table {
        Table::Requests => &REQUESTS,
        Table::Messages => &MESSAGES,
        Table::Split => &SPLIT,
    };
    // Handles that are pointers differ above their alignment, numbers below it.
    let shard = shards.get((handle >> 7 ^ handle) % SHARDS)?;
    Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Stores the operation of a handle.
pub fn put(table: Table, handle: usize, pending: Pending) {
    if let Some(mut shard) = shard(table, handle) {
        shard.get_or_insert_default().insert(handle, pending);
    }
}

/// Changes the operation of a handle, which several threads may do at once. `None` if there is none.
pub fn change<R>(table: Table, handle: usize, change: impl FnOnce(&mut Pending) -> R) -> Option<R> {
    shard(table, handle)?.as_mut()?.get_mut(&handle).map(change)
}

/// Removes and returns the operation of a handle.
pub fn take(table: Table, handle: usize) -> Option<Pending> {
    shard(table, handle)?.as_mut()?.remove(&handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_by_several_threads_all_count() {
        let handle = 0x7000;
        put(Table::Requests, handle, Pending::Send { post: 0 });
        let count = || {
            for _ in 0..10_000 {
                let counted = change(Table::Requests, handle, |pending| {
                    let Pending::Send { post } = pending else { unreachable!() };
                    *post += 1;
                });
                assert_eq!(counted, Some(()));
            }
        };
        std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(count))));
        assert!(matches!(take(Table::Requests, handle), Some(Pending::Send { post: 20_000 })));
    }
}
