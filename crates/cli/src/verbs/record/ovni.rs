//! Programs that record through ovni (Nanos6, nOS-V, NODES, …): our `libovni.so.1` takes the place of the original.

use super::environment::Environment;
use super::loader;
use super::run_file::Notice;
use std::path::{Path, PathBuf};

/// The name that programs need.
const NEEDED: &str = "libovni.so.1";
/// Library as built by cargo.
const BUILT: &str = "libovni.so";
/// Names the directory of our [`NEEDED`], if it is elsewhere.
pub const VARIABLE: &str = "TASKSCOPE_OVNI_DIR";

/// Whether one of these programs, or a library of it, is linked to libovni. Nanos6 loads the library
/// that is, when it starts.
pub fn is_used_by(programs: &[PathBuf]) -> bool {
    let counts = |name: &String| name.starts_with("libovni.so") || name.starts_with("libnanos6");
    programs
        .iter()
        .flat_map(|program| loader::objects_of(program))
        .any(|(_, object)| object.needed.iter().any(counts))
}

/// Puts our library in front of the original, and sets the trace directory for the original: if that is loaded all the
/// same, by a path of the program's own, its streams are in the trace.
pub fn attach(environment: &mut Environment, trace: &Path, is_used: bool) {
    let Some(directory) = library_directory() else {
        environment.set("OVNI_TRACEDIR", trace);
        if !is_used {
            return;
        }
        let text = format!(
            "this program records through ovni's own library, since taskscope's {NEEDED} is not installed; \
             to record it: make install, or {VARIABLE}=/directory/of/{NEEDED}"
        );
        environment.notices.push(Notice { name: "no-ovni-library", text });
        return;
    };
    environment.search_first(&directory);
    environment.set("OVNI_TRACEDIR", trace);
}

/// The directory of the variable, the library directory of an installation, or cargo's output.
fn library_directory() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = std::path::absolute(named).ok()?;
        return named.join(NEEDED).is_file().then_some(named);
    }
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    let beside = own.parent()?;
    let installed = beside.join("../lib/taskscope/ovni");
    if installed.join(NEEDED).is_file() {
        return installed.canonicalize().ok();
    }
    // A directory of its own: nothing else in cargo's output is to be found by the loader.
    let built =
        [beside.join(BUILT), beside.join("deps").join(BUILT)].into_iter().find(|path| path.is_file())?;
    let directory = beside.join("ovni");
    std::fs::create_dir_all(&directory).ok()?;
    let link = directory.join(NEEDED);
    if std::fs::read_link(&link).ok().as_deref() != Some(&built) {
        let _ = std::fs::remove_file(&link);
        // Another `record` may be quicker.
        let _ = std::os::unix::fs::symlink(&built, &link);
    }
    link.is_file().then_some(directory)
}
