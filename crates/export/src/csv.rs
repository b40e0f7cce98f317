//! A run over time as one CSV table (RFC 4180), for spreadsheets and scripts: a row for each section, arrow and value.
//!
//! All rows have the same columns, in the order of [`COLUMNS`]; those without a meaning for a row are empty. Rows are in
//! the order of their first time.
//!
//! Names come from recorded programs. Spreadsheets take a field that begins with `=`, `+`, `-` or `@` for a formula, also
//! if it is quoted: such a name has an apostrophe before it, and so has a name that begins with one.

use crate::timeline::{Content, Export, Held, LaneKind, Record, Section, Timeline};
use std::io::{self, Write};

/// The columns. Times are nanoseconds since the begin of the run.
pub const COLUMNS: [&str; 20] = [
    "kind",
    "process",
    "lane",
    "start_ns",
    "end_ns",
    "name",
    "state",
    "task",
    "region",
    "awaits",
    "file",
    "line",
    "function",
    "amount",
    "to_process",
    "to_lane",
    "value",
    "number",
    "communicator",
    "root",
];

/// Writes a table.
pub struct CsvWriter<W: Write> {
    out: W,
    begin: u64,
}

/// A row; empty texts and absent numbers are empty fields.
#[derive(Default)]
struct Row<'a> {
    kind: &'a str,
    process: &'a str,
    lane: &'a str,
    start: u64,
    end: Option<u64>,
    name: &'a str,
    state: &'a str,
    task: Option<u64>,
    region: Option<u64>,
    awaits: &'a str,
    file: &'a str,
    line: Option<u64>,
    function: &'a str,
    amount: Option<u64>,
    to_process: &'a str,
    to_lane: &'a str,
    value: Option<i64>,
    number: Option<u64>,
    communicator: Option<u64>,
    root: &'a str,
}

impl<W: Write> CsvWriter<W> {
    /// A table that goes to `out`.
    pub fn new(out: W) -> Self {
        CsvWriter { out, begin: 0 }
    }

    /// The target, when the table is complete.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let out = &mut self.out;
        let time = |at: u64| at.saturating_sub(self.begin);
        write!(out, "{},{},{},", row.kind, Field(row.process), Field(row.lane))?;
        write!(out, "{},{},", time(row.start), Number(row.end.map(time)))?;
        write!(out, "{},{},{},{},", Field(row.name), Field(row.state), Number(row.task), Number(row.region))?;
        write!(
            out,
            "{},{},{},{},",
            Field(row.awaits),
            Field(row.file),
            Number(row.line),
            Field(row.function)
        )?;
        write!(out, "{},{},{},", Number(row.amount), Field(row.to_process), Field(row.to_lane))?;
        write!(out, "{},{},", Number(row.value), Number(row.number))?;
        write!(out, "{},{}\r\n", Number(row.communicator), Field(row.root))
    }

    fn section(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        let (lane, code) =
            (&timeline.lanes()[section.lane as usize], &timeline.codes()[section.code as usize]);
        let kind = match lane.kind {
            LaneKind::Thread(_) => "section",
            LaneKind::Cpu(_) => "section of a CPU",
            LaneKind::Queue(..) => "device operation",
            LaneKind::Calls(..) => "device call",
            LaneKind::Doubts(..) => "uncertain",
            LaneKind::Waits(..) => "wait",
            LaneKind::Collectives(..) => "collective",
        };
        let collective = timeline.collective(section.part);
        let root = collective.as_ref().and_then(|of| of.root.as_deref());
        self.row(&Row {
            kind,
            process: timeline.process_name(lane.process),
            lane: &lane.name,
            start: section.start,
            end: Some(section.end),
            name: &code.name,
            state: &code.kind,
            task: timeline.task_number(section.task),
            region: timeline.region_number(section.region),
            awaits: timeline.object(section.object),
            file: &code.file,
            line: Some(u64::from(code.line)).filter(|line| *line > 0),
            function: &code.function,
            amount: Some(section.amount).filter(|amount| *amount > 0),
            number: collective.as_ref().map(|of| of.operation),
            communicator: collective.as_ref().map(|of| of.communicator),
            root: root.unwrap_or_default(),
            ..Row::default()
        })
    }
}

