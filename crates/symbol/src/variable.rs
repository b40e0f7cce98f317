//! Static variables: the variable that holds an address, and the position in it.
//!
//! Names and dimensions of arrays come from debug information, else names from the symbol table.

use crate::debug::{Debug, Unit};
use crate::name;
use crate::object_file::{Reader, data_symbols};
use gimli::{AttributeValue, Operation, UnitOffset};

/// A variable at a fixed address of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub start: u64,
    pub end: u64,
    pub name: String,
    /// Lengths of an array's dimensions, the outermost first; empty for other types.
    pub dimensions: Vec<u64>,
    /// Bytes of an element.
    pub element: u64,
}

/// The position of an address in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePlace {
    /// The variable's name, as its author wrote it.
    pub name: String,
    /// The variable's own address.
    pub start: u64,
    /// The indices of an array's element, the outermost first.
    pub indices: Vec<u64>,
    /// Bytes from the start of that element; of other variables, from the start.
    pub offset: u64,
}

impl Variable {
    /// The position of an offset in the variable.
    pub fn place(&self, offset: u64) -> VariablePlace {
        let place =
            |indices, offset| VariablePlace { name: self.name.clone(), start: self.start, indices, offset };
        if self.element == 0 || self.dimensions.contains(&0) {
            return place(Vec::new(), offset);
        }
        let mut number = offset / self.element;
        let mut indices = vec![0; self.dimensions.len()];
        for (index, length) in indices.iter_mut().zip(&self.dimensions).rev() {
            (*index, number) = (number % length, number / length);
        }
        place(indices, offset % self.element)
    }
}

/// The static variables of a file by their addresses; they do not overlap.
pub(crate) fn variables(path: &str, debug: Option<&Debug>) -> Vec<Variable> {
    let mut all = Vec::new();
    if let Some(debug) = debug {
        debug.for_each_unit(|unit| variables_of_unit(unit, &mut all));
    }
    let described = all.len();
    all.extend(data_symbols(path).into_iter().map(|(start, end, symbol)| Variable {
        start,
        end,
        name: name::demangle(&symbol),
        dimensions: Vec::new(),
        element: 0,
    }));
    // Debug information takes precedence over symbols.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|row| (all[*row].start, *row >= described, std::cmp::Reverse(all[*row].end)));
    let mut found: Vec<Variable> = Vec::new();
    for row in order {
        if found.last().is_none_or(|last| last.end <= all[row].start) && all[row].start < all[row].end {
            found.push(all[row].clone());
        }
    }
    found
}

fn variables_of_unit(of: &Unit<'_>, all: &mut Vec<Variable>) -> Result<(), gimli::Error> {
    let (dwarf, unit) = (of.dwarf, of.unit);
    // Fortran's arrays have their first index innermost, and other lower bounds.
    let mut fortran = false;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() == gimli::DW_TAG_compile_unit
            && let Some(AttributeValue::Language(language)) = entry.attr_value(gimli::DW_AT_language)
        {
            fortran = matches!(
                language,
                gimli::DW_LANG_Fortran77
                    | gimli::DW_LANG_Fortran90
                    | gimli::DW_LANG_Fortran95
                    | gimli::DW_LANG_Fortran03
                    | gimli::DW_LANG_Fortran08
                    | gimli::DW_LANG_Fortran18
            );
        }
        if entry.tag() != gimli::DW_TAG_variable {
            continue;
        }
        let Some(AttributeValue::Exprloc(location)) = entry.attr_value(gimli::DW_AT_location) else {
            continue;
        };
        let mut operations = location.operations(unit.encoding());
        let start = match (operations.next(), operations.next()) {
            (Ok(Some(Operation::Address { address })), Ok(None)) => address,
            (Ok(Some(Operation::AddressIndex { index })), Ok(None)) => dwarf.address(unit, index)?,
            _ => continue,
        };
        let declared = match entry.attr_value(gimli::DW_AT_specification) {
            Some(AttributeValue::UnitRef(offset)) => Some(unit.entry(offset)?),
            _ => None,
        };
        let attribute = |at| {
            let own = entry.attr_value(at);
            own.or_else(|| declared.as_ref().and_then(|declared| declared.attr_value(at)))
        };
        let Some(name) = attribute(gimli::DW_AT_name) else { continue };
        let Some(AttributeValue::UnitRef(ty)) = attribute(gimli::DW_AT_type) else { continue };
        let mut dimensions = Vec::new();
        let Some(element) = element_bytes(unit, ty, &mut dimensions, 0)? else { continue };
        let bytes = dimensions.iter().try_fold(element, |bytes, length| bytes.checked_mul(*length));
        let Some(end) = bytes.and_then(|bytes| start.checked_add(bytes)) else { continue };
        let Some(name) = of.text(name) else { continue };
        if fortran {
            dimensions.clear();
        }
        all.push(Variable {
            start,
            end,
            name,
            element: if dimensions.is_empty() { 0 } else { element },
            dimensions,
        });
    }
    Ok(())
}

/// Types nested more deeply than this are treated as invalid.
const DEEPEST: usize = 32;

/// Bytes of an array's element, or of another type; `None` if not stored. Appends dimensions.
fn element_bytes(
    unit: &gimli::Unit<Reader>,
    ty: UnitOffset,
    dimensions: &mut Vec<u64>,
    depth: usize,
) -> Result<Option<u64>, gimli::Error> {
    if depth > DEEPEST {
        return Ok(None);
    }
    let mut tree = unit.entries_tree(Some(ty))?;
    let root = tree.root()?;
    let entry = root.entry();
    let tag = entry.tag();
    let bytes = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value());
    let of = match entry.attr_value(gimli::DW_AT_type) {
        Some(AttributeValue::UnitRef(offset)) => Some(offset),
        _ => None,
    };
    match tag {
        gimli::DW_TAG_array_type => {
            let mut children = root.children();
            while let Some(child) = children.next()? {
                let child = child.entry();
                if child.tag() != gimli::DW_TAG_subrange_type {
                    continue;
                }
                let number =
                    |at| child.attr_value(at).and_then(|value: AttributeValue<Reader>| value.udata_value());
                let upper = || number(gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1));
                match number(gimli::DW_AT_count).or_else(upper) {
                    Some(length) => dimensions.push(length),
                    None => return Ok(None),
                }
            }
            of.map_or(Ok(None), |of| element_bytes(unit, of, dimensions, depth + 1))
        }
        gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => {
            Ok(bytes.or(Some(unit.encoding().address_size.into())))
        }
        _ if bytes.is_some() => Ok(bytes),
        _ => of.map_or(Ok(None), |of| element_bytes(unit, of, dimensions, depth + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_in_an_array_is_named_by_its_indices() {
        let tiles = Variable {
            start: 0x1000,
            end: 0x1000 + 4 * 6 * 8,
            name: "A".to_owned(),
            dimensions: vec![4, 6],
            element: 8,
        };
        let place = tiles.place((2 * 6 + 5) * 8 + 3);
        assert_eq!((place.indices, place.offset), (vec![2, 5], 3));
        let plain = Variable { dimensions: Vec::new(), element: 0, ..tiles };
        assert_eq!((plain.place(9).indices, plain.place(9).offset), (vec![], 9));
    }
}
