//! Callers of the functions in which threads wait and wake, if these belong to a language's library.

use super::Places;
use std::rc::Rc;
use taskscope_execution::{Execution, PathIndex, ProcessIndex, SiteIndex, ThreadIndex};
use taskscope_symbol::CodePlace;

/// The program's code behind a call.
pub struct Caller {
    /// The place.
    pub place: Rc<CodePlace>,
    /// Whether it was found in the call path, outside of the function that has the call.
    pub is_outer: bool,
}

/// Samples of a thread that are searched for its routine.
const SEARCHED_SAMPLES: usize = 16;

impl Places {
    /// The program's code that makes a call at a site: the site itself, or, in a language's library or a library without names,
    /// the first caller outside of such libraries in the call path. If there is none, the routine of the calling threads, which
    /// has ended with a jump into a language's library, if it is the same function in all of them. Else the site.
    pub fn caller(&self, execution: &Execution, site: SiteIndex, path: PathIndex) -> Caller {
        let own = self.code(site);
        if !own.is_of_language_library() && own.frame.function.is_some() {
            return Caller { is_outer: false, place: own };
        }
        let outer = execution.samples.paths.get(path.index()).and_then(|path| {
            path.addresses
                .iter()
                .find_map(|address| self.innermost_of_program(path.process, path.at, *address))
        });
        let is_of_language = own.is_of_language_library();
        let outer = outer.or_else(|| self.common_routine(execution, site, path).filter(|_| is_of_language));
        Caller { is_outer: outer.is_some(), place: outer.map_or(own, Rc::new) }
    }

    /// The function that all threads run which make a call at a site by a path. It is on their stacks no more, so the line is unknown.
    fn common_routine(&self, execution: &Execution, site: SiteIndex, path: PathIndex) -> Option<CodePlace> {
        let mut found: Option<CodePlace> = None;
        for thread in execution.samples.threads_of_call(site, path) {
            let routine = self.outermost(execution, thread)?;
            match &found {
                Some(known) if known.frame.function != routine.frame.function => return None,
                _ => found = Some(routine),
            }
        }
        let mut routine = found?;
        (routine.frame.file, routine.frame.line) = (None, None);
        (routine.module, routine.offset) = (None, None);
        Some(routine)
    }

    /// The program's code that a thread runs which starts at a site: the site itself, or, in a language's library, the
    /// outermost code outside of such libraries in the thread's call paths and samples.
    pub fn routine(&self, execution: &Execution, thread: ThreadIndex, site: SiteIndex) -> Caller {
        let own = self.code(site);
        let outer = own.is_of_language_library().then(|| self.outermost(execution, thread)).flatten();
        Caller { is_outer: outer.is_some(), place: outer.map_or(own, Rc::new) }
    }

    fn outermost(&self, execution: &Execution, thread: ThreadIndex) -> Option<CodePlace> {
        let samples = &execution.samples;
        let path = samples.first_path_of(thread).and_then(|path| samples.paths.get(path.index()));
        let path_caller = path.and_then(|path| {
            path.addresses
                .iter()
                .rev()
                .find_map(|address| self.outermost_of_program(path.process, path.at, *address))
        });
        path_caller.or_else(|| {
            let process = execution.threads.get(thread.index())?.process;
            let rows = samples.thread_samples(thread, 0, u64::MAX);
            rows.iter().take(SEARCHED_SAMPLES).find_map(|sample| {
                // The interrupted instruction is no return address.
                let callers = samples.frames(sample).get(1..).unwrap_or_default();
                callers
                    .iter()
                    .rev()
                    .find_map(|address| self.outermost_of_program(process, sample.at, *address))
            })
        })
    }

    /// The innermost function at a call that returns to an address, if it has a name and is outside of languages' libraries.
    fn innermost_of_program(&self, process: ProcessIndex, at: u64, address: u64) -> Option<CodePlace> {
        self.caller_in_program(process, at, address, CodePlace::leave_language_library)
    }

    /// The outermost one: others may be inlined into it.
    fn outermost_of_program(&self, process: ProcessIndex, at: u64, address: u64) -> Option<CodePlace> {
        self.caller_in_program(process, at, address, CodePlace::leave_inlined)
    }

    fn caller_in_program(
        &self,
        process: ProcessIndex,
        at: u64,
        address: u64,
        choose: impl Fn(&mut CodePlace),
    ) -> Option<CodePlace> {
        let mut place = self.with_symbolizer(process, |symbolizer| {
            symbolizer.set_time(at);
            symbolizer.call_place(address)
        });
        choose(&mut place);
        let is_start = place.frame.function.as_deref().is_some_and(|name| START.contains(&name));
        (place.frame.function.is_some() && !is_start && !place.is_of_language_library()).then_some(place)
    }
}

/// Functions that a statically linked C library starts threads and programs with.
pub(super) const START: [&str; 7] =
    ["start_thread", "clone3", "__clone3", "clone", "__clone", "_start", "execute_native_thread_routine"];
