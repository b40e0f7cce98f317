//! The variables that make libraries report their tasks to the recorder, as it collects annotations.
//!
//! | variable | read by |
//! | --- | --- |
//! | `INTEL_LIBITTNOTIFY64` | the static parts of ITT |
//! | `NVTX_INJECTION64_PATH` | the headers of NVTX |
//! | `KOKKOS_TOOLS_LIBS` | Kokkos from 3.7 on |
//! | `KOKKOS_PROFILE_LIBRARY` | older Kokkos. Newer ones warn of this variable, so only programs that know no other get it |
//!
//! A collector of the user's is kept. Kokkos aborts if its two variables differ, so one that the user has set keeps both.

use super::environment::{Environment, is_ours};
use super::loader;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Interfaces with the variables that name their collector, the first of which is set.
const INTERFACES: [(&str, &[&str]); 3] = [
    ("ITT", &["INTEL_LIBITTNOTIFY64"]),
    ("NVTX", &["NVTX_INJECTION64_PATH"]),
    ("Kokkos Tools", &["KOKKOS_TOOLS_LIBS", OLD_KOKKOS]),
];

const OLD_KOKKOS: &str = "KOKKOS_PROFILE_LIBRARY";

/// Largest part of a file that is searched for the name of a variable.
const MAX_SEARCHED: u64 = 256 << 20;

/// Makes `tool` the collector of every interface for which the user has none.
pub fn attach(environment: &mut Environment, tool: &Path, programs: &[PathBuf]) {
    for (interface, variables) in INTERFACES {
        match variables.iter().find_map(|variable| Some((variable, users_collector(variable)?))) {
            Some((variable, users)) => environment.notice(
                "collector-kept",
                format!(
                    "what libraries report through {interface} goes to {}, which {variable} names, and is not recorded",
                    users.display()
                ),
            ),
            None => {
                let set = variables.iter().filter(|variable| **variable != OLD_KOKKOS || is_old_kokkos(programs));
                set.for_each(|variable| environment.set(variable, tool));
            }
        }
    }
}

/// The collector that the user has named.
fn users_collector(variable: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os(variable).filter(|path| !path.is_empty())?;
    (!is_ours(Path::new(&path))).then(|| path.into())
}

/// Whether a program uses a Kokkos that reads the old variable alone: of a library, or linked into the program.
fn is_old_kokkos(programs: &[PathBuf]) -> bool {
    programs.iter().any(|program| {
        let objects = loader::objects_of(program).into_iter().enumerate();
        let mut kokkos = objects.filter(|(number, (path, _))| {
            *number == 0 || path.file_name().is_some_and(|name| name.to_string_lossy().contains("kokkos"))
        });
        kokkos.any(|(_, (path, _))| {
            let Some(bytes) = beginning(&path) else { return false };
            let has = |name: &str| memchr::memmem::find(&bytes, name.as_bytes()).is_some();
            has(OLD_KOKKOS) && !has("KOKKOS_TOOLS_LIBS")
        })
    })
}

/// The file's content, cut at [`MAX_SEARCHED`].
fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_SEARCHED).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
