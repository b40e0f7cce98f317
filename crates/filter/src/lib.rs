//! The filter language of `--where` and the ranges of `--range`: parsed once, the same in every
//! subcommand. The grammar for users is in `docs/filter.md`.
//!
//! ```text
//! filter     = all { "or" all }
//! all        = item { "and" item }
//! item       = "not" item | "(" filter ")" | comparison
//! comparison = field operator value
//!            | field "in" value { "," value }
//!            | field "in" [ value ] ".." [ value ]          begin included, end not
//! operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"   "~": text with * and ?
//! value      = integer [ unit ] | word | "quoted text"       integers: -12, 12, 0x0c
//! unit       = "ns" | "us" | "ms" | "s" | "min"              integers with a fraction need a unit
//! ```
//!
//! The kind of a field determines its comparisons: one that no record can pass is rejected as a mistake. A record that
//! lacks a field matches no comparison with it, not even `!=`; `not` reverses that.
//!
//! **Modules**, each importing only those named before it: `language` (types), `number`, `range`, `tokens`, `parse`
//! (text to filter), `matching` (filter to records), `nearest` (hints for misspelt names), `bare_times` (times without a unit).
#![forbid(unsafe_code)]

mod bare_times;
mod language;
mod matching;
mod nearest;
mod number;
mod parse;
mod range;
#[cfg(test)]
mod tests;
mod tokens;

pub use bare_times::bare_times;
pub use language::{
    Fields, Filter, FilterError, Kind, Literal, Numbers, Operator, Record, SIGNED, UNSIGNED, Value,
};
pub use nearest::nearest;
pub use range::TimeRange;
