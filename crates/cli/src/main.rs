//! The `taskscope` command: the definition of the command line and the glue between its parts.
//!
//! Each subcommand is in `verbs/NAME.rs`: a `pub struct Args` for clap, and a
//! `pub fn run(Args) -> anyhow::Result<ExitCode>`. To add a subcommand, write that file, name it in
//! `verbs/mod.rs`, and add one variant to [`Verb`] and one arm to [`Verb::run`].
//!
//! Results go to stdout ([`output::results`]), messages to stderr ([`stderr`]). A subcommand returns its errors
//! ([`messages::Failure`] for those of more than one line); only `main` prints them and turns them into an exit
//! code. A closed pipe is success.

// One file is exempt: `verbs/record/inherited.rs`.
#![deny(unsafe_code)]
#![deny(clippy::print_stdout)] // `println!` panics on a closed pipe; write to `output::results()`

// First, as its macros are known from here on.
#[macro_use]
mod stderr;

#[cfg(test)]
mod documented;
mod ignored_signals;
mod libovni;
mod messages;
mod newest;
mod opening;
mod output;
mod ovni_names;
mod pool;
mod progress;
mod reading;
#[cfg(test)]
mod schemas;
mod verbs;
mod watch;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use signal_hook::consts::SIGXFSZ;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use taskscope_view::format::{harmless, shell_word};
use verbs::{
    attach, check, diff, doctor, dump, emulate, explain, export, generate, import, info, query, record,
    report, slice, sort, sync, top, view,
};

/// Records task-parallel programs and explains their lost time.
///
/// `taskscope record -- ./app` runs ./app with a recorder attached, without recompilation. It then prints the breakdown
/// of the workers' time, the largest losses, and the code to blame.
#[derive(Parser)]
#[command(name = "taskscope", version, arg_required_else_help = true, infer_subcommands = false)]
#[command(subcommand_help_heading = "Subcommands", subcommand_value_name = "SUBCOMMAND")]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
    /// Disable colours (also when NO_COLOR is set or stdout is not a terminal).
    #[arg(long, global = true)]
    no_color: bool,
}

#[derive(Subcommand)]
enum Verb {
    Record(record::Args),
    Attach(attach::Args),
    Report(report::Args),
    Info(info::Args),
    Explain(explain::Args),
    View(view::Args),
    Check(check::Args),
    Emulate(emulate::Args),
    Dump(dump::Args),
    Top(top::Args),
    Sort(sort::Args),
    Slice(slice::Args),
    Sync(sync::Args),
    Import(import::Args),
    Export(export::Args),
    Query(query::Args),
    Diff(diff::Args),
    Doctor(doctor::Args),
    #[command(hide = true)]
    Generate(generate::Args),
}

impl Verb {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Verb::Record(args) => record::run(args),
            Verb::Attach(args) => attach::run(args),
            Verb::Info(args) => info::run(args),
            Verb::Report(args) => report::run(args),
            Verb::Explain(args) => explain::run(args),
            Verb::View(args) => view::run(args),
            Verb::Doctor(args) => doctor::run(args),
            Verb::Emulate(args) => emulate::run(args),
            Verb::Import(args) => import::run(args),
            Verb::Export(args) => export::run(args),
            Verb::Query(args) => query::run(args),
            Verb::Diff(args) => diff::run(args),
            Verb::Generate(args) => generate::run(args, CommandLine::command()),
            Verb::Top(args) => top::run(args),
            Verb::Sync(args) => sync::run(args),
            Verb::Sort(args) => sort::run(args),
            Verb::Slice(args) => slice::run(args),
            Verb::Dump(args) => dump::run(args),
            Verb::Check(args) => check::run(args),
        }
    }
}

fn main() -> ExitCode {
    // A link under another name (`ovniemu`, …) is another command line.
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // A recorded program inherits signal dispositions.
    if verb_of(&arguments).is_none_or(|verb| verb != "record") {
        outlive_file_limits();
        pool::prepare();
    }
    ovni_names::run(&arguments).unwrap_or_else(|| taskscope(arguments))
}

/// The place of the subcommand; the only option that may come before it has no value.
fn verb_of(arguments: &[OsString]) -> Option<&OsString> {
    arguments.iter().skip(1).find(|argument| *argument != "--no-color")
}

/// Turns writes beyond `ulimit -f` into errors that are reported. Otherwise the signal would end the process.
fn outlive_file_limits() {
    // Without a handler, the signal keeps its default action.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// An error of the command line that is safe on a terminal. It repeats the arguments, which a shell may have made from
/// file names.
fn harmless_misuse(error: &clap::Error, arguments: &[OsString]) -> clap::Error {
    let shown = arguments.iter().map(|argument| harmless(&argument.to_string_lossy()).into_owned());
    let parsed = CommandLine::try_parse_from(shown);
    parsed.err().unwrap_or_else(|| CommandLine::command().error(error.kind(), "an argument is not valid"))
}

/// The intended command when a program or a trace is in the place of a subcommand.
fn meant(first: &Path) -> Option<String> {
    if newest::is_trace(first) {
        return Some(format!("taskscope report {}", shell_word(first)));
    }
    record::is_program(first).then(|| format!("taskscope record -- {}", shell_word(first)))
}

fn taskscope(arguments: Vec<OsString>) -> ExitCode {
    // Exit code 125, as with `env`, lets job scripts distinguish "could not run" from the program's own
    // codes.
    let is_record = verb_of(&arguments).is_some_and(|verb| verb == "record");
    let misuse = if is_record { record::CANNOT_RUN } else { 2 };
    let given = arguments.clone();
    match CommandLine::try_parse_from(arguments) {
        Ok(command_line) => {
            if command_line.no_color {
                anstream::ColorChoice::Never.write_global();
            }
            messages::finish(command_line.verb.run())
        }
        Err(error) => {
            let asked_for_help = !error.use_stderr();
            let error = if asked_for_help { error } else { harmless_misuse(&error, &given) };
            // Nothing is left to do when even the message cannot be written.
            let _ = error.print();
            if error.kind() == ErrorKind::InvalidSubcommand
                && let Some(command) = verb_of(&given).map(Path::new).and_then(meant)
            {
                eprintln!("  try:  {command}");
            }
            ExitCode::from(if asked_for_help { 0 } else { misuse })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subcommand_may_come_after_the_global_option() {
        let verb = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            verb_of(&words).cloned()
        };
        assert_eq!(verb("taskscope --no-color record -- ./app"), Some("record".into()));
        assert_eq!(verb("taskscope record --no-color"), Some("record".into()));
        assert_eq!(verb("taskscope --version record"), Some("--version".into()));
        assert_eq!(verb("taskscope"), None);
    }
}
