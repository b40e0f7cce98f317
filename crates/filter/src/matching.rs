//! Whether a record passes.

use crate::language::{Filter, Literal, Operator, Record, Value};

impl Filter {
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
        (Value::Integer(value), Literal::Integer(literal) | Literal::Either(literal, _)) => {
            value.cmp(literal)
        }
        (Value::Text(value), Literal::Text(literal) | Literal::Either(_, literal)) => {
            value.cmp(literal.as_str())
        }
        (Value::Integer(_), Literal::Text(_)) | (Value::Text(_), Literal::Integer(_)) => {
            return operator == Operator::NotEqual;
        }
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
    let (mut at, mut pattern_at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(pattern_at) {
            Some('*') => {
                star = Some((pattern_at, at));
                pattern_at += 1;
            }
            Some(character) if *character == '?' || *character == text[at] => {
                at += 1;
                pattern_at += 1;
            }
            _ => match &mut star {
                Some((star, covered)) => {
                    *covered += 1;
                    (at, pattern_at) = (*covered, *star + 1);
                }
                None => return false,
            },
        }
    }
    pattern[pattern_at..].iter().all(|character| *character == '*')
}
