//! Chunks of worksharing constructs.

use super::state::frames::Opener;
use super::{Interpreter, Short};
use taskscope_execution::{Change, ObjectIndex, Observer, Place, Section, ThreadIndex};

impl Interpreter {
    pub(super) fn work_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let ty = self.type_at(thread, payload, 0, out)?;
        let around = self.threads[thread.index()].now();
        let state = self.names.work_state(ty);
        let section = Section { state, place: Place::task_type(ty), object: ObjectIndex::NONE, ..around };
        out.change(thread, at, Change::WorkBegins { ty, region: around.region });
        self.open(thread, at, Opener::Work(ty), section, out);
        Ok(())
    }

    pub(super) fn work_ends<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let ty = self.type_at(thread, payload, 0, out)?;
        if self.close(thread, at, Opener::Work(ty), out) {
            out.change(thread, at, Change::WorkEnds);
        }
        Ok(())
    }
}
