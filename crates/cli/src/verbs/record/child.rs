//! Runs the program as if taskscope were not there.
//!
//! The child stays in our process group, so that signals of the terminal (`^C`, `^\`, `^Z`) reach it
//! directly. We only have to survive them, wait, and end as the child ended. Signals sent to us alone
//! (by a batch system, `kill`) are forwarded.

use super::inherited;
use super::watcher::Watcher;
use crate::ignored_signals::IgnoredSignals;
use nix::sys::signal::{SigEvent, SigSet, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::Pid;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// Signals that would end us while the program still runs.
const SURVIVED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];

/// Makes a write beyond the limit of `ulimit -f` an error of ours and not our end. The program, which
/// starts with default handlers, meets the limit as it would without us.
pub fn survive_file_size_limit() {
    let exceeded = std::sync::Arc::default();
    if !IgnoredSignals::now().contain(Signal::SIGXFSZ) {
        // On failure we are as we were.
        let _ = signal_hook::flag::register(Signal::SIGXFSZ as i32, exceeded);
    }
}

/// The outcome of the program.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    status: ExitStatus,
    /// Time from just before the start to just after the end of the program.
    pub wall: Duration,
    /// Process id of the program.
    pub pid: u32,
    /// `CLOCK_MONOTONIC` just after the end of the program, nanoseconds; none if the clock cannot be read.
    pub end_monotonic_ns: Option<u64>,
}

/// Starts the program with these arguments, its name first, and waits for it, while `watcher` inspects it
/// periodically. An error means that it never ran. No thread is created for that, as a limit on their number
/// applies to the program.
pub fn run(
    program: &Path,
    arguments: &[OsString],
    variables: &[(&'static str, OsString)],
    watcher: &mut Watcher<'_>,
) -> io::Result<Outcome> {
    // A signal that our caller ignores (`nohup`) must stay ignored in the child; one with a handler
    // of ours falls back to its default there, as if we had never touched it.
    let ignored = IgnoredSignals::now();
    let survived = SURVIVED.iter().filter(|signal| !ignored.contain(**signal));
    let mut signals = SignalsInfo::<WithOrigin>::new(survived.map(|&signal| signal as i32))?;
    let end_is_ignored = ignored.contain(Signal::SIGCHLD);
    if !end_is_ignored {
        signals.add_signal(Signal::SIGCHLD as i32)?;
    }
    let begin = Instant::now();
    let pid = inherited::spawn(program, arguments, variables)?;
    if end_is_ignored {
        // The program ignores it, too; otherwise its end would not be reported to us.
        signals.add_signal(Signal::SIGCHLD as i32)?;
    }
    // The caller may have blocked it.
    let mut end = SigSet::empty();
    end.add(Signal::SIGCHLD);
    end.thread_unblock()?;
    let mut alarm = Alarm::start(&mut signals);
    alarm.set(watcher);
    let status = loop {
        // It may have ended before this.
        if let Some(status) = inherited::status_of(pid)? {
            break status;
        }
        for origin in signals.wait() {
            if origin.signal == Signal::SIGALRM as i32 && !matches!(origin.cause, Cause::Sent(_)) {
                watcher.look(pid);
                alarm.set(watcher);
            } else if origin.signal != Signal::SIGCHLD as i32 {
                forward(&origin, pid);
            }
        }
    };
    let wall = begin.elapsed();
    let end_monotonic_ns = monotonic_ns();
    Ok(Outcome { status, wall, pid: pid.as_raw().cast_unsigned(), end_monotonic_ns })
}

/// The timer for the checks of a [`Watcher`]; none if it cannot be created.
struct Alarm(Option<Timer>);

impl Alarm {
    /// Starts to listen. Called after the program was started, so that its signals are unchanged.
    fn start(signals: &mut SignalsInfo<WithOrigin>) -> Alarm {
        let mut alarm = SigSet::empty();
        alarm.add(Signal::SIGALRM);
        let is_heard = signals.add_signal(Signal::SIGALRM as i32).is_ok() && alarm.thread_unblock().is_ok();
        let signal = SigevNotify::SigevSignal { signal: Signal::SIGALRM, si_value: 0 };
        let timer = || Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(signal)).ok();
        Alarm(is_heard.then(timer).flatten())
    }

    fn set(&mut self, watcher: &Watcher<'_>) {
        if let (Some(timer), Some(pause)) = (&mut self.0, watcher.pause()) {
            // Without it there are no further checks.
            let _ = timer.set(Expiration::OneShot(pause.into()), TimerSetTimeFlags::empty());
        }
    }
}

/// The clock of the traces of this host.
fn monotonic_ns() -> Option<u64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).ok()?;
    u64::try_from(Duration::from(now).as_nanos()).ok()
}

fn forward(origin: &Origin, child: Pid) {
    let from_terminal = matches!(origin.cause, Cause::Kernel);
    if let (false, Ok(signal)) = (from_terminal, Signal::try_from(origin.signal)) {
        // An error means that the child has ended meanwhile.
        let _ = nix::sys::signal::kill(child, signal);
    }
}

impl Outcome {
    #[cfg(test)]
    pub fn of(status: ExitStatus, pid: u32, end_monotonic_ns: u64) -> Outcome {
        Outcome { status, wall: Duration::ZERO, pid, end_monotonic_ns: Some(end_monotonic_ns) }
    }

    /// The exit code, unless a signal ended the program.
    pub fn exit_code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended the program.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Ends this process as the program ended: by the same signal, without a core dump of ours, or
    /// with the returned exit code.
    pub fn pass_on(&self) -> ExitCode {
        if let Some(signal) = self.signal() {
            // Both, because a core pattern that is a pipe does not ask the limit.
            let _ = nix::sys::prctl::set_dumpable(false);
            let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            // Real-time signals are not known there; a shell would show them like this.
            return ExitCode::from(128u8.saturating_add(signal as u8));
        }
        ExitCode::from(self.exit_code().unwrap_or(0) as u8)
    }
}
