//! Content of a thread's `stream.json`, in the original library's form.
//!
//! Every change reaches the file when it is made, so that a killed program leaves all of its metadata. Until the
//! stream ends, the text is laid out so that changes can be appended: the object that was changed last is the last
//! one at every level, and a new member replaces the closing brackets at the end.
//!
//! ```text
//!   {"taskscope":{…},"version":3,"ovni":{"lib":{…},…,"require":{"ovni":"1.1.0"}}}
//!                                                                             └─┴─ replaced by ,"nosv":"2.7.0"}}}
//! ```
//!
//! A change elsewhere rewrites the file.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use taskscope_event::models::ovni;
use taskscope_record::process::{FORMAT_LIBRARY_COMMIT, FORMAT_LIBRARY_VERSION};
use taskscope_record::{About, Describe, Json, enter};

use crate::json::{Object, Value};

const LOOM_CPUS: &str = "ovni.loom_cpus";
/// The object that programs add to first.
const FIRST_CHANGED: [&str; 2] = ["ovni", "require"];

/// One thread's metadata. The thread itself changes it; the finisher of the process reads it.
pub struct ThreadMetadata {
    inner: Mutex<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    tree: Object,
    /// Strings returned to C, by key; valid until the next request for another value.
    handed_out: HashMap<String, CString>,
    /// `ovni_thread_free` was called.
    is_freed: bool,
    /// The object or array that was changed last, as the path to it.
    last_changed: Vec<String>,
    /// The end of the text on disk; `None` if unknown.
    end: Option<End>,
}

/// The end of an unfinished `stream.json`.
#[derive(Clone, Debug, PartialEq)]
struct End {
    /// Objects, and an array in the last place, that are open before the closing brackets.
    open: Vec<OpenBracket>,
    /// Offset of the first closing bracket.
    at: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct OpenBracket {
    key: String,
    is_array: bool,
}

/// Effect of a metadata change on the file.
#[derive(Debug, PartialEq)]
enum Change {
    Nothing,
    Append { at: u64, text: String },
    Rewrite,
}

impl ThreadMetadata {
    /// Metadata of a thread in application `app`.
    pub fn new(app: i32) -> Self {
        let library = [("version", FORMAT_LIBRARY_VERSION.into()), ("commit", FORMAT_LIBRARY_COMMIT.into())];
        let ovni = [
            ("lib", Value::object(library)),
            ("part", "thread".into()),
            ("tid", 0.into()),
            ("pid", 0.into()),
            ("loom", "".into()),
            ("app_id", app.into()),
            ("require", Value::object([("ovni", ovni::VERSION.into())])),
        ];
        let tree = Object::from_iter([("version", Value::from(3)), ("ovni", Value::object(ovni))]);
        ThreadMetadata { inner: Mutex::new(Inner { tree, ..Inner::default() }) }
    }

    /// Metadata of the same thread in a forked child; the loom's CPUs come from the parent.
    pub fn for_forked_child(&self) -> Self {
        let mut tree = self.lock().tree.clone();
        if let Some(Value::Object(ovni)) = tree.get_mut("ovni") {
            ovni.remove("loom_cpus");
        }
        ThreadMetadata { inner: Mutex::new(Inner { tree, ..Inner::default() }) }
    }

    /// See `ovni_proc_set_rank`.
    pub fn set_rank(&self, rank: i32, nranks: i32) {
        let _ = self.set("ovni.rank", rank.into());
        let _ = self.set("ovni.nranks", nranks.into());
    }

    /// See `ovni_add_cpu`.
    pub fn add_cpu(&self, index: i32, phyid: i32) {
        let change =
            self.lock().push(LOOM_CPUS, Value::object([("index", index.into()), ("phyid", phyid.into())]));
        self.store(change.unwrap_or(Change::Nothing));
    }

    /// See `ovni_thread_require`.
    pub fn require(&self, model: &str, version: &str) {
        let _ = self.set(&format!("ovni.require.{model}"), version.into());
    }

