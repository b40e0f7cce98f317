//! The MPI library that the program runs on: its functions, found by name, and the differences between the
//! two ABI families.
//!
//! | | Open MPI | MPICH, Intel MPI, MVAPICH, Cray MPICH |
//! | --- | --- | --- |
//! | handle | pointer to an object | 32-bit number |
//! | `MPI_COMM_WORLD` | `&ompi_mpi_comm_world` | 0x44000000 |
//! | status | source, tag, error, cancelled, size_t bytes | count low, count high with cancelled, source, tag, error |
//! | `MPI_PROC_NULL` | −2 | −1 |
//! | `MPI_STATUS_IGNORE` | 0 | 1 |
//! | `MPI_IN_PLACE` | 1 | −1 |

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::ffi::CString;
use std::sync::OnceLock;

use crate::functions::{FUNCTIONS, Row, VARIANTS};
use crate::handle_kind::Kind;
use crate::language::Language;

/// Words that every function is called with; more than it has do no harm.
pub const WORDS: usize = 14;
/// Any function of MPI.
pub type Real = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> c_int;

/// The group of all ranks as a session knows it; 0 without one.
static SESSION_WORLD: AtomicUsize = AtomicUsize::new(0);

/// A family of ABIs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    OpenMpi,
    Mpich,
}

/// The library, when its ABI is known.
pub struct Library {
    pub family: Family,
    pub comm_world: usize,
    pub comm_null: usize,
    pub request_null: usize,
    byte: usize,
    datatype_null: usize,
    /// Variables with the addresses that Fortran programs give for "no status", which `MPI_Init` sets; 0 without one.
    fortran_ignores: [usize; 2],
    /// The same addresses for `use mpi_f08`.
    f08_ignores: [usize; 2],
    functions: Functions,
}

macro_rules! functions {
    ($( $name:ident: fn($($argument:ty),*) = $symbol:literal; )*) => {
        struct Functions { $( $name: unsafe extern "C" fn($($argument),*) -> c_int ),* }

        impl Functions {
            fn load() -> Option<Self> {
                Some(Functions { $(
                    // SAFETY: the function has this type in every MPI; handles fit into a word.
                    $name: unsafe { core::mem::transmute::<usize, unsafe extern "C" fn($($argument),*) -> c_int>(symbol($symbol)?) }
                ),* })
            }
        }
    };
}

functions! {
    type_size: fn(usize, *mut c_int) = c"PMPI_Type_size";
    initialized: fn(*mut c_int) = c"PMPI_Initialized";
    comm_rank: fn(usize, *mut c_int) = c"PMPI_Comm_rank";
    comm_size: fn(usize, *mut c_int) = c"PMPI_Comm_size";
    comm_test_inter: fn(usize, *mut c_int) = c"PMPI_Comm_test_inter";
    comm_group: fn(usize, *mut usize) = c"PMPI_Comm_group";
    comm_remote_group: fn(usize, *mut usize) = c"PMPI_Comm_remote_group";
    comm_dup: fn(usize, *mut usize) = c"PMPI_Comm_dup";
    comm_free: fn(*mut usize) = c"PMPI_Comm_free";
    group_size: fn(usize, *mut c_int) = c"PMPI_Group_size";
    group_translate_ranks: fn(usize, c_int, *const c_int, usize, *mut c_int) = c"PMPI_Group_translate_ranks";
    group_free: fn(*mut usize) = c"PMPI_Group_free";
    send: fn(*const c_void, c_int, usize, c_int, c_int, usize) = c"PMPI_Send";
    recv: fn(*mut c_void, c_int, usize, c_int, c_int, usize, *mut c_void) = c"PMPI_Recv";
    bcast: fn(*mut c_void, c_int, usize, c_int, usize) = c"PMPI_Bcast";
    allgather: fn(*const c_void, c_int, usize, *mut c_void, c_int, usize, usize) = c"PMPI_Allgather";
}

/// Fields of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub bytes: u64,
    pub cancelled: bool,
}

/// The library, or `None` when its ABI is not known. May be called before `MPI_Init`.
pub fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(Library::load).as_ref()
}

