//! Exception handlers: the code after an exception leaves a call, from the tables of C++'s runtime (Itanium C++ ABI,
//! exception handling tables, section 7).

use crate::unwind_entries::each_entry;
use gimli::{EndianSlice, Pointer, RunTimeEndian};
use object::{Object as _, ObjectSection as _};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// No value: the begin of the function is the default.
const OMITTED: u8 = 0xff;

/// A handler of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The code with the calls of which it handles exceptions.
    pub calls: Range<u64>,
    /// Address of its first instruction.
    pub pad: u64,
}

/// The handlers of a file's functions, by the functions' first address.
pub fn handlers_of(file: &object::File<'_>) -> FxHashMap<u64, Vec<Handler>> {
    let mut all = FxHashMap::default();
    let Some(section) = file.section_by_name(".gcc_except_table") else { return all };
    let Ok(tables) = section.data() else { return all };
    each_entry(file, |entry| {
        let Some(Pointer::Direct(table)) = entry.lsda() else { return };
        let from = table.checked_sub(section.address()).and_then(|from| tables.get(from as usize..));
        let start = entry.initial_address();
        if let Some(handlers) = from.map(|table| handlers_in(table, start)) {
            all.insert(start, handlers);
        }
    });
    all
}

/// The handlers in the table of a function. A damaged table gives those before the damage.
fn handlers_in(table: &[u8], start: u64) -> Vec<Handler> {
    let mut handlers = Vec::new();
    let _ = read_handlers(EndianSlice::new(table, RunTimeEndian::Little), start, &mut handlers);
    handlers
}

fn read_handlers(
    mut table: EndianSlice<'_, RunTimeEndian>,
    start: u64,
    handlers: &mut Vec<Handler>,
) -> Result<(), gimli::Error> {
    use gimli::Reader as _;
    // Handlers that are not relative to the function's begin are in another part of it.
    if table.read_u8()? != OMITTED {
        return Ok(());
    }
    if table.read_u8()? != OMITTED {
        table.read_uleb128()?;
    }
    let form = table.read_u8()?;
    let size = table.read_uleb128()? as usize;
    let mut calls = table.split(size)?;
    while !calls.is_empty() {
        let (from, size, pad) =
            (number(&mut calls, form)?, number(&mut calls, form)?, number(&mut calls, form)?);
        let _action = calls.read_uleb128()?;
        if pad != 0 {
            let from = start.saturating_add(from);
            handlers.push(Handler { calls: from..from.saturating_add(size), pad: start.saturating_add(pad) });
        }
    }
    Ok(())
}

fn number(from: &mut EndianSlice<'_, RunTimeEndian>, form: u8) -> Result<u64, gimli::Error> {
    use gimli::Reader as _;
    match gimli::DwEhPe(form) {
        gimli::DW_EH_PE_uleb128 => from.read_uleb128(),
        gimli::DW_EH_PE_udata2 => from.read_u16().map(u64::from),
        gimli::DW_EH_PE_udata4 => from.read_u32().map(u64::from),
        gimli::DW_EH_PE_udata8 | gimli::DW_EH_PE_absptr => from.read_u64(),
        other => Err(gimli::Error::UnknownPointerEncoding(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_with_a_handler_are_read_and_those_without_are_none() {
        // Calls at 0x10..0x15 without one, at 0x20..0x28 with one at 0x30.
        let table = [0xff, 0xff, 1, 8, 0x10, 5, 0, 0, 0x20, 8, 0x30, 1];
        let handler = Handler { calls: 0x1020..0x1028, pad: 0x1030 };
        assert_eq!(handlers_in(&table, 0x1000), std::slice::from_ref(&handler));
        // A table that ends early, and one of another form.
        assert_eq!(handlers_in(&table[..table.len() - 2], 0x1000), []);
        assert_eq!(handlers_in(&[0xff, 0xff, 0x1b, 0], 0x1000), []);
        assert_eq!(handlers_in(&[], 0), []);
    }
}
