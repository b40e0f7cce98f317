//! Addresses of a module's exported symbols, from its tables in memory. Not by `dlsym`, which changes what the
//! program's `dlerror` returns.

use super::memory::{word, words};
use crate::sampler::machine::copy_from_anywhere;
use crate::sampler::modules::MappedModule;

/// More chained symbols are not searched.
const MAX_CHAIN: u64 = 1 << 16;

/// The address of an exported symbol. Tables that do not fit give none.
pub fn address_of(module: &MappedModule, name: &str) -> Option<u64> {
    Some(symbol_of(module, name)?.0)
}

/// Address and size of an exported symbol.
pub fn symbol_of(module: &MappedModule, name: &str) -> Option<(u64, u64)> {
    const DYNAMIC: u32 = 2;
    const HASH: u64 = 0x6fff_fef5;
    let header: [u64; 8] = words(module.start)?;
    let is_elf = header.first()?.to_le_bytes().starts_with(b"\x7fELF");
    let table = module.start.checked_add(*header.get(4)?).filter(|_| is_elf)?;
    let count = u64::from((*header.get(7)? & 0xffff) as u16);
    let segment = (0..count).find_map(|number| {
        let [kind, _, address]: [u64; 3] = words(table.checked_add(number.checked_mul(56)?)?)?;
        (kind as u32 == DYNAMIC).then_some(module.bias.wrapping_add(address))
    })?;
    let (mut names, mut symbols, mut hashes) = (None, None, None);
    for number in 0..256 {
        let [tag, value]: [u64; 2] = words(segment + number * 16)?;
        // The loader has relocated them in place.
        let at = Some(if module.contains(value) { value } else { module.bias.wrapping_add(value) });
        match tag {
            0 => break,
            5 => names = at,
            6 => symbols = at,
            HASH => hashes = at,
            _ => {}
        }
    }
    find(name, names?, symbols?, hashes?, module.bias)
}

/// Looks a name up in a table of GNU's form: buckets, first symbol, size of the filter and its shift; the filter, buckets,
/// and the hash of each symbol, with the lowest bit set in the last one of a bucket.
fn find(name: &str, names: u64, symbols: u64, hashes: u64, bias: u64) -> Option<(u64, u64)> {
    let hash = name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
    let [one, two]: [u64; 2] = words(hashes)?;
    let (buckets, first) = (one & 0xffff_ffff, one >> 32);
    let start = hashes.checked_add(16)?.checked_add((two & 0xffff_ffff).checked_mul(8)?)?;
    let half = |at: u64| word(at).map(|word| word & 0xffff_ffff);
    let bucket = u64::from(hash).checked_rem(buckets)?;
    let lowest = half(start.checked_add(bucket.checked_mul(4)?)?).filter(|number| *number >= first)?;
    let chains = start.checked_add(buckets.checked_mul(4)?)?;
    for number in lowest..lowest + MAX_CHAIN {
        let symbol_hash = half(chains.checked_add((number - first).checked_mul(4)?)?)?;
        if symbol_hash | 1 == u64::from(hash | 1) {
            let [text, value, size]: [u64; 3] = words(symbols.checked_add(number.checked_mul(24)?)?)?;
            if value != 0 && has_name(names.checked_add(text & 0xffff_ffff)?, name) {
                return Some((bias.wrapping_add(value), size));
            }
        }
        if symbol_hash & 1 == 1 {
            return None;
        }
    }
    None
}

fn has_name(at: u64, name: &str) -> bool {
    let mut text = [0; 64];
    let Some(text) = text.get_mut(..name.len() + 1) else { return false };
    copy_from_anywhere(at, text) == text.len() && text.strip_suffix(&[0]) == Some(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::modules;

    #[test]
    fn exported_symbols_have_the_loaders_addresses() {
        let own = libc::getpid as unsafe extern "C" fn() -> i32 as usize as u64;
        let module = modules::find(own).unwrap();
        // SAFETY: looks up a C string.
        let loaders = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getpid".as_ptr()) };
        assert_eq!(address_of(&module, "getpid"), Some(loaders as u64));
        assert_eq!(address_of(&module, "getpid_"), None);
        let elsewhere = modules::MappedModule { start: 0x1000, ..module };
        assert_eq!(address_of(&elsewhere, "getpid"), None);
    }
}
