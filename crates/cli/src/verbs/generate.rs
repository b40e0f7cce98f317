//! `taskscope generate DIR` (hidden, for `make install`): shell completions and manual pages, from the
//! same definition that parses the command line.

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write shell completions and manual pages.
#[derive(clap::Args)]
pub struct Args {
    /// Existing directory.
    directory: PathBuf,
}

/// Writes one completion file for each shell, and one page for `command` and each of its subcommands.
pub fn run(args: Args, mut command: Command) -> anyhow::Result<ExitCode> {
    let context = || format!("cannot write to {}", args.directory.display());
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "taskscope", &args.directory)
            .with_context(context)?;
    }
    clap_mangen::generate_to(command, &args.directory).with_context(context)?;
    Ok(ExitCode::SUCCESS)
}
