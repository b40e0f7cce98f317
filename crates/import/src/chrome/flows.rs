//! Flows: their begins, steps and ends, joined in the order of time.

use super::lanes::Lane;
use crate::spans::{Flow, Run, begins, next_begin};
use rustc_hash::FxHashMap;

/// The part of a flow that an event is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// `s`.
    Begin,
    /// `t`.
    Step,
    /// `f`.
    End,
}

/// An event of a flow.
pub(super) struct FlowHalf {
    /// Its identity: id, category, name.
    pub key: String,
    pub at: u64,
    pub phase: Phase,
    pub number: usize,
    pub lane: u32,
    pub domain: u32,
    /// Whether its category is Kineto's of calls and operations.
    pub is_device: bool,
    /// Whether it belongs to the next section, not to the one around it.
    pub to_next: bool,
}

/// Adds the flows to the run. Ends before their begins are lost: the clocks contradict them.
pub(super) fn add_flows(
    run: &mut Run,
    lanes: &[Lane],
    mut halves: Vec<FlowHalf>,
    place: impl Fn(usize) -> String,
) {
    halves.sort_by(|a, b| (&a.key, a.at, a.phase, a.number).cmp(&(&b.key, b.at, b.phase, b.number)));
    let mut begins_of: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
    for group in halves.chunk_by(|a, b| a.key == b.key) {
        let concerns_device = |half: &FlowHalf| lanes[half.lane as usize].queue.is_some();
        if group.iter().any(|half| half.is_device || concerns_device(half)) {
            let why = "submissions come from the correlations of calls";
            run.losses.add("flows of device operations", why, || place(group[0].number));
            continue;
        }
        let mut open: Option<&FlowHalf> = None;
        for half in group {
            if half.phase == Phase::Begin {
                if let Some(before) = open.replace(half) {
                    run.losses.add("begins of flows", "they have no end", || place(before.number));
                }
                continue;
            }
            let Some(from) = open.take() else {
                run.losses
                    .add("ends of flows", "no begin is at the same time or before", || place(half.number));
                continue;
            };
            let [from_thread, to] = [from, half].map(|half| lanes[half.lane as usize].thread);
            if let (Some(from_thread), Some(to)) = (from_thread, to) {
                let mut to_at = half.at;
                if half.to_next {
                    let thread_spans = &run.threads[to as usize].spans;
                    let begins = begins_of.entry(to).or_insert_with(|| begins(thread_spans));
                    to_at = next_begin(begins, half.at).unwrap_or(half.at);
                }
                run.flows.push(Flow { from: from_thread, from_at: from.at, to, to_at, domain: half.domain });
            } else {
                run.losses.add("flows", "an end is on a row without sections", || place(half.number));
            }
            if half.phase == Phase::Step {
                open = Some(half);
            }
        }
        if let Some(before) = open.filter(|half| half.phase == Phase::Begin) {
            run.losses.add("begins of flows", "they have no end", || place(before.number));
        }
    }
}
