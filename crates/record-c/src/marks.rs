//! Marks: values that the user shows on a timeline of their own.

use std::ffi::{c_char, c_long};

use taskscope_event::Code;
use taskscope_event::models::ovni;

use crate::events::recorder;
use crate::lifecycle::{text, thread_for};
use crate::misuse::misuse;

/// `OVNI_MARK_STACK`: values are pushed and popped instead of set.
const STACK: c_long = 1;
/// Types are numbers below this.
const TYPES: i32 = 100;

/// Defines a type of marks.
///
/// # Safety
/// `title` points to a NUL-terminated string, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_mark_type(mark_type: i32, flags: c_long, title: *const c_char) {
    // SAFETY: by contract.
    let title = unsafe { text(title) };
    let Some(thread) = thread_for("ovni_mark_type") else { return };
    let key = format!("ovni.mark.{mark_type}");
    if !(0..TYPES).contains(&mark_type) {
        misuse!("ovni_mark_type", "type {mark_type} is not in 0 to 99");
    } else if title.is_empty() {
        misuse!("ovni_mark_type", "type {mark_type} has no title");
    } else if thread.get(&key).is_some() {
        misuse!("ovni_mark_type", "type {mark_type} is already defined");
    } else {
        let channel = if flags & STACK != 0 { "stack" } else { "single" };
        let _ = thread.set(&format!("{key}.title"), title.into());
        let _ = thread.set(&format!("{key}.chan_type"), channel.into());
    }
}

/// Gives a value of a type a label.
///
/// # Safety
/// `label` points to a NUL-terminated string, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_mark_label(mark_type: i32, value: i64, label: *const c_char) {
    // SAFETY: by contract.
    let label = unsafe { text(label) };
    let Some(thread) = thread_for("ovni_mark_label") else { return };
    let type_key = format!("ovni.mark.{mark_type}");
    let key = format!("{type_key}.labels.{value}");
    if !(0..TYPES).contains(&mark_type) {
        misuse!("ovni_mark_label", "type {mark_type} is not in 0 to 99");
    } else if value <= 0 {
        misuse!("ovni_mark_label", "value {value} is not above zero");
    } else if label.is_empty() {
        misuse!("ovni_mark_label", "value {value} has an empty label");
    } else if thread.get(&type_key).is_none() {
        misuse!("ovni_mark_label", "type {mark_type} is not defined");
    } else if thread.get(&key).is_some() {
        misuse!("ovni_mark_label", "value {value} of type {mark_type} already has a label");
    } else {
        let _ = thread.set(&key, label.into());
    }
}

/// Pushes a value.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_mark_push(mark_type: i32, value: i64) {
    emit("ovni_mark_push", ovni::MARK_PUSH, mark_type, value);
}

/// Pops a value, which must be the one pushed last.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_mark_pop(mark_type: i32, value: i64) {
    emit("ovni_mark_pop", ovni::MARK_POP, mark_type, value);
}

/// Sets the value.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_mark_set(mark_type: i32, value: i64) {
    emit("ovni_mark_set", ovni::MARK_SET, mark_type, value);
}

fn emit(function: &'static str, code: Code, mark_type: i32, value: i64) {
    if value == 0 {
        return crate::misuse::report(function, format_args!("the value of type {mark_type} must not be 0"));
    }
    if let Some(mut recorder) = recorder(function, code, None) {
        let at = recorder.now();
        let mut payload = [0; 12];
        payload[..8].copy_from_slice(&value.to_le_bytes());
        payload[8..].copy_from_slice(&mark_type.to_le_bytes());
        match code {
            ovni::MARK_PUSH => recorder.begin(at, code, payload, payload.len()),
            ovni::MARK_POP => recorder.end(at, code, payload),
            _ => drop(recorder.point(at, code, payload)),
        }
    }
}
