//! Resolves addresses of a process.

mod calls;
mod construct;

pub use construct::Location;

use crate::code_place::{CodePlace, Frame, LoopCode, Missing};
use crate::jit_dump;
use crate::kept_modules::KeptModules;
use crate::module_file::{FunctionCode, ModuleFile};
use crate::name;
use crate::python_code::{PythonCode, is_python_place};
use crate::run_time_code::CodeNames;
use crate::variable::VariablePlace;
use rustc_hash::FxHashMap;

/// A file that was loaded into a process.
#[derive(Clone, Debug)]
pub struct LoadedModule {
    /// Since when it is known to be loaded, in any unit: later modules take the place of earlier ones.
    pub since: u64,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Address minus bias is an address of the file.
    pub bias: u64,
    /// Build id in hexadecimal, or `~` and the fingerprint of a file without one; empty: not checked.
    pub build_id: String,
    /// Path at run time.
    pub path: String,
}

/// Resolves addresses of one process.
#[derive(Default)]
pub struct Symbolizer {
    /// Latest first.
    modules: Vec<LoadedModule>,
    /// The time that addresses are of.
    time: u64,
    /// Files of the process that no address leads to: path and build id.
    others: Vec<(String, String)>,
    kept: KeptModules,
    files: FxHashMap<(String, String), Result<ModuleFile, Missing>>,
    /// Names of code that was generated at run time, one for each process; read at the first question.
    run_time_code: Option<Vec<CodeNames>>,
    dumped_code: Option<Vec<CodeNames>>,
    /// Code objects of Python, one list for each process; read at the first question.
    python: Option<Vec<PythonCode>>,
    /// Memory that held such code when its process ended; read at the first question.
    generated: Option<Vec<CodeNames>>,
}

impl Symbolizer {
    /// A symbolizer for a process with these modules.
    pub fn new(modules: Vec<LoadedModule>) -> Symbolizer {
        let mut modules = modules;
        modules.sort_by_key(|module| std::cmp::Reverse(module.since));
        Symbolizer { modules, time: u64::MAX, ..Symbolizer::default() }
    }

    /// Adds files that were kept of modules that are gone.
    pub fn with_kept(self, kept: KeptModules) -> Symbolizer {
        Symbolizer { kept, ..self }
    }

    /// Adds files of the process, in which functions are looked up by name: paths with build ids.
    pub fn with_files(self, others: Vec<(String, String)>) -> Symbolizer {
        Symbolizer { others, ..self }
    }

    /// Sets the time that addresses are of from now on, in the unit of [`LoadedModule::since`]: several modules may have
    /// been at one address, one after the other. Without it, the last one counts.
    pub fn set_time(&mut self, time: u64) {
        self.time = time;
    }

    /// The place of the call that returns to `return_address`.
    pub fn call_place(&mut self, return_address: u64) -> CodePlace {
        self.place(return_address, false)
    }

    /// [`Symbolizer::call_place`] of a call into an OpenMP runtime. If a function ends with the call and the compiler
    /// made it a jump, the place is that of the jump. Inlined library functions without a construct are skipped,
    /// although the line table of optimised code may assign the call to them.
    pub fn runtime_call_place(&mut self, return_address: u64) -> CodePlace {
        self.place(return_address, true)
    }

    fn place(&mut self, return_address: u64, runtime_call: bool) -> CodePlace {
        // The return address may be the first of the next line, function or file.
        let address = return_address.wrapping_sub(1);
        if is_python_place(address) {
            return self.python_place(address);
        }
        let Some((module, in_file)) = self.in_file(address) else {
            return CodePlace { missing: Some(Missing::NoModule), ..CodePlace::default() };
        };
        let (path, build_id) = (module.path.clone(), module.build_id.clone());
        match runtime_call {
            true => self.place_of_call(&path, &build_id, in_file.wrapping_add(1)),
            false => self.describe(&path, &build_id, in_file, false),
        }
    }

    /// The module that holds an address of the process, and the address in its file.
    fn in_file(&self, address: u64) -> Option<(&LoadedModule, u64)> {
        let mut there = self.modules.iter().filter(|module| (module.start..module.end).contains(&address));
        let mut module = there.next()?;
        // Before any is known to be there, it is the first.
        while module.since > self.time
            && let Some(earlier) = there.next()
        {
            module = earlier;
        }
        Some((module, address.wrapping_sub(module.bias)))
    }

