//! Misuse of a function: one line on stderr, without further effect.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Set to 1, misuse ends the program by `abort()`, as in the original library.
pub const ABORT_VARIABLE: &str = "TASKSCOPE_OVNI_ABORT";

/// A program that does it once may do it for every event.
const MAX_MESSAGES: u32 = 20;

/// Whether misuse ends the program.
pub fn aborts() -> bool {
    static ABORT: OnceLock<bool> = OnceLock::new();
    *ABORT.get_or_init(|| std::env::var(ABORT_VARIABLE).is_ok_and(|value| value == "1"))
}

/// Reports that `function` was misused.
#[cold]
pub fn report(function: &str, what: std::fmt::Arguments<'_>) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let abort = aborts();
    match COUNT.fetch_add(1, Relaxed) {
        _ if abort => eprintln!("taskscope: {function}: {what}"),
        count if count < MAX_MESSAGES => eprintln!("taskscope: {function}: {what}; the call is ignored"),
        MAX_MESSAGES => eprintln!("taskscope: further messages about misuse of libovni are omitted"),
        _ => {}
    }
    if abort {
        std::process::abort();
    }
}

/// [`report`] with format arguments.
macro_rules! misuse {
    ($function:literal, $($what:tt)*) => {
        $crate::misuse::report($function, format_args!($($what)*))
    };
}
pub(crate) use misuse;
