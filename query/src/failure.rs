//! Errors in the form of the command's: error, why, kept, try.

use std::fmt;
use std::io::{self, Write};
use taskscope_terminal::escaped;

/// An error with what its reader needs.
#[derive(Debug)]
pub struct Failure {
    error: String,
    why: Option<String>,
    remedy: Option<String>,
    closed_pipe: bool,
    /// Exit status of the program.
    status: u8,
}

/// The system's reason, without its number and in lower case.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl Failure {
    /// `error` is one line in lower case, without a full stop.
    pub fn new(error: impl Into<String>) -> Failure {
        Failure { error: error.into(), why: None, remedy: None, closed_pipe: false, status: 2 }
    }

    /// The end of a query by a signal; `job` is the end of its job on a cluster.
    pub fn interrupted(signal: u8, job: Option<String>) -> Failure {
        // As in shells.
        let failure = Failure { status: 128 + signal, ..Failure::new("interrupted") };
        match job {
            Some(words) => failure.why(words),
            None => failure,
        }
    }

    /// Exit status of the program.
    pub fn status(&self) -> u8 {
        self.status
    }

    /// An error of the system while the result was written.
    pub fn output(place: &str, error: &io::Error) -> Failure {
        let mut failure = Failure::new(format!("cannot write {place}")).why(reason(error));
        failure.closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        failure
    }

    /// The cause, as far as it was observed.
    pub fn why(mut self, why: impl Into<String>) -> Failure {
        self.why = Some(why.into());
        self
    }

    /// The remedy, best a command that can be pasted.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Failure {
        self.remedy = Some(remedy.into());
        self
    }

    /// Whether the reader of the result has closed its end.
    pub fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }

    /// Prints it on stderr.
    pub fn print(&self) {
        // If stderr is closed, the error cannot be reported.
        let _ = io::stderr().lock().write_all(self.text().as_bytes());
    }

    fn text(&self) -> String {
        let mut text = format!("error: {}\n", escaped(&self.error));
        for (label, part) in [("why:", &self.why), ("try:", &self.remedy)] {
            for (number, line) in part.iter().flat_map(|part| part.lines()).enumerate() {
                let label = if number == 0 { label } else { "" };
                text.push_str(&format!("  {label:<5} {}\n", escaped(line)));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_labelled_aligned_and_harmless() {
        let failure = Failure::new("cannot read \u{1b}x").why("one\ntwo").remedy("three");
        let text = failure.text();
        assert_eq!(reason(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!((failure.status(), Failure::interrupted(15, None).status()), (2, 143));
        assert_eq!(text, "error: cannot read \\u001bx\n  why:  one\n        two\n  try:  three\n");
    }
}