impl Library {
    fn load() -> Option<Library> {
        let functions = Functions::load()?;
        if has_standard_abi() {
            return Library::unknown("with the standard ABI of MPI 5.0");
        }
        let all = |names: [&CStr; 2]| names.map(|name| object(name).unwrap_or(0));
        let fortran_ignores = all([c"MPI_F_STATUS_IGNORE", c"MPI_F_STATUSES_IGNORE"]);
        let f08_ignores = all([c"MPIR_F08_MPI_STATUS_IGNORE_OBJ", c"MPIR_F08_MPI_STATUSES_IGNORE_OBJ"]);
        if let (Some(comm_world), Some(comm_null), Some(request_null), Some(byte)) = (
            object(c"ompi_mpi_comm_world"),
            object(c"ompi_mpi_comm_null"),
            object(c"ompi_request_null"),
            object(c"ompi_mpi_byte"),
        ) {
            let family = Family::OpenMpi;
            return Some(Library {
                family,
                comm_world,
                comm_null,
                request_null,
                byte,
                datatype_null: object(c"ompi_mpi_datatype_null").unwrap_or(0),
                fortran_ignores,
                f08_ignores,
                functions,
            });
        }
        let version = version();
        let known = ["MPICH", "Intel(R) MPI", "MVAPICH"];
        if known.iter().any(|name| version.contains(name)) {
            return Some(Library {
                family: Family::Mpich,
                comm_world: 0x4400_0000,
                comm_null: 0x0400_0000,
                request_null: 0x2c00_0000,
                byte: 0x4c00_010d,
                datatype_null: 0x0c00_0000,
                fortran_ignores,
                f08_ignores,
                functions,
            });
        }
        Library::unknown(version.lines().next().unwrap_or("unknown"))
    }

    fn unknown(name: &str) -> Option<Library> {
        eprintln!(
            "taskscope: the messages of this program are not recorded\n  why:  its MPI library has an ABI that \
             taskscope does not know: {name}\n  kept: its MPI calls are recorded\n  try:  Open MPI, MPICH, or an \
             MPI that is compatible with one of them"
        );
        None
    }

    /// Whether handles of this kind are pointers.
    fn has_pointers(&self, kind: Kind) -> bool {
        self.family == Family::OpenMpi || matches!(kind, Kind::File)
    }

    /// A handle from a word of arguments or memory.
    pub fn handle(&self, word: usize, kind: Kind) -> usize {
        if self.has_pointers(kind) { word } else { word & 0xffff_ffff }
    }

    /// The handle at position `index` of an array in memory.
    ///
    /// # Safety
    /// The array has so many handles.
    pub unsafe fn handle_in(&self, array: usize, index: usize, kind: Kind) -> usize {
        // SAFETY: by contract.
        unsafe {
            if self.has_pointers(kind) {
                (array as *const usize).add(index).read_unaligned()
            } else {
                (array as *const u32).add(index).read_unaligned() as usize
            }
        }
    }

    /// The C handle of a Fortran handle.
    pub fn handle_from_fortran(&self, kind: Kind, handle: i32) -> usize {
        match self.has_pointers(kind) {
            false => handle as u32 as usize,
            true => symbol(kind.conversion()).map_or(0, |convert| {
                // SAFETY: conversions have this type.
                let convert: unsafe extern "C" fn(c_int) -> usize = unsafe { core::mem::transmute(convert) };
                // SAFETY: the handle comes from the program, which would have given it to MPI.
                unsafe { convert(handle) }
            }),
        }
    }

    pub fn in_place(&self) -> usize {
        if self.family == Family::OpenMpi { 1 } else { usize::MAX }
    }

    pub fn proc_null(&self) -> i32 {
        if self.family == Family::OpenMpi { -2 } else { -1 }
    }

    /// Bytes of a status, in C and in Fortran.
    pub fn status_bytes(&self) -> usize {
        if self.family == Family::OpenMpi { 24 } else { 20 }
    }

