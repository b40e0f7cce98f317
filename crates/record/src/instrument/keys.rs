//! Keys, states and message domains, named by the program, and their events.

use core::fmt::Display;
use core::marker::PhantomData;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use taskscope_event::models::instrument::{self as i, problem};

use super::Level;
use super::dictionary::{self, Meaning, Space};
use super::raise::{put, put_data, put_end};
use super::register::{has_receivers, register};
use super::site::{Answer, Site};
use super::words::{Class, triple, word, word_and_long};

/// A key: the subject of bursts and points. Created once, as a `static`.
pub struct Key {
    name: &'static str,
    description: &'static str,
    unit: &'static str,
    level: Level,
    stacked: bool,
    /// Whether another place declares its meaning.
    is_reference: bool,
    written_at: &'static Location<'static>,
    site: Site,
}

impl Key {
    /// A key with a description, of level [`Level::User`].
    #[track_caller]
    pub const fn new(name: &'static str, description: &'static str) -> Key {
        Key {
            name,
            description,
            unit: "",
            level: Level::User,
            stacked: false,
            is_reference: false,
            written_at: Location::caller(),
            site: Site::new(),
        }
    }

    /// A key that is registered elsewhere in the program. If it is unregistered at its first use, that is a
    /// mistake: reported on stderr in a debug build, counted in the trace in any.
    #[track_caller]
    pub const fn registered(name: &'static str) -> Key {
        Key { is_reference: true, ..Key::new(name, "") }
    }

    /// With another level.
    pub const fn level(self, level: Level) -> Key {
        Key { level, ..self }
    }

    /// With a unit of its values.
    pub const fn unit(self, unit: &'static str) -> Key {
        Key { unit, ..self }
    }

    /// Makes its bursts nest.
    pub const fn stacked(self) -> Key {
        Key { stacked: true, ..self }
    }

    /// Its number, or `None` while it is off.
    #[inline(always)]
    pub fn number(&'static self) -> Option<u32> {
        self.site.number(|| self.resolve())
    }

    /// Whether it is on: worth computing a value for.
    #[inline(always)]
    pub fn is_on(&'static self) -> bool {
        self.number().is_some()
    }

    fn resolve(&self) -> Answer {
        if self.is_reference {
            return find(self.name, self.written_at, &in_rust(self.name));
        }
        register(&Meaning {
            space: Space::Key,
            name: self.name.as_bytes(),
            description: self.description.as_bytes(),
            more: self.unit.as_bytes(),
            number: self.level as u32,
            stacked: self.stacked,
        })
    }

    /// A moment.
    #[inline(always)]
    pub fn point(&'static self, value: u64) {
        if let Some(key) = self.number() {
            put(i::POINT, word_and_long(key, value));
        }
    }

    /// Opens a burst, which belongs to the task that is on the thread and is closed in that task, on any
    /// thread.
    #[inline(always)]
    pub fn open(&'static self, value: u64) {
        if let Some(key) = self.number() {
            put(i::BURST_OPEN, word_and_long(key, value));
        }
    }

    /// Closes the newest burst with this value.
    #[inline(always)]
    pub fn close(&'static self, value: u64) {
        if let Some(key) = self.number() {
            put(i::BURST_CLOSE, word_and_long(key, value));
        }
    }

    /// Opens a burst; it is closed when the guard is dropped. The guard may move to another thread with its
    /// task.
    #[inline(always)]
    pub fn burst(&'static self, value: u64) -> Burst {
        let payload = self.number().map(|key| word_and_long(key, value));
        Burst { payload: payload.filter(|payload| put(i::BURST_OPEN, *payload)) }
    }

    /// The value with this name, which gets a number of its own. To be looked up once.
    pub fn value(&'static self, name: &str, description: &str) -> u64 {
        let Some(key) = self.number() else { return 0 };
        let number = dictionary::with(|names| {
            names.register(&Meaning {
                space: Space::ValueOf(key),
                name: name.as_bytes(),
                description: description.as_bytes(),
                more: b"",
                number: 0,
                stacked: false,
            })
        });
        number.flatten().map_or(0, |(number, _)| number)
    }

    /// Gives `value` a name.
    pub fn name_value(&'static self, value: u64, name: &str, description: &str) {
        if let Some(key) = self.number() {
            dictionary::with(|names| {
                names.register_value(key, value, name.as_bytes(), description.as_bytes());
            });
        }
    }
}

/// Returns the number of a registered key by its name, for names that are known at run time only.
///
/// # Errors
/// [`UnknownName`] if the name is not registered; the trace counts that, too.
#[track_caller]
pub fn find_key(name: &str) -> Result<u32, UnknownName> {
    match find(name, Location::caller(), &in_rust(name)) {
        Answer::On(number) => Ok(number),
        Answer::Off | Answer::Later => Err(UnknownName),
    }
}

/// The name is not registered, or is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl Display for UnknownName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no key of this name is registered and on")
    }
}

