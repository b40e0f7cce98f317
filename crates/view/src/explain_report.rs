//! The document of `explain`: names with their explanations, or a finding with its parts; its JSON and its text.

use crate::documents::{Named, some_text};
use crate::explain::{self, Explanation, summary};
use crate::findings::{FindingRow, Findings, Whose, finding_row};
use crate::format::{self, Unit};
use crate::named_finding::NamedFinding;
use crate::runtime_names::{Counts, RUNTIME_NAMES, RuntimeName};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use taskscope_analysis::Analysis;
use taskscope_cause::{Cause, Runtime, State};
use taskscope_session::Session;

/// Characters of a line of text.
const WIDTH: usize = 90;
/// Characters of a line of the list, and of its first column at most.
const LIST_WIDTH: usize = 80;
const MAX_COLUMN: usize = 34;

/// Explanations of names, or of a finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-explain/1")]
pub struct Explained {
    /// The finding with the requested number; absent for a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<ExplainedFinding>,
    /// The explained names; of a finding its pattern, its cause, and what is blamed.
    pub names: Vec<ExplainedName>,
}

/// A finding, and the time that it is a part of.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplainedFinding {
    /// The finding.
    #[serde(flatten)]
    pub row: FindingRow,
    /// The time that it is a part of, nanoseconds.
    pub base_ns: u64,
    /// The owners of that time.
    #[serde(rename = "findings_of")]
    pub whose: Whose,
    /// Notes on the filter.
    pub notes: Vec<String>,
}

/// The explanation of a name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplainedName {
    /// The name.
    pub name: String,
    /// The kind of thing that has the name.
    pub kind: String,
    /// The meaning.
    pub meaning: String,
    /// The computation.
    pub computed: Option<String>,
    /// The usual remedy.
    pub helps: Option<String>,
    /// What is blamed.
    pub blamed: Option<String>,
    /// Published names of the same thing.
    pub published: Option<String>,
    /// The cause of a state.
    pub cause: Option<Named<Cause>>,
    /// How the time of a runtime's name counts.
    pub counts: Option<CountedAs>,
    /// The events that begin and end what a runtime's name stands for.
    pub events: Vec<String>,
    /// Remedies in the words of runtimes.
    pub advice: Vec<Advice>,
}

/// How the time of a runtime's name counts.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "as", rename_all = "snake_case")]
pub enum CountedAs {
    /// As the time of a state, and so of its cause.
    State {
        /// The state.
        state: Named<State>,
        /// Its cause.
        cause: Named<Cause>,
    },
    /// As other open sections of the thread.
    OpenSections,
    /// It takes no time of a worker.
    Nothing,
}

/// A remedy in the words of runtimes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Advice {
    /// The runtimes.
    pub runtimes: Vec<&'static str>,
    /// The remedy.
    pub text: &'static str,
}

/// All names by group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-names/1")]
pub struct NameList {
    /// The groups.
    pub groups: Vec<NameGroup>,
}

/// Names of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NameGroup {
    /// Its heading.
    pub title: String,
    /// Its names.
    pub names: Vec<NameRow>,
}

/// A name and its meaning.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct NameRow {
    /// The name.
    pub name: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

/// Options that several subcommands have.
const OPTIONS: &[(&str, &str)] = &[
    ("--section NAME", "Parts of a report, or `all`."),
    ("--where FILTER", "Only events that pass the filter (docs/filter.md)."),
    ("--range BEGIN..END", "Only this part of the time, such as 1.5s..2s or 10%..20%."),
    ("--top N", "Maximum rows of each table."),
    ("--allow NAME", "Suppresses notices of this name."),
    ("--json", "Prints JSON with a documented schema."),
    ("--html FILE", "Writes the report as one page."),
];

impl Explained {
    /// Explains a name of reports and of runtimes; advice in the words of `runtime`, or of all.
    pub fn from_name(name: &str, runtime: Option<Runtime>) -> Explained {
        let report_names = explain::find(name).into_iter();
        let names = report_names.map(|row| ExplainedName::of(&row, true).with_vocabulary(&row, runtime));
        let runtime_names =
            crate::runtime_names::find(name).into_iter().map(ExplainedName::from_runtime_name);
        Explained { finding: None, names: names.chain(runtime_names).collect() }
    }

