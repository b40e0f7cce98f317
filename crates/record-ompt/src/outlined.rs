//! Outlined bodies: the functions that compilers generate from constructs, and the constructs' own locations.
//!
//! OMPT identifies a construct by the return address of the call into the runtime. A tail call is a jump, and
//! its return address is that of a caller, or the runtime's. The body belongs to one construct. OMPT does not
//! report it, but the tool data words of LLVM's and Intel's runtimes are fields of the runtime's own records:
//!
//! ```text
//!   team   … ident …  argv  argc  body  launcher ▸ word of the region ◂ return address     argv[0]: body of gcc's programs
//!   task   … ident …  frame ▸ word of the task ◂ …  shared data  body …                    kmp_task_t, known to compilers
//! ```
//! Only the fields next to the team's word are assumed, and only after the return address next to it has
//! matched the fork reported by OMPT. Other distances vary between versions: they are searched once, by their
//! content, with reads that cannot fault. A runtime with another layout yields no bodies, and sites are
//! return addresses.

use core::sync::atomic::{AtomicIsize, AtomicU32, Ordering::Relaxed};

use crate::abi::{self, Data};
use crate::chain::has_next;
use crate::profiling;
use crate::sampler::modules;
use crate::sampler::read_anywhere;
use crate::sampler::runtime_code;
use crate::tool_data::{HELPERS, LEAGUE, TEAMS_BODY, ToolData};

/// Words from a team's word to its body, to the function that starts it, to its arguments, and to the return address.
const TEAM_BODY: isize = -2;
const TEAM_LAUNCHER: isize = -1;
const TEAM_ARGUMENTS: isize = -4;
const TEAM_RETURN: isize = 1;
/// Words before a word of the runtime's in which the pointer to the construct's `ident_t` is searched.
const IDENT: core::ops::RangeInclusive<isize> = 5..=64;
/// Words behind a task's word in which its body is searched: the rest of the runtime's record, and a pointer before it.
const TASK_BODY: core::ops::RangeInclusive<isize> = 2..=20;
/// Maximum number of searches without a result.
const MAX_SEARCHES: u32 = 32;

/// A distance in words that is searched once.
struct Distance {
    /// 0: not found.
    words: AtomicIsize,
    searches: AtomicU32,
}

impl Distance {
    const fn new() -> Distance {
        Distance { words: AtomicIsize::new(0), searches: AtomicU32::new(0) }
    }

    #[inline(always)]
    fn known(&self) -> Option<isize> {
        Some(self.words.load(Relaxed)).filter(|words| *words != 0)
    }

    /// The distance, searched unless that was in vain too often. A search that races with another finds the same.
    #[cold]
    fn find(&self, search: impl FnOnce() -> Option<isize>) -> Option<isize> {
        if self.searches.load(Relaxed) >= MAX_SEARCHES {
            return None;
        }
        self.searches.fetch_add(1, Relaxed);
        let found = search()?;
        self.words.store(found, Relaxed);
        Some(found)
    }

    /// Marks the distance as wrong, without another candidate.
    #[cold]
    fn give_up(&self) {
        self.searches.store(MAX_SEARCHES, Relaxed);
        self.words.store(0, Relaxed);
    }
}

/// Distance from a team's word to the return address of its fork, once that was found at the expected place.
static TEAM: Distance = Distance::new();
static TEAM_IDENT: Distance = Distance::new();
static TASK: Distance = Distance::new();
static TASK_IDENT: Distance = Distance::new();

/// A construct, identified independently of its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlined {
    /// Address of its body; 0 if unknown.
    pub body: u64,
    /// Address of the runtime's word next to the `ident_t`; 0 if there is none.
    word: u64,
    is_task: bool,
}

/// A word at a distance from one of the runtime's, in a record of the form that was found.
///
/// # Safety
/// The runtime's record has a word there.
#[inline(always)]
unsafe fn near(word: *const Data, words: isize) -> u64 {
    // SAFETY: by contract.
    unsafe { word.cast::<u64>().offset(words).read_volatile() }
}

