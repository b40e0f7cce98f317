//! When the operating system kept threads off the CPU: a housekeeping thread, and a side stream.
//!
//! ```text
//!  kernel ── context switches of thread n ──▶ its ring ──┐ before it is full          os-time/
//!  /proc/self/task/n/schedstat ───── every 10 ms, ───────┴─▶ housekeeping thread ──▶ taskscope.obs
//!                                    without a ring
//! ```
//!
//! Recorded threads pay a wake-up of the housekeeping thread when they attach, and nothing afterwards: the
//! event path is unchanged. A thread reads its sums as it attaches. Their growth until the housekeeping
//! thread reaches it, which can take long without a CPU, is stored as sums, also for a thread that has ended
//! by then. If the kernel lets a program see its own context switches (`perf_event_open`), each interval off
//! the CPU is known exactly; otherwise the sums of `schedstat` over periods. Intervals are *runnable* (the
//! thread could run: preempted, or woken and not on a CPU yet) or *blocked* (it sleeps or waits in the
//! kernel). The delay between wake-up and return is in the sums of `schedstat`, not in the switches, so these
//! are read beside them ([`switches`]).
//!
//! The same thread keeps a page with the time, and with the calls that threads are in, up to date ([`alive`]), as a killed
//! process cannot record its end, and records the times in which it was stopped itself ([`stops`]).
//!
//! A round takes a CPU from a worker if all are busy: rings, which have the time of every switch, are read as
//! rarely as they stay nearly empty. The rounds take no more than 1 % of one CPU: with many threads they
//! become rarer.

mod alive;
mod cpu_watch;
mod leaver;
mod off_cpu;
mod outside;
mod schedstat;
mod side_file;
mod stops;
mod switches;
mod watched;

use crate::clock;
use crate::cpus::Mask;
use crate::metadata::Json;
use crate::open_call::OpenCall;
use crate::os_thread;
use crate::own_threads::{self, OwnThread, Started};
use crate::wake::Wake;
use alive::{Alive, BEAT};
use cpu_watch::CpuWatch;
use leaver::Leaver;
use off_cpu::{Kind, OffCpu};
pub use outside::Outside;
use schedstat::{Periods, Sums};
use side_file::SideFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub use stops::Stops;
use switches::Switches;
use taskscope_event::models::system;
use watched::{Source, Watched};

/// The environment variable with the method: `auto` (the default), `switches`, `schedstat` or `off`.
pub const OS_TIME_VARIABLE: &str = "TASKSCOPE_OS_TIME";

/// Whether the environment leaves times off the CPU on.
pub fn is_wanted() -> bool {
    Mode::from_environment() != Mode::Off
}

/// Whether the kernel lets the calling thread see its own context switches. Otherwise times off the CPU are estimated.
pub fn sees_context_switches() -> bool {
    Switches::of(crate::os_thread::os_tid(), None).is_some()
}

/// Begins to watch the calling thread, a housekeeping thread, for stops of the process, by the method that the environment names.
pub fn watch_stops() -> Stops {
    Stops::watch_calling_thread(Mode::from_environment() != Mode::Periods)
}

/// Between two readings of sums.
const PERIOD: Duration = Duration::from_millis(10);
/// Initial and maximum interval between two readings of rings. A killed program loses as much.
const MIN_LOOK: Duration = Duration::from_millis(40);
const MAX_LOOK: Duration = Duration::from_millis(320);
/// The housekeeping thread has this long to end.
const MAX_END_WAIT: Duration = Duration::from_millis(2);
/// Minimum pause after a round, in durations of that round.
const PAUSE_PER_ROUND: u32 = 100;
/// Names of threads are read no sooner than this after the last time.
const NAMES_APART: Duration = Duration::from_millis(100);
/// More threads' names are not stored before the threads end.
const MAX_NAMES: usize = 4096;

#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    alive: Alive,
    stream: Option<SideFile>,
    cpus: CpuWatch,
    /// Start and end of times in which the housekeeping thread was kept from running, not written yet.
    stops: Vec<[u64; 2]>,
    /// The clock of the last event.
    last: u64,
    numbers: u32,
    /// Whether an ended thread has written sums.
    summed: bool,
    housekeeping: Option<Started>,
    /// The housekeeping thread is in the kernel, which may keep it for 10 ms.
    opens: bool,
    /// The housekeeping thread ends before the process does: the program needs its place.
    gives_way: bool,
    ended: bool,
    /// Names of threads by their ids in the trace, as they were stored last.
    names: BTreeMap<i64, String>,
    /// When names were read last.
    names_read: Option<Instant>,
}

