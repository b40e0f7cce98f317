//! `taskscope sort`: regions of unsorted events in their order, in the files.

use crate::messages::Failure;
use crate::opening::{NAMED_TRACE, TraceArgs};
use crate::progress::Progress;
use crate::reading::{Interruption, print_problems};
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use taskscope_event::StreamFile;
use taskscope_trace::{ProblemKind, Stream};
use taskscope_view::format::counted;

/// Files of a stream that may be unsorted.
const FILES: [StreamFile; 3] = StreamFile::ALL;

/// Sort the regions that were recorded unsorted, for tools that need sorted streams.
///
/// taskscope itself needs no sorting. Each file is rewritten and renamed, so a crash leaves the old or the new one;
/// links to it stay links. Files behind links out of the trace are read, but not sorted.
#[derive(clap::Args)]
#[command(mut_arg("trace", |trace| trace.help(NAMED_TRACE)))]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Only list unsorted regions; exit with 1 if there are any
    #[arg(long)]
    pub check: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.trace.require_named("sort")?;
    let trace = args.trace.open(true)?;
    let unsorted = |file: StreamFile| {
        trace
            .streams()
            .iter()
            .filter(move |stream| stream.file(file).is_some_and(|file| file.needs_sorting()))
    };
    print_problems(&trace);
    let interruption = Interruption::watch()?;
    let bytes_of =
        |which: StreamFile, stream: &Stream| stream.file(which).map_or(0, |file| file.bytes().len() as u64);
    let total =
        FILES.into_iter().flat_map(|which| unsorted(which).map(move |stream| bytes_of(which, stream))).sum();
    let mut progress = Progress::new("sorting", "bytes", total);
    // A link may lead anywhere, even to `/`: only files in the named directory are written.
    let root = trace.root().canonicalize()?;
    let is_outside = |file: &Path| file.canonicalize().is_ok_and(|place| !place.starts_with(&root));
    let (mut files, mut outside, mut unfinished, mut done) = (0, 0, 0, 0);
    for which in FILES {
        for stream in unsorted(which) {
            let path = stream.directory.join(which.name());
            if is_outside(&path) {
                outside += 1;
                eprintln!(
                    "{} is unsorted, but lies outside of the trace: left as it is",
                    taskscope_view::format::harmless(&path.to_string_lossy())
                );
                done += bytes_of(which, stream);
                continue;
            }
            files += 1;
            if args.check {
                eprintln!(
                    "{} has unsorted regions",
                    taskscope_view::format::harmless(&path.to_string_lossy())
                );
                continue;
            }
            if interruption.is_requested() {
                progress.finish();
                let kept = format!("{} sorted, the others are as they were", counted(files - 1, "file"));
                return Err(interruption.failure(kept).into());
            }
            match stream.sort_file(which) {
                Ok(_) => {}
                // The others can be sorted.
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    files -= 1;
                    unfinished += 1;
                    eprintln!(
                        "{} is unsorted, but {error}: left as it is",
                        taskscope_view::format::harmless(&path.to_string_lossy())
                    );
                }
                Err(error) => {
                    return Err(Failure::new(format!("cannot sort {}", path.display()))
                        .why(error.to_string())
                        .kept("the file is as it was")
                        .into());
                }
            }
            done += bytes_of(which, stream);
            progress.show(done);
        }
    }
    progress.finish();
    let is_sorted = files == 0;
    if outside > 0 {
        let them = counted(outside, "file");
        eprintln!(
            "{them} behind links to be sorted by name: taskscope sort DIRECTORY, of each that they lie in"
        );
    }
    let unreadable = trace.problems().iter().any(|problem| problem.kind == ProblemKind::Unreadable);
    let backwards = trace.problems().iter().any(|problem| problem.kind == ProblemKind::ClockGoesBack);
    let (files, streams) = (counted(files, "file"), counted(trace.streams().len() as u64, "stream"));
    eprintln!(
        "{}",
        match (is_sorted, args.check) {
            (true, _) => format!("{streams}: nothing to sort"),
            (false, true) => format!("{files} of {streams} to sort (taskscope sort, without --check)"),
            (false, false) => format!("{files} of {streams} sorted"),
        }
    );
    if backwards {
        eprintln!(
            "clocks go back outside of unsorted regions, too: that is damage, and stays (taskscope check)"
        );
    }
    if unreadable {
        eprintln!("unreadable parts were not checked");
    }
    let is_left = outside + unfinished > 0;
    Ok(ExitCode::from(u8::from(unreadable || is_left || args.check && (!is_sorted || backwards))))
}
