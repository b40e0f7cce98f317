//! The entry of NVTX's headers, which load this library if `NVTX_INJECTION64_PATH` names it
//! ([`taskscope_annotations::nvtx`]).

use core::ffi::c_int;

use taskscope_annotations::nvtx;

use crate::annotations;

/// Connects a module's functions of NVTX with this recorder. Returns 0, after which they do nothing, if the process is not
/// recorded, and in a profile.
///
/// # Safety
/// Called by NVTX's header, with its own function.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_table: Option<nvtx::GetTable>) -> c_int {
    if !annotations::start("nvtx") {
        return 0;
    }
    // SAFETY: by contract.
    c_int::from(unsafe { nvtx::connect(get_table) })
}
