//! Data in the programmer's words: the name given by the program, a static variable with indices, or the place of the
//! task that declared it first.

use super::places::Places;
use rustc_hash::FxHashMap;
use taskscope_execution::graph::NamedAddress;
use taskscope_execution::{Catalog, DataName, ObjectIndex, ProcessIndex};
use taskscope_symbol::VariablePlace;

impl Places {
    /// Names of addresses that tasks declared, one for each.
    ///
    /// A name given by the program takes precedence over that of a static variable. Other data (on the heap or a stack)
    /// is named after the construct of the task that declared it first; the second of several such is `#2`.
    pub fn data_names(&self, addresses: &[NamedAddress]) -> Vec<String> {
        let given = GivenNames::of(self.catalog());
        let variables: Vec<Option<VariablePlace>> = (addresses.iter())
            .map(|address| match given.name(address) {
                Some(_) => None,
                None => self.variable(address.process, address.address),
            })
            .collect();
        let depths = depths(addresses, &variables);
        let mut numbers: FxHashMap<(ProcessIndex, u64), String> = FxHashMap::default();
        let mut counts: FxHashMap<String, u32> = FxHashMap::default();
        let mut order: Vec<usize> = (0..addresses.len()).collect();
        order.sort_by_key(|row| addresses[*row].at);
        let mut names = vec![String::new(); addresses.len()];
        for row in order {
            let address = &addresses[row];
            names[row] = if let Some(name) = given.name(address) {
                name.to_owned()
            } else if let Some(place) = &variables[row] {
                words(place, depths[&(address.process, place.start)])
            } else {
                let first_use = || {
                    let name = format!("data of {}", self.type_name(address.ty));
                    let count = counts.entry(name.clone()).or_insert(0);
                    *count += 1;
                    if *count == 1 { name } else { format!("{name} #{count}") }
                };
                numbers.entry((address.process, address.address)).or_insert_with(first_use).clone()
            };
        }
        names
    }

    /// The static variable of the program that an object is, with indices.
    pub(super) fn variable_name(&self, object: ObjectIndex) -> Option<String> {
        let row = self.catalog().objects.get(object.index())?;
        let place = self.variable(row.process, row.id).filter(|place| !is_of_implementation(place))?;
        Some(words(&place, place.indices.len()))
    }

    /// The name of an object that is a part of the program's memory: its static variable, else its address.
    pub fn name_of_memory(&self, object: ObjectIndex) -> String {
        let address = || Some(format!("{:#x}", self.catalog().objects.get(object.index())?.id));
        self.variable_name(object).or_else(address).unwrap_or_else(|| "unknown".to_owned())
    }
}

/// Whether a variable has a name that is reserved for a language's implementation, as that of libstdc++ in which threads wait for
/// barriers and small atomics (`__w`). Which object of the program it stands for is not known.
pub(super) fn is_of_implementation(place: &VariablePlace) -> bool {
    place.name.starts_with("__")
}

/// The number of indices of each variable that distinguish its parts: as many as some address needs.
fn depths(
    addresses: &[NamedAddress],
    variables: &[Option<VariablePlace>],
) -> FxHashMap<(ProcessIndex, u64), usize> {
    let mut depths = FxHashMap::default();
    for (address, place) in addresses.iter().zip(variables) {
        let Some(place) = place else { continue };
        let needed = if place.offset > 0 {
            place.indices.len()
        } else {
            place.indices.iter().rposition(|index| *index > 0).map_or(0, |last| last + 1)
        };
        let depth = depths.entry((address.process, place.start)).or_insert(0);
        *depth = needed.max(*depth);
    }
    depths
}

pub(super) fn words(place: &VariablePlace, depth: usize) -> String {
    let indices = place.indices.iter().take(depth).map(|index| format!("[{index}]"));
    let mut name = place.name.clone() + &indices.collect::<String>();
    if place.offset > 0 {
        name += &format!("+{}", place.offset);
    }
    name
}

