//! Offsets, in bytes, of the fields of a [`ThreadRecorder`] that `taskscope.h` accesses inline.

use core::mem::offset_of;

use crate::clock::ThreadClock;
use crate::stream;
use crate::thread::ThreadRecorder;

/// State word and busy word of the entry_lock.
pub const ENTRY_LOCK: usize = offset_of!(ThreadRecorder, entry_lock);
/// Whether something waits in the nested recorder.
pub const PENDING: usize = offset_of!(ThreadRecorder, pending);
/// The filter.
pub const FILTER: usize = offset_of!(ThreadRecorder, filter);
/// Thread pointer of the owner.
pub const OWNER: usize = offset_of!(ThreadRecorder, owner);
/// Counter, nanoseconds, rate and span of the anchor, then the last reading.
pub const CLOCK: usize = offset_of!(ThreadRecorder, clock);
/// Bytes of the clock.
pub const CLOCK_BYTES: usize = size_of::<ThreadClock>();
/// Position of the next event of the standard stream.
pub const POSITION: usize = offset_of!(ThreadRecorder, standard) + stream::LAYOUT[0];
/// End of the room for events without reservation.
pub const END: usize = offset_of!(ThreadRecorder, standard) + stream::LAYOUT[1];
/// End of the region.
pub const REGION_END: usize = offset_of!(ThreadRecorder, standard) + stream::LAYOUT[2];
/// Position of the next event of the own stream.
pub const OWN_POSITION: usize = offset_of!(ThreadRecorder, own) + stream::LAYOUT[0];
/// End of its room for events without reservation.
pub const OWN_END: usize = offset_of!(ThreadRecorder, own) + stream::LAYOUT[1];
