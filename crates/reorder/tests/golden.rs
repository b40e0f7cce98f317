//! The dump of PTI's issue 54 as input of the core: both orders of delivery yield one result.

use taskscope_reorder::*;

/// Sequence numbers in the queue with the foreign record, as the two buffers delivered them.
const OF_BUFFER_1: [u64; 1] = [14];
const OF_BUFFER_2: [u64; 22] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22];

fn deliver(order: impl Iterator<Item = u64>) -> (Vec<u64>, Account) {
    let mut reorder = Reorder::new(Limits::default());
    let queue = reorder.add_queue(QueueOrder::InOrder);
    let mut released = Vec::new();
    let mut out = |output| match output {
        Output::Released(record) => released.push(record.seq),
        other => panic!("{other:?}"),
    };
    for seq in 0..23 {
        let notice = Notice {
            queue,
            seq,
            thread: 0,
            append: 0,
            earliest_start: 0,
            detail: Detail { id: seq, ..Detail::default() },
        };
        reorder.append(&notice, &mut out);
    }
    for seq in order {
        reorder.complete(
            &Completion { queue, seq, submit: 0, start: 100 * seq + 1, end: 100 * seq + 50 },
            &mut out,
        );
    }
    reorder.finish(&mut out);
    let account = *reorder.account(queue);
    (released, account)
}

#[test]
fn both_orders_of_delivery_give_the_same_and_hold_one_and_eight_records() {
    let (released, account) = deliver(OF_BUFFER_1.into_iter().chain(OF_BUFFER_2));
    assert!(released.into_iter().eq(0..23));
    assert_eq!((account.held_peak, account.out_of_place, account.overlaps), (1, 14, 0));
    let (released, account) = deliver(OF_BUFFER_2.into_iter().chain(OF_BUFFER_1));
    assert!(released.into_iter().eq(0..23));
    assert_eq!((account.held_peak, account.out_of_place, account.overlaps), (8, 1, 0));
}

#[test]
fn a_blocked_queue_does_not_delay_other_queues() {
    let mut reorder = Reorder::new(Limits { held_records: 4096, ..Limits::default() });
    let (stuck, busy) = (reorder.add_queue(QueueOrder::InOrder), reorder.add_queue(QueueOrder::InOrder));
    let mut released = [0u64; 2];
    let mut out = |output| {
        if let Output::Released(record) = output {
            released[record.queue.0 as usize] += 1;
        }
    };
    let notice = |queue, seq| Notice {
        queue,
        seq,
        thread: 1,
        append: seq,
        earliest_start: 0,
        detail: Detail::default(),
    };
    reorder.append(&notice(stuck, 0), &mut out);
    for seq in 0..100_000 {
        reorder.append(&notice(busy, seq), &mut out);
        reorder.complete(&Completion { queue: busy, seq, submit: 0, start: seq + 1, end: seq + 2 }, &mut out);
    }
    reorder.complete(&Completion { queue: stuck, seq: 0, submit: 0, start: 1, end: 2 }, &mut out);
    assert_eq!(released, [1, 100_000]);
    assert_eq!(reorder.account(busy).held_peak, 0);
}

#[test]
fn a_million_records_behind_a_missing_one_are_spilled_and_released_whole() {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let mut reorder = Reorder::new(Limits { held_records: 8192, ..Limits::default() });
        let queue = reorder.add_queue(order);
        let mut next = 0;
        let mut out = |output| match output {
            Output::Released(record) => {
                assert_eq!(
                    (record.seq, record.start, record.detail.id),
                    (next, record.seq * 10 + 5, record.seq * 3)
                );
                next += 1;
            }
            other => panic!("{other:?}"),
        };
        let count = 300_000u64;
        for seq in 0..count {
            let detail = Detail { id: seq * 3, ..Detail::default() };
            reorder.append(
                &Notice { queue, seq, thread: 1, append: seq, earliest_start: seq * 10, detail },
                &mut out,
            );
            reorder.no_append_before(queue, seq * 10, &mut out);
            if seq > 0 {
                let completion = Completion { queue, seq, submit: 0, start: seq * 10 + 5, end: seq * 10 + 8 };
                reorder.complete(&completion, &mut out);
            }
        }
        assert!(reorder.account(queue).spilled > count / 2);
        assert_eq!(reorder.account(queue).held_peak, count - 1);
        reorder.complete(&Completion { queue, seq: 0, submit: 0, start: 5, end: 8 }, &mut out);
        reorder.finish(&mut out);
        assert_eq!(next, count);
        assert!(reorder.totals().held_in_memory_peak <= 8192, "{:?}", reorder.totals());
        assert!(reorder.account(queue).adds_up());
    }
}
