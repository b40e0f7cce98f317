//! Parts of two runs that belong together, so that their timelines can be read side by side.
//!
//! The parts of a run are the outermost parallel regions of one thread: of the first process by rank, the thread that began most of
//! them. Without regions they are the calls of a communication library of that process. Parts are paired by the names of their functions,
//! not by lines, so that code that moved in its file stays paired: first equal parts at the begin and at the end, then the longest common
//! subsequence between (E. W. Myers, Algorithmica 1, 1986). Where there are too many parts between for that, none of them is paired.

use crate::page::Page;
use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeMap;
use taskscope_execution::{Execution, NO_TIME, ProcessIndex, SiteIndex, ThreadIndex};

/// Parts on a side, between equal begins and ends, for which the longest common subsequence is sought.
const MAX_SOUGHT: usize = 4096;
/// Parts in the document: the longest ones.
const MAX_PARTS: usize = 2000;

/// Parts of two runs that belong together.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Alignment {
    /// The kind of the parts: `parallel regions`, `calls of MPI`; null if the runs have none in common.
    pub by: Option<&'static str>,
    /// Number of parts of each run.
    pub counts: [usize; 2],
    /// Number of paired parts.
    pub paired: usize,
    /// The paired parts by time, the longest 2000 at most.
    pub parts: Vec<AlignedPart>,
}

/// A part of the run before and the part of the run after that it belongs to. Times are nanoseconds since the start of each trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlignedPart {
    /// The construct or the call.
    pub name: String,
    /// Begin and end before.
    pub before: [u64; 2],
    /// Begin and end after.
    pub after: [u64; 2],
}

/// A part of one run.
#[derive(Clone, Debug)]
struct Part {
    /// The name without a line, by which it is paired.
    key: String,
    name: String,
    /// Begin and end, nanoseconds since the start of the trace.
    time: [u64; 2],
}

/// The parts of a run of one kind.
type PartsOf = fn(&Page) -> Vec<Part>;

impl Alignment {
    /// Pairs the parts of two runs.
    pub(super) fn of(before: &Page, after: &Page) -> Alignment {
        let kinds: [(&str, PartsOf); 2] = [("parallel regions", regions), ("calls of MPI", calls)];
        for (by, parts_of) in kinds {
            let (first, second) = (parts_of(before), parts_of(after));
            let parts = paired(&first, &second);
            if parts.is_empty() {
                continue;
            }
            let (counts, paired) = ([first.len(), second.len()], parts.len());
            return Alignment { by: Some(by), counts, paired, parts: longest(parts) };
        }
        Alignment::default()
    }
}

/// The longest parts, still in the order of time.
fn longest(mut parts: Vec<AlignedPart>) -> Vec<AlignedPart> {
    if parts.len() > MAX_PARTS {
        let length =
            |part: &AlignedPart| (part.before[1] - part.before[0]).max(part.after[1] - part.after[0]);
        parts.sort_by_key(|part| (std::cmp::Reverse(length(part)), part.before[0]));
        parts.truncate(MAX_PARTS);
        parts.sort_by_key(|part| part.before[0]);
    }
    parts
}

/// Pairs two sequences of parts by their keys.
fn paired(before: &[Part], after: &[Part]) -> Vec<AlignedPart> {
    let same = |(first, second): &(&Part, &Part)| first.key == second.key;
    let begin = before.iter().zip(after).take_while(same).count();
    let (first, second) = (&before[begin..], &after[begin..]);
    let end = first.iter().rev().zip(second.iter().rev()).take_while(same).count();
    let (first, second) = (&first[..first.len() - end], &second[..second.len() - end]);
    let mut rows: Vec<(usize, usize)> = (0..begin).map(|row| (row, row)).collect();
    if first.len().max(second.len()) <= MAX_SOUGHT {
        let keys = |parts: &[Part]| parts.iter().map(|part| part.key.clone()).collect::<Vec<_>>();
        for op in capture_diff_slices(Algorithm::Myers, &keys(first), &keys(second)) {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                rows.extend((0..len).map(|row| (begin + old_index + row, begin + new_index + row)));
            }
        }
    }
    rows.extend((0..end).rev().map(|row| (before.len() - 1 - row, after.len() - 1 - row)));
    let part = |(first, second): (usize, usize)| AlignedPart {
        name: after[second].name.clone(),
        before: before[first].time,
        after: after[second].time,
    };
    rows.into_iter().map(part).collect()
}

/// The outermost parallel regions of one thread of the first process.
fn regions(page: &Page) -> Vec<Part> {
    let execution = &page.execution;
    let Some(process) = first_process(execution) else { return Vec::new() };
    let outermost = execution.regions.iter().filter(|region| {
        let is_whole = region.begin != NO_TIME && region.end != NO_TIME && region.begin <= region.end;
        let is_own =
            execution.threads.get(region.master.index()).is_some_and(|thread| thread.process == process);
        is_whole && is_own && !region.parent.is_some()
    });
    let mut by_master: BTreeMap<ThreadIndex, Vec<(u64, u64, SiteIndex)>> = BTreeMap::new();
    for region in outermost {
        by_master.entry(region.master).or_default().push((region.begin, region.end, region.site));
    }
    // The first of equals.
    let most = by_master.into_values().rev().max_by_key(Vec::len).unwrap_or_default();
    named(page, most, "parallel")
}

