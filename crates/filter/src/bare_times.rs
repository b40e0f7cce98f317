//! Times in filters that are written without a unit: valid, but seldom meant as nanoseconds.

use crate::language::{Fields, Kind};
use crate::tokens::{Token, tokens};

/// The numbers that a filter compares times with and that have no unit, in order; 0 needs none. Empty for a text that is
/// no filter.
pub fn bare_times(text: &str, fields: &Fields) -> Vec<String> {
    let Ok(tokens) = tokens(text) else { return Vec::new() };
    let mut is_time = false;
    let mut bare = Vec::new();
    for (_, token) in tokens {
        let Token::Word(word) = token else { continue };
        match (fields.kind)(&word) {
            Some(kind) => is_time = matches!(kind, Kind::Time(_)),
            None if is_time && word.parse::<u64>().is_ok_and(|number| number > 0) => bare.push(word),
            None => {}
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::UNSIGNED;

    #[test]
    fn only_times_without_a_unit_are_found() {
        let fields = Fields {
            of: "sections",
            kind: |name| match name {
                "duration" => Some(Kind::Time(UNSIGNED)),
                "task" => Some(Kind::Number(UNSIGNED)),
                _ => None,
            },
            names: || "duration, task".to_owned(),
        };
        let found = |text| bare_times(text, &fields);
        assert_eq!(found("duration > 5 and task = 7"), ["5"]);
        assert_eq!(found("duration in 10..20us or not (duration<3)"), ["10", "3"]);
        assert_eq!(found("duration>=0 and duration<5ms"), [""; 0]);
        assert_eq!(found("gemm"), [""; 0]);
    }
}
