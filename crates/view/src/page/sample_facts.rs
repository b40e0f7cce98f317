//! A bar of code by samples in full: its path, the samples around it, and the shares of its function.

use super::Page;
use super::sample_rows::{SampleView, name_of_value};
use super::samples::{NONE, SampleTime, SampleTimes, times_away};
use super::values::ValueFacts;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use taskscope_execution::ThreadIndex;

/// Samples on each side of a time that are around it.
const AROUND: usize = 10;
/// Listed functions around a time.
const LISTED: usize = 6;
/// Listed functions of a range.
const FUNCTIONS: usize = 50;

/// A bar of code by samples, or a time without one. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SampleFacts {
    /// The bar: its name is the label.
    #[serde(flatten)]
    pub bar: ValueFacts,
    /// Samples in it.
    pub samples: u64,
    /// The sample that stands for the time; null before the first one, after the last one, and in gaps between them.
    pub sample: Option<OneSample>,
    /// The thread's time off its CPU, if it was off it then; null if not, or if switches are not recorded.
    pub away: Option<AwayFacts>,
    /// The function in the samples of the thread, and in all.
    pub shares: Option<[CodeShare; 2]>,
    /// The samples around the time; null without any.
    pub around: Option<AroundFacts>,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OneSample {
    /// Its time.
    pub at: u64,
    /// Nanoseconds before it that it stands for.
    pub ns: u64,
    /// Its path, outermost first.
    pub path: Vec<PathStep>,
    /// File of the interrupted instruction; null if unknown.
    pub file: Option<String>,
    /// Line of it; null if unknown.
    pub line: Option<u32>,
}

/// A step of a call path.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PathStep {
    /// Its name.
    pub name: String,
    /// `file:line` of its call, or of its construct; null if unknown.
    pub place: Option<String>,
}

/// A time off the CPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AwayFacts {
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Whether the thread was blocked; else it could run and had no CPU.
    pub is_blocked: bool,
}

/// Time of a function by samples, nanoseconds, without times off the CPU if switches are recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CodeShare {
    /// Time in the function itself.
    pub own_ns: u64,
    /// Time in it and in what it calls.
    pub total_ns: u64,
    /// Time of all samples.
    pub all_ns: u64,
}

/// The samples around a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AroundFacts {
    /// Begin of their time.
    pub from: u64,
    /// End of it.
    pub to: u64,
    /// Their number, 20 at most.
    pub samples: usize,
    /// Innermost functions with their samples, most first, 6 at most.
    pub functions: Vec<(String, usize)>,
}

/// Time of a function in a range, by samples, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionTime {
    /// Its name.
    pub name: String,
    /// Time in the function itself.
    pub own_ns: u64,
    /// Time in it and in what it calls.
    pub total_ns: u64,
    /// Samples in the function itself with an end in the range.
    pub samples: u64,
}

impl Page {
    /// The bar of a row at a time, or the next or previous one. Times are nanoseconds since the start of the trace.
    pub fn sample_at(&self, view: SampleView, row: u32, at: u64, step: Option<bool>) -> Option<SampleFacts> {
        let rows = self.sample_rows(view);
        let (thread, _) = *rows.rows.get(row as usize)?;
        let bar = self.value_of(&rows.view, row, at, step)?;
        let (start, end) = (self.start() + bar.start, self.start() + bar.end);
        // A bar that was gone to has its begin in question.
        let clock = if step.is_some() { start } else { self.start().checked_add(at)? };
        let own = self.samples.during(thread, clock, clock + 1).first();
        let mut away = times_away(&self.execution, thread).into_iter();
        let away = away.find(|(start, end, _)| (*start..*end).contains(&clock));
        let samples = self.samples.during(thread, start, end).iter().filter(|row| row.end <= end).count();
        let name = self.name_of_bar(bar.value, own);
        Some(SampleFacts {
            samples: if bar.value == 0 { 0 } else { samples as u64 },
            sample: own.map(|row| self.sample_words(row)),
            away: away.map(|(start, end, is_blocked)| AwayFacts {
                start: self.since_start(start),
                end: self.since_start(end),
                is_blocked,
            }),
            shares: name.map(|name| self.shares_of(name, thread)),
            around: self.around(thread, clock),
            bar: ValueFacts {
                label: Some(if bar.value == 0 {
                    String::new()
                } else {
                    self.sample_word(bar.value).to_owned()
                }),
                view: view.name().to_owned(),
                thread: Some(Some(thread.0)),
                ..bar
            },
        })
    }

    /// The function that a bar is of; beside bars that of the sample.
    fn name_of_bar(&self, value: i64, sample: Option<&SampleTime>) -> Option<u32> {
        name_of_value(value).or_else(|| self.samples.name_number(sample?.spot))
    }

    fn sample_words(&self, row: &SampleTime) -> OneSample {
        let samples = &self.samples;
        let short = |file: u32| samples.word(file).rsplit('/').next().unwrap_or_default().to_owned();
        let steps = samples.path(row.spot).into_iter().map(|step| PathStep {
            name: samples.word(step.name).to_owned(),
            place: (step.file != NONE).then(|| format!("{}:{}", short(step.file), step.line)),
        });
        let spot = samples.spots.get(row.spot as usize).filter(|spot| spot.file != NONE);
        OneSample {
            at: self.since_start(row.end),
            ns: row.end - row.start,
            path: steps.collect(),
            file: spot.map(|spot| samples.word(spot.file).to_owned()),
            line: spot.map(|spot| spot.line),
        }
    }

