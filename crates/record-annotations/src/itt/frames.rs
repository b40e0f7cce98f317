//! Frames: repeated parts of a program, numbered in each domain.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::abi::{Domain, Id};
use super::handles;
use crate::overlapped::{self, IntervalKind};
use crate::text::bytes;

/// Number of the next frame, over all domains.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn subject(domain: &Domain, id: Id) -> overlapped::Subject {
    let [first, second, _] = id.words;
    (IntervalKind::Frame, [core::ptr::from_ref(domain).addr() as u64, first, second])
}

/// Begins a frame.
pub fn begin(domain: &Domain, id: Id) {
    let key = domain.frame_key.number(|| {
        // SAFETY: names of domains are C strings that live as long as the domains.
        let name = [&b"frame "[..], unsafe { bytes(domain.name) }].concat();
        handles::interval_key(&name, b"frame reported through ITT")
    });
    if let Some(key) = key {
        overlapped::begin(subject(domain, id), key, NEXT.fetch_add(1, Relaxed));
    }
}

/// Ends a frame.
pub fn end(domain: &Domain, id: Id) {
    overlapped::end(subject(domain, id));
}
