//! `taskscope info`: what is in a trace, and how far it can be trusted.

use crate::newest::{UNNAMED, choose};
use crate::output;
use crate::reading::SelectionArgs;
use anyhow::Context;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_profile::Profile;
use taskscope_view::format;

/// Say what is inside a trace, how complete it is, which clocks it has, and what was lost.
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
        && let Some((profile, _)) = super::report_paths::open_profile(&args.trace)?
    {
        return of_profile(&args, &profile);
    }
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

/// Prints the processes of a profile with all that they recorded of themselves, and the sizes of its tree.
fn of_profile(args: &Args, profile: &Profile) -> anyhow::Result<ExitCode> {
    let mut out = output::results();
    let nodes = profile.tree.len();
    if args.json {
        let info = json!({
            "profile": args.trace.display().to_string(),
            "processes": profile.processes,
            "modules": profile.modules.len(),
            "paths": nodes,
        });
        serde_json::to_writer_pretty(&mut out, &info).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let count = |number, what| format::counted(number, what);
        writeln!(
            out,
            "{}: profile of {}, {}, {}",
            format::path(&args.trace),
            count(profile.processes.len() as u64, "process"),
            count(nodes as u64, "call path"),
            count(profile.modules.len() as u64, "module"),
        )?;
        for process in &profile.processes {
            writeln!(out)?;
            for (key, value) in process {
                writeln!(out, "  {:<20} {}", format::harmless(key), format::harmless(value))?;
            }
        }
        if let Some(note) = taskscope_view::incomplete_profiles(&profile.processes) {
            writeln!(out, "\n  {note}")?;
        }
    }
    out.flush().context("cannot write what is in the profile")?;
    Ok(ExitCode::SUCCESS)
}
