//! Tasks of programs that instrument themselves.

use crate::semantic::Interpreter;
use crate::semantic::state::frames::Opener;
use crate::semantic::state::instrumented::Named;
use taskscope_context::Shown;
use taskscope_execution::{
    Change, ObjectIndex, Observer, Place, ProcessIndex, Section, State, TaskIndex, ThreadIndex, ThreadKind,
    TypeIndex,
};

impl Interpreter {
    /// The task that is on the thread.
    pub(super) fn running(
        &self,
        process: ProcessIndex,
        thread: ThreadIndex,
    ) -> Option<(TaskIndex, TypeIndex)> {
        let task = self.instrumented.contexts.task_on(thread.0);
        self.instrumented.tasks.get(&(process, task)).copied()
    }

    pub(super) fn task_step<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        shown: Shown<'_>,
        out: &mut O,
    ) {
        let process = self.threads[thread.index()].process;
        match shown {
            Shown::Created { task, kind, parent } => {
                let ty = self.named_type(process, Named::Kind(kind), out);
                let parent = self.instrumented.tasks.get(&(process, parent));
                let parent = parent.map_or(TaskIndex::NONE, |(parent, _)| *parent);
                let region = self.threads[thread.index()].frames.region();
                let index = self.tasks.fresh(ty, task);
                self.instrumented.tasks.insert((process, task), (index, ty));
                out.change(thread, at, Change::TaskCreated { task: index, ty, parent, region });
                out.change(thread, at, Change::TaskReady { task: index });
            }
            Shown::Ready { task } => {
                let (index, _) = self.instrumented_task(process, task);
                out.change(thread, at, Change::TaskReady { task: index });
            }
            Shown::Resume { task, .. } => {
                let (index, ty) = self.instrumented_task(process, task);
                let place = if ty.is_some() { Place::task_type(ty) } else { Place::UNKNOWN };
                let section =
                    Section { place, task: index, object: ObjectIndex::NONE, ..Section::of(State::Task) };
                self.takes_up_tasks(thread, at, out);
                out.change(thread, at, Change::TaskStarts { task: index });
                self.open(thread, at, Opener::Task(index), section, out);
            }
            Shown::Suspend { task, last, .. } => {
                let (index, _) = self.instrumented_task(process, task);
                let here = self.threads[thread.index()].frames.find_mut(Opener::Task(index)).is_some();
                if here {
                    self.close(thread, at, Opener::Task(index), out);
                }
                // The end of a task that is on no thread only changes the task.
                if here {
                    out.change(thread, at, Change::TaskEnds { task: index });
                }
                if last {
                    out.change(thread, at, Change::TaskIsOver { task: index });
                    self.instrumented.tasks.remove(&(process, task));
                } else {
                    out.change(thread, at, Change::TaskSuspends { task: index });
                }
            }
            _ => {}
        }
    }

    /// A thread that runs tasks is a worker, and is idle between them.
    fn takes_up_tasks<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        self.works(thread, at, out);
        let state = &mut self.threads[thread.index()];
        if state.kind == ThreadKind::Unknown {
            state.kind = ThreadKind::Worker;
            out.change(thread, at, Change::ThreadIs(ThreadKind::Worker));
        }
    }

    /// Returns the task with this number; creates one without a creation event.
    fn instrumented_task(&mut self, process: ProcessIndex, task: u64) -> (TaskIndex, TypeIndex) {
        let tasks = &mut self.tasks;
        *self
            .instrumented
            .tasks
            .entry((process, task))
            .or_insert_with(|| (tasks.fresh(TypeIndex::NONE, task), TypeIndex::NONE))
    }
}
