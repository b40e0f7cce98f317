//! Creation and end of a thread's recorder.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use taskscope_event::StreamFile;

use super::{Closer, SINK_BYTES, ThreadRecorder};
use crate::clock::ThreadClock;
use crate::entry_lock::EntryLock;
use crate::fork_gate::Allocating;
use crate::fork_word::wiped_on_fork;
use crate::metadata::{Describe, FinalPlace, ThreadIdentity};
use crate::open_call::OpenCall;
use crate::samples::Samples;
use crate::stream::Stream;
use crate::sync::heavy_fence;
use crate::{event_filter, forked, late_events, nap, nested_recorder, process, tls, turns};

/// Options of [`attach_with`].
#[derive(Default)]
pub struct Options {
    /// The thread's id in the trace; by default the system's.
    pub tid: Option<i32>,
    /// Whether `taskscope.obs` is made only when an event comes. Losses are then counted in the
    /// metadata.
    pub own_stream_on_demand: bool,
    /// Generator of the text of `stream.json`.
    pub describe: Option<Arc<dyn Describe>>,
    /// Whether there is a `samples.obs`, which a signal handler writes through
    /// [`enter_in_handler`](crate::enter_in_handler).
    pub samples: bool,
}

/// Starts recording on the calling thread. Has no effect if it is attached already. `user` is kept for the
/// caller; `closer` writes the closing events.
///
/// Returns whether the thread records from now on. If the files cannot be created, the thread is counted as
/// unrecorded and the program continues.
pub fn attach(user: *mut (), closer: Closer) -> bool {
    attach_with(user, closer, Options::default())
}

/// [`attach`] with [`Options`].
pub fn attach_with(user: *mut (), closer: Closer, options: Options) -> bool {
    let current = tls::get().cast::<ThreadRecorder>();
    // SAFETY: set by an earlier attach; a wiped or closed one does not record.
    if !current.is_null() && unsafe { (*current).entry_lock.is_recording() } {
        return true;
    }
    let Some(process) = process::current() else { return false };
    let this_process = std::process::id();
    if REFUSED_IN.get() == this_process {
        return false;
    }
    let _allocating = Allocating::begin();
    let _turn = turns::wait();
    if process.has_ended() {
        return false;
    }
    let Some((identity, standard, own, samples, memory)) = prepare(process, options) else {
        REFUSED_IN.set(this_process);
        process.count_unrecorded_thread();
        return false;
    };
    process.write_metadata(&identity, None);
    let forked_at = forked::take();
    let (ids, recorder) = ((identity.os_tid, identity.tid), memory.cast::<ThreadRecorder>());
    // SAFETY: fresh memory of sufficient size, page-aligned.
    unsafe {
        let nested = recorder.add(1);
        nested.write(ThreadRecorder {
            pending: AtomicU32::new(1),
            main: recorder,
            standard: nested_recorder::stream(&standard),
            own: nested_recorder::stream(&own),
            ..ThreadRecorder::new(identity.clone(), ptr::null_mut())
        });
        recorder.write(ThreadRecorder {
            user,
            standard,
            own,
            nested,
            closer: Some(closer),
            samples,
            forked_at,
            ..ThreadRecorder::new(identity, ptr::null_mut())
        });
    }
    // SAFETY: written above, and never unmapped.
    process.os_time.watch(ids, forked_at, unsafe { &(*recorder).open_call });
    if !process.register(recorder.cast()) {
        // The recording of the process ended in the meantime, and would leave this stream unfinished.
        process.os_time.leave(os_tid());
        // SAFETY: made above and not registered, so that this thread alone has it.
        unsafe {
            let directory = (*recorder).identity.directory.clone();
            (*recorder).standard.discard();
            (*recorder).own.discard();
            (*recorder).samples.discard();
            release(recorder);
            let _ = std::fs::remove_dir_all(directory);
        }
        return false;
    }
    tls::set(recorder.cast());
    call_detach_at_thread_end();
    true
}

