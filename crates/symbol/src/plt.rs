//! Stubs that the linker makes for calls into other files (`name@plt`), which no symbol names. x86-64 only.
//!
//! A stub is `jmp *slot(%rip)`, often behind `endbr64` and with a `bnd` prefix; the loader fills the slot with the address of
//! the function that the slot's relocation names.

use crate::name::{STUB, demangle};
use crate::object_file::Function;
use object::{Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use rustc_hash::FxHashMap;

/// The stubs of a file, in the order of their addresses.
pub fn stubs_of(file: &object::File<'_>) -> Vec<Function> {
    let Some(slots) = slots_of(file) else { return Vec::new() };
    let mut stubs = Vec::new();
    for section in file.sections() {
        let (Ok(name), Ok(code)) = (section.name(), section.data()) else { continue };
        if !name.starts_with(".plt") {
            continue;
        }
        // Those of `.plt.got` are not called lazily, and shorter.
        let size = if name == ".plt.got" { 8 } else { 16 };
        for (index, window) in code.windows(6).enumerate() {
            let [0xff, 0x25, distance @ ..] = window else { continue };
            let Some(distance) = distance.first_chunk().map(|bytes| i32::from_le_bytes(*bytes)) else {
                continue;
            };
            // Addresses of a damaged file may be any.
            let Some(next) = section.address().checked_add(index as u64 + 6) else { continue };
            let Some(end) = next.checked_next_multiple_of(size) else { continue };
            let Some(function) = slots.get(&next.wrapping_add_signed(i64::from(distance))) else { continue };
            let before = code[..index].strip_suffix(&[0xf2]).unwrap_or(&code[..index]);
            let before = before.strip_suffix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(before);
            let start = section.address() + before.len() as u64;
            stubs.push(Function { start, end, name: demangle(function) + STUB });
        }
    }
    stubs.sort_by_key(|stub| stub.start);
    stubs
}

/// Slots into which the loader stores addresses of functions: address of the slot to function.
fn slots_of<'a>(file: &object::File<'a>) -> Option<FxHashMap<u64, &'a str>> {
    if file.architecture() != Architecture::X86_64 {
        return None;
    }
    let symbols = file.dynamic_symbol_table()?;
    let named = file.dynamic_relocations()?.filter_map(|(address, relocation)| match relocation.target() {
        RelocationTarget::Symbol(index) => {
            let name = symbols.symbol_by_index(index).ok()?.name().ok()?;
            (!name.is_empty()).then_some((address, name))
        }
        _ => None,
    });
    Some(named.collect())
}
