//! MPI jobs that never end: the report names the ranks that wait for each other, the calls, and the missing
//! partner.

mod common;

use common::mpi::*;
use common::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Records a job of this mode until its trace has a hang of so many waits, and ends it; the hang's finding. Two waits or more
/// are a deadlock: on a busy machine, ranks are silent also before they come to it.
fn hang_of(mpi: Mpi, here: &Path, program: &Path, mode: &str, waits: usize) -> Value {
    let trace = here.join(mode);
    let mut command = record(here);
    command.args(["-o", mode, "--", mpi.launcher, "-n", &RANKS.to_string()]).arg(program).arg(mode);
    let mut child = permit(&mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    // A rank that does not start MPI has a team.
    let recorded = if mode == "start" { waits + 2 } else { RANKS };
    let mut found = Value::Null;
    while found.is_null() && begin.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(300));
        if trace.is_dir() && streams(&trace).len() >= recorded {
            let Some(mut report) = report_so_far(&trace) else { continue };
            let first = report["findings"][0].take();
            // Meanwhile a rank may wait for another one to start.
            let is_meant = (first["hang"]["waits"][0]["call"] == "Init_thread") == (mode == "start");
            let is_whole = first["hang"]["waits"].as_array().is_some_and(|all| all.len() >= waits);
            if is_meant && is_whole && (first["hang"]["deadlock"] == true) == (waits >= 2) {
                found = first;
            }
        }
    }
    // It is passed on to the launcher, which ends the ranks.
    let process = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    assert!(!found.is_null(), "{mpi:?} {mode}: no hang is found");
    found
}

fn compiled(mpi: Mpi, here: &Path) -> PathBuf {
    compile(mpi, here, "mpi_hang.c", &["-fopenmp"])
}

