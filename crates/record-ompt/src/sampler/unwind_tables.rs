//! The unwind tables of a module.

use super::modules::{MappedModule, UnwindTables};

/// A module's `.eh_frame_hdr` and `.eh_frame`, or copies of them, with their addresses.
#[derive(Clone, Copy)]
pub struct Tables {
    /// Address of the header.
    pub header_at: u64,
    /// The header.
    pub header: &'static [u8],
    /// Address of `.eh_frame`.
    pub frame_at: u64,
    /// `.eh_frame`, and the bytes after it in its segment.
    pub frame: &'static [u8],
}

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, the only way in which linkers write the place of `.eh_frame`.
const RELATIVE_TO_HERE: u8 = 0x1b;
/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: a table that can be searched.
const SORTED_TABLE: u8 = 0x3b;

impl Tables {
    /// Tables of a module that is never unloaded. Its `.eh_frame` may be followed by other data, which the
    /// table does not point to.
    pub fn in_place(tables: UnwindTables) -> Option<Tables> {
        // SAFETY: mapped and readable as long as the process lives.
        let found = unsafe { Tables::find(tables)? };
        if found.header_has_table() { Some(found) } else { Tables::copy(tables) }
    }

    pub fn copy(tables: UnwindTables) -> Option<Tables> {
        // SAFETY: the caller has just seen that the module is loaded; only the copies are kept.
        let found = unsafe { Tables::find(tables)? };
        let frame = found.entries();
        let leak = |bytes: &[u8]| -> &'static [u8] { Box::leak(Box::from(bytes)) };
        Some(Tables { header: leak(found.header), frame: leak(frame), ..found })
    }

    /// Locates them, `.eh_frame` up to the end of its segment.
    ///
    /// # Safety
    /// The module is loaded as long as the result is used.
    unsafe fn find(tables: UnwindTables) -> Option<Tables> {
        if tables.header_bytes < 12 || tables.header + tables.header_bytes > tables.segment_end {
            return None;
        }
        // SAFETY: the segment is mapped and readable while the module is loaded.
        let header =
            unsafe { core::slice::from_raw_parts(tables.header as *const u8, tables.header_bytes as usize) };
        let [1, RELATIVE_TO_HERE, _, _, a, b, c, d] = *header.first_chunk()? else { return None };
        let offset = i64::from(i32::from_le_bytes([a, b, c, d]));
        let frame_at = (tables.header + 4).wrapping_add_signed(offset);
        let room = tables.segment_end.checked_sub(frame_at).filter(|room| *room < 1 << 31)?;
        // SAFETY: as above; `.eh_frame` is in the same segment.
        let frame = unsafe { core::slice::from_raw_parts(frame_at as *const u8, room as usize) };
        Some(Tables { header_at: tables.header, header, frame_at, frame })
    }

    /// The bytes of `.eh_frame` proper.
    fn entries(&self) -> &'static [u8] {
        self.frame.get(..frame_bytes(self.frame)).unwrap_or_default()
    }

    pub fn header_has_table(&self) -> bool {
        self.header.get(3) == Some(&SORTED_TABLE)
    }

    /// Start of the function that contains an address, or of the last one before it.
    pub fn function(&self, address: u64) -> Option<u64> {
        Some(self.row(address)?.0)
    }

    /// The place in `.eh_frame` of the entry for the function that starts at an address.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no other code is unusual"))]
    pub fn entry(&self, function: u64) -> Option<usize> {
        let (_, entry) = self.row(function).filter(|(start, _)| *start == function)?;
        usize::try_from(entry.checked_sub(self.frame_at)?).ok()
    }

    /// Start and entry of the function that contains an address, or of the last one before it.
    fn row(&self, address: u64) -> Option<(u64, u64)> {
        let rows = self.header.get(12..).filter(|_| self.header_has_table())?.as_chunks::<8>().0;
        let place = |bytes: [u8; 4]| self.header_at.wrapping_add_signed(i32::from_le_bytes(bytes).into());
        let start = |[a, b, c, d, ..]: [u8; 8]| place([a, b, c, d]);
        let after = rows.partition_point(|row| start(*row) <= address);
        let row = *rows.get(after.checked_sub(1)?)?;
        let [.., a, b, c, d] = row;
        Some((start(row), place([a, b, c, d])))
    }

    pub fn is_still_at(&self, module: &MappedModule) -> bool {
        let Some(tables) = module.unwind else { return false };
        let same_size = tables.header_bytes as usize == self.header.len();
        // SAFETY: as in `copy`.
        same_size
            && unsafe { core::slice::from_raw_parts(tables.header as *const u8, self.header.len()) }
                == self.header
    }
}

/// Length of `.eh_frame`, up to its terminator or the first invalid entry.
fn frame_bytes(segment: &[u8]) -> usize {
    let word = |at: usize| Some(u32::from_le_bytes(segment.get(at..at + 4)?.try_into().ok()?));
    let mut at = 0;
    loop {
        match word(at) {
            Some(0) => return at + 4,
            Some(u32::MAX) | None => return at,
            Some(bytes) if at + 4 + bytes as usize <= segment.len() => at += 4 + bytes as usize,
            Some(_) => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_at_the_terminator_or_where_they_leave_the_segment() {
        assert_eq!(frame_bytes(&[4, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 9, 9]), 12);
        assert_eq!(frame_bytes(&[4, 0, 0, 0, 1, 2, 3, 4, 99, 0, 0, 0]), 8);
        assert_eq!(frame_bytes(&[1, 0]), 0);
    }
}
