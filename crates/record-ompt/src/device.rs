//! Device constructs on the host: waits of a thread for a device. [`crate::target`] records the device's own
//! timeline.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use taskscope_event::models::omp;

use crate::abi::{self, Data, Lookup, endpoint};
use crate::frames::{Device, Open};
use crate::target;
use crate::thread::{Moment, record};

/// `ompt_callback_target_emi`.
pub unsafe extern "C" fn target_emi(
    kind: c_int,
    scope: c_int,
    device: c_int,
    task: *mut Data,
    target_task: *mut Data,
    target: *mut Data,
    codeptr: *const c_void,
) {
    // SAFETY: the runtime's own arguments.
    unsafe { target::target(kind, scope, device, task, target_task, target, codeptr) };
    record(|moment| {
        let site = moment.site(codeptr);
        moment.thread.wait_return = codeptr as u64;
        let mut payload = [0; 12];
        for (part, value) in payload.chunks_exact_mut(4).zip([kind as u32, device as u32, site]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        // The device works for it.
        moment.follow_works();
        moment.device_part(scope, Device::Target, site, |moment| {
            moment.recorder.own_begin(moment.at, omp::TARGET_BEGIN, payload, 0);
        });
    });
}

/// `ompt_callback_target_data_op_emi`.
#[allow(clippy::too_many_arguments, reason = "as the standard has it")]
pub unsafe extern "C" fn target_data_op_emi(
    scope: c_int,
    target_task: *mut Data,
    target: *mut Data,
    operation: *mut u64,
    kind: c_int,
    source: *mut c_void,
    source_device: c_int,
    destination: *mut c_void,
    destination_device: c_int,
    bytes: usize,
    codeptr: *const c_void,
) {
    // SAFETY: the runtime's own arguments.
    unsafe {
        target::data_op(
            scope,
            target_task,
            target,
            operation,
            kind,
            source,
            source_device,
            destination,
            destination_device,
            bytes,
            codeptr,
        );
    }
    record(|moment| {
        let site = moment.site(codeptr);
        moment.thread.wait_return = codeptr as u64;
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&(bytes as u64).to_le_bytes());
        payload[8..12].copy_from_slice(&(kind as u32).to_le_bytes());
        payload[12..].copy_from_slice(&site.to_le_bytes());
        moment.device_part(scope, Device::Data, site, |moment| {
            moment.recorder.own_begin(moment.at, omp::TARGET_DATA_BEGIN, payload, 0);
        });
    });
}

/// `ompt_callback_target_submit_emi`.
pub unsafe extern "C" fn target_submit_emi(
    scope: c_int,
    target: *mut Data,
    operation: *mut u64,
    requested_teams: c_uint,
) {
    // SAFETY: the runtime's own arguments.
    unsafe { target::submit(scope, target, operation, requested_teams) };
    record(|moment| {
        moment.device_part(scope, Device::Submit, 0, |moment| {
            moment.recorder.own_begin(moment.at, omp::TARGET_SUBMIT_BEGIN, requested_teams.to_le_bytes(), 0);
        });
    });
}

/// `ompt_callback_device_initialize`.
pub unsafe extern "C" fn device_initialize(
    device: c_int,
    kind: *const c_char,
    _handle: *mut c_void,
    _lookup: Option<Lookup>,
    _documentation: *const c_char,
) {
    // SAFETY: the runtime passes a C string, or null.
    let kind = if abi::is_object(kind) { unsafe { CStr::from_ptr(kind) } } else { c"" };
    record(|moment| {
        let parts = [&device.to_le_bytes()[..], kind.to_bytes_with_nul()];
        moment.recorder.own_jumbo(moment.at, omp::DEVICE_BEGIN, &parts);
    });
}

/// `ompt_callback_device_finalize`.
pub unsafe extern "C" fn device_finalize(device: c_int) {
    record(|moment| moment.recorder.own_point(moment.at, omp::DEVICE_END, device.to_le_bytes()));
}

/// `ompt_callback_device_load`.
#[allow(clippy::too_many_arguments, reason = "as the standard has it")]
pub unsafe extern "C" fn device_load(
    device: c_int,
    _file: *const c_char,
    _offset: i64,
    _address_in_file: *mut c_void,
    bytes: usize,
    _host: *mut c_void,
    _on_device: *mut c_void,
    _module: u64,
) {
    record(|moment| {
        let mut payload = [0; 12];
        payload[..8].copy_from_slice(&(bytes as u64).to_le_bytes());
        payload[8..].copy_from_slice(&device.to_le_bytes());
        moment.recorder.own_point(moment.at, omp::DEVICE_LOAD, payload);
    });
}

/// `ompt_callback_device_unload`.
pub unsafe extern "C" fn device_unload(device: c_int, _module: u64) {
    record(|moment| moment.recorder.own_point(moment.at, omp::DEVICE_UNLOAD, device.to_le_bytes()));
}

impl Moment<'_> {
    fn device_part(&mut self, scope: c_int, part: Device, site: u32, begin: impl FnOnce(&mut Self)) {
        if scope & endpoint::BEGIN != 0 {
            self.open_with(Open::Device(part), site, begin);
        }
        if scope & endpoint::END != 0 {
            self.close_in_context(|open| open == Open::Device(part));
        }
    }
}
