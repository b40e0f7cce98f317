//! Untrusted text on a terminal. Names come from traces, which anybody may have written: their characters must not move the cursor,
//! change colours or hide text.
//!
//! - [`harmless`] replaces characters that act, for names in tables.
//! - [`escaped`] writes them as `\uXXXX`, for texts that are to be read exactly.
//! - [`Shown`] escapes all output that a program writes, but for its own styles.
#![forbid(unsafe_code)]

mod shown;

pub use shown::Shown;

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal acts on a character instead of showing it: control characters of 7 and 8 bits, separators of lines,
/// and those that turn the direction of writing.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` as one line that is safe for a terminal. Characters that move the cursor, change colours or change
/// the writing direction are replaced by the replacement character.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(acts) { text.replace(acts, "\u{fffd}").into() } else { text.into() }
}

/// `text` with `\uXXXX` for each character that acts on a terminal, the end of a line included.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_are_replaced_or_escaped() {
        let text = "a\u{1b}[31m\n\u{202e}日\u{85}";
        assert_eq!(harmless(text), "a\u{fffd}[31m\u{fffd}\u{fffd}日\u{fffd}");
        assert_eq!(escaped(text), "a\\u001b[31m\\u000a\\u202e日\\u0085");
        assert!(matches!(escaped("日本"), Cow::Borrowed(_)));
    }
}
