//! The Firefox Profiler's processed profile, version 55 (JSON), for profiler.firefox.com, its offline builds and
//! `profiler-cli`.
//!
//! ```text
//! lanes      ▶ threads
//! sections   ▶ interval markers with task, region, awaited object; and samples with their length as weight: the state's
//!              name above the code's, so that the call tree has times by state, and the stack chart the sections
//! arrows     ▶ two markers with the same flow
//! counters   ▶ markers with a graph, on the first thread of their process
//! ```
//!
//! The format has a table per thread, with a list per column. Records come in the order of time: the elements of each list
//! are collected by [`SortedLines`], so that memory holds the names alone.
//!
//! Source: `docs-developer/CHANGELOG-formats.md` and `src/types/profile.ts` of the Firefox Profiler.

mod tables;

use crate::SortedLines;
use crate::ids::Ids;
use crate::timeline::{Arrow, Content, Counter, Export, Held, LaneKind, Record, Section, Timeline};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use tables::{LaneTables, category_of, meta};

/// The lists of a thread, in the order of the file; a list begins with its opening text.
#[derive(Clone, Copy)]
enum List {
    SampleStack,
    SampleTime,
    SampleWeight,
    MarkerData,
    MarkerName,
    MarkerStart,
    MarkerEnd,
    MarkerPhase,
    MarkerCategory,
    Strings,
    End,
}

/// Lists of a thread.
const LISTS: u64 = 16;
/// Texts before the lists; those of samples and of markers end with their number.
const BEGINS: [&str; 10] = [
    "\"samples\":{\"weightType\":\"tracing-ms\",\"stack\":[",
    "],\"time\":[",
    "],\"weight\":[",
    "\"markers\":{\"data\":[",
    "],\"name\":[",
    "],\"startTime\":[",
    "],\"endTime\":[",
    "],\"phase\":[",
    "],\"category\":[",
    "\"stringArray\":[",
];

/// Writes a profile.
pub struct FirefoxWriter<W: Write> {
    out: W,
    lines: SortedLines,
    lanes: Vec<LaneTables>,
    /// The lane that has the counters of a process, by counter.
    counters: Vec<u32>,
    begin: u64,
}

impl<W: Write> FirefoxWriter<W> {
    /// A profile that goes to `out`. Lists beyond a memory limit are kept in an unnamed file beside `path`.
    pub fn new(out: W, path: &Path) -> Self {
        let lines = SortedLines::beside(path);
        FirefoxWriter { out, lines, lanes: Vec::new(), counters: Vec::new(), begin: 0 }
    }

