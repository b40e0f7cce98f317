//! Messages, collective operations and ranks of MPI.

use super::state::frames::Opener;
use super::state::thread_state::Poll;
use super::{Interpreter, Short};
use crate::payload::{u32_at, u64_at};
use taskscope_event::Code;
use taskscope_event::models::messages;
use taskscope_event::models::mpi;
use taskscope_execution::messages::{Awaited, Rank};
use taskscope_execution::{
    Change, MessageChange, ObjectIndex, Observer, Place, ProcessIndex, Section, State, ThreadIndex,
};

/// The value of `MPI_Finalize` in ovni's view.
const FINALIZE: i16 = 3;

/// Maximum gap, nanoseconds, between two calls that poll for the same request and are merged: the program's
/// code between them is negligible.
const MAX_POLL_GAP: u64 = 5_000;

impl Poll {
    /// Whether the begin is an event of ovni's model, which precedes its place.
    fn opener_is_standard(&self) -> bool {
        matches!(self.opener, Opener::Part(mpi::LETTER, _))
    }
}

impl Interpreter {
    /// Enters a section of ovni's `mpi` model: records its function and call site.
    pub(super) fn mpi_call_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        value: i16,
        out: &mut O,
    ) -> Place {
        let Some(function) = self.message_names.functions.by_value.get(&value).copied() else {
            return Place::UNKNOWN;
        };
        self.note_poll(thread, function, Opener::Part(mpi::LETTER, value));
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
        let place = self.message_names.places.get(&(thread, function)).copied().unwrap_or(Place::UNKNOWN);
        self.threads[thread.index()].calls_as = Some(worker);
        out.change(worker, at, Change::Message(MessageChange::CallBegins { function, place }));
        place
    }

    /// Leaves the section of a call. A polling call without a result is left only at another event.
    pub(super) fn call_ends<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        let is_innermost = state.frames.top().is_some_and(|top| top.opener == opener);
        let is_of_call = |poll: &&mut Poll| poll.opener == opener && !poll.found && is_innermost;
        if let Some(poll) = state.poll.as_mut().filter(is_of_call) {
            poll.ended = Some(at);
            return;
        }
        state.poll = None;
        self.close(thread, at, opener, out);
        self.emit_message(thread, at, MessageChange::CallEnds, out);
    }

    /// Takes the next event after a polling call, or in it. Returns whether it begins the same call again,
    /// without an event in between: then both are one section.
    #[cold]
    pub(super) fn poll_continues<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> bool {
        let (begins, is_site) = (self.function_begun(code, payload), code == messages::CALL_SITE);
        let Some(poll) = &mut self.threads[thread.index()].poll else { return false };
        if poll.ended.is_none()
            && matches!(
                code,
                messages::SENT | messages::RECEIVED | messages::COLLECTIVE_COMPLETED | messages::PROBED
            )
        {
            poll.found = true;
        }
        let Some(ended) = poll.ended else {
            // An event at the time of the begin is its place.
            if let (true, Some((before, begun))) = (is_site && poll.opener_is_standard(), poll.continued)
                && begun == at
            {
                self.split_poll(thread, before, at, out);
            }
            return false;
        };
        if begins == Some(poll.function) && at - ended.min(at) <= MAX_POLL_GAP {
            (poll.ended, poll.continued) = (None, Some((ended, at)));
            self.emit_message(thread, at, MessageChange::CallRepeats, out);
            return true;
        }
        self.end_poll(thread, out);
        false
    }

    /// The last repetition of a call that polls is at another place: a call of its own.
    fn split_poll<O: Observer>(&mut self, thread: ThreadIndex, ended: u64, begun: u64, out: &mut O) {
        let state = &mut self.threads[thread.index()];
        let Some(poll) = state.poll.take() else { return };
        let Some(section) = state.frames.top().map(|top| top.section) else { return };
        self.emit_message(thread, ended, MessageChange::CallRepeatsNot, out);
        self.close(thread, ended, poll.opener, out);
        self.emit_message(thread, ended, MessageChange::CallEnds, out);
        self.call_begins(thread, begun, poll.function, out);
        self.open(thread, begun, poll.opener, section, out);
        self.threads[thread.index()].poll = Some(Poll { continued: None, ended: None, ..poll });
    }

    /// Ends the section of a call that polls, when that has ended.
    pub(super) fn end_poll<O: Observer>(&mut self, thread: ThreadIndex, out: &mut O) {
        let state = &mut self.threads[thread.index()];
        if let Some(Poll { ended: Some(ended), opener, .. }) = state.poll {
            state.poll = None;
            self.close(thread, ended, opener, out);
            self.emit_message(thread, ended, MessageChange::CallEnds, out);
        }
    }

    /// The function called by a begin event.
    fn function_begun(&self, code: Code, payload: &[u8]) -> Option<u32> {
        if code == messages::CALL_BEGIN {
            return u32_at(payload, 0);
        }
        self.message_names.functions.by_begin.get(&code).copied()
    }

    /// A call has begun: whether it polls.
    fn note_poll(&mut self, thread: ThreadIndex, function: u32, opener: Opener) {
        let name = messages::FUNCTIONS.get(function as usize).copied().unwrap_or("");
        let poll = Poll { function, opener, found: false, ended: None, continued: None };
        self.threads[thread.index()].poll = messages::polls(name).then_some(poll);
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
                MessageChange::IsMember { comm: long(0)?, size: word(16)? }
            }
            messages::CALL_SITE => return self.call_site(thread, at, payload, out),
            messages::CALL_BEGIN => {
                let function = word(0)?;
                let place = self.call_begins(thread, at, function, out);
                self.note_poll(thread, function, Opener::Part(messages::LETTER, function as i16));
                let around = self.threads[thread.index()].now();
                let starts = ["Session_init", "Session_finalize"];
                let name = messages::FUNCTIONS.get(function as usize).copied().unwrap_or("");
                let state = if starts.contains(&name) { State::MpiStart } else { State::Communication };
                let section = Section { state, place, object: ObjectIndex::NONE, ..around };
                self.open(thread, at, Opener::Part(messages::LETTER, function as i16), section, out);
                return Ok(());
            }
            messages::CALL_END => {
                self.call_ends(thread, at, Opener::Part(messages::LETTER, word(0)? as i16), out);
                return Ok(());
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
                if name == "Finalize" {
                    // Until all ranks have come, it waits for them.
                    self.change_finalize(thread, at, State::Communication, out);
                }
                MessageChange::TakesPart {
                    sequence: long(0)?,
                    bytes: long(8)?,
                    comm: self.communicator(process, word(16)?),
                    root: word(20)?,
                    function,
                    nonblocking: messages::begins_operation(name),
                }
            }
            messages::AWAITS => MessageChange::Awaits(Awaited::Message {
                comm: self.communicator(process, word(0)?),
                source: Some(word(4)?).filter(|rank| *rank != messages::NO_RANK),
                tag: Some(word(8)? as i32).filter(|tag| *tag != messages::ANY_TAG),
            }),
            messages::AWAITS_SENT => MessageChange::AwaitsSent { post: long(0)? },
            messages::AWAITS_OPERATION => MessageChange::Awaits(Awaited::Operation {
                sequence: long(0)?,
                comm: self.communicator(process, word(8)?),
            }),
            messages::CONCERNS => MessageChange::Concerns {
                bytes: long(0)?,
                comm: self.communicator(process, word(8)?),
                peer: word(12)?,
            },
            messages::PROBED => MessageChange::Probed {
                comm: self.communicator(process, word(0)?),
                peer: word(4)?,
                tag: word(8)? as i32,
            },
            messages::COLLECTIVE_COMPLETED => {
                self.change_finalize(thread, at, State::MpiStart, out);
                let comm = self.communicator(process, word(8)?);
                MessageChange::Completed { sequence: long(0)?, comm }
            }
            // The trace's clocks are corrected before events come here.
            _ => return Ok(()),
        };
        self.emit_message(thread, at, change, out);
        Ok(())
    }

    /// Sets the state of `MPI_Finalize`, if the thread is in it.
    fn change_finalize<O: Observer>(&mut self, thread: ThreadIndex, at: u64, state: State, out: &mut O) {
        let opener = Opener::Part(mpi::LETTER, FINALIZE);
        if self.threads[thread.index()].frames.top().is_some_and(|top| top.opener == opener) {
            self.change_top(thread, at, out, |section| section.state = state);
        }
    }

    /// Emits a change on behalf of the worker that called.
    pub(super) fn emit_message<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        change: MessageChange,
        out: &mut O,
    ) {
        let worker = self.threads[thread.index()].calls_as.unwrap_or_else(|| self.worker_of(thread));
        out.change(worker, at, Change::Message(change));
    }

    /// The number that all members share; the process's own if that is unknown.
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
            self.emit_message(thread, at, MessageChange::CallIsAt(place), out);
        }
        Ok(())
    }
}
