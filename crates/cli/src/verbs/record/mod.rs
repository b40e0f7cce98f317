//! `taskscope record [options] -- CMD…`: runs CMD with a recorder attached and passes on everything
//! that is the program's: input, output, signals, exit code.

mod child;
mod program;

use crate::messages::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit code when the program could not be tried at all, as with `env`.
pub const CANNOT_RUN: u8 = 125;

/// Run a program with a recorder attached, write a trace directory, print a summary.
///
/// The program's input, output, signals and exit code pass through. Exit codes of taskscope's own
/// are those of `env`: 125 when recording could not be set up (the program was not run), 126 when
/// the program cannot be executed, 127 when it was not found.
#[derive(clap::Args)]
pub struct Args {
    /// The program to run, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the program; never returns when the program was killed by a signal.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let program = program::find(&args.command[0])?;
    let mut command = std::process::Command::new(&program);
    {
        use std::os::unix::process::CommandExt;
        command.arg0(&args.command[0]);
    }
    command.args(&args.command[1..]);
    let outcome = child::run(&mut command).map_err(|error| {
        Failure::new(format!("cannot run {}", program.display()))
            .why(error.to_string())
            .exit_code(program::CANNOT_EXECUTE)
    })?;
    Ok(outcome.pass_on())
}
