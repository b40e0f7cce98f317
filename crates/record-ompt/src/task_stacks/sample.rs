//! One sample of a thread, taken in the signal handler.

use core::sync::atomic::Ordering::Relaxed;

use taskscope_event::models::samples::{self, flag, state};
use taskscope_record::InHandler;

use super::levels::{Entry, Stack};
use super::undeferred::Undeferred;
use super::{check, regions};
use crate::pause;
use crate::profiling::{Sample, SampleOf, Sampled, is_work, sample_no_cpu, share_in_callback};
use crate::sampler::machine::{interrupted_registers, interrupted_system_call};
use crate::sampler::now;
use crate::sampler::{Clock, code_map};
use crate::thread::{Kind, Thread};
use crate::thread_sampler::ThreadSampler;

/// Not inlined into the handler: its own frame must fit on stacks that are too small for this one.
///
/// # Safety
/// Called from the handler with its context.
#[inline(never)]
pub unsafe fn take_sample(recording: &mut InHandler, context: *const libc::ucontext_t) {
    let at = recording.now();
    let thread = recording.user().cast::<Thread>();
    // SAFETY: `attach` gave the recorder this thread's state. Only this thread changes it, and not now.
    let Some(sampler) = (unsafe { (*thread).sampler.as_deref() }) else { return };
    let Some(map) = code_map::current() else { return };
    // SAFETY: only the handler touches them, and the entry lock keeps a second one out.
    let (memory, walked) = unsafe { (&mut *sampler.memory.get(), &mut *sampler.core.memory.get()) };
    // In profile mode, and before the timer changes.
    let late_ns = sampler.counted.as_ref().and_then(|_| sampler.late_ns());
    sampler.keep_pace();
    let time = if sampler.settings.clock == Clock::Wall { at } else { now(Clock::Cpu) };
    if pause::is_paused() {
        walked.last_ns = time;
        return;
    }
    // Two timers may both have sent one while it was kept away.
    if sampler.is_second_of_call() {
        return;
    }
    // SAFETY: a copy of a plain number.
    let kind = unsafe { (*thread).kind };
    let in_callback = recording.interrupted_an_event();
    // SAFETY: no callback is running, so its state is consistent.
    if kind == Kind::Helper && !in_callback && unsafe { (*thread).frames.is_empty() } {
        // The runtime's own thread, which waits for a target task: not charged.
        walked.last_ns = time;
        return;
    }
    // SAFETY: by contract.
    let registers = unsafe { interrupted_registers(context) };
    walked.frames.walk(map, &mut walked.cache, registers, sampler.bounds);
    if walked.frames.met_unknown_code {
        code_map::suspect();
    }
    let mut flags = flags_of(sampler, walked.is_first);
    walked.is_first = false;
    // SAFETY: by contract.
    if unsafe { interrupted_system_call(context) } {
        flags |= flag::IN_SYSTEM_CALL;
    }
    if walked.frames.reached_root {
        flags |= flag::REACHED_ROOT;
    }
    if walked.frames.is_cut {
        flags |= flag::CUT;
    }
    // Workers and helpers have no task beneath their own, other threads their initial task. SAFETY: a copy of
    // a plain number.
    let most = unsafe { (*thread).frames.tasks() } + u32::from(!matches!(kind, Kind::Worker | Kind::Helper));
    let bounds = sampler.bounds;
    let (mut state, object, entered_from) = if in_callback {
        (state::OVERHEAD, 0, 0)
    } else {
        // SAFETY: no callback is running, so its state is consistent.
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
        // SAFETY: no callback is running, so they do not change.
        unsafe { ((*thread).forks.as_slice(), &(*thread).undeferred) }
    };
    let waits_for_object = matches!(state, state::LOCK..=state::NEST_LOCK);
    if kind == Kind::Unknown {
        memory.levels.clear();
        memory.levels.set_outside();
    } else if state == state::IDLE {
        memory.levels.clear();
    } else if !memory.levels.ask_runtime(&Stack {
        frames: &walked.frames,
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
    memory.levels.assign(&walked.frames, entry);
    let level = memory.levels.list().first().copied().unwrap_or_default();
    // Events count a call into the runtime without events as work, for which others wait.
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
    let since = time.saturating_sub(walked.last_ns);
    let own = sampler.own_part(time, called);
    let weight = since.min(own);
    // The time before the call belongs to the next sample.
    walked.last_ns = time - (since - weight);
    if let Some(counted) = &sampler.counted {
        // SAFETY: unless a callback is running, the thread's state is consistent.
        let follower = if in_callback { None } else { unsafe { (*thread).profile.as_deref() } };
        let region_context = || follower.and_then(|follower| follower.context_of(level.region));
        let context = match level.task {
            0 => region_context().unwrap_or_else(|| regions::context(level.region)),
            task => task,
        };
        // Its level extends to the end of the walk, which was not the root.
        let goes_on = usize::from(level.frames.1) == memory.levels.addresses().len();
        let is_cut = goes_on && !walked.frames.reached_root;
        // The account of a thread in a callback may be half changed. A call that the signal was kept away from makes it late.
        let no_cpu = if in_callback { None } else { sample_no_cpu(counted, late_ns.filter(|_| called == 0)) };
        // With CPU-time timers, no sample represents time without a CPU.
        let no_cpu = no_cpu.filter(|_| is_work(state) && sampler.settings.clock == Clock::Wall);
        if no_cpu.is_some_and(|share| share.is_deferred()) {
            // It may be a stop of the process: the time belongs to the next sample, which knows it.
            walked.last_ns = time - since;
            return;
        }
        let (without, blocked) =
            no_cpu.map_or((0, 0), |share| (share.off_cpu(weight), share.blocked(weight)));
        // Signals, as this one, wake a thread within its wait, and it sleeps again.
        let is_asleep = counted.waits.is_asleep() || flags & flag::IN_SYSTEM_CALL != 0;
        let (no_cpu_ns, blocked_ns) = if is_asleep { (0, without + blocked) } else { (without, blocked) };
        let idled = if in_callback {
            share_in_callback(counted.account, at, weight)
        } else {
            follower.and_then(|follower| follower.share(of, (at, own), sampler.settings.period_ns))
        };
        let sample =
            Sample { levels: &memory.levels, context, state, weight, no_cpu_ns, blocked_ns, is_cut, idled };
        counted.samples.count(|tree| tree.take(&sample));
        if !in_callback && of != SampleOf::Other {
            // SAFETY: no callback runs, and the entry lock keeps a second handler out.
            let recent = unsafe { sampler.recent_in_handler() };
            let sampled = Sampled { context, addresses: sample.user_frames(), is_cut };
            recent.add(sampled, !sample.works(), weight, at);
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

fn flags_of(sampler: &ThreadSampler, is_first: bool) -> u32 {
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
