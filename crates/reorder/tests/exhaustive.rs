//! Every interleaving of a small program: two threads, two queues, three operations of each thread
//! on each queue, with a cancelled submission, a duplicate, and a record that is lost and comes late.
//!
//! States reached before are not explored again, so all interleavings are covered. The states of the core
//! itself are part of the comparison.

use std::collections::HashSet;
use taskscope_reorder::*;

/// Fate of one operation.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Completes,
    CompletesTwice,
    IsCancelled,
    /// Declared lost by a barrier on its queue; the record comes after that.
    ComesLate,
}

/// Operation numbers of a queue: thread 0 submits even ones, thread 1 odd ones; each thread submits in this
/// order, and the steps of an operation follow its notice.
fn fate(queue: u32, seq: u64) -> Fate {
    match (queue, seq) {
        (0, 1) | (1, 4) => Fate::IsCancelled,
        (0, 2) | (1, 0) => Fate::CompletesTwice,
        (0, 5) | (1, 3) => Fate::ComesLate,
        _ => Fate::Completes,
    }
}

/// Steps that an operation has to make after its notice.
fn steps(fate: Fate) -> u8 {
    if fate == Fate::CompletesTwice { 2 } else { 1 }
}

/// A path to a state: how far each thread is, and each operation.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Progress {
    noticed: [u64; 2],
    done: [u8; 6],
    barrier: bool,
}

struct Walk {
    queue: u32,
    order: QueueOrder,
    seen: HashSet<(Progress, String)>,
    ends: u64,
}

const OPERATIONS: u64 = 6;

fn start(order: QueueOrder, seq: u64) -> u64 {
    // On the out-of-order queue, neighbours run in reverse and overlap.
    match order {
        QueueOrder::InOrder => 100 + 10 * seq,
        QueueOrder::OutOfOrder => 100 + 10 * (seq ^ 1),
    }
}

impl Walk {
    /// Replays a path: the core is small, and need not be clonable for the sake of a test.
    fn replay(&self, path: &[Step]) -> (Reorder, Vec<Output>, Progress) {
        let mut reorder = Reorder::new(Limits::default());
        let queue = reorder.add_queue(self.order);
        let (mut outputs, mut progress) = (Vec::new(), Progress::default());
        for step in path {
            self.perform(*step, queue, &mut reorder, &mut outputs, &mut progress);
        }
        (reorder, outputs, progress)
    }

    fn perform(
        &self,
        step: Step,
        queue: QueueIndex,
        reorder: &mut Reorder,
        outputs: &mut Vec<Output>,
        progress: &mut Progress,
    ) {
        let mut out = |output| outputs.push(output);
        match step {
            Step::Notice(thread) => {
                let seq = 2 * progress.noticed[thread] + thread as u64;
                let detail = Detail { id: 1000 + seq, ..Detail::default() };
                let earliest_start = start(self.order, seq) - 15;
                reorder.append(
                    &Notice { queue, seq, thread: thread as u32, append: seq, earliest_start, detail },
                    &mut out,
                );
                progress.noticed[thread] += 1;
                // All unannounced operations start later than this.
                let next = (0..2).map(|t| 2 * progress.noticed[t] + t as u64).filter(|seq| *seq < OPERATIONS);
                let floor = next.flat_map(|seq| (seq..OPERATIONS).map(|s| start(self.order, s) - 15)).min();
                reorder.no_append_before(queue, floor.unwrap_or(u64::MAX), &mut out);
            }
            Step::Act(seq) => {
                let begin = start(self.order, seq);
                let completion = Completion { queue, seq, submit: 0, start: begin, end: begin + 10 };
                match fate(self.queue, seq) {
                    Fate::IsCancelled => reorder.cancel(queue, seq, &mut out),
                    _ => reorder.complete(&completion, &mut out),
                }
                progress.done[seq as usize] += 1;
            }
            Step::Barrier => {
                reorder.declare_lost(queue, OPERATIONS, &mut out);
                progress.barrier = true;
            }
        }
    }

