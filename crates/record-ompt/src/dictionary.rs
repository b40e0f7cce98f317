//! Sites and types: the small numbers that stand for code addresses in events.
//!
//! Each thread has a small cache; behind it lies one table per process, under a lock. Who meets an
//! address first writes its dictionary events, inside the lock, so that no thread can use a number
//! at an earlier time than that of the event which explains it.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};
use std::collections::HashMap;
use std::io::Write as _;

use taskscope_event::models::{dictionary, openmp};

use crate::abi::{self, task_flag, work};
use crate::modules::{self, Module};
use crate::thread::Moment;
use crate::word::{EXPLICIT, Word};

/// The numbers of a construct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its type; 0 for a plain site, and where the type could not be recorded.
    pub typeid: u32,
    /// Its code site; 0 is unknown.
    pub site: u32,
    /// For a task type: what the words of its tasks have in common.
    pub task_word: Word,
}

impl Entry {
    fn new(typeid: u32, site: u32) -> Self {
        Entry { typeid, site, task_word: Word::new(0, site, EXPLICIT) }
    }
}

/// What is looked up: an address (or a known site, see [`BY_SITE`]) in one of three roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    address: u64,
    /// [`PLAIN_SITE`], [`WORK`] with a kind, or OMPT's task flags.
    role: u32,
}

/// Bits that OMPT leaves free in task flags.
const PLAIN_SITE: u32 = 0x0100_0000;
const WORK: u32 = 0x0200_0000;
/// Set in an address that no code has: the rest is the number of a site, for constructs whose own
/// address is unknown and that take over the site of what encloses them.
const BY_SITE: u64 = 1 << 63;

const SLOTS_LOG2: u32 = 6;

/// A thread's direct-mapped cache in front of the table.
pub struct Cache([(Key, Entry); 1 << SLOTS_LOG2]);

impl Default for Cache {
    fn default() -> Self {
        Cache([Default::default(); 1 << SLOTS_LOG2])
    }
}

