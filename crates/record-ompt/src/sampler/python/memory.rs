//! Words of the interpreter's memory.

use crate::sampler::bounds::Bounds;
use crate::sampler::machine::copy_from_anywhere;

/// A word of memory that may not be there.
pub fn word(address: u64) -> Option<u64> {
    words::<1>(address).map(|[word]| word)
}

/// Consecutive words of memory that may not be there.
pub fn words<const COUNT: usize>(address: u64) -> Option<[u64; COUNT]> {
    let mut words = [0_u64; COUNT];
    (copy_from_anywhere(address, bytes_of(&mut words)) == size_of_val(&words)).then_some(words)
}

/// Words as the bytes of the same memory.
pub fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: numbers, which any bytes are.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of_val(words)) }
}

/// Words of a page.
pub const PAGE_WORDS: usize = 512;
const PAGE_BYTES: u64 = PAGE_WORDS as u64 * 8;

/// Memory of the interpreter, read a page at a time: frames that follow each other are mostly on one page. The calling thread's
/// own stack is read in place.
pub struct Pages {
    stack: Bounds,
    /// The thread's stack pointer.
    sp: u64,
    /// The page in `copy`; 0 for none.
    page: u64,
    copy: [u64; PAGE_WORDS],
}

impl Pages {
    /// No memory yet.
    pub const fn new() -> Pages {
        Pages { stack: Bounds::NONE, sp: 0, page: 0, copy: [0; PAGE_WORDS] }
    }

    /// Memory as it is from now on, for a thread with this stack, whose pointer is at `sp`.
    pub fn renew(&mut self, stack: Bounds, sp: u64) {
        (self.stack, self.sp, self.page) = (stack, sp, 0);
    }

    /// Room for so many words, in the place of the page.
    pub fn room(&mut self, words: usize) -> Option<&mut [u64]> {
        self.page = 0;
        self.copy.get_mut(..words)
    }

    /// A field of an object that may not be there.
    pub fn field(&mut self, object: u64, at: u64) -> Option<u64> {
        self.words::<1>(object.checked_add(at)?).map(|[word]| word)
    }

    /// Consecutive words of memory that may not be there.
    pub fn words<const COUNT: usize>(&mut self, address: u64) -> Option<[u64; COUNT]> {
        if address & 7 != 0 {
            return None;
        }
        let last = address.checked_add(COUNT as u64 * 8)?.checked_sub(8)?;
        let Pages { stack, sp, .. } = *self;
        if stack.is_above(sp, address) && stack.is_above(sp, last) {
            // SAFETY: in the thread's own stack, above its stack pointer, which is mapped; only this thread changes it.
            return Some(core::array::from_fn(|index| unsafe {
                (address as *const u64).wrapping_add(index).read_volatile()
            }));
        }
        let page = address & !(PAGE_BYTES - 1);
        if last & !(PAGE_BYTES - 1) != page {
            return words(address);
        }
        if page != self.page {
            self.page = 0;
            if copy_from_anywhere(page, bytes_of(&mut self.copy)) != PAGE_BYTES as usize {
                return None;
            }
            self.page = page;
        }
        let first = (address - page) as usize / 8;
        self.copy.get(first..first + COUNT)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_pages_are_those_of_memory() {
        let memory: Vec<u64> = (0..3 * PAGE_WORDS as u64).collect();
        let start = memory.as_ptr() as u64;
        let in_place = Bounds::of(&memory);
        for (stack, sp) in [(Bounds::default(), 0), (in_place, start), (in_place, start + 8 * 700)] {
            let mut pages = Box::new(Pages::new());
            pages.renew(stack, sp);
            // Backwards, as frames are, and over the borders of pages.
            for index in (0..memory.len() - 3).rev() {
                let found = pages.words::<3>(start + index as u64 * 8);
                assert_eq!(found, Some([0, 1, 2].map(|next| (index + next) as u64)), "{index}");
            }
            assert_eq!(pages.field(start, 4), None, "no word begins there");
            assert_eq!(pages.field(0x10_0000_0000, 0), None);
            assert_eq!(pages.words::<2>(u64::MAX - 7), None);
            assert_eq!(pages.field(u64::MAX, 1), None);
            assert_eq!(pages.field(start, 0), Some(0), "after a page that is not there");
        }
    }
}
