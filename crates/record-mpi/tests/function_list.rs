//! The tables of MPI functions and the list in `docs/mpi.md`, made from `mpi-functions.tsv`, the MPI Forum's list.
//! `UPDATE_DOCS=1 cargo test -p taskscope-record-mpi --test function_list` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;

const LIST: &str = include_str!("../mpi-functions.tsv");
/// Names by the numbers in traces, one a line; new ones are appended.
const NUMBERS: &str = "../event/mpi-function-numbers.txt";

/// One function of the list.
struct Function {
    /// Without `MPI_`.
    name: &'static str,
    bindings: &'static str,
    returns: &'static str,
    parameters: Vec<Parameter>,
}

struct Parameter {
    name: &'static str,
    kind: &'static str,
    is_output: bool,
    /// Only in the version for large counts.
    is_large: bool,
}

fn functions() -> Vec<Function> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let parse = |line: &'static str| {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap().strip_prefix("MPI_").unwrap();
        let (bindings, returns) = (fields.next().unwrap(), fields.next().unwrap());
        let parameters = fields.next().unwrap_or("").split_whitespace().map(|word| {
            let parts: Vec<_> = word.split(':').collect();
            let is_output = parts[2] != "in";
            Parameter { name: parts[0], kind: parts[1], is_output, is_large: parts.len() > 3 }
        });
        Function { name, bindings, returns, parameters: parameters.collect() }
    };
    lines.map(parse).collect()
}

/// Local functions that return immediately: inquiries, handles and their attributes, the tools interface. A
/// call of them would cost less than its record.
fn is_inquiry(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "T_",
        "Aint_",
        "Attr_",
        "Keyval_",
        "Info_",
        "Errhandler_",
        "Error_",
        "Add_error",
        "Remove_error",
        "Op_",
        "Status_",
        "Get_",
        "Group_",
        "Type_get_",
        "Type_size",
        "Type_set_",
        "Type_match",
        "Comm_get_",
        "Win_get_",
        "Session_get_",
        "Session_set_",
        "Wti",
        "Graph_get",
        "Graphdims",
        "Graph_neighbors",
        "Dist_graph_neighbors",
        "Cart_coords",
        "Cart_get",
        "Cart_rank",
        "Cart_shift",
        "Cartdim",
        "Comm_set_name",
        "Comm_set_err",
        "Win_set_name",
        "Win_set_err",
        "File_set_err",
        "File_get_amode",
        "File_get_atomicity",
        "File_get_byte",
        "File_get_err",
        "File_get_group",
        "File_get_info",
        "File_get_position",
        "File_get_type",
        "File_get_view",
        "Dims_create",
        "Grequest_",
        "Pack_size",
        "Pack_external_size",
        "Register_datarep",
    ];
    const NAMES: &[&str] = &[
        "Comm_rank",
        "Comm_size",
        "Comm_remote_size",
        "Comm_compare",
        "Comm_test_inter",
        "Comm_group",
        "Comm_remote_group",
        "Initialized",
        "Finalized",
        "Is_thread_main",
        "Query_thread",
        "Test_cancelled",
        "Topo_test",
        "Pcontrol",
        "F_sync_reg",
        "Sizeof",
        "Win_shared_query",
    ];
    const SUFFIXES: &[&str] = &["_c2f", "_f2c", "_attr", "_keyval", "_errhandler"];
    !["File_get_position_shared", "Get_accumulate"].contains(&name)
        && (PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || NAMES.contains(&name)
            || SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
}

impl Function {
    fn at(&self, name: &str) -> Option<u8> {
        self.parameters.iter().position(|parameter| parameter.name == name).map(|at| at as u8)
    }

    fn first_of_kind(&self, kind: &str, is_output: bool) -> Option<u8> {
        let found = |p: &Parameter| p.kind == kind && p.is_output == is_output;
        self.parameters.iter().position(found).map(|at| at as u8)
    }

    fn last_of_kind(&self, kind: &str) -> Option<u8> {
        self.parameters.iter().rposition(|p| p.kind == kind).map(|at| at as u8)
    }

    fn has(&self, binding: char) -> bool {
        self.bindings.contains(binding)
    }

