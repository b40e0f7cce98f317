//! Names of synchronisation objects by address, looked up without a lock.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use taskscope_record::instrument::{Class, named};

use crate::cached::Cached;

/// Base-2 logarithm of the table's size.
const SIZE_LOG2: u32 = 12;
/// Number of entries that an address may have.
const MAX_PROBES: usize = 8;

struct Name {
    text: Vec<u8>,
    state: Cached,
}

struct Entry {
    address: AtomicUsize,
    /// Never freed, as another thread may be reading it.
    name: AtomicPtr<Name>,
}

static TABLE: [Entry; 1 << SIZE_LOG2] =
    [const { Entry { address: AtomicUsize::new(0), name: AtomicPtr::new(core::ptr::null_mut()) } };
        1 << SIZE_LOG2];

fn entries(address: usize) -> impl Iterator<Item = &'static Entry> {
    let first = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - SIZE_LOG2);
    (first..first + MAX_PROBES).filter_map(|index| TABLE.get(index % TABLE.len()))
}

fn wait_state(text: &[u8]) -> Option<u32> {
    named::state(
        &[b"wait for ", text].concat(),
        b"wait for a synchronisation object, reported through ITT",
        Class::Lock as u32,
    )
}

/// Names the object at an address; without room, it stays without a name.
pub fn name(address: usize, text: &[u8]) {
    let place = entries(address).find(|entry| {
        let taken = entry.address.compare_exchange(0, address, AcqRel, Acquire);
        taken.is_ok() || taken == Err(address)
    });
    let Some(place) = place else { return };
    // SAFETY: null, or a name that is never freed.
    let known = unsafe { place.name.load(Acquire).as_ref() };
    if known.is_none_or(|known| known.text != text) {
        let name = Name { text: text.to_owned(), state: Cached::default() };
        place.name.store(Box::into_raw(Box::new(name)), Release);
    }
}

/// The state of waiting for the object at an address.
pub fn waiting_state(address: usize) -> Option<u32> {
    static OTHERS: Cached = Cached::new();
    let known = entries(address).find(|entry| entry.address.load(Acquire) == address);
    // SAFETY: null, or a name that is never freed.
    match known.and_then(|entry| unsafe { entry.name.load(Acquire).as_ref() }) {
        Some(name) => name.state.number(|| wait_state(&name.text)),
        None => OTHERS.number(|| wait_state(b"a synchronisation object")),
    }
}
