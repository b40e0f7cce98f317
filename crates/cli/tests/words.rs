//! Help texts, and references in the documentation: links, subcommands and make targets exist.

mod common;

use common::documented::pages;
use common::*;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn subcommands() -> Vec<String> {
    let help = text(&output(taskscope().arg("--help")).stdout);
    let listed = help.split("Subcommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Further lines of an explanation are indented deeper.
    let first = listed.lines().filter(|line| !line.starts_with("   "));
    first.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_subcommand_explains_itself() {
    let subcommands = subcommands();
    assert!(
        subcommands.contains(&"record".to_owned()) && subcommands.contains(&"doctor".to_owned()),
        "{subcommands:?}"
    );
    for verb in subcommands {
        let help = output(taskscope().args(["help", &verb]));
        assert!(help.status.success());
        let help = text(&help.stdout);
        assert!(help.contains("Usage:"), "{verb}");
        if verb != "help" {
            let asked = text(&output(taskscope().args([&verb, "--help"])).stdout);
            assert_eq!(asked, help, "{verb}");
        }
    }
}

#[test]
fn no_arguments_show_help_and_wrong_ones_the_usage() {
    let nothing = output(&mut taskscope());
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("Subcommands:"));
    let wrong = output(taskscope().arg("recrod"));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("'record'"), "a similar subcommand is named");
    assert_eq!(output(taskscope().arg("--version")).status.code(), Some(0));
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    for page in pages() {
        let content = fs::read_to_string(&page).unwrap();
        for target in content.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if target.starts_with("http") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(file.exists(), "{}: {target}", page.display());
            let is_page = file.extension().is_some_and(|extension| extension == "md");
            let is_known = || anchors(&fs::read_to_string(&file).unwrap()).any(|known| known == anchor);
            assert!(
                anchor.is_empty() || !is_page || is_known(),
                "{}: {target}: no such heading",
                page.display()
            );
        }
    }
}

/// The anchors of a page's headings, as mdbook and code hosts form them.
fn anchors(content: &str) -> impl Iterator<Item = String> + '_ {
    let mut is_code = false;
    let headings = content.lines().filter(move |line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    headings.map(|heading| {
        let letters = heading.trim_start_matches('#').trim().chars().map(|letter| match letter {
            ' ' => '-',
            letter => letter.to_ascii_lowercase(),
        });
        letters.filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
    })
}

#[test]
fn the_summary_of_the_book_lists_every_page() {
    let docs = root().join("docs").canonicalize().unwrap();
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for page in pages() {
        let page = page.canonicalize().unwrap();
        let Ok(name) = page.strip_prefix(&docs) else { continue };
        let name = name.to_str().unwrap();
        assert!(
            name == "SUMMARY.md" || summary.contains(&format!("]({name})")),
            "{name} is not in docs/SUMMARY.md"
        );
    }
}

