//! Begins and ends of functions without names, from the unwind tables, which stripping preserves.

use crate::object_file::read_with_sections;
use crate::unwind_entries::each_entry;

/// Begin and end of the functions that have entries there.
pub fn unwound_functions(path: &str) -> Option<Vec<(u64, u64)>> {
    let bytes = read_with_sections(path)?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut functions = Vec::new();
    each_entry(&file, |entry| functions.push((entry.initial_address(), entry.end_address())));
    functions.sort_unstable();
    Some(functions)
}