    /// Whether this argument means that no status is wanted.
    pub fn ignores_status(&self, argument: usize, language: Language) -> bool {
        match language {
            Language::C if self.family == Family::OpenMpi => argument == 0,
            Language::C => argument == 1,
            _ => {
                let is_value = |variable: usize| {
                    // SAFETY: the standard makes these variables pointers.
                    variable != 0 && unsafe { (variable as *const usize).read_volatile() } == argument
                };
                argument == 0
                    || self.f08_ignores.contains(&argument)
                    || self.fortran_ignores.into_iter().any(is_value)
            }
        }
    }

    /// # Safety
    /// A status is at `address`.
    pub unsafe fn status_at(&self, address: usize) -> Status {
        let field = |at: usize| {
            // SAFETY: by contract; a status is made of 32-bit fields.
            unsafe { (address as *const u32).add(at).read_unaligned() }
        };
        let (low, high) = match self.family {
            Family::OpenMpi => (field(4), field(5)),
            Family::Mpich => (field(0), field(1) >> 1),
        };
        let bytes = u64::from(low) | u64::from(high) << 32;
        match self.family {
            Family::OpenMpi => {
                Status { source: field(0) as i32, tag: field(1) as i32, bytes, cancelled: field(3) != 0 }
            }
            Family::Mpich => {
                Status { source: field(2) as i32, tag: field(3) as i32, bytes, cancelled: field(1) & 1 != 0 }
            }
        }
    }

    /// Bytes of a value of a datatype; `None` for none: a program may give that where MPI does not read it, and
    /// the question would end the program.
    pub fn type_bytes(&self, datatype: usize) -> Option<u64> {
        if datatype == 0 || datatype == self.datatype_null {
            return None;
        }
        let mut bytes = -1;
        // SAFETY: the program gives this datatype to MPI too.
        let result = unsafe { (self.functions.type_size)(datatype, &mut bytes) };
        (result == 0).then_some(bytes).and_then(|bytes| u64::try_from(bytes).ok())
    }

    /// Rank in and size of a communicator.
    pub fn rank_and_size(&self, comm: usize) -> Option<(u32, u32)> {
        let (mut rank, mut size) = (-1, -1);
        // SAFETY: the program gives this communicator to MPI too.
        let results = unsafe {
            [(self.functions.comm_rank)(comm, &mut rank), (self.functions.comm_size)(comm, &mut size)]
        };
        (results == [0, 0]).then_some((u32::try_from(rank).ok()?, u32::try_from(size).ok()?))
    }

    /// The ranks in the job of a communicator's own members and, for an intercommunicator, of the members of
    /// the other side.
    pub fn members(&self, comm: usize) -> Option<(Vec<u32>, Option<Vec<u32>>)> {
        let mut is_inter = 0;
        // SAFETY: as above.
        let result = unsafe { (self.functions.comm_test_inter)(comm, &mut is_inter) };
        let own = self.group_members(comm, self.functions.comm_group)?;
        let remote = if is_inter != 0 {
            Some(self.group_members(comm, self.functions.comm_remote_group)?)
        } else {
            None
        };
        (result == 0).then_some((own, remote))
    }

    fn group_members(
        &self,
        comm: usize,
        group_of: unsafe extern "C" fn(usize, *mut usize) -> c_int,
    ) -> Option<Vec<u32>> {
        let mut group = 0;
        // SAFETY: the program gives this communicator to MPI too; the group is freed once.
        unsafe {
            if group_of(comm, &mut group) != 0 {
                return None;
            }
            let members = self.ranks_of_group(group);
            (self.functions.group_free)(&mut group);
            members
        }
    }

    /// Number of a group's members.
    pub fn size_of_group(&self, group: usize) -> usize {
        let mut size = 0;
        // SAFETY: the program gives this group to MPI too.
        unsafe { (self.functions.group_size)(group, &mut size) };
        usize::try_from(size).unwrap_or(0)
    }

