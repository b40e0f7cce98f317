//! One thread's recorder: its two streams, its clock, and the door that guards them.
//!
//! ```text
//!   thread                          finisher (another thread, at the end of the process)
//!   busy = 1                        state = CLOSED
//!   ── compiler fence ──            ── membarrier: a full fence on every thread ──
//!   state == RECORDING ?            wait until busy == 0, a bounded time
//!   … events …                      write the closing events, cut the files
//!   busy = 0
//! ```
//! Either the thread sees CLOSED, or the finisher sees it busy. The same flag keeps a signal handler
//! from writing into the event that it interrupts. The memory is wiped in a forked child, where the
//! state then is neither.

use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, compiler_fence};
use std::path::PathBuf;
use std::sync::OnceLock;

use taskscope_event::Code;
use taskscope_event::models::recorder;

use crate::clock::ThreadClock;
use crate::process;
use crate::stream::{Half, Stream};
use crate::tailed_file::page_bytes;
use crate::tls;

const RECORDING: u32 = 1;
const CLOSED: u32 = 2;

/// Writes the events that end what is open, when a thread's stream is closed: by the thread itself,
/// or by the finisher of the process. The number is the time to use.
pub type Closer = Box<dyn FnOnce(&mut ThreadRecorder, u64) + Send>;

/// A thread's recorder. Reached through [`enter`], or by a [`Closer`].
#[repr(C, align(64))]
pub struct ThreadRecorder {
    state: AtomicU32,
    busy: AtomicU32,
    /// For the caller's own per-thread data.
    user: *mut (),
    clock: ThreadClock,
    standard: Stream,
    own: Stream,
    /// File offset in the own stream of the count of lost events.
    loss_count_offset: Option<u64>,
    reentered: AtomicU64,
    os_tid: i32,
    directory: PathBuf,
    closer: Option<Closer>,
}

/// The calling thread's recorder while it is held open for events. Keep it for one callback only.
pub struct Recording(&'static mut ThreadRecorder);

/// Opens the calling thread's recorder. `None` when the thread is not attached, in a forked child,
/// after the end, and in a signal handler that interrupted another [`Recording`].
#[inline(always)]
pub fn enter() -> Option<Recording> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    if recorder.is_null() {
        return None;
    }
    // SAFETY: the pointer was set by `attach` and is cleared before the memory goes; the finisher
    // never unmaps. Only atomics are touched until the door is ours.
    let (busy, state) = unsafe { (&(*recorder).busy, &(*recorder).state) };
    if busy.load(Relaxed) != 0 {
        // SAFETY: as above.
        unsafe { (*recorder).reentered.fetch_add(1, Relaxed) };
        return None;
    }
    busy.store(1, Relaxed);
    compiler_fence(SeqCst);
    if state.load(Relaxed) != RECORDING {
        busy.store(0, Relaxed);
        return None;
    }
    // SAFETY: `busy` keeps everybody else out until the drop.
    Some(Recording(unsafe { &mut *recorder }))
}

impl Deref for Recording {
    type Target = ThreadRecorder;
    #[inline(always)]
    fn deref(&self) -> &ThreadRecorder {
        self.0
    }
}

impl DerefMut for Recording {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut ThreadRecorder {
        self.0
    }
}

impl Drop for Recording {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Release);
        self.0.busy.store(0, Release);
    }
}

impl ThreadRecorder {
    /// Nanoseconds of `CLOCK_MONOTONIC`. Read it once per callback.
    #[inline(always)]
    pub fn now(&mut self) -> u64 {
        self.clock.now()
    }

    /// What [`attach`] was given.
    #[inline(always)]
    pub fn user(&self) -> *mut () {
        self.user
    }

