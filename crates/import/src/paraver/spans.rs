//! The spans of a thread, from its state records and the values of its events.

use super::labels::Labels;
use crate::spans::{Activity, Kind, KindRow, Run, Span, Thread, activity_of};
use std::collections::BTreeMap;
use taskscope_event::models::instrument::class;

/// Types of functions of MPI.
pub(super) const MPI: std::ops::RangeInclusive<u64> = 50_000_001..=50_000_005;
/// The type of the name of a section in `export --to paraver`.
pub(super) const OWN_CODE: u64 = 9_500_002;
/// The type of the state of a section in `export --to paraver`.
const OWN_STATE: u64 = 9_500_001;
/// The type of the life of a thread.
const APPLICATION: u64 = 40_000_001;
/// Types of code of the program: OpenMP constructs, functions of the user, tasks, tasks of Nanos++.
const CODE: [u64; 4] = [60_000_018, 60_000_019, 60_000_023, 9_200_011];
/// The state record of useful code.
const RUNNING: u64 = 1;

/// Whether events of a type are read.
pub(super) fn is_read(ty: u64) -> bool {
    MPI.contains(&ty) || CODE.contains(&ty) || [OWN_STATE, OWN_CODE, APPLICATION].contains(&ty)
}

/// A state record, in nanoseconds; without an end, it lasts to that of the trace.
pub(super) struct State {
    pub start: u64,
    pub end: Option<u64>,
    pub state: u64,
}

/// A value of an event.
pub(super) struct Change {
    pub at: u64,
    pub ty: u64,
    pub value: u64,
}

/// The records of a thread.
#[derive(Default)]
pub(super) struct OfThread {
    pub states: Vec<State>,
    pub changes: Vec<Change>,
    /// Whether it has a record of any kind.
    pub is_seen: bool,
}

/// Adds the spans of a thread.
pub(super) fn add_spans(
    mut records: OfThread,
    labels: &Labels,
    end: u64,
    thread: &mut Thread,
    run: &mut Run,
) {
    records.changes.sort_by_key(|change| change.at);
    records.states.sort_by_key(|state| state.start);
    let latest = records
        .states
        .iter()
        .filter_map(|state| state.end)
        .chain(records.changes.iter().map(|change| change.at));
    let end = latest.max().unwrap_or(0).max(end);
    thread.life = life(&records.changes, end);
    if records.changes.iter().any(|change| change.ty == OWN_CODE) {
        own_spans(&records.changes, labels, end, thread, run);
        return;
    }
    let is_mpi = |ty: u64| MPI.contains(&ty);
    let mpi = nested(&records.changes, is_mpi, end, run);
    let code = nested(&records.changes, |ty| CODE.contains(&ty), end, run);
    let covers = [covered(&mpi), covered(&code)];
    let mut overlaps = 0;
    for (row, state) in records.states.iter().enumerate() {
        let (start, state_end) = (state.start, state.end.unwrap_or(end).max(state.start));
        // Disjoint ones have no more parts than there are intervals.
        let next = records.states.get(row + 1).map_or(u64::MAX, |next| next.start);
        overlaps += u64::from(state.end.is_some() && next < state_end);
        let state_end = state_end.min(next);
        let mut parts = outside((start, state_end), &covers[0]);
        if state.state == RUNNING {
            parts = parts.into_iter().flat_map(|part| outside(part, &covers[1])).collect();
        }
        let kind = kind_of(run, labels.state(state.state), Activity::State(class_of(state.state)));
        thread.spans.extend(parts.into_iter().map(|(start, end)| Span { start, end, kind }));
    }
    run.losses.add_many("ends of state records", "the next one of the thread begins before", overlaps);
    for (intervals, activity) in [(mpi, Activity::State(class::COMMUNICATION)), (code, Activity::Task)] {
        for Interval { start, end, ty, value } in intervals {
            let name = labels.value(ty, value).map_or_else(|| format!("{ty}: {value}"), str::to_owned);
            let kind = kind_of(run, name, activity);
            thread.spans.push(Span { start, end, kind });
        }
    }
}

fn kind_of(run: &mut Run, name: String, activity: Activity) -> KindRow {
    run.kind(Kind { name, file: String::new(), line: 0, activity })
}

/// The life of a thread by its events of an application.
fn life(changes: &[Change], end: u64) -> Option<(u64, u64)> {
    let mut life_changes = changes.iter().filter(|change| change.ty == APPLICATION);
    let first = life_changes.clone().find(|change| change.value != 0)?.at;
    let last = life_changes.rfind(|change| change.value == 0).map_or(end, |change| change.at);
    (first <= last).then_some((first, last))
}

