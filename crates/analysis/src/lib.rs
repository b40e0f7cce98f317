//! taskscope: analysis (under construction).
