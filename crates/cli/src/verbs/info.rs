//! `taskscope info`: the contents of a trace, and their reliability.

use crate::newest::{UNNAMED, choose};
use crate::opening::SelectionArgs;
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_view::info::{Info, ProfileInfo};

/// Show the contents of a trace, its completeness, clocks and losses.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory; or a profile, or a directory of profiles [default: the newest in the working directory].
    #[arg(value_name = "TRACE", default_value = UNNAMED, hide_default_value = true)]
    trace: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Prints it.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    choose(&mut args.trace)?;
    let part = &args.selection;
    if part.range.is_none()
        && part.filter.is_none()
        && let Some((profile, _)) = super::profiles::open_profile(&args.trace)?
    {
        let info = ProfileInfo::of(&args.trace, &profile);
        let mut out = output::results();
        match args.json {
            true => output::write_json(&mut out, &info),
            false => out.write_all(info.text().as_bytes()),
        }
        .and_then(|()| out.flush())
        .context("cannot write the contents of the profile")?;
        return Ok(ExitCode::SUCCESS);
    }
    let session = super::open_part(&args.trace, &args.selection.parse()?)?;
    let mut out = output::results();
    let info = Info::of(&session);
    match args.json {
        true => output::write_json(&mut out, &info)?,
        false => out.write_all(info.text().as_bytes())?,
    }
    out.flush().context("cannot write the contents of the trace")?;
    Ok(ExitCode::SUCCESS)
}
