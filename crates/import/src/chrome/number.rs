//! Numbers of trace events, as their decimal text.

use serde_json::value::RawValue;

/// Picoseconds in a microsecond.
const PICOSECONDS: i128 = 1_000_000;
/// Latest time, nanoseconds: a clock of 63 bits.
const MAX_NS: i128 = i64::MAX as i128;
/// Digits of a number that are read; more are beyond any clock.
const MAX_DIGITS: usize = 40;

/// A time or duration in picoseconds, from microseconds as a JSON number, or as a text with one.
///
/// # Errors
/// A sentence.
pub(super) fn picoseconds(value: &RawValue) -> Result<i128, String> {
    let text = value.get().trim_matches('"');
    decimal(text).ok_or_else(|| format!("{} is not a number of microseconds", shown(value)))
}

/// Nanoseconds of the run's clock, from picoseconds: the nearest.
///
/// # Errors
/// A sentence, if the time is negative or beyond 2⁶³ ns.
pub(super) fn nanoseconds(value: i128, shown: &str) -> Result<u64, String> {
    let ns = (value + 500).div_euclid(1000);
    if ns < 0 {
        return Err(format!("{shown} is negative; times are microseconds from 0 on"));
    }
    if ns > MAX_NS {
        return Err(format!("{shown} µs are beyond the clock of 2^63 ns"));
    }
    Ok(ns as u64)
}

/// The text of a value, cut if it is long.
pub(super) fn shown(value: &RawValue) -> String {
    let text = value.get();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A whole number of any JSON form.
pub(super) fn integer(value: &RawValue) -> Option<i64> {
    let text = value.get().trim_matches('"');
    text.parse().ok().or_else(|| {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
        u64::from_str_radix(hex, 16).ok().map(|number| number as i64)
    })
}

/// A decimal number times 10⁶, cut below. `None` if it is not one, or beyond any clock.
fn decimal(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.strip_prefix('+').unwrap_or(exponent).parse::<i32>().ok()?)
        }
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: String = [whole, fraction].concat();
    if whole.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // The value is `significant` times ten to the power of this.
    let power = i64::from(exponent) - fraction.len() as i64 + i64::from(PICOSECONDS.ilog10());
    let length = significant.len() as i64 + power;
    if length <= 0 {
        return Some(0);
    }
    if length > MAX_DIGITS as i64 - 4 {
        // Far beyond the clock; kept as such for the message.
        return Some(if negative { i128::MIN / 4 } else { i128::MAX / 4 });
    }
    let kept = &significant[..significant.len().min(length as usize)];
    let zeros = length as u32 - kept.len() as u32;
    let value = kept.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(zeros)?)?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> Result<u64, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        nanoseconds(picoseconds(&raw)?, &shown(&raw))
    }

    #[test]
    fn microseconds_are_read_exactly() {
        for (text, expected) in [
            ("0", 0),
            ("1", 1000),
            ("1.5", 1500),
            ("1694039968956739.123", 1_694_039_968_956_739_123),
            ("0.0004", 0),
            ("0.0005", 1),
            ("1.9999999", 2000),
            ("1e3", 1_000_000),
            ("12.5E-1", 1250),
            ("\"7.25\"", 7250),
            ("0e999999999", 0),
            ("1e-999999999", 0),
            ("9223372036854775.807", i64::MAX as u64),
        ] {
            assert_eq!(ns(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_named() {
        for (text, expected) in [
            ("-1", "-1 is negative; times are microseconds from 0 on"),
            ("18446744073709551615", "18446744073709551615 µs are beyond the clock of 2^63 ns"),
            ("1e300", "1e300 µs are beyond the clock of 2^63 ns"),
            ("1e999999999", "1e999999999 µs are beyond the clock of 2^63 ns"),
            ("true", "true is not a number of microseconds"),
            ("\"soon\"", "\"soon\" is not a number of microseconds"),
            ("null", "null is not a number of microseconds"),
        ] {
            assert_eq!(ns(text), Err(expected.to_owned()), "{text}");
        }
    }
}
