//! taskscope: trace (under construction).
