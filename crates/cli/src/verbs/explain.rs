//! `taskscope explain`: meaning, computation and usual remedy of the names in a report.

use crate::messages::Failure;
use crate::newest::newest;
use crate::opening::{SelectionArgs, a_profile, open_part};
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_cause::{Cause, Runtime, deciding};
use taskscope_session::selection::Selection;
use taskscope_view::explain::{self, Explanation, find, near, summary};
use taskscope_view::format::{self, shell_word};
use taskscope_view::runtime;
use taskscope_view::runtime_names::{self, Counts, RUNTIME_NAMES, RuntimeName};
use taskscope_view::{CallPaths, Findings, NamedFinding};

/// Explain a finding, cause, warning or name of a runtime: meaning, computation, remedy.
///
/// Without a name it lists all names. With a trace, remedies are those for its runtime.
#[derive(clap::Args)]
pub struct Args {
    /// A name from a report, a runtime's name of a section, idle state or kind of thread ("Sponge mode", "nosv
    /// resting", MPI_Waitall), an event (6Wg), or a finding's number in a trace (F1).
    name: Option<String>,
    /// The trace of a finding's number [default: the newest in the working directory], or of the runtime for remedies.
    trace: Option<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Characters of a line of text.
const WIDTH: usize = 90;
/// Characters of a line of the list, and of its first column at most.
const LIST_WIDTH: usize = 80;
const MAX_COLUMN: usize = 34;

/// Prints the explanation.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut out = output::results();
    match (&args.name, &args.trace) {
        (None, _) => write_list(&mut out)?,
        (Some(name), trace) if is_number(name) => {
            let trace = match trace {
                Some(trace) => trace.clone(),
                None => newest()?,
            };
            explain_finding(&mut out, name, &trace, &args.selection.parse()?)?;
        }
        (Some(name), trace) => {
            let (of_reports, of_runtimes) = (find(name), runtime_names::find(name));
            if of_reports.is_empty() && of_runtimes.is_empty() {
                return Err(unknown(name).into());
            }
            let runtime = match trace {
                Some(trace) if crate::newest::is_profile(trace) => Some(runtime::OF_PROFILES),
                Some(trace) => runtime::of(&open_part(trace, &args.selection.parse()?)?),
                None => None,
            };
            for (number, explanation) in of_reports.iter().enumerate() {
                if number > 0 {
                    writeln!(out)?;
                }
                write_explanation(&mut out, explanation, true)?;
                write_vocabulary(&mut out, explanation, runtime)?;
            }
            for (number, row) in of_runtimes.into_iter().enumerate() {
                if number > 0 || !of_reports.is_empty() {
                    writeln!(out)?;
                }
                write_runtime_name(&mut out, row)?;
            }
        }
    }
    out.flush().context("cannot write the explanation")?;
    Ok(ExitCode::SUCCESS)
}

/// Explains a finding by its number.
fn explain_finding(
    out: &mut impl Write,
    name: &str,
    path: &Path,
    selection: &Selection,
) -> anyhow::Result<()> {
    if let Some((profile, kept)) = super::profiles::open_profile(path)? {
        if selection.words.is_some() {
            return Err(a_profile(path).into());
        }
        let paths = CallPaths::of(&profile, kept, None);
        let findings = Findings::of_profile(&paths);
        let finding = finding_named(&findings, name, "profile")?;
        write_finding(out, &findings, finding)?;
        let runtime = runtime::adviser_of_profiles(&paths.tree, finding.cause);
        return write_parts_of_finding(out, finding, Some(runtime), false);
    }
    let session = open_part(path, selection)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    let findings = Findings::of(&session, &analysis);
    let finding = finding_named(&findings, name, "trace")?;
    write_finding(out, &findings, finding)?;
    let hang = taskscope_view::hang_words(&session, &analysis, finding);
    for line in hang.iter().flat_map(|hang| hang.lines()) {
        writeln!(out, "  waits     {line}")?;
    }
    let advice_of_hang = hang.map(|hang| hang.advice()).unwrap_or_default();
    for text in &advice_of_hang {
        write_part(out, "helps", text)?;
    }
    for note in taskscope_view::notes_of_filter(&session) {
        writeln!(out, "  note      {note}")?;
    }
    let runtime = runtime::adviser(&session, finding.cause);
    write_parts_of_finding(out, finding, runtime, !advice_of_hang.is_empty())
}

