//! Address ranges of the OpenMP runtime's code.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{modules, runtime_inside};

/// Address range of the OpenMP runtime. Its code pointers have no meaning for a user.
static RUNTIME_START: AtomicUsize = AtomicUsize::new(0);
static RUNTIME_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Sets the runtime's range: the module that contains `address`, or functions of the program.
pub fn set_runtime(address: usize) {
    let Some(module) = modules::find(address as u64) else { return };
    let range = match module.is_program {
        true if runtime_inside::is_known() => None,
        true => runtime_inside::look(module.bias),
        false => Some((module.start, module.end)),
    };
    if let Some((start, end)) = range {
        RUNTIME_START.store(start as usize, Relaxed);
        RUNTIME_BYTES.store((end - start) as usize, Relaxed);
    }
}

/// Looks for a runtime that has not made itself known yet: LLVM's and Intel's, by the entry that every
/// region begins with. While it starts, the program's first fork is already in its code.
pub fn expect_runtime() {
    if RUNTIME_BYTES.load(Relaxed) == 0 {
        // Not by `dlsym`, which may be this library's own. SAFETY: looks up C strings.
        let entry =
            unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__kmpc_fork_call".as_ptr(), c"VERSION".as_ptr()) };
        if !entry.is_null() {
            set_runtime(entry as usize);
        }
    }
}

/// Whether a code pointer is inside the runtime.
#[inline(always)]
pub fn is_in_runtime(codeptr: *const c_void) -> bool {
    (codeptr as usize).wrapping_sub(RUNTIME_START.load(Relaxed)) < RUNTIME_BYTES.load(Relaxed)
        && is_not_the_programs(codeptr)
}

/// Whether a code pointer is in the library that starts kernels: its regions are the kernels'. Looked up once
/// per address.
pub fn is_of_kernels(codeptr: *const c_void) -> bool {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let address = codeptr as usize;
    if LAST.load(Relaxed) == address {
        return address != 0;
    }
    let found =
        modules::find(address as u64).is_some_and(|module| module.file_name().starts_with(b"libomptarget"));
    if found {
        LAST.store(address, Relaxed);
    }
    found
}

/// For an address in the runtime's range: a runtime that is linked into the program may have other functions
/// between its own.
#[cold]
fn is_not_the_programs(codeptr: *const c_void) -> bool {
    !runtime_inside::is_known() || runtime_inside::contains(codeptr as u64)
}
