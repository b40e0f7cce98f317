//! The scripts that builds and newcomers go through.

mod common;

use common::{Compiler, output, text};
use object::{Object, ObjectSection, ObjectSymbol};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name)
}

#[test]
fn debug_information_is_split_off_once() {
    let here = tempfile::tempdir().unwrap();
    let deps = here.path().join("deps");
    fs::create_dir(&deps).unwrap();
    let program = Compiler::Gcc.build(here.path(), "program", "answer.c", &["-fno-openmp", "-fno-inline"]);
    let copy = deps.join("program-1234");
    fs::hard_link(&program, &copy).unwrap();
    let built = fs::metadata(&program).unwrap().modified().unwrap();
    let split = || {
        let absent = here.path().join("absent.so");
        assert!(output(Command::new(script("split-debug")).arg(&program).arg(absent)).status.success());
    };
    split();
    let sections = |path: &Path| -> Vec<String> {
        let bytes = fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert!(file.symbols().any(|symbol| symbol.name() == Ok("answer")), "{}", path.display());
        file.sections().filter_map(|section| Some(section.name().ok()?.to_owned())).collect()
    };
    let has = |path: &Path, name: &str| sections(path).iter().any(|section| section == name);
    assert!(!has(&program, ".debug_info") && has(&program, ".gnu_debuglink"));
    assert!(has(&here.path().join("program.debug"), ".debug_info"));
    assert_eq!(output(&mut Command::new(&program)).status.code(), Some(42));
    // Cargo's own copy is the same file, which looks as old as before.
    let stripped = fs::read(&program).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), stripped);
    assert_eq!(fs::metadata(&program).unwrap().modified().unwrap(), built);
    let debug = fs::read(here.path().join("program.debug")).unwrap();
    split();
    assert_eq!(fs::read(&program).unwrap(), stripped);
    assert_eq!(fs::read(here.path().join("program.debug")).unwrap(), debug);
}

/// Debuggers find debug information by its name, in `.debug` beside the file; a package is made in a directory of its own.
#[test]
fn an_installation_has_its_debug_information_and_uninstalls_completely() {
    let here = tempfile::tempdir().unwrap();
    let at = |path: &str| here.path().join(path);
    fs::create_dir_all(at("scripts")).unwrap();
    fs::create_dir_all(at("target/release")).unwrap();
    std::os::unix::fs::symlink(script("../crates"), at("crates")).unwrap();
    for name in ["install", "split-debug"] {
        fs::copy(script(name), at("scripts").join(name)).unwrap();
    }
    let plain = ["-fno-openmp", "-g", "-Wno-unused-result"];
    Compiler::Gcc.build(&at("target/release"), "taskscope", "stand_in.c", &plain);
    let library = [&plain[..], &["-shared", "-fPIC"]].concat();
    for name in [
        "libtaskscope_ompt",
        "libtaskscope_mpi",
        "libtaskscope_threads",
        "libtaskscope_device",
        "libovni",
        "libtaskscope",
    ] {
        Compiler::Gcc.build(&at("target/release"), &format!("{name}.so"), "answer.c", &library);
    }
    let install = |arguments: &[&str]| {
        let mut command = Command::new(at("scripts/install"));
        let run = output(command.env("DESTDIR", at("stage")).args(arguments));
        assert!(run.status.success(), "{}", text(&run.stderr));
    };
    install(&["/opt/t"]);
    let files = || {
        let listed =
            output(Command::new("find").arg(at("stage")).args(["-not", "-type", "d", "-printf", "%P\n"]));
        let mut files: Vec<String> = text(&listed.stdout).lines().map(str::to_owned).collect();
        files.sort();
        files
    };
    let installed = files();
    for name in [
        "bin/taskscope",
        "lib/libtaskscope.so.1",
        "lib/taskscope/libtaskscope_ompt.so",
        "lib/taskscope/libtaskscope_mpi.so",
        "lib/taskscope/libtaskscope_threads.so",
        "lib/taskscope/libtaskscope_device.so",
        "lib/taskscope/ovni/libovni.so.1",
    ] {
        let path = at("stage/opt/t").join(name);
        let bytes = fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let (link, _) = file.gnu_debuglink().unwrap().expect("the name of its debug information");
        let debug = path.parent().unwrap().join(".debug").join(std::str::from_utf8(link).unwrap());
        assert!(debug.is_file(), "{} of {installed:?}", debug.display());
    }
    let module = fs::read_to_string(at("stage/opt/t/lib/pkgconfig/taskscope.pc")).unwrap();
    assert!(module.contains("prefix=/opt/t\n") && module.contains("7.8.9"), "{module}");
    install(&["--uninstall", "/opt/t"]);
    assert_eq!(files(), [""; 0]);
    assert!(!at("stage/opt/t/bin/.debug").exists());
}

#[test]
fn steps_are_named_timed_and_pass_on_their_exit_status() {
    let step = |command: &[&str]| {
        let output = output(Command::new(script("step")).arg("do it").args(command));
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, talk) = step(&["echo", "x y"]);
    assert_eq!((code, out.as_str()), (Some(0), "x y\n"));
    assert!(talk.starts_with("==> do it\n    done in ") && talk.ends_with(" s: do it\n"), "{talk}");
    let (code, _, talk) = step(&["sh", "-c", "exit 3"]);
    assert_eq!(code, Some(3));
    assert!(talk.contains("    failed after ") && talk.contains("(exit status 3)"), "{talk}");
}

/// The names behind `NAME = ` in the Makefile, over continued lines.
fn list_in_makefile(makefile: &str, name: &str) -> Vec<String> {
    let list = makefile.split(&format!("\n{name} = ")).nth(1).unwrap_or_else(|| panic!("no {name}"));
    let mut names = Vec::new();
    for line in list.lines() {
        names.extend(line.trim_end_matches('\\').split_whitespace().map(str::to_owned));
        if !line.ends_with('\\') {
            break;
        }
    }
    names
}

#[test]
fn tests_that_the_makefile_selects_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    let crates: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for list in ["QUICK_TESTS", "QUICK_OF_VIEW", "QUICK_OF_COMMAND", "LOADED_TESTS"] {
        let names = list_in_makefile(&makefile, list);
        assert!(names.len() > 4, "{list}: {names:?}");
        for name in names {
            let files = [format!("tests/{name}.rs"), format!("tests/{name}/main.rs")];
            let is_there = crates.iter().any(|one| files.iter().any(|file| one.join(file).is_file()));
            assert!(is_there, "{list} of the Makefile selects {name}, which is not a test");
        }
    }
}
