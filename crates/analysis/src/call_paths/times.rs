//! Time by path: each nanosecond of the workers' ledger once, at the paths of waits and of samples.
//!
//! ```text
//! ledger, one thread     work at A | lock wait at B | work at A, no CPU | …
//! samples in work at A   main▸f (2 ms)   main▸g (1 ms)
//! time by path           main▸f: 2/3 of the work at A   main▸g: 1/3   <waiting for a lock>: its own
//! ```
//!
//! A wait has its own path. Other time of a thread in one state at one place is apportioned among the samples
//! taken there, by weight; without a sample it is at the construct. So the sums over all paths are those of
//! the ledger; samples give the location, not the duration.
//!
//! Threads that are not workers are outside the ledger: their time is that of their samples.

use super::contexts::Contexts;
use super::sampled::{Placed, add_samples};
use super::waits::{Begun, marker_of, place_of};
use rustc_hash::FxHashMap;
use taskscope_event::models::samples::flag;
use taskscope_execution::samples::Sample;
use taskscope_execution::{Execution, Group, OffCpu, Place, Section, Span, State, ThreadIndex, ThreadKind};
use taskscope_profile::{Frame, Marker, Metric, NodeId, Profile, Tree};

/// Adds the time of all paths. Returns whether it is that of the samples, and the nanoseconds of samples of
/// threads that are not workers. Without samples no time by path is known.
pub fn add_times(contexts: &mut Contexts<'_>, tree: &mut Tree, placed: &[Placed]) -> (bool, u64) {
    let execution = contexts.execution;
    let rows = &execution.samples.rows;
    let counts = |sample: &&Sample| execution.is_selected(sample.thread);
    // A part may be too short for a sample.
    let all = &execution.whole().samples.rows;
    if !all.iter().any(|sample| counts(&sample)) {
        return (false, 0);
    }
    let is_time_sampled = all.iter().any(|sample| sample.flags & flag::CPU_TIME != 0);
    let in_ledger = |thread: ThreadIndex| {
        let row = &execution.threads[thread.index()];
        !is_time_sampled && row.worker && row.selected && row.kind != ThreadKind::Cpu
    };
    let mut other_threads_ns = 0_u64;
    for (sample, placed) in rows.iter().zip(placed).filter(|(sample, _)| counts(sample)) {
        if !in_ledger(sample.thread) {
            other_threads_ns = u64::saturating_add(other_threads_ns, sample.weight_ns);
            for (metric, ns) in parts_of(execution, sample, placed) {
                add(tree, placed.node, Some(metric), ns);
            }
        }
    }
    let whole = WholeRun::of(contexts);
    let mut waits = Waits::default();
    for thread in (0..execution.threads.len()).map(|index| ThreadIndex(index as u32)) {
        if in_ledger(thread) {
            add_thread(contexts, tree, placed, thread, whole.as_ref(), &mut waits);
        }
    }
    let of_wait = |(_, placed): &(&Sample, &Placed)| placed.state.is_some_and(|(state, _)| state.is_wait());
    for (sample, placed) in rows.iter().zip(placed).filter(of_wait) {
        if let Some(wait) = placed.state.and_then(|(_, node)| waits.get_mut(&node)) {
            wait.samples.push((placed.node, None, sample.weight_ns));
        }
    }
    let mut nodes: Vec<NodeId> = waits.keys().copied().collect();
    nodes.sort_unstable();
    for node in nodes {
        let wait = &waits[&node];
        for (metric, ns) in [(Metric::WAITING, wait.ns), (Metric::OUT_OF_CPU, wait.off_ns)] {
            apportion(tree, ns, &wait.samples, (node, Some(metric)), Some(metric));
        }
    }
    (is_time_sampled, if is_time_sampled { 0 } else { other_threads_ns })
}

/// Waits by the node of their state.
type Waits = FxHashMap<NodeId, Wait>;

#[derive(Default)]
struct Wait {
    ns: u64,
    /// Meanwhile without a CPU.
    off_ns: u64,
    samples: Vec<Share>,
}

/// A node, the metric of the part of its time, and the weight.
type Share = (NodeId, Option<Metric>, u64);

/// A thread's samples in one state at one place, and the time there.
#[derive(Default)]
struct Stay {
    samples: Vec<Share>,
    blocked: Vec<Share>,
    off: Vec<Share>,
    ns: u64,
    blocked_ns: u64,
    off_ns: u64,
    /// The node of time without a sample.
    construct: Option<NodeId>,
    division: Division,
}

