//! The interface without the feature `instrument`: no call has an effect.

use std::path::Path;

use super::{Class, Level};

pub use crate::process::StartError;

/// Has no effect.
pub fn start(_trace_directory: impl AsRef<Path>) -> Result<(), StartError> {
    Ok(())
}

/// Has no effect.
pub fn start_from_environment() -> bool {
    false
}

/// Has no effect.
pub fn finish() -> usize {
    0
}

/// Has no effect.
pub fn attach() -> bool {
    false
}

/// Has no effect.
pub fn detach() {}

/// Has no effect.
pub fn name_data<T: ?Sized>(_data: &T, _name: &str) {}

/// Has no effect.
#[doc(hidden)]
pub fn name_memory(_address: u64, _bytes: u64, _name: &[u8]) {}

/// Has no effect.
#[inline(always)]
pub fn point() {}

/// Has no effect.
pub fn switch_on() {}

/// Has no effect.
pub fn switch_off() {}

/// Never.
pub fn is_on() -> bool {
    false
}

/// Inert: no spans are recorded.
pub struct SpanName;

impl SpanName {
    /// Creates an inert name.
    pub const fn new(_name: &'static str) -> Self {
        SpanName
    }

    /// Has no effect.
    #[inline(always)]
    pub fn enter(&'static self) -> Span {
        Span
    }
}

/// An inert span.
#[must_use = "the span ends when this is dropped"]
pub struct Span;

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {}
}

/// Inert: no values are recorded.
pub struct Value;

impl Value {
    /// Creates an inert value.
    pub const fn new(_title: &'static str) -> Self {
        Value
    }

    /// Has no effect.
    #[inline(always)]
    pub fn set(&'static self, _value: i64) {}
}

/// Inert: no tasks are recorded.
pub struct TaskType;

impl TaskType {
    /// Creates an inert type.
    pub const fn new(_name: &'static str) -> Self {
        TaskType
    }

    /// Has no effect.
    #[inline(always)]
    pub fn create(&'static self) -> Task {
        Task
    }
}

/// An inert task.
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

    /// Has no effect.
    #[inline(always)]
    pub fn begin(self) -> RunningTask {
        RunningTask
    }
}

/// An inert guard.
#[must_use = "the task ends when this is dropped"]
pub struct RunningTask;

impl Drop for RunningTask {
    #[inline(always)]
    fn drop(&mut self) {}
}

/// Has no effect.
pub fn set_enabled(_prefix: &str, _enabled: bool) {}

/// Inert: no bursts or points are recorded.
pub struct Key;

impl Key {
    /// Creates an inert key.
    pub const fn new(_name: &'static str, _description: &'static str) -> Key {
        Key
    }

    /// Creates an inert key.
    pub const fn registered(_name: &'static str) -> Key {
        Key
    }

    /// Returns the key unchanged.
    pub const fn level(self, _level: Level) -> Key {
        Key
    }

    /// Returns the key unchanged.
    pub const fn unit(self, _unit: &'static str) -> Key {
        Key
    }

    /// Returns the key unchanged.
    pub const fn stacked(self) -> Key {
        Key
    }

    /// Never one.
    #[inline(always)]
    pub fn number(&'static self) -> Option<u32> {
        None
    }

    /// Never.
    #[inline(always)]
    pub fn is_on(&'static self) -> bool {
        false
    }

