//! Builds trace directories event by event, for tests: valid ones with little text, damaged ones
//! by changing bytes or attributes afterwards.

use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use taskscope_event::framing::{JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, head_word, size_code};
use taskscope_event::models::{MODELS, nosv, ovni};
use taskscope_event::{Code, StreamFile, layout};

/// A stream under construction: metadata and the bytes of its files.
#[derive(Clone, Debug)]
pub struct StreamBuilder {
    /// Directory below the trace's root.
    pub path: String,
    /// The content of `stream.json`.
    pub metadata: Value,
    /// The content of `stream.obs`.
    pub standard: Vec<u8>,
    /// The content of `taskscope.obs`, if there is to be one.
    pub own: Option<Vec<u8>>,
}

/// Appends an event to the bytes of a stream file.
pub fn push_event(bytes: &mut Vec<u8>, code: Code, clock: u64, payload: &[u8]) {
    bytes.extend(head_word(size_code(payload.len()), code).to_le_bytes());
    bytes.extend(clock.to_le_bytes());
    bytes.extend(payload);
}

/// Appends a jumbo event.
pub fn push_jumbo(bytes: &mut Vec<u8>, code: Code, clock: u64, data: &[u8]) {
    bytes.extend(head_word(JUMBO_FLAG | JUMBO_SIZE_CODE, code).to_le_bytes());
    bytes.extend(clock.to_le_bytes());
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
}

/// The payload of a new task type: its id, its label, a zero byte.
pub fn type_payload(id: u32, label: &str) -> Vec<u8> {
    let mut payload = id.to_le_bytes().to_vec();
    payload.extend(label.as_bytes());
    payload.push(0);
    payload
}

/// Two numbers as a payload.
pub fn pair(first: u32, second: u32) -> Vec<u8> {
    let mut payload = first.to_le_bytes().to_vec();
    payload.extend(second.to_le_bytes());
    payload
}

impl StreamBuilder {
    /// A finished thread of loom `node.<loom>`, with all of ovni's models required.
    pub fn new(loom: u32, pid: u32, tid: u32) -> StreamBuilder {
        let models = MODELS.iter().filter(|model| !model.own);
        let require: serde_json::Map<String, Value> =
            models.map(|model| (model.name.to_owned(), json!(model.version))).collect();
        StreamBuilder {
            path: format!("loom.node.{loom}/proc.{pid}/thread.{tid}"),
            metadata: json!({
                "version": 3,
                "ovni": {
                    "lib": {"version": "1.14.0", "commit": "testkit"},
                    "part": "thread", "tid": tid, "pid": pid, "loom": format!("node.{loom}"),
                    "app_id": 1, "require": require, "finished": 1
                },
                "nosv": {"can_breakdown": true}
            }),
            standard: file_header().to_vec(),
            own: None,
        }
    }

    /// Sets the loom's name; the host is the part before its first dot.
    pub fn loom(mut self, name: &str) -> Self {
        self.metadata["ovni"]["loom"] = json!(name);
        self
    }

    /// Requires only these models.
    pub fn require(mut self, models: &[&str]) -> Self {
        let require = MODELS.iter().filter(|model| models.contains(&model.name));
        self.metadata["ovni"]["require"] =
            require.map(|model| (model.name.to_owned(), json!(model.version))).collect();
        self
    }

    /// Declares the loom's CPUs as 0 to `count` - 1.
    pub fn cpus(mut self, count: u32) -> Self {
        self.metadata["ovni"]["loom_cpus"] =
            (0..count).map(|index| json!({"index": index, "phyid": index})).collect();
        self
    }

    /// Sets a member of the metadata.
    pub fn attribute(mut self, key: &str, value: Value) -> Self {
        self.metadata[key] = value;
        self
    }

    /// Sets the process's rank.
    pub fn rank(mut self, rank: u32, ranks: u32) -> Self {
        self.metadata["ovni"]["rank"] = json!(rank);
        self.metadata["ovni"]["nranks"] = json!(ranks);
        self
    }

    /// Appends an event.
    pub fn event(mut self, clock: u64, code: Code, payload: &[u8]) -> Self {
        push_event(&mut self.standard, code, clock, payload);
        self
    }

    /// Appends an event without payload.
    pub fn point(self, clock: u64, code: Code) -> Self {
        self.event(clock, code, &[])
    }

    /// Appends a jumbo event.
    pub fn jumbo(mut self, clock: u64, code: Code, data: &[u8]) -> Self {
        push_jumbo(&mut self.standard, code, clock, data);
        self
    }

    /// Appends the start of the thread on a CPU.
    pub fn execute(self, clock: u64, cpu: i32) -> Self {
        let mut payload = cpu.to_le_bytes().to_vec();
        payload.extend((-1i32).to_le_bytes());
        payload.extend(0u64.to_le_bytes());
        self.event(clock, ovni::THREAD_EXECUTES, &payload)
    }

    /// Appends the end of the thread.
    pub fn end(self, clock: u64) -> Self {
        self.point(clock, ovni::THREAD_ENDS)
    }

    /// Writes the stream's directory below `root`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, root: &Path) -> io::Result<PathBuf> {
        let directory = root.join(&self.path);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(layout::STREAM_METADATA), self.metadata.to_string())?;
        fs::write(directory.join(StreamFile::Standard.name()), &self.standard)?;
        if let Some(own) = &self.own {
            fs::write(directory.join(StreamFile::Own.name()), own)?;
        }
        Ok(directory)
    }
}

/// A valid stream of one nOS-V task, created, executed and ended.
pub fn one_task() -> StreamBuilder {
    StreamBuilder::new(0, 1, 101)
        .require(&["ovni", "nosv"])
        .cpus(1)
        .execute(1_000, 0)
        .jumbo(2_000, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(3_000, nosv::TASK_CREATE, &pair(1, 7))
        .event(4_000, nosv::TASK_EXECUTE, &pair(1, 0))
        .event(5_000, nosv::TASK_END, &pair(1, 0))
        .end(6_000)
}
