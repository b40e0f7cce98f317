//! Effects of calls on messages: posted, completed and collective operations.

mod collectives;
mod events;
mod requests;

use std::sync::Arc;

use taskscope_event::models::messages::{self, UNKNOWN_BYTES};
use taskscope_ompt::shared::Moment;

use crate::arguments::Arguments;
use crate::communicators::{self, Communicator};
use crate::functions::{ABSENT, Amount, Does, Makes, Message, On, Row};
use crate::handle_kind::Kind;
use crate::library::Library;
use crate::requests::{
    Making, Pending, PreparedCollective, PreparedReceive, PreparedSend, Receive, Table, put, take,
};
pub use collectives::{all_have_come, begin_end_of_job, record_rank};
use events::{
    next_post, probed, received, record_access, record_awaited_receive, record_awaited_source,
    record_collective, record_received, record_send,
};

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
                Does::MeetOnNew(parent, group, _) => {
                    if parent != ABSENT {
                        flight.comm = self.communicator(arguments, parent, moment);
                    }
                    if group != ABSENT {
                        let group = arguments.handle(self.library, group, Kind::Group);
                        self.name_members(group, flight.comm.as_deref(), moment);
                    }
                }
                Does::Init => self.start_job(moment),
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
                Does::Nothing | Does::Finalize | Does::StartSession(_) => {}
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
                Does::MeetOnNew(.., new) => {
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

    /// Records the message that a probe waits for; its first arguments are source and tag.
    unsafe fn await_probed(&self, arguments: &Arguments, comm: &Communicator, moment: &mut Moment<'_>) {
        // SAFETY: by contract.
        let (source, tag) = unsafe { (arguments.int(0), arguments.int(1)) };
        if source != self.library.proc_null() {
            record_awaited_source(comm, source, tag, moment);
        }
    }
}

fn length(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}
