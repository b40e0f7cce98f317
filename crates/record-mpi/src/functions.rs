//! The functions that are wrapped, and what each does, by the positions of its arguments in C.
//!
//! In Fortran the same arguments are references, followed by the error code.

use taskscope_event::models::messages::function_number;

/// Where the arguments of one message stand.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub count: u8,
    pub datatype: u8,
    pub peer: u8,
    pub tag: u8,
    pub comm: u8,
}

/// How a function tells how much of its own data takes part.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    None,
    /// Count and datatype, which follows.
    Count(u8),
    /// The same, unless the buffer at 0 is "in place": then the second count.
    CountOr(u8, u8),
    /// An array of counts, one a member, and where the datatype stands.
    Counts(u8, u8),
}

/// What a function does besides taking time.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    Nothing,
    Init,
    Finalize,
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
    /// Communicator, flag, matched message, status.
    MatchProbe(u8, u8, u8, u8),
    /// Matched message, status.
    MatchedReceive(u8, u8),
    /// Matched message, request.
    StartMatchedReceive(u8, u8),
    /// Communicator, root, amount, request (255 where there is none).
    Collective(u8, u8, Amount, u8),
    /// Parent, new one.
    NewCommunicator(u8, u8),
    FreeCommunicator(u8),
}

/// No such argument.
pub const ABSENT: u8 = 255;

/// One wrapped function.
#[derive(Debug)]
pub struct Row {
    /// Its name without `MPI_`.
    pub name: &'static str,
    /// The same as Fortran spells it.
    pub fortran: &'static str,
    /// Number of arguments in C.
    pub arity: u8,
    pub does: Does,
    /// In `messages::FUNCTIONS`.
    pub number: u32,
}

const fn message(count: u8, datatype: u8, peer: u8, tag: u8, comm: u8) -> Message {
    Message { count, datatype, peer, tag, comm }
}

/// Buffer, count, datatype, peer, tag, communicator: the usual order.
const USUAL: Message = message(1, 2, 3, 4, 5);
const SEND_OF_EXCHANGE: Message = message(1, 2, 3, 4, 10);
const RECEIVE_OF_EXCHANGE: Message = message(6, 7, 8, 9, 10);
const SEND_OF_REPLACE: Message = message(1, 2, 3, 4, 7);
const RECEIVE_OF_REPLACE: Message = message(1, 2, 5, 6, 7);

