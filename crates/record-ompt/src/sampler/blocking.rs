//! Calls that may block, which a recorder of waits is informed of: futex calls, sleep, input and output. The call that a thread is in at
//! the end of the process is found by [`open_call`].

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use taskscope_record::open_call::{Open, WORDS};
use taskscope_record::{ThreadRecorder, clock, thread};

use super::machine::Place;

/// The C library's `syscall`, with its maximum of arguments.
pub type Syscall = unsafe extern "C-unwind" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// A recorder of waits.
pub struct BlockingRecorder {
    /// Makes a futex call that returns to `caller`, with these arguments of the system call.
    pub futex: unsafe fn(caller: usize, arguments: [usize; 6], next: Syscall) -> c_long,
    /// A call of this thread begins. Returns a token for `returned`; 0 if nothing is to be undone.
    pub begins: fn(call: Blocking) -> u64,
    /// A call of this thread has returned. It has a token, or has lasted [`MIN_BLOCKED_NS`].
    pub returned: fn(returned: &Returned),
}

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// The call.
    pub call: Blocking,
    /// Its result.
    pub result: i64,
    /// Its begin, nanoseconds of `CLOCK_MONOTONIC`.
    pub begun: u64,
    /// Its end.
    pub ended: u64,
    /// The token of its begin.
    pub token: u64,
}

/// A call that may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// For a time.
    Sleep,
    /// For data of a descriptor.
    Reads(c_int),
    /// For room of a descriptor, or for its device.
    Writes(c_int),
    /// For a lock of a descriptor's file, which the whole process holds or the descriptor alone.
    FileLock {
        /// The descriptor.
        descriptor: c_int,
        /// Whether only other processes can hold it.
        is_of_process: bool,
    },
    /// For one of several descriptors, in `poll`: a list of so many `pollfd`.
    Poll(usize, usize),
    /// For one of several descriptors, in `select`: the number of descriptors, and those to be read.
    Select(c_int, usize),
    /// For one of several descriptors, in `epoll_wait`: the set, and its events.
    Epoll(c_int, usize),
    /// For one of several descriptors that are not known.
    Several,
    /// For the semaphore at this address.
    Semaphore(usize),
    /// For a signal, whose number is the call's result.
    Signal,
    /// Until a handler of a signal has run.
    Handler,
    /// For a message.
    Receives(Queue),
    /// For room for a message.
    Sends(Queue),
    /// For semaphores of the set with this identifier: the list of operations, and their number.
    SemaphoreSet(c_int, usize, usize),
    /// For asynchronous operations.
    Operations,
    /// For another process.
    Other,
}

/// A queue of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The POSIX queue of a descriptor.
    Posix(c_int),
    /// The System V queue with this identifier, and the type of message; 0 is any.
    SystemV(c_int, c_long),
}

impl Blocking {
    /// Two words, from which [`from_words`](Self::from_words) makes it again.
    #[inline(always)]
    fn to_words(self) -> [u64; 2] {
        let of = |kind: u64, number: c_int, address: usize| {
            [kind | u64::from(number.cast_unsigned()) << 32, address as u64]
        };
        match self {
            Blocking::Sleep => of(0, 0, 0),
            Blocking::Reads(descriptor) => of(1, descriptor, 0),
            Blocking::Writes(descriptor) => of(2, descriptor, 0),
            Blocking::FileLock { descriptor, is_of_process } => of(3, descriptor, is_of_process.into()),
            // The kernel refuses longer lists.
            Blocking::Poll(list, count) => of(4, c_int::try_from(count).unwrap_or(c_int::MAX), list),
            Blocking::Select(count, list) => of(5, count, list),
            Blocking::Epoll(set, events) => of(6, set, events),
            Blocking::Several => of(7, 0, 0),
            Blocking::Semaphore(address) => of(8, 0, address),
            Blocking::Other => of(9, 0, 0),
            Blocking::Signal => of(10, 0, 0),
            Blocking::Handler => of(11, 0, 0),
            Blocking::Receives(Queue::Posix(descriptor)) => of(12, descriptor, 0),
            Blocking::Sends(Queue::Posix(descriptor)) => of(13, descriptor, 0),
            Blocking::Receives(Queue::SystemV(id, of_type)) => of(14, id, of_type as usize),
            Blocking::Sends(Queue::SystemV(id, of_type)) => of(15, id, of_type as usize),
            // The kernel refuses longer lists.
            Blocking::SemaphoreSet(id, list, count) => of(16 | (count.min(0xffff) as u64) << 16, id, list),
            Blocking::Operations => of(17, 0, 0),
        }
    }