#[test]
fn documented_options_exist() {
    let subcommands = subcommands();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for page in pages() {
        let content = fs::read_to_string(&page).unwrap();
        let words: Vec<&str> = content.split_whitespace().collect();
        for pair in words.windows(2) {
            let name = |word: &str| -> String {
                word.chars()
                    .take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')
                    .collect()
            };
            let verb = name(pair[1]);
            // Options may be before the subcommand.
            if pair[0].ends_with("`taskscope") && !verb.is_empty() && !verb.starts_with('-') {
                assert!(subcommands.contains(&verb), "{}: taskscope {verb}", page.display());
            }
            if pair[0].ends_with("`make") && !verb.is_empty() {
                assert!(makefile.contains(&format!("\n{verb}:")), "{}: make {verb}", page.display());
            }
        }
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let own = env!("CARGO_BIN_EXE_taskscope");
    let script = format!("set -o pipefail; '{own}' doctor --json | true; echo ${{PIPESTATUS[0]}}");
    let piped = output(std::process::Command::new("bash").args(["-c", &script]));
    let code = text(&piped.stdout);
    assert!(["0\n", "1\n"].contains(&code.as_str()), "{code}");
    assert!(!text(&piped.stderr).contains("error"), "{}", text(&piped.stderr));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let plain = output(taskscope().arg("doctor"));
    assert!(!text(&plain.stdout).contains('\u{1b}'));
    let forced = output(taskscope().arg("doctor").env("CLICOLOR_FORCE", "1"));
    assert!(text(&forced.stdout).contains('\u{1b}'));
    let unwanted = output(taskscope().arg("doctor").env("NO_COLOR", "1"));
    assert!(!text(&unwanted.stdout).contains('\u{1b}'));
    for arguments in [["doctor", "--no-color"], ["--no-color", "doctor"]] {
        let unwanted = output(taskscope().args(arguments).env("CLICOLOR_FORCE", "1"));
        assert!(!text(&unwanted.stdout).contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn doctor_reports_whether_recording_works() {
    let json = output(taskscope().args(["doctor", "--json"]));
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(report["schema"], "taskscope-doctor/1");
    assert_eq!(report["can_record"], true, "the machine that runs the tests can record");
    assert_eq!(json.status.code(), Some(0));
    let broken = output(taskscope().args(["doctor"]).env("TASKSCOPE_OMPT_LIBRARY", "/no/such/file"));
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken.stdout).contains("try:"), "a problem has a remedy");
}

#[test]
fn completions_and_manual_pages_are_made() {
    let here = tempfile::tempdir().unwrap();
    assert!(output(taskscope().arg("generate").arg(here.path())).status.success());
    let names = names(here.path());
    for name in ["_taskscope", "taskscope.bash", "taskscope.fish", "taskscope.1", "taskscope-record.1"] {
        assert!(names.iter().any(|made| made == name), "{name}");
    }
}

#[test]
fn names_of_reports_and_of_runtimes_are_explained() {
    let explained = |name: &[&str]| {
        let output = output(taskscope().arg("explain").args(name));
        (output.status.code(), text(&output.stdout))
    };
    let (code, all) = explained(&[]);
    assert_eq!(code, Some(0));
    for name in [
        "badly-distributed",
        "Nanos6: section",
        "Worker: Sponge mode",
        "nOS-V: idle state",
        "MPI_Waitall",
        "Leader",
    ] {
        assert!(all.contains(name), "{name}");
    }
    let (_, sponge) = explained(&["Sponge mode"]);
    assert!(sponge.contains("(section of Nanos6)") && sponge.contains("counts as"), "{sponge}");
    assert!(sponge.contains("6Wg begins it, 6WG ends it"), "{sponge}");
    assert_eq!(explained(&["6Wg"]).1, sponge);
    // A name that several have: of reports first.
    let (_, taskwait) = explained(&["Taskwait"]);
    assert!(taskwait.starts_with("taskwait  (state of threads)\n"), "{taskwait}");
    for runtime in ["Nanos6", "NODES", "OpenMP-V"] {
        assert!(taskwait.contains(&format!("of {runtime})")), "{runtime}: {taskwait}");
    }
    // Without a trace each runtime's own settings, below its name.
    let (_, nobody) = explained(&["nobody"]);
    let settings = ["OMP_WAIT_POLICY", "cpumanager.policy=busy", "governor.policy=busy"];
    assert!(settings.iter().all(|setting| nobody.contains(setting)), "{nobody}");
    assert_eq!(explained(&["no such name"]).0, Some(2));
}

/// Kept recordings are read anywhere: they name no folder of the machine that recorded them.
#[test]
fn kept_traces_have_no_paths_of_the_recording_machine() {
    let mut todo: Vec<PathBuf> =
        ["traces", "shown"].iter().map(|folder| root().join("crates/cli/tests").join(folder)).collect();
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                todo.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            for folder in ["/tmp/", "/work/", "/root/", "/home/"] {
                let is_there = bytes.windows(folder.len()).any(|part| part == folder.as_bytes());
                assert!(!is_there, "{} contains {folder}", path.display());
            }
        }
    }
}
