//! Parallel regions that are too short: their teams take longer to start and end than to work.
//!
//! ```text
//!   region      ├───────────────────────┤   mean time
//!   member        ├─────┤                   useful time of the busiest member
//!   cost        ├─┤     ├───────────────┤   the rest
//! ```
//! An imbalance is no cost by this measure: the busiest member works meanwhile.

use crate::teams::ParallelConstruct;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{Execution, Place, SiteIndex};

/// Regions of a construct are not judged below this number.
const MIN_REGIONS: u64 = 100;
/// Longest mean time of a region that is judged: a team starts and ends in less, so longer ones have another cause.
const MAX_MEAN_NS: u64 = 100_000;

/// The regions of a parallel construct that are too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionGrain {
    /// The construct.
    pub site: SiteIndex,
    /// Regions of it.
    pub regions: u64,
    /// Mean time from begin to end, nanoseconds.
    pub mean_ns: u64,
    /// The part of it in which the busiest member is useful, nanoseconds.
    pub work_ns: u64,
}

impl RegionGrain {
    /// The grain of a construct; `None` if its regions are long enough, or few.
    fn of(construct: &ParallelConstruct) -> Option<RegionGrain> {
        let regions = construct.load.executions;
        let mean_ns = construct.duration_ns.checked_div(regions)?;
        // Weighted by the members: teams of a construct are alike.
        let work_ns = construct.load.longest_ns.checked_div(construct.load.shares)?;
        let is_short =
            regions >= MIN_REGIONS && mean_ns <= MAX_MEAN_NS && work_ns < mean_ns.saturating_sub(work_ns);
        is_short.then_some(RegionGrain { site: construct.site, regions, mean_ns, work_ns })
    }
}

/// The constructs with too short regions, by the places of losses in them: the region, and worksharing constructs that are in such
/// regions alone.
pub(crate) fn short_regions(
    execution: &Execution,
    constructs: &[ParallelConstruct],
) -> FxHashMap<Place, RegionGrain> {
    let short = constructs.iter().filter_map(RegionGrain::of);
    let mut places: FxHashMap<Place, RegionGrain> =
        short.map(|grain| (Place::site(grain.site), grain)).collect();
    if places.is_empty() {
        return places;
    }
    let mut elsewhere: FxHashSet<Place> = FxHashSet::default();
    for work in &execution.works {
        let region = execution.regions.get(work.region.index());
        let around = region.and_then(|region| places.get(&Place::site(region.site)).copied());
        let place = Place::task_type(work.ty);
        match around {
            Some(grain) => _ = places.insert(place, grain),
            None => _ = elsewhere.insert(place),
        }
    }
    places.retain(|place, _| !elsewhere.contains(place));
    places
}
