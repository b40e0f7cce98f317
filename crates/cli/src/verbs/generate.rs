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
    // `taskscope help report` prints the page of `report`, so `help` needs none.
    let pages = command.clone().disable_help_subcommand(true);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "taskscope", &args.directory)
            .with_context(context)?;
    }
    clap_mangen::generate_to(pages, &args.directory).with_context(context)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::{Args, run};
    use clap::CommandFactory;

    #[test]
    fn each_subcommand_has_one_page() {
        let directory = tempfile::tempdir().unwrap();
        run(Args { directory: directory.path().to_owned() }, crate::CommandLine::command()).unwrap();
        let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let pages: Vec<String> =
            names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".1")).collect();
        assert!(
            ["taskscope.1", "taskscope-record.1"].iter().all(|page| pages.contains(&(*page).to_owned())),
            "{pages:?}"
        );
        assert!(!pages.iter().any(|page| page.contains("-help")), "{pages:?}");
    }
}
