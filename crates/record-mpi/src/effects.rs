//! Effects of calls on messages: posted, completed and collective operations.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use taskscope_event::models::messages::{self, UNKNOWN_BYTES};
use taskscope_ompt::shared::Moment;

use crate::arguments::Arguments;
use crate::communicators::{self, Communicator};
use crate::functions::{ABSENT, Amount, Does, Makes, Message, On, Partitions, Row};
use crate::handle_kind::Kind;
use crate::language::Language;
use crate::library::{Library, Status, WORDS};
use crate::requests::{
    Making, Pending, PreparedCollective, PreparedReceive, PreparedSend, Receive, Table, put, take,
};

/// The next number of a send or receive of this process.
static POSTS: AtomicU64 = AtomicU64::new(0);

/// Requests of one call that its begin names.
const MAX_AWAITED: usize = 16;

/// A call, and how to understand it.
pub struct Operation {
    pub row: &'static Row,
    pub library: &'static Library,
}

/// State kept from before a call to after it.
#[derive(Default)]
pub struct Flight {
    comm: Option<Arc<Communicator>>,
    send: Option<u64>,
    receive: Option<Receive>,
    prepared: Option<PreparedSend>,
    prepared_receive: Option<PreparedReceive>,
    prepared_collective: Option<PreparedCollective>,
    sequence: u64,
    /// Requests or messages that the call may complete, with their places in its array.
    taken: Vec<(usize, usize, Pending)>,
    /// Address of the statuses.
    statuses: usize,
    /// Room for those that the program does not want.
    own_statuses: Vec<u64>,
}

