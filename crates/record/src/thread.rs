//! One thread's recorder: its two streams, its clock, and the door that guards them.

use core::cell::Cell;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, compiler_fence};
use std::sync::{Arc, Mutex, OnceLock};

use taskscope_event::Code;
use taskscope_event::models::recorder;

use crate::clock::ThreadClock;
use crate::disk_file::NoRoom;
use crate::door::{Door, Entry};
use crate::fork_word::wiped_on_fork;
use crate::gate;
use crate::late;
use crate::metadata::{self, Describe, ThreadIdentity};
use crate::process;
use crate::samples::Samples;
use crate::side;
use crate::stream::{Half, Nesting, Stream};
use crate::sync::heavy_fence;
use crate::tls;
use crate::turns;

/// Writes the events that end what is open, when a thread's stream is closed: by the thread itself,
/// or by the finisher of the process. The number is the time to use.
pub type Closer = Box<dyn FnOnce(&mut ThreadRecorder, u64) + Send>;

/// A thread's recorder. Reached through [`enter`], or by a [`Closer`]. `taskscope.h` knows where the
/// first fields lie ([`crate::layout`]).
#[repr(C, align(64))]
pub struct ThreadRecorder {
    pub(crate) door: Door,
    /// Something waits in the side recorder, to be copied when the door is left. In the side recorder
    /// itself it is always set.
    pub(crate) pending: AtomicU32,
    /// What [`crate::gate`] demands of those who ask it.
    pub(crate) gate: AtomicU32,
    /// The thread pointer of the thread that it belongs to.
    pub(crate) owner: usize,
    /// For the caller's own per-thread data.
    user: *mut (),
    pub(crate) clock: ThreadClock,
    pub(crate) standard: Stream,
    pub(crate) own: Stream,
    /// For a signal handler that interrupts this recorder; null in a side recorder.
    pub(crate) side: *mut ThreadRecorder,
    /// In a side recorder: whose it is.
    pub(crate) main: *mut ThreadRecorder,
    /// File offset in the own stream of the count of lost events.
    loss_count_offset: Option<u64>,
    pub(crate) reentered: AtomicU64,
    identity: ThreadIdentity,
    closer: Option<Closer>,
    pub(crate) samples: Samples,
    /// The streams, while events go nowhere, and where they go then.
    diverted: Option<(Stream, Stream)>,
    sink: Option<Box<[u8; SINK_BYTES]>>,
}

/// Room for the events of one callback, per stream half of it.
const SINK_BYTES: usize = 8192;

/// The calling thread's recorder while it is held open for events. Keep it for one callback only.
pub struct Recording(*mut ThreadRecorder);

/// Opens the calling thread's recorder. `None` when the thread is not attached, in a forked child,
/// and after the end. In a signal handler that interrupted another [`Recording`] it gives a recorder
/// of its own, whose events (as many as 2 KiB hold) follow the interrupted one's.
#[inline(always)]
pub fn enter() -> Option<Recording> {
    enter_at(tls::get().cast::<ThreadRecorder>())
}

/// [`enter`] for a caller who has the thread's pointer already.
#[inline(always)]
fn enter_at(recorder: *mut ThreadRecorder) -> Option<Recording> {
    if recorder.is_null() {
        return None;
    }
    // SAFETY: the pointer was set by `attach`, and the memory is never unmapped. Only atomics are
    // touched until the door is ours.
    match unsafe { &(*recorder).door }.enter() {
        Entry::Open => Some(Recording(recorder)),
        // SAFETY: as above.
        Entry::Busy => unsafe { side::enter(recorder) }.map(Recording),
        Entry::Closed => None,
    }
}

/// [`enter`] for those who respect the switch and the filter: `None` too where `code` is not wanted.
#[inline(always)]
pub fn enter_for(code: Code) -> Option<Recording> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    if recorder.is_null() {
        return None;
    }
    // SAFETY: as in `enter`.
    let gate = unsafe { (*recorder).gate.load(Relaxed) };
    if gate != gate::ALL && (gate == gate::OFF || !gate::lets_pass(code)) {
        return None;
    }
    enter_at(recorder)
}

