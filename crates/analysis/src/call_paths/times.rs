//! Time by path: each nanosecond of the workers' ledger once, at the paths of waits and of samples.
//!
//! ```text
//! ledger, one thread     work at A | lock wait at B | work at A, no CPU | …
//! samples in work at A   main▸f (2 ms)   main▸g (1 ms)
//! time by path           main▸f: 2/3 of the work at A   main▸g: 1/3   <waiting for a lock>: its own
//! ```
//!
//! A wait has its own path. Other time of a thread in one state at one place is apportioned among the samples
//! taken there, by weight and in order: each nanosecond is that of one sample, of that time or near to it. Without
//! a sample it is at the construct. So the sums over all paths are those of the ledger; samples give the location,
//! not the duration.
//!
//! Time without a recorded state, as of samples alone, and that of threads that are not workers, which are outside the ledger, has the
//! activity from the kernel and the place from samples ([`kernel_times`](super::kernel_times)). CPU time of samples (clock `cpu`) is theirs.

use super::contexts::Contexts;
use super::kernel_times::{KernelTimes, add};
use super::part::Amount;
use super::sampled::Placed;
use super::waits::{Begun, marker_of, place_of};
use crate::cpu_time::ThreadActivities;
use crate::wait_chains::ended_at;
use rustc_hash::FxHashMap;
use std::ops::Range;
use taskscope_event::models::samples::flag;
use taskscope_execution::samples::Sample;
use taskscope_execution::{
    Execution, Group, OffCpu, OsSource, Place, Section, Span, State, ThreadIndex, ThreadKind,
};
use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

/// Adds the time of all paths. Returns whether it is that of the samples, and the nanoseconds of threads that are not workers. Without
/// samples no time by path is known.
pub fn add_times(contexts: &mut Contexts<'_>, tree: &mut Tree, placed: &[Placed]) -> (bool, u64) {
    let (execution, part) = (contexts.execution, contexts.part);
    let rows = &execution.samples.rows;
    if !rows.iter().any(|sample| part.has_thread(sample.thread)) {
        return (false, 0);
    }
    if rows.iter().any(|sample| sample.flags & flag::CPU_TIME != 0) {
        let counts = |sample: &Sample| part.has_thread(sample.thread) && part.has(sample.at);
        for (sample, placed) in rows.iter().zip(placed).filter(|(sample, _)| counts(sample)) {
            add(tree, placed.node, Some(metric_of(placed)), sample.weight_ns);
        }
        return (true, 0);
    }
    let activities = ThreadActivities::of(execution);
    let samples_alone = part.execution.knows_samples_alone();
    let mut waits = Waits::default();
    let mut other_threads_ns = 0_u64;
    for (thread, row) in (0..).map(ThreadIndex).zip(&execution.threads) {
        if !part.has_thread(thread) || row.kind == ThreadKind::Cpu {
            continue;
        }
        if row.worker {
            add_thread(contexts, tree, placed, (thread, &activities), &mut waits);
            continue;
        }
        let own = numbers_of(execution, thread);
        // Beside workers, other threads have the time of which samples know something.
        if samples_alone || !own.is_empty() {
            let times = KernelTimes::of(contexts, &activities, thread, own);
            let without_path = (row.os_source != OsSource::Unknown).then_some(ROOT);
            let life = (row.track.start(), row.track.end());
            let added = times.add(contexts, tree, placed, life, without_path);
            other_threads_ns = other_threads_ns.saturating_add(added);
        }
    }
    // A wait has samples of several threads.
    let mut wait_shares: Vec<(u64, NodeId, Share)> = rows
        .iter()
        .zip(placed)
        .filter_map(|(sample, placed)| {
            let (_, node) = placed.state.filter(|(state, _)| state.is_wait())?;
            Some((sample.at, node, (placed.node, None, sample.weight_ns)))
        })
        .collect();
    wait_shares.sort_by_key(|(at, ..)| *at);
    for (_, node, share) in wait_shares {
        if let Some(wait) = waits.get_mut(&node) {
            wait.samples.push(share);
        }
    }
    let mut nodes: Vec<NodeId> = waits.keys().copied().collect();
    nodes.sort_unstable();
    for node in nodes {
        let wait = &waits[&node];
        for (metric, amount) in [(Metric::WAITING, wait.on_cpu), (Metric::OUT_OF_CPU, wait.off_cpu)] {
            apportion(tree, amount, &wait.samples, (node, Some(metric)), Some(metric));
        }
    }
    (false, other_threads_ns)
}

