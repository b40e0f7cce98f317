//! The functions that ITT's static parts call.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering::*;

use taskscope_record::{instrument::named, os_thread};

use super::abi::{Domain, Id, StringHandle, relation};
use super::handles::{self, Counter};
use super::host::host;
use super::{frames, ids, sync_objects};
use crate::attach;
use crate::cached::Cached;
use crate::names::Names;
use crate::stack::{Recorded, StateKind};
use crate::text::bytes;
use crate::{overlapped, stack};

/// A function's address for the table of a static part.
struct Function(&'static [u8], *const c_void);

// SAFETY: addresses of functions.
unsafe impl Sync for Function {}

macro_rules! functions {
    ($($function:ident $(as $($alias:ident)+)?),* $(,)?) => {
        static FUNCTIONS: &[Function] = &[
            $(
                Function(stringify!($function).as_bytes(), $function as *const c_void),
                $($(Function(stringify!($alias).as_bytes(), $function as *const c_void),)+)?
            )*
        ];
    };
}

functions! {
    domain_create as domain_createA,
    string_handle_create as string_handle_createA,
    task_begin,
    task_begin_ex,
    task_begin_fn,
    task_begin_fn_ex,
    task_end as task_end_ex,
    task_begin_overlapped,
    task_begin_overlapped_ex,
    task_end_overlapped,
    task_end_overlapped_ex,
    region_begin,
    region_end,
    task_group,
    frame_begin_v3,
    frame_end_v3,
    frame_create as frame_createA,
    frame_begin,
    frame_end,
    event_create as event_createA,
    event_start,
    event_end,
    marker,
    marker_ex,
    metadata_add,
    metadata_str_add as metadata_str_addA,
    relation_add,
    counter_create as counter_createA,
    counter_create_typed as counter_create_typedA,
    counter_create_v3 as counter_createA_v3,
    counter_inc,
    counter_inc_delta,
    counter_dec,
    counter_dec_delta,
    counter_set_value as counter_set_value_v3,
    counter_set_value_ex,
    counter_inc_v3,
    counter_inc_delta_v3,
    counter_dec_v3,
    counter_dec_delta_v3,
    sync_create as sync_createA sync_set_name sync_set_nameA,
    sync_rename as sync_renameA,
    sync_prepare as notify_sync_prepare fsync_prepare,
    sync_acquired as notify_sync_acquired fsync_acquired sync_cancel notify_sync_cancel fsync_cancel,
    stack_caller_create,
    stack_callee_enter,
    stack_callee_leave,
    thread_set_name as thread_set_nameA,
    pause,
    resume,
    pause_scoped,
    resume_scoped,
}

/// The recorded function with this name, without prefix.
pub fn find(name: &[u8]) -> Option<*const c_void> {
    FUNCTIONS.iter().find(|function| function.0 == name).map(|function| function.1)
}

/// The target of a pointer; `None` for null.
///
/// # Safety
/// `pointer` is null, or valid for the whole process: a handle of ITT.
unsafe fn handle<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: by contract.
    unsafe { pointer.as_ref() }
}

// Names.

unsafe extern "C" fn domain_create(name: *const c_char) -> *mut Domain {
    // SAFETY: ITT passes a C string.
    handles::domain(unsafe { bytes(name) })
}

unsafe extern "C" fn thread_set_name(name: *const c_char) {
    attach::thread();
    // SAFETY: ITT passes a C string.
    os_thread::report_name(os_thread::os_tid(), unsafe { bytes(name) });
}

unsafe extern "C" fn string_handle_create(text: *const c_char) -> *mut StringHandle {
    // SAFETY: ITT passes a C string.
    handles::string(unsafe { bytes(text) })
}

