//! Begin and end of processes under the tool: every outcome of the program is unchanged, and the recording
//! can be read.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Compiler, Run, Trace, compile, tool};
use taskscope_event::models::{omp, openmp as p, ovni, recorder};

/// Both compilers' programs; they use different entry points of the runtime.
fn compilers() -> impl Iterator<Item = Compiler> {
    [Compiler::Clang, Compiler::Gcc].into_iter().filter(|compiler| compiler.is_installed())
}

fn finished(trace: &Trace) -> usize {
    trace.streams.iter().filter(|stream| stream.is_finished()).count()
}

#[test]
fn exit_inside_a_region_closes_every_thread() {
    for compiler in compilers() {
        let (output, trace) = Run::construct(compiler, "exit_inside", 0).env("OMP_NUM_THREADS", "4").output();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(trace.streams.len(), 4);
        trace.assert_sound();
        assert_eq!(trace.count(p::RUNTIME_USER_MICROTASK_BEGIN), 4);
    }
}

/// The recorder's own threads do not keep it alive.
#[test]
fn a_process_ends_with_its_last_thread_after_the_initial_one_left() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let program = compile(Compiler::Clang, "main_leaves", &["-pthread"]);
    for mode in ["trace", "profile"] {
        let mut run = Run::program(Compiler::Clang, &program).env("TASKSCOPE_SAMPLE", "100");
        run.command.env("LD_PRELOAD", tool()).env("TASKSCOPE_MODE", mode);
        let mut child = run.command.stdout(Stdio::piped()).spawn().unwrap();
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > Duration::from_secs(600) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut printed = String::new();
        child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert_eq!((status.code(), printed.as_str()), (Some(0), "last\nexit\n"), "{mode}");
    }
}

#[test]
fn quick_exit_leaves_readable_streams() {
    for compiler in compilers() {
        let (output, trace) = Run::construct(compiler, "quick_exit_inside", 0).output();
        assert_eq!(output.status.code(), Some(4));
        assert_eq!((trace.streams.len(), finished(&trace)), (2, 0));
        assert_eq!(trace.count(omp::IMPLICIT_BEGIN), 2);
    }
}

#[test]
fn abort_leaves_readable_streams() {
    for compiler in compilers() {
        let mut run = Run::construct(compiler, "abort_inside", 0);
        // SAFETY: only a system call, between fork and exec.
        unsafe {
            run.command.pre_exec(|| {
                libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
                Ok(())
            })
        };
        let (output, trace) = run.output();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT));
        assert_eq!((trace.streams.len(), finished(&trace)), (2, 0));
        assert_eq!(trace.count(omp::IMPLICIT_BEGIN), 2);
    }
}

#[test]
fn kill_loses_no_completed_event() {
    const TASKS: u32 = 500;
    for compiler in compilers() {
        let mut run = Run::construct(compiler, "endless", TASKS);
        let mut child = run.command.spawn().unwrap();
        // The program writes a dot after each round of tasks.
        let mut dots = [0; 20];
        child.stdout.as_mut().unwrap().read_exact(&mut dots).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let trace = Trace::read(run.directory());
        std::fs::remove_dir_all(run.directory()).unwrap();
        assert_eq!(finished(&trace), 0);
        let rounds = dots.len() * TASKS as usize;
        for code in [p::TASK_CREATE, p::TASK_EXECUTE, p::TASK_END] {
            assert!(trace.count(code) >= rounds, "{code}: {} of {rounds}", trace.count(code));
        }
    }
}

#[test]
fn a_forked_child_writes_streams_of_its_own() {
    for compiler in compilers() {
        let (output, trace) = Run::construct(compiler, "forks", 30).output();
        assert!(output.status.success(), "{}", output.status);
        trace.assert_sound();
        let processes = trace.processes();
        assert_eq!(processes.len(), 2);
        let tasks: Vec<usize> =
            processes.iter().map(|pid| trace.process_trace(*pid).count(p::TASK_END)).collect();
        // The parent's 30 before and 30 after the fork, and the child's 30.
        assert_eq!(tasks.iter().sum::<usize>(), 90, "{tasks:?}");
        assert!(tasks.contains(&30) && tasks.contains(&60));
    }
}

#[test]
fn a_program_that_replaces_itself_is_recorded_twice() {
    for compiler in compilers() {
        let (output, trace) = Run::construct(compiler, "execs", 30).output();
        assert!(output.status.success(), "{}", output.status);
        assert_eq!(trace.count(p::TASK_END), 60);
        // Code before the exec could not be ended.
        assert!(finished(&trace) >= 1 && finished(&trace) < trace.streams.len());
        let looms: Vec<_> =
            trace.streams.iter().map(|s| s.metadata["ovni"]["loom"].as_str().unwrap()).collect();
        assert_ne!(looms.first(), looms.last());
    }
}

