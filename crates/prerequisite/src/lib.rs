//! For tests: programs of the system that they need, reports of skipped tests, and random numbers ([`dice`]).
//!
//! A test that lacks a compiler, an MPI library or a browser passes without testing anything. `scripts/install-packages`
//! installs all of them, and continuous integration runs it, so there a missing one is a failure:
//!
//! - [`missing`]: a package that `scripts/install-packages` installs. Fails the test if `CI=true`.
//! - [`skip`]: a property of the machine, of the network, of the user or of the kernel, or files outside of the repository.
//!   Never fails.
//!
//! Both print a line that begins with `skipped: `; `cargo test -- --nocapture` shows it.

#![forbid(unsafe_code)]

pub mod dice;

use std::fmt::Display;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// Reports that a test, or a part of it, is skipped because this machine cannot run it.
pub fn skip(reason: impl Display) {
    eprintln!("skipped: {reason}");
}

/// Reports that a test, or a part of it, is skipped for lack of a package that `scripts/install-packages` installs.
///
/// # Panics
///
/// If `CI=true`: the package must be there.
#[track_caller]
pub fn missing(what: impl Display) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "cannot be skipped under CI=true: {what} (scripts/install-packages)");
    skip(format_args!("{what} (scripts/install-packages installs it)"));
}

/// Whether a program can be started with `--version`. Reports it as [`missing`] if not.
#[track_caller]
pub fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok();
    if !has {
        missing(format_args!("{program} is not installed"));
    }
    has
}

/// Whether the scripts of a directory can drive a browser. Reports a missing Chromium or Node as [`missing`], a package
/// registry that cannot be reached as [`skip`].
///
/// Installs the directory's npm packages (Playwright) if they are not there. `CHROMIUM` names another browser.
#[track_caller]
pub fn has_browser(scripts: &Path) -> bool {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let browser = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    if !Path::new(&browser).exists() {
        missing(format_args!("there is no {browser}"));
        return false;
    }
    if !has("node") || !has("npm") {
        return false;
    }
    let _one = INSTALLING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let installed = install_npm_packages(scripts).or_else(|_| install_npm_packages(scripts));
    if let Err(lack) = &installed {
        skip(lack);
    }
    installed.is_ok()
}

fn install_npm_packages(scripts: &Path) -> Result<(), String> {
    if scripts.join("node_modules/playwright-core").is_dir() {
        return Ok(());
    }
    let run = Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(scripts).output();
    let output = run.map_err(|error| format!("npm cannot be run ({error})"))?;
    let printed = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("npm cannot install: {}", printed.trim()))
}