    /// The file at a path, with a build id, if it can be read.
    fn file(&mut self, path: &str, build_id: &str) -> Option<&mut ModuleFile> {
        self.try_file(path, build_id).as_mut().ok()
    }

    fn try_file(&mut self, path: &str, build_id: &str) -> &mut Result<ModuleFile, Missing> {
        let (key, kept) = ((path.to_string(), build_id.to_string()), &self.kept);
        self.files.entry(key).or_insert_with(|| ModuleFile::open(path, build_id, kept))
    }

    /// The place of an address inside an instruction of a file. The file is the one at `path`, if its build id is
    /// `build_id` (empty: any).
    pub fn place_in_file(&mut self, path: &str, build_id: &str, in_file: u64) -> CodePlace {
        self.describe(path, build_id, in_file, false)
    }

    /// Names an address outside of all loaded files by the kept maps of code that was generated at run time. An address
    /// with different names in the maps of several processes has none. Only addresses in executable memory without a
    /// file are [`Missing::RunTimeCode`].
    pub fn place_of_run_time_code(&mut self, address: u64) -> CodePlace {
        if is_python_place(address) {
            return self.python_place(address);
        }
        let parse = |text: Vec<u8>| CodeNames::parse(&String::from_utf8_lossy(&text));
        let maps = self.run_time_code.get_or_insert_with(|| self.kept.code_maps().map(parse).collect());
        let mut names: Vec<&str> = maps.iter().filter_map(|map| map.find(address)).collect();
        if names.is_empty() {
            // A compiler that writes both names functions twice, in different words.
            let read = |dump: Vec<u8>| jit_dump::parse(&dump);
            let dumps = self.dumped_code.get_or_insert_with(|| self.kept.code_dumps().map(read).collect());
            names = dumps.iter().filter_map(|dump| dump.find(address)).collect();
        }
        names.dedup();
        if let [name] = names[..] {
            let frame = Frame { function: Some(name.to_string()), ..Frame::default() };
            return CodePlace { frame, ..CodePlace::default() };
        }
        let generated = self.generated.get_or_insert_with(|| self.kept.generated_code().map(parse).collect());
        let is_generated = !names.is_empty() || generated.iter().any(|ranges| ranges.find(address).is_some());
        let missing = if is_generated { Missing::RunTimeCode } else { Missing::NoModule };
        CodePlace { missing: Some(missing), ..CodePlace::default() }
    }

    /// The place of an instruction of Python.
    fn python_place(&mut self, address: u64) -> CodePlace {
        let parse = |text: Vec<u8>| PythonCode::parse(&String::from_utf8_lossy(&text));
        let processes = self.python.get_or_insert_with(|| self.kept.python_code().map(parse).collect());
        let mut places: Vec<CodePlace> = processes.iter().filter_map(|code| code.find(address)).collect();
        places.dedup();
        // Two processes may have had one number, on different hosts.
        match (places.pop(), places.is_empty()) {
            (Some(place), true) => place,
            _ => CodePlace { missing: Some(Missing::NoModule), ..CodePlace::default() },
        }
    }

    /// [`runtime_call_place`](Self::runtime_call_place) of the call that returns to an address of a file.
    pub fn runtime_call_place_in_file(&mut self, path: &str, build_id: &str, returns_to: u64) -> CodePlace {
        self.place_of_call(path, build_id, returns_to)
    }

    /// The static variable at an address of a file, and the position in it.
    pub fn variable_in_file(&mut self, path: &str, build_id: &str, in_file: u64) -> Option<VariablePlace> {
        self.file(path, build_id)?.variable(in_file)
    }

    /// The loops around an address of a file, outer ones before inner ones. Empty if the code is not available, or for
    /// processors other than x86-64.
    pub fn loops_around(&mut self, path: &str, build_id: &str, in_file: u64) -> Vec<LoopCode> {
        self.file(path, build_id).map_or_else(Vec::new, |file| file.loops_around(in_file))
    }

