//! Calls into an OpenMP runtime or MPI that the compiler made tail calls.
//!
//! A function that ends with a construct jumps into the runtime instead of calling it, so the
//! runtime's return address is in the function's caller:
//!
//! ```text
//!   step:    call smooth  ─┐          smooth:  …
//!            next ◀── seen by the      └─▶     jmp  __kmpc_fork_call      the construct
//!                     runtime
//! ```
//! The call before the return address gives the function; its jump into the runtime gives the line. Code is
//! not disassembled: the search is for near jumps with a distance that leads exactly to an entry of the runtime, which
//! other bytes match by chance once in 2³² places. A function of another file is known by its name. After a call
//! through a pointer, the function is not known. x86-64 only.

use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionKind,
    SymbolKind,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Prefixes of the OpenMP runtimes' entries for constructs.
const ENTRY_PREFIXES: [&str; 2] = ["__kmpc_", "GOMP_"];
/// Prefixes of all called functions with call sites.
const RUNTIME_PREFIXES: [&str; 8] = ["__kmpc_", "GOMP_", "omp_", "kmpc_", "__tgt_", "MPI_", "PMPI_", "mpi_"];
/// Functions that are looked at behind one call.
const MAX_FUNCTIONS: usize = 16;

/// The target of the call before a return address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// The runtime itself.
    Runtime,
    /// A function of the file, at an address.
    Own(u64),
    /// A function of another file, by its name.
    Imported(String),
    /// The unknown target of a pointer.
    Pointer,
    /// No call is there, or not one that is understood.
    Unknown,
}

/// Calls of a function, and of those that it jumps to, into the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    /// The function, and the address after the jump.
    pub jumps: Vec<(u64, u64)>,
    /// Functions of other files that are jumped to.
    pub imported: Vec<String>,
}

/// The code of a file, and the ways that lead from it into the runtime.
pub struct TailCalls {
    /// Executable sections: address and bytes.
    code: Vec<(u64, Vec<u8>)>,
    /// Addresses of pointers to the runtime's functions (entries of the global offset table).
    slots: FxHashSet<u64>,
    /// Addresses of stubs that jump through such a pointer (entries of the procedure linkage table), and of the entries of a
    /// runtime that is linked into the program.
    stubs: FxHashSet<u64>,
    /// The file's own functions behind such pointers and stubs: a library calls its exported functions by them.
    own: FxHashMap<u64, u64>,
    /// Names of functions of other files behind such pointers and stubs.
    imported: FxHashMap<u64, String>,
}

