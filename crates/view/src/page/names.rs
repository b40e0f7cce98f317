//! Words for places, from any thread: debug information is read on a thread of its own, because its
//! reader keeps state that cannot be shared.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use taskscope_execution::Execution;
use taskscope_session::{KeptModules, Places};

type Question = Box<dyn FnOnce(&Places) + Send>;

/// Requests the words of places.
pub struct Names {
    questions: Sender<Question>,
}

impl Names {
    /// The names of an execution, with files that were kept of modules. The thread ends when this is dropped.
    pub fn of(execution: Arc<Execution>, kept: KeptModules) -> Names {
        let (questions, incoming) = channel::<Question>();
        let answer = move || {
            let places = Places::of(&execution).with_kept(kept);
            drop(execution);
            for question in incoming {
                question(&places);
            }
        };
        // Without a thread there are no names, as after a panic in a question.
        let _ = std::thread::Builder::new().spawn(answer);
        Names { questions }
    }

    /// The answer to a question about places.
    pub fn ask<T: Send + Default + 'static>(
        &self,
        question: impl FnOnce(&Places) -> T + Send + 'static,
    ) -> T {
        let (answer, incoming) = channel();
        // Both fail only after a question panicked and ended the thread. Then the viewer continues without
        // names.
        let asked = self.questions.send(Box::new(move |places| drop(answer.send(question(places)))));
        asked.ok().and_then(|()| incoming.recv().ok()).unwrap_or_default()
    }
}