/// For each wait in the cycle: function, the needed rank, its pending operation.
fn circle(hang: &Value) -> Vec<(String, u64, String)> {
    let circle = hang["circle"].as_u64().unwrap() as usize;
    let waits = hang["waits"].as_array().unwrap()[..circle].iter();
    let mut rows: Vec<(String, u64, String)> = waits
        .map(|wait| {
            let need = &wait["needs"][0];
            let text = |value: &Value| value.as_str().unwrap_or("").to_string();
            (text(&wait["call"]), need["rank"].as_u64().unwrap(), text(&need["owes"]))
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn a_hang_names_the_ranks_in_the_circle_and_their_calls() {
    // Mode; waits; for each wait in the cycle the call, the needed rank, its pending operation; a word of the
    // advice.
    type Row = (&'static str, usize, &'static [(&'static str, u64, &'static str)], &'static str);
    let rows: [Row; 9] = [
        ("receives", 2, &[("Recv", 0, "message"), ("Recv", 1, "message")], "MPI_Sendrecv"),
        (
            "requests",
            2,
            &[("Waitall", 0, "message"), ("Waitall", 1, "message")],
            "tag 8 that is not received",
        ),
        ("sends", 2, &[("Send", 0, "receipt"), ("Send", 1, "receipt")], "MPI_Irecv before MPI_Send"),
        ("tags", 2, &[("Finalize", 0, "part"), ("Recv", 1, "message")], "compare the tags"),
        ("anybody", 2, &[("Probe", 0, "message"), ("Recv", 1, "message")], "receive before they send"),
        ("order", 2, &[("Allreduce", 0, "same_part"), ("Barrier", 1, "same_part")], "same operations"),
        ("nonblocking", 2, &[("Recv", 0, "message"), ("Wait", 1, "part")], "call MPI_Ibarrier: rank 1"),
        ("window", 2, &[("Recv", 0, "message"), ("Win_wait", 1, "call")], "MPI_Win_complete"),
        (
            "group",
            2,
            &[("Comm_create_group", 1, "call"), ("Recv", 0, "message")],
            "rank 1 calls MPI_Comm_create_group",
        ),
    ];
    for mpi in installed() {
        let here = tempfile::tempdir().unwrap();
        let program = compiled(mpi, here.path());
        for (mode, waits, expected, advice) in rows {
            let finding = hang_of(mpi, here.path(), &program, mode, waits);
            let (hang, text) = (&finding["hang"], finding["text"].as_str().unwrap());
            assert_eq!(hang["deadlock"], true, "{mpi:?} {mode}: {finding}");
            let expected: Vec<_> = expected
                .iter()
                .map(|(call, rank, owes)| (call.to_string(), *rank, owes.to_string()))
                .collect();
            assert_eq!(circle(hang), expected, "{mpi:?} {mode}: {finding}");
            for rank in 0..RANKS {
                assert!(text.contains(&format!("rank {rank}")), "{text}");
            }
            let given = hang["advice"].as_array().unwrap();
            assert!(given.iter().any(|text| text.as_str().unwrap().contains(advice)), "{mode}: {given:?}");
            let explained = output(taskscope().args(["explain", "F1"]).arg(here.path().join(mode)));
            // Lines are broken anywhere; general advice is left out.
            let words = text_of(&explained.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(advice), "{words:?}");
            assert!(!text_of(&explained.stdout).contains("Locks in a circle"));
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn tags_and_sources_are_those_of_the_call() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compiled(mpi, here.path());
        let finding = hang_of(mpi, here.path(), &program, "anybody", 2);
        let mut needs: Vec<(Value, Value)> = finding["hang"]["waits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|wait| (wait["needs"][0]["tag"].clone(), wait["needs"][0]["any_source"].clone()))
            .collect();
        needs.sort_by_key(|(tag, _)| tag.is_null());
        assert_eq!(needs, [(json!(4), json!(false)), (json!(null), json!(true))]);
    }
}

/// The first threads of two teams wait for each other, and the teams for them.
#[test]
fn threads_that_wait_for_a_rank_belong_to_the_hang() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let finding = hang_of(mpi, here.path(), &compiled(mpi, here.path()), "threads", 4);
        let hang = &finding["hang"];
        assert_eq!((&hang["circle"], &hang["deadlock"]), (&json!(2), &json!(true)), "{finding}");
        let states: Vec<&Value> =
            hang["waits"].as_array().unwrap().iter().map(|wait| &wait["state"]).collect();
        assert_eq!(states.iter().filter(|state| ***state == json!("barrier")).count(), 2, "{finding}");
    }
}

/// A rank that sleeps and never takes part is not a deadlock, but is named.
#[test]
fn an_absent_rank_is_named_with_its_last_call() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let finding = hang_of(mpi, here.path(), &compiled(mpi, here.path()), "member", 1);
        let hang = &finding["hang"];
        assert_eq!((&hang["circle"], &hang["deadlock"]), (&json!(0), &json!(false)), "{finding}");
        assert_eq!(hang["waits"][0]["needs"][0]["rank"], 1);
        let text = finding["text"].as_str().unwrap();
        assert!(text.contains("serial code after main [MPI_Barrier"), "{text}");
    }
}

/// MPI has not told any rank yet.
#[test]
fn a_start_that_never_ends_names_the_rank_that_does_not_come() {
    for mpi in installed() {
        let here = tempfile::tempdir().unwrap();
        let finding = hang_of(mpi, here.path(), &compiled(mpi, here.path()), "start", 1);
        let wait = &finding["hang"]["waits"][0];
        assert_eq!(
            (&wait["call"], &wait["needs"][0]["rank"]),
            (&json!("Init_thread"), &json!(1)),
            "{finding}"
        );
        let text = finding["text"].as_str().unwrap();
        assert!(text.contains("rank 0 ") && text.contains("for MPI_Init_thread by rank 1"), "{text}");
        // Its threads are recorded, though it calls no function of MPI.
        assert!(!text.contains("not in the trace") && text.contains("serial code"), "{text}");
    }
}

#[test]
fn a_job_that_is_killed_while_it_works_did_not_hang() {
    for mpi in installed().into_iter().take(1) {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_abort.c", &[]);
        for mode in ["abort", "exit"] {
            let mut command: Command = record(here.path());
            command.args(["-o", mode, "--", mpi.launcher, "-n", "2"]).arg(&program).arg(mode);
            assert!(!output(permit(&mut command)).status.success());
            let report = report(&here.path().join(mode));
            let findings = report["findings"].as_array().unwrap();
            assert!(findings.iter().all(|finding| finding["pattern"] != "hung"), "{mode}: {findings:?}");
            let is_aborted = report["verdict"].as_str().unwrap().contains(" aborted the job after ");
            assert_eq!(is_aborted, mode == "abort", "{}", report["verdict"]);
        }
    }
}

#[test]
fn a_rank_that_computes_until_the_job_is_killed_is_late() {
    for mpi in installed() {
        let here = tempfile::tempdir().unwrap();
        let program = compile(mpi, here.path(), "mpi_late_killed.c", &[]);
        let ways = ["barrier", "bcast", "receive", "send", "request", "finalize"];
        for (way, end) in ways.into_iter().zip(["abort", "kill"].into_iter().cycle()) {
            let mut command: Command = record(here.path());
            command.args(["-o", way, "--", mpi.launcher, "-n", "2"]).arg(&program).args([way, end, "400"]);
            assert!(!output(permit(&mut command)).status.success());
            let report = report(&here.path().join(way));
            let findings = report["findings"].as_array().unwrap();
            assert!(
                findings.iter().all(|finding| finding["pattern"] != "hung"),
                "{mpi:?} {way}: {findings:?}"
            );
            let blames_rank_one = |finding: &&Value| {
                finding["cause"] == "mpi.late" && finding["text"].as_str().unwrap().starts_with("rank 1")
            };
            assert!(findings.iter().filter(blames_rank_one).count() > 0, "{mpi:?} {way}: {findings:?}");
            // The call that had not ended is nothing but that wait.
            let calls = report["mpi_calls"].as_array().unwrap().iter();
            let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
            // Both may have waited for each other in the start.
            let is_late = |row: &&Value| {
                let mut waits = row["waits"].as_array().unwrap().iter();
                row["call"] != "MPI_Init" && waits.any(|wait| wait["rank"] == 1)
            };
            let open = calls.filter(is_late).max_by_key(|row| number(row, "ns")).unwrap();
            assert!(number(open, "wait_ns") >= number(open, "ns") / 10 * 9, "{mpi:?} {way}: {open}");
        }
    }
}
