//! Random programs with the faults that vendors' interfaces were seen to have, against a sort of
//! everything at the end.

use proptest::prelude::*;
use std::collections::HashMap;
use taskscope_reorder::*;

/// Fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Cancelled,
    /// A buffer is read twice.
    Duplicate,
    /// A forced flush hands back a running operation, which never comes again.
    EndZero,
    /// The device's pool of stamps was exhausted.
    BothZero,
    /// The end is before the start.
    Inverted,
    NeverArrives,
    /// Its notice is lost, as when a thread dies between counting and announcing.
    Unannounced,
}

#[derive(Clone, Debug)]
struct Planned {
    queue: usize,
    duration: u64,
    gap: u64,
    /// How much later than its end its record comes.
    delay: u64,
    fault: Fault,
}

fn planned(queues: usize) -> impl Strategy<Value = Planned> {
    let fault = prop_oneof![
        20 => Just(Fault::None),
        1 => Just(Fault::Cancelled),
        1 => Just(Fault::Duplicate),
        1 => Just(Fault::EndZero),
        1 => Just(Fault::BothZero),
        1 => Just(Fault::Inverted),
        1 => Just(Fault::NeverArrives),
        1 => Just(Fault::Unannounced),
    ];
    let delay = prop_oneof![5 => 0..50u64, 2 => 0..5000u64, 1 => Just(1_000_000)];
    (0..queues, 1..100u64, 1..20u64, delay, fault).prop_map(|(queue, duration, gap, delay, fault)| Planned {
        queue,
        duration,
        gap,
        delay,
        fault,
    })
}

enum Happening {
    Notice(Notice),
    Arrival(Completion),
    Cancel(QueueIndex, u64),
    /// Declares the current time: unannounced operations start later.
    Time,
}

fn play(orders: &[QueueOrder], plan: &[Planned], limits: Limits) -> (Reorder, Vec<Output>, Vec<Happening>) {
    let mut reorder = Reorder::new(limits);
    let queues: Vec<QueueIndex> = orders.iter().map(|order| reorder.add_queue(*order)).collect();
    let mut happenings: Vec<(u64, usize, Happening)> = Vec::new();
    let (mut now, mut next, mut free) = (1000, vec![0u64; orders.len()], vec![0u64; orders.len()]);
    for (number, operation) in plan.iter().enumerate() {
        now += operation.gap;
        let q = operation.queue;
        let (queue, seq) = (queues[q], next[q]);
        next[q] += 1;
        let start = if orders[q] == QueueOrder::InOrder {
            free[q].max(now + 1)
        } else {
            now + 1 + operation.delay % 64
        };
        let end = start + operation.duration;
        if operation.fault != Fault::Cancelled {
            free[q] = end;
        }
        let detail = Detail { id: number as u64, amount: end, what: 7 };
        let notice = Notice { queue, seq, thread: 3, append: now, earliest_start: now, detail };
        let mut completion = Completion { queue, seq, submit: now, start, end };
        match operation.fault {
            Fault::EndZero => completion.end = 0,
            Fault::BothZero => (completion.start, completion.end) = (0, 0),
            Fault::Inverted => completion.end = start - 1,
            _ => {}
        }
        if operation.fault != Fault::Unannounced {
            happenings.push((now, number, Happening::Notice(notice)));
        }
        match operation.fault {
            Fault::Cancelled => happenings.push((now, number, Happening::Cancel(queue, seq))),
            Fault::NeverArrives => {}
            _ => happenings.push((end + operation.delay, number, Happening::Arrival(completion))),
        }
        if operation.fault == Fault::Duplicate {
            happenings.push((end + 2 * operation.delay + 1, number, Happening::Arrival(completion)));
        }
        happenings.push((now + 1, number, Happening::Time));
    }
    happenings.sort_by_key(|(time, _, _)| *time);
    let mut outputs = Vec::new();
    let mut out = |output| outputs.push(output);
    for (time, _, happening) in &happenings {
        match happening {
            Happening::Notice(notice) => reorder.append(notice, &mut out),
            Happening::Arrival(completion) => reorder.complete(completion, &mut out),
            Happening::Cancel(queue, seq) => reorder.cancel(*queue, *seq, &mut out),
            Happening::Time => {
                queues.iter().for_each(|queue| reorder.no_append_before(*queue, *time, &mut out))
            }
        }
    }
    reorder.finish(&mut out);
    (reorder, outputs, happenings.into_iter().map(|(_, _, happening)| happening).collect())
}

