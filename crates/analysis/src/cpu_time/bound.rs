//! Threads that are bound to a part of the CPUs, and when the program's own threads occupy that part.
//!
//! ```text
//!   affinity masks of threads ──▶ groups of one mask ┐
//!   running times of threads within that mask ───────┴▶ times in which they are as many as its CPUs
//! ```
//!
//! A thread without a CPU in such a time has none because of its binding; at other times, the system has taken it.

use taskscope_execution::{CpuSet, Execution, ThreadIndex};

use super::activity::Doing;
use super::scheduling::Scheduling;

/// The bound threads of a host.
#[derive(Default)]
pub(super) struct BoundThreads {
    groups: Vec<Group>,
    /// Threads in their order, with the number of their group.
    group_of: Vec<(ThreadIndex, usize)>,
}

struct Group {
    cpus: CpuSet,
    first: ThreadIndex,
    /// In which threads within the mask occupy its CPUs, in order and apart.
    full: Vec<(u64, u64)>,
}

impl BoundThreads {
    /// Those of a host with these processes and CPUs. `ends` are those of
    /// [`ends_of_scheduling`](super::scheduling::ends_of_scheduling).
    pub(super) fn of(
        execution: &Execution,
        (processes, host): (&[usize], &CpuSet),
        ends: &[u64],
    ) -> BoundThreads {
        let mut all = BoundThreads::default();
        let threads = (0..).map(ThreadIndex).zip(&execution.whole().threads);
        for (thread, row) in threads.filter(|(_, row)| processes.contains(&row.process.index())) {
            let Some(cpus) = row.cpus.as_ref().filter(|cpus| is_part(cpus, host)) else { continue };
            let number = all.groups.iter().position(|group| group.cpus == *cpus).unwrap_or_else(|| {
                all.groups.push(Group { cpus: cpus.clone(), first: thread, full: Vec::new() });
                all.groups.len() - 1
            });
            all.group_of.push((thread, number));
        }
        for number in 0..all.groups.len() {
            let cpus = &all.groups[number].cpus;
            let is_within = |other: &CpuSet| other == cpus || is_part(other, cpus);
            let mut changes: Vec<(u64, i64)> = Vec::new();
            for (thread, _) in all.group_of.iter().filter(|(_, other)| is_within(&all.groups[*other].cpus)) {
                Scheduling::of(execution, *thread, ends).outside_of_waits(&mut |from, until, doing| {
                    if doing == Doing::Runs {
                        changes.extend([(from, 1), (until, -1)]);
                    }
                });
            }
            changes.sort_unstable();
            all.groups[number].full = full_times(&changes, cpus.len() as i64);
        }
        all
    }

    /// The times from `from` until `until` in which this thread's mask is occupied, with the first thread of that mask.
    pub(super) fn times_of(
        &self,
        thread: ThreadIndex,
        from: u64,
        until: u64,
    ) -> Vec<(ThreadIndex, u64, u64)> {
        let row = self.group_of.binary_search_by_key(&thread, |(thread, _)| *thread);
        let Ok(row) = row else { return Vec::new() };
        let group = &self.groups[self.group_of[row].1];
        let first = group.full.partition_point(|(_, end)| *end <= from);
        let inside = group.full[first..].iter().take_while(|(start, _)| *start < until);
        inside.map(|(start, end)| (group.first, (*start).max(from), (*end).min(until))).collect()
    }
}

/// Whether the first set is a proper subset.
fn is_part(part: &CpuSet, of: &CpuSet) -> bool {
    part.is_within(of) && part.len() < of.len()
}

/// The times in which at least `wanted` threads run; of simultaneous changes, ends come first.
fn full_times(changes: &[(u64, i64)], wanted: i64) -> Vec<(u64, u64)> {
    let (mut full, mut running, mut since) = (Vec::new(), 0, None);
    for (at, step) in changes {
        running += step;
        match since {
            None if running >= wanted => since = Some(*at),
            Some(start) if running < wanted => {
                since = None;
                match full.last_mut() {
                    Some((_, end)) if *end == start => *end = *at,
                    _ if *at > start => full.push((start, *at)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    full
}
