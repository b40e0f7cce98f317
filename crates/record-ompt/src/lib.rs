//! taskscope: record-ompt (under construction).
