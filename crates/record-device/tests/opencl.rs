//! An unmodified OpenCL program on the OpenCL device of this machine, recorded through the layer. Passes with
//! a message without a compiler or OpenCL.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{adds_up, build, in_order, layer};
use taskscope_event::models::device::kind;
use taskscope_execution::devices::Devices;

fn program(directory: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/opencl/queues.c");
    let program = directory.join("queues");
    let built =
        Command::new("gcc").arg(source).arg("-o").arg(&program).args(["-lOpenCL", "-lpthread"]).output();
    if !built.is_ok_and(|output| output.status.success()) {
        taskscope_prerequisite::missing("there is no gcc, or OpenCL is not installed");
        return None;
    }
    let runs = Command::new(&program).arg("2").output().is_ok_and(|output| output.status.success());
    if !runs {
        taskscope_prerequisite::missing("there is no OpenCL device");
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
        // At most as many lanes as operations run in parallel.
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
    for _ in 0..12_000 {
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

#[test]
fn contexts_user_events_and_released_queues_are_kept_apart() {
    let directory = tempfile::tempdir().unwrap();
    // Whether there is an OpenCL device at all.
    if program(directory.path()).is_none() {
        return;
    }
    let built = directory.path().join("contexts");
    build(&["-Wno-deprecated-declarations"], &["opencl_program.c"], &built, &["-lOpenCL"]).unwrap();
    let trace = directory.path().join("t");
    let output = Command::new(built)
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("OPENCL_LAYERS", layer())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"two contexts\n", "{}", String::from_utf8_lossy(&output.stderr));
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    // In each context: one in-order queue, one out of order, three that are released together.
    assert_eq!(devices.queues.len(), 10);
    for queue in &devices.queues {
        adds_up(queue);
        in_order(queue);
        assert_eq!((queue.count("lost"), queue.count("untimed"), queue.clock.violated), (0, 0, 0));
    }
    let delivered: Vec<u64> = devices.queues.iter().map(|queue| queue.count("delivered")).collect();
    assert_eq!(delivered, [14, 10, 1, 1, 1, 14, 10, 1, 1, 1]);
    assert_eq!((devices.queues[0].count("cancelled"), devices.queues[5].count("cancelled")), (1, 1));
    for loose in [&devices.queues[1], &devices.queues[6]] {
        assert!(!loose.in_order);
        // The gated ones were submitted first; the last one ended before the gate was opened.
        let seqs: Vec<u64> = loose.operations.iter().map(|operation| operation.seq).collect();
        let last = seqs.iter().position(|seq| *seq == 9);
        let gated = seqs.iter().position(|seq| *seq < 5);
        assert!(last.is_some() && last < gated, "{seqs:?}");
    }
}

/// In an out-of-order queue nothing could be released before its oldest operation, submitted first, had
/// ended. The driver is queried for that one, so operations that ran before it are released.
#[test]
fn asking_the_driver_lets_records_go_that_wait_for_submissions() {
    let directory = tempfile::tempdir().unwrap();
    if program(directory.path()).is_none() {
        return;
    }
    let source = directory.path().join("gate.c");
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/opencl_program.c"),
    );
    // Far more operations pass the gated ones, slowly enough for queries.
    let text = text.unwrap().replace(
        "for (int round = 0; round < 5; round++) CHECK(clEnqueueNDRangeKernel(second, kernel, 1, NULL, &global, NULL, 0, NULL, round == 4 ? &last : NULL));",
        "for (int round = 0; round < 100; round++) { struct timespec pause = {0, 2000000}; nanosleep(&pause, NULL); CHECK(clEnqueueNDRangeKernel(second, kernel, 1, NULL, &global, NULL, 0, NULL, &last)); CHECK(clWaitForEvents(1, &last)); if (round < 99) clReleaseEvent(last); }",
    );
    std::fs::write(&source, format!("#include <time.h>\n{text}")).unwrap();
    let built = directory.path().join("gate");
    build(&["-Wno-deprecated-declarations"], &[source.to_str().unwrap()], &built, &["-lOpenCL"]).unwrap();
    let trace = directory.path().join("t");
    let output = Command::new(built)
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("OPENCL_LAYERS", layer())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"two contexts\n", "{}", String::from_utf8_lossy(&output.stderr));
    let (devices, _) = taskscope_session::devices::open_devices(&trace).unwrap();
    for queue in devices.queues.iter().filter(|queue| !queue.in_order) {
        in_order(queue);
        assert_eq!(queue.count("delivered"), 105);
        // Without queries, all 100 would have waited for the five before them.
        assert!(queue.count("held_peak") < 90, "{} were held", queue.count("held_peak"));
    }
}

