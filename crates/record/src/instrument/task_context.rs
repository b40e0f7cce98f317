//! Tasks that move between threads, with their open sections.

use core::marker::PhantomData;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use taskscope_event::models::instrument as i;

use super::dictionary::{Meaning, Space};
use super::feature::IS_COMPILED_IN;
use super::raise::{put, put_end};
use super::register::register;
use super::site::Site;
use super::words::{long, long_and_word, two_longs};

/// A kind of tasks, such as a function that they run. Created once, as a `static`.
pub struct TaskKind {
    name: &'static str,
    file: &'static str,
    line: u32,
    site: Site,
}

impl TaskKind {
    /// Tasks called `name`, written here.
    #[track_caller]
    pub const fn new(name: &'static str) -> TaskKind {
        let here = Location::caller();
        TaskKind::at(name, here.file(), here.line())
    }

    /// Tasks called `name`, written there.
    pub const fn at(name: &'static str, file: &'static str, line: u32) -> TaskKind {
        TaskKind { name, file, line, site: Site::new() }
    }

    /// Creates a task, which can run from now on, on any thread. Its creator is the task on this one.
    #[inline(always)]
    pub fn create(&'static self) -> TaskContext {
        match self.site.number(|| register(&meaning(self.name, self.file, self.line))) {
            Some(kind) => TaskContext::with_kind(kind),
            None => TaskContext(0),
        }
    }
}

fn meaning<'a>(name: &'a str, file: &'a str, line: u32) -> Meaning<'a> {
    Meaning {
        space: Space::TaskKind,
        name: name.as_bytes(),
        description: b"",
        more: file.as_bytes(),
        number: line,
        stacked: false,
    }
}

/// The number of a kind that is known only while the program runs, for [`TaskContext::with_kind`]; `None`
/// while it is off.
pub fn task_kind(name: &str, file: &str, line: u32) -> Option<u32> {
    super::site::number_if_on(register(&meaning(name, file, line)))
}

/// Numbers of tasks; unique in the process.
#[inline(always)]
pub(super) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// A task by its number. It is not the task itself: it may be copied, and is of use on any thread.
///
/// If the task's kind is off, its number is 0 and it is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TaskContext(u64);

impl TaskContext {
    /// Creates a task of a kind returned by [`task_kind`].
    #[inline(always)]
    pub fn with_kind(kind: u32) -> TaskContext {
        if !IS_COMPILED_IN {
            return TaskContext(0);
        }
        let task = next_number();
        if put(i::TASK_CREATE, long_and_word(task, kind)) { TaskContext(task) } else { TaskContext(0) }
    }

    /// The task with this number, from [`TaskContext::id`].
    pub const fn with_id(id: u64) -> TaskContext {
        TaskContext(id)
    }

    /// Its number in the process; 0 if it is not recorded.
    pub const fn id(self) -> u64 {
        self.0
    }

    /// Takes the task up on this thread; dropping the guard puts it down. The task's open sections continue,
    /// and the thread's are suspended.
    #[inline(always)]
    pub fn enter(self) -> OnThread {
        let entered = self.0 != 0 && put(i::TASK_ENTER, long(self.0));
        OnThread { task: if entered { self.0 } else { 0 }, bound_to_thread: PhantomData }
    }

    /// [`TaskContext::enter`] to end the task there, which is recorded whatever the switch's state.
    pub(super) fn enter_to_end(self) -> OnThread {
        if self.0 != 0 {
            put_end(i::TASK_ENTER, long(self.0));
        }
        OnThread { task: self.0, bound_to_thread: PhantomData }
    }

    /// [`TaskContext::enter`] without a guard.
    #[inline(always)]
    pub fn enter_now(self) {
        if self.0 != 0 {
            put(i::TASK_ENTER, long(self.0));
        }
    }

    /// Puts the task down on this thread, as it waits.
    #[inline(always)]
    pub fn leave_now(self) {
        if self.0 != 0 {
            put_end(i::TASK_LEAVE, long(self.0));
        }
    }

    /// Puts the task down on this thread, although it could continue.
    #[inline(always)]
    pub fn yield_now(self) {
        if self.0 != 0 {
            put_end(i::TASK_YIELD, long(self.0));
        }
    }

    /// Puts the task down on this thread and takes `next` up.
    #[inline(always)]
    pub fn switch_to(self, next: TaskContext) {
        if self.0 != 0 || next.0 != 0 {
            put(i::TASK_SWITCH, two_longs(self.0, next.0));
        }
    }

    /// Records that the task can run: its awaited event has come.
    #[inline(always)]
    pub fn ready(self) {
        if self.0 != 0 {
            put(i::TASK_READY, long(self.0));
        }
    }

    /// Ends the task. If it is on this thread, puts it down.
    #[inline(always)]
    pub fn end(self) {
        if self.0 != 0 {
            put_end(i::TASK_END, long(self.0));
        }
    }
}

/// A task that this thread has taken up.
#[must_use = "the thread puts the task down when this is dropped"]
#[derive(Debug)]
pub struct OnThread {
    task: u64,
    bound_to_thread: PhantomData<*mut ()>,
}

impl OnThread {
    /// Ends the task, and puts it down for good.
    #[inline(always)]
    pub fn end(mut self) {
        let task = core::mem::take(&mut self.task);
        if task != 0 {
            put_end(i::TASK_END, long(task));
        }
    }
}

impl OnThread {
    /// Puts the task down, although it could continue.
    #[inline(always)]
    pub fn yield_now(mut self) {
        let task = core::mem::take(&mut self.task);
        if task != 0 {
            put_end(i::TASK_YIELD, long(task));
        }
    }
}

impl Drop for OnThread {
    #[inline(always)]
    fn drop(&mut self) {
        if self.task != 0 {
            put_end(i::TASK_LEAVE, long(self.task));
        }
    }
}
