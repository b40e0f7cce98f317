//! Numbers with their nouns, for every message.

use core::fmt;

/// A count in groups of three digits: `12 345 678`.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 20 digits and 6 spaces at most, from the end.
        let mut text = [b' '; 26];
        let (mut rest, mut at, mut digits) = (self.0, text.len(), 0);
        loop {
            if digits > 0 && digits % 3 == 0 {
                at -= 1;
            }
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            digits += 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        f.pad(core::str::from_utf8(&text[at..]).unwrap_or_default())
    }
}

/// A count with its noun, in the singular or the plural: `1 thread`, `12 threads`.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a>(pub u64, pub &'a str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(number, noun) = *self;
        write!(f, "{} {}", Count(number), Noun(number, noun))
    }
}

/// The noun of a count alone, in the singular or the plural.
#[derive(Clone, Copy, Debug)]
pub struct Noun<'a>(pub u64, pub &'a str);

impl fmt::Display for Noun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Noun(number, noun) = *self;
        let before_y = noun.strip_suffix('y').filter(|rest| !rest.ends_with(['a', 'e', 'o', 'u']));
        let (stem, ending) = match (number, before_y) {
            (1, _) => (noun, ""),
            (_, Some(rest)) => (rest, "ies"),
            _ if noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("ch") => (noun, "es"),
            _ => (noun, "s"),
        };
        write!(f, "{stem}{ending}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn counts_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (12_345_678, "12 345 678")] {
            assert_eq!(Count(number).to_string(), text);
        }
        assert_eq!(Count(u64::MAX).to_string(), "18 446 744 073 709 551 615");
    }

    #[test]
    fn nouns_follow_their_number() {
        let text = |number, noun| Counted(number, noun).to_string();
        assert_eq!(
            [text(1, "thread"), text(0, "thread"), text(2, "thread")],
            ["1 thread", "0 threads", "2 threads"]
        );
        assert_eq!([text(1, "process"), text(1000, "process")], ["1 process", "1 000 processes"]);
        assert_eq!([text(1, "query"), text(2, "query"), text(2, "day")], ["1 query", "2 queries", "2 days"]);
    }
}
