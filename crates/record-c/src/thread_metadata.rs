//! What a thread's `stream.json` says, as the original library would write it.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use taskscope_event::models::ovni;
use taskscope_record::process::{FORMAT_LIBRARY_COMMIT, FORMAT_LIBRARY_VERSION};
use taskscope_record::{About, Describe, Json};

/// One thread's metadata. The thread itself changes it; the finisher of the process reads it.
pub struct ThreadMetadata {
    inner: Mutex<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    tree: Map<String, Value>,
    cpus: Vec<(i32, i32)>,
    rank: Option<(i32, i32)>,
    /// Strings that were handed out to C, by key; they last until another is asked for.
    handed_out: HashMap<String, CString>,
}

impl ThreadMetadata {
    /// Of a thread in application `app`.
    pub fn new(app: u32) -> Self {
        let tree = json!({
            "version": 3,
            "ovni": {
                "lib": { "version": FORMAT_LIBRARY_VERSION, "commit": FORMAT_LIBRARY_COMMIT },
                "part": "thread",
                "tid": 0,
                "pid": 0,
                "loom": "",
                "app_id": app,
                "require": { "ovni": ovni::VERSION },
            },
        });
        let Value::Object(tree) = tree else { unreachable!("it is written as an object") };
        ThreadMetadata { inner: Mutex::new(Inner { tree, ..Inner::default() }) }
    }

    /// Of the same thread in a forked child, whose loom has its CPUs from the parent.
    pub fn for_forked_child(&self) -> Self {
        let inner = Inner { cpus: vec![], handed_out: HashMap::new(), ..self.lock().clone() };
        ThreadMetadata { inner: Mutex::new(inner) }
    }

    /// See `ovni_proc_set_rank`.
    pub fn set_rank(&self, rank: i32, nranks: i32) {
        self.lock().rank = Some((rank, nranks));
    }

    /// See `ovni_add_cpu`.
    pub fn add_cpu(&self, index: i32, phyid: i32) {
        self.lock().cpus.push((index, phyid));
    }

    /// See `ovni_thread_require`.
    pub fn require(&self, model: &str, version: &str) {
        let _ = self.set(&format!("ovni.require.{model}"), version.into());
    }

    /// The value at `key`, a path whose parts are separated by dots.
    pub fn get(&self, key: &str) -> Option<Value> {
        find(&self.lock().tree, key).cloned()
    }

    /// Sets the value at `key`.
    ///
    /// # Errors
    /// When something on the way is no object.
    pub fn set(&self, key: &str, value: Value) -> Result<(), NotAnObject> {
        set(&mut self.lock().tree, key, value)
    }

    /// Keeps `text` alive for C, until the value of `key` is asked for again and has changed.
    pub fn hand_out(&self, key: &str, text: &str) -> *const std::ffi::c_char {
        let text = CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default();
        let mut inner = self.lock();
        let kept = inner.handed_out.entry(key.to_owned()).or_default();
        if *kept != text {
            *kept = text;
        }
        kept.as_ptr()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something on the way to a key is no object, or a part of the key is empty.
pub struct NotAnObject;

fn find<'a>(tree: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => tree.get(key),
        Some((part, rest)) => find(tree.get(part)?.as_object()?, rest),
    }
}

fn set(tree: &mut Map<String, Value>, key: &str, value: Value) -> Result<(), NotAnObject> {
    match key.split_once('.') {
        _ if key.is_empty() || key.starts_with('.') => Err(NotAnObject),
        None => {
            tree.insert(key.to_owned(), value);
            Ok(())
        }
        Some((part, rest)) => {
            let inner = tree.entry(part).or_insert_with(|| Value::Object(Map::new()));
            set(inner.as_object_mut().ok_or(NotAnObject)?, rest, value)
        }
    }
}

impl Describe for ThreadMetadata {
    fn stream_json(&self, about: &About<'_>, own: Json) -> String {
        let Inner { mut tree, cpus, rank, .. } = self.lock().clone();
        // A user's attribute of this name would hide what the recorder says.
        tree.remove("taskscope");
        let mut put = |key: &str, value: Value| drop(set(&mut tree, key, value));
        put("ovni.tid", about.tid.into());
        put("ovni.pid", about.pid.into());
        put("ovni.loom", about.loom.into());
        if let Some((rank, nranks)) = rank {
            put("ovni.rank", rank.into());
            put("ovni.nranks", nranks.into());
        }
        // Another process of the loom may be the one that names the CPUs.
        if !cpus.is_empty() {
            let cpus = cpus.iter().map(|(index, phyid)| json!({ "index": index, "phyid": phyid }));
            put("ovni.loom_cpus", cpus.collect());
        }
        if about.finished {
            put("ovni.finished", 1.into());
        }
        let mut text = pretty(&Value::Object(tree));
        // The recorder's own member is text already.
        text.truncate(text.trim_end().trim_end_matches('}').trim_end().len());
        text.push_str(",\n    \"taskscope\": ");
        text.push_str(own.as_str());
        text.push_str("\n}\n");
        text
    }
}

/// JSON with an indentation of four blanks, as the original writes it.
fn pretty(value: &Value) -> String {
    let mut bytes = Vec::new();
    let style = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, style);
    // Writing a tree into memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8(bytes).unwrap_or_default()
}
