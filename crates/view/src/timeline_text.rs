//! The run as lines of a terminal: one line for each thread, one character for each piece of time.

use crate::format::{Cell, columns as columns_of, count, counted, fit, harmless, time, visible};
use anstyle::{Ansi256Color, AnsiColor, Color, Style};
use std::fmt::Write;
use taskscope_execution::devices::{Class, Devices, Queue};
use taskscope_execution::lod::{Flags, Timeline};
use taskscope_execution::{Execution, Group, State, ThreadIndex, ThreadKind};

/// Threads that are printed; of more, these are spread evenly over all.
const LINES: usize = 64;

/// The character and colour of a group of states, and its word in the legend.
fn look(group: Group) -> (char, Option<AnsiColor>, &'static str) {
    let colour = group.ansi().and_then(|number| Ansi256Color(number).into_ansi());
    (group.glyph(), colour, group.label())
}

/// Appearance of device queues by class of time: character, colour, word in the legend.
const DEVICE_LOOKS: [(char, Option<AnsiColor>, &str); 4] = [
    ('■', Some(AnsiColor::Blue), "queue computes"),
    ('□', Some(AnsiColor::Cyan), "queue copies"),
    ('▪', Some(AnsiColor::Blue), "queue mostly idle"),
    ('·', None, "queue idle"),
];

/// The timeline in lines of at most `width` characters, with ANSI styles: one per thread, then one per device
/// queue. Each character shows the group of states with most time in its interval, computed exactly. Without
/// colour, groups have different characters.
pub fn timeline_text(execution: &Execution, devices: &Devices, timeline: &Timeline, width: usize) -> String {
    let queues: Vec<&Queue> = devices.queues.iter().filter(|queue| range_of(queue).is_some()).collect();
    let of_queues = queues.iter().filter_map(|queue| range_of(queue));
    let of_threads = Some(execution.range()).filter(|(start, end)| end > start);
    let Some((start, end)) = of_queues.chain(of_threads).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        return NOTHING.to_string();
    };
    let mut all: Vec<ThreadIndex> = (0..execution.threads.len() as u32)
        .map(ThreadIndex)
        .filter(|index| {
            let thread = &execution.threads[index.index()];
            thread.events > 0 || thread.kind == ThreadKind::Cpu
        })
        .collect();
    execution.sort_by_rank(&mut all);
    let mut text = String::new();
    if all.is_empty() && queues.is_empty() || end <= start {
        return NOTHING.to_string();
    }
    let shown: Vec<ThreadIndex> = all.iter().copied().step_by(all.len().div_ceil(LINES).max(1)).collect();
    let several = execution.processes.len() > 1;
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
        let mark = if thread.worker { "" } else { "*" };
        match harmless(&thread.name) {
            none if none.is_empty() => format!("{process}{}{mark}", thread.tid),
            name => format!("{process}{} {name}{mark}", thread.tid),
        }
    };
    let labels = shown.iter().map(|index| name(*index)).chain(queues.iter().map(|queue| queue.name.clone()));
    let label = labels.map(|name| columns_of(&name)).max().unwrap_or(0).clamp(6, 26);
    let columns = width.saturating_sub(label + 2).clamp(20, 400);
    let edge = |column: usize| start + ((u128::from(end - start) * column as u128) / columns as u128) as u64;
    let mut occurs = [false; Group::ALL.len()];
    let piece = |column: usize| (edge(column), edge(column + 1).max(edge(column) + 1));
    for index in &shown {
        let glyphs = (0..columns).map(|column| {
            let (from, to) = piece(column);
            let group = match dominant(timeline.sums(execution, *index, from, to)) {
                Some(_) if timeline.is_marked(*index, Flags::UNCERTAIN, from, to) => Some(Group::Unknown),
                group => group,
            };
            match group {
                Some(group) => {
                    occurs[group as usize] = true;
                    let (glyph, colour, _) = look(group);
                    (glyph, colour)
                }
                None => (' ', None),
            }
        });
        write_line(&mut text, &fit(&name(*index), label), label, glyphs);
    }
    let mut devices_occur = [false; DEVICE_LOOKS.len()];
    for queue in queues.iter().take(LINES) {
        let busy = busy_in(queue, (0..columns).map(piece));
        let glyphs = busy.into_iter().enumerate().map(|(column, (kernels, copies))| {
            let (from, to) = piece(column);
            let at = match kernels + copies {
                0 => 3,
                busy if 2 * busy < to - from => 2,
                _ if kernels >= copies => 0,
                _ => 1,
            };
            devices_occur[at] = true;
            (DEVICE_LOOKS[at].0, DEVICE_LOOKS[at].1)
        });
        write_line(&mut text, &fit(&queue.name, label), label, glyphs);
    }
    let length = time(end - start);
    let gap = columns.saturating_sub(1 + columns_of(&length));
    let _ = writeln!(text, "{:>label$}  0{}{length}", "", " ".repeat(gap));
    let mut line = format!("{:>label$} ", "");
    let groups =
        Group::ALL.into_iter().zip(occurs).filter(|(_, occurs)| *occurs).map(|(group, _)| look(group));
    let of_devices = DEVICE_LOOKS.into_iter().zip(devices_occur).filter(|(_, occurs)| *occurs);
    for (glyph, colour, word) in groups.chain(of_devices.map(|(look, _)| look)) {
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
    if shown.len() < all.len() {
        let _ = writeln!(
            text,
            "{} of {}, evenly chosen; `taskscope view` shows all",
            shown.len(),
            counted(all.len() as u64, "thread")
        );
    }
    if queues.len() > LINES {
        let _ = writeln!(
            text,
            "{LINES} of {} device queues; `taskscope view` shows all",
            count(queues.len() as u64)
        );
    }
    if shown.iter().any(|index| !execution.threads[index.index()].worker) {
        let _ = writeln!(text, "* not a worker");
    }
    text
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

/// The group with most time, the earlier of equals.
fn dominant(sums: [u64; taskscope_execution::lod::CLASSES]) -> Option<Group> {
    let mut by_group = [0_u64; Group::ALL.len()];
    for state in State::ALL {
        by_group[state.group() as usize] += sums[state as usize];
    }
    let (group, most) = Group::ALL.into_iter().zip(by_group).rev().max_by_key(|(_, ns)| *ns)?;
    (most > 0).then_some(group)
}

fn style(colour: Option<AnsiColor>) -> Style {
    Style::new().fg_color(colour.map(Color::Ansi))
}
