//! taskscope: execution (under construction).
