//! The process's table of sites, types and modules.
//!
//! The thread that first meets an address writes its dictionary events inside the lock, so no thread can use
//! a number at an earlier time than that of the event which defines it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::*};
use std::collections::HashMap;

use taskscope_event::models::{dictionary, openmp, samples};

use crate::callee;
use crate::label::{Label, work_name};
use crate::outlined::Outlined;
use crate::sampler::code_map;
use crate::sampler::module_files;
use crate::sampler::modules::{self, MappedModule};
use crate::sampler::runtime_code::{is_in_runtime, is_of_kernels};
use crate::site_cache::{BY_SITE, Entry, Key, LAST_CALL, PLAIN_SITE, WORK};
use crate::thread::Moment;

/// The process's table.
pub static TABLE: SharedTable = SharedTable { holder: AtomicI32::new(0), table: UnsafeCell::new(None) };

/// A table behind a lock.
pub struct SharedTable {
    /// Process id of the lock's holder; 0 if it is free. A child that was forked while another thread held
    /// the lock finds its parent's id, and takes over.
    holder: AtomicI32,
    table: UnsafeCell<Option<Table>>,
}

// SAFETY: only the lock's holder accesses `table`.
unsafe impl Sync for SharedTable {}

impl SharedTable {
    /// Uses the table of this process; the calling thread waits for its turn.
    pub fn with<R>(&self, use_table: impl FnOnce(&mut Table) -> R) -> Option<R> {
        // A thread that were cancelled in here would keep the turn.
        let _deferred = taskscope_record::cancellation::Deferred::begin();
        // SAFETY: no preconditions.
        let pid = unsafe { libc::getpid() };
        loop {
            let holder = self.holder.load(Relaxed);
            if holder != pid && self.holder.compare_exchange(holder, pid, Acquire, Relaxed).is_ok() {
                break;
            }
            // SAFETY: no preconditions. The holder is writing a few events; yield to it.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: this thread holds the lock. A forked child may inherit a half-changed table, so it is
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

/// Sites, types and modules that have been written.
#[derive(Default)]
pub struct Table {
    pid: i32,
    entries: HashMap<Key, Entry>,
    /// Address of site n + 1, and of the body of its construct (0 if unknown).
    sites: Vec<(u64, u64)>,
    types: u32,
    modules: Vec<MappedModule>,
    /// Creation paths by their addresses.
    paths: HashMap<Box<[u64]>, u32>,
    /// Time of the latest event that explains a number of `entries`, in nanoseconds.
    pub explained: u64,
}

/// Number of the newest path. A forked child continues from its parent's: in profile mode the parent's
/// numbers remain valid in the child.
static LAST_PATH: AtomicU32 = AtomicU32::new(0);
/// Maximum number of distinct creation paths.
const MAX_PATHS: usize = 1 << 20;

/// Whether code at an address is neither the runtime's nor this library's.
fn has_own_constructs(address: u64) -> bool {
    let is_own =
        |module: MappedModule| module.contains(has_own_constructs as fn(u64) -> bool as usize as u64);
    !is_in_runtime(address as *const _) && !modules::find(address).is_some_and(is_own)
}

/// Whether two modules are one file at one place.
fn is_same(one: &MappedModule, other: &MappedModule) -> bool {
    (one.start, one.end, &one.build_id, &one.path) == (other.start, other.end, &other.build_id, &other.path)
}

fn write_module(module: &MappedModule, moment: &mut Moment<'_>) {
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
}

impl Moment<'_> {
    /// Updates the map if it may be stale, and writes the modules that this process's trace does not name
    /// yet. Not for signal handlers.
    #[inline(always)]
    pub fn catch_up(&mut self) {
        if code_map::may_be_stale() {
            code_map::refresh_if_suspected();
        }
        if self.thread.modules_written != code_map::generation() {
            self.write_loaded_modules();
        }
    }

    #[cold]
    fn write_loaded_modules(&mut self) {
        self.thread.modules_written = code_map::generation();
        if let Some(map) = code_map::current() {
            self.write_modules(map.modules());
        }
    }

    /// Writes those modules that this process's trace does not name yet.
    pub fn write_modules(&mut self, modules: &[MappedModule]) {
        self.write_anyway(|moment| {
            TABLE.with(|table| {
                moment.read_clock_again();
                table.write_modules(modules, moment);
            })
        });
    }

    /// Before an outermost region, or a member of one: drops cached addresses of unloaded modules.
    #[inline(always)]
    pub fn forget_unloaded(&mut self, forks: bool) {
        if forks && modules::have_changed() {
            self.look_for_unloaded();
        }
        if self.thread.unloads != modules::unloads() {
            self.forget_addresses();
        }
    }

    #[cold]
    fn look_for_unloaded(&mut self) {
        code_map::suspect();
        let loaded = modules::all();
        TABLE.with(|table| table.forget_unloaded(&loaded));
    }

    #[cold]
    fn forget_addresses(&mut self) {
        self.thread.unloads = modules::unloads();
        self.thread.cache = Default::default();
        self.thread.paths.forget();
    }

    /// The number of a creation path; 0 when there are too many.
    pub fn path_number(&mut self, addresses: &[u64], flags: u32) -> u32 {
        let number = self.write_anyway(|moment| {
            TABLE.with(|table| {
                moment.read_clock_again();
                table.path(addresses, flags, moment)
            })
        });
        number.unwrap_or(0)
    }
}

impl Table {
    fn new(pid: i32) -> Self {
        Table { pid, ..Table::default() }
    }

    /// The numbers of a key; writes the events that explain new ones.
    pub fn entry(&mut self, key: Key, outlined: Outlined, moment: &mut Moment<'_>) -> Entry {
        if let Some(entry) = self.entries.get(&key) {
            return *entry;
        }
        self.explained = self.explained.max(moment.at);
        if self.entries.try_reserve(3).is_err() {
            return Entry::default();
        }
        if key.role == LAST_CALL {
            return self.last_call(key, outlined, moment);
        }
        let site = match key.body {
            0 => self.site(key.address, moment),
            _ => self.site_of_body(key, outlined, moment),
        };
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
        let key = Key { address, body: 0, role: PLAIN_SITE };
        if let Some(entry) = self.entries.get(&key) {
            return entry.site;
        }
        let site = self.new_site(address, moment);
        if site != 0 {
            self.entries.insert(key, Entry::new(0, site));
        }
        site
    }

    /// Returns the site of a construct with a known body. The first construct at a return address has that
    /// address's site. Others have sites of their own, at their bodies: the address is that of a caller which
    /// reaches several, or the runtime's.
    fn site_of_body(&mut self, key: Key, outlined: Outlined, moment: &mut Moment<'_>) -> u32 {
        let key = Key { role: PLAIN_SITE, ..key };
        if let Some(entry) = self.entries.get(&key) {
            return entry.site;
        }
        // A kernel's return address is that of the library which starts all of them.
        let is_own = key.address & BY_SITE == 0 && !is_of_kernels(key.address as *const _);
        let mut site = if is_own { self.site(key.address, moment) } else { 0 };
        if self.row(site).is_none_or(|(_, body)| *body != 0) {
            site = self.new_site(key.body + 1, moment);
        }
        let Some((_, body)) = self.row(site) else { return site };
        *body = key.body;
        self.write_module(key.body, moment);
        self.write_body(site, key.body, outlined, moment);
        self.entries.insert(key, Entry::new(0, site));
        site
    }

    /// Returns the site of a construct that is known only as the last call in another construct's body; 0 if
    /// that body is unknown.
    fn last_call(&mut self, key: Key, outlined: Outlined, moment: &mut Moment<'_>) -> Entry {
        let enclosing = self.row(key.address as u32).map_or(0, |(_, body)| *body);
        let mut site = 0;
        if enclosing != 0 {
            site = self.new_site(enclosing + 1, moment);
            self.write_body(site, 0, outlined, moment);
        }
        let entry = Entry::new(0, site);
        self.entries.insert(key, entry);
        entry
    }

    fn write_body(&self, site: u32, body: u64, outlined: Outlined, moment: &mut Moment<'_>) {
        let parts: [&[u8]; 4] = [&site.to_le_bytes(), &body.to_le_bytes(), &outlined.location(), b"\0"];
        moment.recorder.own_jumbo(moment.at, dictionary::SITE_BODY, &parts);
    }

    fn row(&mut self, site: u32) -> Option<&mut (u64, u64)> {
        self.sites.get_mut((site as usize).wrapping_sub(1))
    }

    fn new_site(&mut self, address: u64, moment: &mut Moment<'_>) -> u32 {
        if self.sites.try_reserve(1).is_err() {
            return 0;
        }
        self.write_module(address, moment);
        // The function that is called there may end with the construct, and have no frame.
        if let Some(callee) = callee::before(address).filter(|callee| has_own_constructs(*callee)) {
            self.write_module(callee, moment);
        }
        self.sites.push((address, 0));
        let site = self.sites.len() as u32;
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(&site.to_le_bytes());
        payload[4..].copy_from_slice(&address.to_le_bytes());
        moment.recorder.own_point(moment.at, dictionary::SITE, payload);
        site
    }

    /// Writes the module of an address, unless that has been done.
    fn write_module(&mut self, address: u64, moment: &mut Moment<'_>) {
        if let Some(module) = self.module_of(address) {
            return modules::has_constructs(module);
        }
        if self.modules.try_reserve(1).is_err() {
            return;
        }
        if let Some(module) = modules::find(address) {
            module_files::keep(&module);
            write_module(&module, moment);
            modules::has_constructs(&module);
            self.modules.push(module);
        }
    }

    /// Forgets addresses of modules that are not loaded any more.
    fn forget_unloaded(&mut self, loaded: &[MappedModule]) {
        self.forget(|module| !loaded.iter().any(|other| is_same(module, other)));
    }

    /// Drops modules and cached addresses in them. Their numbers are not reused.
    fn forget(&mut self, is_gone: impl Fn(&MappedModule) -> bool) {
        let (gone, kept) = core::mem::take(&mut self.modules).into_iter().partition(is_gone);
        self.modules = kept;
        let gone: Vec<MappedModule> = gone;
        if gone.is_empty() {
            return;
        }
        let in_gone = |address: u64| gone.iter().any(|module| module.contains(address));
        let sites = &self.sites;
        let is_void = |key: &Key| {
            let site = sites.get((key.address as u32 as usize).wrapping_sub(1)).copied().unwrap_or_default();
            let (address, body) = if key.address & BY_SITE == 0 { (key.address, 0) } else { site };
            [address, body, key.body].into_iter().any(in_gone)
        };
        self.entries.retain(|key, _| !is_void(key));
        self.paths.retain(|path, _| !path.iter().any(|address| in_gone(*address)));
        modules::count_unload();
    }

    fn module_of(&self, address: u64) -> Option<&MappedModule> {
        self.modules.iter().find(|module| module.contains(address))
    }

    /// Writes the modules that have not been written.
    fn write_modules(&mut self, modules: &[MappedModule], moment: &mut Moment<'_>) {
        for module in modules {
            if !self.modules.iter().any(|known| is_same(known, module)) && self.modules.try_reserve(1).is_ok()
            {
                self.forget(|known| known.start < module.end && module.start < known.end);
                module_files::keep(module);
                write_module(module, moment);
                self.modules.push(module.clone());
            }
        }
    }

    /// The number of a creation path; writes the event that explains a new one.
    fn path(&mut self, addresses: &[u64], flags: u32, moment: &mut Moment<'_>) -> u32 {
        if let Some(path) = self.paths.get(addresses) {
            return *path;
        }
        if self.paths.len() >= MAX_PATHS || self.paths.try_reserve(1).is_err() {
            return 0;
        }
        let path = LAST_PATH.fetch_add(1, Relaxed) + 1;
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        moment.recorder.own_jumbo(
            moment.at,
            samples::PATH,
            &[&path.to_le_bytes(), &flags.to_le_bytes(), &bytes],
        );
        self.paths.insert(addresses.into(), path);
        path
    }

    /// Writes a type's events. Returns whether the standard one was kept.
    fn write_type(&self, typeid: u32, site: u32, role: u32, moment: &mut Moment<'_>) -> bool {
        let (code, detail) = match role & WORK {
            0 => (dictionary::TASK_TYPE_SITE, role),
            _ => (dictionary::WORK_TYPE_SITE, role & !WORK),
        };
        let mut payload = [0; 12];
        for (part, value) in payload.chunks_exact_mut(4).zip([typeid, site, detail]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        let address = self.sites.get((site as usize).wrapping_sub(1)).map(|(address, _)| *address);
        let construct = if role & WORK == 0 { "task" } else { work_name(role & !WORK) };
        let label = Label::of(construct, address, address.and_then(|address| self.module_of(address)));
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
}
