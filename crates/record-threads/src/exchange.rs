//! Waits for messages, semaphore sets and signals: objects without ends of this process, which other processes may serve too.
//!
//! ```text
//!   thread that waits: counted by the kind of its wait ──────────────▶ recorded at its end, with the object
//!   thread that sends, posts or signals: does one of that kind wait? ─▶ a wake of the object, before the call
//! ```
//! A wait without a wake was ended by another process, or, for a signal, by a timer or the kernel.
//!
//! - A signal to a thread concerns its handle and the number, and its handle alone for calls that return after a handler. A signal to
//!   the process is known to be for a thread only if no other one waits for signals.
//! - A message of System V concerns waits for its type and for any type. Waits for a range of types are waits for any.
//! - Operations on a set that both post and wait wake no thread: the time at which they post is not known.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use taskscope_event::models::wait::kind;
use taskscope_ompt::shared::{Blocking, Queue, copy_from_anywhere};

use crate::objects::subtract;

/// Threads in each kind of wait, from `kind::SIGNAL` on.
static WAITING: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
/// The sum of the handles of threads that wait for signals: that of the thread if there is one.
static HANDLES: AtomicUsize = AtomicUsize::new(0);

/// Examined operations on a set of semaphores.
const MAX_OPERATIONS: usize = 16;

/// An identity of System V, not the inode of a POSIX queue.
const SYSTEM_V: u64 = 1 << 63;

fn waiting(kind: u32) -> Option<&'static AtomicU32> {
    WAITING.get(kind.checked_sub(kind::SIGNAL)? as usize)
}

fn are_waiting(kind: u32) -> bool {
    waiting(kind).is_some_and(|count| count.load(Relaxed) > 0)
}

/// The kind of wait of a call of this module; `None` of others, and of operations on a set that cannot wait.
fn kind_of(call: Blocking) -> Option<u32> {
    match call {
        Blocking::Signal | Blocking::Handler => Some(kind::SIGNAL),
        Blocking::Receives(_) => Some(kind::MESSAGE),
        Blocking::Sends(_) => Some(kind::MESSAGE_ROOM),
        Blocking::SemaphoreSet(_, list, count) => {
            operations(list, count).any(|operation| operation.sem_op <= 0).then_some(kind::SEMAPHORE_SET)
        }
        _ => None,
    }
}

/// The calling thread begins a call of this module, or ends it. Returns whether it may wait in it.
pub fn count(call: Blocking, begins: bool) -> bool {
    let Some((kind, count)) = kind_of(call).and_then(|kind| Some((kind, waiting(kind)?))) else {
        return false;
    };
    if kind == kind::SIGNAL {
        match begins {
            true => HANDLES.fetch_add(own_handle(), Relaxed),
            false => HANDLES.fetch_sub(own_handle(), Relaxed),
        };
    }
    match begins {
        true => _ = count.fetch_add(1, SeqCst),
        false => _ = subtract(count),
    }
    true
}

/// Hands over kind, object, and whether all threads are woken, for each object that a call is about to serve and that threads may wait for.
pub fn served(call: Blocking, mut wake: impl FnMut(u32, u64, bool)) {
    match call {
        Blocking::Sends(queue) if are_waiting(kind::MESSAGE) => {
            wake(kind::MESSAGE, queue_object(queue), false);
            if let Queue::SystemV(id, 1..) = queue {
                wake(kind::MESSAGE, queue_object(Queue::SystemV(id, 0)), false);
            }
        }
        Blocking::Receives(queue) if are_waiting(kind::MESSAGE_ROOM) => {
            wake(kind::MESSAGE_ROOM, queue_object(of_any_type(queue)), false);
        }
        Blocking::SemaphoreSet(id, list, count)
            if are_waiting(kind::SEMAPHORE_SET) && kind_of(call).is_none() =>
        {
            for operation in operations(list, count) {
                let object = set_object(id, operation.sem_num);
                wake(kind::SEMAPHORE_SET, object, operation.sem_op > 1);
            }
        }
        _ => {}
    }
}