    /// The value at `key`, a dot-separated path.
    pub fn get(&self, key: &str) -> Option<Value> {
        find(&self.lock().tree, key).cloned()
    }

    /// Sets the value at `key`, on disk too if the calling thread's stream has this metadata.
    ///
    /// # Errors
    /// If a part of the path is not an object.
    pub fn set(&self, key: &str, value: Value) -> Result<(), NotAnObject> {
        let change = self.lock().set(key, value)?;
        self.store(change);
        Ok(())
    }

    /// Notes that the thread frees itself: its stream gets `ovni.finished` when it is closed.
    pub fn free(&self) {
        self.lock().is_freed = true;
    }

    /// Writes the whole text now.
    pub fn flush(&self) {
        self.store(Change::Rewrite);
    }

    /// Writes a change to the file. On failure, or if the thread has no stream yet, a later one writes it.
    fn store(&self, change: Change) {
        let stored = match (enter(), change) {
            (_, Change::Nothing) => true,
            (None, _) => false,
            (Some(mut recorder), Change::Append { at, text }) => {
                recorder.append_metadata(at, &text) || recorder.store_metadata()
            }
            (Some(mut recorder), Change::Rewrite) => recorder.store_metadata(),
        };
        if !stored {
            self.lock().end = None;
        }
    }

    /// Keeps `text` alive for C, until the value of `key` is requested again after a change.
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

impl Inner {
    fn set(&mut self, key: &str, value: Value) -> Result<Change, NotAnObject> {
        let before = find(&self.tree, key);
        if before == Some(&value) {
            return Ok(Change::Nothing);
        }
        let path: Vec<&str> = key.split('.').collect();
        let depth = before.is_none().then(|| existing_depth(&self.tree, &path));
        let text = value.to_string();
        set(&mut self.tree, key, value)?;
        let (leaf, parents) = path.split_last().ok_or(NotAnObject)?;
        let member = format!("{}:{text}", Json::string(leaf).as_str());
        Ok(self.changed(parents, depth, &member))
    }

    /// Appends to the array at `key`, which is made if it is not there.
    fn push(&mut self, key: &str, item: Value) -> Result<Change, NotAnObject> {
        let path: Vec<&str> = key.split('.').collect();
        let text = item.to_string();
        if let Some(Value::Array(items)) = find_mut(&mut self.tree, key) {
            items.push(item);
            return Ok(self.changed(&path, Some(path.len()), &text));
        }
        set(&mut self.tree, key, Value::Array(vec![item]))?;
        self.last_changed = path.into_iter().map(str::to_owned).collect();
        Ok(Change::Rewrite)
    }

    /// Records a change at `path`: `member` is new, and the first `depth` parts existed before; `None` for a
    /// new value of an old member.
    fn changed(&mut self, path: &[&str], depth: Option<usize>, member: &str) -> Change {
        self.last_changed = path.iter().map(|part| (*part).to_owned()).collect();
        if path.first() == Some(&"taskscope") {
            return Change::Nothing;
        }
        let (Some(end), Some(depth)) = (&mut self.end, depth) else { return Change::Rewrite };
        let is_open = end.open.len() >= depth
            && end.open.iter().zip(&path[..depth]).all(|(open, part)| open.key == **part);
        if !is_open || depth < path.len() && end.open[..depth].iter().any(|open| open.is_array) {
            return Change::Rewrite;
        }
        let mut text: String = end.open.drain(depth..).rev().map(|open| closing(open.is_array)).collect();
        text.push(',');
        for part in &path[depth..] {
            text.push_str(&format!("{}:{{", Json::string(part).as_str()));
            end.open.push(OpenBracket { key: (*part).to_owned(), is_array: false });
        }
        text.push_str(member);
        let at = end.at;
        end.at += text.len() as u64;
        text.push_str(&end.closing_brackets());
        Change::Append { at, text }
    }

