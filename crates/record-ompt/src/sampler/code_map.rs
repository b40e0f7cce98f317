//! Map of the loaded code, for the unwinder and to separate the runtime's frames from the program's.
//!
//! A map is built outside of the handler and published with one store; maps are never freed, since a handler
//! on any thread may be reading one. The unwind data of a module (`.eh_frame`) is copied, so that `dlclose`
//! cannot remove it under a handler, unless the module is never unloaded.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering::*};

use framehop::{
    ExplicitModuleSectionInfo, Module as UnwindModule, MustNotAllocateDuringUnwind, Unwinder as _,
};

use crate::sampler::module_files;
use crate::sampler::modules::{self, MappedModule};
use crate::sampler::unwind_tables::Tables;
use crate::sampler::{runtime_code, runtime_inside};

use super::python;
use super::unusual::{self, Rule, Unusual};

/// The unwinder for all modules of a map.
pub type Unwinder = framehop::UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>;

/// A module in a map.
struct Known {
    module: MappedModule,
    unwind: UnwindModule<&'static [u8]>,
    prepared: Prepared,
    /// Owner of the code.
    owner: Owner,
}

/// Owner of a code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No known module.
    Unknown,
    /// The program's, or that of a library with several callers.
    Program,
    /// The OpenMP runtime's.
    Runtime,
    /// This library's.
    Recorder,
}

/// A module's place.
struct Range {
    start: u64,
    end: u64,
    /// The lowest address of its code, and one past the highest.
    code: (u64, u64),
    owner: Owner,
    is_program: bool,
    /// Index of the module in [`all_modules`].
    number: u32,
    bias: u64,
    prepared: Prepared,
}

/// Result of [`Along::place`] for an address in no module.
pub const NO_PLACE: (u32, u64) = (u32::MAX, 0);

/// Every module that was ever seen, by its number.
static EVER_SEEN: std::sync::Mutex<Vec<taskscope_profile::Module>> = std::sync::Mutex::new(Vec::new());

/// Every module that was ever seen, by its number.
pub fn all_modules() -> Vec<taskscope_profile::Module> {
    EVER_SEEN.lock().map(|modules| modules.clone()).unwrap_or_default()
}

fn number_of(module: &MappedModule) -> u32 {
    let build_id = module.build_id.to_string_lossy().into_owned();
    let seen = taskscope_profile::Module { build_id, path: module.path.to_string_lossy().into_owned() };
    let Ok(mut modules) = EVER_SEEN.try_lock() else { return u32::MAX };
    let known = modules.iter().position(|module| *module == seen);
    known.unwrap_or_else(|| {
        modules.push(seen);
        modules.len() - 1
    }) as u32
}

/// The loaded code at one time.
pub struct CodeMap {
    /// For [`super::walk`].
    pub unwinder: Unwinder,
    /// Sorted by start.
    ranges: Vec<Range>,
    modules: Vec<MappedModule>,
    knows_runtime: bool,
}

static CURRENT: AtomicPtr<CodeMap> = AtomicPtr::new(core::ptr::null_mut());
/// Counts the maps that were published.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// The loader's count of changes when the current map was built.
static CHANGES: AtomicU64 = AtomicU64::new(u64::MAX);
/// Whether the map must be checked: a handler met code of no module, or a module was loaded.
static MAY_BE_STALE: AtomicBool = AtomicBool::new(false);
/// Process id of the builder of a map; 0 for none.
static BUILDER: AtomicI32 = AtomicI32::new(0);

/// The current map, if there is one; for handlers too.
pub fn current() -> Option<&'static CodeMap> {
    // SAFETY: null, or a leaked box.
    unsafe { CURRENT.load(Acquire).as_ref() }
}

/// Marks the map as stale: code may have been loaded since it was built. Async-signal-safe.
pub fn suspect() {
    MAY_BE_STALE.store(true, Relaxed);
}

/// Whether code may have been loaded since the map was built.
#[inline(always)]
pub fn may_be_stale() -> bool {
    MAY_BE_STALE.load(Relaxed)
}