    /// The ranks in the job of a group's members.
    pub fn ranks_of_group(&self, group: usize) -> Option<Vec<u32>> {
        let (mut world, is_own) = self.world_group()?;
        let (mut size, functions) = (0, &self.functions);
        // SAFETY: handles of MPI's own making, or that the program gives to MPI too; the arrays have the length that
        // MPI reports.
        unsafe {
            (functions.group_size)(group, &mut size);
            let ranks: Vec<c_int> = (0..size).collect();
            let mut in_world = vec![-1; ranks.len()];
            (functions.group_translate_ranks)(group, size, ranks.as_ptr(), world, in_world.as_mut_ptr());
            if is_own {
                (functions.group_free)(&mut world);
            }
            // Members of another job have no rank in this one.
            Some(in_world.into_iter().map(|rank| u32::try_from(rank).unwrap_or(u32::MAX)).collect())
        }
    }

    /// The group of all ranks, and whether the caller frees it.
    fn world_group(&self) -> Option<(usize, bool)> {
        let mut is_initialized = 0;
        // SAFETY: may be called at any time.
        unsafe { (self.functions.initialized)(&mut is_initialized) };
        if is_initialized != 0 {
            let mut world = 0;
            // SAFETY: the communicator exists since `MPI_Init`.
            let result = unsafe { (self.functions.comm_group)(self.comm_world, &mut world) };
            return (result == 0).then_some((world, true));
        }
        let world = SESSION_WORLD.load(Relaxed);
        (world != 0).then_some((world, false))
    }

    /// Takes the group of all ranks from a session; returns the rank in it and their number. For programs that never
    /// call `MPI_Init`.
    pub fn meet_in_session(&self, session: usize) -> Option<(u32, u32)> {
        type OfSession = unsafe extern "C" fn(usize, *const c_char, *mut usize) -> c_int;
        type RankOf = unsafe extern "C" fn(usize, *mut c_int) -> c_int;
        let (group_from_session, rank_of) =
            (symbol(c"PMPI_Group_from_session_pset")?, symbol(c"PMPI_Group_rank")?);
        let (mut group, mut rank, mut size) = (0, -1, -1);
        // SAFETY: the functions have these types in every MPI; the session is the program's own.
        let good = unsafe {
            let group_from_session = core::mem::transmute::<usize, OfSession>(group_from_session);
            let rank_of = core::mem::transmute::<usize, RankOf>(rank_of);
            group_from_session(session, c"mpi://WORLD".as_ptr(), &mut group) == 0
                && rank_of(group, &mut rank) == 0
                && (self.functions.group_size)(group, &mut size) == 0
        };
        let (rank, size) = good.then_some((u32::try_from(rank).ok()?, u32::try_from(size).ok()?))?;
        SESSION_WORLD.store(group, Relaxed);
        Some((rank, size))
    }

    /// A communicator like the world, for messages of our own.
    pub fn own_world(&self) -> Option<usize> {
        let mut comm = 0;
        // SAFETY: MPI is initialised, all members call this.
        (unsafe { (self.functions.comm_dup)(self.comm_world, &mut comm) } == 0).then_some(comm)
    }

    pub fn free(&self, mut comm: usize) {
        // SAFETY: made by `own_world`.
        unsafe { (self.functions.comm_free)(&mut comm) };
    }

    /// Sends a word.
    pub fn send_word(&self, word: u64, to: u32, comm: usize) {
        // SAFETY: the buffer has eight bytes.
        unsafe { (self.functions.send)((&raw const word).cast(), 8, self.byte, to as c_int, 1, comm) };
    }

    /// Receives a word.
    pub fn receive_word(&self, from: u32, comm: usize) -> u64 {
        let mut word = 0u64;
        let mut status = [0u64; 4];
        // SAFETY: the buffer has eight bytes, and a status fits in its place.
        unsafe {
            (self.functions.recv)(
                (&raw mut word).cast(),
                8,
                self.byte,
                from as c_int,
                1,
                comm,
                status.as_mut_ptr().cast(),
            )
        };
        word
    }

    /// The word that rank 0 gives.
    pub fn broadcast_word(&self, mut word: u64, comm: usize) -> u64 {
        // SAFETY: the buffer has eight bytes.
        unsafe { (self.functions.bcast)((&raw mut word).cast(), 8, self.byte, 0, comm) };
        word
    }

