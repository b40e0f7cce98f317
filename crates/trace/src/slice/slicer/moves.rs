//! Moves of threads to other CPUs that another thread recorded.

use super::Slicer;
use crate::Event;
use crate::slice::bytes::{first_u32, push};

impl Slicer<'_> {
    /// Writes the deferred moves of threads of a process, if this thread of it can record them now.
    pub(super) fn write_moves(&mut self, stream: usize, clock_ns: i64, bytes: &mut Vec<u8>) {
        if self.can_record(stream) {
            let mut moves = std::mem::take(&mut self.moves);
            let is_of_process = |moved: usize| self.process_of(moved) == self.process_of(stream);
            for (_, event) in moves.extract_if(.., |(moved, _)| is_of_process(*moved)) {
                push(bytes, clock_ns, event.code, event.is_jumbo, event.payload);
            }
            self.moves = moves;
        }
    }

    /// The recorder of a move: the thread itself, or, if it is preempted, another one of its process.
    pub(super) fn recorder_of(&self, moved: usize) -> Option<usize> {
        let others =
            (0..self.selected.len()).filter(|other| self.process_of(*other) == self.process_of(moved));
        std::iter::once(moved).chain(others).find(|stream| self.can_record(*stream))
    }

    pub(super) fn can_record(&self, stream: usize) -> bool {
        self.lives(stream) && !self.is_off_cpu(stream)
    }

    /// The thread that a remote move concerns.
    pub(super) fn moved(&self, from: usize, event: &Event<'_>) -> Option<usize> {
        let tid = i64::from(event.payload.get(4..8).map_or(0, first_u32) as i32);
        let streams = self.trace.streams();
        let candidates = self.streams_of_tid.get(&tid)?;
        let same_process = candidates.iter().find(|other| {
            streams[**other].pid() == streams[from].pid() && streams[**other].loom() == streams[from].loom()
        });
        let same_loom = || candidates.iter().find(|other| streams[**other].loom() == streams[from].loom());
        same_process.or_else(same_loom).copied()
    }
}
