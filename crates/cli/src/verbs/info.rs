//! `taskscope info`: what is in a trace, and how far it can be trusted.

use crate::newest::{UNNAMED, choose};
use crate::output;
use crate::reading::SelectionArgs;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Say what is inside a trace, how complete it is, which clocks it has, and what was lost.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory [default: the newest in the working directory].
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
    let session = super::open_part(&args.trace, &args.selection.parse()?)?;
    let mut out = output::results();
    if args.json {
        let mut info = taskscope_view::info::json(&session);
        if !session.devices.is_empty() {
            info["devices"] = taskscope_view::devices::info_json(&session);
        }
        serde_json::to_writer_pretty(&mut out, &info).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(taskscope_view::info::text(&session).as_bytes())?;
        out.write_all(taskscope_view::devices::info_text(&session).as_bytes())?;
    }
    out.flush().context("cannot write what is in the trace")?;
    Ok(ExitCode::SUCCESS)
}