#[test]
fn threads_of_the_program_have_teams_of_their_own() {
    for compiler in compilers() {
        let trace = Run::construct(compiler, "roots", 25).trace();
        assert_eq!(trace.count(p::TASK_END), 100);
        assert_eq!(trace.count(omp::REGION_BEGIN), 4);
        assert_eq!(trace.count(omp::IMPLICIT_BEGIN), 8);
    }
}

#[test]
fn a_paused_runtime_ends_recording_calmly() {
    for compiler in compilers() {
        let (output, trace) = Run::construct(compiler, "pauses", 25).output();
        assert!(output.status.success(), "{}", output.status);
        trace.assert_sound();
        // LLVM's runtime reports nothing more after a hard pause.
        assert!(trace.count(p::TASK_END) >= 25);
    }
}

#[test]
fn openmp_in_a_loaded_library_is_recorded() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let plugin = compile(Compiler::Clang, "plugin", &["-shared", "-fPIC"]);
    let host = compile(Compiler::Clang, "host", &["-fno-openmp"]);
    let mut run = Run::program(Compiler::Clang, &host);
    run.command.arg(&plugin);
    let (output, trace) = run.output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "20\n20\n");
    trace.assert_sound();
    assert!(trace.count(p::TASK_END) >= 20);
}

#[test]
fn without_a_trace_directory_the_tool_does_nothing() {
    for compiler in compilers() {
        let mut run = Run::construct(compiler, "tasks", 10);
        run.command.env_remove("TASKSCOPE_TRACE_DIR");
        let (output, trace) = run.output();
        assert!(output.status.success());
        assert!(output.stderr.is_empty() && trace.streams.is_empty());
    }
}

#[test]
fn a_directory_that_cannot_be_made_changes_nothing_for_the_program() {
    for compiler in compilers() {
        let run = Run::construct(compiler, "tasks", 10).env("TASKSCOPE_TRACE_DIR", "/proc/none/here");
        let (output, _) = run.output();
        assert!(output.status.success() && output.stderr.is_empty());
        let run = Run::construct(compiler, "tasks", 10)
            .env("TASKSCOPE_TRACE_DIR", "/proc/none/here")
            .env("TASKSCOPE_VERBOSE", "1");
        let (output, _) = run.output();
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.starts_with("taskscope: this process is not recorded\nwhy: "), "{text}");
    }
}

/// Runs a program under a limit of the system.
fn under_limit(
    mut run: Run,
    resource: libc::__rlimit_resource_t,
    bytes: u64,
) -> (std::process::Output, Trace) {
    // SAFETY: only a system call, between fork and exec.
    unsafe {
        run.command.pre_exec(move || {
            libc::setrlimit(resource, &libc::rlimit { rlim_cur: bytes, rlim_max: bytes });
            Ok(())
        })
    };
    run.output()
}

#[test]
fn a_limit_on_file_sizes_loses_events_and_counts_them() {
    const TASKS: usize = 50_000;
    for compiler in compilers() {
        let run = Run::construct(compiler, "tasks", TASKS as u32);
        let (output, trace) = under_limit(run, libc::RLIMIT_FSIZE, 256 << 10);
        assert!(output.status.success(), "{}", output.status);
        let [created, executed, ended] =
            [p::TASK_CREATE, p::TASK_EXECUTE, p::TASK_END].map(|c| trace.count(c));
        assert!(created < TASKS && executed <= created, "{created} {executed}");
        assert_eq!(executed, ended);
        assert!(trace.count(recorder::LOST) >= 1);
        for stream in &trace.streams {
            assert!(stream.is_finished());
            // The end of a begun task is never dropped.
            assert_eq!(stream.count(p::TASK_EXECUTE), stream.count(p::TASK_END));
            assert_eq!(stream.count(ovni::THREAD_ENDS), 1);
        }
        // No task without a creation event runs.
        let known: std::collections::HashSet<_> =
            trace.of(p::TASK_CREATE).map(|e| e.number("taskid")).collect();
        assert!(trace.of(p::TASK_EXECUTE).all(|e| known.contains(&e.number("taskid"))));
    }
}

