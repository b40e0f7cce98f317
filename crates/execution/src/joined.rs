//! Types and sites that are one construct: compilers copy constructs when they inline a function, unroll a loop or
//! clone.

use crate::ids::{Place, PlaceKind, SiteIndex, TypeIndex};

/// The representative of each type and each site.
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
            PlaceKind::Type(ty) => Place::task_type(self.ty(ty)),
            PlaceKind::Site(site) => Place::site(self.site(site)),
            _ => place,
        }
    }
}
