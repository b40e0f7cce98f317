//! Filters and their records.

use std::fmt;
use std::ops::RangeInclusive;

/// The value of a record's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number; times in nanoseconds.
    Integer(i128),
    /// A text.
    Text(&'a str),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Integer(number.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Integer(number.into())
    }
}

/// The least and the greatest number that a field holds.
pub type Numbers = RangeInclusive<i128>;

/// Values of signed 64 bits.
pub const SIGNED: Numbers = i64::MIN as i128..=i64::MAX as i128;

/// Values of unsigned 64 bits.
pub const UNSIGNED: Numbers = 0..=u64::MAX as i128;

/// Kind of a field, which determines its comparisons.
#[derive(Clone, Debug)]
pub enum Kind {
    /// An integer, such as an id.
    Number(Numbers),
    /// Nanoseconds, or a number that may be some; may be written with a unit.
    Time(Numbers),
    /// A text; numbers are texts too.
    Text,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A text; the function explains the error of a text that no record has.
    Checked(fn(&str) -> Result<(), String>),
    /// In some records a number, in others a text.
    Any,
}

/// The fields of the records that a filter is for.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// The name of the records, in the plural.
    pub of: &'static str,
    /// Kind of the field of a name; `None` for unknown fields.
    pub kind: fn(&str) -> Option<Kind>,
    /// The names of fields, for errors.
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
    Integer(i128),
    /// A word or quoted text.
    Text(String),
    /// A word that is a number too, of a field that holds both.
    Either(i128, String),
}

/// A parsed filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Passes if one of these filters passes.
    Or(Vec<Filter>),
    /// Passes if all of these filters pass.
    And(Vec<Filter>),
    /// Passes if this filter does not.
    Not(Box<Filter>),
    /// A field compared with a value.
    Compare(String, Operator, Literal),
    /// A field that equals one of the values.
    OneOf(String, Vec<Literal>),
    /// A field in a range: begin included, end not.
    Between(String, Option<Literal>, Option<Literal>),
}

/// Error of a filter or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Characters of the text before the error.
    pub position: usize,
    /// The error, a sentence without a final period.
    pub text: String,
}

impl FilterError {
    /// The error with its position in characters of `text` instead of bytes.
    pub(crate) fn in_characters_of(self, text: &str) -> FilterError {
        let before = text.get(..self.position).unwrap_or(text);
        FilterError { position: before.chars().count(), ..self }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.text, self.position + 1)
    }
}

impl std::error::Error for FilterError {}
