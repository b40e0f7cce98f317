//! Libraries of vendors, looked up at run time: none is needed to build.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// A library that stays loaded.
#[derive(Clone, Copy)]
pub(crate) struct Library(*mut c_void);

// SAFETY: a handle of the dynamic loader may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads the library at a path, or of a name in the loader's search path.
    pub fn load(name: &str) -> Option<Library> {
        Library::open(name, libc::RTLD_NOW | libc::RTLD_LOCAL)
    }

    /// The library of this name, if the program has loaded it already.
    pub fn loaded(name: &str) -> Option<Library> {
        Library::open(name, libc::RTLD_NOW | libc::RTLD_NOLOAD)
    }

    fn open(name: &str, flags: c_int) -> Option<Library> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in NUL; the library's own initialisers are trusted as the program's.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// The address of a function; `None` if this release of the library does not have it.
    pub fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open, the name ends in NUL.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// A vendor's text; empty for a null pointer.
///
/// # Safety
/// Null, or ends in NUL and stays during the call.
pub(crate) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Declares a table of functions that are looked up by name: `needed` ones, without which the library is
/// unusable, and those that `may` be missing.
macro_rules! functions {
    (
        $(#[$about:meta])*
        $table:ident {
            needed { $($needed:ident: fn($($argument:ty),*) -> $result:ty = $symbol:literal;)* }
            may { $($may:ident: fn($($may_argument:ty),*) -> $may_result:ty = $may_symbol:literal;)* }
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $(pub $needed: unsafe extern "C" fn($($argument),*) -> $result,)*
            $(pub $may: Option<unsafe extern "C" fn($($may_argument),*) -> $may_result>,)*
        }

        impl $table {
            /// Looks all functions up; `None` if one that is needed is missing.
            pub fn find(library: $crate::dynamic::Library) -> Option<$table> {
                Some($table {
                    $($needed: {
                        type Function = unsafe extern "C" fn($($argument),*) -> $result;
                        // SAFETY: the vendor documents this form for this name.
                        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(library.symbol($symbol)?) }
                    },)*
                    $($may: library.symbol($may_symbol).map(|address| {
                        type Function = unsafe extern "C" fn($($may_argument),*) -> $may_result;
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) }
                    }),)*
                })
            }
        }
    };
}
pub(crate) use functions;
