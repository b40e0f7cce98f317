//! The CUDA source against a CUPTI of our own that delivers as irregularly as real ones do. Passes with a
//! message without a compiler.

mod support;

use support::{adds_up, build, in_order, layer};
use taskscope_check::device_rules::violations;
use taskscope_execution::devices::{Devices, Purpose, Queue};

/// Runs the program with the stand-in for CUDA.
fn recorded(arguments: &[&str]) -> Option<(Devices, String)> {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    build(&["-shared", "-fPIC"], &["fake_cupti.c"], &at("libcupti.so.13"), &["-ldl", "-lpthread"])?;
    let library = at("libcupti.so.13");
    build(&[], &["cuda_program.c"], &at("program"), &[library.to_str().unwrap(), "-lpthread"])?;
    let trace = at("t");
    let output = std::process::Command::new(at("program"))
        .args(arguments)
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("LD_LIBRARY_PATH", directory.path())
        .env("TASKSCOPE_CUPTI", &library)
        .env("CUDA_INJECTION64_PATH", layer())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    Some((devices, String::from_utf8(output.stdout).unwrap()))
}

fn queue<'a>(devices: &'a Devices, name: &str) -> &'a Queue {
    devices.queues.iter().find(|queue| queue.name == name).unwrap_or_else(|| panic!("no queue {name}"))
}

fn names(queue: &Queue) -> Vec<&str> {
    queue.operations.iter().map(|operation| queue.name_of(operation.name)).collect()
}

#[test]
fn streams_of_two_threads_are_complete_and_ordered_from_foreign_buffers() {
    let Some((devices, output)) = recorded(&["400"]) else { return };
    assert_eq!(output, "800 operations\n");
    assert_eq!(devices.queues.len(), 4);
    let total = |name| devices.queues.iter().map(|queue| queue.count(name)).sum::<u64>();
    assert_eq!((total("delivered"), total("lost"), total("duplicates")), (800, 0, 0));
    assert!(total("out_of_place") > 0, "the fake delivers out of order");
    for queue in &devices.queues {
        adds_up(queue);
        in_order(queue);
        assert_eq!((queue.count("overlaps"), queue.count("lanes")), (0, 1));
        assert_eq!(queue.device, "Imaginary GPU [0]");
        assert!(queue.clock.source.contains("CLOCK_REALTIME"), "{}", queue.clock.source);
        // Error of the recorder's clock.
        assert!(queue.clock.worst_violation_ns <= 200, "{:?}", queue.clock);
        // Each operation has its submitting call, of the thread that owns the stream.
        for operation in &queue.operations {
            let thread = devices.calls.iter().find(|calls| calls.tid == operation.thread).unwrap();
            let call =
                thread.calls.iter().find(|c| c.operation == Some((queue.number, operation.seq))).unwrap();
            assert!(call.start <= operation.append && operation.append <= call.end);
            assert!(thread.names[call.name as usize].starts_with("cuda"));
        }
    }
    let copied: u64 =
        devices.queues.iter().flat_map(|q| &q.operations).map(|operation| operation.bytes).sum();
    assert_eq!(copied, 200 * 4096 + 200 * 512);
}

