//! Numbers of the file format OTF2 (Open Trace Format 2, as libotf2 3 writes it), for its reader and its writer.
//!
//! A file is a sequence of chunks, each of a header and records; the first byte of a record is its kind. The kinds of global
//! definitions, of a location's definitions and of events are three lists of their own: [`definition`],
//! [`local_definition`], [`event`].

#![forbid(unsafe_code)]

/// First byte of a chunk.
pub const CHUNK_HEADER: u8 = 0x03;
/// Byte order of a chunk with the lowest byte of a number first.
pub const LITTLE_ENDIAN: u8 = 0x42;
/// Bytes before the first record of a chunk: the two above, the numbers of its first and last event.
pub const CHUNK_HEADER_BYTES: usize = 18;
/// Kind of a record behind which a chunk has no more.
pub const END_OF_CHUNK: u8 = 0x01;
/// Kind of a record behind which a file has no more.
pub const END_OF_FILE: u8 = 0x02;
/// The mark of an anchor, behind its byte order.
pub const MAGIC: &[u8; 5] = b"OTF2\0";

/// Kinds of global definitions.
pub mod definition {
    /// Ticks a second, first tick, length, UTC.
    pub const CLOCK: u8 = 5;
    /// A paradigm, with its name and class.
    pub const PARADIGM: u8 = 6;
    /// A text.
    pub const STRING: u8 = 10;
    /// A node of the system's tree.
    pub const NODE: u8 = 12;
    /// A group of locations: a process.
    pub const LOCATION_GROUP: u8 = 13;
    /// A location: a thread, a stream, a recorder of metrics.
    pub const LOCATION: u8 = 14;
    /// A region of the source.
    pub const REGION: u8 = 15;
    /// A group of locations or of members of another group.
    pub const GROUP: u8 = 18;
    /// A metric.
    pub const METRIC_MEMBER: u8 = 19;
    /// Metrics that are recorded together.
    pub const METRIC_CLASS: u8 = 20;
    /// A class of metrics of a part of the system.
    pub const METRIC_INSTANCE: u8 = 21;
    /// A communicator.
    pub const COMMUNICATOR: u8 = 22;
    /// A line of a file.
    pub const SOURCE_LOCATION: u8 = 33;
    /// A region with its callers.
    pub const CALLING_CONTEXT: u8 = 34;
    /// The source of samples.
    pub const INTERRUPT_GENERATOR: u8 = 36;
}

/// Kinds of a location's own definitions.
pub mod local_definition {
    /// Numbers of the location's own definitions in the global ones.
    pub const MAPPING: u8 = 5;
    /// The correction of the clock at a tick.
    pub const CLOCK_OFFSET: u8 = 6;
}

/// Content of a mapping.
pub mod mapping {
    /// Regions.
    pub const REGIONS: u8 = 3;
    /// Communicators.
    pub const COMMUNICATORS: u8 = 6;
}

/// Kinds of records of a location's events.
pub mod event {
    /// The time of the records behind it: 8 bytes.
    pub const TIMESTAMP: u8 = 5;
    /// Lower kinds are of the file itself: times, attributes.
    pub const FIRST: u8 = 10;
    /// A region begins.
    pub const ENTER: u8 = 12;
    /// A region ends.
    pub const LEAVE: u8 = 13;
    /// A blocking send.
    pub const MPI_SEND: u8 = 14;
    /// The begin of a send.
    pub const MPI_ISEND: u8 = 15;
    /// The end of a send that was begun.
    pub const MPI_ISEND_COMPLETE: u8 = 16;
    /// The begin of a receive.
    pub const MPI_IRECEIVE_REQUEST: u8 = 17;
    /// A blocking receive.
    pub const MPI_RECEIVE: u8 = 18;
    /// The end of a receive that was begun.
    pub const MPI_IRECEIVE: u8 = 19;
    /// A process begins its part in a collective operation.
    pub const MPI_COLLECTIVE_BEGIN: u8 = 22;
    /// A process ends its part: the operation, communicator, root, sizes.
    pub const MPI_COLLECTIVE_END: u8 = 23;
    /// Values of metrics.
    pub const METRIC: u8 = 31;
    /// A task is created.
    pub const TASK_CREATE: u8 = 59;
    /// The location takes up another task.
    pub const TASK_SWITCH: u8 = 60;
    /// A task ends.
    pub const TASK_COMPLETE: u8 = 61;
    /// A sample of a calling context.
    pub const SAMPLE: u8 = 68;
    /// The program begins.
    pub const PROGRAM_BEGIN: u8 = 83;
    /// The program ends.
    pub const PROGRAM_END: u8 = 84;
}

/// Types of locations.
pub mod location {
    /// A thread of a CPU.
    pub const THREAD: u8 = 1;
    /// A stream of an accelerator.
    pub const STREAM: u8 = 2;
    /// A recorder of metrics.
    pub const METRIC: u8 = 3;
}

/// Types of groups.
pub mod group {
    /// Locations of a paradigm, in the order of their ranks.
    pub const COMM_LOCATIONS: u8 = 4;
    /// Members of the group of locations.
    pub const COMM_GROUP: u8 = 5;
}

/// Paradigms of regions and groups.
pub mod paradigm {
    /// The program's own code.
    pub const USER: u8 = 1;
    /// OpenMP.
    pub const OPENMP: u8 = 3;
    /// MPI.
    pub const MPI: u8 = 4;
    /// The recorder's own work.
    pub const MEASUREMENT: u8 = 6;
    /// Threads of POSIX.
    pub const PTHREAD: u8 = 7;
    /// OpenCL.
    pub const OPENCL: u8 = 19;
}

/// Roles of regions.
pub mod role {
    /// Code.
    pub const CODE: u8 = 4;
    /// A barrier of the program.
    pub const BARRIER: u8 = 15;
    /// A barrier at the end of a construct.
    pub const IMPLICIT_BARRIER: u8 = 16;
    /// The creation of a task.
    pub const TASK_CREATE: u8 = 21;
    /// Waiting for tasks.
    pub const TASK_WAIT: u8 = 22;
    /// Collective communication, from one member to all.
    pub const FIRST_COLLECTIVE: u8 = 23;
    /// The last of the roles of collective communication.
    pub const LAST_COLLECTIVE: u8 = 26;
    /// Messages.
    pub const POINT_TO_POINT: u8 = 28;
    /// Access to another process's memory.
    pub const RMA: u8 = 29;
    /// The creation of a thread.
    pub const THREAD_CREATE: u8 = 32;
    /// Waiting for a thread.
    pub const THREAD_WAIT: u8 = 33;
}
