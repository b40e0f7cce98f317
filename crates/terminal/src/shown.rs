//! A writer that escapes characters that act on a terminal.

use crate::escaped;
use std::io::{self, Write};

/// A writer of text in which only line ends, tabs, and styles (colour, bold, dim) act on a terminal: every other
/// control character is written as `\uXXXX`, which in JSON is the same character.
pub struct Shown<W: Write> {
    out: W,
    has_styles: bool,
    /// Bytes that may be the beginning of a character or a style.
    rest: Vec<u8>,
}

impl<W: Write> Shown<W> {
    /// Text that goes to `out`.
    pub fn on(out: W) -> Self {
        Shown { out, has_styles: true, rest: Vec::new() }
    }

    /// Text that goes to `out`, in which styles are escaped, too.
    pub fn without_styles(out: W) -> Self {
        Shown { out, has_styles: false, rest: Vec::new() }
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
            if self.has_styles && left[0] == 0x1b {
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
                Ok(text) => self.out.write_all(escaped(text).as_bytes())?,
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
        let mut out = Shown::without_styles(Vec::new());
        text.as_bytes().iter().for_each(|byte| out.write_all(&[*byte]).unwrap());
        assert_eq!(String::from_utf8(out.out).unwrap(), "a\\u001b[1mé\\u202e\\u001b[0m\\u009b😀");
    }
}
