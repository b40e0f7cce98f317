//! New processes: whichever way they are made, they never write their parent's streams.

mod support;

use support::*;
use taskscope_record::{enter, process, thread};

/// Creates a process by `make` (0 in the child), which continues to record as the parent does, without
/// notification. Checks that each has its own stream.
fn both_go_on(name: &str, make: unsafe extern "C" fn() -> i32) {
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=100);
        // SAFETY: both processes only record and leave.
        let pid = unsafe { make() };
        if pid == 0 {
            // The recorder of the parent is shut for the child; a library attaches then.
            if enter().is_some() {
                leave(1);
            }
            if !attach() {
                leave(2);
            }
            emit(1001..=1010);
        } else {
            emit(101..=20_000);
        }
        thread::detach();
        process::finish();
        if pid != 0 {
            let mut status = 0;
            // SAFETY: waits for our own child.
            unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
            leave(libc::WEXITSTATUS(status));
        }
        leave(0);
    }
    let directory = temporary(name);
    assert_eq!(child(name, &directory).status().unwrap().code(), Some(0));
    let mut found: Vec<_> = streams(&directory).iter().map(|s| (is_finished(s), numbers(s))).collect();
    found.sort_by_key(|(_, numbers)| numbers[0]);
    assert_eq!(found, [(true, (1..=20_000).collect()), (true, (1001..=1010).collect())]);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn fork() {
    both_go_on("fork", libc::fork);
}

#[test]
fn fork_without_handlers() {
    unsafe extern "C" {
        fn _Fork() -> i32;
    }
    unsafe extern "C" fn make() -> i32 {
        // SAFETY: as in the caller.
        unsafe { _Fork() }
    }
    both_go_on("fork_without_handlers", make);
}

#[test]
fn raw_clone() {
    unsafe extern "C" fn make() -> i32 {
        // SAFETY: no stack and no flags but the signal: the effect of fork, bypassing the library.
        unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32 }
    }
    both_go_on("raw_clone", make);
}

#[test]
fn events_of_a_vfork_child_stay_in_order_and_the_parent_continues() {
    const NAME: &str = "events_of_a_vfork_child_stay_in_order_and_the_parent_continues";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=100);
        // The child shares the memory, and the parent is suspended: until `_exit` it is the parent. SAFETY:
        // the child emits events, which accesses our memory as the parent would, and exits.
        #[expect(deprecated, reason = "its danger is what is tested")]
        let pid = unsafe { libc::vfork() };
        if pid == 0 {
            emit(101..=200);
            leave(0);
        }
        emit(201..=300);
        process::finish();
        leave(0);
    }
    let directory = temporary("vfork");
    assert!(child(NAME, &directory).status().unwrap().success());
    let [stream] = &streams(&directory)[..] else { panic!("one stream") };
    assert!(numbers(stream).into_iter().eq(1..=300));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_child_that_only_ends_leaves_no_trace_and_harms_none() {
    const NAME: &str = "a_child_that_only_ends_leaves_no_trace_and_harms_none";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=100);
        // SAFETY: the child only leaves.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // As destructors of a library would do.
            thread::detach();
            process::finish();
            leave(0);
        }
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        emit(101..=200);
        process::finish();
        leave(0);
    }
    let directory = temporary("idle-child");
    assert!(child(NAME, &directory).status().unwrap().success());
    let [stream] = &streams(&directory)[..] else { panic!("one stream") };
    assert!(numbers(stream).into_iter().eq(1..=200));
    let looms = std::fs::read_dir(&directory).unwrap().count();
    assert_eq!(looms, 1, "the child made no directories");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_same_process_id_again_gets_another_loom() {
    const NAME: &str = "the_same_process_id_again_gets_another_loom";
    let Some(directory) = role() else {
        let directory = temporary("same-pid");
        // In a process-id namespace of its own, each program is number 1 or 2, as in containers.
        let possible = std::process::Command::new("unshare").args(["--pid", "--fork", "true"]).status();
        if !possible.is_ok_and(|status| status.success()) {
            taskscope_prerequisite::skip("no process-id namespaces here");
            return;
        }
        for round in 0..2u64 {
            let mut command = std::process::Command::new("unshare");
            command.args(["--pid", "--fork"]).arg(std::env::current_exe().unwrap());
            command.args(["--exact", NAME, "--nocapture", "--test-threads=1"]);
            let ran = command.env(ROLE, &directory).env("ROUND", round.to_string()).status();
            assert!(ran.unwrap().success());
        }
        let mut found: Vec<_> = streams(&directory).iter().map(|s| numbers(s)).collect();
        found.sort();
        assert_eq!(found, [vec![1, 2, 3], vec![1001, 1002, 1003]]);
        std::fs::remove_dir_all(directory).unwrap();
        return;
    };
    let first = 1 + 1000 * std::env::var("ROUND").unwrap().parse::<u64>().unwrap();
    start(&directory);
    assert!(attach());
    emit(first..first + 3);
    process::finish();
}
