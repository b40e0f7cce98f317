//! Hangs of executions that are built by hand.

use super::*;
use taskscope_event::models::messages::function_number;
use taskscope_execution::messages::{Awaited, Owed, Rank};
use taskscope_execution::{
    Change, Definition, ExecutionBuilder, MessageChange, ObjectIndex, Observer, Place, RegionIndex, Section,
    SiteIndex, State, ThreadIndex,
};

/// A process with all threads in region 0 from time 0 on.
struct Run(ExecutionBuilder, u32);

const S: u64 = 1_000_000_000;

impl Run {
    fn of(threads: u32) -> Run {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host", 1);
        for tid in 0..threads {
            builder.add_thread(process, tid.into());
        }
        let mut run = Run(builder, threads);
        let master = ThreadIndex(0);
        let region = RegionIndex(0);
        run.0.change(
            master,
            0,
            Change::RegionBegins { region, parent: RegionIndex::NONE, site: SiteIndex::NONE, requested: 0 },
        );
        for object in 0..4 {
            let object = ObjectIndex(object);
            run.0.define(Definition::Object { object, process, id: object.0.into(), kind: 2 });
        }
        (0..threads).for_each(|thread| run.is(thread, 1, State::ImplicitTask));
        run
    }

    fn is(&mut self, thread: u32, at: u64, state: State) {
        self.waits(thread, at, state, ObjectIndex::NONE);
    }

    fn waits(&mut self, thread: u32, at: u64, state: State, object: ObjectIndex) {
        let section = Section { region: RegionIndex(0), object, ..Section::of(state) };
        self.0.event(ThreadIndex(thread), at);
        self.0.change(ThreadIndex(thread), at, Change::Becomes(section));
    }

    fn takes(&mut self, thread: u32, at: u64, object: u32) {
        let change = Change::Acquires { object: ObjectIndex(object), site: SiteIndex::NONE };
        self.0.change(ThreadIndex(thread), at, change);
    }

    /// Hangs at this end, with threads that slept from time 10 on.
    fn hangs(mut self, end: u64, asleep: &[usize]) -> Vec<Hang> {
        (0..self.1).for_each(|thread| self.0.lives_at(ThreadIndex(thread), end));
        let mut execution = self.0.finish();
        for thread in asleep {
            execution.threads[*thread].asleep_since = Some(10);
        }
        hangs(&execution)
    }
}

fn threads(hang: &Hang) -> Vec<u32> {
    hang.waits.iter().map(|wait| wait.thread.0).collect()
}

#[test]
fn locks_in_a_circle_are_a_deadlock_from_the_first_instant() {
    let mut run = Run::of(4);
    for thread in 0..3 {
        run.takes(thread, 10, thread);
    }
    for (thread, at) in [(0, 20), (1, 40), (2, 30)] {
        run.waits(thread, at, State::LockWait, ObjectIndex((thread + 1) % 3));
    }
    run.is(3, 25, State::ImplicitTask);
    let hangs = run.hangs(50, &[]);
    assert_eq!(hangs.len(), 1);
    let hang = &hangs[0];
    // Starts at the last wait, in the order of needs.
    assert_eq!((hang.is_deadlock, hang.circle, threads(hang)), (true, 3, vec![1, 2, 0]));
    assert_eq!((hang.since, hang.end), (40, 50));
}

#[test]
fn a_lock_whose_holder_works_is_no_hang() {
    let mut run = Run::of(2);
    run.takes(1, 10, 0);
    run.waits(0, 20, State::LockWait, ObjectIndex(0));
    assert_eq!(run.hangs(20 * S, &[]), []);
}

#[test]
fn a_lock_of_an_ended_thread_is_never_released() {
    let mut run = Run::of(2);
    run.takes(1, 10, 0);
    run.0.change(ThreadIndex(1), 15, Change::ThreadEnds);
    run.waits(0, 20, State::LockWait, ObjectIndex(0));
    let hangs = run.hangs(50, &[]);
    assert_eq!((hangs[0].is_deadlock, threads(&hangs[0])), (true, vec![0]));
    assert!(hangs[0].needed[0].gone && hangs[0].needed[0].thread == ThreadIndex(1));
}

