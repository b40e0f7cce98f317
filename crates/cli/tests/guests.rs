//! Programs that a recorder must not change, or cannot be loaded into: they run as alone, in each mode.

mod common;

use common::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODES: [&[&str]; 3] = [&[], &["--sample", "1000"], &["--mode", "profile"]];

/// Builds C code with a compiler driver. `None`, with the reason printed, if that is not installed or fails.
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
        // Without the program's own output.
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
            "ASAN_OPTIONS=",
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

/// Go's runtime ends a process if a signal handler runs on a goroutine's stack.
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

/// Ways to start a program that `record` does not see: the shell's variable `P` names it.
const STARTERS: [&[&str]; 4] =
    [&["sh", "-c", "$P"], &["sh", "-c", "echo | xargs $P"], &["./static"], &["./calls_system"]];

fn build_starters(here: &Path) -> bool {
    const STATIC: &str = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { char *p = getenv(\"P\"); \
        return execl(p, p, (char *)0); }\n";
    const SYSTEM: &str = "#include <stdlib.h>\nint main(void) { return system(\"$P\") >> 8; }\n";
    build("gcc", here, "static", STATIC, &["-static"]).is_some()
        && build("gcc", here, "calls_system", SYSTEM, &[]).is_some()
}

/// Started in any way, and although it is not named: a program runs as alone, in each mode.
fn assert_unnamed_as_alone(here: &Path, program: &str, reason: Option<&str>) {
    for starter in STARTERS {
        let alone = Command::new(starter[0])
            .args(&starter[1..])
            .current_dir(here)
            .env("P", program)
            .env("OMP_NUM_THREADS", "2")
            .output()
            .unwrap();
        for mode in MODES {
            let run = output(
                record(here).env("P", program).args(["-q", "-o", "out"]).args(mode).arg("--").args(starter),
            );
            assert_eq!(run.status.code(), alone.status.code(), "{program} by {starter:?} {mode:?}");
            assert_eq!(text(&run.stdout), text(&alone.stdout), "{program} by {starter:?} {mode:?}");
            assert_eq!(text(&run.stderr), text(&alone.stderr), "{program} by {starter:?} {mode:?}");
            if let Some(reason) = reason.filter(|_| !mode.is_empty()) {
                let told = notices(&here.join("out"));
                assert_eq!(told.iter().filter(|name| *name == reason).count(), 1, "{told:?}");
            }
            let _ = fs::remove_dir_all(here.join("out"));
        }
    }
}

#[test]
fn programs_of_another_c_library_run_from_every_starter() {
    const PLAIN: &str = "#include <stdio.h>\nint main(void) { puts(\"musl\"); return 12; }\n";
    let here = tempfile::tempdir().unwrap();
    if build("musl-gcc", here.path(), "other", PLAIN, &[]).is_some() && build_starters(here.path()) {
        assert_unnamed_as_alone(here.path(), "./other", None);
    }
}

#[test]
fn programs_with_checkers_run_as_alone_from_every_starter() {
    const LOCKED: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\nextern char **environ;\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static long sum;\n\
        static void *add(void *x) { for (int i = 0; i < 20000; i++) { pthread_mutex_lock(&lock); sum += i & 7; \
        pthread_mutex_unlock(&lock); } return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); pthread_join(t, 0);\n\
        for (char **e = environ; *e; e++) if ((*e)[0] != '_') puts(*e); printf(\"%ld\\n\", sum); return 29; }\n";
    let here = tempfile::tempdir().unwrap();
    if !build_starters(here.path()) {
        return;
    }
    let checked = ["-g", "-O1", "-pthread"];
    for (driver, name, flag, reason) in [
        ("gcc", "races", "-fsanitize=thread", "thread-sanitizer"),
        ("clang-19", "clang_races", "-fsanitize=thread", "thread-sanitizer"),
        ("clang-19", "memory", "-fsanitize=memory", "memory-sanitizer"),
    ] {
        if build(driver, here.path(), name, LOCKED, &[&checked[..], &[flag]].concat()).is_some() {
            // The environment is printed: attached additions are removed from it if preloaded.
            let quiet = format!("./{name}");
            for mode in MODES.into_iter().skip(1) {
                let command = |taskscope: &mut Command| {
                    let all = taskscope.env("P", &quiet).env_remove("PWD").env_remove("OLDPWD");
                    output(all.args(["-q", "-o", "out"]).args(mode).args(["--", "./static"]))
                };
                let run = command(&mut record(here.path()));
                let alone = output(
                    taskscope_environment()
                        .current_dir(here.path())
                        .env("P", &quiet)
                        .env_remove("PWD")
                        .env_remove("OLDPWD")
                        .arg("./static"),
                );
                assert_eq!(run.status.code(), alone.status.code());
                assert_eq!(text(&run.stdout), text(&alone.stdout));
                assert_eq!(text(&run.stderr), text(&alone.stderr));
                assert_eq!(notices(&here.path().join("out")), [reason]);
                let _ = fs::remove_dir_all(here.path().join("out"));
            }
        }
    }
    const SUM: &str = "#include <stdio.h>\nint main(void) { puts(\"checked\"); return 29; }\n";
    if build("gcc", here.path(), "races", SUM, &["-fsanitize=thread"]).is_some() {
        assert_unnamed_as_alone(here.path(), "./races", Some("thread-sanitizer"));
    }
}

/// `env`, with the environment that [`record`] has.
fn taskscope_environment() -> Command {
    let mut command = Command::new("env");
    for (name, value) in taskscope().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("OMP_NUM_THREADS", "2");
    command
}

/// Restricts itself and works on, in two threads; `argv[1]`: how, `argv[2]`: the answer to all other calls (`sock_filter.k`), `argv[3]`:
/// a program to execute then.
const RESTRICTED: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static pthread_barrier_t both;
static volatile double sum;

static void work(void) {
    double own = 0;
    for (long i = 1; i < 60000000; i++) own += 1.0 / i;
    sum = own;
}

static void *second(void *x) {
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    work();
    /* Does not end, which takes other calls. */
    for (;;) pthread_barrier_wait(&both);
    return x;
}

int main(int count, char **arguments) {
    struct sock_filter own[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MAY(write), MAY(futex), MAY(exit), MAY(exit_group), MAY(munmap), MAY(madvise), MAY(fstat), MAY(newfstatat), MAY(brk),
        BPF_STMT(BPF_RET | BPF_K, strtoul(arguments[2], 0, 0)) };
    /* What a loader does, and a program of another kind. */
    struct sock_filter others[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MAY(write), MAY(exit_group), MAY(munmap), MAY(fstat), MAY(newfstatat), MAY(brk), MAY(execve), MAY(openat), MAY(read),
        MAY(close), MAY(mmap), MAY(mprotect), MAY(pread64), MAY(arch_prctl), MAY(set_tid_address), MAY(set_robust_list), MAY(rseq),
        MAY(prlimit64), MAY(getrandom), MAY(access), MAY(readlink),
        BPF_STMT(BPF_RET | BPF_K, strtoul(arguments[2], 0, 0)) };
    struct sock_fprog program = { sizeof own / sizeof *own, own };
    /* Timers, files: by a list of what is refused. */
#define NOT(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, strtoul(arguments[2], 0, 0))
    struct sock_filter listed[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        NOT(timer_create), NOT(timer_settime), NOT(timer_delete), NOT(openat), NOT(perf_event_open), NOT(fallocate), NOT(rename),
        NOT(unlink), NOT(mkdir), NOT(process_vm_readv), NOT(statx),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    if (!strcmp(arguments[1], "refuse")) program = (struct sock_fprog){ sizeof listed / sizeof *listed, listed };
    pthread_t thread;
    pthread_barrier_init(&both, 0, 2);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (count > 3) {
        struct sock_fprog program = { sizeof others / sizeof *others, others };
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 90;
        execl(arguments[3], arguments[3], (char *)0);
        return 91;
    }
    pthread_create(&thread, 0, second, 0);
    pthread_barrier_wait(&both);
    work();
    if (!strcmp(arguments[1], "prctl")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0) != -1 || errno != EFAULT) return 92;
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 93;
    } else if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return 94;
    pthread_barrier_wait(&both);
    work();
    pthread_barrier_wait(&both);
    printf("%.1f\n", sum);
    return 13;
}
"#;

/// A call of the recorder's would end them.
#[test]
fn programs_that_restrict_their_system_calls_end_as_alone() {
    const KILL: &str = "0x80000000";
    const REFUSE: &str = "0x00050001";
    let here = tempfile::tempdir().unwrap();
    let flags = ["-pthread", "-O1", "-g"];
    if build("gcc", here.path(), "restricted", RESTRICTED, &flags).is_none() {
        return;
    }
    let alone = output(Command::new("./restricted").args(["prctl", KILL]).current_dir(here.path()));
    if alone.status.code() != Some(13) {
        eprintln!("skipped: a program cannot restrict its system calls here");
        return;
    }
    let told = |run: &Output| text(&run.stderr).matches("restricts its system calls").count();
    for mode in MODES {
        for how in ["prctl", "seccomp"] {
            let run = recorded(here.path(), mode, &["./restricted", how, KILL]);
            assert_eq!(run.status.code(), Some(13), "{how} {mode:?}");
            assert_eq!(text(&run.stdout), text(&alone.stdout), "{how} {mode:?}");
            assert_eq!((told(&run), notices(&here.path().join("out")).len()), (1, 1), "{how} {mode:?}");
            // Activity before it is recorded.
            let is_profile = mode.contains(&"profile");
            assert_eq!(
                streams(&here.path().join("out")).len(),
                if mode.contains(&"--sample") { 2 } else { 0 }
            );
            if is_profile {
                assert!(text(&run.stderr).contains("profile of 1 process"), "{mode:?}");
            }
            let _ = fs::remove_dir_all(here.path().join("out"));
        }
        // A handler's return is refused.
        let run = recorded(here.path(), mode, &["./restricted", "seccomp", REFUSE]);
        assert_eq!((run.status.code(), told(&run)), (Some(13), 1), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
        // Refused are calls of the recorder's, by a list of them.
        let run = recorded(here.path(), mode, &["./restricted", "refuse", REFUSE]);
        assert_eq!((run.status.code(), told(&run)), (Some(13), 0), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// Filters outlast `exec`.
#[test]
fn programs_of_a_restricted_process_end_as_alone() {
    const PLAIN: &str = "#include <stdio.h>\nint main(void) { volatile double s = 0; \
        for (int i = 0; i < 60000000; i++) s += i; puts(\"done\"); return 14; }\n";
    let here = tempfile::tempdir().unwrap();
    if build("gcc", here.path(), "restricted", RESTRICTED, &["-pthread", "-O1"]).is_none() {
        return;
    }
    build("gcc", here.path(), "plain", PLAIN, &["-fno-stack-protector"]);
    let command = ["./restricted", "prctl", "0x80000000", "./plain"];
    let alone = output(Command::new(command[0]).args(&command[1..]).current_dir(here.path()));
    if alone.status.code() != Some(14) {
        eprintln!("skipped: a program cannot restrict its system calls so here");
        return;
    }
    for mode in MODES {
        let run = recorded(here.path(), mode, &command);
        assert_eq!(run.status.code(), Some(14), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// The program's leaks are found, the recorder's memory is not reported.
#[test]
fn leaks_are_found_as_alone() {
    const LEAK: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <stdio.h>\n\
        static void *work(void *x) { volatile double s = 0; for (int i = 0; i < 3000000; i++) s += i; return x; }\n\
        int main(int n, char **a) { pthread_t t; pthread_create(&t, 0, work, 0); work(0); pthread_join(t, 0);\n\
        void *volatile p = n > 1 ? malloc(77) : 0; p = 0; puts(\"done\"); return 3; }\n";
    let here = tempfile::tempdir().unwrap();
    for (driver, name, flag) in [
        ("gcc", "address", "-fsanitize=address"),
        ("gcc", "leak", "-fsanitize=leak"),
        ("gcc", "undefined", "-fsanitize=undefined"),
        ("clang-19", "clang_address", "-fsanitize=address"),
    ] {
        if build(driver, here.path(), name, LEAK, &[flag, "-pthread"]).is_none() {
            continue;
        }
        let program = format!("./{name}");
        for arguments in [&[][..], &["leak"]] {
            let command = [&[program.as_str()][..], arguments].concat();
            let alone = output(Command::new(command[0]).args(&command[1..]).current_dir(here.path()));
            for mode in MODES {
                let run = recorded(here.path(), mode, &command);
                assert_eq!(run.status.code(), alone.status.code(), "{command:?} {mode:?}");
                assert_eq!(text(&run.stdout), text(&alone.stdout), "{command:?} {mode:?}");
                let leaks = |output: &Output| text(&output.stderr).matches("77 byte(s) leaked").count();
                assert_eq!(leaks(&run), leaks(&alone), "{command:?} {mode:?}");
                let _ = fs::remove_dir_all(here.path().join("out"));
            }
        }
    }
}

/// A program that may not be recorded does not exclude others that the same command names.
#[test]
fn others_are_recorded_beside_an_untouched_program() {
    const PLAIN: &str = "#include <stdio.h>\nint main(void) { puts(\"musl\"); return 0; }\n";
    const REGION: &str =
        "int main(void) { int n = 0;\n#pragma omp parallel reduction(+ : n)\nn++;\nreturn n != 2; }\n";
    let here = tempfile::tempdir().unwrap();
    if build("musl-gcc", here.path(), "other", PLAIN, &[]).is_none() {
        return;
    }
    for compiler in Compiler::ALL {
        compiler.build(here.path(), "region", REGION, &[]);
        for mode in MODES {
            let run = recorded(here.path(), mode, &["sh", "-c", "./other && ./region && ./other"]);
            assert_eq!((run.status.code(), text(&run.stdout).as_str()), (Some(0), "musl\nmusl\n"));
            assert!(notices(&here.path().join("out")).contains(&"cannot-load".to_owned()));
            let is_profile = mode.contains(&"profile");
            assert!(is_profile || streams(&here.path().join("out")).len() == 2, "{compiler:?} {mode:?}");
            assert!(text(&run.stderr).contains(if is_profile {
                "profile of 1 process"
            } else {
                "2 threads"
            }));
            let _ = fs::remove_dir_all(here.path().join("out"));
        }
    }
}

/// The program can start as many threads as alone, minus one for the process of `record`.
#[test]
fn thread_limits_leave_the_program_as_many_as_alone() {
    const COUNT: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        static void *wait(void *x) { pause(); return x; }\n\
        int main(void) { int n = 0;\n#pragma omp parallel reduction(+ : n)\nn++;\n\
        usleep(100000); pthread_t t; while (n < 1000 && !pthread_create(&t, 0, wait, 0)) n++;\n\
        printf(\"%d\\n\", n); fflush(stdout); _exit(6); }\n";
    const FORK: &str = "#include <stdio.h>\n#include <unistd.h>\n#include <signal.h>\n#include <sys/wait.h>\n\
        int main(void) { int n = 0, p, all[1000];\n#pragma omp parallel reduction(+ : n)\nn++;\n\
        int first = n; usleep(100000); while (n < 1000 && (p = fork()) > 0) all[n++] = p; if (!p) { pause(); _exit(0); }\n\
        printf(\"%d\\n\", n); fflush(stdout); while (n > first) { kill(all[--n], 9); waitpid(all[n], 0, 0); } _exit(6); }\n";
    let here = tempfile::tempdir().unwrap();
    fs::set_permissions(here.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(other) = OtherUser::new(here.path(), 1_900_000_000, 24) else { return };
    let own = env!("CARGO_BIN_EXE_taskscope");
    for (name, code) in [("count", COUNT), ("forks", FORK)] {
        for compiler in Compiler::ALL {
            let program = compiler.build(here.path(), name, code, &["-Wno-unused-result"]);
            let program = program.display().to_string();
            let alone = output(&mut other.command(&[&program]));
            let threads = |run: &Output| text(&run.stdout).trim().parse::<i64>().unwrap();
            assert!(threads(&alone) > 15, "{alone:?}");
            for mode in MODES {
                let record = [&[own, "record", "-q", "-o", "out"], mode, &["--", &program]].concat();
                let run = output(&mut other.command(&record));
                assert_eq!(run.status.code(), alone.status.code(), "{name} {compiler:?} {mode:?}");
                assert_eq!(threads(&run), threads(&alone) - 1, "{name} {compiler:?} {mode:?}");
                let _ = fs::remove_dir_all(here.path().join("out"));
            }
        }
    }
}

/// Near a large limit, a recorder that is preloaded ends its thread for the program's.
#[test]
fn a_thread_of_the_recorder_gives_way_to_the_programs() {
    const COUNT: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        static void *wait(void *x) { pause(); return x; }\n\
        int main(void) { int n = 0; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 32768);\n\
        usleep(100000); pthread_t t; while (n < 4000 && !pthread_create(&t, &a, wait, 0)) n++;\n\
        printf(\"%d\\n\", n); fflush(stdout); _exit(6); }\n";
    let here = tempfile::tempdir().unwrap();
    fs::set_permissions(here.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(other) = OtherUser::new(here.path(), 1_950_000_000, 1100) else { return };
    let Some(program) = build("gcc", here.path(), "count", COUNT, &["-pthread"]) else { return };
    let program = program.display().to_string();
    let threads = |run: &Output| text(&run.stdout).trim().parse::<i64>().unwrap();
    let alone = output(&mut other.command(&[&program]));
    for mode in MODES {
        let own = env!("CARGO_BIN_EXE_taskscope");
        let record = [&[own, "record", "-q", "-o", "out"], mode, &["--", &program]].concat();
        let run = output(&mut other.command(&record));
        assert_eq!(run.status.code(), alone.status.code(), "{mode:?}");
        assert_eq!(threads(&run), threads(&alone) - 1, "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// A user without any other process, with a low process limit.
struct OtherUser<'a> {
    here: &'a Path,
    id: String,
    limit: String,
}

impl<'a> OtherUser<'a> {
    /// `None`, with the reason printed, if this user may not become another, or that one may not run the
    /// command.
    fn new(here: &'a Path, first_id: u32, limit: u32) -> Option<Self> {
        let user = OtherUser {
            here,
            id: (first_id + std::process::id()).to_string(),
            limit: format!("--nproc={limit}"),
        };
        let own = env!("CARGO_BIN_EXE_taskscope");
        let may = user.command(&[own, "--version"]).output().is_ok_and(|may| may.status.success());
        if !may {
            println!("skipped: no other user can run {own} here");
        }
        may.then_some(user)
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut limited = Command::new("setpriv");
        limited.args(["--reuid", &self.id, "--regid", &self.id, "--clear-groups", "prlimit", &self.limit]);
        limited.args(command).current_dir(self.here).env("OMP_NUM_THREADS", "2");
        limited
    }
}
