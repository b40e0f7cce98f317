//! Callbacks before and after the calls of the program, but those that append.

use super::library::*;
use super::state::{
    CALL_START, CORRELATOR, List, POOL, RECORDING, Recorded, SUBMITTING, announce, argument, finish, is_own,
    look, queue_key, read_before_end, with,
};
use crate::clocks;
use crate::hub::{Call, KindAndName, hub, tid};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ffi::c_void;
use taskscope_event::models::device::kind;

pub(super) unsafe extern "C" fn before_event_end(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    if let Some(hub) = hub().filter(|_| !is_own()) {
        // SAFETY: the first argument is the event.
        let event = unsafe { argument(arguments, 0) };
        with(|ze, state| read_before_end(hub, ze, state, event));
    }
}

/// Adds timestamps and host access to the program's pools.
pub(super) unsafe extern "C" fn before_pool(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    if is_own() {
        return;
    }
    // SAFETY: the second argument is the description; ours lives until this thread makes its next pool.
    unsafe {
        let given = argument(arguments, 1) as *const PoolDescription;
        let Some(given) = given.as_ref() else { return };
        if given.flags & POOL_FOR_OTHER_PROCESSES != 0 {
            return;
        }
        let changed = PoolDescription { flags: given.flags | POOL_FOR_HOST | POOL_WITH_TIMES, ..*given };
        let changed = Box::new(changed);
        **arguments.add(1) = &raw const *changed as usize;
        let _ = POOL.try_with(|pool| pool.replace(Some(changed)));
    }
}

/// A list was created.
unsafe fn list_created(arguments: *const *mut usize, result: i32, is_immediate: bool) {
    if result != SUCCESS || is_own() {
        return;
    }
    // SAFETY: arguments are context, device, description, and the place of the list.
    let (context, device, in_order, list) = unsafe {
        let description = argument(arguments, 2) as *const u8;
        let flags = if is_immediate && !description.is_null() {
            description.add(QUEUE_FLAGS).cast::<u32>().read_unaligned()
        } else {
            0
        };
        let list = argument(arguments, 3) as *const usize;
        (argument(arguments, 0), argument(arguments, 1), flags & QUEUE_IN_ORDER != 0, *list)
    };
    with(|_, state| {
        state.lists.insert(list, List { context, device, is_immediate, in_order, ..List::default() })
    });
}

pub(super) unsafe extern "C" fn after_list(
    arguments: *const *mut usize,
    result: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    // SAFETY: as the tracing layer's.
    unsafe { list_created(arguments, result, false) };
}

pub(super) unsafe extern "C" fn after_immediate(
    arguments: *const *mut usize,
    result: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    // SAFETY: as the tracing layer's.
    unsafe { list_created(arguments, result, true) };
}

/// A list is emptied or destroyed: its events serve others.
pub(super) unsafe extern "C" fn before_list_reset(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let Some(hub) = hub() else { return };
    // SAFETY: the first argument is the list.
    let list = unsafe { argument(arguments, 0) };
    with(|ze, state| {
        let Some(known) = state.lists.get_mut(&list) else { return };
        let (context, recorded) = (known.context, std::mem::take(&mut known.recorded));
        for operation in recorded.into_iter().filter(|operation| operation.is_ours) {
            read_before_end(hub, ze, state, operation.event);
            state.events.give_back(ze, context, operation.event);
        }
    });
}

/// An operation is about to be appended to a list.
pub(super) unsafe fn before_append(
    arguments: *const *mut usize,
    event_at: usize,
    kind: u32,
    bytes: u64,
    name: impl FnOnce() -> String,
) {
    let _ = RECORDING.try_with(|recording| recording.set(None));
    let Some(hub) = hub().filter(|_| !is_own()) else { return };
    // SAFETY: the first argument is the list.
    let list = unsafe { argument(arguments, 0) };
    let what = KindAndName::new(kind, hub.name(&name()));
    let start = clocks::now();
    let _ = CALL_START.try_with(|call| call.set(start));
    with(|ze, state| {
        let Some(known) = state.lists.get_mut(&list) else { return };
        let index = known.next;
        known.next += 1;
        let about_list = known.clone_head();
        // SAFETY: the argument is the event, which may be changed.
        let event = unsafe { argument(arguments, event_at) };
        let is_ours = event == 0;
        if about_list.is_immediate && !is_ours {
            // The event is reused: its previous operation is read now or never.
            read_before_end(hub, ze, state, event);
        }
        let event = if is_ours { state.events.take(ze, about_list.context) } else { event };
        if event == 0 {
            return;
        }
        // SAFETY: as above.
        unsafe { **arguments.add(event_at) = event };
        let recorded = Recorded { index, event, is_ours, what, bytes };
        if about_list.is_immediate {
            let queue = queue_key(&about_list, list);
            let pending = announce(hub, state, &about_list, list, queue, 0, &recorded, start);
            let _ = SUBMITTING.try_with(|submitting| *submitting.borrow_mut() = vec![pending]);
        } else {
            let _ = RECORDING.try_with(|recording| recording.set(Some((list, recorded))));
        }
    });
}

