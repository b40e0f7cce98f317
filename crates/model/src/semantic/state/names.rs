//! Numbers of sites, types and objects.

use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{Definition, ObjectIndex, Observer, ProcessIndex, SiteIndex, State, TypeIndex};

/// OMPT's `ompt_work_taskloop`: the encountering thread creates the loop's tasks.
const WORK_TASKLOOP: u32 = 7;

/// Numbers of processes to numbers of the trace, given in the order of first mention.
#[derive(Default)]
pub struct Names {
    pub sites: FxHashMap<(ProcessIndex, u32), SiteIndex>,
    pub types: FxHashMap<(ProcessIndex, u32), TypeIndex>,
    pub objects: FxHashMap<(ProcessIndex, u64, u32), ObjectIndex>,
    pub work_kinds: Vec<u32>,
    /// The types of Nanos6's task-fors, one a process.
    pub task_fors: FxHashMap<ProcessIndex, TypeIndex>,
}

impl Names {
    /// The site with this number; 0 is none.
    pub fn site(&mut self, process: ProcessIndex, id: u32) -> SiteIndex {
        if id == 0 {
            return SiteIndex::NONE;
        }
        let next = SiteIndex::of(self.sites.len());
        *self.sites.entry((process, id)).or_insert(next)
    }

    /// The type with this number.
    pub fn ty<O: Observer>(&mut self, process: ProcessIndex, id: u32, out: &mut O) -> TypeIndex {
        let next = TypeIndex::of(self.work_kinds.len());
        let ty = *self.types.entry((process, id)).or_insert(next);
        if ty == next {
            self.work_kinds.push(0);
            out.define(Definition::Type { ty, process, label: "" });
        }
        ty
    }

    /// The type of a process's task-fors, which the trace names by no number.
    pub fn task_for<O: Observer>(&mut self, process: ProcessIndex, out: &mut O) -> TypeIndex {
        if let Some(ty) = self.task_fors.get(&process) {
            return *ty;
        }
        let ty = self.new_type();
        self.task_fors.insert(process, ty);
        out.define(Definition::Type { ty, process, label: "task for" });
        ty
    }

    /// Whether it is a type of this kind.
    pub fn is_task_for(&self, ty: TypeIndex) -> bool {
        self.task_fors.values().any(|known| *known == ty)
    }

    /// Processes that executed task-fors.
    pub fn processes_with_task_fors(&self) -> FxHashSet<ProcessIndex> {
        self.task_fors.keys().copied().collect()
    }

    /// A type that no number of ovni's models names.
    pub fn new_type(&mut self) -> TypeIndex {
        self.work_kinds.push(0);
        TypeIndex::of(self.work_kinds.len() - 1)
    }

    /// The object with this id and wait kind.
    pub fn object<O: Observer>(
        &mut self,
        process: ProcessIndex,
        id: u64,
        kind: u32,
        out: &mut O,
    ) -> ObjectIndex {
        let next = ObjectIndex::of(self.objects.len());
        let object = *self.objects.entry((process, id, kind)).or_insert(next);
        if object == next {
            out.define(Definition::Object { object, process, id, kind });
        }
        object
    }

    /// State of a thread in a worksharing construct of this type.
    pub fn work_state(&self, ty: TypeIndex) -> State {
        match self.work_kinds.get(ty.index()) {
            Some(&WORK_TASKLOOP) => State::TaskCreation,
            _ => State::Worksharing,
        }
    }
}
