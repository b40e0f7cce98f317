//! Calls that append an operation to a command list: the appended kind, and the position of the event
//! argument.

use super::callbacks::before_append;
use super::library::{Callback, LevelZero, Register, SUCCESS};
use super::state::{LEVEL_ZERO, argument};
use std::ffi::c_void;
use taskscope_event::models::device::kind;

/// Declares a callback before each of these calls: the position of the argument that is the event to signal,
/// the kind, then the name, or the argument that is the kernel, and the one that is the size.
macro_rules! appends {
    ($($function:ident: event $event:literal, $kind:ident $(, called $name:literal)? $(, kernel $kernel:literal)? $(, size $size:literal)?;)*) => {$(
        unsafe extern "C" fn $function(
            arguments: *const *mut usize,
            _: i32,
            _: *mut c_void,
            _: *mut *mut c_void,
        ) {
            #[allow(unused_mut, unused_assignments, reason = "not every call has a size")]
            // SAFETY: the tracing layer gives as many arguments as the call has.
            unsafe {
                let mut bytes = 0;
                $(bytes = argument(arguments, $size) as u64;)?
                before_append(arguments, $event, kind::$kind, bytes, || {
                    $(return $name.to_owned();)?
                    $(return kernel_name(argument(arguments, $kernel));)?
                });
            }
        }
    )*};
}

appends! {
    before_kernel: event 3, KERNEL, kernel 1;
    before_several: event 5, KERNEL, called "several kernels";
    before_copy: event 4, COPY, called "memory copy", size 3;
    before_region_copy: event 9, COPY, called "memory copy of a region";
    before_foreign_copy: event 5, COPY, called "memory copy from another context", size 4;
    before_fill: event 5, FILL, called "memory fill", size 4;
    before_image_copy: event 3, COPY, called "image copy";
    before_image_region: event 5, COPY, called "image copy of a region";
    before_image_out: event 4, COPY_OUT, called "image copy to memory";
    before_image_in: event 4, COPY_IN, called "image copy from memory";
    before_barrier: event 1, SYNCHRONISATION, called "barrier";
    before_memory_barrier: event 4, SYNCHRONISATION, called "barrier of memory ranges";
}

/// All callbacks, with their registration functions; those missing in this release of the loader are left out.
pub(super) fn all(ze: &LevelZero) -> impl Iterator<Item = (Register, Callback)> {
    let pairs: [(Option<Register>, Callback); 14] = [
        (Some(ze.on_kernel), before_kernel),
        (ze.on_cooperative, before_kernel),
        (ze.on_indirect, before_kernel),
        (ze.on_several, before_several),
        (Some(ze.on_copy), before_copy),
        (ze.on_region_copy, before_region_copy),
        (ze.on_foreign_copy, before_foreign_copy),
        (Some(ze.on_fill), before_fill),
        (ze.on_image_copy, before_image_copy),
        (ze.on_image_region, before_image_region),
        (ze.on_image_out, before_image_out),
        (ze.on_image_in, before_image_in),
        (ze.on_barrier, before_barrier),
        (ze.on_memory_barrier, before_memory_barrier),
    ];
    pairs.into_iter().filter_map(|(register, before)| Some((register?, before)))
}

fn kernel_name(kernel: usize) -> String {
    let mut name = [0u8; 512];
    let mut size = name.len();
    let found = LEVEL_ZERO.get().and_then(|ze| ze.kernel_name).is_some_and(|kernel_name| {
        // SAFETY: the kernel is the program's, the place is ours and has `size` bytes.
        unsafe { kernel_name(kernel, &raw mut size, name.as_mut_ptr().cast()) == SUCCESS }
    });
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    if found { String::from_utf8_lossy(&name[..length]).into_owned() } else { "kernel".to_owned() }
}