/// An operation was appended: it runs now, or is part of the list.
pub(super) unsafe extern "C" fn after_append(
    arguments: *const *mut usize,
    result: i32,
    user: *mut c_void,
    instance: *mut *mut c_void,
) {
    if is_own() {
        return;
    }
    let recorded = RECORDING.try_with(Cell::take).ok().flatten();
    if let Some((list, recorded)) = recorded {
        with(|ze, state| {
            let Some(known) = state.lists.get_mut(&list) else { return };
            if result == SUCCESS {
                known.recorded.push(recorded);
            } else if recorded.is_ours {
                let context = known.context;
                state.events.give_back(ze, context, recorded.event);
            }
        });
        return;
    }
    // SAFETY: as the tracing layer's.
    unsafe { after_submission(arguments, result, user, instance) };
}

/// Lists are about to be executed.
pub(super) unsafe extern "C" fn before_execute(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let Some(hub) = hub().filter(|_| !is_own()) else { return };
    let start = clocks::now();
    let _ = CALL_START.try_with(|call| call.set(start));
    // SAFETY: arguments are the queue, a count of 32 bits, and so many lists.
    let (queue, lists) = unsafe {
        let count = (*arguments.add(1)).cast::<u32>().read() as usize;
        let lists = argument(arguments, 2) as *const usize;
        let lists = if lists.is_null() { &[] } else { std::slice::from_raw_parts(lists, count) };
        (argument(arguments, 0), lists)
    };
    let mut submitting = Vec::new();
    for list in lists {
        with(|ze, state| {
            let Some(known) = state.lists.get_mut(list) else { return };
            known.executions += 1;
            let (about_list, recorded) = (known.clone_head(), known.recorded.clone());
            for operation in &recorded {
                // A previous execution is read; its event starts anew.
                read_before_end(hub, ze, state, operation.event);
                if operation.is_ours {
                    // SAFETY: the event is ours.
                    unsafe { (ze.event_reset)(operation.event) };
                }
                let key = queue_key(&about_list, queue);
                let execution = about_list.executions;
                submitting.push(announce(hub, state, &about_list, *list, key, execution, operation, start));
            }
        });
    }
    let _ = SUBMITTING.try_with(|place| *place.borrow_mut() = submitting);
}

/// The announced operations have been submitted, or the call has failed.
pub(super) unsafe extern "C" fn after_submission(
    _: *const *mut usize,
    result: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let Some(hub) = hub().filter(|_| !is_own()) else { return };
    let submitted = SUBMITTING.try_with(|place| std::mem::take(&mut *place.borrow_mut())).unwrap_or_default();
    let Some(first) = submitted.first().map(|pending| pending.operation) else { return };
    let start = CALL_START.try_with(Cell::get).unwrap_or(0);
    let what = KindAndName::new(kind::SUBMITTING_CALL, hub.name("submission to Level Zero"));
    if result != SUCCESS {
        for pending in &submitted {
            CORRELATOR.withdraw(hub, pending.id, pending.operation);
        }
        with(|ze, state| {
            for pending in submitted.iter().filter(|pending| pending.give_back) {
                state.events.give_back(ze, pending.context, pending.event);
            }
        });
    } else {
        let mut last = FxHashMap::default();
        submitted.iter().enumerate().for_each(|(place, pending)| {
            last.insert(pending.event, place);
        });
        // If several operations share an event, only the last one's times can be read.
        let (readable, others): (Vec<_>, Vec<_>) =
            submitted.into_iter().enumerate().partition(|(place, pending)| last[&pending.event] == *place);
        others.iter().for_each(|(_, pending)| finish(hub, pending, 0, 0));
        with(|_, state| state.pending.extend(readable.into_iter().map(|(_, pending)| pending)));
        let operation = Some((first.queue, first.seq));
        hub.call(Call { tid: tid(), start, end: clocks::now(), what, operation });
    }
}

pub(super) unsafe extern "C" fn before_wait(
    _: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let _ = CALL_START.try_with(|call| call.set(clocks::now()));
}

fn waited(name: &str, kind: u32) {
    if let Some(hub) = hub().filter(|_| !is_own()) {
        let start = CALL_START.try_with(Cell::get).unwrap_or(0);
        let what = KindAndName::new(kind, hub.name(name));
        hub.call(Call { tid: tid(), start, end: clocks::now(), what, operation: None });
        look();
    }
}

/// Callbacks after waiting calls.
macro_rules! after_wait {
    ($($function:ident: $name:literal, $kind:ident;)*) => {$(
        pub(super) unsafe extern "C" fn $function(_: *const *mut usize, _: i32, _: *mut c_void, _: *mut *mut c_void) {
            waited($name, kind::$kind);
        }
    )*};
}

after_wait! {
    after_queue_wait: "zeCommandQueueSynchronize", WAITING_CALL;
    after_event_wait: "zeEventHostSynchronize", WAITING_CALL;
    after_fence_wait: "zeFenceHostSynchronize", WAITING_CALL;
    after_list_wait: "zeCommandListHostSynchronize", WAITING_CALL;
    // The device waits, not the host.
    after_wait_on_events: "zeCommandListAppendWaitOnEvents", OTHER_CALL;
}
