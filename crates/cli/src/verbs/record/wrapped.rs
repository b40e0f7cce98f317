//! The programs of a command: itself, and those that it plainly names if it is a wrapper
//! (`mpirun -n 4 ./app`, `env X=1 ./app`, `sh -c './app 3'`, `bash run.sh`, `make run`, a script that calls `"$dir/$prog"`).

use super::loader;
use super::program;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a script that are read: its programs are near its beginning.
const SCRIPT_BYTES: u64 = 64 * 1024;
/// Maximum number of scripts read and programs inspected.
const MAX_SCRIPTS: usize = 16;
const MAX_PROGRAMS: usize = 64;

/// Programs that run the files in their arguments, with any first bytes.
const INTERPRETERS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish", "busybox", "python", "perl", "ruby", "lua",
    "Rscript",
];
const MAKES: [&str; 3] = ["make", "gmake", "bmake"];
/// Directories of the system's own commands, which scripts name all the time.
pub const SYSTEM: [&str; 4] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"];

/// The program and every executable file that is named in its arguments, or in the text of scripts and makefiles that
/// it runs, also by these. Each once, the program first. Guessed files are only inspected.
pub fn programs_of(program: &Path, arguments: &[OsString]) -> Vec<PathBuf> {
    let mut search = Search::default();
    search.note(program.to_owned());
    let is_interpreter = is_one_of(program, &INTERPRETERS);
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    for words in &words {
        for word in words.split(is_separator).filter(|word| !word.starts_with('-')) {
            if let Ok(found) = program::find(OsStr::new(word)) {
                search.note(found);
            } else if is_interpreter && Path::new(word).is_file() {
                search.scripts.push(PathBuf::from(word));
            }
        }
    }
    if is_one_of(program, &MAKES) {
        search.makefiles(&words);
    }
    let mut read = 0;
    while let Some(script) = search.scripts.get(read).cloned().filter(|_| read < MAX_SCRIPTS) {
        read += 1;
        if let Some(text) = text_of(&script) {
            search.look_through(&script, &text);
        }
    }
    loader::search_first(search.libraries);
    search.programs
}

#[derive(Default)]
struct Search {
    programs: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    scripts: Vec<PathBuf>,
    /// Directories of relative names, beside the current directory.
    directories: Vec<PathBuf>,
    /// Directories that scripts add to the loader's search.
    libraries: Vec<PathBuf>,
}

impl Search {
    /// Adds an executable file, and reads it if it is a script.
    fn note(&mut self, found: PathBuf) {
        if self.programs.len() < MAX_PROGRAMS && self.seen.insert(found.clone()) {
            if program::is_text(&found) {
                self.scripts.push(found.clone());
            }
            self.programs.push(found);
        }
    }

