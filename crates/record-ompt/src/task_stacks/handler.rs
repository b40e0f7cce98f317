//! The signal handler: one sample.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

use taskscope_event::models::samples::{self, flag, state};
use taskscope_record::{InHandler, enter_in_handler};

use super::levels::{Entry, Stack};
use super::undeferred::Undeferred;
use super::{check, regions};
use crate::control;
use crate::profiling::{Sample, SampleOf, Sampled, is_work, sample_no_cpu, share_in_callback};
use crate::sampler::alternate::Alternate;
use crate::sampler::walk::{ROOM, interrupted_registers, stack_pointer_here};
use crate::sampler::{Clock, code_map, signal};
use crate::sampler::{Sampler, now};
use crate::thread::{Kind, Thread};

/// The handler of the timers' signal.
pub unsafe extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's own arguments; `errno` is the thread's own.
    unsafe {
        if !signal::is_ours(info) {
            return signal::pass_on(number, info, context);
        }
        let errno = libc::__errno_location();
        let kept = *errno;
        if let Some(recording) = enter_in_handler() {
            sample_with_room(recording, context.cast());
        }
        *errno = kept;
    }
}

/// On the stack that the handler is on, if that is the recorder's, or the thread's own with room for a sample. It may be an alternate one
/// of the program's, of a few kilobytes; of others, which a program changes to by itself, nothing is known.
///
/// # Safety
/// As for [`sample`].
unsafe fn sample_with_room(recording: InHandler, context: *const libc::ucontext_t) {
    let thread = recording.user().cast::<Thread>();
    // SAFETY: as in `sample`, by contract.
    unsafe {
        let Some(sampler) = (*thread).sampler.as_deref() else { return };
        let sp = stack_pointer_here();
        let own = sampler.alternate.as_ref().map(Alternate::stack);
        let has_room = match own.and_then(|own| own.room_below(sp)) {
            Some(room) if room < ROOM => return,
            Some(_) => true,
            None => sampler.bounds.have_room_below(sp),
        };
        if has_room {
            sample(recording, context);
        } else if let Some(own) = own {
            own.call(|| sample(recording, context));
        }
    }
}

