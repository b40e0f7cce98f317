//! Targets of results and messages, and characters that are safe on a terminal.

use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};
use taskscope_view::format::{acts, harmless};

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

/// Text in which only line ends, tabs, and styles ([`style_at`]) act on a terminal: every other control
/// character is written as `\uXXXX`, which in JSON is the same character. Names come from traces, which are
/// untrusted.
pub struct Shown<W: Write> {
    out: W,
    /// Bytes that may be the beginning of a character or a style.
    rest: Vec<u8>,
}

impl<W: Write> Shown<W> {
    /// Text that goes to `out`.
    pub fn on(out: W) -> Self {
        Shown { out, rest: Vec::new() }
    }

    fn put(&mut self, bytes: &[u8], is_end: bool) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            let left = &bytes[at..];
            let plain = left.iter().take_while(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')).count();
            if plain > 0 {
                self.out.write_all(&left[..plain])?;
                at += plain;
                continue;
            }
            if left[0] == 0x1b {
                match style_at(left) {
                    Style::Whole(length) => {
                        self.out.write_all(&left[..length])?;
                        at += length;
                        continue;
                    }
                    Style::Begun if !is_end => break,
                    _ => {}
                }
            }
            let length = match left[0] {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            if length > left.len() && !is_end {
                break;
            }
            match std::str::from_utf8(&left[..length.min(left.len())]) {
                Ok(text) if text.contains(acts) => {
                    write!(self.out, "\\u{:04x}", text.chars().map(u32::from).sum::<u32>())?
                }
                Ok(text) => self.out.write_all(text.as_bytes())?,
                Err(_) => {
                    self.out.write_all("\u{fffd}".as_bytes())?;
                    at += 1;
                    continue;
                }
            }
            at += length;
        }
        self.rest = bytes[at.min(bytes.len())..].to_vec();
        Ok(())
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.put(bytes, false)?;
        } else {
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend_from_slice(bytes);
            self.put(&whole, false)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.put(&rest, true)?;
        self.out.flush()
    }
}

/// Lines of text without styles, in which nothing acts on a terminal.
pub fn plain(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

enum Style {
    Whole(usize),
    Begun,
    None,
}

/// Longest style that this program writes.
const MAX_STYLE: usize = 8;

/// Bytes of the style (colour, bold, dim) that begins a text: ESC `[`, digits and semicolons, `m`.
fn style_at(text: &[u8]) -> Style {
    for (at, byte) in text.iter().enumerate().take(MAX_STYLE) {
        match (at, byte) {
            (0, 0x1b) | (1, b'[') | (2.., b'0'..=b'9' | b';') => {}
            (2.., b'm') => return Style::Whole(at + 1),
            _ => return Style::None,
        }
    }
    if text.len() < MAX_STYLE { Style::Begun } else { Style::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Shown::on(Vec::new());
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).unwrap();
        String::from_utf8(out.out).unwrap()
    }

    #[test]
    fn only_styles_and_line_ends_act_on_a_terminal() {
        let styled = "\u{1b}[1mbold\u{1b}[0m\tgrün\n";
        assert_eq!(shown(styled), styled);
        for (text, expected) in [
            ("\u{1b}]0;PWN\u{7}", "\\u001b]0;PWN\\u0007"),
            ("\u{1b}[2J\u{1b}[31", "\\u001b[2J\\u001b[31"),
            ("\u{9b}31m\u{202e}\u{7f}\r\u{8}", "\\u009b31m\\u202e\\u007f\\u000d\\u0008"),
            ("\u{1b}[1;2;3;4;5;6m", "\\u001b[1;2;3;4;5;6m"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn pieces_are_joined() {
        let text = "a\u{1b}[1mé\u{202e}\u{1b}[0m\u{9b}😀";
        for length in 1..6 {
            let mut out = Shown::on(Vec::new());
            text.as_bytes().chunks(length).for_each(|piece| out.write_all(piece).unwrap());
            out.flush().unwrap();
            assert_eq!(String::from_utf8(out.out).unwrap(), "a\u{1b}[1mé\\u202e\u{1b}[0m\\u009b😀");
        }
        let mut out = Shown::on(Vec::new());
        out.write_all(b"a\x9b\xc2").and_then(|()| out.flush()).unwrap();
        assert_eq!(String::from_utf8(out.out).unwrap(), "a\u{fffd}\u{fffd}");
    }
}
