//! Names as bytes, for interfaces without Rust statics: each function queries the dictionary, and returns
//! `None` while the name is off. Callers cache the result in a [`Site`].

use taskscope_event::models::instrument as i;

pub use super::dictionary::Space;
use super::dictionary::{self, Meaning};
use super::raise::put_until_the_end;
use super::register::ask;
pub use super::register::has_receivers;
use super::site::number_if_on;
pub use super::site::{Site, asked};
use super::words::{long, long_and_word, word_and_long};

fn number(meaning: Meaning<'_>) -> Option<u32> {
    number_if_on(ask(&meaning))
}

const BLANK: Meaning<'static> =
    Meaning { space: Space::Key, name: b"", description: b"", more: b"", number: 0, stacked: false };

/// A key.
pub fn key(name: &[u8], description: &[u8], level: u32) -> Option<u32> {
    number(Meaning { name, description, number: level, ..BLANK })
}

/// The number of a key with a unit; its bursts nest if `stacked`.
pub fn key_of(name: &[u8], description: &[u8], level: u32, unit: &[u8], stacked: bool) -> Option<u32> {
    number(Meaning { name, description, number: level, more: unit, stacked, ..BLANK })
}

/// A key that is registered elsewhere, used at `file:line` of a C program.
pub fn find_key(name: &[u8], file: &[u8], line: u32) -> Option<u32> {
    let (name, file) = (String::from_utf8_lossy(name), String::from_utf8_lossy(file));
    let remedy = format!("taskscope_key(\"{name}\", \"what it means\", TASKSCOPE_USER)");
    number_if_on(super::keys::find(&name, &format_args!("{file}:{line}"), &remedy))
}

/// A state.
pub fn state(name: &[u8], description: &[u8], class: u32) -> Option<u32> {
    number(Meaning { space: Space::State, name, description, number: class, stacked: true, ..BLANK })
}

/// A message domain.
pub fn domain(name: &[u8], description: &[u8]) -> Option<u32> {
    number(Meaning { space: Space::Domain, name, description, ..BLANK })
}

/// A kind of tasks.
pub fn task_kind(name: &[u8], file: &[u8], line: u32) -> Option<u32> {
    number(Meaning { space: Space::TaskKind, name, more: file, number: line, ..BLANK })
}

/// A named value of a key.
pub fn value(key: u32, name: &[u8], description: &[u8]) -> u64 {
    let meaning = Meaning { space: Space::ValueOf(key), name, description, ..BLANK };
    dictionary::with(|names| names.register(&meaning)).flatten().map_or(0, |(number, _)| number)
}

/// [`value`], with numbers from `first` on, as the smaller ones are the program's; 0 if there are `most` of them already.
pub fn value_from(key: u32, name: &[u8], first: u64, most: u64) -> u64 {
    let meaning = Meaning { space: Space::ValueOf(key), name, ..BLANK };
    dictionary::with(|names| names.register_value_from(&meaning, first, most))
        .flatten()
        .map_or(0, |(number, _)| number)
}

/// Gives a value a name.
pub fn name_value(key: u32, value: u64, name: &[u8], description: &[u8]) {
    dictionary::with(|names| names.register_value(key, value, name, description));
}

/// Sets the number of a space's next name, so that a test reaches the last one.
pub fn go_on_with(space: Space, number: u64) {
    dictionary::with(|names| names.go_on_with(space, number));
}

/// The name of a number, for a sink.
pub fn name_of(space: Space, number: u64) -> Option<Vec<u8>> {
    dictionary::look(|names| names.name_of(space, number).map(<[u8]>::to_vec))
}

/// A number for a task.
pub fn next_task() -> u64 {
    super::task_context::next_number()
}

/// Begins a state. Returns whether that was wanted, so that its end is, too.
#[inline]
pub fn push_state(number: u32) -> bool {
    put_until_the_end(i::STATE_PUSH, number.to_le_bytes(), false)
}

/// Ends a state that was begun.
#[inline]
pub fn pop_state(number: u32) {
    put_until_the_end(i::STATE_POP, number.to_le_bytes(), true);
}

/// A moment on a key.
#[inline]
pub fn point(key: u32, value: u64) {
    put_until_the_end(i::POINT, word_and_long(key, value), false);
}

/// Opens a burst. Returns whether that was wanted, so that its end is, too.
#[inline]
pub fn open_burst(key: u32, value: u64) -> bool {
    put_until_the_end(i::BURST_OPEN, word_and_long(key, value), false)
}

/// Closes the newest burst on a key with this value.
#[inline]
pub fn close_burst(key: u32, value: u64) {
    put_until_the_end(i::BURST_CLOSE, word_and_long(key, value), true);
}

/// Creates a task and takes it up on this thread; returns its number, 0 if it is not recorded.
#[inline]
pub fn begin_task(kind: u32) -> u64 {
    let task = next_task();
    if !put_until_the_end(i::TASK_CREATE, long_and_word(task, kind), false) {
        return 0;
    }
    put_until_the_end(i::TASK_ENTER, long(task), false);
    task
}

/// Ends a task.
#[inline]
pub fn end_task(task: u64) {
    if task != 0 {
        put_until_the_end(i::TASK_END, long(task), true);
    }
}
