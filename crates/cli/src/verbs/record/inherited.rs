//! Passes taskscope's own start conditions to the program: the environment in its order, the signal mask and the
//! disposition of SIGPIPE.
//!
//! The standard library ignores SIGPIPE in us before `main` begins, and sets it to its default and
//! empties the mask in every child. A service manager that ignores SIGPIPE, or a shell that blocks a
//! signal, means the program by that.

#![allow(unsafe_code)]

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Called by the loader, before the standard library's own preparations.
// SAFETY: the section holds pointers to functions of this type, which are called once, on one thread.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: an all-zero `sigaction` is a valid value, and a query changes nothing.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut present) == 0;
        SIGPIPE_WAS_IGNORED.store(known && present.sa_sigaction == libc::SIG_IGN, Relaxed);
    }
}

/// Starts the program with exactly these arguments, the first of which is its name, and the environment of this process changed by
/// `variables` alone. The standard library would sort the environment and drop entries of one name. No file is opened for it.
pub fn spawn(
    program: &Path,
    arguments: &[OsString],
    variables: &[(&'static str, OsString)],
) -> io::Result<Pid> {
    let c_string = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
    let file = c_string(program.as_os_str().as_bytes())?;
    let arguments: Vec<CString> =
        arguments.iter().map(|argument| c_string(argument.as_bytes())).collect::<Result<_, _>>()?;
    let environment: Vec<CString> =
        changed(entries(), variables).into_iter().map(|entry| c_string(&entry)).collect::<Result<_, _>>()?;
    let list = |strings: &[CString]| -> Vec<*mut libc::c_char> {
        strings.iter().map(|string| string.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
    };
    let (arguments, environment) = (list(&arguments), list(&environment));
    let mask = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
    let mut defaults = SigSet::empty();
    if !SIGPIPE_WAS_IGNORED.load(Relaxed) {
        defaults.add(Signal::SIGPIPE);
    }
    let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
    let mut attributes = std::mem::MaybeUninit::uninit();
    let mut pid = 0;
    // SAFETY: the attributes are initialized by the first call and destroyed by the last; a file name, and two lists of C strings
    // that null pointers end, all of which live until then.
    let failed = unsafe {
        let failed = libc::posix_spawnattr_init(attributes.as_mut_ptr());
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let attributes = attributes.as_mut_ptr();
        libc::posix_spawnattr_setflags(attributes, flags as libc::c_short);
        libc::posix_spawnattr_setsigmask(attributes, mask.as_ref());
        libc::posix_spawnattr_setsigdefault(attributes, defaults.as_ref());
        let failed = libc::posix_spawn(
            &mut pid,
            file.as_ptr(),
            std::ptr::null(),
            attributes,
            arguments.as_ptr(),
            environment.as_ptr(),
        );
        libc::posix_spawnattr_destroy(attributes);
        failed
    };
    if failed == 0 { Ok(Pid::from_raw(pid)) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// The outcome of a child; `None` while it runs.
pub fn status_of(child: Pid) -> io::Result<Option<ExitStatus>> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    match unsafe { libc::waitpid(child.as_raw(), &mut status, libc::WNOHANG) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Some(ExitStatus::from_raw(status))),
    }
}

/// The entries of this process's environment, as they are.
fn entries() -> Vec<Vec<u8>> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    let mut entries = Vec::new();
    // SAFETY: a list of C strings that a null pointer ends, which is not changed in this process.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            entries.push(CStr::from_ptr(*next).to_bytes().to_owned());
            next = next.add(1);
        }
    }
    entries
}

/// Sets variables among entries `NAME=VALUE`: in the places of those of the same name, else at the end. Of several values of one
/// variable the last counts.
fn changed(mut entries: Vec<Vec<u8>>, variables: &[(&'static str, OsString)]) -> Vec<Vec<u8>> {
    for (name, value) in variables {
        let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
        let is_it =
            |entry: &Vec<u8>| entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
        let mut is_there = false;
        for present in entries.iter_mut().filter(|entry| is_it(entry)) {
            present.clone_from(&entry);
            is_there = true;
        }
        if !is_there {
            entries.push(entry);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_number() {
        let entries =
            |list: &[&str]| -> Vec<Vec<u8>> { list.iter().map(|entry| entry.as_bytes().to_vec()).collect() };
        let before = entries(&[
            "Z=1",
            "A=2",
            "Z=3",
            "no value",
            "LD_PRELOAD=x",
            "A=2",
            "=",
            "LD_PRELOAD=y",
            "LD_PRELOADED=z",
        ]);
        assert_eq!(changed(before.clone(), &[]), before);
        let after = changed(before, &[("LD_PRELOAD", "x:ours".into()), ("B", "1".into()), ("B", "2".into())]);
        let expected = [
            "Z=1",
            "A=2",
            "Z=3",
            "no value",
            "LD_PRELOAD=x:ours",
            "A=2",
            "=",
            "LD_PRELOAD=x:ours",
            "LD_PRELOADED=z",
            "B=2",
        ];
        assert_eq!(after, entries(&expected));
    }
}
