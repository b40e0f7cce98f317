//! Messages on stderr. The standard library's macros panic if it cannot be written, such as after `2>&1 | head`. Here a
//! missing reader is not an error: outputs and exit codes are unchanged. No message acts on a terminal
//! ([`crate::output::plain`]).

/// Replaces the standard library's macro.
macro_rules! eprint {
    ($($talk:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), "{}", crate::output::plain(&format!($($talk)*)));
    }};
}

/// Replaces the standard library's macro.
macro_rules! eprintln {
    ($($talk:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{}", crate::output::plain(&format!($($talk)*)));
    }};
}
