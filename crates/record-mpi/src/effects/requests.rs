//! Effects of calls on requests: starts, completions and statuses.

use taskscope_ompt::shared::Moment;

use super::events::{
    next_post, received, record_awaited_operation, record_awaited_receive, record_awaited_send,
    record_collective, record_completed, record_send, record_sent,
};
use super::{Flight, Operation};
use crate::arguments::Arguments;
use crate::communicators;
use crate::functions::Partitions;
use crate::handle_kind::Kind;
use crate::language::Language;
use crate::library::{Status, WORDS};
use crate::requests::{
    Making, Pending, PreparedCollective, PreparedReceive, Receive, Table, change, put, take,
};

/// Requests of one call that its begin names.
const MAX_AWAITED: usize = 16;

impl Operation {
    /// Starts prepared requests.
    pub(super) unsafe fn start(
        &self,
        arguments: &Arguments,
        requests: u8,
        count: usize,
        moment: &mut Moment<'_>,
    ) {
        for place in 0..count {
            // SAFETY: by contract.
            let handle = unsafe { arguments.handle_in(self.library, requests, place, Kind::Request) };
            let started = match take(Table::Requests, handle) {
                Some(Pending::PreparedSend(mut send, _)) => {
                    let post = (send.peer != self.library.proc_null()).then(next_post);
                    send.missing = send.partitions;
                    if let Some(post) = post.filter(|_| send.partitions == 0) {
                        record_send(post, &send.comm, send.peer, send.tag, send.bytes, moment);
                    }
                    Pending::PreparedSend(send, post)
                }
                Some(Pending::PreparedCollective(prepared, _)) => {
                    let sequence = prepared.comm.next_operation();
                    let PreparedCollective { comm, root, bytes, number } = &prepared;
                    record_collective(comm, sequence, *root, *bytes, *number, moment);
                    Pending::PreparedCollective(prepared, Some(sequence))
                }
                Some(Pending::PreparedReceive(prepared, _)) => {
                    let PreparedReceive { comm, source, tag } = prepared.clone();
                    let receive = Receive { post: next_post(), posted: moment.at, comm, source, tag };
                    Pending::PreparedReceive(prepared, Some(receive))
                }
                Some(other) => other,
                None => continue,
            };
            put(Table::Requests, handle, started);
        }
    }

    pub(super) unsafe fn take_requests(
        &self,
        arguments: &Arguments,
        requests: u8,
        count: usize,
        flight: &mut Flight,
    ) {
        for place in 0..count {
            // SAFETY: by contract.
            let handle = unsafe { arguments.handle_in(self.library, requests, place, Kind::Request) };
            if handle != self.library.request_null
                && let Some(pending) = take(Table::Requests, handle)
            {
                flight.taken.push((place, handle, pending));
            }
        }
    }

    /// Records the requests that a call may block on: all of them, or one of them.
    pub(super) fn await_taken(&self, needs_all: bool, flight: &Flight, moment: &mut Moment<'_>) {
        // A part of the alternatives would be misleading.
        if self.row.polls || !needs_all && flight.taken.len() > MAX_AWAITED {
            return;
        }
        for (_, _, pending) in flight.taken.iter().take(MAX_AWAITED) {
            match pending {
                Pending::Receive(receive) | Pending::PreparedReceive(_, Some(receive)) => {
                    record_awaited_receive(receive, moment)
                }
                Pending::Send { post } | Pending::PreparedSend(_, Some(post)) => {
                    record_awaited_send(*post, moment)
                }
                Pending::Exchange { post, receive } => {
                    record_awaited_send(*post, moment);
                    record_awaited_receive(receive, moment);
                }
                Pending::Collective { sequence, comm, .. } => {
                    record_awaited_operation(*sequence, *comm, moment)
                }
                Pending::PreparedCollective(prepared, Some(sequence)) => {
                    record_awaited_operation(*sequence, prepared.comm.number, moment);
                }
                Pending::PreparedReceive(_, None)
                | Pending::PreparedSend(_, None)
                | Pending::PreparedCollective(_, None) => {}
            }
        }
    }

    pub(super) unsafe fn take_message(&self, arguments: &Arguments, message: u8, flight: &mut Flight) {
        // SAFETY: by contract.
        let handle = unsafe { arguments.handle_in(self.library, message, 0, Kind::Message) };
        if let Some(pending) = take(Table::Messages, handle) {
            flight.taken.push((0, handle, pending));
        }
    }

    pub(super) unsafe fn remember(&self, arguments: &Arguments, request: u8, pending: Pending) {
        // SAFETY: by contract.
        let handle = unsafe { arguments.handle_in(self.library, request, 0, Kind::Request) };
        if handle != self.library.request_null {
            put(Table::Requests, handle, pending);
        }
    }

