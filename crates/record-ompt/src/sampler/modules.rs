//! Loaded file of an address.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::ffi::CString;
use taskscope_event::{FNV_START, fnv1a};

/// A loaded executable or library.
#[derive(Clone, Debug)]
pub struct MappedModule {
    /// Lowest loaded address.
    pub start: u64,
    /// One past the highest address.
    pub end: u64,
    /// The lowest address of its code, and one past the highest.
    pub code: (u64, u64),
    /// Load bias: difference between addresses in memory and in the file.
    pub bias: u64,
    /// The GNU build id in hexadecimal digits; without one, `~` and a fingerprint; empty if that is unknown
    /// too.
    pub build_id: CString,
    /// Path of its file.
    pub path: CString,
    /// Whether it is the program itself rather than a library.
    pub is_program: bool,
    /// Whether it was linked never to be unloaded.
    pub stays: bool,
    /// Its unwind tables.
    pub unwind: Option<UnwindTables>,
}

impl MappedModule {
    /// Whether it contains `address`.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The file's name without directories.
    pub fn file_name(&self) -> &[u8] {
        let path = self.path.to_bytes();
        path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
    }
}

/// Addresses of a module's unwind tables in memory.
#[derive(Clone, Copy, Debug)]
pub struct UnwindTables {
    /// Start of `.eh_frame_hdr`.
    pub header: u64,
    /// Size of the header.
    pub header_bytes: u64,
    /// End of the loaded segment that holds it, and `.eh_frame`.
    pub segment_end: u64,
}

/// The module that contains `address`.
pub fn find(address: u64) -> Option<MappedModule> {
    all().into_iter().find(|module| module.contains(address))
}

/// Whether code of a loaded module is at an address.
pub fn is_executable(address: u64) -> bool {
    flags_at(address).is_some_and(|flags| flags & libc::PF_X != 0)
}

/// Whether a part of a loaded module is at an address.
pub fn is_loaded(address: u64) -> bool {
    flags_at(address).is_some()
}

/// Flags of the loaded segment (`p_flags`) that contains an address. Does not allocate.
fn flags_at(address: u64) -> Option<u32> {
    struct Search {
        address: u64,
        flags: Option<u32>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid entry, and `flags_at` its own search.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the loader's table of this module's program headers.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let holds = |header: &&libc::Elf64_Phdr| {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            header.p_type == libc::PT_LOAD && search.address.wrapping_sub(start) < header.p_memsz
        };
        search.flags = headers.iter().find(holds).map(|header| header.p_flags);
        c_int::from(search.flags.is_some())
    }
    let mut search = Search { address, flags: None };
    // SAFETY: `visit` uses its argument, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.flags
}

/// All loaded modules.
pub fn all() -> Vec<MappedModule> {
    let mut found: Vec<MappedModule> = Vec::new();
    // SAFETY: `visit` uses its argument, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    for module in found.iter_mut().filter(|module| module.is_program) {
        module.path = path_of_program().to_owned();
    }
    make_absolute(&mut found);
    found
}

/// Gives modules that were loaded by a relative path, or by one that climbs (preloaded through `$ORIGIN`), the one that the
/// system knows: the program may have changed its directory since.
fn make_absolute(modules: &mut [MappedModule]) {
    let is_relative = |module: &MappedModule| {
        let path = module.path.to_bytes();
        path.contains(&b'/') && (!path.starts_with(b"/") || path.windows(4).any(|part| part == b"/../"))
    };
    if !modules.iter().any(is_relative) {
        return;
    }
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let mapped: Vec<(u64, &[u8])> = maps.split(|byte| *byte == b'\n').filter_map(mapping).collect();
    for module in modules.iter_mut().filter(|module| is_relative(module)) {
        let path = mapped.iter().find(|(start, _)| *start == module.start & !0xfff).map(|(_, path)| *path);
        // A removed file has a mark behind its path.
        let path = path.map(|path| path.strip_suffix(b" (deleted)").unwrap_or(path));
        if let Some(path) = path.and_then(|path| CString::new(path).ok()) {
            module.path = path;
        }
    }
}

/// Start and path of a line of `/proc/self/maps`, if it maps a file.
fn mapping(line: &[u8]) -> Option<(u64, &[u8])> {
    let start = line.split(|byte| *byte == b'-').next()?;
    let start = u64::from_str_radix(core::str::from_utf8(start).ok()?, 16).ok()?;
    let path = line.iter().position(|byte| *byte == b'/')?;
    Some((start, line.get(path..)?))
}

