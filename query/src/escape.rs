//! Text without characters that act on a terminal: names come from traces, which are untrusted.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a terminal acts on a character instead of showing it: control characters, separators of lines, and those that
/// turn the direction of writing.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with `\uXXXX` for each character that acts on a terminal, the end of a line included.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// A writer of text in which only ends of lines and tabs act on a terminal. In JSON, an escaped character is the same
/// character.
pub struct Escaping<W: Write> {
    out: W,
    /// The beginning of a character whose end is not there yet.
    rest: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    /// Text that goes to `out`.
    pub fn on(out: W) -> Escaping<W> {
        Escaping { out, rest: Vec::new() }
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.out.write_all(b"\n")?;
            }
            for (number, part) in line.split('\t').enumerate() {
                if number > 0 {
                    self.out.write_all(b"\t")?;
                }
                self.out.write_all(escaped(part).as_bytes())?;
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&all) {
            Ok(_) => all.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => all.len(),
        };
        self.put(&String::from_utf8_lossy(&all[..whole]))?;
        self.rest = all.split_off(whole);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_are_escaped_whole_or_in_parts() {
        let text = "a\u{1b}[31m\r\t\u{202e}日\u{85}\n";
        let mut whole = Escaping::on(Vec::new());
        whole.write_all(text.as_bytes()).unwrap();
        let mut parts = Escaping::on(Vec::new());
        text.as_bytes().iter().for_each(|byte| parts.write_all(&[*byte]).unwrap());
        assert_eq!(whole.out, parts.out);
        assert_eq!(String::from_utf8(whole.out).unwrap(), "a\\u001b[31m\\u000d\t\\u202e日\\u0085\n");
        assert_eq!(escaped("a\nb"), "a\\u000ab");
    }
}
