//! The stack of sections that a thread is in.

use super::Interpreter;
use super::state::frames::{Closed, Frame, Opener};
use super::state::thread_state::ThreadState;
use taskscope_execution::{Anomaly, Change, Observer, OpenTrack, Section, ThreadIndex, ThreadKind};

impl Interpreter {
    /// Opens a section; task and region default to those of the enclosing one.
    ///
    /// Inlined into its callers, as is the whole path of a section: if a section passes through memory, the
    /// partial loads after it wait for the stores longer than everything else takes.
    #[inline(always)]
    pub(super) fn open<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        section: Section,
        out: &mut O,
    ) {
        self.threads[thread.index()].open(at, opener, section, &mut out.open_track(thread));
    }

    #[inline(always)]
    pub(super) fn close<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        out: &mut O,
    ) -> bool {
        self.threads[thread.index()].close(at, opener, &mut out.open_track(thread))
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
                out.change(thread, at, Change::Becomes(top.section));
            }
        }
    }

    /// The thread takes part in a team or runs a task: it is a worker, unless the runtime keeps it for itself.
    pub(super) fn works<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        let state = &mut self.threads[thread.index()];
        if !state.works && state.on_cpu.loom.is_none() && state.kind != ThreadKind::Helper {
            state.works = true;
            out.change(thread, at, Change::ThreadWorks);
        }
    }
}

impl ThreadState {
    /// As [`Interpreter::open`].
    #[inline(always)]
    pub fn open(&mut self, at: u64, opener: Opener, section: Section, track: &mut OpenTrack<'_>) {
        self.frames.push(Frame { opener, since: at, section });
        track.becomes(at, self.shown(section));
    }

    /// Closes the innermost section of this opener, with those in it. Returns whether there is one.
    #[inline(always)]
    pub fn close(&mut self, at: u64, opener: Opener, track: &mut OpenTrack<'_>) -> bool {
        match self.frames.pop(opener) {
            Closed::Nothing => {
                track.anomaly(at, Anomaly::EndWithoutBegin);
                return false;
            }
            Closed::WithInner => track.anomaly(at, Anomaly::EndsNotInnermost),
            Closed::Innermost => {}
        }
        track.becomes(at, self.now());
        true
    }
}
