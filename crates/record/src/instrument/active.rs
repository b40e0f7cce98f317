//! The interface, when it records.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::path::Path;

use taskscope_event::Code;
use taskscope_event::models::{dictionary as model, instrument, nosv, ovni, system};

use super::attaching::attach_as;
use super::feature::IS_COMPILED_IN;
use super::{dictionary, names, sinks, site};
use crate::event_filter;
use crate::metadata::Json;
pub use crate::process::StartError;
use crate::process::{self, Config};
use crate::thread::{self, Recording, enter, enter_for};

/// Starts recording into `trace_directory`.
///
/// # Errors
/// When recording has started already, or directories cannot be made. The program is to run on.
pub fn start(trace_directory: impl AsRef<Path>) -> Result<(), StartError> {
    if !IS_COMPILED_IN || !sinks::start_from_environment() {
        return Ok(());
    }
    let started = process::start(Config {
        trace_directory: trace_directory.as_ref().to_owned(),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION), ("nosv", nosv::VERSION)],
        own_require: vec![
            ("taskscope-instrument", instrument::VERSION),
            ("taskscope-system", system::VERSION),
        ],
        // Not the CPUs, as with nOS-V itself: they are unknown.
        attributes: vec![("workers".to_owned(), Json::string("threads"))],
    });
    // Sites used before have cached that recording is off.
    site::forget_all();
    started
}

/// Enables or disables all names that begin with `prefix`, of any level; of several matching prefixes, the
/// longest decides. States count as `state.NAME`, message domains as `ptp.NAME`, kinds of tasks as
/// `task.NAME`.
pub fn set_enabled(prefix: &str, enabled: bool) {
    if IS_COMPILED_IN {
        dictionary::with(|names| names.set_prefix(prefix, enabled));
        site::forget_all();
    }
}

/// [`start`] in the directory that `TASKSCOPE_TRACE_DIR` names, with the sinks of `TASKSCOPE_SINKS`. Sinks
/// need no directory. Returns whether events have a receiver now.
pub fn start_from_environment() -> bool {
    start_configured().unwrap_or(false)
}

/// [`start_from_environment`], with the reason why it did not work.
#[doc(hidden)]
pub fn start_configured() -> Result<bool, StartError> {
    if !IS_COMPILED_IN {
        return Ok(false);
    }
    if let Some(directory) = std::env::var_os(process::TRACE_DIRECTORY_VARIABLE) {
        return start(Path::new(&directory)).map(|()| true);
    }
    sinks::start_from_environment();
    Ok(sinks::are_loaded())
}

/// Ends recording: closes the streams of all threads that still live. Call it once, before the program
/// ends. Returns how many streams could not be closed since their thread was within an event.
pub fn finish() -> usize {
    if !IS_COMPILED_IN {
        return 0;
    }
    sinks::remove_all();
    dictionary::write_totals();
    process::finish()
}

/// The calling thread's recorder for `code`, which is made now if need be.
#[inline(always)]
fn recorder(code: Code) -> Option<Recording> {
    if !IS_COMPILED_IN {
        return None;
    }
    match enter_for(code) {
        // Switched off, or filtered.
        None if thread::is_attached() => None,
        None => attach_and_enter(code),
        recorder => recorder,
    }
}

#[cold]
#[inline(never)]
fn attach_and_enter(code: Code) -> Option<Recording> {
    attach().then(|| enter_for(code)).flatten()
}

/// Starts recording the calling thread, if the process records. Events do so implicitly.
pub fn attach() -> bool {
    attach_as(true)
}

/// Names the memory of `data`: reports use the name for dependences on addresses in it. For nested data the
/// narrowest counts, for equal ones the one named last; an empty name removes those of all data in it.
pub fn name_data<T: ?Sized>(data: &T, name: &str) {
    name_memory((data as *const T).addr() as u64, size_of_val(data) as u64, name.as_bytes());
}

/// [`name_data`] for `bytes` bytes from `address` on.
#[doc(hidden)]
pub fn name_memory(address: u64, bytes: u64, name: &[u8]) {
    if attach()
        && let Some(mut recorder) = enter()
    {
        let at = recorder.now();
        let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).chain([0]).collect();
        recorder.own_jumbo(at, model::DATA, &[&address.to_le_bytes(), &bytes.to_le_bytes(), &name]);
    }
}

/// Ends recording on the calling thread; the thread's end does so implicitly.
pub fn detach() {
    if IS_COMPILED_IN {
        thread::detach();
    }
}

/// Switches recording on for all threads.
pub fn switch_on() {
    if IS_COMPILED_IN {
        event_filter::switch_on();
    }
}

/// Switches recording off for all threads. Guards still record the ends of what they began.
pub fn switch_off() {
    if IS_COMPILED_IN {
        event_filter::switch_off();
    }
}

/// Whether recording is switched on.
pub fn is_on() -> bool {
    IS_COMPILED_IN && event_filter::is_on()
}