/// Waits by the node of their state.
type Waits = FxHashMap<NodeId, Wait>;

#[derive(Default)]
struct Wait {
    on_cpu: Amount,
    off_cpu: Amount,
    /// In the order of time.
    samples: Vec<Share>,
}

/// A node, the metric of the part of its time, and the weight.
type Share = (NodeId, Option<Metric>, u64);

/// A thread's samples in one state at one place, in the order of time, and the time there.
#[derive(Default)]
struct Stay {
    samples: Vec<Share>,
    blocked: Vec<Share>,
    off: Vec<Share>,
    on_cpu: Amount,
    blocked_time: Amount,
    off_cpu: Amount,
    /// The node of time without a sample.
    construct: Option<NodeId>,
}

/// Time by state and place.
type Stays = FxHashMap<(State, Place), Stay>;

impl Stay {
    /// Its time on the CPU: that of the runtime, in any state, and the rest, with the samples of each.
    fn apart(&self) -> Vec<(Amount, Vec<Share>, Option<Metric>)> {
        let of = |metric: Option<Metric>| -> Vec<Share> {
            let is_own = |own: Option<Metric>| own.filter(|own| *own == Metric::RUNTIME) == metric;
            self.samples.iter().filter(|(_, own, _)| is_own(*own)).copied().collect()
        };
        let metrics = [Some(Metric::RUNTIME), None];
        let shares = metrics.map(of);
        let weights =
            shares.each_ref().map(|shares| shares.iter().map(|(.., weight)| u128::from(*weight)).sum());
        let amounts = self.on_cpu.classes(&weights).into_iter();
        amounts.zip(shares).zip(metrics).map(|((amount, shares), metric)| (amount, shares, metric)).collect()
    }
}

