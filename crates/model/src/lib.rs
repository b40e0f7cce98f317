//! taskscope: model (under construction).
