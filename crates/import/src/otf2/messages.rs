//! Messages of MPI: the n-th send belongs to the n-th receive of the same communicator, ranks and tag.

use super::definitions::Definitions;
use crate::spans::{Flow, Run, ThreadRow};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Sender's and receiver's location, communicator, tag.
type Channel = (u64, u64, u32, u32);

/// A half of a message: its thread and time.
type Half = (ThreadRow, u64);

/// The members of a communicator.
struct Members {
    /// Their locations, by rank.
    locations: Vec<u64>,
    /// The first one of each location group, which stands for its locations.
    first_members: FxHashMap<u32, u64>,
}

impl Members {
    fn of(definitions: &Definitions, communicator: u32) -> Option<Members> {
        let locations = definitions.members(communicator)?;
        let mut first_members = FxHashMap::default();
        for location in &locations {
            if let Some(defined) = definitions.locations.get(location) {
                first_members.entry(defined.group).or_insert(*location);
            }
        }
        Some(Members { locations, first_members })
    }
}

/// The halves of all messages.
#[derive(Default)]
pub(super) struct Messages {
    halves: BTreeMap<Channel, (Vec<Half>, Vec<Half>)>,
    communicators: FxHashMap<u32, Option<Members>>,
    unknown: u64,
}

/// A half in the form of the events.
pub(super) struct Event {
    pub location: u64,
    pub is_send: bool,
    pub peer: u32,
    pub communicator: u32,
    pub tag: u32,
    pub thread: ThreadRow,
    pub at: u64,
}

impl Messages {
    /// Adds a half.
    pub fn add(&mut self, definitions: &Definitions, event: &Event) {
        let members = self.communicators.entry(event.communicator);
        let members = members.or_insert_with(|| Members::of(definitions, event.communicator)).as_ref();
        let own_location = definitions.locations.get(&event.location);
        let own = members.zip(own_location).and_then(|(all, own)| all.first_members.get(&own.group)).copied();
        let peer = members.and_then(|members| members.locations.get(event.peer as usize));
        let (Some(own), Some(peer)) = (own, peer) else {
            self.unknown += 1;
            return;
        };
        let (from, to) = if event.is_send { (own, *peer) } else { (*peer, own) };
        let halves = self.halves.entry((from, to, event.communicator, event.tag)).or_default();
        let side = if event.is_send { &mut halves.0 } else { &mut halves.1 };
        side.push((event.thread, event.at));
    }

    /// Adds the flows of all messages to the run.
    pub fn add_to(self, run: &mut Run) {
        run.losses.add_many(
            "halves of messages",
            "their communicator or partner is not defined",
            self.unknown,
        );
        let domain = run.domain("MPI messages");
        for (sends, receives) in self.halves.into_values() {
            let unmatched = sends.len().abs_diff(receives.len()) as u64;
            run.losses.add_many("halves of messages", "their other half is not in the archive", unmatched);
            for ((from, from_at), (to, to_at)) in sends.into_iter().zip(receives) {
                if from_at > to_at {
                    run.losses.add(
                        "messages",
                        "they are received before they are sent, by the clocks",
                        String::new,
                    );
                    continue;
                }
                run.flows.push(Flow { from, from_at, to, to_at, domain });
            }
        }
    }
}