impl Operation {
    /// Before the call. It may get other places for its statuses.
    ///
    /// # Safety
    /// `arguments` are those of a call of this function.
    pub unsafe fn before(&self, arguments: &mut Arguments, flight: &mut Flight, moment: &mut Moment<'_>) {
        // SAFETY: the positions of `self.row.does` are those of the function.
        unsafe {
            match self.row.does {
                Does::Send(message) | Does::StartSend(message, _) => {
                    self.send(arguments, message, flight, moment)
                }
                Does::Receive(message, status) => {
                    self.post_receive(arguments, message, flight, moment);
                    flight.receive.iter().for_each(|receive| record_awaited_receive(receive, moment));
                    self.provide_statuses(arguments, status, 1, flight);
                }
                Does::StartReceive(message, _) => self.post_receive(arguments, message, flight, moment),
                Does::Exchange(send, receive, status) => {
                    self.send(arguments, send, flight, moment);
                    self.post_receive(arguments, receive, flight, moment);
                    flight.receive.iter().for_each(|receive| record_awaited_receive(receive, moment));
                    self.provide_statuses(arguments, status, 1, flight);
                }
                Does::StartExchange(send, receive, _) => {
                    self.send(arguments, send, flight, moment);
                    self.post_receive(arguments, receive, flight, moment);
                }
                Does::PrepareSend(message, _) => {
                    let comm = self.communicator(arguments, message.comm, moment);
                    flight.prepared = comm.map(|comm| PreparedSend {
                        comm,
                        peer: arguments.int(message.peer),
                        tag: arguments.int(message.tag),
                        bytes: self.bytes(arguments, message.count, message.datatype),
                        partitions: 0,
                        missing: 0,
                    });
                }
                Does::PreparePartitionedSend(message, partitions, _) => {
                    let comm = self.communicator(arguments, message.comm, moment);
                    let partitions = u64::try_from(arguments.int(partitions)).unwrap_or(0);
                    let datatype = arguments.handle(self.library, message.datatype, Kind::Datatype);
                    // This count has 64 bits in every version.
                    let count = Arguments { large: true, ..*arguments }.count(message.count);
                    let bytes = self.library.type_bytes(datatype).map_or(UNKNOWN_BYTES, |bytes| {
                        bytes.saturating_mul(u64::try_from(count).unwrap_or(0)).saturating_mul(partitions)
                    });
                    flight.prepared = comm.map(|comm| PreparedSend {
                        comm,
                        peer: arguments.int(message.peer),
                        tag: arguments.int(message.tag),
                        bytes,
                        partitions,
                        missing: 0,
                    });
                }
                Does::Ready(partitions, request) => self.ready(arguments, partitions, request, moment),
                Does::PrepareReceive(message, _) => {
                    let comm = self.communicator(arguments, message.comm, moment);
                    flight.prepared_receive = comm.map(|comm| PreparedReceive {
                        comm,
                        source: arguments.int(message.peer),
                        tag: arguments.int(message.tag),
                    });
                }
                Does::Start(request) => self.start(arguments, request, 1, moment),
                Does::StartAll(count, requests) => {
                    self.start(arguments, requests, length(arguments.int(count)), moment);
                }
                Does::CompleteOne(request, _, status) => {
                    self.take_requests(arguments, request, 1, flight);
                    self.await_taken(true, flight, moment);
                    self.provide_statuses(arguments, status, 1, flight);
                }
                Does::CompleteAll(count, requests, _, statuses)
                | Does::CompleteSome(count, requests, _, _, statuses) => {
                    let count = length(arguments.int(count));
                    self.take_requests(arguments, requests, count, flight);
                    let needs_all = matches!(self.row.does, Does::CompleteAll(..));
                    self.await_taken(needs_all, flight, moment);
                    self.provide_statuses(arguments, statuses, count, flight);
                }
                Does::CompleteAny(count, requests, _, _, status) => {
                    self.take_requests(arguments, requests, length(arguments.int(count)), flight);
                    self.await_taken(false, flight, moment);
                    self.provide_statuses(arguments, status, 1, flight);
                }
                Does::FreeRequest(request) => self.take_requests(arguments, request, 1, flight),
                // Most probes of a loop find no message: their communicator is looked up afterwards.
                Does::Probe(comm, _, status) => {
                    if !self.row.polls {
                        let comm = self.communicator(arguments, comm, moment);
                        comm.iter().for_each(|comm| self.await_probed(arguments, comm, moment));
                    }
                    self.give_statuses(arguments, status, 1, flight);
                }
                Does::MatchProbe(comm, _, _, status) => {
                    flight.comm = self.communicator(arguments, comm, moment);
                    if let Some(comm) = flight.comm.as_ref().filter(|_| !self.row.polls) {
                        self.await_probed(arguments, comm, moment);
                    }
                    self.provide_statuses(arguments, status, 1, flight);
                }
                Does::MatchedReceive(message, status) => {
                    self.take_message(arguments, message, flight);
                    self.provide_statuses(arguments, status, 1, flight);
                }
                Does::StartMatchedReceive(message, _) => self.take_message(arguments, message, flight),
                Does::Collective(on, root, amount, ..) => {
                    self.collective(arguments, on, (root, amount), flight, moment);
                }
                Does::PrepareCollective(comm, root, amount, _) => {
                    let comm = self.communicator(arguments, comm, moment);
                    flight.prepared_collective = comm.map(|comm| PreparedCollective {
                        root: self.root(arguments, root, &comm),
                        bytes: self.amount(arguments, amount, &comm),
                        comm,
                        number: self.row.number,
                    });
                }
                Does::BeginSplit(file, amount) => {
                    self.collective(arguments, On::File(file), (ABSENT, amount), flight, moment);
                }
                Does::EndSplit(file) => {
                    let handle = arguments.handle(self.library, file, Kind::File);
                    flight.taken.extend(take(Table::Split, handle).map(|pending| (0, handle, pending)));
                }
                Does::MeetOnNew(parent, _) if parent != ABSENT => {
                    flight.comm = self.communicator(arguments, parent, moment);
                }
                Does::Meet(port, comm, _) => {
                    let name = arguments.first_string(port);
                    if !name.is_empty() {
                        let port = communicators::port(name, moment);
                        record_access(0, &port, messages::NO_RANK, moment);
                    }
                    self.collective(arguments, On::Comm(comm), (ABSENT, Amount::None), flight, moment);
                }
                Does::Access(on, peer, amount) => {
                    if let Some(comm) = self.members(arguments, on, moment) {
                        let peer =
                            if peer == ABSENT { messages::NO_RANK } else { comm.peer(arguments.int(peer)) };
                        record_access(self.amount(arguments, amount, &comm), &comm, peer, moment);
                    }
                }
                Does::Group(window, group) => {
                    let comm = self.members(arguments, On::Window(window), moment);
                    let group = arguments.handle(self.library, group, Kind::Group);
                    if let (Some(comm), Some(ranks)) = (comm, self.library.ranks_of_group(group)) {
                        ranks.into_iter().for_each(|rank| record_access(0, &comm, rank, moment));
                    }
                }
                Does::Nothing | Does::Init | Does::Finalize | Does::StartSession(_) | Does::MeetOnNew(..) => {
                }
            }
        }
    }

