//! Where results and talk go, and what a terminal may show.

use std::io::{self, BufWriter, StdoutLock};

/// Stdout for results: buffered, coloured only where colour is wanted (a terminal, no `NO_COLOR`).
/// Escape sequences written to it are removed otherwise. Flush it before the verb returns, so that
/// a full disk is an error and not silence.
pub fn results() -> BufWriter<anstream::AutoStream<StdoutLock<'static>>> {
    BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()))
}

/// Characters of a line of the terminal that results go to; none where they go elsewhere.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}
