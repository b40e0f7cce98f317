//! The executable `taskscope-query`.

use crate::ignored_signals::IgnoredSignals;
use crate::messages::Failure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// File name of the executable.
const FILE_NAME: &str = "taskscope-query";
/// Names the executable, if it is elsewhere.
const VARIABLE: &str = "TASKSCOPE_QUERY";

/// The executable.
pub struct Engine(PathBuf);

/// The text of a query.
pub enum Text {
    /// The text itself.
    Sql(String),
    /// The file that has it; `-` for the standard input.
    File(PathBuf),
}

/// A query with its options.
pub struct Query<'a> {
    /// Directory of tables.
    pub tables: &'a Path,
    /// The query.
    pub text: Text,
    /// Format of the result.
    pub format: String,
    /// File of the result; none for stdout.
    pub output: Option<&'a Path>,
    /// Maximum rows of the format `table`; 0 for all.
    pub rows: usize,
    /// Whether to print the plan instead.
    pub explain: bool,
    /// Address of a scheduler.
    pub cluster: Option<&'a str>,
    /// URL at which executors read the tables.
    pub store: Option<&'a str>,
}

impl Engine {
    /// Finds the executable: by [`VARIABLE`], beside the command, or in the library directory of an installation.
    ///
    /// # Errors
    /// If it is at none of these places.
    pub fn find() -> Result<Engine, Failure> {
        if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
            if named.is_file() {
                return Ok(Engine(named));
            }
            return Err(Failure::new("cannot find the engine for SQL")
                .why(format!("{VARIABLE} names {}, which is not a file", named.display()))
                .remedy(format!("unset {VARIABLE}")));
        }
        let own = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
        let beside = own.parent().unwrap_or(Path::new("."));
        let places = [".", "../lib/taskscope"].map(|place| beside.join(place).join(FILE_NAME));
        places.into_iter().find(|path| path.is_file()).map(Engine).ok_or_else(|| {
            Failure::new(format!("SQL needs {FILE_NAME}, which is not installed"))
                .why(format!("it is neither beside {} nor in ../lib/taskscope", own.display()))
                .remedy(
                    "make query, or make install QUERY=1        (in taskscope's sources; minutes)\n\
                     taskscope export --to parquet -o RUN.tables TRACE && cd RUN.tables && duckdb -init views.sql",
                )
        })
    }

    /// Runs a query to its end. Returns the exit code of the executable.
    ///
    /// # Errors
    /// If it cannot be started, or a signal ends it.
    pub fn run(&self, query: &Query<'_>) -> anyhow::Result<ExitCode> {
        let mut command = Command::new(&self.0);
        match &query.text {
            Text::Sql(sql) => command.arg(format!("--sql={sql}")),
            Text::File(file) => command.arg(option("--file=", file)),
        };
        command.arg(format!("--format={}", query.format)).arg(format!("--rows={}", query.rows));
        if let Some(file) = query.output {
            command.arg(option("--output=", file));
        }
        if query.explain {
            command.arg("--explain");
        }
        if let Some(address) = query.cluster {
            command.arg(format!("--cluster={address}"));
        }
        if let Some(url) = query.store {
            command.arg(format!("--store={url}"));
        }
        command.arg("--").arg(query.tables);
        // This process outlives signals that end commands, to remove temporary tables, and hands them on.
        let mut signals = Signals::new(IgnoredSignals::ending().map(|signal| signal as i32))?;
        let ending = signals.handle();
        let mut child = command.spawn().map_err(|error| {
            Failure::new(format!("cannot run {}", self.0.display())).why(error.to_string())
        })?;
        let pid = Pid::from_raw(child.id() as i32);
        let watch = std::thread::spawn(move || {
            for signal in signals.forever() {
                // It may have ended already.
                let _ = Signal::try_from(signal).and_then(|signal| kill(pid, signal));
            }
        });
        let status = child.wait();
        ending.close();
        // It panics nowhere, and its end has no result.
        let _ = watch.join();
        let status = status?;
        match (status.code(), status.signal()) {
            (Some(code), _) => Ok(ExitCode::from(code as u8)),
            (None, Some(signal)) if IgnoredSignals::ending().any(|ending| ending as i32 == signal) => {
                Ok(ExitCode::from(128 + signal as u8))
            }
            (None, signal) => {
                let failure =
                    Failure::new(format!("{FILE_NAME} was ended by signal {}", signal.unwrap_or(0)));
                Err(match signal {
                    Some(9) => failure
                        .why("the system may have run out of memory")
                        .remedy("select fewer rows, or --range"),
                    _ => failure,
                }
                .into())
            }
        }
    }
}

fn option(name: &str, value: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push(value);
    text
}
