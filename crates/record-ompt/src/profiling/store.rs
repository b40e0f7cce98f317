//! The trees: one of the handler and one of the callbacks per thread, merged into the process's as
//! threads end, written when the process does.

use std::fs::File;
use std::sync::Mutex;

use taskscope_event::models::samples::state;
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NO_MODULE, NodeId, Process, Profile, ROOT, Tree};
use taskscope_profile::{form, key, settle};
use taskscope_record::{clock, process};

use super::contexts::{self, Contexts, addresses_of, descend, expand};
use super::live;
use super::locks::{Blame, Held, marker, unsettled};
use crate::sampling::code_map::{self, NO_PLACE};
use crate::sampling::levels::Levels;
use crate::sampling::settings;

/// Paths and values of a thread's trees: 1 MB a thread, whatever it does.
const NODES: usize = 8192;
const VALUES: usize = 24_576;

/// The handler's tree.
pub struct SampleTree(Tree);

/// What the handler knows of a sample.
pub struct Sample<'a> {
    pub levels: &'a Levels,
    /// Context of the innermost level.
    pub context: u32,
    pub state: u32,
    pub weight: u64,
    /// Other threads of the runtime: those that idle, those that work.
    pub idle: u64,
    pub working: u64,
    pub at: u64,
    pub is_worker: bool,
}

impl SampleTree {
    /// An empty one, all of whose memory is there.
    pub fn new() -> Self {
        SampleTree(Tree::with_limit(NODES, VALUES))
    }

    /// Counts a sample. Async-signal-safe.
    pub fn take(&mut self, sample: &Sample<'_>) {
        let tree = &mut self.0;
        let (works, overhead) = match sample.state {
            state::WORK_SERIAL | state::WORK_PARALLEL | state::WORK_REDUCTION | state::NO_OPENMP => {
                (true, false)
            }
            state::OVERHEAD => (false, true),
            _ => (false, false),
        };
        let mut node = if sample.context == 0 {
            ROOT
        } else {
            tree.child(ROOT, Frame::pending(u64::from(sample.context)))
        };
        let addresses = sample.levels.addresses();
        let (first, end) = sample.levels.list().first().map_or((addresses.len(), addresses.len()), |level| {
            (usize::from(level.frames.0), usize::from(level.frames.1))
        });
        // Without user frames on this stack, all of it is the runtime's.
        let first = if first == end { addresses.len() } else { first };
        for index in (first..end).rev() {
            node = tree.child(node, frame(addresses, index, Frame::user));
        }
        if !works {
            node = tree.child(node, Frame::state(marker(sample.state)));
        }
        for index in (0..first).rev() {
            node = tree.child(node, frame(addresses, index, Frame::runtime));
        }
        let (metric, cause) = match (works, overhead) {
            (true, _) => (Metric::WORK, None),
            (_, true) => (Metric::OVERHEAD, Some(Marker::Overhead)),
            _ => (Metric::WAITING, Some(marker(sample.state))),
        };
        tree.add(node, Metric::SAMPLES, 1);
        tree.add(node, Metric::TIME, sample.weight);
        tree.add(node, metric, sample.weight);
        // Locks are measured by their events.
        if let Some(wait) = cause.filter(|marker| marker.is_wait() && !is_lock(*marker)) {
            tree.add(node, Metric::taken(wait), sample.weight);
        }
        if works && sample.idle > 0 {
            // Settled at the end: whole numbers that sum to the idleness.
            let share =
                u128::from(sample.weight) * u128::from(sample.idle) / u128::from(sample.working.max(1));
            tree.add(node, Metric::shared(Marker::Idle), share as u64);
        }
        if sample.is_worker {
            live::count(cause, sample.weight, sample.at);
        }
    }
}

fn is_lock(marker: Marker) -> bool {
    matches!(marker, Marker::Lock | Marker::NestLock | Marker::Critical | Marker::Ordered | Marker::Atomic)
}

