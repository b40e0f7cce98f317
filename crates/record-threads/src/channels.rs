//! Pipes, eventfds and socket pairs that this process has made: their open ends, and whether threads wait for them.
//!
//! ```text
//!  descriptor ──▶ end ──▶ channel: kind, object, open ends, waiting threads
//! ```
//! A thread that reads or polls counts as waiting; one that writes meanwhile records a wake of the channel's data, and one that
//! reads while others write a wake of its room. Tables of fixed size: descriptors without room are unknown. In a forked child they
//! are empty: inherited descriptors are shared with other processes. A child of `vfork` changes nothing.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use libc::c_int;
use taskscope_event::models::wait::kind;

use crate::objects::subtract;

/// Descriptors below this number can be ends.
pub const MAX_DESCRIPTORS: usize = 4096;
/// Channels at a time.
const MAX_CHANNELS: usize = 2048;

/// A descriptor. All zeros is none of a channel.
#[repr(C)]
struct End {
    /// Number of the channel that it reads from; 0 is none.
    reads: AtomicU32,
    /// Number of the channel that it writes to.
    writes: AtomicU32,
    /// The set of `epoll` that it was added to last, and one; 0 is none.
    set: AtomicU32,
    /// The program's data of it in that set.
    data: AtomicU64,
}

/// Bytes on their way from writing to reading descriptors.
#[repr(C)]
pub struct Channel {
    /// Kind of its data, `wait::kind`; 0 is a free entry.
    kind: AtomicU32,
    /// Open descriptors that read.
    readers: AtomicU32,
    /// Open descriptors that write.
    writers: AtomicU32,
    /// Threads that wait for data, and for room.
    pub data: AtomicU32,
    pub room: AtomicU32,
    /// Whether a descriptor that reads is, or was, in a set of `epoll` or `select`.
    is_in_set: AtomicU32,
    object: AtomicU64,
}

/// Not yet complete.
const RESERVED: u32 = u32::MAX;

#[repr(C)]
struct Table {
    /// The process that the entries are of; 0 if it is empty.
    owner: AtomicU32,
    ends: [End; MAX_DESCRIPTORS],
    channels: [Channel; MAX_CHANNELS],
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());
/// Whether a channel of this process found no room.
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(false);
/// Whether this process has made a channel.
static HAS_CHANNELS: AtomicBool = AtomicBool::new(false);
/// Threads that wait in `epoll_wait` or `select`.
static POLLING: AtomicU32 = AtomicU32::new(0);

/// Reserves the tables. Without memory no channel is known.
pub fn prepare() {
    let bytes = size_of::<Table>();
    // SAFETY: a new mapping; its pages are there when they are touched first. A forked child finds zeros.
    let table = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let table =
            libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if table == libc::MAP_FAILED {
            IS_INCOMPLETE.store(true, Relaxed);
            return;
        }
        libc::madvise(table, bytes, libc::MADV_WIPEONFORK);
        table
    };
    TABLE.store(table.cast(), Release);
}

fn table() -> Option<&'static Table> {
    // SAFETY: null, or the table, which is never unmapped.
    unsafe { TABLE.load(Acquire).as_ref() }
}

fn end(descriptor: c_int) -> Option<&'static End> {
    table()?.ends.get(usize::try_from(descriptor).ok()?)
}

fn channel(number: u32) -> Option<&'static Channel> {
    let channel = table()?.channels.get((number as usize).checked_sub(1)?)?;
    (!matches!(channel.kind.load(Acquire), 0 | RESERVED)).then_some(channel)
}

/// Whether the entries may be changed: a child of `vfork` has the memory of its parent.
fn is_own(table: &Table) -> bool {
    // SAFETY: no preconditions.
    let own = unsafe { libc::getpid() }.unsigned_abs();
    let owner = table.owner.compare_exchange(0, own, Relaxed, Relaxed).unwrap_or_else(|owner| owner);
    owner == 0 || owner == own
}

