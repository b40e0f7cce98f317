//! Targets of results and messages.

use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};
use taskscope_terminal::{Shown, harmless};

/// Stdout for results: buffered, coloured only on a terminal without `NO_COLOR`, and [`Shown`]. Flush it before the
/// subcommand returns, so that a full disk is an error and not silence.
pub fn results() -> Shown<BufWriter<anstream::AutoStream<StdoutLock<'static>>>> {
    Shown::on(BufWriter::new(anstream::AutoStream::auto(io::stdout().lock())))
}

/// Writes a JSON document, indented.
///
/// # Errors
/// If it cannot be written.
pub fn write_json(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(io::Error::from)?;
    writeln!(out)
}

/// Writes a JSON document as one line.
///
/// # Errors
/// If it cannot be written.
pub fn write_json_line(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, document).map_err(io::Error::from)?;
    writeln!(out)
}

/// Columns of the terminal that receives results; none for other targets.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Lines of text without styles, in which nothing acts on a terminal.
pub fn plain(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}
