//! End-of-trace checks: sections that must have ended, and tables that must be empty.

use super::current::Current;
use super::{Machine, ThreadState};
use crate::violation::ViolationCode;
use rustc_hash::FxHashMap;
use taskscope_event::models::{kernel, model_of, mpi, ovni};
use taskscope_execution::view::ViewObserver;

impl<O: ViewObserver> Machine<'_, O> {
    /// Checks the state after the last event. Views need no further step.
    pub fn finish(&mut self) {
        self.settle_contested();
        self.current = Current::default();
        for thread in 0..self.threads.len() as u32 {
            self.finish_thread(thread);
        }
        self.check_label_values();
        self.finish_instrumentation();
    }

    fn finish_thread(&mut self, thread: u32) {
        let tid = self.tid(thread);
        let place = Current { stream: self.system.threads[thread as usize].stream, ..Current::default() };
        let state = self.threads[thread as usize].state;
        if state != ThreadState::Dead {
            let text = format!("thread {tid} is not dead at the end, but {state:?}");
            self.report_at(ViolationCode::ThreadNotDead, text, place);
        }
        for slot in 0..self.slots.len() {
            let depth = self.threads[thread as usize].channels[slot].depth();
            let spec = &self.slots[slot];
            if depth == 0 || spec.is_mark || spec.model == ovni::LETTER || spec.model == kernel::LETTER {
                continue;
            }
            let model = model_of(spec.model).map_or("?", |model| model.name);
            let (code, what) = match spec.model {
                _ if !spec.is_linted => (ViolationCode::OtherStackNotEmpty, "values"),
                mpi::LETTER => (ViolationCode::StackNotEmpty, "functions"),
                _ => (ViolationCode::StackNotEmpty, "subsystems"),
            };
            let text = format!("thread {tid} ended with {depth} stacked {model} {what} ({})", spec.title);
            self.report_at(code, text, place);
        }
    }

    /// Views cannot distinguish different labels with the same value.
    fn check_label_values(&mut self) {
        for tables in [&self.nanos6_tasks, &self.nosv_tasks, &self.openmp_tasks] {
            let mut label_of: FxHashMap<u32, &str> = FxHashMap::default();
            let mut collisions = Vec::new();
            for task_type in tables.iter().flat_map(|table| table.types()) {
                let known = *label_of.entry(task_type.value).or_insert(&task_type.label);
                if known != task_type.label {
                    collisions.push(format!(
                        "`{known}` and `{}` both have the value {}",
                        task_type.label, task_type.value
                    ));
                }
            }
            for text in collisions {
                self.violations.push(crate::Violation {
                    count: 1,
                    code: ViolationCode::LabelCollision,
                    stream: String::new(),
                    event: None,
                    offset: None,
                    time_ns: None,
                    text,
                });
            }
        }
    }
}
