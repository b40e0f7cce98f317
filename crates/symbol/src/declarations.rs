//! Declarations of functions in debug information.

use crate::debug::{Debug, Unit};
use crate::name;

/// A function's declaration in debug information, to find the function that contains an outlined body.
pub(crate) struct Declaration {
    pub file: String,
    pub line: u64,
    pub column: Option<u64>,
    pub name: String,
}

/// The declarations of all functions; a damaged unit gives its readable part.
pub(crate) fn declarations_of(debug: &Debug) -> Vec<Declaration> {
    let mut all = Vec::new();
    debug.for_each_unit(|unit| declarations_of_unit(unit, &mut all));
    all
}

fn declarations_of_unit(of: &Unit<'_>, all: &mut Vec<Declaration>) -> Result<(), gimli::Error> {
    let unit = of.unit;
    let text = |value| of.text(value);
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if entry.tag() != gimli::DW_TAG_subprogram {
            continue;
        }
        // A member function refers to its declaration in the class, which has the rest.
        let declared = match entry.attr_value(gimli::DW_AT_specification) {
            Some(gimli::AttributeValue::UnitRef(offset)) => unit.entry(offset).ok(),
            _ => None,
        };
        let attribute = |name| {
            entry
                .attr_value(name)
                .or_else(|| declared.as_ref().and_then(|declared| declared.attr_value(name)))
        };
        let line = attribute(gimli::DW_AT_decl_line).and_then(|v| v.udata_value());
        let column = attribute(gimli::DW_AT_decl_column).and_then(|v| v.udata_value());
        let file = match attribute(gimli::DW_AT_decl_file) {
            Some(gimli::AttributeValue::FileIndex(index)) => Some(index),
            other => other.and_then(|value| value.udata_value()),
        };
        let linkage = attribute(gimli::DW_AT_linkage_name).and_then(text);
        let name = linkage.or_else(|| attribute(gimli::DW_AT_name).and_then(text));
        let (Some(line), Some(file), Some(name)) = (line, file, name) else { continue };
        let is_declaration = entry.attr_value(gimli::DW_AT_declaration).is_some();
        if is_declaration || name::is_made(&name) || name::user_function(&name).is_none() {
            continue;
        }
        if let Some(file) = of.source(file) {
            all.push(Declaration { file, line, column, name });
        }
    }
    Ok(())
}
