//! Frames of Python among native frames.

use super::chain::{Chain, MAX_FRAMES};

/// Native frames of a stack, innermost first, in memory with room for more.
pub struct Native<'a, T> {
    /// Their addresses.
    pub addresses: &'a mut [u64],
    /// Their stack pointers, and that behind the last one.
    pub stack_pointers: &'a mut [u64],
    /// Something more of each.
    pub owners: &'a mut [T],
    /// Number of frames.
    pub count: usize,
}

/// The frames of Python that a native frame runs.
#[derive(Clone, Copy, Default)]
struct Part {
    native: u16,
    first: u16,
    end: u16,
}

impl<T: Copy> Native<'_, T> {
    /// Puts Python's frames in the place of the native ones that run them. A loop that is on no native frame is left out.
    /// Addresses inside an instruction of the loop's function satisfy `is_loop`. Returns the number of all frames,
    /// although only so many as fit are stored; `None` if nothing was put.
    pub fn insert(&mut self, chain: &mut Chain, owner: T, is_loop: impl Fn(u64) -> bool) -> Option<usize> {
        if chain.in_order {
            self.match_in_order(chain, is_loop)?;
        }
        let (places, loops) = chain.frames();
        let mut parts = [Part::default(); MAX_FRAMES];
        let mut count = 0;
        let mut total = self.count;
        let (mut first, mut native) = (0, 0);
        for (index, address) in loops.iter().enumerate().filter(|(_, address)| **address != 0) {
            while native < self.count && self.stack_pointers.get(native + 1).is_none_or(|end| end <= address)
            {
                native += 1;
            }
            let is_here = native < self.count && self.stack_pointers.get(native)? <= address;
            if is_here {
                *parts.get_mut(count)? =
                    Part { native: native as u16, first: first as u16, end: index as u16 + 1 };
                count += 1;
                total += index - first;
                native += 1;
            }
            first = index + 1;
        }
        let mut parts = parts.get(..count)?.iter().rev().peekable();
        parts.peek()?;
        // From the outermost frame on, so that none is overwritten before it is moved.
        let mut to = total;
        for index in (0..self.count).rev() {
            let sp = *self.stack_pointers.get(index)?;
            match parts.next_if(|part| usize::from(part.native) == index) {
                Some(part) => {
                    let part = places.get(usize::from(part.first)..usize::from(part.end))?;
                    for place in part.iter().rev() {
                        to -= 1;
                        self.put(to, (*place, sp, owner));
                    }
                }
                None => {
                    to -= 1;
                    self.put(to, (*self.addresses.get(index)?, sp, *self.owners.get(index)?));
                }
            }
        }
        Some(total)
    }

    fn put(&mut self, to: usize, (address, sp, owner): (u64, u64, T)) {
        if let (Some(addresses), Some(stack_pointers), Some(owners)) =
            (self.addresses.get_mut(to), self.stack_pointers.get_mut(to), self.owners.get_mut(to))
        {
            (*addresses, *stack_pointers, *owners) = (address, sp, owner);
        }
    }

    /// Matches each frame of Python with a native frame of the loop. `None` if their numbers differ.
    fn match_in_order(&self, chain: &mut Chain, is_loop: impl Fn(u64) -> bool) -> Option<()> {
        let addresses = || self.addresses.iter().take(self.count).enumerate();
        // The innermost address is no return address.
        let loops = || {
            addresses()
                .filter(|(index, address)| is_loop(address.wrapping_sub(u64::from(*index > 0))))
                .map(|(index, _)| index)
        };
        let frames = chain.frames().0.len();
        // A loop that has begun may have no frame yet.
        let without = loops().count().checked_sub(frames).filter(|without| *without <= 1)?;
        for (frame, native) in loops().skip(without).enumerate() {
            chain.set_loop(frame, *self.stack_pointers.get(native)?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of frames; address, stack pointer and owner of each.
    type Merged = (usize, Vec<(u64, u64, u8)>);

    /// Four native frames, at 100, 200, 300 and 400 on the stack, up to 500; the result for Python frames with these loops.
    fn merged(room: usize, loops: &[u64], in_order: bool) -> Option<Merged> {
        let mut addresses = vec![10, 20, 30, 40];
        let mut stack_pointers = vec![100, 200, 300, 400, 500];
        let mut owners = vec![b'n'; 4];
        addresses.resize(room, 0);
        stack_pointers.resize(room + 1, 0);
        owners.resize(room, 0);
        let mut chain = Chain::of(loops, in_order);
        let mut native = Native {
            addresses: &mut addresses,
            stack_pointers: &mut stack_pointers,
            owners: &mut owners,
            count: 4,
        };
        // Of return addresses, the byte before.
        let total = native.insert(&mut chain, b'p', |address| address == 10 || address == 39)?;
        let all = addresses.iter().zip(&stack_pointers).zip(&owners).map(|((a, b), c)| (*a, *b, *c));
        Some((total, all.take(total).collect()))
    }

    #[test]
    fn frames_of_python_take_the_place_of_their_loop() {
        let (total, all) = merged(8, &[0, 250, 450], false).unwrap();
        assert_eq!(total, 5);
        let expected =
            [(10, 100, b'n'), (1000, 200, b'p'), (1001, 200, b'p'), (30, 300, b'n'), (1002, 400, b'p')];
        assert_eq!(all, expected);
        // A loop on another stack, and one of none.
        let (total, all) = merged(8, &[50, 0, 0, 350], false).unwrap();
        assert_eq!((total, &all[2..4]), (6, &[(1001, 300, b'p'), (1002, 300, b'p')][..]));
        assert!(merged(8, &[900], false).is_none());
        assert!(merged(8, &[], false).is_none());
        let (total, all) = merged(5, &[0, 0, 0, 250], false).unwrap();
        assert_eq!((total, all.len(), all[4].0), (7, 5, 1003));
    }

    #[test]
    fn frames_in_order_match_as_many_loops() {
        let (_, all) = merged(8, &[0, 0], true).unwrap();
        assert_eq!(all, [(1000, 100, b'p'), (20, 200, b'n'), (30, 300, b'n'), (1001, 400, b'p')]);
        let (_, all) = merged(8, &[0], true).unwrap();
        assert_eq!(all[3], (1000, 400, b'p'));
        assert!(merged(8, &[0, 0, 0], true).is_none());
    }
}
