//! The stream of one thread in the trace directory. Whole events are appended; nothing is written in the process that is recorded.

use crate::code::{LoadedModule, Path as CallPath};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use taskscope_event::framing::{JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, head_word, size_code};
use taskscope_event::models::{dictionary, ovni, samples};
use taskscope_event::{Code, StreamFile, layout};
use taskscope_files::{append_regular, create_directory_below, write_file};
use taskscope_record::Json;

/// The process's place in the trace, and facts in all of its streams.
#[derive(Clone, Debug)]
pub struct ProcessPlace {
    /// Directory of the process.
    pub directory: PathBuf,
    /// Name of its loom.
    pub loom: String,
    /// Its id.
    pub pid: i32,
    /// CPUs that the process may use.
    pub cpus: Vec<usize>,
    /// Nanoseconds between samples.
    pub period_ns: u64,
}

/// A thread's files.
pub struct ThreadStream {
    place: ProcessPlace,
    directory: PathBuf,
    tid: i32,
    /// Events of a file that are not stored yet.
    standard: Vec<u8>,
    own: Vec<u8>,
    samples: Vec<u8>,
    has_samples: bool,
    /// Time of the newest sample, or of the begin.
    last: u64,
    lost: u64,
    name: String,
}

impl ThreadStream {
    /// Begins a thread's stream.
    ///
    /// # Errors
    /// If the directory cannot be made, or exists.
    pub fn begin(place: &ProcessPlace, tid: i32, at: u64) -> io::Result<ThreadStream> {
        let directory = place.directory.join(format!("{}{tid}", layout::THREAD_PREFIX));
        std::fs::create_dir(&directory)?;
        let mut stream = ThreadStream {
            place: place.clone(),
            directory,
            tid,
            standard: file_header().to_vec(),
            own: Vec::new(),
            samples: Vec::new(),
            has_samples: false,
            last: at,
            lost: 0,
            name: String::new(),
        };
        let payload: Vec<u8> =
            [&(-1_i32).to_le_bytes()[..], &(-1_i32).to_le_bytes(), &0_u64.to_le_bytes()].concat();
        point(&mut stream.standard, at, ovni::THREAD_EXECUTES, &payload);
        stream.store()?;
        Ok(stream)
    }

    /// Names a module, for all threads of the process.
    pub fn module(&mut self, module: &LoadedModule) {
        let numbers = [module.start, module.end, module.bias].map(u64::to_le_bytes).concat();
        let texts = [module.build_id.as_bytes(), &[0], module.path.as_bytes(), &[0]].concat();
        if self.own.is_empty() && !self.directory.join(StreamFile::Own.name()).exists() {
            self.own.extend(file_header());
        }
        jumbo(&mut self.own, self.last, dictionary::MODULE, &[numbers, texts].concat());
    }

    /// Adds a sample. Its weight is the time since the one before.
    pub fn sample(&mut self, at: u64, path: &CallPath) {
        let at = at.max(self.last);
        let is_first = !self.has_samples;
        if is_first {
            self.samples.extend(file_header());
            self.has_samples = true;
        }
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(path.reached_root, samples::flag::REACHED_ROOT)
            | flag(path.is_cut, samples::flag::CUT)
            | flag(is_first, samples::flag::FIRST);
        let mut data = Vec::with_capacity(48 + 8 * path.addresses.len());
        data.extend((at - self.last).to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        // Flags, state, region, task, number of levels; then one level with all frames, in no region and no task.
        let count = path.addresses.len() as u16;
        [flags, samples::state::NO_OPENMP, 0, 0, 1].iter().for_each(|word| data.extend(word.to_le_bytes()));
        [0, count].iter().for_each(|word| data.extend(word.to_le_bytes()));
        [0_u32, 0].iter().for_each(|word| data.extend(word.to_le_bytes()));
        path.addresses.iter().for_each(|address| data.extend(address.to_le_bytes()));
        jumbo(&mut self.samples, at, samples::SAMPLE, &data);
        self.last = at;
    }

    /// Sets the thread's name.
    pub fn set_name(&mut self, name: String) {
        self.name = name;
    }

    /// Counts samples that the kernel had no room for.
    pub fn lose(&mut self, samples: u64) {
        self.lost += samples;
    }

    /// Appends the new events to the files.
    ///
    /// # Errors
    /// If it cannot be written; it is dropped then, and counted as lost.
    pub fn store(&mut self) -> io::Result<()> {
        let parts = [
            (StreamFile::Standard, &mut self.standard),
            (StreamFile::Own, &mut self.own),
            (StreamFile::Samples, &mut self.samples),
        ];
        let mut result = Ok(());
        for (file, bytes) in parts {
            if !bytes.is_empty() {
                let path = self.directory.join(file.name());
                result = result.and(append_regular(&path).and_then(|mut to| to.write_all(bytes)));
                bytes.clear();
            }
        }
        self.lost += u64::from(result.is_err());
        result.and(self.write_metadata(false))
    }

    /// Ends the stream, at the end of the thread or of the recording.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(mut self, at: u64) -> io::Result<()> {
        point(&mut self.standard, at.max(self.last), ovni::THREAD_ENDS, &[]);
        let stored = self.store();
        stored.and(self.write_metadata(true))
    }

