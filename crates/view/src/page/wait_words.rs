//! Waits of threads for each other in the few words that a bar has room for: `mutex m, held by merge`.
//!
//! ```text
//! object of the wait ─▶ its name, else its kind and the function that waits      mutex m
//! holder, waker      ─▶ the function that took the lock, or ended the wait       held by merge
//! ```
//! The holder is the one of most of the wait. Waits with the same words have the same number.

use super::bars::short;
use super::{Page, nested::Words};
use crate::awaited::{AwaitedObjects, call_at};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, ObjectIndex, PathIndex, SiteIndex, ThreadIndex, ThreadWait};
use taskscope_session::{Places, kind_of_awaited};

/// A call of a thread at a time. Its path distinguishes the callers of a library.
#[derive(Clone, Copy)]
struct CallAt {
    thread: ThreadIndex,
    site: SiteIndex,
    at: u64,
}

/// The facts that decide a wait's words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    object: ObjectIndex,
    waiting: (SiteIndex, PathIndex),
    by: Option<(&'static str, SiteIndex, PathIndex)>,
    joined: Option<ThreadIndex>,
}

impl Page {
    /// Words for objects that threads wait for.
    pub(super) fn awaited(&self) -> Arc<AwaitedObjects> {
        self.derived.awaited.get_or_init(|| Arc::new(AwaitedObjects::of(&self.execution))).clone()
    }

    /// The words for awaited objects.
    pub(super) fn object_words(&self, objects: Vec<ObjectIndex>) -> Vec<String> {
        let (awaited, execution) = (self.awaited(), self.execution.clone());
        self.names.ask(move |places| {
            objects.into_iter().map(|object| awaited.words(places, &execution, object, None)).collect()
        })
    }

    /// The numbers of the words of all waits of threads for each other, in order.
    pub(super) fn numbers_of_waits(&self, words: &mut Words) -> Vec<i64> {
        let execution = &self.execution;
        let mut rows: FxHashMap<Key, usize> = FxHashMap::default();
        let mut asked = Vec::new();
        let asked_rows: Vec<usize> = (execution.thread_waits.waits.iter())
            .map(|wait| {
                let (key, calls) = key_of(execution, wait);
                *rows.entry(key).or_insert_with(|| {
                    asked.push((key, calls));
                    asked.len() - 1
                })
            })
            .collect();
        let shared = self.execution.clone();
        let count = asked.len();
        let mut texts: Vec<String> = self.names.ask(move |places| {
            asked.iter().map(|(key, calls)| words_of(places, &shared, key, calls)).collect()
        });
        // Without names of places.
        texts.resize(count, "wait".to_owned());
        let numbers: Vec<i64> = texts.iter().map(|text| words.number(text)).collect();
        asked_rows.into_iter().map(|row| numbers[row]).collect()
    }
}

/// A wait's key, its own call, and that of its holder or waker.
fn key_of(execution: &Execution, wait: &ThreadWait) -> (Key, (CallAt, Option<CallAt>)) {
    let path = |call: CallAt| {
        let path = execution.samples.path_of_call(call.thread, call.site, call.at);
        (call.site, path.unwrap_or(PathIndex::NONE))
    };
    let own = CallAt { thread: wait.thread, site: wait.site, at: wait.start };
    let is_join = kind_of(execution, wait.object) == kind::JOIN;
    let holds = execution.thread_waits.holds_of(wait.object, wait.start, wait.end);
    let holder = (holds.iter().filter(|hold| hold.thread != wait.thread))
        .max_by_key(|hold| hold.end.min(wait.end).saturating_sub(hold.start.max(wait.start)));
    let by = match (holder, wait.waker.filter(|_| !is_join)) {
        (Some(hold), _) => Some(("held", CallAt { thread: hold.thread, site: hold.site, at: hold.start })),
        (None, Some(waker)) => {
            Some(("woken", CallAt { thread: waker.thread, site: waker.site, at: waker.at }))
        }
        (None, None) => None,
    };
    let key = Key {
        object: wait.object,
        waiting: path(own),
        by: by.map(|(role, call)| {
            let (site, path) = path(call);
            (role, site, path)
        }),
        joined: wait.waker.filter(|_| is_join).map(|waker| waker.thread),
    };
    (key, (own, by.map(|(_, call)| call)))
}

fn kind_of(execution: &Execution, object: ObjectIndex) -> u32 {
    execution.catalog.objects.get(object.index()).map_or(0, |row| row.kind)
}

fn words_of(
    places: &Places,
    execution: &Execution,
    key: &Key,
    (own, by): &(CallAt, Option<CallAt>),
) -> String {
    if let Some(thread) = key.joined {
        return format!("end of {}", crate::names::thread_or_id(execution, thread));
    }
    let function = |call: &CallAt| {
        let code = call_at(places, execution, call.thread, call.site, call.at);
        code.frame.function.is_some().then(|| short(&places.construct_of("", &code)).to_owned())
    };
    let object = match places.known_object_name(key.object) {
        Some(name) => name,
        None => {
            let word = kind_of_awaited(kind_of(execution, key.object));
            function(own).map_or_else(|| word.to_owned(), |function| format!("{word} in {function}"))
        }
    };
    match (by, key.by) {
        (Some(call), Some((role, ..))) => match function(call) {
            Some(function) => format!("{object}, {role} by {function}"),
            None => object,
        },
        _ => object,
    }
}
