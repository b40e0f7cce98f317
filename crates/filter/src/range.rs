//! Parts of a trace in time.

use crate::language::FilterError;
use crate::number::{is_number, parse_number};

/// A part of a trace in time, as `--range` takes it: `BEGIN..END`, either of which may be left out,
/// each a time since the trace's start (`1.5s`, `200ms`, plain nanoseconds) or a share of it (`10%`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeRange {
    begin: Option<Moment>,
    end: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Nanos(i64),
    Share(f64),
}

impl TimeRange {
    /// Parses a range.
    ///
    /// # Errors
    /// The error and its position.
    pub fn parse(text: &str) -> Result<TimeRange, FilterError> {
        TimeRange::parse_parts(text).map_err(|error| error.in_characters_of(text))
    }

    fn parse_parts(text: &str) -> Result<TimeRange, FilterError> {
        let error = |position, text: &str| FilterError { position, text: text.to_owned() };
        let (begin, end) = text
            .split_once("..")
            .ok_or_else(|| error(text.len(), "expected BEGIN..END, such as 1.5s..2s"))?;
        let moment = |part: &str, position| -> Result<Option<Moment>, FilterError> {
            let part = part.trim();
            if part.is_empty() {
                return Ok(None);
            }
            let share = part.strip_suffix('%').and_then(|share| share.parse::<f64>().ok());
            let nanos = parse_number(part).and_then(|nanos| i64::try_from(nanos).ok());
            match (share.filter(|share| share.is_finite()), nanos) {
                (Some(share), _) => Ok(Some(Moment::Share(share / 100.0))),
                (None, Some(nanos)) => Ok(Some(Moment::Nanos(nanos))),
                _ if is_number(part) => Err(error(position, &format!("`{part}` is too large for a time"))),
                _ => Err(error(position, "expected a time such as 1.5s or 200ms, or a share such as 10%")),
            }
        };
        let (at_end, begin, end) = (begin.len() + 2, moment(begin, 0)?, moment(end, begin.len() + 2)?);
        let nothing = match (begin, end) {
            (Some(Moment::Nanos(begin)), Some(Moment::Nanos(end))) => nothing_between(&begin, &end),
            (Some(Moment::Share(begin)), Some(Moment::Share(end))) => nothing_between(&begin, &end),
            _ => None,
        };
        nothing.map_or(Ok(TimeRange { begin, end }), |text| Err(error(at_end, &text)))
    }

    /// Begin (included) and end (not included), nanoseconds since the trace's start.
    pub fn resolve(&self, duration_ns: i64) -> (i64, i64) {
        let nanos = |moment: Moment| match moment {
            Moment::Nanos(nanos) => nanos,
            Moment::Share(share) => (duration_ns as f64 * share) as i64,
        };
        (self.begin.map_or(i64::MIN, nanos), self.end.map_or(i64::MAX, nanos))
    }
}

/// The reason why a range is empty, if it is.
pub(crate) fn nothing_between<T: PartialOrd>(begin: &T, end: &T) -> Option<String> {
    match begin.partial_cmp(end)? {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => Some("the range is empty: its end is not part of it".to_owned()),
        std::cmp::Ordering::Greater => Some("the range ends before it begins".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_take_times_and_shares() {
        assert_eq!(TimeRange::parse("200ms..1.5s").unwrap().resolve(0), (200_000_000, 1_500_000_000));
        assert_eq!(TimeRange::parse("1.5s..200ms").unwrap_err().position, 6);
        assert!(TimeRange::parse("20%..10%").is_err());
        assert_eq!(
            TimeRange::parse("1s..1000ms").unwrap_err().text,
            "the range is empty: its end is not part of it"
        );
        assert_eq!(TimeRange::parse("10%..").unwrap().resolve(1000), (100, i64::MAX));
        assert_eq!(TimeRange::parse("..").unwrap().resolve(1000), (i64::MIN, i64::MAX));
        assert!(TimeRange::parse("1s").is_err());
        assert_eq!(TimeRange::parse("1s..x").unwrap_err().position, 4);
        assert_eq!(TimeRange::parse("1µs..x").unwrap_err().position, 5);
        let why = |text: &str| TimeRange::parse(text).unwrap_err().text;
        assert_eq!(why("18446744073709551615.."), "`18446744073709551615` is too large for a time");
        let digits = "9".repeat(60);
        for large in ["9223372036854775808", "1e30s", "-99999999999s", digits.as_str()] {
            assert_eq!(why(&format!("..{large}")), format!("`{large}` is too large for a time"));
        }
        for none in ["1.5", "s", "-", "1,5s", "0x", "1e400%"] {
            assert!(why(&format!("{none}..")).starts_with("expected a time"), "{none}");
        }
    }
}
