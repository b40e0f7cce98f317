//! Events of the calling thread: of a trace, or of a profile, which sums them up (`taskscope_ompt::shared::WaitEvent`).

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use taskscope_event::models::wait::{self, outcome};
use taskscope_ompt::shared::{
    Moment, OpenCall, RecordedCall, WaitEvent, record_outside_openmp, record_outside_openmp_untimed,
};
use taskscope_record::{forked, thread};

use crate::objects::Mark;
use crate::switches;

/// Result codes of a family of functions.
#[derive(Clone, Copy)]
pub struct Codes {
    /// The object is not free.
    pub busy: c_int,
    /// The time was over.
    pub timed_out: c_int,
}

/// Codes of POSIX threads.
pub const POSIX: Codes = Codes { busy: libc::EBUSY, timed_out: libc::ETIMEDOUT };
/// Codes of C11's threads: `thrd_busy` and `thrd_timedout`.
pub const C11: Codes = Codes { busy: 1, timed_out: 4 };

impl Codes {
    /// Outcome of a wait with this result.
    pub fn outcome(self, result: c_int) -> u32 {
        match result {
            0 | libc::EOWNERDEAD | libc::PTHREAD_BARRIER_SERIAL_THREAD => outcome::DONE,
            result if result == self.timed_out => outcome::TIMED_OUT,
            _ => outcome::FAILED,
        }
    }
}

/// Runs `record` on the calling thread, if it records; `errno` is kept.
fn with_moment(record: impl FnOnce(&mut Moment<'_>)) {
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        if thread::was_forked() {
            start_in_child();
        }
        record_outside_openmp(record);
        *errno = kept;
    }
}

/// A child's first thread starts without the hook of threads.
fn start_in_child() {
    record_outside_openmp(|moment| announce(moment, own_handle(), thread::token(), 0));
}

/// A forked child makes a call by which it is unlikely to run another program next: it records from now on, not only from its first
/// event, so that its code is sampled. Tried once a process.
#[inline(always)]
pub fn begin_in_child() {
    if thread::was_forked() {
        begin_in_child_once();
    }
}

#[cold]
#[inline(never)]
fn begin_in_child_once() {
    static TRIED_IN: AtomicU32 = AtomicU32::new(0);
    let pid = std::process::id();
    // Memory is allocated: not in a handler of a signal, where `sem_post` and `waitpid` may be called.
    if TRIED_IN.load(Relaxed) != pid && forked::has_mask_of_fork() {
        TRIED_IN.store(pid, Relaxed);
        // SAFETY: `errno` is the thread's own.
        unsafe {
            let errno = libc::__errno_location();
            let kept = *errno;
            start_in_child();
            *errno = kept;
        }
    }
}

/// [`with_moment`] with the time of the event before.
fn with_untimed_moment(record: impl FnOnce(&mut Moment<'_>)) {
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        record_outside_openmp_untimed(record);
        *errno = kept;
    }
}

fn site(moment: &mut Moment<'_>, return_address: usize) -> u32 {
    moment.code_site(return_address as *const c_void)
}

fn object_site_kind(object: usize, site: u32, kind: u32) -> [u8; 16] {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&(object as u64).to_le_bytes());
    payload[8..12].copy_from_slice(&site.to_le_bytes());
    payload[12..].copy_from_slice(&kind.to_le_bytes());
    payload
}

/// A wait of this kind begins, in a call that returns to `caller`; the lock's holder as it was found.
pub fn begin(kind: u32, object: usize, caller: usize, found: Option<Mark>) {
    with_moment(|moment| {
        if moment.counts_waits() {
            let found = found.map_or((0, 0), |mark| (mark.holder as u64, mark.site as u64));
            let call = moment.wait_call(caller as *const c_void);
            return moment.count_wait(WaitEvent::Begins { kind, object: object as u64, call, found });
        }
        let number = site(moment, caller);
        moment.record_call_path(number, caller as *const c_void);
        let found = found.map(|mark| (mark.holder as u64, site(moment, mark.site)));
        let (at, payload) = (moment.at, object_site_kind(object, number, kind));
        moment.recorder.own_begin(at, wait::WAIT_BEGIN, payload, 8);
        if let Some((holder, site)) = found {
            let parts: [&[u8]; 2] = [&holder.to_le_bytes(), &site.to_le_bytes()];
            moment.recorder.own_jumbo(at, wait::FOUND_HELD, &parts);
        }
    });
}

/// The wait ends in this way (`wait::outcome`).
pub fn end(kind: u32, outcome: u32) {
    switches::begin();
    with_moment(|moment| {
        if moment.counts_waits() {
            return moment.count_wait(WaitEvent::Ends { outcome });
        }
        let mut payload = [0; 8];
        payload[..4].copy_from_slice(&kind.to_le_bytes());
        payload[4..].copy_from_slice(&outcome.to_le_bytes());
        moment.recorder.own_end(moment.at, wait::WAIT_END, payload);
    });
}

