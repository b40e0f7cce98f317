//! Filters and what they are applied to.

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

/// What 64 bits with a sign hold.
pub const SIGNED: Numbers = i64::MIN as i128..=i64::MAX as i128;

/// What 64 bits without a sign hold.
pub const UNSIGNED: Numbers = 0..=u64::MAX as i128;

/// What a field holds, and so what it may be compared with.
#[derive(Clone, Debug)]
pub enum Kind {
    /// An integer, such as an id.
    Number(Numbers),
    /// Nanoseconds, or a number that may be some; may be written with a unit.
    Time(Numbers),
    /// A text; what looks like a number is one too.
    Text,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A text; the function says what is wrong with one that no record has.
    Checked(fn(&str) -> Result<(), String>),
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
    Integer(i128),
    /// A word or quoted text.
    Text(String),
    /// A word that is a number too, of a field that holds both.
    Either(i128, String),
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
