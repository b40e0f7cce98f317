//! Domains, strings, counters and user events: made once for each name, and never freed, as programs keep them.

use core::ffi::c_char;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock, PoisonError};

use taskscope_record::instrument::{Class, Level, named};

use super::abi::{Domain, StringHandle, value_type};
use crate::cached::Cached;
use crate::text::bytes;

/// Maximum number of handles of each kind; further names get none, and are not recorded.
const MAX_HANDLES: usize = 65_536;
/// Maximum number of user events.
const MAX_EVENTS: usize = 1_024;

/// Handles by name, as addresses.
type ByName = OnceLock<Mutex<HashMap<Vec<u8>, usize>>>;

/// The handle with this name, which `make` makes from a C string of it; null without room.
fn intern<T>(table: &'static ByName, name: &[u8], make: impl FnOnce(*const c_char) -> T) -> *mut T {
    let table = table.get_or_init(Mutex::default);
    let mut known = table.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(address) = known.get(name) {
        return core::ptr::with_exposed_provenance_mut(*address);
    }
    let text = CString::new(name).unwrap_or_default();
    if known.len() == MAX_HANDLES {
        return core::ptr::null_mut();
    }
    let handle = Box::into_raw(Box::new(make(text.into_raw())));
    known.insert(name.to_owned(), handle.expose_provenance());
    handle
}

pub fn domain(name: &[u8]) -> *mut Domain {
    static DOMAINS: ByName = OnceLock::new();
    intern(&DOMAINS, name, Domain::new)
}

pub fn string(text: &[u8]) -> *mut StringHandle {
    static STRINGS: ByName = OnceLock::new();
    intern(&STRINGS, text, StringHandle::new)
}

impl StringHandle {
    /// Its text.
    ///
    /// # Safety
    /// The handle is one that ITT made.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: texts of handles are C strings that live as long as the handles.
        unsafe { bytes(self.text) }
    }
}

/// The state of tasks called `name`.
pub fn task_state(name: &[u8]) -> Option<u32> {
    named::state(name, b"task reported through ITT", Class::Useful as u32)
}

/// The key called `name`.
pub fn key(name: &[u8], description: &[u8]) -> Option<u32> {
    named::key(name, description, Level::User as u32)
}

/// The key of intervals called `name`, which may overlap.
pub fn interval_key(name: &[u8], description: &[u8]) -> Option<u32> {
    named::key_of(name, description, Level::User as u32, b"", true)
}

/// A counter.
pub struct Counter {
    name: Vec<u8>,
    value_type: u32,
    value: AtomicU64,
    key: Cached,
}

/// The counter with this name in its domain; null without room.
pub fn counter(domain: &[u8], name: &[u8], value_type: u32) -> *mut Counter {
    static COUNTERS: ByName = OnceLock::new();
    let mut full = domain.to_owned();
    if !domain.is_empty() {
        full.extend_from_slice(b": ");
    }
    full.extend_from_slice(name);
    let made = Counter { name: full.clone(), value_type, value: AtomicU64::new(0), key: Cached::default() };
    intern(&COUNTERS, &full, |_| made)
}

impl Counter {
    fn record(&self, value: u64) {
        if let Some(key) = self.key.number(|| key(&self.name, b"counter reported through ITT")) {
            named::point(key, value);
        }
    }

    /// Adds to its value.
    pub fn add(&self, difference: u64) {
        let before = self.value.fetch_add(difference, Relaxed);
        self.record(before.wrapping_add(difference));
    }

    /// Sets its value to the one at `value`.
    ///
    /// # Safety
    /// `value` is null, or points to a value of the counter's type.
    pub unsafe fn set(&self, value: *const u8) {
        // SAFETY: by contract.
        if let Some(value) = unsafe { number_at(self.value_type, value) } {
            self.value.store(value, Relaxed);
            self.record(value);
        }
    }
}

/// The value of this type at `value`, as recorded; `None` for other types and null.
///
/// # Safety
/// `value` is null, or points to a value of this type, aligned or not.
pub unsafe fn number_at(value_type: u32, value: *const u8) -> Option<u64> {
    if value.is_null() {
        return None;
    }
    // SAFETY: by contract.
    unsafe {
        Some(match value_type {
            value_type::U64 => value.cast::<u64>().read_unaligned(),
            value_type::S64 => value.cast::<i64>().read_unaligned() as u64,
            value_type::U32 => u64::from(value.cast::<u32>().read_unaligned()),
            value_type::S32 => i64::from(value.cast::<i32>().read_unaligned()) as u64,
            value_type::U16 => u64::from(value.cast::<u16>().read_unaligned()),
            value_type::S16 => i64::from(value.cast::<i16>().read_unaligned()) as u64,
            value_type::FLOAT => value.cast::<f32>().read_unaligned().round() as i64 as u64,
            value_type::DOUBLE => value.cast::<f64>().read_unaligned().round() as i64 as u64,
            _ => return None,
        })
    }
}

/// A user event: a name with a number.
pub struct Event {
    name: Vec<u8>,
    key: Cached,
}

static EVENTS: [AtomicPtr<Event>; MAX_EVENTS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_EVENTS];
static EVENT_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The number of the event with this name, from 1 on; 0 without room.
pub fn event(name: &[u8]) -> i32 {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let count = EVENT_COUNT.load(Relaxed);
    let known = (1..=count).find(|number| find_event(*number as i32).is_some_and(|event| event.name == name));
    if let Some(number) = known {
        return number as i32;
    }
    let Some(place) = EVENTS.get(count) else { return 0 };
    place.store(Box::into_raw(Box::new(Event { name: name.to_owned(), key: Cached::default() })), Release);
    EVENT_COUNT.store(count + 1, Relaxed);
    count as i32 + 1
}

/// The event with this number.
pub fn find_event(number: i32) -> Option<&'static Event> {
    let place = EVENTS.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
    // SAFETY: null, or an event that is never freed.
    unsafe { place.load(Acquire).as_ref() }
}

impl Event {
    /// The key of its intervals.
    pub fn key(&self) -> Option<u32> {
        self.key.number(|| interval_key(&self.name, b"event reported through ITT"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_handle() {
        assert_eq!(string(b"one name"), string(b"one name"));
        assert_ne!(string(b"one name"), string(b"another"));
        assert_eq!(event(b"event a"), event(b"event a"));
        assert!(find_event(0).is_none() && find_event(-1).is_none() && find_event(i32::MAX).is_none());
    }

    #[test]
    fn values_are_read_by_type() {
        let read = |value_type, bytes: &[u8]| {
            // SAFETY: the bytes are those of a value of the type.
            unsafe { number_at(value_type, bytes.as_ptr()) }
        };
        assert_eq!(read(value_type::S16, &(-2_i16).to_ne_bytes()), Some(-2_i64 as u64));
        assert_eq!(read(value_type::U32, &7_u32.to_ne_bytes()), Some(7));
        assert_eq!(read(value_type::DOUBLE, &2.6_f64.to_ne_bytes()), Some(3));
        assert_eq!(read(value_type::DOUBLE, &(-2.6_f64).to_ne_bytes()), Some(-3_i64 as u64));
        assert_eq!(read(99, &[0; 8]), None);
    }
}