    /// A standard event that neither opens nor closes anything. Returns whether it was kept.
    #[inline(always)]
    pub fn point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        let kept = self.standard.point(at, code, payload);
        if !kept {
            self.tell_loss(at);
        }
        kept
    }

    /// A standard event that opens something which the same stream closes by [`ThreadRecorder::end`];
    /// `end_payload_bytes` is the payload size of that end, whose room is reserved here.
    #[inline(always)]
    pub fn begin<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N], end_payload_bytes: usize) {
        let end_bytes = taskscope_event::framing::EVENT_HEADER_BYTES + end_payload_bytes;
        if !self.standard.begin(at, code, payload, end_bytes) {
            self.tell_loss(at);
        }
    }

    /// The end of what was opened last in the standard stream.
    #[inline(always)]
    pub fn end<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.standard.end(at, code, payload) {
            self.tell_loss(at);
        }
    }

    /// A standard event with data of any length, stored as `parts` one after another. Returns whether
    /// it was kept.
    pub fn jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) -> bool {
        let kept = self.standard.jumbo(at, code, parts);
        if !kept {
            self.tell_loss(at);
        }
        kept
    }

    /// [`ThreadRecorder::point`] in the own stream.
    #[inline(always)]
    pub fn own_point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.point(at, code, payload) {
            self.tell_loss(at);
        }
    }

    /// [`ThreadRecorder::begin`] in the own stream.
    #[inline(always)]
    pub fn own_begin<const N: usize>(
        &mut self,
        at: u64,
        code: Code,
        payload: [u8; N],
        end_payload_bytes: usize,
    ) {
        let end_bytes = taskscope_event::framing::EVENT_HEADER_BYTES + end_payload_bytes;
        if !self.own.begin(at, code, payload, end_bytes) {
            self.tell_loss(at);
        }
    }

    /// [`ThreadRecorder::end`] in the own stream.
    #[inline(always)]
    pub fn own_end<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.end(at, code, payload) {
            self.tell_loss(at);
        }
    }

    /// [`ThreadRecorder::jumbo`] in the own stream.
    pub fn own_jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) {
        if !self.own.jumbo(at, code, parts) {
            self.tell_loss(at);
        }
    }

    /// Events that could not be kept so far.
    pub fn lost_events(&self) -> u64 {
        self.standard.lost_events + self.own.lost_events + self.reentered.load(Relaxed)
    }

    /// The operating system's thread id.
    pub fn os_tid(&self) -> i32 {
        self.os_tid
    }

    /// Keeps the count of losses in the stream itself, so that it survives whatever comes.
    #[cold]
    #[inline(never)]
    fn tell_loss(&mut self, at: u64) {
        let lost = self.lost_events();
        match self.loss_count_offset {
            // A system call each; after many losses only now and then, and once more at the end.
            Some(offset) if lost < 1000 || lost.is_multiple_of(1024) => self.own.replace_u64(offset, lost),
            Some(_) => {}
            None => {
                let reason = match self.standard.full().or(self.own.full()) {
                    Some(_) => recorder::loss::NO_SPACE,
                    None => recorder::loss::REENTERED,
                };
                self.loss_count_offset = self.own.put_loss_record(at, lost, reason);
            }
        }
    }

    /// Writes the closing events, cuts the files, completes the metadata.
    fn close(&mut self, process: &process::Process) {
        let at = self.clock.now();
        if let Some(closer) = self.closer.take() {
            closer(self, at);
        }
        let lost = self.lost_events();
        if lost > 0 {
            match self.loss_count_offset {
                Some(offset) => self.own.replace_u64(offset, lost),
                None => self.tell_loss(at),
            }
        }
        let own_is_empty = self.own.is_empty();
        let tails = (self.standard.finish(), self.own.finish());
        if own_is_empty {
            let _ = std::fs::remove_file(self.directory.join(Half::Own.file_name()));
        }
        // The tails go last: until the metadata is complete they belong to the stream.
        if let (Some(standard), Some(own)) = tails
            && process.write_metadata(&self.directory, self.os_tid, Some(lost))
        {
            let _ = std::fs::remove_file(standard);
            let _ = std::fs::remove_file(own);
        }
    }
}

