//! Inspects the running program and its children periodically: their files, mapped libraries and threads.
//! Recording does not need it; it explains why nothing was recorded.

use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pauses between looks: many at first, for short runs; the last one from then on.
const PAUSES_MS: [u64; 11] = [1, 2, 3, 5, 10, 20, 50, 100, 300, 1_000, 3_000];
const LAST_PAUSE: Duration = Duration::from_secs(10);
/// Processes per check, and threads of each with inspected children.
const MAX_PROCESSES: usize = 64;
const MAX_THREADS: usize = 64;
/// Names of mapped files, and bytes of a list of them.
const MAX_NAMES: usize = 4096;
const MAX_MAPS: u64 = 4 << 20;

/// Facts seen of the processes of one run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Files that were executed.
    pub programs: BTreeSet<PathBuf>,
    /// Libraries that were mapped, without directories.
    pub libraries: BTreeSet<String>,
    /// Most threads of one process at one time; 0 if no process was seen.
    pub threads: u64,
    /// Processes, without those that were too short.
    pub processes: BTreeSet<i32>,
}

/// Collects [`Seen`].
pub struct Watcher<'a> {
    pub seen: Seen,
    looks: usize,
    /// Whether it need not look any more.
    is_done: &'a dyn Fn() -> bool,
}

impl<'a> Watcher<'a> {
    /// A watcher that stops as soon as `is_done`.
    pub fn new(is_done: &'a dyn Fn() -> bool) -> Self {
        Watcher { seen: Seen::default(), looks: 0, is_done }
    }

    /// The time to the next look.
    pub fn pause(&self) -> Option<Duration> {
        let pause = PAUSES_MS.get(self.looks).map_or(LAST_PAUSE, |ms| Duration::from_millis(*ms));
        (self.looks != usize::MAX).then_some(pause)
    }

    /// Inspects the process and all its descendants.
    pub fn look(&mut self, process: Pid) {
        if (self.is_done)() {
            self.looks = usize::MAX;
            return;
        }
        self.looks = (self.looks + 1).min(PAUSES_MS.len());
        let mut todo = vec![process.as_raw()];
        let mut looked_at = BTreeSet::new();
        while let Some(process) = todo.pop() {
            if looked_at.len() < MAX_PROCESSES && looked_at.insert(process) {
                self.look_at(process, &mut todo);
            }
        }
    }

    fn look_at(&mut self, process: i32, children: &mut Vec<i32>) {
        let directory = PathBuf::from(format!("/proc/{process}"));
        // None: it has ended, or runs with other rights.
        let Ok(program) = fs::read_link(directory.join("exe")) else { return };
        let own = fs::read_link("/proc/self/exe").ok();
        // Between fork and exec it is still us.
        if own.as_ref() == Some(&program) {
            return;
        }
        let seen = &mut self.seen;
        seen.processes.insert(process);
        if seen.programs.len() < MAX_PROCESSES {
            seen.programs.insert(program);
        }
        let mut threads = 0;
        for entry in fs::read_dir(directory.join("task")).into_iter().flatten().flatten() {
            let path = entry.path();
            // The recorder's own threads, if it has been loaded.
            if threads < MAX_THREADS as u64 && read(&path.join("comm"), 64).starts_with("taskscope") {
                continue;
            }
            threads += 1;
            if threads <= MAX_THREADS as u64 {
                let started = read(&path.join("children"), 64 << 10);
                children.extend(started.split_ascii_whitespace().filter_map(|id| id.parse::<i32>().ok()));
            }
        }
        seen.threads = seen.threads.max(threads);
        // After the threads: the library that started a thread is seen with it, unless the process ended.
        let mapped = read(&directory.join("maps"), MAX_MAPS);
        for name in mapped.lines().filter_map(file_of_mapping) {
            if seen.libraries.len() < MAX_NAMES && !seen.libraries.contains(name) {
                seen.libraries.insert(name.to_owned());
            }
        }
    }
}

/// The name of the library that a line of `/proc/PID/maps` is about.
fn file_of_mapping(line: &str) -> Option<&str> {
    let path = &line[line.find('/')?..];
    let name = path.rsplit('/').next()?;
    (name.starts_with("lib") && name.contains(".so")).then_some(name)
}

fn read(path: &Path, most: u64) -> String {
    let mut text = Vec::new();
    if let Ok(file) = File::open(path) {
        // The readable part is kept.
        let _ = file.take(most).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_name_libraries() {
        let line = "7f0a-7f0b r-xp 00000000 fe:00 1  /usr/lib/x y/libtbb.so.12.8 (deleted)";
        assert_eq!(file_of_mapping(line), Some("libtbb.so.12.8 (deleted)"));
        assert_eq!(file_of_mapping("7f0a-7f0b rw-p 00000000 00:00 0"), None);
        assert_eq!(file_of_mapping("7f0a-7f0b r--p 00000000 fe:00 1  /usr/bin/x"), None);
    }

    #[test]
    fn children_of_a_process_are_seen() {
        let mut child =
            std::process::Command::new("/bin/sh").args(["-c", "sleep 60 & wait"]).spawn().expect("sh");
        let never = || false;
        let mut watcher = Watcher::new(&never);
        // A process that begins has mapped none of its libraries yet.
        let sees_sleep = |watcher: &Watcher| {
            let Seen { processes, libraries, .. } = &watcher.seen;
            processes.len() == 2 && libraries.iter().any(|name| name.starts_with("libc.so"))
        };
        for _ in 0..1000 {
            watcher.look(Pid::from_raw(child.id() as i32));
            if sees_sleep(&watcher) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let seen = &watcher.seen;
        for process in &seen.processes {
            let _ = nix::sys::signal::kill(Pid::from_raw(*process), nix::sys::signal::SIGKILL);
        }
        let _ = child.wait();
        assert!(seen.libraries.iter().any(|name| name.starts_with("libc.so")), "{seen:?}");
        assert_eq!((seen.threads, seen.processes.len()), (1, 2), "{seen:?}");
    }
}
