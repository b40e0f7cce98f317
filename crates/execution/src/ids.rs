//! Small numbers that name the things of an execution. Each is an index into one table.

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Means "none" or "unknown".
            pub const NONE: $name = $name(u32::MAX);

            /// Whether it names something.
            pub const fn is_some(self) -> bool {
                self.0 != u32::MAX
            }

            /// The index into its table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the row that will be pushed next onto a table of this length.
            pub fn of(length: usize) -> $name {
                $name(u32::try_from(length).unwrap_or(u32::MAX))
            }
        }
    };
}

index! {
    /// A process of the trace.
    ProcessIndex
}
index! {
    /// A thread of the trace, over all processes.
    ThreadIndex
}
index! {
    /// A task instance, numbered by creation over all processes.
    TaskIndex
}
index! {
    /// A parallel region instance.
    RegionIndex
}
index! {
    /// A place in the code of one process.
    SiteIndex
}
index! {
    /// A task type or worksharing type of one process.
    TypeIndex
}
index! {
    /// Something that threads wait for: a lock, a critical section.
    ObjectIndex
}
index! {
    /// A creation path of one process.
    PathIndex
}
index! {
    /// Code of one thread between two parallel regions.
    GapIndex
}

/// The place of a thread's section, packed into 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Place(u32);

/// [`Place`], unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    /// Unknown.
    Unknown,
    /// A code site: of a region, a wait, a construct.
    Site(SiteIndex),
    /// The body of a task type or a worksharing construct.
    Type(TypeIndex),
    /// Serial code between two regions.
    Gap(GapIndex),
}

const PAYLOAD: u32 = (1 << 30) - 1;

impl Place {
    /// Unknown.
    pub const UNKNOWN: Place = Place(0);

    /// The place at `site`; unknown for `SiteIndex::NONE`.
    pub fn site(site: SiteIndex) -> Place {
        Place::pack(1, site.0)
    }

    /// The place that is the body of `ty`.
    pub fn task_type(ty: TypeIndex) -> Place {
        Place::pack(2, ty.0)
    }

    /// The place that is this serial code.
    pub fn gap(gap: GapIndex) -> Place {
        Place::pack(3, gap.0)
    }

    fn pack(tag: u32, index: u32) -> Place {
        // An index beyond 2^30 - 1 cannot be represented: better unknown than wrong.
        if index > PAYLOAD { Place::UNKNOWN } else { Place(tag << 30 | index) }
    }

    /// The place as one number: equal places have equal ones.
    pub const fn packed(self) -> u32 {
        self.0
    }

    /// The place of a number from [`Place::packed`].
    pub const fn from_packed(number: u32) -> Place {
        Place(number)
    }

    /// Its kind and number.
    pub fn kind(self) -> PlaceKind {
        let index = self.0 & PAYLOAD;
        match self.0 >> 30 {
            1 => PlaceKind::Site(SiteIndex(index)),
            2 => PlaceKind::Type(TypeIndex(index)),
            3 => PlaceKind::Gap(GapIndex(index)),
            _ => PlaceKind::Unknown,
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_round_trip() {
        assert_eq!(Place::site(SiteIndex(7)).kind(), PlaceKind::Site(SiteIndex(7)));
        assert_eq!(Place::task_type(TypeIndex(0)).kind(), PlaceKind::Type(TypeIndex(0)));
        assert_eq!(Place::gap(GapIndex(PAYLOAD)).kind(), PlaceKind::Gap(GapIndex(PAYLOAD)));
        assert_eq!(Place::site(SiteIndex::NONE).kind(), PlaceKind::Unknown);
        assert_eq!(Place::gap(GapIndex(PAYLOAD + 1)), Place::UNKNOWN);
    }
}