    fn possible(&self, progress: &Progress) -> Vec<Step> {
        let mut steps_now = Vec::new();
        for thread in 0..2 {
            if progress.noticed[thread] < OPERATIONS / 2 {
                steps_now.push(Step::Notice(thread));
            }
        }
        for seq in 0..OPERATIONS {
            let noticed = progress.noticed[seq as usize % 2] > seq / 2;
            let fate = fate(self.queue, seq);
            // A late record comes after the barrier.
            let may = noticed && (fate != Fate::ComesLate || progress.barrier);
            if may && progress.done[seq as usize] < steps(fate) {
                steps_now.push(Step::Act(seq));
            }
        }
        let all_but_late = (0..OPERATIONS)
            .all(|seq| fate(self.queue, seq) == Fate::ComesLate || progress.done[seq as usize] > 0);
        let all_noticed = progress.noticed == [OPERATIONS / 2; 2];
        if all_noticed && all_but_late && !progress.barrier {
            steps_now.push(Step::Barrier);
        }
        steps_now
    }

    fn walk(&mut self, path: &mut Vec<Step>) {
        let (mut reorder, mut outputs, progress) = self.replay(path);
        check_so_far(self.order, &outputs);
        let digest = format!("{reorder:?}{:?}", outputs.iter().map(place).collect::<Vec<_>>());
        if !self.seen.insert((progress.clone(), digest)) {
            return;
        }
        let steps_now = self.possible(&progress);
        if steps_now.is_empty() {
            self.ends += 1;
            reorder.finish(&mut |output| outputs.push(output));
            self.check_end(&reorder, &outputs);
        }
        for step in steps_now {
            path.push(step);
            self.walk(path);
            path.pop();
        }
        // The program may also stop here, without finishing anything.
        let (mut reorder, mut outputs, _) = self.replay(path);
        reorder.finish(&mut |output| outputs.push(output));
        check_so_far(self.order, &outputs);
        assert!(reorder.account(QueueIndex(0)).adds_up(), "{:?}", reorder.account(QueueIndex(0)));
    }

    fn check_end(&self, reorder: &Reorder, outputs: &[Output]) {
        let account = reorder.account(QueueIndex(0));
        let expected =
            |wanted: Fate| (0..OPERATIONS).filter(|seq| fate(self.queue, *seq) == wanted).count() as u64;
        assert_eq!(account.appended, OPERATIONS);
        assert_eq!(account.cancelled, expected(Fate::IsCancelled));
        assert_eq!(account.lost, expected(Fate::ComesLate));
        assert_eq!(account.late, expected(Fate::ComesLate));
        assert_eq!(account.duplicates, expected(Fate::CompletesTwice));
        assert_eq!(account.delivered, expected(Fate::Completes) + expected(Fate::CompletesTwice));
        assert!(account.adds_up());
        let mut ended: Vec<u64> = outputs.iter().filter_map(ends).collect();
        ended.sort_unstable();
        let wanted: Vec<u64> =
            (0..OPERATIONS).filter(|seq| fate(self.queue, *seq) != Fate::IsCancelled).collect();
        assert_eq!(ended, wanted, "each operation ends exactly once");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Notice(usize),
    Act(u64),
    Barrier,
}

/// The sequence of an operation that this output ends.
fn ends(output: &Output) -> Option<u64> {
    match output {
        Output::Released(record) => Some(record.seq),
        Output::Lost { seq, .. } => Some(*seq),
        _ => None,
    }
}

fn place(output: &Output) -> (u8, u64) {
    match output {
        Output::Released(record) => (0, record.seq),
        Output::Lost { seq, .. } => (1, *seq),
        Output::Late(record) => (2, record.seq),
        Output::Duplicate(completion) => (3, completion.seq),
    }
}

fn check_so_far(order: QueueOrder, outputs: &[Output]) {
    let mut lanes = [0u64; 8];
    let mut last = None;
    for output in outputs {
        let Output::Released(record) = output else { continue };
        assert_eq!(record.detail.id, 1000 + record.seq, "the notice's detail is with the record");
        let lane = record.lane.expect("all are timed") as usize;
        assert!(lanes[lane] <= record.start, "lane {lane} goes back");
        lanes[lane] = record.end;
        let key = if order == QueueOrder::InOrder { record.seq } else { record.start };
        assert!(last < Some(key), "released out of order");
        last = Some(key);
    }
}

#[test]
fn every_interleaving_releases_each_operation_once_and_in_order() {
    // Queues share only memory (tested in `pressure`), so each is explored alone with both threads; the
    // product of the explorations is the program.
    for queue in 0..2 {
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            let mut walk = Walk { queue, order, seen: HashSet::new(), ends: 0 };
            walk.walk(&mut Vec::new());
            assert!(walk.seen.len() > 500 && walk.ends > 0, "{} states", walk.seen.len());
        }
    }
}
