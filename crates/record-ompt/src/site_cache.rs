//! Per-thread cache of sites and types, in front of the process's table.

use core::ffi::c_void;

use crate::abi;
use crate::tool_data::{EXPLICIT, ToolData};

/// The numbers of a construct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its type; 0 for a plain site, and if the type could not be recorded.
    pub typeid: u32,
    /// Its code site; 0 is unknown.
    pub site: u32,
    /// For a task type: the common part of its tasks' data words.
    pub task_data: ToolData,
}

impl Entry {
    /// The numbers, with the tool data of tasks of this type.
    pub fn new(typeid: u32, site: u32) -> Self {
        Entry { typeid, site, task_data: ToolData::new(0, site, EXPLICIT) }
    }
}

/// Lookup key: an address (or a known site, see [`BY_SITE`]) in one of three roles, and the body of the
/// construct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    /// A code address; with [`BY_SITE`] a site.
    pub address: u64,
    /// Address of the construct's outlined body; 0 if unknown, or if only the address identifies the entry.
    pub body: u64,
    /// [`PLAIN_SITE`], [`WORK`] with a kind, or OMPT's task flags.
    pub role: u32,
}

/// A role: only the site counts. This bit and the next are free in OMPT's task flags.
pub const PLAIN_SITE: u32 = 0x0100_0000;
/// A role: a worksharing construct, of the OMPT kind in the other bits.
pub const WORK: u32 = 0x0200_0000;
/// A role: the call at the end of the body of the construct at a site, which returns to the runtime.
pub const LAST_CALL: u32 = PLAIN_SITE | WORK;
/// Flag in an address that no code has. The rest is a site number, for constructs of unknown address that use
/// the site of the enclosing construct.
pub const BY_SITE: u64 = 1 << 63;

const SLOTS_LOG2: u32 = 6;

/// A thread's direct-mapped cache in front of the table.
pub struct SiteCache([(Key, Entry); 1 << SLOTS_LOG2]);

impl Default for SiteCache {
    fn default() -> Self {
        SiteCache([Default::default(); 1 << SLOTS_LOG2])
    }
}

impl SiteCache {
    /// Looks up a key; returns its entry, or the slot for it.
    #[inline(always)]
    pub fn get(&self, key: Key) -> Result<Entry, usize> {
        let hash = (key.address ^ key.body.rotate_left(20) ^ u64::from(key.role) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> (64 - SLOTS_LOG2)) as usize;
        match self.0.get(slot) {
            Some((known, entry)) if *known == key => Ok(*entry),
            _ => Err(slot),
        }
    }

    /// The place that [`get`](Self::get) has named.
    #[inline]
    pub fn slot(&mut self, slot: usize) -> Option<&mut (Key, Entry)> {
        self.0.get_mut(slot)
    }

    /// Type of a task, if the thread knows it. The address need not be checked against the runtime's: none of
    /// those is a key.
    #[inline(always)]
    pub fn known_task_type(&self, codeptr: *const c_void, body: u64, flags: u32) -> Option<Entry> {
        if !abi::is_object(codeptr) {
            return None;
        }
        self.get(Key::task_site(codeptr as u64, body, flags)).ok()
    }
}

impl Key {
    #[inline(always)]
    /// The key of tasks that are created at an address with these flags.
    pub fn task_site(address: u64, body: u64, flags: u32) -> Key {
        Key { address, body, role: flags & !(PLAIN_SITE | WORK) }
    }

    /// The key of a plain site.
    #[inline(always)]
    pub fn plain_site(address: u64) -> Key {
        Key { address, body: 0, role: PLAIN_SITE }
    }
}