    /// Effects after the call; `good` is whether it succeeded.
    ///
    /// # Safety
    /// As [`Operation::before`], with its result.
    pub unsafe fn after(
        &self,
        arguments: &Arguments,
        mut flight: Flight,
        good: bool,
        moment: &mut Moment<'_>,
    ) {
        if !good {
            // Completions are unknown; no other thread waits for these handles.
            return flight
                .taken
                .into_iter()
                .for_each(|(_, handle, pending)| put(Table::Requests, handle, pending));
        }
        let (send, receive) = (flight.send.take(), flight.receive.take());
        // SAFETY: the positions are those of the function, which has returned and written its results.
        unsafe {
            match self.row.does {
                Does::Receive(..) | Does::Exchange(..) => {
                    if let Some(receive) = receive {
                        received(&receive, self.status(&flight, 0), self.library, moment);
                    }
                }
                Does::StartSend(_, request) => {
                    if let Some(post) = send {
                        self.remember(arguments, request, Pending::Send { post });
                    }
                }
                Does::StartReceive(_, request) => {
                    if let Some(receive) = receive {
                        self.remember(arguments, request, Pending::Receive(receive));
                    }
                }
                Does::StartExchange(_, _, request) => match (send, receive) {
                    (Some(post), Some(receive)) => {
                        self.remember(arguments, request, Pending::Exchange { post, receive });
                    }
                    (Some(post), None) => self.remember(arguments, request, Pending::Send { post }),
                    (None, Some(receive)) => self.remember(arguments, request, Pending::Receive(receive)),
                    (None, None) => {}
                },
                Does::PrepareSend(_, request) | Does::PreparePartitionedSend(_, _, request) => {
                    if let Some(prepared) = flight.prepared.take() {
                        self.remember(arguments, request, Pending::PreparedSend(prepared, None));
                    }
                }
                Does::PrepareReceive(_, request) => {
                    if let Some(prepared) = flight.prepared_receive.take() {
                        self.remember(arguments, request, Pending::PreparedReceive(prepared, None));
                    }
                }
                Does::CompleteOne(_, flag, _) => {
                    let all = flag == ABSENT || arguments.result(flag) != 0;
                    self.complete(arguments.language, flight, |_| all.then_some(0), moment);
                }
                Does::CompleteAll(_, _, flag, _) => {
                    let all = flag == ABSENT || arguments.result(flag) != 0;
                    self.complete(arguments.language, flight, |place| all.then_some(place), moment);
                }
                Does::CompleteAny(_, _, index, flag, _) => {
                    let any = flag == ABSENT || arguments.result(flag) != 0;
                    let done = arguments.index(arguments.result(index)).filter(|_| any);
                    self.complete(
                        arguments.language,
                        flight,
                        |place| (done == Some(place)).then_some(0),
                        moment,
                    );
                }
                Does::CompleteSome(_, _, count, indices, _) => {
                    let done: Vec<_> = (0..length(arguments.result(count)))
                        .map(|number| arguments.index(arguments.int_in(indices, number)))
                        .collect();
                    self.complete(
                        arguments.language,
                        flight,
                        |place| done.iter().position(|done| *done == Some(place)),
                        moment,
                    );
                }
                Does::FreeRequest(_) => {
                    // A requested message still arrives, unseen by the program.
                    for (_, _, pending) in flight.taken {
                        if let Pending::Receive(receive) = pending {
                            record_received(&receive, messages::NO_RANK, 0, UNKNOWN_BYTES, moment);
                        }
                    }
                }
                Does::Probe(comm, flag, _) => {
                    if (flag == ABSENT || arguments.result(flag) != 0)
                        && let Some(comm) = self.communicator(arguments, comm, moment)
                    {
                        probed(&comm, self.status(&flight, 0), self.library, moment);
                    }
                }
                Does::MatchProbe(_, flag, message, _) => {
                    if (flag == ABSENT || arguments.result(flag) != 0)
                        && let Some(comm) = flight.comm.take()
                    {
                        probed(&comm, self.status(&flight, 0), self.library, moment);
                        let status = self.status(&flight, 0);
                        let receive = Receive {
                            post: next_post(),
                            posted: moment.at,
                            comm,
                            source: status.source,
                            tag: status.tag,
                        };
                        let handle = arguments.handle_in(self.library, message, 0, Kind::Message);
                        put(Table::Messages, handle, Pending::Receive(receive));
                    }
                }
                Does::MatchedReceive(..) => self.complete(arguments.language, flight, |_| Some(0), moment),
                Does::StartMatchedReceive(_, request) => {
                    if let Some((_, _, pending)) = flight.taken.pop() {
                        self.remember(arguments, request, pending);
                    }
                }
                Does::Collective(_, _, _, request, makes) if request != ABSENT => {
                    if let Some(parent) = flight.comm.take() {
                        let (sequence, comm) = (flight.sequence, parent.number);
                        let makes = match makes {
                            Makes::Comm(new) => Some(Making { parent, place: arguments.word(new) }),
                            _ => None,
                        };
                        self.remember(arguments, request, Pending::Collective { sequence, comm, makes });
                    }
                }
                Does::Collective(on, _, _, _, makes) => self.made(arguments, on, makes, &flight, moment),
                Does::Meet(_, _, new) => {
                    self.made(arguments, On::Comm(ABSENT), Makes::Comm(new), &flight, moment);
                }
                Does::PrepareCollective(_, _, _, request) => {
                    if let Some(prepared) = flight.prepared_collective.take() {
                        self.remember(arguments, request, Pending::PreparedCollective(prepared, None));
                    }
                }
                Does::BeginSplit(file, _) => {
                    if let Some(comm) = flight.comm.take() {
                        let handle = arguments.handle(self.library, file, Kind::File);
                        let (sequence, comm) = (flight.sequence, comm.number);
                        put(Table::Split, handle, Pending::Collective { sequence, comm, makes: None });
                    }
                }
                Does::EndSplit(_) => self.complete(arguments.language, flight, |_| Some(0), moment),
                Does::MeetOnNew(_, new) => {
                    let handle = arguments.handle_in(self.library, new, 0, Kind::Communicator);
                    if let Some(comm) =
                        communicators::find(self.library, handle, flight.comm.as_deref(), moment)
                    {
                        flight.sequence = comm.next_operation();
                        let root = messages::NO_RANK;
                        record_collective(&comm, flight.sequence, root, 0, self.row.number, moment);
                    }
                }
                _ => {}
            }
        }
    }

