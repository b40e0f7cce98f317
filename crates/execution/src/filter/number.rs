//! Numbers and times as they are written.

use super::Kind;

/// Units of time in nanoseconds; none but the last ends with a later one.
const UNITS: [(&str, f64); 6] =
    [("min", 60e9), ("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A number with an optional unit of time, in nanoseconds if it has one.
pub(super) fn parse_number(word: &str) -> Option<i64> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((word.strip_suffix(unit)?, *factor)))?;
    if !number.starts_with(|first: char| first.is_ascii_digit() || "-+.".contains(first)) {
        return None;
    }
    if let Ok(whole) = number.parse::<i64>() {
        return whole.checked_mul(factor as i64);
    }
    let value = number.parse::<f64>().ok()? * factor;
    (value.abs() < 9e18).then(|| value.round() as i64)
}

/// What is wrong with a word that is no number, or none that the field of this name can be compared with.
pub(super) fn why_no_number(field: &str, kind: &Kind, word: &str) -> String {
    const NAMES: &str = "ns, us, ms, s, min";
    let is_time = *kind == Kind::Time;
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit.len() == digits.len() {
        return if is_time {
            format!("`{field}` is compared with numbers and times such as 1.5ms, and `{word}` is neither")
        } else {
            format!("`{field}` is a number, and `{word}` is none")
        };
    }
    match unit {
        "" if !digits.contains('.') => format!("`{word}` is too large"),
        "" if is_time => format!("`{word}` needs a unit: {NAMES}"),
        "" => format!("`{field}` is a whole number, and `{word}` is none"),
        _ if !is_time => format!("`{field}` is a number and no time, so `{word}` cannot be meant"),
        _ if UNITS.iter().any(|(known, _)| *known == unit) => {
            format!("`{word}` is no time that can be counted")
        }
        _ => format!("`{unit}` in `{word}` is no unit of time; units are: {NAMES}"),
    }
}