#[test]
fn a_limit_on_memory_changes_nothing_for_the_program() {
    for compiler in compilers() {
        for megabytes in [200, 400, 1000] {
            let limit = megabytes << 20;
            let mut plain = Run::construct(compiler, "tasks", 20_000);
            plain.command.env_remove("TASKSCOPE_TRACE_DIR").env_remove("OMP_TOOL_LIBRARIES");
            let (without, _) = under_limit(plain, libc::RLIMIT_AS, limit);
            let (with, _) = under_limit(Run::construct(compiler, "tasks", 20_000), libc::RLIMIT_AS, limit);
            assert_eq!(
                with.status,
                without.status,
                "at {megabytes} MB: {}",
                String::from_utf8_lossy(&with.stderr)
            );
        }
    }
}

#[test]
fn programs_without_openmp_leave_nothing() {
    let run = Run::program(Compiler::Clang, std::path::Path::new("/bin/true"));
    let (output, trace) = run.output();
    assert!(output.status.success() && trace.streams.is_empty());
}

#[test]
fn standard_streams_that_are_closed_stay_closed() {
    for compiler in compilers() {
        let mut run = Run::construct(compiler, "tasks", 10);
        run.command.stdin(Stdio::null());
        // SAFETY: only system calls, between fork and exec.
        unsafe {
            run.command.pre_exec(|| {
                libc::close(0);
                Ok(())
            })
        };
        run.trace();
    }
}

#[test]
fn the_tool_exports_its_entries_and_the_functions_that_sampling_interposes() {
    let Ok(output) = Command::new("nm").args(["-D", "--defined-only"]).arg(crate::common::tool()).output()
    else {
        taskscope_prerequisite::missing("nm is not installed");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let preloaded = "_Exit __io_uring_get_cqe __io_uring_sqring_wait __poll_chk __ppoll_chk __read_chk __recv_chk __recvfrom_chk __sysv_signal _exit \
                     accept accept4 aio_suspend aio_suspend64 bsd_signal clock_nanosleep connect dlopen dlsym fork popen posix_spawn posix_spawnp system epoll_pwait epoll_pwait2 epoll_wait \
                     gai_suspend io_getevents io_pgetevents io_queue_wait io_uring_enter io_uring_enter2 io_uring_submit_and_wait \
                     io_uring_submit_and_wait_min_timeout io_uring_submit_and_wait_reg io_uring_submit_and_wait_timeout io_uring_wait_cqe_timeout \
                     io_uring_wait_cqes io_uring_wait_cqes_min_timeout msgrcv msgsnd nanosleep pause poll ppoll prctl pselect pthread_create pthread_sigmask \
                     read readv recv recvfrom recvmmsg recvmsg select sem_clockwait sem_timedwait semop semtimedop send sendmmsg sendmsg sendto \
                     seteuid setresuid setreuid setsockopt setuid sigaction sigaltstack signal signalfd sigprocmask sigsuspend sigtimedwait sigwait sigwaitinfo sleep ssignal syscall sysv_signal \
                     thrd_create thrd_sleep usleep write writev";
    let symbols = text.lines().filter_map(|line| line.split_whitespace().last());
    let others: Vec<_> =
        symbols.filter(|symbol| !preloaded.split_whitespace().any(|p| p == *symbol)).collect();
    let kokkos = "allocate_data begin_deep_copy begin_fence begin_parallel_for begin_parallel_reduce begin_parallel_scan \
                  create_profile_section deallocate_data end_deep_copy end_fence end_parallel_for end_parallel_reduce \
                  end_parallel_scan init_library pop_profile_region profile_event push_profile_region request_tool_settings \
                  start_profile_section stop_profile_section";
    let kokkos = kokkos.split_whitespace().map(|name| format!("kokkosp_{name}"));
    let mut entries = vec!["InitializeInjectionNvtx2".to_owned(), "__itt_api_init".to_owned()];
    entries.extend(kokkos);
    let roctx = ["MarkA", "NameOsThread", "RangePop", "RangePushA", "RangeStartA", "RangeStop"];
    entries.push("ompt_start_tool".to_owned());
    entries.extend(roctx.map(|name| format!("roctx{name}")));
    entries.push("taskscope_name_data_".to_owned());
    assert_eq!(others, entries);
}

#[test]
fn interposed_functions_find_the_c_library_at_the_start() {
    // A handler of the program may be the first caller of one of these, which must not need a symbol lookup
    // then.
    let program =
        Command::new("true").env("LD_PRELOAD", crate::common::tool()).env("LD_DEBUG", "symbols").output();
    let text = String::from_utf8_lossy(&program.unwrap().stderr).into_owned();
    if !text.contains("symbol=") {
        taskscope_prerequisite::skip("the loader does not print what it looks up");
        return;
    }
    for name in
        ["pause", "sigsuspend", "sendmsg", "sendto", "recvmsg", "select", "msgrcv", "sigwaitinfo", "_exit"]
    {
        assert!(text.contains(&format!("symbol={name};")), "{name}");
    }
}
