//! Names of objects that are known by an id: nodes of a flow graph, with tasks without names of their own.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use super::abi::Id;
use super::handles;
use crate::cached::Cached;

/// Maximum number of known objects.
const MAX_OBJECTS: usize = 65_536;

#[derive(Default)]
struct Object {
    name: Vec<u8>,
    /// Whether the program chose the name.
    is_chosen: bool,
    parent: Option<Id>,
    state: Cached,
}

/// Whether there are any.
static HAS_OBJECTS: AtomicBool = AtomicBool::new(false);

fn objects() -> &'static RwLock<HashMap<Id, Object>> {
    static OBJECTS: OnceLock<RwLock<HashMap<Id, Object>>> = OnceLock::new();
    OBJECTS.get_or_init(RwLock::default)
}

fn change(id: Id, change: impl FnOnce(&mut Object)) {
    if id.is_null() {
        return;
    }
    let mut objects = objects().write().unwrap_or_else(PoisonError::into_inner);
    if objects.len() < MAX_OBJECTS || objects.contains_key(&id) {
        change(objects.entry(id).or_default());
        HAS_OBJECTS.store(true, Relaxed);
    }
}

/// Names an object by its kind.
pub fn name_kind(id: Id, name: &[u8]) {
    change(id, |object| {
        if !object.is_chosen {
            object.name = name.to_owned();
        }
    });
}

/// Gives an object the name that the program chose.
pub fn name(id: Id, name: &[u8]) {
    change(id, |object| {
        object.name = name.to_owned();
        object.is_chosen = true;
        object.state = Cached::default();
    });
}

/// Makes `parent` the parent of an object.
pub fn set_parent(id: Id, parent: Id) {
    change(id, |object| object.parent = Some(parent));
}

/// The state of tasks of an object; `None` if the object has neither a name nor a named parent. `task` is the task's own
/// name, possibly empty.
///
/// Its name is the one that the program chose for the object or its parent, else the kind of the parent and the name of the
/// task or the kind of the object, such as `function_node body`.
pub fn state(id: Id, task: &[u8]) -> Option<u32> {
    if !HAS_OBJECTS.load(Relaxed) || id.is_null() {
        return None;
    }
    let objects = objects().read().unwrap_or_else(PoisonError::into_inner);
    let object = objects.get(&id)?;
    object.state.number(|| {
        let parent = object.parent.and_then(|parent| objects.get(&parent));
        let chosen = [Some(object), parent].into_iter().flatten().find(|object| object.is_chosen);
        if let Some(chosen) = chosen {
            return handles::task_state(&chosen.name);
        }
        let own = if task.is_empty() { object.name.as_slice() } else { task };
        let kinds = [parent.map_or(&b""[..], |parent| &parent.name), own];
        let kinds: Vec<&[u8]> = kinds.into_iter().filter(|name| !name.is_empty()).collect();
        if kinds.is_empty() { None } else { handles::task_state(&kinds.join(&b' ')) }
    })
}