/// A text as a field: in quotation marks if it has a separator, a quotation mark or a line end, after an apostrophe if it
/// could be taken for a formula.
struct Field<'a>(&'a str);

/// First characters of texts that get an apostrophe: those of formulas, blanks that spreadsheets skip, and the apostrophe
/// itself, so that the text is what follows the first one.
const MARKED: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.0.starts_with(MARKED) { "'" } else { "" };
        if self.0.contains([',', '"', '\n', '\r']) {
            write!(f, "\"{mark}{}\"", self.0.replace('"', "\"\""))
        } else {
            write!(f, "{mark}{}", self.0)
        }
    }
}

/// A number, or an empty field.
struct Number<N>(Option<N>);

impl<N: std::fmt::Display> std::fmt::Display for Number<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |number| number.fmt(f))
    }
}

impl<W: Write> Export for CsvWriter<W> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => Held::As("rows `section`; those of CPUs are rows `section of a CPU`"),
            Content::Places => Held::As("columns `file`, `line`, `function`"),
            Content::TaskNumbers => Held::As("columns `task` and `region`"),
            Content::Colours => Held::Not("a table has no colours; column `state` names the state"),
            Content::Creations => Held::As("rows `creation`"),
            Content::Dependences => Held::As("rows `dependence`"),
            Content::Messages => Held::As("rows `message`; their bytes are in `amount`"),
            Content::Submissions => Held::As("rows `submission`"),
            Content::Collectives => Held::As("rows `collective`; the operation is in `number`"),
            Content::Counters => Held::As("rows `counter`, with the new value"),
            Content::Operations => Held::As("rows `device operation`"),
            Content::DeviceCalls => Held::As("rows `device call`"),
            Content::Doubts => Held::As("rows `uncertain`"),
            Content::ThreadWaits => Held::As("rows `wait`"),
            Content::Wakes => Held::As("rows `wake`"),
            Content::Samples => Held::Not("call paths are in --to pprof, speedscope, flamegraph"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.begin = timeline.range().0;
        write!(self.out, "{}\r\n", COLUMNS.join(","))
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => self.section(timeline, section),
            Record::ArrowStart { number, arrow } => {
                let [from, to] = [arrow.from, arrow.to].map(|lane| &timeline.lanes()[lane as usize]);
                self.row(&Row {
                    kind: arrow.kind.name(),
                    process: timeline.process_name(from.process),
                    lane: &from.name,
                    start: arrow.start,
                    end: Some(arrow.end),
                    task: timeline.task_number(arrow.task),
                    amount: Some(arrow.bytes).filter(|bytes| *bytes != u64::MAX),
                    to_process: timeline.process_name(to.process),
                    to_lane: &to.name,
                    number: Some(u64::from(*number)),
                    ..Row::default()
                })
            }
            // Their rows are written at their begins.
            Record::Leave { .. } | Record::ArrowEnd { .. } => Ok(()),
            Record::Sample(_) => Ok(()),
            Record::Counter { counter, at, value } => {
                let counter = &timeline.counters()[*counter as usize];
                self.row(&Row {
                    kind: "counter",
                    process: timeline.process_name(counter.process),
                    start: *at,
                    name: counter.name,
                    value: Some(*value),
                    ..Row::default()
                })
            }
        }
    }

    fn end(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn separators_and_quotation_marks_are_quoted() {
        for (text, field) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("a\nb", "\"a\nb\""),
        ] {
            assert_eq!(Field(text).to_string(), field);
        }
    }

    #[test]
    fn names_like_formulas_are_marked() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("+[Run start]", "'+[Run start]"),
            ("-[Run x:y,z]", "\"'-[Run x:y,z]\""),
            ("@main", "'@main"),
            ("'=x", "''=x"),
            ("\t=1", "'\t=1"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(Field(text).to_string(), field);
        }
    }
}