#[test]
fn every_fault_is_reported_and_delays_nothing() {
    let Some((devices, _)) = recorded(&["faults"]) else { return };
    devices.queues.iter().for_each(adds_up);
    let faulty = queue(&devices, "cuda.1.19");
    let expected = [
        "untimed",
        "memcpy HtoD",
        "inner",
        "after",
        "graph",
        "graph",
        "graph",
        "twice",
        "memcpy HtoD",
        "inner twice",
    ];
    let found = names(faulty);
    assert_eq!(found, expected);
    let count = |name| faulty.count(name);
    assert_eq!((count("cancelled"), count("lost"), count("untimed")), (1, 2, 1));
    assert_eq!(count("duplicates"), 3);
    // Counted for the process, once.
    assert!(devices.queues.len() > 1 && devices.dropped.values().eq([&1]), "{:?}", devices.dropped);
    assert!(
        devices.queues.iter().all(|queue| queue.account.iter().all(|(name, _)| name != "vendor_dropped"))
    );
    let dropped = violations(&devices).into_iter().filter(|violation| violation.rule == "device-dropped");
    assert!(dropped.map(|violation| violation.location).eq(devices.dropped.keys().cloned()));
    let lost: Vec<&str> = faulty.lost.iter().map(|lost| faulty.name_of(lost.name)).collect();
    assert_eq!(lost, ["never", "dropped"]);
    // The graph is one operation each time, and its number is kept.
    let graphs: Vec<_> =
        faulty.operations.iter().filter(|operation| operation.kind_name() == "graph").collect();
    assert!(
        graphs.iter().all(|graph| faulty.numbers_of(graph.seq).eq([("graph", 77)])),
        "{:?}",
        faulty.numbers
    );
    // Unannounced operations, and the second part of a copy.
    let further = queue(&devices, "cuda.1.19, further records");
    assert_eq!(names(further), ["memcpy HtoD", "unseen", "memcpy HtoD", "unseen twice"]);
    assert_eq!(further.count("duplicates"), 2);
    // A kernel that still ran at exit: its start came, its end never will.
    let running = queue(&devices, "cuda.1.22");
    assert_eq!(names(running), ["unfinished"]);
    assert!(running.operations[0].anomaly_names().eq(["untimed"]) && running.operations[0].raw.0 != 0);
    let overhead = devices.calls.iter().flat_map(|thread| &thread.calls).filter(|call| call.kind == 19);
    assert_eq!(overhead.map(|call| call.end - call.start).collect::<Vec<_>>(), [5000]);
    let waits = devices.calls.iter().flat_map(|t| t.calls.iter().map(|call| &t.names[call.name as usize]));
    assert_eq!(waits.filter(|name| *name == "cudaDeviceSynchronize").count(), 1);
    let total: u64 = devices.queues.iter().map(|queue| queue.count("delivered")).sum();
    assert_eq!(total, 400 + 10 + 4 + 1);
}

#[test]
fn streams_in_a_capture_submit_nothing_and_waits_are_recorded_once() {
    let Some((devices, _)) = recorded(&["events"]) else { return };
    devices.queues.iter().for_each(adds_up);
    let total = |name| devices.queues.iter().map(|queue| queue.count(name)).sum::<u64>();
    assert_eq!((total("appended"), total("delivered"), total("lost")), (5, 5, 0));
    for (stream, expected) in
        [("30", &["after"][..]), ("31", &["after"]), ("32", &["after"]), ("33", &["beside", "after"])]
    {
        assert_eq!(names(queue(&devices, &format!("cuda.1.{stream}"))), expected);
    }
    let calls: Vec<_> = devices
        .calls
        .iter()
        .flat_map(|thread| {
            thread.calls.iter().map(|call| (thread.names[call.name as usize].as_str(), call.purpose()))
        })
        .collect();
    let count = |name: &str| calls.iter().filter(|(known, _)| *known == name).count();
    assert_eq!((count("cudaStreamWaitEvent"), count("cudaStreamSynchronize")), (3, 1));
    // The wait without a callback is known by its record; the others are not recorded twice.
    assert!(calls.contains(&("wait for a stream", Purpose::Waits)));
    assert_eq!((count("wait for a stream"), count("a stream waits for an event")), (1, 0));
}

/// Two threads in one stream: the driver takes the copy first that was announced later.
#[test]
fn submissions_at_once_are_put_in_the_drivers_order() {
    let Some((devices, _)) = recorded(&["at-once"]) else { return };
    let shared = queue(&devices, "cuda.1.24");
    adds_up(shared);
    in_order(shared);
    let counts = ["delivered", "overlaps", "lanes"].map(|name| shared.count(name));
    assert_eq!(counts, [60, 0, 1]);
    let bytes: Vec<u64> = shared.operations.iter().map(|operation| operation.bytes).collect();
    assert!(bytes.chunks(3).all(|round| round == [0, 200, 100]), "{bytes:?}");
    assert_eq!(violations(&devices), []);
}

/// NVIDIA's own library refuses without a driver: the program must not notice.
#[test]
fn a_library_that_is_no_cupti_leaves_the_program_alone() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let built =
        build(&["-shared", "-fPIC"], &["fake_cupti.c"], &at("libcupti.so.13"), &["-ldl", "-lpthread"]);
    if built.is_none() {
        return;
    }
    let library = at("libcupti.so.13");
    build(&[], &["cuda_program.c"], &at("program"), &[library.to_str().unwrap(), "-lpthread"]).unwrap();
    for wrong in ["/nonexistent/libcupti.so", "libc.so.6"] {
        let trace = at("t");
        let output = std::process::Command::new(at("program"))
            .arg("10")
            .env("TASKSCOPE_TRACE_DIR", &trace)
            .env("LD_LIBRARY_PATH", directory.path())
            .env("TASKSCOPE_CUPTI", wrong)
            .env("CUDA_INJECTION64_PATH", layer())
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, b"20 operations\n");
    }
}
