//! Numbers of a run's things in its data set: the run's own numbers, shifted past those of earlier runs.

use crate::data_set::Next;
use crate::rows::Value;
use std::collections::BTreeMap;
use taskscope_execution::devices::Queue;
use taskscope_execution::{
    Execution, NO_TIME, ObjectIndex, Place, PlaceKind, ProcessIndex, RegionIndex, SiteIndex, TaskIndex,
    ThreadIndex, TypeIndex,
};
use taskscope_session::Session;

/// A run in its data set.
pub(crate) struct Run<'a> {
    pub session: &'a Session,
    pub execution: &'a Execution,
    pub run: u32,
    /// First numbers of this run.
    pub first: Next,
    /// Time 0 of the tables, nanoseconds of the trace's clock.
    pub origin: u64,
    /// Number and host of each process's node.
    pub nodes: Vec<u32>,
}

impl<'a> Run<'a> {
    /// The next run of a data set; reserves its numbers.
    pub fn next(session: &'a Session, next: &mut Next) -> Run<'a> {
        let execution = &session.execution;
        let first = *next;
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        let mut nodes = Vec::new();
        for process in &execution.processes {
            let new = first.node + known.len() as u32;
            nodes.push(*known.entry(host_of(&process.loom)).or_insert(new));
        }
        let begin = match execution.whole().range() {
            (0, 0) => session.devices.range().0,
            (begin, _) => begin,
        };
        next.run += 1;
        // One process and node more: for device queues of no known process.
        next.process += execution.processes.len() as u32 + 1;
        next.node += known.len().max(1) as u32;
        next.location += (execution.threads.len() + session.devices.queues.len()) as u32;
        next.task_type += execution.catalog.types.len() as u32;
        next.site += execution.catalog.sites.len() as u32;
        next.object += execution.catalog.objects.len() as u32;
        next.region += execution.regions.len() as u64;
        next.task += execution.tasks.len() as u64;
        Run { session, execution, run: first.run, first, origin: begin, nodes }
    }

    pub fn process(&self, process: ProcessIndex) -> Option<u32> {
        (process.index() < self.nodes.len()).then(|| self.first.process + process.0)
    }

    /// The number of a process, or the one that stands for things of no known process.
    pub fn process_number(&self, process: ProcessIndex) -> u32 {
        self.process(process).unwrap_or(self.first.process + self.nodes.len() as u32)
    }

    pub fn node(&self, process: ProcessIndex) -> u32 {
        self.nodes.get(process.index()).copied().unwrap_or(self.first.node)
    }

    pub fn location(&self, thread: ThreadIndex) -> Option<u32> {
        (thread.index() < self.execution.threads.len()).then(|| self.first.location + thread.0)
    }

    /// A device queue, by its row.
    pub fn queue(&self, queue: usize) -> u32 {
        self.first.location + (self.execution.threads.len() + queue) as u32
    }

    pub fn task_type(&self, ty: TypeIndex) -> Option<u32> {
        (ty.index() < self.execution.catalog.types.len()).then(|| self.first.task_type + ty.0)
    }

    pub fn site(&self, site: SiteIndex) -> Option<u32> {
        (site.index() < self.execution.catalog.sites.len()).then(|| self.first.site + site.0)
    }

    pub fn site_of(&self, place: Place) -> Option<u32> {
        self.site(self.session.places.site_of(place))
    }

    pub fn type_of(&self, place: Place) -> Option<u32> {
        match place.kind() {
            PlaceKind::Type(ty) => self.task_type(ty),
            _ => None,
        }
    }

    pub fn object(&self, object: ObjectIndex) -> Option<u32> {
        (object.index() < self.execution.catalog.objects.len()).then(|| self.first.object + object.0)
    }

    pub fn region(&self, region: RegionIndex) -> Option<u64> {
        (region.index() < self.execution.regions.len()).then(|| self.first.region + u64::from(region.0))
    }

    pub fn task(&self, task: TaskIndex) -> Option<u64> {
        (task.index() < self.execution.tasks.len()).then(|| self.first.task + u64::from(task.0))
    }

    /// A time of the tables; null if it is not known.
    pub fn at(&self, clock: u64) -> Value<'static> {
        if clock == NO_TIME { Value::Null } else { Value::Int(clock as i64 - self.origin as i64) }
    }

    /// The process of a device queue: the only one with its process id.
    pub fn process_of_queue(&self, queue: &Queue) -> Option<ProcessIndex> {
        let pid = queue.pid?;
        let processes = self.execution.processes.iter().enumerate();
        let mut own = processes.filter(|(_, process)| process.pid == pid && !process.has_cpus);
        let (row, _) = own.next()?;
        own.next().is_none().then(|| ProcessIndex::of(row))
    }

    /// The process of a thread.
    pub fn process_of(&self, thread: ThreadIndex) -> ProcessIndex {
        self.execution.threads.get(thread.index()).map_or(ProcessIndex::NONE, |row| row.process)
    }
}

/// The node in the name of a loom: the part before the first dot.
pub(crate) fn host_of(loom: &str) -> &str {
    loom.split('.').next().unwrap_or_default()
}
