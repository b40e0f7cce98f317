//! Names of functions that gcc inlined.
//!
//! For a function of one file (a lambda, for example) gcc's debug information has no linkage name, thus no namespace,
//! class or enclosing function. Symbols have these: the symbol of the function itself, if it exists, and those of the
//! bodies outlined from it for OpenMP, which debug information has within it.

use crate::debug::{Debug, Unit};
use crate::object_file::{Function, Reader};
use gimli::AttributeValue;
use rustc_hash::FxHashMap;

/// Linkage names, by the place of the function's description in debug information.
#[derive(Default)]
pub(crate) struct InlinedNames(FxHashMap<EntryOffset, String>);

/// An offset in the file's debug information, or in that which the unit of this id has outside of it.
type EntryOffset = (Option<u64>, usize);

impl InlinedNames {
    /// The names that follow from the symbols of `functions`, which are sorted. A damaged unit gives its readable part.
    pub fn of(debug: &Debug, functions: &[Function]) -> InlinedNames {
        let mut names = InlinedNames::default();
        if functions.iter().any(|function| function.name.starts_with("_Z")) {
            debug.for_each_unit(|unit| names.add_unit(unit, functions));
        }
        names
    }

    fn add_unit(&mut self, of: &Unit<'_>, functions: &[Function]) -> Result<(), gimli::Error> {
        let (dwarf, unit) = (of.dwarf, of.unit);
        // Functions around, with their depths.
        let mut around: Vec<(isize, EntryOffset)> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            if entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let described = origin(unit, entry).or_else(|| in_section(unit, entry.offset()));
            let symbol = match entry.attr_value(gimli::DW_AT_low_pc) {
                Some(AttributeValue::Addr(start)) => Some(start),
                Some(AttributeValue::DebugAddrIndex(index)) => Some(dwarf.address(unit, index)?),
                _ => None,
            }
            .and_then(|start| functions.binary_search_by_key(&start, |function| function.start).ok())
            .map(|index| functions[index].name.as_str())
            .filter(|symbol| symbol.starts_with("_Z"));
            if let Some(symbol) = symbol {
                let body_symbol = symbol.split_once("._omp_fn.");
                let linkage = body_symbol.map_or(symbol, |(function, _)| function);
                let named = if body_symbol.is_some() { around.last().map(|(_, at)| *at) } else { described };
                if let Some(at) = named {
                    self.0.entry(at).or_insert_with(|| linkage.to_string());
                }
            }
            around.extend(described.map(|at| (depth, at)));
        }
        Ok(())
    }

    /// Whether there are no names, as in files that are not C++.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The linkage name of a function that was put in line, from `offset` in `unit`.
    pub fn find(&self, unit: &gimli::Unit<Reader>, offset: gimli::UnitOffset) -> Option<&str> {
        let inlined = unit.entry(offset).ok()?;
        self.0.get(&origin(unit, &inlined)?).map(String::as_str)
    }
}

/// The description of the function of which an entry is an instance.
fn origin(
    unit: &gimli::Unit<Reader>,
    entry: &gimli::DebuggingInformationEntry<Reader>,
) -> Option<EntryOffset> {
    match entry.attr_value(gimli::DW_AT_abstract_origin)? {
        AttributeValue::UnitRef(offset) => in_section(unit, offset),
        AttributeValue::DebugInfoRef(offset) => Some((unit_offset(unit), offset.0)),
        _ => None,
    }
}

fn in_section(unit: &gimli::Unit<Reader>, offset: gimli::UnitOffset) -> Option<EntryOffset> {
    Some((unit_offset(unit), offset.to_debug_info_offset(&unit.header)?.0))
}

fn unit_offset(unit: &gimli::Unit<Reader>) -> Option<u64> {
    unit.dwo_id.map(|id| id.0)
}
