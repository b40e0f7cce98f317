//! The filter language of `--where` and the ranges of `--range`: parsed once, the same in every
//! verb. The grammar for users is in `docs/filter.md`.
//!
//! ```text
//! filter     = all { "or" all }
//! all        = item { "and" item }
//! item       = "not" item | "(" filter ")" | comparison
//! comparison = field operator value
//!            | field "in" value { "," value }
//!            | field "in" [ value ] ".." [ value ]          begin included, end not
//! operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"   "~": text with * and ?
//! value      = integer [ unit ] | word | "quoted text"
//! unit       = "ns" | "us" | "ms" | "s" | "min"              integers with a fraction need a unit
//! ```
//!
//! What a field holds decides what it may be compared with: a comparison that no record can pass is refused, as it was
//! not meant. A record that lacks a field matches no comparison with it, also not `!=`; `not` turns that round.

use std::fmt;

/// Deeper nesting is refused.
const DEEPEST: usize = 100;

/// The value of a record's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number; times in nanoseconds.
    Integer(i64),
    /// A text.
    Text(&'a str),
}

/// What a field holds, and so what it may be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer, such as an id.
    Number,
    /// Nanoseconds, or a number that may be some; may be written with a unit.
    Time,
    /// A text; what looks like a number is one too.
    Text,
    /// One of these words.
    Words(Vec<&'static str>),
    /// In some records a number, in others a text.
    Any,
}

/// The fields of the records that a filter is for.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// What the records are called, in the plural.
    pub of: &'static str,
    /// What the field of a name holds; `None` where there is no such field.
    pub kind: fn(&str) -> Option<Kind>,
    /// The names of fields, as an error tells them.
    pub names: fn() -> String,
}

/// Something that a filter can judge.
pub trait Record {
    /// The field called `name`, if the record has it. Texts go through `with`, so that they can be
    /// made on the spot.
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R;

