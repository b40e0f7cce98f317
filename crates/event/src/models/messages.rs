//! Messages and collective operations of MPI, for which ovni's `mpi` model has no events.
//!
//! Ranks are those of the job (of `MPI_COMM_WORLD`), whatever communicator was used. `comm` is a
//! number of the process, which [`COMMUNICATOR`] connects to the number that all its members know.
//! `post` numbers what a process sends and asks to receive, in the order in which it did: MPI
//! matches messages of one communicator, sender, receiver and tag in that order, so that a reader
//! can pair each [`SEND`] with its [`RECEIVED`], wildcards and completions in any order included.
//!
//! All but [`CALL_SITE`] lie between the begin and the end of the call that they tell of.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'C';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// Stands for a rank that is not known, or that an operation does not have.
pub const NO_RANK: u32 = u32::MAX;
/// Stands for a size that is not known.
pub const UNKNOWN_BYTES: u64 = u64::MAX;

/// MPI functions by the numbers in events; the name without `MPI_`. New ones come at the end.
pub const FUNCTIONS: &[&str] = &[
    "Init",
    "Init_thread",
    "Finalize",
    "Abort",
    "Send",
    "Bsend",
    "Ssend",
    "Rsend",
    "Isend",
    "Ibsend",
    "Issend",
    "Irsend",
    "Recv",
    "Irecv",
    "Sendrecv",
    "Sendrecv_replace",
    "Isendrecv",
    "Isendrecv_replace",
    "Send_init",
    "Bsend_init",
    "Ssend_init",
    "Rsend_init",
    "Recv_init",
    "Start",
    "Startall",
    "Wait",
    "Waitall",
    "Waitany",
    "Waitsome",
    "Test",
    "Testall",
    "Testany",
    "Testsome",
    "Request_free",
    "Cancel",
    "Probe",
    "Iprobe",
    "Mprobe",
    "Improbe",
    "Mrecv",
    "Imrecv",
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Exscan",
    "Ibarrier",
    "Ibcast",
    "Igather",
    "Igatherv",
    "Iscatter",
    "Iscatterv",
    "Iallgather",
    "Iallgatherv",
    "Ialltoall",
    "Ialltoallv",
    "Ialltoallw",
    "Ireduce",
    "Iallreduce",
    "Ireduce_scatter",
    "Ireduce_scatter_block",
    "Iscan",
    "Iexscan",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_split",
    "Comm_split_type",
    "Comm_create",
    "Comm_create_group",
    "Comm_free",
    "Comm_disconnect",
    "Cart_create",
    "Cart_sub",
    "Graph_create",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Intercomm_create",
    "Intercomm_merge",
    "Put",
    "Get",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
    "Win_fence",
    "Win_lock",
    "Win_unlock",
    "Win_lock_all",
    "Win_unlock_all",
    "Win_flush",
    "Win_flush_all",
    "Win_post",
    "Win_start",
    "Win_complete",
    "Win_wait",
    "Win_free",
    "File_read_at",
    "File_read_at_all",
    "File_write_at",
    "File_write_at_all",
    "File_read_all",
    "File_write_all",
    "File_read",
    "File_write",
    "File_sync",
    "File_close",
];

/// The number of an MPI function, by its name without `MPI_`.
pub const fn function_number(name: &str) -> u32 {
    let mut number = 0;
    while number < FUNCTIONS.len() {
        if equal(FUNCTIONS[number].as_bytes(), name.as_bytes()) {
            return number as u32;
        }
        number += 1;
    }
    panic!("the function has no number")
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

events! {
    JOB = b"CJr" plain (job: u64, rank: u32, ranks: u32) Rule, "is of rank {rank} of {ranks} in job {job}";
    COMMUNICATOR = b"CCn" jumbo (id: u64, comm: u32, rank: u32, size: u32) Rule, "is rank {rank} of {size} in communicator {comm}, known to its members as {id}";
    CALL_SITE = b"CFs" plain (function: u32, site: u32) Rule, "calls MPI function {function} at site {site} from now on";
    CALL_BEGIN = b"CF[" plain (function: u32) Rule, "begins MPI function {function}, for which the mpi model has no event";
    CALL_END = b"CF]" plain (function: u32) Rule, "ends MPI function {function}";
    SEND = b"CMs" jumbo (post: u64, bytes: u64, comm: u32, peer: u32, tag: i32) Rule, "sends {bytes} bytes to rank {peer} in communicator {comm} with tag {tag}, as its post {post}";
    SENT = b"CMe" plain (post: u64) Rule, "knows that what it sent as post {post} may be overwritten";
    RECEIVED = b"CMr" jumbo (post: u64, age: u64, bytes: u64, comm: u32, peer: u32, tag: i32) Rule, "has received {bytes} bytes from rank {peer} in communicator {comm} with tag {tag}, asked for {age} ns ago as post {post}";
    COLLECTIVE = b"CGb" jumbo (sequence: u64, bytes: u64, comm: u32, root: u32, function: u32) Rule, "takes part in operation {sequence} of communicator {comm}: MPI function {function}, root {root}, {bytes} bytes of its own";
    COLLECTIVE_COMPLETED = b"CGe" plain (sequence: u64, comm: u32) Rule, "has completed operation {sequence} of communicator {comm}, which was nonblocking";
    CLOCK = b"CKo" jumbo (offset: i64, error: u64, reference: u32) Rule, "measures that {offset} ns must be added to its clock to have that of rank {reference}, at most {error} ns off";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::mpi;

    #[test]
    fn functions_have_one_number_each_and_all_of_ovnis_are_among_them() {
        for (number, name) in FUNCTIONS.iter().enumerate() {
            assert_eq!(function_number(name), number as u32, "{name} twice");
        }
        for event in mpi::EVENTS {
            if let Push(_, _, label) = event.effect {
                assert!(FUNCTIONS.contains(&label.trim_start_matches("MPI_")), "{label}");
            }
        }
    }
}