std::thread_local! {
    /// The process in which this thread could not be attached: it is tried, and counted, once.
    static REFUSED_IN: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread was to be recorded, and its files could not be made.
pub fn was_refused() -> bool {
    let refused_in = REFUSED_IN.get();
    refused_in != 0 && refused_in == std::process::id()
}

/// A thread's directory, its streams, and memory for its recorder; all of them or nothing.
fn prepare(
    process: &process::Process,
    options: Options,
) -> Option<(ThreadIdentity, Stream, Stream, Samples, *mut u8)> {
    let (own_on_demand, sampled) = (options.own_stream_on_demand, options.samples);
    let identity =
        process.make_thread_directory(os_tid(), options.tid.unwrap_or(os_tid()), options.describe)?;
    if !process::keeps_streams() {
        let half = SINK_BYTES / 2;
        let area = Box::leak(Box::new([0u8; SINK_BYTES])).as_mut_ptr();
        let streams = (Stream::sink(area, half), Stream::sink(area.wrapping_add(half), half));
        return Some((identity, streams.0, streams.1, Samples::none(), free_memory()?));
    }
    let directory = &identity.directory;
    let (mut standard, mut own, mut samples) =
        (Stream::create(directory, StreamFile::Standard).ok(), None, Samples::none());
    let memory = (|| {
        standard.as_ref()?;
        own = Some(if own_on_demand {
            Stream::planned(directory, StreamFile::Own)
        } else {
            let mut own = Stream::create(directory, StreamFile::Own).ok()?;
            own.set_room_aside();
            own
        });
        if sampled {
            samples = Samples::create(directory)?;
        }
        free_memory()
    })();
    if memory.is_none() {
        // Files without a recorder would look like a stream that lost everything.
        standard.iter_mut().chain(&mut own).for_each(Stream::discard);
        samples.discard();
        let _ = std::fs::remove_dir_all(directory);
    }
    Some((identity, standard?, own?, samples, memory?))
}

impl ThreadRecorder {
    fn new(identity: ThreadIdentity, main: *mut ThreadRecorder) -> Self {
        ThreadRecorder {
            entry_lock: EntryLock::open(),
            pending: AtomicU32::new(0),
            filter: AtomicU32::new(event_filter::current()),
            owner: tls::thread_pointer(),
            user: ptr::null_mut(),
            clock: ThreadClock::default(),
            standard: Stream::in_memory(ptr::null_mut(), 0),
            own: Stream::in_memory(ptr::null_mut(), 0),
            nested: ptr::null_mut(),
            main,
            loss_count_offset: None,
            reentered: AtomicU64::new(0),
            identity,
            closer: None,
            samples: Samples::none(),
            diverted: None,
            sink: None,
            forked_at: None,
            open_call: OpenCall::default(),
            token: new_token(),
        }
    }
}

/// The thread pointer, and above it the number of recorders so far.
fn new_token() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    tls::thread_pointer() ^ COUNT.fetch_add(1, Relaxed) << POINTER_BITS
}

/// Bits of the addresses of user space.
const POINTER_BITS: u32 = 48;

impl ThreadRecorder {
    /// Writes the closing events, cuts the files, completes the metadata.
    fn close(&mut self, process: &process::Process) {
        nested_recorder::drain(self);
        let at = self.clock.now();
        if let Some(closer) = self.closer.take() {
            closer(self, at);
        }
        let lost = self.lost_events();
        if lost > 0 && self.own.has_file() {
            match self.loss_count_offset {
                Some(offset) => self.own.replace_loss(offset, lost, self.loss_reason()),
                None => self.record_loss(at),
            }
        }
        let own_is_empty = self.own.is_empty();
        let tails = (self.standard.finish(), self.own.finish(), self.samples.finish());
        if own_is_empty {
            let _ = std::fs::remove_file(self.identity.directory.join(StreamFile::Own.name()));
        }
        // The tails go last: until the metadata is complete they belong to the stream.
        if let (Some(standard), Some(own), Some(samples)) = tails
            && process.write_metadata(&self.identity, Some(lost))
        {
            for tail in standard.into_iter().chain(own).chain(samples) {
                let _ = std::fs::remove_file(tail);
            }
            self.identity.move_to_final_directory();
            let place = self.identity.final_place.as_ref().map(FinalPlace::directory);
            late_events::offer(place.as_ref().unwrap_or(&self.identity.directory));
        }
    }
}

/// Memory of detached threads' recorders. It is never unmapped, since inline code in the program may still
/// hold its address; that code compares [`ThreadRecorder::owner`].
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Room for a recorder and its nested recorder.
fn free_memory() -> Option<*mut u8> {
    // In a forked child another thread of the parent may hold the lock for ever: never wait.
    let free = FREE.try_lock().ok().and_then(|mut free| free.pop());
    free.map(|address| address as *mut u8).or_else(|| wiped_on_fork(2 * size_of::<ThreadRecorder>()))
}

/// Drops a recorder and keeps its memory for another one.
///
/// # Safety
/// `recorder` was made by [`attach_with`], and the calling thread alone has it.
unsafe fn release(recorder: *mut ThreadRecorder) {
    // SAFETY: by contract.
    unsafe {
        ptr::drop_in_place(&raw mut (*(*recorder).nested).identity);
        ptr::drop_in_place(recorder);
    }
    if let Ok(mut free) = FREE.try_lock() {
        free.push(recorder as usize);
    }
}

/// Whether the calling thread was recorded before this process was forked off.
pub fn was_forked() -> bool {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    !recorder.is_null() && unsafe { (*recorder).entry_lock.is_wiped() }
}

/// Forgets the recorder that the calling thread had before this process was forked off: its calls while it is attached anew are the
/// recorder's own.
pub fn forget_parent() {
    if was_forked() {
        tls::set(ptr::null_mut());
    }
}

