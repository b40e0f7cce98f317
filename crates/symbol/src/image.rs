//! Files as loaded in memory: segments at their offsets, without a section table. A recorder keeps a module in this
//! form if it cannot read the file any more. Exported functions, code and unwind tables are found by the dynamic
//! section.

use object::elf;

/// Tags of the dynamic section that object does not name as `u64`.
const HASH: u64 = 4;
const STRTAB: u64 = 5;
const SYMTAB: u64 = 6;
const RELA: u64 = 7;
const RELA_BYTES: u64 = 8;
const STR_BYTES: u64 = 10;
const PLT_BYTES: u64 = 2;
const JMPREL: u64 = 23;
const GNU_HASH: u64 = 0x6fff_fef5;

/// More are not read.
const MAX_SEGMENTS: u16 = 64;

const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: u64 = 24;
const RELOCATION_BYTES: u64 = 24;

/// Whether a file is a 64-bit little-endian one without section table.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]) && word(bytes, 0x28) == Some(0)
}

/// The image with a section table appended; `None` if its headers are invalid.
pub(crate) fn with_sections(bytes: &[u8]) -> Option<Vec<u8>> {
    let image = Image::read(bytes)?;
    let dynamic = image.dynamic();
    let get = |tag: u64| dynamic.iter().find(|(found, _)| *found == tag).map(|(_, value)| *value);
    let mut sections = vec![Section::default()];
    for load in &image.loads {
        let is_code = load.flags & elf::PF_X.0 != 0;
        let name = if is_code { ".text" } else { ".rodata" };
        let flags = if is_code { 6 } else { 2 };
        let (address, offset, bytes) = (load.address, load.offset, load.bytes);
        sections.push(Section { name, kind: 1, flags, address, offset, bytes, ..Section::default() });
    }
    let mut add = |name, kind, address: u64, bytes: u64, link, entry| {
        let offset = image.offset_of(address).filter(|offset| image.has(*offset, bytes))?;
        sections.push(Section { name, kind, flags: 2, address, offset, bytes, link, entry });
        u32::try_from(sections.len() - 1).ok()
    };
    if let (Some(strings), Some(bytes), Some(symbols)) = (get(STRTAB), get(STR_BYTES), get(SYMTAB))
        && let Some(link) = add(".dynstr", 3, strings, bytes, 0, 0)
        && let Some(count) = image.symbol_count(get(HASH), get(GNU_HASH))
        && let Some(link) = add(".dynsym", 11, symbols, count.checked_mul(SYMBOL_BYTES)?, link, SYMBOL_BYTES)
    {
        for (name, at, bytes) in [(".rela.dyn", RELA, RELA_BYTES), (".rela.plt", JMPREL, PLT_BYTES)] {
            if let (Some(at), Some(bytes)) = (get(at), get(bytes)) {
                add(name, 4, at, bytes, link, RELOCATION_BYTES);
            }
        }
    }
    if let Some((at, bytes)) = image.unwind_tables() {
        add(".eh_frame", 1, at, bytes, 0, 0);
    }
    Some(image.followed_by(&sections))
}

#[derive(Clone, Copy, Default)]
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    bytes: u64,
    link: u32,
    entry: u64,
}

/// A segment that is in the image.
struct Load {
    flags: u32,
    address: u64,
    offset: u64,
    bytes: u64,
}

struct Image<'a> {
    bytes: &'a [u8],
    loads: Vec<Load>,
    /// Kind, address and bytes of all segments.
    segments: Vec<(u32, u64, u64)>,
}