/// The frame of an address; all but the innermost are return addresses.
fn frame(addresses: &[u64], index: usize, of: fn(u32, u64) -> Frame) -> Frame {
    let address = addresses.get(index).copied().unwrap_or(0);
    let (module, offset) = locate(address.wrapping_sub(u64::from(index > 0)));
    of(module, offset)
}

/// The module of an address, by its number, and the address in its file.
pub fn locate(address: u64) -> (u32, u64) {
    match code_map::current().map_or(NO_PLACE, |map| map.place(address)) {
        (u32::MAX, _) => (NO_MODULE, address),
        place => place,
    }
}

/// What callbacks count on a thread.
pub struct CallbackProfile {
    tree: Tree,
    pub contexts: Contexts,
    pub held: Held,
    /// Since when the task that runs runs.
    pub task_since: u64,
    /// Time in the bodies of tasks by context: the one counted last.
    body: (u32, u64),
}

impl CallbackProfile {
    /// An empty one.
    pub fn new() -> Self {
        CallbackProfile {
            tree: Tree::with_limit(NODES / 4, VALUES / 4),
            contexts: Contexts::default(),
            held: Held::default(),
            task_since: 0,
            body: (0, 0),
        }
    }

    /// The context of a task or region that is created by `path` in the context `creator`.
    pub fn created(&mut self, creator: u32, path: u32, is_task: bool) -> u32 {
        let tree = &mut self.tree;
        let context = self.contexts.of(creator, path, u64::from(is_task), |context, tasks| {
            tree_of_context(tree, context, Metric::TASKS, tasks);
        });
        if !is_task {
            tree_of_context(&mut self.tree, context, Metric::REGIONS, 1);
        }
        context
    }

    /// A task of this context ran for so long.
    pub fn ran(&mut self, context: u32, ns: u64) {
        if self.body.0 != context {
            self.flush_body();
            self.body = (context, 0);
        }
        self.body.1 += ns;
    }

    fn flush_body(&mut self) {
        let (context, ns) = core::mem::take(&mut self.body);
        tree_of_context(&mut self.tree, context, Metric::TASK_TIME, ns);
    }

    /// A wait in this state at a place, and who is to blame.
    pub fn waited(&mut self, state: u32, place: (u32, u32), ns: u64, blame: &[Blame]) {
        let wait = marker(state);
        if ns > 0 {
            let node = self.place(place);
            let node = self.tree.child(node, Frame::state(wait));
            self.tree.add(node, Metric::taken(wait), ns);
        }
        for part in blame {
            let node = match part.place {
                Some(place) => self.place(place),
                None => self.tree.child(ROOT, Frame::state(Marker::Nobody)),
            };
            self.tree.add(node, Metric::given(wait), part.ns);
        }
    }

    /// A lock, critical or turn was taken in this context.
    pub fn took(&mut self, context: u32) {
        tree_of_context(&mut self.tree, context, Metric::ACQUISITIONS, 1);
    }

    fn place(&mut self, (context, path): (u32, u32)) -> NodeId {
        let from =
            if context == 0 { ROOT } else { self.tree.child(ROOT, Frame::pending(u64::from(context))) };
        descend(&mut self.tree, from, &addresses_of(path))
    }
}

fn tree_of_context(tree: &mut Tree, context: u32, metric: Metric, value: u64) {
    if value > 0 {
        let node = if context == 0 { ROOT } else { tree.child(ROOT, Frame::pending(u64::from(context))) };
        tree.add(node, metric, value);
    }
}

struct Merged {
    tree: Tree,
    threads: u64,
}

static MERGED: Mutex<Option<Merged>> = Mutex::new(None);

