//! Intel's GPUs without PTI, by Level Zero's tracing layer (`ZE_ENABLE_TRACING_LAYER=1`).
//!
//! Level Zero has no records: each operation gets an event with timestamps, its own or the program's (pools
//! of the program are created with timestamps), which is read when it is signalled. An immediate command list
//! is a queue. Operations of a recorded list belong to the queue that executes it: (list, index, execution),
//! so a list that is executed three times is three operations each. Only lists that guarantee it run in
//! order. Kernel stamps have few bits; they are unwrapped by the submission.

mod appends;
mod callbacks;
mod events;
mod library;
mod state;

use crate::hub::{Hub, Source, hub};
use callbacks::*;
use library::*;
use state::{LEVEL_ZERO, OWN, anchor_all, look};
use std::time::Duration;
use taskscope_record::own_threads;

/// Interval of reading events, and of comparing clocks.
const LOOK_EVERY: Duration = Duration::from_micros(500);
const ANCHOR_EVERY: u32 = 100;

/// Starts listening, if Level Zero is there. Returns whether it records.
pub(crate) fn begin(hub: &'static Hub) -> bool {
    let Some(ze) = LevelZero::load() else { return false };
    let _ = LEVEL_ZERO.set(ze);
    // SAFETY: Level Zero's functions, used as documented.
    unsafe {
        let mut tracer = std::ptr::null_mut();
        // A tracer needs an initialised driver, and some user data.
        static USER: u8 = 0;
        let description = [1, 0, &raw const USER as usize];
        if (ze.initialise)(0) != SUCCESS || (ze.tracer)(&raw const description, &raw mut tracer) != SUCCESS {
            return false;
        }
        for (register, before) in appends::all(&ze) {
            register(tracer, BEFORE, before);
            register(tracer, AFTER, after_append);
        }
        (ze.on_list)(tracer, AFTER, after_list);
        (ze.on_immediate)(tracer, AFTER, after_immediate);
        (ze.on_list_reset)(tracer, BEFORE, before_list_reset);
        (ze.on_list_destroy)(tracer, BEFORE, before_list_reset);
        (ze.on_execute)(tracer, BEFORE, before_execute);
        (ze.on_execute)(tracer, AFTER, after_submission);
        (ze.on_pool)(tracer, BEFORE, before_pool);
        (ze.on_event_reset)(tracer, BEFORE, before_event_end);
        (ze.on_event_destroy)(tracer, BEFORE, before_event_end);
        let waits: [(Option<Register>, Callback); 5] = [
            (Some(ze.on_queue_wait), after_queue_wait),
            (Some(ze.on_event_wait), after_event_wait),
            (ze.on_fence_wait, after_fence_wait),
            (ze.on_list_wait, after_list_wait),
            (ze.on_wait_on_events, after_wait_on_events),
        ];
        for (register, after) in waits {
            if let Some(register) = register {
                register(tracer, BEFORE, before_wait);
                register(tracer, AFTER, after);
            }
        }
        if (ze.enable)(tracer, 1) != SUCCESS {
            return false;
        }
    }
    hub.add_source(Source { flush: look, force: look });
    if own_threads::may_start() {
        drop(own_threads::start(c"taskscope-ze", own_threads::LARGE_STACK, || {
            OWN.with(|own| own.set(true));
            let mut turn = 0u32;
            while self::hub().is_some() {
                taskscope_record::fork_gate::asleep(|| std::thread::sleep(LOOK_EVERY));
                look();
                turn = turn.wrapping_add(1);
                if turn.is_multiple_of(ANCHOR_EVERY) {
                    anchor_all();
                }
            }
        }));
    }
    true
}
