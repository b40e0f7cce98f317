//! Fortran's names. Compilers link `solve` as `solve_`, a module's as `__mesh_MOD_solve` (gfortran) or `_QMmeshPsolve`
//! (flang), and the main program as `MAIN__` or `_QQmain`; the author's names are in the debug information.

use crate::file::{Dwarf, Reader};
use gimli::AttributeValue::Language;
use gimli::Reader as _;
use rustc_hash::FxHashMap;

/// The author's names, by what the linker calls them.
pub(crate) type FortranNames = FxHashMap<String, String>;

/// Those of all Fortran units; a damaged unit gives what was read of it.
pub(crate) fn names_of(dwarf: &Dwarf) -> FortranNames {
    let mut names = FortranNames::default();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let _ = add_names_of_unit(dwarf, &unit, &mut names);
    }
    names
}

fn add_names_of_unit(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Reader>,
    names: &mut FortranNames,
) -> Result<(), gimli::Error> {
    let text = |value| -> Option<String> {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    };
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

/// A linked name with what the author wrote in place of the function; what a compiler appended stays.
pub(crate) fn as_written(names: &FortranNames, linked: String) -> String {
    let end = linked.find('.').unwrap_or(linked.len());
    match names.get(&linked[..end]) {
        Some(written) => format!("{written}{}", &linked[end..]),
        None => linked,
    }
}