impl TailCalls {
    /// The data needed of a file; `None` if the file has no call into a runtime.
    pub fn of(file: &object::File<'_>) -> Option<TailCalls> {
        let (Slots { runtime: slots, own, imported }, entries) = (slots_of(file)?, entries_of(file));
        if slots.is_empty() && entries.is_empty() {
            return None;
        }
        let is_code = |section: &object::Section<'_, '_>| section.kind() == SectionKind::Text;
        let code: Vec<(u64, Vec<u8>)> = file
            .sections()
            .filter(is_code)
            .filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())))
            .collect();
        // A function that consists of such a jump looks the same; an image without section names gives no
        // evidence.
        let has_own_section = |section: &object::Section<'_, '_>| {
            is_code(section) && section.name().is_ok_and(|name| name.starts_with(".plt"))
        };
        let stub_sections: Vec<u64> =
            file.sections().filter(has_own_section).map(|section| section.address()).collect();
        let mut calls = TailCalls { code, slots, stubs: FxHashSet::default(), own, imported };
        for (stub, slot) in calls.find_stubs(&stub_sections) {
            if calls.slots.contains(&slot) {
                calls.stubs.insert(stub);
            } else if let Some(function) = calls.own.get(&slot).copied() {
                calls.own.insert(stub, function);
            } else if let Some(name) = calls.imported.get(&slot).cloned() {
                calls.imported.insert(stub, name);
            }
        }
        calls.stubs.extend(entries);
        Some(calls)
    }

    /// The target of the call that returns to an address. `is_function` checks whether a function begins at an address,
    /// and `around` returns the begin of the function that holds one.
    pub fn callee(
        &self,
        return_address: u64,
        is_function: impl Fn(u64) -> bool,
        around: impl Fn(u64) -> Option<u64>,
    ) -> Callee {
        if let Some(called) = self.called_before(return_address) {
            if self.stubs.contains(&called) {
                return Callee::Runtime;
            }
            if let Some(name) = self.imported.get(&called) {
                return Callee::Imported(name.clone());
            }
            let function = self.function_at(called);
            if is_function(function) {
                return Callee::Own(function);
            }
        }
        if let Some(slot) = self.pointer_called_by(return_address) {
            return self.behind_pointer(slot);
        }
        match self.register_called_by(return_address) {
            Some(Some(register)) => {
                let start = around(return_address);
                let kept = start.and_then(|start| self.kept_in(register, start, return_address, is_function));
                kept.unwrap_or(Callee::Pointer)
            }
            Some(None) => Callee::Pointer,
            None => Callee::Unknown,
        }
    }

    fn behind_pointer(&self, slot: u64) -> Callee {
        match (self.slots.contains(&slot), self.own.get(&slot), self.imported.get(&slot)) {
            (true, ..) => Callee::Runtime,
            (_, Some(function), _) => Callee::Own(*function),
            (_, _, Some(name)) => Callee::Imported(name.clone()),
            _ => Callee::Pointer,
        }
    }

    /// The exits into the runtime of the function at `start` and of the functions of the file that it jumps to.
    /// `functions` returns a function's end by its first address.
    pub fn exits(&self, start: u64, functions: impl Fn(u64) -> Option<u64>) -> Exits {
        let mut exits = Exits::default();
        let mut met = vec![start];
        let mut next = 0;
        while let Some(&start) = met.get(next) {
            next += 1;
            let Some(end) = functions(start) else { continue };
            for jump in self.jumps_in(start, end) {
                if jump.enters_runtime {
                    exits.jumps.push((start, jump.after));
                } else if let Some(name) = self.imported.get(&jump.to) {
                    exits.imported.push(name.clone());
                } else if met.len() < MAX_FUNCTIONS && !met.contains(&jump.to) && functions(jump.to).is_some()
                {
                    met.push(jump.to);
                }
            }
        }
        exits
    }

    /// The address of the pointer through which the call goes that returns to an address.
    fn pointer_called_by(&self, return_address: u64) -> Option<u64> {
        let bytes = self.bytes(return_address.checked_sub(6)?, 6)?;
        bytes.starts_with(&[0xff, 0x15]).then(|| relative(return_address, &bytes[2..]))
    }

    /// The register through which the call goes that returns to an address; `Some(None)` for a call through memory that
    /// a register points to.
    fn register_called_by(&self, return_address: u64) -> Option<Option<u8>> {
        let before = |count: u64| self.bytes(return_address.checked_sub(count)?, count as usize);
        if let Some([0xff, register @ 0xd0..=0xd7]) = before(2) {
            let is_extended = before(3).is_some_and(|bytes| bytes[0] == 0x41);
            return Some(Some(register - 0xd0 + if is_extended { 8 } else { 0 }));
        }
        // `call *(%rax)`, with an index, a distance of one byte or four, and both.
        let is_call = |count: u64, is_mode: fn(u8) -> bool| {
            before(count).is_some_and(|bytes| bytes[0] == 0xff && is_mode(bytes[1]))
        };
        let through_memory = is_call(2, |mode| matches!(mode, 0x10..=0x13 | 0x16 | 0x17))
            || is_call(3, |mode| mode == 0x14 || matches!(mode, 0x50..=0x53 | 0x55..=0x57))
            || is_call(4, |mode| mode == 0x54)
            || is_call(6, |mode| matches!(mode, 0x90..=0x93 | 0x95..=0x97))
            || is_call(7, |mode| matches!(mode, 0x14 | 0x94));
        through_memory.then_some(None)
    }

    /// The function with its address kept in a register by the code from `start` to `end`, if calls preserve that
    /// register: compilers keep the addresses of frequent callees.
    fn kept_in(
        &self,
        register: u8,
        start: u64,
        end: u64,
        is_function: impl Fn(u64) -> bool,
    ) -> Option<Callee> {
        /// `rbx`, `rbp`, `r12` to `r15`.
        const KEPT: [u8; 6] = [3, 5, 12, 13, 14, 15];
        if !KEPT.contains(&register) {
            return None;
        }
        let code = self.bytes(start, usize::try_from(end.checked_sub(start)?).ok()?)?;
        let prefix = if register < 8 { 0x48 } else { 0x4c };
        let operand = 5 | (register & 7) << 3;
        let loaded = code.windows(7).enumerate().filter_map(|(index, window)| {
            let to = relative(start.wrapping_add(index as u64 + 7), &window[3..]);
            match window {
                // `mov distance(%rip), %register` and `lea`.
                [first, 0x8b, last, ..] if (*first, *last) == (prefix, operand) => {
                    Some(self.behind_pointer(to))
                }
                [first, 0x8d, last, ..] if (*first, *last) == (prefix, operand) => {
                    Some(if is_function(to) { Callee::Own(to) } else { Callee::Pointer })
                }
                _ => None,
            }
        });
        let mut loaded = loaded.collect::<Vec<_>>();
        let last = loaded.pop()?;
        loaded.iter().all(|other| *other == last).then_some(last)
    }

    /// The address after the only jump into the runtime in a function from `start` to `end`.
    pub fn only_jump(&self, start: u64, end: u64) -> Option<u64> {
        let mut into_runtime = self.jumps_in(start, end).into_iter().filter(|jump| jump.enters_runtime);
        let only = into_runtime.next()?;
        into_runtime.next().is_none().then_some(only.after)
    }

    /// The function that the code from `start` on loads last as a first argument before the jump that ends at `after`,
    /// among those that `is_it` accepts.
    pub fn argument_before(&self, start: u64, after: u64, is_it: impl Fn(u64) -> bool) -> Option<u64> {
        /// Code from there on may load the arguments of the jump.
        const NEAR: u64 = 64;
        let start = start.max(after.saturating_sub(NEAR));
        let code = self.bytes(start, usize::try_from(after.checked_sub(start)?).ok()?)?;
        let loaded = code.windows(7).enumerate().filter_map(|(index, window)| match window {
            // `lea distance(%rip), %rdi`, and `mov $address, %edi` of programs at fixed addresses.
            [0x48, 0x8d, 0x3d, distance @ ..] => Some(relative(start + index as u64 + 7, distance)),
            [0xbf, address @ ..] => Some(u32::from_le_bytes(*address.first_chunk()?).into()),
            _ => None,
        });
        loaded.filter(|address| is_it(*address)).last()
    }

    fn called_before(&self, return_address: u64) -> Option<u64> {
        let direct = self.bytes(return_address.checked_sub(5)?, 5)?;
        (direct[0] == 0xe8).then(|| relative(return_address, &direct[1..]))
    }

    /// The function that is reached at an address: behind a stub, or there.
    fn function_at(&self, address: u64) -> u64 {
        self.own.get(&address).copied().unwrap_or(address)
    }

    fn jumps_in(&self, start: u64, end: u64) -> Vec<Jump> {
        let Some(code) = self.bytes(start, end.saturating_sub(start) as usize) else { return vec![] };
        let jump = |(index, window): (usize, &[u8])| {
            let address = start.wrapping_add(index as u64);
            let (length, distance, through_pointer) = match window {
                [0xe9, distance @ .., _] => (5, distance, false),
                [0x0f, 0x80..=0x8f, distance @ ..] => (6, distance, false),
                [0xff, 0x25, distance @ ..] => (6, distance, true),
                _ => return None,
            };
            let after = address.wrapping_add(length);
            let to = relative(after, distance);
            let entries = if through_pointer { &self.slots } else { &self.stubs };
            Some(Jump { to: self.function_at(to), after, enters_runtime: entries.contains(&to) })
        };
        // The last jump may end with the function: a further byte is appended, which no distance reaches.
        let padded = [code, &[0]].concat();
        let mut jumps: Vec<Jump> = padded.windows(6).enumerate().filter_map(jump).collect();
        // A short one is recognised only at the end of a function.
        if let [.., 0xeb, distance] = code {
            let to = end.wrapping_add_signed(i64::from(distance.cast_signed()));
            jumps.push(Jump { to, after: end, enters_runtime: self.stubs.contains(&to) });
        }
        jumps
    }

    /// Stubs, and their pointers: `jmp *pointer(%rip)`, often behind `endbr64` and with a `bnd` prefix.
    /// In the sections at these addresses, or if there are none, anywhere.
    fn find_stubs(&self, sections: &[u64]) -> Vec<(u64, u64)> {
        let mut stubs = Vec::new();
        let has_stubs = |address: &u64| sections.is_empty() || sections.contains(address);
        for (address, code) in self.code.iter().filter(|(address, _)| has_stubs(address)) {
            for (index, window) in code.windows(6).enumerate() {
                // Addresses of a damaged file may be arbitrary; wrapped ones belong to no function.
                let at = address.wrapping_add(index as u64);
                let next = at.wrapping_add(6);
                let slot = relative(next, &window[2..]);
                let is_known = || {
                    self.slots.contains(&slot)
                        || self.own.contains_key(&slot)
                        || self.imported.contains_key(&slot)
                };
                if window[..2] == [0xff, 0x25] && is_known() {
                    let before = &code[..index];
                    let bnd = u64::from(before.ends_with(&[0xf2]));
                    let endbr = before[..index - bnd as usize].ends_with(&[0xf3, 0x0f, 0x1e, 0xfa]);
                    let before = at.wrapping_sub(bnd);
                    let first = before.wrapping_sub(if endbr { 4 } else { 0 });
                    stubs.extend([at, before, first].map(|stub| (stub, slot)));
                }
            }
        }
        stubs
    }

    fn bytes(&self, address: u64, count: usize) -> Option<&[u8]> {
        self.code.iter().find_map(|(start, code)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            code.get(from..from.checked_add(count)?)
        })
    }
}

