//! Names of communicators and call sites.

use rustc_hash::FxHashMap;
use taskscope_event::Code;
use taskscope_event::models::messages::function_number;
use taskscope_event::models::mpi;
use taskscope_event::spec::Effect;
use taskscope_execution::{Place, ProcessIndex, ThreadIndex};

/// Names of communicators and call sites.
#[derive(Default)]
pub struct MessageNames {
    /// The number that all members know, by process and its own number.
    pub communicators: FxHashMap<(ProcessIndex, u32), u64>,
    /// Places of a thread's calls of a function.
    pub places: FxHashMap<(ThreadIndex, u32), Place>,
    pub functions: FunctionsByValue,
}

/// Numbers of functions by the values of ovni's view, and by the events that begin them.
pub struct FunctionsByValue {
    pub by_value: FxHashMap<i16, u32>,
    pub by_begin: FxHashMap<Code, u32>,
}

impl Default for FunctionsByValue {
    fn default() -> Self {
        let rows = mpi::EVENTS.iter().filter_map(|event| match event.effect {
            Effect::Push(_, value, label) => {
                Some((event.code, value as i16, function_number(label.strip_prefix("MPI_")?)))
            }
            _ => None,
        });
        let rows: Vec<_> = rows.collect();
        FunctionsByValue {
            by_value: rows.iter().map(|(_, value, number)| (*value, *number)).collect(),
            by_begin: rows.iter().map(|(code, _, number)| (*code, *number)).collect(),
        }
    }
}
