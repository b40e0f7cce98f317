//! Task graphs of executions with numbers for names.

use taskscope_execution::graph::{DeviceWork, NamedAddress, Names, TaskGraph, TaskType, from_execution};
use taskscope_execution::{Execution, ObjectIndex, Place, PlaceKind, SiteIndex, State};

/// Names by number: `type 3`, `site 2`.
pub struct Numbers;

impl Names for Numbers {
    fn code(&mut self, state: State, place: Place) -> TaskType {
        let name = match place.kind() {
            PlaceKind::Type(ty) => format!("type {}", ty.0),
            PlaceKind::Site(site) => format!("{} {}", state.name(), site.0),
            _ => state.name().to_owned(),
        };
        TaskType { name, implicit: state != State::Task, ..TaskType::default() }
    }

    fn site(&mut self, site: SiteIndex) -> TaskType {
        TaskType { name: format!("site {}", site.0), implicit: true, ..TaskType::default() }
    }

    fn object(&mut self, object: ObjectIndex) -> String {
        format!("object {}", object.0)
    }

    fn data(&mut self, addresses: &[NamedAddress]) -> Vec<String> {
        addresses.iter().map(|address| format!("data {:#x}", address.address)).collect()
    }
}

/// The task graph of an execution without devices.
///
/// # Panics
/// If the execution has none.
pub fn graph_of(execution: &Execution) -> TaskGraph {
    from_execution(execution, &DeviceWork::default(), &mut Numbers)
        .unwrap_or_else(|errors| panic!("{errors:?}"))
        .0
}
