//! From text to words and signs.

use crate::language::{FilterError, Operator};

/// A word or sign of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Quoted(String),
    Operator(Operator),
    Open,
    Close,
    Comma,
    Dots,
}

/// The tokens of a text, each with the byte of its begin.
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FilterError> {
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
