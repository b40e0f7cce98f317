//! The names of spans, values and task types, and the numbers that events give them.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use taskscope_event::models::nosv;

use crate::metadata::Json;
use crate::process;
use crate::thread::ThreadRecorder;

/// The mark type of all spans; values have those above it.
pub(crate) const SPANS: u32 = 0;
/// ovni's limit.
const MARK_TYPES: usize = 100;

#[derive(Default)]
struct Names {
    spans: Vec<String>,
    values: Vec<String>,
    task_types: Vec<String>,
}

static NAMES: Mutex<Names> =
    Mutex::new(Names { spans: Vec::new(), values: Vec::new(), task_types: Vec::new() });

/// The number of the span `name`, from 1.
pub fn span_id(name: &str) -> u32 {
    number_of(name, |names| &mut names.spans)
}

/// The mark type of the value `title`, from 1. When all are taken, the last one serves the rest.
pub fn value_type(title: &str) -> u32 {
    number_of(title, |names| &mut names.values).min(MARK_TYPES as u32 - 1)
}

/// The number of the task type `name`, from 1, and whether it is new.
pub fn task_type_id(name: &str) -> (u32, bool) {
    let known = NAMES.lock().unwrap_or_else(PoisonError::into_inner).task_types.len();
    let id = number_of(name, |names| &mut names.task_types);
    (id, id as usize > known)
}

fn number_of(name: &str, list: impl Fn(&mut Names) -> &mut Vec<String>) -> u32 {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let kind_names = list(&mut names);
    let index = kind_names.iter().position(|known| known == name).unwrap_or_else(|| {
        kind_names.push(name.to_owned());
        kind_names.len() - 1
    });
    process::set_ovni_member("mark", marks(&names));
    index as u32 + 1
}

/// `ovni.mark` of the metadata.
fn marks(names: &Names) -> Json {
    let labels = names.spans.iter().zip(1..).map(|(name, id)| (id.to_string(), Json::string(name)));
    let spans = [
        ("title", Json::string("Spans")),
        ("chan_type", Json::string("stack")),
        ("labels", Json::object(labels)),
    ];
    let values = names.values.iter().take(MARK_TYPES - 1).zip(1..).map(|(title, mark_type): (_, u32)| {
        let members = [("title", Json::string(title)), ("chan_type", Json::string("single"))];
        (mark_type.to_string(), Json::object(members))
    });
    Json::object(std::iter::once((SPANS.to_string(), Json::object(spans))).chain(values))
}

/// Assigns a number to a name at its first use, and writes its metadata, which must be present if the program
/// dies later.
#[cold]
#[inline(never)]
pub(crate) fn register(to: &AtomicU32, number: impl FnOnce() -> u32, recorder: &mut ThreadRecorder) -> u32 {
    let number = number();
    recorder.store_metadata();
    to.store(number, Relaxed);
    number
}

/// [`register`] for a task type, which is defined by an event.
#[cold]
#[inline(never)]
pub(crate) fn register_task_type(to: &AtomicU32, name: &str, recorder: &mut ThreadRecorder) -> u32 {
    let (id, is_new) = task_type_id(name);
    if is_new {
        let at = recorder.now();
        recorder.jumbo(at, nosv::TYPE_CREATE, &[&id.to_le_bytes(), name.as_bytes(), &[0]]);
    }
    to.store(id, Relaxed);
    id
}
