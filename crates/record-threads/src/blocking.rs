//! Sleep, input and output: waits in calls that may or may not wait, recorded when they are over.

use core::mem::MaybeUninit;

use libc::c_int;
use taskscope_event::models::wait::{kind, outcome};
use taskscope_ompt::shared::Blocking;

use crate::events::{self, Waited};
use crate::objects::this_thread;
use crate::switches;

/// A call has returned; `errno` is kept.
pub fn returned(call: Blocking, result: i64, begun: u64, ended: u64) {
    if this_thread().is_none() {
        return;
    }
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        record(call, (result, kept), begun, ended);
        *errno = kept;
    }
}

fn record(call: Blocking, (result, errno): (i64, c_int), begun: u64, ended: u64) {
    if call != Blocking::Sleep && !switches::has_waited() {
        return;
    }
    let (kind, object) = match call {
        Blocking::Sleep => (kind::SLEEP, 0),
        Blocking::Descriptor(descriptor) => kind_and_object(descriptor),
        Blocking::Several => (kind::SEVERAL, 0),
        Blocking::Semaphore(address) => (kind::SEMAPHORE, address as u64),
        Blocking::Other => (kind::PROCESS, 0),
    };
    let outcome = match call {
        Blocking::Sleep => outcome::DONE,
        Blocking::Several if result == 0 => outcome::TIMED_OUT,
        _ if result >= 0 => outcome::DONE,
        _ if [libc::ETIMEDOUT, libc::EAGAIN].contains(&errno) => outcome::TIMED_OUT,
        _ => outcome::FAILED,
    };
    events::waited(&Waited { kind, object, outcome, time: (begun, ended), waker: None });
}

/// The kind of a descriptor, and what identifies what it is for.
fn kind_and_object(descriptor: c_int) -> (u32, u64) {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is valid for writing, and all zeros is a valid value.
    let (failed, status) = unsafe { (libc::fstat(descriptor, status.as_mut_ptr()), status.assume_init()) };
    let number = u64::from(descriptor.unsigned_abs());
    if failed != 0 {
        return (kind::DESCRIPTOR, number);
    }
    match status.st_mode & libc::S_IFMT {
        libc::S_IFIFO => (kind::PIPE, status.st_ino),
        libc::S_IFSOCK => (kind::SOCKET, status.st_ino),
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => (kind::FILE, number),
        // SAFETY: no preconditions.
        libc::S_IFCHR if unsafe { libc::isatty(descriptor) } == 1 => (kind::TERMINAL, number),
        libc::S_IFCHR => (kind::DESCRIPTOR, number),
        _ => (kind_of_anonymous(descriptor), number),
    }
}

/// The kind of a descriptor without an inode of its own.
fn kind_of_anonymous(descriptor: c_int) -> u32 {
    let mut path = [0_u8; 40];
    let mut target = [0_u8; 32];
    let length = write_path(&mut path, descriptor.unsigned_abs());
    // SAFETY: a C string, as the array was zeros; the target has this length.
    let read = unsafe { libc::readlink(path.as_ptr().cast(), target.as_mut_ptr().cast(), target.len()) };
    let target = target.get(..usize::try_from(read).unwrap_or(0)).unwrap_or_default();
    match (length < path.len(), target) {
        (true, b"anon_inode:[eventfd]") => kind::EVENT,
        (true, b"anon_inode:[timerfd]") => kind::TIMER,
        (true, b"anon_inode:[eventpoll]") => kind::SEVERAL,
        _ => kind::DESCRIPTOR,
    }
}

/// Writes the path of a descriptor's link. Returns its length.
fn write_path(path: &mut [u8; 40], descriptor: u32) -> usize {
    const START: &[u8] = b"/proc/self/fd/";
    let mut digits = [0_u8; 10];
    let (mut count, mut rest) = (0, descriptor);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        (count, rest) = (count + 1, rest / 10);
        if rest == 0 {
            break;
        }
    }
    let digits = digits.get(digits.len() - count..).unwrap_or_default();
    let bytes = START.iter().chain(digits);
    path.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
    START.len() + digits.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_have_their_kind() {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        assert_eq!(kind_and_object(ends[0]), kind_and_object(ends[1]));
        assert_eq!(kind_and_object(ends[0]).0, kind::PIPE);
        // SAFETY: no preconditions.
        let (event, timer) = unsafe { (libc::eventfd(0, 0), libc::timerfd_create(libc::CLOCK_MONOTONIC, 0)) };
        assert_eq!(kind_and_object(event).0, kind::EVENT);
        assert_eq!(kind_and_object(timer).0, kind::TIMER);
        assert_eq!(kind_and_object(-1).0, kind::DESCRIPTOR);
        for descriptor in [ends[0], ends[1], event, timer] {
            // SAFETY: opened above.
            unsafe { libc::close(descriptor) };
        }
    }

    #[test]
    fn paths_of_descriptors_end_with_their_number() {
        for (descriptor, expected) in [(0, "/proc/self/fd/0"), (4_294_967_295, "/proc/self/fd/4294967295")] {
            let mut path = [0; 40];
            let length = write_path(&mut path, descriptor);
            assert_eq!(&path[..length], expected.as_bytes());
        }
    }
}
