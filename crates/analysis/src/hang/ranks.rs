//! The needs of communication-library calls: the ranks that have to make the call too.

use super::Needed;
use super::ends::Ends;
use rustc_hash::FxHashMap;
use taskscope_execution::messages::{MpiCall, Partner};
use taskscope_execution::{State, ThreadIndex};

impl<'e> Ends<'e> {
    /// The call in which each thread is, and its row.
    pub fn last_calls(&self) -> FxHashMap<ThreadIndex, (u32, &'e MpiCall)> {
        let mut calls: FxHashMap<ThreadIndex, (u32, &MpiCall)> = FxHashMap::default();
        for (row, call) in (0..).zip(&self.execution.whole().communication.calls) {
            let is_open = self.end(call.thread).is_some_and(|end| {
                matches!(end.span.section.state, State::Communication | State::MpiStart)
                    && call.end >= end.span.end
                    && call.start <= end.span.start
            });
            if is_open {
                calls.insert(call.thread, (row, call));
            }
        }
        calls
    }
}

impl From<Partner> for Needed {
    fn from(Partner { process, rank, owes }: Partner) -> Needed {
        Needed::Rank { process, rank, owes }
    }
}
