//! Starts the sources that no vendor's loader starts: those of programs into which `record` has this
//! library preloaded, since it found that they use Level Zero.

use crate::dynamic::Library;
use crate::hub::hub;

/// Set by `record` if a program of the command uses Level Zero.
const LEVEL_ZERO: &str = "TASKSCOPE_LEVEL_ZERO";

/// Libraries that programs with Level Zero are linked with. Other programs, such as a shell that starts one,
/// are skipped.
const SIGNS: [&str; 9] = [
    "libze_loader.so.1",
    "libpti_view.so.1",
    "libpti_view.so.0",
    "libpti_view.so",
    "libsycl.so.9",
    "libsycl.so.8",
    "libsycl.so.7",
    "libur_loader.so.0",
    "libomptarget.so",
];

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let asked_for = std::env::var_os(LEVEL_ZERO).is_some();
    if !asked_for || !SIGNS.into_iter().any(|name| Library::loaded(name).is_some()) {
        return;
    }
    if let Some(hub) = hub() {
        // PTI knows more; without it, Level Zero itself is listened to.
        let _ = crate::pti::begin(hub) || crate::level_zero::begin(hub);
    }
}
