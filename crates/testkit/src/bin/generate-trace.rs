//! `generate-trace nosv|nanos6|openmp THREADS THREADS_PER_LOOM EVENTS SEED DIRECTORY`: writes a
//! trace for benchmarks.

use std::path::Path;
use std::process::ExitCode;
use taskscope_testkit::generator::{Generator, Runtime};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((generator, directory)) = parse(&arguments) else {
        eprintln!("usage: generate-trace nosv|nanos6|openmp THREADS THREADS_PER_LOOM EVENTS SEED DIRECTORY");
        return ExitCode::from(2);
    };
    match generator.write(Path::new(directory)) {
        Ok(events) => {
            eprintln!("{events} events in {directory}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: cannot write {directory}: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Option<(Generator, &str)> {
    let [runtime, threads, threads_per_loom, events, seed, directory] = arguments else { return None };
    let runtime = match runtime.as_str() {
        "nosv" => Runtime::Nosv,
        "nanos6" => Runtime::Nanos6,
        "openmp" => Runtime::Openmp,
        _ => return None,
    };
    let generator = Generator {
        runtime,
        threads: threads.parse().ok().filter(|threads| *threads > 0)?,
        threads_per_loom: threads_per_loom.parse().ok().filter(|threads| *threads > 0)?,
        events: events.parse().ok()?,
        seed: seed.parse().ok()?,
    };
    Some((generator, directory))
}