/// This thread releases a lock that others wait for, in a call that returns to `caller`. It took it in a call that returned
/// to `taken_at`.
pub fn hands_over(kind: u32, object: usize, taken_at: usize, caller: usize) {
    with_moment(|moment| {
        if moment.counts_waits() {
            let path = moment.wait_call(caller as *const c_void);
            let call = RecordedCall { site: taken_at as u64, ..path };
            return moment.count_wait(WaitEvent::HandsOver { kind, object: object as u64, call });
        }
        let site = site(moment, taken_at);
        moment.record_call_path(site, caller as *const c_void);
        moment.recorder.own_point(moment.at, wait::HANDED_OVER, object_site_kind(object, site, kind));
    });
}

/// This thread wakes one thread that waits for the object, or all of them.
pub fn wakes(kind: u32, object: usize, caller: usize, all: bool) {
    with_moment(|moment| {
        if moment.counts_waits() {
            let call = moment.wait_call(caller as *const c_void);
            return moment.count_wait(WaitEvent::Wakes {
                kind,
                object: object as u64,
                call,
                threads: count_of(all),
            });
        }
        let number = site(moment, caller);
        moment.record_call_path(number, caller as *const c_void);
        let code = if all { wait::WAKES_ALL } else { wait::WAKES_ONE };
        moment.recorder.own_point(moment.at, code, object_site_kind(object, number, kind));
    });
}

/// The threads that a wake of one or of all may wake.
fn count_of(all: bool) -> u32 {
    if all { u32::MAX } else { 1 }
}

/// The place of a wake, before it: its site in a trace, its call in a profile.
#[derive(Clone, Copy, Default)]
pub struct WakePlace {
    site: u32,
    call: RecordedCall,
    /// Whether a profile waits for the event.
    is_announced: bool,
}

/// This thread is about to make a call that returns to `caller` and may wake others. Returns the call's place. [`wake_is_over`] follows.
pub fn prepare_to_wake(caller: usize) -> WakePlace {
    let mut place = WakePlace::default();
    with_moment(|moment| {
        if moment.counts_waits() {
            place.call = moment.wait_call(caller as *const c_void);
            place.is_announced = true;
            return moment.announce_wake();
        }
        place.site = site(moment, caller);
        moment.record_call_path(place.site, caller as *const c_void);
    });
    place
}

/// The place of a wake by a call that returns to `caller`, without an event.
pub fn place_of_wake(caller: usize) -> WakePlace {
    let mut place = WakePlace::default();
    with_moment(|moment| {
        if moment.counts_waits() {
            return place.call = moment.wait_call(caller as *const c_void);
        }
        place.site = site(moment, caller);
        moment.record_call_path(place.site, caller as *const c_void);
    });
    place
}

/// This thread wakes one thread that waits for the object, or all of them, by a call at this place.
pub fn wakes_from(kind: u32, object: usize, place: WakePlace, all: bool) {
    with_moment(|moment| {
        if moment.counts_waits() {
            let (object, call, threads) = (object as u64, place.call, count_of(all));
            return moment.count_wait(WaitEvent::Wakes { kind, object, call, threads });
        }
        let code = if all { wait::WAKES_ALL } else { wait::WAKES_ONE };
        moment.recorder.own_point(moment.at, code, object_site_kind(object, place.site, kind));
    });
}

/// This thread has woken so many threads that wait for the object, or all of them, in the call that [`prepare_to_wake`] was
/// called before: at that time, since a woken thread may have recorded its end by now.
pub fn has_woken(kind: u32, object: usize, place: WakePlace, threads: Woken) {
    with_untimed_moment(|moment| {
        if moment.counts_waits() {
            let threads = match threads {
                Woken::All => u32::MAX,
                Woken::Some(count) => count,
            };
            let (object, call) = (object as u64, place.call);
            return moment.count_wait(WaitEvent::Wakes { kind, object, call, threads });
        }
        let payload = object_site_kind(object, place.site, kind);
        match threads {
            Woken::All => moment.recorder.own_point(moment.at, wait::WAKES_ALL, payload),
            Woken::Some(count) => {
                (0..count).for_each(|_| moment.recorder.own_point(moment.at, wait::WAKES_ONE, payload));
            }
        }
    });
}

/// The call that [`prepare_to_wake`] was called before is over; threads that it woke are recorded.
pub fn wake_is_over(place: WakePlace) {
    if place.is_announced {
        with_untimed_moment(|moment| moment.wake_is_over());
    }
}

/// The threads that a call has woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// This number of threads.
    Some(u32),
    /// All waiting threads.
    All,
}

/// This thread wakes one thread that waits for the object, or all of them, in a call of the program's.
pub fn wakes_by_call(kind: u32, object: u64, all: bool) {
    with_moment(|moment| {
        if moment.counts_waits() {
            let call = moment.wait_call_from_program(None);
            return moment.count_wait(WaitEvent::Wakes { kind, object, call, threads: count_of(all) });
        }
        let site = moment.record_call_from_program(None);
        let code = if all { wait::WAKES_ALL } else { wait::WAKES_ONE };
        moment.recorder.own_point(moment.at, code, object_site_kind(object as usize, site, kind));
    });
}

