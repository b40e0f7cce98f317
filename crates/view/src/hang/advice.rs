//! Remedies for one hang.

use super::{HangWords, enumerated, owed, tag_words};
use taskscope_analysis::{Needed, OpenWait};
use taskscope_execution::messages::{Owed, Unreceived};
use taskscope_execution::{ProcessIndex, State, ThreadIndex};

/// Maximum number of sentences about one hang.
const MAX_SENTENCES: usize = 6;

impl HangWords<'_> {
    /// Sentences on how to fix the program, by the waits of this hang; empty if only general advice is known.
    pub fn advice(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let cycle_advice = self.cycle_advice();
        // Waits beside a circle follow from it.
        let causes = if self.hang.circle == 0 { self.hang.waits.len() } else { self.hang.circle };
        for wait in self.hang.waits.iter().take(causes) {
            let own = self.wait_advice(wait, cycle_advice.is_some());
            all.extend(own.into_iter().filter(|text| !all.contains(text)).collect::<Vec<_>>());
        }
        // Messages with another tag explain why there is a circle.
        all.splice(0..0, cycle_advice);
        all.truncate(MAX_SENTENCES);
        all
    }

    /// Advice for waits that need each other.
    fn cycle_advice(&self) -> Option<String> {
        let circle = &self.hang.waits[..self.hang.circle.min(self.hang.waits.len())];
        let next = |row: usize| circle[(row + 1) % circle.len()].thread;
        let needs: Vec<&Needed> = (circle.iter().enumerate())
            .filter_map(|(row, wait)| wait.needs.iter().find(|needed| self.concerns(needed, next(row))))
            .collect();
        if circle.is_empty() || needs.len() < circle.len() {
            return None;
        }
        if let [wait] = circle {
            return Some(self.own_advice(wait, needs[0]));
        }
        if needs.iter().all(|needed| matches!(needed, Needed::Holder { .. })) {
            // The lock that a wait is for is held by the next thread, which asks for another one.
            let orders: Vec<String> = (0..circle.len())
                .map(|row| {
                    let after = (row + 1) % circle.len();
                    let taken = match needs[row] {
                        Needed::Holder { site, .. } => self.taken_at(&circle[row], *site),
                        _ => String::new(),
                    };
                    let who = self.thread(circle[after].thread);
                    format!(
                        "{who} takes {} and then {}",
                        place_or(&taken),
                        place_or(&self.wait_place(&circle[after]))
                    )
                })
                .collect();
            return Some(format!(
                "Take these locks in one order in all threads, or never two at a time: {}.",
                enumerated(&orders, ", ")
            ));
        }
        if needs.iter().all(|needed| matches!(needed, Needed::Member(_))) {
            let places: Vec<String> = circle.iter().map(|wait| self.wait_place(wait)).collect();
            return Some(format!(
                "The threads of the team wait in different barriers ({}): all of them must reach the same ones, in the same \
                 order.",
                enumerated(&places, " and ")
            ));
        }
        let ranks = || circle.iter().map(|wait| self.process_of(wait.thread)).collect::<Vec<_>>();
        let owes: Vec<Owed> = needs.iter().filter_map(|needed| owed(needed)).collect();
        if owes.len() == needs.len() && owes.iter().all(|owes| matches!(owes, Owed::Message { .. })) {
            return Some(format!(
                "{} each receive before they send: let one of them send first, or use MPI_Sendrecv, or post the receives with \
                 MPI_Irecv.",
                enumerated(&ranks(), " and ")
            ));
        }
        if owes.len() == needs.len() && owes.iter().all(|owes| matches!(owes, Owed::Receipt { .. })) {
            return Some(format!(
                "{} each send before they receive, and the messages are larger than the library buffers: use MPI_Sendrecv, or \
                 MPI_Irecv before MPI_Send.",
                enumerated(&ranks(), " and ")
            ));
        }
        if needs.iter().any(|needed| matches!(needed, Needed::Holder { .. })) {
            return Some(
                "Do not wait for other threads, tasks or ranks while you hold a lock that they need: release it before."
                    .to_string(),
            );
        }
        if needs.iter().any(|needed| matches!(needed, Needed::Task(..))) {
            return Some(
                "Tasks wait for each other: let a task wait for its own children only, and express the rest as dependences."
                    .to_string(),
            );
        }
        None
    }

    /// Advice for a thread that waits for itself.
    fn own_advice(&self, wait: &OpenWait, needed: &Needed) -> String {
        match *needed {
            Needed::Holder { site, .. } => {
                let (word, taken) = (self.object_word(wait), self.taken_at(wait, site));
                let taken = if taken.is_empty() { String::new() } else { format!(" in {taken}") };
                let instead = match wait.span.section.state {
                    State::CriticalWait => "give the inner construct another name",
                    _ => "use a nestable (recursive) lock",
                };
                format!(
                    "The thread asks in {} for the {word} that it took itself{taken}: release it before, or {instead}.",
                    self.wait_place(wait)
                )
            }
            Needed::Rank { .. } => format!(
                "{} waits in {} for itself: post the receive with MPI_Irecv before it sends to itself.",
                self.thread(wait.thread),
                self.wait_place(wait)
            ),
            _ => format!("The thread waits in {} for itself.", self.wait_place(wait)),
        }
    }

    /// Advice for one wait; `is_explained` if the circle that it is in has some.
    fn wait_advice(&self, wait: &OpenWait, is_explained: bool) -> Vec<String> {
        let place = self.wait_place(wait);
        let mut all = Vec::new();
        let seen = |thread: ThreadIndex| self.hang.needed.iter().find(|seen| seen.thread == thread);
        for needed in wait.needs.iter().take(2) {
            match *needed {
                Needed::Holder { thread, site, .. } => {
                    let (word, taken) = (self.object_word(wait), self.taken_at(wait, site));
                    let taken = place_or(&taken);
                    match seen(thread) {
                        Some(seen) if seen.gone => all.push(format!(
                            "{} ended without releasing the {word} that it took in {taken}: release it on every way out.",
                            self.thread(thread)
                        )),
                        Some(seen) => all.push(format!(
                            "{} holds the {word} and does not continue: look at {}.",
                            self.thread(thread),
                            place_or(&self.seen_in(seen))
                        )),
                        None => {}
                    }
                }
                Needed::Member(thread) => match seen(thread) {
                    Some(seen) if seen.gone => all.push(format!(
                        "{} ended and never comes to {place}: all threads of the team must reach it.",
                        self.thread(thread)
                    )),
                    Some(seen) => all.push(format!(
                        "{} does not come to {place}: look at {}.",
                        self.thread(thread),
                        place_or(&self.seen_in(seen))
                    )),
                    None => {}
                },
                Needed::Task(task, thread) if !thread.is_some() => all.push(format!(
                    "{} does not end ({}): the event of a detached task must be fulfilled (omp_fulfill_event), and the tasks \
                     that it depends on must end.",
                    self.task(task),
                    self.task_status(task, thread)
                )),
                Needed::Task(..) => {}
                Needed::Rank { process, rank, owes } => {
                    all.extend(self.rank_advice(wait, process, &self.rank(process, rank), owes, is_explained));
                }
            }
        }
        all
    }

    fn rank_advice(
        &self,
        wait: &OpenWait,
        process: Option<ProcessIndex>,
        name: &str,
        owes: Owed,
        is_explained: bool,
    ) -> Vec<String> {
        let call = wait.function.map_or_else(|| "the call".to_string(), |function| format!("MPI_{function}"));
        let own = self.process_of(wait.thread);
        let gone = self.seen_of(process).is_some_and(|seen| seen.gone);
        let elsewhere = match self.seen_of(process) {
            Some(seen) if seen.gone => " and has ended".to_string(),
            Some(seen) => format!(", and is in {}", place_or(&self.seen_in(seen))),
            None => match self.hang.waits.iter().find(|other| self.is_of(other.thread, process)) {
                Some(other) => format!(", and waits in {}", self.wait_place(other)),
                None => String::new(),
            },
        };
        match owes {
            Owed::Message { comm, tag, .. } => {
                let mut all = self.unreceived(wait, process, (comm, tag), name);
                if all.is_empty() && (!is_explained || gone) {
                    let tag = tag_words(tag);
                    all.push(format!(
                        "{name} has sent {own} no message with {tag} that is left to receive{elsewhere}."
                    ));
                }
                all
            }
            Owed::Receipt { tag, .. } if !is_explained || gone => {
                vec![format!("{name} does not receive the message with tag {tag} of {own}{elsewhere}.")]
            }
            Owed::Part { function } if !is_explained || gone => vec![format!(
                "Every rank of the communicator has to call MPI_{function}: {name} has not{elsewhere}."
            )],
            Owed::SamePart { called } => {
                let mut calls = [format!("{own} calls {call}"), format!("{name} calls MPI_{called}")];
                calls.sort();
                vec![format!(
                    "All ranks of a communicator have to call the same operations in the same order: {}.",
                    calls.join(" where ")
                )]
            }
            Owed::Access(function) if !is_explained || gone => {
                vec![format!("{call} of {own} ends when {name} calls MPI_{function}: it has not{elsewhere}.")]
            }
            _ => Vec::new(),
        }
    }

    /// Messages of a rank that were sent and not received, with another tag or communicator than the awaited one.
    fn unreceived(
        &self,
        wait: &OpenWait,
        sender: Option<ProcessIndex>,
        (comm, tag): (u64, Option<i32>),
        name: &str,
    ) -> Vec<String> {
        let own = self.session.execution.threads.get(wait.thread.index()).map(|row| row.process);
        let is_awaited = |row: &Unreceived| {
            let mut awaited = wait.needs.iter().filter_map(|needed| match owed(needed)? {
                Owed::Message { comm, tag, .. } => Some((comm, tag)),
                _ => None,
            });
            awaited.any(|(comm, tag)| row.comm == comm && tag.is_none_or(|tag| row.tag == tag))
        };
        let rows = self.session.execution.communication.unreceived.iter();
        let rows =
            rows.filter(|row| Some(row.sender) == sender && Some(row.receiver) == own && !is_awaited(row));
        let text = |row: &Unreceived| {
            let (count, are) = match row.messages {
                1 => ("a message".to_string(), "is"),
                more => (format!("{more} messages"), "are"),
            };
            let receiver = self.process_of(wait.thread);
            let found =
                format!("{name} has sent {receiver} {count} with tag {} that {are} not received", row.tag);
            match row.comm == comm {
                true => format!("{found}, and {receiver} waits for {}: compare the tags.", tag_words(tag)),
                false => format!("{found}, in another communicator than that of the wait: compare them."),
            }
        };
        rows.take(2).map(text).collect()
    }

    fn is_of(&self, thread: ThreadIndex, process: Option<ProcessIndex>) -> bool {
        process.is_some()
            && self.session.execution.threads.get(thread.index()).map(|row| row.process) == process
    }

    /// The process of a thread in words.
    fn process_of(&self, thread: ThreadIndex) -> String {
        let execution = &self.session.execution;
        let process = execution.threads.get(thread.index()).map(|row| row.process);
        process
            .and_then(|process| self.processes.process(process))
            .unwrap_or_else(|| "the process".to_string())
    }
}

fn place_or(place: &str) -> &str {
    if place.is_empty() { "a place that is not known" } else { place }
}
