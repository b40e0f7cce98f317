//! Tables of an execution with the types and sites that are one construct joined.

use crate::execution::Execution;
use crate::ids::{RegionIndex, ThreadIndex, TypeIndex};
use crate::joined::Joined;
use rustc_hash::FxHashMap;

impl Execution {
    /// Joins the tables that are not stored by threads and tasks.
    pub(crate) fn join_tables(&mut self, joined: &Joined) {
        if joined.is_none() {
            return;
        }
        for region in &mut self.regions {
            region.site = joined.site(region.site);
        }
        for ty in &mut self.catalog.types {
            ty.site = joined.site(ty.site);
        }
        for gap in &mut self.catalog.gaps {
            (gap.after, gap.before) = (joined.site(gap.after), joined.site(gap.before));
        }
        for hold in self.holds.to_mut() {
            hold.site = joined.site(hold.site);
        }
        self.join_works(joined);
    }

    /// Recounts constructs that were executed as several types.
    fn join_works(&mut self, joined: &Joined) {
        let works = &mut self.works;
        works.iter_mut().for_each(|work| work.ty = joined.ty(work.ty));
        let mut by_start: Vec<usize> = (0..works.len()).collect();
        by_start.sort_by_key(|work| works[*work].start);
        let mut ordinals: FxHashMap<(ThreadIndex, RegionIndex, TypeIndex), u32> = FxHashMap::default();
        for work in by_start {
            let work = &mut works[work];
            let next = ordinals.entry((work.thread, work.region, work.ty)).or_insert(0);
            work.ordinal = *next;
            *next += 1;
        }
    }
}