#[test]
fn threads_waiting_for_a_deadlock_belong_to_it() {
    let mut run = Run::of(3);
    run.takes(0, 10, 0);
    run.waits(0, 20, State::LockWait, ObjectIndex(0));
    run.is(1, 30, State::Barrier);
    run.is(2, S - 1000, State::Barrier);
    let hangs = run.hangs(S, &[]);
    // A barrier that was entered a moment ago may be over.
    assert_eq!((hangs[0].circle, threads(&hangs[0])), (1, vec![0, 1]));
}

#[test]
fn a_member_that_sleeps_is_silence_and_one_that_computes_is_no_hang() {
    let barrier = |asleep: &[usize], end: u64| {
        let mut run = Run::of(2);
        run.is(0, 20, State::Barrier);
        run.hangs(end, asleep)
    };
    let hangs = barrier(&[1], 3 * S);
    assert_eq!((hangs[0].is_deadlock, threads(&hangs[0])), (false, vec![0]));
    assert_eq!(hangs[0].waits[0].needs, [Needed::Member(ThreadIndex(1))]);
    assert_eq!(hangs[0].needed[0].asleep_since, Some(10));
    assert_eq!(barrier(&[], 3 * S), []);
    assert_eq!(barrier(&[1], S / 10), []);
}

#[test]
fn a_wait_no_longer_than_those_before_is_no_hang() {
    let mut run = Run::of(2);
    run.is(0, 20, State::Barrier);
    run.is(0, S, State::ImplicitTask);
    run.is(0, S + 20, State::Barrier);
    assert_eq!(run.hangs(2 * S, &[1]), []);
}

#[test]
fn threads_that_all_wait_without_a_known_reason_are_silence() {
    let mut run = Run::of(2);
    run.is(0, 20, State::Taskwait);
    run.is(1, 20, State::Idle);
    let hangs = run.hangs(S, &[]);
    assert_eq!((hangs[0].is_deadlock, threads(&hangs[0]), hangs[0].since), (false, vec![0], 20));
}

#[test]
fn a_process_that_ended_properly_hung_only_in_a_circle_of_locks() {
    let mut run = Run::of(2);
    run.is(0, 20, State::Taskwait);
    run.is(1, 20, State::Barrier);
    (0..2).for_each(|thread| run.0.change(ThreadIndex(thread), 3 * S, Change::ThreadEnds));
    assert_eq!(run.hangs(3 * S, &[]), []);
    let mut run = Run::of(2);
    run.takes(0, 10, 0);
    run.waits(0, 20, State::LockWait, ObjectIndex(0));
    (0..2).for_each(|thread| run.0.change(ThreadIndex(thread), 3 * S, Change::ThreadEnds));
    assert_eq!(threads(&run.hangs(3 * S, &[])[0]), [0]);
}

/// Threads without a runtime: thread 0 holds lock 0, thread 1 lock 1; each waits for the other's lock, and thread 2 for lock 0.
fn waits_of_threads(is_circle: bool, end: u64) -> Vec<Hang> {
    use taskscope_event::models::wait::kind;
    use taskscope_execution::ThreadWaitChange::{Begins, FoundHeld, Starts};
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("host", 1);
    for object in (0..2).map(ObjectIndex) {
        builder.define(Definition::Object { object, process, id: object.0.into(), kind: kind::MUTEX });
    }
    for row in 0..3_u32 {
        let thread = builder.add_thread(process, row.into());
        let pointer = 100 + u64::from(row);
        let starts = Starts { handle: pointer, pointer, site: SiteIndex::NONE };
        builder.event(thread, 1);
        builder.change(thread, 1, Change::Becomes(Section::of(State::Unknown)));
        builder.change(thread, 1, Change::ThreadWait(starts));
    }
    for (row, at, object, holder) in [(0, 20, 1, 101), (1, 30, 0, 100), (2, 25, 0, 100)] {
        if row == 0 && !is_circle {
            continue;
        }
        let (thread, site) = (ThreadIndex(row), SiteIndex(row));
        builder.event(thread, at);
        let changes =
            [Begins { object: ObjectIndex(object), site }, FoundHeld { holder, site: SiteIndex(7) }];
        changes.into_iter().for_each(|change| builder.change(thread, at, Change::ThreadWait(change)));
    }
    (0..3).for_each(|row| builder.lives_at(ThreadIndex(row), end));
    hangs(&builder.finish())
}

