//! Explicit tasks: created, started, suspended, ended.

use super::kinds::TaskStep;
use super::state::frames::Opener;
use super::state::task_numbers::LastTask;
use super::{Interpreter, Short};
use crate::payload::{u32_at, u64_at};
use rustc_hash::FxHashMap;
use taskscope_event::models::{nanos6, omp};
use taskscope_execution::{
    Anomaly, Change, MessageChange, NO_NUMBER, ObjectIndex, Observer, Place, ProcessIndex, Section, State,
    TaskIndex, ThreadIndex, TypeIndex,
};

/// The opener of a task-for's body.
const TASK_FOR: Opener = Opener::Part(nanos6::LETTER, 6);

impl Interpreter {
    /// An event that names a task.
    pub(super) fn task_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        step: TaskStep,
        payload: &[u8],
        out: &mut O,
    ) {
        let done = match step {
            TaskStep::Created => self.task_created(thread, at, payload, out),
            TaskStep::Starts => self.task_starts(thread, at, payload, out),
            TaskStep::Ends => self.task_ends(thread, at, payload, out),
            TaskStep::Pauses => self.task_pauses(thread, at, payload, out),
            TaskStep::Resumes => self.task_resumes(thread, at, payload, out),
            TaskStep::ForStarts => {
                self.task_for_starts(thread, at, out);
                Ok(())
            }
            TaskStep::ForEnds => {
                self.task_for_ends(thread, at, out);
                Ok(())
            }
        };
        if done.is_err() {
            out.anomaly(thread, at, Anomaly::ShortPayload);
        }
    }

    /// The task with the id at the start of the payload, which should have been created.
    fn known_task<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<TaskIndex, Short> {
        let id = u32_at(payload, 0).ok_or(Short)?;
        let state = &mut self.threads[thread.index()];
        let (process, reuses) = (state.process, self.tasks.reuses);
        if let Some(last) = state.last_task
            && (last.process, last.id, last.reuses) == (process, id, reuses)
        {
            return Ok(last.task);
        }
        let (task, new) = self.tasks.number(process, id, &mut state.last_block);
        state.last_task = Some(LastTask { process, id, task, reuses });
        if new {
            self.tasks.early.insert(task, at);
            out.anomaly(thread, at, Anomaly::NotCreated);
        }
        Ok(task)
    }

    fn task_created<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let id = u32_at(payload, 0).ok_or(Short)?;
        let ty = self.type_at(thread, payload, 4, out)?;
        let state = &mut self.threads[thread.index()];
        let (parent, region) = (state.frames.task(), state.frames.region());
        let (task, new) = self.tasks.number(state.process, id, &mut state.last_block);
        if !new {
            match self.tasks.early.remove(&task) {
                Some(used) if used < at => out.anomaly(thread, at, Anomaly::Inverted { ns: at - used }),
                // Used at the very instant of its creation.
                Some(_) => {}
                // An id that is used again is another task.
                None => return self.task_recreated(thread, at, id, ty, out),
            }
        }
        self.tasks.types[task.index()] = ty;
        let state = &mut self.threads[thread.index()];
        let (process, reuses) = (state.process, self.tasks.reuses);
        state.last_task = Some(LastTask { process, id, task, reuses });
        out.change(thread, at, Change::TaskCreated { task, ty, parent, region });
        self.note_creation(thread, at, task, ty, out);
        Ok(())
    }

    fn task_recreated<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        id: u32,
        ty: TypeIndex,
        out: &mut O,
    ) -> Result<(), Short> {
        let state = &mut self.threads[thread.index()];
        let (parent, region) = (state.frames.task(), state.frames.region());
        let task = self.tasks.fresh(ty, id.into());
        *self.tasks.slot(state.process, id, &mut state.last_block) = task;
        self.tasks.reuses = self.tasks.reuses.wrapping_add(1);
        out.change(thread, at, Change::TaskCreated { task, ty, parent, region });
        self.note_creation(thread, at, task, ty, out);
        Ok(())
    }

    fn task_starts<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let task = self.known_task(thread, at, payload, out)?;
        let ty = self.tasks.ty(task);
        let around = self.threads[thread.index()].now();
        let place = if ty.is_some() { Place::task_type(ty) } else { Place::UNKNOWN };
        let section =
            Section { state: State::Task, place, task, object: ObjectIndex::NONE, region: around.region };
        out.change(thread, at, Change::TaskStarts { task });
        self.works(thread, at, out);
        self.open(thread, at, Opener::Task(task), section, out);
        Ok(())
    }

    /// Executes chunks of a task-for on a thread. The event names neither the task nor its type, and the task
    /// has no other events than that of its creation. So each such body is a task of its own, of the type of
    /// all task-fors. Directly in the body of a known task it is that body.
    fn task_for_starts<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        let state = &self.threads[thread.index()];
        let (process, around) = (state.process, state.now());
        let in_body = matches!(state.frames.top(), Some(frame) if matches!(frame.opener, Opener::Task(_)));
        let section = if in_body {
            around
        } else {
            let ty = self.names.task_for(process, out);
            let task = self.tasks.fresh(ty, NO_NUMBER);
            out.change(thread, at, Change::TaskFound { task, ty, region: around.region });
            out.change(thread, at, Change::TaskStarts { task });
            self.works(thread, at, out);
            Section {
                task,
                place: Place::task_type(ty),
                object: ObjectIndex::NONE,
                state: State::Task,
                ..around
            }
        };
        self.open(thread, at, TASK_FOR, section, out);
    }

    fn task_for_ends<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        let state = &self.threads[thread.index()];
        let task = state.frames.find(TASK_FOR).map_or(TaskIndex::NONE, |frame| frame.section.task);
        let is_own = task.is_some() && self.names.is_task_for(self.tasks.ty(task));
        if self.close(thread, at, TASK_FOR, out) && is_own {
            out.change(thread, at, Change::TaskEnds { task });
        }
    }

    /// The trace does not record the task-fors of a process: for those that never start, execution is
    /// unknown.
    pub(super) fn leave_task_fors<O: Observer>(&mut self, out: &mut O) {
        let processes = self.names.processes_with_task_fors();
        let ends: FxHashMap<ProcessIndex, (ThreadIndex, u64)> = (self.threads.iter().enumerate())
            .filter(|(_, state)| processes.contains(&state.process))
            .map(|(index, state)| (state.process, (ThreadIndex::of(index), state.ended.unwrap_or(0))))
            .collect();
        for (&(process, _), &block) in &self.tasks.numbers {
            let Some((thread, at)) = ends.get(&process) else { continue };
            for task in self.tasks.blocks[block as usize].iter().filter(|task| task.is_some()) {
                out.change(*thread, *at, Change::TaskUnseen { task: *task });
            }
        }
    }

    fn task_ends<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let task = self.known_task(thread, at, payload, out)?;
        if self.close(thread, at, Opener::Task(task), out) {
            out.change(thread, at, Change::TaskEnds { task });
        }
        Ok(())
    }

    fn task_pauses<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let task = self.known_task(thread, at, payload, out)?;
        out.change(thread, at, Change::TaskSuspends { task });
        // In a call of the runtime the thread continues with that.
        let around = self.threads[thread.index()].frames.top();
        let call = around.filter(|frame| matches!(frame.opener, Opener::Part(..)));
        let section = call.map_or(Section::of(State::Paused), |frame| frame.section);
        self.open(thread, at, Opener::TaskPaused(task), section, out);
        Ok(())
    }

    fn task_resumes<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let task = self.known_task(thread, at, payload, out)?;
        if self.close(thread, at, Opener::TaskPaused(task), out) {
            out.change(thread, at, Change::TaskStarts { task });
        }
        Ok(())
    }

    /// Suspensions and cancellations qualify the end that the standard model reports for them.
    pub(super) fn task_detail<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: taskscope_event::Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let id = u32_at(payload, 0).ok_or(Short)?;
        let known = self.tasks.with_id(self.threads[thread.index()].process, id);
        let Some(task) = known else {
            // A `taskwait depend` has dependences too, under an id that no task has.
            if code == omp::TASK_DEPENDENCES {
                for (address, kind) in dependences_of(payload) {
                    out.change(thread, at, Change::WaitDepends { address, kind });
                }
            }
            return Ok(());
        };
        match code {
            omp::TASK_SUSPENDED => out.change(thread, at, Change::TaskSuspends { task }),
            omp::TASK_CANCELLED => out.change(thread, at, Change::TaskCancelled { task }),
            omp::TASK_DEPENDENCES => {
                for (address, kind) in dependences_of(payload) {
                    out.change(thread, at, Change::TaskDepends { task, address, kind });
                }
            }
            omp::TASK_FULFILLED => {
                self.emit_message(thread, at, MessageChange::Fulfils { task }, out);
            }
            omp::TASK_DETACHED => out.change(thread, at, Change::TaskDetaches { task }),
            _ => {}
        }
        Ok(())
    }
}

/// Addresses and kinds of the dependences that an event declares.
fn dependences_of(payload: &[u8]) -> impl Iterator<Item = (u64, u8)> {
    let rows = payload.get(4..).unwrap_or_default().chunks_exact(omp::DEPENDENCE_BYTES);
    rows.filter_map(|row| Some((u64_at(row, 0)?, row[8])))
}
