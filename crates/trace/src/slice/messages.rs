//! Messages and operations of MPI that are on their way at the begin of a slice.
//!
//! Readers pair the n-th send of a communicator, sender, receiver and tag with the n-th receive. Without a send from before the
//! range, a receive in it would get the message after its own. So a slice repeats the sends that are received in its range, and the
//! parts in operations that have not completed: those of an open call in this call, others before it.

use super::request::Process;
use crate::Event;
use crate::stream::Stream;
use rustc_hash::FxHashMap;
use taskscope_event::StreamFile;
use taskscope_event::models::{messages, mpi};

/// Job, communicator, ranks of the sender and of the receiver, tag.
type Channel = (u64, u64, u32, u32, u32);

/// The sends of one channel with their streams, and the clocks of its receipts; both with their posts.
#[derive(Default)]
struct Halves<'a> {
    sends: Vec<(u64, usize, Event<'a>)>,
    receipts: Vec<(u64, i64)>,
}

/// The sends before a range that are received in it, in the order of time, by stream.
pub(super) fn sends_into<'a>(
    streams: &'a [Stream],
    (begin, end): (i64, i64),
    keeps: impl Fn(usize) -> bool,
) -> FxHashMap<usize, Vec<Event<'a>>> {
    let mut ranks: FxHashMap<Process<'a>, (u64, u32)> = FxHashMap::default();
    let mut communicators: FxHashMap<(Process<'a>, u32), u64> = FxHashMap::default();
    let own = || streams.iter().enumerate().filter(|(index, _)| keeps(*index));
    for (_, stream) in own() {
        let process = (stream.loom(), stream.pid());
        for event in events_of(stream) {
            let number = (long(&event, 0), word(&event, 8));
            match (event.code, number) {
                (messages::JOB, (Some(job), Some(rank))) => _ = ranks.insert(process, (job, rank)),
                (messages::COMMUNICATOR, (Some(id), Some(comm))) => {
                    communicators.insert((process, comm), id);
                }
                _ => {}
            }
        }
    }
    let mut channels: FxHashMap<Channel, Halves<'a>> = FxHashMap::default();
    for (index, stream) in own() {
        let process = (stream.loom(), stream.pid());
        let Some((job, rank)) = ranks.get(&process).copied() else { continue };
        for event in events_of(stream) {
            let at = match event.code {
                messages::SEND => 16,
                messages::RECEIVED => 24,
                _ => continue,
            };
            let fields = (long(&event, 0), word(&event, at), word(&event, at + 4), word(&event, at + 8));
            let (Some(post), Some(comm), Some(peer), Some(tag)) = fields else { continue };
            let comm = communicators.get(&(process, comm)).copied().unwrap_or(u64::from(comm));
            if event.code == messages::SEND {
                let channel = channels.entry((job, comm, rank, peer, tag)).or_default();
                channel.sends.push((post, index, event));
            } else {
                let channel = channels.entry((job, comm, peer, rank, tag)).or_default();
                channel.receipts.push((post, event.clock_ns));
            }
        }
    }
    let mut into: FxHashMap<usize, Vec<Event<'a>>> = FxHashMap::default();
    for Halves { mut sends, mut receipts } in channels.into_values() {
        sends.sort_by_key(|(post, ..)| *post);
        receipts.sort_unstable();
        for ((_, stream, event), (_, received)) in sends.into_iter().zip(receipts) {
            if event.clock_ns < begin && (begin..end).contains(&received) {
                into.entry(stream).or_default().push(event);
            }
        }
    }
    into.values_mut().for_each(|events| events.sort_by_key(|event| event.clock_ns));
    into
}

/// Parts in operations, and the partners of calls.
#[derive(Default)]
pub(super) struct Operations<'a> {
    /// Nonblocking ones that have not completed, with their streams.
    pending: Vec<(usize, Event<'a>)>,
    /// Events of the current call of each stream.
    in_call: FxHashMap<usize, Vec<Event<'a>>>,
}

impl<'a> Operations<'a> {
    /// Takes an event of a stream. `is_peer` returns whether another stream is of the same process.
    pub fn follow(&mut self, stream: usize, event: &Event<'a>, is_peer: impl Fn(usize) -> bool) {
        match event.code {
            messages::CALL_BEGIN | messages::CALL_END => _ = self.in_call.remove(&stream),
            code if code.model() == mpi::LETTER => _ = self.in_call.remove(&stream),
            messages::COLLECTIVE => {
                let function = word(event, 24).and_then(|number| messages::FUNCTIONS.get(number as usize));
                if function.is_some_and(|name| messages::begins_operation(name)) {
                    self.pending.push((stream, *event));
                } else {
                    self.in_call.entry(stream).or_default().push(*event);
                }
            }
            messages::COLLECTIVE_COMPLETED => {
                let completed = (long(event, 0), word(event, 8));
                let is_it = |(other, begun): &(usize, Event<'_>)| {
                    (long(begun, 0), word(begun, 16)) == completed && is_peer(*other)
                };
                if let Some(position) = self.pending.iter().position(is_it) {
                    self.pending.remove(position);
                } else if let Some(events) = self.in_call.get_mut(&stream) {
                    // All ranks have come to the end of MPI: the rest of the call is no wait for them.
                    events.push(*event);
                }
            }
            messages::AWAITS_SENT
            | messages::AWAITS
            | messages::AWAITS_OPERATION
            | messages::CONCERNS
            | messages::PROBED => self.in_call.entry(stream).or_default().push(*event),
            _ => {}
        }
    }

    /// The events to repeat on a stream, in the order of time.
    pub fn of(&self, stream: usize) -> Vec<Event<'a>> {
        let pending = self.pending.iter().filter(|(of, _)| *of == stream).map(|(_, event)| *event);
        let mut events: Vec<Event<'a>> = pending.collect();
        events.extend(self.in_call.get(&stream).into_iter().flatten());
        events.sort_by_key(|event| event.clock_ns);
        events
    }
}

fn events_of(stream: &Stream) -> impl Iterator<Item = Event<'_>> {
    stream.events_of(StreamFile::Own).filter(|event| event.code.model() == messages::LETTER)
}

fn long(event: &Event<'_>, at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*event.payload.get(at..)?.first_chunk()?))
}

fn word(event: &Event<'_>, at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*event.payload.get(at..)?.first_chunk()?))
}
