//! Numbers of states, event types and MPI functions: those of Extrae and Nanos++, which published configurations know.
//!
//! Sources: Extrae's manual and its list of MPI events; Nanos++'s instrumentation (`taskscope_event::models::instrument`).
//! Types from [`OWN`] on are taskscope's.

use crate::timeline::{Code, LaneKind};
use taskscope_execution::{Group, State};

/// First type of taskscope's own.
const OWN: u32 = 9_500_000;

/// An event type that a row has a value of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub(super) enum Type {
    Application,
    NanosState,
    NanosTask,
    NanosFunction,
    NanosPlace,
    Region,
    Construct,
    ConstructPlace,
    TaskFunction,
    TaskPlace,
    PointToPoint,
    Collective,
    OtherMpi,
    OneSided,
    MpiFile,
    State,
    Code,
    Object,
    RegionNumber,
    Amount,
}

/// Number of types.
pub(super) const TYPES: usize = 20;

impl Type {
    pub const ALL: [Type; TYPES] = [
        Type::Application,
        Type::NanosState,
        Type::NanosTask,
        Type::NanosFunction,
        Type::NanosPlace,
        Type::Region,
        Type::Construct,
        Type::ConstructPlace,
        Type::TaskFunction,
        Type::TaskPlace,
        Type::PointToPoint,
        Type::Collective,
        Type::OtherMpi,
        Type::OneSided,
        Type::MpiFile,
        Type::State,
        Type::Code,
        Type::Object,
        Type::RegionNumber,
        Type::Amount,
    ];

    /// Its number in the file, and its label.
    pub const fn number_and_label(self) -> (u32, &'static str) {
        match self {
            Type::Application => (40_000_001, "Application"),
            Type::NanosState => (9_000_000, "Thread state"),
            Type::NanosTask => (9_200_002, "Work Descriptor id:"),
            Type::NanosFunction => (9_200_011, "User Function Name"),
            Type::NanosPlace => (9_200_021, "User Function Location"),
            Type::Region => (60_000_001, "Parallel (OMP)"),
            Type::Construct => (60_000_018, "Executed OpenMP parallel function"),
            Type::ConstructPlace => (60_000_118, "Executed OpenMP parallel function line and file"),
            Type::TaskFunction => (60_000_023, "Executed OpenMP task function"),
            Type::TaskPlace => (60_000_123, "Executed OpenMP task function line and file"),
            Type::PointToPoint => (50_000_001, "MPI Point-to-point"),
            Type::Collective => (50_000_002, "MPI Collective Comm"),
            Type::OtherMpi => (50_000_003, "MPI Other"),
            Type::OneSided => (50_000_004, "MPI One-sided"),
            Type::MpiFile => (50_000_005, "MPI I/O"),
            Type::State => (OWN + 1, "state (taskscope)"),
            Type::Code => (OWN + 2, "code (taskscope)"),
            Type::Object => (OWN + 3, "awaited object (taskscope)"),
            Type::RegionNumber => (OWN + 4, "number of the region (taskscope)"),
            Type::Amount => (OWN + 5, "bytes of the operation (taskscope)"),
        }
    }

    /// Its number in the file.
    pub const fn number(self) -> u32 {
        self.number_and_label().0
    }
}

/// Extrae's value of a parallel region; 1 is a loop, 2 are sections.
pub(super) const REGION: u64 = 3;
/// The type of a counter.
pub(super) const COUNTERS: u32 = OWN + 100;
/// Types of intervals beside the sections of a thread, one for each of its lanes, and their labels: uncertain intervals,
/// waits for other threads, collective operations.
const BESIDE: [(u32, &str); 3] = [
    (OWN + 1000, "uncertain"),
    (OWN + 100_000, "wait for a thread"),
    (OWN + 200_000, "collective operation"),
];

/// The type of a lane beside a thread, and its label.
pub(super) fn beside(kind: LaneKind) -> Option<(u32, String)> {
    let (row, lane) = match kind {
        LaneKind::Doubts(_, lane) => (0, lane),
        LaneKind::Waits(_, lane) => (1, lane),
        LaneKind::Collectives(_, lane) => (2, lane),
        _ => return None,
    };
    let (number, label) = BESIDE[row];
    let label = if lane == 0 { label.to_owned() } else { format!("{label}, lane {}", lane + 1) };
    Some((number + lane, label))
}

