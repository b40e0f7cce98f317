//! The stack of sections that a thread is in.

use super::Interpreter;
use super::frames::{Closed, Frame, Opener};
use taskscope_execution::{Anomaly, Change, Observer, Section, ThreadIndex};

impl Interpreter {
    /// Opens a section; what it does not say itself (task, region) it has from the one around it.
    ///
    /// It is compiled into its callers, as all on the way of a section is: where one passes through memory, reading
    /// what was stored piece by piece waits longer than all the rest takes.
    #[inline(always)]
    pub(super) fn open<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        section: Section,
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        state.frames.push(Frame { opener, since: at, section });
        let now = state.now();
        out.change(thread, at, Change::Enter(now));
    }

    #[inline(always)]
    pub(super) fn close<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        out: &mut O,
    ) -> bool {
        let state = &mut self.threads[thread.index()];
        let closed = state.frames.pop(opener);
        match closed {
            Closed::Nothing => {
                out.anomaly(thread, at, Anomaly::EndWithoutBegin);
                return false;
            }
            Closed::WithInner => out.anomaly(thread, at, Anomaly::EndsNotInnermost),
            Closed::Innermost => {}
        }
        out.change(thread, at, Change::Leave(state.now()));
        true
    }

    /// Changes the innermost section, which must have been opened by `opener`.
    pub(super) fn change_top<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        out: &mut O,
        change: impl FnOnce(&mut Section),
    ) {
        if let Some(top) = self.threads[thread.index()].frames.top_mut() {
            let before = top.section;
            change(&mut top.section);
            if top.section != before {
                out.change(thread, at, Change::Become(top.section));
            }
        }
    }

    /// The thread takes part in a team or runs a task: it is a worker.
    pub(super) fn works<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        let state = &mut self.threads[thread.index()];
        if !state.works && state.on_cpu.loom.is_none() {
            state.works = true;
            out.change(thread, at, Change::ThreadWorks);
        }
    }
}