    /// Explains a finding of these findings. The deciding part has the advice, in the words of `runtime`, unless the
    /// finding has its own; hangs and code are those of a trace.
    pub fn from_finding(
        findings: &Findings,
        finding: &NamedFinding,
        runtime: Option<Runtime>,
        trace: Option<(&Session, &Analysis)>,
    ) -> Explained {
        let row = finding_row(finding.clone(), trace);
        let has_advice = row.hang.as_ref().is_some_and(|hang| !hang.advice.is_empty());
        let decides = finding.deciding().name;
        let shape = finding.pattern.map(Explanation::from_pattern);
        let shape = shape.or_else(|| finding.absence().map(Explanation::from_cause));
        let parts = [Explanation::from_cause(finding.cause), Explanation::from_blamed(finding.blamed)];
        let mut has_helps = has_advice;
        let mut names = Vec::new();
        for part in shape.into_iter().chain(parts) {
            let helps = !has_helps && part.name == decides;
            has_helps |= helps;
            let mut name = ExplainedName::of(&part, helps);
            let text = runtime.zip(part.vocabulary).filter(|_| helps);
            name.advice.extend(text.and_then(|(runtime, (text, _))| {
                Some(Advice { runtimes: vec![runtime.name()], text: text.advice_for(runtime)? })
            }));
            names.push(name);
        }
        let notes = trace.map(|(session, _)| crate::notes_of_filter(session)).unwrap_or_default();
        let finding = ExplainedFinding { row, base_ns: findings.base_ns, whose: findings.whose, notes };
        Explained { finding: Some(finding), names }
    }

    /// The lines for a terminal.
    pub fn text(&self) -> String {
        let finding_text = self.finding.iter().map(ExplainedFinding::text);
        let texts: Vec<String> = finding_text.chain(self.names.iter().map(ExplainedName::text)).collect();
        texts.join("\n")
    }
}

impl ExplainedFinding {
    /// The cost of the finding, its remedy and its evidence.
    fn text(&self) -> String {
        let (row, mut out) = (&self.row, String::new());
        let unit = Unit::for_total(self.base_ns);
        // Time in which threads ran is not a loss.
        let word = if row.cause.0 == Cause::Work { "took" } else { "lost" };
        let _ = writeln!(out, "{}  {}", row.id, format::harmless(&row.text));
        let _ = writeln!(
            out,
            "  {word}      {} {}, {} of all; confidence {}",
            unit.show(row.ns),
            self.whose.unit(unit),
            format::percent(row.ns, self.base_ns),
            row.confidence.0.name()
        );
        write_part(&mut out, "try", &row.remedy);
        if !row.evidence.is_empty() {
            write_part(&mut out, "evidence", &row.evidence);
        }
        for line in row.hang.iter().flat_map(|hang| hang.lines()) {
            let _ = writeln!(out, "  waits     {line}");
        }
        for text in row.hang.iter().flat_map(|hang| &hang.advice) {
            write_part(&mut out, "helps", text);
        }
        for note in &self.notes {
            let _ = writeln!(out, "  note      {note}");
        }
        out
    }
}