/// The sections of `export --to paraver`: each begins with an event of its code, after that of its state.
fn own_spans(changes: &[Change], labels: &Labels, end: u64, thread: &mut Thread, run: &mut Run) {
    // Begin and kind.
    let mut open: Option<(u64, KindRow)> = None;
    let mut state = 0;
    for change in changes {
        match change.ty {
            OWN_STATE => state = change.value,
            OWN_CODE => {
                let ended = open.take().map(|(start, kind)| Span { start, end: change.at, kind });
                thread.spans.extend(ended);
                if change.value != 0 {
                    let name = labels.value(OWN_CODE, change.value);
                    let name = name.map_or_else(|| format!("code {}", change.value), str::to_owned);
                    let activity = activity_of(labels.value(OWN_STATE, state).unwrap_or_default());
                    open = Some((change.at, kind_of(run, name, activity)));
                }
            }
            _ => {}
        }
    }
    if let Some((start, kind)) = open {
        lose_end(run);
        thread.spans.push(Span { start, end, kind });
    }
}

/// An interval in which a type has a value.
struct Interval {
    start: u64,
    end: u64,
    ty: u64,
    value: u64,
}

/// The intervals of types: a value begins one, 0 ends the one begun last.
fn nested(changes: &[Change], is_of: impl Fn(u64) -> bool, end: u64, run: &mut Run) -> Vec<Interval> {
    // Values and begins by type.
    let (mut intervals, mut open) = (Vec::new(), BTreeMap::<u64, Vec<(u64, u64)>>::new());
    for Change { at, ty, value } in changes.iter().filter(|change| is_of(change.ty)) {
        let open_values = open.entry(*ty).or_default();
        if *value != 0 {
            open_values.push((*value, *at));
            continue;
        }
        match open_values.pop() {
            Some((value, start)) => intervals.push(Interval { start, end: *at, ty: *ty, value }),
            None => run.losses.add_many("ends of sections", "they have no begin", 1),
        }
    }
    for (ty, open_values) in open {
        for (value, start) in open_values {
            lose_end(run);
            intervals.push(Interval { start, end, ty, value });
        }
    }
    intervals.sort_by_key(|interval| interval.start);
    intervals
}

fn lose_end(run: &mut Run) {
    run.losses.add_many("ends of open sections", "the file has none: they are open until its end", 1);
}

/// The time that intervals cover, which are in the order of begins: disjoint, in order.
fn covered(intervals: &[Interval]) -> Vec<(u64, u64)> {
    let mut covered: Vec<(u64, u64)> = Vec::new();
    for Interval { start, end, .. } in intervals {
        match covered.last_mut().filter(|last| *start <= last.1) {
            Some(last) => last.1 = last.1.max(*end),
            None => covered.push((*start, *end)),
        }
    }
    covered
}

/// The parts of an interval that are not covered.
fn outside((start, end): (u64, u64), covered: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut parts, mut from) = (Vec::new(), start);
    let first = covered.partition_point(|other| other.1 <= start);
    for other in covered[first..].iter().take_while(|other| other.0 < end) {
        if other.0 > from {
            parts.push((from, other.0));
        }
        from = other.1;
    }
    if from < end {
        parts.push((from, end));
    }
    parts
}

/// The class of a state record.
fn class_of(state: u64) -> u32 {
    match state {
        0 => class::IDLE,
        RUNNING => class::USEFUL,
        3 | 4 | 6 | 8 | 10 | 11 | 12 | 13 | 16 | 17 => class::COMMUNICATION,
        5 => class::SYNCHRONISATION,
        7 => class::SCHEDULING,
        24 => class::RUNTIME,
        _ => class::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_outside_of_intervals_do_not_overlap_them() {
        let interval = |(start, end): (u64, u64)| Interval { start, end, ty: 0, value: 1 };
        let covered = covered(&[(10, 20), (12, 15), (20, 25), (40, 50)].map(interval));
        assert_eq!(covered, [(10, 25), (40, 50)]);
        for (part, expected) in [
            ((0, 60), vec![(0, 10), (25, 40), (50, 60)]),
            ((12, 22), vec![]),
            ((20, 45), vec![(25, 40)]),
            ((50, 60), vec![(50, 60)]),
            ((0, 10), vec![(0, 10)]),
        ] {
            assert_eq!(outside(part, &covered), expected, "{part:?}");
        }
    }

    #[test]
    fn ends_belong_to_the_begin_of_their_type() {
        let change = |(at, ty, value): (u64, u64, u64)| Change { at, ty, value };
        let changes =
            [(0, 7, 3), (1, 8, 5), (2, 7, 4), (3, 8, 0), (4, 7, 0), (6, 7, 0), (7, 7, 0)].map(change);
        let mut run = Run::of("test");
        let found = nested(&changes, |_| true, 9, &mut run);
        let found: Vec<_> =
            found.iter().map(|interval| (interval.start, interval.end, interval.value)).collect();
        assert_eq!(found, [(0, 6, 3), (1, 3, 5), (2, 4, 4)]);
        assert_eq!(run.losses.count("ends of sections"), 1);
    }
}
