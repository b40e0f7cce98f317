//! Fortran's names. Compilers link `solve` as `solve_`, a module's as `__mesh_MOD_solve` (gfortran) or `_QMmeshPsolve`
//! (flang), and the main program as `MAIN__` or `_QQmain`; the author's names are in the debug information.

use crate::debug::{Debug, Unit};
use crate::object_file::{Function, Reader};
use gimli::AttributeValue::Language;
use rustc_hash::FxHashMap;

/// Names in the source, by linker names.
pub(crate) type FortranNames = FxHashMap<String, String>;

/// The names of all Fortran units, if there can be one with these functions; a damaged unit gives its readable part.
pub(crate) fn names_of(debug: &Debug, functions: &[Function]) -> FortranNames {
    let mut names = FortranNames::default();
    if functions.iter().any(|function| may_be_fortran(&function.name)) {
        debug.for_each_unit(|unit| add_names_of_unit(unit, &mut names));
    }
    names
}

/// Whether a compiler of Fortran may have linked a function so: `MAIN__`, `solve_`, `__mesh_MOD_solve`, `_QMmeshPsolve`.
fn may_be_fortran(linked: &str) -> bool {
    let function = linked.split('.').next().unwrap_or_default();
    function.ends_with('_') || function.contains("_MOD_") || function.starts_with("_Q")
}

fn add_names_of_unit(of: &Unit<'_>, names: &mut FortranNames) -> Result<(), gimli::Error> {
    let (unit, text) = (of.unit, |value| of.text(value));
    let mut entries = unit.entries();
    let mut module: Option<(isize, String)> = None;
    while let Some(entry) = entries.next_dfs()? {
        let depth = entry.depth();
        let named = || entry.attr_value(gimli::DW_AT_name).and_then(text);
        if module.as_ref().is_some_and(|(at, _)| depth <= *at) {
            module = None;
        }
        match entry.tag() {
            gimli::DW_TAG_compile_unit if !is_fortran(entry.attr_value(gimli::DW_AT_language)) => break,
            gimli::DW_TAG_module => module = named().map(|name| (depth, name)),
            gimli::DW_TAG_subprogram => {
                let Some(name) = named().filter(|name| !name.contains('.')) else { continue };
                if entry.attr_value(gimli::DW_AT_main_subprogram).is_some() {
                    names.insert("MAIN__".to_string(), name.clone());
                    names.insert("_QQmain".to_string(), name);
                    continue;
                }
                let linkage = entry.attr_value(gimli::DW_AT_linkage_name).and_then(text);
                let (linked, full) = match &module {
                    Some((at, module)) if depth == at + 1 => {
                        (format!("__{module}_MOD_{name}"), format!("{module}::{name}"))
                    }
                    _ => (format!("{name}_"), name),
                };
                names.insert(linkage.unwrap_or(linked), full);
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_fortran(language: Option<gimli::AttributeValue<Reader>>) -> bool {
    use gimli::constants::*;
    let Some(Language(language)) = language else { return false };
    [
        DW_LANG_Fortran77,
        DW_LANG_Fortran90,
        DW_LANG_Fortran95,
        DW_LANG_Fortran03,
        DW_LANG_Fortran08,
        DW_LANG_Fortran18,
    ]
    .contains(&language)
}

/// A linker name with the function replaced by its name in the source; suffixes of compilers stay.
pub(crate) fn as_written(names: &FortranNames, linked: String) -> String {
    let end = linked.find('.').unwrap_or(linked.len());
    match names.get(&linked[..end]) {
        Some(written) => format!("{written}{}", &linked[end..]),
        None => linked,
    }
}
