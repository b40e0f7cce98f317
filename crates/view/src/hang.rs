//! Hangs in sentences and in JSON, with their remedies.

mod advice;
pub(crate) mod json;

use crate::format;
use std::cell::RefCell;
use taskscope_analysis::{Hang, LastSeen, Needed, OpenWait};
use taskscope_execution::messages::Owed;
use taskscope_execution::{
    NO_TIME, Place, ProcessIndex, Section, SiteIndex, State, TaskIndex, TaskStatus, ThreadIndex, ThreadKind,
};
use taskscope_session::Session;

/// Waits that a sentence describes, beyond those of a circle, and needed ones of each.
const DESCRIBED: usize = 3;

/// Words and values of one session's hangs.
pub struct HangWords<'s> {
    session: &'s Session,
    hang: &'s Hang,
    /// Needed threads whose last activity has been described already.
    described: RefCell<Vec<ThreadIndex>>,
}

impl<'s> HangWords<'s> {
    /// Creates the words for a hang of this session.
    pub(crate) fn of(session: &'s Session, hang: &'s Hang) -> Self {
        HangWords { session, hang, described: RefCell::default() }
    }

    /// The whole hang as a sentence.
    pub fn sentence(&self) -> String {
        let waits = &self.hang.waits;
        let shown = self.hang.circle.max(DESCRIBED).min(waits.len());
        let mut parts: Vec<String> = Vec::new();
        for (number, wait) in waits[..shown].iter().enumerate() {
            // In a circle each wait is for the thread of the next one.
            let again = number > 0 && number < self.hang.circle;
            let who = if again { "which".to_string() } else { self.thread(wait.thread) };
            let next =
                (number < self.hang.circle).then(|| self.hang.waits[(number + 1) % self.hang.circle].thread);
            let text = format!("{who} {}", self.wait(wait, next));
            match parts.last_mut() {
                Some(last) if again => *last = format!("{last}, {text}"),
                _ => parts.push(text),
            }
        }
        match waits.len() - shown {
            0 => {}
            1 => parts.push("1 more thread waits".to_string()),
            more => parts.push(format!("{more} more threads wait")),
        }
        let parts = parts.join("; ");
        if self.hang.is_deadlock {
            return format!("hung: {parts}");
        }
        let silence = format::time(self.hang.end.saturating_sub(self.hang.since));
        format!("hung: no thread made progress in the last {silence}: {parts}")
    }

    /// Each wait as a line.
    pub fn lines(&self) -> Vec<String> {
        let line = |wait: &OpenWait| {
            self.described.borrow_mut().clear();
            format!("{} {}", self.thread(wait.thread), self.wait(wait, None))
        };
        self.hang.waits.iter().map(line).collect()
    }

    /// Nanoseconds since the start of the trace.
    fn since(&self, at: u64) -> u64 {
        at.saturating_sub(self.session.execution.range().0)
    }

    /// The time from `start` to the end.
    fn lasted(&self, start: u64) -> String {
        format::time(self.hang.end.saturating_sub(start))
    }

