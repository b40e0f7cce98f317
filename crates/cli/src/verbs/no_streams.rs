//! Reasons for a directory without streams, from its contents and the machine.

use crate::messages::Failure;
use crate::verbs::record::no_profile::Ended;
use nix::libc::SIGBUS;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use taskscope_event::layout;
use taskscope_session::RunFile;
use taskscope_view::format::shell_word;

/// A recorder needs more for the first events of a thread.
const ROOM_FOR_A_STREAM: u64 = 64 << 10;

/// The likely reason, and a remedy.
pub fn why(trace: &Path) -> Failure {
    let shown = trace.display();
    // `record` writes its run file even for a program that never starts OpenMP.
    if trace.join(layout::RUN_FILE).exists() {
        let free = nix::sys::statvfs::statvfs(trace)
            .map_or(u64::MAX, |stat| stat.blocks_available().saturating_mul(stat.fragment_size()));
        if free < ROOM_FOR_A_STREAM {
            return Failure::new(format!("{shown} holds no events"))
                .why(format!("its file system is full ({free} bytes are free)"))
                .remedy("record to another place: taskscope record -o DIRECTORY -- …");
        }
        let run = RunFile::load(trace).ok().flatten().unwrap_or_default();
        if let Some(reason) = run.not_recorded {
            let what = if run.mode == "profile" { "holds no profile" } else { "holds no events" };
            let failure = Failure::new(format!("{shown} {what}")).why(reason.text);
            let remedies = reason.remedies.join("\n");
            return if remedies.is_empty() { failure } else { failure.remedy(remedies) };
        }
        if run.mode == "profile" {
            let programs = [PathBuf::from(run.program)];
            let ended = Ended { programs: &programs, wall_ns: run.wall_ns, signal: run.signal };
            return Failure::new(format!("{shown} holds no profile"))
                .why(ended.why_no_profile())
                .remedy(ended.remedy());
        }
        let attached = attached_processes(trace);
        if !attached.is_empty() && !is_being_recorded(&run) {
            return nothing_stored(trace, run.signal, &attached);
        }
        return Failure::new(format!("{shown} holds no events"))
            .why(match run.wall_ns {
                None if is_being_recorded(&run) => {
                    "its program is still running, and has stored no event yet"
                }
                None => "`taskscope record` was killed together with its program before anything was stored",
                Some(_) => "no process of the run stored anything; the reason was not kept",
            })
            .remedy("taskscope doctor        (lists missing parts of this machine)");
    }
    Failure::new(format!("{shown} is not a trace"))
        .why("it contains no stream.json")
        .remedy("give the directory that `taskscope record` or an ovni runtime wrote")
}

/// Whether `record` still waits for the program, as far as that can be seen from this host.
pub fn is_being_recorded(run: &RunFile) -> bool {
    let here = nix::unistd::gethostname().unwrap_or_default();
    run.wall_ns.is_none()
        && here.to_string_lossy() == *run.host
        && run.recorder.as_deref().is_some_and(taskscope_record::drain::is_alive)
}

/// Ids of the processes that the recorder was attached to: it makes their directories first of all.
fn attached_processes(trace: &Path) -> Vec<u32> {
    let of = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let looms =
        of(trace).filter(|entry| entry.file_name().to_string_lossy().starts_with(layout::LOOM_PREFIX));
    let processes = looms.flat_map(|loom| of(&loom.path()).collect::<Vec<_>>());
    let id =
        |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix(layout::PROCESS_PREFIX)?.parse().ok();
    processes.filter_map(id).collect()
}

/// The recorder was attached, and could not store an event.
fn nothing_stored(trace: &Path, signal: Option<i32>, processes: &[u32]) -> Failure {
    let failure = Failure::new(format!("{} holds no events", trace.display()));
    // The runtime maps the file of its process id, and crashes if it is empty.
    let user = fs::metadata(trace).map_or(0, |made| made.uid());
    let registration_file = |id| PathBuf::from(format!("/dev/shm/__KMP_REGISTERED_LIB_{id}_{user}"));
    let is_empty = |file: &PathBuf| fs::metadata(file).is_ok_and(|found| found.len() == 0);
    if signal == Some(SIGBUS)
        && let Some(file) = processes.iter().map(registration_file).find(is_empty)
    {
        return failure
            .why(format!(
                "LLVM's OpenMP runtime ended its process at the start (signal {SIGBUS}), as it does with or without \
                 taskscope where an earlier process of the same id was killed and has left {} empty",
                file.display()
            ))
            .remedy(format!("rm {}        (and run the program again)", shell_word(&file)));
    }
    let ended = signal.map(|signal| format!("signal {signal} ended the program at its very start, or "));
    failure
        .why(format!(
            "the recorder was attached, but could not store anything: {}files may not grow, or no more of them be made",
            ended.unwrap_or_default()
        ))
        .remedy("ulimit -a        (says the limits); larger --max-size; another place: record -o DIRECTORY")
}