fn check(orders: &[QueueOrder], plan: &[Planned], limits: Limits) {
    let (reorder, outputs, happenings) = play(orders, plan, limits);
    let mut arrivals: HashMap<(u32, u64), u64> = HashMap::new();
    for happening in &happenings {
        if let Happening::Arrival(completion) = happening {
            *arrivals.entry((completion.queue.0, completion.seq)).or_default() += 1;
        }
    }
    for (q, order) in orders.iter().enumerate() {
        let queue = QueueIndex(q as u32);
        let account = reorder.account(queue);
        let queue_operations = || plan.iter().filter(|operation| operation.queue == q);
        let count = |fault| queue_operations().filter(|operation| operation.fault == fault).count() as u64;
        assert!(account.adds_up(), "{account:?}");
        assert_eq!(account.appended, queue_operations().count() as u64);
        assert_eq!(account.cancelled, count(Fault::Cancelled));
        assert_eq!(account.lost, count(Fault::NeverArrives));
        assert_eq!(account.duplicates, count(Fault::Duplicate));
        assert_eq!(account.unannounced, count(Fault::Unannounced));
        assert_eq!(account.untimed, count(Fault::EndZero) + count(Fault::BothZero) + count(Fault::Inverted));
        let released: Vec<&Released> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Released(record) if record.queue == queue => Some(record),
                _ => None,
            })
            .collect();
        // Exactly once, and only arrived ones.
        let mut seqs: Vec<u64> = released.iter().map(|record| record.seq).collect();
        let in_release_order = seqs.clone();
        seqs.sort_unstable();
        assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(seqs.iter().all(|seq| arrivals.contains_key(&(queue.0, *seq))));
        assert_eq!(seqs.len(), arrivals.keys().filter(|(of, _)| *of == queue.0).count());
        // As a sort of everything at the end would have it.
        match order {
            QueueOrder::InOrder => assert_eq!(in_release_order, seqs),
            QueueOrder::OutOfOrder => {
                // Untimed records and unannounced ones have no time to be placed by.
                let timed = |record: &&&Released| {
                    record.start != 0 && !record.anomalies.contains(Anomalies::UNANNOUNCED)
                };
                let keys: Vec<(u64, u64)> = released.iter().filter(timed).map(|r| (r.start, r.seq)).collect();
                assert!(keys.is_sorted(), "{keys:?}");
            }
        }
        let mut lanes: HashMap<u32, u64> = HashMap::new();
        for record in &released {
            if let Some(lane) = record.lane {
                let last = lanes.entry(lane).or_default();
                assert!(*last <= record.start && record.start <= record.end);
                *last = record.end;
            }
        }
        // No more lanes than overlaps, if everything was released by start.
        if *order == QueueOrder::InOrder {
            assert!(account.lanes <= 1 + u32::from(account.overlaps > 0), "{account:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_fault_is_reported_and_changes_nothing_else(plan in prop::collection::vec(planned(4), 1..600)) {
        use QueueOrder::*;
        check(&[InOrder, OutOfOrder, InOrder, OutOfOrder], &plan, Limits::default());
    }

    #[test]
    fn so_it_is_when_memory_is_short(plan in prop::collection::vec(planned(2), 500..1500)) {
        use QueueOrder::*;
        check(&[InOrder, OutOfOrder], &plan, Limits { held_records: 256, ..Limits::default() });
    }
}

#[test]
fn a_disk_that_refuses_costs_order_but_no_record() {
    let limits = Limits {
        held_records: 512,
        spill_directory: Some("/nonexistent/directory".into()),
        ..Limits::default()
    };
    let mut reorder = Reorder::new(limits);
    let queue = reorder.add_queue(QueueOrder::InOrder);
    let (mut released, mut lost, mut late) = (0u64, 0u64, 0u64);
    let mut out = |output| match output {
        Output::Released(_) => released += 1,
        Output::Lost { .. } => lost += 1,
        Output::Late(_) => late += 1,
        Output::Duplicate(_) => panic!("nothing came twice"),
    };
    for seq in 0..10_000 {
        let detail = Detail::default();
        reorder.append(&Notice { queue, seq, thread: 0, append: seq, earliest_start: 0, detail }, &mut out);
        if seq > 0 {
            reorder.complete(&Completion { queue, seq, submit: 0, start: seq + 1, end: seq + 2 }, &mut out);
        }
    }
    reorder.complete(&Completion { queue, seq: 0, submit: 0, start: 1, end: 2 }, &mut out);
    reorder.finish(&mut out);
    assert_eq!((released, lost, late), (9_999, 1, 1));
    assert!(reorder.totals().spill_failures > 0 && reorder.account(queue).adds_up());
}

