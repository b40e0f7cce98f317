//! The collector of NVTX (NVIDIA's Tools Extension): ranges and marks that programs and libraries report.
//!
//! ```text
//!  module with NVTX ── first call ── NVTX_INJECTION64_PATH ──▶ connect: fills the tables of functions
//!        │                                                         │
//!        └── nvtxRangePush, … ────────────────────────────────────▶ functions ──▶ record::instrument
//! ```
//!
//! NVTX is a header: each module has functions of its own, which are filled once, at its first call ([`connect`]).
//! The layout of tables and attributes is that of the public header (`abi`).
//!
//! | NVTX | recorded as ([`taskscope_record::instrument`]) |
//! | --- | --- |
//! | range of push and pop | a state of its name, on the thread's stack of states; class useful |
//! | range of start and end | a burst on the key of its name |
//! | mark | a point on the key of its name, with its payload |
//! | name of a thread | the thread's name |
//!
//! **Names** are `DOMAIN: MESSAGE [CATEGORY]`, without the domain for the default one and without the category for none.
//! A category has the name that the program gave it before its first use, else its number. Floating-point payloads are
//! rounded to integers.
//!
//! **Levels.** Each domain has a stack of its own. States of a thread have one stack: of ranges that overlap, the outer one
//! ends with the inner one.
//!
//! **Ranges that end on another thread** are closed at the next range that starts on the thread that began them, or at its end.
//!
//! **Not recorded.** Colours, resources, names of devices, synchronisation objects.

mod abi;
mod functions;

use core::sync::atomic::{AtomicU64, Ordering::*};

use taskscope_record::instrument::{Class, Level, named};

use crate::cached::Cached;
use crate::names::Names;
use crate::overlapped;
use crate::stack::{self, Recorded, StateKind};

pub use abi::GetTable;
pub use functions::connect;

/// Messages, domains, registered strings and categories.
static TEXTS: Names<16_384> = Names::new();

/// The use of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Pushed,
    Started,
    Mark,
    Domain,
    Registered,
    Category,
}

/// A text with an identity: a domain or a registered string.
pub struct Handle {
    text: &'static [u8],
}

/// The handle of a text in a domain, the same for equal texts; null without room.
fn handle(used: Use, domain: *const Handle, text: &[u8]) -> *const Handle {
    let Some((numbers, text)) = TEXTS.find([used as u64, domain.addr() as u64], text) else {
        return core::ptr::null();
    };
    let known = numbers.total.load(Acquire);
    if known != 0 {
        return core::ptr::with_exposed_provenance(known as usize);
    }
    let made = Box::into_raw(Box::new(Handle { text }));
    match numbers.total.compare_exchange(0, made.expose_provenance() as u64, AcqRel, Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: made above, and not shared.
            drop(unsafe { Box::from_raw(made) });
            core::ptr::with_exposed_provenance(other as usize)
        }
    }
}

/// The text of a handle; none for null.
fn text_of(handle: *const Handle) -> &'static [u8] {
    // SAFETY: null, or a handle of this collector, which is never freed.
    unsafe { handle.as_ref() }.map_or(&[], |handle| handle.text)
}

fn category_scope(domain: *const Handle, category: u32) -> [u64; 2] {
    [Use::Category as u64 | u64::from(category) << 8, domain.addr() as u64]
}

/// Names a category of a domain.
fn name_category(domain: *const Handle, category: u32, name: &[u8]) {
    if let Some((numbers, _)) = TEXTS.find(category_scope(domain, category), b"") {
        numbers.total.store(handle(Use::Registered, domain, name).expose_provenance() as u64, Release);
    }
}

/// An event as its caller describes it.
struct Event<'a> {
    domain: *const Handle,
    category: u32,
    message: &'a [u8],
    payload: u64,
}

