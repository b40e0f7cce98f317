//! A future as a task: each poll is a stay on a thread, each wake makes it able to run.

use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering::*};
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use super::task_context::{TaskContext, TaskKind};

impl TaskKind {
    /// A future that is a task of this kind from its creation to its end, on any threads that poll it.
    pub fn follow<F: Future>(&'static self, future: F) -> Followed<F> {
        Followed { task: self.create(), wake: None, over: false, future: ManuallyDrop::new(future) }
    }
}

/// A future that is a task.
#[must_use = "a future does nothing unless it is polled"]
pub struct Followed<F> {
    task: TaskContext,
    wake: Option<Arc<WakeOfTask>>,
    over: bool,
    /// Dropped in its task, which its sections belong to.
    future: ManuallyDrop<F>,
}

struct WakeOfTask {
    task: TaskContext,
    /// Whether it was woken since its last poll began.
    woken: AtomicBool,
    inner: Mutex<Waker>,
}

impl Wake for WakeOfTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, AcqRel) {
            self.task.ready();
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        inner.wake();
    }
}

impl<F: Future> Future for Followed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is pinned with the whole and never moved out; the other fields are not pinned.
        let (this, future) = unsafe {
            let this = self.get_unchecked_mut();
            let future: *mut F = &raw mut *this.future;
            (this, Pin::new_unchecked(&mut *future))
        };
        if this.task.id() == 0 {
            return future.poll(context);
        }
        let wake = match &this.wake {
            Some(wake) => {
                let mut inner = wake.inner.lock().unwrap_or_else(PoisonError::into_inner);
                inner.clone_from(context.waker());
                drop(inner);
                wake.woken.store(false, Release);
                wake.clone()
            }
            None => {
                let woken = AtomicBool::new(false);
                let wake = WakeOfTask { task: this.task, woken, inner: Mutex::new(context.waker().clone()) };
                this.wake.insert(Arc::new(wake)).clone()
            }
        };
        let waker = Waker::from(wake.clone());
        let on = this.task.enter();
        let result = future.poll(&mut Context::from_waker(&waker));
        match &result {
            Poll::Ready(_) => {
                this.over = true;
                on.end();
            }
            // It yielded, or was woken meanwhile.
            Poll::Pending if wake.woken.load(Acquire) => on.yield_now(),
            Poll::Pending => drop(on),
        }
        result
    }
}

impl<F> Drop for Followed<F> {
    fn drop(&mut self) {
        let on = (!self.over).then(|| self.task.enter_to_end());
        // SAFETY: dropped here alone, in the place where it was pinned.
        unsafe { ManuallyDrop::drop(&mut self.future) };
        if let Some(on) = on {
            on.end();
        }
    }
}