/// Counts the maps that were built.
#[inline(always)]
pub fn generation() -> u64 {
    GENERATION.load(Relaxed)
}

/// Builds the map anew if code may have been loaded since.
#[cold]
pub fn refresh_if_suspected() {
    if MAY_BE_STALE.swap(false, Relaxed) {
        refresh();
    }
}

/// Examines all modules again, now that the runtime is known.
pub fn rebuild() {
    CHANGES.store(u64::MAX, Relaxed);
    refresh();
}

/// Brings the map up to date with all that was loaded before this call. Not for handlers.
///
/// The caller of a lookup may call the function next, before any code of the recorder runs. Another thread
/// may have handled an earlier suspicion before the loading, so the loader itself is queried. While another
/// thread builds a map this waits, for a limited time.
#[cfg_attr(
    any(test, not(target_arch = "x86_64")),
    allow(dead_code, reason = "only what is preloaded for x86-64 asks")
)]
pub fn refresh_now() {
    for _ in 0..1000 {
        if try_refresh() {
            return;
        }
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
    }
    suspect();
}

/// Builds and publishes a map of the loaded code, unless nothing has changed.
pub fn refresh() {
    // Another thread is building one: a caller that needs more will retry.
    if !try_refresh() {
        suspect();
    }
}

/// [`refresh`]; false if another thread is building a map.
fn try_refresh() -> bool {
    // SAFETY: no preconditions.
    let pid = unsafe { libc::getpid() };
    let builder = BUILDER.load(Relaxed);
    if builder == pid || BUILDER.compare_exchange(builder, pid, Acquire, Relaxed).is_err() {
        return false;
    }
    let changes = modules::changes();
    if changes != CHANGES.load(Relaxed) || current().is_none() {
        let map = CodeMap::build();
        CURRENT.store(Box::into_raw(Box::new(map)), Release);
        CHANGES.store(changes, Relaxed);
        GENERATION.fetch_add(1, Release);
    }
    BUILDER.store(0, Release);
    true
}

impl CodeMap {
    /// The current map, up to date with all that was loaded before this call: waits for another test that
    /// builds one.
    #[cfg(test)]
    pub fn up_to_date() -> &'static CodeMap {
        while !try_refresh() {
            std::thread::yield_now();
        }
        current().expect("a map is never taken away")
    }

    fn build() -> CodeMap {
        runtime_code::expect_runtime();
        let own = CodeMap::build as fn() -> CodeMap as usize as u64;
        let all = modules::all();
        python::look(&all);
        let known: Vec<Known> = all
            .into_iter()
            .map(|module| {
                // The recorder of devices is a library of its own, as the runtime's part for devices is.
                let is_named = |name: &[u8]| module.file_name().starts_with(name);
                let records = module.contains(own) || is_named(b"libtaskscope_device.so");
                let owner = if records && !module.is_program {
                    Owner::Recorder
                } else if runtime_code::is_in_runtime(module.start as *const _) || is_named(b"libomptarget") {
                    Owner::Runtime
                } else {
                    Owner::Program
                };
                module_files::keep(&module);
                let prepared = prepare(&module);
                let unwind = unwind_module(&module, prepared.tables);
                Known { module, unwind, prepared, owner }
            })
            .collect();
        let mut unwinder = Unwinder::new();
        let mut ranges = Vec::with_capacity(known.len());
        let mut modules = Vec::with_capacity(known.len());
        for Known { module, unwind, prepared, owner } in known {
            unwinder.add_module(unwind);
            let (start, end, code, bias) = (module.start, module.end, module.code, module.bias);
            let is_program = module.is_program;
            ranges.push(Range {
                start,
                end,
                code,
                owner,
                is_program,
                number: number_of(&module),
                bias,
                prepared,
            });
            modules.push(module);
        }
        ranges.sort_unstable_by_key(|range: &Range| range.start);
        let is_runtimes = |range: &Range| range.owner == Owner::Runtime;
        let knows_runtime = runtime_inside::is_known() || ranges.iter().any(is_runtimes);
        CodeMap { unwinder, ranges, modules, knows_runtime }
    }

    /// The modules, in the loader's order.
    pub fn modules(&self) -> &[MappedModule] {
        &self.modules
    }

    /// A map of these ranges only: start, end, owner.
    #[cfg(test)]
    pub fn of(ranges: &[(u64, u64, Owner)]) -> CodeMap {
        let range = |(start, end, owner)| Range {
            start,
            end,
            code: (start, end),
            owner,
            is_program: false,
            number: 0,
            bias: 0,
            prepared: Prepared::default(),
        };
        let ranges: Vec<Range> = ranges.iter().copied().map(range).collect();
        let knows_runtime = ranges.iter().any(|range| range.owner == Owner::Runtime);
        CodeMap { unwinder: Unwinder::new(), ranges, modules: Vec::new(), knows_runtime }
    }

    /// Owner of an address.
    pub fn owner(&self, address: u64) -> Owner {
        self.range(address).map_or(Owner::Unknown, |range| range.owner_of(address))
    }

    /// For the addresses of a stack.
    #[inline(always)]
    pub fn along(&self) -> Along<'_> {
        Along { map: self, index: 0 }
    }

    /// Start of the function that contains an address.
    pub fn function(&self, address: u64) -> Option<u64> {
        self.range(address)?.prepared.tables?.function(address)
    }

    /// Notes that OpenMP constructs are in the module of an address.
    pub fn note_constructs(&self, address: u64) {
        self.modules.iter().filter(|module| module.contains(address)).for_each(modules::has_constructs);
    }

    /// Whether the runtime's code is separate from the program's.
    pub fn knows_runtime(&self) -> bool {
        self.knows_runtime
    }

    fn range(&self, address: u64) -> Option<&Range> {
        self.ranges.get(self.index(address)).filter(|range| range.contains(address))
    }

    /// Index of the last range that starts at or before an address; out of bounds if there is none.
    fn index(&self, address: u64) -> usize {
        self.ranges.partition_point(|range| range.start <= address).wrapping_sub(1)
    }
}

