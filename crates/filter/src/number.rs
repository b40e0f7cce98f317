//! Numbers and times as they are written.

use crate::language::{Kind, Numbers, Operator, SIGNED, UNSIGNED};

/// Units of time in nanoseconds; none but the last ends with a later one.
const UNITS: [(&str, f64); 6] =
    [("min", 60e9), ("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Numbers in filters: 64 bits, signed or unsigned.
const SAYABLE: Numbers = *SIGNED.start()..=*UNSIGNED.end();

/// A whole number, decimal or hexadecimal (`0x1f`).
pub(crate) fn parse_integer(word: &str) -> Option<i128> {
    let number = match after_0x(word) {
        Some(digits) if is_hexadecimal(digits) => i128::from_str_radix(digits, 16),
        Some(_) => return None,
        None => word.parse(),
    };
    number.ok().filter(|number| SAYABLE.contains(number))
}

fn after_0x(word: &str) -> Option<&str> {
    word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))
}

fn is_hexadecimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// A number with an optional unit of time, in nanoseconds if it has one.
pub(crate) fn parse_number(word: &str) -> Option<i128> {
    if let Some(number) = parse_integer(word) {
        return Some(number);
    }
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((word.strip_suffix(unit)?, *factor)))?;
    if !number.starts_with(|first: char| first.is_ascii_digit() || "-+.".contains(first)) {
        return None;
    }
    let nanos = match number.parse::<i64>() {
        Ok(whole) => i128::from(whole) * factor as i128,
        Err(_) => (number.parse::<f64>().ok().filter(|number| number.is_finite())? * factor).round() as i128,
    };
    SAYABLE.contains(&nanos).then_some(nanos)
}

/// Whether a word is a number, with or without a unit of time, also one that is larger than [`parse_number`] takes.
pub(crate) fn is_number(word: &str) -> bool {
    let with_unit = UNITS.iter().find_map(|(unit, _)| word.strip_suffix(unit));
    let number = with_unit.unwrap_or(word);
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    let is_whole = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_whole || with_unit.is_some() && number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The error of a word that is not a number, or not one of the values of this field.
pub(crate) fn why_no_number(field: &str, kind: &Kind, word: &str) -> String {
    const NAMES: &str = "ns, us, ms, s, min";
    let is_time = matches!(kind, Kind::Time(_));
    if let Some(digits) = after_0x(word) {
        return match is_hexadecimal(digits) {
            true => format!("`{word}` is too large"),
            false => format!("`{word}` is no hexadecimal number"),
        };
    }
    if is_time && is_number(word) {
        return format!("`{word}` is too large");
    }
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

/// The reason why no number of a field can pass a comparison, if there is one. Never for `~`, which compares digits.
pub(crate) fn why_nothing_passes(
    of: &str,
    field: &str,
    numbers: &Numbers,
    operator: Operator,
    literal: i128,
) -> Option<String> {
    let (least, greatest) = match operator {
        Operator::Equal => (literal, literal),
        Operator::Less => (i128::MIN, literal - 1),
        Operator::LessOrEqual => (i128::MIN, literal),
        Operator::Greater => (literal + 1, i128::MAX),
        Operator::GreaterOrEqual => (literal, i128::MAX),
        Operator::NotEqual | Operator::Matches => return None,
    };
    if greatest < *numbers.start() {
        Some(format!("{of} have no `{field}` below {}", numbers.start()))
    } else if *numbers.end() < least {
        Some(format!("{of} have no `{field}` above {}", numbers.end()))
    } else {
        None
    }
}
