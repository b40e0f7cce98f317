//! Chains of waits: the thread that makes a thread wait, and on through that thread's own waits to the root.
//!
//! Each nanosecond of a wait belongs to one thread at a time: the holder of the lock, or otherwise the waking
//! thread, from the wait's begin on. If that thread waited itself meanwhile, its wait is followed, and so on
//! to a thread that ran, had no CPU or was in a call that is not recorded, or to an end without another thread ([`Root`]). Parts of a wait sum to it exactly.

use taskscope_event::models::wait::kind;
use taskscope_execution::{
    Execution, Group, Hold, Object, ObjectIndex, PathIndex, SiteIndex, State, ThreadIndex, ThreadWait,
    WaitOutcome,
};

/// A call, by its site and its call path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ThreadCall {
    /// The site.
    pub site: SiteIndex,
    /// The call path; `NONE` if unknown.
    pub path: PathIndex,
}

impl ThreadCall {
    /// A call that is not recorded.
    pub const NONE: ThreadCall = ThreadCall { site: SiteIndex::NONE, path: PathIndex::NONE };

    pub(crate) fn of(execution: &Execution, thread: ThreadIndex, site: SiteIndex, at: u64) -> ThreadCall {
        let path = execution.samples.path_of_call(thread, site, at).unwrap_or(PathIndex::NONE);
        ThreadCall { site, path }
    }
}

/// Relation of a thread to the thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Tie {
    /// Held the lock, taken in this call; the path is that of the release.
    Holds(ThreadCall),
    /// Woke the waiting thread in this call.
    Wakes(ThreadCall),
    /// Was joined; the thread and its routine.
    IsJoined(ThreadIndex, SiteIndex),
}

/// The end of the chain for a part of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Root {
    /// The last thread of the chain was not waiting for another one, and had a CPU as far as is known.
    Ran,
    /// The last thread of the chain, or the waiting thread itself, could run and had no CPU: the wait had been ended. (Signals wake a
    /// thread within its wait, such as those of samples; it sleeps again.)
    NoCpu,
    /// The lock was free, or the thread had been woken: until it ran again.
    Handover,
    /// A wait ended because the time that its caller allowed was over.
    TimedOut,
    /// The last thread of the chain, or the waiting thread itself, slept.
    Slept,
    /// It waited for something outside of the process: a device, a peer, a timer, another process.
    Outside,
    /// The last thread of the chain was blocked in a call that is not recorded.
    Unrecorded,
    /// The wait is not over at the end of the recording.
    Open,
    /// The awaited thread is not recorded.
    NotKnown,
}

/// Threads of one chain at most; a longer one ends as not known.
const MAX_CHAIN: usize = 64;
/// Maximum parts of one wait; the rest is not followed further than one thread.
const MAX_PARTS: usize = 100_000;

/// A part of a wait in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainPart {
    /// The awaited thread, and the reason; `None` without one.
    pub first: Option<Tie>,
    /// The last thread of the chain; the same as `first` in a chain of one.
    pub last: Option<Tie>,
    /// The end of the chain.
    pub root: Root,
    /// The sleep or I/O of the last thread of the chain, or of the waiting thread in a chain of none.
    pub blocked: Option<(u32, ThreadCall)>,
    /// Threads in the chain.
    pub length: u32,
    /// The last thread of the chain; `NONE` without any.
    pub thread: ThreadIndex,
    /// First nanosecond.
    pub from: u64,
    /// First nanosecond after it.
    pub until: u64,
}

impl ChainPart {
    /// Whether the awaited lock was free, as its next holder did not run yet.
    pub(crate) fn is_of_free_lock(&self) -> bool {
        self.root == Root::Handover && self.length == 1 && matches!(self.first, Some(Tie::Holds(_)))
    }
}

/// Hands over the parts of a wait from `from` until `until`, in the order of time.
pub(crate) fn follow(
    execution: &Execution,
    wait: &ThreadWait,
    from: u64,
    until: u64,
    take: &mut impl FnMut(ChainPart),
) {
    Chains { execution, chain: vec![], parts: 0, take }.follow_wait(wait, from, until);
}

/// The end of the last time that a thread was blocked before the end of its wait.
fn asleep_until(execution: &Execution, wait: &ThreadWait) -> Option<u64> {
    // All of the run, of which this may be a part.
    let asleep = execution.whole().blocked_of(wait.thread);
    asleep[..asleep.partition_point(|off| off.start < wait.end)].last().map(|off| off.end)
}

