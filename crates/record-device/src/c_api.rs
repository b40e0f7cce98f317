//! C API, below.