    /// A function in the samples of a thread, and in all samples.
    fn shares_of(&self, name: u32, thread: ThreadIndex) -> [CodeShare; 2] {
        let samples = &self.samples;
        let of_spot = |spot: u32| {
            let is_own = samples.name_number(spot) == Some(name);
            (is_own, is_own || samples.path(spot).iter().any(|step| step.name == name))
        };
        let spots: Vec<(bool, bool)> = (0..samples.spots.len() as u32).map(of_spot).collect();
        let share = |own: &[SampleTime]| {
            SampleTimes::pieces(&self.execution, own).iter().fold(CodeShare::default(), |mut share, piece| {
                let ns = piece.end - piece.start;
                let (is_own, is_in) = spots.get(piece.spot as usize).copied().unwrap_or_default();
                share.own_ns += if is_own { ns } else { 0 };
                share.total_ns += if is_in { ns } else { 0 };
                share.all_ns += ns;
                share
            })
        };
        let threads: Vec<(ThreadIndex, &[SampleTime])> = samples.by_thread().collect();
        let shares: Vec<(ThreadIndex, CodeShare)> =
            threads.into_par_iter().map(|(thread, own)| (thread, share(own))).collect();
        let mut all = CodeShare::default();
        for (_, one) in &shares {
            all.own_ns += one.own_ns;
            all.total_ns += one.total_ns;
            all.all_ns += one.all_ns;
        }
        let own = shares.into_iter().find(|(of, _)| *of == thread).map(|(_, share)| share);
        [own.unwrap_or_default(), all]
    }

    /// The samples of a thread before and after a time.
    fn around(&self, thread: ThreadIndex, clock: u64) -> Option<AroundFacts> {
        let own = self.samples.during(thread, 0, u64::MAX);
        let middle = own.partition_point(|row| row.end <= clock);
        let near = &own[middle.saturating_sub(AROUND)..(middle + AROUND).min(own.len())];
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        near.iter().for_each(|row| *counts.entry(self.samples.name_of(row.spot)).or_default() += 1);
        let mut functions: Vec<(String, usize)> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        functions.sort_by(|(a, a_count), (b, b_count)| (Reverse(a_count), a).cmp(&(Reverse(b_count), b)));
        functions.truncate(LISTED);
        Some(AroundFacts {
            from: self.since_start(near.first()?.start),
            to: self.since_start(near.last()?.end),
            samples: near.len(),
            functions,
        })
    }

    /// The functions of some threads in `[low, high)` of the trace's clock, those with most own time first, 50 at most.
    pub(super) fn functions_in(&self, tracks: &[ThreadIndex], low: u64, high: u64) -> Vec<FunctionTime> {
        let samples = &self.samples;
        if samples.is_empty() {
            return Vec::new();
        }
        /// Nanoseconds and samples of spots.
        type Sums = FxHashMap<u32, (u64, u64)>;
        let sums_of = |track: &ThreadIndex| {
            let own = samples.during(*track, low, high);
            let mut sums = Sums::default();
            for row in own.iter().filter(|row| row.end <= high) {
                sums.entry(row.spot).or_default().1 += 1;
            }
            for piece in SampleTimes::pieces(&self.execution, own) {
                let ns = piece.end.min(high).saturating_sub(piece.start.max(low));
                sums.entry(piece.spot).or_default().0 += ns;
            }
            sums
        };
        let join = |mut left: Sums, right: Sums| {
            for (spot, (ns, count)) in right {
                let sum = left.entry(spot).or_default();
                *sum = (sum.0 + ns, sum.1 + count);
            }
            left
        };
        let spots = tracks.par_iter().map(sums_of).reduce(Sums::default, join);
        let mut functions: FxHashMap<u32, (u64, u64, u64)> = FxHashMap::default();
        for (spot, (ns, count)) in spots {
            let mut names: Vec<u32> = samples.path(spot).iter().map(|step| step.name).collect();
            let own = functions.entry(names.last().copied().unwrap_or(NONE)).or_default();
            (own.0, own.2) = (own.0 + ns, own.2 + count);
            // A recursive function has its time once.
            names.sort_unstable();
            names.dedup();
            if names.is_empty() {
                names.push(NONE);
            }
            names.into_iter().for_each(|name| functions.entry(name).or_default().1 += ns);
        }
        let rows = functions.into_iter().map(|(name, (own_ns, total_ns, samples))| FunctionTime {
            name: if name == NONE {
                self.samples.name_of(NONE).to_owned()
            } else {
                self.samples.word(name).to_owned()
            },
            own_ns,
            total_ns,
            samples,
        });
        let mut rows: Vec<FunctionTime> = rows.filter(|row| row.total_ns > 0).collect();
        rows.sort_by(|a, b| {
            (Reverse((a.own_ns, a.total_ns)), &a.name).cmp(&(Reverse((b.own_ns, b.total_ns)), &b.name))
        });
        rows.truncate(FUNCTIONS);
        rows
    }
}
