//! Recording of MPI programs: the recorded messages match the programs' sources, on each installed MPI
//! library (`scripts/install-packages` installs both, and a Fortran compiler).

mod common;

use common::mpi::*;
use common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The events of the `messages` model of a trace, as their three letters and fields.
fn message_events(trace: &Path) -> Vec<(String, Value)> {
    let dumped = output(taskscope().args(["dump", "--json"]).arg(trace));
    let lines = text(&dumped.stdout);
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter_map(|event| Some((event["event"].as_str()?.to_owned(), event)))
        .filter(|(code, _)| code.starts_with('C'))
        .collect()
}

fn count(events: &[(String, Value)], code: &str) -> usize {
    events.iter().filter(|(other, _)| other == code).count()
}

fn assert_consistent(trace: &Path) {
    let check = output(taskscope().arg("check").arg(trace));
    assert!(check.status.success(), "the trace is not consistent");
}

#[test]
fn every_way_to_send_and_receive_is_matched() {
    for mpi in installed() {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_messages.c", &[]);
        let mut command = record(here.path());
        command.args(["-o", "trace", "--", mpi.launcher, "-n", &RANKS.to_string()]).arg(&program);
        let run = output(permit(&mut command));
        assert!(run.status.success(), "the program found its messages wrong");
        let trace = here.path().join("trace");
        assert_consistent(&trace);
        let events = message_events(&trace);
        assert_eq!((count(&events, "CMs"), count(&events, "CMr")), (11 * RANKS, 11 * RANKS));
        // The launcher's job, world, the reversed one and the half.
        assert_eq!(count(&events, "CCn"), 4 * RANKS);
        // Two barriers, allreduce, broadcast, three in place, nonblocking barrier; two communicators made and freed; the start and
        // the end of MPI.
        assert_eq!((count(&events, "CGb"), count(&events, "CGe")), (14 * RANKS, 2 * RANKS));
        assert_eq!(streams(&trace).len(), RANKS);
        let report = report(&trace);
        assert_eq!(report["processes"], RANKS);
        let causes: u64 =
            report["causes"].as_array().unwrap().iter().map(|c| c["ns"].as_u64().unwrap()).sum();
        assert_eq!(causes, report["capacity_ns"].as_u64().unwrap());
    }
}

/// The first thread of a rank is its worker: in traces, also with samples, and in profiles. Other threads of the library are none.
#[test]
fn a_rank_without_openmp_has_one_worker_in_every_mode() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_late.c", &[]);
        let of = |name: &str, options: &[&str]| {
            let mut command = record(here.path());
            command.args(["-o", name]).args(options);
            command.args(["--", mpi.launcher, "-n", &RANKS.to_string()]).arg(&program);
            assert!(output(permit(&mut command)).status.success());
            report(&here.path().join(name))
        };
        for (name, options) in [("trace", &[][..]), ("sampled", &["--sample", "200"])] {
            let report = of(name, options);
            assert_eq!(report["workers"], RANKS, "{name}");
            let states = report["states"].as_object().unwrap();
            assert!(
                states.contains_key("serial") && states.contains_key("communication"),
                "{name}: {states:?}"
            );
        }
        let profile = of("profile", &["--mode", "profile"]);
        assert_eq!(profile["findings_of"], "workers", "{profile}");
        let totals = &profile["call_paths"]["run_totals"];
        for state in ["state.serial", "state.communication", "state.mpi_start"] {
            assert!(totals[state].as_u64().is_some_and(|ns| ns > 0), "{state}: {totals}");
        }
        let findings = profile["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding["cause"] == "mpi"), "{findings:?}");
        let words = findings.iter().map(|finding| finding["try"].as_str().unwrap());
        assert!(!words.into_iter().any(|remedy| remedy.contains("OMP_")), "{findings:?}");
    }
}

#[test]
fn each_rank_may_be_recorded_by_a_command_of_its_own() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_messages.c", &[]);
        let mut command = Command::new(mpi.launcher);
        command.current_dir(here.path()).args(["-n", "2", env!("CARGO_BIN_EXE_taskscope")]);
        command.args(["record", "-o", "trace", "--"]).arg(&program);
        assert!(output(permit(&mut command)).status.success());
        let events = message_events(&here.path().join("trace"));
        assert_eq!((count(&events, "CMs"), count(&events, "CMr")), (22, 22));
    }
}