/// The calling thread's place for the call that it is in; `None` if it was never attached. It may be the one of a recording that has ended.
#[inline(always)]
pub fn own_open_call() -> Option<&'static OpenCall> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: null, or set by `attach`; the memory is never unmapped, and only atomics of it are touched. Dropping a recorder leaves them.
    (!recorder.is_null()).then(|| unsafe { &(*recorder).open_call })
}

/// Whether the calling thread records.
#[inline]
pub fn is_attached() -> bool {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    !recorder.is_null() && unsafe { (*recorder).entry_lock.is_recording() }
}

pub use crate::os_thread::os_tid;

/// A number that identifies the calling thread's recorder, attached or forked away; 0 without one.
#[inline(always)]
pub fn address() -> usize {
    tls::get() as usize
}

/// The calling thread's thread pointer, attached or not: different for any two threads that live at the same time.
#[inline(always)]
pub fn pointer() -> usize {
    tls::thread_pointer()
}

/// A number of the calling thread that no other one of the process has had, or not for long: its thread pointer alone is soon that of a
/// new thread. 0 if it was never attached.
#[inline(always)]
pub fn token() -> usize {
    let recorder = tls::get().cast::<ThreadRecorder>();
    if recorder.is_null() {
        return 0;
    }
    // SAFETY: as in `own_open_call`; dropping a recorder leaves numbers.
    match unsafe { (*recorder).token } {
        // In a forked child, which is not attached yet.
        0 => pointer(),
        token => token,
    }
}

/// Rounds of the destructors of a thread's keys in which it records. The recorder's key is older than the program's, so its destructor comes
/// first in a round: those of the program's keys are recorded if there is one more.
const ROUNDS: usize = 1;

/// Calls [`detach`] when this thread ends without having called it.
pub(crate) fn call_detach_at_thread_end() {
    request_end(1);
}

/// Has the calling thread's end called in the next round of the destructors of keys, as the round with this number.
fn request_end(round: usize) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    extern "C" fn at_end(round: *mut libc::c_void) {
        match round as usize {
            round if round <= ROUNDS => request_end(round + 1),
            _ => detach(),
        }
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing, and the function lives as long as the library, which
        // is never unloaded while a runtime holds it.
        (unsafe { libc::pthread_key_create(&mut key, Some(at_end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key was created; any value but null requests the call.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance(round)) };
    }
}

/// Ends recording on the calling thread: closing events, cut files, complete metadata.
pub fn detach() {
    if crate::instrument::feature::IS_COMPILED_IN {
        crate::instrument::sinks::thread_ends();
    }
    let recorder = tls::get().cast::<ThreadRecorder>();
    tls::set(ptr::null_mut());
    // In a forked child the recorder is the parent's.
    if recorder.is_null() || process::was_forked() {
        return;
    }
    let Some(process) = process::current() else { return };
    let _allocating = Allocating::begin();
    let _turn = turns::wait();
    // The finisher of the process may have taken it; then it is not ours any more.
    if process.unregister(recorder.cast()) {
        process.os_time.leave(os_tid());
        // SAFETY: unregistered, so that this thread alone has it; made by `attach`.
        unsafe {
            (*recorder).samples.entry_lock.hold();
            (*recorder).samples.entry_lock.close();
            (*recorder).entry_lock.hold();
            (*recorder).entry_lock.close();
            (*recorder).close(process);
            release(recorder);
        }
        crate::os_thread::forget_reported_name(os_tid());
    }
}

/// Time limit for a thread to leave its event path, which takes nanoseconds unless it loses its CPU: more
/// than a second in all.
const LEAVING_STEPS: u32 = 20_000;
const LEAVING_STEP_NS: libc::c_long = 50_000;

/// Closes another thread's recorder, at the end of the process. Returns whether the thread left its event
/// path in time; if not, its stream stays unfinished, and readable as such.
///
/// # Safety
/// `recorder` was registered by `attach`, and was unregistered by the caller.
pub(crate) unsafe fn close_from_outside(recorder: *mut ThreadRecorder, process: &process::Process) -> bool {
    // SAFETY: by contract; the memory is never unmapped, and the thread may still read it.
    unsafe {
        (*recorder).entry_lock.close();
        (*recorder).samples.entry_lock.close();
        // The calling thread itself may be in, when the program ends within an event.
        if !heavy_fence() || (*recorder).is_own_thread() && !(*recorder).entry_lock.is_free() {
            return false;
        }
        for _ in 0..LEAVING_STEPS {
            if (*recorder).entry_lock.is_free() && (*recorder).samples.entry_lock.is_free() {
                (*recorder).identity.ended_with_process = !(*recorder).is_own_thread();
                (*recorder).close(process);
                return true;
            }
            nap::nap_for(LEAVING_STEP_NS);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_at_one_address_have_different_tokens() {
        let (first, second) = (new_token(), new_token());
        assert_ne!(first, second);
        let pointer_of = |token: usize| token & ((1 << POINTER_BITS) - 1);
        assert_eq!(pointer_of(first), pointer_of(second));
    }
}
