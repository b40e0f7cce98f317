//! rayon's `join`, `scope` and `spawn` with closures as tasks in the trace, and parallel iterators with
//! pieces as tasks.
//!
//! Replacements of rayon's own functions: `use taskscope_record::rayon::join;`. Parallel iterators:
//! [`as_tasks`](AsTasks::as_tasks) as the last adaptor. A task's kind is the function with the place of the
//! call. Between tasks a worker is idle; the time in which a task waits for its forked parts is state
//! SYNCHRONIZATION.
//!
//! | of rayon | recorded |
//! | --- | --- |
//! | `join`, `scope`, `Scope::spawn`, `spawn` | through the functions of this module |
//! | parallel iterators | each piece that runs without being split further, through [`as_tasks`](AsTasks::as_tasks) |
//! | `par_sort`, `join_context`, `scope_fifo`, `in_place_scope`, `broadcast`, `yield_now`, `ThreadPool`'s own `join`, `scope` and `spawn` | not; inside [`ThreadPool::install`](rayon::ThreadPool::install) the functions of this module run in that pool |

use core::panic::Location;
use std::cell::RefCell;

use rayon::iter::ParallelIterator;
use rayon::iter::plumbing::{Consumer, Folder, UnindexedConsumer};

use crate::instrument::{Class, OnThread, StateName, TaskContext, named, task_kind};

static WAITING: StateName =
    StateName::new("SYNCHRONIZATION", "for what was forked").counts_as(Class::Synchronisation);

thread_local! {
    /// Kinds by the place of the call, with the state of names at their lookup; the oldest first.
    static KINDS: RefCell<Vec<((usize, usize), u32, Option<u32>)>> = const { RefCell::new(Vec::new()) };
}
/// Places that a thread remembers.
const REMEMBERED: usize = 64;

fn new_task(name: &'static str, at: &'static Location<'static>) -> TaskContext {
    let place = (core::ptr::from_ref(at) as usize, name.as_ptr() as usize);
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
        Ok(kind) => kind.map_or(TaskContext::default(), TaskContext::with_kind),
        // The thread ends.
        Err(_) => ask().map_or(TaskContext::default(), TaskContext::with_kind),
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

/// A [`rayon::Scope`] that spawns closures as tasks.
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

/// [`rayon::scope`] with spawned closures as tasks; the caller waits for them.
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

/// Parallel iterators with pieces as tasks.
pub trait AsTasks: ParallelIterator {
    /// Makes a task, of kind `par_iter` at the caller's line, of each piece of the iterator that runs on one thread without being
    /// split further; the caller waits for them.
    ///
    /// Call it last, before the consumer: `v.par_iter().map(f).as_tasks().sum()`. The result is not an
    /// [`IndexedParallelIterator`](rayon::iter::IndexedParallelIterator): `enumerate`, `zip`, `with_min_len`
    /// and the like come before. The creator of a piece is the task that was on its thread.
    #[track_caller]
    fn as_tasks(self) -> Tasks<Self> {
        Tasks { inner: self, here: Location::caller() }
    }
}

impl<I: ParallelIterator> AsTasks for I {}

/// The iterator that [`AsTasks::as_tasks`] returns.
#[must_use = "parallel iterators do nothing until they are consumed"]
pub struct Tasks<I> {
    inner: I,
    here: &'static Location<'static>,
}

impl<I: ParallelIterator> ParallelIterator for Tasks<I> {
    type Item = I::Item;

    fn drive_unindexed<C: UnindexedConsumer<I::Item>>(self, consumer: C) -> C::Result {
        let _waiting = WAITING.enter();
        self.inner.drive_unindexed(Piece { inner: consumer, here: self.here })
    }

    fn opt_len(&self) -> Option<usize> {
        self.inner.opt_len()
    }
}

/// A piece that may be split further.
struct Piece<C> {
    inner: C,
    here: &'static Location<'static>,
}

impl<T, C: Consumer<T>> Consumer<T> for Piece<C> {
    type Folder = RunningPiece<C::Folder>;
    type Reducer = C::Reducer;
    type Result = C::Result;

    fn split_at(self, index: usize) -> (Self, Self, C::Reducer) {
        let (left, right, reducer) = self.inner.split_at(index);
        (Piece { inner: left, here: self.here }, Piece { inner: right, here: self.here }, reducer)
    }

    fn into_folder(self) -> RunningPiece<C::Folder> {
        let on = new_task("par_iter", self.here).enter();
        RunningPiece { inner: self.inner.into_folder(), on }
    }

    fn full(&self) -> bool {
        self.inner.full()
    }
}

impl<T, C: UnindexedConsumer<T>> UnindexedConsumer<T> for Piece<C> {
    fn split_off_left(&self) -> Self {
        Piece { inner: self.inner.split_off_left(), here: self.here }
    }

    fn to_reducer(&self) -> C::Reducer {
        self.inner.to_reducer()
    }
}

/// A piece that runs on this thread. Its task ends with it, even if an item's closure panics.
struct RunningPiece<F> {
    inner: F,
    on: OnThread,
}

impl<T, F: Folder<T>> Folder<T> for RunningPiece<F> {
    type Result = F::Result;

    fn consume(self, item: T) -> Self {
        RunningPiece { inner: self.inner.consume(item), on: self.on }
    }

    fn consume_iter<I: IntoIterator<Item = T>>(self, items: I) -> Self {
        RunningPiece { inner: self.inner.consume_iter(items), on: self.on }
    }

    fn complete(self) -> F::Result {
        let result = self.inner.complete();
        self.on.end();
        result
    }

    fn full(&self) -> bool {
        self.inner.full()
    }
}