#[test]
fn a_notice_after_the_barrier_is_counted_and_its_record_is_late() {
    let mut reorder = Reorder::new(Limits::default());
    let queue = reorder.add_queue(QueueOrder::InOrder);
    let mut outputs = Vec::new();
    let mut out = |output| outputs.push(output);
    let notice =
        |seq| Notice { queue, seq, thread: 0, append: 1, earliest_start: 1, detail: Detail::default() };
    reorder.append(&notice(1), &mut out);
    reorder.declare_lost(queue, 2, &mut out);
    reorder.append(&notice(0), &mut out);
    let completion = |seq| Completion { queue, seq, submit: 0, start: 5, end: 6 };
    (0..2).for_each(|seq| reorder.complete(&completion(seq), &mut out));
    reorder.complete(&completion(0), &mut out);
    reorder.finish(&mut out);
    let account = reorder.account(queue);
    assert_eq!((account.appended, account.lost, account.late, account.duplicates), (2, 2, 2, 1));
    assert!(account.adds_up() && outputs.len() == 5);
}

#[test]
fn sequences_too_far_ahead_to_be_true_are_refused() {
    let mut reorder = Reorder::new(Limits::default());
    let queue = reorder.add_queue(QueueOrder::OutOfOrder);
    reorder.complete(&Completion { queue, seq: u64::MAX - 1, submit: 0, start: 1, end: 2 }, &mut |_| ());
    reorder.complete(&Completion { queue: QueueIndex(9), seq: 0, submit: 0, start: 1, end: 2 }, &mut |_| ());
    reorder.finish(&mut |_| ());
    assert_eq!(reorder.account(queue).refused, 1);
}

#[test]
fn records_without_ids_are_ordered_by_time_in_their_own_location() {
    let mut reorder = Reorder::new(Limits::default());
    let location = reorder.add_queue(QueueOrder::OutOfOrder);
    let mut starts = Vec::new();
    let mut out = |output| {
        if let Output::Released(record) = output {
            starts.push(record.start);
        }
    };
    for start in [50, 20, 90, 10] {
        let record = WithoutId { location, thread: 5, start, end: start + 5, detail: Detail::default() };
        reorder.put_without_id(&record, &mut out);
    }
    reorder.no_append_before(location, 60, &mut out);
    reorder.put_without_id(
        &WithoutId { location, thread: 5, start: 70, end: 71, detail: Detail::default() },
        &mut out,
    );
    reorder.finish(&mut out);
    assert_eq!(starts, [10, 20, 50, 70, 90]);
}

#[test]
fn polling_raises_the_watermark() {
    let mut reorder = Reorder::new(Limits::default());
    let queue = reorder.add_queue(QueueOrder::OutOfOrder);
    let mut released = Vec::new();
    let mut out = |output| {
        if let Output::Released(record) = output {
            released.push(record.seq);
        }
    };
    for seq in 0..3 {
        let detail = Detail::default();
        reorder.append(&Notice { queue, seq, thread: 0, append: 10, earliest_start: 10, detail }, &mut out);
    }
    reorder.no_append_before(queue, u64::MAX, &mut out);
    reorder.complete(&Completion { queue, seq: 1, submit: 0, start: 40, end: 50 }, &mut out);
    assert_eq!(reorder.oldest_open(queue), Some(0));
    reorder.not_started_before(queue, 0, 41, &mut out);
    reorder.not_started_before(queue, 2, 60, &mut out);
    reorder.complete(&Completion { queue, seq: 2, submit: 0, start: 60, end: 70 }, &mut out);
    reorder.complete(&Completion { queue, seq: 0, submit: 0, start: 80, end: 90 }, &mut out);
    assert_eq!(released, [1, 2, 0]);
}

