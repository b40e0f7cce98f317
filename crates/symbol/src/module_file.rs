//! One executable or library on disk: its symbols and its debug information.

mod instructions;

pub use instructions::{FunctionCode, Instruction};

use crate::code_place::{LoopCode, Missing};
use crate::debug::{Debug, lacks_rest};
use crate::declarations::{Declaration, declarations_of};
use crate::fortran::{self, FortranNames};
use crate::handlers::{Handler, handlers_of};
use crate::image::is_image;
use crate::inlined::InlinedNames;
use crate::kept_modules::{KeptModules, fingerprint};
use crate::loops::{Loop, loops_of};
use crate::name;
use crate::object_file::{
    Function, Reader, VDSO, dwarf_of, exports_of, functions_of, hexadecimal, own_vdso, read_whole,
    read_with_sections, with_all_sections,
};
use crate::plt;
use crate::separate::debug_file_of;
use crate::tail_call::{Callee, Exits, TailCalls};
use crate::unwound::unwound_functions;
use crate::variable::{Variable, VariablePlace, variables};
use addr2line::Context;
use object::{Object, ObjectSection};
use std::path::Path;
use std::sync::Arc;

/// A file that names can be looked up in.
pub struct ModuleFile {
    /// The file that was read: the module's own path, or the recorder's copy.
    path: String,
    /// Whether the recorder kept the loaded image only.
    is_image: bool,
    functions: Vec<Function>,
    /// Stubs of calls into other files.
    stubs: Vec<Function>,
    context: Option<Context<Reader>>,
    debug: Option<Debug>,
    fortran: FortranNames,
    /// Read at the first question for a function that was put in line and has no linkage name.
    inlined: Option<InlinedNames>,
    declarations: Option<Vec<Declaration>>,
    tail_calls: Option<TailCalls>,
    /// Exported functions; read at the first question for one.
    exports: Option<rustc_hash::FxHashMap<String, u64>>,
    /// Loops of the functions that were asked for, by the function's address.
    loops: rustc_hash::FxHashMap<u64, Vec<(Loop, LoopCode)>>,
    /// Static variables; read at the first question for one.
    variables: Option<Vec<Variable>>,
    /// Read at the first question for loops.
    code: Option<Code>,
    /// Begin and end of the functions that have unwind tables; read at the first question for one without a name.
    unwound: Option<Vec<(u64, u64)>>,
}

/// Machine code.
#[derive(Default)]
struct Code {
    /// Executable sections, with their addresses.
    sections: Vec<(u64, Vec<u8>)>,
    /// Handlers of exceptions, by the address of their function.
    handlers: rustc_hash::FxHashMap<u64, Vec<Handler>>,
}

/// Names and lines of one address of the file.
#[derive(Default)]
pub struct Found {
    /// Inlined functions and the one they are in, innermost first: name as linked, file, line.
    pub frames: Vec<(Option<String>, Option<String>, Option<u32>)>,
    /// The symbol that holds the address, and the offset in it.
    pub symbol: Option<(String, u64)>,
    /// Whether the symbol is that of a stub.
    pub is_stub: bool,
    /// Whether its debug information is in a file of its own, which was not found.
    pub lacks_debug_information: bool,
}

impl Found {
    /// Debug information of lines alone may have no name for the function that others were inlined into, and gcc's has no
    /// linkage name, thus no namespace and no class, for functions of one file: the symbol has.
    fn name_outermost(&mut self) {
        let Some((symbol, _)) = self.symbol.as_ref().filter(|_| !self.is_stub) else { return };
        if let Some((name, ..)) = self.frames.last_mut()
            && name.as_deref().is_none_or(|name| symbol.starts_with("_Z") && !name.starts_with("_Z"))
        {
            *name = Some(symbol.clone());
        }
    }
}

/// Directory of functions that are inlined from a library.
const SYSTEM_HEADERS: &str = "/usr/include/";

impl ModuleFile {
    /// Reads the file at `path`, or its kept copy, if it has `build_id` (empty: any).
    pub fn open(path: &str, build_id: &str, kept: &KeptModules) -> Result<ModuleFile, Missing> {
        ModuleFile::open_at(path, build_id).or_else(|missing| {
            let kept = kept.find(build_id).and_then(|file| file.into_os_string().into_string().ok());
            kept.and_then(|kept| ModuleFile::open_at(&kept, "").ok()).ok_or(missing)
        })
    }