/// Starts recording on the calling thread. Does nothing if it is attached already. `user` is kept
/// for the caller; `closer` writes the closing events.
///
/// Returns whether the thread records from now on. When the files cannot be made, the thread is
/// counted as unrecorded and the program runs on.
pub fn attach(user: *mut (), closer: Closer) -> bool {
    let current = tls::get().cast::<ThreadRecorder>();
    // SAFETY: set by an earlier attach; a wiped or closed one is not RECORDING.
    if !current.is_null() && unsafe { (*current).state.load(Relaxed) } == RECORDING {
        return true;
    }
    let Some(process) = process::current() else { return false };
    // SAFETY: no preconditions.
    let os_tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    let made = process.make_thread_directory(os_tid).and_then(|directory| {
        let standard = Stream::create(&directory, Half::Standard).ok()?;
        let mut own = Stream::create(&directory, Half::Own).ok()?;
        own.set_room_for_loss_record_aside();
        Some((directory, standard, own))
    });
    let Some((directory, standard, own)) = made else {
        process.count_unrecorded_thread();
        return false;
    };
    let Some(memory) = wiped_on_fork(size_of::<ThreadRecorder>()) else {
        process.count_unrecorded_thread();
        return false;
    };
    process.write_metadata(&directory, os_tid, None);
    let recorder = memory.cast::<ThreadRecorder>();
    // SAFETY: fresh memory of sufficient size, page-aligned.
    unsafe {
        recorder.write(ThreadRecorder {
            state: AtomicU32::new(RECORDING),
            busy: AtomicU32::new(0),
            user,
            clock: ThreadClock::default(),
            standard,
            own,
            loss_count_offset: None,
            reentered: AtomicU64::new(0),
            os_tid,
            directory,
            closer: Some(closer),
        });
    }
    process.register(recorder);
    tls::set(recorder.cast());
    detach_at_thread_end();
    true
}

/// Has [`detach`] called when this thread ends without having called it.
fn detach_at_thread_end() {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    extern "C" fn at_end(_: *mut libc::c_void) {
        detach();
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing, and the function lives as long as the library, which
        // is never unloaded while a runtime holds it.
        (unsafe { libc::pthread_key_create(&mut key, Some(at_end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key was created; any value but null asks for the call.
        unsafe { libc::pthread_setspecific(*key, ptr::dangling()) };
    }
}

/// Ends recording on the calling thread: closing events, cut files, complete metadata.
pub fn detach() {
    let recorder = tls::get().cast::<ThreadRecorder>();
    tls::set(ptr::null_mut());
    if recorder.is_null() {
        return;
    }
    let Some(process) = process::current() else { return };
    // The finisher of the process may have taken it; then it is not ours any more. In a forked
    // child the process is a new one, which does not know the recorder.
    if process.unregister(recorder) {
        // SAFETY: unregistered, so that this thread alone has it; made by `attach`.
        unsafe {
            (*recorder).close(process);
            ptr::drop_in_place(recorder);
            libc::munmap(recorder.cast(), size_of::<ThreadRecorder>().next_multiple_of(page_bytes()));
        }
    }
}

/// Closes another thread's recorder, at the end of the process. Returns whether the thread was out
/// of its event path in time; if not, its stream stays unfinished, and readable as such.
///
/// # Safety
/// `recorder` was registered by `attach`, and was unregistered by the caller.
pub(crate) unsafe fn close_from_outside(recorder: *mut ThreadRecorder, process: &process::Process) -> bool {
    // SAFETY: by contract; the memory is never unmapped after this, the thread may still look at it.
    unsafe {
        (*recorder).state.store(CLOSED, Relaxed);
        if !fence_on_every_thread() {
            return false;
        }
        for _ in 0..2000 {
            if (*recorder).busy.load(Acquire) == 0 {
                (*recorder).close(process);
                return true;
            }
            libc::usleep(50);
        }
    }
    false
}

/// Asks for [`fence_on_every_thread`]; once per process.
pub(crate) fn prepare_fence() {
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) };
}

fn fence_on_every_thread() -> bool {
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0 }
}

/// Zeroed pages that a forked child finds zeroed again.
fn wiped_on_fork(bytes: usize) -> Option<*mut u8> {
    let bytes = bytes.next_multiple_of(page_bytes());
    // SAFETY: a new private anonymous mapping.
    unsafe {
        let base = libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if base == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(base, bytes, libc::MADV_WIPEONFORK) != 0 {
            // Before Linux 4.14 a child could not be told apart: rather record nothing.
            libc::munmap(base, bytes);
            return None;
        }
        Some(base.cast())
    }
}
