//! Threads that a recorder starts for itself are not the program's: the interceptor of the program's
//! `pthread_create` skips them, and the program's signals are not delivered to them.
//!
//! They leave the program's limits to the program. If few threads are allowed, the recorder starts none of its own: programs
//! come close to such limits, and other processes count too ([`may_start`]). Close to larger limits, its threads end after the
//! program failed to start a thread, if that call is intercepted ([`give_way`]).
//!
//! They do not keep a process alive. After `main` left by `pthread_exit`, a process ends with its last thread: they check whether
//! other threads are left, and otherwise end the process as the C library would.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::fork_gate;
use crate::nap::nap;

std::thread_local! {
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// The process that started threads of the recorder's own.
static STARTED_IN: AtomicU32 = AtomicU32::new(0);
/// The process that ended its own threads in favour of the program's, or had no room for them.
static GAVE_WAY_IN: AtomicU32 = AtomicU32::new(0);
/// Functions of type [`End`], or 0.
static ENDS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Requests the end of a thread of the recorder's own, if it is alive; returns it.
pub type End = fn() -> Option<Started>;

/// No thread is started below these limits of a user's tasks, or of a control group's remaining tasks: programs come close to them.
const FEW_TASKS: u64 = 1024;
const LITTLE_ROOM: u64 = 256;

/// Whether the limits leave room for a thread of the recorder beside the program's.
pub fn may_start() -> bool {
    let pid = std::process::id();
    if GAVE_WAY_IN.load(Relaxed) == pid {
        return false;
    }
    let may = has_room();
    if !may {
        // One check is enough: threads check as they attach.
        GAVE_WAY_IN.store(pid, Relaxed);
    }
    may
}

fn has_room() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NPROC, &mut limit) } == 0;
    // SAFETY: no preconditions.
    let is_limited = is_known && limit.rlim_cur < FEW_TASKS && unsafe { libc::getuid() } != 0;
    !is_limited && crate::cpus::room_for_tasks().is_none_or(|room| room >= LITTLE_ROOM)
}

/// Registers the function that ends threads started from now on.
pub fn ends_by(end: End) {
    let end = end as usize;
    if ENDS.iter().any(|place| place.load(Acquire) == end) {
        return;
    }
    for place in &ENDS {
        if place.compare_exchange(0, end, AcqRel, Relaxed).is_ok() {
            return;
        }
    }
}

/// The program cannot have a thread or process (`EAGAIN`): ends the recorder's own threads for good. Returns whether one has ended,
/// so that another attempt is worth it. Not for signal handlers.
#[cold]
pub fn give_way() -> bool {
    let pid = std::process::id();
    if STARTED_IN.load(Acquire) != pid || GAVE_WAY_IN.swap(pid, AcqRel) == pid {
        return false;
    }
    let own: Vec<i32> = OWN
        .iter()
        .map(|place| place.load(Acquire))
        .filter(|entry| (entry >> 32) as u32 == pid)
        .map(|entry| entry as u32 as i32)
        .collect();
    let mut has_ended = false;
    for end in ENDS.iter().map(|place| place.load(Acquire)).filter(|end| *end != 0) {
        // SAFETY: `ends_by` stores functions of this type alone.
        let end = unsafe { std::mem::transmute::<usize, End>(end) };
        if let Some(thread) = end() {
            wait_for_end(thread, MAX_WAIT);
            has_ended = true;
        }
    }
    // The kernel may count a joined thread a little longer.
    let is_counted = |tid: &i32| {
        // SAFETY: no signal is sent.
        unsafe { libc::syscall(libc::SYS_tgkill, pid.cast_signed(), *tid, 0) == 0 }
    };
    for _ in 0..100 {
        if !has_ended || !own.iter().any(is_counted) {
            break;
        }
        nap();
    }
    has_ended
}

/// Longest time that the program waits for a thread that gives way.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Calls `attempt` until it succeeds, while threads of the recorder's own may be why it fails: `fails` is whether its result means
/// that the limit is reached.
pub fn try_again<T>(mut attempt: impl FnMut() -> T, fails: impl Fn(&T) -> bool) -> T {
    let mut result = attempt();
    if fails(&result) && give_way() {
        for _ in 0..20 {
            // The kernel takes a thread that has ended out of its counts a little later.
            nap();
            result = attempt();
            if !fails(&result) {
                break;
            }
        }
    }
    result
}

/// A started thread of the recorder's own; detached when dropped.
pub struct Started(libc::pthread_t);

impl Started {
    /// Waits until it has ended.
    pub fn join(self) {
        let thread = ManuallyDrop::new(self).0;
        // SAFETY: the thread is joinable, and only this code joins or detaches it.
        unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: the thread is joinable, and only this code joins or detaches it.
        unsafe { libc::pthread_detach(self.0) };
    }
}

/// Stack of threads that call the code of others, such as drivers, in bytes.
pub const LARGE_STACK: usize = 2 << 20;

