//! Outlined bodies: the functions that compilers make of constructs, and the constructs' own locations.
//!
//! OMPT names a construct by the return address of the call into the runtime. A call at the end of a function is a jump, and
//! its return address is that of a caller, or the runtime's. The body belongs to one construct. OMPT does not report it, but
//! the words that LLVM's runtime and Intel's give to a tool are fields of the runtime's own records:
//!
//! ```text
//!   team   … ident …  argv  argc  body  launcher ▸ word of the region ◂ return address     argv[0]: body of gcc's programs
//!   task   … ident …  frame ▸ word of the task ◂ …  shared data  body …                    kmp_task_t, known to compilers
//! ```
//! Only the neighbours of the team's word are taken as known, and only once the return address next to it is that of the fork
//! which OMPT has reported. Other distances differ between versions: they are searched once, by what they lead to, with
//! reads that cannot fault. A runtime of another form yields no bodies, and sites are return addresses as before.

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
/// Searches without result after which no more are made.
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

    /// The distance is wrong, and there is no right one.
    #[cold]
    fn give_up(&self) {
        self.searches.store(MAX_SEARCHES, Relaxed);
        self.words.store(0, Relaxed);
    }
}

/// From a team's word to the return address of its fork, once that was where it is expected.
static TEAM: Distance = Distance::new();
static TEAM_IDENT: Distance = Distance::new();
static TASK: Distance = Distance::new();
static TASK_IDENT: Distance = Distance::new();

/// A construct by what does not depend on where it was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlined {
    /// Its body; 0 where that is not known.
    pub body: u64,
    /// The runtime's word beside which its `ident_t` is named; 0 where there is none.
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

/// Whether words of the runtime are those that it passes: a second tool's stand between.
#[inline(always)]
fn are_runtimes_own() -> bool {
    !has_next()
}

/// The construct of the team that a thread joins, and where its fork returns to; `fork` is that as OMPT has reported it,
/// if this thread has forked the team.
#[inline]
pub fn of_team(team: *mut Data, fork: Option<u64>) -> Option<(Outlined, u64)> {
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
    // SAFETY: the fields around the word are where they were found.
    let (returns_to, mut body) = unsafe { (near(team, TEAM_RETURN), near(team, TEAM_BODY)) };
    if fork.is_some_and(|fork| fork != returns_to) {
        return None;
    }
    if runtime_code::is_in_runtime(body as *const _) {
        body = argument_of(team);
    }
    Some((Outlined { body, word: team as u64, is_task: false }, returns_to))
}

/// The first argument of what the runtime calls as the body of a team: of gcc's programs, the body. A team of one thread that
/// these fork has no arguments.
fn argument_of(team: *mut Data) -> u64 {
    // SAFETY: as in `of_team`.
    let (launcher, arguments) = unsafe { (near(team, TEAM_LAUNCHER), near(team, TEAM_ARGUMENTS)) };
    if launcher == 0 || !abi::is_object(arguments as *const u64) || !arguments.is_multiple_of(8) {
        return 0;
    }
    // SAFETY: the runtime's list of arguments, of which what it calls for gcc's programs has two at least.
    unsafe { (arguments as *const u64).read_volatile() }
}

/// The construct of a task that is created now.
#[inline(always)]
pub fn of_task(task: *const Data) -> Outlined {
    match TASK.known() {
        // SAFETY: the runtime's record goes on as it was found.
        Some(words) => Outlined { body: unsafe { near(task, words) }, word: task as u64, is_task: true },
        None => Outlined::default(),
    }
}

/// Searches where tasks have their bodies, if that is not known. For the slow path of a task's creation.
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
    /// Checks what is met first: a body that is no code is none. Where tasks have none at the distance found, that was wrong.
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
        // What compilers write without debug information, and what the runtime itself writes for gcc's programs.
        text.filter(|text| !text.starts_with(b";unknown;")).unwrap_or_default()
    }
}

/// The text of an `ident_t` at an address.
fn location_of(ident: u64) -> Option<Vec<u8>> {
    /// `KMP_IDENT_KMPC`: compilers set it.
    const FROM_COMPILER: u64 = 2 << 32;
    /// No more of it is kept.
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
        // Words that do not cross a page's end, behind which there may be nothing.
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
