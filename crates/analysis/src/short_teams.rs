//! Teams with fewer threads than their region requested, and the reasons.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{Execution, RegionIndex, SiteIndex, TeamLimits};

/// The reason for a smaller team than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShortReason {
    /// The limit of `max-active-levels-var` on active enclosing regions with more than one thread.
    ActiveLevels(u32),
    /// The contention group may have so many threads, `thread-limit-var`.
    ThreadLimit(u32),
    /// The runtime may adjust sizes of teams, `dyn-var`.
    Dynamic,
    /// Unknown.
    Unknown,
}

/// Executions of one parallel construct with smaller teams than requested, all by the same amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortTeam {
    /// Place of the construct.
    pub site: SiteIndex,
    /// Requested threads: by its `num_threads` clause, or `nthreads-var`.
    pub requested: u32,
    /// Threads that its teams had.
    pub team: u32,
    /// Number of occurrences.
    pub count: u64,
    /// The reason.
    pub reason: ShortReason,
}

/// Returns all short teams, those first that lack most threads in all.
pub fn short_teams(execution: &Execution) -> Vec<ShortTeam> {
    let is_short = |region: RegionIndex| {
        let row = &execution.regions[region.index()];
        row.team > 0 && row.team < row.requested
    };
    let limits_by_site: FxHashMap<SiteIndex, TeamLimits> = (execution.team_limits.iter().rev())
        .filter_map(|(region, limits)| Some((execution.regions.get(region.index())?.site, *limits)))
        .collect();
    let mut rows: FxHashMap<(SiteIndex, u32, u32, ShortReason), u64> = FxHashMap::default();
    for region in (0..execution.regions.len()).map(RegionIndex::of).filter(|region| is_short(*region)) {
        let row = &execution.regions[region.index()];
        if execution.is_selected(row.master) {
            let reason = reason(execution, region, limits_by_site.get(&row.site).copied());
            *rows.entry((row.site, row.requested, row.team, reason)).or_default() += 1;
        }
    }
    let mut rows: Vec<ShortTeam> = rows
        .into_iter()
        .map(|((site, requested, team, reason), count)| ShortTeam { site, requested, team, count, reason })
        .collect();
    let lacking = |row: &ShortTeam| u64::from(row.requested - row.team).saturating_mul(row.count);
    rows.sort_by_key(|row| (Reverse(lacking(row)), row.site, row.requested, row.team, row.reason));
    rows
}

fn reason(execution: &Execution, region: RegionIndex, limits: Option<TeamLimits>) -> ShortReason {
    let Some(limits) = limits else { return ShortReason::Unknown };
    let row = &execution.regions[region.index()];
    let (mut active, mut threads) = (0_u32, u64::from(row.requested));
    let mut parent = row.parent;
    // Regions are numbered by their begins: no cycle can be long, and hostile ones end.
    for _ in 0..execution.regions.len().min(1000) {
        let Some(around) = execution.regions.get(parent.index()).filter(|_| parent.is_some()) else { break };
        if around.team > 1 {
            active += 1;
            threads = threads.saturating_mul(around.team.into());
        }
        parent = around.parent;
    }
    if row.team == 1 && active >= limits.levels {
        ShortReason::ActiveLevels(limits.levels)
    } else if threads > u64::from(limits.threads) {
        ShortReason::ThreadLimit(limits.threads)
    } else if limits.is_dynamic {
        ShortReason::Dynamic
    } else {
        ShortReason::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::{Change, ExecutionBuilder, Observer, ThreadIndex};

    const LIMITS: TeamLimits = TeamLimits { levels: 1, threads: 1000, is_dynamic: false };

    /// Begins a region, with the limits if they were recorded.
    fn region(
        builder: &mut ExecutionBuilder,
        [number, parent, site, requested, team]: [u32; 5],
        limits: Option<TeamLimits>,
    ) {
        let (thread, at, region) = (ThreadIndex(0), u64::from(number), RegionIndex(number));
        let parent = if parent == number { RegionIndex::NONE } else { RegionIndex(parent) };
        builder.change(thread, at, Change::RegionBegins { region, parent, site: SiteIndex(site), requested });
        builder.change(thread, at, Change::RegionJoins { region, index: 0, team });
        if let Some(limits) = limits {
            builder.change(thread, at, Change::TeamLimits { region, limits });
        }
    }

    #[test]
    fn reasons_follow_from_levels_limits_and_adjustment() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        builder.add_thread(process, 1);
        let dynamic = TeamLimits { is_dynamic: true, ..LIMITS };
        let rows = [
            // A full team, with two nested regions of one place, of which only the first has its limits recorded.
            ([0, 0, 0, 4, 4], None),
            ([1, 0, 1, 3, 1], Some(LIMITS)),
            ([2, 0, 1, 3, 1], None),
            // Three levels are active, but 4 × 3 threads are too many.
            ([3, 0, 2, 3, 2], Some(TeamLimits { levels: 3, threads: 8, ..LIMITS })),
            ([4, 4, 3, 64, 2], Some(dynamic)),
            ([5, 5, 4, 64, 2], Some(LIMITS)),
            ([6, 6, 5, 64, 2], None),
            // Unknown requested size, and size as requested.
            ([7, 7, 6, 64, 0], None),
            ([8, 8, 7, 1, 1], None),
        ];
        for (row, limits) in rows {
            region(&mut builder, row, limits);
        }
        let found = short_teams(&builder.finish());
        let row = |site, requested, team, count, reason| ShortTeam {
            site: SiteIndex(site),
            requested,
            team,
            count,
            reason,
        };
        assert_eq!(
            found,
            [
                row(3, 64, 2, 1, ShortReason::Dynamic),
                row(4, 64, 2, 1, ShortReason::Unknown),
                row(5, 64, 2, 1, ShortReason::Unknown),
                row(1, 3, 1, 2, ShortReason::ActiveLevels(1)),
                row(2, 3, 2, 1, ShortReason::ThreadLimit(8)),
            ]
        );
    }
}
