//! Messages and collective operations of MPI, for which ovni's `mpi` model has no events.
//!
//! Ranks are those of the job (of `MPI_COMM_WORLD`), for any communicator. `comm` is a number of the process,
//! which [`COMMUNICATOR`] connects to the number that all its members know; windows and files, opened by the
//! members of a communicator, have such numbers too. `post` numbers a process's sends and receive requests in
//! program order: MPI matches messages of one communicator, sender, receiver and tag in that order, so a
//! reader can pair each [`SEND`] with its [`RECEIVED`], including wildcards and completions in any order. A
//! call that may block records at its begin the awaited message ([`AWAITS`], [`AWAITS_SENT`],
//! [`AWAITS_OPERATION`]), so a call that never ends names its partner; rank [`NO_RANK`] and tag [`ANY_TAG`]
//! are wildcards there.
//!
//! All but [`CALL_SITE`] are between the begin and the end of the call that they describe.

use super::prelude::*;

pub use super::mpi_functions::FUNCTIONS;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'C';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// Stands for a rank that is not known, or that an operation does not have.
pub const NO_RANK: u32 = u32::MAX;
/// Stands for a size that is not known.
pub const UNKNOWN_BYTES: u64 = u64::MAX;
/// Stands for any tag in [`AWAITS`].
pub const ANY_TAG: i32 = -1;

/// Whether a collective operation that a call of this function begins ends in a later call: nonblocking, split and
/// prepared ones. `name` is without `MPI_`.
pub fn begins_operation(name: &str) -> bool {
    let base = name.strip_suffix("_c").unwrap_or(name);
    let after = base.strip_prefix("File_").or(base.strip_prefix("Comm_")).unwrap_or(base);
    let immediate =
        after.starts_with('i') || base.starts_with('I') && base[1..].starts_with(char::is_lowercase);
    let blocking =
        ["Init", "Init_thread", "Intercomm_create", "Intercomm_create_from_groups", "Intercomm_merge"];
    base.ends_with("_begin") || base.ends_with("_init") || immediate && !blocking.contains(&base)
}

/// Whether this function queries a state and returns immediately. `name` is without `MPI_`.
pub const fn polls(name: &str) -> bool {
    const POLLS: [&str; 12] = [
        "Test",
        "Testall",
        "Testany",
        "Testsome",
        "Iprobe",
        "Improbe",
        "Parrived",
        "Win_test",
        "Request_get_status",
        "Request_get_status_all",
        "Request_get_status_any",
        "Request_get_status_some",
    ];
    let mut row = 0;
    while row < POLLS.len() {
        if equal(POLLS[row].as_bytes(), name.as_bytes()) {
            return true;
        }
        row += 1;
    }
    false
}

/// The number of an MPI function, by its name without `MPI_`.
///
/// # Panics
/// If there is no such function.
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
    JOB = b"CJr" plain (job: u64, rank: u32, ranks: u32) Rule, "is rank {rank} of {ranks} in job {job}";
    COMMUNICATOR = b"CCn" jumbo (id: u64, comm: u32, rank: u32, size: u32) Rule, "is rank {rank} of {size} in communicator {comm}, known to its members as {id}";
    CALL_SITE = b"CFs" plain (function: u32, site: u32) Rule, "sets the call site of MPI function {function} to {site}";
    CALL_BEGIN = b"CF[" plain (function: u32) Rule, "begins MPI function {function}, for which the mpi model has no event";
    CALL_END = b"CF]" plain (function: u32) Rule, "ends MPI function {function}";
    SEND = b"CMs" jumbo (post: u64, bytes: u64, comm: u32, peer: u32, tag: i32) Rule, "sends {bytes} bytes to rank {peer} in communicator {comm} with tag {tag}, as its post {post}";
    SENT = b"CMe" plain (post: u64) Rule, "knows that the data sent as post {post} may be overwritten";
    AWAITS_SENT = b"CMb" plain (post: u64) Rule, "waits until the data sent as post {post} may be overwritten";
    AWAITS = b"CMw" plain (comm: u32, peer: u32, tag: i32) Rule, "waits for a message from rank {peer} in communicator {comm} with tag {tag}";
    RECEIVED = b"CMr" jumbo (post: u64, age: u64, bytes: u64, comm: u32, peer: u32, tag: i32) Rule, "has received {bytes} bytes from rank {peer} in communicator {comm} with tag {tag}, posted {age} ns ago as post {post}";
    COLLECTIVE = b"CGb" jumbo (sequence: u64, bytes: u64, comm: u32, root: u32, function: u32) Rule, "takes part in operation {sequence} of communicator {comm}: MPI function {function}, root {root}, {bytes} bytes of its own";
    COLLECTIVE_COMPLETED = b"CGe" plain (sequence: u64, comm: u32) Rule, "has completed operation {sequence} of communicator {comm}, which was nonblocking";
    AWAITS_OPERATION = b"CGw" plain (sequence: u64, comm: u32) Rule, "waits for the completion of operation {sequence} of communicator {comm}";
    CONCERNS = b"CPc" plain (bytes: u64, comm: u32, peer: u32) Rule, "accesses {bytes} bytes of rank {peer} in the window, file or port {comm}";
    PROBED = b"CPp" plain (comm: u32, peer: u32, tag: i32) Rule, "has found a message from rank {peer} in communicator {comm} with tag {tag}, not received yet";
    CLOCK = b"CKo" jumbo (offset: i64, error: u64, reference: u32) Rule, "measures that {offset} ns must be added to its clock to get that of rank {reference}, with an error of at most {error} ns";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::mpi;

    #[test]
    fn operations_that_end_later_are_known_by_name() {
        for name in [
            "Ibarrier",
            "Ineighbor_alltoall_c",
            "Comm_idup",
            "File_iread_all",
            "Barrier_init",
            "File_read_all_begin",
        ] {
            assert!(begins_operation(name), "{name}");
        }
        for name in
            ["Init", "Barrier", "Intercomm_merge", "File_read_all", "Comm_dup", "File_read_all_end", "Scan"]
        {
            assert!(!begins_operation(name), "{name}");
        }
    }

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
