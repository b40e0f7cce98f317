//! An unmodified OpenCL program on the OpenCL device of this machine, recorded through the layer.
//! Passes with a word where there is no compiler or no OpenCL.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{adds_up, in_order, layer};
use taskscope_execution::devices::Devices;

fn program(directory: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/opencl/queues.c");
    let program = directory.join("queues");
    let built =
        Command::new("gcc").arg(source).arg("-o").arg(&program).args(["-lOpenCL", "-lpthread"]).output();
    if !built.is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: there is no gcc, or OpenCL is not installed");
        return None;
    }
    let runs = Command::new(&program).arg("2").output().is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!("not tested: there is no OpenCL device");
    }
    runs.then_some(program)
}

fn recorded(arguments: &[&str]) -> Option<(Devices, String)> {
    let directory = tempfile::tempdir().unwrap();
    let program = program(directory.path())?;
    let trace = directory.path().join("t");
    let output = Command::new(program)
        .args(arguments)
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("OPENCL_LAYERS", layer())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    Some((devices, String::from_utf8(output.stdout).unwrap()))
}

#[test]
fn two_threads_share_three_queues() {
    let Some((devices, output)) = recorded(&["400"]) else { return };
    assert_eq!(output, "400 operations\n");
    assert_eq!(devices.queues.len(), 3);
    let total = |name| devices.queues.iter().map(|queue| queue.count(name)).sum::<u64>();
    assert_eq!((total("delivered"), total("cancelled"), total("lost")), (400, 2, 0));
    assert_eq!((total("overlaps"), total("duplicates"), total("untimed")), (0, 0, 0));
    for queue in &devices.queues {
        adds_up(queue);
        in_order(queue);
        assert_eq!(queue.clock.violated, 0, "{:?}", queue.clock);
        assert!(queue.clock.source.contains("found by comparison"), "{}", queue.clock.source);
        // As few lanes as operations run at once, at most.
        let mut edges: Vec<(u64, i32)> =
            queue.operations.iter().flat_map(|o| [(o.raw.0, 1), (o.raw.1, -1)]).collect();
        edges.sort_unstable();
        let (mut running, mut most) = (0, 0);
        edges.iter().for_each(|(_, change)| {
            running += change;
            most = most.max(running);
        });
        assert_eq!(queue.count("lanes"), most as u64);
    }
    let orders: Vec<bool> = devices.queues.iter().map(|queue| queue.in_order).collect();
    assert_eq!(orders, [true, false, false]);
    assert_eq!(devices.queues[0].count("lanes"), 1);
    // Every operation has the call that submitted it, on its thread and around its submission.
    for queue in &devices.queues {
        for operation in &queue.operations {
            let thread = devices.calls.iter().find(|calls| calls.tid == operation.thread).unwrap();
            let call =
                thread.calls.iter().find(|c| c.operation == Some((queue.number, operation.seq))).unwrap();
            assert!(call.start <= operation.append && operation.append <= call.end);
        }
    }
    let waits = devices
        .calls
        .iter()
        .flat_map(|thread| thread.calls.iter().map(|call| &thread.names[call.name as usize]));
    assert_eq!(waits.filter(|name| *name == "clFinish").count(), 3);
}

#[test]
fn a_program_that_does_not_wait_for_its_queues_still_adds_up() {
    let Some((devices, output)) = recorded(&["200", "exit"]) else { return };
    assert_eq!(output, "left 200 operations\n");
    let total = |name| devices.queues.iter().map(|queue| queue.count(name)).sum::<u64>();
    assert_eq!((total("appended"), total("cancelled")), (202, 2));
    devices.queues.iter().for_each(adds_up);
    devices.queues.iter().for_each(in_order);
    let lost: usize = devices.queues.iter().map(|queue| queue.lost.len()).sum();
    assert_eq!(lost as u64, total("lost"));
}

#[test]
fn a_program_that_is_killed_leaves_readable_queues() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = program(directory.path()) else { return };
    let trace = directory.path().join("t");
    let mut child = Command::new(program)
        .arg("40000")
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("OPENCL_LAYERS", layer())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Until something was released.
    for _ in 0..600 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let opened = taskscope_session::devices::open_devices(&trace);
        if opened.is_ok_and(|(devices, _)| devices.queues.iter().any(|queue| !queue.operations.is_empty())) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (devices, _) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(devices.queues.iter().any(|queue| queue.count("delivered") > 0));
    for queue in &devices.queues {
        assert!(!queue.finished && queue.clock.source.contains("found by comparison"));
        in_order(queue);
    }
}
