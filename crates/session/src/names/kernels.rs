//! Labels of kernels, for the OpenMP constructs that run them.
//!
//! A library of kernels (Kokkos) has one parallel loop for all loops of a program: its place in the code says nothing. The
//! library reports each kernel by its label, as a state of the thread that forks the team. The regions that begin directly
//! in that state, and the worksharing constructs in them, are named after it.
//!
//! A site has the label only if all of its regions have the same one.

use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, PlaceKind, Region, SiteIndex};

/// Ends of the names of states that are kernels.
const KERNELS: [&str; 3] = [" [parallel_for]", " [parallel_reduce]", " [parallel_scan]"];

/// The label of a kernel's state; `None` for other states.
fn label_of(state: &str) -> Option<&str> {
    KERNELS.iter().find_map(|kernel| state.strip_suffix(kernel))
}

/// The labels of sites of regions and worksharing constructs.
pub fn labels(execution: &Execution) -> FxHashMap<SiteIndex, String> {
    let types = &execution.catalog.types;
    if !types.iter().any(|row| label_of(&row.label).is_some()) {
        return FxHashMap::default();
    }
    let region_labels: Vec<Option<&str>> =
        execution.regions.iter().map(|region| label_of_region(execution, region)).collect();
    let mut label_by_site: FxHashMap<SiteIndex, Option<&str>> = FxHashMap::default();
    let mut add = |site: SiteIndex, label| {
        let known = label_by_site.entry(site).or_insert(label);
        if *known != label {
            *known = None;
        }
    };
    for (region, label) in execution.regions.iter().zip(&region_labels) {
        add(region.site, *label);
    }
    for work in &execution.works {
        let label = region_labels.get(work.region.index()).copied().flatten();
        add(execution.catalog.type_site(work.ty), label);
    }
    let labelled = label_by_site.into_iter().filter(|(site, _)| site.is_some());
    labelled.filter_map(|(site, label)| Some((site, label?.to_owned()))).collect()
}

/// The label of the kernel whose state the thread is in when it begins the region.
fn label_of_region<'e>(execution: &'e Execution, region: &Region) -> Option<&'e str> {
    let track = &execution.threads.get(region.master.index())?.track;
    let before = track.row_at(region.begin.checked_sub(1)?)?;
    match track.span(before).section.place.kind() {
        PlaceKind::Type(ty) => label_of(&execution.catalog.types.get(ty.index())?.label),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_known_by_the_end_of_their_name() {
        assert_eq!(label_of("advect [parallel_for]"), Some("advect"));
        assert_eq!(label_of("a [parallel_for] [parallel_scan]"), Some("a [parallel_for]"));
        assert_eq!(label_of("time step [region]"), None);
    }
}
