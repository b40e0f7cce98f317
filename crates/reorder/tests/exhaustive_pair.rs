//! Every interleaving of two threads that use two queues of one core at the same time, three operations
//! each: an in-order and an out-of-order queue, a cancelled submission, a duplicate, a record that comes
//! after it was given up, one that never comes, and completions that overtake their notices.
//!
//! Paths that meet, with the same steps behind them, the same outputs in the same order and the same
//! counts, are walked on once.

use std::collections::HashSet;
use taskscope_reorder::*;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Completes,
    CompletesTwice,
    IsCancelled,
    /// After a barrier on its queue.
    ComesLate,
    NeverComes,
}

const QUEUES: usize = 2;
const SEQS: usize = 3;

fn fate(queue: usize, seq: usize) -> Fate {
    match (queue, seq) {
        (0, 1) => Fate::IsCancelled,
        (1, 0) => Fate::CompletesTwice,
        (0, 2) => Fate::ComesLate,
        (1, 2) => Fate::NeverComes,
        _ => Fate::Completes,
    }
}

/// Submissions of a thread, in this order: three operations, on both queues.
fn program(thread: usize) -> [(usize, usize); 3] {
    [[(0, 0), (1, 1), (0, 2)], [(1, 0), (0, 1), (1, 2)]][thread]
}

