//! The entry of ITT's static parts, which load this library if `INTEL_LIBITTNOTIFY64` names it ([`taskscope_itt`]).

use core::ffi::c_int;

use taskscope_event::models::ovni;
use taskscope_itt::{Host, abi::Global};
use taskscope_record::{Json, process};

use crate::{mode, pause, recording};

static HOST: Host = Host { set_paused };

fn set_paused(paused: bool) {
    pause::set(paused);
    match paused {
        true => taskscope_record::instrument::switch_off(),
        false => taskscope_record::instrument::switch_on(),
    }
}

/// Connects a module's static part of ITT with this recorder. A profile has no events of instrumentation.
///
/// # Safety
/// Called by ITT's static part, with its own data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut Global, _groups: c_int) {
    let records = recording::start_recording(&[("ovni", ovni::VERSION)]) && !mode::is_on();
    if records {
        process::set_attribute("itt", Json::boolean(true));
    }
    // SAFETY: by contract.
    unsafe { taskscope_itt::connect(global, records.then_some(&HOST)) };
}
