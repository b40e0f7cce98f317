//! The order in which the loader finalises libraries.
//!
//! A library is finalised before its dependencies. A preloaded runtime is not a dependency of code that is
//! linked to another one, so it and its tool would be finalised first, and regions in destructors would not
//! be recorded. A library that is loaded after the program's and depends on the runtime defers the runtime's
//! end, because the loader orders independent libraries by load time. That library has no code and no
//! symbols, only the dependency.

use core::ffi::{CStr, c_void};
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};

use crate::sampler::modules;

/// ELF machine number of the compilation target; `None` if no such library is built.
const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// Makes the runtime that contains `address` end after the program's libraries, if it was preloaded. Has no
/// effect on systems without memory files or `/proc`.
pub fn end_runtime_last(address: u64) {
    let Some(module) = modules::find(address) else { return };
    let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let is_separator = |byte: &u8| matches!(byte, b':' | b' ');
    let file_name = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let is_preloaded = preloaded
        .as_encoded_bytes()
        .split(is_separator)
        .any(|path| file_name(path).as_deref() == Some(module.file_name()));
    if is_preloaded && !module.is_program {
        depend_on(&module.path);
    }
}

/// Loads a library that depends on the one at `path`; null on failure.
fn depend_on(path: &CStr) -> *mut c_void {
    let open = || {
        let image = image_of_dependent(path.to_bytes())?;
        // SAFETY: takes a C string, and returns a descriptor or -1.
        let descriptor = unsafe { libc::memfd_create(c"taskscope-end-order".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: just opened, with no other owner.
        let mut file = unsafe { File::from_raw_fd(descriptor) };
        file.write_all(&image).ok()?;
        let name = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        // SAFETY: a C string; the library has no code that could run.
        Some(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) })
    };
    open().unwrap_or(core::ptr::null_mut())
}

/// The file of a library that depends on the one at `path`.
///
/// ```text
///   header  3 segments: loaded, dynamic section, stack  dynamic section  null symbol  strings
/// ```
fn image_of_dependent(path: &[u8]) -> Option<Vec<u8>> {
    const HEADER: u64 = 64;
    const SEGMENT: u64 = 56;
    const SEGMENTS: u64 = 3;
    const DYNAMIC_AT: u64 = HEADER + SEGMENT * SEGMENTS;
    const ENTRIES: u64 = 6;
    const SYMBOL_AT: u64 = DYNAMIC_AT + ENTRIES * 16;
    const SYMBOL: u64 = 24;
    const STRINGS_AT: u64 = SYMBOL_AT + SYMBOL;
    const WRITABLE: u32 = libc::PF_R | libc::PF_W;

    let machine = MACHINE?;
    let strings = [b"\0", path, b"\0"].concat();
    let bytes = STRINGS_AT + strings.len() as u64;
    let mut image = Vec::new();
    // 64-bit, little-endian, of this version.
    image.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // A library; version 1, no entry point, segments behind this, no sections, no flags.
    image.extend(3_u16.to_le_bytes());
    image.extend(machine.to_le_bytes());
    image.extend(1_u32.to_le_bytes());
    for word in [0, HEADER, 0] {
        image.extend(word.to_le_bytes());
    }
    image.extend(0_u32.to_le_bytes());
    for half in [HEADER, SEGMENT, SEGMENTS, 0, 0, 0] {
        image.extend((half as u16).to_le_bytes());
    }
    // The loader writes addresses into the dynamic section. Without a segment for it, stacks would become executable.
    for (kind, at, length, alignment) in [
        (libc::PT_LOAD, 0, bytes, 0x1_0000),
        (libc::PT_DYNAMIC, DYNAMIC_AT, ENTRIES * 16, 8),
        (libc::PT_GNU_STACK, 0, 0, 16),
    ] {
        image.extend(kind.to_le_bytes());
        image.extend(WRITABLE.to_le_bytes());
        for word in [at, at, at, length, length, alignment] {
            image.extend(word.to_le_bytes());
        }
    }
    /// `DT_NEEDED`, `DT_STRTAB`, `DT_SYMTAB`, `DT_STRSZ`, `DT_SYMENT`, `DT_NULL`.
    const TAGS: [u64; ENTRIES as usize] = [1, 5, 6, 10, 11, 0];
    for entry in TAGS.into_iter().zip([1, STRINGS_AT, SYMBOL_AT, strings.len() as u64, SYMBOL, 0]) {
        image.extend(entry.0.to_le_bytes());
        image.extend(entry.1.to_le_bytes());
    }
    image.extend([0; SYMBOL as usize]);
    image.extend(strings);
    Some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_accepts_the_dependent_library() {
        if MACHINE.is_none() {
            return;
        }
        let libc = modules::find(libc::getpid as unsafe extern "C" fn() -> i32 as usize as u64).unwrap();
        let handle = depend_on(&libc.path);
        assert!(!handle.is_null());
        // SAFETY: a handle of the loader's; `dlsym` also searches the dependencies of a library.
        assert!(!unsafe { libc::dlsym(handle, c"getpid".as_ptr()) }.is_null());
        // SAFETY: as above; not used again.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    }

    #[test]
    fn loader_refuses_a_library_without_dependencies() {
        assert!(depend_on(c"/nowhere/libnothing.so").is_null());
    }
}
