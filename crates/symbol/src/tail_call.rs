//! Where a call into an OpenMP runtime really lies, when the compiler made it a tail call.
//!
//! A function that ends with a construct jumps into the runtime instead of calling it, so that the
//! runtime's return address lies in the function's caller:
//!
//! ```text
//!   step:    call smooth  ─┐          smooth:  …
//!            next ◀── what the         └─▶     jmp  __kmpc_fork_call      the construct
//!                     runtime sees
//! ```
//! The call before the return address tells the function; in it, the jump into the runtime tells the
//! line. Code is not disassembled: what is looked for are near jumps whose distance leads exactly to
//! an entry of the runtime, which other bytes meet by chance once in 2³² places. x86-64 only.

use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionKind,
    SymbolKind,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// How the entries of OpenMP runtimes begin to which constructs lead.
const ENTRY_PREFIXES: [&str; 2] = ["__kmpc_", "GOMP_"];
/// How all begin that a program calls.
const RUNTIME_PREFIXES: [&str; 4] = ["__kmpc_", "GOMP_", "omp_", "kmpc_"];
/// Functions that tail call one another before the runtime is reached.
const LONGEST_CHAIN: usize = 4;

/// The code of a file, and the ways that lead from it into the runtime.
pub struct TailCalls {
    /// Executable sections: address and bytes.
    code: Vec<(u64, Vec<u8>)>,
    /// Addresses of pointers to the runtime's functions (entries of the global offset table).
    slots: FxHashSet<u64>,
    /// Addresses of stubs that jump through such a pointer (entries of the procedure linkage table), and of the entries of a
    /// runtime that is linked into the program.
    stubs: FxHashSet<u64>,
    /// The file's own functions behind such pointers and stubs: a library calls by them what it exports.
    own: FxHashMap<u64, u64>,
}

impl TailCalls {
    /// What is needed of a file; nothing where the file has no call into a runtime.
    pub fn of(file: &object::File<'_>) -> Option<TailCalls> {
        let (Slots { runtime: slots, own }, entries) = (slots_of(file)?, entries_of(file));
        if slots.is_empty() && entries.is_empty() {
            return None;
        }
        let is_code = |section: &object::Section<'_, '_>| section.kind() == SectionKind::Text;
        let code: Vec<(u64, Vec<u8>)> = file
            .sections()
            .filter(is_code)
            .filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())))
            .collect();
        let mut calls = TailCalls { code, slots, stubs: FxHashSet::default(), own };
        for (stub, slot) in calls.find_stubs() {
            if calls.slots.contains(&slot) {
                calls.stubs.insert(stub);
            } else if let Some(function) = calls.own.get(&slot).copied() {
                calls.own.insert(stub, function);
            }
        }
        calls.stubs.extend(entries);
        Some(calls)
    }

    /// The address after the jump into the runtime, if the call that returns to `return_address` is of
    /// a function that ends with one. `functions` tells a function's range from its first address.
    pub fn behind(&self, return_address: u64, functions: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let called = match self.called_before(return_address) {
            Some(called) => self.function_at(called),
            None => *self.own.get(&self.pointer_called_by(return_address)?)?,
        };
        if self.stubs.contains(&called) {
            return None;
        }
        let mut chain = vec![called];
        for step in 0..LONGEST_CHAIN {
            let &start = chain.get(step)?;
            let end = functions(start)?;
            let jumps = self.jumps_in(start, end);
            let into_runtime: Vec<u64> =
                jumps.iter().filter(|jump| jump.enters_runtime).map(|jump| jump.after).collect();
            match into_runtime[..] {
                [one] => return Some(one),
                [] => {}
                // The function is known, but not which of its constructs: its first line stands for it.
                _ => return start.checked_add(1),
            }
            let onward = jumps.iter().map(|jump| jump.to).filter(|to| functions(*to).is_some());
            chain.extend(onward.filter(|to| *to != start));
        }
        None
    }

    /// Whether the call that returns to `return_address` is one of the runtime itself, so that it is where it seems to be.
    pub fn is_call_of_runtime(&self, return_address: u64) -> bool {
        self.called_before(return_address).is_some_and(|called| self.stubs.contains(&called))
            || self.pointer_called_by(return_address).is_some_and(|slot| self.slots.contains(&slot))
    }

    /// Where the pointer is through which the call goes that returns to an address.
    fn pointer_called_by(&self, return_address: u64) -> Option<u64> {
        let bytes = self.bytes(return_address.checked_sub(6)?, 6)?;
        bytes.starts_with(&[0xff, 0x15]).then(|| relative(return_address, &bytes[2..]))
    }

    /// The address after the only jump into the runtime in a function from `start` to `end`.
    pub fn only_jump(&self, start: u64, end: u64) -> Option<u64> {
        let mut into_runtime = self.jumps_in(start, end).into_iter().filter(|jump| jump.enters_runtime);
        let only = into_runtime.next()?;
        into_runtime.next().is_none().then_some(only.after)
    }

    /// The function whose address the code from `start` on loads last as a first argument before the jump that ends at `after`,
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
        // The last jump may end with the function: a byte more, which no distance reaches, stands behind.
        let padded = [code, &[0]].concat();
        padded.windows(6).enumerate().filter_map(jump).collect()
    }

    /// Stubs, and their pointers: `jmp *pointer(%rip)`, often behind `endbr64` and with a `bnd` prefix.
    fn find_stubs(&self) -> Vec<(u64, u64)> {
        let mut stubs = Vec::new();
        for (address, code) in &self.code {
            for (index, window) in code.windows(6).enumerate() {
                // Addresses of a damaged file may be any; those that go on at 0 are nobody's.
                let at = address.wrapping_add(index as u64);
                let next = at.wrapping_add(6);
                let slot = relative(next, &window[2..]);
                let is_known = || self.slots.contains(&slot) || self.own.contains_key(&slot);
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

/// The target of a near jump or call whose next instruction is at `next`.
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
    /// Of the runtime.
    runtime: FxHashSet<u64>,
    /// Of the file itself: which function.
    own: FxHashMap<u64, u64>,
}

/// The slots of a file; `None` where code cannot be read.
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
        }
    }
    Some(slots)
}
