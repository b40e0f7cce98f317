//! Sites and types: small numbers for code addresses in events.
//!
//! Each thread has a small cache in front of the process's table (`table.rs`).

use core::ffi::c_void;

use crate::abi::{self, Data};
use crate::outlined::{self, Outlined};
use crate::sampler::runtime_code::is_in_runtime;
use crate::site_cache::{BY_SITE, Entry, Key, LAST_CALL, PLAIN_SITE, WORK};
use crate::table::TABLE;
use crate::thread::Moment;

impl Moment<'_> {
    /// Returns the site of a code pointer; if that is missing or inside the runtime, the site of the
    /// enclosing construct.
    #[inline(always)]
    pub fn site(&mut self, codeptr: *const c_void) -> u32 {
        // A profile has no sites: its places are call paths.
        if self.thread.profile.is_some() {
            return 0;
        }
        match user_code(codeptr) {
            Some(address) => self.entry(Key::plain_site(address), Outlined::default()).site,
            None => self.thread.frames.nearest_site(),
        }
    }

    /// Returns the site of a code pointer; 0 if it is missing or inside the runtime.
    #[inline(always)]
    pub fn known_site(&mut self, codeptr: *const c_void) -> u32 {
        if self.thread.profile.is_some() {
            return 0;
        }
        user_code(codeptr).map_or(0, |address| self.entry(Key::plain_site(address), Outlined::default()).site)
    }

    /// Returns the site of the team's region that this thread joins, by its outlined body; `None` if that is
    /// unknown. `fork` is the return address of the fork, if this thread forked the team.
    #[inline(always)]
    pub fn site_of_team(&mut self, team: *mut Data, fork: Option<u64>) -> Option<u32> {
        let (outlined, returns_to) = outlined::team_construct(team, fork)?;
        if outlined.body == 0 {
            return None;
        }
        let address = user_code(returns_to as *const c_void).unwrap_or(BY_SITE);
        let site = self.entry(Key { address, body: outlined.body, role: PLAIN_SITE }, outlined).site;
        (site != 0).then_some(site)
    }

    /// Returns the site of a region with an unknown body, if its fork returns to the runtime: the fork is the
    /// last call of the enclosing body. 0 if that is unknown too.
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
            if abi::is_object(new_task) { outlined::task_construct(new_task) } else { Outlined::default() };
        let address = user_code(codeptr).unwrap_or_else(|| match outlined.body {
            0 => self.enclosing(),
            _ => BY_SITE,
        });
        self.entry(Key::task_site(address, outlined.body, flags), outlined)
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
        // Outside of the table's lock: both call the loader.
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
        if let Some(place) = self.thread.cache.slot(slot) {
            *place = (key, entry);
        }
        entry
    }
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
