//! taskscope: symbol (under construction).
