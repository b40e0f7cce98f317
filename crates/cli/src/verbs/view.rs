//! `taskscope view`: the local viewer.

use crate::messages::Failure;
use anstyle::Style;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;
use taskscope_view::format;
use taskscope_view::page::Page;
use taskscope_view::server::Viewer;

/// Look at a recorded run in a browser: a timeline at any zoom, from this machine only.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory.
    trace: PathBuf,
    /// Listen on this port [default: any free one].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Open a browser as well.
    #[arg(long)]
    open: bool,
}

/// Serves until `^C`.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let session = super::open(&args.trace)?;
    let events = session.events;
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    let page = Arc::new(Page::new(session, &analysis, &problems));
    let viewer = Viewer::start(page, args.port).map_err(|error| {
        let failure = Failure::new("cannot start the viewer").why(error.to_string());
        if args.port == 0 { failure } else { failure.remedy("leave --port out        (takes any free port)") }
    })?;
    let port = viewer.port();
    let dim = Style::new().dimmed();
    let took = format::time(begun.elapsed().as_nanos() as u64);
    let mut out = anstream::AutoStream::auto(std::io::stderr().lock());
    // When stderr is closed there is nobody to tell, but `--open` may have opened a browser.
    let _ = writeln!(
        out,
        "viewing {}: {} events, ready in {took}\n  {}\n  \
         {dim}from another machine: ssh -L {port}:127.0.0.1:{port} {}, then open the same address there; ^C ends the viewer{dim:#}",
        args.trace.display(),
        format::short_count(events),
        viewer.address(),
        host_name(),
    );
    let _ = out.flush();
    drop(out);
    if args.open {
        open_browser(&viewer.address());
    }
    viewer.wait_for_interrupt()?;
    Ok(ExitCode::SUCCESS)
}

fn host_name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| "HOST".to_string())
}

fn open_browser(address: &str) {
    let started = Command::new("xdg-open").arg(address).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        eprintln!("cannot open a browser (xdg-open: {error}); open the address above");
    }
}
