//! `taskscope report`: the use of the time, and the blame for losses.
//!
//! The arguments become a [`Request`], which each question answers if it is its own: [`profile`], [`graph`], [`threads`].

mod call_paths;
mod comparison;
mod graph;
mod graph_args;
mod history;
mod page;
mod profile;
mod request;
mod shown;
mod threads;

pub use request::Args;

use crate::newest::choose;
use request::Request;
use std::process::ExitCode;

/// Prints the report.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = args.html.as_ref().filter(|_| !args.history.is_empty()) {
        return history::run(file, &args.history, &args.selection.parse()?);
    }
    choose(&mut args.trace)?;
    if let (Some(before), Some(file)) = (&args.compare, &args.html) {
        return comparison::run(file, before, &args.trace, &args.selection.parse()?);
    }
    let request = Request::of(args)?;
    if let Some(code) = profile::run(&request)? {
        return Ok(code);
    }
    if let Some(code) = graph::run(&request)? {
        return Ok(code);
    }
    threads::run(&request)
}
