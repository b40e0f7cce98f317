//! Sites and types: the small numbers that stand for code addresses in events.
//!
//! Each thread has a small cache in front of the process's table (`table.rs`).

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::abi::{self, Data};
use crate::outlined::{self, Outlined};
use crate::sampler::modules;
use crate::sampler::runtime_inside;
use crate::table::{BY_SITE, Entry, Key, LAST_CALL, PLAIN_SITE, TABLE, WORK};
use crate::thread::Moment;

const SLOTS_LOG2: u32 = 6;

/// A thread's direct-mapped cache in front of the table.
pub struct Cache([(Key, Entry); 1 << SLOTS_LOG2]);

impl Default for Cache {
    fn default() -> Self {
        Cache([Default::default(); 1 << SLOTS_LOG2])
    }
}

impl Cache {
    /// What the thread knows of a key, or where it would be.
    #[inline(always)]
    fn get(&self, key: Key) -> Result<Entry, usize> {
        let hash = (key.address ^ key.body.rotate_left(20) ^ u64::from(key.role) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> (64 - SLOTS_LOG2)) as usize;
        match self.0.get(slot) {
            Some((known, entry)) if *known == key => Ok(*entry),
            _ => Err(slot),
        }
    }

    /// [`Moment::task_type`], if the thread has met it. Whether the address is the runtime's need not be asked: none of those is a key.
    #[inline(always)]
    pub fn known_task_type(&self, codeptr: *const c_void, body: u64, flags: u32) -> Option<Entry> {
        if !abi::is_object(codeptr) {
            return None;
        }
        self.get(Key::of_tasks(codeptr as u64, body, flags)).ok()
    }
}

impl Key {
    #[inline(always)]
    fn of_tasks(address: u64, body: u64, flags: u32) -> Key {
        Key { address, body, role: flags & !(PLAIN_SITE | WORK) }
    }

    fn of_site(address: u64) -> Key {
        Key { address, body: 0, role: PLAIN_SITE }
    }
}

impl Moment<'_> {
    /// The site of a code pointer; where that is missing or inside the runtime, the site of what
    /// encloses the construct.
    #[inline(always)]
    pub fn site(&mut self, codeptr: *const c_void) -> u32 {
        // A profile has no sites: its places are call paths.
        if self.thread.profile.is_some() {
            return 0;
        }
        match user_code(codeptr) {
            Some(address) => self.entry(Key::of_site(address), Outlined::default()).site,
            None => self.thread.frames.nearest_site(),
        }
    }

    /// The site of a code pointer; 0 where that is missing or inside the runtime.
    #[inline(always)]
    pub fn known_site(&mut self, codeptr: *const c_void) -> u32 {
        if self.thread.profile.is_some() {
            return 0;
        }
        user_code(codeptr).map_or(0, |address| self.entry(Key::of_site(address), Outlined::default()).site)
    }

    /// The site of the region whose team this thread joins, by its outlined body; `None` where that is not known. `fork` is
    /// where the fork returns to, if this thread has forked the team.
    #[inline(always)]
    pub fn site_of_team(&mut self, team: *mut Data, fork: Option<u64>) -> Option<u32> {
        let (outlined, returns_to) = outlined::of_team(team, fork)?;
        if outlined.body == 0 {
            return None;
        }
        let address = user_code(returns_to as *const c_void).unwrap_or(BY_SITE);
        let site = self.entry(Key { address, body: outlined.body, role: PLAIN_SITE }, outlined).site;
        (site != 0).then_some(site)
    }

    /// The site of a region whose fork returns to the runtime and whose body is not known: it ends the body that encloses it.
    /// 0 where that is not known either.
    #[cold]
    pub fn site_of_last_call(&mut self) -> u32 {
        let address = self.enclosing();
        self.entry(Key { address, body: 0, role: LAST_CALL }, Outlined::default()).site
    }

    /// The type of a task that is created at a code pointer with these flags.
    #[inline(always)]
    pub fn task_type(&mut self, codeptr: *const c_void, new_task: *const Data, flags: u32) -> Entry {
        outlined::look_for_tasks(new_task);
        let outlined =
            if abi::is_object(new_task) { outlined::of_task(new_task) } else { Outlined::default() };
        let address = user_code(codeptr).unwrap_or_else(|| match outlined.body {
            0 => self.enclosing(),
            _ => BY_SITE,
        });
        self.entry(Key::of_tasks(address, outlined.body, flags), outlined)
    }

    /// The type of a worksharing construct of this OMPT kind.
    #[inline(always)]
    pub fn work_type(&mut self, codeptr: *const c_void, kind: u32) -> Entry {
        if self.thread.profile.is_some() {
            return Entry::default();
        }
        let address = user_code(codeptr).unwrap_or_else(|| self.enclosing());
        self.entry(Key { address, body: 0, role: WORK | kind }, Outlined::default())
    }

    #[cold]
    fn enclosing(&self) -> u64 {
        BY_SITE | u64::from(self.thread.frames.nearest_site())
    }

    #[inline(always)]
    fn entry(&mut self, key: Key, outlined: Outlined) -> Entry {
        self.thread.cache.get(key).unwrap_or_else(|slot| self.look_up(key, outlined, slot))
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, key: Key, outlined: Outlined, slot: usize) -> Entry {
        // Asked outside of the table: both ask the loader.
        let outlined = outlined.checked();
        let mut known = Key { body: outlined.body, ..key };
        if known.body == 0 && known.address == BY_SITE {
            known.address = self.enclosing();
        }
        let found = self.write_anyway(|moment| {
            TABLE.with(|table| {
                moment.read_clock_again();
                let entry = table.entry(known, outlined, moment);
                moment.thread.explained = table.explained;
                entry
            })
        });
        let entry = found.unwrap_or_default();
        if let Some(place) = self.thread.cache.0.get_mut(slot) {
            *place = (key, entry);
        }
        entry
    }
}

