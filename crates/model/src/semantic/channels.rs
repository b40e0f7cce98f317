//! Enters and leaves subsystems of the runtimes with events that push and pop them.

use super::Interpreter;
use super::channel_steps::Step;
use super::state::frames::Opener;
use super::state::thread_state::ThreadState;
use taskscope_event::models::mpi;
use taskscope_execution::{ObjectIndex, Observer, OpenTrack, Place, Section, State, TaskIndex, ThreadIndex};

impl Interpreter {
    /// An event that enters or leaves a part of the runtime of this letter.
    #[inline(always)]
    pub(super) fn step<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        letter: u8,
        step: Step,
        out: &mut O,
    ) {
        let mut place = Place::UNKNOWN;
        if letter == mpi::LETTER
            && let Step::Enter { value, .. } = step
        {
            place = self.mpi_call_begins(thread, at, value, out);
        }
        if letter == mpi::LETTER
            && let Step::Leave { value } = step
        {
            return self.call_ends(thread, at, Opener::Part(letter, value), out);
        }
        self.threads[thread.index()].step(at, letter, step, place, &mut out.open_track(thread));
    }
}

impl ThreadState {
    /// Takes the step for its thread alone; a new section is at `place`.
    #[inline(always)]
    pub fn step(&mut self, at: u64, letter: u8, step: Step, place: Place, track: &mut OpenTrack<'_>) {
        match step {
            Step::Enter { value, state } => {
                let around = self.now();
                let task = if state == State::Task { TaskIndex::NONE } else { around.task };
                let section = Section { state, place, object: ObjectIndex::NONE, task, ..around };
                self.open(at, Opener::Part(letter, value), section, track);
            }
            Step::Leave { value } => {
                self.close(at, Opener::Part(letter, value), track);
            }
            Step::Rest(idle) => {
                self.idle = idle;
                track.becomes(at, self.now());
            }
        }
    }
}
