//! The run as lines of a terminal: one line for each thread, one character for each piece of time.

use crate::documents::Named;
use crate::format::{Cell, columns as columns_of, count, counted, fit, harmless, time, visible};
use anstyle::{Ansi256Color, AnsiColor, Color, Style};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use taskscope_analysis::{ThreadActivities, ThreadActivity};
use taskscope_execution::devices::{Class, Devices, Queue};
use taskscope_execution::lod::{Flags, Timeline};
use taskscope_execution::{Execution, Group, State, ThreadIndex};

/// Threads that are printed; of more, these are spread evenly over all.
const LINES: usize = 64;

/// The character and colour of a group of states, and its word in the legend.
fn look(group: Group) -> (char, Option<AnsiColor>, &'static str) {
    let colour = group.ansi().and_then(|number| Ansi256Color(number).into_ansi());
    (group.glyph(), colour, group.label())
}

/// Appearance of device queues by [`QueueUse`]: character, colour, word in the legend.
const DEVICE_LOOKS: [(char, Option<AnsiColor>, &str); 4] = [
    ('■', Some(AnsiColor::Blue), "queue computes"),
    ('□', Some(AnsiColor::Cyan), "queue copies"),
    ('▪', Some(AnsiColor::Blue), "queue mostly idle"),
    ('·', None, "queue idle"),
];

/// The use of a device queue in a piece of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueUse {
    /// Mostly kernels.
    Computes,
    /// Mostly copies.
    Copies,
    /// Something runs, for less than half of the time.
    MostlyIdle,
    /// Nothing runs.
    Idle,
}

/// The run at one zoom: its time in pieces of equal length, and the main use of each by thread and device queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-timeline/1")]
pub struct TimelineReport {
    /// The directory, as it was given.
    pub trace: String,
    /// Nanoseconds of all pieces.
    pub wall_ns: u64,
    /// Number of pieces.
    pub pieces: usize,
    /// Whether samples are the only source of activity: no thread is known to be a worker.
    pub samples_alone: bool,
    /// Threads with events, and CPUs; of more than 64, some that are spread evenly over all.
    pub threads: Vec<ThreadLine>,
    /// Number of threads with events, and CPUs.
    pub threads_in_all: usize,
    /// Device queues, at most 64.
    pub queues: Vec<QueueLine>,
    /// Number of device queues with operations.
    pub queues_in_all: usize,
    /// The effects of a filter, in sentences.
    pub notes: Vec<String>,
}

/// A thread, or a CPU that is a worker.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadLine {
    /// Its words in text.
    pub label: String,
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// Whether it is a worker.
    pub worker: bool,
    /// The group of states with most time in each piece; null for a piece without any. If samples are the only source: whether the
    /// thread ran (`useful`), had no CPU (`off`) or was blocked.
    pub groups: Vec<Option<Named<Group>>>,
}

/// A device queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QueueLine {
    /// Its name.
    pub label: String,
    /// Its use in each piece.
    pub uses: Vec<QueueUse>,
}

/// Columns of the labels.
fn label_width<'a>(labels: impl Iterator<Item = &'a str>) -> usize {
    labels.map(columns_of).max().unwrap_or(0).clamp(6, 26)
}

