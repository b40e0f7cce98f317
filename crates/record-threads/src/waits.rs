//! Calls that wait for files, other processes and message queues. A signal does not interrupt them if its handler has
//! `SA_RESTART`: they are passed on as they are.

use core::ffi::{c_char, c_int, c_uint, c_void};

use libc::{iovec, off_t, pid_t, rusage, siginfo_t, timespec};
use taskscope_ompt::shared::{Blocking, Queue, begin_blocking, end_blocking};

use crate::c_library::call;

/// Makes a call that may wait. A cancelled thread unwinds from it, and nothing is dropped.
#[inline(always)]
pub fn waits_in<R: Copy>(blocking: Blocking, call: impl FnOnce() -> R, number: impl FnOnce(R) -> i64) -> R {
    let begun = begin_blocking(blocking);
    let result = call();
    end_blocking(begun, blocking, number(result));
    result
}

/// `fn name(arguments) -> result, blocks kind;`. The kind is a [`Blocking`].
macro_rules! waits {
    ($( fn $name:ident($($argument:ident : $type:ty),*) -> $result:ty, blocks $blocking:expr; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the program's own call, passed on.
            waits_in($blocking, || unsafe { call!($name($($argument: $type),*) -> $result) }, |result| result as i64)
        }
    )* };
}

type Data = *mut c_void;
type Bytes = *const c_void;
type Parts = *const iovec;
type Offset = *mut off_t;
type Status = *mut c_int;
type Usage = *mut rusage;
type Info = *mut siginfo_t;
type Time = *const timespec;
type Text = *const c_char;
type Priority = *mut c_uint;

waits! {
    fn fsync(file: c_int) -> c_int, blocks Blocking::Writes(file);
    fn fdatasync(file: c_int) -> c_int, blocks Blocking::Writes(file);
    fn syncfs(file: c_int) -> c_int, blocks Blocking::Writes(file);
    fn sync_file_range(file: c_int, from: off_t, bytes: off_t, flags: c_uint) -> c_int, blocks Blocking::Writes(file);
    fn pread(file: c_int, data: Data, bytes: usize, from: off_t) -> isize, blocks Blocking::Reads(file);
    fn pread64(file: c_int, data: Data, bytes: usize, from: off_t) -> isize, blocks Blocking::Reads(file);
    fn __pread_chk(file: c_int, data: Data, bytes: usize, from: off_t, room: usize) -> isize, blocks Blocking::Reads(file);
    fn __pread64_chk(file: c_int, data: Data, bytes: usize, from: off_t, room: usize) -> isize, blocks Blocking::Reads(file);
    fn pwrite(file: c_int, data: Bytes, bytes: usize, from: off_t) -> isize, blocks Blocking::Writes(file);
    fn pwrite64(file: c_int, data: Bytes, bytes: usize, from: off_t) -> isize, blocks Blocking::Writes(file);
    fn preadv(file: c_int, parts: Parts, count: c_int, from: off_t) -> isize, blocks Blocking::Reads(file);
    fn preadv64(file: c_int, parts: Parts, count: c_int, from: off_t) -> isize, blocks Blocking::Reads(file);
    fn preadv2(file: c_int, parts: Parts, count: c_int, from: off_t, flags: c_int) -> isize, blocks Blocking::Reads(file);
    fn preadv64v2(file: c_int, parts: Parts, count: c_int, from: off_t, flags: c_int) -> isize, blocks Blocking::Reads(file);
    fn pwritev(file: c_int, parts: Parts, count: c_int, from: off_t) -> isize, blocks Blocking::Writes(file);
    fn pwritev64(file: c_int, parts: Parts, count: c_int, from: off_t) -> isize, blocks Blocking::Writes(file);
    fn pwritev2(file: c_int, parts: Parts, count: c_int, from: off_t, flags: c_int) -> isize, blocks Blocking::Writes(file);
    fn pwritev64v2(file: c_int, parts: Parts, count: c_int, from: off_t, flags: c_int) -> isize, blocks Blocking::Writes(file);
    fn sendfile(to: c_int, from: c_int, offset: Offset, bytes: usize) -> isize, blocks Blocking::Writes(to);
    fn sendfile64(to: c_int, from: c_int, offset: Offset, bytes: usize) -> isize, blocks Blocking::Writes(to);
    fn copy_file_range(from: c_int, source: Offset, to: c_int, target: Offset, bytes: usize, flags: c_uint) -> isize, blocks Blocking::Writes(to);
    fn wait(status: Status) -> pid_t, blocks Blocking::Other;
    fn waitpid(child: pid_t, status: Status, flags: c_int) -> pid_t, blocks Blocking::Other;
    fn wait3(status: Status, flags: c_int, usage: Usage) -> pid_t, blocks Blocking::Other;
    fn wait4(child: pid_t, status: Status, flags: c_int, usage: Usage) -> pid_t, blocks Blocking::Other;
    fn waitid(kind: c_uint, id: c_uint, info: Info, flags: c_int) -> c_int, blocks Blocking::Other;
    fn pclose(stream: Data) -> c_int, blocks Blocking::Other;
    fn flock(descriptor: c_int, operation: c_int) -> c_int, blocks Blocking::FileLock { descriptor, is_of_process: false };
    fn lockf(descriptor: c_int, command: c_int, bytes: off_t) -> c_int, blocks Blocking::FileLock { descriptor, is_of_process: true };
    fn lockf64(descriptor: c_int, command: c_int, bytes: off_t) -> c_int, blocks Blocking::FileLock { descriptor, is_of_process: true };
    fn mq_send(queue: c_int, text: Text, bytes: usize, priority: c_uint) -> c_int, blocks Blocking::Sends(Queue::Posix(queue));
    fn mq_receive(queue: c_int, text: Text, bytes: usize, priority: Priority) -> isize, blocks Blocking::Receives(Queue::Posix(queue));
    fn mq_timedsend(queue: c_int, text: Text, bytes: usize, priority: c_uint, until: Time) -> c_int, blocks Blocking::Sends(Queue::Posix(queue));
    fn mq_timedreceive(queue: c_int, text: Text, bytes: usize, priority: Priority, until: Time) -> isize, blocks Blocking::Receives(Queue::Posix(queue));
}
