//! The interpreter of the process: its version, and the addresses of its data.

use core::sync::atomic::{AtomicPtr, Ordering::*};
use taskscope_files::create_directory_below;
use taskscope_record::process;

use super::exported;
use super::layout::Layout;
use super::memory::word;
use crate::sampler::modules::MappedModule;

/// Directory in the trace. Readers have the same name in `taskscope_symbol::KeptModules`.
const DIRECTORY: &str = "modules";

/// The interpreter of this process.
pub struct Interpreter {
    /// Address of `_PyRuntime`.
    pub runtime: u64,
    /// Its size, bytes.
    pub runtime_bytes: u64,
    /// Address of `PyCode_Type`.
    pub code_type: u64,
    /// Start of the function with the interpreter's loop.
    pub eval: u64,
    /// Addresses of its module.
    module: (u64, u64),
    /// Its structures.
    pub layout: &'static Layout,
    /// Path of the file of names up to the process number.
    pub names: Vec<u8>,
}

impl Interpreter {
    /// Whether an address is in the module of the interpreter, whose loops may be in several parts.
    #[inline(always)]
    pub fn contains(&self, address: u64) -> bool {
        (self.module.0..self.module.1).contains(&address)
    }
}

static FOUND: AtomicPtr<Interpreter> = AtomicPtr::new(core::ptr::null_mut());

/// The interpreter, if this process has one that is known. For handlers too.
#[inline(always)]
pub fn interpreter() -> Option<&'static Interpreter> {
    // SAFETY: null, or a leaked box.
    unsafe { FOUND.load(Acquire).as_ref() }
}

/// Looks for an interpreter among the loaded modules, until one is found. Not for handlers.
pub fn look(modules: &[MappedModule]) {
    if interpreter().is_some() {
        return;
    }
    // The program may be a small one that uses the library.
    let mut candidates = modules.iter().filter(|module| is_pythons(module)).peekable();
    let Some((trace, _)) = candidates.peek().and_then(|_| process::place()) else { return };
    let Some(found) = candidates.find_map(find) else { return };
    // Without the directory there are no names, and native frames stay.
    let Ok(directory) = create_directory_below(&trace, DIRECTORY) else { return };
    let mut names = directory.into_os_string().into_encoded_bytes();
    names.extend_from_slice(b"/python-");
    FOUND.store(Box::into_raw(Box::new(Interpreter { names, ..found })), Release);
}

/// Whether a module may hold the interpreter, by its name.
fn is_pythons(module: &MappedModule) -> bool {
    let name = module.file_name();
    name.starts_with(b"libpython3") || name.starts_with(b"python3")
}

fn find(module: &MappedModule) -> Option<Interpreter> {
    let address = |name: &str| exported::address_of(module, name);
    let (runtime, runtime_bytes) = exported::symbol_of(module, "_PyRuntime")?;
    let code_type = address("PyCode_Type")?;
    let eval = address("_PyEval_EvalFrameDefault")?;
    let version = match address("Py_Version") {
        Some(at) => word(at)? as u32,
        // Functions that these versions were the first to have.
        None if address("PyIter_Send").is_some() => 0x030a_0000,
        None if address("PyModule_AddType").is_some() => 0x0309_0000,
        None => return None,
    };
    let layout = Layout::of(version)?;
    // The flag of builds without a global lock, whose objects have another form, behind "xdebugpy" and a version.
    if layout.describes_itself && word(runtime + 16)? != 0 {
        return None;
    }
    let module = (module.start, module.end);
    let names = Vec::new();
    Some(Interpreter { runtime, runtime_bytes, code_type, eval, module, layout, names })
}
