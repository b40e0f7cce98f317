//! Sleep, input and output: waits in calls that may or may not wait, recorded when they are over.
//!
//! While a thread reads from a channel of the process, polls one, or waits for a semaphore, others that end such a wait record
//! that before they do so. Then the wait is recorded even if it was short.
//!
//! A call that a thread is in at the end of the process is recorded by whoever closes the thread's stream: a wait that is not over.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use libc::{c_int, pollfd};
use taskscope_event::models::wait::{kind, outcome};
use taskscope_ompt::shared::{Blocking, MIN_BLOCKED_NS, Moment, OpenCall, Returned, copy_from_anywhere};
use taskscope_record::open_call::Open;

use crate::channels::{self, Channel};
use crate::events::{self, Waited};
use crate::exchange;
use crate::objects::{Object, subtract, this_thread};
use crate::switches;

/// Wakes of channels and semaphores so far, and one.
static WAKES: AtomicU64 = AtomicU64::new(1);

/// Maximum examined descriptors of a list.
const MAX_POLLED: usize = 64;
/// Words of a set of `select`.
const SET_WORDS: usize = libc::FD_SETSIZE / 64;

/// A thread wakes others that wait in calls of this module.
pub fn note_wake() {
    WAKES.fetch_add(1, Relaxed);
}

/// A call begins. Returns the number of wakes so far if others are to record theirs; 0 otherwise.
pub fn begins(call: Blocking) -> u64 {
    if this_thread().is_none() {
        return 0;
    }
    // Handlers of signals write, and do little else.
    if !matches!(call, Blocking::Writes(_)) {
        events::begin_in_child();
    }
    // The wakes before the thread can be seen waiting.
    let wakes = WAKES.load(Relaxed);
    match call {
        Blocking::Reads(descriptor) => {
            let Some(channel) = channels::read_by(descriptor) else { return 0 };
            if channel.room.load(Relaxed) != 0
                && let Some((kind, object)) = channel.room_wait()
            {
                wake(kind, object, false);
            }
        }
        Blocking::Writes(descriptor) => {
            let Some(channel) = channels::written_by(descriptor) else { return 0 };
            if channel.has_waiting_for_data() {
                let (kind, object) = channel.data_wait();
                wake(kind, object, false);
            }
        }
        Blocking::Poll(..) | Blocking::Select(..) | Blocking::Epoll(..) | Blocking::Semaphore(_) => {}
        Blocking::Signal
        | Blocking::Handler
        | Blocking::Receives(_)
        | Blocking::Sends(_)
        | Blocking::SemaphoreSet(..) => exchange::served(call, wake),
        _ => return 0,
    }
    if !with_awaited(call, |count| _ = count.fetch_add(1, SeqCst), true) {
        return 0;
    }
    switches::begin();
    wakes
}

/// This thread is about to wake one thread that waits for an object, or all of them.
pub fn wake(kind: u32, object: u64, all: bool) {
    note_wake();
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        events::wakes_by_call(kind, object, all);
        *errno = kept;
    }
}

/// Calls `change` with the counts of the channels that a call waits for. Returns whether there are any.
fn with_awaited(call: Blocking, change: impl Fn(&AtomicU32), begins: bool) -> bool {
    match call {
        Blocking::Reads(descriptor) => {
            channels::read_by(descriptor).map(|channel| change(&channel.data)).is_some()
        }
        Blocking::Writes(descriptor) => {
            let channel = channels::written_by(descriptor).filter(|channel| channel.room_wait().is_some());
            channel.map(|channel| change(&channel.room)).is_some()
        }
        Blocking::Poll(..) => {
            let mut is_any = false;
            polled(call).filter_map(channels::read_by).for_each(|channel| {
                change(&channel.data);
                is_any = true;
            });
            is_any
        }
        Blocking::Select(..) => {
            // After the call, the set has only those that are ready.
            if begins {
                polled(call).filter_map(channels::read_by).for_each(Channel::enter_any_set);
            }
            channels::poll_sets(begins);
            true
        }
        Blocking::Epoll(..) => {
            channels::poll_sets(begins);
            true
        }
        Blocking::Semaphore(address) => match Object::of(address) {
            Some(object) if begins => {
                object.begin_waiting();
                true
            }
            Some(object) => {
                object.end_waiting();
                true
            }
            None => false,
        },
        call => exchange::count(call, begins),
    }
}