/// Not part of the handler's own frame, which has to fit where this does not.
///
/// # Safety
/// Called from the handler with its context.
#[inline(never)]
unsafe fn sample(mut recording: InHandler, context: *const libc::ucontext_t) {
    let at = recording.now();
    let thread = recording.user().cast::<Thread>();
    // SAFETY: `attach` gave the recorder this thread's state. Only this thread changes it, and not now.
    let Some(sampler) = (unsafe { (*thread).sampler.as_deref() }) else { return };
    let Some(map) = code_map::current() else { return };
    // SAFETY: only the handler touches it, and the door keeps a second one out.
    let memory = unsafe { &mut *sampler.memory.get() };
    // Where samples are counted, and before the timer changes.
    let late_ns = sampler.counted.as_ref().and_then(|_| sampler.late_ns());
    sampler.keep_pace();
    let time = if sampler.settings.clock == Clock::Wall { at } else { now(Clock::Cpu) };
    if control::is_paused() {
        memory.last_ns = time;
        return;
    }
    // Two timers may both have sent one while it was kept away.
    if sampler.is_second_of_call() {
        return;
    }
    // SAFETY: a copy of a plain number.
    let kind = unsafe { (*thread).kind };
    let in_callback = recording.interrupted_an_event();
    // SAFETY: no callback is being executed, so nothing of it is half changed.
    if kind == Kind::Helper && !in_callback && unsafe { (*thread).frames.is_empty() } {
        // The runtime's own thread, which waits for a target task: nobody's time.
        memory.last_ns = time;
        return;
    }
    // SAFETY: by contract.
    let registers = unsafe { interrupted_registers(context) };
    memory.frames.walk(map, &mut memory.cache, registers, sampler.bounds);
    if memory.frames.met_unknown_code {
        code_map::suspect();
    }
    let mut flags = flags_of(sampler, memory.is_first);
    memory.is_first = false;
    if memory.frames.reached_root {
        flags |= flag::REACHED_ROOT;
    }
    if memory.frames.is_cut {
        flags |= flag::CUT;
    }
    // Beneath a worker's or helper's tasks lies nothing, beneath those of other threads their initial task.
    // SAFETY: a copy of a plain number.
    let most = unsafe { (*thread).frames.tasks() } + u32::from(!matches!(kind, Kind::Worker | Kind::Helper));
    let bounds = sampler.bounds;
    let (mut state, object, entered_from) = if in_callback {
        (state::OVERHEAD, 0, 0)
    } else {
        // SAFETY: no callback is being executed, so nothing of it is half changed.
        let thread = unsafe { &*thread };
        let state = thread.state();
        if thread.kind != Kind::Unknown {
            check::compare(state);
        }
        (state, thread.wait_object(), thread.wait_return)
    };
    static NONE: Undeferred = Undeferred::new();
    let (forks, undeferred) = if in_callback {
        (&[][..], &NONE)
    } else {
        // SAFETY: no callback is being executed, so nobody changes them.
        unsafe { ((*thread).forks.as_slice(), &(*thread).undeferred) }
    };
    let waits_for_object = matches!(state, state::LOCK..=state::NEST_LOCK);
    if kind == Kind::Unknown {
        memory.levels.clear();
        memory.levels.set_outside();
    } else if state == state::IDLE {
        memory.levels.clear();
    } else if !memory.levels.ask_runtime(&Stack {
        frames: &memory.frames,
        map,
        bounds,
        most,
        in_callback,
        forks,
        undeferred,
    }) {
        flags |= flag::LEVELS_UNKNOWN;
        memory.levels.set_outside();
    }
    let first_user = if waits_for_object { entered_from } else { 0 };
    // Signals come as soon as they may again, after the call: the call it is that was sampled.
    let called = if in_callback { 0 } else { sampler.called.load(Relaxed) as u64 };
    let entry = Entry { first_user, called, in_callback };
    memory.levels.assign(&memory.frames, entry);
    let level = memory.levels.list().first().copied().unwrap_or_default();
    // By events a call into the runtime that none tells of is work, for which others wait.
    let of = match state {
        state::TARGET => SampleOf::Device,
        state if is_work(state) => SampleOf::Work,
        // Outside of any region.
        _ if waits_for_object && level.region == 0 => SampleOf::Mutex,
        _ => SampleOf::Other,
    };
    if memory.levels.in_runtime {
        flags |= flag::IN_RUNTIME;
        if matches!(state, state::WORK_SERIAL | state::WORK_PARALLEL | state::NO_OPENMP) {
            state = state::OVERHEAD;
        }
    }
    regions::ask(level.region);
    let since = time.saturating_sub(memory.last_ns);
    let own = sampler.own_part(time, called);
    let weight = since.min(own);
    // What lies before the call is for the sample after it.
    memory.last_ns = time - (since - weight);
    if let Some(counted) = &sampler.counted {
        // SAFETY: unless a callback is being executed, nothing of the thread is half changed.
        let follower = if in_callback { None } else { unsafe { (*thread).profile.as_deref() } };
        let of_region = || follower.and_then(|follower| follower.context_of(level.region));
        let context = match level.task {
            0 => of_region().unwrap_or_else(|| regions::context(level.region)),
            task => task,
        };
        // Its level goes on to where the walk ended, which was not the root.
        let goes_on = usize::from(level.frames.1) == memory.levels.addresses().len();
        let is_cut = goes_on && !memory.frames.reached_root;
        // The account of a thread in a callback may be half changed. A call that the signal was kept away from makes it late.
        let no_cpu = if in_callback { None } else { sample_no_cpu(counted, late_ns.filter(|_| called == 0)) };
        // By CPU time, a sample stands for none without a CPU.
        let no_cpu = no_cpu.filter(|_| is_work(state) && sampler.settings.clock == Clock::Wall);
        let no_cpu_ns = no_cpu.map_or(0, |share| share.part_of(weight));
        let idled = if in_callback {
            share_in_callback(counted.account, at, weight)
        } else {
            follower.and_then(|follower| follower.share(of, (at, own), sampler.settings.period_ns))
        };
        let sample = Sample { levels: &memory.levels, context, state, weight, no_cpu_ns, is_cut, idled };
        counted.samples.count(|tree| tree.take(&sample));
        if !in_callback && of != SampleOf::Other {
            // SAFETY: no callback runs, and the door keeps a second handler out.
            let recent = unsafe { &mut *sampler.recent.get() };
            recent.add(Sampled { context, addresses: sample.user_frames(), is_cut }, !sample.works(), weight);
        }
        return;
    }
    let addresses = memory.levels.addresses();
    // SAFETY: numbers as bytes, of the same memory.
    let stack =
        unsafe { core::slice::from_raw_parts(addresses.as_ptr().cast::<u8>(), size_of_val(addresses)) };
    recording.sample(
        at,
        samples::SAMPLE,
        &[
            &weight.to_le_bytes(),
            &object.to_le_bytes(),
            &flags.to_le_bytes(),
            &state.to_le_bytes(),
            &level.region.to_le_bytes(),
            &level.task.to_le_bytes(),
            &(memory.levels.list().len() as u32).to_le_bytes(),
            memory.levels.write_to(&mut memory.level_bytes),
            stack,
        ],
    );
}

fn flags_of(sampler: &Sampler, is_first: bool) -> u32 {
    let mut flags = 0;
    if sampler.settings.clock == Clock::Cpu {
        flags |= flag::CPU_TIME;
    }
    if is_first {
        flags |= flag::FIRST;
    }
    if sampler.after_blocking.swap(false, Relaxed) {
        flags |= flag::AFTER_BLOCKING;
    }
    flags
}