/// Time by state and place.
type Stays = FxHashMap<(State, Place), Stay>;

/// Metrics that samples set apart where the ledger does not: the runtime's time in any state, time off the CPU in an unknown
/// one.
const APART: [Metric; 3] = [Metric::RUNTIME, Metric::BLOCKED, Metric::OUT_OF_CPU];

/// The shares of [`APART`] in a thread's time in one state at one place, by the samples of the whole run: so they are the
/// same for each nanosecond, and times of parts add up.
#[derive(Clone, Copy, Default)]
struct Division {
    /// Weight of the samples with each metric.
    apart: [u128; APART.len()],
    /// Weight of all samples.
    all: u128,
    /// Nanoseconds before the part of the run.
    before_ns: u64,
}

impl Division {
    fn of(samples: &[Share]) -> Division {
        let weigh = |shares: &mut dyn Iterator<Item = &Share>| -> u128 {
            shares.map(|(.., weight)| u128::from(*weight)).sum()
        };
        let of_metric = |metric| weigh(&mut samples.iter().filter(|(_, own, _)| *own == Some(metric)));
        Division { apart: APART.map(of_metric), all: weigh(&mut samples.iter()), before_ns: 0 }
    }

    /// The parts of [`APART`] of the `ns` nanoseconds of the part.
    fn parts(&self, ns: u64) -> [u64; APART.len()] {
        let (before, mut upto) = (self.until(self.before_ns), self.until(self.before_ns + ns));
        upto.iter_mut().zip(before).for_each(|(upto, before)| *upto -= before);
        upto
    }

    /// The parts of [`APART`] of the first `ns` nanoseconds. Each metric has its share of the nanoseconds that those before it
    /// leave, so one nanosecond more is added to one of them, or to the rest.
    fn until(&self, ns: u64) -> [u64; APART.len()] {
        // Keeps products within 128 bits.
        let spare = (128 - self.all.leading_zeros()).saturating_sub(63);
        let (mut left_ns, mut left) = (ns, (self.all >> spare).max(1));
        self.apart.map(|own| {
            let own = own >> spare;
            let share = (u128::from(left_ns) * own).checked_div(left).unwrap_or(0) as u64;
            left_ns -= share;
            left -= own;
            share
        })
    }
}

/// Whether a thread in this state has no CPU, or is blocked.
fn is_away(state: State) -> bool {
    state.group() == Group::Off || state == State::Blocked
}

/// The run of which an execution is a part.
struct WholeRun<'e> {
    contexts: Contexts<'e>,
    placed: Vec<Placed>,
    /// Begin of the part.
    begin: u64,
}