/// Start arguments of a thread.
struct Start<F> {
    name: &'static CStr,
    leaks: LeakCheck,
    body: F,
}

/// Starts a thread of the recorder's own with `stack` bytes of stack, or more if the system requires it; `None` if the system
/// has no room for one.
///
/// Not by `std::thread`: its start allocates in the new thread before any code of ours. In a forked child, which has no such thread,
/// nothing points to that memory, and LeakSanitizer would report it.
pub fn start<F: FnOnce() + Send + 'static>(name: &'static CStr, stack: usize, body: F) -> Option<Started> {
    STARTED_IN.store(std::process::id(), Release);
    let before = STARTING.replace(true);
    let blocked = BlockedSignals::new();
    let leaks = LeakCheck::find();
    let unchecked = leaks.pause();
    let argument = Box::into_raw(Box::new(Start { name, leaks, body }));
    fork_gate::starts();
    let started = create(stack, run::<F>, argument.cast());
    if started.is_none() {
        fork_gate::failed();
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(argument) });
    }
    drop(unchecked);
    drop(blocked);
    STARTING.set(before);
    started
}

extern "C" fn run<F: FnOnce()>(argument: *mut c_void) -> *mut c_void {
    fork_gate::began();
    // SAFETY: made for this thread by `start`.
    let Start { name, leaks, body } = *unsafe { Box::from_raw(argument.cast::<Start<F>>()) };
    let _unchecked = leaks.pause();
    // Not by the C library's function, which is intercepted. SAFETY: a C string, which is only read.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
    // A panic has printed its message, and ends this thread alone.
    let _ = catch_unwind(AssertUnwindSafe(body));
    fork_gate::ends();
    std::ptr::null_mut()
}

fn create(
    stack: usize,
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> Option<Started> {
    let (mut attributes, mut thread) = (MaybeUninit::<libc::pthread_attr_t>::uninit(), MaybeUninit::uninit());
    // SAFETY: the attributes are made here, and only used while they exist; `argument` is the one of `run`.
    unsafe {
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
        let stack = stack.max(min_stack(attributes.as_ptr())).next_multiple_of(page);
        let mut failed = libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        if failed == 0 {
            failed = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, argument);
        }
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (failed == 0).then(|| Started(thread.assume_init()))
    }
}

/// Smallest stack of a thread, in bytes. With glibc it holds the program's thread-local variables, which may be large.
fn min_stack(attributes: *const libc::pthread_attr_t) -> usize {
    type Function = unsafe extern "C" fn(*const libc::pthread_attr_t) -> usize;
    match find(c"__pthread_get_minstack") {
        // SAFETY: glibc's function of this name has this type.
        Some(found) => unsafe { std::mem::transmute::<*mut c_void, Function>(found)(attributes) },
        None => libc::PTHREAD_STACK_MIN,
    }
}

/// The loaded symbol of this name. A failed search leaves no message to the program.
fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a C string up among the loaded symbols.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        // SAFETY: no preconditions.
        unsafe { libc::dlerror() };
        return None;
    }
    Some(found)
}

/// LeakSanitizer's check for leaks, if the program has one, alone or in AddressSanitizer.
#[derive(Clone, Copy)]
struct LeakCheck(Option<[extern "C" fn(); 2]>);

impl LeakCheck {
    fn find() -> LeakCheck {
        let functions = find(c"__lsan_disable").zip(find(c"__lsan_enable"));
        // SAFETY: the sanitizers' functions of these two names take and return nothing.
        let typed = |found| unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(found) };
        LeakCheck(functions.map(|(disable, enable)| [typed(disable), typed(enable)]))
    }

    /// While the result is alive, what this thread allocates is no leak: it is the program's memory to the check, and only
    /// the recorder's memory, which is not searched, or a thread that a forked child does not have may point to it.
    fn pause(self) -> Unchecked {
        Unchecked(self.0.map(|[disable, enable]| {
            disable();
            enable
        }))
    }
}

struct Unchecked(Option<extern "C" fn()>);

impl Drop for Unchecked {
    fn drop(&mut self) {
        if let Some(enable) = self.0 {
            enable();
        }
    }
}

/// Waits until a thread of the recorder's own has ended, for at most `limit`: if the program's threads leave
/// it no CPU, it may never end.
///
/// The last thread of a process frees its memory, and one without other work does so slowly: 3 ms more for 50
/// MiB.
pub fn wait_for_end(thread: Started, limit: Duration) {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + limit;
    let until = libc::timespec {
        tv_sec: until.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(until.subsec_nanos()),
    };
    let thread = ManuallyDrop::new(thread).0;
    // SAFETY: the thread is joinable, and only this code joins or detaches it.
    unsafe {
        if libc::pthread_timedjoin_np(thread, std::ptr::null_mut(), &until) != 0 {
            libc::pthread_detach(thread);
        }
    }
}

/// Whether the initial thread is at its end. Other threads may continue.
static INITIAL_LEAVES: AtomicBool = AtomicBool::new(false);

