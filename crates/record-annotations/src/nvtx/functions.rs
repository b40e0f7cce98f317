//! The functions that NVTX's headers call, in the order of their numbers there.

use core::ffi::{c_char, c_int, c_void};

use taskscope_record::os_thread;

use super::abi::{Attributes, CALLBACKS, GetTable, Message};
use crate::attach;

use super::{Event, Handle, Use, end, handle, name_category, pop};

/// The default domain.
const DEFAULT: *const Handle = core::ptr::null();

/// A function's address; null for one that is not recorded.
#[derive(Clone, Copy)]
struct Function(*const c_void);

// SAFETY: addresses of functions.
unsafe impl Sync for Function {}

macro_rules! functions {
    ($name:ident, $($function:expr),* $(,)?) => {
        static $name: &[Function] = &[$(Function($function as *const c_void)),*];
    };
}

const NOTHING: *const c_void = core::ptr::null();

functions! {
    CORE, NOTHING, mark_ex, mark, mark_wide, range_start_ex, range_start, range_start_wide, range_end, range_push_ex,
    range_push, range_push_wide, range_pop, category, category_wide, name_thread, name_thread_wide,
}

functions! {
    CORE_OF_DOMAINS, NOTHING, domain_mark, domain_range_start, domain_range_end, domain_range_push, domain_range_pop,
    NOTHING, NOTHING, domain_category, domain_category_wide, register, register_wide, domain_create, domain_create_wide,
}

/// Numbers of the header's modules, with their functions.
static MODULES: [(u32, &[Function]); 2] = [(1, CORE), (5, CORE_OF_DOMAINS)];

/// Fills the functions of a module's header. Returns whether it has any.
///
/// # Safety
/// `get_table` is null, or the argument of `InitializeInjectionNvtx2`.
pub unsafe fn connect(get_table: Option<GetTable>) -> bool {
    let Some(get_table) = get_table else { return false };
    // SAFETY: by contract; the table is the header's, or null.
    let Some(find) = (unsafe { get_table(CALLBACKS).as_ref() })
        .filter(|table| table.size >= size_of_val(*table))
        .and_then(|table| table.functions)
    else {
        return false;
    };
    let mut is_connected = false;
    for (module, functions) in MODULES {
        let (mut places, mut count) = (core::ptr::null(), 0);
        // SAFETY: the header stores an array and its length.
        if unsafe { find(module, &mut places, &mut count) } == 0 || places.is_null() {
            continue;
        }
        for (index, function) in functions.iter().enumerate().take(count as usize) {
            // SAFETY: the array has `count` places, each null or that of a function.
            let place = unsafe { *places.add(index) };
            if !place.is_null() && !function.0.is_null() {
                // SAFETY: as above; the header calls this once, before other threads use its functions.
                unsafe { *place = function.0 };
                is_connected = true;
            }
        }
    }
    is_connected
}

/// Uses the event of these attributes; `None` without any.
///
/// # Safety
/// `attributes` is null, or the program's.
unsafe fn described<R>(
    domain: *const Handle,
    attributes: *const Attributes,
    used: impl FnOnce(Event<'_>) -> R,
) -> Option<R> {
    // SAFETY: by contract.
    let attributes = unsafe { attributes.as_ref() }?;
    // SAFETY: as above.
    let message = unsafe { attributes.message() };
    let (category, payload) = (attributes.category(), attributes.payload());
    Some(used(Event { domain, category, message: message.bytes(), payload }))
}

/// Uses an event that is a message alone.
fn plain<R>(message: &Message<'_>, used: impl FnOnce(Event<'_>) -> R) -> R {
    used(Event { domain: DEFAULT, category: 0, message: message.bytes(), payload: 0 })
}

/// Level of a range that cannot be described.
const NO_LEVEL: c_int = -1;

unsafe extern "C" fn domain_mark(domain: *const Handle, attributes: *const Attributes) {
    // SAFETY: NVTX passes the program's attributes.
    let _ = unsafe { described(domain, attributes, |event| event.mark()) };
}

unsafe extern "C" fn domain_range_start(domain: *const Handle, attributes: *const Attributes) -> u64 {
    // SAFETY: NVTX passes the program's attributes.
    unsafe { described(domain, attributes, |event| event.start()) }.unwrap_or(0)
}

