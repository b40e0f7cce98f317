//! Sinks in C: functions of the program that receive events while it runs.

use core::ffi::{c_char, c_int, c_void};
use std::mem::size_of;

use taskscope_record::instrument::named::{self, Space};
use taskscope_record::instrument::sinks::{self, Behaviour, LiveEvent, Shown, Sink};

use crate::contexts::Pair;

/// `struct taskscope_sink`.
#[repr(C)]
pub struct CSink {
    /// Bytes of the caller's struct; later versions may have more.
    size: usize,
    behaviour: u32,
    event: Option<unsafe extern "C" fn(*mut c_void, *const CShown)>,
    finish: Option<unsafe extern "C" fn(*mut c_void)>,
    user: *mut c_void,
}

/// `struct taskscope_shown`. States and domains are numbers as `taskscope.h` gives them: plus one.
#[repr(C)]
pub struct CShown {
    size: usize,
    at: u64,
    thread: i32,
    what: u32,
    number: u32,
    key: u32,
    value: u64,
    id: u64,
    parent: u64,
    partner: u32,
    pair_count: u32,
    pairs: *const Pair,
}

/// `enum taskscope_what`.
#[repr(u32)]
enum ShownKind {
    StateBegins,
    StateEnds,
    SubstateBegins,
    SubstateEnds,
    BurstBegins,
    BurstEnds,
    Point,
    Composite,
    Sends,
    Receives,
    TaskCreated,
    TaskReady,
    TaskTakenUp,
    TaskPutDown,
    TaskEnded,
}

/// Loads a sink. Returns 0, or -1 if the struct is invalid.
///
/// # Safety
/// `sink` is null, or points to a struct of the size in its first field; its functions may be called on any
/// thread, one at a time, until `finish` has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_add_sink(sink: *const CSink) -> c_int {
    // SAFETY: by contract; the size comes first.
    if sink.is_null() || unsafe { (*sink).size } < size_of::<CSink>() {
        return -1;
    }
    // SAFETY: by contract.
    let CSink { behaviour, event, finish, user, .. } = unsafe { sink.read() };
    let (Some(&behaviour), Some(event)) = (Behaviour::ALL.get(behaviour as usize), event) else { return -1 };
    sinks::add(Adapter { behaviour, event, finish, user });
    0
}

struct Adapter {
    behaviour: Behaviour,
    event: unsafe extern "C" fn(*mut c_void, *const CShown),
    finish: Option<unsafe extern "C" fn(*mut c_void)>,
    user: *mut c_void,
}

// SAFETY: the caller of `taskscope_add_sink` promises that the functions may be called on any thread.
unsafe impl Send for Adapter {}

impl Sink for Adapter {
    fn behaviour(&self) -> Behaviour {
        self.behaviour
    }

    fn event(&mut self, event: &LiveEvent<'_>) {
        let shown = c_shown(event);
        // SAFETY: by the contract of `taskscope_add_sink`; all pointers are valid during the call.
        unsafe { (self.event)(self.user, &shown) }
    }

    fn finish(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: as above.
            unsafe { finish(self.user) }
        }
    }
}

fn c_shown(event: &LiveEvent<'_>) -> CShown {
    let mut c = CShown {
        size: size_of::<CShown>(),
        at: event.at,
        thread: event.thread,
        what: 0,
        number: 0,
        key: 0,
        value: 0,
        id: 0,
        parent: 0,
        partner: taskscope_event::models::instrument::NO_PARTNER,
        pair_count: 0,
        pairs: core::ptr::null(),
    };
    let what = match event.shown {
        Shown::StateStart(state) => (c.number = state + 1, ShownKind::StateBegins).1,
        Shown::StateEnd(state) => (c.number = state + 1, ShownKind::StateEnds).1,
        Shown::SubstateStart(state) => (c.number = state + 1, ShownKind::SubstateBegins).1,
        Shown::SubstateEnd(state) => (c.number = state + 1, ShownKind::SubstateEnds).1,
        Shown::BurstStart { key, value } => ((c.key, c.value) = (key, value), ShownKind::BurstBegins).1,
        Shown::BurstEnd { key, value } => ((c.key, c.value) = (key, value), ShownKind::BurstEnds).1,
        Shown::Point { key, value } => ((c.key, c.value) = (key, value), ShownKind::Point).1,
        Shown::Composite(pairs) => {
            // A pair has C's layout in the record: four bytes, then eight, packed.
            let bytes = pairs.0;
            c.pairs = bytes.as_ptr().cast();
            c.pair_count = (bytes.len() / size_of::<Pair>()) as u32;
            ShownKind::Composite
        }
        Shown::Send(m) | Shown::Receive(m) => {
            (c.number, c.id, c.key) = (m.domain + 1, m.id, m.key);
            (c.value, c.partner) = (m.value, m.partner);
            if matches!(event.shown, Shown::Send(_)) { ShownKind::Sends } else { ShownKind::Receives }
        }
        Shown::Created { task, kind, parent } => {
            (c.id, c.number, c.parent) = (task, kind, parent);
            ShownKind::TaskCreated
        }
        Shown::Ready { task } => (c.id = task, ShownKind::TaskReady).1,
        Shown::Resume { task, .. } => (c.id = task, ShownKind::TaskTakenUp).1,
        Shown::Suspend { task, last: false, .. } => (c.id = task, ShownKind::TaskPutDown).1,
        Shown::Suspend { task, last: true, .. } => (c.id = task, ShownKind::TaskEnded).1,
    };
    c.what = what as u32;
    c
}

/// Puts the name of a number into `buffer`, cut to `bytes` with a NUL, and returns its length.
///
/// # Safety
/// `buffer` points to `bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_name(
    space: u32,
    number: u32,
    value: u64,
    buffer: *mut c_char,
    bytes: usize,
) -> usize {
    let found = match space {
        0 => named::name_of(Space::State, u64::from(number.wrapping_sub(1))),
        1 => named::name_of(Space::Key, u64::from(number)),
        2 => named::name_of(Space::ValueOf(number), value),
        3 => named::name_of(Space::Domain, u64::from(number.wrapping_sub(1))),
        4 => named::name_of(Space::TaskKind, u64::from(number)),
        _ => None,
    };
    let name = found.unwrap_or_default();
    if !buffer.is_null() && bytes > 0 {
        let kept = name.len().min(bytes - 1);
        // SAFETY: by contract.
        unsafe {
            core::ptr::copy_nonoverlapping(name.as_ptr(), buffer.cast(), kept);
            *buffer.add(kept) = 0;
        }
    }
    name.len()
}