/// Whether OpenMP code was met in a module that may be unloaded: otherwise changes do not matter.
static MAY_UNLOAD: AtomicBool = AtomicBool::new(false);
/// The loader's count of changes when modules were compared last.
static KNOWN_CHANGES: AtomicU64 = AtomicU64::new(u64::MAX);
/// Counts the times at which a module was found unloaded.
static UNLOADS: AtomicU32 = AtomicU32::new(0);

/// Number of times that modules were found unloaded so far. Data kept by address before is void.
#[inline(always)]
pub fn unloads() -> u32 {
    UNLOADS.load(Relaxed)
}

/// Counts an unloading.
pub fn count_unload() {
    UNLOADS.fetch_add(1, Relaxed);
}

/// Notes that OpenMP code is in a module.
pub fn has_constructs(module: &MappedModule) {
    if !module.is_program && !module.stays {
        MAY_UNLOAD.store(true, Relaxed);
    }
}

/// Whether modules were loaded or unloaded since the last call, if a module with OpenMP code may be gone.
#[inline(always)]
pub fn have_changed() -> bool {
    MAY_UNLOAD.load(Relaxed) && changes_are_new()
}

#[cold]
fn changes_are_new() -> bool {
    let changes = changes();
    KNOWN_CHANGES.swap(changes, Relaxed) != changes
}

/// Path of the program's file, as first reported. The system marks a file that was removed or replaced since
/// the start; a reader with the same build, mostly at the same path, can still find names in it.
///
/// Not in a `OnceLock`, which a forked child may find half made for ever.
pub fn path_of_program() -> &'static CStr {
    static PATH: AtomicPtr<CString> = AtomicPtr::new(core::ptr::null_mut());
    // SAFETY: null, or a leaked box.
    if let Some(known) = unsafe { PATH.load(Acquire).as_ref() } {
        return known;
    }
    let reported: &CString = Box::leak(Box::new(ask_for_path_of_program()));
    PATH.store(core::ptr::from_ref(reported).cast_mut(), Release);
    reported
}

fn ask_for_path_of_program() -> CString {
    use std::os::unix::ffi::OsStringExt;
    let reported = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    const GONE: &[u8] = b" (deleted)";
    let is_gone = reported.as_os_str().as_encoded_bytes().ends_with(GONE) && !reported.exists();
    let mut path = reported.into_os_string().into_vec();
    if is_gone {
        path.truncate(path.len() - GONE.len());
    }
    CString::new(path).unwrap_or_default()
}

/// Number of loads and unloads of modules so far.
pub fn changes() -> u64 {
    unsafe extern "C" fn count(info: *mut libc::dl_phdr_info, size: usize, sum: *mut c_void) -> c_int {
        if size >= size_of::<libc::dl_phdr_info>() {
            // SAFETY: the loader passes a valid entry of this size, and the caller its own sum.
            unsafe { *sum.cast::<u64>() = (*info).dlpi_adds.wrapping_add((*info).dlpi_subs) };
        }
        1
    }
    let mut sum = 0u64;
    // SAFETY: `count` uses its argument, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut sum).cast()) };
    sum
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid entry, and `all` its own list.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<MappedModule>>()) };
    if info.dlpi_phdr.is_null() || found.try_reserve(1).is_err() {
        return 0;
    }
    // SAFETY: the loader's table of this module's program headers.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr;
    let start_of = |header: &libc::Elf64_Phdr| bias.wrapping_add(header.p_vaddr);
    let end_of = |header: &libc::Elf64_Phdr| start_of(header).wrapping_add(header.p_memsz);
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let (Some(start), Some(end)) = (loads().map(start_of).min(), loads().map(end_of).max()) else { return 0 };
    let codes = || loads().filter(|header| header.p_flags & libc::PF_X != 0);
    let code = (codes().map(start_of).min().unwrap_or(0), codes().map(end_of).max().unwrap_or(0));
    let path = if info.dlpi_name.is_null() {
        CString::default()
    } else {
        // SAFETY: the loader's name of the module is a C string.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned()
    };
    let build_id = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_NOTE)
        .find_map(|header| {
            // SAFETY: note segments of a loaded module are mapped and readable.
            let notes = unsafe {
                core::slice::from_raw_parts(start_of(header) as *const u8, header.p_memsz as usize)
            };
            build_id_in(notes)
        })
        .map(digits_of)
        .or_else(|| {
            let first =
                headers.iter().find(|header| header.p_type == libc::PT_LOAD && header.p_offset == 0)?;
            let page = usize::try_from(first.p_filesz).ok()?.min(FINGERPRINT_BYTES);
            // SAFETY: this part of a loaded module is mapped, and readable by its flags.
            let page = (first.p_flags & libc::PF_R != 0)
                .then(|| unsafe { core::slice::from_raw_parts(start_of(first) as *const u8, page) })?;
            Some(fingerprint(page))
        })
        .and_then(|id| CString::new(id).ok())
        .unwrap_or_default();
    let unwind = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).and_then(|header| {
        let at = start_of(header);
        let segment = loads().find(|load| (start_of(load)..end_of(load)).contains(&at))?;
        Some(UnwindTables { header: at, header_bytes: header.p_memsz, segment_end: end_of(segment) })
    });
    // The main program has no name in the loader's list.
    let is_program = path.is_empty();
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC).map(start_of);
    // SAFETY: the dynamic section of a loaded module is mapped, and ends with an entry of null.
    let stays = dynamic.is_some_and(|entries| unsafe { is_never_unloaded(entries as *const [u64; 2]) });
    found.push(MappedModule { start, end, code, bias, build_id, path, is_program, stays, unwind });
    0
}