impl<'e> WholeRun<'e> {
    fn of(contexts: &Contexts<'e>) -> Option<WholeRun<'e>> {
        let (begin, end) = contexts.execution.part_of_time();
        if (begin, end) == (0, u64::MAX) {
            return None;
        }
        let mut profile = Profile::default();
        let mut whole = contexts.of_whole(&mut profile);
        let placed = add_samples(&mut whole, &mut profile.tree);
        Some(WholeRun { contexts: whole, placed, begin })
    }

    /// Hands over how a thread's time is divided.
    fn divide(&self, thread: ThreadIndex, stays: &mut Stays) {
        let execution = self.contexts.execution;
        for (key, stay) in stays_of(&self.contexts, &self.placed, thread) {
            stays.entry(key).or_default().division = stay.division;
        }
        let before = execution.shown_spans_of_run(thread).take_while(|cut| cut.span.start < self.begin);
        for cut in before.filter(|cut| !is_away(cut.span.section.state)) {
            if let Some(stay) = stays.get_mut(&(cut.under, cut.span.section.place)) {
                stay.division.before_ns += cut.span.end.min(self.begin) - cut.span.start;
            }
        }
    }
}

/// Adds the time of a worker to its paths, its waits to `waits`.
fn add_thread(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    placed: &[Placed],
    thread: ThreadIndex,
    whole: Option<&WholeRun<'_>>,
    waits: &mut Waits,
) {
    let execution = contexts.execution;
    let mut stays = stays_of(contexts, placed, thread);
    if let Some(whole) = whole {
        whole.divide(thread, &mut stays);
    }
    let mut begun = Begun::default();
    for cut in execution.shown_spans_of_run(thread) {
        let ns = cut.span.nanos();
        let shown = cut.span.section.state;
        let is_off = shown.group() == Group::Off;
        // The section of the track, independent of preemption.
        let span = Span { section: Section { state: cut.under, ..cut.span.section }, ..cut.span };
        if let Some(marker) = marker_of(execution, &span.section) {
            let place = place_of(contexts, tree, marker, (thread, &span), &mut begun);
            let wait = waits.entry(tree.child(place, Frame::state(marker))).or_default();
            *(if is_off { &mut wait.off_ns } else { &mut wait.ns }) += ns;
            continue;
        }
        begun.works(&span);
        let is_blocked = shown == State::Blocked;
        let of = |stay: &mut Stay| {
            let sum = match (is_off, is_blocked) {
                (true, _) => &mut stay.off_ns,
                (_, true) => &mut stay.blocked_ns,
                _ => &mut stay.ns,
            };
            *sum += ns;
        };
        match stays.get_mut(&(cut.under, span.section.place)) {
            Some(stay) => {
                of(stay);
                let construct = || contexts.of_section(tree, &span.section).1;
                stay.construct = Some(stay.construct.unwrap_or_else(construct));
            }
            None => {
                let (mut node, metric) = (contexts.of_section(tree, &span.section).1, work_in(cut.under));
                if metric == Some(Metric::RUNTIME) {
                    node = tree.child(node, Frame::state(Marker::Runtime));
                }
                let metric = match (is_off, is_blocked) {
                    (true, _) => Some(Metric::OUT_OF_CPU),
                    (_, true) => Some(Metric::BLOCKED),
                    _ => metric,
                };
                add(tree, node, metric, ns);
            }
        }
    }
    let mut keys: Vec<(State, Place)> = stays.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let stay = &stays[&key];
        let Some(construct) = stay.construct else { continue };
        let of = |metric: Option<Metric>| -> Vec<Share> {
            let is_own = |own: Option<Metric>| own.filter(|own| APART.contains(own)) == metric;
            stay.samples.iter().filter(|(_, own, _)| is_own(*own)).copied().collect()
        };
        let apart = APART.map(|metric| of(Some(metric)));
        let (of_rest, parts) = (of(None), stay.division.parts(stay.ns));
        let rest = stay.ns - parts.iter().sum::<u64>();
        let set_apart =
            parts.iter().zip(&apart).zip(APART).map(|((ns, shares), metric)| (*ns, shares, Some(metric)));
        for (ns, shares, metric) in set_apart.chain([
            (rest, &of_rest, None),
            (stay.blocked_ns, &stay.blocked, Some(Metric::BLOCKED)),
            (stay.off_ns, &stay.off, Some(Metric::OUT_OF_CPU)),
        ]) {
            let is_work = metric.is_none() || metric == Some(Metric::RUNTIME);
            let shares = if shares.is_empty() && !is_work { &stay.samples } else { shares };
            let place = || match metric {
                Some(Metric::RUNTIME) => tree.child(construct, Frame::state(Marker::Runtime)),
                _ => construct,
            };
            let place = shares.first().map_or_else(place, |(node, ..)| *node);
            let own = shares.first().map_or(work_in(key.0), |(_, own, _)| *own);
            apportion(tree, ns, shares, (place, metric.or(own)), metric);
        }
    }
}

/// A thread's samples by the state and place that its track has at their time.
fn stays_of(contexts: &Contexts<'_>, placed: &[Placed], thread: ThreadIndex) -> Stays {
    let execution = contexts.execution;
    let rows = &execution.samples.rows;
    let first = rows.partition_point(|row| row.thread < thread);
    let mut stays = Stays::default();
    let own = rows[first..].iter().zip(&placed[first..]).take_while(|(row, _)| row.thread == thread);
    for (sample, placed) in own {
        let section = contexts.section_at(thread, sample.at);
        // A sample at a boundary may be in the runtime's next state already.
        let fits = match placed.state {
            _ if section.state == State::Unknown => true,
            Some((Marker::Runtime, _)) => true,
            Some(_) => false,
            None => section.state.group() != Group::Runtime,
        };
        if !fits || marker_of(execution, &section).is_some() {
            continue;
        }
        let stay = stays.entry((section.state, section.place)).or_default();
        for (metric, ns) in parts_of(execution, sample, placed).into_iter().filter(|(_, ns)| *ns > 0) {
            let own = match metric {
                Metric::BLOCKED => &mut stay.blocked,
                Metric::OUT_OF_CPU => &mut stay.off,
                _ => &mut stay.samples,
            };
            // In a state that is neither work nor of the runtime a sample of the runtime adds no information.
            let own_metric = match (work_in(section.state), metric) {
                (Some(_), Metric::RUNTIME | Metric::WAITING) => Some(Metric::RUNTIME),
                (_, Metric::BLOCKED | Metric::OUT_OF_CPU) => Some(metric),
                (work, _) => work,
            };
            own.push((placed.node, own_metric, ns));
        }
        // In an unknown state the ledger does not set time off the CPU apart, the samples do.
        if section.state == State::Unknown {
            for own in [&mut stay.blocked, &mut stay.off] {
                stay.samples.append(own);
            }
        }
    }
    for ((state, _), stay) in stays.iter_mut().filter(|(_, stay)| stay.samples.is_empty()) {
        let all = stay.blocked.iter().chain(&stay.off);
        stay.samples = all.map(|(node, _, ns)| (*node, work_in(*state), *ns)).collect();
    }
    stays.retain(|_, stay| !stay.samples.is_empty());
    stays.values_mut().for_each(|stay| stay.division = Division::of(&stay.samples));
    stays
}

