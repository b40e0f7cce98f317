//! The wrapped functions, with their effects, by the positions of their arguments in C.
//!
//! In Fortran the same arguments are references, followed by the error code and by the lengths of strings.
//! The rows are in `functions/table.rs`, which is made from the MPI Forum's list (`tests/function_list.rs`).

use taskscope_event::models::messages::polls;

/// Positions of a message's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub count: u8,
    pub datatype: u8,
    pub peer: u8,
    pub tag: u8,
    pub comm: u8,
}

/// Source of the amount of a function's own data.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    None,
    /// Not found out: arrays of datatypes, counts per neighbour.
    Unknown,
    /// Count and datatype, which follows.
    Count(u8),
    /// A count; if the buffer at 0 is "in place", the second one.
    CountOr(u8, u8),
    /// An array of counts, one per member, and the position of the datatype.
    Counts(u8, u8),
    /// One value of the datatype.
    OneOf(u8),
}

/// The object with the members that a call concerns.
#[derive(Clone, Copy, Debug)]
pub enum On {
    Comm(u8),
    Window(u8),
    File(u8),
    /// By reference; freed by the call.
    CommFreed(u8),
    WindowFreed(u8),
    FileClosed(u8),
}

/// The object that a call makes for its members.
#[derive(Clone, Copy, Debug)]
pub enum Makes {
    Nothing,
    Comm(u8),
    Window(u8),
    File(u8),
}

/// How a call names the partitions that are ready.
#[derive(Clone, Copy, Debug)]
pub enum Partitions {
    One,
    /// The first and the last.
    Range(u8, u8),
    /// The number of them.
    List(u8),
}

/// Effect of a function besides taking time.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    Nothing,
    Init,
    Finalize,
    /// With the position of the session.
    StartSession(u8),
    Send(Message),
    StartSend(Message, u8),
    /// With the position of the status.
    Receive(Message, u8),
    StartReceive(Message, u8),
    /// Send, receive, and the position of the status.
    Exchange(Message, Message, u8),
    StartExchange(Message, Message, u8),
    PrepareSend(Message, u8),
    PrepareReceive(Message, u8),
    /// With the number of partitions, and the request.
    PreparePartitionedSend(Message, u8, u8),
    /// Partitions, and the request, which is by value.
    Ready(Partitions, u8),
    Start(u8),
    /// Count and array.
    StartAll(u8, u8),
    /// Request, flag (255: none), status.
    CompleteOne(u8, u8, u8),
    /// Count, requests, flag, statuses.
    CompleteAll(u8, u8, u8, u8),
    /// Count, requests, index, flag, status.
    CompleteAny(u8, u8, u8, u8, u8),
    /// Count, requests, number of completed ones, their indices, statuses.
    CompleteSome(u8, u8, u8, u8, u8),
    FreeRequest(u8),
    /// Communicator, flag, status.
    Probe(u8, u8, u8),
    /// Communicator, flag, matched message, status.
    MatchProbe(u8, u8, u8, u8),
    /// Matched message, status.
    MatchedReceive(u8, u8),
    /// Matched message, request.
    StartMatchedReceive(u8, u8),
    /// Members, root, amount, request (255 if there is none), new object.
    Collective(On, u8, Amount, u8, Makes),
    /// Communicator, root, amount, request.
    PrepareCollective(u8, u8, Amount, u8),
    /// File, amount: begins a split collective operation.
    BeginSplit(u8, Amount),
    /// File: ends it.
    EndSplit(u8),
    /// Parent (255: none), group (255: none), and new communicator; all its members take part.
    MeetOnNew(u8, u8, u8),
    /// Name of a port, communicator, new communicator.
    Meet(u8, u8, u8),
    /// Window or file, rank in it (255: none), amount.
    Access(On, u8, Amount),
    /// Window, group of ranks.
    Group(u8, u8),
}

/// Position of an absent argument.
pub const ABSENT: u8 = 255;
/// Symbols that a function can have.
pub const VARIANTS: usize = 8;

/// One wrapped function.
#[derive(Debug)]
pub struct Row {
    /// Its name without `MPI_`.
    pub name: &'static str,
    /// Number of arguments in C.
    pub arity: u8,
    /// String arguments: Fortran adds their lengths.
    pub strings: u8,
    /// Whether counts have 64 bits.
    pub large: bool,
    /// Symbols by variant.
    pub symbols: [&'static str; VARIANTS],
    pub does: Does,
    /// In `messages::FUNCTIONS`.
    pub number: u32,
    /// Whether it returns immediately, without waiting for a completion.
    pub polls: bool,
}

const fn message(count: u8, datatype: u8, peer: u8, tag: u8, comm: u8) -> Message {
    Message { count, datatype, peer, tag, comm }
}

/// Evaluated at compile time, so an index out of bounds is a compile error.
#[expect(clippy::indexing_slicing)]
const fn by_variant<const N: usize>(symbols: [(usize, &'static str); N]) -> [&'static str; VARIANTS] {
    let mut all = [""; VARIANTS];
    let mut at = 0;
    while at < N {
        all[symbols[at].0] = symbols[at].1;
        at += 1;
    }
    all
}

mod table;
pub(crate) use table::with_functions;

macro_rules! rows {
    ($( $row:literal $number:literal $name:ident $arity:literal $strings:literal $large:literal
        [$( $variant:literal $symbol:literal )*] $does:expr; )*) => {
        /// All functions.
        pub static FUNCTIONS: &[Row] = &[$( Row {
            name: stringify!($name),
            arity: $arity,
            strings: $strings,
            large: $large,
            symbols: by_variant([$( ($variant, $symbol) ),*]),
            does: $does,
            number: $number,
            polls: polls(stringify!($name)),
        } ),*];
    };
}
with_functions!(rows);

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::messages;

    #[test]
    fn numbers_are_those_of_events_and_arguments_fit() {
        for row in FUNCTIONS {
            assert_eq!(messages::FUNCTIONS[row.number as usize], row.name);
            let most = usize::from(row.arity) + 1 + usize::from(row.strings);
            assert!(most <= crate::library::WORDS, "{}", row.name);
        }
    }
}