    /// Number of string arguments: Fortran adds their lengths.
    fn strings(&self) -> usize {
        self.parameters
            .iter()
            .filter(|parameter| parameter.kind.starts_with("STRING") && !parameter.kind.ends_with("LENGTH"))
            .count()
    }

    /// Symbols with the numbers of their variants, in the version for large counts or in the usual one.
    fn symbols(&self, large: bool) -> Vec<(u8, String)> {
        let fortran = self.name.to_lowercase();
        if large {
            let mut symbols = vec![(0, format!("MPI_{}_c", self.name))];
            if self.has('8') {
                symbols.push((2, format!("mpi_{fortran}_c_f08_")));
                symbols.push((3, format!("mpi_{fortran}_c_f08ts_")));
                symbols.push((4, format!("mpi_{fortran}_f08_large_")));
                symbols.push((5, format!("mpi_{fortran}_f08ts_large_")));
            }
            return symbols;
        }
        let mut symbols = Vec::new();
        if self.has('c') {
            symbols.push((0, format!("MPI_{}", self.name)));
        }
        if self.has('f') {
            symbols.push((1, format!("mpi_{fortran}_")));
        }
        if self.has('8') {
            symbols.push((2, format!("mpi_{fortran}_f08_")));
            symbols.push((3, format!("mpi_{fortran}_f08ts_")));
        }
        if ["Alloc_mem", "Win_allocate", "Win_allocate_shared"].contains(&self.name) {
            symbols.push((6, format!("mpi_{fortran}_cptr_")));
        }
        symbols
    }

    /// How much of a process's own data takes part.
    fn amount(&self) -> String {
        let is_array = |name: &str| self.at(name).is_some_and(|at| name.ends_with('s') && at > 0);
        let at = |name: &str| self.at(name).unwrap_or_else(|| panic!("{}: {name}", self.name));
        let base = self.name.trim_end_matches("_init").to_lowercase();
        if base.contains("alltoallw") || base.contains("neighbor_") && is_array("sendcounts") {
            return "Amount::Unknown".into();
        }
        if base.contains("scatter") && !base.contains("reduce") {
            return format!("Amount::Count({})", at("recvcount"));
        }
        if is_array("sendcounts") {
            return format!("Amount::Counts({}, {})", at("sendcounts"), at("sendtype"));
        }
        if is_array("recvcounts") && self.at("datatype").is_some() {
            return format!("Amount::Counts({}, {})", at("recvcounts"), at("datatype"));
        }
        if let (Some(send), Some(receive)) = (self.at("sendcount"), self.at("recvcount")) {
            return format!("Amount::CountOr({send}, {receive})");
        }
        let scalar =
            ["sendcount", "recvcount", "count", "origin_count"].into_iter().find_map(|name| self.at(name));
        scalar.map_or("Amount::None".into(), |at| format!("Amount::Count({at})"))
    }

    fn message(&self) -> String {
        let at = |name: &str| self.at(name).unwrap_or_else(|| panic!("{}: {name}", self.name));
        let peer = self.at("dest").or(self.at("source")).unwrap();
        format!("message({}, {}, {peer}, {}, {})", at("count"), at("datatype"), at("tag"), at("comm"))
    }

