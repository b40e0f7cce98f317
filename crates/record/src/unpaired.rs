//! Events of tasks that move between threads: a section opened in one stream may be closed in another, so a
//! begin cannot reserve the room of its end, as [`Stream::begin`] does.
//!
//! ```text
//!   active region   pos = end when nothing fits          region end
//!    │ events ………………………│ room aside: ends, tasks put down, loss │
//! ```
//! When an event does not fit, the stream is sealed: begins are dropped with their ends, and so are all
//! events in tasks that the thread takes up from then on. Sections begun before still end, and tasks on the
//! thread are still put down, in the room aside. So no view shows a section longer than it was.

use taskscope_event::Code;
use taskscope_event::framing::EVENT_HEADER_BYTES;
use taskscope_event::models::instrument as i;

use crate::disk_file::NoRoom;
use crate::stream::{Dropped, LOSS_RECORD_BYTES, Stream};

impl Stream {
    /// Stores an event of the instrument model. Returns whether it was kept.
    #[inline(always)]
    pub fn unpaired<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        if self.room() < EVENT_HEADER_BYTES + N {
            return self.unpaired_without_room(at, code, &payload);
        }
        // SAFETY: the room was checked.
        unsafe { self.put(at, code, payload) };
        true
    }

    #[cold]
    #[inline(never)]
    fn unpaired_without_room(&mut self, at: u64, code: Code, payload: &[u8]) -> bool {
        let kept = if self.grow(EVENT_HEADER_BYTES + payload.len()) {
            self.store(at, code, payload);
            true
        } else {
            self.seal();
            self.end_what_is_open(at, code, payload)
        };
        self.lost_events += u64::from(!kept);
        kept
    }

    /// No later event fits, however small: an end must not be kept if its begin was dropped.
    fn seal(&mut self) {
        if !self.end.is_null() {
            self.full.get_or_insert(NoRoom::Other);
            self.end = self.pos;
        }
    }

    fn end_what_is_open(&mut self, at: u64, code: Code, payload: &[u8]) -> bool {
        let word = |at: usize| payload.get(at..).and_then(|rest| rest.first_chunk().copied());
        let task = |at: usize| word(at).map_or(0, u64::from_le_bytes);
        let mut dropped = self.dropped;
        let kept = match code {
            i::TASK_LEAVE | i::TASK_YIELD | i::TASK_END if dropped.task == task(0) => {
                dropped.task = 0;
                false
            }
            i::TASK_SWITCH if dropped.task != 0 && dropped.task == task(0) => {
                dropped.task = task(8);
                false
            }
            _ if dropped.task != 0 => false,
            i::TASK_ENTER => {
                dropped.task = task(0);
                false
            }
            i::TASK_SWITCH => {
                dropped = Dropped { begins: 0, task: task(8) };
                if task(0) != 0 {
                    self.store_aside(at, i::TASK_LEAVE, &task(0).to_le_bytes());
                }
                false
            }
            i::TASK_LEAVE | i::TASK_YIELD | i::TASK_END => {
                dropped.begins = 0;
                self.store_aside(at, code, payload)
            }
            i::STATE_PUSH | i::BURST_OPEN | i::STATE_AND_BURST_OPEN | i::STATES_HIDE => {
                dropped.begins += 1;
                false
            }
            i::STATE_POP | i::BURST_CLOSE | i::STATE_AND_BURST_CLOSE | i::STATES_SHOW => {
                match dropped.begins.checked_sub(1) {
                    Some(begins) => {
                        dropped.begins = begins;
                        false
                    }
                    None => self.store_aside(at, code, payload),
                }
            }
            _ => false,
        };
        self.dropped = dropped;
        kept
    }

    /// Stores an event in the room aside, of which the loss record's is left.
    fn store_aside(&mut self, at: u64, code: Code, payload: &[u8]) -> bool {
        let bytes = EVENT_HEADER_BYTES + payload.len();
        let aside = (self.region_end as usize).saturating_sub(self.end as usize);
        let room = !self.end.is_null() && aside >= bytes + LOSS_RECORD_BYTES;
        if room {
            self.end = self.end.wrapping_add(bytes);
            self.store(at, code, payload);
        }
        room
    }

    /// [`Stream::put`] for a payload of any size in the instrument model.
    fn store(&mut self, at: u64, code: Code, payload: &[u8]) {
        // SAFETY: the callers have checked the room.
        unsafe {
            match *payload {
                [] => self.put(at, code, []),
                _ if payload.len() == 4 => self.put::<4>(at, code, fixed(payload)),
                _ if payload.len() == 8 => self.put::<8>(at, code, fixed(payload)),
                _ if payload.len() == 12 => self.put::<12>(at, code, fixed(payload)),
                _ => self.put::<16>(at, code, fixed(payload)),
            }
        }
    }
}

fn fixed<const N: usize>(payload: &[u8]) -> [u8; N] {
    payload.first_chunk().copied().unwrap_or([0; N])
}
