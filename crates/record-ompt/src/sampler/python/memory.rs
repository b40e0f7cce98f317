//! Words of the interpreter's memory.

use crate::sampler::machine::copy_from_anywhere;

/// A word of memory that may not be there.
pub fn word(address: u64) -> Option<u64> {
    words::<1>(address).map(|[word]| word)
}

/// Consecutive words of memory that may not be there.
pub fn words<const COUNT: usize>(address: u64) -> Option<[u64; COUNT]> {
    let mut words = [0_u64; COUNT];
    // SAFETY: numbers as bytes, of the same memory.
    let bytes =
        unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of_val(&words)) };
    (copy_from_anywhere(address, bytes) == size_of_val(&words)).then_some(words)
}