    /// The function's effect, as an expression of `functions::Does`, and the column of the page.
    fn does(&self) -> (String, &'static str) {
        let at = |name: &str| self.at(name).unwrap_or_else(|| panic!("{}: {name}", self.name));
        let or_absent = |at: Option<u8>| at.map_or("ABSENT".to_owned(), |at| at.to_string());
        let request = or_absent(self.first_of_kind("REQUEST", true));
        let name = self.name;
        let special = match name {
            "Init" | "Init_thread" => Some(("Does::Init".to_owned(), "start of MPI")),
            "Session_init" => Some((format!("Does::StartSession({})", at("session")), "start of MPI")),
            "Finalize" => Some(("Does::Finalize".to_owned(), "end of MPI, last rank")),
            "Sendrecv" | "Isendrecv" => {
                let messages = "message(1, 2, 3, 4, 10), message(6, 7, 8, 9, 10)";
                Some(match name {
                    "Sendrecv" => (format!("Does::Exchange({messages}, 11)"), "messages"),
                    _ => (format!("Does::StartExchange({messages}, 11)"), "messages"),
                })
            }
            "Sendrecv_replace" | "Isendrecv_replace" => {
                let messages = "message(1, 2, 3, 4, 7), message(1, 2, 5, 6, 7)";
                Some(match name {
                    "Sendrecv_replace" => (format!("Does::Exchange({messages}, 8)"), "messages"),
                    _ => (format!("Does::StartExchange({messages}, 8)"), "messages"),
                })
            }
            "Send" | "Bsend" | "Ssend" | "Rsend" => {
                Some((format!("Does::Send({})", self.message()), "message"))
            }
            "Isend" | "Ibsend" | "Issend" | "Irsend" => {
                Some((format!("Does::StartSend({}, {request})", self.message()), "message"))
            }
            "Recv" => Some((format!("Does::Receive({}, {})", self.message(), at("status")), "message")),
            "Irecv" => Some((format!("Does::StartReceive({}, {request})", self.message()), "message")),
            "Send_init" | "Bsend_init" | "Ssend_init" | "Rsend_init" => {
                Some((format!("Does::PrepareSend({}, {request})", self.message()), "prepares a message"))
            }
            "Recv_init" => {
                Some((format!("Does::PrepareReceive({}, {request})", self.message()), "prepares a message"))
            }
            "Psend_init" => Some((
                format!("Does::PreparePartitionedSend({}, {}, {request})", self.message(), at("partitions")),
                "prepares a message",
            )),
            "Precv_init" => {
                Some((format!("Does::PrepareReceive({}, {request})", self.message()), "prepares a message"))
            }
            "Pready" => Some((
                format!("Does::Ready(Partitions::One, {})", at("request")),
                "message, if the last part",
            )),
            "Pready_range" => Some((
                format!("Does::Ready(Partitions::Range(0, 1), {})", at("request")),
                "message, if the last part",
            )),
            "Pready_list" => Some((
                format!("Does::Ready(Partitions::List(0), {})", at("request")),
                "message, if the last part",
            )),
            "Start" => Some(("Does::Start(0)".to_owned(), "starts what was prepared")),
            "Startall" => Some(("Does::StartAll(0, 1)".to_owned(), "starts what was prepared")),
            "Wait" => Some(("Does::CompleteOne(0, ABSENT, 1)".to_owned(), "completes")),
            "Test" => Some(("Does::CompleteOne(0, 1, 2)".to_owned(), "completes, or polls")),
            "Waitall" => Some(("Does::CompleteAll(0, 1, ABSENT, 2)".to_owned(), "completes")),
            "Testall" => Some(("Does::CompleteAll(0, 1, 2, 3)".to_owned(), "completes, or polls")),
            "Waitany" => Some(("Does::CompleteAny(0, 1, 2, ABSENT, 3)".to_owned(), "completes")),
            "Testany" => Some(("Does::CompleteAny(0, 1, 2, 3, 4)".to_owned(), "completes, or polls")),
            "Waitsome" | "Testsome" => Some(("Does::CompleteSome(0, 1, 2, 3, 4)".to_owned(), "completes")),
            "Request_free" => Some(("Does::FreeRequest(0)".to_owned(), "")),
            "Probe" => Some(("Does::Probe(2, ABSENT, 3)".to_owned(), "late sender")),
            "Iprobe" => Some(("Does::Probe(2, 3, 4)".to_owned(), "polls: late sender")),
            "Mprobe" => Some(("Does::MatchProbe(2, ABSENT, 3, 4)".to_owned(), "late sender")),
            "Improbe" => Some(("Does::MatchProbe(2, 3, 4, 5)".to_owned(), "polls: late sender")),
            "Mrecv" => Some(("Does::MatchedReceive(3, 4)".to_owned(), "message")),
            "Imrecv" => Some(("Does::StartMatchedReceive(3, 4)".to_owned(), "message")),
            "Comm_accept" | "Comm_connect" => Some((
                "Does::Meet(0, 3, 4)".to_owned(),
                "collective over the communicator; other side by the port's name",
            )),
            "Comm_create_group"
            | "Comm_create_from_group"
            | "Intercomm_create"
            | "Intercomm_create_from_groups" => {
                let new = self.first_of_kind("COMMUNICATOR", true).unwrap();
                let parent = or_absent(self.first_of_kind("COMMUNICATOR", false));
                // Intercommunicators have two groups, of which each member knows its own.
                let is_of_group = matches!(name, "Comm_create_group" | "Comm_create_from_group");
                let group = or_absent(self.first_of_kind("GROUP", false).filter(|_| is_of_group));
                Some((
                    format!("Does::MeetOnNew({parent}, {group}, {new})"),
                    "collective over the new communicator",
                ))
            }
            "Win_start" | "Win_post" => {
                let kind = if name == "Win_start" { "waits for MPI_Win_post of the group" } else { "group" };
                Some((format!("Does::Group({}, {})", at("win"), at("group")), kind))
            }
            "Win_complete" => Some((self.access(), "waits for MPI_Win_post of the group")),
            "Win_wait" => Some((self.access(), "waits for MPI_Win_complete of the group")),
            "Win_test" => Some((self.access(), "polls: MPI_Win_complete of the group")),
            "Win_lock"
            | "Win_lock_all"
            | "Win_unlock"
            | "Win_unlock_all"
            | "Win_flush"
            | "Win_flush_all"
            | "Win_flush_local"
            | "Win_flush_local_all" => Some((self.access(), "waits for the lock's holder")),
            "Win_create" | "Win_allocate" | "Win_allocate_shared" | "Win_create_dynamic" => Some((
                format!(
                    "Does::Collective(On::Comm({}), ABSENT, Amount::None, ABSENT, Makes::Window({}))",
                    at("comm"),
                    at("win")
                ),
                "collective over the communicator",
            )),
            "Win_free" => Some((self.collective("On::WindowFreed(0)"), "collective over the window")),
            "Win_fence" => Some((self.collective("On::Window(1)"), "collective over the window")),
            "Win_set_info" => Some((self.collective("On::Window(0)"), "collective over the window")),
            "File_open" => Some((
                "Does::Collective(On::Comm(0), ABSENT, Amount::None, ABSENT, Makes::File(4))".to_owned(),
                "collective over the communicator",
            )),
            "File_close" => Some((self.collective("On::FileClosed(0)"), "collective over the file")),
            "Comm_free" | "Comm_disconnect" => {
                Some((self.collective("On::CommFreed(0)"), "collective over the communicator"))
            }
            "Comm_set_info" => Some((self.collective("On::Comm(0)"), "collective over the communicator")),
            "Abort" => Some(("Does::Nothing".to_owned(), "ends the job")),
            _ => None,
        };
        if let Some(special) = special {
            return special;
        }
        if self.at("fh") == Some(0) {
            const COLLECTIVE: &[&str] = &[
                "File_set_view",
                "File_set_size",
                "File_preallocate",
                "File_set_info",
                "File_set_atomicity",
                "File_seek_shared",
                "File_sync",
            ];
            if name.ends_with("_end") {
                return ("Does::EndSplit(0)".into(), "completes the collective operation that it ends");
            }
            if name.ends_with("_begin") {
                let does = format!("Does::BeginSplit(0, {})", self.amount());
                return (does, "collective over the file, begins");
            }
            if COLLECTIVE.contains(&name) || name.contains("_all") || name.contains("_ordered") {
                let does = format!(
                    "Does::Collective(On::File(0), ABSENT, {}, {request}, Makes::Nothing)",
                    self.amount()
                );
                return (does, "collective over the file");
            }
            return (self.access(), "file");
        }
        if self.first_of_kind("WINDOW", false).is_some() {
            return (self.access(), if self.at("target_rank").is_some() { "one-sided" } else { "" });
        }
        const OPERATIONS: &[&str] = &[
            "barrier",
            "bcast",
            "gather",
            "gatherv",
            "scatter",
            "scatterv",
            "allgather",
            "allgatherv",
            "alltoall",
            "alltoallv",
            "alltoallw",
            "reduce",
            "allreduce",
            "reduce_scatter",
            "reduce_scatter_block",
            "scan",
            "exscan",
        ];
        let lower = name.to_lowercase();
        let is_prepared = lower.ends_with("_init");
        let base = lower.trim_end_matches("_init");
        let base = base.strip_prefix('i').unwrap_or(base);
        let base = base.strip_prefix("neighbor_").unwrap_or(base);
        if OPERATIONS.contains(&base) {
            let (comm, root) = (at("comm"), or_absent(self.at("root")));
            let amount = self.amount();
            let neighbours = lower.contains("neighbor_");
            return if is_prepared {
                (
                    format!("Does::PrepareCollective({comm}, {root}, {amount}, {request})"),
                    "prepares a collective operation",
                )
            } else {
                let does = format!(
                    "Does::Collective(On::Comm({comm}), {root}, {amount}, {request}, Makes::Nothing)"
                );
                let words = match (neighbours, request == "ABSENT") {
                    (true, _) => "collective between neighbours",
                    (false, true) => "collective over the communicator",
                    (false, false) => "collective over the communicator, begins",
                };
                (does, words)
            };
        }
        if let (Some(parent), Some(new)) =
            (self.first_of_kind("COMMUNICATOR", false), self.first_of_kind("COMMUNICATOR", true))
        {
            let root = or_absent(self.at("root").filter(|_| !name.starts_with("Comm_spawn")));
            let does = format!(
                "Does::Collective(On::Comm({parent}), {root}, Amount::None, {request}, Makes::Comm({new}))"
            );
            return (does, "collective over the communicator");
        }
        ("Does::Nothing".into(), "")
    }

