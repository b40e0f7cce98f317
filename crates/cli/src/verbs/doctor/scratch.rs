//! A temporary directory.

use std::fs;
use std::path::{Path, PathBuf};

/// A temporary directory that is removed on drop.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory.
    pub fn create() -> std::io::Result<Self> {
        let own = |number: u32| {
            std::env::temp_dir().join(format!("taskscope-doctor-{}.{number}", std::process::id()))
        };
        let path = (0..).map(own).find(|path| !path.exists()).unwrap_or_else(|| own(0));
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftovers are in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
