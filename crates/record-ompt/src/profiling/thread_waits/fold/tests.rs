use super::*;

const LOCK: u64 = 0x10;
const OTHER: u64 = 0x20;
const MUTEX: u32 = kind::MUTEX;

fn call(site: u64) -> RecordedCall {
    RecordedCall { site, path: site as u32, context: 0 }
}

fn begins(of: u32, object: u64, site: u64) -> WaitEvent {
    WaitEvent::Begins { kind: of, object, call: call(site), found: (0, 0) }
}

fn hands_over(object: u64, site: u64) -> WaitEvent {
    WaitEvent::HandsOver { kind: MUTEX, object, call: call(site) }
}

fn wakes(of: u32, object: u64, site: u64, threads: u32) -> WaitEvent {
    WaitEvent::Wakes { kind: of, object, call: call(site), threads }
}

fn slept(site: u64, from: u64, until: u64) -> WaitEvent {
    let (outcome, is_of_others) = (outcome::DONE, false);
    WaitEvent::Waited {
        kind: kind::SLEEP,
        outcome,
        is_of_others,
        object: 0,
        call: call(site),
        time: (from, until),
    }
}

const ENDS: WaitEvent = WaitEvent::Ends { outcome: outcome::DONE };

/// A part in short: its end, the sites of the first and the last thread, of the sleep, and the length of the chain.
type Short = (WaitEnd, u64, u64, u64, u32);

fn site(tie: Option<Tie>) -> u64 {
    match tie {
        Some(Tie::Holds(call) | Tie::Wakes(call) | Tie::IsJoined(call)) => call.site,
        None => 0,
    }
}

