//! Attributes of `stream.json`.

use crate::labels::{Labels, SharedLabels};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A CPU of a loom, as one of its threads declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuEntry {
    /// Logical index, which events name.
    pub index: i64,
    /// Number of the hardware thread, which is shown.
    pub phyid: i64,
}

/// `ovni.mark.<type>`: a mark that the user defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkDeclaration {
    /// The text of the type as it is in the metadata; should be a number from 0 to 99.
    pub mark_type: String,
    /// Title of the view.
    pub title: Option<String>,
    /// `stack` or `single`.
    pub channel: Option<String>,
    /// Labels of values.
    pub labels: Arc<Labels>,
}

/// A defect of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It is malformed.
    Malformed,
    /// Its version is unsupported.
    Version,
}

/// Attributes of taskscope's recorders (`taskscope` in the document).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// Whether the recorder has closed the stream at the end of its thread or process.
    pub closed: bool,
    /// Whether the thread still lived when recording of its process ended, on another thread.
    pub ended_with_process: bool,
    /// Identity of the process that all its recorders share.
    pub process_image: Option<String>,
    /// The thread's id in the system.
    pub os_tid: Option<u64>,
    /// The thread's last name.
    pub thread_name: Option<String>,
    /// Number of events that were lost.
    pub lost_events: u64,
    /// Number of events after the end of recording.
    pub late_events: u64,
    /// Code, thread and time of the first of them.
    pub late_first: Option<String>,
    /// Whether threads are the workers.
    pub threads_are_workers: bool,
    /// Whether it is a row beside the workers: it never counts as one.
    pub is_beside: bool,
    /// Whether the process reported tasks through ITT.
    pub has_itt: bool,
    /// Whether the OMPT tool recorded it.
    pub has_openmp_tool: bool,
}

/// Content of `stream.json`; absent attributes are `None`.
#[derive(Clone, Debug, Default)]
pub struct ThreadMetadata {
    /// Whether the document could be read.
    pub is_known: bool,
    /// Metadata version.
    pub version: Option<i64>,
    /// `ovni.part`.
    pub part: Option<String>,
    /// Models and their versions that the thread's events need, in the order of the file.
    pub require: Option<Vec<(String, String)>>,
    /// Whether `ovni.finished` is 1.
    pub finished: bool,
    /// Thread id.
    pub tid: Option<i64>,
    /// Process id.
    pub pid: Option<i64>,
    /// Name of the loom.
    pub loom: Option<String>,
    /// Application id, > 0.
    pub app_id: Option<i64>,
    /// MPI rank of the process.
    pub rank: Option<i64>,
    /// Number of ranks.
    pub nranks: Option<i64>,
    /// CPUs of the loom; `None` without the key.
    pub loom_cpus: Option<Vec<CpuEntry>>,
    /// Version of the recording library.
    pub library_version: Option<String>,
    /// Commit of the recording library.
    pub library_commit: Option<String>,
    /// User marks.
    pub marks: Vec<MarkDeclaration>,
    /// `nosv.can_breakdown`.
    pub nosv_can_breakdown: Option<bool>,
    /// Names of nOS-V's hardware counters by index.
    pub hardware_counters: Vec<(String, Option<String>)>,
    /// Attributes of taskscope's recorders.
    pub recorder: Recorder,
}

