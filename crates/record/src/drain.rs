//! Stores regions that recorded programs have sealed in memory, so their threads never wait for a slow file
//! system.
//!
//! ```text
//!   program: thread ──▶ tail in /dev/shm ──▶ drainer's thread ──▶ NAME.obs on the network
//! ```
//! `taskscope record` is the drainer. It passes its identity to the programs in [`DRAINER_VARIABLE`]; their
//! tails in memory ([`crate::tail_place_for`]) state in their first page that it stores them. The protocol is
//! in [`taskscope_event::tail`]: no completed event is lost, whichever process dies or stops, at any time; a
//! program with a late drainer stores itself when its regions are full.
//!
//! **The caller** starts the drainer before the program and stops it after its end.
//!
//! **Not for** streams that are kept as a ring: their threads store them themselves, since they also
//! give blocks back.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*, fence};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use taskscope_event::tail;

use crate::disk_file::{DiskFile, Mapping, close};
use crate::own_threads;
use crate::tail_page::TailPage;
use crate::tail_place;

/// The environment variable that names the process that drains: `PID:START`, as in field 22 of
/// `/proc/PID/stat`, so that a process of the same id, or one of another host, is not taken for it.
pub const DRAINER_VARIABLE: &str = "TASKSCOPE_DRAINER";

/// Sleep of the drainer: after a round that stored something, and at most.
const PERIODS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(40)];
/// Interval of the search for new tails; they have room for much longer.
const SCAN_PERIOD: Duration = Duration::from_millis(20);
/// Scans after which a tail that names no drainer will not name one any more.
const LOOKS: u32 = 250;

/// A process that may drain.
#[derive(Clone, Copy)]
pub(crate) struct DrainerName {
    pub pid: u64,
    started: u64,
}

impl DrainerName {
    /// The one that drains for this process, if it lives on this host.
    pub fn from_environment() -> Option<Self> {
        let name = DrainerName::parse(&std::env::var(DRAINER_VARIABLE).ok()?)?;
        name.is_alive().then_some(name)
    }