#[test]
fn losses_far_apart_let_everything_between_go_at_the_end() {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let mut reorder = Reorder::new(Limits { held_records: 256, ..Limits::default() });
        let queue = reorder.add_queue(order);
        let mut outputs = 0;
        let mut out = |_| outputs += 1;
        for seq in 0..3000 {
            let detail = Detail::default();
            let notice = Notice { queue, seq, thread: 0, append: 1, earliest_start: 1, detail };
            reorder.append(&notice, &mut out);
        }
        for seq in (0..3000).map(|n| n * 1237 % 3000).filter(|seq| seq % 500 != 7) {
            let start = 1000 + 100 * seq;
            reorder.complete(&Completion { queue, seq, submit: 0, start, end: start + 90 }, &mut out);
        }
        reorder.finish(&mut out);
        assert_eq!((outputs, reorder.account(queue).lost), (3000, 6));
        assert!(reorder.account(queue).adds_up());
    }
}

/// Why records wait.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wait {
    FirstNeverComes,
    FirstIsNeverAnnounced,
    NoticesNeverCome,
    NothingIsToldOfTheFuture,
    FirstRunsLong,
}

/// The maximum number of records is held, no outstanding operation is given up, and all are counted.
#[test]
fn without_a_disk_the_cap_holds_for_every_missing_record() {
    use QueueOrder::*;
    use Wait::*;
    const OPERATIONS: u64 = 60_000;
    let cases = [
        (InOrder, FirstNeverComes, 1),
        (InOrder, FirstIsNeverAnnounced, 0),
        (InOrder, NoticesNeverCome, 0),
        (OutOfOrder, FirstNeverComes, 1),
        (OutOfOrder, NothingIsToldOfTheFuture, 0),
        (OutOfOrder, FirstRunsLong, 0),
    ];
    for (order, wait, lost) in cases {
        let limits = Limits { held_records: 2048, when_full: WhenFull::DeclareLost, spill_directory: None };
        let mut reorder = Reorder::new(limits);
        let (queue, other) = (reorder.add_queue(order), reorder.add_queue(InOrder));
        let mut starts = Vec::new();
        let mut out = |output| match output {
            Output::Released(record) if record.queue == queue => starts.push(record.start),
            _ => {}
        };
        let (mut operations, mut time) = (0, 0);
        for seq in 0..OPERATIONS {
            time = 10 * seq;
            let notice = |queue| {
                let detail = Detail::default();
                Notice { queue, seq, thread: 0, append: time, earliest_start: time, detail }
            };
            let completion = |queue| Completion { queue, seq, submit: 0, start: time + 1, end: time + 5 };
            let announced = wait != NoticesNeverCome && (wait != FirstIsNeverAnnounced || seq > 0);
            let comes = seq > 0 || matches!(wait, NoticesNeverCome | NothingIsToldOfTheFuture);
            if announced {
                reorder.append(&notice(queue), &mut out);
            }
            if comes {
                reorder.complete(&completion(queue), &mut out);
            }
            operations += u64::from(announced || comes);
            if wait != NothingIsToldOfTheFuture {
                reorder.no_append_before(queue, time, &mut out);
            }
            if wait == FirstRunsLong {
                reorder.not_started_before(queue, 0, time, &mut out);
            }
            reorder.append(&notice(other), &mut out);
            reorder.complete(&completion(other), &mut out);
        }
        if wait == FirstRunsLong {
            reorder.complete(&Completion { queue, seq: 0, submit: 0, start: time, end: time + 9 }, &mut out);
        }
        reorder.finish(&mut out);
        let account = reorder.account(queue);
        assert!(account.adds_up() && account.appended == operations, "{order:?} {wait:?}: {account:?}");
        assert_eq!((account.late, account.lost), (0, lost), "{order:?} {wait:?}");
        assert_eq!(account.delivered, operations - lost, "{order:?} {wait:?}");
        assert!(starts.is_sorted(), "{order:?} {wait:?}");
        assert_eq!(reorder.account(other).delivered, OPERATIONS, "another queue goes on");
        let peak = reorder.totals().held_in_memory_peak;
        assert!(peak <= 2048, "{order:?} {wait:?}: {peak} held");
    }
}
