//! Talk on stderr. The standard library's macros panic where it cannot be written, such as after `2>&1 | head`; nobody
//! who hears it is no reason to stop: outputs and exit codes are what they would be. Nothing in it
//! acts on a terminal ([`crate::output::plain`]).

/// In the place of the standard library's.
macro_rules! eprintln {
    ($($talk:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{}", crate::output::plain(&format!($($talk)*)));
    }};
}