    fn open_at(path: &str, build_id: &str) -> Result<ModuleFile, Missing> {
        let gone = || Missing::FileGone { path: path.to_string() };
        let bytes = if path == VDSO {
            own_vdso().ok_or_else(gone)?
        } else {
            read_whole(Path::new(path)).map_err(|_| gone())?
        };
        let unreadable = || Missing::NotReadable { path: path.to_string() };
        let is_image = is_image(&bytes);
        let bytes = with_all_sections(bytes).ok_or_else(unreadable)?;
        let file = object::File::parse(&*bytes).map_err(|_| unreadable())?;
        let is_it = match build_id.starts_with('~') {
            true => fingerprint(&bytes) == build_id,
            false => {
                let found = hexadecimal(file.build_id().ok().flatten().unwrap_or_default());
                build_id.is_empty() || found.eq_ignore_ascii_case(build_id)
            }
        };
        if !is_it {
            return Err(Missing::Changed { path: path.to_string() });
        }
        let mut dwarf = dwarf_of(&file, false);
        let mut functions = functions_of(&file);
        if dwarf.is_none()
            && let Some(bytes) = debug_file_of(Path::new(path), &file)
            && let Ok(debug) = object::File::parse(&*bytes)
        {
            dwarf = dwarf_of(&debug, false);
            // A stripped library has those alone that it exports.
            let all = functions_of(&debug);
            if all.len() > functions.len() {
                functions = all;
            }
        }
        #[allow(clippy::arc_with_non_send_sync, reason = "addr2line takes an Arc")]
        let debug = dwarf.map(|dwarf| Debug::new(Arc::new(dwarf), Path::new(path)));
        let fortran = debug.as_ref().map(|debug| fortran::names_of(debug, &functions)).unwrap_or_default();
        for function in &mut functions {
            function.name = fortran::as_written(&fortran, std::mem::take(&mut function.name));
        }
        // `Context` wants an `Arc`; nothing here is shared between threads.
        let context = debug.as_ref().and_then(|debug| Context::from_arc_dwarf(debug.dwarf.clone()).ok());
        let tail_calls = TailCalls::of(&file);
        Ok(ModuleFile {
            path: path.to_string(),
            is_image,
            functions,
            stubs: plt::stubs_of(&file),
            context,
            debug,
            fortran,
            inlined: None,
            declarations: None,
            tail_calls,
            exports: None,
            loops: rustc_hash::FxHashMap::default(),
            variables: None,
            code: None,
            unwound: None,
        })
    }

    /// The loops around an address, outer ones before inner ones.
    pub fn loops_around(&mut self, address: u64) -> Vec<LoopCode> {
        let after = self.functions.partition_point(|f| f.start <= address);
        let function =
            after.checked_sub(1).map(|index| (self.functions[index].start, self.functions[index].end));
        let Some((start, end)) = function.filter(|(_, end)| address < *end) else { return Vec::new() };
        let code = self.code.get_or_insert_with(|| code_of(&self.path).unwrap_or_default());
        let context = self.context.as_ref();
        let loops = self.loops.entry(start).or_insert_with(|| {
            let section =
                code.sections.iter().find(|(at, bytes)| (*at..*at + bytes.len() as u64).contains(&start));
            let bytes = section.and_then(|(at, bytes)| {
                let from = (start - at) as usize;
                bytes.get(from..bytes.len().min(from + (end - start) as usize))
            });
            let handlers = code.handlers.get(&start).map_or(&[][..], Vec::as_slice);
            let loops = bytes.map_or_else(Vec::new, |bytes| loops_of(bytes, start, handlers));
            let with_statement = |one: Loop| {
                let has_line = one.controls.is_empty() || has_own_line(context, start, &one);
                let entry = Some(one.header).filter(|_| has_line);
                let statement = entry.into_iter().chain(one.controls.iter().copied()).collect();
                (one, LoopCode { statement })
            };
            loops.into_iter().map(with_statement).collect()
        });
        let around = loops.iter().filter(|(one, _)| one.contains(address));
        around.map(|(_, code)| code.clone()).collect()
    }

    fn read_unwound(&mut self) -> &[(u64, u64)] {
        self.unwound.get_or_insert_with(|| unwound_functions(&self.path).unwrap_or_default())
    }

