//! Entries of texts without handles, found by content and without a lock.
//!
//! Programs pass such a text anew with each event, often at an address that held another one before. An entry is made at
//! the first event of its text, and lives for the process: later events hash the text, and compare it once.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use crate::cached::Cached;

/// Longest text of an entry; texts that are equal up to here share one.
const MAX_TEXT: usize = 1_000;
/// Places in which the entry of a text may be.
const MAX_PROBES: usize = 32;

/// Distinguishes equal texts: kind of the name, its domain.
pub type Scope = [u64; 2];

/// The numbers of a text in the dictionary, by use.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Its number as a state, a key or another name: one use per scope.
    pub number: Cached,
    /// A total that belongs to the text.
    pub total: AtomicU64,
}

struct Entry {
    scope: Scope,
    text: Box<[u8]>,
    numbers: Numbers,
}

/// Entries in a table of fixed size.
pub struct Names<const SIZE: usize>([AtomicPtr<Entry>; SIZE]);

impl<const SIZE: usize> Names<SIZE> {
    /// Without entries.
    pub const fn new() -> Self {
        Names([const { AtomicPtr::new(core::ptr::null_mut()) }; SIZE])
    }

    /// The numbers of a text, with the text as it is kept; `None` if it has no entry and there is no room for one.
    #[inline]
    pub fn find(&'static self, scope: Scope, text: &[u8]) -> Option<(&'static Numbers, &'static [u8])> {
        let text = text.get(..MAX_TEXT).unwrap_or(text);
        let first = hash(scope, text) as usize;
        for probe in 0..MAX_PROBES.min(SIZE) {
            let place = self.0.get((first.wrapping_add(probe)) % SIZE)?;
            // SAFETY: null, or an entry that is never freed.
            let entry = match unsafe { place.load(Acquire).as_ref() } {
                Some(entry) => entry,
                None => fill(place, scope, text),
            };
            if entry.scope == scope && *entry.text == *text {
                return Some((&entry.numbers, &entry.text));
            }
        }
        None
    }
}

/// Puts an entry into an empty place. Returns the one that is there now, which may be another thread's.
#[cold]
fn fill(place: &'static AtomicPtr<Entry>, scope: Scope, text: &[u8]) -> &'static Entry {
    let made = Box::into_raw(Box::new(Entry { scope, text: text.into(), numbers: Numbers::default() }));
    match place.compare_exchange(core::ptr::null_mut(), made, AcqRel, Acquire) {
        // SAFETY: entries in the table are never freed.
        Ok(_) => unsafe { &*made },
        Err(other) => {
            // SAFETY: `made` is not in the table; `other` is, and is never freed.
            unsafe {
                drop(Box::from_raw(made));
                &*other
            }
        }
    }
}

/// Values that programs know by a number from 1 on, at most `SIZE`.
pub struct Numbered<V, const SIZE: usize> {
    values: [AtomicPtr<V>; SIZE],
    count: AtomicU32,
}

impl<V, const SIZE: usize> Numbered<V, SIZE> {
    /// Without values.
    pub const fn new() -> Self {
        let values = [const { AtomicPtr::new(core::ptr::null_mut()) }; SIZE];
        Numbered { values, count: AtomicU32::new(0) }
    }

    /// Keeps a value; returns its number, 0 without room.
    pub fn add(&'static self, value: V) -> u32 {
        let count =
            self.count.fetch_update(Relaxed, Relaxed, |count| ((count as usize) < SIZE).then_some(count + 1));
        let Some((index, place)) =
            count.ok().and_then(|index| Some((index, self.values.get(index as usize)?)))
        else {
            return 0;
        };
        place.store(Box::into_raw(Box::new(value)), Release);
        index + 1
    }

    /// The value with this number.
    pub fn get(&'static self, number: u32) -> Option<&'static V> {
        let place = self.values.get((number as usize).checked_sub(1)?)?;
        // SAFETY: null, or a value that is never freed.
        unsafe { place.load(Acquire).as_ref() }
    }
}

/// A hash of eight bytes at a time.
fn hash(scope: Scope, text: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let words = text.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(place, byte)| *place = *byte);
        u64::from_le_bytes(word)
    });
    let hash = scope.into_iter().chain(words).fold(text.len() as u64, mix);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_entry_in_each_scope() {
        static NAMES: Names<64> = Names::new();
        let number = |scope, text: &[u8]| core::ptr::from_ref(NAMES.find(scope, text).unwrap().0).addr();
        let copy = b"advect".to_vec();
        assert_eq!(number([1, 0], b"advect"), number([1, 0], &copy));
        assert_ne!(number([1, 0], b"advect"), number([2, 0], b"advect"));
        assert_ne!(number([1, 0], b"advect"), number([1, 0], b"advect\0"));
        let long = [b'x'; MAX_TEXT + 10];
        assert_eq!(NAMES.find([0, 0], &long).unwrap().1.len(), MAX_TEXT);
    }

    #[test]
    fn a_full_table_refuses_new_texts_and_keeps_the_others() {
        static NAMES: Names<8> = Names::new();
        let found = (0..100_u64).filter(|scope| NAMES.find([*scope, 0], b"name").is_some()).count();
        assert_eq!(found, 8);
        assert!((0..8_u64).all(|scope| NAMES.find([scope, 0], b"name").is_some()));
    }

    #[test]
    fn threads_that_meet_a_text_at_once_share_its_entry() {
        static NAMES: Names<256> = Names::new();
        let find =
            || (0..100_u64).map(|scope| core::ptr::from_ref(NAMES.find([scope, 7], b"t").unwrap().0).addr());
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(move || find().collect::<Vec<_>>())).collect();
        let mut found = threads.into_iter().map(|thread| thread.join().unwrap());
        let first = found.next().unwrap();
        assert!(found.all(|other| other == first));
    }
}