fn finding_named<'a>(findings: &'a Findings, name: &str, what: &str) -> anyhow::Result<&'a NamedFinding> {
    findings.named(name).ok_or_else(|| {
        let why = match findings.rows.as_slice() {
            [] => format!("the {what} has no findings"),
            [_] => format!("the {what} has one finding, F1"),
            many => format!("the {what} has findings F1 to F{}", many.len()),
        };
        Failure::new(format!("there is no finding {name}")).why(why).into()
    })
}

/// Writes the cost of a finding, its remedy and its evidence.
fn write_finding(out: &mut impl Write, findings: &Findings, finding: &NamedFinding) -> std::io::Result<()> {
    writeln!(out, "{}  {}", finding.id, format::harmless(&finding.text))?;
    let (unit, base) = (findings.unit(), findings.base_ns);
    // Time in which threads ran is not a loss.
    let word = if finding.cause == Cause::Work { "took" } else { "lost" };
    writeln!(
        out,
        "  {word}      {} {}, {} of all; confidence {}",
        unit.show(finding.ns),
        findings.whose.unit(unit),
        format::percent(finding.ns, base),
        finding.confidence.name()
    )?;
    write_part(out, "try", &finding.remedy)?;
    if !finding.evidence.is_empty() {
        write_part(out, "evidence", &finding.evidence)?;
    }
    Ok(())
}

/// Explains the pattern, the cause and the blame; the deciding one has the advice.
fn write_parts_of_finding(
    out: &mut impl Write,
    finding: &NamedFinding,
    runtime: Option<Runtime>,
    mut has_helps: bool,
) -> anyhow::Result<()> {
    let decides = deciding(finding.pattern, finding.cause, finding.blamed).name;
    let pattern = finding.pattern.map(Explanation::of_pattern);
    let parts = [Explanation::of_cause(finding.cause), Explanation::of_blamed(finding.blamed)];
    for explanation in pattern.into_iter().chain(parts) {
        let helps = !has_helps && explanation.name == decides;
        has_helps |= helps;
        writeln!(out)?;
        write_explanation(out, &explanation, helps)?;
        let text = runtime.zip(explanation.vocabulary).filter(|_| helps);
        if let Some((runtime, text)) =
            text.and_then(|(runtime, (text, _))| Some((runtime, text.advice_for(runtime)?)))
        {
            write_part(out, runtime.name(), text)?;
        }
    }
    Ok(())
}

