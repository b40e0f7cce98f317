//! The entry of NVTX's headers, which load this library if `NVTX_INJECTION64_PATH` names it
//! ([`taskscope_annotations::nvtx`]).

use core::ffi::c_int;

use taskscope_annotations::nvtx;
use taskscope_event::models::ovni;
use taskscope_record::{Json, process};

use crate::{mode, recording};

/// Connects a module's functions of NVTX with this recorder. Returns 0, after which they do nothing, if the process is not
/// recorded, and in a profile, which has no events of instrumentation.
///
/// # Safety
/// Called by NVTX's header, with its own function.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_table: Option<nvtx::GetTable>) -> c_int {
    if !recording::start_recording(&[("ovni", ovni::VERSION)]) || mode::is_on() {
        return 0;
    }
    process::set_attribute("nvtx", Json::boolean(true));
    // SAFETY: by contract.
    c_int::from(unsafe { nvtx::connect(get_table) })
}
