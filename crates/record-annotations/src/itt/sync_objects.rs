//! Names of synchronisation objects by address, looked up without a lock.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use taskscope_record::instrument::{Class, named};

use crate::cached::Cached;
use crate::names::Names;

/// Base-2 logarithm of the table's size.
const SIZE_LOG2: u32 = 12;
/// Number of entries that an address may have.
const MAX_PROBES: usize = 8;

struct Name {
    text: &'static [u8],
    state: Cached,
}

/// The name with this text, which is made once: objects at one address change their names again and again. `None` without room.
fn name_of(text: &[u8]) -> Option<&'static Name> {
    static NAMES: Names<4_096> = Names::new();
    let (numbers, text) = NAMES.find([0, 0], text)?;
    let mut known = numbers.total.load(Acquire);
    if known == 0 {
        let made = Box::into_raw(Box::new(Name { text, state: Cached::default() }));
        known = made.expose_provenance() as u64;
        if let Err(other) = numbers.total.compare_exchange(0, known, AcqRel, Acquire) {
            // SAFETY: made above, and not shared.
            drop(unsafe { Box::from_raw(made) });
            known = other;
        }
    }
    // SAFETY: a name that is never freed.
    unsafe { core::ptr::with_exposed_provenance::<Name>(known as usize).as_ref() }
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
        // Without room for its name, the object has not that of another one that was here.
        let name = name_of(text).map_or(core::ptr::null_mut(), |name| core::ptr::from_ref(name).cast_mut());
        place.name.store(name, Release);
    }
}

/// The state of waiting for the object at an address.
pub fn waiting_state(address: usize) -> Option<u32> {
    static OTHERS: Cached = Cached::new();
    let known = entries(address).find(|entry| entry.address.load(Acquire) == address);
    // SAFETY: null, or a name that is never freed.
    match known.and_then(|entry| unsafe { entry.name.load(Acquire).as_ref() }) {
        Some(name) => name.state.number(|| wait_state(name.text)),
        None => OTHERS.number(|| wait_state(b"a synchronisation object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_once() {
        let named = |text: &[u8]| {
            name(0x1000, text);
            entries(0x1000).find(|entry| entry.address.load(Relaxed) == 0x1000).unwrap().name.load(Relaxed)
        };
        let first = named(b"queuing_mutex");
        assert_ne!(named(b"spin_mutex"), first);
        assert_eq!(named(b"queuing_mutex"), first);
    }
}