    /// # Safety
    /// As [`Operation::before`]; so for all below.
    unsafe fn communicator(
        &self,
        arguments: &Arguments,
        at: u8,
        moment: &mut Moment<'_>,
    ) -> Option<Arc<Communicator>> {
        // SAFETY: by contract.
        let handle = unsafe { arguments.handle(self.library, at, Kind::Communicator) };
        communicators::find(self.library, handle, None, moment)
    }

    unsafe fn bytes(&self, arguments: &Arguments, count: u8, datatype: u8) -> u64 {
        // SAFETY: by contract.
        let (count, datatype) =
            unsafe { (arguments.count(count), arguments.handle(self.library, datatype, Kind::Datatype)) };
        let bytes = self.library.type_bytes(datatype);
        bytes.map_or(UNKNOWN_BYTES, |bytes| bytes.saturating_mul(u64::try_from(count).unwrap_or(0)))
    }

    unsafe fn send(
        &self,
        arguments: &Arguments,
        message: Message,
        flight: &mut Flight,
        moment: &mut Moment<'_>,
    ) {
        // SAFETY: by contract.
        unsafe {
            let peer = arguments.int(message.peer);
            let Some(comm) = self.communicator(arguments, message.comm, moment) else { return };
            if peer != self.library.proc_null() {
                let bytes = self.bytes(arguments, message.count, message.datatype);
                let post = next_post();
                record_send(post, &comm, peer, arguments.int(message.tag), bytes, moment);
                flight.send = Some(post);
            }
        }
    }