    /// The target, when the profile is complete.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn element(&mut self, lane: u32, list: List, value: std::fmt::Arguments<'_>) -> io::Result<()> {
        let separator = if self.lanes[lane as usize].is_first(list as usize) { "" } else { "," };
        let key = u64::from(lane) * LISTS + list as u64;
        self.lines.push(key, |line| drop(write!(line, "{separator}{value}")))
    }

    fn text(&mut self, lane: u32, list: List, value: &str) -> io::Result<()> {
        self.lines
            .push(u64::from(lane) * LISTS + list as u64, |line| line.extend_from_slice(value.as_bytes()))
    }

    fn time(&self, at: u64) -> Milliseconds {
        Milliseconds(at.saturating_sub(self.begin))
    }

    /// The number of a string in a thread.
    fn string(&mut self, lane: u32, text: &str) -> io::Result<u32> {
        let (number, is_new) = self.lanes[lane as usize].string(text);
        if is_new {
            self.element(lane, List::Strings, format_args!("{}", json!(text)))?;
        }
        Ok(number)
    }

    fn sample(&mut self, lane: u32, at: u64, stack: Option<u32>, length: u64) -> io::Result<()> {
        match stack {
            Some(stack) => self.element(lane, List::SampleStack, format_args!("{stack}"))?,
            None => self.element(lane, List::SampleStack, format_args!("null"))?,
        }
        let time = self.time(at);
        self.element(lane, List::SampleTime, format_args!("{time}"))?;
        self.lanes[lane as usize].samples += 1;
        self.element(lane, List::SampleWeight, format_args!("{}", Milliseconds(length)))
    }

    fn marker(&mut self, lane: u32, marker: &Marker<'_>) -> io::Result<()> {
        let name = self.string(lane, marker.name)?;
        let (start, end) = (self.time(marker.start), marker.end.map(|end| self.time(end)));
        self.element(lane, List::MarkerData, format_args!("{}", marker.data))?;
        self.element(lane, List::MarkerName, format_args!("{name}"))?;
        self.element(lane, List::MarkerStart, format_args!("{start}"))?;
        match end {
            Some(end) => self.element(lane, List::MarkerEnd, format_args!("{end}"))?,
            None => self.element(lane, List::MarkerEnd, format_args!("null"))?,
        }
        self.lanes[lane as usize].markers += 1;
        self.element(lane, List::MarkerPhase, format_args!("{}", u8::from(end.is_some())))?;
        self.element(lane, List::MarkerCategory, format_args!("{}", marker.category))
    }

    fn section(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        let (lane, code) = (section.lane, &timeline.codes()[section.code as usize]);
        if let Some(end) =
            self.lanes[lane as usize].end.replace(section.end).filter(|end| *end < section.start)
        {
            self.sample(lane, end, None, 0)?;
        }
        let stack = self.lanes[lane as usize].stack_of(section.code, code);
        self.sample(lane, section.start, Some(stack), section.end - section.start)?;
        let mut data = Map::new();
        data.insert("type".into(), "section".into());
        data.insert("state".into(), code.kind.as_str().into());
        let is_doubt = matches!(timeline.lanes()[lane as usize].kind, LaneKind::Doubts(..));
        let collective = timeline.collective(section.part);
        let numbers = [
            ("task", timeline.task_number(section.task)),
            ("region", timeline.region_number(section.region)),
            (if is_doubt { "lost" } else { "bytes" }, Some(section.amount).filter(|amount| *amount > 0)),
            ("operation", collective.as_ref().map(|of| of.operation)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                data.insert(name.into(), number.into());
            }
        }
        let object = timeline.object(section.object);
        if !object.is_empty() {
            data.insert("awaits".into(), object.into());
        }
        if let Some(of) = &collective {
            // Numbers beyond 2^53 are not exact in JSON.
            data.insert("communicator".into(), format!("{:#x}", of.communicator).into());
        }
        if let Some(root) = collective.and_then(|of| of.root) {
            data.insert("root".into(), root.into());
        }
        if !code.file.is_empty() {
            data.insert("source".into(), format!("{}:{}", code.file, code.line).into());
        }
        let marker = Marker {
            name: &code.name,
            start: section.start,
            end: Some(section.end),
            category: category_of(code.state),
            data: data.into(),
        };
        self.marker(lane, &marker)
    }

    fn flow(&mut self, number: u32, arrow: &Arrow, is_end: bool) -> io::Result<()> {
        let lane = if is_end { arrow.to } else { arrow.from };
        let id = self.lanes[lane as usize].next_string();
        self.element(lane, List::Strings, format_args!("\"flow {number}\""))?;
        let (ty, field) = if is_end { ("arrow end", "ends") } else { ("arrow begin", "begins") };
        let mut data = json!({"type": ty, field: id});
        if arrow.bytes != u64::MAX {
            data["bytes"] = arrow.bytes.into();
        }
        let start = arrow.position(is_end);
        self.marker(lane, &Marker { name: arrow.kind.name(), start, end: None, category: 0, data })
    }
}

struct Marker<'a> {
    name: &'a str,
    start: u64,
    end: Option<u64>,
    category: usize,
    data: Value,
}

/// Nanoseconds as milliseconds with six decimals.
#[derive(Clone, Copy)]
struct Milliseconds(u64);

