//! Clock, room and limits.

use super::finding::Finding;
use super::scratch::Scratch;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statfs::{self, FsType};
use std::fs;
use std::path::Path;
use taskscope_record::calibration;
use taskscope_record::clock::Source;
use taskscope_record::os_time::sees_context_switches;

/// Less room than this fills up within seconds of a fine-grained program.
const LITTLE_ROOM_MIB: u64 = 1024;

/// Checks the features and limits of this machine.
pub fn findings() -> Vec<Finding> {
    let mut findings = vec![clock(), room(), file_size()];
    findings.extend(address_space());
    findings.push(perf_events());
    findings
}

/// Records a little to find the recorder's clock here, and the cost of an event.
fn clock() -> Finding {
    let cost = Scratch::create().ok().and_then(|scratch| calibration::nanos_per_event(scratch.path()));
    let Some(cost) = cost else {
        let text = format!("the recorder cannot write to {}", std::env::temp_dir().display());
        return Finding::limited("clock", text, "set TMPDIR to a directory with free space");
    };
    let kernels = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match taskscope_record::clock::source() {
        Source::Counter => {
            Finding::good("clock", format!("the processor's counter is used; an event costs {cost:.0} ns"))
        }
        Source::Kernel => Finding::limited(
            "clock",
            format!(
                "the kernel's clock ({kernels}) is used, since the counter's rate may change; an event costs {cost:.0} ns"
            ),
            "record fine-grained programs on a machine with the kernel clock source tsc",
        ),
    }
}

fn room() -> Finding {
    let Ok(stat) = nix::sys::statvfs::statvfs(".") else {
        return Finding::limited(
            "room",
            "cannot query the free space of this directory",
            "record -o elsewhere",
        );
    };
    let free_mib = stat.blocks_available() * stat.fragment_size() / (1 << 20);
    let kind = statfs::statfs(".").map(|stat| kind_of(stat.filesystem_type()));
    let (kind, hint) = kind.unwrap_or(("file system", ""));
    let text = format!("{free_mib} MiB are free in this directory ({kind}{hint})");
    if nix::unistd::access(".", nix::unistd::AccessFlags::W_OK).is_err() {
        Finding::limited(
            "room",
            "this directory cannot be written",
            "taskscope record -o /tmp/name.trace -- …",
        )
    } else if free_mib < LITTLE_ROOM_MIB {
        Finding::limited("room", text, "taskscope record -o /a/larger/disk/name.trace -- …")
    } else {
        Finding::good("room", text)
    }
}

fn kind_of(kind: FsType) -> (&'static str, &'static str) {
    match kind {
        statfs::TMPFS_MAGIC => ("tmpfs", ": traces take memory, and are lost at a restart"),
        statfs::NFS_SUPER_MAGIC => ("NFS", ": a local disk disturbs the program less"),
        _ => ("disk", ""),
    }
}

fn file_size() -> Finding {
    match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((soft, _)) if soft != nix::sys::resource::RLIM_INFINITY => {
            let text =
                format!("files are limited to {} MiB: the recording of each thread stops there", soft >> 20);
            Finding::limited("file size", text, "ulimit -f unlimited")
        }
        _ => Finding::good("file size", "files may grow without a limit"),
    }
}

fn address_space() -> Option<Finding> {
    let (soft, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (soft != nix::sys::resource::RLIM_INFINITY).then(|| {
        let text =
            format!("programs may map {} MiB at most; the recorder needs memory for each thread", soft >> 20);
        Finding::limited("memory", text, "ulimit -v unlimited")
    })
}

fn perf_events() -> Finding {
    match read("/proc/sys/kernel/perf_event_paranoid").parse::<i32>() {
        Ok(level) if level <= 2 && !sees_context_switches() => Finding::limited(
            "perf",
            format!(
                "perf_event_open is refused although perf_event_paranoid is {level} (a seccomp filter?): times off the CPU \
                 are estimated"
            ),
            "in a container: --security-opt seccomp=unconfined",
        ),
        Ok(level) if level <= 2 => {
            Finding::good("perf", format!("perf_event_paranoid is {level}: own events can be counted"))
        }
        Ok(level) => Finding::limited(
            "perf",
            format!(
                "perf_event_paranoid is {level}: no preemption and counter data (tracing does not need them)"
            ),
            "sysctl kernel.perf_event_paranoid=2        (as root)",
        ),
        Err(_) => Finding::limited(
            "perf",
            "the kernel offers no performance events (tracing does not need them)",
            "nothing, unless you need counters",
        ),
    }
}

fn read(file: impl AsRef<Path>) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}