/// The descriptors that a call polls for data, the first ones of a long list. The list is copied, as the kernel does: an
/// invalid one is an error of the call, and has none here.
fn polled(call: Blocking) -> impl Iterator<Item = c_int> {
    let (mut entries, mut set) = ([pollfd { fd: -1, events: 0, revents: 0 }; MAX_POLLED], [0_u64; SET_WORDS]);
    let (mut count, mut end) = (0, 0);
    match call {
        _ if !channels::are_any() => {}
        Blocking::Poll(list, length) => {
            let wanted = length.min(MAX_POLLED);
            // SAFETY: the bytes of the first entries, which may have any value.
            let bytes = unsafe {
                core::slice::from_raw_parts_mut(
                    entries.as_mut_ptr().cast::<u8>(),
                    wanted * size_of::<pollfd>(),
                )
            };
            count = copy(list as u64, bytes) / size_of::<pollfd>();
        }
        Blocking::Select(length, list) if list != 0 => {
            let wanted = length.clamp(0, libc::FD_SETSIZE as c_int);
            let words = set.iter_mut().take((wanted as usize).div_ceil(64));
            let is_there = |(index, word): (usize, &mut u64)| {
                let mut bytes = [0; 8];
                let is_there = copy(list as u64 + 8 * index as u64, &mut bytes) == bytes.len();
                *word = u64::from_ne_bytes(bytes);
                is_there
            };
            end = if words.enumerate().all(is_there) { wanted } else { 0 };
        }
        _ => {}
    }
    let is_set = move |descriptor: &c_int| {
        let word = set.get(*descriptor as usize / 64).copied().unwrap_or(0);
        word >> (*descriptor as usize % 64) & 1 != 0
    };
    let listed = entries.into_iter().take(count).map(|entry| entry.fd);
    listed.chain((0..end).filter(is_set).take(MAX_POLLED))
}

/// [`copy_from_anywhere`], which keeps `errno`.
fn copy(address: u64, to: &mut [u8]) -> usize {
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let copied = copy_from_anywhere(address, to);
        *errno = kept;
        copied
    }
}

/// A call has returned; `errno` is kept.
pub fn returned(returned: &Returned) {
    if this_thread().is_none() {
        return;
    }
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        record(returned, kept);
        *errno = kept;
    }
}

fn record(returned: &Returned, errno: c_int) {
    let &Returned { call, result, begun, ended, token } = returned;
    let is_awaited = token != 0;
    if is_awaited {
        with_awaited(call, |count| _ = subtract(count), false);
        // Short, and nobody has ended such a wait.
        if ended.saturating_sub(begun) < MIN_BLOCKED_NS && WAKES.load(Relaxed) == token {
            return;
        }
    }
    if call != Blocking::Sleep && !switches::has_waited() {
        return;
    }
    let awaited = awaited(call, result);
    let outcome = match call {
        Blocking::Sleep => outcome::DONE,
        Blocking::Poll(..) | Blocking::Select(..) | Blocking::Epoll(..) | Blocking::Several
            if result == 0 =>
        {
            outcome::TIMED_OUT
        }
        // Functions of liburing return their error.
        Blocking::Operations if result == -i64::from(libc::ETIME) => outcome::TIMED_OUT,
        _ if result >= 0 => outcome::DONE,
        Blocking::Handler if errno == libc::EINTR => outcome::DONE,
        _ if [libc::ETIMEDOUT, libc::EAGAIN].contains(&errno) => outcome::TIMED_OUT,
        _ => outcome::FAILED,
    };
    let Awaited { kind, object, is_of_others } = awaited;
    events::waited(&Waited { kind, object, outcome, time: (begun, ended), is_of_others });
}

/// The moment's thread is in this call at the end of the process.
pub fn is_open(moment: &mut Moment<'_>, open: &OpenCall) {
    let Awaited { kind, object, is_of_others } = awaited(open.call, 0);
    let wait = Waited { kind, object, outcome: outcome::OPEN, time: (open.begun, moment.at), is_of_others };
    events::record_wait(moment, &wait, Some(open));
}

