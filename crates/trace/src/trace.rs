//! A trace directory as a whole.

use crate::clock_drift::{ClockCorrection, ClockDrift, load_drifts};
use crate::clock_offsets::ClockOffsets;
use crate::discover::find_streams;
use crate::location::Location;
use crate::merge::Merged;
use crate::options::{ClockSource, OpenOptions};
use crate::problem::{Problem, ProblemKind};
use crate::stream::Stream;
use crate::turns::Turns;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use taskscope_event::{StreamFile, layout};
use taskscope_metadata::SharedLabels;

/// First events further apart than this show that the clocks of the hosts differ.
const CLOCK_GATE_NS: i64 = 3600 * 1_000_000_000;

/// The reason why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path cannot be read as a directory.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The temporary file that keeps long tracks while they grow cannot be read back.
    #[error("cannot read the temporary track file of {}: {text}", path.display())]
    SpillFileUnreadable {
        /// The path as given.
        path: PathBuf,
        /// Error of the system.
        text: String,
    },
    /// The directory contains no stream.
    #[error("no streams in {}: no directory in it holds a stream.json", path.display())]
    NoStreams {
        /// The path as given.
        path: PathBuf,
    },
    /// The offset file that was named cannot be used.
    #[error("{text}")]
    ClockOffsets {
        /// A sentence that says why.
        text: String,
    },
}

/// A trace: its streams and their problems.
pub struct Trace {
    root: PathBuf,
    streams: Vec<Stream>,
    locations: Vec<Location>,
    problems: Vec<Problem>,
    clock_offsets: Option<ClockOffsets>,
}

impl Trace {
    /// Opens the trace in `root`, or the part of a trace in that directory.
    ///
    /// # Errors
    /// Only if nothing at all can be read; damage is in [`Trace::problems`].
    pub fn open(root: impl AsRef<Path>, options: &OpenOptions) -> Result<Trace, OpenError> {
        let root = root.as_ref();
        std::fs::read_dir(root)
            .map_err(|source| OpenError::Unreadable { path: root.to_path_buf(), source })?;
        let mut problems = Vec::new();
        let (found, locations) = find_streams(root, &mut problems);
        if found.is_empty() && locations.is_empty() {
            return Err(OpenError::NoStreams { path: root.to_path_buf() });
        }
        let (tasks, paths): (Vec<_>, Vec<_>) =
            found.into_iter().map(|found| (found.directory, found.relative_path)).unzip();
        let labels = SharedLabels::default();
        let loaded = in_parallel(tasks.len(), |index| {
            Stream::load(tasks[index].clone(), paths[index].clone(), options, &labels)
        });
        drop(labels);
        let mut streams = Vec::with_capacity(loaded.len());
        for (stream, found) in loaded {
            streams.push(stream);
            problems.extend(found);
        }
        let mut trace =
            Trace { root: root.to_path_buf(), streams, locations: Vec::new(), problems, clock_offsets: None };
        if options.own_events {
            for found in locations {
                let location = Location::load(found.directory, found.relative_path, &mut trace.problems);
                trace.locations.push(location);
            }
        }
        trace.correct_clocks(&options.clocks)?;
        trace.check_clock_gate();
        Ok(trace)
    }

    /// The directory, as it was given.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All streams, ordered by their relative paths.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Locations that are not threads, ordered by their relative paths. ovni's tools do not see them.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Problems, in the order of the streams.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The applied offsets between the clocks of hosts, if there is a table of them.
    pub fn clock_offsets(&self) -> Option<&ClockOffsets> {
        self.clock_offsets.as_ref()
    }

    /// Events of all streams.
    pub fn event_count(&self) -> u64 {
        self.streams.iter().map(Stream::event_count).sum()
    }

    /// Corrected clock of the first event, nanoseconds, which is time 0 of views; `None` without events.
    pub fn first_clock_ns(&self) -> Option<i64> {
        self.streams.iter().filter_map(Stream::first_clock_ns).min()
    }

    /// Nanoseconds from the first event to the last one.
    pub fn duration_ns(&self) -> i64 {
        let last = self.streams.iter().filter_map(Stream::last_clock_ns).max();
        self.first_clock_ns().zip(last).map_or(0, |(first, last)| last.saturating_sub(first).max(0))
    }

    /// Nanoseconds from the first event to the last one, or to a later sample or sign of life: the length of the trace, to
    /// which ranges refer.
    pub fn length_ns(&self) -> i64 {
        let later = |stream: &Stream| stream.last_clock_of(StreamFile::Samples).max(stream.alive_until_ns());
        let last = self.streams.iter().filter_map(later).max();
        let later_ns = self.first_clock_ns().zip(last).map_or(0, |(first, last)| last.saturating_sub(first));
        self.duration_ns().max(later_ns)
    }

    /// The last known name of a stream's thread; empty without one. Of a killed thread it is in the process's side stream.
    pub fn thread_name<'a>(&'a self, stream: &'a Stream) -> &'a str {
        let in_process = || {
            let (loom, pid, tid) = (stream.loom()?, stream.pid()?, stream.tid()?.to_string());
            let is_its = |location: &&Location| {
                let about = &location.metadata;
                about["kind"] == "os-time" && about["loom"] == loom && about["pid"] == pid
            };
            let own = self.locations.iter().filter(is_its);
            own.filter_map(|location| location.metadata["thread_names"][&tid].as_str()).next_back()
        };
        let later = if stream.is_finished() { None } else { in_process() };
        later.or(stream.metadata.recorder.thread_name.as_deref()).unwrap_or_default()
    }

