//! `ptd`, a strict reader of Paraver traces by others (PyPI's `pertalde`).

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, installed into a directory of its own below `temporary` (`CARGO_TARGET_TMPDIR`); `None`, with a
/// message, if that fails.
pub fn install(temporary: &Path) -> Option<PathBuf> {
    let home = temporary.join("ptd");
    let ptd = home.join("bin/ptd");
    if ptd.exists() {
        return Some(ptd);
    }
    let run = |program: &Path, arguments: &[&str]| {
        let result = Command::new(program).args(arguments).output();
        result.is_ok_and(|output| output.status.success())
    };
    let installed = run(Path::new("python3"), &["-m", "venv", home.to_str()?])
        && run(
            &home.join("bin/pip"),
            &["install", "--quiet", "--timeout", "10", "--retries", "1", "pertalde==0.1.5"],
        );
    if !installed || !ptd.exists() {
        eprintln!("skipped: `pip install pertalde` did not succeed here");
        let _ = std::fs::remove_dir_all(&home);
        return None;
    }
    Some(ptd)
}
