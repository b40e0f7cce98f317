//! The stack of sections that a thread is in.

use super::Interpreter;
use super::frames::{Closed, Frame, Opener};
use super::thread_state::ThreadState;
use taskscope_execution::{Anomaly, Change, Observer, Section, State, ThreadIndex};

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
        self.threads[thread.index()].open(thread, at, opener, section, out);
    }

    #[inline(always)]
    pub(super) fn close<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        out: &mut O,
    ) -> bool {
        self.threads[thread.index()].close(thread, at, opener, out)
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

impl ThreadState {
    /// As [`Interpreter::open`].
    #[inline(always)]
    pub fn open<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        section: Section,
        out: &mut O,
    ) {
        self.frames.push(Frame { opener, since: at, section });
        let now = if self.rests { Section::of(State::Idle) } else { section };
        out.change(thread, at, Change::Enter(now));
    }

    /// Closes the innermost section of this opener, with those in it. Says whether there is one.
    #[inline(always)]
    pub fn close<O: Observer>(&mut self, thread: ThreadIndex, at: u64, opener: Opener, out: &mut O) -> bool {
        match self.frames.pop(opener) {
            Closed::Nothing => {
                out.anomaly(thread, at, Anomaly::EndWithoutBegin);
                return false;
            }
            Closed::WithInner => out.anomaly(thread, at, Anomaly::EndsNotInnermost),
            Closed::Innermost => {}
        }
        out.change(thread, at, Change::Leave(self.now()));
        true
    }
}