/// Enters a new channel from one descriptor to another, with the identity of its object.
pub fn open(data: u32, object: u64, reads: c_int, writes: c_int) {
    let Some(table) = table().filter(|table| is_own(table)) else { return };
    let (Some(reading), Some(writing)) = (end(reads), end(writes)) else {
        return IS_INCOMPLETE.store(true, Relaxed);
    };
    let free = |channel: &&Channel| channel.kind.compare_exchange(0, RESERVED, AcqRel, Relaxed).is_ok();
    let found = table.channels.iter().zip(1..).find(|(channel, _)| free(channel));
    let Some((channel, number)) = found else { return IS_INCOMPLETE.store(true, Relaxed) };
    channel.object.store(object, Relaxed);
    channel.readers.store(1, Relaxed);
    channel.writers.store(1, Relaxed);
    for count in [&channel.data, &channel.room, &channel.is_in_set] {
        count.store(0, Relaxed);
    }
    channel.kind.store(data, Release);
    HAS_CHANNELS.store(true, Relaxed);
    reading.reads.store(number, Release);
    writing.writes.store(number, Release);
}

/// A change of a channel that others may wait for.
pub struct Closed {
    /// The channel's kind and object.
    pub channel: (u32, u64),
    /// Whether threads wait for its data.
    pub has_waiting: bool,
}

/// Forgets a descriptor that is being closed. Returns its channel, if that was its last writing end.
pub fn close(descriptor: c_int) -> Option<Closed> {
    let end = end(descriptor)?;
    if end.reads.load(Relaxed) == 0 && end.writes.load(Relaxed) == 0 {
        return None;
    }
    if !is_own(table()?) {
        return None;
    }
    end.set.store(0, Relaxed);
    let (read, written) = (channel(end.reads.swap(0, Relaxed)), channel(end.writes.swap(0, Relaxed)));
    let closed = written.map(|channel| (channel, subtract(&channel.writers) == 0));
    let last = closed.filter(|(_, is_last)| *is_last).map(|(channel, _)| Closed {
        channel: (channel.kind.load(Relaxed), channel.object.load(Relaxed)),
        has_waiting: channel.has_waiting_for_data(),
    });
    if let Some(channel) = read {
        subtract(&channel.readers);
    }
    for channel in [read, written].into_iter().flatten() {
        if channel.readers.load(Relaxed) == 0 && channel.writers.load(Relaxed) == 0 {
            channel.kind.store(0, Release);
        }
    }
    last
}

/// `to` becomes another descriptor of the object of `from`.
pub fn duplicate(from: c_int, to: c_int) {
    let (Some(from), Some(to)) = (end(from), end(to)) else { return };
    let (reads, writes) = (from.reads.load(Relaxed), from.writes.load(Relaxed));
    if (reads == 0 && writes == 0) || !table().is_some_and(is_own) {
        return;
    }
    if let Some(channel) = channel(reads) {
        channel.readers.fetch_add(1, Relaxed);
    }
    if let Some(channel) = channel(writes) {
        channel.writers.fetch_add(1, Relaxed);
    }
    to.reads.store(reads, Relaxed);
    to.writes.store(writes, Relaxed);
}

/// A descriptor is now in a set of `epoll`, with this data of the program's; `None`: no longer.
pub fn enter_set(set: c_int, descriptor: c_int, data: Option<u64>) {
    let Some(end) = end(descriptor) else { return };
    let Some(channel) = channel(end.reads.load(Relaxed)) else { return };
    if let Some(data) = data {
        end.data.store(data, Relaxed);
        channel.enter_any_set();
    }
    end.set.store(data.map_or(0, |_| set.unsigned_abs().wrapping_add(1)), Relaxed);
}

/// The descriptor in a set of `epoll` with this data of the program's, if it is a channel's.
pub fn in_set(set: c_int, data: u64) -> Option<c_int> {
    let set = set.unsigned_abs().wrapping_add(1);
    let ends = table()?.ends.iter().zip(0..);
    let mut found = ends.filter(|(end, _)| end.set.load(Relaxed) == set && end.data.load(Relaxed) == data);
    found.next().map(|(_, descriptor)| descriptor)
}

/// Counts the calling thread as waiting in `epoll_wait` or `select`, or no longer.
pub fn poll_sets(begins: bool) {
    match begins {
        true => _ = POLLING.fetch_add(1, SeqCst),
        false => _ = subtract(&POLLING),
    }
}

/// The channel that a descriptor reads from.
#[inline]
pub fn read_by(descriptor: c_int) -> Option<&'static Channel> {
    channel(end(descriptor)?.reads.load(Relaxed))
}