/// A point in time.
#[inline(always)]
pub fn point() {
    if let Some(mut recorder) = recorder(ovni::BURST) {
        let at = recorder.now();
        recorder.point(at, ovni::BURST, []);
    }
}

/// The name of a span; made once, as a `static` ([`span!`](crate::span)).
pub struct SpanName {
    name: &'static str,
    id: AtomicU32,
}

impl SpanName {
    /// A span called `name`.
    pub const fn new(name: &'static str) -> Self {
        SpanName { name, id: AtomicU32::new(0) }
    }

    /// Begins the span; it ends when the guard is dropped.
    #[inline(always)]
    pub fn enter(&'static self) -> Span {
        let Some(mut recorder) = recorder(ovni::MARK_PUSH) else {
            return Span { payload: None, bound_to_thread: PhantomData };
        };
        let id = match self.id.load(Relaxed) {
            0 => names::register(&self.id, || names::span_id(self.name), &mut recorder),
            id => id,
        };
        let payload = mark(i64::from(id), names::SPANS);
        let at = recorder.now();
        recorder.begin(at, ovni::MARK_PUSH, payload, payload.len());
        Span { payload: Some(payload), bound_to_thread: PhantomData }
    }
}

/// An open span.
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    /// Payload of its end; `None` if its begin was not recorded.
    payload: Option<[u8; 12]>,
    bound_to_thread: PhantomData<*mut ()>,
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        // A begun section is ended, whatever the switch's state.
        if let Some(payload) = self.payload
            && let Some(mut recorder) = enter()
        {
            let at = recorder.now();
            recorder.end(at, ovni::MARK_POP, payload);
        }
    }
}

/// A named value that changes over time; made once, as a `static`. At most 99 of them.
pub struct Value {
    title: &'static str,
    mark_type: AtomicU32,
}

impl Value {
    /// A value called `title`.
    pub const fn new(title: &'static str) -> Self {
        Value { title, mark_type: AtomicU32::new(0) }
    }

    /// Records a new value. 0, which stands for "no value", is not recorded.
    #[inline(always)]
    pub fn set(&'static self, value: i64) {
        if value == 0 {
            return;
        }
        if let Some(mut recorder) = recorder(ovni::MARK_SET) {
            let mark_type = match self.mark_type.load(Relaxed) {
                0 => names::register(&self.mark_type, || names::value_type(self.title), &mut recorder),
                mark_type => mark_type,
            };
            let at = recorder.now();
            recorder.point(at, ovni::MARK_SET, mark(value, mark_type));
        }
    }
}

/// A kind of tasks; made once, as a `static`.
pub struct TaskType {
    name: &'static str,
    id: AtomicU32,
}

impl TaskType {
    /// Tasks called `name`.
    pub const fn new(name: &'static str) -> Self {
        TaskType { name, id: AtomicU32::new(0) }
    }

    /// Creates a task, to be run now or later, on this thread or another.
    #[inline(always)]
    pub fn create(&'static self) -> Task {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let Some(mut recorder) = recorder(nosv::TASK_CREATE) else { return Task { id: 0 } };
        let type_id = match self.id.load(Relaxed) {
            0 => names::register_task_type(&self.id, self.name, &mut recorder),
            id => id,
        };
        let id = NEXT.fetch_add(1, Relaxed);
        let at = recorder.now();
        recorder.point(at, nosv::TASK_CREATE, pair(id, type_id));
        Task { id }
    }
}

/// A task that was created.
#[derive(Debug)]
pub struct Task {
    /// 0 when its creation was not recorded.
    id: u32,
}

impl Task {
    /// Its number in the trace; 0 if it is not recorded.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Runs `body` as this task, once.
    #[inline(always)]
    pub fn run<R>(self, body: impl FnOnce() -> R) -> R {
        let _running = self.begin();
        body()
    }

    /// Begins the task; it ends when the guard is dropped.
    #[inline(always)]
    pub fn begin(self) -> RunningTask {
        if self.id == 0 {
            return RunningTask { payload: None, bound_to_thread: PhantomData };
        }
        let payload = pair(self.id, 0);
        let payload = recorder(nosv::TASK_EXECUTE).map(|mut recorder| {
            let at = recorder.now();
            recorder.begin(at, nosv::TASK_EXECUTE, payload, payload.len());
            payload
        });
        RunningTask { payload, bound_to_thread: PhantomData }
    }
}

/// A task that is being executed.
#[must_use = "the task ends when this is dropped"]
pub struct RunningTask {
    payload: Option<[u8; 8]>,
    bound_to_thread: PhantomData<*mut ()>,
}

impl Drop for RunningTask {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(payload) = self.payload
            && let Some(mut recorder) = enter()
        {
            let at = recorder.now();
            recorder.end(at, nosv::TASK_END, payload);
        }
    }
}

fn mark(value: i64, mark_type: u32) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&value.to_le_bytes());
    payload[8..].copy_from_slice(&mark_type.to_le_bytes());
    payload
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&first.to_le_bytes());
    payload[4..].copy_from_slice(&second.to_le_bytes());
    payload
}
