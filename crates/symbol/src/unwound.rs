//! Where functions begin and end that have no names: from the tables by which stacks are unwound, which stripping leaves.

use gimli::{RunTimeEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _};

/// Begin and end of the functions in `.eh_frame`, which is left where a file is stripped.
pub fn unwound_functions(path: &str) -> Option<Vec<(u64, u64)>> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let address_of = |name| file.section_by_name(name).map_or(0, |section| section.address());
    let section = file.section_by_name(".eh_frame")?;
    let data = section.uncompressed_data().ok()?;
    let mut table = gimli::EhFrame::new(&data, endian);
    table.set_address_size(if file.is_64() { 8 } else { 4 });
    let bases = gimli::BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address_of(".text"))
        .set_got(address_of(".got"));
    let (mut entries, mut functions) = (table.entries(&bases), Vec::new());
    // A damaged table gives what was read of it.
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(|table, bases, offset| table.cie_from_offset(bases, offset))
        {
            functions.push((entry.initial_address(), entry.end_address()));
        }
    }
    functions.sort_unstable();
    Some(functions)
}
