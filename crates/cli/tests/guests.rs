//! Programs that a recorder must not change, or cannot be loaded into: they run as alone, in each mode.

mod common;

use common::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODES: [&[&str]; 3] = [&[], &["--sample", "1000"], &["--mode", "profile"]];

/// Builds C code with a compiler driver. `None`, with the reason printed, where that is not installed or cannot.
fn build(driver: &str, directory: &Path, name: &str, code: &str, options: &[&str]) -> Option<PathBuf> {
    let (source, program) = (directory.join(format!("{name}.c")), directory.join(name));
    fs::write(&source, code).unwrap();
    let built = Command::new(driver).arg(&source).arg("-o").arg(&program).args(options).output();
    if !built.as_ref().is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: {driver} {options:?} does not build here");
        return None;
    }
    Some(program)
}

/// Runs a command under `record`.
fn recorded(here: &Path, mode: &[&str], command: &[&str]) -> Output {
    output(record(here).args(["-o", "out"]).args(mode).arg("--").args(command))
}

/// A command runs with its own exit code and output in each mode, and one line names the reason why nothing is recorded.
fn assert_untouched(here: &Path, command: &[&str], reason: &str) {
    let alone = {
        let mut alone = Command::new(command[0]);
        // As `record` has it here.
        output(alone.args(&command[1..]).current_dir(here).env("OMP_NUM_THREADS", "2"))
    };
    for mode in MODES {
        let run = recorded(here, mode, command);
        assert_eq!(run.status.code(), alone.status.code(), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let stderr = text(&run.stderr);
        let reasons = stderr.lines().filter(|line| line.contains(reason)).count();
        assert_eq!(reasons, 1, "{mode:?}");
        // Beside what the program itself prints.
        let others = stderr.lines().filter(|line| !line.starts_with("taskscope: ")).count();
        assert_eq!(others, text(&alone.stderr).lines().count(), "{mode:?}");
        let _ = fs::remove_dir_all(here.join("out"));
    }
}

const ENVIRONMENT: &str = "#include <stdio.h>\nextern char **environ;\n\
    int main(int n, char **a) { for (char **e = environ; *e; e++) puts(*e); return n + 10; }\n";

#[test]
fn programs_of_another_c_library_run_untouched() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build("musl-gcc", here.path(), "other", ENVIRONMENT, &[]) else { return };
    let reason = "uses another C library";
    assert_untouched(here.path(), &["./other", "one"], reason);
    assert_untouched(here.path(), &["sh", "-c", "./other one two | tail -n 1; exit 7"], reason);
    let script = here.path().join("script");
    fs::write(&script, format!("#!{} -x\n", program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_untouched(here.path(), &["./script"], reason);
    let nested = here.path().join("nested");
    fs::write(&nested, format!("#!{}\n", script.display())).unwrap();
    fs::set_permissions(&nested, fs::Permissions::from_mode(0o755)).unwrap();
    assert_untouched(here.path(), &["./nested", "a", "b"], reason);
}

#[test]
fn programs_with_other_rights_run_untouched() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build("gcc", here.path(), "rights", ENVIRONMENT, &[]) else { return };
    if std::os::unix::fs::chown(&program, Some(65534), Some(65534)).is_err() {
        eprintln!("skipped: only root gives files away");
        return;
    }
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        assert_untouched(here.path(), &["./rights"], "runs with the rights of another user");
    }
}

