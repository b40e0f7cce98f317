//! The Python frames of the calling thread, innermost first.

use super::code;
use super::interpreter::Interpreter;
use super::layout::{Flags, Frames, Innermost};
use super::memory::{word, words};
use crate::sampler::settings::settings;

/// Deeper frames are cut off.
pub const MAX_FRAMES: usize = 192;
/// Nanoseconds of a sampling period for each frame that is read. A frame costs one or two microseconds, in two to five
/// system calls: a thread must come further between two samples, however deep its stack is.
const PERIOD_OF_FRAME_NS: u64 = 20_000;

/// Number of frames that are read for a sample.
fn room(period_ns: Option<u64>) -> usize {
    period_ns.map_or(MAX_FRAMES, |period_ns| ((period_ns / PERIOD_OF_FRAME_NS) as usize).clamp(1, MAX_FRAMES))
}

/// The Python frames of a thread.
pub struct Chain {
    /// Places of the frames, innermost first.
    places: [u64; MAX_FRAMES],
    /// Address on the C stack of the loop that runs a frame, of the outermost one that it runs; 0 for the others.
    loops: [u64; MAX_FRAMES],
    count: usize,
    /// Number of frames that may be read.
    room: usize,
    /// Whether the frames of a loop are known by their order alone.
    pub in_order: bool,
}

impl Chain {
    /// None yet.
    pub const fn new() -> Chain {
        Chain { places: [0; MAX_FRAMES], loops: [0; MAX_FRAMES], count: 0, room: MAX_FRAMES, in_order: false }
    }

    /// Frames with these loops, and places from 1000 on.
    #[cfg(test)]
    pub fn of(loops: &[u64], in_order: bool) -> Chain {
        let mut chain = Chain { in_order, ..Chain::new() };
        for (address, place) in loops.iter().zip(1000..) {
            assert!(chain.push(place));
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
    pub fn read(&mut self, interpreter: &Interpreter) -> bool {
        self.count = 0;
        self.room = room(settings().map(|settings| settings.period_ns));
        self.in_order = false;
        let Some(state) = thread_state(interpreter) else { return false };
        let read = match &interpreter.layout.frames {
            Frames::Objects { frame, records, instruction } => {
                self.read_objects(interpreter, state, *frame, *records, *instruction)
            }
            Frames::Inlined { innermost, previous, code, instruction, flags } => {
                self.read_inlined(interpreter, state, innermost, (*previous, *code, *instruction), flags)
            }
        };
        read.is_some() && self.count > 0
    }

    fn push(&mut self, place: u64) -> bool {
        if self.count >= self.room {
            return false;
        }
        let (Some(to), Some(mark)) = (self.places.get_mut(self.count), self.loops.get_mut(self.count)) else {
            return false;
        };
        (*to, *mark) = (place, 0);
        self.count += 1;
        true
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
        interpreter: &Interpreter,
        state: u64,
        frame: u64,
        records: Option<(u64, u64)>,
        (instruction, unit): (u64, u64),
    ) -> Option<()> {
        let mut frame = word(state + frame)?;
        while frame != 0 {
            let [back, code]: [u64; 2] = words(frame + 24)?;
            // None has run: −1.
            let at = (word(frame + instruction)? as u32 as i32).max(0) as u64 * unit;
            if !self.push(code::place(interpreter, code, |_| at)?) {
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
        let (innermost, mut loops) = (word(state + first)?, 0);
        let mut record = innermost;
        while is_on_stack(record) && loops < 2 * self.room {
            record = word(record + next)?;
            loops += 1;
        }
        // The innermost loop has begun, and has no frame yet.
        let without = loops.checked_sub(self.count).filter(|without| *without <= 1)?;
        record = if without == 1 { word(innermost + next)? } else { innermost };
        for frame in 0..self.count {
            self.set_loop(frame, record);
            record = word(record + next)?;
        }
        Some(())
    }

    fn read_inlined(
        &mut self,
        interpreter: &Interpreter,
        state: u64,
        innermost: &Innermost,
        (previous, code, instruction): (usize, usize, usize),
        flags: &Flags,
    ) -> Option<()> {
        /// Words of a frame that are read.
        const WORDS: usize = 9;
        let (mut record, mut frame) = match innermost {
            Innermost::Record(first, frame, _) => {
                let record = word(state + first)?;
                (record, word(record + frame)?)
            }
            Innermost::Frame(first) => (0, word(state + first)?),
        };
        for _ in 0..3 * self.room {
            if frame == 0 {
                return Some(());
            }
            let content: [u64; WORDS] = words(frame)?;
            let field = |at: usize| content.get(at / 8).copied();
            let byte = |at: usize| field(at).map(|word| word >> (at % 8 * 8) & 0xff);
            let next = field(previous)?;
            match flags {
                Flags::Owner(at) if byte(*at)? == 3 => self.end_loop(frame),
                _ => {
                    let at = field(instruction)?;
                    let place = code::place(interpreter, field(code)?, |begin| at.saturating_sub(begin))?;
                    if !self.push(place) {
                        return Some(());
                    }
                }
            }
            if let (Flags::IsEntry(at), Innermost::Record(_, _, outer)) = (flags, innermost)
                && byte(*at)? != 0
            {
                self.end_loop(record);
                record = word(record + outer)?;
            }
            frame = next;
        }
        None
    }
}

/// The state of the calling thread, which names it.
fn thread_state(interpreter: &Interpreter) -> Option<u64> {
    let [key] = words::<1>(interpreter.runtime + interpreter.layout.key)?;
    let (is_made, key) = (key as u32, (key >> 32) as libc::pthread_key_t);
    if is_made != 1 {
        return None;
    }
    // SAFETY: reads memory of the calling thread; a key that is gone gives null.
    let (state, own) = unsafe { (libc::pthread_getspecific(key) as u64, libc::pthread_self()) };
    (state != 0 && word(state + interpreter.layout.thread_id)? == own).then_some(state)
}