impl ThreadMetadata {
    /// Reads the text of a `stream.json`. Defects go to `report`, with a text.
    pub fn parse(
        bytes: &[u8],
        shared: &SharedLabels,
        mut report: impl FnMut(Defect, String),
    ) -> ThreadMetadata {
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Owned(_)) {
            report(Defect::Malformed, "stream.json holds invalid UTF-8; they were replaced".to_owned());
        }
        let text = without_comments(&text);
        let document = serde_json::from_str::<&RawValue>(&text);
        if document.as_ref().is_ok_and(|document| !document.get().starts_with('{')) {
            report(Defect::Malformed, "stream.json holds no JSON object".to_owned());
            return ThreadMetadata::default();
        }
        let (raw, marks) = match document.and_then(|document| read(document, shared)) {
            Ok(read) => read,
            Err(error) => {
                report(Defect::Malformed, format!("stream.json is no valid JSON: {error}"));
                return ThreadMetadata::default();
            }
        };
        let ovni = &raw["ovni"];
        let metadata = ThreadMetadata {
            is_known: true,
            version: integer(&raw["version"]),
            part: string(&ovni["part"]),
            require: ovni["require"].as_object().map(|models| {
                models
                    .iter()
                    .map(|(name, version)| (name.clone(), string(version).unwrap_or_default()))
                    .collect()
            }),
            finished: integer(&ovni["finished"]) == Some(1),
            tid: integer(&ovni["tid"]),
            pid: integer(&ovni["pid"]),
            loom: string(&ovni["loom"]),
            app_id: integer(&ovni["app_id"]),
            rank: integer(&ovni["rank"]),
            nranks: integer(&ovni["nranks"]),
            loom_cpus: ovni["loom_cpus"].as_array().map(|cpus| cpus.iter().map(cpu_entry).collect()),
            library_version: string(&ovni["lib"]["version"]),
            library_commit: string(&ovni["lib"]["commit"]),
            marks,
            nosv_can_breakdown: raw["nosv"]["can_breakdown"].as_bool(),
            hardware_counters: raw["nosv"]["hwc"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(index, counter)| (index.clone(), string(&counter["name"])))
                .collect(),
            recorder: Recorder::of(&raw["taskscope"]),
        };
        match metadata.version {
            Some(3) => {}
            Some(other) => report(Defect::Version, format!("metadata version {other} is read as version 3")),
            None => report(Defect::Version, "stream.json names no metadata version".to_owned()),
        }
        metadata
    }

    /// The host that the loom's clock belongs to: the loom's name up to its first dot.
    pub fn host(&self) -> &str {
        let loom = self.loom.as_deref().unwrap_or("");
        loom.split('.').next().unwrap_or("")
    }
}

impl Recorder {
    fn of(own: &Value) -> Recorder {
        Recorder {
            closed: own["closed"].as_bool() == Some(true),
            ended_with_process: own["ended_with_process"].as_bool() == Some(true),
            process_image: string(&own["process_image"]),
            os_tid: own["os_tid"].as_u64(),
            thread_name: string(&own["thread_name"]),
            lost_events: own["lost_events"].as_u64().unwrap_or(0),
            late_events: own["late_events"].as_u64().unwrap_or(0),
            late_first: string(&own["late_first"]),
            threads_are_workers: own["workers"] == "threads",
            is_beside: own["beside"].as_bool() == Some(true),
            has_itt: own["itt"].as_bool() == Some(true),
            has_openmp_tool: !own["require"]["taskscope-omp"].is_null(),
        }
    }
}

/// A number without fraction; JSON numbers with a fraction are cut, as ovni does.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn cpu_entry(value: &Value) -> CpuEntry {
    CpuEntry { index: integer(&value["index"]).unwrap_or(-1), phyid: integer(&value["phyid"]).unwrap_or(-1) }
}

/// An object of which the parts are not read yet. Of keys given twice the last counts.
type Parts<'a> = BTreeMap<String, &'a RawValue>;

/// The parts of an object; none of anything else.
fn parts(value: &RawValue) -> serde_json::Result<Parts<'_>> {
    if value.get().starts_with('{') { serde_json::from_str(value.get()) } else { Ok(Parts::new()) }
}

