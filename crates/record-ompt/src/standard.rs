//! The standard events for opened and closed constructs.

use taskscope_event::models::{messages, openmp, ovni};

use crate::frames::{Open, Phase};
use crate::sections::{self, SectionCodes};
use crate::thread::Moment;

impl Moment<'_> {
    /// Writes the standard events that begin something.
    #[inline(always)]
    pub fn show(&mut self, open: Open) {
        match open {
            Open::Task { id } => self.recorder.begin(self.at, openmp::TASK_EXECUTE, id.to_le_bytes(), 4),
            Open::Section { codes, .. } => self.begin_section(codes),
            Open::Work { typeid, codes, .. } => {
                if let Some(codes) = codes {
                    self.begin_section(codes);
                }
                if typeid != 0 {
                    self.recorder.begin(self.at, openmp::WORKSHARE_EXECUTE, typeid.to_le_bytes(), 4);
                }
            }
            Open::Region { .. } => self.begin_section(sections::FORK),
            Open::Member { phase: Phase::Running, .. } => self.begin_section(sections::MICROTASK),
            Open::Member { phase: Phase::Joining { .. }, .. } => self.begin_section(sections::JOIN),
            Open::Call { function } => {
                self.recorder.own_begin(self.at, messages::CALL_BEGIN, function.to_le_bytes(), 4);
            }
            Open::Member { phase: Phase::Joined, .. }
            | Open::Taskgroup
            | Open::Masked
            | Open::Reduction
            | Open::Device(_) => {}
        }
    }

    /// Writes the standard events that end it.
    #[inline(always)]
    pub fn hide(&mut self, open: Open) {
        match open {
            Open::Task { id } => self.recorder.end(self.at, openmp::TASK_END, id.to_le_bytes()),
            Open::Section { codes, .. } => self.end_section(codes),
            Open::Work { typeid, codes, .. } => {
                if typeid != 0 {
                    self.recorder.end(self.at, openmp::WORKSHARE_END, typeid.to_le_bytes());
                }
                if let Some(codes) = codes {
                    self.end_section(codes);
                }
            }
            Open::Region { .. } => self.end_section(sections::FORK),
            Open::Member { phase: Phase::Running, .. } => self.end_section(sections::MICROTASK),
            Open::Member { phase: Phase::Joining { .. }, .. } => self.end_section(sections::JOIN),
            Open::Call { function } => {
                self.recorder.own_end(self.at, messages::CALL_END, function.to_le_bytes());
            }
            Open::Member { phase: Phase::Joined, .. }
            | Open::Taskgroup
            | Open::Masked
            | Open::Reduction
            | Open::Device(_) => {}
        }
    }

    #[inline(always)]
    fn begin_section(&mut self, codes: SectionCodes) {
        self.recorder.begin(self.at, codes.begin(), [], 0);
    }

    #[inline(always)]
    fn end_section(&mut self, codes: SectionCodes) {
        self.recorder.end(self.at, codes.end(), []);
    }

    /// Writes the events that open a thread's stream.
    pub fn begin_thread(&mut self) {
        let mut payload = [0; 16];
        // The virtual CPU: OpenMP threads are not bound to one CPU each. No creator is known.
        payload[..4].copy_from_slice(&(-1i32).to_le_bytes());
        payload[4..8].copy_from_slice(&(-1i32).to_le_bytes());
        let began = self.recorder.forked_at().unwrap_or(self.at).min(self.at);
        self.recorder.begin(began, ovni::THREAD_EXECUTES, payload, 0);
    }

    /// Ends everything that is open, and the thread.
    pub fn end_thread(&mut self) {
        self.close_all();
        self.recorder.end(self.at, ovni::THREAD_ENDS, []);
    }
}