/// The metric of time in a state other than a wait.
fn work_in(state: State) -> Option<Metric> {
    match state.group() {
        Group::Useful | Group::Unknown => Some(Metric::WORK),
        Group::Runtime => Some(Metric::RUNTIME),
        _ => None,
    }
}

/// The parts of a sample's own time.
fn parts_of(execution: &Execution, sample: &Sample, placed: &Placed) -> Vec<(Metric, u64)> {
    match placed.state {
        Some((Marker::Runtime, _)) => vec![(Metric::RUNTIME, sample.weight_ns)],
        Some(_) => vec![(Metric::WAITING, sample.weight_ns)],
        None => {
            let (blocked, runnable) = off_cpu(execution, sample);
            let work = sample.weight_ns.saturating_sub(blocked + runnable);
            vec![(Metric::WORK, work), (Metric::BLOCKED, blocked), (Metric::OUT_OF_CPU, runnable)]
        }
    }
}

/// Divides `owed` among `shares` by their weight, in whole nanoseconds that sum to it; without any weight it is at
/// `place`. A metric that is given here is that of all shares.
fn apportion(
    tree: &mut Tree,
    owed: u64,
    shares: &[Share],
    place: (NodeId, Option<Metric>),
    metric: Option<Metric>,
) {
    let total: u128 = shares.iter().map(|(.., weight)| u128::from(*weight)).sum();
    if total == 0 {
        return add(tree, place.0, place.1, owed);
    }
    let (mut running, mut given) = (0_u128, 0_u64);
    for (node, own, weight) in shares {
        running += u128::from(*weight);
        // Neither is more than 64 bits, so the product is not more than 128.
        let until = (running.min(u64::MAX.into()) * u128::from(owed) / total.min(u64::MAX.into())) as u64;
        let until = until.min(owed);
        add(tree, *node, metric.or(*own), until - given);
        given = until;
    }
    let rest = owed - given;
    add(tree, place.0, place.1, rest);
}

/// Adds time that is also that of a metric.
fn add(tree: &mut Tree, node: NodeId, metric: Option<Metric>, ns: u64) {
    if ns > 0 {
        tree.add(node, Metric::TIME, ns);
        if let Some(metric) = metric {
            tree.add(node, metric, ns);
        }
    }
}

/// The parts of a sample's time in which its thread was blocked, and could run and had no CPU.
fn off_cpu(execution: &Execution, sample: &Sample) -> (u64, u64) {
    let (from, until) = (sample.at.saturating_sub(sample.weight_ns), sample.at);
    let inside = |all: &[OffCpu]| -> u64 {
        let all = &all[all.partition_point(|off| off.end <= from)..];
        let met = all.iter().take_while(|off| off.start < until);
        met.map(|off| off.end.min(until) - off.start.max(from)).sum()
    };
    (inside(execution.blocked_of(sample.thread)), inside(execution.off_cpu_of(sample.thread)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 32 nanoseconds of a state, and each further one.
    #[test]
    fn each_nanosecond_has_one_metric() {
        for weights in [[10, 1, 21], [1, 1, 1], [0, 7, 0], [13, 0, 19]] {
            let division = Division { apart: weights, all: 32, before_ns: 0 };
            assert_eq!(division.parts(32).map(u128::from), weights);
            let mut sums = [0; APART.len()];
            for before_ns in 0..32 {
                let parts = Division { before_ns, ..division }.parts(1);
                assert!(parts.iter().sum::<u64>() <= 1, "{weights:?} {before_ns}");
                sums.iter_mut().zip(parts).for_each(|(sum, ns)| *sum += u128::from(ns));
            }
            assert_eq!(sums, weights);
        }
    }
}
