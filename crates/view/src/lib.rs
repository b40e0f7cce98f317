//! taskscope: view (under construction).
