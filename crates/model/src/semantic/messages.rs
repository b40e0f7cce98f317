//! Messages, collective operations and ranks of MPI.

use super::payload::{u32_at, u64_at};
use super::{Interpreter, Short, frames::Opener};
use rustc_hash::FxHashMap;
use taskscope_event::Code;
use taskscope_event::models::messages::{self, function_number};
use taskscope_event::models::mpi;
use taskscope_event::spec::Effect;
use taskscope_execution::messages::Rank;
use taskscope_execution::{
    Change, MessageChange, ObjectIndex, Observer, Place, ProcessIndex, Section, State, ThreadIndex,
};

/// What is known of communicators and call sites.
#[derive(Default)]
pub struct MessageNames {
    /// The number that all members know, by process and its own number.
    communicators: FxHashMap<(ProcessIndex, u32), u64>,
    /// Where a thread calls a function.
    places: FxHashMap<(ThreadIndex, u32), Place>,
    functions: FunctionsByValue,
}

/// Numbers of functions by the values of ovni's view.
struct FunctionsByValue(FxHashMap<i16, u32>);

impl Default for FunctionsByValue {
    fn default() -> Self {
        let rows = mpi::EVENTS.iter().filter_map(|event| match event.effect {
            Effect::Push(_, value, label) => {
                Some((value as i16, function_number(label.strip_prefix("MPI_")?)))
            }
            _ => None,
        });
        FunctionsByValue(rows.collect())
    }
}

impl Interpreter {
    /// A section of ovni's `mpi` model was entered: which function that is, and where it was called.
    pub(super) fn mpi_call_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        value: i16,
        out: &mut O,
    ) -> Place {
        let Some(function) = self.message_names.functions.0.get(&value).copied() else {
            return Place::UNKNOWN;
        };
        self.call_begins(thread, at, function, out)
    }

    fn call_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        function: u32,
        out: &mut O,
    ) -> Place {
        let worker = self.worker_of(thread);
        self.threads[thread.index()].calls_as = Some(worker);
        out.change(worker, at, Change::Message(MessageChange::CallBegins { function }));
        self.message_names.places.get(&(thread, function)).copied().unwrap_or(Place::UNKNOWN)
    }

    /// An event of the `messages` model.
    pub(super) fn message_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let word = |at| u32_at(payload, at).ok_or(Short);
        let long = |at| u64_at(payload, at).ok_or(Short);
        let process = self.threads[thread.index()].process;
        let change = match code {
            messages::JOB => MessageChange::IsRank(Rank { job: long(0)?, rank: word(8)?, ranks: word(12)? }),
            messages::COMMUNICATOR => {
                self.message_names.communicators.insert((process, word(8)?), long(0)?);
                return Ok(());
            }
            messages::CALL_SITE => return self.call_site(thread, at, payload, out),
            messages::CALL_BEGIN => {
                let function = word(0)?;
                let place = self.call_begins(thread, at, function, out);
                let around = self.threads[thread.index()].now();
                let section =
                    Section { state: State::Communication, place, object: ObjectIndex::NONE, ..around };
                self.open(thread, at, Opener::Part(messages::LETTER, function as i16), section, out);
                return Ok(());
            }
            messages::CALL_END => {
                self.close(thread, at, Opener::Part(messages::LETTER, word(0)? as i16), out);
                MessageChange::CallEnds
            }
            messages::SEND => MessageChange::Sends {
                post: long(0)?,
                bytes: long(8)?,
                comm: self.communicator(process, word(16)?),
                peer: word(20)?,
                tag: word(24)? as i32,
            },
            messages::SENT => MessageChange::Sent { post: long(0)? },
            messages::RECEIVED => MessageChange::Received {
                post: long(0)?,
                age: long(8)?,
                bytes: long(16)?,
                comm: self.communicator(process, word(24)?),
                peer: word(28)?,
                tag: word(32)? as i32,
            },
            messages::COLLECTIVE => {
                let function = word(24)?;
                let name = messages::FUNCTIONS.get(function as usize).copied().unwrap_or("");
                MessageChange::TakesPart {
                    sequence: long(0)?,
                    bytes: long(8)?,
                    comm: self.communicator(process, word(16)?),
                    root: word(20)?,
                    function,
                    nonblocking: name.starts_with('I') && name[1..].starts_with(char::is_lowercase),
                }
            }
            messages::COLLECTIVE_COMPLETED => {
                let comm = self.communicator(process, word(8)?);
                MessageChange::Completed { sequence: long(0)?, comm }
            }
            // The trace's clocks are corrected before events come here.
            _ => return Ok(()),
        };
        self.tell(thread, at, change, out);
        Ok(())
    }

    /// Tells it of the worker that called.
    pub(super) fn tell<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        change: MessageChange,
        out: &mut O,
    ) {
        let worker = self.threads[thread.index()].calls_as.unwrap_or_else(|| self.worker_of(thread));
        out.change(worker, at, Change::Message(change));
    }

    /// The number that all members know; the process's own where that is not told.
    fn communicator(&self, process: ProcessIndex, number: u32) -> u64 {
        self.message_names.communicators.get(&(process, number)).copied().unwrap_or(u64::from(number))
    }

    /// The call that has begun just now, and later ones of this function, come from here.
    fn call_site<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let function = u32_at(payload, 0).ok_or(Short)?;
        let place = Place::site(self.site_at(thread, payload, 4)?);
        self.message_names.places.insert((thread, function), place);
        let top = self.threads[thread.index()].frames.top();
        if top.is_some_and(|top| {
            top.since == at && matches!(top.opener, Opener::Part(messages::LETTER | mpi::LETTER, _))
        }) {
            self.change_top(thread, at, out, |section| section.place = place);
        }
        Ok(())
    }
}
