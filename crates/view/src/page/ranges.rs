//! Tables for a range of time.

use super::Page;
use super::background::apart;
use super::queues::QueueTimes;
use super::sample_facts::FunctionTime;
use crate::documents::Named;
use crate::report_rows::StateTimes;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use taskscope_execution::lod::CLASSES;
use taskscope_execution::{Place, Starts, State, ThreadIndex};

/// Rows of a table at most; the rest is summed up in `others_ns`.
const ROWS: usize = 50;
/// Maximum number of places with names, those with most time first.
const NAMED: usize = 1000;

/// Time of some tracks in a range. Times are nanoseconds since the start of the trace; all sums are exact.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RangeTimes {
    /// Begin of the range (included).
    pub from: u64,
    /// End of the range (not included).
    pub to: u64,
    /// The range as `--range` takes it, which counts from the first event of a thread.
    pub range: String,
    /// Its length, nanoseconds.
    pub wall_ns: u64,
    /// Thread-nanoseconds by state.
    pub states: StateTimes,
    /// The times of each track.
    pub threads: Vec<TrackTimes>,
    /// The largest by state and place, 50 at most.
    pub places: Vec<PlaceTime>,
    /// Thread-nanoseconds at other places.
    pub others_ns: u64,
    /// Tasks that began in the range.
    pub tasks_begun: usize,
    /// Device queues.
    pub queues: Vec<QueueTimes>,
    /// Functions by samples, 50 at most; empty without samples.
    pub functions: Vec<FunctionTime>,
}

/// Time of a track.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrackTimes {
    /// The track.
    pub track: u32,
    /// Nanoseconds by state.
    pub states: StateTimes,
}

/// Time in one state at one place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceTime {
    /// The state.
    pub state: Named<State>,
    /// The state in words.
    pub label: &'static str,
    /// The place in words; may be empty.
    pub place: String,
    /// Thread-nanoseconds.
    pub ns: u64,
    /// Sections, split by off-CPU intervals.
    pub sections: u64,
}

impl Page {
    /// The time of `tracks` in `[from, to)`: by state, by thread, and by state and place. Off-CPU time counts
    /// as out of CPU, as in the report. All sums are exact. Times are nanoseconds since the start of the
    /// trace.
    pub fn range(&self, tracks: &[ThreadIndex], from: u64, to: u64) -> RangeTimes {
        let (low, high) = (self.start().saturating_add(from), self.start().saturating_add(to));
        let sums_of = |track: &ThreadIndex| self.timeline.sums(&self.execution, *track, low, high);
        let sums: Vec<[u64; CLASSES]> = apart(|| tracks.par_iter().map(sums_of).collect());
        let by_state = |sums: &[u64; CLASSES]| -> StateTimes {
            let rows = State::ALL.iter().map(|state| (Named(*state), sums[*state as usize]));
            rows.filter(|(_, ns)| *ns > 0).collect()
        };
        let mut total = [0_u64; CLASSES];
        for row in &sums {
            total.iter_mut().zip(row).for_each(|(total, ns)| *total += ns);
        }
        let threads = tracks.iter().zip(&sums);
        let threads = threads.map(|(track, row)| TrackTimes { track: track.0, states: by_state(row) });
        let mut places: Vec<((State, Place), (u64, u64))> =
            self.places_in(tracks, low, high).into_iter().collect();
        places.sort_by_key(|(key, (ns, _))| (Reverse(*ns), *key));
        let all_ns: u64 = places.iter().map(|(_, (ns, _))| ns).sum();
        let keys: Vec<(State, Place)> = places.iter().map(|(key, _)| *key).take(NAMED).collect();
        let words: Vec<String> = self
            .names
            .ask(move |names| keys.iter().map(|(state, place)| names.name(*state, *place)).collect());
        // Each process of a job has places of its own: those of one name are one row.
        let mut by_name: FxHashMap<(State, String), (u64, u64)> = FxHashMap::default();
        for (((state, _), (ns, sections)), place) in places.into_iter().zip(words) {
            let sum = by_name.entry((state, place)).or_default();
            *sum = (sum.0 + ns, sum.1 + sections);
        }
        let mut shown: Vec<((State, String), (u64, u64))> = by_name.into_iter().collect();
        shown.sort_by(|(a, (a_ns, _)), (b, (b_ns, _))| (Reverse(a_ns), a).cmp(&(Reverse(b_ns), b)));
        shown.truncate(ROWS);
        let others_ns = all_ns - shown.iter().map(|(_, (ns, _))| ns).sum::<u64>();
        let rows = shown.into_iter().map(|((state, place), (ns, sections))| PlaceTime {
            state: Named(state),
            label: state.label(),
            place,
            ns,
            sections,
        });
        RangeTimes {
            from,
            to,
            range: self.words_of_range(from, to),
            wall_ns: to.saturating_sub(from),
            states: by_state(&total),
            threads: threads.collect(),
            places: rows.collect(),
            others_ns,
            tasks_begun: self.tasks_begun(low, high),
            queues: self.queues.in_range(low, high),
            functions: self.functions_in(tracks, low, high),
        }
    }

    /// Nanoseconds and pieces by state and place: sections, split by off-CPU intervals.
    pub(super) fn places_in(
        &self,
        tracks: &[ThreadIndex],
        low: u64,
        high: u64,
    ) -> FxHashMap<(State, Place), (u64, u64)> {
        let track_sums = |track: &ThreadIndex| {
            let mut sums: FxHashMap<(State, Place), (u64, u64)> = FxHashMap::default();
            let Some(thread) = self.execution.threads.get(track.index()) else { return sums };
            let rows = thread.track.starts();
            let first = rows.partition_point(|start| start <= low).saturating_sub(1);
            let last = rows.partition_point(|start| start < high);
            for span in self.execution.cut_spans_of_rows(*track, first..last).map(|cut| cut.span) {
                let ns = span.end.min(high).saturating_sub(span.start.max(low));
                if ns > 0 {
                    let sum = sums.entry((span.section.state, span.section.place)).or_default();
                    *sum = (sum.0 + ns, sum.1 + 1);
                }
            }
            sums
        };
        let join = |mut left: FxHashMap<(State, Place), (u64, u64)>, right: FxHashMap<_, (u64, u64)>| {
            for (key, (ns, sections)) in right {
                let sum = left.entry(key).or_default();
                *sum = (sum.0 + ns, sum.1 + sections);
            }
            left
        };
        apart(|| tracks.par_iter().map(track_sums).reduce(FxHashMap::default, join))
    }

    fn tasks_begun(&self, low: u64, high: u64) -> usize {
        self.execution.tasks.began.par_iter().filter(|at| (low..high).contains(*at)).count()
    }
}