    fn collective(&self, on: &str) -> String {
        format!("Does::Collective({on}, ABSENT, Amount::None, ABSENT, Makes::Nothing)")
    }

    /// A call that concerns one rank of a window or a file, or all of it.
    fn access(&self) -> String {
        let on = match (self.last_of_kind("WINDOW"), self.last_of_kind("FILE")) {
            (Some(window), _) => format!("On::Window({window})"),
            (None, Some(file)) => format!("On::File({file})"),
            (None, None) => panic!("{}", self.name),
        };
        let peer = self.at("target_rank").or(self.at("rank").filter(|_| self.name.starts_with("Win_")));
        let amount = match self.name {
            "Fetch_and_op" => "Amount::OneOf(2)".into(),
            "Compare_and_swap" => "Amount::OneOf(3)".into(),
            // The data comes with the result.
            "Get_accumulate" | "Rget_accumulate" => {
                format!("Amount::Count({})", self.at("result_count").unwrap())
            }
            _ => self.amount(),
        };
        format!("Does::Access({on}, {}, {amount})", peer.map_or("ABSENT".to_owned(), |at| at.to_string()))
    }
}

/// Recorded functions: name, whether it is the version for large counts, and its entry.
fn recorded(functions: &[Function]) -> BTreeMap<String, (bool, &Function)> {
    let mut rows = BTreeMap::new();
    for function in functions.iter().filter(|function| !is_inquiry(function.name)) {
        assert_eq!(function.returns, "ERROR_CODE", "{}", function.name);
        rows.insert(function.name.to_owned(), (false, function));
        if function.has('l') {
            rows.insert(format!("{}_c", function.name), (true, function));
        }
    }
    rows
}