/// Hands over the objects of a signal that is about to be sent to a thread, or, without a thread, to the process.
pub fn signalled(thread: Option<usize>, number: c_int, mut wake: impl FnMut(u32, u64)) {
    if number <= 0 || !are_waiting(kind::SIGNAL) {
        return;
    }
    let is_one = waiting(kind::SIGNAL).is_some_and(|count| count.load(Relaxed) == 1);
    let only = || Some(HANDLES.load(Relaxed)).filter(|_| is_one);
    if let Some(handle) = thread.or_else(only).filter(|handle| *handle != own_handle()) {
        wake(kind::SIGNAL, signal_object(handle, number));
        wake(kind::SIGNAL, signal_object(handle, 0));
    }
}

/// Kind and object of a call of this module that has this result; 0 is a call that is not over.
pub fn awaited(call: Blocking, result: i64) -> Option<(u32, u64)> {
    let object = match call {
        Blocking::Signal if result > 0 => signal_object(own_handle(), c_int::try_from(result).unwrap_or(0)),
        Blocking::Handler if result != 0 => signal_object(own_handle(), 0),
        Blocking::Signal | Blocking::Handler => 0,
        Blocking::Receives(queue) => queue_object(queue),
        Blocking::Sends(queue) => queue_object(of_any_type(queue)),
        Blocking::SemaphoreSet(id, list, count) => {
            let waits = operations(list, count).find(|operation| operation.sem_op <= 0);
            set_object(id, waits.map_or(0, |operation| operation.sem_num))
        }
        _ => return None,
    };
    Some((kind_of(call).unwrap_or(kind::SEMAPHORE_SET), object))
}

fn own_handle() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// Handles are addresses of large blocks: no other thread's is this near.
fn signal_object(handle: usize, number: c_int) -> u64 {
    (handle as u64).wrapping_add(u64::from(number.unsigned_abs()))
}

fn of_any_type(queue: Queue) -> Queue {
    match queue {
        Queue::SystemV(id, _) => Queue::SystemV(id, 0),
        queue => queue,
    }
}

fn queue_object(queue: Queue) -> u64 {
    match queue {
        Queue::Posix(descriptor) => inode(descriptor),
        Queue::SystemV(id, of_type) => {
            let of_type = u64::try_from(of_type).unwrap_or(0) & 0x7fff_ffff;
            SYSTEM_V | of_type << 32 | u64::from(id.cast_unsigned())
        }
    }
}

fn set_object(id: c_int, number: u16) -> u64 {
    u64::from(number) << 32 | u64::from(id.cast_unsigned())
}

/// The inode of a descriptor's object; 0 if it is not open.
pub fn inode(descriptor: c_int) -> u64 {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is valid for writing, and all zeros is a valid value.
    unsafe {
        libc::fstat(descriptor, status.as_mut_ptr());
        status.assume_init().st_ino
    }
}

