//! `taskscope explain`: meaning, computation and usual remedy of the names in a report.

use crate::messages::Failure;
use crate::newest::newest;
use crate::opening::{SelectionArgs, a_profile, open_part};
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_session::selection::Selection;
use taskscope_view::explain::{find, near};
use taskscope_view::format::shell_word;
use taskscope_view::{CallPaths, Explained, Findings, NameList, NamedFinding, runtime, runtime_names};

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
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Prints the explanation.
///
/// # Errors
/// If the name is unknown, the trace cannot be opened, or the result cannot be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut out = output::results();
    let Some(name) = &args.name else {
        let list = NameList::all();
        match args.json {
            true => output::write_json(&mut out, &list)?,
            false => out.write_all(list.text().as_bytes())?,
        }
        out.flush().context("cannot write the explanation")?;
        return Ok(ExitCode::SUCCESS);
    };
    let explained = match &args.trace {
        trace if is_number(name) => {
            let trace = match trace {
                Some(trace) => trace.clone(),
                None => newest()?,
            };
            finding_explained(name, &trace, &args.selection.parse()?)?
        }
        trace => {
            if find(name).is_empty() && runtime_names::find(name).is_empty() {
                return Err(unknown(name).into());
            }
            let runtime = match trace {
                Some(trace) => match super::profiles::open_profile(trace)? {
                    Some((profile, kept)) => {
                        Some(runtime::profile_runtime(&CallPaths::of(&profile, kept, None).tree))
                    }
                    None => runtime::of(&open_part(trace, &args.selection.parse()?)?),
                },
                None => None,
            };
            Explained::from_name(name, runtime)
        }
    };
    match args.json {
        true => output::write_json(&mut out, &explained)?,
        false => out.write_all(explained.text().as_bytes())?,
    }
    out.flush().context("cannot write the explanation")?;
    Ok(ExitCode::SUCCESS)
}

/// Explains a finding by its number.
fn finding_explained(name: &str, path: &Path, selection: &Selection) -> anyhow::Result<Explained> {
    if let Some((profile, kept)) = super::profiles::open_profile(path)? {
        if selection.words.is_some() {
            return Err(a_profile(path).into());
        }
        let paths = CallPaths::of(&profile, kept, None);
        let findings = Findings::from_profile(&paths);
        let finding = finding_named(&findings, name, "profile")?;
        let runtime = runtime::adviser_of_profiles(&paths.tree, finding.cause);
        return Ok(Explained::from_finding(&findings, finding, Some(runtime), None));
    }
    let session = open_part(path, selection)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    let findings = Findings::of(&session, &analysis);
    let finding = finding_named(&findings, name, "trace")?;
    let runtime = runtime::adviser(&session, finding.cause);
    Ok(Explained::from_finding(&findings, finding, runtime, Some((&session, &analysis))))
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

/// Whether the name is a finding's number: F1, F2, …
fn is_number(name: &str) -> bool {
    let digits = name.strip_prefix(['F', 'f']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
