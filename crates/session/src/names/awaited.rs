//! The objects that threads wait for, in words.
//!
//! | object | words |
//! | --- | --- |
//! | a static variable | `mutex cache_mutex` |
//! | a lock that a place takes first | `main [lock at lock.c:12]`; the second of such is `#2` |
//! | a descriptor, a pipe | `file descriptor 5`, `pipe:[812]` |
//! | no object | `sleep` |
//! | other memory | `mutex 0x55c0` |

use super::places::Places;
use taskscope_event::models::wait::kind;
use taskscope_execution::ObjectIndex;

/// The kind of the object of a wait in words.
pub const fn kind_of_awaited(wait_kind: u32) -> &'static str {
    match wait_kind {
        kind::CRITICAL => "critical",
        kind::LOCK => "lock",
        kind::NEST_LOCK => "nestable lock",
        kind::ORDERED => "ordered",
        kind::ATOMIC => "atomic",
        kind::MUTEX => "mutex",
        kind::RW_LOCK => "read-write lock",
        kind::SPIN_LOCK => "spin lock",
        kind::CONDITION => "condition",
        kind::THREAD_BARRIER => "barrier",
        kind::SEMAPHORE => "semaphore",
        kind::JOIN => "thread",
        kind::FUTEX => "futex",
        kind::SLEEP => "sleep",
        kind::PIPE => "pipe",
        kind::SOCKET => "socket",
        kind::EVENT => "eventfd",
        kind::TIMER => "timer",
        kind::FILE => "file",
        kind::TERMINAL => "terminal",
        kind::SEVERAL => "descriptors",
        kind::PROCESS => "other process",
        kind::DESCRIPTOR => "descriptor",
        kind::PIPE_ROOM => "full pipe",
        kind::SOCKET_PAIR => "socket pair",
        kind::SOCKET_PAIR_ROOM => "full socket pair",
        kind::FILE_LOCK => "file lock",
        kind::ONCE => "once",
        kind::GIL => "interpreter lock",
        kind::SIGNAL => "signal",
        kind::MESSAGE => "message queue",
        kind::MESSAGE_ROOM => "full message queue",
        kind::SEMAPHORE_SET => "semaphore set",
        kind::OPERATIONS => "asynchronous I/O",
        _ => "object",
    }
}

/// The name of an awaited object without its kind; `None` of a kind that has none. `memory_name` returns the name of an address.
pub fn name_of_awaited(wait_kind: u32, number: u64, memory_name: impl FnOnce() -> String) -> Option<String> {
    match wait_kind {
        kind::SLEEP | kind::SEVERAL | kind::PROCESS => None,
        // Other processes have other names for them.
        kind::SIGNAL..=kind::OPERATIONS => None,
        kind::GIL => Some("GIL".to_owned()),
        // As in the links of /proc/PID/fd.
        kind::PIPE | kind::PIPE_ROOM => Some(format!("pipe:[{number}]")),
        kind::SOCKET | kind::SOCKET_PAIR | kind::SOCKET_PAIR_ROOM => Some(format!("socket:[{number}]")),
        kind::EVENT | kind::TIMER | kind::FILE | kind::TERMINAL | kind::DESCRIPTOR | kind::FILE_LOCK => {
            Some(format!("descriptor {number}"))
        }
        _ => Some(memory_name()),
    }
}

impl Places {
    /// The words for an awaited object.
    ///
    /// Runtimes keep locks on the heap, so a lock is named after the place that took it first. An object without any name has its
    /// address.
    pub fn object_name(&self, object: ObjectIndex) -> String {
        self.known_object_name(object).unwrap_or_else(|| match self.catalog().objects.get(object.index()) {
            Some(row) => format!("{} {:#x}", kind_of_awaited(row.kind), row.id),
            None => "unknown".to_owned(),
        })
    }

    /// The words for an awaited object that has more than an address.
    pub fn known_object_name(&self, object: ObjectIndex) -> Option<String> {
        if let Some(name) = self.first_taken_name(object) {
            return Some(name);
        }
        let row = self.catalog().objects.get(object.index())?;
        let word = kind_of_awaited(row.kind);
        let mut is_known = true;
        let name = name_of_awaited(row.kind, row.id, || {
            let variable = self.variable_name(object);
            is_known = variable.is_some();
            variable.unwrap_or_default()
        });
        match name {
            None => Some(word.to_owned()),
            Some(_) if !is_known => None,
            // `pipe:[12]` has its kind in its name.
            Some(name) if name.starts_with(word) => Some(name),
            Some(name) => Some(format!("{word} {name}")),
        }
    }

    /// The place that took a lock first, if its code is known.
    fn first_taken_name(&self, object: ObjectIndex) -> Option<String> {
        let (site, number) = self.first_taken(object)?;
        let code = self.code(site);
        if code.frame.function.is_none() && code.frame.line.is_none() {
            return None;
        }
        let name = self.construct(self.object_kind(object), site);
        Some(if number == 1 { name } else { format!("{name} #{number}") })
    }

    /// The word for the kind of thing that an object is.
    pub fn object_kind(&self, object: ObjectIndex) -> &'static str {
        self.catalog().objects.get(object.index()).map_or("unknown", |row| kind_of_awaited(row.kind))
    }
}
