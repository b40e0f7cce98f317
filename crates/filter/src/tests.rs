//! Selections and rejections of filters.

use super::*;
use taskscope_prerequisite::dice::Dice;

struct Event;

impl Record for Event {
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
        with(match name {
            "time" => Some(Value::from(1_500_000_000_i64)),
            "thread" => Some(Value::from(101_i64)),
            "object" => Some(Value::from(0x8000_5600_0000_000b_u64)),
            "event" => Some(Value::Text("VTx")),
            "loom" => Some(Value::Text("node.0")),
            "either" => Some(Value::Text("0x10")),
            _ => None,
        })
    }
}

const FIELDS: Fields = Fields {
    of: "events",
    kind: |name| match name {
        "time" => Some(Kind::Time(0..=*SIGNED.end())),
        "thread" => Some(Kind::Number(SIGNED)),
        "small" => Some(Kind::Number(0..=u32::MAX.into())),
        "object" | "n" => Some(Kind::Number(UNSIGNED)),
        "event" | "loom" | "t" => Some(Kind::Text),
        "model" => Some(Kind::Words(vec!["nosv", "openmp"])),
        "absent" | "either" => Some(Kind::Any),
        _ => None,
    },
    names: || "time, thread".to_string(),
};

fn parse(text: &str) -> Result<Filter, FilterError> {
    Filter::parse(text, &FIELDS)
}

#[test]
fn known_fields_short_circuit_and_or() {
    let cases = [
        ("thread = 101", Some(true)),
        ("thread = 99", Some(false)),
        ("thread = 99 and event ~ VT*", Some(false)),
        ("event ~ VT* and thread = 101", None),
        ("thread = 101 or event ~ XX*", Some(true)),
        ("thread = 99 or event ~ XX*", None),
        ("not (thread = 101 or time < 1s)", Some(false)),
        ("not (thread = 99 and time < 1s)", Some(true)),
        ("thread in 99, 101 and loom ~ node*", Some(true)),
        ("thread in 100..101 and absent = 3", Some(false)),
    ];
    let is_known = |field: &str| matches!(field, "thread" | "loom");
    for (text, expected) in cases {
        let filter = parse(text).unwrap();
        assert_eq!(filter.decided_by(&Event, &is_known), expected, "{text}");
        // An early decision equals the result with all facts known.
        let matches = filter.matches(&Event);
        assert!(expected.is_none_or(|expected| expected == matches), "{text}");
    }
}

#[test]
fn filters_select_matching_records() {
    let cases = [
        ("thread = 101", true),
        ("thread != 101", false),
        ("time in 1s..2s and event ~ VT*", true),
        ("time in ..1.5s", false),
        ("time in 1.5s..", true),
        ("thread in 99, 101 or event = OHe", true),
        ("not (thread < 101)", true),
        ("not thread > 100", false),
        ("event ~ ?T? and loom = node.0", true),
        ("event = \"VTx\"", true),
        ("absent != 3", false),
        ("not absent = 3", true),
        ("loom = 'node.0'", true),
        ("event = 1s", false),
        ("absent = 3ms or thread in 101..", true),
        ("event = 3", false),
        ("thread ~ 1*1", true),
        ("event ~ *", true),
        ("event ~ VT", false),
        ("thread = 0x65", true),
        ("object = 0x800056000000000B", true),
        ("object = 9223466594854764555", true),
        ("object in 9223372036854775808..0xffffffffffffffff", true),
        ("object < 9223372036854775808", false),
        ("either = 0x10", true),
        ("either = 16", false),
        ("either in 0..1x", true),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap().matches(&Event), expected, "{text}");
    }
}

