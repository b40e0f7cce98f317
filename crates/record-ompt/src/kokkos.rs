//! The entry of Kokkos, which loads this library if `KOKKOS_TOOLS_LIBS` names it ([`taskscope_annotations::kokkos`]).

use core::ffi::{c_int, c_void};

use taskscope_annotations::kokkos;
use taskscope_event::models::ovni;
use taskscope_record::{Json, process};

use crate::{mode, recording};

/// Starts recording Kokkos in this process. A profile has no events of instrumentation.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_init_library(
    _position: c_int,
    _version: u64,
    _count: u32,
    _devices: *const c_void,
) {
    if recording::start_recording(&[("ovni", ovni::VERSION)]) && !mode::is_on() {
        process::set_attribute("kokkos", Json::boolean(true));
        kokkos::start();
    }
}
