//! Definitions of an archive: those of all locations, and those of one.

use super::activity::activity;
use super::records::{Chunked, Cursor, Error, Record, Shape};
use crate::spans::{Activity, known_activity};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use taskscope_otf2::{definition as kind, group, local_definition, location, mapping, paradigm};

const NANOSECONDS: u128 = 1_000_000_000;

/// Properties of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Ticks a second.
    resolution: u64,
    /// The first tick of the run.
    offset: u64,
    /// UTC at that tick, nanoseconds since 1970; `u64::MAX` if it is not known.
    unix_ns: u64,
}

impl Clock {
    /// Nanoseconds at a tick; none beyond 2⁶³.
    pub fn nanoseconds(&self, ticks: u64) -> Option<u64> {
        let ns = u128::from(ticks) * NANOSECONDS / u128::from(self.resolution);
        u64::try_from(ns).ok().filter(|ns| *ns <= i64::MAX as u64)
    }

    /// UTC at time 0.
    pub fn origin_unix_ns(&self) -> Option<i128> {
        let begin = self.nanoseconds(self.offset)?;
        (self.unix_ns != u64::MAX).then(|| i128::from(self.unix_ns) - i128::from(begin))
    }
}

/// Type of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationType {
    Thread,
    Stream,
    Metric,
}

pub(super) struct Location {
    pub name: u32,
    pub ty: LocationType,
    pub events: u64,
    pub group: u32,
}

pub(super) struct LocationGroup {
    pub name: u32,
    pub node: u32,
}

pub(super) struct Region {
    pub name: u32,
    pub file: u32,
    pub line: u32,
    pub activity: Activity,
}

/// Global definitions.
pub(super) struct Definitions {
    pub clock: Clock,
    texts: FxHashMap<u32, String>,
    nodes: FxHashMap<u32, u32>,
    pub groups_of_locations: BTreeMap<u32, LocationGroup>,
    pub locations: BTreeMap<u64, Location>,
    pub regions: FxHashMap<u32, Region>,
    /// Members of groups: locations, or places among the locations of MPI.
    groups: FxHashMap<u32, Vec<u64>>,
    /// The locations of MPI's processes.
    mpi_locations: Vec<u64>,
    /// The group of each communicator.
    communicators: FxHashMap<u32, u32>,
}

impl Definitions {
    pub fn read(chunked: Chunked<'_>) -> Result<Definitions, Error> {
        let mut all = Definitions {
            clock: Clock { resolution: 0, offset: 0, unix_ns: u64::MAX },
            texts: FxHashMap::default(),
            nodes: FxHashMap::default(),
            groups_of_locations: BTreeMap::new(),
            locations: BTreeMap::new(),
            regions: FxHashMap::default(),
            groups: FxHashMap::default(),
            mpi_locations: Vec::new(),
            communicators: FxHashMap::default(),
        };
        chunked.records(|_| Shape::WithLength, |record| all.take(record))?;
        if all.clock.resolution == 0 {
            return Err((0, "the clock is not defined, or has no ticks".to_owned()));
        }
        Ok(all)
    }

    fn take(&mut self, record: Record<'_>) -> Result<(), Error> {
        let mut fields = record.fields;
        match record.kind {
            kind::CLOCK => {
                let (resolution, offset, _) = (fields.u64()?, fields.u64()?, fields.u64()?);
                let unix_ns = if fields.is_at_end() { u64::MAX } else { fields.u64()? };
                self.clock = Clock { resolution, offset, unix_ns };
            }
            kind::STRING => {
                self.texts.insert(fields.u32()?, fields.text()?);
            }
            kind::NODE => {
                self.nodes.insert(fields.u32()?, fields.u32()?);
            }
            kind::LOCATION_GROUP => {
                let (id, name, _) = (fields.u32()?, fields.u32()?, fields.byte()?);
                self.groups_of_locations.insert(id, LocationGroup { name, node: fields.u32()? });
            }
            kind::LOCATION => {
                let (id, name) = (fields.u64()?, fields.u32()?);
                if id == u64::MAX {
                    return Err((record.at, "a location has the number of none, 2^64 - 1".to_owned()));
                }
                let ty = match fields.byte()? {
                    location::STREAM => LocationType::Stream,
                    location::METRIC => LocationType::Metric,
                    _ => LocationType::Thread,
                };
                self.locations.insert(id, Location { name, ty, events: fields.u64()?, group: fields.u32()? });
            }
            kind::REGION => {
                let (id, name, description, _) =
                    (fields.u32()?, fields.u32()?, fields.u32()?, fields.byte()?);
                let (file, line, _, _) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
                let role_activity = activity(fields.byte()?, fields.byte()?);
                // Own exports describe regions by their states.
                let activity = known_activity(self.text(description)).unwrap_or(role_activity);
                self.regions.insert(id, Region { name, file, line, activity });
            }
            kind::GROUP => {
                let (id, _, _) = (fields.u32()?, fields.u32()?, fields.byte()?);
                let count = fields.u32()?;
                let mut members = Vec::new();
                for _ in 0..count {
                    members.push(fields.u64()?);
                }
                if fields.byte()? == group::COMM_LOCATIONS && fields.byte()? == paradigm::MPI {
                    self.mpi_locations.clone_from(&members);
                }
                self.groups.insert(id, members);
            }
            kind::COMMUNICATOR => {
                let (id, _) = (fields.u32()?, fields.u32()?);
                self.communicators.insert(id, fields.u32()?);
            }
            _ => {}
        }
        Ok(())
    }