struct Jump {
    to: u64,
    /// Address of the next instruction.
    after: u64,
    enters_runtime: bool,
}

/// The target of a near jump or call that is followed by the instruction at `next`.
fn relative(next: u64, distance: &[u8]) -> u64 {
    let distance = distance.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
    next.wrapping_add_signed(i64::from(distance))
}

/// The entries of a runtime that is linked into the file.
fn entries_of(file: &object::File<'_>) -> Vec<u64> {
    let is_entry = |name: &str| ENTRY_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let own = file.symbols().filter(|symbol| symbol.is_definition());
    own.filter(|symbol| symbol.name().is_ok_and(is_entry)).map(|symbol| symbol.address()).collect()
}

/// Addresses that the loader fills with those of functions.
#[derive(Default)]
struct Slots {
    /// Slots of the runtime's functions.
    runtime: FxHashSet<u64>,
    /// Slots of the file's own functions, with the function.
    own: FxHashMap<u64, u64>,
    /// Slots of other files' functions, with the name.
    imported: FxHashMap<u64, String>,
}

/// The slots of a file; `None` if its code cannot be read.
fn slots_of(file: &object::File<'_>) -> Option<Slots> {
    if file.architecture() != Architecture::X86_64 {
        return None;
    }
    let (Some(symbols), Some(relocations)) = (file.dynamic_symbol_table(), file.dynamic_relocations()) else {
        return Some(Slots::default());
    };
    let mut is_runtime: FxHashMap<usize, bool> = FxHashMap::default();
    let mut slots = Slots::default();
    for (address, relocation) in relocations {
        let RelocationTarget::Symbol(index) = relocation.target() else { continue };
        let Ok(symbol) = symbols.symbol_by_index(index) else { continue };
        let is_runtimes = *is_runtime.entry(index.0).or_insert_with(|| {
            let name = symbol.name();
            name.is_ok_and(|name| RUNTIME_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        });
        if is_runtimes {
            slots.runtime.insert(address);
        } else if symbol.is_definition() && symbol.kind() == SymbolKind::Text {
            slots.own.insert(address, symbol.address());
        } else if symbol.is_undefined()
            && let Ok(name) = symbol.name()
        {
            slots.imported.insert(address, name.to_string());
        }
    }
    Some(slots)
}