    /// The text of a stream that has not ended.
    fn growing_text(&mut self, tree: &Object, own: &str) -> String {
        let mut text = format!("{{\"taskscope\":{own}");
        let default = || FIRST_CHANGED.map(str::to_owned).to_vec();
        let last = if self.last_changed.is_empty() { default() } else { self.last_changed.clone() };
        let mut end = End { open: vec![], at: 0 };
        let (mut object, mut rest, mut is_first) = (tree, &last[..], false);
        loop {
            let next = rest.split_first().and_then(|(key, rest)| Some((key, object.get(key)?, rest)));
            for (key, value) in object.iter().filter(|(key, _)| next.is_none_or(|(next, ..)| next != *key)) {
                let comma = if core::mem::take(&mut is_first) { "" } else { "," };
                text.push_str(&format!("{comma}{}:{value}", Json::string(key).as_str()));
            }
            let Some((key, value, after)) = next else { break };
            let comma = if core::mem::take(&mut is_first) { "" } else { "," };
            text.push_str(&format!("{comma}{}:", Json::string(key).as_str()));
            let key = key.clone();
            match value {
                Value::Object(inner) if !inner.is_empty() => {
                    text.push('{');
                    end.open.push(OpenBracket { key, is_array: false });
                    (object, rest, is_first) = (inner, after, true);
                }
                Value::Array(items) if !items.is_empty() => {
                    let items: Vec<String> = items.iter().map(Value::to_string).collect();
                    text.push_str(&format!("[{}", items.join(",")));
                    end.open.push(OpenBracket { key, is_array: true });
                    break;
                }
                value => {
                    text.push_str(&value.to_string());
                    break;
                }
            }
        }
        end.at = text.len() as u64;
        text.push_str(&end.closing_brackets());
        text.push('\n');
        self.end = Some(end);
        text
    }
}

impl End {
    fn closing_brackets(&self) -> String {
        let brackets: String = self.open.iter().rev().map(|open| closing(open.is_array)).collect();
        brackets + "}"
    }
}

fn closing(is_array: bool) -> char {
    if is_array { ']' } else { '}' }
}

/// Number of parts of `path` that lead to objects.
fn existing_depth(tree: &Object, path: &[&str]) -> usize {
    let (mut object, mut depth) = (tree, 0);
    while let Some(inner) = path.get(depth).and_then(|part| object.get(part)?.as_object()) {
        (object, depth) = (inner, depth + 1);
    }
    depth
}

/// A part of the path to a key is not an object, or a part of the key is empty.
pub struct NotAnObject;

fn find<'a>(tree: &'a Object, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => tree.get(key),
        Some((part, rest)) => find(tree.get(part)?.as_object()?, rest),
    }
}

fn find_mut<'a>(tree: &'a mut Object, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        None => tree.get_mut(key),
        Some((part, rest)) => find_mut(tree.get_mut(part)?.as_object_mut()?, rest),
    }
}

fn set(tree: &mut Object, key: &str, value: Value) -> Result<(), NotAnObject> {
    match key.split_once('.') {
        _ if key.is_empty() || key.starts_with('.') => Err(NotAnObject),
        None => {
            tree.insert(key, value);
            Ok(())
        }
        Some((part, rest)) => {
            let inner = tree.get_or_insert(part, || Value::Object(Object::default()));
            set(inner.as_object_mut().ok_or(NotAnObject)?, rest, value)
        }
    }
}

