//! The loaded sinks, and the way of an event to them.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use taskscope_context::{Contexts, Item, Lane, Out, Problem, Raw};
use taskscope_event::Code;
use taskscope_event::models::instrument::problem;

use super::super::feature::IS_COMPILED_IN;
use super::super::{dictionary, site};
use taskscope_context::Behaviour;

use super::{LiveEvent, LiveText, Names, Nothing, Profile, SINKS_VARIABLE, Sink, TaskGraph};
use crate::{clock, switch, thread};

/// The loaded sinks.
struct Loaded {
    groups: Vec<Group>,
    /// Threads by their ids.
    threads: BTreeMap<i32, u32>,
    last_at: u64,
}

/// The sinks of one behaviour share a derivation.
struct Group {
    behaviour: Behaviour,
    contexts: Contexts,
    threads: Vec<i32>,
    sinks: Vec<Box<dyn Sink>>,
}

static LOADED: Mutex<Loaded> =
    Mutex::new(Loaded { groups: Vec::new(), threads: BTreeMap::new(), last_at: 0 });
static ARE_LOADED: AtomicBool = AtomicBool::new(false);
/// The process that loaded them: a forked child does not have their files and threads.
static PROCESS: AtomicU32 = AtomicU32::new(0);
thread_local! {
    /// Whether the thread holds the lock, or waits for it. It has no destructor, so it is always accessible.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}
/// Events raised by sinks, or by signal handlers that interrupted them.
static NESTED: AtomicU64 = AtomicU64::new(0);

/// The calling thread is on its way to the sinks; a sink, or a signal handler that interrupts this, must not
/// wait for the lock.
struct Inside;

impl Inside {
    /// `None` if the thread is already inside.
    fn enter() -> Option<Inside> {
        // No guard is created if the thread is inside: its drop would mark it as outside.
        if IS_INSIDE.replace(true) { None } else { Some(Inside) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Whether any sink is loaded in this process.
pub(in super::super) fn are_loaded() -> bool {
    ARE_LOADED.load(Relaxed) && PROCESS.load(Relaxed) == std::process::id()
}

/// Loads a sink. Tasks that exist already are new to it, and it never receives their open sections.
pub fn add(sink: impl Sink + 'static) {
    if IS_COMPILED_IN {
        add_boxed(Box::new(sink));
    }
}

fn add_boxed(sink: Box<dyn Sink>) {
    let Some(_inside) = Inside::enter() else {
        NESTED.fetch_add(1, Relaxed);
        return;
    };
    let behaviour = sink.behaviour();
    let mut guard = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = &mut *guard;
    match loaded.groups.iter_mut().find(|group| group.behaviour == behaviour) {
        Some(group) => group.sinks.push(sink),
        None => {
            let mut group =
                Group { behaviour, contexts: Contexts::new(behaviour), threads: vec![], sinks: vec![sink] };
            let mut known: Vec<(&i32, &u32)> = loaded.threads.iter().collect();
            known.sort_by_key(|(_, number)| **number);
            for (tid, _) in known {
                group.add_thread(*tid);
            }
            loaded.groups.push(group);
        }
    }
    clock::start();
    PROCESS.store(std::process::id(), Relaxed);
    ARE_LOADED.store(true, Relaxed);
    switch::set_sinks(true);
    site::forget_all();
}

/// Finishes all sinks, and unloads them.
pub fn remove_all() {
    if !IS_COMPILED_IN || !are_loaded() {
        return;
    }
    let Some(inside) = Inside::enter() else { return };
    switch::set_sinks(false);
    ARE_LOADED.store(false, Relaxed);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    // As in the trace: the streams of live threads are closed now.
    let at = clock::now().max(loaded.last_at);
    for number in std::mem::take(&mut loaded.threads).into_values() {
        loaded.show(|contexts, out| contexts.thread_ends(number, at, out));
    }
    let groups = std::mem::take(&mut loaded.groups);
    for mut sink in groups.into_iter().flat_map(|group| group.sinks) {
        if catch_unwind(AssertUnwindSafe(|| sink.finish())).is_err() {
            eprintln!("taskscope: a sink panicked at its end\n  kept: the trace and the other sinks");
        }
    }
    drop(loaded);
    drop(inside);
    let nested = NESTED.swap(0, Relaxed);
    if nested > 0 {
        dictionary::problem(problem::SINK, &format!("{nested} events were raised by sinks, and not shown"));
    }
}

/// Records an event by `record`, which receives its least time, and passes it to the sinks. Returns whether
/// it had a receiver.
pub(in super::super) fn pass(code: Code, payload: &[u8], record: impl FnOnce(u64) -> Option<u64>) -> bool {
    if !are_loaded() {
        return record(0).is_some();
    }
    let Some(_inside) = Inside::enter() else {
        // From within a sink, or from a signal handler that interrupted one.
        NESTED.fetch_add(1, Relaxed);
        return record(0).is_some();
    };
    let tid = thread::os_tid();
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    // Strictly later than all earlier events of any thread, so that the trace has the same order.
    let least = loaded.last_at + 1;
    let at = record(least).unwrap_or_else(|| clock::now().max(least));
    loaded.last_at = at;
    if let Ok(Some(raw)) = Raw::decode(code, payload) {
        let number = loaded.number_of(tid);
        loaded.show(|group, out| group.event(number, at, &raw, out));
    }
    true
}

/// The calling thread ends.
pub(crate) fn thread_ends() {
    if !are_loaded() {
        return;
    }
    let Some(_inside) = Inside::enter() else { return };
    let tid = thread::os_tid();
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = loaded.threads.remove(&tid) {
        let at = clock::now().max(loaded.last_at);
        loaded.show(|contexts, out| contexts.thread_ends(number, at, out));
    }
}

impl Loaded {
    fn number_of(&mut self, tid: i32) -> u32 {
        if let Some(number) = self.threads.get(&tid) {
            return *number;
        }
        let number = self.groups.iter_mut().map(|group| group.add_thread(tid)).max().unwrap_or(0);
        self.threads.insert(tid, number);
        thread::call_detach_at_thread_end();
        number
    }

    fn show(&mut self, play: impl Fn(&mut Contexts, &mut ToSinks<'_>)) {
        for Group { contexts, threads, sinks, .. } in &mut self.groups {
            let mut to_sinks = ToSinks { threads, sinks, failed: 0 };
            play(contexts, &mut to_sinks);
            if to_sinks.failed > 0 {
                dictionary::problem(problem::SINK, "a sink panicked and was unloaded");
            }
        }
    }
}

impl Group {
    fn add_thread(&mut self, tid: i32) -> u32 {
        self.threads.push(tid);
        self.contexts.add_thread(0)
    }
}

struct ToSinks<'a> {
    threads: &'a [i32],
    sinks: &'a mut Vec<Box<dyn Sink>>,
    failed: u32,
}

impl Out for ToSinks<'_> {
    fn show(&mut self, item: Item<'_>) {
        let Lane::Thread(number) = item.lane else { return };
        let thread = self.threads.get(number as usize).copied().unwrap_or(0);
        let event = LiveEvent { at: item.at, thread, shown: item.shown, names: Names(()) };
        let before = self.sinks.len();
        self.sinks.retain_mut(|sink| catch_unwind(AssertUnwindSafe(|| sink.event(&event))).is_ok());
        self.failed += (before - self.sinks.len()) as u32;
    }

    /// The trace shows it, by `check`.
    fn problem(&mut self, _thread: u32, _at: u64, _problem: Problem) {}
}

/// Loads the sinks that `TASKSCOPE_SINKS` names. Returns whether a trace is wanted.
pub(in super::super) fn start_from_environment() -> bool {
    let Some(list) = std::env::var_os(SINKS_VARIABLE) else { return true };
    let list = list.to_string_lossy();
    let mut wants_trace = list.trim().is_empty();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (name, file) = word.split_once('=').map_or((word, None), |(name, file)| (name, Some(file)));
        let loaded: io::Result<()> = match (name, file) {
            ("trace", None) => {
                wants_trace = true;
                Ok(())
            }
            ("nothing", None) => {
                add(Nothing);
                Ok(())
            }
            ("text", file) => open(file).map(|out| add(LiveText::new(out))),
            ("profile", file) => open(file).map(|out| add(Profile::new(out))),
            ("graph", Some(file)) => open(Some(file)).map(|out| {
                add(if file.ends_with(".json") { TaskGraph::json(out) } else { TaskGraph::dot(out) })
            }),
            _ => Err(io::Error::other("no sink is called so")),
        };
        if let Err(why) = loaded {
            let text = format!(
                "{SINKS_VARIABLE}: {word} is not loaded\n  why:  {why}\n  try:  a list of: trace, text, text=FILE, \
                 profile, profile=FILE, nothing, graph=FILE.dot, graph=FILE.json"
            );
            eprintln!("taskscope: {text}");
            dictionary::problem(problem::BAD_SETTING, &text);
            wants_trace |= name == "trace";
        }
    }
    wants_trace
}

fn open(file: Option<&str>) -> io::Result<Box<dyn Write + Send>> {
    Ok(match file {
        Some(file) => Box::new(io::BufWriter::new(std::fs::File::create(file)?)),
        None => Box::new(io::stderr()),
    })
}
