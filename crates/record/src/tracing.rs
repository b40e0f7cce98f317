//! A layer for the crate `tracing`: every span is a task, and its events are in the trace.
//!
//! One line in `main`:
//!
//! ```
//! let _taskscope = taskscope_record::tracing::init();
//! ```
//!
//! which records into the directory that `TASKSCOPE_TRACE_DIR` names until the value is dropped. A program that
//! has layers already adds [`layer`] to them, and starts recording itself ([`crate::instrument::start`]).
//!
//! - A **span** is a task, of a kind with the span's name and place. Entering it takes the task up, leaving
//!   puts it down: a future with a span (`.instrument(span)`, `#[instrument]`) is followed over all threads
//!   that poll it, and each poll is a piece. Its time excludes spans entered within it.
//! - A span that is entered while it is entered already, here or on another thread, is another task
//!   of the same kind there.
//! - **Fields** become keys with their names: numbers as they are (the first 256 different negative ones of a field
//!   by name too, since values have no sign), other values by name (the first 256 different ones of a field; further
//!   ones have value 0). They are points of the task.
//! - An **event** is a composite point: `tracing.event` with a value that names the event, and its fields.
//! - **tokio**: [`crate::tokio::observe`] records when workers are idle. Built with `--cfg tokio_unstable`
//!   and its feature `tracing`, tokio itself reports every task and wake: `runtime.spawn` spans are tasks
//!   named after the spawning place, and `tokio::task::waker` events make them able to run.

use core::sync::atomic::{AtomicUsize, Ordering::*};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::{Debug, Write as _};

use taskscope_event::models::instrument::{self as i, level};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::instrument::{self, TaskContext, named};
use crate::tls;

/// Different texts of a field that have numbers of their own.
const MAX_TEXTS: usize = 256;
/// Their first number: a field of the same name may be a number elsewhere. Exact in a double, which Paraver uses.
const FIRST_TEXT: u64 = 1 << 48;

/// The layer. It has no state: spans carry their tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layer(());

/// Creates a layer that records spans and events, if recording has started.
pub fn layer() -> Layer {
    Layer(())
}

/// Records spans and events of this program into the directory that `TASKSCOPE_TRACE_DIR` names, until the
/// value is dropped. If another subscriber is installed already, it stays, and no spans are recorded.
pub fn init() -> Finisher {
    let recording = instrument::start_from_environment();
    let subscriber = tracing_subscriber::registry().with(layer());
    if tracing_core::dispatcher::set_global_default(tracing_core::Dispatch::new(subscriber)).is_err() {
        eprintln!(
            "taskscope: spans are not recorded\n  why:  another subscriber is installed\n  \
             try:  add taskscope_record::tracing::layer() to it"
        );
    }
    Finisher { recording }
}

/// Ends recording when it is dropped.
#[must_use = "recording ends when this is dropped"]
#[derive(Debug)]
pub struct Finisher {
    recording: bool,
}

impl Drop for Finisher {
    fn drop(&mut self) {
        if self.recording {
            instrument::finish();
        }
    }
}

/// Data of a span.
struct SpanTask {
    task: TaskContext,
    kind: u32,
    /// Thread pointer of the thread that is in the task; 0 for none.
    on: AtomicUsize,
}

thread_local! {
    /// Tasks that represent a span which is entered elsewhere too.
    static APART: RefCell<Vec<(u64, TaskContext)>> = const { RefCell::new(Vec::new()) };
    /// Kinds by the address of a span's metadata, with the state of names at their lookup.
    static KINDS: RefCell<HashMap<usize, (u32, Option<u32>)>> = RefCell::new(HashMap::new());
    /// Keys by the address of a field's name.
    static KEYS: RefCell<HashMap<usize, FieldKey>> = RefCell::new(HashMap::new());
}

#[derive(Clone, Default)]
struct FieldKey {
    /// State of names at the key's lookup, and its result.
    asked: Option<u32>,
    key: Option<u32>,
    texts: HashMap<String, u64>,
    /// Negative numbers that have their names.
    negatives: HashSet<i64>,
}

impl FieldKey {
    fn key(&mut self, name: &str, description: &str) -> Option<u32> {
        let asked = named::asked();
        if self.asked != Some(asked) {
            self.key = named::key(name.as_bytes(), description.as_bytes(), level::USER);
            self.asked = Some(asked);
        }
        self.key
    }
}