/// The state of a task. oneTBB passes the text `null` for tasks that have an id alone.
///
/// # Safety
/// The pointers are handles of ITT, or null.
unsafe fn state_of_task(domain: *const Domain, id: Id, name: *const StringHandle) -> Option<u32> {
    // SAFETY: by contract.
    let (domain, name) = unsafe { (handle(domain), handle(name)) };
    // SAFETY: as above.
    let text = name.map_or(&b""[..], |name| unsafe { name.bytes() });
    let text = if text == b"null" { b"" } else { text };
    ids::state(id, text).or_else(|| match name.filter(|_| !text.is_empty()) {
        Some(name) => name.numbers().state.number(|| handles::task_state(text)),
        None => {
            // SAFETY: names of domains are C strings.
            let domain = domain.map_or(&b"ITT"[..], |domain| unsafe { bytes(domain.name) });
            handles::task_state(&[b"task of ", domain].concat())
        }
    })
}

// Tasks.

unsafe extern "C" fn task_begin(domain: *const Domain, id: Id, _parent: Id, name: *const StringHandle) {
    // SAFETY: ITT passes its handles.
    stack::begin(StateKind::Task, 0, || Recorded::state(unsafe { state_of_task(domain, id, name) }));
}

unsafe extern "C" fn task_begin_ex(
    domain: *const Domain,
    _clock: *const c_void,
    _time: u64,
    id: Id,
    parent: Id,
    name: *const StringHandle,
) {
    // SAFETY: as of this function.
    unsafe { task_begin(domain, id, parent, name) }
}

unsafe extern "C" fn task_begin_fn(domain: *const Domain, id: Id, _parent: Id, _function: *const c_void) {
    stack::begin(StateKind::Task, 0, || {
        // SAFETY: ITT passes its handles.
        Recorded::state(unsafe { state_of_task(domain, id, core::ptr::null()) })
    });
}

unsafe extern "C" fn task_begin_fn_ex(
    domain: *const Domain,
    _clock: *const c_void,
    _time: u64,
    id: Id,
    parent: Id,
    function: *const c_void,
) {
    // SAFETY: as of this function.
    unsafe { task_begin_fn(domain, id, parent, function) }
}

unsafe extern "C" fn task_end(_domain: *const Domain) {
    stack::end(StateKind::Task, 0);
}

/// Begins an interval of this kind.
///
/// # Safety
/// `name` is a handle of ITT, or null.
unsafe fn begin_overlapped(kind: overlapped::IntervalKind, id: Id, name: *const StringHandle) {
    // SAFETY: by contract.
    let key = unsafe { handle(name) }.and_then(|name| {
        // SAFETY: as above.
        let ask = || handles::interval_key(unsafe { name.bytes() }, b"interval reported through ITT");
        name.numbers().interval.number(ask)
    });
    if let Some(key) = key {
        overlapped::begin((kind, id.words), key, 1);
    }
}

unsafe extern "C" fn task_begin_overlapped(
    _domain: *const Domain,
    id: Id,
    _parent: Id,
    name: *const StringHandle,
) {
    // SAFETY: as of this function.
    unsafe { begin_overlapped(overlapped::IntervalKind::Task, id, name) }
}

unsafe extern "C" fn task_begin_overlapped_ex(
    _domain: *const Domain,
    _clock: *const c_void,
    _time: u64,
    id: Id,
    _parent: Id,
    name: *const StringHandle,
) {
    // SAFETY: as of this function.
    unsafe { begin_overlapped(overlapped::IntervalKind::Task, id, name) }
}

unsafe extern "C" fn task_end_overlapped(_domain: *const Domain, id: Id) {
    overlapped::end((overlapped::IntervalKind::Task, id.words));
}

unsafe extern "C" fn task_end_overlapped_ex(
    _domain: *const Domain,
    _clock: *const c_void,
    _time: u64,
    id: Id,
) {
    overlapped::end((overlapped::IntervalKind::Task, id.words));
}

unsafe extern "C" fn region_begin(_domain: *const Domain, id: Id, _parent: Id, name: *const StringHandle) {
    // SAFETY: as of this function.
    unsafe { begin_overlapped(overlapped::IntervalKind::Region, id, name) }
}

unsafe extern "C" fn region_end(_domain: *const Domain, id: Id) {
    overlapped::end((overlapped::IntervalKind::Region, id.words));
}

// Objects known by ids.

