//! The `taskscope` command: arguments, messages, exit codes.
fn main() {}
