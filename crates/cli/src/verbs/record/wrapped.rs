//! Which programs a command starts: itself, and what it plainly names when it is a wrapper
//! (`mpirun -n 4 ./app`, `env X=1 ./app`, `sh -c './app 3'`, a script that calls `./app`).

use super::program;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// More than this much of a script is not read: what it starts stands near its beginning.
const SCRIPT_BYTES: u64 = 64 * 1024;

/// The program and every executable file that is named in its arguments or, for a script, by a path
/// in its text. Each once, the program first. What is found by guessing is only looked at.
pub fn programs_of(program: &Path, arguments: &[OsString]) -> Vec<PathBuf> {
    let mut programs = vec![program.to_owned()];
    let mut seen = BTreeSet::from([program.to_owned()]);
    let mut note = |word: &str| {
        if let Ok(found) = program::find(OsStr::new(word))
            && seen.insert(found.clone())
        {
            programs.push(found);
        }
    };
    for argument in arguments {
        argument
            .to_string_lossy()
            .split_whitespace()
            .filter(|word| !word.starts_with('-'))
            .for_each(&mut note);
    }
    let script = script_text(program).unwrap_or_default();
    let is_separator = |c: char| c.is_whitespace() || "\"'`;|&()".contains(c);
    script.split(is_separator).filter(|word| word.contains('/')).for_each(&mut note);
    programs
}

fn script_text(program: &Path) -> Option<String> {
    let mut text = Vec::new();
    std::fs::File::open(program).ok()?.take(SCRIPT_BYTES).read_to_end(&mut text).ok()?;
    text.starts_with(b"#!").then(|| String::from_utf8_lossy(&text).into_owned())
}