unsafe extern "C" fn task_group(_domain: *const Domain, id: Id, parent: Id, name: *const StringHandle) {
    // SAFETY: ITT passes its handles.
    if let Some(text) = unsafe { handle(name).map(|name| name.bytes()) } {
        ids::name_kind(id, text);
    }
    ids::set_parent(id, parent);
}

unsafe extern "C" fn relation_add(_domain: *const Domain, head: Id, relation: u32, tail: Id) {
    match relation {
        relation::IS_PARENT_OF => ids::set_parent(tail, head),
        relation::IS_CHILD_OF => ids::set_parent(head, tail),
        _ => {}
    }
}

unsafe extern "C" fn metadata_str_add(
    _domain: *const Domain,
    id: Id,
    key: *const StringHandle,
    text: *const c_char,
    length: usize,
) {
    /// Longest recorded name.
    const MAX_LENGTH: usize = 1_024;
    // SAFETY: ITT passes its handles.
    let key = unsafe { handle(key).map(|key| key.bytes()) };
    if !text.is_null() && matches!(key, Some(b"object_name" | b"name")) {
        let text = match length {
            // SAFETY: without a length, ITT passes a C string.
            0 => unsafe { bytes(text) },
            // SAFETY: ITT passes so many bytes.
            length => unsafe { core::slice::from_raw_parts(text.cast::<u8>(), length.min(MAX_LENGTH)) },
        };
        ids::name(id, text.split(|byte| *byte == 0).next().unwrap_or_default());
    }
}

unsafe extern "C" fn metadata_add(
    _domain: *const Domain,
    _id: Id,
    key: *const StringHandle,
    value_type: u32,
    count: usize,
    data: *const u8,
) {
    // SAFETY: ITT passes its handles.
    let key = unsafe { handle(key) };
    // SAFETY: ITT passes so many values of this type.
    let value = if count == 0 { None } else { unsafe { handles::number_at(value_type, data) } };
    if let (Some(key), Some(value)) = (key, value) {
        point(key, value);
    }
}

// Frames.

/// The id of a frame, which may be absent.
///
/// # Safety
/// `id` is null or valid.
unsafe fn frame_id(id: *const Id) -> Id {
    // SAFETY: by contract.
    unsafe { id.as_ref() }.copied().unwrap_or_default()
}

unsafe extern "C" fn frame_begin_v3(domain: *const Domain, id: *const Id) {
    // SAFETY: ITT passes its handles.
    if let Some(domain) = unsafe { handle(domain) } {
        // SAFETY: as above.
        frames::begin(domain, unsafe { frame_id(id) });
    }
}

unsafe extern "C" fn frame_end_v3(domain: *const Domain, id: *const Id) {
    // SAFETY: ITT passes its handles.
    if let Some(domain) = unsafe { handle(domain) } {
        // SAFETY: as above.
        frames::end(domain, unsafe { frame_id(id) });
    }
}

/// Frames of the former interface are those of a domain without ids.
unsafe extern "C" fn frame_create(domain: *const c_char) -> *mut Domain {
    // SAFETY: as of this function.
    unsafe { domain_create(domain) }
}

unsafe extern "C" fn frame_begin(frame: *const Domain) {
    // SAFETY: as of this function.
    unsafe { frame_begin_v3(frame, core::ptr::null()) }
}

unsafe extern "C" fn frame_end(frame: *const Domain) {
    // SAFETY: as of this function.
    unsafe { frame_end_v3(frame, core::ptr::null()) }
}

// User events, markers.

unsafe extern "C" fn event_create(name: *const c_char, length: c_int) -> c_int {
    // SAFETY: ITT passes a C string.
    let name = unsafe { bytes(name) };
    handles::event(name.get(..usize::try_from(length).unwrap_or(0)).unwrap_or(name))
}

unsafe extern "C" fn event_start(event: c_int) -> c_int {
    if let Some(key) = handles::find_event(event).and_then(|event| event.key()) {
        named::open_burst(key, 1);
    }
    0
}

