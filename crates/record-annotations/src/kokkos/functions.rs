//! The functions that Kokkos looks up in the library, as its C interface declares them.
//!
//! `kokkosp_init_library` is the recorder's, as it starts recording.

use core::ffi::{CStr, c_char, c_void};

use super::Use;
use super::{Side, section, start_section, stop_section};
use super::{begin, begin_copy, change_memory, end, end_copy, event, pop_region, push_region};
use crate::stack::StateKind;
use crate::text::bytes;

/// The name of a memory space (`Kokkos_Profiling_SpaceHandle`), a C string unless it fills all of it.
#[repr(C)]
pub struct Space([u8; 64]);

impl Space {
    fn name(&self) -> &[u8] {
        CStr::from_bytes_until_nul(&self.0).map_or(&self.0, CStr::to_bytes)
    }
}

/// The beginning of `Kokkos_Tools_ToolSettings`.
#[repr(C)]
pub struct Settings {
    requires_global_fencing: bool,
}

/// Declines fences around each kernel.
///
/// # Safety
/// Called by Kokkos: `settings` is null, or points to the settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_request_tool_settings(count: u32, settings: *mut Settings) {
    if count > 0 && !settings.is_null() {
        // SAFETY: by contract.
        unsafe { (*settings).requires_global_fencing = false };
    }
}

/// Stores the number of a kernel, fence or section.
///
/// # Safety
/// `place` is null, or points to a number.
unsafe fn store<T>(place: *mut T, number: T) {
    if !place.is_null() {
        // SAFETY: by contract.
        unsafe { place.write(number) };
    }
}

macro_rules! numbered {
    ($($begin:ident $end:ident $kind:ident $used:ident;)*) => {$(
        /// Begins a kernel or fence with this label.
        ///
        /// # Safety
        /// Called by Kokkos, with a C string and the place of a number.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $begin(label: *const c_char, _device: u32, number: *mut u64) {
            // SAFETY: by contract.
            unsafe { store(number, begin(StateKind::$kind, Use::$used, bytes(label))) };
        }

        /// Ends the kernel or fence with this number.
        #[unsafe(no_mangle)]
        pub extern "C" fn $end(number: u64) {
            end(StateKind::$kind, number);
        }
    )*};
}

numbered! {
    kokkosp_begin_parallel_for kokkosp_end_parallel_for Kernel For;
    kokkosp_begin_parallel_reduce kokkosp_end_parallel_reduce Kernel Reduce;
    kokkosp_begin_parallel_scan kokkosp_end_parallel_scan Kernel Scan;
    kokkosp_begin_fence kokkosp_end_fence Fence Fence;
}

/// Begins a region.
///
/// # Safety
/// Called by Kokkos, with a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_push_profile_region(label: *const c_char) {
    // SAFETY: by contract.
    push_region(unsafe { bytes(label) });
}

/// Ends the innermost region.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_pop_profile_region() {
    pop_region();
}

/// Counts allocated memory.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_allocate_data(
    space: Space,
    _label: *const c_char,
    _data: *const c_void,
    bytes: u64,
) {
    change_memory(space.name(), bytes);
}

/// Counts freed memory.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_deallocate_data(
    space: Space,
    _label: *const c_char,
    _data: *const c_void,
    bytes: u64,
) {
    change_memory(space.name(), bytes.wrapping_neg());
}

/// Begins a copy between memory spaces.
///
/// # Safety
/// Called by Kokkos, with C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_begin_deep_copy(
    to_space: Space,
    to: *const c_char,
    _to_data: *const c_void,
    from_space: Space,
    from: *const c_char,
    _from_data: *const c_void,
    size: u64,
) {
    // SAFETY: by contract.
    let (to, from) = unsafe { (bytes(to), bytes(from)) };
    let to = Side { space: to_space.name(), label: to };
    begin_copy(&to, &Side { space: from_space.name(), label: from }, size);
}

/// Ends the innermost copy.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_end_deep_copy() {
    end_copy();
}

/// Makes a section.
///
/// # Safety
/// Called by Kokkos, with a C string and the place of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_create_profile_section(label: *const c_char, number: *mut u32) {
    // SAFETY: by contract.
    unsafe { store(number, section(bytes(label))) };
}

/// Starts a section.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_start_profile_section(number: u32) {
    start_section(number);
}

/// Stops a section.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_stop_profile_section(number: u32) {
    stop_section(number);
}

/// Records an event.
///
/// # Safety
/// Called by Kokkos, with a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_profile_event(label: *const c_char) {
    // SAFETY: by contract.
    event(unsafe { bytes(label) });
}