/// Spans of tokio's own instrumentation are named after the place that spawned the task.
const SPAWN: &str = "runtime.spawn";
const RESOURCE: &str = "runtime.resource";
const WAKER: &str = "tokio::task::waker";
/// The key of events.
const EVENT: &str = "tracing.event";

fn kind_of(metadata: &'static Metadata<'static>, fields: &Fields) -> Option<u32> {
    let (file, line) = (metadata.file().unwrap_or_default(), metadata.line().unwrap_or(0));
    if metadata.name() == SPAWN {
        let text =
            |name: &str| fields.texts.iter().find(|(of, _)| of.name() == name).map(|(_, text)| &**text);
        let number =
            |name: &str| fields.numbers.iter().find(|(of, _)| of.name() == name).map(|(_, n)| *n as u32);
        // tokio's workers are blocking tasks of its own, which last as long as the workers.
        if text("fn").is_some_and(|function| function.starts_with("tokio::runtime::")) {
            return None;
        }
        let name = text("task.name").filter(|name| !name.is_empty()).or(text("kind")).unwrap_or("task");
        return instrument::task_kind(
            name,
            text("loc.file").unwrap_or_default(),
            number("loc.line").unwrap_or(0),
        );
    }
    let ask = || instrument::task_kind(metadata.name(), file, line);
    let address = core::ptr::from_ref(metadata) as usize;
    KINDS
        .try_with(|kinds| match kinds.try_borrow_mut() {
            Ok(mut kinds) => {
                let asked = named::asked();
                match kinds.get(&address) {
                    Some((when, kind)) if *when == asked => *kind,
                    _ => {
                        let kind = ask();
                        kinds.insert(address, (asked, kind));
                        kind
                    }
                }
            }
            Err(_) => ask(),
        })
        .unwrap_or_else(|_| ask())
}

