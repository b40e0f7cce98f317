//! Rows of code by samples: of each thread its function, or its call path, a row for each level.
//!
//! ```text
//!   code      ├── f ──┤├─ g ─┤├ had no CPU ┤      ├─ h ─┤        the innermost function
//!
//!   path  1   ├──── main ────┤├ had no CPU ┤      ├ main ┤       outermost first; a bar joins samples side by side
//!         2   ├── f ──┤├─ g ─┤                    ├─ h ─┤        with one function at this level
//! ```
//! Values are names, so equal neighbours are one bar, and a function has one colour everywhere. The functions with most time have the
//! lowest values, which are classes of their own at any zoom. Nothing is shown while a thread is blocked, and between samples that reach
//! back less far.

use taskscope_execution::ThreadIndex;
use taskscope_session::model_views::KeptView;

/// Values: a time without a CPU, a sample without a path, the first word.
pub(super) const NO_CPU: i64 = 1;
pub(super) const NO_PATH: i64 = 2;
const FIRST_WORD: i64 = 3;
/// The value of a name.
pub(super) fn value_of_name(name: u32) -> i64 {
    i64::from(name) + FIRST_WORD
}

/// The name of a value; `None` of times without a CPU and of samples without a path.
pub(super) fn name_of_value(value: i64) -> Option<u32> {
    u32::try_from(value.checked_sub(FIRST_WORD)?).ok()
}

/// A view of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleView {
    /// The innermost function.
    Code,
    /// All functions of the path.
    Path,
}

impl SampleView {
    /// Both views.
    pub const ALL: [SampleView; 2] = [SampleView::Code, SampleView::Path];

    /// The name in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            SampleView::Code => "code",
            SampleView::Path => "path",
        }
    }

    /// The words for a person.
    pub const fn label(self) -> &'static str {
        match self {
            SampleView::Code => "code by samples, each taken for the time since the one before",
            SampleView::Path => "call path by samples, each taken for the time since the one before",
        }
    }

    /// The same in short.
    pub const fn title(self) -> &'static str {
        match self {
            SampleView::Code => "code by samples",
            SampleView::Path => "call path by samples",
        }
    }

    /// The view of a name.
    pub fn named(name: &str) -> Option<SampleView> {
        SampleView::ALL.into_iter().find(|view| view.name() == name)
    }
}

/// The rows of a view, with the values over time.
#[derive(Debug, Default)]
pub(super) struct SampleRows {
    pub view: KeptView,
    /// Thread and level, from 1, of each row.
    pub rows: Vec<(ThreadIndex, usize)>,
}
