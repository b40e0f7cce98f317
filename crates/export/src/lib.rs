//! taskscope: export (under construction).
