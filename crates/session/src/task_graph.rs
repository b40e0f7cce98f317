//! The task graph of a session's execution, with the names that its places have.

use crate::devices::work::device_work;
use crate::names::Places;
use crate::session::Session;
use taskscope_execution::graph::{GraphError, NamedAddress, Names, TaskGraph, TaskType, from_execution};
use taskscope_execution::{ObjectIndex, Place, SiteIndex, State};

impl Session {
    /// Names of the code and the objects of the execution.
    pub fn names(&self) -> impl Names + '_ {
        PlaceNames(&self.places)
    }

    /// The task graph of the execution, and how many order relations contradict the clocks of threads and
    /// were dropped.
    ///
    /// # Errors
    /// As [`from_execution`].
    pub fn task_graph(&self) -> Result<(TaskGraph, u64), Vec<GraphError>> {
        let devices = device_work(&self.execution, &self.devices);
        from_execution(&self.execution, &devices, &mut PlaceNames(&self.places))
    }
}

struct PlaceNames<'a>(&'a Places);

impl PlaceNames<'_> {
    fn at(&self, name: String, site: SiteIndex, implicit: bool) -> TaskType {
        let mut ty = TaskType { name, implicit, ..TaskType::default() };
        if site.is_some() {
            let code = self.0.code(site);
            ty.function = code.frame.function.clone().unwrap_or_default();
            ty.file = code.frame.file.clone().unwrap_or_default();
            ty.line = code.frame.line.unwrap_or(0);
        }
        ty
    }
}

impl Names for PlaceNames<'_> {
    fn code(&mut self, state: State, place: Place) -> TaskType {
        let name = self.0.name(state, place);
        let name = if name.is_empty() { state.label().to_owned() } else { name };
        self.at(name, self.0.site_of(place), state != State::Task)
    }

    fn site(&mut self, site: SiteIndex) -> TaskType {
        self.at(self.0.construct("lock", site), site, true)
    }

    fn object(&mut self, object: ObjectIndex) -> String {
        self.0.object_name(object)
    }

    fn data(&mut self, addresses: &[NamedAddress]) -> Vec<String> {
        self.0.data_names(addresses)
    }
}
