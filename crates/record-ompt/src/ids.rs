//! Ids that are unique in the process without a shared counter per use: threads take blocks.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ids per block. A thread that creates one task uses one block; four million fit in 32 bits.
pub const BLOCK: u32 = 1024;

/// The next free id of the process. One counter serves regions and tasks.
static NEXT: AtomicU64 = AtomicU64::new(BLOCK as u64);

/// A thread's block of ids.
#[derive(Default)]
pub struct Ids {
    next: u32,
    left: u32,
}

impl Ids {
    /// A new id; zero when 32 bits are used up.
    #[inline(always)]
    pub fn take(&mut self) -> u32 {
        if self.left == 0 {
            self.refill();
        }
        let id = self.next;
        // Without ids left in the process it stays zero, and every call refills.
        if self.left != 0 {
            self.take_next();
        }
        id
    }

    /// Returns the number that [`take`](Self::take) would return, if that needs no further call.
    #[inline(always)]
    pub fn next(&self) -> Option<u32> {
        (self.left != 0).then_some(self.next)
    }

    /// Takes the number that [`next`](Self::next) returned.
    #[inline(always)]
    pub fn take_next(&mut self) {
        self.next = self.next.wrapping_add(1);
        self.left = self.left.wrapping_sub(1);
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        let first = NEXT.fetch_add(u64::from(BLOCK), Relaxed);
        let fits = first + u64::from(BLOCK) <= 1 << 32;
        (self.next, self.left) = if fits { (first as u32, BLOCK) } else { (0, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn threads_never_share_an_id() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    let mut ids = Ids::default();
                    (0..5000).map(|_| ids.take()).collect::<Vec<_>>()
                })
            })
            .collect();
        let ids: Vec<u32> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        assert!(ids.iter().all(|id| *id != 0));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 20_000);
    }
}
