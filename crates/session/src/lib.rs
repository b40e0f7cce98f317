//! taskscope: session (under construction).
