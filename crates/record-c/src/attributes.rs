//! Attributes: a thread's additions to its metadata. Keys are dot-separated paths.

use std::ffi::{CString, c_char, c_int};

use crate::json::Value;
use crate::lifecycle::{text, thread_for};
use crate::misuse::misuse;

/// Whether the attribute exists: 1 or 0.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_has(key: *const c_char) -> c_int {
    // SAFETY: by contract.
    let key = unsafe { text(key) };
    thread_for("ovni_attr_has").map_or(0, |thread| c_int::from(thread.get(&key).is_some()))
}

/// Stores a number.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_set_double(key: *const c_char, number: f64) {
    match Value::number(number) {
        // SAFETY: by contract.
        Some(value) => unsafe { set("ovni_attr_set_double", key, value) },
        None => misuse!("ovni_attr_set_double", "{number} cannot be stored"),
    }
}

/// Stores true or false.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_set_boolean(key: *const c_char, value: c_int) {
    // SAFETY: by contract.
    unsafe { set("ovni_attr_set_boolean", key, (value != 0).into()) }
}

/// Stores a string.
///
/// # Safety
/// Both point to NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_set_str(key: *const c_char, value: *const c_char) {
    // SAFETY: by contract.
    unsafe { set("ovni_attr_set_str", key, text(value).into()) }
}

/// Stores any JSON value.
///
/// # Safety
/// Both point to NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_set_json(key: *const c_char, json: *const c_char) {
    // SAFETY: by contract.
    let json = unsafe { text(json) };
    match Value::parse(&json) {
        // SAFETY: by contract.
        Ok(value) => unsafe { set("ovni_attr_set_json", key, value) },
        Err(why) => misuse!("ovni_attr_set_json", "{json:?} is not JSON: {why}"),
    }
}

/// # Safety
/// `key` points to a NUL-terminated string.
unsafe fn set(function: &'static str, key: *const c_char, value: Value) {
    // SAFETY: by contract.
    let key = unsafe { text(key) };
    let Some(thread) = thread_for(function) else { return };
    if thread.set(&key, value).is_err() {
        crate::misuse::report(function, format_args!("no attribute can have the key {key:?}"));
    }
}

/// The number, or 0 (and a message) if there is none.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_get_double(key: *const c_char) -> f64 {
    // SAFETY: by contract.
    unsafe { get("ovni_attr_get_double", key, "a number", |value, _| value.as_f64()) }.unwrap_or(0.0)
}

/// 1 or 0; 0 (and a message) if there is no such attribute.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_get_boolean(key: *const c_char) -> c_int {
    // SAFETY: by contract.
    let value = unsafe { get("ovni_attr_get_boolean", key, "a boolean", |value, _| value.as_bool()) };
    c_int::from(value == Some(true))
}

/// The string, valid until the next call after a change; empty (and a message) if there is none.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_get_str(key: *const c_char) -> *const c_char {
    let found = |value: Value, key: &str| {
        let text = value.as_str()?;
        Some(thread_for("ovni_attr_get_str")?.hand_out(key, text))
    };
    // SAFETY: by contract.
    unsafe { get("ovni_attr_get_str", key, "a string", found) }.unwrap_or(c"".as_ptr())
}

/// The value as JSON, allocated by `malloc`, to be freed by the caller; `null` (and a message) if there is
/// none.
///
/// # Safety
/// `key` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_attr_get_json(key: *const c_char) -> *mut c_char {
    // SAFETY: by contract.
    let value = unsafe { get("ovni_attr_get_json", key, "there", |value, _| Some(value)) };
    let text = CString::new(value.unwrap_or(Value::Null).to_string()).unwrap_or_default();
    unsafe extern "C" {
        fn strdup(string: *const c_char) -> *mut c_char;
    }
    // SAFETY: a NUL-terminated string.
    unsafe { strdup(text.as_ptr()) }
}

/// # Safety
/// `key` points to a NUL-terminated string.
unsafe fn get<T>(
    function: &'static str,
    key: *const c_char,
    kind: &str,
    convert: impl FnOnce(Value, &str) -> Option<T>,
) -> Option<T> {
    // SAFETY: by contract.
    let key = unsafe { text(key) };
    let Some(value) = thread_for(function)?.get(&key) else {
        crate::misuse::report(function, format_args!("there is no attribute {key:?}"));
        return None;
    };
    let converted = convert(value, &key);
    if converted.is_none() {
        crate::misuse::report(function, format_args!("the attribute {key:?} is not {kind}"));
    }
    converted
}

/// Writes the metadata anew. Every change has been written when it was made.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_attr_flush() {
    if let Some(thread) = thread_for("ovni_attr_flush") {
        thread.flush();
    }
}
