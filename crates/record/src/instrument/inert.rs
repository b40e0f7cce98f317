//! The interface, when the feature `instrument` is off: every call is nothing.

use std::path::Path;

pub use crate::process::StartError;

/// Does nothing.
pub fn start(_trace_directory: impl AsRef<Path>) -> Result<(), StartError> {
    Ok(())
}

/// Does nothing.
pub fn start_from_environment() -> bool {
    false
}

/// Does nothing.
pub fn finish() -> usize {
    0
}

/// Does nothing.
pub fn attach() -> bool {
    false
}

/// Does nothing.
pub fn detach() {}

/// Does nothing.
#[inline(always)]
pub fn point() {}

/// Does nothing.
pub fn switch_on() {}

/// Does nothing.
pub fn switch_off() {}

/// Never.
pub fn is_on() -> bool {
    false
}

/// Nothing.
pub struct SpanName;

impl SpanName {
    /// Nothing.
    pub const fn new(_name: &'static str) -> Self {
        SpanName
    }

    /// Does nothing.
    #[inline(always)]
    pub fn enter(&'static self) -> Span {
        Span
    }
}

/// Nothing.
#[must_use = "the span ends when this is dropped"]
pub struct Span;

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {}
}

/// Nothing.
pub struct Value;

impl Value {
    /// Nothing.
    pub const fn new(_title: &'static str) -> Self {
        Value
    }

    /// Does nothing.
    #[inline(always)]
    pub fn set(&'static self, _value: i64) {}
}

/// Nothing.
pub struct TaskType;

impl TaskType {
    /// Nothing.
    pub const fn new(_name: &'static str) -> Self {
        TaskType
    }

    /// Does nothing.
    #[inline(always)]
    pub fn create(&'static self) -> Task {
        Task
    }
}

/// Nothing.
#[derive(Debug)]
pub struct Task;

impl Task {
    /// Always 0.
    pub fn id(&self) -> u32 {
        0
    }

    /// Runs `body`.
    #[inline(always)]
    pub fn run<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// Does nothing.
    #[inline(always)]
    pub fn begin(self) -> RunningTask {
        RunningTask
    }
}

/// Nothing.
#[must_use = "the task ends when this is dropped"]
pub struct RunningTask;

impl Drop for RunningTask {
    #[inline(always)]
    fn drop(&mut self) {}
}

const _: () = assert!(size_of::<Span>() == 0 && size_of::<Task>() == 0 && size_of::<Value>() == 0);