fn read_near(word: *const Data, words: isize) -> Option<u64> {
    read_anywhere((word as u64).checked_add_signed(8 * words as i64)?).ok()
}

/// Whether the tool data words are the runtime's own: a second tool's are interposed.
#[inline(always)]
fn are_runtimes_own() -> bool {
    !has_next()
}

/// Returns the construct of the team that a thread joins, and the return address of its fork. `fork` is the
/// return address that OMPT reported, if this thread forked the team.
#[inline]
pub fn team_construct(team: *mut Data, fork: Option<u64>) -> Option<(Outlined, u64)> {
    if !abi::is_object(team) || !are_runtimes_own() || profiling::is_on() {
        return None;
    }
    let word = ToolData::load(team);
    if word.flags() & (HELPERS | LEAGUE | TEAMS_BODY) != 0 {
        return None;
    }
    if TEAM.known().is_none() {
        let is_there = |fork: u64| {
            let is_code = |address: u64| modules::is_executable(address);
            read_near(team, TEAM_RETURN) == Some(fork) && read_near(team, TEAM_BODY).is_some_and(is_code)
        };
        TEAM.find(|| fork.filter(|fork| is_there(*fork)).map(|_| TEAM_RETURN))?;
    }
    // SAFETY: the fields around the word are at the distances found before.
    let (returns_to, mut body) = unsafe { (near(team, TEAM_RETURN), near(team, TEAM_BODY)) };
    if fork.is_some_and(|fork| fork != returns_to) {
        return None;
    }
    if runtime_code::is_in_runtime(body as *const _) {
        body = argument_of(team);
    }
    Some((Outlined { body, word: team as u64, is_task: false }, returns_to))
}

/// First argument of the function that the runtime calls as the body of a team: for gcc's programs, the body.
/// A team of one thread forked by them has no arguments.
fn argument_of(team: *mut Data) -> u64 {
    // SAFETY: as in `team_construct`.
    let (launcher, arguments) = unsafe { (near(team, TEAM_LAUNCHER), near(team, TEAM_ARGUMENTS)) };
    if launcher == 0 || !abi::is_object(arguments as *const u64) || !arguments.is_multiple_of(8) {
        return 0;
    }
    // SAFETY: the runtime's argument list, which has at least two entries for functions of gcc's programs.
    unsafe { (arguments as *const u64).read_volatile() }
}

/// The construct of a task that is created now.
#[inline(always)]
pub fn task_construct(task: *const Data) -> Outlined {
    match TASK.known() {
        // SAFETY: the runtime's record has the fields found before.
        Some(words) => Outlined { body: unsafe { near(task, words) }, word: task as u64, is_task: true },
        None => Outlined::default(),
    }
}

/// Searches the body field of tasks, if its distance is unknown. For the slow path of task creation.
#[inline(always)]
pub fn look_for_tasks(task: *const Data) {
    if TASK.known().is_none() && TASK.searches.load(Relaxed) < MAX_SEARCHES {
        search_task(task);
    }
}

#[cold]
#[inline(never)]
fn search_task(task: *const Data) {
    if abi::is_object(task) && are_runtimes_own() {
        TASK.find(|| distance_of_task(task));
    }
}

fn distance_of_task(task: *const Data) -> Option<isize> {
    TASK_BODY.into_iter().find(|words| read_near(task, *words).is_some_and(is_body))
}

/// Whether a body may begin at an address.
pub fn is_body(address: u64) -> bool {
    modules::is_executable(address) && !runtime_code::is_in_runtime(address as *const _)
}

impl Outlined {
    /// Checks a construct at its first use: clears a body that is not code. If no task has a body at the
    /// found distance, the distance was wrong.
    #[cold]
    pub fn checked(self) -> Outlined {
        if self.body == 0 || is_body(self.body) {
            return self;
        }
        if self.is_task && distance_of_task(self.word as *const Data) != TASK.known() {
            TASK.give_up();
        }
        Outlined { body: 0, ..self }
    }