    /// The events of all streams in one total order.
    pub fn merge(&self) -> Merged<'_> {
        Merged::new(self.streams.iter().enumerate())
    }

    /// The turns of the streams: one for each event with the scope of the trace, and for the first event of each
    /// stream; for all events of streams that `all` accepts. Fastest if the trace was opened with
    /// [`OpenOptions::turns`].
    pub fn turns(&self, all: impl Fn(usize) -> bool) -> Turns<'_> {
        Turns::new(&self.streams, all)
    }

    fn correct_clocks(&mut self, source: &ClockSource) -> Result<(), OpenError> {
        let offsets = match source {
            ClockSource::None => None,
            ClockSource::File(path) => {
                Some(ClockOffsets::load(path).map_err(|text| OpenError::ClockOffsets { text })?)
            }
            ClockSource::Beside => {
                let path = self.root.join(layout::CLOCK_OFFSETS);
                match path.exists().then(|| ClockOffsets::load(&path)) {
                    Some(Ok(offsets)) => Some(offsets),
                    Some(Err(text)) => {
                        self.problems.push(Problem::in_stream(ProblemKind::ClockOffsets, "", text));
                        None
                    }
                    None => None,
                }
            }
        };
        let looms: FxHashSet<&str> =
            self.streams.iter().filter_map(|stream| stream.metadata.loom.as_deref()).collect();
        // Looms of one host share its clock. (ovniemu warns of several looms all the same.)
        let hosts: BTreeSet<&str> = looms.iter().filter_map(|loom| loom.split('.').next()).collect();
        let Some(offsets) = offsets else {
            if hosts.len() > 1 {
                let text = format!("no clock offset file loaded with {} hosts", hosts.len());
                self.problems.push(Problem::in_stream(ProblemKind::NoClockOffsets, "", text));
            }
            return Ok(());
        };
        for entry in &offsets.entries {
            if !looms.iter().any(|loom| loom.split('.').next() == Some(entry.host.as_str())) {
                let text = format!("the clock offsets name host `{}`, which no loom is on", entry.host);
                self.problems.push(Problem::in_stream(ProblemKind::ClockOffsets, "", text));
            }
        }
        let without = hosts.iter().copied().filter(|host| offsets.offset_ns(host).is_none());
        let without: Vec<&str> = without.collect();
        if hosts.len() > 1 && !without.is_empty() {
            let text = format!(
                "the clock offsets name {} of {} hosts: those of {} are taken as 0",
                hosts.len() - without.len(),
                hosts.len(),
                without.join(", ")
            );
            self.problems.push(Problem::in_stream(ProblemKind::NoClockOffsets, "", text));
        }
        let drifts = self.drifts(source);
        for stream in &mut self.streams {
            let host = stream.metadata.host();
            stream.clock.offset_ns = offsets.offset_ns(host).unwrap_or(0);
            if let Some(drift) = drifts.iter().find(|drift| drift.host == host) {
                (stream.clock.since_ns, stream.clock.drift) = (drift.since_ns, drift.drift);
            }
        }
        self.clock_offsets = Some(offsets);
        let clocks: FxHashMap<&str, ClockCorrection> =
            self.streams.iter().map(|stream| (&*stream.relative_path, stream.clock)).collect();
        for problem in &mut self.problems {
            if let (Some(at), Some(clock)) = (&mut problem.clock_ns, clocks.get(&*problem.stream)) {
                *at = clock.apply(*at);
            }
        }
        Ok(())
    }

    /// The drifts beside the offsets of the trace itself.
    fn drifts(&mut self, source: &ClockSource) -> Vec<ClockDrift> {
        let path = self.root.join(layout::CLOCK_DRIFTS);
        if !matches!(source, ClockSource::Beside) || !path.exists() {
            return Vec::new();
        }
        load_drifts(&path).unwrap_or_else(|text| {
            self.problems.push(Problem::in_stream(ProblemKind::ClockOffsets, "", text));
            Vec::new()
        })
    }

    fn check_clock_gate(&mut self) {
        let mut first: Option<i64> = None;
        for stream in &self.streams {
            let Some(clock) = stream.first_clock_ns() else { continue };
            let delta = clock.saturating_sub(*first.get_or_insert(clock)).saturating_abs();
            if delta > CLOCK_GATE_NS {
                let text = format!(
                    "detected large clock gate: its clock starts {:.2} h away from that of the first stream",
                    delta as f64 / CLOCK_GATE_NS as f64
                );
                let mut problem = Problem::in_stream(ProblemKind::ClockGate, &stream.relative_path, text);
                problem.clock_ns = Some(clock);
                self.problems.push(problem);
            }
        }
    }
}

/// Calls `work` for every index below `count` on all cores, and returns the results in order.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(count);
    if cores < 2 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let take = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            mine.push((index, work(index)));
        }
        done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(mine);
    };
    std::thread::scope(|scope| {
        // If no thread can be created, this one does all the work.
        for _ in 1..cores {
            if std::thread::Builder::new().spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