#[test]
fn locks_of_threads_in_a_circle_are_a_deadlock() {
    let hangs = waits_of_threads(true, S);
    assert_eq!(hangs.len(), 1);
    assert_eq!((hangs[0].is_deadlock, hangs[0].circle, threads(&hangs[0])), (true, 2, vec![1, 0, 2]));
    let held = Needed::Holder { thread: ThreadIndex(0), since: 30, site: SiteIndex(7) };
    assert_eq!(hangs[0].waits[0].needs, [held]);
    assert_eq!(hangs[0].waits[2].span.section.place, Place::site(SiteIndex(2)));
    // A moment later it may be over.
    assert_eq!(waits_of_threads(true, 50), []);
}

/// However long the wait for a lock is, its holder may release it.
#[test]
fn a_lock_of_a_thread_whose_holder_does_not_wait_is_no_hang() {
    assert_eq!(waits_of_threads(false, 20 * S), []);
}

/// A job with one thread per rank, all members of communicator 7.
struct Job(ExecutionBuilder, u32);

impl Job {
    fn of(ranks: u32) -> Job {
        let mut builder = ExecutionBuilder::new();
        for rank in 0..ranks {
            let process = builder.add_process("host", i64::from(rank) + 1);
            builder.add_thread(process, i64::from(rank) + 1);
        }
        let mut job = Job(builder, ranks);
        for rank in 0..ranks {
            job.0.event(ThreadIndex(rank), 1);
            job.changes(rank, 1, MessageChange::IsRank(Rank { job: 1, rank, ranks }));
            job.changes(rank, 1, MessageChange::IsMember { comm: 7, size: ranks });
            job.0.change(ThreadIndex(rank), 1, Change::Becomes(Section::of(State::Serial)));
        }
        job
    }

    fn changes(&mut self, rank: u32, at: u64, change: MessageChange) {
        self.0.change(ThreadIndex(rank), at, Change::Message(change));
    }

    /// A call that does not end, and its message changes.
    fn calls(&mut self, rank: u32, at: u64, name: &str, changes: &[MessageChange]) {
        let (function, place) = (function_number(name), Place::UNKNOWN);
        self.0.event(ThreadIndex(rank), at);
        self.changes(rank, at, MessageChange::CallBegins { function, place });
        changes.iter().for_each(|change| self.changes(rank, at, *change));
        self.0.change(ThreadIndex(rank), at, Change::Becomes(Section::of(State::Communication)));
    }

    fn returns(&mut self, rank: u32, at: u64) {
        self.changes(rank, at, MessageChange::CallEnds);
        self.0.change(ThreadIndex(rank), at, Change::Becomes(Section::of(State::Serial)));
    }

    fn hangs(mut self, end: u64) -> Vec<Hang> {
        (0..self.1).for_each(|rank| self.0.lives_at(ThreadIndex(rank), end));
        hangs(&self.0.finish())
    }
}

fn message(source: Option<u32>) -> MessageChange {
    MessageChange::Awaits(Awaited::Message { comm: 7, source, tag: Some(3) })
}

fn part(function: &str) -> MessageChange {
    let (function, root) = (function_number(function), u32::MAX);
    MessageChange::TakesPart { comm: 7, sequence: 0, root, function, bytes: 0, nonblocking: false }
}

/// The needed ranks of each wait.
fn needed(hang: &Hang) -> Vec<Vec<u32>> {
    let rank = |needed: &Needed| match needed {
        Needed::Rank { rank, .. } => rank.unwrap_or(u32::MAX),
        _ => u32::MAX,
    };
    hang.waits.iter().map(|wait| wait.needs.iter().map(rank).collect()).collect()
}