/// Watched threads of a process. Never freed.
pub(crate) struct OsTime {
    mode: Mode,
    process: PathBuf,
    directory: PathBuf,
    loom: String,
    pid: i64,
    state: Mutex<State>,
    wake: Wake,
    leaver: Leaver,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Off,
    Auto,
    Switches,
    Periods,
}

impl Mode {
    fn from_environment() -> Mode {
        match std::env::var(OS_TIME_VARIABLE).as_deref() {
            Ok("off" | "0") => Mode::Off,
            Ok("switches") => Mode::Switches,
            Ok("schedstat") => Mode::Periods,
            _ => Mode::Auto,
        }
    }
}

impl OsTime {
    /// Creates the watcher for the process with this directory; it watches nothing if not `wanted`.
    pub fn new(process: &Path, loom: &str, pid: i64, mask: Option<Mask>, wanted: bool) -> OsTime {
        OsTime {
            mode: if wanted { Mode::from_environment() } else { Mode::Off },
            process: process.to_owned(),
            directory: process.join("os-time"),
            loom: loom.to_owned(),
            pid,
            state: Mutex::new(State { cpus: CpuWatch::new(mask), ..State::default() }),
            wake: Wake::default(),
            leaver: Leaver::default(),
        }
    }

    /// Registers the calling thread; the housekeeping thread watches it from its next round on. `forked_at` is when it began, if
    /// it is the first one of a forked child; `place` has the call that it is in.
    pub(crate) fn watch(
        &'static self,
        (os_tid, tid): (i32, i64),
        forked_at: Option<u64>,
        place: &'static OpenCall,
    ) {
        if self.mode == Mode::Off {
            return;
        }
        let mut state = self.state();
        if state.ended {
            return;
        }
        state.alive.watch(os_tid, tid, place);
        // It may have ended before the housekeeping thread reaches it.
        state.cpus.look_at_threads([(os_tid, tid)].into_iter());
        state.watched.push(Watched::new(os_tid, tid, forked_at));
        // Without one, the growth of the thread's sums is read when it ends.
        if state.housekeeping.is_some() {
            self.wake.wake();
        } else {
            state.housekeeping = self.start_housekeeping();
        }
    }

    /// Ends the housekeeping thread for good, for a thread of the program's. The sums of threads are read when they end.
    pub(crate) fn give_way(&self) -> Option<Started> {
        let mut state = self.state();
        state.gives_way = true;
        // Its time is not updated any more.
        state.alive.finish();
        let housekeeping = state.housekeeping.take();
        drop(state);
        self.wake.wake();
        housekeeping
    }

    fn open(&self, os_tid: i32, attached: Option<Sums>) -> Option<Source> {
        let periods = || Periods::of(os_tid, attached).map(Source::Periods);
        let switches = || Switches::of(os_tid, attached).map(Source::Switches);
        match self.mode {
            Mode::Off => None,
            Mode::Auto => switches().or_else(periods),
            Mode::Switches => switches(),
            Mode::Periods => periods(),
        }
    }

