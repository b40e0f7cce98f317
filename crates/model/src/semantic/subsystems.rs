//! What a thread is in while it is in a part of the OpenMP runtime.

use super::Interpreter;
use super::frames::Opener;
use super::sections::{self, Subsystem};
use taskscope_execution::{ObjectIndex, Observer, Place, RegionIndex, Section, State, ThreadIndex};

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
        let around = state.now();
        let Some(inner) = subsystem.state() else {
            return self.open(thread, at, Opener::Subsystem(subsystem), around, out);
        };
        let mut section =
            Section { state: inner, place: Place::UNKNOWN, object: ObjectIndex::NONE, ..around };
        if subsystem == Subsystem::BarrierJoin
            && let Some(region) = state.member_of.last()
        {
            section.region = *region;
        }
        if let Some(kind) = subsystem.wait_kind() {
            if let Some(sticky) = state.sticky(kind) {
                section.place = sticky.place;
                section.object = sticky.object;
                section.state = sections::mutex_state(sticky.kind).unwrap_or(inner);
            } else if subsystem == Subsystem::BarrierJoin {
                section.place = self.region_place(section.region);
            }
        }
        match subsystem {
            Subsystem::UserMicrotask => return self.enter_implicit_task(thread, at, section, out),
            Subsystem::ForkCall => {
                let state = &mut self.threads[thread.index()];
                let region = std::mem::replace(&mut state.forking, RegionIndex::NONE);
                section.place = self.region_place(region);
            }
            Subsystem::BarrierJoin | Subsystem::BarrierPlain if self.region_is_over(section.region) => {
                let place = self.region_place(section.region);
                section = Section { place, ..Section::of(State::Idle) };
            }
            // The chunk of a construct whose type is already known.
            _ if inner == State::Worksharing && around.state == State::Worksharing => {
                section.place = around.place;
            }
            _ => {}
        }
        self.open(thread, at, Opener::Subsystem(subsystem), section, out);
    }
}