/// The parts of the waits in the call at a site. Those of each row sum to the waits.
fn parts_at(events: &[(u32, u64, WaitEvent)], at: u64, now: u64) -> Vec<(Short, u64)> {
    let mut fold = Fold::default();
    events.iter().for_each(|(thread, at, event)| fold.take(*thread, *at, *event));
    let (rows, ..) = fold.rows_at(now);
    let call_rows = rows.rows.iter().filter(|((_, _, call), _)| call.site == at);
    let mut found: Vec<(Short, u64)> = call_rows
        .flat_map(|(_, row)| &row.parts)
        .map(|(blame, number)| {
            let blocked = blame.blocked.map_or(0, |(_, call)| call.site);
            ((blame.end, site(blame.first), site(blame.last), blocked, blame.length), rows.sum(*number).ns)
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn a_wait_for_a_lock_is_cut_at_the_releases() {
    let events = [
        (1, 100, begins(MUTEX, LOCK, 7)),
        (2, 150, begins(MUTEX, LOCK, 8)),
        (0, 200, hands_over(LOCK, 1)),
        (1, 210, ENDS),
        (1, 300, hands_over(LOCK, 2)),
        (2, 310, ENDS),
    ];
    assert_eq!(
        parts_at(&events, 7, 400),
        [((WaitEnd::Ran, 1, 1, 0, 1), 100), ((WaitEnd::Handover, 0, 0, 0, 0), 10)]
    );
    assert_eq!(
        parts_at(&events, 8, 400),
        [
            ((WaitEnd::Ran, 1, 1, 0, 1), 50),
            ((WaitEnd::Ran, 2, 2, 0, 1), 90),
            ((WaitEnd::Handover, 0, 0, 0, 0), 10),
            // The second holder had been woken, and did not run yet.
            ((WaitEnd::Handover, 2, 2, 0, 1), 10),
        ]
    );
}

/// All are woken at 200. The first one has the mutex until 300, the second one until 400; at 420 the third one has it.
#[test]
fn threads_that_are_woken_at_once_wait_for_the_mutex_of_each_other() {
    const CONDITION: u32 = kind::CONDITION;
    let waited = |since: u64, at: u64, site: u64| WaitEvent::Waited {
        kind: MUTEX,
        outcome: outcome::DONE,
        is_of_others: false,
        object: LOCK,
        call: call(site),
        time: (since, at),
    };
    let events = [
        (1, 100, begins(CONDITION, OTHER, 7)),
        (2, 110, begins(CONDITION, OTHER, 8)),
        (3, 120, begins(CONDITION, OTHER, 9)),
        // Before the wake: no part of these waits.
        (0, 150, hands_over(LOCK, 1)),
        (0, 200, wakes(CONDITION, OTHER, 2, u32::MAX)),
        (1, 210, ENDS),
        (1, 300, hands_over(LOCK, 3)),
        (2, 310, waited(199, 310, 8)),
        (2, 310, ENDS),
        (2, 400, hands_over(LOCK, 4)),
        (3, 420, waited(199, 420, 9)),
        (3, 420, ENDS),
    ];
    let free = (WaitEnd::Handover, 0, 0, 0, 0);
    assert_eq!(parts_at(&events, 7, 500), [((WaitEnd::Ran, 2, 2, 0, 1), 100), (free, 10)]);
    // The holder had been woken, and did not run yet.
    let late = |site| (WaitEnd::Handover, site, site, 0, 1);
    let of_second =
        [((WaitEnd::Ran, 2, 2, 0, 1), 90), ((WaitEnd::Ran, 3, 3, 0, 1), 90), (free, 10), (late(3), 10)];
    assert_eq!(parts_at(&events, 8, 500), of_second);
    assert_eq!(
        parts_at(&events, 9, 500),
        [
            ((WaitEnd::Ran, 2, 2, 0, 1), 80),
            ((WaitEnd::Ran, 3, 3, 0, 1), 90),
            ((WaitEnd::Ran, 4, 4, 0, 1), 90),
            (free, 20),
            (late(3), 10),
            (late(4), 10),
        ]
    );
}

/// Thread 0 sleeps while it holds the first lock, for which thread 1 waits while it holds the second, for which thread 2 waits.
#[test]
fn a_chain_is_followed_to_the_sleep_at_its_end() {
    let events = [
        (1, 100, begins(MUTEX, LOCK, 7)),
        (2, 120, begins(MUTEX, OTHER, 8)),
        (0, 190, slept(5, 110, 190)),
        (0, 200, hands_over(LOCK, 1)),
        (1, 200, ENDS),
        (1, 250, hands_over(OTHER, 2)),
        (2, 250, ENDS),
    ];
    assert_eq!(
        parts_at(&events, 8, 300),
        [
            ((WaitEnd::Ran, 2, 1, 0, 2), 10),
            ((WaitEnd::Ran, 2, 2, 0, 1), 50),
            ((WaitEnd::Slept, 2, 1, 5, 2), 70),
        ]
    );
}

/// A killed program leaves the use of its CPUs until its last write, not until the first wait that did not end.
#[test]
fn open_waits_do_not_hide_the_use_of_cpus() {
    const SECOND: u64 = 1_000_000_000;
    let mut fold = Fold::default();
    fold.cpus.millicpus = 2000;
    (0..2).for_each(|thread| fold.cpus.begin_thread(thread, 1, ThreadSums::default()));
    fold.take(1, 2, begins(MUTEX, LOCK, 7));
    fold.divide_cpus((SECOND, SECOND), false, &[(0, ThreadSums { on_cpu: SECOND, delay: 0 })]);
    assert_eq!(fold.cpus.sums.used, 0.0);
    let (.., sums) = fold.rows_at(SECOND);
    assert!(sums.used > 0.99e9 && sums.capacity > 1.99e9, "{sums:?}");
}

#[test]
fn a_signal_wakes_one_thread_and_a_broadcast_all() {
    let condition = kind::CONDITION;
    let events = [
        (1, 100, begins(condition, LOCK, 7)),
        (2, 110, begins(condition, LOCK, 8)),
        (0, 200, wakes(condition, LOCK, 1, 1)),
        (3, 210, wakes(condition, LOCK, 2, 1)),
        (2, 220, ENDS),
        (1, 230, ENDS),
        (1, 300, begins(condition, LOCK, 7)),
        (2, 310, begins(condition, LOCK, 8)),
        (0, 400, wakes(condition, LOCK, 3, u32::MAX)),
        (1, 400, ENDS),
        (2, 400, ENDS),
    ];
    assert_eq!(
        parts_at(&events, 7, 500),
        [
            ((WaitEnd::Ran, 2, 2, 0, 1), 110),
            ((WaitEnd::Ran, 3, 3, 0, 1), 100),
            ((WaitEnd::Handover, 0, 0, 0, 0), 20)
        ]
    );
    assert_eq!(
        parts_at(&events, 8, 500),
        [
            ((WaitEnd::Ran, 1, 1, 0, 1), 90),
            ((WaitEnd::Ran, 3, 3, 0, 1), 90),
            ((WaitEnd::Handover, 0, 0, 0, 0), 20)
        ]
    );
}

#[test]
fn a_join_is_charged_to_the_routine_through_its_own_waits() {
    let starts = WaitEvent::Starts {
        handle: 77,
        pointer: 0x99,
        routine: RecordedCall { site: 3, path: 0, context: 0 },
    };
    let events =
        [(0, 100, begins(kind::JOIN, 77, 7)), (1, 110, starts), (1, 180, slept(5, 150, 180)), (0, 200, ENDS)];
    assert_eq!(
        parts_at(&events, 7, 300),
        [((WaitEnd::Ran, 3, 3, 0, 1), 70), ((WaitEnd::Slept, 3, 3, 5, 1), 30)]
    );
}

#[test]
fn a_lock_that_is_not_released_belongs_to_the_holder_that_was_found() {
    let starts = WaitEvent::Starts { handle: 77, pointer: 0x99, routine: RecordedCall::default() };
    let found = WaitEvent::Begins { kind: MUTEX, object: LOCK, call: call(7), found: (0x99, 4) };
    let events = [(0, 10, starts), (1, 100, found)];
    assert_eq!(parts_at(&events, 7, 160), [((WaitEnd::Ran, 4, 4, 0, 1), 60)], "not over at the end");
    let timed_out = WaitEvent::Ends { outcome: outcome::TIMED_OUT };
    let events = [(0, 10, starts), (1, 100, found), (1, 150, timed_out)];
    assert_eq!(parts_at(&events, 7, 160), [((WaitEnd::Ran, 4, 4, 0, 1), 50)]);
}

/// The end of the chain is not known if threads wait for each other; nothing hangs.
#[test]
fn a_deadlock_ends_as_not_known() {
    let pointer = |pointer| WaitEvent::Starts { handle: pointer, pointer, routine: RecordedCall::default() };
    let waits = |object, site, holder| WaitEvent::Begins {
        kind: MUTEX,
        object,
        call: call(site),
        found: (holder, 4),
    };
    let events = [
        (0, 1, pointer(0x90)),
        (1, 2, pointer(0x91)),
        (0, 100, waits(LOCK, 7, 0x91)),
        (1, 110, waits(OTHER, 8, 0x90)),
    ];
    assert_eq!(
        parts_at(&events, 7, 200),
        [((WaitEnd::Ran, 4, 4, 0, 1), 10), ((WaitEnd::NotKnown, 4, 4, 0, 1), 90)]
    );
}

/// As of a pool that waits for jobs when it is cancelled.
#[test]
fn a_wait_that_lasts_until_the_end_of_its_thread_is_open() {
    let mut fold = Fold::default();
    fold.take(1, 100, begins(kind::CONDITION, LOCK, 7));
    fold.end_thread(1, 400, None);
    let (rows, ..) = fold.rows_at(500);
    let ends: Vec<WaitEnd> =
        rows.rows.values().flat_map(|row| &row.parts).map(|(blame, _)| blame.end).collect();
    assert_eq!(ends, [WaitEnd::Open]);
}

#[test]
fn threads_that_end_are_forgotten_in_the_end() {
    let mut fold = Fold::default();
    for thread in 0..10_000 {
        let at = u64::from(thread) * 10;
        let handle = u64::from(thread);
        fold.take(
            thread,
            at,
            WaitEvent::Starts { handle, pointer: handle, routine: RecordedCall::default() },
        );
        fold.take(thread, at + 5, slept(5, at, at + 5));
        fold.end_thread(thread, at + 8, None);
    }
    let kept = [fold.threads.len(), fold.by_handle.len(), fold.by_pointer.len()];
    assert!(kept.iter().all(|kept| *kept <= MAX_ENDED), "{kept:?}");
    let (rows, lived, _) = fold.rows_at(1_000_000);
    assert_eq!((rows.rows.len(), lived), (1, 80_000));
}

/// The process is stopped from 120 to 180: the holder had no CPU then, and a thread that sleeps is asleep.
#[test]
fn a_stop_of_the_process_is_no_work_of_the_holder() {
    let mut fold = Fold::default();
    fold.was_stopped((20, 40));
    fold.was_stopped((120, 180));
    let events = [
        (1, 100, begins(MUTEX, LOCK, 7)),
        (0, 200, hands_over(LOCK, 1)),
        (1, 210, ENDS),
        (0, 400, slept(5, 110, 390)),
    ];
    events.into_iter().for_each(|(thread, at, event)| fold.take(thread, at, event));
    let (rows, ..) = fold.rows_at(500);
    let mut parts: Vec<(u64, WaitEnd, u64)> = Vec::new();
    for ((_, _, call), row) in &rows.rows {
        parts.extend(row.parts.iter().map(|(blame, number)| (call.site, blame.end, rows.sum(*number).ns)));
    }
    parts.sort_unstable();
    let expected = [
        (5, WaitEnd::Slept, 280),
        (7, WaitEnd::Ran, 40),
        (7, WaitEnd::NoCpu, 60),
        (7, WaitEnd::Handover, 10),
    ];
    assert_eq!(parts, expected);
}