    fn makefiles(&mut self, words: &[std::borrow::Cow<'_, str>]) {
        let value = |short: &str, long: &str| {
            words.iter().enumerate().find_map(|(index, word)| {
                let glued = word.strip_prefix(long).or_else(|| word.strip_prefix(short));
                glued.filter(|rest| !rest.is_empty()).map(str::to_owned).or_else(|| {
                    (**word == *short).then(|| words.get(index + 1).map(|next| next.to_string())).flatten()
                })
            })
        };
        let directory = PathBuf::from(value("-C", "--directory=").unwrap_or_else(|| ".".to_owned()));
        let named = value("-f", "--file=");
        let names = match &named {
            Some(name) => vec![name.as_str()],
            None => vec!["GNUmakefile", "makefile", "Makefile"],
        };
        self.scripts
            .extend(names.iter().map(|name| directory.join(name)).filter(|path| path.is_file()).take(1));
        self.directories.push(directory);
    }

    fn look_through(&mut self, script: &Path, text: &str) {
        let own = script.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut directories = self.directories.clone();
        directories.push(own.to_owned());
        let text = expanded(text, own);
        self.look_for_library_path(&text, &directories);
        // The program behind a wrapper of libtool is beside it.
        if text.contains("libtool")
            && let Some(name) = script.file_name()
        {
            let prefixed = [OsStr::new("lt-"), name].join(OsStr::new(""));
            let places = [own.join(".libs").join(name), own.join(".libs").join(prefixed)];
            places.into_iter().filter(|place| is_program(place)).for_each(|place| self.note(place));
        }
        let mut looked_at = BTreeSet::new();
        let mut before = "";
        for word in text.split(is_separator).filter(|word| !word.is_empty()) {
            if before == "cd" && directories.len() < MAX_PROGRAMS {
                directories
                    .extend(directories.clone().iter().map(|base| base.join(word)).filter(|it| it.is_dir()));
            }
            before = word;
            // An assignment in front of a command, an option with a value.
            let word = word.rsplit('=').next().unwrap_or(word);
            if word.len() > 1 && !word.starts_with('-') && looked_at.insert(word) {
                self.resolve(word, &directories);
            }
        }
    }

    /// Notes the directories to which a script sets `LD_LIBRARY_PATH`.
    fn look_for_library_path(&mut self, text: &str, directories: &[PathBuf]) {
        for rest in text.split("LD_LIBRARY_PATH=").skip(1) {
            let value = rest.split(|c: char| c != ':' && is_separator(c)).next().unwrap_or_default();
            for path in value.split(':').filter(|path| !path.is_empty()).map(Path::new) {
                let relative = directories.iter().filter(|_| path.is_relative()).map(|base| base.join(path));
                for place in std::iter::once(path.to_owned()).chain(relative).filter(|place| place.is_dir()) {
                    if self.libraries.len() < MAX_PROGRAMS && !self.libraries.contains(&place) {
                        self.libraries.push(place);
                    }
                }
            }
        }
    }

    fn resolve(&mut self, word: &str, directories: &[PathBuf]) {
        let path = Path::new(word);
        let relative = directories.iter().filter(|_| path.is_relative()).map(|base| base.join(path));
        let found: Vec<PathBuf> =
            std::iter::once(path.to_owned()).chain(relative).filter(|it| is_program(it)).collect();
        if found.is_empty()
            && !word.contains('/')
            && let Ok(installed) = program::find(OsStr::new(word))
            && !SYSTEM.iter().any(|directory| installed.parent() == Some(Path::new(directory)))
        {
            self.note(installed);
        }
        for path in found {
            // As `program::find` gives it, so that each is there once.
            let path = if path.to_string_lossy().contains('/') { path } else { Path::new(".").join(path) };
            self.note(path);
        }
    }
}

/// The characters between which a shell, make or Python sees words.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || "\"'`;|&()[],<>".contains(c)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && program::find(path.as_os_str()).is_ok_and(|found| found == *path)
        || path.is_file() && program::find(Path::new(".").join(path).as_os_str()).is_ok()
}

fn is_one_of(program: &Path, names: &[&str]) -> bool {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // `python3.11`, `lua5.4`
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    names.contains(&name)
}