/// [`enter`] for those who want nothing out of the ordinary: `None` also where the switch, the filter or
/// sinks have something to say.
#[inline(always)]
pub(crate) fn enter_plain() -> Option<Recording> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    if recorder.is_null() || unsafe { (*recorder).gate.load(Relaxed) } != gate::ALL {
        return None;
    }
    enter_at(recorder)
}

/// [`enter_for`] and [`ThreadRecorder::raw`] where nothing is out of the ordinary; elsewhere `false`: nothing has happened, and
/// those two know what to do. Here no call is followed by anything, so that none has registers saved on the event path.
///
/// # Safety
/// As many bytes as `flags` tell are readable at `payload`.
#[inline(always)]
pub unsafe fn store_plain(at: u64, flags: u8, code: Code, payload: *const u8, nesting: Nesting) -> bool {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`; the stream is ours while the door is. The payload by contract.
    unsafe {
        if recorder.is_null()
            || (*recorder).gate.load(Relaxed) != gate::ALL
            || (*recorder).door.enter() != Entry::Open
        {
            return false;
        }
        let stored = (*recorder).standard.raw_if_room(at, flags, code, payload, nesting);
        (*recorder).door.leave();
        compiler_fence(SeqCst);
        if stored && (*recorder).pending.load(Relaxed) != 0 {
            side::settle(recorder);
        }
        // What is not stored here is tried again, and what is pending settled then.
        stored
    }
}

/// The calling thread's [`ThreadRecorder::now`], where nothing is out of the ordinary. As [`store_plain`].
#[inline(always)]
pub fn now_plain() -> Option<u64> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`; the clock is ours while the door is.
    unsafe {
        if recorder.is_null() || (*recorder).door.enter() != Entry::Open {
            return None;
        }
        let now = (*recorder).clock.now_of_anchor();
        (*recorder).door.leave();
        compiler_fence(SeqCst);
        match now {
            Some(now) if (*recorder).pending.load(Relaxed) != 0 => Some(settle_then(recorder, now)),
            now => now,
        }
    }
}

/// # Safety
/// As for [`side::settle`].
#[cold]
#[inline(never)]
unsafe fn settle_then(recorder: *mut ThreadRecorder, now: u64) -> u64 {
    // SAFETY: by contract.
    unsafe { side::settle(recorder) };
    now
}

impl Deref for Recording {
    type Target = ThreadRecorder;
    #[inline(always)]
    fn deref(&self) -> &ThreadRecorder {
        // SAFETY: the door is ours, so that nobody else touches it; the memory stays.
        unsafe { &*self.0 }
    }
}

impl DerefMut for Recording {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut ThreadRecorder {
        // SAFETY: as above.
        unsafe { &mut *self.0 }
    }
}

impl Drop for Recording {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the memory stays; after leaving only atomics are touched.
        unsafe {
            (*self.0).door.leave();
            compiler_fence(SeqCst);
            if (*self.0).pending.load(Relaxed) != 0 {
                side::settle(self.0);
            }
        }
    }
}

impl ThreadRecorder {
    /// Nanoseconds of `CLOCK_MONOTONIC`. Read it once per callback.
    #[inline(always)]
    pub fn now(&mut self) -> u64 {
        self.clock.now()
    }

    /// The time that was read last, for what needs none of its own.
    #[inline(always)]
    pub fn last_time(&self) -> u64 {
        self.clock.last_ns()
    }

    /// Readings of the clock are not below `least` from now on.
    pub(crate) fn raise_clock(&mut self, least: u64) {
        self.clock.raise(least);
    }

    /// From here on events go nowhere, as if they were kept, until [`undivert`](Self::undivert).
    #[cold]
    pub fn divert(&mut self) {
        let sink = self.sink.get_or_insert_with(|| Box::new([0; SINK_BYTES]));
        let half = SINK_BYTES / 2;
        let area = sink.as_mut_ptr();
        let streams = (Stream::in_memory(area, half), Stream::in_memory(area.wrapping_add(half), half));
        self.diverted.get_or_insert((
            core::mem::replace(&mut self.standard, streams.0),
            core::mem::replace(&mut self.own, streams.1),
        ));
    }

    /// Ends what [`divert`](Self::divert) began.
    #[cold]
    pub fn undivert(&mut self) {
        if let Some((standard, own)) = self.diverted.take() {
            (self.standard, self.own) = (standard, own);
        }
    }