    unsafe fn post_receive(
        &self,
        arguments: &Arguments,
        message: Message,
        flight: &mut Flight,
        moment: &mut Moment<'_>,
    ) {
        // SAFETY: by contract.
        let (source, tag, comm) = unsafe {
            let comm = self.communicator(arguments, message.comm, moment);
            (arguments.int(message.peer), arguments.int(message.tag), comm)
        };
        if let Some(comm) = comm.filter(|_| source != self.library.proc_null()) {
            flight.receive = Some(Receive { post: next_post(), posted: moment.at, comm, source, tag });
        }
    }

    /// Starts prepared requests.
    unsafe fn start(&self, arguments: &Arguments, requests: u8, count: usize, moment: &mut Moment<'_>) {
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

    unsafe fn take_requests(&self, arguments: &Arguments, requests: u8, count: usize, flight: &mut Flight) {
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
    fn await_taken(&self, needs_all: bool, flight: &Flight, moment: &mut Moment<'_>) {
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

    /// Records the message that a probe waits for; its first arguments are source and tag.
    unsafe fn await_probed(&self, arguments: &Arguments, comm: &Communicator, moment: &mut Moment<'_>) {
        // SAFETY: by contract.
        let (source, tag) = unsafe { (arguments.int(0), arguments.int(1)) };
        if source != self.library.proc_null() {
            record_awaited_source(comm, source, tag, moment);
        }
    }

    unsafe fn take_message(&self, arguments: &Arguments, message: u8, flight: &mut Flight) {
        // SAFETY: by contract.
        let handle = unsafe { arguments.handle_in(self.library, message, 0, Kind::Message) };
        if let Some(pending) = take(Table::Messages, handle) {
            flight.taken.push((0, handle, pending));
        }
    }

    unsafe fn remember(&self, arguments: &Arguments, request: u8, pending: Pending) {
        // SAFETY: by contract.
        let handle = unsafe { arguments.handle_in(self.library, request, 0, Kind::Request) };
        if handle != self.library.request_null {
            put(Table::Requests, handle, pending);
        }
    }

    /// Makes the call fill statuses if they carry information for the trace.
    unsafe fn provide_statuses(&self, arguments: &mut Arguments, at: u8, count: usize, flight: &mut Flight) {
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

    /// Sees to it that the call fills statuses.
    unsafe fn give_statuses(&self, arguments: &mut Arguments, at: u8, count: usize, flight: &mut Flight) {
        flight.statuses = arguments.word(at);
        if self.library.ignores_status(flight.statuses, arguments.language) {
            flight.own_statuses = vec![0; (count * self.library.status_bytes()).div_ceil(8)];
            flight.statuses = flight.own_statuses.as_mut_ptr() as usize;
            arguments.set(at, flight.statuses);
        }
    }

    /// # Safety
    /// The call has filled the status at this place.
    unsafe fn status(&self, flight: &Flight, place: usize) -> Status {
        // SAFETY: by contract; the array is the program's or ours.
        unsafe { self.library.status_at(flight.statuses + place * self.library.status_bytes()) }
    }

    /// Records completions: `status_of` maps an array index to that of its status.
    unsafe fn complete(
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

    /// The members of an object that an argument names.
    unsafe fn members(
        &self,
        arguments: &Arguments,
        on: On,
        moment: &mut Moment<'_>,
    ) -> Option<Arc<Communicator>> {
        // SAFETY: by contract.
        unsafe {
            match on {
                On::Comm(comm) => self.communicator(arguments, comm, moment),
                On::CommFreed(comm) => {
                    let handle = arguments.handle_in(self.library, comm, 0, Kind::Communicator);
                    communicators::find(self.library, handle, None, moment)
                }
                On::Window(at) => {
                    communicators::known(Kind::Window, arguments.handle(self.library, at, Kind::Window))
                }
                On::WindowFreed(at) => {
                    communicators::known(Kind::Window, arguments.handle_in(self.library, at, 0, Kind::Window))
                }
                On::File(at) => {
                    communicators::known(Kind::File, arguments.handle(self.library, at, Kind::File))
                }
                On::FileClosed(at) => {
                    communicators::known(Kind::File, arguments.handle_in(self.library, at, 0, Kind::File))
                }
            }
        }
    }

    unsafe fn root(&self, arguments: &Arguments, root: u8, comm: &Communicator) -> u32 {
        // SAFETY: by contract.
        if root == ABSENT { messages::NO_RANK } else { comm.peer(unsafe { arguments.int(root) }) }
    }

    unsafe fn amount(&self, arguments: &Arguments, amount: Amount, comm: &Communicator) -> u64 {
        let in_place = arguments.language == Language::C && arguments.word(0) == self.library.in_place();
        // SAFETY: by contract.
        unsafe {
            match amount {
                Amount::None => 0,
                Amount::Unknown => UNKNOWN_BYTES,
                Amount::CountOr(_, count) if in_place => self.bytes(arguments, count, count + 1),
                Amount::Count(count) | Amount::CountOr(count, _) => self.bytes(arguments, count, count + 1),
                Amount::OneOf(datatype) => {
                    let datatype = arguments.handle(self.library, datatype, Kind::Datatype);
                    self.library.type_bytes(datatype).unwrap_or(UNKNOWN_BYTES)
                }
                Amount::Counts(..) if in_place && arguments.word(1) == 0 => 0,
                Amount::Counts(counts, datatype) => {
                    let datatype = arguments.handle(self.library, datatype, Kind::Datatype);
                    let sum = (0..comm.peers())
                        .map(|peer| u64::try_from(arguments.count_in(counts, peer)).unwrap_or(0))
                        .fold(0, u64::saturating_add);
                    self.library.type_bytes(datatype).map_or(UNKNOWN_BYTES, |bytes| bytes.saturating_mul(sum))
                }
            }
        }
    }

    unsafe fn collective(
        &self,
        arguments: &Arguments,
        on: On,
        (root, amount): (u8, Amount),
        flight: &mut Flight,
        moment: &mut Moment<'_>,
    ) {
        // SAFETY: by contract.
        unsafe {
            let Some(comm) = self.members(arguments, on, moment) else { return };
            let (root, bytes) = (self.root(arguments, root, &comm), self.amount(arguments, amount, &comm));
            flight.sequence = comm.next_operation();
            record_collective(&comm, flight.sequence, root, bytes, self.row.number, moment);
            match on {
                On::CommFreed(at) => communicators::forget(
                    Kind::Communicator,
                    arguments.handle_in(self.library, at, 0, Kind::Communicator),
                ),
                On::WindowFreed(at) => {
                    communicators::forget(
                        Kind::Window,
                        arguments.handle_in(self.library, at, 0, Kind::Window),
                    );
                }
                On::FileClosed(at) => {
                    communicators::forget(Kind::File, arguments.handle_in(self.library, at, 0, Kind::File));
                }
                _ => {}
            }
            flight.comm = Some(comm);
        }
    }

    /// Stores the object that a collective call has created.
    unsafe fn made(
        &self,
        arguments: &Arguments,
        on: On,
        makes: Makes,
        flight: &Flight,
        moment: &mut Moment<'_>,
    ) {
        let Some(parent) = flight.comm.as_deref() else { return };
        // SAFETY: by contract; the call has written the handle.
        unsafe {
            match makes {
                Makes::Nothing => {}
                Makes::Comm(new) => {
                    let handle = arguments.handle_in(self.library, new, 0, Kind::Communicator);
                    let parent = matches!(on, On::Comm(at) if at != ABSENT).then_some(parent);
                    communicators::find(self.library, handle, parent, moment);
                }
                Makes::Window(new) => {
                    let handle = arguments.handle_in(self.library, new, 0, Kind::Window);
                    communicators::made_on(parent, (Kind::Window, handle), moment);
                }
                Makes::File(new) => {
                    let handle = arguments.handle_in(self.library, new, 0, Kind::File);
                    communicators::made_on(parent, (Kind::File, handle), moment);
                }
            }
        }
    }

    /// Some partitions of a prepared send are ready; with the last one the message leaves.
    unsafe fn ready(
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
        let Some(mut pending) = take(Table::Requests, handle) else { return };
        if let Pending::PreparedSend(send, Some(post)) = &mut pending
            && send.missing > 0
        {
            send.missing = send.missing.saturating_sub(count);
            if send.missing == 0 {
                record_send(*post, &send.comm, send.peer, send.tag, send.bytes, moment);
            }
        }
        put(Table::Requests, handle, pending);
    }
}

/// Records that the process has reached the end of the job. Returns the members of the world, for
/// [`all_have_come`].
pub fn begin_end_of_job(
    library: &Library,
    number: u32,
    moment: &mut Moment<'_>,
) -> Option<(Arc<Communicator>, u64)> {
    if !crate::clocks::has_met() {
        return None;
    }
    let world = communicators::find(library, library.comm_world, None, moment)?;
    let sequence = world.next_operation();
    record_collective(&world, sequence, messages::NO_RANK, 0, number, moment);
    Some((world, sequence))
}

/// Records that all ranks have reached the end of the job. Returns whether that is known.
pub fn all_have_come(world: Option<(Arc<Communicator>, u64)>, moment: &mut Moment<'_>) -> bool {
    let Some((world, sequence)) = world else { return false };
    record_completed(sequence, world.number, moment);
    true
}

fn length(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn next_post() -> u64 {
    POSTS.fetch_add(1, Relaxed)
}

fn record_collective(
    comm: &Communicator,
    sequence: u64,
    root: u32,
    bytes: u64,
    number: u32,
    moment: &mut Moment<'_>,
) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::COLLECTIVE,
        &[
            &sequence.to_le_bytes(),
            &bytes.to_le_bytes(),
            &comm.number.to_le_bytes(),
            &root.to_le_bytes(),
            &number.to_le_bytes(),
        ],
    );
}

fn record_completed(sequence: u64, comm: u32, moment: &mut Moment<'_>) {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&sequence.to_le_bytes());
    payload[8..].copy_from_slice(&comm.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::COLLECTIVE_COMPLETED, payload);
}

fn record_awaited_receive(receive: &Receive, moment: &mut Moment<'_>) {
    record_awaited_source(&receive.comm, receive.source, receive.tag, moment);
}

fn record_awaited_source(comm: &Communicator, source: i32, tag: i32, moment: &mut Moment<'_>) {
    let mut payload = [0; 12];
    payload[..4].copy_from_slice(&comm.number.to_le_bytes());
    // A wildcard source has no rank among the members; the wildcard tag has one value in all libraries.
    payload[4..8].copy_from_slice(&comm.peer(source).to_le_bytes());
    payload[8..].copy_from_slice(&tag.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::AWAITS, payload);
}

fn record_awaited_send(post: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_point(moment.at, messages::AWAITS_SENT, post.to_le_bytes());
}

fn record_awaited_operation(sequence: u64, comm: u32, moment: &mut Moment<'_>) {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&sequence.to_le_bytes());
    payload[8..].copy_from_slice(&comm.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::AWAITS_OPERATION, payload);
}

fn record_access(bytes: u64, comm: &Communicator, peer: u32, moment: &mut Moment<'_>) {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&bytes.to_le_bytes());
    payload[8..12].copy_from_slice(&comm.number.to_le_bytes());
    payload[12..].copy_from_slice(&peer.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::CONCERNS, payload);
}

fn probed(comm: &Communicator, status: Status, library: &Library, moment: &mut Moment<'_>) {
    if status.source != library.proc_null() {
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(&comm.number.to_le_bytes());
        payload[4..8].copy_from_slice(&comm.peer(status.source).to_le_bytes());
        payload[8..].copy_from_slice(&status.tag.to_le_bytes());
        moment.recorder.own_point(moment.at, messages::PROBED, payload);
    }
}

fn record_send(post: u64, comm: &Communicator, peer: i32, tag: i32, bytes: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::SEND,
        &[
            &post.to_le_bytes(),
            &bytes.to_le_bytes(),
            &comm.number.to_le_bytes(),
            &comm.peer(peer).to_le_bytes(),
            &tag.to_le_bytes(),
        ],
    );
}

fn record_sent(post: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_point(moment.at, messages::SENT, post.to_le_bytes());
}

fn received(receive: &Receive, status: Status, library: &Library, moment: &mut Moment<'_>) {
    if !status.cancelled && status.source != library.proc_null() {
        record_received(receive, receive.comm.peer(status.source), status.tag, status.bytes, moment);
    }
}

fn record_received(receive: &Receive, peer: u32, tag: i32, bytes: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::RECEIVED,
        &[
            &receive.post.to_le_bytes(),
            &(moment.at - receive.posted.min(moment.at)).to_le_bytes(),
            &bytes.to_le_bytes(),
            &receive.comm.number.to_le_bytes(),
            &peer.to_le_bytes(),
            &tag.to_le_bytes(),
        ],
    );
}