/// The first operations of a list. It is copied, as the kernel does: an invalid one is an error of the call, and has none here.
fn operations(list: usize, count: usize) -> impl Iterator<Item = libc::sembuf> {
    const EMPTY: libc::sembuf = libc::sembuf { sem_num: 0, sem_op: 0, sem_flg: 0 };
    let mut copies = [EMPTY; MAX_OPERATIONS];
    let wanted = count.min(MAX_OPERATIONS);
    // SAFETY: the bytes of the first entries, which may have any value.
    let bytes = unsafe {
        core::slice::from_raw_parts_mut(copies.as_mut_ptr().cast::<u8>(), wanted * size_of::<libc::sembuf>())
    };
    let copied = copy_from_anywhere(list as u64, bytes) / size_of::<libc::sembuf>();
    copies.into_iter().take(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The process has one set of counts: one test has it at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static USE: Mutex<()> = Mutex::new(());
        USE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wakes_of(call: Blocking) -> Vec<(u32, u64, bool)> {
        let mut wakes = Vec::new();
        served(call, |kind, object, all| wakes.push((kind, object, all)));
        wakes
    }

    fn signals(thread: Option<usize>, number: c_int) -> Vec<u64> {
        let mut objects = Vec::new();
        signalled(thread, number, |_, object| objects.push(object));
        objects
    }

    #[test]
    fn messages_wake_those_that_wait_for_their_type_or_for_any() {
        let _alone = alone();
        let (sends, receives) =
            (Blocking::Sends(Queue::SystemV(7, 3)), Blocking::Receives(Queue::SystemV(7, 3)));
        assert!(wakes_of(sends).is_empty(), "nobody waits");
        assert!(count(receives, true));
        let any = awaited(Blocking::Receives(Queue::SystemV(7, 0)), 1).unwrap().1;
        let of_type = awaited(receives, 1).unwrap().1;
        assert_ne!(any, of_type);
        assert_eq!(wakes_of(sends), [(kind::MESSAGE, of_type, false), (kind::MESSAGE, any, false)]);
        assert_ne!(awaited(Blocking::Receives(Queue::SystemV(8, 3)), 1).unwrap().1, of_type);
        assert!(wakes_of(receives).is_empty(), "nobody waits for room");
        assert!(count(sends, true));
        let room = awaited(sends, 0).unwrap();
        assert_eq!(wakes_of(receives), [(room.0, room.1, false)]);
        assert!(count(sends, false) && count(receives, false));
        assert!(wakes_of(sends).is_empty());
    }

    #[test]
    fn operations_on_a_set_that_only_post_wake_those_that_wait_for_the_semaphore() {
        let _alone = alone();
        let operation = |sem_num, sem_op| libc::sembuf { sem_num, sem_op, sem_flg: 0 };
        let of = |list: &[libc::sembuf]| Blocking::SemaphoreSet(5, list.as_ptr() as usize, list.len());
        let (takes, posts) = ([operation(1, 1), operation(2, -1)], [operation(2, 1), operation(3, 4)]);
        assert!(!count(of(&posts), true), "it cannot wait");
        assert!(count(of(&takes), true));
        let (of_kind, object) = awaited(of(&takes), 0).unwrap();
        let other = set_object(5, 3);
        assert_eq!(wakes_of(of(&posts)), [(of_kind, object, false), (of_kind, other, true)]);
        assert!(wakes_of(of(&takes)).is_empty(), "when it posts is not known");
        assert!(count(of(&takes), false));
        assert!(!count(Blocking::SemaphoreSet(5, 8, 1), true), "an invalid list");
    }

    #[test]
    fn signals_to_the_process_are_for_the_only_thread_that_waits_for_signals() {
        let _alone = alone();
        let number = libc::SIGUSR1;
        assert!(signals(Some(4096), number).is_empty(), "nobody waits");
        let waits = move || {
            assert!(count(Blocking::Signal, true));
            let known = [i64::from(number), 0].map(|result| awaited(Blocking::Signal, result).unwrap().1);
            let handler = awaited(Blocking::Handler, -1).unwrap().1;
            (own_handle(), known, handler)
        };
        let (handle, [object, open], handler) = std::thread::spawn(waits).join().unwrap();
        assert_eq!(open, 0);
        assert_eq!(signals(Some(handle), number), [object, handler]);
        assert_eq!(signals(None, number), [object, handler]);
        assert!(signals(Some(handle), 0).is_empty(), "no signal is sent");
        assert!(count(Blocking::Handler, true));
        assert!(signals(None, number).is_empty(), "one of two threads");
        assert!(signals(Some(own_handle()), number).is_empty(), "its own");
        assert!(count(Blocking::Handler, false));
        HANDLES.store(0, Relaxed);
        assert_eq!(waiting(kind::SIGNAL).unwrap().swap(0, Relaxed), 1);
    }
}