impl core::error::Error for UnknownName {}

fn in_rust(name: &str) -> String {
    format!("Key::new(\"{name}\", \"what it means\")")
}

#[cold]
pub(super) fn find(name: &str, written_at: &dyn Display, remedy: &str) -> Answer {
    if !has_receivers() {
        return Answer::Off;
    }
    let found = dictionary::with(|names| names.find(Space::Key, name.as_bytes()));
    match found {
        Some(Some((number, true))) => Answer::On(number as u32),
        Some(Some((_, false))) => Answer::Off,
        Some(None) => {
            if cfg!(debug_assertions) {
                eprintln!(
                    "taskscope: error: no key \"{name}\" is registered\n  why:  it is used at {written_at}\n  \
                     try:  register it there or before: {remedy}"
                );
            }
            dictionary::problem(problem::UNKNOWN_NAME, &format!("key \"{name}\", used at {written_at}"));
            // It may be registered later, and losses until then are counted.
            Answer::Later
        }
        None => Answer::Later,
    }
}

/// An open burst.
#[must_use = "the burst is closed when this is dropped"]
#[derive(Debug)]
pub struct Burst {
    payload: Option<[u8; 12]>,
}

impl Drop for Burst {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(payload) = self.payload {
            put_end(i::BURST_CLOSE, payload);
        }
    }
}

/// Several pairs of key and value as one record. Keys that are off are left out. Up to 16 pairs cost no
/// allocation.
pub fn composite(pairs: &[(&'static Key, u64)]) {
    let (mut few, mut many) = ([0; 16 * i::PAIR_BYTES], Vec::new());
    let data = if pairs.len() * i::PAIR_BYTES <= few.len() {
        &mut few[..]
    } else {
        many.resize(pairs.len() * i::PAIR_BYTES, 0);
        &mut many[..]
    };
    let mut used = 0;
    for (key, value) in pairs {
        if let Some(key) = key.number() {
            data[used..used + i::PAIR_BYTES].copy_from_slice(&word_and_long(key, *value));
            used += i::PAIR_BYTES;
        }
    }
    if used > 0 {
        put_data(i::COMPOSITE, &data[..used]);
    }
}

/// A state that tasks and threads are in: a stack of them. Made once, as a `static`.
pub struct StateName {
    name: &'static str,
    description: &'static str,
    class: Class,
    site: Site,
}

impl StateName {
    /// A state with time that counts as [`Class::Useful`]. One of Nanos++'s names ("RUNNING", "IDLE") is that
    /// state, and counts as it does.
    pub const fn new(name: &'static str, description: &'static str) -> StateName {
        StateName { name, description, class: Class::Useful, site: Site::new() }
    }

    /// With another class.
    pub const fn counts_as(self, class: Class) -> StateName {
        StateName { class, ..self }
    }

    /// Its number, or `None` while it is off.
    #[inline(always)]
    pub fn number(&'static self) -> Option<u32> {
        self.site.number(|| {
            register(&Meaning {
                space: Space::State,
                name: self.name.as_bytes(),
                description: self.description.as_bytes(),
                more: b"",
                number: self.class as u32,
                stacked: true,
            })
        })
    }

    /// Enters the state.
    #[inline(always)]
    pub fn push(&'static self) {
        if let Some(state) = self.number() {
            put(i::STATE_PUSH, word(state));
        }
    }

    /// Leaves the state, which should be the innermost.
    #[inline(always)]
    pub fn pop(&'static self) {
        if let Some(state) = self.number() {
            put(i::STATE_POP, word(state));
        }
    }

    /// Enters the state; it is left when the guard is dropped.
    #[inline(always)]
    pub fn enter(&'static self) -> InState {
        let payload = self.number().map(word);
        InState { payload: payload.filter(|payload| put(i::STATE_PUSH, *payload)) }
    }

    /// Enters the state and opens a burst, in one record; the guard ends both.
    #[inline(always)]
    pub fn enter_with(&'static self, key: &'static Key, value: u64) -> InStateAndBurst {
        let payload = match (self.number(), key.number()) {
            (Some(state), Some(key)) => Some(triple(state, key, value)),
            // One of them is off: the other one alone, by its own guard.
            (Some(_), None) => return InStateAndBurst { both: None, state: Some(self.enter()), burst: None },
            (None, Some(_)) => {
                return InStateAndBurst { both: None, state: None, burst: Some(key.burst(value)) };
            }
            (None, None) => None,
        };
        let both = payload.filter(|payload| put(i::STATE_AND_BURST_OPEN, *payload));
        InStateAndBurst { both, state: None, burst: None }
    }
}

/// A state that was entered.
#[must_use = "the state is left when this is dropped"]
#[derive(Debug)]
pub struct InState {
    payload: Option<[u8; 4]>,
}

impl InState {
    /// Leaves the state and enters another, which the guard ends instead.
    #[inline(always)]
    pub fn change_to(&mut self, state: &'static StateName) {
        *self = InState { payload: None };
        *self = state.enter();
    }
}

impl Drop for InState {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(payload) = self.payload {
            put_end(i::STATE_POP, payload);
        }
    }
}

/// A state with a burst.
#[must_use = "both end when this is dropped"]
#[derive(Debug)]
pub struct InStateAndBurst {
    both: Option<[u8; 16]>,
    #[allow(dead_code, reason = "its drop ends the burst")]
    burst: Option<Burst>,
    #[allow(dead_code, reason = "its drop leaves the state")]
    state: Option<InState>,
}

impl Drop for InStateAndBurst {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(payload) = self.both {
            put_end(i::STATE_AND_BURST_CLOSE, payload);
        }
    }
}

