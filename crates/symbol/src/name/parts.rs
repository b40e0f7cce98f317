//! The parts of a name: scopes, parameters, result, arguments of templates.

use super::abbreviated::ends_in_operator;
use std::borrow::Cow;

/// Whether two functions are the same but for the arguments of templates.
pub fn are_of_one_template(one: &str, other: &str) -> bool {
    parts_of(&without_parameters(one)) == parts_of(&without_parameters(other))
}

/// A function's name without its parameters and those of the functions that it is written in, for a table:
/// `ns::solve<double>` of `ns::solve<double>(int, double*)`, `f::{lambda(int)#1}::operator()` of
/// `f(long)::{lambda(int)#1}::operator()(int) const`.
pub fn without_parameters(name: &str) -> Cow<'_, str> {
    const SCOPE: &str = "::";
    // The functions before the rest, which is in them.
    let mut scopes = String::new();
    let mut rest = name;
    while let Some((start, end)) = parameters_of(rest) {
        let behind = &rest[end..];
        let Some(at) = behind.find(SCOPE).filter(|at| QUALIFIERS.contains(&behind[..*at].trim())) else {
            rest = &rest[..start];
            break;
        };
        scopes.extend([&rest[..start], SCOPE]);
        rest = &behind[at + SCOPE.len()..];
    }
    if scopes.is_empty() { Cow::Borrowed(rest) } else { Cow::Owned(scopes + rest) }
}

/// Qualifiers that may follow a function's parameters before the name of an inner function.
const QUALIFIERS: [&str; 6] = ["", "const", "&", "&&", "const &", "const&&"];

/// A function's name without scopes, parameters and arguments of templates: `solve` of `ns::Solver<int>::solve<double>(int)`.
pub fn own_name(name: &str) -> String {
    parts_of(&without_parameters(name)).last().map_or_else(String::new, |own| own.to_string())
}

/// Begin and end of the first list of parameters, outside of template arguments.
fn parameters_of(name: &str) -> Option<(usize, usize)> {
    let (mut depth, mut start, mut parentheses) = (0_i32, None, 0_i32);
    // The brackets of `operator<`, `operator->` and `operator<<` are none.
    let after_operator = |at: usize| ends_in_operator(&name[..at]);
    for (at, character) in name.char_indices() {
        match character {
            '(' if parentheses > 0 => parentheses += 1,
            ')' if parentheses > 1 => parentheses -= 1,
            ')' if parentheses == 1 => return start.map(|start| (start, at + 1)),
            _ if parentheses > 0 => {}
            // gcc's `{lambda(int)#1}`, Rust's `{closure#0}`.
            '{' => depth += 1,
            '}' => depth -= 1,
            '<' if !after_operator(at) => depth += 1,
            '>' if !name[..at].ends_with('-') && !after_operator(at) => depth -= 1,
            // `operator()` and `(anonymous namespace)::f` begin with a parenthesis of their own.
            '(' if depth == 0
                && at > 0
                && !name[..at].ends_with("operator")
                && !name[at..].starts_with("(anonymous") =>
            {
                (start, parentheses) = (Some(at), 1);
            }
            _ => {}
        }
    }
    // One that does not end: a name that was cut.
    start.map(|start| (start, name.len()))
}

/// A function's name without the type of its result, which those of templates begin with.
pub(super) fn without_result(name: &str) -> &str {
    let mut depth = 0_i32;
    let mut begin = 0;
    for (at, character) in name.char_indices() {
        match character {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth -= 1,
            // Not the operator of a conversion, nor a qualified type of Rust.
            ' ' if depth == 0 && !name[..at].ends_with("operator") => begin = at + 1,
            _ => {}
        }
    }
    &name[begin..]
}

/// The parts between the `::` of a name, without template arguments: `a`, `B`, `f` for `a::B<c::D>::f<int>`.
pub(super) fn parts_of(name: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut end) = (Vec::new(), 0, 0_i32, None);
    for (at, character) in name.char_indices() {
        match character {
            '<' => {
                end = end.or((depth == 0).then_some(at));
                depth += 1;
            }
            '>' => depth -= 1,
            ':' if depth == 0 => {
                if begin < at {
                    parts.push(&name[begin..end.unwrap_or(at)]);
                }
                (begin, end) = (at + 1, None);
            }
            _ => {}
        }
    }
    parts.push(&name[begin..end.unwrap_or(name.len())]);
    parts
}
