//! Facts about a stream file.

use crate::problem::ProblemKind;

/// Something to report, before it has a stream's name.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) kind: ProblemKind,
    pub(crate) offset: usize,
    pub(crate) clock: Option<i64>,
    pub(crate) count: u64,
    pub(crate) text: String,
}