/// PoCL calls no callback for them.
#[test]
fn operations_that_wait_for_a_failed_event_are_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    if program(directory.path()).is_none() {
        return;
    }
    let built = directory.path().join("failed");
    build(&["-Wno-deprecated-declarations"], &["opencl_failed.c"], &built, &["-lOpenCL"]).unwrap();
    for how in ["wait", "finish", "release", "exit"] {
        let trace = directory.path().join(how);
        let output = Command::new(&built)
            .arg(how)
            .env("TASKSCOPE_TRACE_DIR", &trace)
            .env("OPENCL_LAYERS", layer())
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"two failed\n", "{how}: {}", String::from_utf8_lossy(&output.stderr));
        let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        for queue in &devices.queues {
            adds_up(queue);
            let counts =
                ["appended", "delivered", "cancelled", "lost", "untimed"].map(|name| queue.count(name));
            assert_eq!(counts, [11, 10, 1, 0, 0], "{how}");
        }
    }
}

/// Khronos's loaders unload their layers; the drivers below are gone after that.
#[test]
fn a_layer_that_is_unloaded_calls_nothing_below_it() {
    let directory = tempfile::tempdir().unwrap();
    let built = directory.path().join("unload");
    let Some(()) = build(&[], &["cl_unload.c"], &built, &["-ldl", "-lpthread"]) else { return };
    for (how, printed, expected) in
        [("", "15 ran, 4 did not\n", vec![[13, 10, 3], [6, 5, 1]]), ("legacy", "10 ran\n", vec![[10, 10, 0]])]
    {
        let trace = directory.path().join(format!("t{how}"));
        let output = Command::new(&built)
            .arg(layer())
            .arg(how)
            .env("TASKSCOPE_TRACE_DIR", &trace)
            .env_remove("OPENCL_LAYERS")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{how}: {} {stderr}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{how}: {stderr}");
        let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let counts: Vec<_> = devices
            .queues
            .iter()
            .map(|queue| ["appended", "delivered", "lost"].map(|name| queue.count(name)))
            .collect();
        assert_eq!(counts, expected, "{how}");
        devices.queues.iter().for_each(adds_up);
        assert!(devices.queues.iter().all(|queue| queue.finished));
    }
}

/// Unified shared memory and command buffers, as SYCL uses them: their functions are not in the loader's table.
#[test]
fn operations_by_functions_of_extensions_are_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let (built, trace) = (directory.path().join("unload"), directory.path().join("t"));
    let Some(()) = build(&[], &["cl_unload.c"], &built, &["-ldl", "-lpthread"]) else { return };
    let output = Command::new(&built)
        .arg(layer())
        .arg("extensions")
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env_remove("OPENCL_LAYERS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4 of extensions\n");
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let [queue] = &devices.queues[..] else { panic!("{} queues", devices.queues.len()) };
    adds_up(queue);
    let operations: Vec<_> = queue
        .operations
        .iter()
        .map(|operation| (queue.names[operation.name as usize].as_str(), operation.kind, operation.bytes))
        .collect();
    assert_eq!(
        operations,
        [
            ("clEnqueueMemcpyINTEL", kind::COPY, 4),
            ("clEnqueueMemFillINTEL", kind::FILL, 4),
            ("clEnqueueCommandBufferKHR", kind::GRAPH, 0),
            ("clEnqueueCommandBufferKHR", kind::GRAPH, 0),
        ]
    );
    assert!(queue.finished && queue.count("lost") == 0);
}
