//! A line of text for every event, as it happens.

use taskscope_context::{Behaviour, Shown};

use super::{LiveEvent, Names, Sink};
use std::io::Write;
use taskscope_context::Message;

/// Writes each thread's items, with all states and bursts: seconds since the first line, thread, text.
pub struct LiveText {
    out: Box<dyn Write + Send>,
    behaviour: Behaviour,
    since: Option<u64>,
}

impl LiveText {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> LiveText {
        LiveText { out, behaviour: Behaviour::Stacked, since: None }
    }

    /// Shows another behaviour.
    pub fn with_behaviour(self, behaviour: Behaviour) -> LiveText {
        LiveText { behaviour, ..self }
    }
}

impl Sink for LiveText {
    fn behaviour(&self) -> Behaviour {
        self.behaviour
    }

    fn event(&mut self, event: &LiveEvent<'_>) {
        let since = event.at - *self.since.get_or_insert(event.at);
        let (seconds, nanos) = (since / 1_000_000_000, since % 1_000_000_000);
        let words = words(&event.shown, &event.names);
        // Without a reader, the error cannot be reported.
        let _ = writeln!(self.out, "{seconds:>6}.{nanos:09} {:>8}  {words}", event.thread);
    }

    fn finish(&mut self) {
        let _ = self.out.flush();
    }
}

fn words(shown: &Shown<'_>, names: &Names) -> String {
    let pair = |key: u32, value: u64| format!("{}={}", names.key(key), names.value(key, value));
    let message = |m: &Message| {
        let content = if m.key == 0 { String::new() } else { format!(" {}", pair(m.key, m.value)) };
        format!("{} {}{content}", names.domain(m.domain), m.id)
    };
    match shown {
        Shown::StateStart(state) => format!("state {} {{", names.state(*state)),
        Shown::StateEnd(state) => format!("}} state {}", names.state(*state)),
        Shown::SubstateStart(state) => format!("sub-state {} {{", names.state(*state)),
        Shown::SubstateEnd(state) => format!("}} sub-state {}", names.state(*state)),
        Shown::BurstStart { key, value } => format!("burst {} {{", pair(*key, *value)),
        Shown::BurstEnd { key, value } => format!("}} burst {}", pair(*key, *value)),
        Shown::Point { key, value } => pair(*key, *value),
        Shown::Composite(pairs) => {
            pairs.iter().map(|(key, value)| pair(key, value)).collect::<Vec<_>>().join(", ")
        }
        Shown::Send(m) => format!("-> {}", message(m)),
        Shown::Receive(m) => format!("<- {}", message(m)),
        Shown::Created { task, kind, .. } => format!("new task {task}: {}", names.task_kind(*kind)),
        Shown::Ready { task } => format!("task {task} can run"),
        Shown::Resume { task, .. } => format!("resumes task {task}"),
        Shown::Suspend { task, last: false, .. } => format!("suspends task {task}"),
        Shown::Suspend { task, last: true, .. } => format!("task {task} has ended"),
    }
}