/// The channel that a descriptor writes to.
#[inline]
pub fn written_by(descriptor: c_int) -> Option<&'static Channel> {
    channel(end(descriptor)?.writes.load(Relaxed))
}

/// Whether this process has made a channel.
pub fn are_any() -> bool {
    HAS_CHANNELS.load(Relaxed)
}

/// Whether only other processes can have made a pipe that is not known.
pub fn are_complete() -> bool {
    !IS_INCOMPLETE.load(Relaxed)
}

impl Channel {
    /// Kind and object of a wait for its data.
    pub fn data_wait(&self) -> (u32, u64) {
        (self.kind.load(Relaxed), self.object.load(Relaxed))
    }

    /// Kind and object of a wait for its room; `None` if it does not fill up.
    pub fn room_wait(&self) -> Option<(u32, u64)> {
        let kind = match self.kind.load(Relaxed) {
            kind::PIPE => kind::PIPE_ROOM,
            kind::SOCKET_PAIR => kind::SOCKET_PAIR_ROOM,
            _ => return None,
        };
        Some((kind, self.object.load(Relaxed)))
    }

    /// A descriptor that reads is in a set of `epoll` or `select`.
    pub fn enter_any_set(&self) {
        self.is_in_set.store(1, SeqCst);
    }

    /// Whether threads wait for its data.
    #[inline]
    pub fn has_waiting_for_data(&self) -> bool {
        self.data.load(Relaxed) != 0 || (self.is_in_set.load(Relaxed) != 0 && POLLING.load(Relaxed) != 0)
    }

    /// Whether a descriptor of this process can end a wait for its data, or for its room.
    pub fn has_other_end(&self, is_for_data: bool) -> bool {
        (if is_for_data { &self.writers } else { &self.readers }).load(Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The process has one table: one test has it at a time, with descriptors of its own that are not open.
    fn prepared() -> MutexGuard<'static, ()> {
        static TABLE_USE: Mutex<()> = Mutex::new(());
        let only = TABLE_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if TABLE.load(Relaxed).is_null() {
            prepare();
        }
        only
    }

    #[test]
    fn a_channel_lives_as_long_as_one_of_its_ends() {
        let _table = prepared();
        open(kind::PIPE, 77, 3000, 3001);
        duplicate(3001, 3002);
        assert_eq!(read_by(3000).map(Channel::data_wait), Some((kind::PIPE, 77)));
        assert_eq!(written_by(3002).and_then(Channel::room_wait), Some((kind::PIPE_ROOM, 77)));
        assert!(read_by(3001).is_none() && written_by(3000).is_none());
        assert!(close(3001).is_none());
        assert!(read_by(3000).is_some_and(|channel| channel.has_other_end(true)));
        let last = close(3002).unwrap();
        assert_eq!((last.channel, last.has_waiting), ((kind::PIPE, 77), false));
        assert!(read_by(3000).is_some_and(|channel| !channel.has_other_end(true)));
        assert!(close(3000).is_none());
        assert!(read_by(3000).is_none());
    }

    #[test]
    fn descriptors_of_a_set_are_found_by_the_data_of_the_program() {
        let _table = prepared();
        open(kind::EVENT, 3010, 3010, 3010);
        enter_set(3011, 3010, Some(42));
        assert_eq!((in_set(3011, 42), in_set(3011, 43), in_set(3012, 42)), (Some(3010), None, None));
        let channel = read_by(3010).unwrap();
        assert!(!channel.has_waiting_for_data());
        poll_sets(true);
        assert!(channel.has_waiting_for_data());
        poll_sets(false);
        assert!(!channel.has_waiting_for_data());
        enter_set(3011, 3010, None);
        assert_eq!(in_set(3011, 42), None);
        close(3010);
    }

    #[test]
    fn descriptors_beyond_the_table_are_ends_of_no_channel() {
        let _table = prepared();
        open(kind::PIPE, 78, MAX_DESCRIPTORS as c_int, 3020);
        assert!(written_by(3020).is_none() && !are_complete());
        assert!(read_by(-1).is_none() && close(-1).is_none());
        IS_INCOMPLETE.store(false, Relaxed);
    }
}
