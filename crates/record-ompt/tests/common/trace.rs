//! Reads trace directories, independently of crate `trace`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use taskscope_event::spec::FieldType;
use taskscope_event::{Code, framing, models};

/// One event, decoded by the event table.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: u64,
    pub code: Code,
    pub own: bool,
    pub payload: Vec<u8>,
    fields: BTreeMap<&'static str, Value>,
}

#[derive(Clone, Debug)]
enum Value {
    Number(i128),
    Bytes(Vec<u8>),
}

impl Event {
    fn new(at: u64, code: Code, own: bool, jumbo: bool, payload: &[u8]) -> Event {
        let spec = models::find(code).unwrap_or_else(|| panic!("unknown event {code}"));
        assert_eq!(spec.jumbo, jumbo, "{code}");
        assert_eq!(models::model_of(code.model()).unwrap().own, own, "{code} in the wrong file");
        let (mut fields, mut rest) = (BTreeMap::new(), payload);
        for field in spec.fields {
            let size = match (field.ty, field.ty.size()) {
                (_, Some(size)) => size,
                (FieldType::Str, _) => 1 + rest.iter().position(|b| *b == 0).expect("strings end with NUL"),
                _ => rest.len(),
            };
            let (bytes, behind) = rest.split_at(size);
            rest = behind;
            let mut eight = [0; 8];
            let value = if field.ty.size().is_some() {
                eight[..size].copy_from_slice(bytes);
                let number = u64::from_le_bytes(eight);
                Value::Number(match field.ty {
                    FieldType::I32 => i128::from(number as u32 as i32),
                    FieldType::I64 => i128::from(number as i64),
                    _ => i128::from(number),
                })
            } else {
                Value::Bytes(bytes.to_vec())
            };
            fields.insert(field.name, value);
        }
        assert!(rest.is_empty(), "{code} has {} bytes too many", rest.len());
        Event { at, code, own, payload: payload.to_vec(), fields }
    }

    /// A number of the payload.
    pub fn number(&self, field: &str) -> i128 {
        match self.fields.get(field) {
            Some(Value::Number(number)) => *number,
            _ => panic!("{} has no number {field}", self.code),
        }
    }

    /// A text of the payload, without its NUL.
    pub fn text(&self, field: &str) -> String {
        match self.fields.get(field) {
            Some(Value::Bytes(bytes)) => String::from_utf8(bytes[..bytes.len() - 1].to_vec()).unwrap(),
            _ => panic!("{} has no text {field}", self.code),
        }
    }

    /// Open-ended bytes of the payload.
    pub fn bytes(&self, field: &str) -> &[u8] {
        match self.fields.get(field) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => panic!("{} has no bytes {field}", self.code),
        }
    }
}

/// The streams of one thread, merged by time, standard events first on ties.
#[derive(Clone, Debug)]
pub struct Stream {
    pub path: PathBuf,
    pub metadata: serde_json::Value,
    pub events: Vec<Event>,
    /// Events of `samples.obs`.
    pub samples: Vec<Event>,
    /// Bytes behind the last event, of both files.
    pub tail: Vec<u8>,
}

impl Stream {
    fn read(directory: &Path) -> Stream {
        let metadata: serde_json::Value =
            serde_json::from_slice(&std::fs::read(directory.join("stream.json")).unwrap()).unwrap();
        let is_unfinished = metadata["ovni"]["finished"] != 1;
        let (mut events, mut samples, mut tail) = (Vec::new(), Vec::new(), Vec::new());
        for (name, own) in [("stream.obs", false), ("taskscope.obs", true), ("samples.obs", true)] {
            let events = if name == "samples.obs" { &mut samples } else { &mut events };
            let path = directory.join(name);
            let Ok(mut bytes) = std::fs::read(&path) else {
                assert!(own, "{} has no stream.obs", directory.display());
                continue;
            };
            // An unfinished stream continues in its tail.
            if let Ok(file) = std::fs::read(path.with_extension("tail")) {
                let (base, active) = taskscope_event::tail::active(&file).unwrap();
                bytes.truncate(base as usize);
                bytes.extend(active);
            }
            // The process ended between the creation of the file and its first bytes.
            if bytes.is_empty() && is_unfinished {
                continue;
            }
            assert_eq!(bytes[..framing::FILE_HEADER_BYTES], framing::file_header());
            let mut at = framing::FILE_HEADER_BYTES;
            let mut last = 0;
            while bytes.len() - at >= framing::EVENT_HEADER_BYTES && bytes[at + 1] != 0 {
                let flags = bytes[at];
                let jumbo = flags & framing::JUMBO_FLAG != 0;
                let code = Code::new(bytes[at + 1..at + 4].try_into().unwrap());
                let clock = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
                assert!(clock >= last, "{}/{name}: time goes back at byte {at}", directory.display());
                last = clock;
                let (from, size) = if jumbo {
                    (16, u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize)
                } else {
                    (12, framing::payload_bytes(flags))
                };
                events.push(Event::new(clock, code, own, jumbo, &bytes[at + from..at + from + size]));
                at += from + size;
            }
            tail.extend(&bytes[at..]);
        }
        events.sort_by_key(|event| (event.at, event.own));
        Stream { path: directory.to_owned(), metadata, events, samples, tail }
    }

    /// How many events of this code it has.
    pub fn count(&self, code: Code) -> usize {
        self.of(code).count()
    }

    /// Its events of this code.
    pub fn of(&self, code: Code) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.code == code)
    }

    /// Whether the stream was ended properly.
    pub fn is_finished(&self) -> bool {
        self.metadata["ovni"]["finished"] == 1
    }
}

/// A trace directory.
#[derive(Clone, Debug)]
pub struct Trace {
    pub streams: Vec<Stream>,
}

impl Trace {
    /// Reads all streams under a directory, in the order of their paths; none if it is missing.
    pub fn read(directory: &Path) -> Trace {
        let mut streams = Vec::new();
        let mut directories = vec![directory.to_owned()];
        while let Some(directory) = directories.pop() {
            if directory.join("stream.json").exists() {
                streams.push(Stream::read(&directory));
            }
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            directories.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
        }
        streams.sort_by(|a, b| a.path.cmp(&b.path));
        Trace { streams }
    }

    /// How many events of this code all streams have.
    pub fn count(&self, code: Code) -> usize {
        self.streams.iter().map(|stream| stream.count(code)).sum()
    }

    /// All events of this code.
    pub fn of(&self, code: Code) -> impl Iterator<Item = &Event> {
        self.streams.iter().flat_map(move |stream| stream.of(code))
    }

    /// The process ids in it, each once.
    pub fn processes(&self) -> Vec<i64> {
        let mut pids: Vec<i64> =
            self.streams.iter().map(|s| s.metadata["ovni"]["pid"].as_i64().unwrap()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Only the streams of one process.
    pub fn process_trace(&self, pid: i64) -> Trace {
        let mut streams = self.streams.clone();
        streams.retain(|stream| stream.metadata["ovni"]["pid"] == pid);
        Trace { streams }
    }
}
