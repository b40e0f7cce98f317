//! The recorder's memory: the C library's, whichever functions the program has substituted for `malloc`.
//!
//! Checkers and counters of the program's allocations (AddressSanitizer, LeakSanitizer, heap profilers) see none of the
//! recorder's.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(memory: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_free(memory: *mut c_void);
}

/// Alignment of all memory from the C library.
const ALIGNMENT: usize = 2 * size_of::<usize>();

struct CLibrary;

#[global_allocator]
static MEMORY: CLibrary = CLibrary;

/// Allocates memory with a larger alignment. `__libc_memalign` cannot be used, because sanitizers replace it.
/// The word before the memory holds the address of the allocation.
unsafe fn allocate_aligned(layout: Layout) -> *mut u8 {
    let Some(bytes) = layout.size().checked_add(layout.align()) else { return core::ptr::null_mut() };
    // SAFETY: a larger size than the layout's, which is not zero.
    unsafe {
        let whole = __libc_malloc(bytes).cast::<u8>();
        if whole.is_null() {
            return whole;
        }
        // At least [`ALIGNMENT`] further, which has room for the word.
        let aligned = whole.add(layout.align() - whole.addr() % layout.align());
        aligned.cast::<*mut u8>().sub(1).write(whole);
        aligned
    }
}

// SAFETY: memory of the C library's allocator, which is aligned to `ALIGNMENT`; larger alignments are made from it, and found again.
unsafe impl GlobalAlloc for CLibrary {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe {
            match layout.align() <= ALIGNMENT {
                true => __libc_malloc(layout.size()).cast(),
                false => allocate_aligned(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe {
            if layout.align() <= ALIGNMENT {
                return __libc_calloc(layout.size(), 1).cast();
            }
            let memory = allocate_aligned(layout);
            if !memory.is_null() {
                memory.write_bytes(0, layout.size());
            }
            memory
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by contract, this memory is from above.
        unsafe {
            let whole = match layout.align() <= ALIGNMENT {
                true => memory,
                false => memory.cast::<*mut u8>().sub(1).read(),
            };
            __libc_free(whole.cast());
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: by contract, this memory is from above, and the new size is not zero and fits.
        unsafe {
            if layout.align() <= ALIGNMENT {
                return __libc_realloc(memory.cast(), bytes).cast();
            }
            let new = allocate_aligned(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(memory, layout.size().min(bytes));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_hold_and_contents_stay() {
        for align in [1, 8, 16, 32, 64, 4096] {
            let layout = Layout::from_size_align(100, align).unwrap();
            // SAFETY: layouts of this size, used as they are allocated.
            unsafe {
                let memory = MEMORY.alloc_zeroed(layout);
                assert_eq!(memory.addr() % align, 0);
                assert!((0..100).all(|index| memory.add(index).read() == 0));
                memory.write_bytes(7, 100);
                let grown = MEMORY.realloc(memory, layout, 5000);
                assert_eq!(grown.addr() % align, 0);
                assert!((0..100).all(|index| grown.add(index).read() == 7), "{align}");
                MEMORY.dealloc(grown, Layout::from_size_align(5000, align).unwrap());
            }
        }
    }
}