/// Lookup of consecutive addresses, mostly in the same module as the previous one.
pub struct Along<'a> {
    map: &'a CodeMap,
    /// Index of the range found last.
    index: usize,
}

impl<'a> Along<'a> {
    #[inline(always)]
    fn range(&mut self, address: u64) -> Option<&'a Range> {
        let known = self.map.ranges.get(self.index).filter(|range| range.contains(address));
        known.or_else(|| {
            self.index = self.map.index(address);
            self.map.ranges.get(self.index).filter(|range| range.contains(address))
        })
    }

    /// Owner of an address, and the rule that finds its caller, if framehop has none.
    #[inline(always)]
    pub fn owner_and_rule(&mut self, address: u64) -> (Owner, Option<&'static Rule>) {
        self.range(address).map_or((Owner::Unknown, None), |range| {
            (range.owner_of(address), unusual::rule(range.prepared.unusual, address))
        })
    }

    /// Whether an address is in data of a module: it is that of no code.
    #[inline(always)]
    pub fn is_data(&mut self, address: u64) -> bool {
        self.range(address).is_some_and(|range| !(range.code.0..range.code.1).contains(&address))
    }

    /// Number of the module that contains an address, and the address in its file.
    #[inline(always)]
    pub fn place(&mut self, address: u64) -> (u32, u64) {
        self.range(address).map_or(NO_PLACE, |range| (range.number, address.wrapping_sub(range.bias)))
    }
}

impl Range {
    fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Owner of an address in the range.
    fn owner_of(&self, address: u64) -> Owner {
        let may_be_runtimes = self.is_program && self.owner == Owner::Program;
        if may_be_runtimes && runtime_inside::contains(address) { Owner::Runtime } else { self.owner }
    }
}

/// Prepared data of a module's code.
#[derive(Clone, Copy, Default)]
struct Prepared {
    /// Its unwind tables.
    tables: Option<Tables>,
    /// The code of which framehop does not find the callers.
    unusual: &'static [Unusual],
}