    /// Opens the sources of new threads, without the lock: the kernel may take 10 ms for the first one
    /// (it changes its own code and waits for all CPUs).
    fn open_new<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        loop {
            let is_new = |watched: &&Watched| watched.source.is_none();
            let of = |watched: &Watched| (watched.os_tid, watched.attached);
            let new: Vec<_> = state.watched.iter().filter(is_new).map(of).collect();
            if new.is_empty() || state.ended || state.gives_way {
                return state;
            }
            state.opens = true;
            self.leaver.set_opening(true);
            drop(state);
            let open = |(os_tid, attached)| (os_tid, self.open(os_tid, attached));
            let opened: Vec<_> = new.into_iter().map(open).collect();
            self.leaver.set_opening(false);
            state = self.state();
            state.opens = false;
            for (os_tid, source) in opened {
                let found = state.watched.iter().position(|w| w.os_tid == os_tid && w.source.is_none());
                match (found, source) {
                    (Some(row), None) => drop(state.watched.swap_remove(row)),
                    (Some(row), Some(source)) => {
                        state.watched[row].begin(source);
                        let ids = state.watched[row].ids();
                        state.cpus.look_at_threads([ids].into_iter());
                    }
                    // It has ended meanwhile.
                    (None, _) => {}
                }
            }
        }
    }

    /// Detaches a thread: reads its times, and writes them with the next round. Earlier times of other
    /// threads may be unread, and the stream is ordered by time.
    pub fn leave(&self, os_tid: i32) {
        if own_threads::leaves(os_tid) {
            self.wake.wake();
        }
        let mut state = self.state();
        state.alive.leave(os_tid);
        let is_it = |watched: &Watched| watched.os_tid == os_tid && !watched.has_left();
        if let Some(row) = state.watched.iter().position(is_it) {
            let tid = state.watched[row].tid;
            state.cpus.leaves(tid);
            state.watched[row].leave();
            if state.watched[row].source.is_none() {
                state.watched.swap_remove(row);
            }
        }
    }

    /// The calling thread ends the process at once (`_exit`): has the housekeeping thread do the last round, and waits for a
    /// limited time. Async-signal-safe.
    pub fn finish_for_leaver(&self) {
        self.leaver.wait(|| self.wake.wake());
    }

    /// The last round, and the end of the side stream.
    pub fn finish(&self) {
        let mut state = self.state();
        state.alive.finish();
        self.last_round(&mut state);
        let housekeeping = state.housekeeping.take().filter(|_| !state.opens);
        drop(state);
        self.wake.wake();
        if let Some(thread) = housekeeping {
            own_threads::wait_for_end(thread, MAX_END_WAIT);
        }
    }

    fn last_round(&self, state: &mut State) {
        state.ended = true;
        let mut watched = std::mem::take(&mut state.watched);
        state.cpus.look_at_threads(watched.iter().filter(|watched| !watched.has_left()).map(Watched::ids));
        watched.iter_mut().for_each(Watched::leave);
        self.round(state, &mut watched, u64::MAX);
        if let Some(mut stream) = state.stream.take() {
            let whole = stream.store();
            stream.write_metadata(&self.about(&watched, state.summed, whole, &state.names));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_housekeeping(&'static self) -> Option<Started> {
        if !own_threads::may_start() {
            return None;
        }
        self.leaver.begin();
        let started = own_threads::start(c"taskscope-os", 64 << 10, || self.keep_house());
        if started.is_none() {
            drop(self.leaver.present());
        }
        started
    }

    fn keep_house(&self) {
        let own = OwnThread::begin();
        let _present = self.leaver.present();
        self.leaver.set_opening(true);
        let mut stops = Stops::watch_calling_thread(self.mode != Mode::Periods);
        self.leaver.set_opening(false);
        let mut state = self.state();
        if !state.ended && !state.gives_way {
            state.alive.begin(&self.process);
        }
        let (mut last, mut pause, mut stopped) = (Instant::now(), MIN_LOOK, Vec::new());
        loop {
            state = self.open_new(state);
            state.cpus.look_at_process(false);
            if state.ended || state.gives_way {
                return;
            }
            if self.leaver.is_waiting() {
                // The process records no end of its own.
                state.alive.beat();
                state.alive.last_look();
                return self.last_round(&mut state);
            }
            let sums = state.watched.iter().any(|watched| watched.has_sums() && !watched.has_left());
            let wait = if sums { pause.min(PERIOD) } else { pause };
            if let Some(left) = wait.checked_sub(last.elapsed()).filter(|left| !left.is_zero()) {
                let nap = own.sleep(left.min(BEAT));
                drop(state);
                stops.nap_begins(nap);
                self.wake.sleep(nap);
                stops.nap_ends(&mut stopped);
                state = self.state();
                state.stops.append(&mut stopped);
                state.alive.beat();
                drop(state);
                own.end_process_if_alone();
                state = self.state();
                continue;
            }
            last = Instant::now();
            let mut watched = std::mem::take(&mut state.watched);
            self.round(&mut state, &mut watched, clock::kernel_ns());
            let fullest = watched.iter().map(Watched::filled).max();
            state.summed |= watched.iter().any(Watched::has_sums);
            watched.retain(|watched| !watched.is_done());
            state.watched = watched;
            pause = next_look(pause, fullest.unwrap_or(0)).max(last.elapsed() * PAUSE_PER_ROUND);
        }
    }

    /// Writes new intervals of `watched` that ended by `until`.
    fn round(&self, state: &mut State, watched: &mut [Watched], until: u64) {
        if state.stream.is_none() && !watched.is_empty() {
            state.stream = SideFile::create(&self.directory).ok();
            if let Some(stream) = &state.stream {
                stream.write_metadata(&self.about(watched, false, false, &state.names));
            }
        }
        self.store_names(state, watched);
        let State { stream: Some(stream), cpus, stops, last, numbers, .. } = state else { return };
        let mut ready: Vec<(OffCpu, u32)> = Vec::new();
        for watched in watched.iter_mut().filter(|watched| watched.source.is_some()) {
            let now = (*last).max(1);
            let number = *watched.number.get_or_insert_with(|| {
                let number = *numbers;
                *numbers += 1;
                stream.point(now, system::THREAD, pair(watched.tid.cast_unsigned(), number));
                write_totals(stream, now, watched.totals[0], number);
                number
            });
            let missing = watched.read(until) + std::mem::take(&mut watched.missing);
            if missing > 0 {
                stream.point(now, system::UNTOLD, pair(missing, number));
            }
            let ended = watched.coming.partition_point(|off| off.end <= until);
            ready.extend(watched.coming.drain(..ended).map(|off| (off, number)));
        }
        ready.sort_by_key(|(off, _)| off.end);
        for (off, number) in ready {
            // A record can come a moment after a later one of another thread.
            let at = off.end.max(*last);
            let ns = at - off.start;
            let period = u32::try_from(ns).unwrap_or(u32::MAX);
            match off.kind {
                Kind::Preempted => stream.point(at, system::PREEMPTED, pair(ns, number)),
                Kind::Blocked { delay_ns } => match u32::try_from(delay_ns) {
                    Ok(delay) => stream.point(at, system::BLOCKED, triple(ns, delay, number)),
                    Err(_) => {
                        let woken = (at - delay_ns).max(*last);
                        stream.point(
                            woken,
                            system::BLOCKED,
                            triple(woken.saturating_sub(off.start), 0, number),
                        );
                        stream.point(at, system::PREEMPTED, pair(delay_ns, number));
                    }
                },
                Kind::StillBlocked => stream.point(at, system::BLOCKS, pair(ns, number)),
                Kind::RunDelay { ns } => stream.point(at, system::RUN_DELAY, triple(ns, period, number)),
                Kind::BlockedSum { ns } => stream.point(at, system::BLOCKED_SUM, triple(ns, period, number)),
            }
            *last = at;
        }
        for watched in watched.iter().filter(|watched| watched.is_done()) {
            let Some(number) = watched.number else { continue };
            let now = (*last).max(1);
            write_totals(stream, now, watched.totals[1], number);
            if watched.coalesced > 0 {
                stream.point(now, system::COALESCED, pair(watched.coalesced, number));
            }
        }
        cpus.look_at_threads(watched.iter().filter(|watched| !watched.has_left()).map(Watched::ids));
        cpus.look_at_process(until == u64::MAX);
        cpus.write(stream, (*last).max(1));
        for [start, end] in stops.drain(..) {
            stream.jumbo((*last).max(1), system::KEPT, &[&start.to_le_bytes(), &end.to_le_bytes()]);
        }
        stream.store();
    }

    /// Stores names that threads have chosen since the last time. A killed process has no later metadata of its threads.
    fn store_names(&self, state: &mut State, watched: &[Watched]) {
        if state.stream.is_none() || state.names_read.is_some_and(|read| read.elapsed() < NAMES_APART) {
            return;
        }
        state.names_read = Some(Instant::now());
        let mut has_changed = false;
        for watched in watched.iter().filter(|watched| !watched.has_left()) {
            let Some(name) = os_thread::thread_name(watched.os_tid) else { continue };
            let is_known = state.names.get(&watched.tid) == Some(&name);
            if !is_known && (state.names.len() < MAX_NAMES || state.names.contains_key(&watched.tid)) {
                state.names.insert(watched.tid, name);
                has_changed = true;
            }
        }
        if let Some(stream) = state.stream.as_ref().filter(|_| has_changed) {
            stream.write_metadata(&self.about(watched, state.summed, false, &state.names));
        }
    }

    fn about(
        &self,
        watched: &[Watched],
        summed: bool,
        finished: bool,
        names: &BTreeMap<i64, String>,
    ) -> Json {
        let summed = summed || matches!(self.mode, Mode::Periods) || watched.iter().any(Watched::has_sums);
        let mut members = vec![
            ("version", Json::integer(1)),
            ("require", Json::object([("taskscope-system", Json::string(system::VERSION))])),
            ("kind", Json::string("os-time")),
            ("source", Json::string(if summed { "schedstat" } else { "context-switches" })),
            ("loom", Json::string(&self.loom)),
            ("pid", Json::integer(self.pid)),
        ];
        if !names.is_empty() {
            let names = names.iter().map(|(tid, name)| (tid.to_string(), Json::string(name)));
            members.push(("thread_names", Json::object(names)));
        }
        if finished {
            members.push(("finished", Json::integer(1)));
        }
        Json::object(members)
    }
}

/// Rings should be a few per cent full when they are read: a burst finds room.
fn next_look(pause: Duration, filled: u32) -> Duration {
    match filled {
        0..=60 => (pause * 2).min(MAX_LOOK),
        250.. => (pause / 4).max(PERIOD),
        _ => pause,
    }
}

fn write_totals(stream: &mut SideFile, at: u64, sums: Option<Sums>, number: u32) {
    if let Some(sums) = sums {
        stream.point(at, system::TOTAL_ON_CPU, pair(sums.on_cpu, number));
        stream.point(at, system::TOTAL_RUN_DELAY, pair(sums.run_delay, number));
    }
}

fn triple(first: u64, second: u32, third: u32) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = first.to_le_bytes();
    let [i, j, k, l] = second.to_le_bytes();
    let [m, n, o, p] = third.to_le_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

fn pair(first: u64, second: u32) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = first.to_le_bytes();
    let [i, j, k, l] = second.to_le_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::Code;
    use taskscope_event::framing::{EVENT_HEADER_BYTES, JUMBO_FLAG, payload_bytes};

    /// Ends and lengths of the times off the CPU in a side stream, by the numbers of threads.
    fn stored(directory: &Path) -> Vec<(u32, u64, u64)> {
        let bytes = std::fs::read(directory.join("taskscope.obs")).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut found, mut at) = (Vec::new(), taskscope_event::framing::file_header().len());
        while at < bytes.len() {
            if Code([bytes[at + 1], bytes[at + 2], bytes[at + 3]]) == system::PREEMPTED {
                found.push((half(at + 20), word(at + 4), word(at + 12)));
            }
            let jumbo = bytes[at] & JUMBO_FLAG != 0;
            let data = if jumbo { half(at + EVENT_HEADER_BYTES) as usize } else { 0 };
            at += EVENT_HEADER_BYTES + payload_bytes(bytes[at]) + data;
        }
        found
    }

    #[test]
    fn a_thread_that_leaves_first_does_not_lengthen_the_times_of_the_others() {
        let here = tempfile::tempdir().unwrap();
        let os_time = OsTime::new(here.path(), "host.1", 1, None, true);
        let off = |start, end| OffCpu { start, end, kind: Kind::Preempted };
        let watched = |os_tid: i32, coming| {
            let source = Some(Source::Left { summed: false });
            Watched { source, coming, ..Watched::new(os_tid, os_tid.into(), None) }
        };
        os_time.state().watched.push(watched(2, vec![off(10, 20), off(25, 30)]));
        // Its source does not matter: it has already written.
        let Some(periods) = Periods::of(crate::os_thread::os_tid(), None) else { return };
        let source = Some(Source::Periods(periods));
        os_time.state().watched.push(Watched { source, ..watched(1, vec![off(5, 100)]) });
        os_time.leave(1);
        os_time.finish();
        let written = stored(&os_time.directory);
        let of = |number| -> Vec<(u64, u64)> {
            written.iter().filter(|(thread, ..)| *thread == number).map(|(_, end, ns)| (*end, *ns)).collect()
        };
        assert_eq!((of(0), of(1)), (vec![(20, 10), (30, 5)], vec![(100, 95)]));
    }
}
