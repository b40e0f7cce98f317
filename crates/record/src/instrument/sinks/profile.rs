//! Sums in memory: how often and how long each state and burst was open, how often each point was passed.

use taskscope_context::{Behaviour, Shown};

use super::{LiveEvent, Sink};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// Adds up, and writes a table at the end. Time counts while the task is on a thread.
pub struct Profile {
    out: Box<dyn Write + Send>,
    rows: BTreeMap<(&'static str, String), Row>,
    /// Open items of each thread, the innermost last, with their start.
    open: HashMap<i32, Vec<(OpenEntry, u64)>>,
}

#[derive(Clone, Copy, PartialEq)]
enum OpenEntry {
    State(u32),
    Burst(u32, u64),
}

/// Result for one state, burst or point.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    /// Pieces on threads: a switch ends one and begins another.
    pieces: u64,
    ns: u64,
    longest_ns: u64,
}

impl Profile {
    /// Writes the table to `out` at the end.
    pub fn new(out: Box<dyn Write + Send>) -> Profile {
        Profile { out, rows: BTreeMap::new(), open: HashMap::new() }
    }

    fn begin(&mut self, event: &LiveEvent<'_>, open: OpenEntry) {
        self.open.entry(event.thread).or_default().push((open, event.at));
    }

    fn end(&mut self, event: &LiveEvent<'_>, open: OpenEntry, title: &'static str, name: String) {
        let on_thread = self.open.entry(event.thread).or_default();
        let Some(row) = on_thread.iter().rposition(|(of, _)| *of == open) else { return };
        let ns = event.at - on_thread.remove(row).1;
        let row = self.rows.entry((title, name)).or_default();
        row.pieces += 1;
        row.ns += ns;
        row.longest_ns = row.longest_ns.max(ns);
    }
}

impl Sink for Profile {
    fn behaviour(&self) -> Behaviour {
        Behaviour::Stacked
    }

    fn event(&mut self, event: &LiveEvent<'_>) {
        let names = &event.names;
        match event.shown {
            Shown::StateStart(state) => self.begin(event, OpenEntry::State(state)),
            Shown::StateEnd(state) => self.end(event, OpenEntry::State(state), "state", names.state(state)),
            Shown::BurstStart { key, value } => self.begin(event, OpenEntry::Burst(key, value)),
            Shown::BurstEnd { key, value } => {
                self.end(event, OpenEntry::Burst(key, value), "burst", names.key(key));
            }
            Shown::Point { key, .. } => self.rows.entry(("point", names.key(key))).or_default().pieces += 1,
            _ => {}
        }
    }

    fn finish(&mut self) {
        let _ = writeln!(
            self.out,
            "{:<8}{:<32}{:>10}{:>14}{:>14}",
            "what", "name", "times", "total ms", "longest ms"
        );
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        for ((title, name), row) in &self.rows {
            let _ = writeln!(
                self.out,
                "{title:<8}{name:<32}{:>10}{:>14}{:>14}",
                row.pieces,
                ms(row.ns),
                ms(row.longest_ns)
            );
        }
        let _ = self.out.flush();
    }
}
