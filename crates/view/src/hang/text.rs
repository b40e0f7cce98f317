//! Hangs in sentences.

use super::json::{HangFacts, HungWait, Need, Owes, ThreadId};
use super::{enumerated, tag_words};
use crate::format;

/// Waits that a sentence describes, beyond those of a circle, and needed ones of each.
const DESCRIBED: usize = 3;

/// Rows of [`HangFacts::needed`] that a text has described already.
type Described = Vec<usize>;

impl HangFacts {
    /// The whole hang as a sentence.
    pub fn sentence(&self) -> String {
        let shown = self.circle.max(DESCRIBED).min(self.waits.len());
        let mut described = Described::new();
        let mut parts: Vec<String> = Vec::new();
        for (number, wait) in self.waits[..shown].iter().enumerate() {
            let is_in_circle = number < self.circle;
            let again = number > 0 && is_in_circle;
            let who = if again { "which" } else { wait.thread.words() };
            let text = format!("{who} {}", self.wait(wait, is_in_circle, &mut described));
            match parts.last_mut() {
                Some(last) if again => *last = format!("{last}, {text}"),
                _ => parts.push(text),
            }
        }
        match self.waits.len() - shown {
            0 => {}
            1 => parts.push("1 more thread waits".to_string()),
            more => parts.push(format!("{more} more threads wait")),
        }
        let parts = parts.join("; ");
        match self.deadlock {
            true => format!("hung: {parts}"),
            false => {
                let silence = self.lasted(self.since_ns);
                format!("hung: no thread made progress in the last {silence}: {parts}")
            }
        }
    }

    /// Each wait as a line.
    pub fn lines(&self) -> Vec<String> {
        let line = |wait: &HungWait| {
            format!("{} {}", wait.thread.words(), self.wait(wait, false, &mut Described::new()))
        };
        self.waits.iter().map(line).collect()
    }

    /// The time from `start_ns` to the end.
    fn lasted(&self, start_ns: u64) -> String {
        format::time(self.end_ns.saturating_sub(start_ns))
    }

    /// A thread's wait, as a predicate. A wait in a cycle names only the next thread's part.
    fn wait(&self, wait: &HungWait, is_in_circle: bool, described: &mut Described) -> String {
        let (place, time) = (&wait.at, self.lasted(wait.start_ns));
        let needs: Vec<&Need> = match is_in_circle {
            true => wait.next.and_then(|next| wait.needs.get(next)).into_iter().collect(),
            false => wait.needs.iter().collect(),
        };
        let groups: Vec<&[&Need]> =
            needs.chunk_by(|a, b| a.owes().is_some() && a.owes() == b.owes()).collect();
        let shown = groups.iter().take(DESCRIBED);
        let texts: Vec<String> = shown.map(|group| self.group(wait, group, described)).collect();
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

    /// Needs in words: ranks that owe the same together.
    fn group(&self, wait: &HungWait, group: &[&Need], described: &mut Described) -> String {
        let Some(owes) = group.first().and_then(|need| need.owes()) else {
            let words = group.iter().map(|need| self.need(wait, need, described));
            return words.collect::<Vec<_>>().join(" and for ");
        };
        let shown = group.len().min(DESCRIBED);
        let names: Vec<String> = group[..shown].iter().map(|need| self.need(wait, need, described)).collect();
        let last = if wait.any { " or " } else { " and " };
        let names = match group.len() - shown {
            0 => enumerated(&names, last),
            more => format!("{}{last}{more} more", names.join(", ")),
        };
        match owes {
            Owes::Message { tag, any_source } => {
                let any = if *any_source { "any rank: " } else { "" };
                format!("a message with {} from {any}{names}", tag_words(*tag))
            }
            Owes::Receipt { tag, bytes } => {
                let size = if *bytes == u64::MAX { String::new() } else { format!(" ({bytes} bytes)") };
                format!("the receipt of its message with tag {tag}{size} by {names}")
            }
            Owes::Part { .. } => names,
            Owes::SamePart { called } => format!("{names} (called MPI_{called} instead)"),
            Owes::Call { call } => format!("MPI_{call} by {names}"),
        }
    }

    fn need(&self, wait: &HungWait, need: &Need, described: &mut Described) -> String {
        match need {
            Need::Holder { thread, since_ns, place, itself, last } => {
                let word = &wait.object_kind;
                let place = place.as_ref().map(|place| format!(" (taken in {place})")).unwrap_or_default();
                let time = self.lasted(*since_ns);
                if *itself {
                    return format!("the {word} that it has held itself for {time}{place}");
                }
                let who = thread.words();
                format!("the {word} that {who} has held for {time}{place}{}", self.last(*last, described))
            }
            Need::Member { thread, last } => format!("{}{}", thread.words(), self.last(*last, described)),
            Need::Task { place, task, status, .. } => {
                let number = task.map_or("a task".to_string(), |number| format!("task {number}"));
                format!("{number} of {place} ({status})")
            }
            Need::Rank { label, last, .. } => format!("{label}{}", self.last(*last, described)),
        }
    }

    /// The last activity of a needed thread, unless it waits itself or has been described before.
    fn last(&self, row: Option<usize>, described: &mut Described) -> String {
        let found = row.filter(|row| !described.contains(row));
        let Some((row, seen)) = found.and_then(|row| Some((row, self.needed.get(row)?))) else {
            return String::new();
        };
        described.push(row);
        if seen.ended {
            return format!(", which ended {} ago", self.lasted(seen.end_ns));
        }
        let asleep = if seen.asleep_since_ns.is_some() { ", asleep in the kernel" } else { "" };
        format!(", which has been in {} for {}{asleep}", seen.section, self.lasted(seen.start_ns))
    }
}

impl ThreadId {
    fn words(&self) -> &str {
        self.label.as_deref().unwrap_or("another thread")
    }
}

impl Need {
    /// The pending operation of a needed rank; `None` for other needs.
    fn owes(&self) -> Option<&Owes> {
        match self {
            Need::Rank { owes, .. } => Some(owes),
            _ => None,
        }
    }
}
