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
    let source = "int answer(void) { return 42; }\nint main(void) { return answer(); }\n";
    let program = Compiler::Gcc.build(here.path(), "program", source, &["-fno-openmp", "-fno-inline"]);
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
