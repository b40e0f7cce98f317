//! Errors of a foreign file, with their places.

use std::fmt;

/// One error in a foreign file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The file, if an import reads several; else empty.
    pub file: String,
    /// Line of the file, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The field, as a path such as `tasks[3].start`; empty if there is none.
    pub field: String,
    /// A sentence in lower case.
    pub text: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.text)
    }
}

/// All errors that were found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportErrors(pub Vec<ImportError>);

impl fmt::Display for ImportErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (number, error) in self.0.iter().take(SHOWN).enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        if self.0.len() > SHOWN {
            write!(f, "\nand {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for ImportErrors {}