    /// The construct's location as its compiler writes it (`;file;function;line;column;;`), if it does. For a construct that
    /// is met first.
    #[cold]
    pub fn location(&self) -> Vec<u8> {
        if self.word == 0 {
            return Vec::new();
        }
        let word = self.word as *const Data;
        let distance = if self.is_task { &TASK_IDENT } else { &TEAM_IDENT };
        let text_at = |words: isize| location_of(read_near(word, words)?);
        let text = match distance.known() {
            Some(words) => text_at(words),
            None => {
                let mut text = None;
                let search = || {
                    IDENT.map(|words| -words).find(|words| {
                        text = text_at(*words);
                        text.is_some()
                    })
                };
                distance.find(search);
                text
            }
        };
        // Written by compilers without debug information, and by the runtime itself for gcc's programs.
        text.filter(|text| !text.starts_with(b";unknown;")).unwrap_or_default()
    }
}

/// The text of an `ident_t` at an address.
fn location_of(ident: u64) -> Option<Vec<u8>> {
    /// `KMP_IDENT_KMPC`: compilers set it.
    const FROM_COMPILER: u64 = 2 << 32;
    /// Maximum stored length.
    const MAX_BYTES: u64 = 1 << 10;
    if !ident.is_multiple_of(8) || !modules::is_loaded(ident) {
        return None;
    }
    if read_anywhere(ident).ok()? & FROM_COMPILER == 0 {
        return None;
    }
    let text = read_anywhere(ident + 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..MAX_BYTES).step_by(8) {
        // Reads words that do not cross a page's end, as the next page may be unmapped.
        let misaligned = text % 8;
        let word = read_anywhere((text - misaligned).checked_add(at)?).ok()?.to_ne_bytes();
        let skipped = if at == 0 { misaligned as usize } else { 0 };
        let part = word.get(skipped..).unwrap_or_default();
        let end = part.iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(part.get(..end.unwrap_or(part.len())).unwrap_or_default());
        if bytes.first() != Some(&b';') {
            return None;
        }
        if end.is_some() {
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Ident {
        reserved: u32,
        flags: u32,
        more: [u32; 2],
        text: *const u8,
    }
    // SAFETY: points to a constant.
    unsafe impl Sync for Ident {}

    #[test]
    fn locations_are_read_from_idents_of_compilers() {
        static TEXT: &[u8] = b";heat.c;solve;41;9;;\0";
        static IDENT: Ident = Ident { reserved: 0, flags: 2, more: [0; 2], text: TEXT.as_ptr() };
        static OTHER: Ident = Ident { reserved: 0, flags: 0, more: [0; 2], text: TEXT.as_ptr() };
        let at = |ident: &Ident| core::ptr::from_ref(ident) as u64;
        assert_eq!(location_of(at(&IDENT)).as_deref(), Some(&TEXT[..TEXT.len() - 1]));
        assert_eq!(location_of(at(&OTHER)), None);
        assert_eq!(location_of(at(&IDENT) + 4), None);
        assert_eq!(location_of(0x10_0000), None);
        let local = Ident { reserved: 0, flags: 2, more: [0; 2], text: c"text".as_ptr().cast() };
        assert_eq!(location_of(at(&local)), None, "compilers write no idents on the stack");
    }

    #[test]
    fn bodies_are_code() {
        let body = bodies_are_code as fn() as usize as u64;
        assert!(is_body(body));
        static DATA: u64 = 1;
        assert!(!is_body(core::ptr::from_ref(&DATA) as u64) && !is_body(0) && !is_body(0x10_0000));
    }

    #[test]
    fn a_task_has_its_body_behind_its_word() {
        let body = bodies_are_code as fn() as usize as u64;
        let mut words = [0_u64; 32];
        (words[9], words[10]) = (body, body);
        assert_eq!(distance_of_task(words.as_ptr().cast()), Some(9));
        words[9] = 0;
        words[10] = 0;
        assert_eq!(distance_of_task(words.as_ptr().cast()), None);
    }
}
