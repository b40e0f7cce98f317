//! Collective operations of MPI: `MpiCollectiveBegin` and `MpiCollectiveEnd` in the regions of their locations.
//!
//! A communicator is a group of processes, in the order of their ranks in the job: the ranks in the communicator are not
//! recorded. Members without a trace are not in it. Operations that did not complete, and those without a kind in OTF2 (on
//! files, windows' epochs, neighbours), are regions alone.

use super::chunks::Fields;
use crate::timeline::{Section, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use taskscope_event::models::messages::FUNCTIONS;
use taskscope_execution::messages::{Participation, operation};
use taskscope_execution::{NO_TIME, ProcessIndex};
use taskscope_otf2::event;

/// Stands for the root of an operation without one.
const NO_ROOT: u32 = u32::MAX;

/// Kinds of operations in OTF2, by the names of MPI's functions without variants.
const KINDS: [(&str, u8); 30] = [
    ("barrier", 0),
    ("bcast", 1),
    ("gather", 2),
    ("gatherv", 3),
    ("scatter", 4),
    ("scatterv", 5),
    ("allgather", 6),
    ("allgatherv", 7),
    ("alltoall", 8),
    ("alltoallv", 9),
    ("alltoallw", 10),
    ("allreduce", 11),
    ("reduce", 12),
    ("reduce_scatter", 13),
    ("scan", 14),
    ("exscan", 15),
    ("reduce_scatter_block", 16),
    ("comm_create", CREATE),
    ("comm_create_from_group", CREATE),
    ("comm_create_group", CREATE),
    ("comm_dup", CREATE),
    ("comm_dup_with_info", CREATE),
    ("comm_split", CREATE),
    ("comm_split_type", CREATE),
    ("comm_free", DESTROY),
    ("comm_disconnect", DESTROY),
    ("win_create", CREATE),
    ("win_create_dynamic", CREATE),
    ("win_allocate", 21),
    ("win_allocate_shared", 21),
];
const CREATE: u8 = 17;
const DESTROY: u8 = 18;

fn kind_of(part: &Participation) -> Option<u8> {
    let function = FUNCTIONS.get(part.function as usize).filter(|_| part.completed != NO_TIME)?;
    let name = operation(function).to_ascii_lowercase();
    KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// A communicator of collective operations: its number in the archive, and its members.
pub(super) struct Communicator {
    pub number: u32,
    pub members: Vec<ProcessIndex>,
}

/// The communicators of all collective operations, by their numbers in the run.
#[derive(Default)]
pub(super) struct Collectives(BTreeMap<u64, Communicator>);

impl Collectives {
    /// The communicators, with numbers from `first` on.
    pub fn of(timeline: &Timeline<'_>, first: u32) -> Collectives {
        let execution = timeline.execution();
        let communication = &execution.communication;
        let mut members: BTreeMap<u64, BTreeSet<ProcessIndex>> = BTreeMap::new();
        for part in communication.participations.iter().filter(|part| kind_of(part).is_some()) {
            let of = members.entry(part.comm).or_insert_with(|| {
                communication
                    .members
                    .get(&part.comm)
                    .into_iter()
                    .flat_map(|of| &of.processes)
                    .copied()
                    .collect()
            });
            of.extend(execution.threads.get(part.thread.index()).map(|thread| thread.process));
            of.extend(Some(part.root).filter(|root| *root != ProcessIndex::NONE));
        }
        let rank = |process: &ProcessIndex| communication.ranks.get(&process.0).map(|rank| rank.rank);
        let rows = members.into_iter().zip(first..).map(|((comm, members), number)| {
            let mut members: Vec<ProcessIndex> = members.into_iter().collect();
            members.sort_by_key(|process| (rank(process), process.0));
            (comm, Communicator { number, members })
        });
        Collectives(rows.collect())
    }

    /// The communicators with their numbers in the run.
    pub fn communicators(&self) -> impl Iterator<Item = (u64, &Communicator)> {
        self.0.iter().map(|(comm, of)| (*comm, of))
    }

    /// The records of the begin and the end of a part; none of those that are regions alone.
    pub fn records(&self, timeline: &Timeline<'_>, section: &Section) -> Option<[Vec<u8>; 2]> {
        let part = timeline.execution().communication.participations.get(section.part? as usize)?;
        let (kind, of) = (kind_of(part)?, self.0.get(&part.comm)?);
        let root = of.members.iter().position(|member| *member == part.root);
        let end = Fields::default().byte(kind).u32(of.number).u32(root.map_or(NO_ROOT, |rank| rank as u32));
        // Received bytes are not recorded.
        let end = end.u64(section.amount).u64(0);
        Some([Fields::default().record(event::MPI_COLLECTIVE_BEGIN), end.record(event::MPI_COLLECTIVE_END)])
    }
}