/// Paraver's state records: number, label, colour.
pub(super) const STATES: [(u32, &str, [u8; 3]); 16] = [
    (0, "Idle", [117, 195, 255]),
    (1, "Running", [0, 0, 255]),
    (2, "Not created", [255, 255, 255]),
    (3, "Waiting a message", [255, 0, 0]),
    (4, "Blocking Send", [255, 0, 174]),
    (5, "Synchronization", [179, 0, 0]),
    (6, "Test/Probe", [0, 255, 0]),
    (7, "Scheduling and Fork/Join", [255, 255, 0]),
    (8, "Wait/WaitAll", [235, 0, 0]),
    (9, "Blocked", [0, 162, 0]),
    (10, "Immediate Send", [255, 0, 255]),
    (11, "Immediate Receive", [100, 100, 177]),
    (12, "I/O", [172, 174, 41]),
    (13, "Group Communication", [255, 144, 26]),
    (14, "Tracing Disabled", [2, 255, 177]),
    (15, "Others", [192, 224, 0]),
];
/// A state record of a device.
pub(super) const MEMORY_TRANSFER: (u32, &str, [u8; 3]) = (17, "Memory transfer", [255, 0, 96]);

/// The state record of a section.
pub(super) fn state_record(code: &Code) -> u32 {
    let Some(state) = code.state else {
        return match code.kind.as_str() {
            "kernel" => 1,
            "synchronisation" => 5,
            "copy-in" | "copy-out" | "copy" | "fill" | "map" => MEMORY_TRANSFER.0,
            _ => 15,
        };
    };
    match state {
        State::Communication => mpi_function(code).map_or(3, |function| match class_of(function) {
            Type::Collective => 13,
            Type::PointToPoint if function.contains("Wait") => 8,
            Type::MpiFile => 12,
            Type::PointToPoint | Type::OneSided => 3,
            _ => 15,
        }),
        State::NotStarted | State::Ended => 2,
        _ => match state.group() {
            Group::Useful => 1,
            Group::Runtime => 7,
            Group::Sync | Group::Mutex => 5,
            Group::Device => 8,
            Group::Idle => 0,
            Group::Blocked => 9,
            Group::Unknown => 14,
            Group::Start | Group::Off => 15,
        },
    }
}

/// Nanos++'s state of a section.
pub(super) fn nanos_state(state: State) -> u64 {
    match state {
        State::TaskCreation => 10,
        State::Scheduling => 9,
        State::Taskyield => 13,
        State::Communication => 11,
        State::NotStarted => 0,
        _ => match state.group() {
            Group::Useful => 7,
            Group::Runtime => 6,
            Group::Sync | Group::Device => 8,
            Group::Mutex => 14,
            Group::Idle => 5,
            Group::Start => 2,
            Group::Off | Group::Blocked | Group::Unknown => 1,
        },
    }
}

/// Nanos++'s domain of an arrow, which is the tag of its communication.
pub(super) const fn tag(kind: crate::timeline::ArrowKind) -> u32 {
    use crate::timeline::ArrowKind;
    match kind {
        ArrowKind::Creation => 0,
        ArrowKind::Dependence => 1,
        ArrowKind::Message => 3,
        ArrowKind::Submission => 6,
        // Nanos++ has no domain of this meaning.
        ArrowKind::Wake => 7,
    }
}

/// The function of MPI that a section of communication is in, by its name.
pub(super) fn mpi_function(code: &Code) -> Option<&str> {
    if code.state != Some(State::Communication) && code.state != Some(State::MpiStart) {
        return None;
    }
    let name = &code.name[code.name.find("MPI_")?..];
    let end = name.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    Some(&name[..end])
}