/// A span's or event's fields.
#[derive(Default)]
struct Fields {
    numbers: Vec<(Field, u64)>,
    negatives: Vec<(Field, i64)>,
    texts: Vec<(Field, String)>,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.push((field.clone(), value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if value < 0 {
            self.negatives.push((field.clone(), value));
        } else {
            self.numbers.push((field.clone(), value as u64));
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.numbers.push((field.clone(), u64::from(value)));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.texts.push((field.clone(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // If a value's `Debug` fails, its partial text is kept.
        let _ = write!(text, "{value:?}");
        self.texts.push((field.clone(), text));
    }
}

impl Fields {
    /// The fields as pairs of key and value, in the form of a composite point.
    fn pairs(&self) -> Vec<(u32, u64)> {
        let numbers = self.numbers.iter().filter_map(|(field, value)| Some((key_of(field)?, *value)));
        let negatives = self.negatives.iter().filter_map(|(field, value)| {
            let key = key_of(field)?;
            name_negative(field, key, *value);
            Some((key, *value as u64))
        });
        let texts = self.texts.iter().filter_map(|(field, text)| {
            let key = key_of(field)?;
            Some((key, value_of(field, key, text)))
        });
        numbers.chain(negatives).chain(texts).collect()
    }
}

fn with_key<R>(field: &'static str, f: impl FnOnce(&mut FieldKey) -> R) -> Option<R> {
    KEYS.try_with(|keys| {
        let mut keys = keys.try_borrow_mut().ok()?;
        Some(f(keys.entry(field.as_ptr() as usize).or_default()))
    })
    .ok()
    .flatten()
}

fn key_of(field: &Field) -> Option<u32> {
    let name = field.name();
    with_key(name, |known| known.key(name, "a field of a span or event")).flatten()
}

fn value_of(field: &Field, key: u32, text: &str) -> u64 {
    with_key(field.name(), |known| {
        if let Some(value) = known.texts.get(text) {
            return *value;
        }
        if known.texts.len() >= MAX_TEXTS {
            return 0;
        }
        let value = named::value_from(key, text.as_bytes(), FIRST_TEXT, MAX_TEXTS as u64);
        known.texts.insert(text.to_owned(), value);
        value
    })
    .unwrap_or(0)
}

/// Values have no sign: a negative number becomes a named value.
fn name_negative(field: &Field, key: u32, value: i64) {
    with_key(field.name(), |known| {
        if known.negatives.len() < MAX_TEXTS && known.negatives.insert(value) {
            named::name_value(key, value as u64, value.to_string().as_bytes(), b"");
        }
    });
}

fn points_later(task: TaskContext, pairs: &[(u32, u64)]) {
    for (key, value) in pairs {
        let data = [&task.id().to_le_bytes()[..], &key.to_le_bytes(), &value.to_le_bytes()].concat();
        instrument::raise_data(i::DEFERRED_POINT, &data);
    }
}

fn composite(pairs: &[(u32, u64)]) {
    let data: Vec<u8> = pairs
        .iter()
        .flat_map(|(key, value)| [&key.to_le_bytes()[..], &value.to_le_bytes()].concat())
        .collect();
    if !data.is_empty() {
        instrument::raise_data(i::COMPOSITE, &data);
    }
}

fn with_task<S, R>(span: Option<SpanRef<'_, S>>, f: impl FnOnce(&SpanTask) -> R) -> Option<R>
where
    S: for<'a> LookupSpan<'a>,
{
    let span = span?;
    let extensions = span.extensions();
    extensions.get::<SpanTask>().map(f)
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // tokio's timers, locks and their inner steps are not tasks.
        if attributes.metadata().name().starts_with(RESOURCE) {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let Some(kind) = kind_of(attributes.metadata(), &fields) else { return };
        let task = TaskContext::with_kind(kind);
        if task.id() == 0 {
            return;
        }
        points_later(task, &fields.pairs());
        span.extensions_mut().insert(SpanTask { task, kind, on: AtomicUsize::new(0) });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        with_task(context.span(id), |span| {
            if span.on.load(Relaxed) == tls::thread_pointer() {
                composite(&fields.pairs());
            } else {
                points_later(span.task, &fields.pairs());
            }
        });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        with_task(context.span(id), |span| {
            let taken = span.on.compare_exchange(0, tls::thread_pointer(), Acquire, Relaxed);
            if taken.is_ok() {
                span.task.enter_now();
                return;
            }
            let task = TaskContext::with_kind(span.kind);
            let kept = APART.try_with(|apart| apart.borrow_mut().push((id.into_u64(), task)));
            if kept.is_ok() {
                task.enter_now();
            }
        });
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let apart = APART.try_with(|apart| {
            let mut apart = apart.borrow_mut();
            let row = apart.iter().rposition(|(of, _)| *of == id.into_u64())?;
            Some(apart.remove(row).1)
        });
        if let Ok(Some(task)) = apart {
            return task.end();
        }
        with_task(context.span(id), |span| {
            if span.on.load(Relaxed) == tls::thread_pointer() {
                span.task.leave_now();
                span.on.store(0, Release);
            }
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        with_task(context.span(&id), |span| span.task.end());
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        if metadata.target() == WAKER {
            return wake(&fields, &context);
        }
        let key = with_key(EVENT, |known| known.key(EVENT, "an event of the crate tracing"));
        let Some(key) = key.flatten() else { return };
        let message = fields.texts.iter().position(|(field, _)| field.name() == "message");
        let message = message.map(|row| fields.texts.remove(row).1);
        let place = || format!("{}:{}", metadata.file().unwrap_or_default(), metadata.line().unwrap_or(0));
        let text = message.unwrap_or_else(place);
        let value = with_key(EVENT, |known| {
            known.texts.get(&text).copied().or_else(|| {
                // Messages that are never the same twice would fill the dictionary: they go by their place.
                let full = known.texts.len() >= MAX_TEXTS;
                let text = if full { place() } else { text.clone() };
                if full && known.texts.len() >= 4 * MAX_TEXTS {
                    return Some(0);
                }
                let value = named::value(key, text.as_bytes(), b"");
                known.texts.insert(text, value);
                Some(value)
            })
        });
        let mut pairs = vec![(key, value.flatten().unwrap_or(0))];
        pairs.extend(fields.pairs());
        composite(&pairs);
    }
}

/// Handles tokio's report of a woken task, by the id of its span.
fn wake<S>(fields: &Fields, context: &Context<'_, S>)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let op = fields.texts.iter().find(|(field, _)| field.name() == "op");
    let id = fields.numbers.iter().find(|(field, _)| field.name() == "task.id");
    if let (Some((_, op)), Some((_, id))) = (op, id)
        && op.starts_with("waker.wake")
        && *id != 0
    {
        with_task(context.span(&Id::from_u64(*id)), |span| span.task.ready());
    }
}