/// Adds the part's time of a worker to its paths, its waits to `waits`.
fn add_thread(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    placed: &[Placed],
    (thread, activities): (ThreadIndex, &ThreadActivities<'_>),
    waits: &mut Waits,
) {
    let (execution, part) = (contexts.execution, contexts.part);
    let mut stays = stays_of(contexts, placed, thread);
    let mut without_state = None;
    let mut begun = Begun::default();
    for cut in execution.shown_spans_of_run(thread) {
        let Span { start, end, section } = cut.span;
        let shown = section.state;
        let is_off = shown.group() == Group::Off;
        // The section of the track, independent of preemption.
        let span = Span { section: Section { state: cut.under, ..section }, ..cut.span };
        if let Some(marker) = marker_of(execution, &span.section) {
            let place = place_of(contexts, tree, marker, (thread, &span), &mut begun);
            let wait = waits.entry(tree.child(place, Frame::state(marker))).or_default();
            part.add(if is_off { &mut wait.off_cpu } else { &mut wait.on_cpu }, start, end);
            continue;
        }
        begun.works(&span);
        if shown == State::Unknown {
            if part.ns_of(start, end) > 0 {
                let times = without_state.get_or_insert_with(|| {
                    let is_unknown = |number: &usize| {
                        contexts.section_at(thread, execution.samples.rows[*number].at).state
                            == State::Unknown
                    };
                    let samples = numbers_of(execution, thread).filter(is_unknown);
                    KernelTimes::of(contexts, activities, thread, samples)
                });
                let node = contexts.section_node(tree, &span.section).1;
                times.add(contexts, tree, placed, (start, end), Some(node));
            }
            continue;
        }
        let is_blocked = shown == State::Blocked;
        match stays.get_mut(&(cut.under, span.section.place)) {
            Some(stay) => {
                let amount = match (is_off, is_blocked) {
                    (true, _) => &mut stay.off_cpu,
                    (_, true) => &mut stay.blocked_time,
                    _ => &mut stay.on_cpu,
                };
                part.add(amount, start, end);
                let construct = || contexts.section_node(tree, &span.section).1;
                stay.construct = Some(stay.construct.unwrap_or_else(construct));
            }
            None => {
                let ns = part.ns_of(start, end);
                if ns == 0 {
                    continue;
                }
                let (mut node, metric) = (contexts.section_node(tree, &span.section).1, work_in(cut.under));
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
        let away = [
            (stay.blocked_time, stay.blocked.clone(), Some(Metric::BLOCKED)),
            (stay.off_cpu, stay.off.clone(), Some(Metric::OUT_OF_CPU)),
        ];
        for (amount, shares, metric) in stay.apart().into_iter().chain(away) {
            let is_work = metric.is_none() || metric == Some(Metric::RUNTIME);
            let shares = if shares.is_empty() && !is_work { &stay.samples } else { &shares };
            let place = || match metric {
                Some(Metric::RUNTIME) => tree.child(construct, Frame::state(Marker::Runtime)),
                _ => construct,
            };
            let place = shares.first().map_or_else(place, |(node, ..)| *node);
            let own = shares.first().map_or(work_in(key.0), |(_, own, _)| *own);
            apportion(tree, amount, shares, (place, metric.or(own)), metric);
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
            _ if section.state == State::Unknown => false,
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
    }
    for ((state, _), stay) in stays.iter_mut().filter(|(_, stay)| stay.samples.is_empty()) {
        let all = stay.blocked.iter().chain(&stay.off);
        stay.samples = all.map(|(node, _, ns)| (*node, work_in(*state), *ns)).collect();
    }
    stays.retain(|_, stay| !stay.samples.is_empty());
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

/// The samples of a thread, by their numbers in the run.
fn numbers_of(execution: &Execution, thread: ThreadIndex) -> Range<usize> {
    let rows = &execution.samples.rows;
    rows.partition_point(|row| row.thread < thread)..rows.partition_point(|row| row.thread <= thread)
}

/// The metric of a sample's time on a CPU.
fn metric_of(placed: &Placed) -> Metric {
    match placed.state {
        Some((Marker::Runtime, _)) => Metric::RUNTIME,
        Some(_) => Metric::WAITING,
        None => Metric::WORK,
    }
}

/// The parts of a sample's own time.
fn parts_of(execution: &Execution, sample: &Sample, placed: &Placed) -> Vec<(Metric, u64)> {
    match metric_of(placed) {
        Metric::WORK => {
            let (blocked, runnable) = off_cpu(execution, sample);
            let work = sample.weight_ns.saturating_sub(blocked + runnable);
            vec![(Metric::WORK, work), (Metric::BLOCKED, blocked), (Metric::OUT_OF_CPU, runnable)]
        }
        metric => vec![(metric, sample.weight_ns)],
    }
}

/// Divides the part of an amount among `shares`, each nanosecond to one of them, in their order; without any weight it is at
/// `place`. A metric that is given here is that of all shares.
fn apportion(
    tree: &mut Tree,
    amount: Amount,
    shares: &[Share],
    place: (NodeId, Option<Metric>),
    metric: Option<Metric>,
) {
    let weights: Vec<u64> = shares.iter().map(|(.., weight)| *weight).collect();
    if weights.iter().all(|weight| *weight == 0) {
        return add(tree, place.0, place.1, amount.ns);
    }
    for ((node, own, _), ns) in shares.iter().zip(amount.in_order(&weights)) {
        add(tree, *node, metric.or(*own), ns);
    }
}

/// The parts of a sample's time in which its thread was blocked, and could run and had no CPU.
fn off_cpu(execution: &Execution, sample: &Sample) -> (u64, u64) {
    let (from, until) = (sample.at.saturating_sub(sample.weight_ns), sample.at);
    let inside = |all: &[OffCpu], from: u64, until: u64| -> u64 {
        let all = &all[all.partition_point(|off| off.end <= from)..];
        let met = all.iter().take_while(|off| off.start < until);
        met.map(|off| off.end.min(until) - off.start.max(from)).sum()
    };
    let runnable = execution.off_cpu_of(sample.thread);
    let (mut blocked_ns, mut runnable_ns) =
        (inside(execution.blocked_of(sample.thread), from, until), inside(runnable, from, until));
    for wait in execution.thread_waits.waits_of(sample.thread, from, until) {
        let (start, end) = (wait.start.max(from), ended_at(execution, wait).min(until));
        // Signals, such as those of samples, wake a thread within its wait, and it sleeps again.
        if start < end {
            let asleep = inside(runnable, start, end);
            (blocked_ns, runnable_ns) = (blocked_ns + asleep, runnable_ns - asleep);
        }
    }
    (blocked_ns, runnable_ns)
}
