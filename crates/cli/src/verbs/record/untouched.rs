//! Programs that run untouched: those that the recorder cannot be loaded into, and those that it would change.

use super::elf::{self, Dynamic};
use super::loader;
use super::program;
use super::run_file::Notice;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Interpreters of interpreters, as deep as the kernel goes.
const MAX_SCRIPTS: usize = 5;

/// Why a program runs untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    /// Another C library's loader, which ends at the first library that it cannot load.
    Loader(String),
    /// Code for another kind of processor, or of another word size.
    Machine,
    /// It runs with the rights of somebody else; loaders take nothing from the environment then.
    Rights,
    /// It has ThreadSanitizer, which takes the recorder's memory accesses, whose order it cannot see, for races.
    ThreadSanitizer,
}

impl Reason {
    fn notice(&self, program: &Path) -> Notice {
        let program = program.display();
        let (name, why) = match self {
            Reason::Loader(loader) => (
                "cannot-load",
                format!("uses another C library ({loader}), for which the recorder is not built"),
            ),
            Reason::Machine => ("cannot-load", "is built for another machine than the recorder".to_owned()),
            Reason::Rights => (
                "cannot-load",
                "runs with the rights of another user (setuid, setgid or capabilities), so no library can be \
                 preloaded into it"
                    .to_owned(),
            ),
            Reason::ThreadSanitizer => (
                "thread-sanitizer",
                "has ThreadSanitizer, which would report the recorder's threads as races; build it without \
                 -fsanitize=thread to record it"
                    .to_owned(),
            ),
        };
        Notice { name, text: format!("nothing is recorded of {program}, which runs unchanged: it {why}") }
    }
}

/// The notice of a command to which nothing is to be attached: the variables reach all that it starts, so any of its programs decides
/// that would end or print an error because of them. One with other rights does so only if it is the first: its loader takes no notice.
pub fn notice(programs: &[PathBuf]) -> Option<Notice> {
    let own = elf::read(Path::new("/proc/self/exe"))?;
    let reasons: Vec<_> =
        programs.iter().map(|program| Some((program, reason(&executed(program)?, &own)?))).collect();
    let decides = |(number, reason): &(usize, &Option<(&PathBuf, Reason)>)| {
        reason.as_ref().is_some_and(|(_, reason)| *number == 0 || *reason != Reason::Rights)
    };
    let (_, found) = reasons.iter().enumerate().find(decides)?;
    found.as_ref().map(|(program, reason)| reason.notice(program))
}

/// The ELF file that the kernel executes for a program: itself, or the interpreter that its first line names.
fn executed(program: &Path) -> Option<PathBuf> {
    let mut file = program.to_owned();
    for _ in 0..MAX_SCRIPTS {
        let mut beginning = Vec::new();
        fs::File::open(&file).ok()?.take(256).read_to_end(&mut beginning).ok()?;
        let Some(line) = beginning.strip_prefix(b"#!") else { return Some(file) };
        let mut words = line.split(|byte| *byte == b'\n').next()?.split(|byte| b" \t\r".contains(byte));
        file = program::find(OsStr::from_bytes(words.find(|word| !word.is_empty())?)).ok()?;
    }
    None
}

fn reason(program: &Path, own: &Dynamic) -> Option<Reason> {
    let file = elf::read(program)?;
    if (file.machine, file.is_64_bit) != (own.machine, own.is_64_bit) {
        return Some(Reason::Machine);
    }
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    match (&file.interpreter, &own.interpreter) {
        (Some(loader), Some(ours)) if name(loader) != name(ours) => {
            return Some(Reason::Loader(loader.clone()));
        }
        _ => {}
    }
    if has_other_rights(program) {
        return Some(Reason::Rights);
    }
    let is_tsan = |(path, object): &(PathBuf, Dynamic)| {
        let start = "__tsan_init";
        object.imports.contains(start)
            || object.exports.contains(start)
            || path == program && elf::file_defines(path, start)
    };
    loader::objects_of(program).iter().any(is_tsan).then_some(Reason::ThreadSanitizer)
}

/// Whether the loader will take nothing from the environment (`AT_SECURE`).
fn has_other_rights(program: &Path) -> bool {
    let Ok(meta) = fs::metadata(program) else { return false };
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let is_set = |bit: u32| meta.mode() & bit != 0;
    is_set(nix::libc::S_ISUID) && meta.uid() != user
        // Without the group's right to execute, the bit is not for this.
        || is_set(nix::libc::S_ISGID) && is_set(nix::libc::S_IXGRP) && meta.gid() != group
        || user != 0 && has_capabilities(program).unwrap_or(false)
}

/// Whether executing a file gives capabilities.
fn has_capabilities(program: &Path) -> io::Result<bool> {
    // Without room only the size is returned.
    Ok(rustix::fs::getxattr(program, c"security.capability", &mut [0_u8; 0])? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(interpreter: &str, machine: u16) -> Dynamic {
        Dynamic { interpreter: Some(interpreter.to_owned()), machine, is_64_bit: true, ..Dynamic::default() }
    }

    #[test]
    fn programs_of_other_loaders_and_machines_are_untouched() {
        let own = std::env::current_exe().unwrap();
        let read = elf::read(&own).unwrap();
        let loader = read.interpreter.clone().unwrap();
        assert_eq!(reason(&own, &read), None);
        let elsewhere = format!("/other/place/{}", loader.rsplit('/').next().unwrap());
        assert_eq!(
            reason(&own, &with(&elsewhere, read.machine)),
            None,
            "another release of the same library"
        );
        assert_eq!(reason(&own, &with("/lib/ld-other.so.1", read.machine)), Some(Reason::Loader(loader)));
        assert_eq!(reason(&own, &with("/x", read.machine + 1)), Some(Reason::Machine));
    }

    #[test]
    fn a_script_stands_for_its_interpreter() {
        let here = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = here.path().join(name);
            fs::write(&path, text).unwrap();
            std::os::unix::fs::PermissionsExt::set_mode(
                &mut fs::metadata(&path).unwrap().permissions(),
                0o755,
            );
            path
        };
        assert_eq!(executed(&script("a", "#! /bin/sh -e\nexit 3\n")), Some("/bin/sh".into()));
        assert_eq!(executed(&script("b", "#!\n")), None);
        let own = std::env::current_exe().unwrap();
        assert_eq!(executed(&own), Some(own.clone()));
    }
}