    /// Every member's word.
    pub fn gather_words(&self, word: u64, size: u32, comm: usize) -> Vec<u64> {
        let mut words = vec![0u64; size as usize];
        // SAFETY: there is room for eight bytes of each member.
        unsafe {
            (self.functions.allgather)(
                (&raw const word).cast(),
                8,
                self.byte,
                words.as_mut_ptr().cast(),
                8,
                self.byte,
                comm,
            )
        };
        words
    }
}

/// The library's version text.
pub fn version() -> String {
    let Some(get) = symbol(c"PMPI_Get_library_version") else { return String::new() };
    // SAFETY: the function has this type in every MPI.
    let get: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int = unsafe { core::mem::transmute(get) };
    // Longer than any library's limit for this text.
    let mut text = vec![0u8; 64 * 1024];
    let mut length = 0;
    // SAFETY: there is room for the text, which may be queried at any time.
    unsafe { get(text.as_mut_ptr().cast(), &mut length) };
    CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The function behind an entry: the one that MPI provides for tools, or that which the program would have called
/// without us (MPICH's bindings for Fortran 2008 have no second name).
pub fn real(position: usize, variant: usize, row: &Row) -> Option<Real> {
    const UNASKED: usize = 0;
    const MISSING: usize = 1;
    static FOUND: [AtomicUsize; FUNCTIONS.len() * VARIANTS] =
        [const { AtomicUsize::new(UNASKED) }; FUNCTIONS.len() * VARIANTS];
    let slot = FOUND.get(position * VARIANTS + variant)?;
    let mut address = slot.load(Relaxed);
    if address == UNASKED {
        let name = row.symbols.get(variant)?;
        let profiled = if variant == 0 { format!("P{name}") } else { format!("p{name}") };
        let find = |name: String| CString::new(name).ok().and_then(|name| symbol(&name));
        address = find(profiled).or_else(|| find((*name).to_owned())).unwrap_or(MISSING);
        slot.store(address, Relaxed);
    }
    // SAFETY: a function of MPI, which takes at most these words.
    (address != MISSING).then(|| unsafe { core::mem::transmute::<usize, Real>(address) })
}

/// The address of a variable, as the program sees it: it may have a copy of its own, which the library then
/// uses too.
fn object(name: &CStr) -> Option<usize> {
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { symbol(name) } else { Some(found as usize) }
}

/// The address of a function after this library in symbol order; if the MPI library was loaded for one other
/// library only (as Python does), in that.
fn symbol(name: &CStr) -> Option<usize> {
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return Some(found as usize);
    }
    loaded_libraries().into_iter().find_map(|path| {
        // SAFETY: C strings; the library is loaded already, and stays.
        let found = unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() { core::ptr::null_mut() } else { libc::dlsym(library, name.as_ptr()) }
        };
        (!found.is_null()).then_some(found as usize)
    })
}

/// Whether the program runs on MPI's standard ABI, under the name that it gives to the library: whichever is behind it, handles,
/// statuses and constants are other ones.
fn has_standard_abi() -> bool {
    loaded_libraries().iter().any(|path| is_of_standard_abi(path.to_bytes()))
}

fn is_of_standard_abi(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|file| file.starts_with(b"libmpi_abi.so"))
}

/// Loaded files with the names of MPI libraries.
fn loaded_libraries() -> Vec<CString> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader's own record; `list` is the one below.
        let (name, list) = unsafe { ((*info).dlpi_name, &mut *list.cast::<Vec<CString>>()) };
        if !name.is_null() {
            // SAFETY: a C string of the loader.
            let path = unsafe { CStr::from_ptr(name) };
            let text = path.to_string_lossy();
            let file = text.rsplit('/').next().unwrap_or("");
            if file.starts_with("libmpi") || file.starts_with("libpmpi") {
                list.push(path.to_owned());
            }
        }
        0
    }
    let mut list: Vec<CString> = Vec::new();
    // SAFETY: `visit` has the required signature, and receives the list.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_abi_has_a_library_of_its_own() {
        assert!(is_of_standard_abi(b"/opt/mpi/lib/libmpi_abi.so.0"));
        assert!(!is_of_standard_abi(b"/opt/libmpi_abi.so/lib/libmpi.so.40"));
    }
}