/// The kind of wait, and the object, of a call that a thread is in.
pub fn describe(open: &Open) -> (u32, u64) {
    let Awaited { kind, object, .. } = awaited(OpenCall::of(*open).call, 0);
    (kind, object)
}

/// The awaited object of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Awaited {
    kind: u32,
    object: u64,
    /// Whether no thread of the process can end the wait.
    is_of_others: bool,
}

impl Awaited {
    const fn of(kind: u32, object: u64) -> Awaited {
        Awaited { kind, object, is_of_others: false }
    }
}

fn awaited(call: Blocking, result: i64) -> Awaited {
    let several = Awaited::of(kind::SEVERAL, 0);
    match call {
        Blocking::Sleep => Awaited::of(kind::SLEEP, 0),
        Blocking::Reads(descriptor) => descriptor_wait(descriptor, channels::read_by(descriptor), true),
        Blocking::Writes(descriptor) => descriptor_wait(descriptor, channels::written_by(descriptor), false),
        Blocking::FileLock { descriptor, is_of_process } => {
            let object = u64::from(descriptor.unsigned_abs());
            Awaited { kind: kind::FILE_LOCK, object, is_of_others: is_of_process }
        }
        Blocking::Poll(list, count) if result > 0 => {
            let list = list as *const pollfd;
            // SAFETY: the program's list, by contract of the call that it has made.
            let ready = |index: usize| unsafe { Some(*list.add(index)).filter(|entry| entry.revents != 0) };
            match (0..count.min(MAX_POLLED)).find_map(ready) {
                Some(entry) if count == 1 || channels::read_by(entry.fd).is_some() => {
                    let is_read = entry.revents & !libc::POLLOUT != 0;
                    ready_wait(entry.fd, is_read)
                }
                _ => several,
            }
        }
        Blocking::Select(..) if result > 0 => {
            // Only those that are ready are left.
            let ready = polled(call).find(|descriptor| channels::read_by(*descriptor).is_some());
            ready.map_or(several, |descriptor| ready_wait(descriptor, true))
        }
        Blocking::Epoll(set, events) if result > 0 && events != 0 => {
            // SAFETY: the call has stored at least one event there.
            let data = unsafe { (*(events as *const libc::epoll_event)).u64 };
            channels::in_set(set, data).map_or(several, |descriptor| ready_wait(descriptor, true))
        }
        Blocking::Poll(..) | Blocking::Select(..) | Blocking::Epoll(..) | Blocking::Several => several,
        Blocking::Operations => Awaited::of(kind::OPERATIONS, 0),
        Blocking::Semaphore(address) => Awaited::of(kind::SEMAPHORE, address as u64),
        call => {
            let (kind, object) = exchange::awaited(call, result).unwrap_or((kind::PROCESS, 0));
            Awaited::of(kind, object)
        }
    }
}

/// A descriptor that was polled and is ready.
fn ready_wait(descriptor: c_int, is_read: bool) -> Awaited {
    match is_read {
        true => descriptor_wait(descriptor, channels::read_by(descriptor), true),
        false => descriptor_wait(descriptor, None, false),
    }
}

fn descriptor_wait(descriptor: c_int, channel: Option<&Channel>, is_read: bool) -> Awaited {
    let (kind, object) = kind_and_object(descriptor);
    let channel_wait = channel.and_then(|channel| {
        let (data_kind, number) = channel.data_wait();
        let is_same = match data_kind {
            // The channel of writing is named after the other end.
            kind::SOCKET_PAIR => kind == kind::SOCKET && (!is_read || number == object),
            kind::PIPE => (kind, object) == (data_kind, number),
            _ => kind == data_kind,
        };
        // The number may have been closed and used again without this recorder's knowledge.
        let (kind, object) =
            if is_read { Some((data_kind, number)) } else { channel.room_wait() }.filter(|_| is_same)?;
        Some(Awaited { kind, object, is_of_others: !channel.has_other_end(is_read) })
    });
    channel_wait.unwrap_or_else(|| {
        let is_channel = matches!(kind, kind::PIPE | kind::EVENT);
        Awaited { kind, object, is_of_others: is_channel && channels::are_complete() && channel.is_none() }
    })
}

/// The kind of a descriptor, and the identity of its object.
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