unsafe extern "C" fn event_end(event: c_int) -> c_int {
    if let Some(key) = handles::find_event(event).and_then(|event| event.key()) {
        named::close_burst(key, 1);
    }
    0
}

/// Records a moment on the key with this name.
fn point(name: &StringHandle, value: u64) {
    // SAFETY: a handle of ITT.
    let ask = || handles::key(unsafe { name.bytes() }, b"marker or metadata reported through ITT");
    if let Some(key) = name.numbers().point.number(ask) {
        named::point(key, value);
    }
}

unsafe extern "C" fn marker(_domain: *const Domain, _id: Id, name: *const StringHandle, scope: c_int) {
    // SAFETY: ITT passes its handles.
    if let Some(name) = unsafe { handle(name) } {
        point(name, scope as u64);
    }
}

unsafe extern "C" fn marker_ex(
    domain: *const Domain,
    _clock: *const c_void,
    _time: u64,
    id: Id,
    name: *const StringHandle,
    scope: c_int,
) {
    // SAFETY: as of this function.
    unsafe { marker(domain, id, name, scope) }
}

// Counters.

unsafe extern "C" fn counter_create(name: *const c_char, domain: *const c_char) -> *mut Counter {
    // SAFETY: as of this function.
    unsafe { counter_create_typed(name, domain, super::abi::value_type::U64) }
}

unsafe extern "C" fn counter_create_typed(
    name: *const c_char,
    domain: *const c_char,
    value_type: u32,
) -> *mut Counter {
    // SAFETY: ITT passes C strings.
    let (name, domain) = unsafe { (bytes(name), bytes(domain)) };
    handles::counter(domain, name, value_type)
}

unsafe extern "C" fn counter_create_v3(
    domain: *const Domain,
    name: *const c_char,
    value_type: u32,
) -> *mut Counter {
    // SAFETY: ITT passes its handles and a C string.
    let domain = unsafe { handle(domain) }.map_or(core::ptr::null(), |domain| domain.name);
    // SAFETY: as above.
    unsafe { counter_create_typed(name, domain, value_type) }
}

unsafe extern "C" fn counter_inc(counter: *const Counter) {
    // SAFETY: as of this function.
    unsafe { counter_inc_delta(counter, 1) }
}

unsafe extern "C" fn counter_inc_delta(counter: *const Counter, difference: u64) {
    // SAFETY: ITT passes its handles.
    if let Some(counter) = unsafe { handle(counter) } {
        counter.add(difference);
    }
}

unsafe extern "C" fn counter_dec(counter: *const Counter) {
    // SAFETY: as of this function.
    unsafe { counter_inc_delta(counter, 1_u64.wrapping_neg()) }
}

unsafe extern "C" fn counter_dec_delta(counter: *const Counter, difference: u64) {
    // SAFETY: as of this function.
    unsafe { counter_inc_delta(counter, difference.wrapping_neg()) }
}

unsafe extern "C" fn counter_set_value(counter: *const Counter, value: *const u8) {
    // SAFETY: ITT passes its handles, and a value of the counter's type.
    if let Some(counter) = unsafe { handle(counter) } {
        // SAFETY: as above.
        unsafe { counter.set(value) };
    }
}

unsafe extern "C" fn counter_set_value_ex(
    counter: *const Counter,
    _clock: *const c_void,
    _time: u64,
    value: *const u8,
) {
    // SAFETY: as of this function.
    unsafe { counter_set_value(counter, value) }
}

/// The counter with this name in a domain, looked up without a lock after its first use.
///
/// # Safety
/// The handles are ITT's.
unsafe fn counter_of_handles(domain: &Domain, name: &StringHandle) -> *const Counter {
    static COUNTERS: Names<4_096> = Names::new();
    let handles = [core::ptr::from_ref(domain).addr() as u64, core::ptr::from_ref(name).addr() as u64];
    let known = COUNTERS.find(handles, b"").map(|(numbers, _)| &numbers.total);
    match known.map_or(0, |known| known.load(Acquire)) {
        0 => {
            // SAFETY: by contract.
            let counter =
                unsafe { counter_create_typed(name.text, domain.name, super::abi::value_type::U64) };
            if let Some(known) = known {
                known.store(counter.expose_provenance() as u64, Release);
            }
            counter
        }
        address => core::ptr::with_exposed_provenance(address as usize),
    }
}

