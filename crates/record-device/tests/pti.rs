//! The PTI source against a PTI of our own that replays PTI's observed behaviour. Passes with a message
//! without a compiler.

mod support;

use support::{adds_up, build, in_order, layer};
use taskscope_execution::devices::{Devices, Queue};

fn recorded(arguments: &[&str]) -> Option<Devices> {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let library = at("libpti_view.so.1");
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libpti_view.so.1"];
    build(&flags, &["fake_pti.c"], &library, &["-lpthread"])?;
    build(&[], &["pti_program.c"], &at("program"), &[library.to_str().unwrap(), "-lpthread"])?;
    let trace = at("t");
    let output = std::process::Command::new(at("program"))
        .args(arguments)
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("LD_LIBRARY_PATH", directory.path())
        .env("TASKSCOPE_LEVEL_ZERO", "1")
        .env("LD_PRELOAD", layer())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"33 operations\n");
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    Some(devices)
}

fn queue<'a>(devices: &'a Devices, name: &str) -> &'a Queue {
    devices.queues.iter().find(|queue| queue.name == name).unwrap_or_else(|| panic!("no queue {name}"))
}

fn ids(queue: &Queue) -> Vec<u64> {
    queue.operations.iter().map(|operation| operation.id).collect()
}

const FIRST: [u64; 23] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 27, 29, 31];
const SECOND: [u64; 10] = [15, 18, 20, 22, 24, 26, 28, 30, 32, 33];

#[test]
fn a_foreign_record_is_ordered_on_arrival() {
    let Some(devices) = recorded(&[]) else { return };
    let (first, second) = (queue(&devices, "0x30e63c0"), queue(&devices, "0x7f5438017ae0"));
    assert_eq!((ids(first), ids(second)), (FIRST.to_vec(), SECOND.to_vec()));
    for queue in [first, second] {
        adds_up(queue);
        in_order(queue);
        assert_eq!((queue.count("overlaps"), queue.count("lanes"), queue.clock.violated), (0, 1, 0));
    }
    assert_eq!((first.count("out_of_place"), first.count("held_peak")), (14, 1));
    assert_eq!(second.count("out_of_place"), 0);
    // Every call of the runtime finds its operation, on its own thread.
    for calls in &devices.calls {
        let submitted = calls.calls.iter().filter(|call| call.operation.is_some()).count();
        let own = if calls.tid == first.operations[0].thread { 23 } else { 10 };
        assert_eq!(submitted, own);
    }
    let numbers: Vec<_> = second.numbers_of(0).collect();
    for number in [("sycl_queue", 3), ("sycl_node", 5), ("sycl_invocation", 15), ("context", 0xc0)] {
        assert!(numbers.contains(&number), "{numbers:?}");
    }
}

#[test]
fn without_callbacks_records_are_ordered_by_start_at_the_end() {
    let Some(devices) = recorded(&["old"]) else { return };
    let first = queue(&devices, "0x30e63c0, further records");
    let second = queue(&devices, "0x7f5438017ae0, further records");
    assert_eq!((ids(first), ids(second)), (FIRST.to_vec(), SECOND.to_vec()));
    assert_eq!(first.operations[0].thread, first.operations[22].thread);
    assert_ne!(first.operations[0].thread, second.operations[0].thread);
    [first, second].into_iter().for_each(adds_up);
}

#[test]
fn recorded_lists_are_released_when_the_program_has_waited_for_their_queue() {
    let Some(devices) = recorded(&["rounds"]) else { return };
    let further = queue(&devices, "0x77, further records");
    adds_up(further);
    assert_eq!(further.count("delivered"), 40);
    assert!(further.operations.iter().all(|operation| operation.anomalies == 0));
    assert!(further.operations.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let held = further.count("held_peak");
    assert!(held < 40, "{held} held: they waited for the end");
}

#[test]
fn clock_errors_and_losses_are_reported() {
    let Some(devices) = recorded(&["faults"]) else { return };
    let faulty = queue(&devices, "0x99");
    adds_up(faulty);
    assert_eq!(ids(faulty), [40, 41, 44]);
    assert!(faulty.operations[1].anomaly_names().eq(["overlap", "start-not-after-submit"]));
    assert_eq!((faulty.count("worst_overlap_ns"), faulty.operations[1].lane), (10_000, Some(1)));
    assert_eq!((faulty.count("cancelled"), faulty.count("duplicates")), (1, 3));
    let lost: Vec<&str> = faulty.lost.iter().map(|lost| faulty.name_of(lost.name)).collect();
    assert_eq!(lost, ["gone"]);
    assert_eq!((faulty.operations[2].kind_name(), faulty.operations[2].bytes), ("fill", 256));
    // A list that was executed three times is three operations.
    let further = queue(&devices, "0x99, further records");
    assert_eq!(ids(further), [50, 50, 50]);
    assert!(further.operations.windows(2).all(|pair| pair[0].end <= pair[1].start));
    adds_up(further);
    let calls =
        || devices.calls.iter().flat_map(|t| t.calls.iter().map(|call| t.names[call.name as usize].as_str()));
    assert!(calls().any(|name| name == "PTI: buffer flush"));
    assert!(calls().any(|name| name == "wait for a command queue"));
}
