//! Pajé's trace, for ViTE, pj_dump and StarVZ.
//!
//! Containers: the run, its processes, their lanes. States of a lane are pushed and popped; arrows are links; counters
//! are variables of processes. The format wants all times in order, which records have. Times are seconds from the
//! begin, with nine decimals.

use crate::timeline::{ArrowKind, Content, Export, Held, Record, Timeline};
use std::collections::BTreeMap;
use std::io::{self, Write};
use taskscope_execution::ProcessIndex;

/// The kinds of lines: number, name, fields.
const LINES: &str = "\
%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineVariableType 2
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeDefineLinkType 3
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 4
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 5
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 6
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajePushState 7
% Time date
% Type string
% Container string
% Value string
% Task string
%EndEventDef
%EventDef PajePopState 8
% Time date
% Type string
% Container string
%EndEventDef
%EventDef PajeSetVariable 9
% Time date
% Type string
% Container string
% Value double
%EndEventDef
%EventDef PajeStartLink 10
% Time date
% Type string
% Container string
% StartContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeEndLink 11
% Time date
% Type string
% Container string
% EndContainer string
% Value string
% Key string
%EndEventDef
";

/// Writes a trace of Pajé.
pub struct PajeWriter<W: Write> {
    out: W,
    begin: u64,
    last: u64,
}

impl<W: Write> PajeWriter<W> {
    /// A trace that goes to `out`.
    pub fn new(out: W) -> Self {
        PajeWriter { out, begin: 0, last: 0 }
    }

    /// The target, when the trace is complete.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn seconds(&self, at: u64) -> Seconds {
        Seconds(at.saturating_sub(self.begin))
    }

    fn types(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let out = &mut self.out;
        for (alias, parent, name) in [("R", "0", "run"), ("P", "R", "process"), ("L", "P", "lane")] {
            writeln!(out, "0 {alias} {parent} {name}")?;
        }
        writeln!(out, "1 S L state")?;
        let mut variables: BTreeMap<&str, u32> = BTreeMap::new();
        for (counter, number) in timeline.counters().iter().zip(0..) {
            variables.entry(counter.name).or_insert(number);
        }
        for name in variables.keys() {
            writeln!(out, "2 {} P {} \"0.3 0.3 0.3\"", Quoted(name), Quoted(name))?;
        }
        for kind in ArrowKind::ALL {
            writeln!(out, "3 {} R L L {}", link(kind), kind.name())?;
        }
        for (number, code) in timeline.codes().iter().enumerate() {
            let [red, green, blue] = colour(code.colour().unwrap_or("#808080"));
            writeln!(out, "4 C{number} S {} \"{red:.3} {green:.3} {blue:.3}\"", Quoted(&code.name))?;
        }
        Ok(())
    }

    fn containers(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let out = &mut self.out;
        writeln!(out, "5 {} run R 0 {}", Seconds(0), Quoted(&timeline.run().name))?;
        let mut known = std::collections::BTreeSet::new();
        for (number, lane) in timeline.lanes().iter().enumerate() {
            let process = process(lane.process, timeline);
            if known.insert(process) {
                let name = timeline.process_name(lane.process);
                // Containers have different names.
                writeln!(out, "5 {} P{process} P run {}", Seconds(0), Quoted(&format!("{name} #{process}")))?;
            }
            let name = format!("{} #{number}", lane.name);
            writeln!(out, "5 {} L{number} L P{process} {}", Seconds(0), Quoted(&name))?;
        }
        Ok(())
    }
}

/// A process's number; that of lanes without one follows them.
fn process(process: ProcessIndex, timeline: &Timeline<'_>) -> u32 {
    process.0.min(timeline.execution().processes.len() as u32)
}

fn link(kind: ArrowKind) -> &'static str {
    match kind {
        ArrowKind::Creation => "AC",
        ArrowKind::Dependence => "AD",
        ArrowKind::Message => "AM",
        ArrowKind::Submission => "AS",
        ArrowKind::Wake => "AW",
    }
}

/// Parts of red, green and blue of `#rrggbb`, from 0 to 1.
fn colour(text: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let part = text.get(at..at + 2).and_then(|part| u8::from_str_radix(part, 16).ok());
        f64::from(part.unwrap_or(128)) / 255.0
    })
}

/// Nanoseconds as seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A text in quotation marks; the format has no form for these and for line ends in it.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = |c: char| match c {
            '"' => '\'',
            c if c.is_control() => ' ',
            c => c,
        };
        write!(f, "\"{}\"", self.0.chars().map(plain).collect::<String>())
    }
}

impl<W: Write> Export for PajeWriter<W> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => Held::As("states of containers; those of CPUs in containers of their own"),
            Content::Places => {
                Held::Not("states have names only, which end in file and line if these are known")
            }
            Content::TaskNumbers => Held::As("field `Task` of states; regions are lost"),
            Content::Colours => Held::As("colours of states"),
            Content::Creations
            | Content::Dependences
            | Content::Messages
            | Content::Submissions
            | Content::Wakes => Held::As("links; sizes of messages are lost"),
            Content::Collectives => {
                Held::As("states of containers of their own; communicators, roots and bytes are lost")
            }
            Content::Counters => Held::As("variables of processes"),
            Content::Operations => Held::As("states of containers of queues, in lanes; bytes are lost"),
            Content::DeviceCalls | Content::Doubts | Content::ThreadWaits => {
                Held::As("states of containers of their own")
            }
            Content::Samples => Held::Not("call paths are in --to pprof, speedscope, flamegraph"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.begin = timeline.range().0;
        self.out.write_all(LINES.as_bytes())?;
        self.types(timeline)?;
        self.containers(timeline)
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => {
                let task =
                    timeline.task_number(section.task).map_or_else(String::new, |task| task.to_string());
                let (at, lane, code) = (self.seconds(section.start), section.lane, section.code);
                writeln!(self.out, "7 {at} S L{lane} C{code} \"{task}\"")
            }
            Record::Leave { section, .. } => {
                self.last = self.last.max(section.end);
                writeln!(self.out, "8 {} S L{}", self.seconds(section.end), section.lane)
            }
            Record::ArrowStart { number, arrow } => {
                let (at, kind) = (self.seconds(arrow.position(false)), arrow.kind);
                writeln!(self.out, "10 {at} {} run L{} {} {number}", link(kind), arrow.from, kind.name())
            }
            Record::ArrowEnd { number, arrow } => {
                let (at, kind) = (self.seconds(arrow.position(true)), arrow.kind);
                writeln!(self.out, "11 {at} {} run L{} {} {number}", link(kind), arrow.to, kind.name())
            }
            Record::Sample(_) => Ok(()),
            Record::Counter { counter, at, value } => {
                self.last = self.last.max(*at);
                let (at, counter) = (self.seconds(*at), &timeline.counters()[*counter as usize]);
                writeln!(self.out, "9 {at} {} P{} {value}", Quoted(counter.name), counter.process.0)
            }
        }
    }

    fn end(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        // Destroys all below it, too.
        writeln!(self.out, "6 {} R run", self.seconds(self.last.max(self.begin)))?;
        self.out.flush()
    }
}
