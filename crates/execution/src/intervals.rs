//! Sets of intervals of time, each in order and disjoint.

/// Spans of time in order, apart from each other.
pub(crate) type Times = [(u64, u64)];

/// Overlap of both `times`, each in order and disjoint.
pub(crate) fn overlap_ns(times: &Times, others: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (mut left, mut sum) = (times, 0);
    for (start, end) in others {
        left = &left[left.partition_point(|time| time.1 <= start)..];
        let together = left.iter().take_while(|time| time.0 < end);
        sum += together.map(|time| time.1.min(end) - time.0.max(start)).sum::<u64>();
    }
    sum
}

/// Adds the parts of `all` between two times.
pub(crate) fn add_parts(all: &Times, (start, end): (u64, u64), out: &mut Vec<(u64, u64)>) {
    let first = all.partition_point(|part| part.1 <= start);
    let parts = all[first..].iter().take_while(|part| part.0 < end);
    out.extend(parts.map(|part| (part.0.max(start), part.1.min(end))));
}

/// Takes `others` out of `times`; both are in order and apart.
pub(crate) fn subtract(times: &mut Vec<(u64, u64)>, others: &Times) {
    if others.is_empty() {
        return;
    }
    let mut left = Vec::with_capacity(times.len());
    for (mut start, end) in std::mem::take(times) {
        let first = others.partition_point(|other| other.1 <= start);
        for (from, to) in others[first..].iter().take_while(|other| other.0 < end) {
            left.extend((start < *from).then_some((start, *from)));
            start = (*to).min(end);
        }
        left.extend((start < end).then_some((start, end)));
    }
    *times = left;
}

/// Joins intervals that meet, and sorts them.
pub fn join_intervals(intervals: &mut Vec<(u64, u64)>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, before| {
        let meets = next.0 <= before.1;
        if meets {
            before.1 = before.1.max(next.1);
        }
        meets
    });
}

/// Collects all intervals, joined.
pub(crate) fn joined<'a>(all: impl Iterator<Item = &'a Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
    let mut intervals: Vec<(u64, u64)> = all.flatten().copied().collect();
    join_intervals(&mut intervals);
    intervals
}
