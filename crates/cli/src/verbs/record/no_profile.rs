//! The reason why a run left no profile, as far as known.

use super::loader;
use std::path::PathBuf;
use taskscope_profile::FIRST_MS;
use taskscope_view::format;

/// Known facts of a run with a requested profile.
pub struct Ended<'a> {
    /// The programs that were run.
    pub programs: &'a [PathBuf],
    /// The duration of the run, nanoseconds; unknown while it runs.
    pub wall_ns: Option<u64>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

impl Ended<'_> {
    /// The likely reason why no process wrote one.
    pub fn why_no_profile(&self) -> String {
        if let Some(program) = self.static_program() {
            return format!(
                "{} is linked statically, so no recorder can be loaded into it",
                program.display()
            );
        }
        let first =
            format!("a process writes its first profile {FIRST_MS} ms after its start, or when it ends");
        let Some(wall_ns) = self.wall_ns else {
            return format!("{first}; this run continues, or was killed together with `record`");
        };
        let took = format::time(wall_ns);
        match self.signal {
            Some(signal) => format!("{first}; signal {signal} ended this run after {took}"),
            None if wall_ns < 2 * FIRST_MS * 1_000_000 => {
                format!(
                    "{first}, but not by `exec`, nor where it cannot write (full disk, `ulimit -f`); this run \
                     took {took}"
                )
            }
            None => format!(
                "{first}; this run took {took}: its processes were shells or launchers alone, ended sooner by `exec` \
                 or a signal, or could not load the recorder or write here (full disk, `ulimit -f`)"
            ),
        }
    }

    /// The command that leaves more.
    pub fn remedy(&self) -> &'static str {
        match self.static_program() {
            Some(_) => "link it dynamically, without `-static` and `-static-pie`",
            None => "taskscope record --sample 100 -- …        (a trace has everything up to the last event)",
        }
    }

    fn static_program(&self) -> Option<&PathBuf> {
        self.programs.iter().find(|program| loader::is_static(program))
    }
}
