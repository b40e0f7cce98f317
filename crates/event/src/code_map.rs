use crate::Code;

/// A power of two, far more than there are codes, so that a search is short.
const SLOTS: usize = 2048;
/// No code has so many bits.
const EMPTY: u32 = u32::MAX;

/// Values of some codes, looked up for every event.
#[derive(Clone, Debug)]
pub struct CodeMap<T> {
    /// A code is in the slot of its number's hash, or in the first free one after it.
    slots: [Slot<T>; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    code: u32,
    value: T,
}

impl<T: Copy> CodeMap<T> {
    /// Creates the map of these codes and values; for a repeated code the later value counts. `blank` fills
    /// unused slots.
    ///
    /// # Panics
    /// If there are more than a thousand.
    pub fn new(blank: T, values: impl IntoIterator<Item = (Code, T)>) -> CodeMap<T> {
        let mut map = CodeMap { slots: [Slot { code: EMPTY, value: blank }; SLOTS] };
        let mut codes = 0;
        for (code, value) in values {
            let number = code.to_u32();
            let slot = slots_of(number).find(|slot| [number, EMPTY].contains(&map.slots[*slot].code));
            let slot = &mut map.slots[slot.expect("half of them are free")];
            codes += usize::from(slot.code == EMPTY);
            assert!(codes <= SLOTS / 2, "codes have room");
            *slot = Slot { code: number, value };
        }
        map
    }

    /// The value of a code, if it has one.
    #[inline(always)]
    pub fn get(&self, code: Code) -> Option<T> {
        let number = code.to_u32();
        for slot in slots_of(number) {
            let slot = &self.slots[slot];
            if slot.code == number {
                return Some(slot.value);
            }
            if slot.code == EMPTY {
                break;
            }
        }
        None
    }
}

/// The slots that may hold a code.
#[inline(always)]
fn slots_of(number: u32) -> impl Iterator<Item = usize> {
    // Fibonacci hashing.
    let first = number.wrapping_mul(0x9e37_79b9) >> (u32::BITS - SLOTS.ilog2());
    (first as usize..).map(|slot| slot % SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::MODELS;

    #[test]
    fn codes_of_all_models_are_found_and_no_others() {
        let codes = || MODELS.iter().flat_map(|model| model.events).map(|event| event.code);
        let map = CodeMap::new(0, codes().zip(1..));
        assert!(codes().zip(1..).all(|(code, number)| map.get(code) == Some(number)));
        let mut unknown = 0;
        for number in 0..1 << 24 {
            let [a, b, c, _] = u32::to_le_bytes(number);
            unknown += usize::from(map.get(Code([a, b, c])).is_none());
        }
        assert_eq!(unknown, (1 << 24) - codes().count());
    }

    #[test]
    fn a_full_map_finds_entries_that_share_slots() {
        let code = |number: u32| Code([number as u8, (number >> 8) as u8, 7]);
        let map = CodeMap::new(0, (0..1024).chain(0..5).map(|number| (code(number), number + 1)));
        assert!((0..1024).all(|number| map.get(code(number)) == Some(number + 1)));
        assert!((1024..9000).all(|number| map.get(code(number)).is_none()));
    }
}