/// This thread has waited for a mutex since a time of `CLOCK_MONOTONIC`, at the end of its open wait for a condition in a call that
/// returns to `caller`.
pub fn waited_for_mutex(mutex: usize, caller: usize, since: u64) {
    with_moment(|moment| {
        let (kind, outcome, at) = (wait::kind::MUTEX, outcome::DONE, moment.at);
        if moment.counts_waits() {
            let (object, call) = (mutex as u64, moment.wait_call(caller as *const c_void));
            let time = (since, at);
            let wait = WaitEvent::Waited { kind, outcome, is_of_others: false, object, call, time };
            return moment.count_wait(wait);
        }
        let site = site(moment, caller);
        let parts: [&[u8]; 9] = [
            &(mutex as u64).to_le_bytes(),
            &at.saturating_sub(since).to_le_bytes(),
            &0_u64.to_le_bytes(),
            &site.to_le_bytes(),
            &kind.to_le_bytes(),
            &outcome.to_le_bytes(),
            &0_u32.to_le_bytes(),
            &0_u64.to_le_bytes(),
            &0_u64.to_le_bytes(),
        ];
        moment.recorder.own_jumbo(at, wait::WAITED, &parts);
    });
}

/// A wait in a call that may or may not wait, with times of `CLOCK_MONOTONIC`.
pub struct Waited {
    /// `wait::kind`.
    pub kind: u32,
    /// The awaited object.
    pub object: u64,
    /// `wait::outcome`.
    pub outcome: u32,
    /// Begin and end; an open one ends at the end of the recording.
    pub time: (u64, u64),
    /// Whether no thread of the process can have ended it.
    pub is_of_others: bool,
}

/// This thread has waited in a call of the program's.
pub fn waited(wait: &Waited) {
    with_moment(|moment| record_wait(moment, wait, None));
}

/// Records a wait of the moment's thread: in the call that it has just made, or, if that is another thread than the calling one, in the
/// open one.
pub fn record_wait(moment: &mut Moment<'_>, wait: &Waited, open: Option<&OpenCall>) {
    if moment.counts_waits() {
        let &Waited { kind, object, outcome, time, is_of_others } = wait;
        let call = moment.wait_call_from_program(open);
        return moment.count_wait(WaitEvent::Waited { kind, outcome, is_of_others, object, call, time });
    }
    let site = moment.record_call_from_program(open);
    let at = moment.at;
    let ago = |time: u64| at.saturating_sub(time).to_le_bytes();
    let waker = if wait.is_of_others { wait::OTHER_PROCESS } else { 0 };
    let parts: [&[u8]; 9] = [
        &wait.object.to_le_bytes(),
        &ago(wait.time.0),
        &ago(wait.time.1),
        &site.to_le_bytes(),
        &wait.kind.to_le_bytes(),
        &wait.outcome.to_le_bytes(),
        &0_u32.to_le_bytes(),
        &waker.to_le_bytes(),
        &ago(wait.time.1),
    ];
    moment.recorder.own_jumbo(moment.at, wait::WAITED, &parts);
}

/// Names of this thread in the events of others; it runs `routine`, 0 if unknown.
pub fn starts(handle: usize, pointer: usize, routine: usize) {
    with_moment(|moment| announce(moment, handle, pointer, routine));
}

fn own_handle() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

fn announce(moment: &mut Moment<'_>, handle: usize, pointer: usize, routine: usize) {
    if moment.counts_waits() {
        moment.begin_to_count_waits();
        let site = if routine == 0 { 0 } else { routine as u64 + 1 };
        let routine = RecordedCall { site, ..RecordedCall::default() };
        let (handle, pointer) = (handle as u64, pointer as u64);
        return moment.count_wait(WaitEvent::Starts { handle, pointer, routine });
    }
    // Sites are return addresses: the preceding instruction is looked up.
    let site = if routine == 0 { 0 } else { site(moment, routine + 1) };
    let parts: [&[u8]; 3] =
        [&(handle as u64).to_le_bytes(), &(pointer as u64).to_le_bytes(), &site.to_le_bytes()];
    // A recording that begins paused has them, too.
    moment.write_anyway(|moment| moment.recorder.own_jumbo(moment.at, wait::THREAD_STARTS, &parts));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_both_families_have_their_outcome() {
        assert_eq!(POSIX.outcome(0), outcome::DONE);
        assert_eq!(POSIX.outcome(libc::EOWNERDEAD), outcome::DONE);
        assert_eq!(POSIX.outcome(libc::ETIMEDOUT), outcome::TIMED_OUT);
        assert_eq!(POSIX.outcome(libc::EINVAL), outcome::FAILED);
        assert_eq!(C11.outcome(4), outcome::TIMED_OUT);
        assert_eq!(C11.outcome(2), outcome::FAILED);
    }
}
