//! The Python frames of the calling thread, innermost first.
//!
//! ```text
//!   links   thread state ▸ frame ▸ frame ▸ …    a page at a time (memory); the thread's own stack in place
//!   codes   each code object of the frames once, as many by one system call as fit (machine)
//! ```
//!
//! A code object is read again for each sample: another one may have taken its place since.

use super::code::{self, Code};
use super::interpreter::Interpreter;
use super::layout::{Flags, FrameLinks, Innermost};
use super::memory::{PAGE_WORDS, Pages, bytes_of, words};
use crate::sampler::machine::copy_all_from_anywhere;

/// Deeper frames are cut off.
pub const MAX_FRAMES: usize = 192;
/// Code objects that are read at once.
const CODES_AT_ONCE: usize = PAGE_WORDS / code::WORDS;

/// The Python frames of a thread.
pub struct Chain {
    /// Places of the frames, innermost first; at first their instructions.
    places: [u64; MAX_FRAMES],
    /// Their code objects.
    codes: [u64; MAX_FRAMES],
    /// Address on the C stack of the loop that runs a frame, of the outermost one that it runs; 0 for the others.
    loops: [u64; MAX_FRAMES],
    count: usize,
    /// Whether the frames of a loop are known by their order alone.
    pub in_order: bool,
}

impl Chain {
    /// None yet.
    pub const fn new() -> Chain {
        let none = [0; MAX_FRAMES];
        Chain { places: none, codes: none, loops: none, count: 0, in_order: false }
    }

    /// Frames with these loops, and places from 1000 on.
    #[cfg(test)]
    pub fn of(loops: &[u64], in_order: bool) -> Chain {
        let mut chain = Chain { in_order, ..Chain::new() };
        for (address, place) in loops.iter().zip(1000..) {
            assert!(chain.push(0, place));
            chain.set_loop(chain.count - 1, *address);
        }
        chain
    }

    /// The places, and beside them the addresses of loops.
    pub fn frames(&self) -> (&[u64], &[u64]) {
        let all = ..self.count;
        (self.places.get(all).unwrap_or_default(), self.loops.get(all).unwrap_or_default())
    }

    /// Sets the address of a frame's loop.
    pub fn set_loop(&mut self, frame: usize, address: u64) {
        if let Some(place) = self.loops.get_mut(frame) {
            *place = address;
        }
    }

    /// Reads the frames of the calling thread. False if it has none, or they do not fit. Async-signal-safe.
    pub fn read(&mut self, interpreter: &Interpreter, memory: &mut Pages) -> bool {
        (self.count, self.in_order) = (0, false);
        let read = thread_state(interpreter).and_then(|state| self.read_from(interpreter, state, memory));
        read.is_some() && self.count > 0 && self.find_places(interpreter, memory).is_some()
    }

    fn read_from(&mut self, interpreter: &Interpreter, state: u64, memory: &mut Pages) -> Option<()> {
        // SAFETY: names the calling thread.
        let own = unsafe { libc::pthread_self() };
        if memory.field(state, interpreter.layout.thread_id)? != own {
            return None;
        }
        match &interpreter.layout.frames {
            FrameLinks::Objects { frame, records, instruction } => {
                self.read_objects(memory, state, *frame, *records, *instruction)
            }
            FrameLinks::Inlined { innermost, previous, code, instruction, flags } => {
                self.read_inlined(memory, state, innermost, (*previous, *code, *instruction), flags)
            }
        }
    }

    fn push(&mut self, code: u64, instruction: u64) -> bool {
        let (Some(to), Some(of), Some(mark)) =
            (self.places.get_mut(self.count), self.codes.get_mut(self.count), self.loops.get_mut(self.count))
        else {
            return false;
        };
        (*to, *of, *mark) = (instruction, code, 0);
        self.count += 1;
        true
    }

    /// Puts places in the place of instructions.
    fn find_places(&mut self, interpreter: &Interpreter, memory: &mut Pages) -> Option<()> {
        let Chain { places, codes, count, .. } = self;
        let (mut places, mut codes) = (places.get_mut(..*count)?, codes.get(..*count)?);
        while !codes.is_empty() {
            let (mut distinct, mut known) = ([0; CODES_AT_ONCE], [Code::default(); CODES_AT_ONCE]);
            let (read, frames) = distinct_from(codes, &mut distinct);
            let words = memory.room(read.len() * code::WORDS)?;
            if !copy_all_from_anywhere(read, bytes_of(words)) {
                return None;
            }
            for ((known, address), words) in known.iter_mut().zip(read).zip(words.chunks(code::WORDS)) {
                *known = Code::of(interpreter, *address, words)?;
            }
            let (these, others) = places.split_at_mut(frames);
            for (place, code) in these.iter_mut().zip(codes) {
                let number = read.iter().position(|address| address == code)?;
                *place = known.get(number)?.place(*place);
            }
            (places, codes) = (others, codes.get(frames..)?);
        }
        Some(())
    }