    fn write_metadata(&self, is_finished: bool) -> io::Result<()> {
        let path = self.directory.join(layout::STREAM_METADATA);
        // Written at the begin, and at the end.
        if !is_finished && path.exists() {
            return Ok(());
        }
        write_file(&path, |out| out.write_all(self.metadata(is_finished).as_str().as_bytes()))
    }

    fn metadata(&self, is_finished: bool) -> Json {
        let ProcessPlace { loom, pid, cpus, period_ns, .. } = &self.place;
        let cpu = |number: &usize| {
            let number = *number as u64;
            Json::object([("index", Json::integer(number)), ("phyid", Json::integer(number))])
        };
        let library = Json::object([
            ("version", Json::string("1.14.0")),
            ("commit", Json::string(concat!("taskscope-", env!("CARGO_PKG_VERSION")))),
        ]);
        let mut ovni = vec![
            ("lib", library),
            ("part", Json::string("thread")),
            ("tid", Json::integer(self.tid)),
            ("pid", Json::integer(*pid)),
            ("loom", Json::string(loom)),
            ("app_id", Json::integer(1)),
            ("require", Json::object([("ovni", Json::string("1.1.0"))])),
            ("loom_cpus", Json::array(cpus.iter().map(cpu))),
        ];
        if is_finished {
            ovni.push(("finished", Json::integer(1)));
        }
        let require = Json::object([
            ("taskscope-dictionary", Json::string(dictionary::VERSION)),
            ("taskscope-samples", Json::string(samples::VERSION)),
        ]);
        let sampling =
            Json::object([("clock", Json::string("wall")), ("period_ns", Json::integer(*period_ns))]);
        let own = Json::object([
            ("version", Json::string(env!("CARGO_PKG_VERSION"))),
            ("require", require),
            ("os_tid", Json::integer(self.tid)),
            ("thread_name", Json::string(&self.name)),
            ("lost_events", Json::integer(self.lost)),
            ("closed", Json::boolean(is_finished)),
            ("sampling", sampling),
        ]);
        Json::object([("version", Json::integer(3)), ("ovni", Json::object(ovni)), ("taskscope", own)])
    }
}

fn point(bytes: &mut Vec<u8>, at: u64, code: Code, payload: &[u8]) {
    bytes.extend(head_word(size_code(payload.len()), code).to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend(payload);
}

fn jumbo(bytes: &mut Vec<u8>, at: u64, code: Code, data: &[u8]) {
    bytes.extend(head_word(JUMBO_FLAG | JUMBO_SIZE_CODE, code).to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
}

/// Makes the directory of a process in the trace.
///
/// # Errors
/// If it cannot be made.
pub fn create_process_directory(trace: &Path, loom: &str, pid: i32) -> io::Result<PathBuf> {
    let below =
        Path::new(&format!("{}{loom}", layout::LOOM_PREFIX)).join(format!("{}{pid}", layout::PROCESS_PREFIX));
    create_directory_below(trace, &below)
}
