//! Tests that the command line accepts every `taskscope` command of the documentation.

#[path = "../tests/common/documented.rs"]
mod pages;

use crate::CommandLine;
use clap::Parser;
use clap::error::ErrorKind;
use std::fs;

#[test]
fn every_documented_command_is_accepted() {
    let mut commands = 0;
    for page in pages::pages() {
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for command in pages::blocks(&lines).iter().flat_map(|block| &block.commands) {
            for arguments in pages::taskscope_arguments(&command.text) {
                commands += 1;
                let Err(error) = CommandLine::try_parse_from(&arguments) else { continue };
                let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
                assert!(is_help, "{}:{}: {error}", page.display(), command.output_begin);
            }
        }
    }
    assert!(commands > 50, "{commands} commands");
}

/// Commands in the text and in blocks that are not run: `taskscope view TRACE`. Placeholders have no values yet, so only names of
/// subcommands and options are judged.
#[test]
fn every_mentioned_command_has_names_that_exist() {
    let mut commands = 0;
    for page in pages::pages() {
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        for (line, command) in pages::mentioned(&text) {
            for arguments in pages::taskscope_arguments(&command) {
                commands += 1;
                let Err(error) = CommandLine::try_parse_from(&arguments) else { continue };
                let has_unknown_name =
                    matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
                assert!(!has_unknown_name, "{}:{line}: {error}", page.display());
            }
        }
    }
    assert!(commands > 100, "{commands} commands");
}

#[test]
fn mentioned_commands_are_in_backquotes_and_in_other_blocks() {
    let text = "Use `taskscope view TRACE`.\n```text\ntaskscope top T    counts\n```\n```console\n$ taskscope dump\n```\n";
    let expected = [(1, "taskscope view TRACE".to_owned()), (3, "taskscope top T".to_owned())];
    assert_eq!(pages::mentioned(text), expected);
    assert_eq!(
        pages::mentioned("`taskscope record [-o DIR] -- CMD…`"),
        [(1, "taskscope record -o DIR -- CMD".to_owned())]
    );
}

#[test]
fn shell_commands_split_into_simple_ones() {
    let split =
        |text| pages::taskscope_arguments(text).into_iter().map(|words| words.join("|")).collect::<Vec<_>>();
    assert_eq!(split("taskscope record -- ./app 'a b' # why"), ["taskscope|record|--|./app|a b"]);
    assert_eq!(
        split("OMP_NUM_THREADS=2 mpirun -n 4 taskscope record -- ./app"),
        ["taskscope|record|--|./app"]
    );
    assert_eq!(
        split("taskscope dump t 2>errors | head -n 3; taskscope top t > file"),
        ["taskscope|dump|t", "taskscope|top|t"]
    );
    assert_eq!(
        split("taskscope record \\\n  -- ./app && taskscope report"),
        ["taskscope|record|--|./app", "taskscope|report"]
    );
    assert!(split("command -v taskscope").is_empty());
}
