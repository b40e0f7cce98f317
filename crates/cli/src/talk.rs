//! Talk on stderr. The standard library's macros panic where it cannot be written, such as after `2>&1 | head`; nobody
//! who hears it is no reason to stop: outputs and exit codes are what they would be.

/// In the place of the standard library's.
macro_rules! eprintln {
    ($($talk:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($talk)*);
    }};
}

/// In the place of the standard library's.
macro_rules! eprint {
    ($($talk:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($talk)*);
    }};
}
