//! The recorder, the runtimes it can attach to, and a recording of a small program.

use super::finding::Finding;
use super::scratch::Scratch;
use crate::verbs::record::{environment::Environment, libgomp, recorder_library};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two threads, one task: every runtime reports something about it.
const PROGRAM: &str = "\
int main(void) {
    int done = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(done)
        done = 1;
    }
    return !done;
}
";

const INSTALL: &str = "apt-get install libomp-19-dev";

/// Findings about recording OpenMP programs.
pub fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    let tool = match recorder_library::find() {
        Ok(tool) => {
            findings.push(Finding::good("recorder", tool.display().to_string()));
            Some(tool)
        }
        Err(failure) => {
            let remedy = failure.remedy_text().unwrap_or("make install").to_owned();
            findings.push(Finding::problem("recorder", failure.to_string(), remedy));
            None
        }
    };
    let runtimes = libgomp::runtimes();
    if runtimes.is_empty() {
        let text = "no OpenMP runtime with OMPT is installed (only programs with their own can be recorded)";
        findings.push(Finding::problem("runtime", text, INSTALL));
    }
    for (path, runtime) in &runtimes {
        let gcc = match runtime.exports.contains("GOMP_parallel") {
            true => "runs programs built with clang and with gcc",
            false => "runs programs built with clang",
        };
        findings.push(Finding::good("runtime", format!("{}: {gcc}", path.display())));
    }
    if let Some(tool) = tool {
        findings.extend(trials(&tool));
    }
    findings
}

/// Builds and records the program with each compiler that is there.
fn trials(tool: &Path) -> Vec<Finding> {
    let Ok(directory) = Scratch::create() else {
        let text = format!("cannot write to {}", std::env::temp_dir().display());
        return vec![Finding::limited("trial", text, "set TMPDIR to a writable directory")];
    };
    let compilers = ["clang-19", "clang", "gcc"];
    let tried: Vec<Finding> =
        compilers.iter().filter_map(|compiler| trial(compiler, tool, directory.path())).collect();
    if tried.is_empty() {
        let text = "no compiler for OpenMP programs is installed: no trial was recorded";
        return vec![Finding::limited("trial", text, "apt-get install clang-19 libomp-19-dev")];
    }
    tried
}

/// `None` when this compiler is not there or cannot build OpenMP programs.
fn trial(compiler: &str, tool: &Path, directory: &Path) -> Option<Finding> {
    let source = directory.join("trial.c");
    let program = directory.join(format!("trial-{compiler}"));
    let trace = directory.join(format!("{compiler}.trace"));
    fs::write(&source, PROGRAM).ok()?;
    let built = quiet(Command::new(compiler).args(["-fopenmp", "-o"]).arg(&program).arg(&source));
    if !built {
        return None;
    }
    let mut environment = Environment::default();
    environment.attach(tool, &trace);
    environment.replace_libgomp(std::slice::from_ref(&program));
    let ran = quiet(Command::new(&program).envs(environment.variables));
    let recorded = fs::read_dir(&trace).is_ok_and(|mut entries| entries.next().is_some());
    let why = environment.notices.iter().find(|notice| notice.name != "runtime-replaced");
    Some(match (ran, recorded) {
        (true, true) => Finding::good("trial", format!("a program built by {compiler} was recorded")),
        (true, false) => {
            let text = match why {
                Some(notice) => format!("a program built by {compiler} was not recorded: {}", notice.text),
                None => format!("a program built by {compiler} was not recorded: its runtime loaded no tool"),
            };
            Finding::problem("trial", text, INSTALL)
        }
        (false, _) => {
            let text = format!("a program built by {compiler} failed while it was recorded");
            Finding::problem(
                "trial",
                text,
                format!("OMP_TOOL_VERBOSE_INIT=stderr OMP_TOOL_LIBRARIES={} PROGRAM", tool.display()),
            )
        }
    })
}

fn quiet(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