    fn from_words([kind, address]: [u64; 2]) -> Blocking {
        let (number, address) = (((kind >> 32) as u32).cast_signed(), address as usize);
        match kind & 0xffff {
            0 => Blocking::Sleep,
            1 => Blocking::Reads(number),
            2 => Blocking::Writes(number),
            3 => Blocking::FileLock { descriptor: number, is_of_process: address != 0 },
            4 => Blocking::Poll(address, usize::try_from(number).unwrap_or(0)),
            5 => Blocking::Select(number, address),
            6 => Blocking::Epoll(number, address),
            7 => Blocking::Several,
            8 => Blocking::Semaphore(address),
            10 => Blocking::Signal,
            11 => Blocking::Handler,
            12 => Blocking::Receives(Queue::Posix(number)),
            13 => Blocking::Sends(Queue::Posix(number)),
            14 => Blocking::Receives(Queue::SystemV(number, address as c_long)),
            15 => Blocking::Sends(Queue::SystemV(number, address as c_long)),
            16 => Blocking::SemaphoreSet(number, address, (kind >> 16 & 0xffff) as usize),
            17 => Blocking::Operations,
            _ => Blocking::Other,
        }
    }
}

/// A call that a thread is in at the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub call: Blocking,
    /// Its begin, nanoseconds of `CLOCK_MONOTONIC`.
    pub begun: u64,
    /// Where it is made.
    pub place: Place,
}

impl OpenCall {
    #[inline(always)]
    fn to_open(self) -> Open {
        let ([kind, address], Place { pc, sp, fp, lr }) = (self.call.to_words(), self.place);
        let words: [u64; WORDS] = [kind, address, pc, fp, lr];
        Open { begun: self.begun, sp, words }
    }

    /// The call of these numbers.
    pub fn of(Open { begun, sp, words: [kind, address, pc, fp, lr] }: Open) -> OpenCall {
        OpenCall { call: Blocking::from_words([kind, address]), begun, place: Place { pc, sp, fp, lr } }
    }
}

/// The call that the thread of this recorder, which is not the calling one, is blocked in.
pub fn open_call(recorder: &ThreadRecorder) -> Option<OpenCall> {
    recorder.open_call().map(OpenCall::of)
}

/// The shortest call without a token that is reported, nanoseconds.
pub const MIN_BLOCKED_NS: u64 = 50_000;

static RECORDER: AtomicPtr<BlockingRecorder> = AtomicPtr::new(core::ptr::null_mut());

/// Has `recorder` called from now on.
pub fn set_recorder(recorder: &'static BlockingRecorder) {
    RECORDER.store(core::ptr::from_ref(recorder).cast_mut(), Release);
}

/// The recorder of waits, if there is one.
#[inline(always)]
#[cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]
pub fn recorder() -> Option<&'static BlockingRecorder> {
    // SAFETY: null, or stored by `set_recorder`.
    unsafe { RECORDER.load(Acquire).as_ref() }
}

/// A call that has begun.
#[derive(Clone, Copy)]
pub struct Begun {
    /// 0 without a recorder of waits.
    at: u64,
    token: u64,
    /// Whether it is the thread's outermost one, and noted as that.
    is_noted: bool,
}

/// The begin of a call that may block.
#[inline(always)]
pub fn begin(call: Blocking) -> Begun {
    match recorder() {
        Some(recorder) => {
            // The time is before the call can be seen by others.
            let at = clock::kernel_ns();
            let token = (recorder.begins)(call);
            let open = OpenCall { call, begun: at, place: Place::here() };
            let is_noted = thread::own_open_call().is_some_and(|own| own.begin(&open.to_open()));
            Begun { at, token, is_noted }
        }
        None => Begun { at: 0, token: 0, is_noted: false },
    }
}

/// A call has returned.
#[inline(always)]
pub fn end(begun: Begun, call: Blocking, result: i64) {
    if begun.at != 0 {
        if begun.is_noted
            && let Some(own) = thread::own_open_call()
        {
            own.end();
        }
        report(begun, call, result);
    }
}

#[cold]
#[inline(never)]
fn report(begun: Begun, call: Blocking, result: i64) {
    let ended = clock::kernel_ns();
    if (begun.token != 0 || ended.saturating_sub(begun.at) >= MIN_BLOCKED_NS)
        && let Some(recorder) = recorder()
    {
        (recorder.returned)(&Returned { call, result, begun: begun.at, ended, token: begun.token });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_calls_are_noted_whole() {
        let calls = [
            Blocking::Sleep,
            Blocking::Reads(7),
            Blocking::Writes(-1),
            Blocking::FileLock { descriptor: 3, is_of_process: true },
            Blocking::FileLock { descriptor: 3, is_of_process: false },
            Blocking::Poll(0x7fff_0000_1000, 12),
            Blocking::Select(64, 0x7fff_0000_1000),
            Blocking::Epoll(9, 0x7fff_0000_1000),
            Blocking::Several,
            Blocking::Semaphore(0x5555_0000_1000),
            Blocking::Other,
            Blocking::Signal,
            Blocking::Handler,
            Blocking::Receives(Queue::Posix(7)),
            Blocking::Sends(Queue::Posix(7)),
            Blocking::Receives(Queue::SystemV(32768, -2)),
            Blocking::Sends(Queue::SystemV(-1, 5)),
            Blocking::SemaphoreSet(3, 0x7fff_0000_1000, 2),
            Blocking::Operations,
        ];
        for call in calls {
            let open = OpenCall { call, begun: 5, place: Place { pc: 1, sp: 2, fp: 3, lr: 4 } };
            assert_eq!(OpenCall::of(open.to_open()), open);
        }
    }
}
