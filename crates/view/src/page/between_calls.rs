//! Code of a process between its calls of a communication library: the calls around it, and the processes that waited for it.
//!
//! ```text
//!   MPI_Allreduce │  code of rank 1  │ MPI_Isend        the section, from call to call
//!        rank 0:  │    MPI_Waitall, for rank 1 │        a wait for the process that overlaps it
//! ```
//! A wait belongs to a process, not to a thread, so only sections outside of parallel regions have waits.

use super::Page;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use taskscope_event::models::messages::FUNCTIONS;
use taskscope_execution::messages::MpiCall;
use taskscope_execution::{Span, State, ThreadIndex};

/// Listed waits.
const LISTED: usize = 4;

/// Code between calls of a communication library.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BetweenCalls {
    /// The call before, in words; null if something else is before it.
    pub after: Option<String>,
    /// The call after it, in words; null if something else is after it.
    pub before: Option<String>,
    /// Waits of other processes for this one meanwhile, the longest first, 4 at most.
    pub awaited_by: Vec<AwaitedBy>,
    /// Total number of these waits.
    pub waits: usize,
}

/// A wait of another process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AwaitedBy {
    /// Its rank; null if unknown.
    pub rank: Option<u32>,
    /// Its process id.
    pub pid: Option<i64>,
    /// The waiting call in words.
    pub place: String,
    /// Nanoseconds of the wait during the code.
    pub ns: u64,
}

impl Page {
    /// The calls around code outside of parallel regions, and the waits for it; `None` without any.
    pub(super) fn between_calls(&self, track: ThreadIndex, span: &Span) -> Option<BetweenCalls> {
        let communication = &self.execution.communication;
        if span.section.state != State::Serial || communication.calls.is_empty() {
            return None;
        }
        let thread = self.execution.threads.get(track.index())?;
        let row = thread.track.row_at(span.start)?;
        let call = |row: Option<usize>| {
            let span = thread.track.span(row.filter(|row| *row < thread.track.len())?);
            let (state, place) = (span.section.state, span.section.place);
            let words = || Some(self.place_words(state, place)).filter(|words| !words.is_empty());
            let is_call = matches!(state, State::Communication | State::MpiStart);
            is_call.then(|| words().unwrap_or_else(|| self.bar_name(track, &span)))
        };
        let (after, before) = (call(row.checked_sub(1)), call(Some(row + 1)));
        let meanwhile = |call: &MpiCall| {
            let wait = call.wait.filter(|wait| wait.culprit == thread.process)?;
            let ns = wait.until.min(span.end).saturating_sub(call.start.max(span.start));
            (ns > 0).then_some((Reverse(ns), call.thread, call.place, call.function))
        };
        let mut waits: Vec<_> = communication.calls.par_iter().filter_map(meanwhile).collect();
        waits.sort_unstable();
        if after.is_none() && before.is_none() && waits.is_empty() {
            return None;
        }
        let listed = waits.iter().take(LISTED).map(|(ns, thread, place, function)| {
            let process = self.execution.threads.get(thread.index()).map(|thread| thread.process);
            let function = FUNCTIONS.get(*function as usize);
            let name = || function.map(|name| format!("MPI_{name}")).unwrap_or_default();
            let place = self.place_words(State::Communication, *place);
            AwaitedBy {
                rank: process.and_then(|process| communication.ranks.get(&process.0)).map(|rank| rank.rank),
                pid: process
                    .and_then(|process| self.execution.processes.get(process.index()))
                    .map(|row| row.pid),
                place: if place.is_empty() { name() } else { place },
                ns: ns.0,
            }
        });
        Some(BetweenCalls { after, before, awaited_by: listed.collect(), waits: waits.len() })
    }
}