    /// Makes the call fill statuses if they carry information for the trace.
    pub(super) unsafe fn provide_statuses(
        &self,
        arguments: &mut Arguments,
        at: u8,
        count: usize,
        flight: &mut Flight,
    ) {
        let is_receive = flight.receive.is_some()
            || flight.comm.is_some()
            || flight.taken.iter().any(|(_, _, pending)| {
                !matches!(
                    pending,
                    Pending::Send { .. }
                        | Pending::Collective { .. }
                        | Pending::PreparedSend(..)
                        | Pending::PreparedCollective(..)
                )
            });
        if is_receive {
            // SAFETY: by contract.
            unsafe { self.give_statuses(arguments, at, count, flight) };
        }
    }

    /// Makes the call fill statuses.
    pub(super) unsafe fn give_statuses(
        &self,
        arguments: &mut Arguments,
        at: u8,
        count: usize,
        flight: &mut Flight,
    ) {
        flight.statuses = arguments.word(at);
        if self.library.ignores_status(flight.statuses, arguments.language) {
            flight.own_statuses = vec![0; (count * self.library.status_bytes()).div_ceil(8)];
            flight.statuses = flight.own_statuses.as_mut_ptr() as usize;
            arguments.set(at, flight.statuses);
        }
    }

    /// # Safety
    /// The call has filled the status at this place.
    pub(super) unsafe fn status(&self, flight: &Flight, place: usize) -> Status {
        // SAFETY: by contract; the array is the program's or ours.
        unsafe { self.library.status_at(flight.statuses + place * self.library.status_bytes()) }
    }

    /// Records completions: `status_of` maps an array index to that of its status.
    pub(super) unsafe fn complete(
        &self,
        language: Language,
        mut flight: Flight,
        status_of: impl Fn(usize) -> Option<usize>,
        moment: &mut Moment<'_>,
    ) {
        for (place, handle, pending) in std::mem::take(&mut flight.taken) {
            let Some(status) = status_of(place) else {
                put(Table::Requests, handle, pending);
                continue;
            };
            // SAFETY: a completed request has a status if one was requested.
            let status = || unsafe { self.status(&flight, status) };
            match pending {
                Pending::Send { post } => record_sent(post, moment),
                Pending::Receive(receive) => received(&receive, status(), self.library, moment),
                Pending::Exchange { post, receive } => {
                    record_sent(post, moment);
                    received(&receive, status(), self.library, moment);
                }
                Pending::Collective { sequence, comm, makes } => {
                    record_completed(sequence, comm, moment);
                    if let Some(Making { parent, place }) = makes {
                        let mut words = [0; WORDS];
                        words[0] = place;
                        let made = Arguments { words, language, large: false, arity: 1 };
                        // SAFETY: MPI has written the handle there, as the operation has completed.
                        let handle = unsafe { made.handle_in(self.library, 0, 0, Kind::Communicator) };
                        communicators::find(self.library, handle, Some(&parent), moment);
                    }
                }
                Pending::PreparedCollective(prepared, active) => {
                    if let Some(sequence) = active {
                        record_completed(sequence, prepared.comm.number, moment);
                    }
                    put(Table::Requests, handle, Pending::PreparedCollective(prepared, None));
                }
                Pending::PreparedSend(send, active) => {
                    active.into_iter().for_each(|post| record_sent(post, moment));
                    put(Table::Requests, handle, Pending::PreparedSend(send, None));
                }
                Pending::PreparedReceive(prepared, active) => {
                    if let Some(receive) = active {
                        received(&receive, status(), self.library, moment);
                    }
                    put(Table::Requests, handle, Pending::PreparedReceive(prepared, None));
                }
            }
        }
    }

    /// Some partitions of a prepared send are ready; with the last one the message leaves.
    pub(super) unsafe fn ready(
        &self,
        arguments: &Arguments,
        partitions: Partitions,
        request: u8,
        moment: &mut Moment<'_>,
    ) {
        // SAFETY: by contract.
        let (count, handle) = unsafe {
            let count = match partitions {
                Partitions::One => 1,
                Partitions::Range(first, last) => {
                    i64::from(arguments.int(last)) - i64::from(arguments.int(first)) + 1
                }
                Partitions::List(length) => i64::from(arguments.int(length)),
            };
            (u64::try_from(count).unwrap_or(0), arguments.handle(self.library, request, Kind::Request))
        };
        // Threads of the program fill the partitions: the request stays in the table meanwhile.
        let is_last = change(Table::Requests, handle, |pending| match pending {
            Pending::PreparedSend(send, Some(post)) if send.missing > 0 => {
                send.missing = send.missing.saturating_sub(count);
                (send.missing == 0).then(|| (*post, send.clone()))
            }
            _ => None,
        });
        if let Some((post, send)) = is_last.flatten() {
            record_send(post, &send.comm, send.peer, send.tag, send.bytes, moment);
        }
    }
}
