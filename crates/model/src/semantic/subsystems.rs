//! State of a thread in a subsystem of the OpenMP runtime.

use super::Interpreter;
use super::sections::{self, Subsystem};
use super::state::frames::Opener;
use super::state::thread_state::ThreadState;
use taskscope_execution::{
    ObjectIndex, Observer, OpenTrack, Place, RegionIndex, Section, State, ThreadIndex,
};

impl ThreadState {
    /// Opens the section of a part of the runtime that concerns this thread alone.
    #[inline(never)]
    pub fn open_subsystem(&mut self, at: u64, subsystem: Subsystem, track: &mut OpenTrack<'_>) {
        let around = self.now();
        let section = match subsystem.state() {
            None => around,
            // The chunk of a construct of known type.
            Some(State::Worksharing) if around.state == State::Worksharing => {
                Section { object: ObjectIndex::NONE, ..around }
            }
            Some(inner) => self.section_of(subsystem, inner, around),
        };
        self.open(at, Opener::Subsystem(subsystem), section, track);
    }

    /// The section of a subsystem in this state: place and object are those of its wait, if recorded.
    fn section_of(&self, subsystem: Subsystem, inner: State, around: Section) -> Section {
        let section = Section { state: inner, place: Place::UNKNOWN, object: ObjectIndex::NONE, ..around };
        match subsystem.wait_kind().and_then(|kind| self.sticky(kind)) {
            Some(sticky) => Section {
                state: sections::mutex_state(sticky.kind).unwrap_or(inner),
                place: sticky.place,
                object: sticky.object,
                ..section
            },
            None => section,
        }
    }
}

impl Interpreter {
    /// Opens the section of a part of the runtime; its place and object are those of the wait, region or construct
    /// that it belongs to.
    pub(super) fn open_subsystem<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        subsystem: Subsystem,
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        let around = match (subsystem, state.member_of.last()) {
            (Subsystem::BarrierJoin, Some(region)) => Section { region: *region, ..state.now() },
            _ => state.now(),
        };
        let inner = subsystem.state().unwrap_or(around.state);
        let is_known = subsystem.wait_kind().is_some_and(|kind| state.sticky(kind).is_some());
        let mut section = state.section_of(subsystem, inner, around);
        match subsystem {
            Subsystem::UserMicrotask => return self.enter_implicit_task(thread, at, section, out),
            Subsystem::ForkCall => {
                let region = std::mem::replace(&mut state.forking, RegionIndex::NONE);
                section.place = self.region_place(region);
            }
            _ if self.region_is_over(section.region) => {
                let place = self.region_place(section.region);
                section = Section { place, ..Section::of(State::Idle) };
            }
            Subsystem::BarrierJoin if !is_known => {
                section.place = self.region_place(section.region);
            }
            _ => {}
        }
        self.open(thread, at, Opener::Subsystem(subsystem), section, out);
    }
}
