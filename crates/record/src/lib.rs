//! taskscope: record (under construction).