/// The time since which the thread of a wait could run, as in [`follow`]: until then it had no use for a CPU.
pub(crate) fn ended_at(execution: &Execution, wait: &ThreadWait) -> u64 {
    let kind = object(execution, wait.object).map_or(0, |row| row.kind);
    let releases = || {
        let holds = execution.thread_waits.holds_of(wait.object, wait.start, wait.end).iter();
        holds.filter(|hold| hold.thread != wait.thread).map(|hold| hold.end).max()
    };
    let ended = match wait.waker {
        // It spins, reads in several steps, or came last to a barrier itself.
        _ if matches!(kind, kind::SPIN_LOCK | kind::FILE) => None,
        Some(waker) if waker.thread == wait.thread => None,
        Some(waker) => Some(waker.at),
        None => releases().filter(|_| kind::has_holder(kind)).or_else(|| asleep_until(execution, wait)),
    };
    ended.unwrap_or(wait.start).clamp(wait.start, wait.end)
}

/// The row of an object.
pub(crate) fn object(execution: &Execution, object: ObjectIndex) -> Option<&Object> {
    execution.catalog.objects.get(object.index())
}

/// Whether a thread is in code of the program at an instant, as far as a runtime's events tell.
fn is_in_code(execution: &Execution, thread: ThreadIndex, at: u64) -> bool {
    let track = &execution.threads[thread.index()].track;
    let state = track.row_at(at).map_or(State::Unknown, |row| track.span(row).section.state);
    matches!(state.group(), Group::Useful | Group::Unknown)
}

/// Follows the chains of one wait.
struct Chains<'a, F> {
    execution: &'a Execution,
    /// The threads that are waited for, from the first on.
    chain: Vec<(ThreadIndex, Tie)>,
    parts: usize,
    take: &'a mut F,
}