#[test]
fn programs_with_thread_sanitizer_run_as_alone() {
    const LOCKED: &str = "#include <pthread.h>\n#include <stdio.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static long sum;\n\
        static void *add(void *x) { for (int i = 0; i < 20000; i++) { pthread_mutex_lock(&lock); sum += i & 7; \
        pthread_mutex_unlock(&lock); } return x; }\n\
        int main(void) { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(t + i, 0, add, 0);\n\
        for (int i = 0; i < 3; i++) pthread_join(t[i], 0); printf(\"%ld\\n\", sum); return 29; }\n";
    const REGION: &str = "#include <stdio.h>\nstatic long sums[2];\nint omp_get_thread_num(void);\nint main(void) {\n\
        #pragma omp parallel num_threads(2)\nsums[omp_get_thread_num()] += 5;\nputs(\"done\"); return 28; }\n";
    const OTHERS: &str = "int add_one(int n) { return n + 1; }\n";
    const CALLS: &str = "int add_one(int); int main(void) { return add_one(26); }\n";
    let here = tempfile::tempdir().unwrap();
    let reason = "has ThreadSanitizer";
    let checked = ["-fsanitize=thread", "-g", "-O1", "-pthread"];
    for (name, code, more) in [("locked", LOCKED, &[][..]), ("region", REGION, &["-fopenmp"])] {
        if build("gcc", here.path(), name, code, &[&checked[..], more].concat()).is_some() {
            assert_untouched(here.path(), &[&format!("./{name}")], reason);
            assert_untouched(here.path(), &["sh", "-c", &format!("./{name}")], reason);
        }
    }
    // Only a library is checked.
    let library = here.path().join("libothers.so");
    let flags = [&checked[..], &["-shared", "-fPIC"]].concat();
    if build("gcc", here.path(), "libothers.so", OTHERS, &flags).is_some() {
        let path = library.display().to_string();
        let flags = [path.as_str(), "-Wl,-rpath,$ORIGIN", "-fsanitize=thread"];
        if build("gcc", here.path(), "calls", CALLS, &flags).is_some() {
            assert_untouched(here.path(), &["./calls"], reason);
        }
    }
}

/// Variables of one name, entries that are none, and their order reach the program.
#[test]
fn the_environment_is_passed_on_in_its_order() {
    const STARTER: &str = "#include <unistd.h>\nint main(int n, char **a) { char *e[] = {\"Z=1\", \"PATH=/usr/bin:/bin\", \
        \"A=2\", \"Z=3\", \"none\", \"A=2\", \"LAST=\", 0}; execve(a[1], a + 1, e); return 99; }\n";
    let here = tempfile::tempdir().unwrap();
    let Some(starter) = build("gcc", here.path(), "starter", STARTER, &[]) else { return };
    let Some(shown) = build("gcc", here.path(), "shown", ENVIRONMENT, &[]) else { return };
    let alone = output(Command::new(&starter).arg(&shown));
    for mode in MODES {
        let mut command = Command::new(&starter);
        command.args([env!("CARGO_BIN_EXE_taskscope"), "record", "-q", "-o"]).arg(here.path().join("out"));
        let run = output(command.args(mode).arg("--").arg(&shown));
        assert_eq!(run.status.code(), alone.status.code());
        let own = [
            "OMP_TOOL",
            "TASKSCOPE_",
            "LD_PRELOAD=",
            "OPENCL_LAYERS=",
            "CUDA_INJECTION64_PATH=",
            "LD_LIBRARY_PATH=",
            "OVNI_TRACEDIR=",
        ];
        let shown = text(&run.stdout);
        let kept: Vec<&str> =
            shown.lines().filter(|line| !own.iter().any(|name| line.starts_with(name))).collect();
        assert_eq!(kept, text(&alone.stdout).lines().collect::<Vec<_>>(), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// Go's runtime ends a process where a signal's handler runs on a goroutine's stack.
#[test]
fn go_programs_with_c_code_run_as_alone() {
    let here = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cgo");
    let program = here.path().join("cgo");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(source)
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .env("GOCACHE", here.path().join("cache"))
        .env("GOPATH", here.path().join("path"))
        .output();
    if !built.as_ref().is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: go does not build here: {built:?}");
        return;
    }
    let alone = output(&mut Command::new(&program));
    assert_eq!(alone.status.code(), Some(0));
    for mode in [&["--sample", "1000"][..], &["--sample", "97"], &["--mode", "profile"]] {
        for _ in 0..5 {
            let run = recorded(here.path(), mode, &["./cgo"]);
            assert_eq!(
                (run.status.code(), run.stdout.as_slice()),
                (Some(0), alone.stdout.as_slice()),
                "{mode:?}"
            );
            let _ = fs::remove_dir_all(here.path().join("out"));
        }
    }
}