fn start(queue: usize, seq: usize) -> u64 {
    // On the out-of-order queue they run in reverse, and overlap.
    if queue == 0 { 100 + 20 * seq as u64 } else { 160 - 15 * seq as u64 }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Notice(usize),
    Act(usize, usize),
    Barrier(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Progress {
    noticed: [usize; 2],
    done: [[u8; SEQS]; QUEUES],
    barrier: [bool; QUEUES],
}

impl Progress {
    fn is_noticed(&self, queue: usize, seq: usize) -> bool {
        (0..2).any(|thread| program(thread)[..self.noticed[thread]].contains(&(queue, seq)))
    }

    fn possible(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = (0..2).filter(|t| self.noticed[*t] < 3).map(Step::Notice).collect();
        for queue in 0..QUEUES {
            for seq in 0..SEQS {
                let (most, may) = match fate(queue, seq) {
                    // Another thread's ring may be emptied first.
                    Fate::Completes => (1, true),
                    Fate::CompletesTwice => (2, true),
                    Fate::IsCancelled => (1, self.is_noticed(queue, seq)),
                    Fate::ComesLate => (1, self.barrier[queue]),
                    Fate::NeverComes => (0, false),
                };
                if may && self.done[queue][seq] < most {
                    steps.push(Step::Act(queue, seq));
                }
            }
            let waits_for_none_else = (0..SEQS).all(|seq| {
                let given_up = matches!(fate(queue, seq), Fate::ComesLate | Fate::NeverComes);
                self.is_noticed(queue, seq) && (given_up || self.done[queue][seq] > 0)
            });
            if waits_for_none_else && !self.barrier[queue] {
                steps.push(Step::Barrier(queue));
            }
        }
        steps
    }
}

fn perform(step: Step, reorder: &mut Reorder, outputs: &mut Vec<Output>, progress: &mut Progress) {
    let mut out = |output| outputs.push(output);
    match step {
        Step::Notice(thread) => {
            let (queue, seq) = program(thread)[progress.noticed[thread]];
            let append = start(queue, seq) - 30;
            let detail = Detail { id: (10 * queue + seq) as u64, ..Detail::default() };
            let notice = Notice {
                queue: QueueIndex(queue as u32),
                seq: seq as u64,
                thread: thread as u32,
                append,
                earliest_start: append,
                detail,
            };
            progress.noticed[thread] += 1;
            reorder.append(&notice, &mut out);
            let still_to_come = (0..SEQS).filter(|seq| !progress.is_noticed(1, *seq));
            let floor = still_to_come.map(|seq| start(1, seq) - 30).min().unwrap_or(u64::MAX);
            reorder.no_append_before(QueueIndex(1), floor, &mut out);
        }
        Step::Act(queue, seq) => {
            progress.done[queue][seq] += 1;
            let (index, start) = (QueueIndex(queue as u32), start(queue, seq));
            let completion = Completion { queue: index, seq: seq as u64, submit: 0, start, end: start + 20 };
            match fate(queue, seq) {
                Fate::IsCancelled => reorder.cancel(index, seq as u64, &mut out),
                _ => reorder.complete(&completion, &mut out),
            }
        }
        Step::Barrier(queue) => {
            progress.barrier[queue] = true;
            reorder.declare_lost(QueueIndex(queue as u32), SEQS as u64, &mut out);
        }
    }
}

fn replay(path: &[Step]) -> (Reorder, Vec<Output>, Progress) {
    let mut reorder = Reorder::new(Limits { held_records: 256, ..Limits::default() });
    reorder.add_queue(QueueOrder::InOrder);
    reorder.add_queue(QueueOrder::OutOfOrder);
    let (mut outputs, mut progress) = (Vec::new(), Progress::default());
    for step in path {
        perform(*step, &mut reorder, &mut outputs, &mut progress);
    }
    (reorder, outputs, progress)
}

fn check(outputs: &[Output]) {
    let mut lanes = [[0u64; 8]; QUEUES];
    let mut last = [None; QUEUES];
    for output in outputs {
        let Output::Released(record) = output else { continue };
        let queue = record.queue.0 as usize;
        assert_eq!(
            record.detail.id,
            10 * queue as u64 + record.seq,
            "the notice's detail is with the record"
        );
        let lane = &mut lanes[queue][record.lane.expect("all are timed") as usize];
        assert!(*lane <= record.start, "a lane goes back");
        *lane = record.end;
        let key = if queue == 0 { record.seq } else { record.start };
        assert!(last[queue] < Some(key), "released out of order");
        last[queue] = Some(key);
    }
}

/// Every operation has ended once, in any execution.
fn check_end(reorder: &Reorder, outputs: &[Output], progress: &Progress) {
    check(outputs);
    for queue in 0..QUEUES {
        let index = QueueIndex(queue as u32);
        let account = reorder.account(index);
        assert!(account.adds_up(), "{account:?}");
        let ended = |seq: usize| {
            let is_it = |output: &&Output| match output {
                Output::Released(record) => (record.queue, record.seq) == (index, seq as u64),
                Output::Lost { queue, seq: lost, .. } => (*queue, *lost) == (index, seq as u64),
                _ => false,
            };
            outputs.iter().filter(is_it).count()
        };
        for seq in 0..SEQS {
            let is_known = progress.is_noticed(queue, seq) || progress.done[queue][seq] > 0;
            let cancelled = fate(queue, seq) == Fate::IsCancelled && progress.done[queue][seq] > 0;
            assert_eq!(ended(seq), usize::from(is_known && !cancelled), "{queue}/{seq}");
        }
    }
}

fn walk(path: &mut Vec<Step>, seen: &mut HashSet<String>, ends: &mut u64) {
    let (mut reorder, mut outputs, progress) = replay(path);
    check(&outputs);
    let accounts: Vec<_> = (0..QUEUES).map(|queue| *reorder.account(QueueIndex(queue as u32))).collect();
    let Progress { noticed, done, barrier } = &progress;
    if !seen.insert(format!("{noticed:?}{done:?}{barrier:?}{outputs:?}{accounts:?}")) {
        return;
    }
    let steps = progress.possible();
    *ends += u64::from(steps.is_empty());
    for step in steps {
        path.push(step);
        walk(path, seen, ends);
        path.pop();
    }
    // The program may stop here.
    reorder.finish(&mut |output| outputs.push(output));
    let stopped_early = outputs.iter().any(|output| {
        matches!(output, Output::Released(record) if record.anomalies.contains(Anomalies::UNANNOUNCED))
    });
    if !stopped_early {
        check_end(&reorder, &outputs, &progress);
    }
    assert!((0..QUEUES).all(|queue| reorder.account(QueueIndex(queue as u32)).adds_up()));
}

#[test]
fn two_threads_on_two_queues_end_each_operation_once_in_every_interleaving() {
    let (mut seen, mut ends) = (HashSet::new(), 0);
    walk(&mut Vec::new(), &mut seen, &mut ends);
    assert!(seen.len() > 2000 && ends > 0, "{} states, {ends} ends", seen.len());
}