    /// Whether an event is being written, which a signal handler on this thread has interrupted.
    pub(crate) fn is_busy(&self) -> bool {
        !self.door.is_free()
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

    /// A standard event with the flags that the caller has made, which say the size of the payload. The order
    /// of such events is kept, whatever their clocks.
    ///
    /// # Safety
    /// As many bytes as `flags` tell are readable at `payload`.
    #[inline(always)]
    pub unsafe fn raw(&mut self, at: u64, flags: u8, code: Code, payload: *const u8, nesting: Nesting) {
        // SAFETY: by contract.
        if !unsafe { self.standard.raw(at, flags, code, payload, nesting) } {
            self.tell_loss(0);
        }
    }

    /// Appends what lies in the tail of the standard stream to its file.
    pub fn flush(&mut self) {
        self.standard.flush();
    }

    /// [`ThreadRecorder::point`] in the own stream.
    #[inline(always)]
    pub fn own_point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.point(at, code, payload) {
            self.tell_loss(at);
        }
    }

    #[cfg(feature = "instrument")]
    /// An event of the instrument model, whose counterpart may come on another thread.
    #[inline(always)]
    pub(crate) fn own_unpaired<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.unpaired(at, code, payload) {
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

    /// Counts `events` that the caller left out because of an earlier loss.
    #[cold]
    pub fn lose(&mut self, at: u64, events: u64) {
        self.standard.lost_events += events;
        self.tell_loss(at);
    }

    /// Events that could not be kept so far.
    pub fn lost_events(&self) -> u64 {
        self.standard.lost_events
            + self.own.lost_events
            + self.reentered.load(Relaxed)
            + self.samples.lost_events()
    }

    /// The operating system's thread id.
    pub fn os_tid(&self) -> i32 {
        self.identity.os_tid
    }

    /// Keeps the count of losses on disk, so that it survives whatever comes: in the own stream where
    /// there is one, else in the metadata.
    #[cold]
    #[inline(never)]
    fn tell_loss(&mut self, at: u64) {
        if self.diverted.is_some() {
            return;
        }
        let lost = self.lost_events();
        // System calls each; after some losses only now and then, and once more at the end.
        if lost > 1000 && !lost.is_multiple_of(1024) || !self.main.is_null() {
            return;
        }
        if !self.own.has_file() {
            if lost.is_power_of_two() || lost.is_multiple_of(65536) {
                metadata::store_loss(&self.identity.directory, lost);
            }
            return;
        }
        match self.loss_count_offset {
            Some(offset) => self.own.replace_loss(offset, lost, self.loss_reason()),
            None => {
                self.loss_count_offset = self.own.put_loss_record(at, lost, self.loss_reason());
            }
        }
    }

    /// Lack of room wins: it lasts.
    fn loss_reason(&self) -> u32 {
        match self.standard.full().or(self.own.full()) {
            Some(NoRoom::SizeCap) => recorder::loss::SIZE_CAP,
            Some(_) => recorder::loss::NO_SPACE,
            None => recorder::loss::REENTERED,
        }
    }

    /// Writes the closing events, cuts the files, completes the metadata.
    fn close(&mut self, process: &process::Process) {
        side::drain(self);
        let at = self.clock.now();
        if let Some(closer) = self.closer.take() {
            closer(self, at);
        }
        let lost = self.lost_events();
        if lost > 0 && self.own.has_file() {
            match self.loss_count_offset {
                Some(offset) => self.own.replace_loss(offset, lost, self.loss_reason()),
                None => self.tell_loss(at),
            }
        }
        let own_is_empty = self.own.is_empty();
        let tails = (self.standard.finish(), self.own.finish(), self.samples.finish());
        if own_is_empty {
            let _ = std::fs::remove_file(self.identity.directory.join(Half::Own.file_name()));
        }
        // The tails go last: until the metadata is complete they belong to the stream.
        if let (Some(standard), Some(own), Some(samples)) = tails
            && process.write_metadata(&self.identity, Some(lost))
        {
            for tail in standard.into_iter().chain(own).chain(samples) {
                let _ = std::fs::remove_file(tail);
            }
            self.identity.move_to_final_directory();
            late::offer(self.identity.final_directory.as_ref().unwrap_or(&self.identity.directory));
        }
    }

    /// Writes the metadata as it is now.
    pub fn store_metadata(&mut self) {
        if let Some(process) = process::current() {
            process.write_metadata(&self.identity, None);
        }
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        self.owner == tls::thread_pointer()
    }
}

/// What [`attach_with`] is to do differently.
#[derive(Default)]
pub struct Options {
    /// The thread's id in the trace; the system's where there is none.
    pub tid: Option<i32>,
    /// Whether `taskscope.obs` is made only when an event comes. Losses are then counted in the
    /// metadata.
    pub own_stream_on_demand: bool,
    /// Who makes the text of `stream.json`.
    pub describe: Option<Arc<dyn Describe>>,
    /// Whether there is a `samples.obs`, which a signal handler writes through
    /// [`enter_in_handler`](crate::enter_in_handler).
    pub samples: bool,
}

/// Starts recording on the calling thread. Does nothing if it is attached already. `user` is kept
/// for the caller; `closer` writes the closing events.
///
/// Returns whether the thread records from now on. When the files cannot be made, the thread is
/// counted as unrecorded and the program runs on.
pub fn attach(user: *mut (), closer: Closer) -> bool {
    attach_with(user, closer, Options::default())
}

/// [`attach`] with [`Options`].
pub fn attach_with(user: *mut (), closer: Closer, options: Options) -> bool {
    let current = tls::get().cast::<ThreadRecorder>();
    // SAFETY: set by an earlier attach; a wiped or closed one does not record.
    if !current.is_null() && unsafe { (*current).door.is_recording() } {
        return true;
    }
    let Some(process) = process::current() else { return false };
    let this_process = std::process::id();
    if REFUSED_IN.get() == this_process {
        return false;
    }
    let turn = turns::wait();
    let Some((identity, standard, own, samples, memory)) = prepare(process, options) else {
        REFUSED_IN.set(this_process);
        process.count_unrecorded_thread();
        return false;
    };
    process.write_metadata(&identity, None);
    drop(turn);
    process.os_time.watch(identity.os_tid, identity.tid);
    let recorder = memory.cast::<ThreadRecorder>();
    // SAFETY: fresh memory of sufficient size, page-aligned.
    unsafe {
        let side = recorder.add(1);
        side.write(ThreadRecorder {
            pending: AtomicU32::new(1),
            main: recorder,
            standard: side::stream(&standard),
            own: side::stream(&own),
            ..ThreadRecorder::new(identity.clone(), ptr::null_mut())
        });
        recorder.write(ThreadRecorder {
            user,
            standard,
            own,
            side,
            closer: Some(closer),
            samples,
            ..ThreadRecorder::new(identity, ptr::null_mut())
        });
    }
    process.register(recorder);
    tls::set(recorder.cast());
    call_detach_at_thread_end();
    true
}

std::thread_local! {
    /// The process in which this thread could not be attached: it is tried, and counted, once.
    static REFUSED_IN: Cell<u32> = const { Cell::new(0) };
}

/// A thread's directory, its streams, and memory for its recorder; all of them or nothing.
fn prepare(
    process: &process::Process,
    options: Options,
) -> Option<(ThreadIdentity, Stream, Stream, Samples, *mut u8)> {
    let (own_on_demand, sampled) = (options.own_stream_on_demand, options.samples);
    let identity = process.make_thread_directory(os_tid(), options)?;
    if !process::keeps_streams() {
        let half = SINK_BYTES / 2;
        let area = Box::leak(Box::new([0u8; SINK_BYTES])).as_mut_ptr();
        let streams = (Stream::sink(area, half), Stream::sink(area.wrapping_add(half), half));
        return Some((identity, streams.0, streams.1, Samples::none(), free_memory()?));
    }
    let directory = &identity.directory;
    let streams = || {
        let standard = Stream::create(directory, Half::Standard).ok()?;
        let own = if own_on_demand {
            Stream::planned(directory, Half::Own)
        } else {
            let mut own = Stream::create(directory, Half::Own).ok()?;
            own.set_room_aside();
            own
        };
        let samples = if sampled { Samples::create(directory)? } else { Samples::none() };
        Some((standard, own, samples, free_memory()?))
    };
    let made = streams();
    if made.is_none() {
        // Files without a recorder would only look like a stream that lost everything.
        let _ = std::fs::remove_dir_all(directory);
    }
    let (standard, own, samples, memory) = made?;
    Some((identity, standard, own, samples, memory))
}

impl ThreadRecorder {
    fn new(identity: ThreadIdentity, main: *mut ThreadRecorder) -> Self {
        ThreadRecorder {
            door: Door::open(),
            pending: AtomicU32::new(0),
            gate: AtomicU32::new(gate::current()),
            owner: tls::thread_pointer(),
            user: ptr::null_mut(),
            clock: ThreadClock::default(),
            standard: Stream::in_memory(ptr::null_mut(), 0),
            own: Stream::in_memory(ptr::null_mut(), 0),
            side: ptr::null_mut(),
            main,
            loss_count_offset: None,
            reentered: AtomicU64::new(0),
            identity,
            closer: None,
            samples: Samples::none(),
            diverted: None,
            sink: None,
        }
    }
}

/// Memory of recorders whose threads have detached. It is never unmapped, since inline code in the
/// program may still hold its address; that code compares [`ThreadRecorder::owner`].
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Room for a recorder and its side recorder.
fn free_memory() -> Option<*mut u8> {
    // In a forked child another thread of the parent may hold the lock for ever: never wait.
    let free = FREE.try_lock().ok().and_then(|mut free| free.pop());
    free.map(|address| address as *mut u8).or_else(|| wiped_on_fork(2 * size_of::<ThreadRecorder>()))
}

/// Whether the calling thread was recorded before this process was forked off.
pub fn was_forked() -> bool {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    !recorder.is_null() && unsafe { (*recorder).door.is_wiped() }
}

/// Whether the calling thread records.
#[inline]
pub fn is_attached() -> bool {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    !recorder.is_null() && unsafe { (*recorder).door.is_recording() }
}

/// The calling thread's id in the system.
pub fn os_tid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// A number that stands for the calling thread's recorder, attached or forked away; 0 without one.
pub fn address() -> usize {
    tls::get() as usize
}

/// Has [`detach`] called when this thread ends without having called it.
pub(crate) fn call_detach_at_thread_end() {
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
    #[cfg(feature = "instrument")]
    crate::instrument::sinks::thread_ends();
    let recorder = tls::get().cast::<ThreadRecorder>();
    tls::set(ptr::null_mut());
    // In a forked child the recorder is the parent's.
    if recorder.is_null() || process::was_forked() {
        return;
    }
    let Some(process) = process::current() else { return };
    // The finisher of the process may have taken it; then it is not ours any more.
    if process.unregister(recorder) {
        let _turn = turns::wait();
        process.os_time.leave(os_tid());
        // SAFETY: unregistered, so that this thread alone has it; made by `attach`.
        unsafe {
            (*recorder).samples.door.hold();
            (*recorder).samples.door.close();
            (*recorder).door.hold();
            (*recorder).door.close();
            (*recorder).close(process);
            ptr::drop_in_place(&raw mut (*(*recorder).side).identity);
            ptr::drop_in_place(recorder);
        }
        if let Ok(mut free) = FREE.try_lock() {
            free.push(recorder as usize);
        }
    }
}

/// Closes another thread's recorder, at the end of the process. Returns whether the thread was out
/// of its event path in time; if not, its stream stays unfinished, and readable as such.
///
/// # Safety
/// `recorder` was registered by `attach`, and was unregistered by the caller.
pub(crate) unsafe fn close_from_outside(recorder: *mut ThreadRecorder, process: &process::Process) -> bool {
    // SAFETY: by contract; the memory is never unmapped, the thread may still look at it.
    unsafe {
        (*recorder).door.close();
        (*recorder).samples.door.close();
        // The calling thread itself may be in, when the program ends within an event.
        if !heavy_fence() || (*recorder).is_own_thread() && !(*recorder).door.is_free() {
            return false;
        }
        for _ in 0..2000 {
            if (*recorder).door.is_free() && (*recorder).samples.door.is_free() {
                (*recorder).close(process);
                return true;
            }
            libc::usleep(50);
        }
    }
    false
}
