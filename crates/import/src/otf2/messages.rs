//! Messages of MPI: the n-th send belongs to the n-th receive of the same communicator, ranks and tag.

use super::definitions::Definitions;
use crate::spans::{Flow, Run, ThreadRow};
use std::collections::BTreeMap;

/// Sender's and receiver's location, communicator, tag.
type Channel = (u64, u64, u32, u32);

/// A half of a message: its thread and time.
type Half = (ThreadRow, u64);

/// The halves of all messages.
#[derive(Default)]
pub(super) struct Messages {
    halves: BTreeMap<Channel, (Vec<Half>, Vec<Half>)>,
    members: BTreeMap<u32, Option<Vec<u64>>>,
    /// The member that stands for a location's process, by communicator and location.
    own: BTreeMap<(u32, u64), Option<u64>>,
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
        let members = self.members.entry(event.communicator);
        let members = members.or_insert_with(|| definitions.members(event.communicator));
        let group = |location: u64| definitions.locations.get(&location).map(|location| location.group);
        let own_group = group(event.location);
        let own = self.own.entry((event.communicator, event.location));
        let find = || members.iter().flatten().find(|member| group(**member) == own_group).copied();
        let own = *own.or_insert_with(find);
        let peer = members.as_ref().and_then(|members| members.get(event.peer as usize));
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