impl std::fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl<W: Write> Export for FirefoxWriter<W> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => {
                Held::As("markers and samples of threads; those of CPUs on threads of their own")
            }
            Content::Places => Held::As("file and line of functions, field `source` of markers"),
            Content::TaskNumbers => Held::As("fields `task` and `region` of markers"),
            Content::Colours => Held::As("categories: a colour for each group of states"),
            Content::Creations
            | Content::Dependences
            | Content::Messages
            | Content::Submissions
            | Content::Wakes => Held::As("pairs of markers with one flow"),
            Content::Collectives => Held::As(
                "markers and samples of threads of their own; fields `communicator`, `operation`, `root`",
            ),
            Content::Counters => Held::As("markers with a graph, on the first thread of a process"),
            Content::Operations => Held::As("markers and samples of threads of queues, in lanes"),
            Content::DeviceCalls | Content::Doubts | Content::ThreadWaits => {
                Held::As("markers and samples of threads of their own")
            }
            Content::Samples => Held::Not("call paths are in --to pprof, speedscope, flamegraph"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.begin = timeline.range().0;
        let ids = Ids::of(timeline);
        let mut processes = std::collections::HashSet::new();
        for (number, lane) in timeline.lanes().iter().enumerate() {
            self.lanes.push(LaneTables::default());
            let first = self.time(if lane.first == 0 { self.begin } else { lane.first });
            let head = json!({
                "name": lane.name,
                "isMainThread": processes.insert(lane.process),
                "processName": timeline.process_name(lane.process),
                "processType": "default",
                "pid": ids.process(lane.process).to_string(),
                "tid": ids.lane(number),
            });
            let head = head.to_string();
            let comma = if number == 0 { "" } else { "," };
            let text = format!(
                "{comma}\n{},\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":{first},\
                 \"unregisterTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,{}",
                &head[..head.len() - 1],
                BEGINS[0]
            );
            let lane = number as u32;
            self.text(lane, List::SampleStack, &text)?;
            let lists = [
                List::SampleTime,
                List::SampleWeight,
                List::MarkerData,
                List::MarkerName,
                List::MarkerStart,
                List::MarkerEnd,
                List::MarkerPhase,
                List::MarkerCategory,
                List::Strings,
            ];
            for list in lists {
                self.text(lane, list, BEGINS[list as usize])?;
            }
        }
        let first_lanes = timeline.first_lanes();
        let lane = |counter: &Counter| first_lanes.get(&counter.process).copied().unwrap_or(0);
        self.counters = timeline.counters().iter().map(lane).collect();
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => self.section(timeline, section),
            Record::Leave { .. } => Ok(()),
            Record::ArrowStart { number, arrow } => self.flow(*number, arrow, false),
            Record::ArrowEnd { number, arrow } => self.flow(*number, arrow, true),
            Record::Sample(_) => Ok(()),
            Record::Counter { counter, at, value } => {
                let (lane, name) =
                    (self.counters[*counter as usize], timeline.counters()[*counter as usize].name);
                let data = json!({"type": name, "value": value});
                self.marker(lane, &Marker { name, start: *at, end: None, category: 0, data })
            }
        }
    }

    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        for lane in 0..self.lanes.len() as u32 {
            if let Some(end) = self.lanes[lane as usize].end {
                self.sample(lane, end, None, 0)?;
            }
            let codes = self.lanes[lane as usize].codes().to_vec();
            let mut strings = Vec::new();
            for code in codes {
                let code = &timeline.codes()[code as usize];
                let mut of = |text: &str| self.string(lane, text);
                strings.push([of(&code.kind)?, of(&code.name)?, of(&code.file)?]);
            }
            let LaneTables { samples, markers, .. } = self.lanes[lane as usize];
            self.text(lane, List::SampleWeight, &format!("],\"length\":{samples}}},"))?;
            self.text(lane, List::MarkerCategory, &format!("],\"length\":{markers}}},"))?;
            let tables = self.lanes[lane as usize].finish(timeline.codes(), &strings);
            self.text(lane, List::End, &tables)?;
        }
        write!(self.out, "{{\"meta\":{},\"libs\":[],\"pages\":[],\"threads\":[", meta(timeline))?;
        let lines = std::mem::replace(&mut self.lines, SortedLines::beside(Path::new(".")));
        lines.write_to(&mut self.out)?;
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}