    fn parse(name: &str) -> Option<Self> {
        let (pid, started) = name.split_once(':')?;
        Some(DrainerName { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    /// Does not allocate.
    pub fn is_alive(self) -> bool {
        start_time(self.pid) == Some(self.started)
    }
}

/// This process as `PID:START`, the form of [`DRAINER_VARIABLE`]. None without `/proc`.
pub fn this_process() -> Option<String> {
    let pid = u64::from(std::process::id());
    Some(format!("{pid}:{}", start_time(pid)?))
}

/// Whether the process of this name (`PID:START`) is alive on this host.
pub fn is_alive(process: &str) -> bool {
    DrainerName::parse(process).is_some_and(DrainerName::is_alive)
}

/// When a process that has not ended started, in ticks since the system did.
fn start_time(pid: u64) -> Option<u64> {
    let (mut path, mut text) = ([0; 40], [0; 1024]);
    let mut rest = &mut path[..];
    write!(rest, "/proc/{pid}/stat").ok()?;
    let unused = rest.len();
    let path = str::from_utf8(&path[..path.len() - unused]).ok()?;
    let length = File::open(path).ok()?.read(&mut text).ok()?;
    // The name in parentheses may hold anything.
    let behind_name = text[..length].iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = str::from_utf8(&text[behind_name..length]).ok()?.split_ascii_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    if has_ended { None } else { fields.nth(18)?.parse().ok() }
}

/// Data that the drainer could not store.
#[derive(Debug, Default)]
pub struct Refused {
    /// Number of streams left to their threads from then on.
    pub streams: u64,
    /// The first reason.
    pub why: Option<io::Error>,
}

/// A thread that stores regions sealed by others.
pub struct Drainer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Refused>,
}

impl Drainer {
    /// Starts it for the tails in `place`. Returns it with the value of [`DRAINER_VARIABLE`] for the
    /// programs.
    ///
    /// # Errors
    /// If no thread is available, or the program can spare none ([`own_threads::may_start`]), or without
    /// `/proc`.
    pub fn start(place: &Path) -> io::Result<(Drainer, String)> {
        if !own_threads::may_start() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let pid = u64::from(std::process::id());
        let started = start_time(pid).ok_or(io::ErrorKind::Unsupported)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (place, stopped) = (place.to_owned(), stop.clone());
        let drain = move || Round::new(place, pid).until(&stopped);
        let thread = std::thread::Builder::new().name("taskscope-drain".to_owned()).spawn(drain)?;
        Ok((Drainer { stop, thread }, format!("{pid}:{started}")))
    }

    /// Stops it; running programs store their regions themselves from now on.
    pub fn stop(self) -> Refused {
        self.stop.store(true, Release);
        self.thread.thread().unpark();
        // It does not panic; if it did, the programs' threads store the rest.
        self.thread.join().unwrap_or_default()
    }
}

/// The drainer's state of a file in the place.
enum Known {
    Ours(Tail),
    /// It names no drainer yet, after this many checks.
    Undecided(u32),
    Others,
}

struct Tail {
    path: PathBuf,
    page: TailPage,
    /// Keeps the page mapped.
    _mapping: Mapping,
    stream: DiskFile,
}

struct Round {
    place: PathBuf,
    pid: u64,
    known: HashMap<OsString, Known>,
    buffer: Vec<u8>,
    refused: Refused,
}

impl Round {
    fn new(place: PathBuf, pid: u64) -> Self {
        Round { place, pid, known: HashMap::new(), buffer: vec![], refused: Refused::default() }
    }

    fn until(mut self, stopped: &AtomicBool) -> Refused {
        let [shortest, longest] = PERIODS;
        let (mut period, mut scanned) = (longest / 2, Instant::now());
        while !stopped.load(Acquire) {
            park_timeout(period);
            if scanned.elapsed() >= SCAN_PERIOD {
                self.scan();
                scanned = Instant::now();
            }
            period = if self.drain_all() { shortest } else { (2 * period).min(longest) };
        }
        for known in self.known.values() {
            if let Known::Ours(tail) = known {
                tail.page.set_drainer(0);
            }
        }
        self.refused
    }

    /// Learns of new tails, and forgets those that are gone.
    fn scan(&mut self) {
        let Ok(entries) = fs::read_dir(&self.place) else { return };
        let mut present = HashMap::with_capacity(self.known.len());
        for name in entries.flatten().map(|entry| entry.file_name()) {
            let bytes = name.as_bytes();
            let prefix = tail_place::PREFIX.as_bytes();
            if !bytes.starts_with(prefix) || !bytes.ends_with(tail_place::SUFFIX.as_bytes()) {
                continue;
            }
            let now = match self.known.remove(&name).unwrap_or(Known::Undecided(0)) {
                Known::Undecided(LOOKS) => Known::Others,
                Known::Undecided(looks) => self.look(&name).unwrap_or(Known::Undecided(looks + 1)),
                decided => decided,
            };
            present.insert(name, now);
        }
        self.known = present;
    }

    /// Classifies a tail by its owner; `None` if that is undecided yet.
    fn look(&self, name: &OsString) -> Option<Known> {
        let path = self.place.join(name);
        let no_link = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).write(true).custom_flags(no_link).open(&path).ok()?;
        let about = file.metadata().ok()?;
        // SAFETY: no preconditions.
        let user = unsafe { libc::geteuid() };
        // Any user may put files there: those of others must not direct our writes.
        if !about.is_file() || about.uid() != user || about.nlink() > 1 {
            return Some(Known::Others);
        }
        if about.len() < tail::FIRST_REGION_OFFSET {
            return None;
        }
        let mapping = Mapping::new(&file.into(), 0, tail::FIRST_REGION_OFFSET as usize).ok()?;
        // SAFETY: the file is as long, is never shortened, and the mapping stays with the page.
        let page = unsafe { TailPage::new(mapping.base) };
        match page.drainer() {
            0 => None,
            pid if pid != self.pid => Some(Known::Others),
            _ => {
                Some(page.stream().map_or(Known::Others, |stream| {
                    Known::Ours(Tail { path, page, _mapping: mapping, stream })
                }))
            }
        }
    }

    /// Stores all sealed regions. Returns whether there was one.
    fn drain_all(&mut self) -> bool {
        let mut any = false;
        for known in self.known.values_mut() {
            let Known::Ours(tail) = known else { continue };
            match tail.drain(self.pid, &mut self.buffer) {
                Ok(stored) => any |= stored,
                Err(why) => {
                    tail.page.set_drainer(0);
                    *known = Known::Others;
                    self.refused.streams += 1;
                    self.refused.why.get_or_insert(why);
                }
            }
        }
        any
    }
}

impl Tail {
    fn drain(&self, pid: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
        // More may be sealed meanwhile; other streams have their turn first.
        for round in 0..tail::REGIONS {
            let (base, _) = self.page.header();
            let stored = self.page.stored();
            let sealed = (stored < base && self.page.drainer() == pid).then(|| self.page.sealed_from(stored));
            let Some((region, end)) = sealed.flatten() else { return Ok(round > 0) };
            buffer.resize((end - stored) as usize, 0);
            if !self.copy(region, buffer) {
                return Ok(round > 0);
            }
            // The copy is complete if the region was not reused: `stored` would have moved before.
            fence(Acquire);
            if self.page.stored() != stored {
                continue;
            }
            match self.store(stored, buffer) {
                // The thread did it itself, and the file may even have found its final place.
                Err(_) if self.page.stored() != stored => {}
                done => done?,
            }
            self.page.move_stored(stored, end);
        }
        Ok(true)
    }

    /// False if the tail was removed, since its stream is finished.
    fn copy(&self, region: u8, buffer: &mut [u8]) -> bool {
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(&self.path);
        file.is_ok_and(|file| file.read_exact_at(buffer, tail::region(region).offset).is_ok())
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let gone = |_| io::Error::other("a file of the trace was removed or replaced");
        let file = File::from(self.stream.open().map_err(gone)?);
        file.write_all_at(bytes, offset)?;
        // A network file system may report a failed write only now.
        close(file.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_distinguished_from_others_of_its_id() {
        let pid = u64::from(std::process::id());
        let started = start_time(pid).unwrap();
        assert!(DrainerName { pid, started }.is_alive());
        assert!(!DrainerName { pid, started: started + 1 }.is_alive());
        // Ended, but not waited for.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let child_pid = u64::from(child.id());
        while start_time(child_pid).is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
    }
}