/// A thread ends: its trees become part of the process's.
pub fn merge(samples: Option<&SampleTree>, callbacks: Option<&mut CallbackProfile>) {
    let mut merged = MERGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let merged = merged.get_or_insert_with(|| Merged { tree: Tree::growing(), threads: 0 });
    merged.threads += 1;
    let place = |tree: &mut Tree, parent: NodeId, frame: Frame| match frame.kind {
        FrameKind::Pending => expand(tree, frame.offset as u32),
        _ => tree.child(parent, frame),
    };
    if let Some(samples) = samples {
        merged.tree.absorb(&samples.0, place);
    }
    if let Some(callbacks) = callbacks {
        callbacks.flush_body();
        let tree = &mut callbacks.tree;
        callbacks.contexts.drain(|context, tasks| tree_of_context(tree, context, Metric::TASKS, tasks));
        merged.tree.absorb(&callbacks.tree, place);
    }
}

/// Writes the process's profile. Call when its threads have ended.
pub fn write() {
    let Some(mut merged) = MERGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() else {
        return;
    };
    let Some((directory, name)) = place_of_file() else { return };
    let nobody = unsettled();
    if nobody > 0 {
        let node = merged.tree.child(ROOT, Frame::state(Marker::Nobody));
        merged.tree.add(node, Metric::given(Marker::Lock), nobody);
    }
    settle_idleness(&mut merged.tree);
    let wall = clock::now().saturating_sub(super::STARTED_NS.load(core::sync::atomic::Ordering::Relaxed));
    let mut says = Process::new();
    let mut say = |key: &str, value: String| {
        says.insert(key.to_owned(), value);
    };
    let (host, pid) = name.rsplit_once('.').unwrap_or((&name, ""));
    say(key::HOST, host.to_owned());
    say(key::PID, pid.to_owned());
    say(key::COMMAND, std::env::args().collect::<Vec<_>>().join(" "));
    say(key::WALL_NS, wall.to_string());
    say(key::THREADS, merged.threads.to_string());
    say(key::WORKERS, crate::sampling::most_workers().to_string());
    if let Some(settings) = settings() {
        say(key::SAMPLE_PERIOD_NS, settings.period_ns.to_string());
        let clock = if settings.clock == crate::sampling::Clock::Cpu { "cpu" } else { "wall" };
        say(key::SAMPLE_CLOCK, clock.to_owned());
    }
    say(key::TASK_CONTEXT, "creation".to_owned());
    say(key::FINISHED, "yes".to_owned());
    let mut totals = std::collections::BTreeMap::new();
    totals.insert("wall_ns".to_owned(), wall);
    for (cause, sum) in live::sums() {
        let name = cause.map_or("work", |marker| marker.name());
        if sum > 0 {
            totals.insert(format!("sampled.{name}_ns"), sum);
        }
    }
    let profile =
        Profile { processes: vec![says], modules: code_map::all_modules(), tree: merged.tree, totals };
    let path = directory.join(format!("{name}.{}", form::EXTENSION));
    let part = path.with_extension("part");
    let written = File::create(&part).and_then(|mut file| profile.write(&mut file));
    if written.is_ok() {
        let _ = std::fs::rename(&part, &path);
    } else {
        let _ = std::fs::remove_file(&part);
    }
}

fn place_of_file() -> Option<(std::path::PathBuf, String)> {
    super::PLACE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone().or_else(process::place)
}

/// The idleness that was met in samples of idle threads, shared by those that worked meanwhile.
fn settle_idleness(tree: &mut Tree) {
    let metric = Metric::shared(Marker::Idle);
    let nodes: Vec<NodeId> = std::iter::once(ROOT).chain(tree.ids()).collect();
    let shares: Vec<(NodeId, u128)> = nodes
        .into_iter()
        .filter_map(|node| Some((node, u128::from(tree.take(node, metric)))).filter(|(_, share)| *share > 0))
        .collect();
    let owed = tree.total(Metric::taken(Marker::Idle));
    if owed > 0 {
        settle(tree, metric, owed, &shares);
    }
}

pub use contexts::define_path;