    /// The begin of the function that holds an address, from its unwind table.
    pub fn start_of_function(&mut self, address: u64) -> Option<u64> {
        let all = self.read_unwound();
        let (start, end) = all.get(all.partition_point(|(start, _)| *start <= address).checked_sub(1)?)?;
        (address < *end).then_some(*start)
    }

    /// The static variable that holds an address, and the position in it.
    pub fn variable(&mut self, address: u64) -> Option<VariablePlace> {
        let debug = self.debug.as_ref();
        let all = self.variables.get_or_insert_with(|| variables(&self.path, debug));
        let variable = all.get(all.partition_point(|v| v.start <= address).checked_sub(1)?)?;
        (address < variable.end).then(|| variable.place(address - variable.start))
    }

    /// Whether the recorder kept the loaded image only.
    pub fn is_image(&self) -> bool {
        self.is_image
    }

    /// Whether it has line numbers.
    pub fn has_debug_information(&self) -> bool {
        self.context.is_some()
    }

    /// Whether it has any function names.
    pub fn has_symbols(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Whether its calls into an OpenMP runtime can be looked at.
    pub fn has_tail_calls(&self) -> bool {
        self.tail_calls.is_some()
    }

    /// The callee of the call into an OpenMP runtime that returns to an address.
    pub fn callee(&mut self, return_address: u64) -> Callee {
        self.read_range_of(return_address);
        let Some(calls) = &self.tail_calls else { return Callee::Unknown };
        let around = |address: u64| self.known_range(address).map(|(start, _)| start);
        calls.callee(return_address, |start| self.end_of_function(start).is_some(), around)
    }

    /// Calls of the function at an address into an OpenMP runtime.
    pub fn exits(&mut self, start: u64) -> Exits {
        self.read_range_of(start);
        let calls = self.tail_calls.as_ref();
        calls.map(|calls| calls.exits(start, |start| self.end_of_function(start))).unwrap_or_default()
    }

    /// The function that this file exports by a name, if its code calls an OpenMP runtime anywhere.
    pub fn exported(&mut self, name: &str) -> Option<u64> {
        self.tail_calls.as_ref()?;
        let exports = self.exports.get_or_insert_with(|| exports_of(&self.path).unwrap_or_default());
        exports.get(name).copied()
    }

    /// Begin and end of the function that holds an address, by its symbol or else by its unwind table, once that was read.
    fn known_range(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let symbol = after.checked_sub(1).map(|index| &self.functions[index]);
        if let Some(function) = symbol.filter(|function| address < function.end) {
            return Some((function.start, function.end));
        }
        let unwound = self.unwound.as_deref()?;
        let found = unwound.get(unwound.partition_point(|(start, _)| *start <= address).checked_sub(1)?)?;
        Some(*found).filter(|(_, end)| address < *end)
    }

    /// Reads unwind tables if no symbol has the function at an address.
    fn read_range_of(&mut self, address: u64) {
        if self.known_range(address).is_none() {
            self.read_unwound();
        }
    }

    /// The end of the function that begins at an address.
    fn end_of_function(&self, start: u64) -> Option<u64> {
        self.known_range(start).filter(|(begin, _)| *begin == start).map(|(_, end)| end)
    }

    /// The address after the only jump into an OpenMP runtime in the function that begins at an address.
    pub fn only_jump_in(&self, start: u64) -> Option<u64> {
        let index = self.functions.binary_search_by_key(&start, |function| function.start).ok()?;
        self.tail_calls.as_ref()?.only_jump(start, self.functions[index].end)
    }

    /// The outlined body that gcc's code, in the function that begins at `start`, passes to the runtime by the jump which ends
    /// at `after`.
    pub fn body_passed(&self, start: u64, after: u64) -> Option<u64> {
        let is_body = |address: u64| {
            let index = self.functions.binary_search_by_key(&address, |function| function.start);
            index.is_ok_and(|index| name::is_outlined(&self.functions[index].name))
        };
        self.tail_calls.as_ref()?.argument_before(start, after, is_body)
    }

    /// Finds names and lines of an address of the file.
    pub fn find(&mut self, address: u64) -> Found {
        let mut found = Found::default();
        let (mut columns, mut entries) = (Vec::new(), Vec::new());
        if let (Some(context), Some(debug)) = (&self.context, &self.debug)
            && let Ok(mut frames) = debug.look_up(context.find_frames(address))
        {
            while let Ok(Some(frame)) = frames.next() {
                entries.push(frame.dw_die_offset);
                let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
                let name = name.map(|name| fortran::as_written(&self.fortran, name.into_owned()));
                columns.push(frame.location.as_ref().and_then(|location| location.column));
                let (file, line) =
                    frame.location.map_or((None, None), |l| (l.file.map(str::to_string), l.line));
                found.frames.push((name, file, line));
            }
            let unit = debug.look_up(context.find_dwarf_and_unit(address));
            found.lacks_debug_information = unit.is_some_and(|unit| lacks_rest(&unit));
        }
        self.name_inlined(address, &entries, &mut found);
        for outer in (1..found.frames.len()).rev() {
            let ((inner, ..), (name, _, line)) = (&found.frames[outer - 1], &found.frames[outer]);
            if inner == name && self.is_declared_at(name.as_deref(), *line, columns[outer]) {
                found.frames.remove(outer);
            }
        }
        if let Some((_, file, line @ None)) = found.frames.first_mut().filter(|(_, file, _)| file.is_some()) {
            *line = self.line_before(address, file.as_deref());
        }
        let holder = |functions: &[Function]| -> Option<(String, u64)> {
            let function = &functions[functions.partition_point(|f| f.start <= address).checked_sub(1)?];
            (address < function.end).then(|| (function.name.clone(), address - function.start))
        };
        found.symbol = holder(&self.functions);
        if found.symbol.is_none() {
            found.symbol = holder(&self.stubs);
            found.is_stub = found.symbol.is_some();
        }
        found.name_outermost();
        found
    }

    /// Gives inlined functions the names that only symbols have; debug information describes the frames in `entries`.
    fn name_inlined(&mut self, address: u64, entries: &[Option<gimli::UnitOffset>], found: &mut Found) {
        let (Some(debug), Some(context)) = (&self.debug, &self.context) else { return };
        let frames = found.frames.split_last_mut().map_or(&mut [][..], |(_, inlined)| inlined);
        let mut unnamed = (frames.iter_mut().zip(entries))
            .filter(|((name, ..), _)| name.as_deref().is_some_and(|name| !name.starts_with("_Z")))
            .filter_map(|((name, ..), entry)| Some((name, (*entry)?)))
            .peekable();
        if unnamed.peek().is_none() {
            return;
        }
        let names = self.inlined.get_or_insert_with(|| InlinedNames::of(debug, &self.functions));
        if names.is_empty() {
            return;
        }
        let Some(unit) = debug.look_up(context.find_dwarf_and_unit(address)) else { return };
        for (name, entry) in unnamed {
            if let Some(linkage) = names.find(unit.unit, entry) {
                *name = Some(linkage.to_string());
            }
        }
    }

    /// Whether a call at this place is that of a part which gcc split off the function of this name and then put in line: it
    /// has no place but the function's own.
    fn is_declared_at(&mut self, name: Option<&str>, line: Option<u32>, column: Option<u32>) -> bool {
        let (Some(name), Some(line), Some(column)) = (name, line, column) else { return false };
        let at = (u64::from(line), Some(u64::from(column)));
        self.declarations().iter().any(|d| d.name == name && (d.line, d.column) == at)
    }

    fn declarations(&mut self) -> &[Declaration] {
        let debug = self.debug.as_ref();
        self.declarations.get_or_insert_with(|| debug.map(declarations_of).unwrap_or_default())
    }

    /// The line of an instruction that the compiler generated, to which its line table gives line 0: that of the
    /// nearest preceding entry in the same function and file.
    fn line_before(&self, address: u64, file: Option<&str>) -> Option<u32> {
        let context = self.context.as_ref()?;
        let function = self.functions.partition_point(|f| f.start <= address).checked_sub(1)?;
        let rows = context.find_location_range(self.functions[function].start, address).ok()?;
        let file_rows = rows.filter(|(.., location)| location.file == file);
        file_rows.filter_map(|(.., location)| location.line).last()
    }

    /// File and line of the first line table entry at an address: for an outlined body, its construct. Other lookups
    /// return the last entry.
    pub fn first_line_at(&self, address: u64) -> Option<(String, u32)> {
        let (context, debug) = (self.context.as_ref()?, self.debug.as_ref()?);
        let unit = debug.look_up(context.find_dwarf_and_unit(address))?;
        let mut rows = unit.unit.line_program.clone()?.rows();
        while let Ok(Some((header, row))) = rows.next_row() {
            if row.address() != address || row.end_sequence() {
                continue;
            }
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            let name = row.file(header).and_then(|file| unit.attr_string(file.path_name()).ok());
            let name = name.and_then(|name| Some(gimli::Reader::to_string_lossy(&name).ok()?.into_owned()));
            if let Some(found) = name.zip(line) {
                return Some(found);
            }
        }
        None
    }

    /// Drops the inner frames of a call into an OpenMP runtime that are in functions of system headers, unless a body
    /// was outlined from one of them. A body must have been outlined from a function around them.
    pub fn leave_library_frames(&self, found: &mut Found) {
        let is_library =
            |file: &Option<String>| file.as_deref().is_some_and(|f| f.starts_with(SYSTEM_HEADERS));
        let inner = found.frames.iter().take_while(|(_, file, _)| is_library(file)).count();
        let has_body = |(linkage, ..): &(Option<String>, _, _)| {
            linkage.as_deref().is_some_and(|name| self.has_cut_out_body(name))
        };
        if inner > 0
            && found.frames[inner..].first().is_some_and(has_body)
            && !found.frames[..inner].iter().any(has_body)
        {
            found.frames.drain(..inner);
        }
    }

    /// Whether gcc cut a body out of the function of this name, or the other way round.
    fn has_cut_out_body(&self, linkage: &str) -> bool {
        let mark = "._omp_fn.";
        let base = linkage.find(mark).map_or(linkage, |cut| &linkage[..cut]);
        let is_of_base = |name: &str| name.strip_prefix(base).is_some_and(|rest| rest.starts_with(mark));
        self.functions.iter().any(|function| is_of_base(&function.name))
    }

    /// The function in `file` with the nearest declaration above `line`: the source of an outlined body with a name
    /// that lacks it.
    pub fn function_around(&mut self, file: &str, line: u32) -> Option<String> {
        self.nearest_function(file, line, |_| true)
    }

    /// The same among the functions of this name, in any scope.
    pub fn function_named(&mut self, own_name: &str, file: &str, line: u32) -> Option<String> {
        self.nearest_function(file, line, |function| name::own_name(function) == own_name)
    }

    fn nearest_function(&mut self, file: &str, line: u32, is_it: impl Fn(&str) -> bool) -> Option<String> {
        let file = Path::new(file).file_name()?;
        let is_above =
            |d: &&Declaration| d.line <= line.into() && Path::new(&d.file).file_name() == Some(file);
        let mut above: Vec<&Declaration> = self.declarations().iter().filter(is_above).collect();
        above.sort_by_key(|declaration| declaration.line);
        let names = above.into_iter().rev().map(|declaration| name::user_function(&declaration.name));
        names.flatten().find(|function| is_it(function))
    }
}

/// Whether the line of a loop's first instruction is its own. Instructions there may have the line of code before the
/// loop, even that of the function at `function`.
fn has_own_line(context: Option<&Context<Reader>>, function: u64, one: &Loop) -> bool {
    let rows = |from, to| context.and_then(|context| context.find_location_range(from, to).ok());
    let at_entry = rows(one.header, one.header + 1).and_then(|mut rows| rows.next());
    let Some((first, _, entry)) = at_entry else { return false };
    let mut before = rows(function, one.header).into_iter().flatten();
    let is_before = |(at, _, location): (u64, u64, addr2line::Location<'_>)| {
        !one.contains(at.max(function)) && (location.file, location.line) == (entry.file, entry.line)
    };
    first == one.header && !before.any(is_before)
}

/// The code of a file for x86-64.
fn code_of(path: &str) -> Option<Code> {
    let bytes = read_with_sections(path)?;
    let file = object::File::parse(&*bytes).ok()?;
    if file.architecture() != object::Architecture::X86_64 {
        return None;
    }
    let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
    let sections = code.filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())));
    Some(Code { sections: sections.collect(), handlers: handlers_of(&file) })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_in_this_process_have_names() {
        let file = ModuleFile::open_at(VDSO, "").unwrap();
        assert!(file.functions.iter().any(|function| function.name.contains("clock_gettime")));
        assert!(ModuleFile::open_at(VDSO, "00").is_err());
    }
}
