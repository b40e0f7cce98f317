//! A thread's time on CPUs and its run delay, as the kernel sums them up: read without allocation, for signal handlers too.

use crate::watched_process;
use core::ffi::CStr;

/// Sums of a thread since it began, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSums {
    /// On a CPU.
    pub on_cpu: u64,
    /// Runnable without a CPU. A delay is added when it ends.
    pub delay: u64,
}

impl ThreadSums {
    /// Reads the sums of a thread of the watched process, which is this one but for recorders outside. `None` if the kernel has none (`CONFIG_SCHED_INFO`), the
    /// thread is gone, or no file can be opened. Async-signal-safe.
    pub fn read(os_tid: i32) -> Option<ThreadSums> {
        let mut path = Text::new();
        path.push_task(os_tid);
        path.push(b"/schedstat\0");
        let on_cpu = cpu_time(os_tid);
        let mut text = [0_u8; 96];
        let read = read_file(path.as_c_str()?, &mut text)?;
        // Time on a CPU, which may be a tick behind; run delay; number of times put on a CPU.
        let [on_file, delay] = [0, 1].map(|index| number_at(text.get(..read).unwrap_or_default(), index));
        Some(ThreadSums { on_cpu: on_cpu.or(on_file)?, delay: delay? })
    }
}

/// The calling thread's sums, read again and again: its run delay grows only when it is put on a CPU, after a switch that it counts.
/// So the file is read only if there was one since; all else costs two system calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnSums {
    /// Switches at the last reading of the file, and the delay then; none before the first one.
    last: Option<(i64, u64)>,
}

impl OwnSums {
    /// Reads the sums of the calling thread, which is `os_tid`. `None` as [`ThreadSums::read`]. Async-signal-safe.
    pub fn read(&mut self, os_tid: i32) -> Option<ThreadSums> {
        // Before the sums: a switch between them is seen at the next reading.
        let switches = switches();
        if let Some((before, delay)) = self.last
            && switches == Some(before)
            && let Some(on_cpu) = cpu_time(os_tid)
        {
            return Some(ThreadSums { on_cpu, delay });
        }
        let sums = ThreadSums::read(os_tid)?;
        self.last = switches.map(|switches| (switches, sums.delay));
        Some(sums)
    }
}

/// How often the calling thread left a CPU so far.
fn switches() -> Option<i64> {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing, and all zeros is a valid value.
    let (failed, usage) =
        unsafe { (libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), usage.assume_init()) };
    (failed == 0).then_some(usage.ru_nvcsw + usage.ru_nivcsw)
}

/// Whether a thread of this process runs, or could: it does not sleep, and is not stopped. `None` if that is unknown.
/// Async-signal-safe.
pub fn is_runnable(os_tid: i32) -> Option<bool> {
    state_of(os_tid).map(|state| state == b'R')
}

/// The letter of a thread's state; `None` if it is unknown, or the thread is gone. Async-signal-safe.
pub(crate) fn state_of(os_tid: i32) -> Option<u8> {
    let mut path = Text::new();
    path.push_task(os_tid);
    path.push(b"/stat\0");
    let mut text = [0_u8; 96];
    let read = read_file(path.as_c_str()?, &mut text)?;
    state_in(text.get(..read)?)
}

/// The state in a thread's `stat`: behind its name in parentheses, which may have any character.
fn state_in(stat: &[u8]) -> Option<u8> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}

/// The CPU time of a thread of this process, nanoseconds, exact while it runs. Async-signal-safe.
pub fn cpu_time(os_tid: i32) -> Option<u64> {
    // The kernel's number of a clock: that of the thread, of its scheduler's time (`CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`).
    let clock = !os_tid << 3 | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) } != 0;
    (!failed).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The file is open for a moment only: a program may close descriptors that are not its own, or run out of them.
fn read_file(path: &CStr, text: &mut [u8]) -> Option<usize> {
    // SAFETY: a path that ends with a zero, and memory of the length that is passed. System calls by number are neither
    // intercepted nor points of cancellation.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags);
        if file < 0 {
            return None;
        }
        let read = libc::syscall(libc::SYS_read, file, text.as_mut_ptr(), text.len());
        libc::syscall(libc::SYS_close, file);
        usize::try_from(read).ok()
    }
}