/// The calls of a communication library of the first process.
fn calls(page: &Page) -> Vec<Part> {
    let execution = &page.execution;
    let Some(process) = first_process(execution) else { return Vec::new() };
    let own = execution.communication.calls.iter().filter(|call| {
        let thread = execution.threads.get(call.thread.index());
        thread.is_some_and(|thread| thread.process == process) && call.start < call.end
    });
    let mut own: Vec<(u64, u64, String)> =
        own.map(|call| (call.start, call.end, crate::mpi_calls::name_of(call))).collect();
    own.sort();
    in_order(own)
        .map(|(start, end, name)| Part {
            key: name.clone(),
            name,
            time: [page.since_start(start), page.since_start(end)],
        })
        .collect()
}

/// Intervals by their begin, without those that overlap an earlier one.
fn in_order<T>(rows: Vec<(u64, u64, T)>) -> impl Iterator<Item = (u64, u64, T)> {
    let mut last = 0;
    rows.into_iter().filter(move |(start, end, _)| {
        let fits = *start >= last;
        last = if fits { *end } else { last };
        fits
    })
}

/// Parts with the names of their constructs.
fn named(page: &Page, mut rows: Vec<(u64, u64, SiteIndex)>, construct: &'static str) -> Vec<Part> {
    rows.sort_unstable();
    let rows: Vec<(u64, u64, SiteIndex)> = in_order(rows).collect();
    let sites: std::collections::BTreeSet<SiteIndex> = rows.iter().map(|row| row.2).collect();
    let names: BTreeMap<SiteIndex, (String, String)> = page.names.ask(move |places| {
        let names = sites.into_iter().map(|site| {
            let name = places.construct(construct, site);
            let key = places.code(site).frame.function.clone().unwrap_or_else(|| name.clone());
            (site, (key, name))
        });
        names.collect()
    });
    let part = |(start, end, site): (u64, u64, SiteIndex)| {
        let (key, name) = names.get(&site).cloned().unwrap_or_default();
        Part { key, name, time: [page.since_start(start), page.since_start(end)] }
    };
    rows.into_iter().map(part).collect()
}

/// The process of rank 0, or the first one with workers.
fn first_process(execution: &Execution) -> Option<ProcessIndex> {
    let workers = execution.workers().map(|(_, thread)| thread.process);
    let rank = |process: &ProcessIndex| {
        execution.communication.ranks.get(&process.0).map_or(u32::MAX, |rank| rank.rank)
    };
    workers.min_by_key(|process| (rank(process), process.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(keys: &str) -> Vec<Part> {
        let part = |(at, key): (usize, char)| {
            let time = [10 * at as u64, 10 * at as u64 + 5];
            Part { key: key.to_string(), name: format!("{key} of {at}"), time }
        };
        keys.chars().enumerate().map(part).collect()
    }

    fn pairs(before: &str, after: &str) -> Vec<(u64, u64)> {
        let paired = paired(&parts(before), &parts(after));
        let is_ordered =
            |two: &[AlignedPart]| two[0].before[1] <= two[1].before[0] && two[0].after[1] <= two[1].after[0];
        assert!(paired.windows(2).all(is_ordered));
        paired.iter().map(|part| (part.before[0] / 10, part.after[0] / 10)).collect()
    }

    #[test]
    fn equal_parts_are_paired_in_order() {
        assert_eq!(pairs("abab", "abab"), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert_eq!(pairs("abc", "axbc"), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(pairs("iabababf", "iababf"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (7, 5)]);
        assert_eq!(pairs("abc", "xyz"), []);
        assert_eq!(pairs("", "abc"), []);
    }

    #[test]
    fn too_many_parts_are_paired_at_begin_and_end_only() {
        let (many, other) = ("b".repeat(MAX_SOUGHT + 1), "c".repeat(MAX_SOUGHT + 1));
        let paired = pairs(&format!("a{many}z"), &format!("a{other}z"));
        assert_eq!(paired, [(0, 0), (MAX_SOUGHT as u64 + 2, MAX_SOUGHT as u64 + 2)]);
    }

    #[test]
    fn the_longest_parts_are_kept_in_the_order_of_time() {
        let part = |row: u64| AlignedPart {
            name: String::new(),
            before: [row * 100, row * 100 + row % 7],
            after: [row * 100, row * 100 + row % 5],
        };
        let kept = longest((0..3000).map(part).collect());
        assert_eq!(kept.len(), MAX_PARTS);
        assert!(kept.is_sorted_by_key(|part| part.before[0]));
        assert!(kept.iter().all(|part| part.before[0] / 100 % 7 > 0 || part.before[0] / 100 % 5 > 0));
    }
}
