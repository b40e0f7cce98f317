//! GCC's OpenMP runtime has no OMPT: a program that uses it can be recorded only with LLVM's runtime
//! in its place, which offers GCC's entry points too. This file decides whether that is safe.
//!
//! The program keeps libgomp mapped. A `GOMP_*` or `omp_*` function that the replacement lacks would
//! still come from libgomp, and two runtimes would each see half of the program: gcc 12's
//! `scope reduction(task, …)` aborts like that. So either every such symbol that the program and its
//! libraries import is exported by the replacement, or the program runs unchanged.

use super::elf::Dynamic;
use super::loader;
use std::path::{Path, PathBuf};

/// Exported with an event handle of another layout: a program with `detach` crashes.
const KNOWN_TO_CRASH: &str = "omp_fulfill_event";

/// The decision about a program's OpenMP runtime.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// The program does not use libgomp, by its headers.
    NotNeeded,
    /// Preload this library.
    Replace(PathBuf),
    /// Run it on libgomp, because the replacement lacks this symbol.
    Keep {
        /// The symbol, for the message.
        symbol: String,
        /// The object that imports it.
        used_by: PathBuf,
    },
    /// Run it on libgomp, because it is linked with another OpenMP runtime too.
    Mixed(PathBuf),
    /// Run it on libgomp, because no replacement is installed.
    NoReplacement,
}

/// Examines a program and its libraries.
pub fn decide(program: &Path) -> Decision {
    let objects = loader::objects_of(program);
    let is_gomp = |name: &str| name.starts_with("libgomp.so");
    let needs_gomp = objects.iter().any(|(_, object)| object.needed.iter().any(|name| is_gomp(name)));
    let Some((_, own)) = objects.first().filter(|_| needs_gomp) else { return Decision::NotNeeded };
    if let Some((other, _)) = objects.iter().find(|(path, _)| is_ompt_runtime_name(path)) {
        return Decision::Mixed(other.clone());
    }
    let Some((path, replacement)) = find_replacement(own) else { return Decision::NoReplacement };
    let users = objects.iter().filter(|(path, _)| !is_gomp(&file_name(path)));
    match users.filter_map(|(path, object)| Some((path, missing_symbol(object, &replacement)?))).next() {
        Some((used_by, symbol)) => Decision::Keep { symbol, used_by: used_by.clone() },
        None => Decision::Replace(path),
    }
}

/// Whether a program is linked with any OpenMP runtime.
pub fn uses_openmp(program: &Path) -> bool {
    has_ompt_runtime(program) || decide(program) != Decision::NotNeeded
}

/// Whether a program is linked with an OpenMP runtime that a tool can attach to.
pub fn has_ompt_runtime(program: &Path) -> bool {
    loader::objects_of(program).iter().any(|(path, _)| is_ompt_runtime_name(path))
}

/// The runtime for a program's libgomp code, if it has any. A script's interpreter is taken to be for this program's
/// own machine, as the recorder is.
pub fn replacement_for(program: &Path) -> Option<PathBuf> {
    let machine = super::elf::read(program).or_else(|| super::elf::read(Path::new("/proc/self/exe")))?;
    Some(find_replacement(&machine)?.0)
}

/// The first runtime on the loader's path that a tool can attach to and that GCC's code can call.
fn find_replacement(program: &Dynamic) -> Option<(PathBuf, Dynamic)> {
    runtimes().into_iter().find(|(_, runtime)| {
        runtime.machine == program.machine
            && runtime.is_64_bit == program.is_64_bit
            && runtime.exports.contains("GOMP_parallel")
    })
}

/// Every OpenMP runtime with OMPT that the loader could find, in its order.
pub fn runtimes() -> Vec<(PathBuf, Dynamic)> {
    let mut places: Vec<PathBuf> =
        ["libomp.so.5", "libomp.so", "libiomp5.so"].iter().flat_map(|name| loader::places_of(name)).collect();
    // LLVM's own directories, for a distribution that leaves them out of the cache.
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut llvm: Vec<PathBuf> = versions
        .filter(|path| file_name(path).starts_with("llvm-"))
        .map(|path| path.join("lib/libomp.so.5"))
        .filter(|path| path.is_file())
        .collect();
    llvm.sort();
    places.extend(llvm.into_iter().rev());
    let mut seen = std::collections::BTreeSet::new();
    places
        .into_iter()
        .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
        .filter_map(|path| Some((super::elf::read(&path)?, path)))
        .filter(|(runtime, _)| runtime.exports.contains("ompt_start_tool"))
        .map(|(runtime, path)| (path, runtime))
        .collect()
}

fn missing_symbol(object: &Dynamic, replacement: &Dynamic) -> Option<String> {
    object
        .imports
        .iter()
        .filter(|name| name.starts_with("GOMP_") || name.starts_with("omp_"))
        .find(|name| *name == KNOWN_TO_CRASH || !replacement.exports.contains(*name))
        .cloned()
}

/// Whether a file is an OpenMP runtime with OMPT, by its name.
pub fn is_ompt_runtime_name(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with("libomp.so") || name.starts_with("libomp-") || name.starts_with("libiomp5.so")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(imports: &[&str], exports: &[&str]) -> Dynamic {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Dynamic { imports: owned(imports), exports: owned(exports), ..Dynamic::default() }
    }

    #[test]
    fn every_openmp_symbol_must_be_offered() {
        let runtime = with(&[], &["GOMP_parallel", "omp_get_thread_num", "omp_fulfill_event"]);
        let missing = |imports: &[&str]| missing_symbol(&with(imports, &[]), &runtime);
        assert_eq!(missing(&["GOMP_parallel", "malloc", "omp_get_thread_num"]), None);
        assert_eq!(missing(&["GOMP_parallel", "GOMP_scope_start"]), Some("GOMP_scope_start".into()));
        assert_eq!(missing(&["GOMP_parallel", "omp_fulfill_event"]), Some("omp_fulfill_event".into()));
    }
}
