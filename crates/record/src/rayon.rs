//! rayon's `join`, `scope` and `spawn`, whose closures are tasks in the trace.
//!
//! In the place of rayon's own functions: `use taskscope_record::rayon::join;`. A task's kind is the function
//! with the place of the call. Between tasks a worker has nothing to do; what a task spends waiting for what
//! it forked is state SYNCHRONIZATION.

use core::panic::Location;
use std::cell::RefCell;

use crate::instrument::{Class, StateName, TaskContext, named, task_kind};

static WAITING: StateName =
    StateName::new("SYNCHRONIZATION", "for what was forked").counts_as(Class::Synchronisation);

thread_local! {
    /// Kinds by the place of the call, and when they were asked for; the oldest first.
    static KINDS: RefCell<Vec<(usize, u32, Option<u32>)>> = const { RefCell::new(Vec::new()) };
}
/// Places that a thread remembers.
const REMEMBERED: usize = 64;

fn new_task(name: &'static str, at: &'static Location<'static>) -> TaskContext {
    let place = core::ptr::from_ref(at) as usize ^ name.as_ptr() as usize;
    let ask = || task_kind(name, at.file(), at.line());
    let known = KINDS.try_with(|kinds| {
        let mut kinds = kinds.try_borrow_mut().ok()?;
        let asked = named::asked();
        let row = kinds.iter().rposition(|(known, ..)| *known == place);
        if let Some(row) = row {
            let (_, when, kind) = kinds[row];
            if when == asked {
                return kind;
            }
            kinds.remove(row);
        } else if kinds.len() == REMEMBERED {
            kinds.remove(0);
        }
        let kind = ask();
        kinds.push((place, asked, kind));
        kind
    });
    match known {
        Ok(kind) => kind.map_or(TaskContext::default(), TaskContext::of_kind),
        // The thread ends.
        Err(_) => ask().map_or(TaskContext::default(), TaskContext::of_kind),
    }
}

fn run<R>(task: TaskContext, body: impl FnOnce() -> R) -> R {
    let on = task.enter();
    let result = body();
    on.end();
    result
}

/// [`rayon::join`]: both closures are tasks, and the caller waits.
#[track_caller]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let here = Location::caller();
    let (first, second) = (new_task("join", here), new_task("join", here));
    let _waiting = WAITING.enter();
    rayon::join(move || run(first, a), move || run(second, b))
}

/// [`rayon::spawn`]: the closure is a task.
#[track_caller]
pub fn spawn(body: impl FnOnce() + Send + 'static) {
    let task = new_task("spawn", Location::caller());
    rayon::spawn(move || run(task, body));
}

/// A [`rayon::Scope`] whose spawned closures are tasks.
pub struct Scope<'a, 'scope> {
    inner: &'a rayon::Scope<'scope>,
}

impl<'scope> Scope<'_, 'scope> {
    /// [`rayon::Scope::spawn`]: the closure is a task.
    #[track_caller]
    pub fn spawn(&self, body: impl FnOnce(&Scope<'_, 'scope>) + Send + 'scope) {
        let task = new_task("scope", Location::caller());
        self.inner.spawn(move |inner| run(task, || body(&Scope { inner })));
    }
}

/// [`rayon::scope`]: what is spawned in it are tasks, and the caller waits for them.
pub fn scope<'scope, R: Send>(body: impl FnOnce(&Scope<'_, 'scope>) -> R + Send) -> R {
    // Outside of the pool, the body runs on another thread, and this one only waits.
    if rayon::current_thread_index().is_none() {
        let _waiting = WAITING.enter();
        return rayon::scope(|inner| body(&Scope { inner }));
    }
    let mut waiting = None;
    let waits = &mut waiting;
    let result = rayon::scope(move |inner| {
        let result = body(&Scope { inner });
        *waits = Some(WAITING.enter());
        result
    });
    drop(waiting);
    result
}