    /// Whether a value of the field called `name` passes, of which a record may have several.
    fn any(&self, name: &str, passes: impl Fn(Value<'_>) -> bool) -> bool {
        self.field(name, |value| value.is_some_and(passes))
    }
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`: the whole text matches a pattern with `*` and `?`.
    Matches,
}

/// A value as it is written in a filter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Literal {
    /// A number; of times, nanoseconds.
    Integer(i64),
    /// A word or quoted text.
    Text(String),
}

/// A parsed filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// One of them.
    Or(Vec<Filter>),
    /// All of them.
    And(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
    /// A field compared with a value.
    Compare(String, Operator, Literal),
    /// A field that equals one of the values.
    OneOf(String, Vec<Literal>),
    /// A field in a range: begin included, end not.
    Between(String, Option<Literal>, Option<Literal>),
}

/// Why a text is no filter or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Byte in the text where it goes wrong.
    pub position: usize,
    /// What is wrong, a sentence without a final period.
    pub text: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.text, self.position + 1)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Parses a filter for records that have these fields.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, fields: &Fields) -> Result<Filter, FilterError> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, fields, next: 0, depth: 0, end: text.len() };
        let filter = parser.filter()?;
        match parser.peek() {
            None => Ok(filter),
            Some(_) => Err(parser.error("expected `and`, `or` or the end")),
        }
    }

    /// Whether the record passes.
    pub fn matches(&self, record: &impl Record) -> bool {
        match self {
            Filter::Or(parts) => parts.iter().any(|part| part.matches(record)),
            Filter::And(parts) => parts.iter().all(|part| part.matches(record)),
            Filter::Not(part) => !part.matches(record),
            Filter::Compare(field, operator, literal) => {
                record.any(field, |value| compare(value, *operator, literal))
            }
            Filter::OneOf(field, literals) => record
                .any(field, |value| literals.iter().any(|literal| compare(value, Operator::Equal, literal))),
            Filter::Between(field, begin, end) => record.any(field, |value| {
                begin.as_ref().is_none_or(|begin| compare(value, Operator::GreaterOrEqual, begin))
                    && end.as_ref().is_none_or(|end| compare(value, Operator::Less, end))
            }),
        }
    }

    /// Whether records pass of which no more is known than the fields for which `is_known` holds; `None` if
    /// that depends on the others.
    pub fn decided_by(&self, record: &impl Record, is_known: &impl Fn(&str) -> bool) -> Option<bool> {
        // One part that is `decisive` decides; else all must be known.
        let of = |parts: &[Filter], decisive: bool| {
            let mut all_known = true;
            for part in parts {
                match part.decided_by(record, is_known) {
                    Some(passes) if passes == decisive => return Some(decisive),
                    Some(_) => {}
                    None => all_known = false,
                }
            }
            all_known.then_some(!decisive)
        };
        match self {
            Filter::Or(parts) => of(parts, true),
            Filter::And(parts) => of(parts, false),
            Filter::Not(part) => part.decided_by(record, is_known).map(|passes| !passes),
            Filter::Compare(field, ..) | Filter::OneOf(field, _) | Filter::Between(field, ..) => {
                is_known(field).then(|| self.matches(record))
            }
        }
    }
}

fn compare(value: Value<'_>, operator: Operator, literal: &Literal) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if operator == Operator::Matches {
        let Literal::Text(pattern) = literal else { return compare(value, Operator::Equal, literal) };
        return match value {
            Value::Text(text) => matches_pattern(text, pattern),
            Value::Integer(number) => matches_pattern(&number.to_string(), pattern),
        };
    }
    let order = match (value, literal) {
        (Value::Integer(value), Literal::Integer(literal)) => value.cmp(literal),
        (Value::Text(value), Literal::Text(literal)) => value.cmp(literal),
        // A text such as a loom's name may look like a number.
        (Value::Text(value), Literal::Integer(literal)) => value.cmp(literal.to_string().as_str()),
        (Value::Integer(_), Literal::Text(_)) => return operator == Operator::NotEqual,
    };
    match operator {
        Operator::Equal => order == Equal,
        Operator::NotEqual => order != Equal,
        Operator::Less => order == Less,
        Operator::LessOrEqual => order != Greater,
        Operator::Greater => order == Greater,
        Operator::GreaterOrEqual => order != Less,
        Operator::Matches => false,
    }
}

/// Whether the whole text matches a pattern in which `*` stands for any characters and `?` for one.
/// Linear in practice: only the last star is ever widened.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut of_pattern) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(of_pattern) {
            Some('*') => {
                star = Some((of_pattern, at));
                of_pattern += 1;
            }
            Some(character) if *character == '?' || *character == text[at] => {
                at += 1;
                of_pattern += 1;
            }
            _ => match &mut star {
                Some((star, covered)) => {
                    *covered += 1;
                    (at, of_pattern) = (*covered, *star + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of_pattern..].iter().all(|character| *character == '*')
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Operator(Operator),
    Open,
    Close,
    Comma,
    Dots,
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FilterError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let position = text.len() - rest.len();
        let error = |text: &str| FilterError { position, text: text.to_owned() };
        let two = rest.get(..2).unwrap_or("");
        let (token, length) = match first {
            _ if first.is_whitespace() => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            '.' if two == ".." => (Token::Dots, 2),
            '!' if two == "!=" => (Token::Operator(Operator::NotEqual), 2),
            '<' if two == "<=" => (Token::Operator(Operator::LessOrEqual), 2),
            '>' if two == ">=" => (Token::Operator(Operator::GreaterOrEqual), 2),
            '=' => (Token::Operator(Operator::Equal), 1),
            '<' => (Token::Operator(Operator::Less), 1),
            '>' => (Token::Operator(Operator::Greater), 1),
            '~' => (Token::Operator(Operator::Matches), 1),
            '"' | '\'' => {
                let inner = &rest[1..];
                let length = inner.find(first).ok_or_else(|| error("the quotation is not closed"))?;
                (Token::Quoted(inner[..length].to_owned()), length + 2)
            }
            _ => {
                let length = word_length(rest);
                if length == 0 {
                    return Err(error(&format!("`{first}` has no meaning here")));
                }
                (Token::Word(rest[..length].to_owned()), length)
            }
        };
        tokens.push((position, token));
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// A word ends at white space, at a character with a meaning, and at `..`.
fn word_length(text: &str) -> usize {
    let mut length = 0;
    for character in text.chars() {
        let ends = character.is_whitespace() || "(),=!<>~\"'".contains(character);
        if ends || text[length..].starts_with("..") {
            break;
        }
        length += character.len_utf8();
    }
    length
}

/// Units of time in nanoseconds; none but the last ends with a later one.
const UNITS: [(&str, f64); 6] =
    [("min", 60e9), ("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A number with an optional unit of time, in nanoseconds if it has one.
fn parse_number(word: &str) -> Option<i64> {
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
fn why_no_number(field: &str, kind: &Kind, word: &str) -> String {
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

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    fields: &'a Fields,
    next: usize,
    depth: usize,
    end: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn error(&self, text: &str) -> FilterError {
        FilterError { position: self.position(), text: text.to_owned() }
    }

    fn position(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(position, _)| *position)
    }

    fn takes(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(&Token::Word(word.to_owned()))
    }

    fn filter(&mut self) -> Result<Filter, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("the filter is nested too deeply"));
        }
        let mut parts = vec![self.all()?];
        while self.takes_word("or") {
            parts.push(self.all()?);
        }
        self.depth -= 1;
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::Or(parts) })
    }

    fn all(&mut self) -> Result<Filter, FilterError> {
        let mut parts = vec![self.item()?];
        while self.takes_word("and") {
            parts.push(self.item()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::And(parts) })
    }

    fn item(&mut self) -> Result<Filter, FilterError> {
        if self.takes_word("not") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.error("the filter is nested too deeply"));
            }
            let part = self.item()?;
            self.depth -= 1;
            return Ok(Filter::Not(Box::new(part)));
        }
        if self.takes(&Token::Open) {
            let filter = self.filter()?;
            if !self.takes(&Token::Close) {
                return Err(self.error("expected `)`"));
            }
            return Ok(filter);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Filter, FilterError> {
        let field = match self.peek() {
            Some(Token::Word(word)) if !["and", "or", "in"].contains(&word.as_str()) => word.clone(),
            _ => return Err(self.error("expected the name of a field")),
        };
        let Some(kind) = (self.fields.kind)(&field) else {
            let (of, names) = (self.fields.of, (self.fields.names)());
            return Err(self.error(&format!("{of} have no field called `{field}`; one of: {names}")));
        };
        self.next += 1;
        if self.takes_word("in") {
            return self.range_or_list(field, &kind);
        }
        let Some(Token::Operator(operator)) = self.peek() else {
            return Err(self.error("expected an operator: = != < <= > >= ~ in"));
        };
        let operator = *operator;
        self.next += 1;
        let literal = self.value(&field, &kind, operator == Operator::Matches)?;
        Ok(Filter::Compare(field, operator, literal))
    }

    fn range_or_list(&mut self, field: String, kind: &Kind) -> Result<Filter, FilterError> {
        if self.takes(&Token::Dots) {
            let end = self.value(&field, kind, false)?;
            return Ok(Filter::Between(field, None, Some(end)));
        }
        let first = self.value(&field, kind, false)?;
        if self.takes(&Token::Dots) {
            if !self.is_value() {
                return Ok(Filter::Between(field, Some(first), None));
            }
            let position = self.position();
            let end = self.value(&field, kind, false)?;
            nothing_between(&first, &end).map_or(Ok(()), |text| Err(FilterError { position, text }))?;
            return Ok(Filter::Between(field, Some(first), Some(end)));
        }
        let mut values = vec![first];
        while self.takes(&Token::Comma) {
            values.push(self.value(&field, kind, false)?);
        }
        Ok(Filter::OneOf(field, values))
    }

    fn is_value(&self) -> bool {
        match self.peek() {
            Some(Token::Word(word)) => !["and", "or"].contains(&word.as_str()),
            Some(Token::Quoted(_)) => true,
            _ => false,
        }
    }

    /// A value that a field of this kind can be compared with; of a pattern, its text.
    fn value(&mut self, field: &str, kind: &Kind, is_pattern: bool) -> Result<Literal, FilterError> {
        let (word, is_quoted) = match self.peek() {
            Some(Token::Word(word)) if self.is_value() => (word.as_str(), false),
            Some(Token::Quoted(word)) => (word.as_str(), true),
            _ => return Err(self.error("expected a value")),
        };
        let text = || Ok(Literal::Text(word.to_owned()));
        let literal = match kind {
            _ if is_pattern => text(),
            Kind::Text => text(),
            Kind::Any if is_quoted => text(),
            Kind::Any => parse_number(word).map_or_else(text, |number| Ok(Literal::Integer(number))),
            Kind::Words(words) if words.contains(&word) => text(),
            Kind::Words(words) => Err(format!("no {field} is called `{word}`; one of: {}", words.join(", "))),
            Kind::Time => {
                parse_number(word).map(Literal::Integer).ok_or_else(|| why_no_number(field, kind, word))
            }
            Kind::Number => word.parse().map(Literal::Integer).map_err(|_| why_no_number(field, kind, word)),
        };
        let literal = literal.map_err(|text: String| self.error(&text))?;
        self.next += 1;
        Ok(literal)
    }
}

/// Why nothing lies in a range, if so.
fn nothing_between<T: PartialOrd>(begin: &T, end: &T) -> Option<String> {
    match begin.partial_cmp(end)? {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => Some("the range is empty: its end is not part of it".to_owned()),
        std::cmp::Ordering::Greater => Some("the range ends before it begins".to_owned()),
    }
}

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
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<TimeRange, FilterError> {
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
            match (share.filter(|share| share.is_finite()), parse_number(part)) {
                (Some(share), _) => Ok(Some(Moment::Share(share / 100.0))),
                (None, Some(nanos)) => Ok(Some(Moment::Nanos(nanos))),
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Event;

    impl Record for Event {
        fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
            with(match name {
                "time" => Some(Value::Integer(1_500_000_000)),
                "thread" => Some(Value::Integer(101)),
                "event" => Some(Value::Text("VTx")),
                "loom" => Some(Value::Text("node.0")),
                _ => None,
            })
        }
    }

    const FIELDS: Fields = Fields {
        of: "events",
        kind: |name| match name {
            "time" => Some(Kind::Time),
            "thread" | "n" => Some(Kind::Number),
            "event" | "loom" | "t" => Some(Kind::Text),
            "model" => Some(Kind::Words(vec!["nosv", "openmp"])),
            "absent" => Some(Kind::Any),
            _ => None,
        },
        names: || "time, thread".to_string(),
    };

    fn parse(text: &str) -> Result<Filter, FilterError> {
        Filter::parse(text, &FIELDS)
    }

    #[test]
    fn what_is_known_decides_where_it_can() {
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
            // What is decided is what comes out when all is known.
            let matches = filter.matches(&Event);
            assert!(expected.is_none_or(|expected| expected == matches), "{text}");
        }
    }

    #[test]
    fn filters_select_what_they_say() {
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
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"not ".repeat(100_000)).is_err());
    }

    #[test]
    fn what_no_record_can_pass_is_refused() {
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
            (
                "time in 1ms..2h",
                format!("`h` in `2h` is no unit of time; units are: {units} (at character 14)"),
            ),
            ("time in 3, 1.5", format!("`1.5` needs a unit: {units} (at character 12)")),
            (
                "time < soon",
                "`time` is compared with numbers and times such as 1.5ms, and `soon` is neither (at character 8)".to_string(),
            ),
            (
                "time < 99999999999999999999",
                "`99999999999999999999` is too large (at character 8)".to_string(),
            ),
            ("time < 1.2.3s", "`1.2.3s` is no time that can be counted (at character 8)".to_string()),
            ("thread = 1.5", "`thread` is a whole number, and `1.5` is none (at character 10)".to_string()),
            (
                "thread = 5ms",
                "`thread` is a number and no time, so `5ms` cannot be meant (at character 10)".to_string(),
            ),
            ("thread != VTx", "`thread` is a number, and `VTx` is none (at character 11)".to_string()),
            ("model = nosw", "no model is called `nosw`; one of: nosv, openmp (at character 9)".to_string()),
            ("time in 9ms..3ms", "the range ends before it begins (at character 14)".to_string()),
            (
                "time in 9ms..9ms",
                "the range is empty: its end is not part of it (at character 14)".to_string(),
            ),
            ("loom in b..a", "the range ends before it begins (at character 12)".to_string()),
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
            "loom = 10.0.0.1",
            "event = 6Tx",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

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
    }

    type Plain = Box<dyn Fn(i64, &str) -> bool>;

    /// A filter as text and as a plain function, built side by side from the same random choices.
    fn random_filter(random: &mut impl FnMut(u64) -> u64, depth: u32) -> (String, Plain) {
        match if depth == 0 { random(4) } else { random(7) } {
            0 => {
                let bound = random(10) as i64;
                (format!("n < {bound}"), Box::new(move |n, _| n < bound))
            }
            1 => {
                let bound = random(10) as i64;
                (format!("n != {bound}"), Box::new(move |n, _| n != bound))
            }
            2 => {
                let begin = random(9) as i64;
                let end = begin + 1 + random(9) as i64;
                (format!("n in {begin}..{end}"), Box::new(move |n, _| begin <= n && n < end))
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
        struct Pair<'a>(i64, &'a str);
        impl Record for Pair<'_> {
            fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
                with(match name {
                    "n" => Some(Value::Integer(self.0)),
                    "t" => Some(Value::Text(self.1)),
                    _ => None,
                })
            }
        }
        let mut state = 88_172_645_463_325_252u64;
        let mut random = move |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        for _ in 0..2000 {
            let (text, naive) = random_filter(&mut random, 4);
            let filter = parse(&text).unwrap();
            for n in 0..10 {
                for t in ["", "a", "bc", "cab"] {
                    assert_eq!(filter.matches(&Pair(n, t)), naive(n, t), "{text} on n={n} t={t}");
                }
            }
        }
    }
}