unsafe extern "C" fn counter_inc_v3(domain: *const Domain, name: *const StringHandle) {
    // SAFETY: as of this function.
    unsafe { counter_inc_delta_v3(domain, name, 1) }
}

unsafe extern "C" fn counter_inc_delta_v3(domain: *const Domain, name: *const StringHandle, difference: u64) {
    // SAFETY: ITT passes its handles.
    let (domain, name) = unsafe { (handle(domain), handle(name)) };
    if let (Some(domain), Some(name)) = (domain, name) {
        // SAFETY: both live for the process, and so does the counter.
        unsafe { counter_inc_delta(counter_of_handles(domain, name), difference) };
    }
}

unsafe extern "C" fn counter_dec_v3(domain: *const Domain, name: *const StringHandle) {
    // SAFETY: as of this function.
    unsafe { counter_inc_delta_v3(domain, name, 1_u64.wrapping_neg()) }
}

unsafe extern "C" fn counter_dec_delta_v3(domain: *const Domain, name: *const StringHandle, difference: u64) {
    // SAFETY: as of this function.
    unsafe { counter_inc_delta_v3(domain, name, difference.wrapping_neg()) }
}

// Synchronisation objects.

unsafe extern "C" fn sync_create(
    object: *const c_void,
    object_type: *const c_char,
    name: *const c_char,
    _attribute: c_int,
) {
    // SAFETY: ITT passes C strings.
    let (object_type, name) = unsafe { (bytes(object_type), bytes(name)) };
    sync_objects::name(object.addr(), if name.is_empty() { object_type } else { name });
}

unsafe extern "C" fn sync_rename(object: *const c_void, name: *const c_char) {
    // SAFETY: ITT passes a C string.
    sync_objects::name(object.addr(), unsafe { bytes(name) });
}

/// A thread that spins prepares again and again.
unsafe extern "C" fn sync_prepare(object: *const c_void) {
    if !stack::is_waiting_for(object.addr()) {
        stack::begin(StateKind::Wait, object.addr(), || {
            Recorded::state(sync_objects::waiting_state(object.addr()))
        });
    }
}

unsafe extern "C" fn sync_acquired(object: *const c_void) {
    stack::end(StateKind::Wait, object.addr());
}

// Stitched stacks.

unsafe extern "C" fn stack_caller_create() -> *mut c_void {
    /// Callers differ by their addresses alone.
    static NEXT: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(1);
    core::ptr::without_provenance_mut(NEXT.fetch_add(1, core::sync::atomic::Ordering::Relaxed))
}

unsafe extern "C" fn stack_callee_enter(caller: *const c_void) {
    static KIND: Cached = Cached::new();
    stack::begin(StateKind::Callee, caller.addr(), || {
        Recorded::task(KIND.number(|| named::task_kind(b"parallel algorithm", b"", 0)))
    });
}

unsafe extern "C" fn stack_callee_leave(caller: *const c_void) {
    stack::end(StateKind::Callee, caller.addr());
}

// Control.

unsafe extern "C" fn pause() {
    if let Some(host) = host() {
        (host.set_paused)(true);
    }
}

unsafe extern "C" fn resume() {
    if let Some(host) = host() {
        (host.set_paused)(false);
    }
}

unsafe extern "C" fn pause_scoped(_scope: c_int) {
    // SAFETY: no preconditions.
    unsafe { pause() }
}

unsafe extern "C" fn resume_scoped(_scope: c_int) {
    // SAFETY: no preconditions.
    unsafe { resume() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_under_all_of_their_names() {
        assert_eq!(find(b"task_begin").map(|f| f.addr()), Some(task_begin as *const () as usize));
        assert!(find(b"fsync_cancel").is_some() && find(b"domain_createA").is_some());
        assert!(find(b"heap_allocate_begin").is_none() && find(b"").is_none());
    }
}
