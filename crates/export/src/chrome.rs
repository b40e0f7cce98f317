//! Chrome's trace events as JSON, for chrome://tracing, Perfetto, and tools that read these.
//!
//! Complete events (`X`) in the order of their begins, flows (`s`, `f`), counters (`C`), names (`M`). Times are
//! microseconds from the begin of the run, with three decimals: nanoseconds.

use crate::ids::Ids;
use crate::timeline::{Arrow, Content, Export, Held, LaneKind, Record, Section, Timeline};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use taskscope_execution::ProcessIndex;

/// Writes trace events.
pub struct ChromeWriter<W: Write> {
    out: W,
    ids: Option<Ids>,
    begin: u64,
    is_first: bool,
}

impl<W: Write> ChromeWriter<W> {
    /// A document that goes to `out`.
    pub fn new(out: W) -> Self {
        ChromeWriter { out, ids: None, begin: 0, is_first: true }
    }

    /// The target, when the document is complete.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn ids(&self) -> io::Result<&Ids> {
        self.ids.as_ref().ok_or_else(|| io::Error::other("the document was not begun"))
    }

    /// Writes an event: the members that all have, and those of its kind.
    fn event(&mut self, phase: &str, lane: Where, time: Option<Time>, members: &Value) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
        let Where { process, lane } = lane;
        write!(self.out, "{separator}{{\"ph\":\"{phase}\",\"pid\":{process}")?;
        if let Some(lane) = lane {
            write!(self.out, ",\"tid\":{lane}")?;
        }
        if let Some(Time { at, length }) = time {
            write!(self.out, ",\"ts\":{}", Micros(at.saturating_sub(self.begin)))?;
            if let Some(length) = length {
                write!(self.out, ",\"dur\":{}", Micros(length))?;
            }
        }
        for (name, value) in members.as_object().into_iter().flatten() {
            write!(self.out, ",\"{name}\":")?;
            serde_json::to_writer(&mut self.out, value)?;
        }
        self.out.write_all(b"}")
    }

    fn place(&self, timeline: &Timeline<'_>, lane: u32) -> io::Result<Where> {
        let ids = self.ids()?;
        let process = ids.process(timeline.lanes()[lane as usize].process);
        Ok(Where { process, lane: Some(ids.lane(lane as usize)) })
    }

    fn names(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let mut named = std::collections::BTreeSet::new();
        for (number, lane) in timeline.lanes().iter().enumerate() {
            let place = self.place(timeline, number as u32)?;
            if named.insert(lane.process) {
                let name = timeline.process_name(lane.process);
                let process_place = Where { lane: None, ..place };
                let members = json!({"name": "process_name", "args": {"name": name}});
                self.event("M", process_place, None, &members)?;
            }
            self.event("M", place, None, &json!({"name": "thread_name", "args": {"name": lane.name}}))?;
            let members = json!({"name": "thread_sort_index", "args": {"sort_index": number}});
            self.event("M", place, None, &members)?;
        }
        Ok(())
    }

    fn section(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        let code = &timeline.codes()[section.code as usize];
        let mut args = Map::new();
        let collective = timeline.collective(section.part);
        // As PyTorch's profiler marks operations of devices.
        let stream = match timeline.lanes()[section.lane as usize].kind {
            LaneKind::Queue(number, _) => Some(u64::from(number)),
            _ => None,
        };
        let numbers: [(&str, Option<u64>); 6] = [
            ("task", timeline.task_number(section.task)),
            ("region", timeline.region_number(section.region)),
            (amount_name(timeline, section), Some(section.amount).filter(|amount| *amount > 0)),
            ("line", Some(code.line.into()).filter(|line| *line > 0)),
            ("operation", collective.as_ref().map(|of| of.operation)),
            ("stream", stream),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                args.insert(name.to_owned(), number.into());
            }
        }
        // Numbers beyond 2^53 are not exact in JSON.
        let communicator =
            collective.as_ref().map_or_else(String::new, |of| format!("{:#x}", of.communicator));
        let root = collective.and_then(|of| of.root).unwrap_or_default();
        let texts = [
            ("waits for", timeline.object(section.object)),
            ("file", &code.file),
            ("function", &code.function),
            ("communicator", &communicator),
            ("root", &root),
        ];
        for (name, text) in texts {
            if !text.is_empty() {
                args.insert(name.to_owned(), text.into());
            }
        }
        let mut members = json!({"name": code.name, "cat": code.kind});
        if !args.is_empty() {
            members["args"] = args.into();
        }
        let place = self.place(timeline, section.lane)?;
        let length = section.end - section.start;
        let time = Time { at: section.start, length: Some(length) };
        self.event("X", place, Some(time), &members)
    }

    /// The lists `stackFrames` and `samples`.
    fn samples(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let mut separator = ",\n\"stackFrames\":{\n";
        for (number, path) in timeline.call_paths().iter().enumerate() {
            let step = &timeline.steps()[path.step as usize];
            let name = match step.line {
                0 => step.function.clone(),
                line => format!("{} ({}:{line})", step.function, step.file),
            };
            let mut frame = json!({"name": name, "category": step.module});
            if let Some(caller) = path.caller {
                frame["parent"] = caller.to_string().into();
            }
            write!(self.out, "{separator}\"{number}\":{frame}")?;
            separator = ",\n";
        }
        separator = "},\n\"samples\":[\n";
        for sample in timeline.samples() {
            let tid = self.ids()?.lane(sample.lane as usize);
            let (at, weight) = (Micros(sample.at.saturating_sub(self.begin)), sample.weight_ns);
            write!(
                self.out,
                "{separator}{{\"cpu\":0,\"tid\":{tid},\"ts\":{at},\"name\":\"sample\",\"sf\":\"{}\",\"weight\":{weight}}}",
                sample.path
            )?;
            separator = ",\n";
        }
        self.out.write_all(b"]")
    }

    fn flow(&mut self, timeline: &Timeline<'_>, number: u32, arrow: &Arrow, is_end: bool) -> io::Result<()> {
        let place = self.place(timeline, if is_end { arrow.to } else { arrow.from })?;
        let mut members = json!({"id": number, "cat": arrow.kind.name(), "name": arrow.kind.name()});
        if is_end {
            // Bound to the section around it, not to the next one.
            members["bp"] = "e".into();
        }
        if arrow.bytes != u64::MAX {
            members["args"] = json!({"bytes": arrow.bytes});
        }
        let at = Some(Time { at: arrow.position(is_end), length: None });
        self.event(if is_end { "f" } else { "s" }, place, at, &members)
    }
}