impl Moment<'_> {
    /// The site of a code pointer; where that is missing or inside the runtime, the site of what
    /// encloses the construct.
    #[inline(always)]
    pub fn site(&mut self, codeptr: *const c_void) -> u32 {
        match user_code(codeptr) {
            Some(address) => self.entry(Key { address, role: PLAIN_SITE }).site,
            None => self.thread.frames.nearest_site(),
        }
    }

    /// The site of a code pointer; 0 where that is missing or inside the runtime.
    #[inline(always)]
    pub fn known_site(&mut self, codeptr: *const c_void) -> u32 {
        user_code(codeptr).map_or(0, |address| self.entry(Key { address, role: PLAIN_SITE }).site)
    }

    /// The type of the tasks that are created at a code pointer with these flags.
    #[inline(always)]
    pub fn task_type(&mut self, codeptr: *const c_void, flags: u32) -> Entry {
        let address = user_code(codeptr).unwrap_or_else(|| self.enclosing());
        self.entry(Key { address, role: flags & !(PLAIN_SITE | WORK) })
    }

    /// The type of a worksharing construct of this OMPT kind.
    #[inline(always)]
    pub fn work_type(&mut self, codeptr: *const c_void, kind: u32) -> Entry {
        let address = user_code(codeptr).unwrap_or_else(|| self.enclosing());
        self.entry(Key { address, role: WORK | kind })
    }

    #[cold]
    fn enclosing(&self) -> u64 {
        BY_SITE | u64::from(self.thread.frames.nearest_site())
    }

    #[inline(always)]
    fn entry(&mut self, key: Key) -> Entry {
        let hash = (key.address ^ u64::from(key.role) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> (64 - SLOTS_LOG2)) as usize;
        match self.thread.cache.0.get(slot) {
            Some((known, entry)) if *known == key => *entry,
            _ => self.look_up(key, slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, key: Key, slot: usize) -> Entry {
        let found = TABLE.with(|table| {
            self.read_clock_again();
            table.entry(key, self)
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

/// Tells where the runtime lies: in the module that holds `address`. A runtime that is linked into
/// the program cannot be told from the program's own code, and is not.
pub fn set_runtime(address: usize) {
    if let Some(module) = modules::find(address as u64).filter(|module| !module.is_program) {
        RUNTIME_START.store(module.start as usize, Relaxed);
        RUNTIME_BYTES.store((module.end - module.start) as usize, Relaxed);
    }
}

/// Whether a code pointer lies inside the runtime.
#[inline(always)]
pub fn is_in_runtime(codeptr: *const c_void) -> bool {
    (codeptr as usize).wrapping_sub(RUNTIME_START.load(Relaxed)) < RUNTIME_BYTES.load(Relaxed)
}

#[inline(always)]
fn user_code(codeptr: *const c_void) -> Option<u64> {
    (abi::is_object(codeptr) && !is_in_runtime(codeptr)).then_some(codeptr as u64)
}

/// The process's table.
static TABLE: SharedTable = SharedTable { holder: AtomicI32::new(0), table: UnsafeCell::new(None) };

struct SharedTable {
    /// The process id of who holds the lock; 0 when it is free. A child that was forked while
    /// another thread held it finds its parent's id, and takes over.
    holder: AtomicI32,
    table: UnsafeCell<Option<Table>>,
}

// SAFETY: `table` is only touched by who holds the lock.
unsafe impl Sync for SharedTable {}

impl SharedTable {
    fn with<R>(&self, use_table: impl FnOnce(&mut Table) -> R) -> Option<R> {
        // SAFETY: no preconditions.
        let pid = unsafe { libc::getpid() };
        loop {
            let holder = self.holder.load(Relaxed);
            if holder != pid && self.holder.compare_exchange(holder, pid, Acquire, Relaxed).is_ok() {
                break;
            }
            // SAFETY: no preconditions. Who holds it writes a few events; let it.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: the lock is ours. What a forked child inherits may be half changed, so it is
        // neither used nor freed: the child's streams need their own dictionary anyway.
        let table = unsafe {
            let slot = self.table.get();
            if (*slot).as_ref().is_none_or(|table| table.pid != pid) {
                slot.write(Some(Table::new(pid)));
            }
            (*slot).as_mut()
        };
        let result = table.map(use_table);
        self.holder.store(0, Release);
        result
    }
}

#[derive(Default)]
struct Table {
    pid: i32,
    entries: HashMap<Key, Entry>,
    /// Address of site n + 1.
    sites: Vec<u64>,
    types: u32,
    modules: Vec<Module>,
}

impl Table {
    fn new(pid: i32) -> Self {
        Table { pid, ..Table::default() }
    }

    fn entry(&mut self, key: Key, moment: &mut Moment<'_>) -> Entry {
        if let Some(entry) = self.entries.get(&key) {
            return *entry;
        }
        if self.entries.try_reserve(2).is_err() {
            return Entry::default();
        }
        let site = self.site(key.address, moment);
        if key.role == PLAIN_SITE {
            return Entry::new(0, site);
        }
        let typeid = self.types + 1;
        if !self.write_type(typeid, site, key.role, moment) {
            // Another thread may have room for it later.
            return Entry::new(0, site);
        }
        self.types = typeid;
        let entry = Entry::new(typeid, site);
        self.entries.insert(key, entry);
        entry
    }

    fn site(&mut self, address: u64, moment: &mut Moment<'_>) -> u32 {
        if address & BY_SITE != 0 {
            return address as u32;
        }
        let key = Key { address, role: PLAIN_SITE };
        if let Some(entry) = self.entries.get(&key) {
            return entry.site;
        }
        if self.sites.try_reserve(1).is_err() {
            return 0;
        }
        self.write_module(address, moment);
        self.sites.push(address);
        let site = self.sites.len() as u32;
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(&site.to_le_bytes());
        payload[4..].copy_from_slice(&address.to_le_bytes());
        moment.recorder.own_point(moment.at, dictionary::SITE, payload);
        self.entries.insert(key, Entry::new(0, site));
        site
    }

    /// Writes the module of an address, unless that has been done.
    fn write_module(&mut self, address: u64, moment: &mut Moment<'_>) {
        if self.module_of(address).is_some() || self.modules.try_reserve(1).is_err() {
            return;
        }
        if let Some(module) = modules::find(address) {
            moment.recorder.own_jumbo(
                moment.at,
                dictionary::MODULE,
                &[
                    &module.start.to_le_bytes(),
                    &module.end.to_le_bytes(),
                    &module.bias.to_le_bytes(),
                    module.build_id.to_bytes_with_nul(),
                    module.path.to_bytes_with_nul(),
                ],
            );
            self.modules.push(module);
        }
    }

    fn module_of(&self, address: u64) -> Option<&Module> {
        self.modules.iter().find(|module| module.contains(address))
    }

    /// Writes a type's events. Says whether the standard one was kept.
    fn write_type(&self, typeid: u32, site: u32, role: u32, moment: &mut Moment<'_>) -> bool {
        let (code, detail) = match role & WORK {
            0 => (dictionary::TASK_TYPE_SITE, role),
            _ => (dictionary::WORK_TYPE_SITE, role & !WORK),
        };
        let mut payload = [0; 12];
        for (part, value) in payload.chunks_exact_mut(4).zip([typeid, site, detail]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        let label = self.label(site, role);
        let kept = moment.recorder.jumbo(
            moment.at,
            openmp::TYPE_CREATE,
            &[&typeid.to_le_bytes(), label.as_bytes_with_nul()],
        );
        if kept {
            moment.recorder.own_point(moment.at, code, payload);
        }
        kept
    }

    /// A name that is unique and says something without symbols: `task@heat+0x1a2b`.
    fn label(&self, site: u32, role: u32) -> Label {
        let mut label = Label { bytes: [0; LABEL_BYTES], used: 0 };
        let construct = match role & WORK {
            0 if role & task_flag::TARGET != 0 => "target task",
            0 => "task",
            _ => work_name(role & !WORK),
        };
        let address = self.sites.get((site as usize).wrapping_sub(1)).copied();
        let _ = match address.map(|address| (address, self.module_of(address))) {
            Some((address, Some(module))) => {
                let _ = write!(label, "{construct}@");
                for byte in module.file_name() {
                    let _ = label.write(&[if byte.is_ascii_graphic() { *byte } else { b'?' }]);
                }
                write!(label, "+{:#x}", address.wrapping_sub(module.bias))
            }
            Some((address, None)) => write!(label, "{construct}@{address:#x}"),
            None => write!(label, "{construct}@unknown"),
        };
        label
    }
}

fn work_name(kind: u32) -> &'static str {
    match kind {
        work::SECTIONS => "sections",
        work::SINGLE_EXECUTOR => "single",
        work::WORKSHARE => "workshare",
        work::DISTRIBUTE => "distribute",
        work::TASKLOOP => "taskloop",
        work::SCOPE => "scope",
        _ => "for",
    }
}

/// ovni's emulator takes labels of at most 511 bytes.
const LABEL_BYTES: usize = 512;

/// A label on the stack, always with a NUL at its end.
struct Label {
    bytes: [u8; LABEL_BYTES],
    used: usize,
}

impl Label {
    fn as_bytes_with_nul(&self) -> &[u8] {
        self.bytes.get(..=self.used).unwrap_or(&[0])
    }
}

impl std::io::Write for Label {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let room = self.bytes.get_mut(self.used..LABEL_BYTES - 1).unwrap_or_default();
        let taken = text.len().min(room.len());
        room.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
        self.used += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_module_and_offset() {
        let module = modules::find(set_runtime as fn(usize) as usize as u64).unwrap();
        let name = String::from_utf8_lossy(module.file_name()).into_owned();
        let table =
            Table { sites: vec![module.bias + 0x40, 0x1234_5678], modules: vec![module], ..Table::default() };
        let text =
            |site, role| String::from_utf8(table.label(site, role).as_bytes_with_nul().to_vec()).unwrap();
        assert_eq!(text(1, task_flag::EXPLICIT), format!("task@{name}+0x40\0"));
        assert_eq!(text(1, WORK | work::LOOP_STATIC), format!("for@{name}+0x40\0"));
        assert_eq!(text(2, WORK | work::SECTIONS), "sections@0x12345678\0");
        assert_eq!(text(0, WORK | work::SINGLE_EXECUTOR), "single@unknown\0");
    }

    #[test]
    fn long_labels_are_cut() {
        let mut label = Label { bytes: [0; LABEL_BYTES], used: 0 };
        for _ in 0..100 {
            let _ = label.write(b"0123456789");
        }
        assert_eq!(label.as_bytes_with_nul().len(), LABEL_BYTES);
        assert_eq!(label.as_bytes_with_nul().last(), Some(&0));
    }

    #[test]
    fn missing_code_pointers_are_no_user_code() {
        assert_eq!(user_code(core::ptr::null()), None);
        assert_eq!(user_code(0x220 as *const c_void), None);
        assert_eq!(user_code(0x55_0000_1234 as *const c_void), Some(0x55_0000_1234));
    }
}