    /// A text; empty if it is not defined.
    pub fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", String::as_str)
    }

    /// The name of a node of the system; empty if it is not defined.
    pub fn node(&self, id: u32) -> &str {
        self.nodes.get(&id).map_or("", |name| self.text(*name))
    }

    /// The locations of the members of a communicator, by rank.
    pub fn members(&self, communicator: u32) -> Option<Vec<u64>> {
        let members = self.groups.get(self.communicators.get(&communicator)?)?;
        members.iter().map(|place| self.mpi_locations.get(usize::try_from(*place).ok()?).copied()).collect()
    }
}

/// Definitions of one location.
#[derive(Default)]
pub(super) struct Local {
    regions: FxHashMap<u32, u32>,
    communicators: FxHashMap<u32, u32>,
    /// Ticks, and what is to be added to the clock there; in order.
    offsets: Vec<(u64, i64)>,
}

impl Local {
    pub fn read(chunked: Chunked<'_>) -> Result<Local, Error> {
        let mut all = Local::default();
        chunked.records(
            |_| Shape::WithLength,
            |record| {
                let mut fields = record.fields;
                match record.kind {
                    local_definition::MAPPING => {
                        let ty = fields.byte()?;
                        let map = read_map(&mut fields)?;
                        match ty {
                            mapping::REGIONS => all.regions = map,
                            mapping::COMMUNICATORS => all.communicators = map,
                            _ => {}
                        }
                    }
                    local_definition::CLOCK_OFFSET => {
                        let time = fields.fixed_u64()?;
                        let offset = fields.u64()? as i64;
                        all.offsets.push((time, offset));
                    }
                    _ => {}
                }
                Ok(())
            },
        )?;
        all.offsets.sort_by_key(|(time, _)| *time);
        Ok(all)
    }

    /// The number of a region in the global definitions.
    pub fn region(&self, id: u32) -> u32 {
        self.regions.get(&id).copied().unwrap_or(id)
    }

    /// The number of a communicator in the global definitions.
    pub fn communicator(&self, id: u32) -> u32 {
        self.communicators.get(&id).copied().unwrap_or(id)
    }

    /// A tick of the global clock, none below 0 or beyond 64 bits: offsets between two measurements are interpolated,
    /// those outside are constant.
    pub fn corrected(&self, ticks: u64) -> Option<u64> {
        let after = self.offsets.partition_point(|(time, _)| *time <= ticks);
        let at = |row: usize| self.offsets.get(row).copied();
        let offset = match (after.checked_sub(1).and_then(at), at(after)) {
            (Some((from, first)), Some((to, second))) => interpolated(first, second, ticks - from, to - from),
            (Some((_, offset)), None) | (None, Some((_, offset))) => offset.into(),
            (None, None) => 0,
        };
        u64::try_from(i128::from(ticks) + offset).ok()
    }
}

/// The value `part` of `whole` on the way from `first` to `second`. Exact for all values: the product of two of 64 bits has
/// 128 without a sign.
fn interpolated(first: i64, second: i64, part: u64, whole: u64) -> i128 {
    let change = u128::from(first.abs_diff(second)) * u128::from(part) / u128::from(whole);
    // At most the difference, as `part` is at most `whole`.
    let change = change as i128;
    i128::from(first) + if second < first { -change } else { change }
}

/// A map of numbers: all of them in order, or pairs.
fn read_map(fields: &mut Cursor<'_>) -> Result<FxHashMap<u32, u32>, Error> {
    let count = fields.u64()?;
    let is_sparse = fields.byte()? != 0;
    let mut map = FxHashMap::default();
    for row in 0..count {
        let from = if is_sparse { fields.u64()? } else { row };
        let to = fields.u64()?;
        // Maps of locations have numbers of 64 bits; they are not used.
        if let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) {
            map.insert(from, to);
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_all_sizes_are_interpolated_exactly() {
        let local = |offsets: &[(u64, i64)]| Local { offsets: offsets.to_vec(), ..Local::default() };
        let two = local(&[(100, 10), (200, -10)]);
        assert_eq!(
            [50, 100, 105, 150, 199, 200, 300].map(|ticks| two.corrected(ticks).unwrap()),
            [60, 110, 114, 150, 190, 190, 290]
        );
        let wide = local(&[(0, i64::MIN), (u64::MAX, i64::MAX)]);
        assert_eq!(wide.corrected(1 << 61), None, "below 0");
        assert_eq!(wide.corrected(u64::MAX - 1), None, "beyond 64 bits");
        assert_eq!(wide.corrected(1 << 63), Some(1 << 63));
        assert_eq!(local(&[(5, 1)]).corrected(u64::MAX), None);
    }
}
