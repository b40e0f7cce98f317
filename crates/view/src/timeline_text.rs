//! The run as lines of a terminal: one line for each thread, one character for each piece of time.

use crate::format::{count, fit, time};
use anstyle::{AnsiColor, Color, Style};
use std::fmt::Write;
use taskscope_execution::lod::{Flags, Timeline};
use taskscope_execution::{Execution, Group, State, ThreadIndex};

/// Threads that are printed; of more, these are spread evenly over all.
const LINES: usize = 64;

/// The character and colour of a group of states, and its word in the legend.
fn look(group: Group) -> (char, Option<AnsiColor>, &'static str) {
    match group {
        Group::Useful => ('█', Some(AnsiColor::Blue), "useful"),
        Group::Runtime => ('▓', Some(AnsiColor::Yellow), "runtime"),
        Group::Start => ('≡', Some(AnsiColor::Cyan), "starts or ends MPI"),
        Group::Sync => ('░', Some(AnsiColor::Red), "waits for others"),
        Group::Device => ('◊', Some(AnsiColor::Green), "waits for a device"),
        Group::Mutex => ('▒', Some(AnsiColor::Magenta), "waits for a lock"),
        Group::Idle => ('·', None, "nothing to do"),
        Group::Off => ('×', None, "off the CPU"),
        Group::Unknown => ('?', Some(AnsiColor::BrightRed), "not known"),
    }
}

const GROUPS: [Group; 9] = [
    Group::Useful,
    Group::Runtime,
    Group::Sync,
    Group::Mutex,
    Group::Device,
    Group::Idle,
    Group::Off,
    Group::Start,
    Group::Unknown,
];
/// Number of [`Group::Unknown`], which also stands where what is known is not certain.
const NOT_KNOWN: usize = 8;

/// The timeline in lines of at most `width` characters, with ANSI styles. Each character shows the
/// group of states with most time in its piece, exactly; different characters tell the groups apart
/// where there is no colour.
pub fn timeline_text(execution: &Execution, timeline: &Timeline, width: usize) -> String {
    let (start, end) = execution.range();
    let mut all: Vec<ThreadIndex> = (0..execution.threads.len() as u32)
        .map(ThreadIndex)
        .filter(|index| execution.threads[index.index()].events > 0)
        .collect();
    execution.sort_by_rank(&mut all);
    let mut text = String::new();
    if all.is_empty() || end <= start {
        return "nothing happened in this trace\n".to_string();
    }
    let shown: Vec<ThreadIndex> = all.iter().copied().step_by(all.len().div_ceil(LINES)).collect();
    let several = execution.processes.len() > 1;
    let name = |index: ThreadIndex| {
        let thread = &execution.threads[index.index()];
        let process = match execution.communication.ranks.get(&thread.process.0) {
            Some(rank) if several => format!("rank {}/", rank.rank),
            _ if several => format!("{}/", execution.processes[thread.process.index()].pid),
            _ => String::new(),
        };
        format!("{process}{}{}", thread.tid, if thread.worker { "" } else { "*" })
    };
    let label = shown.iter().map(|index| name(*index).chars().count()).max().unwrap_or(0).clamp(6, 18);
    let columns = width.saturating_sub(label + 2).clamp(20, 400);
    let edge = |column: usize| start + ((u128::from(end - start) * column as u128) / columns as u128) as u64;
    let mut occurs = [false; GROUPS.len()];
    for index in &shown {
        let _ = write!(text, "{:>label$}  ", fit(&name(*index), label));
        let mut current: Option<AnsiColor> = None;
        for column in 0..columns {
            let (from, to) = (edge(column), edge(column + 1).max(edge(column) + 1));
            let group = match dominant(timeline.sums(execution, *index, from, to)) {
                Some(_) if timeline.is_marked(*index, Flags::UNCERTAIN, from, to) => Some(NOT_KNOWN),
                group => group,
            };
            let (glyph, colour) = match group {
                Some(at) => {
                    occurs[at] = true;
                    let (glyph, colour, _) = look(GROUPS[at]);
                    (glyph, colour)
                }
                None => (' ', None),
            };
            if colour != current {
                let _ = write!(text, "{}{}", Style::new().render_reset(), style(colour));
                current = colour;
            }
            text.push(glyph);
        }
        if current.is_some() {
            let _ = write!(text, "{}", Style::new().bold().render_reset());
        }
        text.push('\n');
    }
    let length = time(end - start);
    let gap = columns.saturating_sub(1 + length.chars().count());
    let _ = writeln!(text, "{:>label$}  0{}{length}", "", " ".repeat(gap));
    let mut line = format!("{:>label$} ", "");
    for (_, group) in GROUPS.into_iter().enumerate().filter(|(at, _)| occurs[*at]) {
        let (glyph, colour, word) = look(group);
        // Legends break between entries, not inside.
        if visible(&line) + word.len() + 4 > width.max(40) {
            text.push_str(&line);
            text.push('\n');
            line = format!("{:>label$} ", "");
        }
        let _ = write!(line, " {}{glyph}{} {word} ", style(colour), Style::new().bold().render_reset());
    }
    text.push_str(line.trim_end());
    text.push('\n');
    if shown.len() < all.len() {
        let _ = writeln!(
            text,
            "{} of {} threads, evenly chosen; `taskscope view` shows all",
            shown.len(),
            count(all.len() as u64)
        );
    }
    if shown.iter().any(|index| !execution.threads[index.index()].worker) {
        let _ = writeln!(text, "* not a worker");
    }
    text
}

/// The group with most time, the earlier of equals.
fn dominant(sums: [u64; taskscope_execution::lod::CLASSES]) -> Option<usize> {
    let mut by_group = [0_u64; GROUPS.len()];
    for state in State::ALL {
        if let Some(at) = GROUPS.iter().position(|group| *group == state.group()) {
            by_group[at] += sums[state as usize];
        }
    }
    let (at, most) = by_group.iter().enumerate().rev().max_by_key(|(_, ns)| **ns)?;
    (*most > 0).then_some(at)
}

fn style(colour: Option<AnsiColor>) -> Style {
    Style::new().fg_color(colour.map(Color::Ansi))
}

/// Characters of a line without its escape sequences.
fn visible(line: &str) -> usize {
    let mut inside = false;
    line.chars()
        .filter(|c| {
            let escape = *c == '\u{1b}';
            let counts = !inside && !escape;
            inside = escape || (inside && *c != 'm');
            counts
        })
        .count()
}
