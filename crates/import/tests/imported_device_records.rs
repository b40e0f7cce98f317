//! Dumps of device records: the public ones, and files made for one hazard each.

use std::path::{Path, PathBuf};
use taskscope_import::device_records::{Error, Imported, Options, import};

/// The public dumps, if available.
fn corpus(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/device").join(file);
    path.exists().then_some(path)
}

fn imported(files: &[PathBuf]) -> Imported {
    let root = tempfile::tempdir().unwrap();
    import(files, &root.path().join("t"), &Options::default()).unwrap()
}

/// Imports texts as files named by their position.
fn imported_texts(texts: &[&str]) -> Imported {
    let directory = tempfile::tempdir().unwrap();
    let write = |(number, text): (usize, &&str)| {
        let path = directory.path().join(format!("{number}.txt"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let files: Vec<PathBuf> = texts.iter().enumerate().map(write).collect();
    imported(&files)
}

#[test]
fn the_dump_of_issue_54_in_both_orders_of_delivery() {
    let (Some(first), Some(second)) = (corpus("pti-issue54-buffer1.tsv"), corpus("pti-issue54-buffer2.tsv"))
    else {
        return;
    };
    let queue_named = |imported: &Imported, name: &str| {
        imported.queues.iter().find(|queue| queue.name == name).cloned().unwrap()
    };
    let one = imported(&[first.clone(), second.clone()]);
    let queue = queue_named(&one, "0x30e63c0");
    assert_eq!((queue.delivered, queue.out_of_place, queue.held_peak), (23, 14, 1));
    assert_eq!((queue.latest_ns, queue.least_late_ns, queue.lanes), (3_943_464, 489_982, 1));
    let two = imported(&[second, first]);
    let queue = queue_named(&two, "0x30e63c0");
    assert_eq!((queue.out_of_place, queue.latest_ns, queue.held_peak), (1, 566_410, 8));
    for result in [&one, &two] {
        assert_eq!(queue_named(result, "0x7f5438017ae0").out_of_place, 0);
        let [foreign] = &result.foreign[..] else { panic!("{:?}", result.foreign) };
        assert_eq!((foreign.id, foreign.seq, foreign.thread.as_str()), (Some(16), 14, "670096"));
        assert_eq!(foreign.files_thread, "670104");
    }
}

#[test]
fn a_clock_error_is_reported_and_not_repaired() {
    let Some(file) = corpus("pti-issue54-overlap.tsv") else { return };
    let result = imported(&[file]);
    let queue = &result.queues[0];
    assert_eq!((queue.delivered, queue.overlaps, queue.longest_overlap_ns), (2, 1, 12_679));
    assert_eq!(queue.anomalies, [("overlap", 1), ("start-not-after-submit", 2)]);
}

#[test]
fn queues_that_run_many_at_once_are_known_by_that() {
    let Some(file) = corpus("pocl-run1-arrivals.tsv") else { return };
    let result = imported(&[file]);
    let mut queues: Vec<_> = result
        .queues
        .iter()
        .map(|q| (q.name.as_str(), q.order, q.delivered, q.inversions, q.lanes))
        .collect();
    queues.sort_unstable();
    let expected = [
        ("0", "in-order", 133, 0, 1),
        ("1", "out-of-order", 134, 33, 19),
        ("2", "out-of-order", 133, 35, 19),
    ];
    assert_eq!(queues, expected);
}

#[test]
fn a_buffer_that_is_read_twice_is_delivered_once() {
    let buffer = "queue\tid\tstart\tend\nq\t1\t10\t20\nq\t2\t30\t40\n";
    let result = imported_texts(&[buffer, buffer]);
    assert_eq!((result.queues[0].delivered, result.queues[0].duplicates), (2, 2));
}

#[test]
fn ids_that_are_used_again_are_other_operations() {
    let result = imported_texts(&["queue,id,start,end\nq,1,10,20\nq,2,30,40\nq,1,50,60\n"]);
    assert_eq!((result.queues[0].delivered, result.queues[0].duplicates), (3, 0));
    assert_eq!(result.queues[0].sequence_from, "start");
}

#[test]
fn ids_that_wrap_keep_their_order() {
    let text =
        "queue\tid\tstart\tend\nq\t4294967294\t10\t20\nq\t4294967295\t30\t40\nq\t0\t50\t60\nq\t1\t70\t80\n";
    let result = imported_texts(&[text]);
    let queue = &result.queues[0];
    assert_eq!((queue.sequence_from, queue.out_of_place, queue.overlaps), ("id", 0, 0));
}

#[test]
fn one_list_executed_three_times_is_three_operations_a_command() {
    let text = "queue,list,id,execution,start,end\nq,7,0,0,10,20\nq,7,1,0,20,30\nq,7,0,1,30,40\nq,7,1,1,40,50\nq,7,0,2,50,60\nq,7,1,2,60,70\n";
    let result = imported_texts(&[text]);
    assert_eq!((result.queues[0].delivered, result.queues[0].duplicates), (6, 0));
}

/// The places of the queue's operations: column `at` of the rows, in the order of release.
fn places(result: &Imported, text: &str) -> Vec<String> {
    assert_eq!(result.queues.len(), 1, "{text}");
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("dump.tsv"), directory.path().join("t"));
    std::fs::write(&file, text).unwrap();
    import(&[file], &trace, &Options::default()).unwrap();
    let (devices, problems) = taskscope_session::devices::open_devices(&trace).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let values = |columns: &str| columns.split('\t').next_back().unwrap_or_default().to_owned();
    devices.queues[0]
        .operations
        .iter()
        .map(|operation| values(&operation.columns.as_ref().unwrap().1))
        .collect()
}

/// Recorded work is appended once and executed often: neither order of its rows, nor of its appends, is that of the queue.
#[test]
fn executions_of_lists_stay_together_and_no_clock_is_wrong() {
    let by_submit = "id\tqueue\tlist\texecution\tappend\tsubmit\tstart\tend\tat\n\
        11\tq\tA\t1\t5\t50\t60\t70\t0\n\
        11\tq\tA\t2\t5\t150\t160\t170\t4\n\
        12\tq\tA\t1\t6\t50\t70\t80\t1\n\
        12\tq\tA\t2\t6\t150\t170\t180\t5\n\
        21\tq\tB\t1\t2\t100\t100\t110\t2\n\
        22\tq\tB\t1\t3\t100\t0\t0\t3\n\
        21\tq\tB\t1\t2\t100\t100\t110\t2\n";
    // Without numbers of executions the submissions distinguish them; without submissions the first starts.
    let without_execution = by_submit.replace("execution", "further");
    let by_start = "id,queue,list,execution,append,start,end,at\n\
        1,q,A,1,5,60,70,0\n1,q,A,2,5,160,170,3\n2,q,A,1,6,0,0,1\n2,q,A,2,6,170,180,4\n3,q,B,7,1,100,110,2\n";
    // Immediate operations between executions; two lists that one call submits.
    let mixed = "id\tqueue\tlist\tappend\tsubmit\tstart\tend\tat\n\
        1\tq\tA\t1\t10\t20\t30\t0\n1\tq\tA\t1\t40\t50\t60\t3\n\
        2\tq\tB\t1\t10\t35\t36\t2\n3\tq\tA\t2\t10\t30\t31\t1\n\
        3\tq\tA\t2\t40\t60\t61\t4\n9\tq\t\t39\t62\t63\t64\t5\n";
    for (text, from, duplicates, untimed) in [
        (by_submit, "submit", 1, 1),
        (&*without_execution, "submit", 1, 1),
        (by_start, "start", 0, 1),
        (mixed, "submit", 0, 0),
    ] {
        let text = if text.contains('\t') { text.to_owned() } else { text.replace(',', "\t") };
        let result = imported_texts(&[&text]);
        let queue = &result.queues[0];
        assert_eq!((queue.sequence_from, queue.order), (from, "in-order"), "{text}");
        assert_eq!(
            (queue.duplicates, queue.untimed, queue.overlaps, queue.lanes),
            (duplicates, untimed, 0, 1)
        );
        let wrong: Vec<_> = queue.anomalies.iter().filter(|(name, _)| *name != "untimed").collect();
        assert!(wrong.is_empty(), "{wrong:?} {text}");
        let places = places(&result, &text);
        assert!(places.is_sorted() && places.len() as u64 == queue.delivered, "{places:?} {text}");
    }
}

#[test]
fn executions_that_alternate_between_queues_are_each_by_themselves() {
    let text = "id,queue,list,execution,append,submit,start,end\n\
        1,a,L,1,5,50,60,70\n1,b,L,2,5,55,65,75\n2,a,L,1,6,50,70,80\n2,b,L,2,6,55,75,85\n\
        1,a,L,3,5,90,91,95\n2,a,L,3,6,90,95,99\n1,b,L,4,5,90,92,96\n2,b,L,4,6,90,96,98\n";
    let result = imported_texts(&[text]);
    for queue in &result.queues {
        assert_eq!((queue.delivered, queue.overlaps, queue.lanes, queue.duplicates), (4, 0, 1, 0));
        assert!(queue.anomalies.is_empty(), "{:?}", queue.anomalies);
    }
}

/// Nodes of a graph's branches, all with the id of the launch: nothing says that they wait for each other.
#[test]
fn branches_of_a_graph_overlap_on_a_loose_queue() {
    let text = "correlation,stream,graph,queued,start,end\n\
        7,1,3,5,10,30\n7,1,3,5,20,40\n7,1,3,5,40,50\n8,1,3,60,70,90\n8,1,3,60,80,95\n8,1,3,60,95,99\n";
    let queue = &imported_texts(&[text]).queues[0];
    assert_eq!((queue.order, queue.order_from, queue.delivered), ("out-of-order", "overlaps", 6));
    assert_eq!((queue.overlaps, queue.lanes, queue.anomalies.len()), (0, 2, 0));
    // The clock of immediate operations is still held to its word.
    let queue = &imported_texts(&["id,queue,append,start,end\n1,q,5,10,30\n2,q,6,20,40\n"]).queues[0];
    assert_eq!((queue.order, queue.overlaps), ("in-order", 1));
}

#[test]
fn records_without_usable_times_are_delivered_and_reported() {
    let text = "queue\tid\tstart\tend\nq\t1\t10\t0\nq\t2\t0\t0\nq\t3\t50\t40\nq\t4\t60\t70\n";
    let queue = &imported_texts(&[text]).queues[0];
    assert_eq!((queue.delivered, queue.untimed, queue.lanes), (4, 3, 1));
    assert_eq!(queue.anomalies, [("end-before-start", 1), ("untimed", 2)]);
}

#[test]
fn records_without_queue_and_id_go_to_their_threads_place() {
    let text =
        "kind,name,thread,start,end\nruntime,call,5,30,40\nruntime,call,5,10,20\noverhead,flush,6,1,2\n";
    let result = imported_texts(&[text]);
    let names: Vec<_> = result.queues.iter().map(|queue| (queue.name.as_str(), queue.delivered)).collect();
    assert_eq!(names, [("thread 5", 2), ("thread 6", 1)]);
}

#[test]
fn unreadable_records_are_reported_with_their_line() {
    let result =
        imported_texts(&["queue\tid\tstart\tend\nq\t1\t10\t20\nq\t2\nq\t3\tsoon\t40\nq\t4\t50\t60\t\t70\n"]);
    assert_eq!(result.problems.len(), 3, "{:?}", result.problems);
    assert!(result.problems[0].contains("line 3: 2 fields instead of 4"), "{}", result.problems[0]);
    assert!(result.problems[1].contains("line 4: `soon` is no time"), "{}", result.problems[1]);
    assert!(
        result.problems[2].contains("line 5: more than 4 fields: left out `70`"),
        "{}",
        result.problems[2]
    );
    assert_eq!(result.queues[0].delivered, 3);
}

#[test]
fn a_quoted_field_may_have_line_breaks() {
    let directory = tempfile::tempdir().unwrap();
    let (path, root) = (directory.path().join("x.csv"), directory.path().join("t"));
    let text = "id,queue,start,end,note,more\r\n1,q,5,6,\"two\r\nlines, \"\"here\"\"\",m\r\n2,q,7,8,plain,n\r\n3,q,x,9,,\r\n";
    std::fs::write(&path, text).unwrap();
    let result = import(&[path], &root, &Options::default()).unwrap();
    assert_eq!((result.records, result.queues[0].delivered), (3, 3));
    assert_eq!(result.problems.len(), 1, "{:?}", result.problems);
    assert!(result.problems[0].contains("line 5: `x` is no time"), "{:?}", result.problems);
    let stored = std::fs::read(root.join("devices/queue.0/taskscope.obs")).unwrap();
    let columns = b"1\tq\t5\t6\ttwo\r\nlines, \"here\"\tm";
    assert!(stored.windows(columns.len()).any(|window| window == columns));
}

#[test]
fn a_quote_that_is_not_closed_ends_with_its_line() {
    let result = imported_texts(&["id,queue,start,end,note\n1,q,5,6,\"open\n2,q,7,8,\n3,q,8,9,x\n"]);
    assert_eq!(result.queues[0].delivered, 3);
    assert_eq!(result.problems.len(), 1, "{:?}", result.problems);
    assert!(result.problems[0].ends_with("line 2: a quote of `note` is not closed; it ends with its line"));
}

#[test]
fn values_that_are_not_numbers_are_reported_once_a_column() {
    let rows: String = (2..100).map(|n| format!("K-{n},q,?,{n}0,{n}5\n")).collect();
    let text = format!("id,queue,append,start,end\n18446744073709551616,q,-1,10,15\n{rows}");
    let result = imported_texts(&[&text]);
    assert_eq!(result.problems.len(), 2, "{:?}", result.problems);
    let id =
        "line 2: `18446744073709551616` is no number for `id`, as 98 more in its column; taken as not known";
    assert!(result.problems[0].ends_with(id), "{}", result.problems[0]);
    assert!(result.problems[1].contains("line 2: `-1` is no number for `append`"), "{}", result.problems[1]);
    assert_eq!((result.queues[0].sequence_from, result.queues[0].delivered), ("start", 99));
}

#[test]
fn files_without_columns_or_records_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        let path = directory.path().join("x");
        std::fs::write(&path, text).unwrap();
        import(&[path], &directory.path().join("t"), &Options::default()).map(|_| ())
    };
    assert!(matches!(refused("a,b\n1,2\n"), Err(Error::Read(_))));
    assert!(matches!(refused("\u{0}\u{1}\u{2}"), Err(Error::Read(_))));
    assert!(matches!(refused("start,end\n"), Err(Error::NoRecords { .. })));
    assert!(matches!(refused(""), Err(Error::NoRecords { .. })));
}

#[test]
fn a_queue_that_some_rows_name_without_its_device_is_one_queue() {
    let text = "queue,device,id,start,end\nq,d1,1,10,20\nq,,2,30,40\nr,d1,3,10,20\nr,d2,4,10,20\n";
    let names: Vec<String> = imported_texts(&[text]).queues.into_iter().map(|queue| queue.name).collect();
    assert_eq!(names, ["q", "d1:r", "d2:r"]);
}