/// Extrae's numbers of functions.
const FUNCTIONS: [(&str, u64); 53] = [
    ("Send", 1),
    ("Recv", 2),
    ("Isend", 3),
    ("Irecv", 4),
    ("Wait", 5),
    ("Waitall", 6),
    ("Bcast", 7),
    ("Barrier", 8),
    ("Reduce", 9),
    ("Allreduce", 10),
    ("Alltoall", 11),
    ("Alltoallv", 12),
    ("Gather", 13),
    ("Gatherv", 14),
    ("Scatter", 15),
    ("Scatterv", 16),
    ("Allgather", 17),
    ("Allgatherv", 18),
    ("Comm_create", 21),
    ("Comm_dup", 22),
    ("Comm_split", 23),
    ("Comm_free", 25),
    ("Scan", 30),
    ("Init", 31),
    ("Finalize", 32),
    ("Bsend", 33),
    ("Ssend", 34),
    ("Rsend", 35),
    ("Ibsend", 36),
    ("Issend", 37),
    ("Irsend", 38),
    ("Test", 39),
    ("Cancel", 40),
    ("Sendrecv", 41),
    ("Sendrecv_replace", 42),
    ("Waitany", 59),
    ("Waitsome", 60),
    ("Probe", 61),
    ("Iprobe", 62),
    ("Win_create", 63),
    ("Win_free", 64),
    ("Put", 65),
    ("Get", 66),
    ("Accumulate", 67),
    ("Win_fence", 68),
    ("Reduce_scatter", 80),
    ("Start", 123),
    ("Startall", 124),
    ("Testall", 125),
    ("Testany", 126),
    ("Testsome", 128),
    ("Init_thread", 140),
    ("Request_get_status", 154),
];

/// Extrae's number of a function, if it is one of the common ones.
pub(super) fn function_number(function: &str) -> Option<u64> {
    let name = function.strip_prefix("MPI_")?;
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The class of a function, which is the type of its events.
pub(super) fn class_of(function: &str) -> Type {
    let name = function.strip_prefix("MPI_").unwrap_or(function);
    // A collective function may return before it is done: `Ibcast`.
    let blocking = name.strip_prefix('I').map(|rest| {
        let mut letters = rest.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    });
    const COLLECTIVE: [&str; 10] = [
        "Bcast",
        "Barrier",
        "Reduce",
        "Allreduce",
        "Alltoall",
        "Gather",
        "Scatter",
        "Allgather",
        "Scan",
        "Exscan",
    ];
    let is_collective = |name: &str| {
        COLLECTIVE.iter().any(|known| {
            name.strip_prefix(known)
                .is_some_and(|rest| ["", "v", "w", "_scatter", "_scatter_block"].contains(&rest))
        }) || name.starts_with("Neighbor_")
    };
    let starts = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if is_collective(name) || blocking.as_deref().is_some_and(is_collective) {
        Type::Collective
    } else if starts(&["File_"]) {
        Type::MpiFile
    } else if starts(&[
        "Win_",
        "Put",
        "Get_acc",
        "Accumulate",
        "Rput",
        "Rget",
        "Raccumulate",
        "Fetch_and",
        "Compare_and",
    ]) || name == "Get"
    {
        Type::OneSided
    } else if name.to_ascii_lowercase().contains("send")
        || name.to_ascii_lowercase().contains("recv")
        || starts(&["Wait", "Test", "Probe", "Iprobe", "Mprobe", "Improbe", "Start", "Request_get_status"])
    {
        Type::PointToPoint
    } else {
        Type::OtherMpi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_mpi_have_their_classes() {
        for (function, class) in [
            ("MPI_Send", Type::PointToPoint),
            ("MPI_Imrecv", Type::PointToPoint),
            ("MPI_Sendrecv_replace", Type::PointToPoint),
            ("MPI_Waitall", Type::PointToPoint),
            ("MPI_Request_get_status", Type::PointToPoint),
            ("MPI_Allreduce", Type::Collective),
            ("MPI_Ialltoallv", Type::Collective),
            ("MPI_Reduce_scatter_block", Type::Collective),
            ("MPI_Barrier", Type::Collective),
            ("MPI_Init", Type::OtherMpi),
            ("MPI_Comm_split", Type::OtherMpi),
            ("MPI_Get", Type::OneSided),
            ("MPI_Get_count", Type::OtherMpi),
            ("MPI_Win_fence", Type::OneSided),
            ("MPI_File_write_all", Type::MpiFile),
        ] {
            assert_eq!(class_of(function), class, "{function}");
        }
    }

    #[test]
    fn types_are_in_the_order_of_their_numbers() {
        for (place, ty) in Type::ALL.into_iter().enumerate() {
            assert_eq!(ty as usize, place);
        }
        let numbers: std::collections::BTreeSet<u32> = Type::ALL.into_iter().map(Type::number).collect();
        assert_eq!(numbers.len(), TYPES);
    }
}
