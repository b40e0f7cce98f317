//! The entry of ITT's static parts, which load this library if `INTEL_LIBITTNOTIFY64` names it ([`taskscope_annotations::itt`]).

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

use taskscope_annotations::itt::{self, Host, abi::Global};

use crate::{annotations, pause};

static HOST: Host = Host { set_paused };

fn set_paused(paused: bool) {
    pause::set(paused);
    match paused {
        true => taskscope_record::instrument::switch_off(),
        false => taskscope_record::instrument::switch_on(),
    }
}

/// The begin of the module that an address is in; null if it is in none.
fn module_of(address: *const c_void, path: &mut *const libc::c_char) -> *mut c_void {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` accepts any address, and its result is read only on success.
    unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) == 0 {
            return core::ptr::null_mut();
        }
        let info = info.assume_init();
        *path = info.dli_fname;
        info.dli_fbase
    }
}

/// Whether the static part belongs to an OpenMP runtime, which reports more through OMPT.
fn is_of_openmp_runtime(global: *const Global) -> bool {
    let mut path = core::ptr::null();
    let module = module_of(global.cast(), &mut path);
    if module.is_null() {
        return false;
    }
    // SAFETY: the path is that of a loaded module. Opened again it is only looked up in, and stays loaded. The program itself
    // is opened by a null pointer, as its path may be relative.
    unsafe {
        let mut library = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            library = libc::dlopen(core::ptr::null(), libc::RTLD_LAZY);
        }
        if library.is_null() {
            return false;
        }
        let fork = libc::dlsym(library, c"__kmpc_fork_call".as_ptr());
        let mut ignored = core::ptr::null();
        let is_here = !fork.is_null() && module_of(fork, &mut ignored) == module;
        libc::dlclose(library);
        is_here
    }
}

/// Connects a module's static part of ITT with this recorder. A profile has no events of instrumentation.
///
/// # Safety
/// Called by ITT's static part, with its own data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut Global, _groups: c_int) {
    let records = !is_of_openmp_runtime(global) && annotations::start("itt");
    // SAFETY: by contract.
    unsafe { itt::connect(global, records.then_some(&HOST)) };
}