/// A name that is not there, with those that resemble it.
fn unknown(name: &str) -> Failure {
    let failure = Failure::new(format!("unknown name: {name}"));
    let all = "taskscope explain        (lists all names)";
    if Path::new(name).is_dir() {
        return failure
            .why("it is a directory; give the name of a finding, state or cause before it")
            .remedy(format!("taskscope explain F1 {}\n{all}", shell_word(Path::new(name))));
    }
    match near(name).as_slice() {
        [] => failure.remedy(all),
        names => {
            let commands =
                names.iter().map(|near| format!("taskscope explain {}\n", shell_word(Path::new(near))));
            failure.why("similar names exist").remedy(commands.collect::<String>() + all)
        }
    }
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

/// All names by group, one line each.
fn write_list(out: &mut impl Write) -> std::io::Result<()> {
    let mut write = |group: &str, rows: &[(&str, &str)]| {
        let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let column = longest.min(MAX_COLUMN);
        writeln!(out, "{group}")?;
        for (name, meaning) in rows {
            let room = LIST_WIDTH - 3 - column.max(name.chars().count());
            writeln!(out, "  {name:<column$} {}", summary(meaning, room))?;
        }
        writeln!(out)
    };
    let explanations: Vec<Explanation> = explain::all().collect();
    for group in explanations.chunk_by(|a, b| a.group == b.group) {
        let rows: Vec<_> = group.iter().map(|row| (row.name, row.meaning)).collect();
        write(group[0].group, &rows)?;
    }
    for group in RUNTIME_NAMES.chunk_by(|a, b| (a.runtime, a.aspect) == (b.runtime, b.aspect)) {
        let rows: Vec<_> = group.iter().map(|row| (row.label, row.meaning)).collect();
        write(&format!("{}: {}", group[0].runtime, group[0].aspect), &rows)?;
    }
    write("Options of subcommands that read a trace", OPTIONS)?;
    writeln!(out, "taskscope explain NAME explains one; taskscope help SUBCOMMAND its options.")
}

/// Whether the name is a finding's number: F1, F2, …
fn is_number(name: &str) -> bool {
    let digits = name.strip_prefix(['F', 'f']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes an explanation, with general advice if it has none of its own.
fn write_explanation(
    out: &mut impl Write,
    explanation: &Explanation,
    with_helps: bool,
) -> std::io::Result<()> {
    writeln!(out, "{}  ({})", explanation.name, explanation.kind)?;
    write_part(out, "meaning", explanation.meaning)?;
    if !explanation.computed.is_empty() {
        write_part(out, "computed", explanation.computed)?;
    }
    if with_helps && !explanation.helps.is_empty() {
        write_part(out, "helps", explanation.helps)?;
    }
    Ok(())
}

/// Writes the rest of the vocabulary's entry: blame, other names, a state's cause, and advice for a runtime,
/// or for all.
fn write_vocabulary(
    out: &mut impl Write,
    explanation: &Explanation,
    runtime: Option<Runtime>,
) -> std::io::Result<()> {
    let Some((text, cause)) = explanation.vocabulary else { return Ok(()) };
    if !text.blames.is_empty() {
        write_part(out, "blamed", text.blames)?;
    }
    if !text.published.is_empty() {
        write_part(out, "elsewhere", text.published)?;
    }
    if let Some(cause) = cause {
        write_part(out, "cause", &format!("{} (taskscope explain {})", cause.label(), cause.name()))?;
    }
    for (runtimes, advice) in text.advice {
        if runtime.is_none_or(|runtime| runtimes.contains(&runtime)) {
            let names: Vec<&str> = runtimes.iter().map(|runtime| runtime.name()).collect();
            let name = runtime.map_or(names.join(", "), |runtime| runtime.name().to_owned());
            write_part(out, &name, advice)?;
        }
    }
    Ok(())
}

fn write_runtime_name(out: &mut impl Write, row: &RuntimeName) -> std::io::Result<()> {
    writeln!(out, "{}  ({} of {})", row.label, row.aspect, row.runtime)?;
    write_part(out, "meaning", row.meaning)?;
    let counts = match row.counts() {
        Counts::As(state) => {
            let cause = state.cause();
            format!("{}, cause {} (taskscope explain {})", state.label(), cause.label(), cause.name())
        }
        Counts::Around => "other open sections of the thread".to_owned(),
        Counts::Nothing => "nothing: it takes no time of a worker".to_owned(),
    };
    write_part(out, "counts as", &counts)?;
    match row.events.split_once(' ') {
        _ if row.events.is_empty() => Ok(()),
        Some((begin, end)) => write_part(out, "events", &format!("{begin} begins it, {end} ends it")),
        None => write_part(out, "event", row.events),
    }
}

/// A part of an explanation; a label that is too long for its column has a line of its own.
fn write_part(out: &mut impl Write, label: &str, text: &str) -> std::io::Result<()> {
    let long = label.chars().count() > 9;
    if long {
        writeln!(out, "  {label}")?;
    }
    for (number, line) in format::wrap(text, WIDTH).iter().enumerate() {
        let label = if number == 0 && !long { label } else { "" };
        writeln!(out, "  {label:<9} {line}")?;
    }
    Ok(())
}
