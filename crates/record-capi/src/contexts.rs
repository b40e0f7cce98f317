//! The functions of `taskscope.h` for runtimes that instrument themselves. Inline code calls them with events
//! that it cannot store.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;

use taskscope_event::Code;
use taskscope_event::models::instrument as i;
use taskscope_record::instrument;
use taskscope_record::instrument::named::{self, Site};
use taskscope_record::thread::ThreadRecorder;

use crate::not_wanted;

/// # Safety
/// `text` points to a NUL-terminated string, or is null.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: by contract.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// The number of the key `name`; 0 while it is off.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_key(name: *const c_char, description: *const c_char, level: u32) -> u32 {
    // SAFETY: by contract.
    let (name, description) = unsafe { (bytes(name), bytes(description)) };
    instrument::named::key(name, description, level).unwrap_or(0)
}

/// Returns the number of the key `name`, with a unit; its bursts nest if `stacked` is not 0. 0 while it is
/// off.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_key_of(
    name: *const c_char,
    description: *const c_char,
    level: u32,
    unit: *const c_char,
    stacked: c_int,
) -> u32 {
    // SAFETY: by contract.
    let (name, description, unit) = unsafe { (bytes(name), bytes(description), bytes(unit)) };
    instrument::named::key_of(name, description, level, unit, stacked != 0).unwrap_or(0)
}

/// Returns the number of a key that is registered elsewhere, for this line; 0 while it is unregistered or
/// off.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_find_key_(name: *const c_char, file: *const c_char, line: u32) -> u32 {
    // SAFETY: by contract.
    let (name, file) = unsafe { (bytes(name), bytes(file)) };
    instrument::named::find_key(name, file, line).unwrap_or(0)
}

/// A named value of `key`.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_key_value(
    key: u32,
    name: *const c_char,
    description: *const c_char,
) -> u64 {
    // SAFETY: by contract.
    let (name, description) = unsafe { (bytes(name), bytes(description)) };
    if key == 0 { 0 } else { instrument::named::value(key, name, description) }
}

/// Gives a value of `key` a name.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_name_value(
    key: u32,
    value: u64,
    name: *const c_char,
    description: *const c_char,
) {
    // SAFETY: by contract.
    let (name, description) = unsafe { (bytes(name), bytes(description)) };
    if key != 0 {
        instrument::named::name_value(key, value, name, description);
    }
}

/// The number of a state, plus one; 0 while it is off.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_state(name: *const c_char, description: *const c_char, class: u32) -> u32 {
    // SAFETY: by contract.
    let (name, description) = unsafe { (bytes(name), bytes(description)) };
    instrument::named::state(name, description, class).map_or(0, |number| number + 1)
}

/// The number of a message domain, plus one; 0 while it is off.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_domain(name: *const c_char, description: *const c_char) -> u32 {
    // SAFETY: by contract.
    let (name, description) = unsafe { (bytes(name), bytes(description)) };
    instrument::named::domain(name, description).map_or(0, |number| number + 1)
}

/// The number of a kind of tasks; 0 while it is off.
///
/// # Safety
/// The texts are NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_task_kind(name: *const c_char, file: *const c_char, line: u32) -> u32 {
    // SAFETY: by contract.
    let (name, file) = unsafe { (bytes(name), bytes(file)) };
    instrument::named::task_kind(name, file, line).unwrap_or(0)
}

/// Begins a site's lookup, which is repeated after changes of names. Returns the state of names before the
/// lookup; 0 without listeners.
///
/// # Safety
/// `site` is a static of `taskscope.h`'s struct, which is a [`Site`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_site_asks_(site: *const Site) -> u64 {
    // SAFETY: by contract; its module stays from here on.
    let site: &'static Site = unsafe { &*site };
    if site.list() {
        keep_module_of(site);
    }
    let asked = named::asked();
    if !named::has_receivers() {
        site.keep(asked, None);
        return 0;
    }
    1 << 32 | u64::from(asked)
}

/// Stores the result of a site's lookup, 0 for off, and returns it.
///
/// # Safety
/// As of [`taskscope_site_asks_`], which returned `asked`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_site_keeps_(site: *const Site, asked: u64, number: u32) -> u32 {
    // SAFETY: by contract.
    let site: &'static Site = unsafe { &*site };
    // The header's number is one more than that of a Rust site.
    site.keep(asked as u32, number.checked_sub(1));
    number
}