#[test]
fn fortran_programs_are_recorded_from_both_modules() {
    // The wrappers come with the libraries, and the compiler that they call does not.
    if !taskscope_prerequisite::has("gfortran") {
        return;
    }
    for mpi in installed().into_iter().filter(|mpi| is_there(mpi.fortran)) {
        let modules: [&[&str]; 2] = [&["-cpp", "-DMODULE=mpi"], &["-cpp", "-DMODULE=mpi_f08", "-DF08"]];
        for module in modules {
            let here = tempfile::tempdir().unwrap();
            let program = compile(mpi, here.path(), "mpi_messages.f90", module);
            let mut command = record(here.path());
            let run =
                output(permit(command.args(["-o", "trace", "--", mpi.launcher, "-n", "2"]).arg(&program)));
            assert!(run.status.success(), "the program found its messages wrong");
            let events = message_events(&here.path().join("trace"));
            assert_eq!((count(&events, "CMs"), count(&events, "CMr")), (6, 6), "{mpi:?} {module:?}");
            // The start of MPI, a communicator is made, allreduce, the end of MPI.
            assert_eq!(count(&events, "CGb"), 4 * RANKS);
            assert_consistent(&here.path().join("trace"));
        }
    }
}

#[test]
fn mpi_and_openmp_share_one_stream_a_thread() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_openmp.c", &["-fopenmp"]);
        let mut command = record(here.path());
        let run = output(permit(command.args(["-o", "trace", "--", mpi.launcher, "-n", "2"]).arg(&program)));
        assert!(run.status.success(), "the program found its messages wrong");
        let trace = here.path().join("trace");
        assert_consistent(&trace);
        assert_eq!(streams(&trace).len(), 4, "two ranks with two threads each");
        let events = message_events(&trace);
        assert_eq!((count(&events, "CMs"), count(&events, "CMr")), (32, 32));
        let report = report(&trace);
        assert_eq!((report["processes"].clone(), report["tasks"].clone()), (2.into(), 32.into()));
    }
}

/// Two "hosts" on one machine: namespaces with another host name, with clocks that started 1000 s earlier.
#[test]
fn clocks_of_nodes_are_measured() {
    let other_host = ["unshare", "--uts", "--time", "--monotonic", "1000", "--fork", "sh", "-c"];
    let probe = Command::new(other_host[0]).args(&other_host[1..]).arg("hostname other").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        taskscope_prerequisite::skip("no time namespaces here (needs root and unshare of util-linux)");
        return;
    }
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_messages.c", &[]);
        let mut command = record(here.path());
        command.args(["-o", "trace", "--", mpi.launcher, "-n", "1"]).arg(&program).args([":", "-n", "1"]);
        command.args(other_host).arg(format!("hostname other; exec {}", program.display()));
        assert!(output(permit(&mut command)).status.success());
        let events = message_events(&here.path().join("trace"));
        let mut offsets: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
        for (_, event) in events.iter().filter(|(code, _)| code == "CKo") {
            let field = |name: &str| event["fields"][name].as_i64().unwrap();
            let host = event["stream"].as_str().unwrap().split('.').nth(1).unwrap().to_owned();
            offsets.entry(host).or_default().push((field("offset"), field("error")));
        }
        let other = &offsets["other"];
        assert_eq!(other.len(), 2, "at MPI_Init and at MPI_Finalize");
        for (offset, error) in other {
            // The namespace's clock is ahead, to the nanosecond.
            assert!((offset + 1_000_000_000_000).abs() <= *error, "{offset} ± {error}");
        }
        // Put into the trace, they bring its events together.
        let trace = here.path().join("trace");
        let wall = |trace: &Path| report(trace)["wall_ns"].as_u64().unwrap();
        assert!(wall(&trace) > 900_000_000_000);
        assert!(output(taskscope().arg("sync").arg(&trace)).status.success());
        assert!(trace.join("clock-offsets.txt").is_file());
        assert!(wall(&trace) < 900_000_000_000);
    }
}

#[test]
fn without_a_trace_directory_nothing_is_written_and_all_works() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_messages.c", &[]);
        let library = Path::new(env!("CARGO_BIN_EXE_taskscope")).with_file_name("libtaskscope_mpi.so");
        let deps = library.with_file_name("deps").join("libtaskscope_mpi.so");
        let library = if deps.is_file() { deps } else { library };
        let mut command = Command::new(mpi.launcher);
        command.current_dir(here.path()).args(["-n", "2", "env"]);
        command.arg(format!("LD_PRELOAD={}", library.display())).arg(&program);
        assert!(output(permit(&mut command)).status.success());
        assert_eq!(names(here.path()), ["app"]);
    }
}