fn table(rows: &BTreeMap<String, (bool, &Function)>, numbers: &[String]) -> String {
    let mut text = String::from(
        "// Written by tests/function_list.rs from mpi-functions.tsv. Do not edit.\n\n\
         /// Calls the macro `then` with every function: row, number in traces, name, arguments in C, strings, whether\n\
         /// counts are large, symbols by variant, effect.\n\
         macro_rules! with_functions {\n    ($then:ident) => {\n        $then! {\n",
    );
    for (row, (name, (large, function))) in rows.iter().enumerate() {
        let number = numbers.iter().position(|other| other == name).unwrap();
        let arity = function.parameters.iter().filter(|parameter| *large || !parameter.is_large).count();
        let symbols: Vec<String> = function
            .symbols(*large)
            .into_iter()
            .map(|(variant, symbol)| format!("{variant} \"{symbol}\""))
            .collect();
        let _ = writeln!(
            text,
            "            {row} {number} {name} {arity} {} {large} [{}] {};",
            function.strings(),
            symbols.join(" "),
            function.does().0
        );
    }
    text.push_str("        }\n    };\n}\npub(crate) use with_functions;\n");
    text
}

fn names(numbers: &[String]) -> String {
    let mut text = String::from(
        "// Written by the test `function_list` of taskscope-record-mpi. Do not edit.\n\n\
         /// MPI functions by the numbers in events; the name without `MPI_`. New ones come at the end.\n\
         pub const FUNCTIONS: &[&str] = &[\n",
    );
    for name in numbers {
        let _ = writeln!(text, "    \"{name}\",");
    }
    text.push_str("];\n");
    text
}