/// A decimal number among several with spaces between.
fn number_at(text: &[u8], index: usize) -> Option<u64> {
    let mut numbers = text.split(u8::is_ascii_whitespace).filter(|number| !number.is_empty());
    core::str::from_utf8(numbers.nth(index)?).ok()?.parse().ok()
}

/// A short text, made without allocation.
struct Text {
    bytes: [u8; 48],
    length: usize,
}

impl Text {
    const fn new() -> Text {
        Text { bytes: [0; 48], length: 0 }
    }

    fn push(&mut self, more: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.length).zip(more) {
            *to = *from;
        }
        self.length += more.len();
    }

    /// The directory of a thread.
    fn push_task(&mut self, os_tid: i32) {
        self.push(b"/proc/");
        match watched_process::other() {
            None => self.push(b"self"),
            Some(pid) => self.push_number(pid),
        }
        self.push(b"/task/");
        self.push_number(os_tid);
    }

    fn push_number(&mut self, number: i32) {
        let mut rest = number.unsigned_abs();
        let (mut digits, mut first) = ([b'0'; 10], 9);
        while rest >= 10 {
            if let Some(digit) = digits.get_mut(first) {
                *digit = b'0' + (rest % 10) as u8;
            }
            (rest, first) = (rest / 10, first - 1);
        }
        if let Some(digit) = digits.get_mut(first) {
            *digit = b'0' + rest as u8;
        }
        self.push(digits.get(first..).unwrap_or_default());
    }

    fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_every_thread_number() {
        for number in [1, 9, 10, 4_194_304, i32::MAX] {
            let mut text = Text::new();
            text.push_task(number);
            text.push(b"/schedstat\0");
            assert_eq!(
                text.as_c_str().unwrap().to_str().unwrap(),
                format!("/proc/self/task/{number}/schedstat")
            );
        }
    }

    #[test]
    fn numbers_are_found_in_malformed_text() {
        assert_eq!(number_at(b"12 345 6\n", 1), Some(345));
        for text in [&b""[..], b"12", b"12 x", b"12 -3", b"1 \xff", b"1 99999999999999999999999"] {
            assert_eq!(number_at(text, 1), None);
        }
    }

    #[test]
    fn states_follow_any_name() {
        assert_eq!(state_in(b"12 (a) b) S 1 2"), Some(b'S'));
        assert_eq!([state_in(b""), state_in(b"12 (a"), state_in(b"12 (a)")], [None; 3]);
        let os_tid = crate::os_thread::os_tid();
        assert!(is_runnable(os_tid).is_none_or(|runs| runs), "a thread that reads its state runs");
        assert_eq!(is_runnable(i32::MAX), None);
    }

    /// On a busy machine the thread is switched between the readings, too: then both are later ones.
    #[test]
    fn own_sums_are_those_of_the_file() {
        let os_tid = crate::os_thread::os_tid();
        let (mut own, mut reads) = (OwnSums::default(), 0);
        for round in 0..200 {
            if round % 10 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            let before = ThreadSums::read(os_tid);
            let kept = own.last;
            let now = own.read(os_tid);
            let after = ThreadSums::read(os_tid);
            let (Some(before), Some(now), Some(after)) = (before, now, after) else { return };
            assert!((before.delay..=after.delay).contains(&now.delay), "{before:?} {now:?} {after:?}");
            assert!((before.on_cpu..=after.on_cpu).contains(&now.on_cpu), "{before:?} {now:?} {after:?}");
            reads += usize::from(kept.map(|kept| kept.0) != own.last.map(|last| last.0));
        }
        // The sleeps are switches.
        assert!(reads >= 20, "{reads}");
    }

    #[test]
    fn the_calling_thread_has_been_on_a_cpu() {
        let os_tid = crate::os_thread::os_tid();
        let Some(first) = ThreadSums::read(os_tid) else { return };
        assert!(first.on_cpu > 0);
        let second = ThreadSums::read(os_tid).unwrap();
        assert!(second.on_cpu > first.on_cpu && second.delay >= first.delay);
        assert_eq!(ThreadSums::read(i32::MAX), None);
    }
}