impl Image<'_> {
    fn read(bytes: &[u8]) -> Option<Image<'_>> {
        let (table, count) = (word(bytes, 0x20)?, half(bytes, 0x38)?.min(MAX_SEGMENTS));
        let mut image = Image { bytes, loads: Vec::new(), segments: Vec::new() };
        for number in 0..u64::from(count) {
            let at = table.checked_add(number * 56)?;
            let field = |offset: u64| word(bytes, at.checked_add(offset)?);
            let kind = field(0)?;
            let (kind, flags) = (kind as u32, (kind >> 32) as u32);
            let (offset, address, size) = (field(8)?, field(16)?, field(32)?);
            image.segments.push((kind, address, size));
            let is_kept = flags & elf::PF_W.0 == 0 && image.has(offset, size);
            if kind == elf::PT_LOAD.0 && is_kept {
                image.loads.push(Load { flags, address, offset, bytes: size });
            } else if kind == elf::PT_DYNAMIC.0 && image.has(offset, size) {
                image.loads.push(Load { flags: 0, address, offset, bytes: size });
            }
        }
        Some(image)
    }

    fn has(&self, offset: u64, bytes: u64) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.bytes.len() as u64)
    }

    fn offset_of(&self, address: u64) -> Option<u64> {
        let load = self.loads.iter().find(|load| address.wrapping_sub(load.address) < load.bytes)?;
        Some(load.offset + (address - load.address))
    }

    fn word_at(&self, address: u64) -> Option<u32> {
        let offset = usize::try_from(self.offset_of(address)?).ok()?;
        Some(u32::from_le_bytes(self.bytes.get(offset..)?.first_chunk().copied()?))
    }

    /// Tags and values of the dynamic section.
    fn dynamic(&self) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        let is_dynamic = |segment: &&(u32, u64, u64)| segment.0 == elf::PT_DYNAMIC.0;
        let Some((_, address, bytes)) = self.segments.iter().find(is_dynamic) else { return all };
        let Some(offset) = self.offset_of(*address).filter(|offset| self.has(*offset, *bytes)) else {
            return all;
        };
        for at in (offset..offset + bytes).step_by(16) {
            match (word(self.bytes, at), word(self.bytes, at + 8)) {
                (Some(tag), Some(value)) if tag != 0 => all.push((tag, value)),
                _ => break,
            }
        }
        all
    }

    /// Number of dynamic symbols, by one of their hash tables.
    fn symbol_count(&self, hash: Option<u64>, gnu_hash: Option<u64>) -> Option<u64> {
        if let Some(hash) = hash {
            return self.word_at(hash.checked_add(4)?).map(u64::from);
        }
        let table = gnu_hash?;
        let field = |at: u64| self.word_at(table.checked_add(at)?).map(u64::from);
        let (buckets, first, bloom) = (field(0)?, field(4)?, field(8)?);
        let buckets_at = 16 + bloom * 8;
        let mut last = 0;
        for bucket in 0..buckets {
            last = last.max(field(buckets_at + bucket * 4)?);
        }
        if last < first {
            return Some(first);
        }
        // The lowest bit marks the last symbol of a bucket.
        let chains_at = buckets_at + buckets * 4;
        while field(chains_at + (last - first) * 4)? & 1 == 0 {
            last += 1;
        }
        Some(last + 1)
    }

    /// Address and bytes of `.eh_frame`, which its header points to; it may be followed by something else.
    fn unwind_tables(&self) -> Option<(u64, u64)> {
        let header = self.segments.iter().find(|(kind, ..)| *kind == elf::PT_GNU_EH_FRAME.0)?.1;
        // Version 1, relative to this place and four bytes signed: the only way in which linkers write it.
        if self.word_at(header)? & 0xffff != 0x1b01 {
            return None;
        }
        let distance = self.word_at(header.checked_add(4)?)?.cast_signed();
        let at = header.checked_add(4)?.checked_add_signed(distance.into())?;
        let load = self.loads.iter().find(|load| at.wrapping_sub(load.address) < load.bytes)?;
        Some((at, load.address + load.bytes - at))
    }

    fn followed_by(&self, sections: &[Section]) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        let mut names = vec![0];
        let names_at = bytes.len() as u64;
        let own_name = Section { name: ".shstrtab", kind: 3, ..Section::default() };
        let all: Vec<(u32, Section)> = (sections.iter().chain([&own_name]))
            .map(|section| {
                let at = names.len() as u32;
                names.extend_from_slice(section.name.as_bytes());
                names.push(0);
                (at, *section)
            })
            .collect();
        bytes.extend_from_slice(&names);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let table_at = bytes.len() as u64;
        for (name, section) in &all {
            let is_names = section.name == own_name.name;
            let (offset, size) =
                if is_names { (names_at, names.len() as u64) } else { (section.offset, section.bytes) };
            bytes.extend_from_slice(&name.to_le_bytes());
            bytes.extend_from_slice(&section.kind.to_le_bytes());
            for value in [section.flags, section.address, offset, size] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            bytes.extend_from_slice(&section.link.to_le_bytes());
            bytes.extend_from_slice(&1u32.to_le_bytes());
            for value in [8, section.entry] {
                bytes.extend_from_slice(&u64::to_le_bytes(value));
            }
        }
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(0x28, &table_at.to_le_bytes());
        put(0x3a, &(SECTION_BYTES as u16).to_le_bytes());
        put(0x3c, &(all.len() as u16).to_le_bytes());
        put(0x3e, &(all.len() as u16 - 1).to_le_bytes());
        bytes
    }
}

fn word(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
