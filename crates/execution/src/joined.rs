//! Types and sites that are one construct: compilers copy constructs when they inline a function, unroll a loop or
//! clone.

use rustc_hash::FxHashMap;

use crate::{Execution, Place, PlaceKind, RegionIndex, SiteIndex, ThreadIndex, TypeIndex};

/// For each type and each site the one that it is.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    types: Vec<TypeIndex>,
    sites: Vec<SiteIndex>,
}

impl Joined {
    /// Creates the map by [`TypeIndex`] and [`SiteIndex`]; further ones map to themselves.
    pub fn of(types: Vec<TypeIndex>, sites: Vec<SiteIndex>) -> Joined {
        Joined { types, sites }
    }

    /// Whether everything is itself.
    pub(crate) fn is_none(&self) -> bool {
        let are_own = |(own, ty): (u32, &TypeIndex)| ty.0 == own;
        (0_u32..).zip(&self.types).all(are_own) && (0_u32..).zip(&self.sites).all(|(own, site)| site.0 == own)
    }

    /// These sites are themselves.
    pub(crate) fn leave(&mut self, sites: impl Iterator<Item = SiteIndex>) {
        for site in sites {
            if let Some(known) = self.sites.get_mut(site.index()) {
                *known = site;
            }
        }
    }

    pub(crate) fn ty(&self, ty: TypeIndex) -> TypeIndex {
        self.types.get(ty.index()).copied().unwrap_or(ty)
    }

    pub(crate) fn site(&self, site: SiteIndex) -> SiteIndex {
        self.sites.get(site.index()).copied().unwrap_or(site)
    }

    pub(crate) fn place(&self, place: Place) -> Place {
        match place.kind() {
            PlaceKind::Type(ty) => Place::of_type(self.ty(ty)),
            PlaceKind::Site(site) => Place::site(self.site(site)),
            _ => place,
        }
    }

    /// Joins the tables that are not stored by threads and tasks.
    pub(crate) fn join_tables(&self, execution: &mut Execution) {
        if self.is_none() {
            return;
        }
        for region in &mut execution.regions {
            region.site = self.site(region.site);
        }
        for ty in &mut execution.catalog.types {
            ty.site = self.site(ty.site);
        }
        for gap in &mut execution.catalog.gaps {
            (gap.after, gap.before) = (self.site(gap.after), self.site(gap.before));
        }
        for hold in execution.holds.to_mut() {
            hold.site = self.site(hold.site);
        }
        self.join_works(execution);
    }

    /// Recounts constructs that were executed as several types.
    fn join_works(&self, execution: &mut Execution) {
        let works = &mut execution.works;
        works.iter_mut().for_each(|work| work.ty = self.ty(work.ty));
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