/// The document without its marks, and these. A tree of their labels would take many times the room of the text.
fn read(document: &RawValue, shared: &SharedLabels) -> serde_json::Result<(Value, Vec<MarkDeclaration>)> {
    let (mut raw, mut marks) = (Map::new(), Vec::new());
    for (key, value) in parts(document)? {
        let value = if key == "ovni" {
            let mut ovni = parts(value)?;
            if let Some(declared) = ovni.remove("mark") {
                let declared = parts(declared)?.into_iter();
                let declared = declared.map(|(mark_type, value)| mark(mark_type, value, shared));
                marks = declared.collect::<serde_json::Result<_>>()?;
            }
            let rest = ovni.into_iter().map(|(key, value)| Ok((key, serde_json::from_str(value.get())?)));
            Value::Object(rest.collect::<serde_json::Result<_>>()?)
        } else {
            serde_json::from_str(value.get())?
        };
        raw.insert(key, value);
    }
    Ok((Value::Object(raw), marks))
}

fn mark(mark_type: String, value: &RawValue, shared: &SharedLabels) -> serde_json::Result<MarkDeclaration> {
    let parts = parts(value)?;
    let text = |key: &str| -> serde_json::Result<Option<String>> {
        let text = parts.get(key).filter(|value| value.get().starts_with('"'));
        text.map(|value| serde_json::from_str(value.get())).transpose()
    };
    let labels = parts.get("labels").filter(|value| value.get().starts_with('{'));
    let labels = labels.map_or(Ok(Labels::default()), |value| serde_json::from_str(value.get()))?;
    let (title, channel) = (text("title")?, text("chan_type")?);
    Ok(MarkDeclaration { mark_type, title, channel, labels: shared.share(labels) })
}

/// The text with `/* … */` and `// …` outside of strings replaced by blanks.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("//") && !text.contains("/*") {
        return text.into();
    }
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                clean.push(character);
                clean.extend(characters.next());
                continue;
            }
            '"' => in_string = !in_string,
            '/' if !in_string && characters.peek() == Some(&'/') => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
                continue;
            }
            '/' if !in_string && characters.peek() == Some(&'*') => {
                characters.next();
                let mut previous = ' ';
                for next in characters.by_ref() {
                    if previous == '*' && next == '/' {
                        break;
                    }
                    previous = next;
                }
                clean.push(' ');
                continue;
            }
            _ => {}
        }
        clean.push(character);
    }
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_strings_stay() {
        let text = "{/* a \" */ \"k\": \"// no /* comment */ \\\" //\" // end\n}";
        assert_eq!(without_comments(text), "{  \"k\": \"// no /* comment */ \\\" //\" \n}");
    }

    #[test]
    fn attributes_are_found() {
        let mut problems = Vec::new();
        let text = br#"{"version":3,"ovni":{"part":"thread","tid":7,"pid":5,"loom":"node1.3","finished":1,
            "require":{"ovni":"1.1.0"},"loom_cpus":[{"index":0,"phyid":4}],
            "mark":{"0":{"title":"T","chan_type":"stack","labels":{"1":"one"}}}}}"#;
        let metadata = ThreadMetadata::parse(text, &SharedLabels::default(), |defect, text| {
            problems.push((defect, text))
        });
        assert!(problems.is_empty() && metadata.is_known);
        assert_eq!(metadata.host(), "node1");
        assert_eq!(metadata.loom_cpus.unwrap(), [CpuEntry { index: 0, phyid: 4 }]);
        assert_eq!(metadata.marks[0].labels.iter().collect::<Vec<_>>(), [("1", Some("one"))]);
        assert!(metadata.finished && !metadata.recorder.closed);
    }

    #[test]
    fn nested_beyond_reason_is_refused_not_crashed() {
        for open in ["[", "{\"a\":", "{\"ovni\":{\"mark\":", "{\"ovni\":{\"mark\":{\"1\":{\"labels\":"] {
            for whole in [open.repeat(100_000), format!("{{\"x\":{}{}}}", "[".repeat(9999), "]".repeat(9999))]
            {
                let mut problems = Vec::new();
                let shared = SharedLabels::default();
                ThreadMetadata::parse(whole.as_bytes(), &shared, |defect, _| problems.push(defect));
                assert_eq!(problems, [Defect::Malformed]);
            }
        }
    }
}