    /// Path and build id of the file that holds an address of the process, and the address in it.
    pub fn file_of(&self, address: u64) -> Option<(String, String, u64)> {
        let (module, in_file) = self.in_file(address)?;
        Some((module.path.clone(), module.build_id.clone(), in_file))
    }

    /// Begin and end of the function at an address of a file.
    pub fn function_range(&mut self, path: &str, build_id: &str, in_file: u64) -> Option<(u64, u64)> {
        self.file(path, build_id)?.function_range(in_file)
    }

    /// The instructions of the function at an address of a file.
    ///
    /// # Errors
    /// The reason in words if the file is not the one that ran, or its code is not known.
    pub fn instructions(&mut self, path: &str, build_id: &str, in_file: u64) -> Result<FunctionCode, String> {
        let file = self.try_file(path, build_id).as_mut().map_err(|missing| missing.to_string())?;
        file.instructions(in_file).map_err(|reason| format!("{path}: {}", reason.words()))
    }

    /// The static variable at an address, and the position in it.
    pub fn variable(&mut self, address: u64) -> Option<VariablePlace> {
        let (module, _) = self.in_file(address)?;
        let (path, build_id, bias) = (module.path.clone(), module.build_id.clone(), module.bias);
        self.file(&path, &build_id)?.variable(address.wrapping_sub(bias))
    }

    fn describe(&mut self, path: &str, build_id: &str, in_file: u64, runtime_call: bool) -> CodePlace {
        let short = path.rsplit('/').next().unwrap_or_default().to_string();
        let mut place = CodePlace { module: Some((short, in_file)), ..CodePlace::default() };
        let file = match self.try_file(path, build_id) {
            Ok(file) => file,
            Err(missing) => {
                place.missing = Some(missing.clone());
                return place;
            }
        };
        let mut found = file.find(in_file);
        if runtime_call {
            file.leave_library_frames(&mut found);
        }
        if found.lacks_debug_information {
            place.missing = Some(Missing::SplitGone { path: path.to_string() });
        }
        let mut frames: Vec<Frame> = Vec::new();
        for (linkage, source, line) in found.frames {
            let by_name = linkage.as_deref().and_then(name::user_function);
            let is_nameless = by_name.is_none();
            let function = by_name.or_else(|| file.function_around(source.as_deref()?, line?));
            let cut_out = linkage.as_deref().is_some_and(name::is_outlined);
            let is_wrapped = linkage.as_deref().is_some_and(name::is_wrapped);
            // A cut-out body and the wrapper around it are one function to its author.
            match frames.last_mut().filter(|last| last.cut_out && cut_out && last.function == function) {
                Some(body) => body.construct_line = line,
                None => frames.push(Frame {
                    function,
                    file: source,
                    line,
                    cut_out,
                    construct_line: None,
                    is_wrapped,
                    is_split_off: false,
                    is_nameless,
                }),
            }
        }
        let mut frames = frames.into_iter();
        if let Some(inner) = frames.next() {
            place.frame = inner;
            place.inlined_into = frames.collect();
        }
        // Debug information has the function that it was split off.
        let is_split_off = found.symbol.as_ref().is_some_and(|(symbol, _)| name::is_split_off(symbol));
        place.inlined_into.last_mut().unwrap_or(&mut place.frame).is_split_off = is_split_off;
        if place.frame.function.is_none()
            && let Some((symbol, offset)) = found.symbol
        {
            place.frame.cut_out = name::is_outlined(&symbol);
            place.frame.is_wrapped = name::is_wrapped(&symbol);
            let by_name = name::user_function(&symbol);
            place.frame.is_nameless = by_name.is_none();
            place.frame.function = by_name.or(Some(symbol));
            place.offset = place.frame.line.is_none().then_some(offset);
        }
        if place.frame.function.is_none() {
            place.unnamed = file.start_of_function(in_file);
        }
        // In a file with debug information, addresses outside all functions are linker-generated.
        let is_stub = found.is_stub || place.frame.function.is_none() && file.has_debug_information();
        if place.frame.line.is_none() && !is_stub {
            let path = path.to_string();
            place.missing = Some(if file.is_image() {
                Missing::OnlyExported { path }
            } else if file.has_debug_information() || file.has_symbols() {
                Missing::NoDebugInformation { path }
            } else {
                Missing::Stripped { path }
            });
        }
        place
    }
}
