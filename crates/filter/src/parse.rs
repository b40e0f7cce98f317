//! The grammar: from words and signs to a filter.

use crate::language::{Fields, Filter, FilterError, Kind, Literal, Operator};
use crate::number::{parse_integer, parse_number, why_no_number, why_nothing_passes};
use crate::range::nothing_between;
use crate::tokens::{Token, tokens};

/// Deeper nesting is refused.
const DEEPEST: usize = 100;

impl Filter {
    /// Parses a filter for records that have these fields.
    ///
    /// # Errors
    /// The error and its position.
    pub fn parse(text: &str, fields: &Fields) -> Result<Filter, FilterError> {
        let filter = tokens(text).and_then(|tokens| Parser::new(&tokens, fields, text.len()).whole());
        filter.map_err(|error| error.in_characters_of(text))
    }
}

/// The rest of a filter's tokens.
struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    fields: &'a Fields,
    next: usize,
    depth: usize,
    end: usize,
}

impl<'a> Parser<'a> {
    fn new(tokens: &'a [(usize, Token)], fields: &'a Fields, end: usize) -> Parser<'a> {
        Parser { tokens, fields, next: 0, depth: 0, end }
    }

    /// All tokens as one filter.
    fn whole(mut self) -> Result<Filter, FilterError> {
        let filter = self.filter()?;
        match self.peek() {
            None => Ok(filter),
            Some(_) => Err(self.error("expected `and`, `or` or the end")),
        }
    }

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
        let literal = self.value(&field, &kind, operator)?;
        Ok(Filter::Compare(field, operator, literal))
    }

    fn range_or_list(&mut self, field: String, kind: &Kind) -> Result<Filter, FilterError> {
        if self.takes(&Token::Dots) {
            let end = self.value(&field, kind, Operator::Less)?;
            return Ok(Filter::Between(field, None, Some(end)));
        }
        let is_range = self.tokens.get(self.next + 1).is_some_and(|(_, token)| *token == Token::Dots);
        let first_operator = if is_range { Operator::GreaterOrEqual } else { Operator::Equal };
        let first = self.value(&field, kind, first_operator)?;
        if self.takes(&Token::Dots) {
            if !self.is_value() {
                return Ok(Filter::Between(field, Some(first), None));
            }
            let position = self.position();
            let end = self.value(&field, kind, Operator::Less)?;
            let nothing = match (&first, &end) {
                // Only texts can be between them.
                (Literal::Either(_, begin), Literal::Text(end))
                | (Literal::Text(begin), Literal::Either(_, end)) => nothing_between(begin, end),
                (begin, end) => nothing_between(begin, end),
            };
            nothing.map_or(Ok(()), |text| Err(FilterError { position, text }))?;
            return Ok(Filter::Between(field, Some(first), Some(end)));
        }
        let mut values = vec![first];
        while self.takes(&Token::Comma) {
            values.push(self.value(&field, kind, Operator::Equal)?);
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

    /// A value that a field of this kind can be compared with in this way; of a pattern, its text.
    fn value(&mut self, field: &str, kind: &Kind, operator: Operator) -> Result<Literal, FilterError> {
        let (word, is_quoted) = match self.peek() {
            Some(Token::Word(word)) if self.is_value() => (word.as_str(), false),
            Some(Token::Quoted(word)) => (word.as_str(), true),
            _ => return Err(self.error("expected a value")),
        };
        let text = || Ok(Literal::Text(word.to_owned()));
        let number = |numbers, number: Option<i128>| {
            let number = number.ok_or_else(|| why_no_number(field, kind, word))?;
            why_nothing_passes(self.fields.of, field, numbers, operator, number)
                .map_or(Ok(Literal::Integer(number)), Err)
        };
        let literal = match kind {
            _ if operator == Operator::Matches => text(),
            Kind::Text => text(),
            Kind::Checked(check) if operator == Operator::Equal || operator == Operator::NotEqual => {
                check(word).and_then(|()| text())
            }
            Kind::Checked(_) => text(),
            Kind::Any if is_quoted => text(),
            Kind::Any => {
                parse_number(word).map_or_else(text, |number| Ok(Literal::Either(number, word.to_owned())))
            }
            Kind::Words(words) if words.contains(&word) => text(),
            Kind::Words(words) => Err(format!("no {field} is called `{word}`; one of: {}", words.join(", "))),
            Kind::Time(numbers) => number(numbers, parse_number(word)),
            Kind::Number(numbers) => number(numbers, parse_integer(word)),
        };
        let literal = literal.map_err(|text: String| self.error(&text))?;
        self.next += 1;
        Ok(literal)
    }
}
