//! StarPU's tasks.rec.

use taskscope_import::starpu::{is_tasks_rec, read_tasks_rec};

const GOOD: &str = "\
Name: potrf
JobId: 1
SubmitOrder: 1
SubmitTime: 0.500000
StartTime: 1.000000
EndTime: 3.250000
WorkerId: 0
MemoryNode: 0

Control: yes
JobId: 2
SubmitTime: 0.600000

Name: trsm
JobId: 3
DependsOn: 1 2
SubmitTime: 0.700000
StartTime: 3.300000
EndTime: 5.000001
WorkerId: 1
MemoryNode: 0
";

#[test]
fn jobs_become_tasks() {
    assert!(is_tasks_rec(GOOD));
    let graph = read_tasks_rec(GOOD).unwrap();
    assert_eq!(graph.tasks.id, [1, 2, 3]);
    assert_eq!((graph.tasks.start[2], graph.tasks.end[2]), (3_300_000, 5_000_001));
    assert_eq!(graph.inputs.get(2).len(), 1);
    assert_eq!(graph.range(), (500_000, 5_000_001));
    assert_eq!(graph.tasks.created[2], 700_000);
}

#[test]
fn errors_name_line_and_field() {
    for (from, to, expected) in [
        (
            "StartTime: 3.3",
            "StartTime: -3.3",
            "line 18: StartTime: -3.300000 is negative; times are milliseconds from 0 on",
        ),
        (
            "DependsOn: 1 2",
            "DependsOn: 1 9",
            "line 14: DependsOn: job 3 depends on job 9, which has no record",
        ),
        ("EndTime: 5.0", "EndTime: x5.0", "line 19: EndTime: `x5.000001` is no time in milliseconds"),
        ("WorkerId: 1", "WorkerId: one", "line 20: WorkerId: `one` is no number from 0 on"),
        (
            "StartTime: 3.3",
            "StartTime: 3.2",
            "line 14: inputs: task 3 starts at 3200000, before its input, data 1, is available on its node at 3250000",
        ),
        ("JobId: 3", "JobId: 1", "line 14: id: id 1 is used twice"),
    ] {
        let message = read_tasks_rec(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.lines().any(|line| line == expected), "{message}\ninstead of\n{expected}");
    }
}
