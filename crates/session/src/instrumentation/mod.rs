//! Shown states of instrumented programs, with names: per thread or per task, in a chosen behaviour.
//!
//! [`play`] is the only way from a trace to its shown states; sequences (`dump --shown`), times (`report`), rows of the
//! viewer and Paraver traces are made of its items.

mod drawing;
mod drawn;
mod marks;
mod names;
mod times;
mod views;

pub use drawn::{Drawn, DrawnName, DrawnRow, DrawnView};
pub use marks::{Mark, MarkKind, MarkedThread, Marks};
pub use names::{Named, Names, Space};
pub use taskscope_context::{Behaviour, Item, Lane, Showing, Shown, ShownPart, Turn};
pub use times::{Kind, LaneTimes, Row, Times, TimesOptions, Whose};
pub use views::Views;

use std::ops::ControlFlow;
use taskscope_context::{Contexts, Out, Problem, Raw};
use taskscope_trace::{MergedEvent, Trace};

/// The subject of sequences.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Threads: a task switch ends and begins sections.
    Thread,
    /// Tasks, in their own time, as if they had never moved.
    Task,
}

impl By {
    /// Both subjects.
    pub const ALL: [By; 2] = [By::Thread, By::Task];

    /// The name on the command line and in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            By::Thread => "thread",
            By::Task => "task",
        }
    }

    /// Whether the lane is one of these.
    pub const fn wants(self, lane: Lane) -> bool {
        matches!((self, lane), (By::Thread, Lane::Thread(_)) | (By::Task, Lane::Task { .. }))
    }
}

/// The receiver, and whether it wants no more.
struct To<F>(F, ControlFlow<()>);

impl<F: FnMut(Item<'_>) -> ControlFlow<()>> Out for To<F> {
    fn show(&mut self, item: Item<'_>) {
        if self.1.is_continue() {
            self.1 = (self.0)(item);
        }
    }

    fn problem(&mut self, _thread: u32, _at: u64, _problem: Problem) {}
}

/// Derives the shown states of all threads and tasks, in time order, from the events that are `played`. Threads are
/// numbered as the trace's streams. `taskscope check` reports inconsistencies. It ends early if `show` breaks.
pub fn play<'t>(
    trace: &'t Trace,
    names: &Names,
    behaviour: Behaviour,
    mut played: impl FnMut(&MergedEvent<'t>) -> bool,
    show: impl FnMut(Item<'_>) -> ControlFlow<()>,
) {
    let mut contexts = Contexts::new(behaviour);
    for process in &names.processes {
        contexts.add_thread(*process);
    }
    let mut out = To(show, ControlFlow::Continue(()));
    for merged in trace.merge() {
        if out.1.is_break() {
            return;
        }
        if !played(&merged) {
            continue;
        }
        let event = merged.event;
        let at = event.clock_ns.max(0) as u64;
        if event.code == taskscope_event::models::ovni::THREAD_ENDS {
            contexts.thread_ends(merged.stream as u32, at, &mut out);
        } else if let Ok(Some(raw)) = Raw::decode(event.code, event.payload) {
            contexts.event(merged.stream as u32, at, &raw, &mut out);
        }
    }
}