    /// Has no effect.
    #[inline(always)]
    pub fn point(&'static self, _value: u64) {}

    /// Has no effect.
    #[inline(always)]
    pub fn open(&'static self, _value: u64) {}

    /// Has no effect.
    #[inline(always)]
    pub fn close(&'static self, _value: u64) {}

    /// Has no effect.
    #[inline(always)]
    pub fn burst(&'static self, _value: u64) -> Burst {
        Burst
    }

    /// 0.
    pub fn value(&'static self, _name: &str, _description: &str) -> u64 {
        0
    }

    /// Has no effect.
    pub fn name_value(&'static self, _value: u64, _name: &str, _description: &str) {}
}

/// The name is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl core::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no key of this name is registered and on")
    }
}

impl core::error::Error for UnknownName {}

/// # Errors
/// Always.
pub fn find_key(_name: &str) -> Result<u32, UnknownName> {
    Err(UnknownName)
}

/// Has no effect.
#[inline(always)]
pub fn composite(_pairs: &[(&'static Key, u64)]) {}

/// Has no effect.
#[inline(always)]
pub fn hide_states() -> StatesHidden {
    StatesHidden
}

/// Inert: no states are recorded.
pub struct StateName;

impl StateName {
    /// Creates an inert name.
    pub const fn new(_name: &'static str, _description: &'static str) -> StateName {
        StateName
    }

    /// Returns the name unchanged.
    pub const fn counts_as(self, _class: Class) -> StateName {
        StateName
    }

    /// Never one.
    #[inline(always)]
    pub fn number(&'static self) -> Option<u32> {
        None
    }

    /// Has no effect.
    #[inline(always)]
    pub fn push(&'static self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn pop(&'static self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn enter(&'static self) -> InState {
        InState
    }

    /// Has no effect.
    #[inline(always)]
    pub fn enter_with(&'static self, _key: &'static Key, _value: u64) -> InStateAndBurst {
        InStateAndBurst
    }
}

impl InState {
    /// Has no effect.
    #[inline(always)]
    pub fn change_to(&mut self, _state: &'static StateName) {}
}

macro_rules! guards {
    ($($name:ident)*) => { $(
        /// An inert guard.
        #[must_use = "it ends when this is dropped"]
        #[derive(Debug)]
        pub struct $name;

        impl Drop for $name {
            #[inline(always)]
            fn drop(&mut self) {}
        }
    )* };
}
guards! { Burst InState InStateAndBurst StatesHidden OnThread }

/// Inert: no messages are recorded.
pub struct Domain;

/// Content of a message.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Key of its value.
    pub key: u32,
    /// The value.
    pub value: u64,
    /// Whom it goes to or comes from.
    pub partner: u32,
}

impl Default for Content {
    fn default() -> Content {
        Content { key: 0, value: 0, partner: u32::MAX }
    }
}

impl Domain {
    /// Creates an inert domain.
    pub const fn new(_name: &'static str, _description: &'static str) -> Domain {
        Domain
    }

    /// 0.
    pub fn next_id(&self) -> u64 {
        0
    }

    /// Has no effect.
    pub fn send(&'static self, _id: u64, _content: Content) {}

    /// Has no effect.
    pub fn receive(&'static self, _id: u64, _content: Content) {}

    /// Has no effect.
    pub fn send_from(&'static self, _task: TaskContext, _id: u64, _content: Content) {}

    /// Has no effect.
    pub fn receive_in(&'static self, _task: TaskContext, _id: u64, _content: Content) {}
}

/// Inert: no tasks are recorded.
pub struct TaskKind;

impl TaskKind {
    /// Creates an inert kind.
    pub const fn new(_name: &'static str) -> TaskKind {
        TaskKind
    }

    /// Creates an inert kind.
    pub const fn at(_name: &'static str, _file: &'static str, _line: u32) -> TaskKind {
        TaskKind
    }

    /// Has no effect.
    #[inline(always)]
    pub fn create(&'static self) -> TaskContext {
        TaskContext
    }
}

impl TaskKind {
    /// The future itself.
    pub fn follow<F: core::future::Future>(&'static self, future: F) -> F {
        future
    }
}

/// Never one.
pub fn task_kind(_name: &str, _file: &str, _line: u32) -> Option<u32> {
    None
}

/// An inert task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TaskContext;

impl TaskContext {
    /// Creates an inert task.
    #[inline(always)]
    pub fn of_kind(_kind: u32) -> TaskContext {
        TaskContext
    }

    /// Creates an inert task.
    pub const fn with_id(_id: u64) -> TaskContext {
        TaskContext
    }

    /// Always 0.
    pub const fn id(self) -> u64 {
        0
    }

    /// Has no effect.
    #[inline(always)]
    pub fn enter(self) -> OnThread {
        OnThread
    }

    /// Has no effect.
    #[inline(always)]
    pub fn enter_now(self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn leave_now(self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn yield_now(self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn switch_to(self, _next: TaskContext) {}

    /// Has no effect.
    #[inline(always)]
    pub fn ready(self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn end(self) {}

    /// Has no effect.
    pub fn point_later(self, _key: &'static Key, _value: u64) {}
}

impl OnThread {
    /// Has no effect.
    #[inline(always)]
    pub fn end(self) {}

    /// Has no effect.
    #[inline(always)]
    pub fn yield_now(self) {}
}

const _: () = assert!(size_of::<Span>() == 0 && size_of::<Task>() == 0 && size_of::<Value>() == 0);
const _: () = assert!(size_of::<Key>() == 0 && size_of::<Burst>() == 0 && size_of::<TaskContext>() == 0);