/// A module that is unloaded would leave its sites in the list.
fn keep_module_of(site: &'static Site) {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is in a loaded module; the result of `dladdr` is read only on success; the name
    // lives as long as the module, which is loaded while its code runs.
    unsafe {
        if libc::dladdr(core::ptr::from_ref(site).cast(), info.as_mut_ptr()) != 0 {
            let name = info.assume_init().dli_fname;
            libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// Enables all names that begin with `prefix`, or disables them.
///
/// # Safety
/// The text is NUL-terminated, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_set_enabled(prefix: *const c_char, enabled: c_int) {
    // SAFETY: by contract.
    let prefix = String::from_utf8_lossy(unsafe { bytes(prefix) });
    instrument::set_enabled(&prefix, enabled != 0);
}

/// A number for a new task.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_context_number_() -> u64 {
    instrument::named::next_task()
}

/// Stores an event that the inline code could not store, and returns the thread's recorder for the next, or
/// [`not_wanted`] for one that is not wanted.
///
/// # Safety
/// `payload` points to `bytes` bytes, at most 16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_raise_(
    head: u32,
    payload: *const c_void,
    bytes: u32,
    is_end: u32,
) -> *mut ThreadRecorder {
    let [_, model, category, value] = head.to_le_bytes();
    // SAFETY: by contract.
    let payload = unsafe { core::slice::from_raw_parts(payload.cast::<u8>(), bytes.min(16) as usize) };
    if !instrument::raise(Code([model, category, value]), payload, is_end != 0) && is_end == 0 {
        return not_wanted();
    }
    taskscope_record::thread::address() as *mut ThreadRecorder
}

/// A pair of key and value.
#[repr(C, packed)]
pub struct Pair {
    key: u32,
    value: u64,
}

/// Several pairs as one record.
///
/// # Safety
/// `pairs` points to `count` pairs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_composite(pairs: *const Pair, count: usize) {
    if pairs.is_null() || count == 0 {
        return;
    }
    // SAFETY: by contract.
    let pairs = unsafe { core::slice::from_raw_parts(pairs, count) };
    let mut data = Vec::with_capacity(pairs.len() * i::PAIR_BYTES);
    for pair in pairs.iter().filter(|pair| pair.key != 0) {
        data.extend_from_slice(&{ pair.key }.to_le_bytes());
        data.extend_from_slice(&{ pair.value }.to_le_bytes());
    }
    if !data.is_empty() {
        instrument::raise_data(i::COMPOSITE, &data);
    }
}

fn message(task: Option<u64>, code: Code, [domain, partner, key]: [u32; 3], id: u64, value: u64) {
    if domain == 0 || task == Some(0) {
        return;
    }
    let mut data = Vec::with_capacity(36);
    if let Some(task) = task {
        data.extend_from_slice(&task.to_le_bytes());
    }
    data.extend_from_slice(&(domain - 1).to_le_bytes());
    data.extend_from_slice(&partner.to_le_bytes());
    data.extend_from_slice(&id.to_le_bytes());
    data.extend_from_slice(&key.to_le_bytes());
    data.extend_from_slice(&value.to_le_bytes());
    instrument::raise_data(code, &data);
}

/// Records the sending half of a message.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_send(domain: u32, id: u64, key: u32, value: u64, partner: u32) {
    message(None, i::SEND, [domain, partner, key], id, value);
}

/// Records the receiving half of a message.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_receive(domain: u32, id: u64, key: u32, value: u64, partner: u32) {
    message(None, i::RECEIVE, [domain, partner, key], id, value);
}

/// [`taskscope_send`] as seen when `task` next runs.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_send_later(task: u64, domain: u32, id: u64, key: u32, value: u64, partner: u32) {
    message(Some(task), i::DEFERRED_SEND, [domain, partner, key], id, value);
}

/// [`taskscope_receive`] as seen when `task` next runs.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_receive_later(
    task: u64,
    domain: u32,
    id: u64,
    key: u32,
    value: u64,
    partner: u32,
) {
    message(Some(task), i::DEFERRED_RECEIVE, [domain, partner, key], id, value);
}

/// A point as seen when `task` next runs.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_point_later(task: u64, key: u32, value: u64) {
    if task != 0 && key != 0 {
        let data = [&task.to_le_bytes()[..], &key.to_le_bytes(), &value.to_le_bytes()].concat();
        instrument::raise_data(i::DEFERRED_POINT, &data);
    }
}
