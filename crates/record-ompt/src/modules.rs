//! Which loaded file an address belongs to.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;

/// A loaded executable or library.
#[derive(Clone, Debug)]
pub struct Module {
    /// Lowest loaded address.
    pub start: u64,
    /// One past the highest.
    pub end: u64,
    /// What the loader added to the addresses in the file.
    pub bias: u64,
    /// The GNU build id in hexadecimal digits; empty where there is none.
    pub build_id: CString,
    /// Its file.
    pub path: CString,
    /// Whether it is the program itself rather than a library.
    pub is_program: bool,
}

impl Module {
    /// Whether `address` lies in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The file's name without directories.
    pub fn file_name(&self) -> &[u8] {
        let path = self.path.to_bytes();
        path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
    }
}

/// The module that `address` lies in.
pub fn find(address: u64) -> Option<Module> {
    let mut search = Search { address, found: None };
    // SAFETY: `visit` takes what is passed here, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let mut module = search.found?;
    if module.is_program {
        use std::os::unix::ffi::OsStringExt;
        let path = std::fs::read_link("/proc/self/exe").ok()?.into_os_string().into_vec();
        module.path = CString::new(path).ok()?;
    }
    Some(module)
}

struct Search {
    address: u64,
    found: Option<Module>,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid entry, and `find` its own search.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's table of this module's program headers.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr;
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loads().map(|header| bias.wrapping_add(header.p_vaddr)).min().unwrap_or(0);
    let end = loads()
        .map(|header| bias.wrapping_add(header.p_vaddr).wrapping_add(header.p_memsz))
        .max()
        .unwrap_or(0);
    if !(start..end).contains(&search.address) {
        return 0;
    }
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
                let start = bias.wrapping_add(header.p_vaddr) as *const u8;
                core::slice::from_raw_parts(start, header.p_memsz as usize)
            };
            build_id_in(notes)
        })
        .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        .and_then(|digits| CString::new(digits).ok())
        .unwrap_or_default();
    // The main program has no name in the loader's list.
    let is_program = path.is_empty();
    search.found = Some(Module { start, end, bias, build_id, path, is_program });
    1
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
    }
}