/// The names that programs gave, by process and start.
struct GivenNames<'a> {
    by_process: FxHashMap<ProcessIndex, Vec<&'a DataName>>,
}

impl<'a> GivenNames<'a> {
    fn of(catalog: &'a Catalog) -> GivenNames<'a> {
        let mut by_process: FxHashMap<ProcessIndex, Vec<&DataName>> = FxHashMap::default();
        for data in &catalog.data {
            by_process.entry(data.process).or_default().push(data);
        }
        by_process.values_mut().for_each(|list| list.sort_by_key(|data| (data.start, data.at)));
        GivenNames { by_process }
    }

    /// The name of an address at its time: of the ranges that hold it the narrowest, of equal ones the one named last.
    /// Data that is named only later has its first name.
    fn name(&self, address: &NamedAddress) -> Option<&'a str> {
        let all = self.by_process.get(&address.process)?;
        let until = all.partition_point(|data| data.start <= address.address);
        let holding = || all[..until].iter().filter(|data| address.address < data.end);
        let taken_back = |data: &DataName| {
            let within = |other: &&&DataName| {
                other.name.is_empty() && other.start <= data.start && data.end <= other.end
            };
            holding().filter(within).any(|other| data.at < other.at && other.at <= address.at)
        };
        let named = || holding().filter(|data| !data.name.is_empty());
        let now = named().filter(|data| data.at <= address.at && !taken_back(data));
        let now = now.min_by_key(|data| (data.end - data.start, std::cmp::Reverse(data.at)));
        let ever = || named().filter(|data| data.at > address.at).min_by_key(|data| data.at);
        now.or_else(ever).map(|data| data.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::TypeIndex;

    fn name_at(names: &[(u64, u64, u64, &str)], address: u64, at: u64) -> Option<String> {
        let mut catalog = Catalog::default();
        for (at, start, end, name) in names {
            let (at, start, end) = (*at, *start, *end);
            catalog.data.push(DataName { process: ProcessIndex(0), at, start, end, name: name.to_string() });
        }
        let address = NamedAddress { process: ProcessIndex(0), address, at, ty: TypeIndex::NONE };
        GivenNames::of(&catalog).name(&address).map(str::to_owned)
    }

    #[test]
    fn the_narrowest_name_counts_and_of_equal_ones_the_last() {
        let names =
            [(1, 0, 100, "A"), (2, 10, 20, "A[1]"), (5, 10, 20, "B"), (9, 0, 100, ""), (9, 0, 8, "C")];
        let name = |address, at| name_at(&names, address, at);
        assert_eq!(name(5, 3).as_deref(), Some("A"));
        assert_eq!(name(15, 3).as_deref(), Some("A[1]"));
        assert_eq!(name(15, 6).as_deref(), Some("B"));
        assert_eq!(name(15, 10), None, "it was taken back");
        assert_eq!(name(5, 10).as_deref(), Some("C"), "memory is used again");
        assert_eq!(name(5, 0).as_deref(), Some("A"), "named after its first use");
        assert_eq!(name(100, 6), None, "the end is outside");
    }

    #[test]
    fn as_many_indices_are_shown_as_distinguish_the_parts() {
        let place = |indices: &[u64], offset| VariablePlace {
            name: "A".to_owned(),
            start: 64,
            indices: indices.to_vec(),
            offset,
        };
        let shown = |places: Vec<VariablePlace>| {
            let address = NamedAddress { process: ProcessIndex(0), address: 0, at: 0, ty: TypeIndex::NONE };
            let places: Vec<_> = places.into_iter().map(Some).collect();
            let depths = depths(&vec![address; places.len()], &places);
            let all = places.iter().flatten().map(|p| words(p, depths[&(ProcessIndex(0), 64)]));
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(vec![place(&[0, 0, 0], 0)]), "A");
        assert_eq!(shown(vec![place(&[0, 0, 0], 0), place(&[1, 2, 0], 0)]), "A[0][0] A[1][2]");
        assert_eq!(shown(vec![place(&[], 0), place(&[], 8)]), "A A+8");
    }
}