/// Whether a dynamic section has the flag of `-z nodelete`.
///
/// # Safety
/// The entries, tag and value, end with a null one.
unsafe fn is_never_unloaded(mut entry: *const [u64; 2]) -> bool {
    const FLAGS: u64 = 0x6fff_fffb;
    const NODELETE: u64 = 8;
    loop {
        // SAFETY: by contract.
        match unsafe { entry.read() } {
            [0, _] => return false,
            [FLAGS, flags] => return flags & NODELETE != 0,
            // SAFETY: it was not the last one.
            _ => entry = unsafe { entry.add(1) },
        }
    }
}

/// Bytes at a file's start that identify a file without a build id; they contain its headers.
const FINGERPRINT_BYTES: usize = 4096;

/// `~` and the FNV-1a hash of a file's first page. Readers compute the same (`taskscope_symbol`).
fn fingerprint(page: &[u8]) -> Vec<u8> {
    let hash = fnv1a(FNV_START, page);
    let mut id = vec![b'~'];
    id.extend(digits_of(&hash.to_be_bytes()));
    id
}

fn digits_of(bytes: &[u8]) -> Vec<u8> {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' - 10 + value };
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Finds the GNU build id among ELF notes: u32 name size, data size, type; name; data; each padded
/// to four bytes.
fn build_id_in(mut notes: &[u8]) -> Option<&[u8]> {
    const GNU_BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    loop {
        let name_bytes = word(notes, 0)? as usize;
        let data_bytes = word(notes, 4)? as usize;
        let kind = word(notes, 8)?;
        let name = notes.get(12..12 + name_bytes)?;
        let data_at = 12 + name_bytes.next_multiple_of(4);
        let data = notes.get(data_at..data_at + data_bytes)?;
        if kind == GNU_BUILD_ID && name == b"GNU\0" {
            return Some(data);
        }
        notes = notes.get(data_at + data_bytes.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_and_its_c_library_are_found() {
        let own = find(this_program_and_its_c_library_are_found as fn() as usize as u64).unwrap();
        assert_eq!(own.path.to_bytes(), std::env::current_exe().unwrap().as_os_str().as_encoded_bytes());
        assert!(own.is_program);
        let libc = find(libc::getpid as unsafe extern "C" fn() -> i32 as usize as u64).unwrap();
        assert!(libc.file_name().starts_with(b"libc"), "{:?}", libc.path);
        assert!(!libc.is_program);
        assert!(libc.build_id.to_bytes().len() >= 32, "{:?}", libc.build_id);
        assert!(find(1).is_none());
        let (no, yes) = ([[1, 8], [0, 0], [0x6fff_fffb, 8]], [[1, 8], [0x6fff_fffb, 0x808], [0, 0]]);
        // SAFETY: both end.
        let reported = unsafe { [is_never_unloaded(no.as_ptr()), is_never_unloaded(yes.as_ptr())] };
        assert_eq!(reported, [false, true]);
    }

    #[test]
    fn a_build_id_is_found_behind_another_note() {
        let mut notes = Vec::new();
        for (kind, name, data) in [(1u32, &b"GNU\0"[..], &[9u8; 5][..]), (3, b"GNU\0", &[1, 2, 3])] {
            for word in [name.len() as u32, data.len() as u32, kind] {
                notes.extend(word.to_ne_bytes());
            }
            notes.extend(name);
            notes.extend(data);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_in(&notes), Some(&[1u8, 2, 3][..]));
        assert_eq!(build_id_in(&notes[..30]), None);
        assert_eq!(digits_of(&[0x09, 0xaf, 0xf0]), b"09aff0");
    }
}
