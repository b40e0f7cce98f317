//! The Level Zero source against a loader and driver of our own. Passes with a message without a compiler.

mod support;

use support::{adds_up, build, in_order, layer};

#[test]
fn immediate_lists_and_recorded_ones_are_queues() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let library = at("libze_loader.so.1");
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libze_loader.so.1"];
    if build(&flags, &["fake_ze.c"], &library, &["-lpthread"]).is_none() {
        return;
    }
    build(&[], &["ze_program.c"], &at("program"), &[library.to_str().unwrap()]).unwrap();
    let trace = at("t");
    let output = std::process::Command::new(at("program"))
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("LD_LIBRARY_PATH", directory.path())
        .env("TASKSCOPE_LEVEL_ZERO", "1")
        .env("TASKSCOPE_PTI", "/nonexistent")
        .env("LD_PRELOAD", layer())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"done\n", "{}", String::from_utf8_lossy(&output.stderr));
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(devices.queues.len(), 4, "{:?}", devices.queues.iter().map(|q| &q.name).collect::<Vec<_>>());
    for queue in &devices.queues {
        adds_up(queue);
        assert_eq!((queue.count("lost"), queue.count("duplicates")), (0, 0));
        assert_eq!(queue.device, "Imaginary Xe");
        assert_eq!(queue.clock.violated, 0, "{:?}", queue.clock);
        // Whole counts, though the stamps wrapped.
        let timed = || queue.operations.iter().filter(|operation| operation.lane.is_some());
        assert!(timed().all(|operation| operation.raw.0 > 0xffff_f000));
        // The map keeps every operation between its submission and the end of the program.
        in_order(queue);
    }
    assert!(devices.queues[0].operations.last().unwrap().raw.0 > u64::from(u32::MAX), "the counter wrapped");
    let [first, second, recorded, third] = &devices.queues[..] else { panic!() };
    assert!([first, second, recorded].into_iter().all(|queue| queue.count("untimed") == 0));
    assert_eq!((first.in_order, second.in_order), (true, false));
    let delivered = [first, second, recorded].map(|queue| queue.count("delivered"));
    assert_eq!((delivered, first.count("cancelled"), first.count("lanes")), ([200, 100, 6], 1, 1));
    // (list, index, execution): a list that ran three times has three operations each.
    let names: Vec<&str> = recorded.operations.iter().map(|o| recorded.name_of(o.name)).collect();
    assert_eq!(names, ["memory fill", "recorded"].repeat(3));
    // The times of an event that the device took back and signalled again are those of its last use.
    let names: Vec<&str> = third.operations.iter().map(|o| third.name_of(o.name)).collect();
    assert_eq!(names, ["image copy from memory", "barrier", "first use", "second use"]);
    let kinds: Vec<&str> = third.operations.iter().map(|o| o.kind_name()).collect();
    assert_eq!(kinds, ["copy-in", "synchronisation", "kernel", "kernel"]);
    assert!(third.operations[2].anomaly_names().eq(["untimed"]) && third.count("untimed") == 1);
    let thread = &devices.calls[0];
    let named =
        |name: &str| thread.calls.iter().filter(|call| thread.names[call.name as usize] == name).count();
    assert_eq!((named("zeEventHostSynchronize"), named("zeCommandQueueSynchronize")), (101, 3));
    assert_eq!((named("zeFenceHostSynchronize"), named("zeCommandListAppendWaitOnEvents")), (1, 1));
    assert_eq!(named("submission to Level Zero"), 307);
}
