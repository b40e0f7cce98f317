//! Form and exit code of errors: the only module that prints errors.
//!
//! ```text
//! error: cannot read cholesky.trace/…/stream.obs
//!   why:  it ends in the middle of an event at byte 1 048 571 (was the program killed?)
//!   kept: 1 204 551 events up to 11.98 s; what came later on this thread is missing
//!   try:  taskscope report cholesky.trace        (reads the existing part, with a notice)
//! ```

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use taskscope_terminal::Shown;
use taskscope_view::format::harmless;

/// Exit code of a subcommand that failed, unless it has another one.
pub const FAILED: u8 = 2;

/// An error with everything that its reader needs. Any other error type prints its own message
/// and, as `why:`, the chain of its causes.
#[derive(Debug)]
pub struct Failure {
    error: String,
    why: Option<String>,
    kept: Option<String>,
    remedy: Option<String>,
    exit_code: u8,
}

impl Failure {
    /// `error` is one line in lower case, without a full stop.
    pub fn new(error: impl Into<String>) -> Self {
        Failure { error: error.into(), why: None, kept: None, remedy: None, exit_code: FAILED }
    }

    /// The cause, as far as it was observed.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// The usable part in spite of the error.
    pub fn kept(mut self, kept: impl Into<String>) -> Self {
        self.kept = Some(kept.into());
        self
    }

    /// The remedy, best a command that can be pasted.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The remedy, if known.
    pub fn remedy_text(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The exit code, when it is not [`FAILED`].
    pub fn exit_code(mut self, code: u8) -> Self {
        self.exit_code = code;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for Failure {}

/// Turns the result of a subcommand into the process's exit code, and prints its error if it has one.
pub fn finish(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if is_closed_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    print(&error);
    ExitCode::from(error.downcast_ref::<Failure>().map_or(FAILED, |failure| failure.exit_code))
}

/// Prints an error in the form above on stderr.
pub fn print(error: &anyhow::Error) {
    let mut stderr = Shown::on(anstream::AutoStream::auto(io::stderr().lock()));
    // If stderr is closed, the error cannot be reported.
    let _ = write_error(&mut stderr, error).and_then(|()| stderr.flush());
}

fn write_error(out: &mut impl Write, error: &anyhow::Error) -> io::Result<()> {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    writeln!(out, "{red}error:{red:#} {}", harmless(&plain(&error.to_string())))?;
    match error.downcast_ref::<Failure>() {
        Some(failure) => {
            write_part(out, "why:", failure.why.as_deref())?;
            write_part(out, "kept:", failure.kept.as_deref())?;
            write_part(out, "try:", failure.remedy.as_deref())
        }
        None => error.chain().skip(1).try_for_each(|cause| write_part(out, "why:", Some(&cause.to_string()))),
    }
}

/// One labelled part; further lines of the text are aligned below its first.
fn write_part(out: &mut impl Write, label: &str, text: Option<&str>) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    for (number, line) in text.into_iter().flat_map(str::lines).enumerate() {
        let label = if number == 0 { label } else { "" };
        writeln!(out, "  {bold}{label:<5}{bold:#} {}", harmless(&plain(line)))?;
    }
    Ok(())
}

/// A message that may end with the system's reason, without its number and in lower case:
/// `no such file or directory` instead of `No such file or directory (os error 2)`.
fn plain(text: &str) -> Cow<'_, str> {
    let number = |tail: &str| tail.strip_suffix(')').is_some_and(|number| number.parse::<i32>().is_ok());
    let Some((text, _)) = text.rsplit_once(" (os error ").filter(|(_, tail)| number(tail)) else {
        return text.into();
    };
    let begin = text.rfind(": ").map_or(0, |at| at + ": ".len());
    let (before, reason) = text.split_at(begin);
    let mut letters = reason.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    format!("{before}{first}{}", letters.as_str()).into()
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn shown(error: anyhow::Error) -> String {
        let mut text = Vec::new();
        write_error(&mut anstream::StripStream::new(&mut text), &error).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn parts_are_labelled_and_aligned() {
        let failure = Failure::new("cannot read x").why("it is empty").remedy("one\ntwo");
        let text = shown(failure.into());
        assert_eq!(text, "error: cannot read x\n  why:  it is empty\n  try:  one\n        two\n");
    }

    #[test]
    fn causes_of_other_errors_are_given_as_why() {
        let cause = io::Error::new(io::ErrorKind::NotFound, "no such file");
        let text = shown(anyhow::Error::new(cause).context("cannot open x.trace"));
        assert_eq!(text, "error: cannot open x.trace\n  why:  no such file\n");
    }

    #[test]
    fn reasons_of_the_system_have_no_number() {
        let cause = io::Error::from_raw_os_error(nix::libc::ENOENT);
        let text = shown(Failure::new("cannot read x").why(cause.to_string()).into());
        assert_eq!(text, "error: cannot read x\n  why:  no such file or directory\n");
        assert_eq!(
            plain("cannot read x: Permission denied (os error 13)"),
            "cannot read x: permission denied"
        );
        assert_eq!(plain("a (os error x)"), "a (os error x)");
    }

    #[test]
    fn a_closed_pipe_at_any_depth_is_success() {
        let closed: io::Result<ExitCode> = Err(io::ErrorKind::BrokenPipe.into());
        let result = closed.context("cannot write").context("cannot print the report");
        assert_eq!(finish(result), ExitCode::SUCCESS);
        assert_eq!(finish(Err(Failure::new("x").exit_code(125).into())), ExitCode::from(125));
    }
}