impl<F: FnMut(ChainPart)> Chains<'_, F> {
    fn end(&mut self, root: Root, from: u64, until: u64) {
        self.end_in(root, None, from, until);
    }

    fn end_in(&mut self, root: Root, blocked: Option<(u32, ThreadCall)>, from: u64, until: u64) {
        if until > from {
            let last = self.chain.last();
            (self.take)(ChainPart {
                first: self.chain.first().map(|(_, tie)| *tie),
                last: last.map(|(_, tie)| *tie),
                root,
                blocked,
                length: self.chain.len() as u32,
                thread: last.map_or(ThreadIndex::NONE, |(thread, _)| *thread),
                from,
                until,
            });
            self.parts += 1;
        }
    }

    /// Ends the chain at a thread that ran or was about to, apart from the times in which it had no CPU.
    fn end_on_cpu(&mut self, thread: ThreadIndex, root: Root, from: u64, until: u64) {
        self.end_on_cpu_in(thread, (root, None), from, until);
    }

    /// Ends the chain at the waiting thread itself, in a wait that no known thread has ended: the request has come, or the time is
    /// over, since it was blocked last.
    fn end_in_own_wait(
        &mut self,
        wait: &ThreadWait,
        (root, blocked): (Root, Option<(u32, ThreadCall)>),
        from: u64,
        until: u64,
    ) {
        let awake = asleep_until(self.execution, wait).unwrap_or(from).clamp(from, until);
        self.end_in(root, blocked, from, awake);
        self.end_on_cpu_in(wait.thread, (root, blocked), awake, until);
    }

    fn end_on_cpu_in(
        &mut self,
        thread: ThreadIndex,
        (root, blocked): (Root, Option<(u32, ThreadCall)>),
        from: u64,
        until: u64,
    ) {
        let execution = self.execution;
        let off = execution.off_cpu_of(thread);
        let mut at = from;
        for off in &off[off.partition_point(|off| off.end <= from)..] {
            if off.start >= until {
                break;
            }
            let (start, end) = (off.start.max(at), off.end.min(until));
            self.end_in(root, blocked, at, start);
            self.end(Root::NoCpu, start, end);
            at = at.max(end);
        }
        self.end_in(root, blocked, at, until);
    }

    /// The part of a wait from `from` until `until`.
    fn follow_wait(&mut self, wait: &ThreadWait, from: u64, until: u64) {
        let kind = object(self.execution, wait.object).map_or(0, |row| row.kind);
        if kind::has_holder(kind) {
            return self.follow_lock(wait, from, until);
        }
        // A thread of the process may have ended such a wait.
        let may_be_own = matches!(kind, kind::PIPE | kind::EVENT | kind::PIPE_ROOM..=kind::FILE_LOCK)
            && !wait.is_of_others;
        let is_open = (may_be_own || kind == kind::SLEEP) && wait.outcome == WaitOutcome::Open;
        match wait.waker {
            // It came last to a barrier itself.
            Some(waker) if waker.thread == wait.thread => {
                self.end_on_cpu(wait.thread, Root::Handover, from, until);
            }
            Some(waker) => {
                let tie = match kind {
                    kind::JOIN => Tie::IsJoined(waker.thread, waker.site),
                    _ => Tie::Wakes(ThreadCall::of(self.execution, waker.thread, waker.site, waker.at)),
                };
                let woken = waker.at.clamp(from, until);
                self.follow_thread(waker.thread, tie, from, woken);
                self.end_on_cpu(wait.thread, Root::Handover, woken, until);
            }
            None if kind::is_blocking(kind) && !is_open => {
                let root = match kind {
                    kind::SLEEP => Root::Slept,
                    _ if wait.is_of_others => Root::Outside,
                    _ if may_be_own => Root::NotKnown,
                    _ if wait.outcome == WaitOutcome::TimedOut => Root::TimedOut,
                    _ => Root::Outside,
                };
                let call = ThreadCall::of(self.execution, wait.thread, wait.site, wait.start);
                let end = (root, Some((kind, call)));
                match kind {
                    // No signal wakes it: it had no CPU between two accesses.
                    kind::FILE => self.end_on_cpu_in(wait.thread, end, from, until),
                    _ => self.end_in_own_wait(wait, end, from, until),
                }
            }
            None => {
                let root = match wait.outcome {
                    WaitOutcome::TimedOut => Root::TimedOut,
                    WaitOutcome::Open => Root::Open,
                    _ => Root::NotKnown,
                };
                self.end_in_own_wait(wait, (root, None), from, until);
            }
        }
    }

    fn follow_lock(&mut self, wait: &ThreadWait, from: u64, until: u64) {
        let execution = self.execution;
        let holds = execution.thread_waits.holds_of(wait.object, wait.start, wait.end);
        let is_of_other = |hold: &&Hold| hold.thread != wait.thread;
        let is_held = holds.iter().any(|hold| is_of_other(&hold));
        let mut at = from;
        // A wait may be followed in many parts.
        let first = holds.partition_point(|hold| hold.end <= from);
        for hold in holds.iter().skip(first).filter(is_of_other) {
            if at >= until {
                break;
            }
            let end = hold.end.clamp(at, until);
            let call = ThreadCall::of(execution, hold.thread, hold.site, hold.end);
            self.follow_thread(hold.thread, Tie::Holds(call), at, end);
            at = end;
        }
        let rest = match wait.outcome {
            _ if is_held => return self.end_on_cpu(wait.thread, Root::Handover, at, until),
            WaitOutcome::TimedOut => Root::TimedOut,
            WaitOutcome::Open => Root::Open,
            _ => Root::NotKnown,
        };
        self.end_in_own_wait(wait, (rest, None), at, until);
    }

    /// The activity of a thread during waits of others for it.
    fn follow_thread(&mut self, thread: ThreadIndex, tie: Tie, from: u64, until: u64) {
        if from >= until {
            return;
        }
        // Each waits for the other, as far as is recorded.
        let is_circle = self.chain.iter().any(|(other, _)| *other == thread);
        self.chain.push((thread, tie));
        if is_circle || self.chain.len() > MAX_CHAIN {
            self.end(Root::NotKnown, from, until);
        } else if self.parts > MAX_PARTS {
            self.end(Root::Ran, from, until);
        } else {
            let execution = self.execution;
            let mut at = from;
            for wait in execution.thread_waits.waits_of(thread, from, until) {
                let (start, end) = (wait.start.max(at), wait.end.min(until));
                self.end_outside_of_waits(thread, at, start);
                if end > start {
                    self.follow_wait(wait, start, end);
                }
                at = at.max(end);
            }
            self.end_outside_of_waits(thread, at, until);
        }
        self.chain.pop();
    }

    /// Ends the chain at a thread outside of its recorded waits. Where the kernel had it blocked, it did not run, and the call is not
    /// known, unless a runtime's events are those of a wait.
    fn end_outside_of_waits(&mut self, thread: ThreadIndex, from: u64, until: u64) {
        let execution = self.execution;
        let blocked = execution.blocked_of(thread);
        let mut at = from;
        for off in &blocked[blocked.partition_point(|off| off.end <= from)..] {
            if off.start >= until {
                break;
            }
            let (start, end) = (off.start.max(at), off.end.min(until));
            if start < end && is_in_code(execution, thread, start) {
                self.end_on_cpu(thread, Root::Ran, at, start);
                self.end(Root::Unrecorded, start, end);
                at = end;
            }
        }
        self.end_on_cpu(thread, Root::Ran, at, until);
    }
}
