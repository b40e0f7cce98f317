//! The begin of recording by a library that reports annotations ([`taskscope_annotations`]).

use taskscope_event::models::ovni;
use taskscope_record::{Json, process};

use crate::{mode, recording, thread};

/// Starts recording this process for an interface, whose name becomes an attribute of the process. Returns whether it
/// records; a profile has no events of instrumentation.
pub fn start(interface: &'static str) -> bool {
    if !recording::start_recording(&[("ovni", ovni::VERSION)]) || mode::is_on() {
        return false;
    }
    taskscope_annotations::attach::set(thread::attach_outside_openmp);
    process::set_attribute(interface, Json::boolean(true));
    true
}