unsafe extern "C" fn domain_range_end(_domain: *const Handle, range: u64) {
    end(range);
}

unsafe extern "C" fn domain_range_push(domain: *const Handle, attributes: *const Attributes) -> c_int {
    // SAFETY: NVTX passes the program's attributes.
    unsafe { described(domain, attributes, |event| event.push()) }.unwrap_or(NO_LEVEL)
}

unsafe extern "C" fn domain_range_pop(domain: *const Handle) -> c_int {
    pop(domain)
}

unsafe extern "C" fn domain_category(domain: *const Handle, category: u32, name: *const c_char) {
    // SAFETY: NVTX passes a C string.
    name_category(domain, category, unsafe { Message::narrow(name) }.bytes());
}

unsafe extern "C" fn domain_category_wide(domain: *const Handle, category: u32, name: *const u32) {
    // SAFETY: NVTX passes a wide string.
    name_category(domain, category, unsafe { Message::wide(name) }.bytes());
}

unsafe extern "C" fn register(domain: *const Handle, text: *const c_char) -> *const Handle {
    // SAFETY: NVTX passes a C string.
    handle(Use::Registered, domain, unsafe { Message::narrow(text) }.bytes())
}

unsafe extern "C" fn register_wide(domain: *const Handle, text: *const u32) -> *const Handle {
    // SAFETY: NVTX passes a wide string.
    handle(Use::Registered, domain, unsafe { Message::wide(text) }.bytes())
}

unsafe extern "C" fn domain_create(name: *const c_char) -> *const Handle {
    // SAFETY: NVTX passes a C string.
    handle(Use::Domain, DEFAULT, unsafe { Message::narrow(name) }.bytes())
}

unsafe extern "C" fn domain_create_wide(name: *const u32) -> *const Handle {
    // SAFETY: NVTX passes a wide string.
    handle(Use::Domain, DEFAULT, unsafe { Message::wide(name) }.bytes())
}

unsafe extern "C" fn mark_ex(attributes: *const Attributes) {
    // SAFETY: as of this function.
    unsafe { domain_mark(DEFAULT, attributes) }
}

unsafe extern "C" fn range_start_ex(attributes: *const Attributes) -> u64 {
    // SAFETY: as of this function.
    unsafe { domain_range_start(DEFAULT, attributes) }
}

unsafe extern "C" fn range_push_ex(attributes: *const Attributes) -> c_int {
    // SAFETY: as of this function.
    unsafe { domain_range_push(DEFAULT, attributes) }
}

unsafe extern "C" fn range_end(range: u64) {
    end(range);
}

unsafe extern "C" fn range_pop() -> c_int {
    pop(DEFAULT)
}

unsafe extern "C" fn category(category: u32, name: *const c_char) {
    // SAFETY: as of this function.
    unsafe { domain_category(DEFAULT, category, name) }
}

unsafe extern "C" fn category_wide(category: u32, name: *const u32) {
    // SAFETY: as of this function.
    unsafe { domain_category_wide(DEFAULT, category, name) }
}

/// Names a thread by its id in the system.
fn name(thread: u32, message: &Message<'_>) {
    let thread = thread.cast_signed();
    if thread == os_thread::os_tid() {
        attach::thread();
    }
    os_thread::report_name(thread, message.bytes());
}

unsafe extern "C" fn name_thread(thread: u32, text: *const c_char) {
    // SAFETY: NVTX passes a C string.
    name(thread, &unsafe { Message::narrow(text) });
}

unsafe extern "C" fn name_thread_wide(thread: u32, text: *const u32) {
    // SAFETY: NVTX passes a wide string.
    name(thread, &unsafe { Message::wide(text) });
}

macro_rules! message_functions {
    ($($narrow:ident $wide:ident $method:ident $($result:ty)?;)*) => {$(
        unsafe extern "C" fn $narrow(message: *const c_char) $(-> $result)? {
            // SAFETY: NVTX passes a C string.
            plain(&unsafe { Message::narrow(message) }, |event| event.$method())
        }

        unsafe extern "C" fn $wide(message: *const u32) $(-> $result)? {
            // SAFETY: NVTX passes a wide string.
            plain(&unsafe { Message::wide(message) }, |event| event.$method())
        }
    )*};
}

message_functions! {
    mark mark_wide mark;
    range_start range_start_wide start u64;
    range_push range_push_wide push c_int;
}