fn amount_name(timeline: &Timeline<'_>, section: &Section) -> &'static str {
    match timeline.lanes()[section.lane as usize].kind {
        LaneKind::Doubts(..) => "lost events",
        _ => "bytes",
    }
}

/// Ids of a process and a lane.
#[derive(Clone, Copy)]
struct Where {
    process: i32,
    lane: Option<i32>,
}

/// Time of an event, and its length if it has one, nanoseconds.
#[derive(Clone, Copy)]
struct Time {
    at: u64,
    length: Option<u64>,
}

/// Nanoseconds as microseconds with three decimals.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl<W: Write> Export for ChromeWriter<W> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => Held::As("complete events of threads; those of CPUs on rows of their own"),
            Content::Places => Held::As("arguments `file`, `line`, `function`"),
            Content::TaskNumbers => Held::As("arguments `task` and `region`"),
            Content::Colours => Held::Not("the viewers derive colours from names"),
            Content::Creations
            | Content::Dependences
            | Content::Messages
            | Content::Submissions
            | Content::Wakes => Held::As("flow events"),
            Content::Collectives => Held::As(
                "complete events on rows of their own; arguments `communicator`, `operation`, `root`",
            ),
            Content::Counters => Held::As("counter events of processes"),
            Content::Operations => Held::As("complete events on rows of queues, in lanes"),
            Content::DeviceCalls => Held::As("complete events on rows of their own"),
            Content::Doubts | Content::ThreadWaits => Held::As("complete events on rows of their own"),
            Content::Samples => Held::As("lists `samples` and `stackFrames`; the weight is in ns"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.ids = Some(Ids::of(timeline));
        self.begin = timeline.range().0;
        self.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
        let other = json!({
            "run": timeline.run().name,
            "start_unix_ns": timeline.run().start_unix_ns.map(|ns| ns.to_string()),
            "origin_ns": self.begin.to_string(),
        });
        serde_json::to_writer(&mut self.out, &other)?;
        self.out.write_all(b",\"traceEvents\":[")?;
        self.names(timeline)
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => self.section(timeline, section),
            Record::Leave { .. } => Ok(()),
            Record::ArrowStart { number, arrow } => self.flow(timeline, *number, arrow, false),
            Record::ArrowEnd { number, arrow } => self.flow(timeline, *number, arrow, true),
            // They have lists of their own behind the events.
            Record::Sample(_) => Ok(()),
            Record::Counter { counter, at, value } => {
                let counter = &timeline.counters()[*counter as usize];
                let process: ProcessIndex = counter.process;
                let place = Where { process: self.ids()?.process(process), lane: None };
                let members = json!({"name": counter.name, "args": {"value": value}});
                self.event("C", place, Some(Time { at: *at, length: None }), &members)
            }
        }
    }

    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.out.write_all(b"\n]")?;
        if !timeline.samples().is_empty() {
            self.samples(timeline)?;
        }
        self.out.write_all(b"}\n")?;
        self.out.flush()
    }
}
