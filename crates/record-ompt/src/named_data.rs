//! Names that the program gives to its data, so that dependences are shown by them.

use core::ffi::{CStr, c_char, c_void};

use taskscope_event::models::dictionary;

use crate::thread::record;

/// Implementation of `taskscope_name_data` of `taskscope.h`.
///
/// # Safety
/// `name` points to a NUL-terminated string, or is null. `data` is not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_name_data_(data: *const c_void, bytes: usize, name: *const c_char) {
    // SAFETY: by contract.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    let (address, bytes) = ((data as u64).to_le_bytes(), (bytes as u64).to_le_bytes());
    record(|moment| {
        moment.write_anyway(|moment| {
            let payload: [&[u8]; 3] = [&address, &bytes, name.to_bytes_with_nul()];
            moment.recorder.own_jumbo(moment.at, dictionary::DATA, &payload);
        });
    });
}
