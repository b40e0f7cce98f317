//! The libovni that the loader finds for programs started from here.
#![allow(unsafe_code)]

use nix::libc;
use std::ffi::{CStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Version of a loaded libovni.
pub struct Loaded {
    /// The version, such as `1.14.0`.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// Its file.
    pub path: PathBuf,
}

/// Loads `libovni.so.1` as a program would, and queries its version. `None` if there is none.
pub fn loaded() -> Option<Loaded> {
    type VersionGet = unsafe extern "C" fn(*mut *const c_char, *mut *const c_char);
    // SAFETY: libovni's constructors do nothing; the handle is kept, so that its code and strings stay.
    let function = unsafe {
        let handle = libc::dlopen(c"libovni.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        (!handle.is_null()).then(|| libc::dlsym(handle, c"ovni_version_get".as_ptr()))?
    };
    if function.is_null() {
        return None;
    }
    let (mut version, mut commit) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the address is that of a function of this type, which writes two strings that stay.
    unsafe { std::mem::transmute::<*mut libc::c_void, VersionGet>(function)(&mut version, &mut commit) };
    // SAFETY: all zero is valid; `dladdr` fills it, and its name is a string that stays.
    let path = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(function, &mut found) != 0 && !found.dli_fname.is_null();
        if is_known { CStr::from_ptr(found.dli_fname).to_bytes().to_vec() } else { Vec::new() }
    };
    // SAFETY: null, or strings.
    let text = |string: *const c_char| unsafe {
        if string.is_null() { String::new() } else { CStr::from_ptr(string).to_string_lossy().into_owned() }
    };
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&path));
    Some(Loaded { version: text(version), commit: text(commit), path })
}