fn text_of(script: &Path) -> Option<String> {
    let mut text = Vec::new();
    std::fs::File::open(script).ok()?.take(SCRIPT_BYTES).read_to_end(&mut text).ok()?;
    (!text.contains(&0)).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// The text without quotes and with the values of its own variables, as far as those are plain. `own` replaces a
/// script's computed own place.
fn expanded(text: &str, own: &Path) -> String {
    let mut variables: BTreeMap<&str, String> = BTreeMap::new();
    let unquoted = |text: &str| text.replace(['"', '\''], "");
    for line in text.lines() {
        let line = line.trim_start();
        let line = ["export ", "local ", "readonly "]
            .iter()
            .find_map(|word| line.strip_prefix(word))
            .unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim_end().trim_end_matches([':', '?', '+']).trim_end();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let asks_for_place =
            ["dirname", "$0", "${0", "BASH_SOURCE", "__file__", "pwd", "CURDIR", "MAKEFILE_LIST"];
        let value = match asks_for_place.iter().any(|word| value.contains(word)) {
            true => own.to_string_lossy().into_owned(),
            false => substituted(unquoted(value.trim()).split(" #").next().unwrap_or_default(), &variables),
        };
        if value.len() < 4096 {
            variables.insert(name, value);
        }
    }
    let own = own.to_string_lossy();
    let mut text = unquoted(text);
    for place in [
        "$(dirname $0)",
        "`dirname $0`",
        "${0%/*}",
        "$(dirname ${BASH_SOURCE[0]})",
        "$(CURDIR)",
        "$PWD",
        "$(pwd)",
    ] {
        text = text.replace(place, &own);
    }
    substituted(&text, &variables)
}

/// Replaces `$NAME`, `${NAME}` and `$(NAME)` by known values; the environment counts too.
fn substituted(text: &str, variables: &BTreeMap<&str, String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let inner = after.strip_prefix(['{', '(']).unwrap_or(after);
        let length = inner.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let name = &inner[..length];
        let is_closed = inner.len() == after.len() || inner[length..].starts_with(['}', ')']);
        let value = variables.get(name).cloned().or_else(|| std::env::var(name).ok());
        match value.filter(|_| is_closed && !name.is_empty() && result.len() < 1 << 20) {
            Some(value) => {
                result.push_str(&value);
                rest = &inner[length + usize::from(inner.len() != after.len())..];
            }
            None => {
                result.push('$');
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_wrapper_is_found() {
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

    #[test]
    fn scripts_are_followed_to_the_programs_that_they_start() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        std::fs::create_dir_all(bin.join(".libs")).unwrap();
        for name in ["app", "second", ".libs/lt-wrapped"] {
            std::fs::copy("/bin/true", bin.join(name)).unwrap();
        }
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let of = |program: &str, script: &Path| {
            let found = programs_of(Path::new(program), &[OsString::from(script)]);
            let names = found.iter().filter(|path| path.starts_with(root.path()));
            let names: BTreeSet<String> =
                names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
            names.into_iter().collect::<Vec<_>>()
        };
        let shown = bin.display();
        let plain = write("plain.sh", &format!("{shown}/app 1\n{shown}/second 2\n"));
        assert_eq!(of("/bin/bash", &plain), ["app", "second"]);
        let variables = write(
            "variables.sh",
            "dir=$(cd \"$(dirname \"$0\")\" && pwd)/bin\nprog=app\n\"$dir/bin/$prog\" 3\n",
        );
        assert_eq!(of("/bin/sh", &variables), ["app"]);
        let quoted = write("quoted.sh", &format!("D={shown}\nP='second'\nexec \"${{D}}\"/\"$P\" \"$@\"\n"));
        assert_eq!(of("/bin/dash", &quoted), ["second"]);
        let nested = write("nested.sh", &format!("sh {}\n", plain.display()));
        std::fs::set_permissions(&plain, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(of("/bin/bash", &nested), ["app", "plain.sh", "second"]);
        let python = write(
            "x.py",
            "import os, subprocess\nhere = os.path.dirname(__file__)\nsubprocess.run(['bin/app', '2'])\n",
        );
        assert_eq!(of("/usr/bin/python3.11", &python), ["app"]);
        let wrapper =
            write("bin/wrapped", "#! /bin/sh\n# wrapped - temporary wrapper script, generated by libtool\n");
        std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(of("/usr/bin/env", &wrapper), ["lt-wrapped", "wrapped"]);
        write("Makefile", "APP := bin/app\nrun: all\n\t./$(APP) 3 && cd bin && ./second\n");
        let made = programs_of(
            Path::new("/usr/bin/make"),
            &[format!("-C{}", root.path().display()).into(), "run".into()],
        );
        assert!(
            ["app", "second"].iter().all(|name| made.iter().any(|path| path.ends_with(name))),
            "{made:?}"
        );
    }

    #[test]
    fn library_paths_of_scripts_are_noted() {
        let root = tempfile::tempdir().unwrap();
        for name in ["lib", "other"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let mut search = Search::default();
        let script = root.path().join("run.sh");
        let text = "here=$(dirname \"$0\")\nLD_LIBRARY_PATH=\"$here/lib:$LD_LIBRARY_PATH\"\nexport LD_LIBRARY_PATH\n\
                    LD_LIBRARY_PATH=other:/not/there ./app; echo LD_LIBRARY_PATH=\n";
        search.look_through(&script, text);
        assert_eq!(search.libraries, [root.path().join("lib"), root.path().join("other")]);
    }

    #[test]
    fn endless_wrapper_chains_are_bounded() {
        let root = tempfile::tempdir().unwrap();
        let bomb: String = (0..60).map(|i| format!("v{}=$v{i}$v{i}$v{i}$v{i}\n", i + 1)).collect();
        let script = root.path().join("bomb.sh");
        std::fs::write(&script, format!("v0=aaaaaaaa\n{bomb}$v60 ${{ $( ${{v1 $\n")).unwrap();
        assert_eq!(programs_of(Path::new("/bin/sh"), &[script.into()]), [PathBuf::from("/bin/sh")]);
    }
}
