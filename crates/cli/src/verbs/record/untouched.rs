//! Programs that run untouched: those that the recorder cannot be loaded into, and those that it would change.

use super::elf::{self, Dynamic};
use super::loader;
use super::program;
use super::run_file::Notice;
use super::wrapped::SYSTEM;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use taskscope_files::read_regular;
use taskscope_record::attached::{Checker, FILTERED, LEFT_ALONE};

/// Interpreters of interpreters, as deep as the kernel goes.
const MAX_SCRIPTS: usize = 5;

/// The reason why a program runs untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    /// Another C library's loader, which ends at the first library that it cannot load.
    Loader(String),
    /// Code for another kind of processor, or of another word size.
    Machine,
    /// The program runs with the rights of another user; loaders then ignore the environment.
    Rights,
    /// The program has a checker of memory accesses, which would report the recorder's.
    Checked(Checker),
    /// The program installs a filter of system calls that may end it for the recorder's.
    Filtered,
}

impl Reason {
    fn notice(&self, program: &Path) -> Notice {
        let program = program.display();
        let (name, why) = match self {
            Reason::Loader(loader) => (
                "cannot-load",
                format!(
                    "uses another C library ({loader}), for which the recorder is not built; build it with glibc to \
                     record it"
                ),
            ),
            Reason::Machine => ("cannot-load", "is built for a different machine than the recorder".to_owned()),
            Reason::Rights => (
                "cannot-load",
                "runs with the rights of another user (setuid, setgid or capabilities), so no library can be \
                 preloaded into it"
                    .to_owned(),
            ),
            Reason::Checked(checker @ Checker::Thread) => (
                checker.name(),
                "has ThreadSanitizer, which would report the recorder's threads as races; build it without \
                 -fsanitize=thread to record it"
                    .to_owned(),
            ),
            Reason::Checked(checker @ Checker::Memory) => (
                checker.name(),
                "has MemorySanitizer, which would report the recorder's memory as uninitialized; build it without \
                 -fsanitize=memory to record it"
                    .to_owned(),
            ),
            Reason::Filtered => {
                let text = format!(
                    "the recording of {program} ends when it restricts its system calls (seccomp): the filter could end the \
                     program for a call of the recorder; filters that return errors do not end recording"
                );
                return Notice { name: FILTERED, text };
            }
        };
        Notice { name, text: format!("{program} is not recorded, and runs unchanged: it {why}") }
    }
}

/// The programs of a command, and those of them that run untouched.
#[derive(Debug, Default)]
pub struct Untouched {
    /// One for each program that runs untouched.
    pub notices: Vec<Notice>,
    /// The programs that may be recorded; all by default.
    pub others: Vec<PathBuf>,
    /// Whether nothing is to be attached.
    pub is_all: bool,
    programs: Vec<PathBuf>,
}

/// Finds the programs of a command that must run untouched. The variables reach all its processes. So nothing is
/// attached if the first program, or all but the system's commands, must run untouched, or if one would not tolerate
/// the variables. Programs of musl skip names that only glibc expands, and with a [`Checker`] the recorder leaves by
/// itself.
pub fn among(programs: Vec<PathBuf>) -> Untouched {
    let Some(own) = elf::read(Path::new("/proc/self/exe")) else {
        return Untouched { others: programs, ..Untouched::default() };
    };
    let mut untouched = Untouched::default();
    let (mut is_first, mut may_attach, mut bears) = (true, false, true);
    let mut is_first_untouched = false;
    for program in &programs {
        let file = executed(program);
        let found = file.as_deref().and_then(|file| reason(file, &own));
        // A loader ignores files without its program's rights.
        match found.filter(|reason| is_first || *reason != Reason::Rights) {
            Some(reason) => {
                untouched.notices.push(reason.notice(program));
                untouched.programs.push(program.clone());
                bears &= match &reason {
                    Reason::Loader(loader) => is_of_musl(loader),
                    Reason::Checked(_) => true,
                    Reason::Machine | Reason::Rights | Reason::Filtered => false,
                };
                is_first_untouched |= is_first;
            }
            None => {
                let is_system_file = |file: &PathBuf| {
                    SYSTEM.iter().any(|directory| file.parent() == Some(Path::new(directory)))
                };
                may_attach |= file.as_ref().is_some_and(|file| !is_system_file(file));
                untouched.others.push(program.clone());
            }
        }
        is_first = false;
    }
    untouched.is_all = !untouched.programs.is_empty() && (is_first_untouched || !may_attach || !bears);
    if untouched.is_all {
        untouched.others = programs;
        // One reason is enough.
        untouched.notices.truncate(1);
    }
    untouched
}

fn is_of_musl(loader: &str) -> bool {
    loader.rsplit('/').next().is_some_and(|name| name.starts_with("ld-musl-"))
}

/// More notices of this kind are not printed.
const MAX_LEFT_ALONE: usize = 8;

/// Notices of unnamed programs that the recorder has left alone: takes their reports out of the trace.
pub fn left_alone(trace: &Path, untouched: &Untouched) -> Vec<Notice> {
    let mut programs: Vec<PathBuf> =
        untouched.programs.iter().filter_map(|program| program.canonicalize().ok()).collect();
    let mut notices = Vec::new();
    for entry in fs::read_dir(trace).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(LEFT_ALONE.as_bytes()) {
            continue;
        }
        let report = read_regular(&entry.path(), 8 << 10).unwrap_or_default();
        let _ = fs::remove_file(entry.path());
        let mut parts = report.splitn(2, |byte| *byte == b'\n');
        let (Some(name), Some(program)) = (parts.next(), parts.next()) else { continue };
        let checker = Checker::ALL.into_iter().find(|checker| checker.name().as_bytes() == name);
        let filtered = (name == FILTERED.as_bytes()).then_some(Reason::Filtered);
        let Some(reason) = checker.map(Reason::Checked).or(filtered) else { continue };
        let program = PathBuf::from(OsStr::from_bytes(program));
        if notices.len() < MAX_LEFT_ALONE && !programs.contains(&program) {
            notices.push(reason.notice(&program));
            programs.push(program);
        }
    }
    notices
}

/// Whether a program's code may restrict its system calls, as far as its files show that: by libseccomp, or by a call of its own.
pub fn may_restrict_itself(program: &Path) -> bool {
    let mut objects = loader::objects_of(program).into_iter().map(|(_, object)| object.imports);
    objects.next().is_some_and(|own| own.contains("prctl") || own.contains("seccomp_load"))
        || objects.any(|library| library.contains("seccomp_load"))
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
    let objects = loader::objects_of(program);
    let is_checked_by = |checker: &Checker| {
        let start = checker.function().to_str().unwrap_or_default();
        objects.iter().any(|(path, object)| {
            object.imports.contains(start)
                || object.exports.contains(start)
                || path == program && elf::file_defines(path, start)
        })
    };
    Checker::ALL.into_iter().find(is_checked_by).map(Reason::Checked)
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
    fn a_script_is_resolved_to_its_interpreter() {
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
