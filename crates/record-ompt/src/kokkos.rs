//! The entry of Kokkos, which loads this library if `KOKKOS_TOOLS_LIBS` names it ([`taskscope_annotations::kokkos`]).

use core::ffi::{c_int, c_void};

use taskscope_annotations::kokkos;

use crate::annotations;

/// Starts recording Kokkos in this process.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_init_library(
    _position: c_int,
    _version: u64,
    _count: u32,
    _devices: *const c_void,
) {
    if annotations::start("kokkos") {
        kokkos::start();
    }
}
