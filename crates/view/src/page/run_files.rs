//! Source files of a run.

use rustc_hash::FxHashSet;

/// Files of a run, as the compiler recorded them.
#[derive(Debug, Default)]
pub(super) struct RunFiles {
    /// Those of its sites.
    pub site_files: FxHashSet<String>,
    /// These, and those of its samples.
    pub all: FxHashSet<String>,
}
