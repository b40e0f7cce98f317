//! What each request of the program stands for, from the call that made it to its completion.
//!
//! A call that may complete a request takes it out before it goes to MPI, and puts it back if it did
//! not complete: as soon as MPI has completed it, another thread may get the same handle for a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::communicators::Communicator;

/// A receive that was asked for.
#[derive(Clone)]
pub struct Receive {
    pub post: u64,
    /// Nanoseconds.
    pub posted: u64,
    pub comm: Arc<Communicator>,
}

/// A send that can be started again and again.
#[derive(Clone)]
pub struct PreparedSend {
    pub comm: Arc<Communicator>,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
}

/// What is behind a request.
pub enum Pending {
    Send { post: u64 },
    Receive(Receive),
    Exchange { post: u64, receive: Receive },
    Collective { sequence: u64, comm: u32 },
    PreparedSend(PreparedSend, Option<u64>),
    PreparedReceive(Arc<Communicator>, Option<Receive>),
}

const SHARDS: usize = 16;

type Shard = Mutex<Option<HashMap<usize, Pending>>>;

static REQUESTS: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];
/// Messages that a matching probe has taken, by the same keys.
static MESSAGES: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

/// Which of the two tables.
#[derive(Clone, Copy)]
pub enum Table {
    Requests,
    Messages,
}

fn shard(table: Table, handle: usize) -> Option<MutexGuard<'static, Option<HashMap<usize, Pending>>>> {
    let shards = match table {
        Table::Requests => &REQUESTS,
        Table::Messages => &MESSAGES,
    };
    // Handles that are pointers differ above their alignment, numbers below it.
    let shard = shards.get((handle >> 7 ^ handle) % SHARDS)?;
    Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Remembers what a handle stands for.
pub fn put(table: Table, handle: usize, pending: Pending) {
    if let Some(mut shard) = shard(table, handle) {
        shard.get_or_insert_default().insert(handle, pending);
    }
}

/// What a handle stands for; it is forgotten.
pub fn take(table: Table, handle: usize) -> Option<Pending> {
    shard(table, handle)?.as_mut()?.remove(&handle)
}
