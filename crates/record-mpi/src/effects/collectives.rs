//! Effects of collective calls: operations of all members, and the objects that they make.

use std::sync::Arc;

use taskscope_event::models::messages::{self, UNKNOWN_BYTES};
use taskscope_ompt::shared::Moment;
use taskscope_record::launcher::{Launched, launched};

use super::events::{record_access, record_collective, record_completed};
use super::{Flight, Operation};
use crate::arguments::Arguments;
use crate::clocks::Job;
use crate::communicators::{self, Communicator, Hash};
use crate::functions::{ABSENT, Amount, Makes, On};
use crate::handle_kind::Kind;
use crate::language::Language;
use crate::library::Library;

/// Maximum members of a group that are recorded at a call; of a larger one the missing ones are not known.
const MAX_NAMED: usize = 64;

impl Operation {
    /// The members of an object that an argument names.
    pub(super) unsafe fn members(
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

    pub(super) unsafe fn root(&self, arguments: &Arguments, root: u8, comm: &Communicator) -> u32 {
        // SAFETY: by contract.
        if root == ABSENT { messages::NO_RANK } else { comm.peer(unsafe { arguments.int(root) }) }
    }

    pub(super) unsafe fn amount(&self, arguments: &Arguments, amount: Amount, comm: &Communicator) -> u64 {
        let is_in_place =
            |at: u8| arguments.language == Language::C && arguments.word(at) == self.library.in_place();
        // SAFETY: by contract.
        unsafe {
            match amount {
                Amount::None => 0,
                Amount::Unknown => UNKNOWN_BYTES,
                Amount::CountOr(_, count) if is_in_place(0) => self.bytes(arguments, count, count + 1),
                // Count and datatype of a buffer that is not there may be anything.
                Amount::Count(count) if is_in_place(count.wrapping_sub(1)) => UNKNOWN_BYTES,
                Amount::Count(count) | Amount::CountOr(count, _) => self.bytes(arguments, count, count + 1),
                Amount::OneOf(datatype) => {
                    let datatype = arguments.handle(self.library, datatype, Kind::Datatype);
                    self.library.type_bytes(datatype).unwrap_or(UNKNOWN_BYTES)
                }
                Amount::Counts(..) if is_in_place(0) && arguments.word(1) == 0 => 0,
                Amount::Counts(counts, datatype) => {
                    let datatype = arguments.handle(self.library, datatype, Kind::Datatype);
                    // Without a datatype there may be no counts either.
                    let Some(bytes) = self.library.type_bytes(datatype) else { return UNKNOWN_BYTES };
                    let sum = (0..comm.peers())
                        .map(|peer| u64::try_from(arguments.count_in(counts, peer)).unwrap_or(0))
                        .fold(0, u64::saturating_add);
                    bytes.saturating_mul(sum)
                }
            }
        }
    }

    pub(super) unsafe fn collective(
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

    /// Records the members of a group that make a communicator, with which a call of theirs would name those that are missing.
    pub(super) fn name_members(&self, group: usize, parent: Option<&Communicator>, moment: &mut Moment<'_>) {
        // Asked first: to find the ranks of a large group, MPI may compare each member with all ranks.
        if self.library.size_of_group(group) > MAX_NAMED {
            return;
        }
        let ranks = self.library.ranks_of_group(group);
        for ranks in ranks.into_iter().filter(|ranks| !ranks.contains(&messages::NO_RANK)) {
            let meeting = communicators::meeting(parent, &ranks, moment);
            ranks.iter().for_each(|rank| record_access(0, &meeting, *rank, moment));
        }
    }

    /// Records that the process has reached the start of the job, if its launcher gave it its rank and their number.
    pub(super) fn start_job(&self, moment: &mut Moment<'_>) {
        let Some(Launched { rank, ranks: Some(ranks), job, launcher }) = launched() else { return };
        // The library's own number of the job is known at the end of the call.
        let name = [launcher, job.as_deref().unwrap_or("")].join("/");
        let number = Hash::of(name.bytes().map(u64::from).chain([u64::from(ranks)])).0;
        record_rank(Job { number, rank, ranks }, moment);
        let start = communicators::start_of_job(number, (rank, ranks), moment);
        record_collective(&start, start.next_operation(), messages::NO_RANK, 0, self.row.number, moment);
    }

    /// Stores the object that a collective call has created.
    pub(super) unsafe fn made(
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
}

/// Records the process's rank in a job.
pub fn record_rank(job: Job, moment: &mut Moment<'_>) {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&job.number.to_le_bytes());
    payload[8..12].copy_from_slice(&job.rank.to_le_bytes());
    payload[12..].copy_from_slice(&job.ranks.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::JOB, payload);
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