/// Threads of the recorders' own: process and thread, as a forked child has none of its parent's.
static OWN: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Interval between checks for the program's last thread.
const LOOK: Duration = Duration::from_millis(20);

fn entry(tid: i32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(tid.cast_unsigned())
}

/// Notes the end of a thread of the program. Returns whether it is the initial one: then the recorders' own threads must be woken.
pub(crate) fn leaves(os_tid: i32) -> bool {
    let is_initial = os_tid.cast_unsigned() == std::process::id();
    INITIAL_LEAVES.fetch_or(is_initial, Release);
    is_initial
}

/// Whether the initial thread is at its end, after which own threads check more often.
pub fn initial_leaves() -> bool {
    INITIAL_LEAVES.load(Acquire)
}

/// The calling thread is a recorder's own while this lives.
pub struct OwnThread(Option<&'static AtomicU64>);

impl OwnThread {
    /// Marks the calling thread.
    pub fn begin() -> OwnThread {
        let own = entry(crate::os_thread::os_tid());
        let takes = |place: &&AtomicU64| {
            let is_free = |other: u64| (other >> 32 != u64::from(std::process::id())).then_some(own);
            place.fetch_update(AcqRel, Relaxed, is_free).is_ok()
        };
        OwnThread(OWN.iter().find(takes))
    }

    /// Returns the time to sleep: `wanted`, or less once the initial thread has left.
    pub fn sleep(&self, wanted: Duration) -> Duration {
        if initial_leaves() { wanted.min(LOOK) } else { wanted }
    }

    /// Ends the process if only recorders' threads are left. The caller holds no lock: exit handlers run
    /// here.
    pub fn end_process_if_alone(&self) {
        if initial_leaves() && self.0.is_some() && only_own_are_left() == Some(true) {
            // SAFETY: as the program's last thread would.
            unsafe { libc::exit(0) };
        }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        self.0.into_iter().for_each(|place| place.store(0, Release));
    }
}

/// Whether only recorders' threads are left; `None` if the system does not report it.
fn only_own_are_left() -> Option<bool> {
    let own = std::process::id().cast_signed();
    let stat = std::fs::read_to_string(format!("/proc/self/task/{own}/stat")).ok()?;
    // The state follows the name, which is in parentheses and may have some.
    if !stat.rsplit_once(')')?.1.trim_start().starts_with('Z') {
        return Some(false);
    }
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let tid: i32 = task.ok()?.file_name().to_str()?.parse().ok()?;
        if tid != own && !OWN.iter().any(|place| place.load(Acquire) == entry(tid)) {
            return Some(false);
        }
    }
    Some(true)
}

/// Blocks all signals of the calling thread until it is dropped; a thread started meanwhile keeps them blocked.
struct BlockedSignals(u64);

impl BlockedSignals {
    fn new() -> Self {
        BlockedSignals(exchange_mask(u64::MAX))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        exchange_mask(self.0);
    }
}

/// Sets the signal mask by a direct system call, and returns the previous one: the sampler intercepts the C library's function and
/// keeps its own signal unblocked.
fn exchange_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: the kernel has sets of 64 signals.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut before, 8usize);
    }
    before
}

/// Whether the calling thread is in [`start`].
pub fn are_being_started() -> bool {
    STARTING.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_thread_that_ends_is_waited_for_and_one_that_does_not_is_left() {
        static HAS_ENDED: AtomicBool = AtomicBool::new(false);
        let ends = start(c"ends", 0, || {
            thread::sleep(Duration::from_millis(20));
            HAS_ENDED.store(true, Release);
        });
        wait_for_end(ends.unwrap(), Duration::from_secs(60));
        assert!(HAS_ENDED.load(Acquire));

        let (end, ends) = mpsc::channel::<()>();
        let (ended, has_ended) = mpsc::channel();
        let stays = start(c"stays", 0, move || {
            let _ = ends.recv();
            ended.send(()).unwrap();
        });
        // Returns although the thread ends only after this.
        wait_for_end(stays.unwrap(), Duration::from_millis(5));
        assert_eq!(has_ended.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(end);
        has_ended.recv().unwrap();
    }

    #[test]
    fn started_threads_have_their_name_and_block_signals_and_may_panic() {
        let (report, reported) = mpsc::channel();
        let started = start(c"taskscope-test", LARGE_STACK, move || {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            let mask = exchange_mask(u64::MAX);
            report.send((name, mask)).unwrap();
            std::panic::resume_unwind(Box::new("ends this thread alone"));
        });
        let (name, mask) = reported.recv().unwrap();
        started.unwrap().join();
        // The kernel blocks neither of two signals, and the C library none of its own two.
        let never =
            [libc::SIGKILL, libc::SIGSTOP, 32, 33].iter().fold(0, |set, signal| set | 1 << (signal - 1));
        assert_eq!((&*name, mask | never), ("taskscope-test\n", u64::MAX));
        assert!(!are_being_started());
    }
}