/// Hides state changes of the task on the thread, which become its sub-states; dropping the guard shows the
/// state at that time.
#[inline(always)]
pub fn hide_states() -> StatesHidden {
    StatesHidden { hidden: put(i::STATES_HIDE, []), bound_to_thread: PhantomData }
}

/// States are hidden.
#[must_use = "states are shown again when this is dropped"]
#[derive(Debug)]
pub struct StatesHidden {
    hidden: bool,
    bound_to_thread: PhantomData<*mut ()>,
}

impl Drop for StatesHidden {
    #[inline(always)]
    fn drop(&mut self) {
        if self.hidden {
            put_end(i::STATES_SHOW, []);
        }
    }
}

/// A domain of messages. The halves of a message have the same domain and id, on any threads, also of
/// other processes that are recorded into the same trace. Made once, as a `static`.
pub struct Domain {
    name: &'static str,
    description: &'static str,
    site: Site,
}

/// Content of a message.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Key of its value; 0 for none.
    pub key: u32,
    /// The value.
    pub value: u64,
    /// Its receiver or sender; [`i::NO_PARTNER`] if unknown.
    pub partner: u32,
}

impl Default for Content {
    fn default() -> Content {
        Content { key: 0, value: 0, partner: i::NO_PARTNER }
    }
}

impl Domain {
    /// A domain.
    pub const fn new(name: &'static str, description: &'static str) -> Domain {
        Domain { name, description, site: Site::new() }
    }

    #[inline(always)]
    fn number(&'static self) -> Option<u32> {
        self.site.number(|| {
            register(&Meaning {
                space: Space::Domain,
                name: self.name.as_bytes(),
                description: self.description.as_bytes(),
                more: b"",
                number: 0,
                stacked: false,
            })
        })
    }

    /// An id that no other message of this process has in any domain that uses this.
    pub fn next_id(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Relaxed)
    }

    /// Records the sending half of a message.
    pub fn send(&'static self, id: u64, content: Content) {
        if let Some(domain) = self.number() {
            put_data(i::SEND, &message(domain, id, content));
        }
    }

    /// Records the receiving half of a message.
    pub fn receive(&'static self, id: u64, content: Content) {
        if let Some(domain) = self.number() {
            put_data(i::RECEIVE, &message(domain, id, content));
        }
    }

    /// [`Domain::send`] as seen when `task` next runs.
    pub fn send_from(&'static self, task: super::TaskContext, id: u64, content: Content) {
        self.later(i::DEFERRED_SEND, task, id, content);
    }

    /// [`Domain::receive`] as seen when `task` next runs.
    pub fn receive_in(&'static self, task: super::TaskContext, id: u64, content: Content) {
        self.later(i::DEFERRED_RECEIVE, task, id, content);
    }

    fn later(
        &'static self,
        code: taskscope_event::Code,
        task: super::TaskContext,
        id: u64,
        content: Content,
    ) {
        if let (Some(domain), 1..) = (self.number(), task.id()) {
            let mut data = [0; 36];
            data[..8].copy_from_slice(&task.id().to_le_bytes());
            data[8..].copy_from_slice(&message(domain, id, content));
            put_data(code, &data);
        }
    }
}

fn message(domain: u32, id: u64, content: Content) -> [u8; 28] {
    let mut data = [0; 28];
    data[..4].copy_from_slice(&domain.to_le_bytes());
    data[4..8].copy_from_slice(&content.partner.to_le_bytes());
    data[8..16].copy_from_slice(&id.to_le_bytes());
    data[16..20].copy_from_slice(&content.key.to_le_bytes());
    data[20..].copy_from_slice(&content.value.to_le_bytes());
    data
}

impl super::TaskContext {
    /// A point as seen when the task next runs.
    pub fn point_later(self, key: &'static Key, value: u64) {
        if let (1.., Some(key)) = (self.id(), key.number()) {
            let mut data = [0; 20];
            data[..8].copy_from_slice(&self.id().to_le_bytes());
            data[8..12].copy_from_slice(&key.to_le_bytes());
            data[12..].copy_from_slice(&value.to_le_bytes());
            put_data(i::DEFERRED_POINT, &data);
        }
    }
}