impl Describe for ThreadMetadata {
    fn stream_json(&self, about: &About<'_>, own: Json) -> String {
        let mut inner = self.lock();
        let mut tree = inner.tree.clone();
        // A user's attribute of this name would hide the recorder's data.
        tree.remove("taskscope");
        let mut put = |key: &str, value: Value| drop(set(&mut tree, key, value));
        put("ovni.tid", about.tid.into());
        put("ovni.pid", about.pid.into());
        put("ovni.loom", about.loom.into());
        if !about.finished {
            return inner.growing_text(&tree, own.as_str());
        }
        // As in the original, a thread that ends otherwise has none; taskscope's own member states that no
        // event is missing.
        if inner.is_freed {
            put("ovni.finished", 1.into());
        }
        inner.end = None;
        let text = Value::Object(tree).pretty();
        // The recorder's own member is text already.
        let rest = text.trim_start_matches('{');
        format!("{{\n    \"taskscope\": {},{rest}\n", own.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the place of the members that are known when the text is written.
    const ABOUT_BEFORE: &str = "";
    const ABOUT: About<'_> = About { pid: 4, tid: 5, loom: "node", finished: false };

    /// A file that changes are brought to as the recorder does.
    struct Disk {
        metadata: ThreadMetadata,
        text: String,
        rewritten: usize,
    }

    impl Disk {
        fn new() -> Self {
            let metadata = ThreadMetadata::new(1);
            let text = metadata.stream_json(&ABOUT, Json::object([("lost_events", Json::integer(0))]));
            Disk { metadata, text, rewritten: 0 }
        }

        fn apply(&mut self, change: Change) {
            match change {
                Change::Nothing => {}
                Change::Append { at, text } => self.text.replace_range(at as usize.., &text),
                Change::Rewrite => {
                    self.text =
                        self.metadata.stream_json(&ABOUT, Json::object([("lost_events", Json::integer(0))]));
                    self.rewritten += 1;
                }
            }
            // After each change the text is complete, and equals a newly written one.
            let mut read = Value::parse(&self.text).ok().unwrap();
            for key in ["tid", "pid", "loom"] {
                set(read.as_object_mut().unwrap(), &format!("ovni.{key}"), ABOUT_BEFORE.into()).ok().unwrap();
            }
            let mut tree = self.metadata.lock().tree.clone();
            tree.remove("taskscope");
            for key in ["tid", "pid", "loom"] {
                set(&mut tree, &format!("ovni.{key}"), ABOUT_BEFORE.into()).ok().unwrap();
            }
            tree.insert("taskscope", Value::object([("lost_events", 0.into())]));
            assert_eq!(read, Value::Object(tree));
        }

        fn set(&mut self, key: &str, value: impl Into<Value>) {
            let change = self.metadata.lock().set(key, value.into()).ok().unwrap();
            self.apply(change);
        }

        fn add_cpu(&mut self, index: i32) {
            let change =
                self.metadata.lock().push(LOOM_CPUS, Value::object([("index", index.into())])).ok().unwrap();
            self.apply(change);
        }
    }

    #[test]
    fn changes_are_appended_where_the_text_ends() {
        let mut disk = Disk::new();
        disk.set("ovni.require.nosv", "2.7.0");
        disk.set("ovni.require.nosv", "2.7.0");
        disk.set("nosv.can_breakdown", true);
        disk.set("nosv.hwc.0.name", "INS");
        disk.set("nosv.hwc.1.name", "CYC\"}]");
        disk.set("nosv.lib", "4.1");
        assert_eq!(disk.rewritten, 0);
        disk.set("ovni.rank", 3);
        assert_eq!(disk.rewritten, 1, "an object that is closed");
        disk.set("ovni.mark.3.title", "phase");
        disk.set("ovni.mark.3.chan_type", "single");
        for label in 1..50 {
            disk.set(&format!("ovni.mark.3.labels.{label}"), "solve");
        }
        assert_eq!(disk.rewritten, 1);
        for cpu in 0..200 {
            disk.add_cpu(cpu);
        }
        assert_eq!(disk.rewritten, 2, "the array is made once");
        disk.set("ovni.nranks", 4);
        disk.set("a", Value::parse(r#"{ "b": {}, "c": [] }"#).ok().unwrap());
        disk.set("a.b.d", 1);
        disk.set("a.c", Value::Array(vec![1.into()]));
        disk.set("taskscope.lost_events", 77);
        disk.add_cpu(200);
        disk.set("ovni.require.ovni", "1.0.0");
    }
}