#[test]
fn errors_name_the_place() {
    let cases = [
        ("", "expected the name of a field (at character 1)"),
        ("thread", "expected an operator: = != < <= > >= ~ in (at character 7)"),
        ("thread = ", "expected a value (at character 10)"),
        ("(thread = 1", "expected `)` (at character 12)"),
        ("thread = 1 thread = 2", "expected `and`, `or` or the end (at character 12)"),
        ("event = \"x", "the quotation is not closed (at character 9)"),
        ("time ! b", "`!` has no meaning here (at character 6)"),
        ("loom = größe and", "expected the name of a field (at character 17)"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    assert!(parse(&"(".repeat(100_000)).is_err());
    assert!(parse(&"not ".repeat(100_000)).is_err());
}

#[test]
fn impossible_filters_are_refused() {
    let units = "ns, us, ms, s, min";
    let cases = [
        (
            "thraed = 1",
            "events have no field called `thraed`; one of: time, thread (at character 1)".to_string(),
        ),
        (
            "n = 1 and time > 1xs",
            format!("`xs` in `1xs` is no unit of time; units are: {units} (at character 18)"),
        ),
        ("time > 1MS", format!("`MS` in `1MS` is no unit of time; units are: {units} (at character 8)")),
        ("time in 1ms..2h", format!("`h` in `2h` is no unit of time; units are: {units} (at character 14)")),
        ("time in 3, 1.5", format!("`1.5` needs a unit: {units} (at character 12)")),
        (
            "time < soon",
            "`time` is compared with numbers and times such as 1.5ms, and `soon` is neither (at character 8)"
                .to_string(),
        ),
        ("time < 99999999999999999999", "`99999999999999999999` is too large (at character 8)".to_string()),
        ("time < 1e30s", "`1e30s` is too large (at character 8)".to_string()),
        ("time < 1.2.3s", "`1.2.3s` is no time that can be counted (at character 8)".to_string()),
        ("thread = 1.5", "`thread` is a whole number, and `1.5` is none (at character 10)".to_string()),
        (
            "thread = 5ms",
            "`thread` is a number and no time, so `5ms` cannot be meant (at character 10)".to_string(),
        ),
        ("thread != VTx", "`thread` is a number, and `VTx` is none (at character 11)".to_string()),
        ("model = nosw", "no model is called `nosw`; one of: nosv, openmp (at character 9)".to_string()),
        ("time in 9ms..3ms", "the range ends before it begins (at character 14)".to_string()),
        ("time in 9ms..9ms", "the range is empty: its end is not part of it (at character 14)".to_string()),
        ("loom in b..a", "the range ends before it begins (at character 12)".to_string()),
        ("time < 0", "events have no `time` below 0 (at character 8)".to_string()),
        ("time in ..0", "events have no `time` below 0 (at character 11)".to_string()),
        ("small = 1 or time <= -1ms", "events have no `time` below 0 (at character 22)".to_string()),
        ("small > 4294967295", "events have no `small` above 4294967295 (at character 9)".to_string()),
        ("small in 3, 0x100000000", "events have no `small` above 4294967295 (at character 13)".to_string()),
        ("object = 18446744073709551616", "`18446744073709551616` is too large (at character 10)".to_string()),
        ("object = 0x10000000000000000", "`0x10000000000000000` is too large (at character 10)".to_string()),
        ("object = 0x5g", "`0x5g` is no hexadecimal number (at character 10)".to_string()),
        ("time < 0x10ms", "`0x10ms` is no hexadecimal number (at character 8)".to_string()),
        ("time > -nans", "`time` is compared with numbers and times such as 1.5ms, and `-nans` is neither (at character 8)".to_string()),
        ("small = 1.5", "`small` is a whole number, and `1.5` is none (at character 9)".to_string()),
        ("small = all", "`small` is a number, and `all` is none (at character 9)".to_string()),
        ("time in ..", "expected a value (at character 11)".to_string()),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    for text in [
        "model ~ nos*",
        "thread ~ 1?1",
        "time > 1.5ms",
        "time > 15",
        "time in 9ms..",
        "time >= 0",
        "time > -1",
        "small != -1",
        "small in 4294967295..",
        "loom = 10.0.0.1",
        "event = 6Tx",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

type Plain = Box<dyn Fn(u64, &str) -> bool>;

/// Small numbers, and those about which a sign is a question.
const NUMBERS: [u64; 16] = {
    let top = 1 << 63;
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, top - 1, top, top + 1, u64::MAX - 2, u64::MAX - 1, u64::MAX]
};

/// A filter as text and as a plain function, built side by side from the same random choices.
fn random_filter(random: &mut impl FnMut(u64) -> u64, depth: u32) -> (String, Plain) {
    let written =
        |number: u64, base: u64| if base == 0 { format!("{number:#x}") } else { number.to_string() };
    match if depth == 0 { random(4) } else { random(7) } {
        0 => {
            let bound = NUMBERS[1 + random(15) as usize];
            (format!("n < {}", written(bound, random(3))), Box::new(move |n, _| n < bound))
        }
        1 => {
            let bound = NUMBERS[random(16) as usize];
            (format!("n != {}", written(bound, random(3))), Box::new(move |n, _| n != bound))
        }
        2 => {
            let first = random(15) as usize;
            let begin = NUMBERS[first];
            let end = NUMBERS[first + 1 + random(15 - first as u64) as usize];
            let (text, other) = (written(begin, random(3)), written(end, random(3)));
            (format!("n in {text}..{other}"), Box::new(move |n, _| begin <= n && n < end))
        }
        3 => {
            let first = ["a", "b", "c"][random(3) as usize];
            (format!("t ~ {first}*"), Box::new(move |_, t| t.starts_with(first)))
        }
        4 => {
            let (text, inner) = random_filter(random, depth - 1);
            (format!("not ({text})"), Box::new(move |n, t| !inner(n, t)))
        }
        choice => {
            let (left, a) = random_filter(random, depth - 1);
            let (right, b) = random_filter(random, depth - 1);
            if choice == 5 {
                (format!("({left}) and ({right})"), Box::new(move |n, t| a(n, t) && b(n, t)))
            } else {
                (format!("({left}) or ({right})"), Box::new(move |n, t| a(n, t) || b(n, t)))
            }
        }
    }
}

#[test]
fn filters_agree_with_plain_functions() {
    struct Pair<'a>(u64, &'a str);
    impl Record for Pair<'_> {
        fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
            with(match name {
                "n" => Some(Value::from(self.0)),
                "t" => Some(Value::Text(self.1)),
                _ => None,
            })
        }
    }
    let mut dice = Dice::new(1);
    let mut random = move |limit: u64| dice.below(limit);
    for _ in 0..2000 {
        let (text, naive) = random_filter(&mut random, 4);
        let filter = parse(&text).unwrap();
        for n in NUMBERS {
            for t in ["", "a", "bc", "cab"] {
                assert_eq!(filter.matches(&Pair(n, t)), naive(n, t), "{text} on n={n} t={t}");
            }
        }
    }
}