/// The address range of the OpenMP runtime, whose code pointers say nothing to a user.
static RUNTIME_START: AtomicUsize = AtomicUsize::new(0);
static RUNTIME_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Tells where the runtime lies: in the module that holds `address`, or in functions of the program.
pub fn set_runtime(address: usize) {
    let Some(module) = modules::find(address as u64) else { return };
    let range = match module.is_program {
        true if runtime_inside::is_known() => None,
        true => runtime_inside::look(module.bias),
        false => Some((module.start, module.end)),
    };
    if let Some((start, end)) = range {
        RUNTIME_START.store(start as usize, Relaxed);
        RUNTIME_BYTES.store((end - start) as usize, Relaxed);
    }
}

/// Looks for a runtime that has not made itself known yet: LLVM's and Intel's, by the entry that every
/// region begins with. While it starts, the program's first fork is already in its code.
pub fn expect_runtime() {
    if RUNTIME_BYTES.load(Relaxed) == 0 {
        // Not by `dlsym`, which may be this library's own.
        // SAFETY: looks up C strings.
        let entry =
            unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__kmpc_fork_call".as_ptr(), c"VERSION".as_ptr()) };
        if !entry.is_null() {
            set_runtime(entry as usize);
        }
    }
}

/// Whether a code pointer lies inside the runtime.
#[inline(always)]
pub fn is_in_runtime(codeptr: *const c_void) -> bool {
    (codeptr as usize).wrapping_sub(RUNTIME_START.load(Relaxed)) < RUNTIME_BYTES.load(Relaxed)
        && is_not_the_programs(codeptr)
}

/// Whether a code pointer lies in the library that starts kernels, whose regions are the kernels'. Looked for once an address.
pub fn is_of_kernels(codeptr: *const c_void) -> bool {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let address = codeptr as usize;
    if LAST.load(Relaxed) == address {
        return address != 0;
    }
    let found =
        modules::find(address as u64).is_some_and(|module| module.file_name().starts_with(b"libomptarget"));
    if found {
        LAST.store(address, Relaxed);
    }
    found
}

/// Of an address where the runtime lies: between functions of one that is linked into the program may be others.
#[cold]
fn is_not_the_programs(codeptr: *const c_void) -> bool {
    !runtime_inside::is_known() || runtime_inside::contains(codeptr as u64)
}

#[inline(always)]
fn user_code(codeptr: *const c_void) -> Option<u64> {
    (abi::is_object(codeptr) && !is_in_runtime(codeptr)).then_some(codeptr as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_code_pointers_are_no_user_code() {
        assert_eq!(user_code(core::ptr::null()), None);
        assert_eq!(user_code(0x220 as *const c_void), None);
        assert_eq!(user_code(0x55_0000_1234 as *const c_void), Some(0x55_0000_1234));
    }
}
