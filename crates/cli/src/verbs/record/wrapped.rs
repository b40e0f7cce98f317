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
        if !word.is_empty()
            && let Ok(found) = program::find(OsStr::new(word))
            && seen.insert(found.clone())
        {
            programs.push(found);
        }
    };
    // The characters between which a shell sees words.
    let is_separator = |c: char| c.is_whitespace() || "\"'`;|&()".contains(c);
    for argument in arguments {
        let words = argument.to_string_lossy();
        words.split(is_separator).filter(|word| !word.starts_with('-')).for_each(&mut note);
    }
    let script = script_text(program).unwrap_or_default();
    script.split(is_separator).filter(|word| word.contains('/')).for_each(&mut note);
    programs
}

fn script_text(program: &Path) -> Option<String> {
    let mut text = Vec::new();
    std::fs::File::open(program).ok()?.take(SCRIPT_BYTES).read_to_end(&mut text).ok()?;
    text.starts_with(b"#!").then(|| String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_wrapper_starts_is_found() {
        let root = tempfile::tempdir().unwrap();
        let inner = std::env::current_exe().unwrap();
        let shown = inner.display();
        let of = |program: &Path, arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            programs_of(program, &arguments)
        };
        let sh = PathBuf::from("/bin/sh");
        assert_eq!(of(&sh, &["-c", &format!("x=1 {shown}; echo")])[..2], [sh.clone(), inner.clone()]);
        assert_eq!(of(&sh, &["-n", "4", &shown.to_string()]), [sh, inner.clone()]);
        let script = root.path().join("run.sh");
        std::fs::write(&script, format!("#!/bin/sh\nexec \"{shown}\" \"$@\"\n")).unwrap();
        assert!(of(&script, &[]).contains(&inner));
    }
}
