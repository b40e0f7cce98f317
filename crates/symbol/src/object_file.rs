//! An executable or library on disk: its content, sections and symbols.

use crate::image::{is_image, with_sections};
use gimli::{EndianRcSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

pub(crate) type Reader = EndianRcSlice<RunTimeEndian>;
pub(crate) type Dwarf = gimli::Dwarf<Reader>;

/// Files larger than this are not read for names.
const MAX_BYTES: u64 = 4 << 30;

/// The part of the kernel that is mapped into every process, without a file.
pub(crate) const VDSO: &str = "linux-vdso.so.1";

/// The vDSO of this process, which equals the recorded one while the kernel is the same.
pub(crate) fn own_vdso() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let range = maps.lines().find(|line| line.ends_with("[vdso]"))?.split(' ').next()?;
    let (start, end) = range.split_once('-')?;
    let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16));
    let (start, end) = (start.ok()?, end.ok()?);
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    std::fs::File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

/// A function of the symbol table.
pub struct Function {
    pub start: u64,
    pub end: u64,
    pub name: String,
}

/// Start, end and name of the variables in the symbol table.
pub(crate) fn data_symbols(path: &str) -> Vec<(u64, u64, String)> {
    let read = || {
        let bytes = read_with_sections(path)?;
        let file = object::File::parse(&*bytes).ok()?;
        let table = if file.symbol_table().is_some() { file.symbols() } else { file.dynamic_symbols() };
        let data = table.filter(|s| s.kind() == SymbolKind::Data && s.is_definition());
        let named = data.filter_map(|s| {
            let name = s.name().ok().filter(|name| !name.is_empty())?;
            Some((s.address(), s.address().saturating_add(s.size()), name.to_string()))
        });
        Some(named.collect())
    };
    read().unwrap_or_default()
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A regular file that is not too large.
pub(crate) fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    taskscope_files::read_regular(path, MAX_BYTES)
}

/// A file's content, with the section table that an image does not have.
pub(crate) fn read_with_sections(path: &str) -> Option<Vec<u8>> {
    with_all_sections(read_whole(Path::new(path)).ok()?)
}

pub(crate) fn with_all_sections(bytes: Vec<u8>) -> Option<Vec<u8>> {
    if is_image(&bytes) { with_sections(&bytes) } else { Some(bytes) }
}

/// The file's own debug information, or, with `outside`, that of a file with the debug information of a program.
pub(crate) fn dwarf_of(file: &object::File<'_>, outside: bool) -> Option<Dwarf> {
    let name = |id: gimli::SectionId| if outside { id.dwo_name() } else { Some(id.name()) };
    let has = |name| file.section_by_name(name).is_some();
    let is_there = if outside { has(".debug_info.dwo") } else { has(".debug_info") || has(".zdebug_info") };
    is_there.then(|| gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(section(file, name(id)))).ok())?
}

/// A section's content; empty if there is none.
pub(crate) fn section(file: &object::File<'_>, name: Option<&str>) -> Reader {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let section = name.and_then(|name| file.section_by_name(name));
    let data = section.and_then(|s| s.uncompressed_data().ok()).unwrap_or_default();
    EndianRcSlice::new(Rc::from(&*data), endian)
}

/// Names and addresses of the functions that a file exports.
pub(crate) fn exports_of(path: &str) -> Option<rustc_hash::FxHashMap<String, u64>> {
    let bytes = read_with_sections(path)?;
    let file = object::File::parse(&*bytes).ok()?;
    let exported = file.dynamic_symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
    Some(exported.filter_map(|s| Some((s.name().ok()?.to_string(), s.address()))).collect())
}

/// The functions of the symbol table, or else of the dynamic one, by address.
pub(crate) fn functions_of(file: &object::File<'_>) -> Vec<Function> {
    let table = if file.symbol_table().is_some() { file.symbols() } else { file.dynamic_symbols() };
    let mut functions: Vec<Function> = table
        .filter(|s| s.kind() == SymbolKind::Text && s.is_definition())
        .filter_map(|s| {
            let name = s.name().ok().filter(|name| !name.is_empty())?;
            let start = s.address();
            Some(Function { start, end: start.saturating_add(s.size().max(1)), name: name.to_string() })
        })
        .collect();
    functions.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
    functions.dedup_by_key(|f| f.start);
    functions
}
