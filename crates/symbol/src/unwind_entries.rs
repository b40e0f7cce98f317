//! Unwind tables, which stripping preserves.

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EndianSlice, FrameDescriptionEntry, RunTimeEndian, UnwindSection as _,
};
use object::{Object as _, ObjectSection as _};

/// The table's description of a function, or of a part of one.
pub type Entry<'a> = FrameDescriptionEntry<EndianSlice<'a, RunTimeEndian>>;

/// Hands over the entries in a file's `.eh_frame`. A damaged one gives those before the damage.
pub fn each_entry(file: &object::File<'_>, mut take: impl FnMut(&Entry<'_>)) {
    let Some(section) = file.section_by_name(".eh_frame") else { return };
    let Ok(data) = section.uncompressed_data() else { return };
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut table = EhFrame::new(&data, endian);
    table.set_address_size(if file.is_64() { 8 } else { 4 });
    let address_of = |name| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address_of(".text"))
        .set_got(address_of(".got"));
    let mut entries = table.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
        {
            take(&entry);
        }
    }
}