impl ExplainedName {
    /// Meaning, computation and, if requested, the usual remedy.
    fn of(explanation: &Explanation, with_helps: bool) -> ExplainedName {
        ExplainedName {
            name: explanation.name.to_owned(),
            kind: explanation.kind.to_owned(),
            meaning: explanation.meaning.to_owned(),
            computed: some_text(explanation.computed),
            helps: some_text(explanation.helps).filter(|_| with_helps),
            blamed: None,
            published: None,
            cause: None,
            counts: None,
            events: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// Adds the rest of the vocabulary's entry: blame, other names, a state's cause, and advice for a runtime, or all.
    fn with_vocabulary(mut self, explanation: &Explanation, runtime: Option<Runtime>) -> ExplainedName {
        let Some((text, cause)) = explanation.vocabulary else { return self };
        self.blamed = some_text(text.blames);
        self.published = some_text(text.published);
        self.cause = cause.map(Named);
        let is_of = |runtimes: &[Runtime]| runtime.is_none_or(|runtime| runtimes.contains(&runtime));
        let advice = text.advice.iter().filter(|(runtimes, _)| is_of(runtimes));
        self.advice.extend(advice.map(|(runtimes, text)| {
            let runtimes = runtime.map_or(runtimes.to_vec(), |runtime| vec![runtime]);
            Advice { runtimes: runtimes.into_iter().map(Runtime::name).collect(), text }
        }));
        self
    }

    fn from_runtime_name(row: &RuntimeName) -> ExplainedName {
        let counts = match row.counts() {
            Counts::As(state) => CountedAs::State { state: Named(state), cause: Named(state.cause()) },
            Counts::Around => CountedAs::OpenSections,
            Counts::Nothing => CountedAs::Nothing,
        };
        ExplainedName {
            name: row.label.to_owned(),
            kind: format!("{} of {}", row.aspect, row.runtime),
            meaning: row.meaning.to_owned(),
            computed: None,
            helps: None,
            blamed: None,
            published: None,
            cause: None,
            counts: Some(counts),
            events: row.events.split_whitespace().map(str::to_owned).collect(),
            advice: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let mut out = format!("{}  ({})\n", self.name, self.kind);
        let with_cause = |cause: Cause| format!("{} (taskscope explain {})", cause.label(), cause.name());
        let cause = self.cause.map(|cause| with_cause(cause.0));
        let counts = self.counts.map(|counts| match counts {
            CountedAs::State { state, cause } => {
                format!("{}, cause {}", state.0.label(), with_cause(cause.0))
            }
            CountedAs::OpenSections => "other open sections of the thread".to_owned(),
            CountedAs::Nothing => "nothing: it takes no time of a worker".to_owned(),
        });
        let (word, events) = match self.events.as_slice() {
            [] => ("", None),
            [one] => ("event", Some(one.clone())),
            [begin, end @ ..] => ("events", Some(format!("{begin} begins it, {} ends it", end.join(" ")))),
        };
        let parts = [
            ("meaning", Some(&self.meaning)),
            ("computed", self.computed.as_ref()),
            ("helps", self.helps.as_ref()),
            ("blamed", self.blamed.as_ref()),
            ("elsewhere", self.published.as_ref()),
            ("cause", cause.as_ref()),
            ("counts as", counts.as_ref()),
            (word, events.as_ref()),
        ];
        for (label, text) in parts {
            if let Some(text) = text {
                write_part(&mut out, label, text);
            }
        }
        for advice in &self.advice {
            write_part(&mut out, &advice.runtimes.join(", "), advice.text);
        }
        out
    }
}

impl NameList {
    /// Collects all names that `explain` knows, and options that several subcommands have.
    pub fn all() -> NameList {
        let mut groups: Vec<NameGroup> = Vec::new();
        let explanations: Vec<Explanation> = explain::all().collect();
        for group in explanations.chunk_by(|a, b| a.group == b.group) {
            let names = group.iter().map(|row| NameRow { name: row.name, meaning: row.meaning });
            groups.push(NameGroup { title: group[0].group.to_owned(), names: names.collect() });
        }
        for group in RUNTIME_NAMES.chunk_by(|a, b| (a.runtime, a.aspect) == (b.runtime, b.aspect)) {
            let names = group.iter().map(|row| NameRow { name: row.label, meaning: row.meaning });
            let title = format!("{}: {}", group[0].runtime, group[0].aspect);
            groups.push(NameGroup { title, names: names.collect() });
        }
        let options = OPTIONS.iter().map(|&(name, meaning)| NameRow { name, meaning });
        let title = "Options of subcommands that read a trace".to_owned();
        groups.push(NameGroup { title, names: options.collect() });
        NameList { groups }
    }

    /// A line for each name, with the first clause of its meaning.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for group in &self.groups {
            let longest = group.names.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
            let column = longest.min(MAX_COLUMN);
            let _ = writeln!(out, "{}", group.title);
            for NameRow { name, meaning } in &group.names {
                let room = LIST_WIDTH - 3 - column.max(name.chars().count());
                let _ = writeln!(out, "  {name:<column$} {}", summary(meaning, room));
            }
            out.push('\n');
        }
        out + "taskscope explain NAME explains one; taskscope help SUBCOMMAND its options.\n"
    }
}

/// Writes a part of an explanation; a label that is too long for its column has a line of its own.
fn write_part(out: &mut String, label: &str, text: &str) {
    let is_long = label.chars().count() > 9;
    if is_long {
        let _ = writeln!(out, "  {label}");
    }
    for (number, line) in format::wrap(text, WIDTH).iter().enumerate() {
        let label = if number == 0 && !is_long { label } else { "" };
        let _ = writeln!(out, "  {label:<9} {line}");
    }
}
