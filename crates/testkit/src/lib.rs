//! taskscope: testkit (under construction).