/// The last part of `docs/mpi.md`.
const HEADING: &str = "\n## Functions\n";

/// The list in `docs/mpi.md`.
fn list(functions: &[Function]) -> String {
    let all = functions.len();
    let local = functions.iter().filter(|function| is_inquiry(function.name)).count();
    let large = functions.iter().filter(|function| function.has('l') && !is_inquiry(function.name)).count();
    let mut page = format!(
        "{HEADING}\nAll {all} procedures of MPI 4.1, written from the MPI Forum's list \
         (`crates/record-mpi/mpi-functions.tsv`).\n\n\
         - {} are recorded in C and in both Fortran bindings (`mpif.h` and `use mpi`; `use mpi_f08`), and {large} of them\n  \
         in their version for large counts too (`_c`).\n\
         - {local} are local: inquiries, handles, attributes, the tools interface (`MPI_T_`). They wait for nobody, and\n  \
         their calls are not recorded.\n\n\
         The MPI library need not have all of them: a program that calls one that it lacks gets an error code, and a line\n\
         on stderr names the function.\n\n\
         | function | bindings | partners |\n| --- | --- | --- |\n",
        all - local
    );
    for function in functions {
        let bindings: Vec<&str> = [('c', "C"), ('f', "Fortran"), ('8', "2008"), ('l', "large count")]
            .into_iter()
            .filter(|(letter, _)| function.has(*letter))
            .map(|(_, words)| words)
            .collect();
        let partners = if is_inquiry(function.name) { "local, not recorded" } else { function.does().1 };
        let _ = writeln!(page, "| `MPI_{}` | {} | {partners} |", function.name, bindings.join(", "));
    }
    page
}

/// Compares a file with its expected content, or writes it.
fn check(path: &str, expected: &str) {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == expected,
        "{path} is stale; run: UPDATE_DOCS=1 cargo test -p taskscope-record-mpi --test function_list"
    );
}

#[test]
fn tables_and_page_are_made_from_the_list() {
    let functions = functions();
    let rows = recorded(&functions);
    let stored = std::fs::read_to_string(format!("{}/{NUMBERS}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut numbers: Vec<String> = stored.lines().map(str::to_owned).collect();
    for name in rows.keys() {
        if !numbers.contains(name) {
            numbers.push(name.clone());
        }
    }
    check(NUMBERS, &(numbers.join("\n") + "\n"));
    check("../event/src/models/mpi_functions.rs", &names(&numbers));
    check("src/functions/table.rs", &table(&rows, &numbers));
    let page = std::fs::read_to_string(format!("{}/../../docs/mpi.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let start = page.find(HEADING).unwrap_or(page.len());
    check("../../docs/mpi.md", &(page[..start].to_owned() + &list(&functions)));
}

/// Exports of this machine's libraries beyond the list were removed by MPI 3.0.
#[test]
fn functions_of_the_installed_headers_are_in_the_list() {
    const REMOVED: &[&str] = &[
        "Address",
        "Errhandler_create",
        "Errhandler_get",
        "Errhandler_set",
        "Type_extent",
        "Type_hindexed",
        "Type_hvector",
        "Type_lb",
        "Type_struct",
        "Type_ub",
    ];
    let known: Vec<String> =
        functions().iter().flat_map(|f| [f.name.to_owned(), format!("{}_c", f.name)]).collect();
    let mut seen = 0;
    for header in ["lib/x86_64-linux-gnu/openmpi/include/mpi.h", "include/x86_64-linux-gnu/mpich/mpi_proto.h"]
    {
        let Ok(text) = std::fs::read_to_string(format!("/usr/{header}")) else { continue };
        for rest in text.split("int MPI_").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if rest[name.len()..].starts_with('(') && name.chars().any(char::is_lowercase) {
                seen += 1;
                assert!(known.contains(&name) || REMOVED.contains(&name.as_str()), "MPI_{name} of {header}");
            }
        }
    }
    println!("{seen} functions of installed headers");
}