/// Calls the macro `then` with every function: name, Fortran name, arity, what it does.
macro_rules! with_functions {
    ($then:ident) => {
        $then! {
            Init "init" 2 Does::Init;
            Init_thread "init_thread" 4 Does::Init;
            Finalize "finalize" 0 Does::Finalize;
            Abort "abort" 2 Does::Nothing;
            Send "send" 6 Does::Send(USUAL);
            Bsend "bsend" 6 Does::Send(USUAL);
            Ssend "ssend" 6 Does::Send(USUAL);
            Rsend "rsend" 6 Does::Send(USUAL);
            Isend "isend" 7 Does::StartSend(USUAL, 6);
            Ibsend "ibsend" 7 Does::StartSend(USUAL, 6);
            Issend "issend" 7 Does::StartSend(USUAL, 6);
            Irsend "irsend" 7 Does::StartSend(USUAL, 6);
            Recv "recv" 7 Does::Receive(USUAL, 6);
            Irecv "irecv" 7 Does::StartReceive(USUAL, 6);
            Sendrecv "sendrecv" 12 Does::Exchange(SEND_OF_EXCHANGE, RECEIVE_OF_EXCHANGE, 11);
            Sendrecv_replace "sendrecv_replace" 9 Does::Exchange(SEND_OF_REPLACE, RECEIVE_OF_REPLACE, 8);
            Isendrecv "isendrecv" 12 Does::StartExchange(SEND_OF_EXCHANGE, RECEIVE_OF_EXCHANGE, 11);
            Isendrecv_replace "isendrecv_replace" 9 Does::StartExchange(SEND_OF_REPLACE, RECEIVE_OF_REPLACE, 8);
            Send_init "send_init" 7 Does::PrepareSend(USUAL, 6);
            Bsend_init "bsend_init" 7 Does::PrepareSend(USUAL, 6);
            Ssend_init "ssend_init" 7 Does::PrepareSend(USUAL, 6);
            Rsend_init "rsend_init" 7 Does::PrepareSend(USUAL, 6);
            Recv_init "recv_init" 7 Does::PrepareReceive(USUAL, 6);
            Start "start" 1 Does::Start(0);
            Startall "startall" 2 Does::StartAll(0, 1);
            Wait "wait" 2 Does::CompleteOne(0, ABSENT, 1);
            Waitall "waitall" 3 Does::CompleteAll(0, 1, ABSENT, 2);
            Waitany "waitany" 4 Does::CompleteAny(0, 1, 2, ABSENT, 3);
            Waitsome "waitsome" 5 Does::CompleteSome(0, 1, 2, 3, 4);
            Test "test" 3 Does::CompleteOne(0, 1, 2);
            Testall "testall" 4 Does::CompleteAll(0, 1, 2, 3);
            Testany "testany" 5 Does::CompleteAny(0, 1, 2, 3, 4);
            Testsome "testsome" 5 Does::CompleteSome(0, 1, 2, 3, 4);
            Request_free "request_free" 1 Does::FreeRequest(0);
            Cancel "cancel" 1 Does::Nothing;
            Probe "probe" 4 Does::Nothing;
            Iprobe "iprobe" 5 Does::Nothing;
            Mprobe "mprobe" 5 Does::MatchProbe(2, ABSENT, 3, 4);
            Improbe "improbe" 6 Does::MatchProbe(2, 3, 4, 5);
            Mrecv "mrecv" 5 Does::MatchedReceive(3, 4);
            Imrecv "imrecv" 5 Does::StartMatchedReceive(3, 4);
            Barrier "barrier" 1 Does::Collective(0, ABSENT, Amount::None, ABSENT);
            Bcast "bcast" 5 Does::Collective(4, 3, Amount::Count(1), ABSENT);
            Gather "gather" 8 Does::Collective(7, 6, Amount::CountOr(1, 4), ABSENT);
            Gatherv "gatherv" 9 Does::Collective(8, 7, Amount::Count(1), ABSENT);
            Scatter "scatter" 8 Does::Collective(7, 6, Amount::Count(4), ABSENT);
            Scatterv "scatterv" 9 Does::Collective(8, 7, Amount::Count(5), ABSENT);
            Allgather "allgather" 7 Does::Collective(6, ABSENT, Amount::CountOr(1, 4), ABSENT);
            Allgatherv "allgatherv" 8 Does::Collective(7, ABSENT, Amount::Count(1), ABSENT);
            Alltoall "alltoall" 7 Does::Collective(6, ABSENT, Amount::CountOr(1, 4), ABSENT);
            Alltoallv "alltoallv" 9 Does::Collective(8, ABSENT, Amount::Counts(1, 3), ABSENT);
            Alltoallw "alltoallw" 9 Does::Collective(8, ABSENT, Amount::None, ABSENT);
            Reduce "reduce" 7 Does::Collective(6, 5, Amount::Count(2), ABSENT);
            Allreduce "allreduce" 6 Does::Collective(5, ABSENT, Amount::Count(2), ABSENT);
            Reduce_scatter "reduce_scatter" 6 Does::Collective(5, ABSENT, Amount::Counts(2, 3), ABSENT);
            Reduce_scatter_block "reduce_scatter_block" 6 Does::Collective(5, ABSENT, Amount::Count(2), ABSENT);
            Scan "scan" 6 Does::Collective(5, ABSENT, Amount::Count(2), ABSENT);
            Exscan "exscan" 6 Does::Collective(5, ABSENT, Amount::Count(2), ABSENT);
            Ibarrier "ibarrier" 2 Does::Collective(0, ABSENT, Amount::None, 1);
            Ibcast "ibcast" 6 Does::Collective(4, 3, Amount::Count(1), 5);
            Igather "igather" 9 Does::Collective(7, 6, Amount::CountOr(1, 4), 8);
            Igatherv "igatherv" 10 Does::Collective(8, 7, Amount::Count(1), 9);
            Iscatter "iscatter" 9 Does::Collective(7, 6, Amount::Count(4), 8);
            Iscatterv "iscatterv" 10 Does::Collective(8, 7, Amount::Count(5), 9);
            Iallgather "iallgather" 8 Does::Collective(6, ABSENT, Amount::CountOr(1, 4), 7);
            Iallgatherv "iallgatherv" 9 Does::Collective(7, ABSENT, Amount::Count(1), 8);
            Ialltoall "ialltoall" 8 Does::Collective(6, ABSENT, Amount::CountOr(1, 4), 7);
            Ialltoallv "ialltoallv" 10 Does::Collective(8, ABSENT, Amount::Counts(1, 3), 9);
            Ialltoallw "ialltoallw" 10 Does::Collective(8, ABSENT, Amount::None, 9);
            Ireduce "ireduce" 8 Does::Collective(6, 5, Amount::Count(2), 7);
            Iallreduce "iallreduce" 7 Does::Collective(5, ABSENT, Amount::Count(2), 6);
            Ireduce_scatter "ireduce_scatter" 7 Does::Collective(5, ABSENT, Amount::Counts(2, 3), 6);
            Ireduce_scatter_block "ireduce_scatter_block" 7 Does::Collective(5, ABSENT, Amount::Count(2), 6);
            Iscan "iscan" 7 Does::Collective(5, ABSENT, Amount::Count(2), 6);
            Iexscan "iexscan" 7 Does::Collective(5, ABSENT, Amount::Count(2), 6);
            Neighbor_allgather "neighbor_allgather" 7 Does::Nothing;
            Neighbor_allgatherv "neighbor_allgatherv" 8 Does::Nothing;
            Neighbor_alltoall "neighbor_alltoall" 7 Does::Nothing;
            Neighbor_alltoallv "neighbor_alltoallv" 9 Does::Nothing;
            Comm_dup "comm_dup" 2 Does::NewCommunicator(0, 1);
            Comm_dup_with_info "comm_dup_with_info" 3 Does::NewCommunicator(0, 2);
            Comm_split "comm_split" 4 Does::NewCommunicator(0, 3);
            Comm_split_type "comm_split_type" 5 Does::NewCommunicator(0, 4);
            Comm_create "comm_create" 3 Does::NewCommunicator(0, 2);
            Comm_create_group "comm_create_group" 4 Does::NewCommunicator(0, 3);
            Comm_free "comm_free" 1 Does::FreeCommunicator(0);
            Comm_disconnect "comm_disconnect" 1 Does::FreeCommunicator(0);
            Cart_create "cart_create" 6 Does::NewCommunicator(0, 5);
            Cart_sub "cart_sub" 3 Does::NewCommunicator(0, 2);
            Graph_create "graph_create" 6 Does::NewCommunicator(0, 5);
            Dist_graph_create "dist_graph_create" 9 Does::NewCommunicator(0, 8);
            Dist_graph_create_adjacent "dist_graph_create_adjacent" 10 Does::NewCommunicator(0, 9);
            Intercomm_create "intercomm_create" 6 Does::NewCommunicator(0, 5);
            Intercomm_merge "intercomm_merge" 3 Does::NewCommunicator(0, 2);
            Put "put" 8 Does::Nothing;
            Get "get" 8 Does::Nothing;
            Accumulate "accumulate" 9 Does::Nothing;
            Get_accumulate "get_accumulate" 12 Does::Nothing;
            Fetch_and_op "fetch_and_op" 7 Does::Nothing;
            Compare_and_swap "compare_and_swap" 7 Does::Nothing;
            Win_fence "win_fence" 2 Does::Nothing;
            Win_lock "win_lock" 4 Does::Nothing;
            Win_unlock "win_unlock" 2 Does::Nothing;
            Win_lock_all "win_lock_all" 2 Does::Nothing;
            Win_unlock_all "win_unlock_all" 1 Does::Nothing;
            Win_flush "win_flush" 2 Does::Nothing;
            Win_flush_all "win_flush_all" 1 Does::Nothing;
            Win_post "win_post" 3 Does::Nothing;
            Win_start "win_start" 3 Does::Nothing;
            Win_complete "win_complete" 1 Does::Nothing;
            Win_wait "win_wait" 1 Does::Nothing;
            Win_free "win_free" 1 Does::Nothing;
            File_read_at "file_read_at" 6 Does::Nothing;
            File_read_at_all "file_read_at_all" 6 Does::Nothing;
            File_write_at "file_write_at" 6 Does::Nothing;
            File_write_at_all "file_write_at_all" 6 Does::Nothing;
            File_read_all "file_read_all" 5 Does::Nothing;
            File_write_all "file_write_all" 5 Does::Nothing;
            File_read "file_read" 5 Does::Nothing;
            File_write "file_write" 5 Does::Nothing;
            File_sync "file_sync" 1 Does::Nothing;
            File_close "file_close" 1 Does::Nothing;
        }
    };
}
pub(crate) use with_functions;

macro_rules! table {
    ($( $name:ident $fortran:literal $arity:literal $does:expr; )*) => {
        /// All functions, at the positions of [`Function`]'s variants.
        pub static FUNCTIONS: &[Row] = &[$( Row {
            name: stringify!($name),
            fortran: $fortran,
            arity: $arity,
            does: $does,
            number: function_number(stringify!($name)),
        } ),*];

        /// A position in [`FUNCTIONS`].
        #[allow(non_camel_case_types, reason = "the names are MPI's")]
        #[derive(Clone, Copy)]
        pub enum Function { $( $name ),* }
    };
}
with_functions!(table);
