//! `taskscope dump --shown`: shown states of instrumented threads or tasks.

use crate::output;
use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use taskscope_session::instrumentation::{self, Behaviour, By, Item, Lane, Names};
use taskscope_trace::Trace;

pub fn run(
    trace: &Trace,
    by: By,
    behaviour: Behaviour,
    as_json: bool,
    range: (i64, i64),
) -> anyhow::Result<ExitCode> {
    let names = Names::of(trace);
    let origin = trace.first_clock_ns().unwrap_or(0).max(0) as u64;
    let mut out = output::results();
    let mut result = Ok(());
    instrumentation::play(
        trace,
        &names,
        behaviour,
        |_| true,
        |item: Item<'_>| {
            let time_ns = item.at.saturating_sub(origin) as i64;
            if !by.wants(item.lane) || time_ns < range.0 || time_ns >= range.1 {
                return ControlFlow::Continue(());
            }
            result = if as_json {
                output::write_json_line(&mut out, &ShownLine::of(trace, &names, time_ns, &item))
            } else {
                writeln!(out, "{}", line(trace, &names, time_ns, &item))
            };
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    result.and_then(|()| out.flush()).context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn line(trace: &Trace, names: &Names, time_ns: i64, item: &Item<'_>) -> String {
    let time = seconds(time_ns.max(0) as u64);
    match item.lane {
        Lane::Thread(thread) => {
            let process = names.processes[thread as usize];
            let path = &trace.streams()[thread as usize].relative_path;
            format!("{time:>16}  {path}  {}", names.words(process, &item.shown))
        }
        Lane::Task { process, task } => {
            let own = seconds(item.own_ns);
            let words = names.words(process, &item.shown);
            let words = match item.shown {
                instrumentation::Shown::Resume { thread, .. } => {
                    format!("{words} on thread {}", tid(trace, thread))
                }
                _ => words,
            };
            format!("{time:>16}  {own:>14} of its own  process {process}  task {task}  {words}")
        }
    }
}

fn tid(trace: &Trace, thread: u32) -> i64 {
    trace.streams().get(thread as usize).and_then(|stream| stream.tid()).unwrap_or(0)
}

/// Something that a thread or task begins or ceases to show.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-shown/1")]
pub struct ShownLine<'t> {
    /// Nanoseconds since the first event of the trace.
    time_ns: i64,
    /// Nanoseconds that the task had been on threads; null of a thread.
    own_ns: Option<u64>,
    /// Directory of the thread's stream below the trace's root; null of a task.
    stream: Option<&'t str>,
    /// Number of the process in the trace.
    process: u32,
    /// The task's number in its process; null of a thread.
    task: Option<u64>,
    /// One sentence.
    text: String,
}

impl<'t> ShownLine<'t> {
    fn of(trace: &'t Trace, names: &Names, time_ns: i64, item: &Item<'_>) -> ShownLine<'t> {
        let (process, thread, task) = match item.lane {
            Lane::Thread(thread) => (names.processes[thread as usize], Some(thread), None),
            Lane::Task { process, task } => (process, None, Some(task)),
        };
        ShownLine {
            time_ns,
            own_ns: task.map(|_| item.own_ns),
            stream: thread.map(|thread| trace.streams()[thread as usize].relative_path.as_str()),
            process,
            task,
            text: names.words(process, &item.shown),
        }
    }
}