/// Prepares a module for walks, once per module of the process.
fn prepare(module: &MappedModule) -> Prepared {
    /// Start and end of a module, address of its tables' header, and the prepared data.
    type Copy = (u64, u64, u64, Prepared);
    static COPIES: std::sync::Mutex<Vec<Copy>> = std::sync::Mutex::new(Vec::new());
    let key = (module.start, module.end, module.unwind.map_or(0, |tables| tables.header));
    // A forked child may find it locked for ever; it copies again then.
    let mut copies = COPIES.try_lock().ok();
    let known = copies.as_ref().and_then(|list| {
        list.iter().find(|(start, end, header, _)| (*start, *end, *header) == key).map(|(.., made)| *made)
    });
    // After dlclose another library may be at the same address: the content must still be equal.
    match known {
        Some(made) if made.tables.is_some_and(|tables| tables.is_still_at(module)) => made,
        _ => {
            let tables = module.unwind.and_then(|tables| match stays(module) {
                true => Tables::in_place(tables),
                false => Tables::copy(tables),
            });
            let made = Prepared { tables, unusual: unusual::find(module, tables.as_ref()) };
            if let Some(list) = copies.as_mut() {
                list.retain(|(start, end, header, _)| (*start, *end, *header) != key);
                list.push((key.0, key.1, key.2, made));
            }
            made
        }
    }
}

/// A module's data for framehop.
fn unwind_module(module: &MappedModule, tables: Option<Tables>) -> UnwindModule<&'static [u8]> {
    let svma = |address: u64| address.wrapping_sub(module.bias);
    let mut sections = ExplicitModuleSectionInfo { base_svma: 0, ..Default::default() };
    if let Some(tables) = tables {
        let range = |at: u64, bytes: &[u8]| Some(svma(at)..svma(at).wrapping_add(bytes.len() as u64));
        sections.eh_frame_svma = range(tables.frame_at, tables.frame);
        sections.eh_frame = Some(tables.frame);
        if tables.header_has_table() {
            sections.eh_frame_hdr_svma = range(tables.header_at, tables.header);
            sections.eh_frame_hdr = Some(tables.header);
        }
    }
    UnwindModule::new(String::new(), module.start..module.end, module.bias, sections)
}

/// Whether a module is never unloaded: the program, the C library, the loader, the vDSO, this library, and
/// modules marked so at link time, as LLVM's OpenMP runtime is.
fn stays(module: &MappedModule) -> bool {
    let own = stays as fn(&MappedModule) -> bool as usize as u64;
    let c_library =
        libc::gnu_get_libc_version as unsafe extern "C" fn() -> *const libc::c_char as usize as u64;
    // SAFETY: no preconditions.
    let aux_value = |what| unsafe { libc::getauxval(what) };
    let [loader, kernels] = [libc::AT_BASE, libc::AT_SYSINFO_EHDR].map(aux_value);
    module.is_program
        || module.stays
        || [own, c_library, loader, kernels].into_iter().any(|address| module.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_knows_this_program_and_nothing_at_null() {
        // A library that may be unloaded again. SAFETY: a library of functions alone.
        assert!(!unsafe { libc::dlopen(c"libm.so.6".as_ptr(), libc::RTLD_NOW) }.is_null());
        let map = CodeMap::up_to_date();
        let here = the_map_knows_this_program_and_nothing_at_null as fn() as usize as u64;
        assert_eq!(map.owner(here), Owner::Program);
        assert_eq!(map.owner(0x10), Owner::Unknown);
        assert_eq!((map.function(here), map.function(here + 1)), (Some(here), Some(here)));
        assert_ne!(map.function(here - 1), Some(here));
        assert_eq!(map.owner(u64::MAX), Owner::Unknown);
        static DATA: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let data = core::ptr::from_ref(&DATA).addr() as u64;
        assert_eq!(map.owner(data), Owner::Program);
        assert!(map.along().is_data(data) && !map.along().is_data(here) && !map.along().is_data(0x10));
        assert!(map.modules.len() > 2, "{}", map.modules.len());
        let staying = map.modules.iter().filter(|module| stays(module)).count();
        assert!((3..map.modules.len()).contains(&staying), "{staying} of {}", map.modules.len());
    }
}
