//! Calls into an OpenMP runtime, across the files of a process.

use super::Symbolizer;
use crate::code_place::{CodePlace, Frame};
use crate::tail_call::Callee;

/// Functions of other files that are followed behind one call.
const MAX_IMPORTED: usize = 8;

/// A file by its path and build id, and an address in it.
type InFile = (String, String, u64);

/// A call into an OpenMP runtime of which only the return address is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Before the return address.
    Here,
    /// A jump, which ends at this address: the function has no frame.
    Jump(InFile),
    /// One of several jumps in the function at this address.
    OneOf(InFile),
    /// In an unknown function that is called before the return address.
    Below,
    /// The code before the return address is not understood.
    Unknown,
}

impl Symbolizer {
    /// The place of the jump by which a function ended with a call into an OpenMP runtime, at an address of a file;
    /// `None` unless its compiler made the call a jump. That function has no frame on the stack.
    pub fn place_behind_tail_call(&mut self, path: &str, build_id: &str, in_file: u64) -> Option<CodePlace> {
        let returns_to = in_file.wrapping_add(1);
        let call = self.find_call(path, build_id, returns_to);
        let is_jump = matches!(call, Call::Jump(_) | Call::OneOf(_));
        is_jump.then(|| self.place_of_call(path, build_id, returns_to))
    }

    /// Finds the call into an OpenMP runtime that returns to an address of a file.
    pub(crate) fn find_call(&mut self, path: &str, build_id: &str, returns_to: u64) -> Call {
        let Some(file) = self.file(path, build_id) else { return Call::Unknown };
        let in_this_file = |address| (path.to_string(), build_id.to_string(), address);
        let first = match file.callee(returns_to) {
            Callee::Runtime => return Call::Here,
            Callee::Unknown => return Call::Unknown,
            Callee::Pointer => return Call::Below,
            Callee::Own(function) => Some(in_this_file(function)),
            Callee::Imported(name) => self.exporter(&name),
        };
        let mut functions: Vec<InFile> = first.into_iter().collect();
        let mut jumps: Vec<(InFile, u64)> = Vec::new();
        let mut next = 0;
        while let Some((path, build_id, start)) = functions.get(next).cloned() {
            next += 1;
            let exits = self.file(&path, &build_id).map(|file| file.exits(start)).unwrap_or_default();
            let here = |function| (path.clone(), build_id.clone(), function);
            jumps.extend(exits.jumps.iter().map(|(function, after)| (here(*function), *after)));
            for name in exits.imported {
                let found = self.exporter(&name).filter(|found| !functions.contains(found));
                if functions.len() < MAX_IMPORTED {
                    functions.extend(found);
                }
            }
        }
        let Some(((path, build_id, function), after)) = jumps.first().cloned() else { return Call::Below };
        match &jumps[1..] {
            [] => Call::Jump((path, build_id, after)),
            _ if jumps.iter().all(|(of, _)| *of == jumps[0].0) => Call::OneOf((path, build_id, function)),
            _ => Call::Below,
        }
    }

    /// The place of the call into an OpenMP runtime that returns to an address of a file.
    pub(crate) fn place_of_call(&mut self, path: &str, build_id: &str, returns_to: u64) -> CodePlace {
        match self.find_call(path, build_id, returns_to) {
            Call::Here | Call::Unknown => self.describe(path, build_id, returns_to.wrapping_sub(1), true),
            Call::Below => {
                let place = self.describe(path, build_id, returns_to.wrapping_sub(1), true);
                CodePlace { is_caller: true, ..place }
            }
            Call::Jump((path, build_id, after)) => {
                self.describe(&path, &build_id, after.wrapping_sub(1), true)
            }
            Call::OneOf((path, build_id, function)) => {
                let mut place = self.describe(&path, &build_id, function, true);
                let frame = place.inlined_into.pop().unwrap_or(place.frame);
                let frame = Frame { file: None, line: None, ..frame };
                CodePlace { frame, inlined_into: Vec::new(), offset: None, ..place }
            }
        }
    }

    /// The function that another file of the process exports by a name. If several files export it, only those loaded
    /// at the time count; `None` if several remain. A single exporter is not checked, since a file is known from the
    /// first construct in it only.
    fn exporter(&mut self, name: &str) -> Option<InFile> {
        let loaded = self
            .modules
            .iter()
            .map(|module| (module.path.clone(), module.build_id.clone(), module.since <= self.time));
        let others = self.others.iter().map(|(path, build_id)| (path.clone(), build_id.clone(), true));
        let mut files: Vec<(String, String, bool)> = loaded.chain(others).collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        files.dedup_by(|one, other| (&one.0, &one.1) == (&other.0, &other.1));
        let mut found = Vec::new();
        for (path, build_id, is_there) in files {
            let address = self.file(&path, &build_id).and_then(|file| file.exported(name));
            found.extend(address.map(|address| ((path, build_id, address), is_there)));
        }
        if found.len() > 1 {
            found.retain(|(_, is_there)| *is_there);
        }
        found.pop().filter(|_| found.is_empty()).map(|(function, _)| function)
    }
}
