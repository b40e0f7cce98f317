//! Hangs with their remedies, as documents and their sentences.

mod advice;
pub(crate) mod json;
mod text;

use crate::format;
use taskscope_analysis::{Hang, LastSeen, Needed, OpenWait};
use taskscope_execution::messages::Owed;
use taskscope_execution::{
    NO_TIME, Place, ProcessIndex, ProcessNames, Section, SiteIndex, State, TaskIndex, TaskStatus,
    ThreadIndex, ThreadKind,
};
use taskscope_session::Session;

/// Words and values of one session's hangs.
pub(crate) struct HangWords<'s> {
    session: &'s Session,
    hang: &'s Hang,
    processes: ProcessNames<'s>,
    /// Threads of each process that are not CPUs.
    threads: Vec<usize>,
}

impl<'s> HangWords<'s> {
    /// Creates the words for a hang of this session.
    pub fn of(session: &'s Session, hang: &'s Hang) -> Self {
        let execution = &session.execution;
        let mut threads = vec![0; execution.processes.len()];
        for row in execution.threads.iter().filter(|row| row.kind != ThreadKind::Cpu) {
            threads[row.process.index()] += 1;
        }
        HangWords { session, hang, processes: ProcessNames::of(execution), threads }
    }

    /// Nanoseconds since the start of the trace.
    fn since(&self, at: u64) -> u64 {
        at.saturating_sub(self.session.execution.range().0)
    }

    /// A thread, named uniquely by the numbers of its process and thread.
    fn thread(&self, thread: ThreadIndex) -> String {
        let execution = &self.session.execution;
        let Some(row) = execution.threads.get(thread.index()) else { return "another thread".to_string() };
        let name = match (row.name.as_str(), row.kind) {
            ("", ThreadKind::Initial) => " (initial)".to_string(),
            ("", _) => String::new(),
            (name, _) => format!(" ({})", format::harmless(name)),
        };
        // The other ranks of a job may not have come to the start of MPI.
        let ranks = &execution.communication.ranks;
        let rank = ranks.get(&row.process.0).filter(|rank| rank.ranks > 1);
        let process = self.processes.process(row.process);
        let process = process.or_else(|| rank.map(|rank| format!("rank {}", rank.rank)));
        match (process, self.threads[row.process.index()]) {
            (Some(process), 1) => process,
            (Some(process), _) => format!("thread {}{name} of {process}", row.tid),
            (None, _) => format!("thread {}{name}", row.tid),
        }
    }

    fn place(&self, section: &Section) -> String {
        self.session.places.name(section.state, section.place)
    }

    /// The section of a thread: state and place.
    fn section(&self, section: &Section) -> String {
        match self.place(section) {
            place if place.is_empty() => section.state.label().to_string(),
            place if section.state == State::Serial => place,
            place => format!("{}: {place}", section.state.label()),
        }
    }

    /// The place of a wait, with the function of the communication library.
    fn wait_place(&self, wait: &OpenWait) -> String {
        let section = &wait.span.section;
        match (self.place(section), wait.function) {
            (place, Some(call)) if place.is_empty() => format!("MPI_{call}"),
            // Places of calls have the function in their names.
            (place, Some(call)) if place.contains(&format!("MPI_{call}")) => place,
            (place, Some(call)) => format!("MPI_{call} at {place}"),
            (place, None) if place.is_empty() => section.state.label().to_string(),
            (place, None) => place,
        }
    }

    /// Whether a need is for this thread, or for its process.
    fn concerns(&self, needed: &Needed, other: ThreadIndex) -> bool {
        match *needed {
            Needed::Holder { thread, .. } | Needed::Member(thread) | Needed::Task(_, thread) => {
                thread == other
            }
            Needed::Rank { process, .. } => {
                let row = self.session.execution.threads.get(other.index());
                process.is_some() && row.map(|row| row.process) == process
            }
        }
    }

    /// The kind of object that a thread waits for.
    fn object_word(&self, wait: &OpenWait) -> &'static str {
        match self.session.places.object_kind(wait.span.section.object) {
            "critical" => "critical construct",
            "ordered" => "ordered turn",
            "unknown" | "object" => "lock",
            word => word,
        }
    }

    /// The place at which the awaited object was acquired.
    fn taken_at(&self, wait: &OpenWait, site: SiteIndex) -> String {
        self.session.places.name(wait.span.section.state, Place::site(site))
    }

    /// A rank in words.
    fn rank(&self, process: Option<ProcessIndex>, rank: Option<u32>) -> String {
        match (process.and_then(|process| self.processes.process(process)), rank) {
            (Some(name), _) => name,
            (None, Some(rank)) if process.is_none() => format!("rank {rank} (not in the trace)"),
            (None, Some(rank)) => format!("rank {rank}"),
            (None, None) => "another process".to_string(),
        }
    }

    /// The last activity of the thread that represents a process, unless that thread waits.
    fn seen_of(&self, process: Option<ProcessIndex>) -> Option<&LastSeen> {
        let threads = &self.session.execution.threads;
        let is_own = |seen: &&LastSeen| threads.get(seen.thread.index()).map(|row| row.process) == process;
        self.hang.needed.iter().find(is_own).filter(|_| process.is_some())
    }

    /// The thread's last section, with the last call of the communication library before serial code.
    fn seen_in(&self, seen: &LastSeen) -> String {
        let section = self.section(&seen.span.section);
        // Serial code of a process without regions has no place of its own.
        if section != State::Serial.label() {
            return section;
        }
        let calls = &self.session.execution.communication.calls;
        let last = calls.iter().rfind(|call| call.thread == seen.thread && call.end <= seen.span.start);
        let Some(last) = last else { return section };
        let place = self.session.places.name(State::Communication, last.place);
        match (place.is_empty(), last.function_name()) {
            (false, _) => format!("{section} after {place}"),
            (true, Some(function)) => format!("{section} after MPI_{function}"),
            (true, None) => section,
        }
    }

    fn task(&self, task: TaskIndex) -> String {
        let number = self.session.execution.tasks.number(task);
        let number = number.map_or("a task".to_string(), |number| format!("task {number}"));
        format!("{number} of {}", self.task_type(task))
    }

    fn task_type(&self, task: TaskIndex) -> String {
        let ty = self.session.execution.tasks.ty.get(task.index()).copied();
        ty.map_or_else(|| "an unknown type".to_string(), |ty| self.session.places.type_name(ty))
    }

    fn task_status(&self, task: TaskIndex, thread: ThreadIndex) -> String {
        let tasks = &self.session.execution.tasks;
        match tasks.status.get(task.index()) {
            _ if thread.is_some() => format!("{} runs it", self.thread(thread)),
            Some(TaskStatus::Created) => "never started".to_string(),
            Some(TaskStatus::Suspended) if tasks.began.get(task.index()) != Some(&NO_TIME) => {
                "suspended, or waits for its event".to_string()
            }
            _ => "not ended".to_string(),
        }
    }
}

/// The pending operation of a needed rank; `None` for other needs.
fn owed(needed: &Needed) -> Option<Owed> {
    match *needed {
        Needed::Rank { owes, .. } => Some(owes),
        _ => None,
    }
}

fn tag_words(tag: Option<i32>) -> String {
    tag.map_or_else(|| "any tag".to_string(), |tag| format!("tag {tag}"))
}

/// Names with commas, and a word before the last one.
fn enumerated(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., end] => format!("{}{last}{end}", all.join(", ")),
    }
}