#[test]
fn receives_in_a_circle_are_a_deadlock_and_a_rank_that_computes_is_no_hang() {
    let mut job = Job::of(3);
    job.calls(0, 20, "Recv", &[message(Some(1))]);
    job.calls(1, 40, "Wait", &[message(Some(0))]);
    job.calls(2, 30, "Recv", &[message(Some(1))]);
    let hangs = job.hangs(S);
    assert_eq!((hangs[0].circle, threads(&hangs[0])), (2, vec![1, 0, 2]));
    assert_eq!(needed(&hangs[0]), [[0], [1], [1]]);
    let mut job = Job::of(2);
    job.calls(0, 20, "Recv", &[message(Some(1))]);
    assert_eq!(job.hangs(S), []);
}

#[test]
fn a_receive_from_any_rank_hangs_only_if_all_ranks_do() {
    let mut job = Job::of(3);
    job.calls(0, 20, "Recv", &[message(None)]);
    job.calls(1, 20, "Recv", &[message(Some(0))]);
    assert_eq!(job.hangs(S), []);
    let mut job = Job::of(3);
    job.calls(0, 20, "Recv", &[message(None)]);
    job.calls(1, 20, "Recv", &[message(Some(0))]);
    job.calls(2, 30, "Recv", &[message(Some(0))]);
    let hangs = job.hangs(S);
    assert_eq!((hangs[0].circle, hangs[0].waits.len()), (2, 3));
}

#[test]
fn any_of_several_requests_is_enough_for_waitany_only() {
    for (function, is_hung) in [("Waitany", false), ("Waitall", true)] {
        let mut job = Job::of(3);
        job.calls(0, 20, function, &[message(Some(1)), message(Some(2))]);
        job.calls(1, 20, "Recv", &[message(Some(0))]);
        assert_eq!(!job.hangs(S).is_empty(), is_hung, "{function}");
    }
}

#[test]
fn members_that_have_called_another_operation_are_named() {
    let mut job = Job::of(2);
    job.calls(0, 20, "Barrier", &[part("Barrier")]);
    job.calls(1, 30, "Allreduce", &[part("Allreduce")]);
    let hangs = job.hangs(S);
    assert_eq!((hangs[0].circle, needed(&hangs[0])), (2, vec![vec![0], vec![1]]));
    assert!(matches!(
        hangs[0].waits[0].needs[0],
        Needed::Rank { owes: Owed::SamePart { called: "Barrier" }, .. }
    ));
}

#[test]
fn a_message_that_was_sent_is_not_waited_for() {
    let mut job = Job::of(2);
    let sends = MessageChange::Sends { post: 0, comm: 7, peer: 0, tag: 3, bytes: 8 };
    job.calls(1, 10, "Send", &[sends]);
    job.returns(1, 11);
    let other = MessageChange::Awaits(Awaited::Message { comm: 7, source: Some(1), tag: Some(4) });
    job.calls(0, 20, "Waitall", &[message(Some(1)), other]);
    job.calls(1, 30, "Recv", &[message(Some(0))]);
    let hangs = job.hangs(S);
    let wait = hangs[0].waits.iter().find(|wait| wait.thread == ThreadIndex(0)).unwrap();
    assert!(matches!(wait.needs[..], [Needed::Rank { owes: Owed::Message { tag: Some(4), .. }, .. }]));
}

#[test]
fn an_exposure_epoch_needs_its_group() {
    let mut job = Job::of(2);
    let on = |peer| MessageChange::Concerns { comm: 9, peer, bytes: 0 };
    job.calls(0, 10, "Win_post", &[on(1)]);
    job.returns(0, 11);
    job.calls(0, 20, "Win_wait", &[on(u32::MAX)]);
    job.calls(1, 30, "Recv", &[message(Some(0))]);
    let hangs = job.hangs(S);
    assert_eq!((hangs[0].circle, hangs[0].waits.len()), (2, 2));
}