    /// Ends the frames of a loop that is at this address.
    fn end_loop(&mut self, address: u64) {
        let last = self.count.checked_sub(1).and_then(|last| self.loops.get_mut(last));
        if let Some(last) = last.filter(|last| **last == 0) {
            *last = address;
        }
    }

    fn read_objects(
        &mut self,
        memory: &mut Pages,
        state: u64,
        frame: u64,
        records: Option<(u64, u64)>,
        (instruction, unit): (u64, u64),
    ) -> Option<()> {
        let mut frame = memory.field(state, frame)?;
        while frame != 0 {
            let [back, code]: [u64; 2] = memory.words(frame.checked_add(24)?)?;
            // None has run: −1.
            let at = (memory.field(frame, instruction)? as u32 as i32).max(0) as u64 * unit;
            if !self.push(code, at) {
                break;
            }
            frame = back;
        }
        let Some((first, next)) = records else {
            self.in_order = true;
            return Some(());
        };
        // The outermost record is in the thread state.
        let is_on_stack = |record: u64| record != 0 && record.wrapping_sub(state) >= 4096;
        let (innermost, mut loops) = (memory.field(state, first)?, 0);
        let mut record = innermost;
        while is_on_stack(record) && loops < 2 * MAX_FRAMES {
            record = memory.field(record, next)?;
            loops += 1;
        }
        // The innermost loop has begun, and has no frame yet.
        let without = loops.checked_sub(self.count).filter(|without| *without <= 1)?;
        record = if without == 1 { memory.field(innermost, next)? } else { innermost };
        for frame in 0..self.count {
            self.set_loop(frame, record);
            record = memory.field(record, next)?;
        }
        Some(())
    }

    fn read_inlined(
        &mut self,
        memory: &mut Pages,
        state: u64,
        innermost: &Innermost,
        (previous, code, instruction): (usize, usize, usize),
        flags: &Flags,
    ) -> Option<()> {
        /// Words of a frame that are read.
        const WORDS: usize = 9;
        let (mut record, mut frame) = match innermost {
            Innermost::Record(first, frame, _) => {
                let record = memory.field(state, *first)?;
                (record, memory.field(record, *frame)?)
            }
            Innermost::Frame(first) => (0, memory.field(state, *first)?),
        };
        for _ in 0..3 * MAX_FRAMES {
            if frame == 0 {
                return Some(());
            }
            let content: [u64; WORDS] = memory.words(frame)?;
            let field = |at: usize| content.get(at / 8).copied();
            let byte = |at: usize| field(at).map(|word| word >> (at % 8 * 8) & 0xff);
            let next = field(previous)?;
            match flags {
                Flags::Owner(at) if byte(*at)? == 3 => self.end_loop(frame),
                _ => {
                    if !self.push(field(code)?, field(instruction)?) {
                        return Some(());
                    }
                }
            }
            if let (Flags::IsEntry(at), Innermost::Record(_, _, outer)) = (flags, innermost)
                && byte(*at)? != 0
            {
                self.end_loop(record);
                record = memory.field(record, *outer)?;
            }
            frame = next;
        }
        None
    }
}

/// The code objects that `codes` begins with, each once, as many as `room` has room for; and the number of frames that have them.
fn distinct_from<'a>(codes: &[u64], room: &'a mut [u64]) -> (&'a [u64], usize) {
    let (mut count, mut frames) = (0, 0);
    for code in codes {
        if !room.get(..count).is_some_and(|before| before.contains(code)) {
            let Some(place) = room.get_mut(count) else { break };
            (*place, count) = (*code, count + 1);
        }
        frames += 1;
    }
    (room.get(..count).unwrap_or_default(), frames)
}

/// The state of the calling thread, which may be another one's.
fn thread_state(interpreter: &Interpreter) -> Option<u64> {
    let [key] = words::<1>(interpreter.runtime + interpreter.layout.key)?;
    let (is_made, key) = (key as u32, (key >> 32) as libc::pthread_key_t);
    if is_made != 1 {
        return None;
    }
    // SAFETY: a key that is gone gives null.
    let state = unsafe { libc::pthread_getspecific(key) as u64 };
    (state != 0).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_object_of_a_piece_is_read_once() {
        let of = |codes: &[u64], most: usize| {
            let mut room = vec![0; most];
            let (read, frames) = distinct_from(codes, &mut room);
            (read.to_vec(), frames)
        };
        assert_eq!(of(&[7, 7, 8, 7, 9, 8], 4), (vec![7, 8, 9], 6));
        assert_eq!(of(&[7, 7, 8, 7, 9, 8], 2), (vec![7, 8], 4));
        assert_eq!(of(&[7; 500], 1), (vec![7], 500));
        assert_eq!(of(&[], 4), (vec![], 0));
    }

    #[test]
    fn a_chain_has_room_for_its_frames_alone() {
        let mut chain = Box::new(Chain::new());
        assert_eq!((0..500).take_while(|at| chain.push(1, *at)).count(), MAX_FRAMES);
        assert_eq!(chain.frames().0.len(), MAX_FRAMES);
    }
}