    /// A thread, named uniquely by the numbers of its process and thread.
    fn thread(&self, thread: ThreadIndex) -> String {
        let execution = &self.session.execution;
        let Some(row) = execution.threads.get(thread.index()) else { return "another thread".to_string() };
        let siblings = execution
            .threads
            .iter()
            .filter(|other| other.process == row.process && other.kind != ThreadKind::Cpu);
        let name = match (row.name.as_str(), row.kind) {
            ("", ThreadKind::Initial) => " (initial)".to_string(),
            ("", _) => String::new(),
            (name, _) => format!(" ({})", format::harmless(name)),
        };
        match (execution.process_name(row.process), siblings.count()) {
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

    /// A thread's wait, as a predicate. A wait in a cycle names only the next thread's part.
    fn wait(&self, wait: &OpenWait, next: Option<ThreadIndex>) -> String {
        let (place, time) = (self.wait_place(wait), self.lasted(wait.span.start));
        let mut needs: Vec<&Needed> = wait.needs.iter().collect();
        if let Some(next) = next {
            needs.retain(|needed| self.concerns(needed, next));
            needs.truncate(1);
        }
        let groups: Vec<&[&Needed]> =
            needs.chunk_by(|a, b| owed(a).is_some() && owed(a) == owed(b)).collect();
        let texts: Vec<String> = groups.iter().take(DESCRIBED).map(|group| self.group(wait, group)).collect();
        let more = match groups.len().saturating_sub(DESCRIBED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let or = if wait.any { " or for " } else { " and for " };
        match texts.is_empty() {
            true => format!("has waited {time} in {place}"),
            false => format!("has waited {time} in {place} for {}{more}", texts.join(or)),
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

    /// Needs in words: ranks that owe the same together.
    fn group(&self, wait: &OpenWait, group: &[&Needed]) -> String {
        let Some(owes) = group.first().and_then(|needed| owed(needed)) else {
            return group
                .iter()
                .map(|needed| self.needed(wait, needed))
                .collect::<Vec<_>>()
                .join(" and for ");
        };
        let shown = group.len().min(DESCRIBED);
        let names: Vec<String> = group[..shown].iter().map(|needed| self.needed(wait, needed)).collect();
        let last = if wait.any { " or " } else { " and " };
        let names = match group.len() - shown {
            0 => enumerated(&names, last),
            more => format!("{}{last}{more} more", names.join(", ")),
        };
        match owes {
            Owed::Message { tag, of_any, .. } => {
                let any = if of_any { "any rank: " } else { "" };
                format!("a message with {} from {any}{names}", tag_words(tag))
            }
            Owed::Receipt { tag, bytes } => {
                let size = if bytes == u64::MAX { String::new() } else { format!(" ({bytes} bytes)") };
                format!("the receipt of its message with tag {tag}{size} by {names}")
            }
            Owed::Part { .. } => names,
            Owed::SamePart { called } => format!("{names} (called MPI_{called} instead)"),
            Owed::Access(function) => format!("MPI_{function} by {names}"),
        }
    }

    fn needed(&self, wait: &OpenWait, needed: &Needed) -> String {
        match *needed {
            Needed::Holder { thread, since, site } => {
                let word = self.object_word(wait);
                let place = self.taken_at(wait, site);
                let place = if place.is_empty() { place } else { format!(" (taken in {place})") };
                let time = self.lasted(since);
                if thread == wait.thread {
                    return format!("the {word} that it has held itself for {time}{place}");
                }
                let who = self.thread(thread);
                format!("the {word} that {who} has held for {time}{place}{}", self.last_seen(thread))
            }
            Needed::Member(thread) => format!("{}{}", self.thread(thread), self.last_seen(thread)),
            Needed::Task(task, thread) => format!("{} ({})", self.task(task), self.task_status(task, thread)),
            Needed::Rank { process, rank, .. } => {
                let seen = self.seen_of(process).map(|seen| self.last_seen(seen.thread));
                format!("{}{}", self.rank(process, rank), seen.unwrap_or_default())
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
        match (process.and_then(|process| self.session.execution.process_name(process)), rank) {
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

    /// The last activity of a needed thread, unless it waits itself or has been described before.
    fn last_seen(&self, thread: ThreadIndex) -> String {
        let mut described = self.described.borrow_mut();
        let seen = self.hang.needed.iter().find(|seen| seen.thread == thread);
        let Some(seen) = seen.filter(|_| !described.contains(&thread)) else { return String::new() };
        described.push(thread);
        if seen.gone {
            return format!(", which ended {} ago", self.lasted(seen.span.end));
        }
        let asleep = if seen.asleep_since.is_some() { ", asleep in the kernel" } else { "" };
        let (section, time) = (self.seen_in(seen), self.lasted(seen.span.start));
        format!(", which has been in {section} for {time}{asleep}")
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
