//! Awaited objects in words, also those without a name: after the first wait for them.

use rustc_hash::FxHashMap;
use std::rc::Rc;
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, ObjectIndex, PathIndex, SiteIndex, ThreadIndex};
use taskscope_session::{CodePlace, Places, kind_of_awaited};

use crate::thread_waits::verb;

/// The waits for each object, over the whole run.
#[derive(Default)]
pub(crate) struct AwaitedObjects {
    waits: FxHashMap<ObjectIndex, WaitsFor>,
}

/// The waits for an object.
#[derive(Clone, Copy)]
struct WaitsFor {
    /// Begin, thread and call of the first one.
    first: (u64, ThreadIndex, SiteIndex),
    /// Whether one thread alone waits for it.
    by_one: bool,
}

impl AwaitedObjects {
    pub fn of(execution: &Execution) -> AwaitedObjects {
        let mut waits: FxHashMap<ObjectIndex, WaitsFor> = FxHashMap::default();
        for wait in &execution.whole().thread_waits.waits {
            let this = (wait.start, wait.thread, wait.site);
            let known = waits.entry(wait.object).or_insert(WaitsFor { first: this, by_one: true });
            known.by_one &= known.first.1 == wait.thread;
            known.first = known.first.min(this);
        }
        AwaitedObjects { waits }
    }

    /// An object in words: `mutex m`. One without a name is named after the first wait for it, or, if one thread alone waits for it,
    /// as a runtime does that parks each thread at an object of its own, after the wait in question.
    pub fn words(
        &self,
        places: &Places,
        execution: &Execution,
        object: ObjectIndex,
        waiting: Option<&str>,
    ) -> String {
        let of = execution.catalog.objects.get(object.index()).map_or(0, |row| row.kind);
        match of {
            kind::SLEEP => return "a time to pass".to_owned(),
            kind::SEVERAL => return "one of several descriptors".to_owned(),
            kind::PROCESS => return "another process".to_owned(),
            kind::OPERATIONS => return kind_of_awaited(of).to_owned(),
            kind::SIGNAL..=kind::SEMAPHORE_SET => return format!("a {}", kind_of_awaited(of)),
            _ => {}
        }
        if let Some(name) = places.known_object_name(object) {
            return name;
        }
        let word = kind_of_awaited(of);
        let known = self.waits.get(&object);
        if let (Some(WaitsFor { by_one: true, .. }), Some(place), false) =
            (known, waiting, kind::has_holder(of))
        {
            return format!("a {word} of the waiting thread, in {place}");
        }
        let first = known.and_then(|known| {
            let (at, thread, site) = known.first;
            site.is_some().then(|| call_at(places, execution, thread, site, at))
        });
        match first.map(|code| places.construct_of(verb(of), &code)).filter(|words| !words.is_empty()) {
            Some(place) => format!("a {word} first waited for in {place}"),
            None => format!("a {word}"),
        }
    }
}

/// The program's code that calls at a site, in a thread from a time on.
pub(crate) fn call_at(
    places: &Places,
    execution: &Execution,
    thread: ThreadIndex,
    site: SiteIndex,
    at: u64,
) -> Rc<CodePlace> {
    let path = execution.whole().samples.path_of_call(thread, site, at);
    places.caller(execution, site, path.unwrap_or(PathIndex::NONE)).place
}
