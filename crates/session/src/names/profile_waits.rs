//! Names of the calls, threads and objects of the waits in a profile, as those in a trace have them (`callers`).

use super::Caller;
use super::callers::START;
use super::data_names::{is_of_implementation, words};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use taskscope_profile::{NO_MODULE, NodeId, Profile, WaitCall, WaitRow};
use taskscope_symbol::{CodePlace, KeptModules, Symbolizer};

/// Resolves places of a profile's waits, each once.
pub struct ProfileWaitNames<'a> {
    profile: &'a Profile,
    symbolizer: Symbolizer,
    callers: FxHashMap<(WaitCall, bool), Option<Rc<Caller>>>,
}

impl ProfileWaitNames<'_> {
    /// Names for a profile, with files that were kept of modules.
    pub fn of(profile: &Profile, kept: KeptModules) -> ProfileWaitNames<'_> {
        let files = profile.modules.iter().map(|file| (file.path.clone(), file.build_id.clone())).collect();
        let symbolizer = Symbolizer::default().with_kept(kept).with_files(files);
        ProfileWaitNames { profile, symbolizer, callers: FxHashMap::default() }
    }

    /// The program's code that makes a call: the call itself, or, in a language's library or a library without names, the first
    /// caller outside of such libraries. `None` if nothing is known.
    pub fn caller(&mut self, call: WaitCall) -> Option<Rc<Caller>> {
        self.known((call, false), |names| {
            let own = names.site(call);
            if let Some(own) = &own
                && !own.is_of_language_library()
                && own.frame.function.is_some()
            {
                return Some(Caller { is_outer: false, place: Rc::new(own.clone()) });
            }
            let path: Vec<_> = names.path(call.path).collect();
            let mut path = path.into_iter();
            let outer = path.find_map(|frame| names.in_program(frame, CodePlace::leave_language_library));
            let is_outer = outer.is_some();
            outer.or(own).map(|place| Caller { is_outer, place: Rc::new(place) })
        })
    }

    /// The program's code that a thread runs which starts in a routine: the routine, or, in a language's library, the outermost
    /// code outside of such libraries in one of the thread's call paths.
    pub fn routine(&mut self, routine: WaitCall) -> Option<Rc<Caller>> {
        self.known((routine, true), |names| {
            let own = names.site(routine);
            if let Some(own) = own.as_ref().filter(|own| !own.is_of_language_library()) {
                return Some(Caller { is_outer: false, place: Rc::new(own.clone()) });
            }
            let path: Vec<_> = names.path(routine.path).collect();
            let outer =
                path.into_iter().rev().find_map(|frame| names.in_program(frame, CodePlace::leave_inlined));
            let is_outer = outer.is_some();
            outer.or(own).map(|place| Caller { is_outer, place: Rc::new(place) })
        })
    }

    /// The name of the variable that an object is; an address if it has none.
    pub fn object(&mut self, row: &WaitRow) -> String {
        let file = self.profile.modules.get(row.module as usize);
        let variable =
            file.and_then(|file| self.symbolizer.variable_in_file(&file.path, &file.build_id, row.object));
        match (variable, file) {
            (Some(place), _) if is_of_implementation(&place) => format!("{:#x}", row.object),
            (Some(place), _) => words(&place, place.indices.len()),
            (None, Some(file)) => {
                let file = file.path.rsplit('/').next().unwrap_or_default();
                format!("{file}+{:#x}", row.object)
            }
            (None, None) => format!("{:#x}", row.object),
        }
    }

    fn known(
        &mut self,
        key: (WaitCall, bool),
        find: impl FnOnce(&mut Self) -> Option<Caller>,
    ) -> Option<Rc<Caller>> {
        if let Some(known) = self.callers.get(&key) {
            return known.clone();
        }
        let found = find(self).map(Rc::new);
        self.callers.insert(key, found.clone());
        found
    }

    /// The code at the site of a call.
    fn site(&mut self, call: WaitCall) -> Option<CodePlace> {
        if call.offset == 0 {
            return None;
        }
        let mut place = match self.profile.modules.get(call.module as usize) {
            Some(file) => self.symbolizer.runtime_call_place_in_file(
                &file.path,
                &file.build_id,
                call.offset.saturating_add(1),
            ),
            None => self.symbolizer.place_of_run_time_code(call.offset),
        };
        // The code that uses guards and methods of locks: all of it would be one place else.
        place.leave_language_library();
        Some(place)
    }

    /// Module and address of the code in a path, innermost first.
    fn path(&self, node: NodeId) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        let code = self.profile.tree.path(node).filter(|frame| frame.kind.is_user() && frame.offset != 0);
        code.map(|frame| (frame.module, frame.offset))
    }

    /// The function at a place, if it has a name and is outside of languages' libraries.
    fn in_program(
        &mut self,
        (module, offset): (u32, u64),
        choose: impl Fn(&mut CodePlace),
    ) -> Option<CodePlace> {
        let mut place = match self.profile.modules.get(module as usize).filter(|_| module != NO_MODULE) {
            Some(file) => self.symbolizer.place_in_file(&file.path, &file.build_id, offset),
            None => self.symbolizer.place_of_run_time_code(offset),
        };
        choose(&mut place);
        let is_start = place.frame.function.as_deref().is_some_and(|name| START.contains(&name));
        (place.frame.function.is_some() && !is_start && !place.is_of_language_library()).then_some(place)
    }
}