#[test]
fn the_report_names_the_rank_that_was_late() {
    for mpi in installed() {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_late.c", &[]);
        let mut command = record(here.path());
        command.args(["-o", "trace", "--", mpi.launcher, "-n", "2"]).arg(&program);
        assert!(output(permit(&mut command)).status.success());
        let trace = here.path().join("trace");
        let printed =
            output(taskscope().args(["report", "--section", "ledger,blame,idle", "--json"]).arg(&trace));
        let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
        let blamed = |name: &str| {
            let rows = report["blame"].as_array().unwrap().iter();
            rows.filter(|row| row["who"]["object"] == name)
                .map(|row| row["ns"].as_u64().unwrap())
                .sum::<u64>()
        };
        for name in [
            "MPI_Recv, late sender: rank 0",
            "MPI_Ssend, late receiver: rank 0",
            "MPI_Allreduce, late member of a collective operation: rank 1",
        ] {
            // How much depends on when each rank leaves the barrier before.
            assert!(blamed(name) > 0, "{name}");
        }
        let leaves: u64 =
            report["ledger"]["causes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(leaves, report["ledger"]["capacity_ns"].as_u64().unwrap());
        let ranks = report["ledger"]["by_node"].as_object().unwrap();
        assert_eq!(ranks.keys().collect::<Vec<_>>(), ["0", "1"]);
        let all: u64 = ranks
            .values()
            .flat_map(|rank| rank.as_object().unwrap().values())
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(all, leaves);
    }
}

/// The rows of `mpi_calls` of a report of two ranks in which rank 1 comes late.
fn calls_of(mpi: Mpi, source: &str, options: &[&str], kind: &str) -> (Vec<Value>, Value) {
    let here = tempfile::tempdir().unwrap();
    let program = compile(mpi, here.path(), source, options);
    let mut command = record(here.path());
    command.args(["-o", "trace", "--", mpi.launcher, "-n", "2"]).arg(&program).arg(kind);
    assert!(output(permit(&mut command)).status.success());
    assert_consistent(&here.path().join("trace"));
    let report = report(&here.path().join("trace"));
    (report["mpi_calls"].as_array().unwrap().clone(), report)
}

/// Waiting time of a function's calls for rank 1, and for any rank.
fn waits(rows: &[Value], call: &str) -> (u64, u64) {
    let (mut late, mut all) = (0, 0);
    for wait in rows.iter().filter(|row| row["call"] == call).flat_map(|row| row["waits"].as_array().unwrap())
    {
        let ns = wait["ns"].as_u64().unwrap();
        all += ns;
        late += if wait["rank"] == 1 { ns } else { 0 };
    }
    (late, all)
}

#[test]
fn waiting_in_any_call_is_for_the_rank_that_is_late() {
    let kinds: [(&str, &[&str]); 4] = [
        (
            "objects",
            &[
                "MPI_Win_allocate",
                "MPI_Win_fence",
                "MPI_Win_free",
                "MPI_Comm_dup",
                "MPI_Comm_split",
                "MPI_Comm_create_group",
                "MPI_File_open",
                "MPI_File_set_view",
                "MPI_File_close",
                "MPI_Finalize",
            ],
        ),
        ("neighbours", &["MPI_Neighbor_allgather", "MPI_Wait"]),
        (
            "messages",
            &[
                "MPI_Recv",
                "MPI_Ssend",
                "MPI_Send",
                "MPI_Probe",
                "MPI_Test",
                "MPI_Iprobe",
                "MPI_Waitall",
                "MPI_Sendrecv",
            ],
        ),
        ("one_sided", &["MPI_Win_wait", "MPI_Win_start", "MPI_Win_lock"]),
    ];
    for mpi in installed() {
        for (kind, calls) in kinds {
            let (rows, report) = calls_of(mpi, "mpi_waits.c", &[], kind);
            for call in calls {
                let (late, all) = waits(&rows, call);
                assert!(late > 0 && late <= all, "{mpi:?} {kind} {call}: {late} of {all} ns, {rows:#?}");
            }
            let findings = report["findings"].as_array().unwrap();
            // On a busy machine, rank 0 may be later still where it has no CPU.
            let mut late = findings.iter().filter(|finding| finding["cause"] == "mpi.late");
            assert!(late.any(|finding| finding["late_rank"] == 1), "{mpi:?} {kind}");
            let start = findings.iter().position(|finding| finding["cause"] == "mpi.start").unwrap();
            assert!(findings[start..].iter().all(|finding| finding["cause"] == "mpi.start"));
        }
    }
}

/// The launcher gives the ranks their numbers before MPI does.
#[test]
fn a_rank_waits_in_the_start_for_the_one_that_is_late() {
    for mpi in installed() {
        let (rows, report) = calls_of(mpi, "mpi_late_start.c", &[], "start");
        let (late, all) = waits(&rows, "MPI_Init");
        assert!(late > 0 && late <= all, "{mpi:?}: {late} of {all} ns, {rows:#?}");
        let findings = report["findings"].as_array().unwrap();
        let start_findings = || findings.iter().filter(|finding| finding["cause"] == "mpi.start");
        let found = start_findings().find(|finding| finding["late_rank"] == 1).unwrap();
        let text = found["text"].as_str().unwrap();
        assert!(text.starts_with("rank 1 comes late: others wait for it in main [MPI_Init"), "{text}");
        // Whoever is blamed, it is the time of starting and ending MPI.
        let number = |value: &Value| value.as_u64().unwrap();
        let causes = report["causes"].as_array().unwrap().iter().filter(|row| row["state"] == "mpi_start");
        let started: u64 = causes.map(|row| number(&row["ns"])).sum();
        assert_eq!(start_findings().map(|finding| number(&finding["ns"])).sum::<u64>(), started);
    }
}

#[test]
fn calls_are_distinguished_by_their_places() {
    for mpi in installed() {
        let (rows, _) = calls_of(mpi, "mpi_waits.c", &[], "messages");
        let sends: Vec<&Value> = rows.iter().filter(|row| row["call"] == "MPI_Send").collect();
        assert_eq!(sends.len(), 6, "{sends:#?}");
        assert!(
            sends
                .iter()
                .all(|row| row["calls"] == 1 && row["line"].is_u64() && row["function"] == "messages")
        );
        let bytes: u64 = sends.iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
        assert_eq!(bytes, (1 << 20) + 5 * 4);
        let received: u64 = (rows.iter().filter(|row| row["call"] == "MPI_Recv"))
            .map(|row| row["bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(received, (1 << 20) + 4 * 4);
    }
}

/// Partitioned messages, persistent operations, large counts; a program without `MPI_Init`.
#[test]
fn functions_of_mpi_4_wait_for_the_rank_that_is_late() {
    for mpi in installed().into_iter().filter(|mpi| mpi.launcher == MPICH.launcher) {
        for (options, first) in
            [(&[][..], "MPI_Allreduce_c"), (&["-DSESSION"][..], "MPI_Comm_create_from_group")]
        {
            let (rows, report) = calls_of(mpi, "mpi4_waits.c", options, "");
            for call in [first, "MPI_Allreduce_c", "MPI_Wait", "MPI_Recv_c"] {
                let (late, all) = waits(&rows, call);
                assert!(late > 0 && late <= all, "{call}: {late} of {all} ns, {rows:#?}");
            }
            let ranks = report["ranks"].as_array().unwrap();
            assert_eq!(ranks.iter().map(|row| row["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
            let ready = rows.iter().find(|row| row["call"] == "MPI_Pready_range").unwrap();
            assert_eq!(ready["bytes"], 256, "the message leaves with its last part");
        }
    }
}

/// The runtime's events come through libovni, those of MPI from the wrapper: two recorders, one process.
#[test]
fn a_runtime_that_records_through_ovni_and_its_calls_of_mpi_are_one_process() {
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libovni.so");
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_nanos6.c", &[built.to_str().unwrap()]);
        let mut command = record(here.path());
        let run = output(permit(command.args(["-o", "trace", "--", mpi.launcher, "-n", "2"]).arg(&program)));
        assert!(run.status.success());
        let printed = text(&run.stdout);
        let received = printed.lines().find_map(|line| line.strip_prefix("received in ")).unwrap();
        let received: u64 = received.parse().unwrap();
        let trace = here.path().join("trace");
        assert_eq!(streams(&trace).len(), 4, "two ranks with a thread each, of which two recorders write");
        assert_consistent(&trace);
        let whole = report(&trace);
        assert_eq!(
            (&whole["processes"], &whole["threads"], &whole["cpus"]),
            (&2.into(), &2.into(), &2.into())
        );
        assert_eq!(whole["tasks"], 5);
        let ranks = whole["ranks"].as_array().unwrap();
        assert_eq!(ranks.iter().map(|row| row["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
        let waited = ranks[1]["peer_wait_ns"].as_u64().unwrap();
        assert!(waited > 0, "rank 1 waited for the late sender: {received}");
        // The wait belongs to the task's CPU, and is charged to the other rank.
        let causes = output(taskscope().args(["report", "--section", "ledger,blame", "--json"]).arg(&trace));
        let causes: Value = serde_json::from_slice(&causes.stdout).unwrap();
        assert_eq!(causes["ledger"]["by_node"].as_object().map_or(0, |nodes| nodes.len()), 2, "{causes}");
        let blame = causes["blame"].as_array().unwrap();
        let late: u64 = blame
            .iter()
            .filter(|row| {
                row["who"]["object"].as_str().is_some_and(|name| name.contains("late sender: rank 0"))
            })
            .map(|row| row["ns"].as_u64().unwrap())
            .sum();
        assert!(late > 0 && late <= received, "{late} of {received}: {blame:?}");
    }
}