impl Event<'_> {
    /// The number of its name in the dictionary; that of the name `other ranges` if there are too many.
    fn number(&self, used: Use) -> Option<u32> {
        static OTHERS: [Cached; 3] = [const { Cached::new() }; 3];
        let scope = [used as u64 | u64::from(self.category) << 8, self.domain.addr() as u64];
        match TEXTS.find(scope, self.message) {
            Some((numbers, message)) => numbers.number.number(|| ask(used, &self.name(message))),
            None => OTHERS.get(used as usize)?.number(|| ask(used, b"other ranges of NVTX")),
        }
    }

    fn name(&self, message: &[u8]) -> Vec<u8> {
        let mut name = Vec::new();
        let domain = text_of(self.domain);
        if !domain.is_empty() {
            name.extend_from_slice(&[domain, b": "].concat());
        }
        name.extend_from_slice(if message.is_empty() { b"without a message" } else { message });
        if self.category != 0 {
            let known = TEXTS.find(category_scope(self.domain, self.category), b"");
            let known = known.map_or(0, |(numbers, _)| numbers.total.load(Acquire));
            let category = match text_of(core::ptr::with_exposed_provenance(known as usize)) {
                [] => format!("category {}", self.category).into_bytes(),
                text => text.to_owned(),
            };
            name.extend_from_slice(&[b" [", &*category, b"]"].concat());
        }
        name
    }

    /// Begins a range on the thread's stack; returns its level in its domain.
    fn push(&self) -> i32 {
        let level = stack::count(StateKind::Range, self.domain.addr());
        stack::begin(StateKind::Range, self.domain.addr(), || Recorded::state(self.number(Use::Pushed)));
        level as i32
    }

    /// Starts a range that any thread may end; returns its number, 0 if it is not recorded: its end has nothing to close.
    fn start(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let Some(key) = self.number(Use::Started) else { return 0 };
        let number = NEXT.fetch_add(1, Relaxed);
        if overlapped::begin((overlapped::IntervalKind::Range, [number, 0, 0]), key, 1) { number } else { 0 }
    }

    fn mark(&self) {
        if let Some(key) = self.number(Use::Mark) {
            named::point(key, self.payload);
        }
    }
}

fn ask(used: Use, name: &[u8]) -> Option<u32> {
    let level = Level::User as u32;
    match used {
        Use::Pushed => named::state(name, b"range reported through NVTX", Class::Useful as u32),
        Use::Started => named::key_of(name, b"range reported through NVTX", level, b"", true),
        _ => named::key(&[name, b" [mark]"].concat(), b"mark reported through NVTX", level),
    }
}

/// Ends the innermost range of a domain; returns its level, negative without one.
fn pop(domain: *const Handle) -> i32 {
    let level = stack::count(StateKind::Range, domain.addr()) as i32 - 1;
    stack::end(StateKind::Range, domain.addr());
    level
}

fn end(number: u64) {
    overlapped::end_anywhere((overlapped::IntervalKind::Range, [number, 0, 0]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_domain_and_category() {
        let domain = handle(Use::Domain, core::ptr::null(), b"solver");
        assert_eq!(handle(Use::Domain, core::ptr::null(), b"solver"), domain);
        name_category(domain, 3, b"assembly");
        let name = |domain, category| {
            let event = Event { domain, category, message: b"matrix", payload: 0 };
            String::from_utf8(event.name(event.message)).unwrap()
        };
        assert_eq!(name(core::ptr::null(), 0), "matrix");
        assert_eq!(name(domain, 3), "solver: matrix [assembly]");
        assert_eq!(name(domain, 4), "solver: matrix [category 4]");
        assert_eq!(name(core::ptr::null(), 3), "matrix [category 3]");
    }

    #[test]
    fn levels_count_per_domain() {
        let domain = handle(Use::Domain, core::ptr::null(), b"levels");
        let event = |domain| Event { domain, category: 0, message: b"x", payload: 0 };
        let default = core::ptr::null();
        assert_eq!((event(default).push(), event(domain).push(), event(default).push()), (0, 0, 1));
        assert_eq!((pop(default), pop(default), pop(default), pop(domain)), (1, 0, -1, 0));
    }

    #[test]
    fn ranges_that_are_not_recorded_have_no_number() {
        let event = Event { domain: core::ptr::null(), category: 0, message: b"x", payload: 0 };
        assert_eq!(event.start(), 0);
    }
}