/// The run in as many pieces as fit beside the labels in `width` columns.
pub fn timeline_report(
    trace: String,
    execution: &Execution,
    devices: &Devices,
    timeline: &Timeline,
    width: usize,
) -> TimelineReport {
    let queues: Vec<&Queue> = devices.queues.iter().filter(|queue| range_of(queue).is_some()).collect();
    let queue_ranges = queues.iter().filter_map(|queue| range_of(queue));
    let thread_range = Some(execution.range()).filter(|(start, end)| end > start);
    let range = queue_ranges.chain(thread_range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (start, end) = range.unwrap_or_default();
    let mut all: Vec<ThreadIndex> = (0..execution.threads.len() as u32)
        .map(ThreadIndex)
        .filter(|index| execution.threads[index.index()].has_row())
        .collect();
    execution.sort_by_rank(&mut all);
    let shown: Vec<ThreadIndex> = all.iter().copied().step_by(all.len().div_ceil(LINES).max(1)).collect();
    let several = execution.processes.len() > 1;
    let samples_alone = execution.knows_samples_alone();
    let activities = samples_alone.then(|| ThreadActivities::of(execution));
    let name = |index: ThreadIndex| {
        if let Some(name) = crate::names::cpu_name(execution, index) {
            return name;
        }
        let thread = &execution.threads[index.index()];
        let process = match execution.communication.ranks.get(&thread.process.0) {
            Some(rank) if several => format!("rank {}/", rank.rank),
            _ if several => format!("{}/", execution.processes[thread.process.index()].pid),
            _ => String::new(),
        };
        let mark = if thread.worker || samples_alone { "" } else { "*" };
        match harmless(&thread.name) {
            none if none.is_empty() => format!("{process}{}{mark}", thread.tid),
            name => format!("{process}{} {name}{mark}", thread.tid),
        }
    };
    let names: Vec<String> = shown.iter().map(|index| name(*index)).collect();
    let queue_names = queues.iter().take(LINES).map(|queue| queue.name.as_str());
    let label = label_width(names.iter().map(String::as_str).chain(queue_names));
    let pieces = if end > start { width.saturating_sub(label + 2).clamp(20, 400) } else { 0 };
    let edge = |piece: usize| start + ((u128::from(end - start) * piece as u128) / pieces as u128) as u64;
    let piece = |piece: usize| (edge(piece), edge(piece + 1).max(edge(piece) + 1));
    let threads = shown.iter().zip(names).map(|(index, label)| {
        let mut known = vec![[0; Group::ALL.len()]; pieces];
        if let Some(activities) = &activities {
            add_activities(activities, *index, &mut known, edge);
        }
        let groups = known.into_iter().enumerate().map(|(number, known)| {
            let (from, to) = piece(number);
            let group = match dominant(timeline.sums(execution, *index, from, to), known) {
                Some(_) if timeline.is_marked(*index, Flags::UNCERTAIN, from, to) => Some(Group::Unknown),
                group => group,
            };
            group.map(Named)
        });
        let thread = &execution.threads[index.index()];
        let pid = execution.processes[thread.process.index()].pid;
        ThreadLine { label, pid, tid: thread.tid, worker: thread.worker, groups: groups.collect() }
    });
    let use_of = |(number, (kernels, copies)): (usize, (u64, u64))| {
        let (from, to) = piece(number);
        match kernels + copies {
            0 => QueueUse::Idle,
            busy if 2 * busy < to - from => QueueUse::MostlyIdle,
            _ if kernels >= copies => QueueUse::Computes,
            _ => QueueUse::Copies,
        }
    };
    let lines_of_queues = queues.iter().take(LINES).map(|queue| {
        let busy = busy_in(queue, (0..pieces).map(piece));
        QueueLine { label: queue.name.clone(), uses: busy.into_iter().enumerate().map(use_of).collect() }
    });
    TimelineReport {
        trace,
        wall_ns: end - start,
        pieces,
        samples_alone,
        threads: threads.collect(),
        threads_in_all: all.len(),
        queues: lines_of_queues.collect(),
        queues_in_all: queues.len(),
        notes: Vec::new(),
    }
}

impl TimelineReport {
    /// The lines with ANSI styles: one per thread, then one per device queue, a character for each piece. Without
    /// colour, groups have different characters.
    pub fn text(&self, width: usize) -> String {
        if self.threads.is_empty() && self.queues.is_empty() || self.pieces == 0 {
            return NOTHING.to_string();
        }
        let labels = self.threads.iter().map(|line| line.label.as_str());
        let label = label_width(labels.chain(self.queues.iter().map(|line| line.label.as_str())));
        let mut text = String::new();
        let (mut occurs, mut uses_occur) = ([false; Group::ALL.len()], [false; DEVICE_LOOKS.len()]);
        for line in &self.threads {
            let glyphs = line.groups.iter().map(|group| match group {
                Some(Named(group)) => {
                    occurs[*group as usize] = true;
                    let (glyph, colour, _) = look(*group);
                    (glyph, colour)
                }
                None => (' ', None),
            });
            write_line(&mut text, &fit(&line.label, label), label, glyphs);
        }
        for line in &self.queues {
            let glyphs = line.uses.iter().map(|device_look| {
                uses_occur[*device_look as usize] = true;
                let (glyph, colour, _) = DEVICE_LOOKS[*device_look as usize];
                (glyph, colour)
            });
            write_line(&mut text, &fit(&line.label, label), label, glyphs);
        }
        let length = time(self.wall_ns);
        let gap = self.pieces.saturating_sub(1 + columns_of(&length));
        let _ = writeln!(text, "{:>label$}  0{}{length}", "", " ".repeat(gap));
        let mut line = format!("{:>label$} ", "");
        let groups = Group::ALL.into_iter().zip(occurs).filter(|(_, occurs)| *occurs).map(|(group, _)| {
            match look(group) {
                // Whether code is useful, samples do not show.
                (glyph, colour, _) if self.samples_alone && group == Group::Useful => {
                    (glyph, colour, "running")
                }
                (glyph, colour, _) if self.samples_alone && group == Group::Off => (glyph, colour, "no CPU"),
                look => look,
            }
        });
        let queue_ranges = DEVICE_LOOKS.into_iter().zip(uses_occur).filter(|(_, occurs)| *occurs);
        for (glyph, colour, word) in groups.chain(queue_ranges.map(|(look, _)| look)) {
            // Legends break between entries, not inside.
            if visible(&line) + columns_of(word) + 4 > width.max(40) {
                text.push_str(line.trim_end());
                text.push('\n');
                line = format!("{:>label$} ", "");
            }
            let _ = write!(line, " {}{glyph}{} {word} ", style(colour), Style::new().bold().render_reset());
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if self.threads.len() < self.threads_in_all {
            let (shown, all) = (self.threads.len(), counted(self.threads_in_all as u64, "thread"));
            let _ = writeln!(text, "{shown} of {all}, evenly chosen; `taskscope view` shows all");
        }
        if self.queues.len() < self.queues_in_all {
            let (shown, all) = (self.queues.len(), count(self.queues_in_all as u64));
            let _ = writeln!(text, "{shown} of {all} device queues; `taskscope view` shows all");
        }
        if !self.samples_alone && self.threads.iter().any(|line| !line.worker) {
            let _ = writeln!(text, "* not a worker");
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

const NOTHING: &str = "nothing happened in this trace\n";

/// A line: its name, and characters with their colours, each run of a colour begun and ended.
fn write_line(
    text: &mut String,
    name: &str,
    label: usize,
    glyphs: impl Iterator<Item = (char, Option<AnsiColor>)>,
) {
    let _ = write!(text, "{:>label$}  ", Cell(name));
    let mut current: Option<AnsiColor> = None;
    for (glyph, colour) in glyphs {
        if colour != current {
            // A style without any says nothing of how it ends.
            let _ = write!(text, "{}{}", Style::new().bold().render_reset(), style(colour));
            current = colour;
        }
        text.push(glyph);
    }
    if current.is_some() {
        let _ = write!(text, "{}", Style::new().bold().render_reset());
    }
    text.push('\n');
}

/// First begin and last end of a queue's operations that have times.
fn range_of(queue: &Queue) -> Option<(u64, u64)> {
    let timed = || queue.operations.iter().filter(|o| o.start > 0 && o.end >= o.start);
    Some((timed().map(|o| o.start).min()?, timed().map(|o| o.end).max()?))
}

/// Compute and copy time of a queue in each interval, at most the interval's length even if operations
/// overlap.
fn busy_in(queue: &Queue, pieces: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let timed =
        queue.operations.iter().filter(|o| o.start > 0 && o.end >= o.start && o.class() != Class::Other);
    let mut timed: Vec<(u64, u64, bool)> =
        timed.map(|o| (o.start, o.end, o.class() == Class::Transfer)).collect();
    timed.sort_unstable();
    let mut at = timed.first().map_or(0, |first| first.0);
    for row in &mut timed {
        (row.0, at) = (row.0.max(at), at.max(row.1));
    }
    let mut first = 0;
    pieces
        .map(|(from, to)| {
            // Operations that end in earlier intervals are skipped.
            first += timed[first..].iter().take_while(|row| row.1.max(row.0) <= from).count();
            let inside = timed[first..].iter().take_while(|row| row.0 < to);
            inside.fold((0, 0), |(kernels, copies), (start, end, is_copy)| {
                let ns = (*end).min(to).saturating_sub((*start).max(from));
                if *is_copy { (kernels, copies + ns) } else { (kernels + ns, copies) }
            })
        })
        .collect()
}

/// Nanoseconds by group, in the order of groups.
type ByGroup = [u64; Group::ALL.len()];

/// Adds what a thread did in each piece, as far as the kernel and recorded waits tell.
fn add_activities(
    activities: &ThreadActivities<'_>,
    thread: ThreadIndex,
    pieces: &mut [ByGroup],
    edge: impl Fn(usize) -> u64,
) {
    let mut piece = 0;
    activities.each(thread, &mut |mut from, until, activity| {
        let group = match activity {
            ThreadActivity::Runs => Group::Useful,
            ThreadActivity::HasNoCpu => Group::Off,
            ThreadActivity::Waits(_) | ThreadActivity::IsBlocked => Group::Blocked,
            ThreadActivity::NotKnown => Group::Unknown,
        };
        while from < until && piece < pieces.len() {
            let end = edge(piece + 1);
            pieces[piece][group as usize] += until.min(end).saturating_sub(from.max(edge(piece)));
            from = from.max(end.min(until));
            if end > until {
                break;
            }
            piece += 1;
        }
    });
}

/// The group with most time, the earlier of equals; of time in an unknown state that which is known of it otherwise.
fn dominant(sums: [u64; taskscope_execution::lod::CLASSES], known: ByGroup) -> Option<Group> {
    let mut by_group = known;
    let is_known = known.iter().any(|ns| *ns > 0);
    for state in State::ALL.into_iter().filter(|state| !is_known || *state != State::Unknown) {
        by_group[state.group() as usize] += sums[state as usize];
    }
    let (group, most) = Group::ALL.into_iter().zip(by_group).rev().max_by_key(|(_, ns)| *ns)?;
    (most > 0).then_some(group)
}

fn style(colour: Option<AnsiColor>) -> Style {
    Style::new().fg_color(colour.map(Color::Ansi))
}
