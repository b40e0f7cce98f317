//! Finds shared libraries as the dynamic loader does (ld.so(8)): `DT_RPATH`, `LD_LIBRARY_PATH`,
//! `DT_RUNPATH`, the loader's cache, the default directories.

use super::elf::{self, Dynamic};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A program with all libraries that the loader maps at its start, the program first. Libraries
/// that are not found are left out: the loader will say so itself.
pub fn objects_of(program: &Path) -> Vec<(PathBuf, Dynamic)> {
    let Some(own) = elf::read(program) else { return Vec::new() };
    let inherited_rpath = if own.runpath.is_empty() { expand(&own.rpath, program) } else { Vec::new() };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut objects = vec![(program.to_owned(), own)];
    let mut next = 0;
    while let Some((path, object)) = objects.get(next) {
        let mut found = Vec::new();
        for name in &object.needed {
            if seen.insert(name.clone()) {
                found.extend(find_needed(name, path, object, &inherited_rpath));
            }
        }
        objects.extend(found);
        next += 1;
    }
    objects
}

fn find_needed(
    name: &str,
    user: &Path,
    object: &Dynamic,
    inherited: &[PathBuf],
) -> Option<(PathBuf, Dynamic)> {
    let fits = |path: &PathBuf| {
        let library = elf::read(path)?;
        (library.machine == object.machine && library.is_64_bit == object.is_64_bit).then_some(library)
    };
    if name.contains('/') {
        let path = PathBuf::from(name);
        return fits(&path).map(|library| (path, library));
    }
    let mut directories = Vec::new();
    if object.runpath.is_empty() {
        directories.extend(expand(&object.rpath, user));
        directories.extend_from_slice(inherited);
    }
    directories.extend(library_path());
    directories.extend(expand(&object.runpath, user));
    candidates(name, &directories).into_iter().find_map(|path| fits(&path).map(|library| (path, library)))
}

/// Possible places of a library of this name, in the loader's order, for a program without search paths.
pub fn places_of(name: &str) -> Vec<PathBuf> {
    candidates(name, &library_path())
}

/// Whether the loader finds a library that is named by a path, or else by a name to look for.
pub fn is_there(library: &Path) -> bool {
    match library.to_str() {
        Some(name) if !name.contains('/') => !places_of(name).is_empty(),
        _ => library.is_file(),
    }
}

/// Whether a program is linked statically: no loader runs for it, which could load anything else.
pub fn is_static(program: &Path) -> bool {
    elf::read(program).is_some_and(|own| own.needed.is_empty() && own.interpreter.is_none())
}

fn candidates(name: &str, first: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = first.iter().map(|directory| directory.join(name)).collect();
    paths.extend(cache().get(name).into_iter().flatten().cloned());
    let machine = std::env::consts::ARCH;
    for directory in [
        format!("/lib/{machine}-linux-gnu"),
        format!("/usr/lib/{machine}-linux-gnu"),
        "/lib64".to_owned(),
        "/usr/lib64".to_owned(),
        "/lib".to_owned(),
        "/usr/lib".to_owned(),
    ] {
        paths.push(Path::new(&directory).join(name));
    }
    paths.retain(|path| path.is_file());
    paths
}

fn library_path() -> Vec<PathBuf> {
    let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let users = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
    let script_paths = SEARCHED_FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    script_paths.into_iter().chain(users).collect()
}

static SEARCHED_FIRST: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds these directories before those of `LD_LIBRARY_PATH`: scripts prepend them for their programs.
pub fn search_first(directories: Vec<PathBuf>) {
    *SEARCHED_FIRST.lock().unwrap_or_else(PoisonError::into_inner) = directories;
}

/// Replaces `$ORIGIN` by the directory of the object that carries the path.
fn expand(paths: &[String], object: &Path) -> Vec<PathBuf> {
    let origin =
        object.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    let origin = origin.to_string_lossy();
    paths
        .iter()
        .map(|path| PathBuf::from(path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)))
        .collect()
}

/// The loader's cache, asked once.
fn cache() -> &'static BTreeMap<String, Vec<PathBuf>> {
    static CACHE: OnceLock<BTreeMap<String, Vec<PathBuf>>> = OnceLock::new();
    CACHE.get_or_init(|| {
        // Often missing in the PATH of a non-root user.
        let ldconfig =
            ["/sbin/ldconfig", "/usr/sbin/ldconfig"].into_iter().find(|path| Path::new(path).exists());
        let output = Command::new(ldconfig.unwrap_or("ldconfig")).arg("-p").output();
        parse_cache(&output.map(|output| output.stdout).unwrap_or_default())
    })
}

/// Reads lines like `libgomp.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libgomp.so.1`.
fn parse_cache(listing: &[u8]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut cache: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for line in String::from_utf8_lossy(listing).lines() {
        if let Some((entry, path)) = line.split_once(" => ")
            && let Some(name) = entry.split_whitespace().next()
        {
            cache.entry(name.to_owned()).or_default().push(PathBuf::from(path));
        }
    }
    cache
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_of_this_test_is_found() {
        let objects = objects_of(&std::env::current_exe().unwrap());
        let names: Vec<_> = objects.iter().filter_map(|(path, _)| path.file_name()?.to_str()).collect();
        assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
    }

    #[test]
    fn cache_lines_of_several_kinds_are_read() {
        let listing = b"2 libs found in cache `/etc/ld.so.cache'\n\
            \tliba.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/liba.so.1\n\
            \tliba.so.1 (libc6) => /lib32/liba.so.1\n\
            Cache generated by: ldconfig\n";
        let cache = parse_cache(listing);
        assert_eq!(cache.len(), 1);
        assert_eq!(cache["liba.so.1"].len(), 2);
    }

    #[test]
    fn origin_is_the_directory_of_the_object() {
        let own = std::env::current_exe().unwrap();
        let expected = own.canonicalize().unwrap().parent().unwrap().join("../lib");
        assert_eq!(
            expand(&["$ORIGIN/../lib".into(), "/opt".into()], &own),
            [expected, PathBuf::from("/opt")]
        );
    }
}
