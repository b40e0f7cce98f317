//! Waits of a thread, and their blame: all waits but those for locks (`locks`).
//!
//! ```text
//!   wait    ├────────┤ task ├──────────┤       parts, between which the thread runs tasks
//!              part 1           part 2
//! ```
//! | wait | charged is |
//! | --- | --- |
//! | barrier | until the last arrives, that one: what it did and waited for meanwhile (`recent`), else its path to the barrier; then the team's running tasks |
//! | device construct | itself: the device works for it |
//! | taskwait, taskgroup | the children that run when a part ends, in equal shares: those that wait themselves only if none works; else the one that ended last |
//! | taskwait depend | the child that ended last; else those that run |
//!
//! Parts of a wait for tasks below two microseconds, other waits below one, and the unexplained rest are
//! unattributed. The waiting thread charges all of a wait, when its cause is known: so blame equals waiting
//! in every thread's counts at all times.

use taskscope_profile::Marker;

use super::account::Account;
use super::contexts::{self, ChargedPath};
use super::locks::{Blame, MIN_WAIT_NS};
use super::recent::{Recent, Span};
use super::states::waits_for_threads;
use super::teams::{self, Team};
use super::workers::{self, Workers};

/// Shortest part of a wait for tasks that has blame, nanoseconds. LLVM's runtime yields to the system after a
/// task, which takes up to a microsecond without any wait.
pub const MIN_PART_NS: u64 = 2_000;

/// Value of [`Waits::depth`] without a wait.
pub const NO_WAIT: usize = u32::MAX as usize;

/// Spans that a wait for the last to arrive remembers; the last one covers all further ones.
const MAX_SPANS: usize = 64;

/// [`Wait::since`] while a task runs inside: no time has passed since then.
const INTERRUPTED: u64 = u64::MAX;

/// A barrier of a team.
#[derive(Clone, Copy)]
pub struct InTeam {
    pub team: u32,
    /// Number of the team's record.
    pub record: u32,
    /// Number of the barrier with that record.
    pub round: u32,
}

/// A wait of a thread. Small and plain, since a program of small tasks has one per task: its blame is in
/// [`Waits`].
#[derive(Clone, Copy)]
pub struct Wait {
    /// Start of the current part; [`INTERRUPTED`] if no part is running.
    since: u64,
    /// Time waited so far, nanoseconds.
    pub taken: u64,
    /// The part of that for the last member to arrive, which is not known yet.
    pending: u64,
    /// Start of the first part that may have a cause.
    long_since: u64,
    /// Return address of the waiting call; 0 if unknown.
    pub codeptr: u64,
    pub barrier: Option<InTeam>,
    /// Context of the waiting task.
    pub context: u32,
    /// Index of its first entry in the blame of all waits, and in their spans.
    blame_from: u32,
    spans_from: u32,
    /// [`Waits::depth`] without it.
    outer: u32,
    pub kind: Marker,
    /// Whether a part may have a cause. Without one the wait is counted at its call alone, however many parts it has.
    is_long: bool,
}

/// Open waits of a thread, innermost last, with their blame and spans: those of the innermost are at the end.
#[repr(C)]
pub struct Waits {
    /// Depth of the innermost wait, which every callback of small tasks reads.
    depth: u32,
    list: Vec<Wait>,
    blame: Vec<Blame>,
    /// When they waited for the last to arrive, but for parts without a cause.
    spans: Vec<Span>,
}

impl Default for Waits {
    fn default() -> Self {
        Waits { list: Vec::new(), blame: Vec::new(), spans: Vec::new(), depth: NO_WAIT as u32 }
    }
}

/// Charges of a completed wait. Its parts add up to the waiting time.
pub struct Settled<'a> {
    pub unattributed: u64,
    pub blame: &'a [Blame],
    /// Charge for the last member to arrive.
    pub for_last: Option<Owed<'a>>,
}

/// A charge for the use of another thread's time.
#[derive(Clone, Copy)]
pub struct Owed<'a> {
    pub ns: u64,
    pub to: &'a Recent,
    /// When it was waited for.
    pub waits: &'a [Span],
}

impl Waits {
    /// The innermost wait.
    #[inline(always)]
    pub fn innermost(&mut self) -> Option<&mut Wait> {
        self.list.last_mut()
    }

    /// Depth of the open constructs at the innermost wait; [`NO_WAIT`] without one.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    /// Sets the depth of the innermost wait.
    pub fn reach(&mut self, depth: usize) {
        self.depth = depth as u32;
    }

    /// Resumes the innermost wait, if it was interrupted.
    #[inline(always)]
    pub fn resume(&mut self, at: u64) {
        if let Some(wait) = self.list.last_mut()
            && wait.since == INTERRUPTED
        {
            wait.since = at;
        }
    }

    /// Begins a wait, in the call that returns to `codeptr`.
    #[inline(always)]
    pub fn begin(&mut self, kind: Marker, depth: usize, at: u64, (context, codeptr): (u32, u64)) {
        let wait = self.begun(kind, at, (context, codeptr));
        self.list.push(wait);
        self.depth = depth as u32;
    }

    /// Whether one more wait fits without allocation.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.list.len() < self.list.capacity()
    }

    /// Begins a wait as [`begin`](Self::begin) does, without allocation.
    ///
    /// # Safety
    /// There is [room](Self::has_room).
    #[inline(always)]
    pub unsafe fn begin_in_room(
        &mut self,
        kind: Marker,
        depth: usize,
        at: u64,
        (context, codeptr): (u32, u64),
    ) {
        let wait = self.begun(kind, at, (context, codeptr));
        let length = self.list.len();
        self.depth = depth as u32;
        // SAFETY: there is room by contract, and it is initialised before it counts.
        unsafe {
            self.list.as_mut_ptr().add(length).write(wait);
            self.list.set_len(length + 1);
        }
    }

    /// The innermost wait, if none of its parts so far may have a cause.
    #[inline(always)]
    pub fn short_so_far(&self) -> Option<&Wait> {
        self.list.last().filter(|wait| !wait.is_long)
    }

    /// Removes the innermost wait, which is over and counted.
    ///
    /// # Safety
    /// There is a wait.
    #[inline(always)]
    pub unsafe fn forget_innermost(&mut self) {
        // SAFETY: by contract; it is plain.
        unsafe {
            let length = self.list.len() - 1;
            self.depth = (*self.list.as_ptr().add(length)).outer;
            self.list.set_len(length);
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Wait> {
        let wait = self.list.pop()?;
        self.depth = wait.outer;
        Some(wait)
    }

    #[inline(always)]
    fn begun(&self, kind: Marker, at: u64, (context, codeptr): (u32, u64)) -> Wait {
        let (blame_from, spans_from) = (self.blame.len() as u32, self.spans.len() as u32);
        let outer = self.depth;
        let (taken, pending, long_since, barrier, is_long) = (0, 0, 0, None, false);
        Wait {
            since: at,
            taken,
            pending,
            long_since,
            codeptr,
            barrier,
            context,
            blame_from,
            spans_from,
            outer,
            kind,
            is_long,
        }
    }

    /// [`pause`](Self::pause), if that charges no blame.
    #[inline(always)]
    pub fn pause_shortly(&mut self, at: u64) -> bool {
        let Some(wait) = self.list.last_mut() else { return false };
        let length = wait.part(at);
        let is_short = length < MIN_PART_NS && wait.barrier.is_none();
        if is_short {
            (wait.taken, wait.since) = (wait.taken + length, INTERRUPTED);
        }
        is_short
    }

    /// Ends the running part of the innermost wait at `at`.
    #[inline(always)]
    pub fn pause(&mut self, at: u64, own: &Account) {
        let Some(wait) = self.list.last_mut() else { return };
        let (since, length) = (wait.since, wait.part(at));
        wait.since = INTERRUPTED;
        wait.taken += length;
        let is_device = wait.kind == Marker::Target;
        let have_one_cause = is_device || wait.barrier.is_some();
        if since == INTERRUPTED || length < MIN_PART_NS && !have_one_cause {
            return;
        }
        if !wait.is_long && wait.taken >= MIN_WAIT_NS {
            (wait.is_long, wait.long_since) = (true, since);
        }
        if !is_device {
            wait.charge((since, at), workers::current(), own, (&mut self.blame, &mut self.spans));
        }
    }

    /// Ends the innermost wait, if none of its parts may have a cause. Returns its place (kind, context,
    /// call), its length, and whether it was for a barrier.
    #[inline(always)]
    pub fn end_short(&mut self) -> Option<((Marker, u32, u64), u64, bool)> {
        let Wait { kind, context, codeptr, taken, ref barrier, .. } = *self.short_so_far()?;
        let is_barrier = barrier.is_some();
        self.pop();
        Some(((kind, context, codeptr), taken, is_barrier))
    }

    /// Ends the innermost wait; `settle` receives its blame.
    pub fn end(&mut self, settle: impl FnOnce(&Wait, &Settled<'_>)) {
        let Some(mut wait) = self.pop() else { return };
        let (blame_from, spans_from) = (wait.blame_from as usize, wait.spans_from as usize);
        let waits = self.spans.get(spans_from..).unwrap_or_default();
        let for_last = wait.settle(&mut self.blame).map(|(ns, to)| Owed { ns, to, waits });
        let blame = self.blame.get(blame_from..).unwrap_or_default();
        let blamed: u64 = blame.iter().map(|part| part.ns).chain(for_last.map(|owed| owed.ns)).sum();
        settle(&wait, &Settled { unattributed: wait.taken - blamed, blame, for_last });
        self.blame.truncate(blame_from);
        self.spans.truncate(spans_from);
    }
}

impl Wait {
    /// From the first part that may have a cause until `at`.
    pub fn span(&self, at: u64) -> Span {
        (self.long_since, at.max(self.long_since))
    }

    /// Length of the running part.
    #[inline(always)]
    pub fn part(&self, at: u64) -> u64 {
        at.saturating_sub(self.since)
    }

    fn team(&self) -> Option<(&'static Team, InTeam)> {
        let barrier = self.barrier?;
        Some((teams::team(barrier.team)?, barrier))
    }

    /// Charges a part to the last to arrive and to tasks.
    #[cold]
    #[inline(never)]
    fn charge(
        &mut self,
        part: Span,
        workers: Option<&Workers>,
        own: &Account,
        (blame, spans): (&mut Vec<Blame>, &mut Vec<Span>),
    ) {
        let (since, at) = part;
        let mut rest = at.saturating_sub(since);
        if let Some((team, barrier)) = self.team() {
            let last = team.all_here(barrier.record as usize, barrier.round).unwrap_or(u64::MAX);
            let before = last.clamp(since, at.max(since)) - since;
            self.pending += before;
            rest -= before;
            if before >= MIN_PART_NS {
                self.remember((since, since + before), spans);
            }
        }
        self.charge_tasks(rest, part, (workers, own), blame);
    }

    /// Remembers when the thread waited for the last to arrive.
    fn remember(&self, span: Span, spans: &mut Vec<Span>) {
        if spans.len() < self.spans_from as usize + MAX_SPANS {
            spans.push(span);
        } else if let Some(last) = spans.last_mut() {
            last.1 = span.1;
        }
    }

    /// Charges the tasks of other threads: running ones, else the one that ended last in this part. The other
    /// way round if the wait may be over while other threads work.
    fn charge_tasks(
        &self,
        ns: u64,
        (since, until): (u64, u64),
        (workers, own): (Option<&Workers>, &Account),
        blame: &mut Vec<Blame>,
    ) {
        let Some(workers) = workers.filter(|_| ns >= MIN_WAIT_NS) else { return };
        let is_mine = |context: u32| context != 0 && contexts::may_descend(context, self.context);
        let works = |account: &Account| account.state().is_some_and(|state| !waits_for_threads(state));
        let others = || workers.accounts().filter(|account| !core::ptr::eq(*account, own));
        let (mut running, mut working, mut last) = (0, 0, (0, 0));
        for account in others() {
            let (runs, ended, ended_at) = account.tasks();
            if is_mine(runs) {
                running += 1;
                working += u64::from(works(account));
            }
            if ended_at > last.0 && (since..=until).contains(&ended_at) && is_mine(ended) {
                last = (ended_at, ended);
            }
        }
        // A task that waits itself keeps nobody waiting while another one works.
        let asks_for_work = working > 0;
        if asks_for_work {
            running = working;
        }
        if self.kind == Marker::TaskwaitDepend && last.1 != 0 {
            running = 0;
        }
        let mut left = ns;
        if running > 0 {
            // Tasks may have ended meanwhile: each remaining one gets its part.
            for account in others() {
                let runs = account.tasks().0;
                if left > 0 && running > 0 && is_mine(runs) && (works(account) || !asks_for_work) {
                    let part = left / running;
                    blame.push(Blame { place: Some((runs, 0)), ns: part });
                    (left, running) = (left - part, running - 1);
                }
            }
        } else if last.1 != 0 {
            blame.push(Blame { place: Some((last.1, 0)), ns });
        }
    }

    /// Settles a completed wait: charges the part left for the last member to arrive. Returns the use of its
    /// time, which is charged instead if it is known.
    fn settle(&mut self, blame: &mut Vec<Blame>) -> Option<(u64, &'static Recent)> {
        let pending = core::mem::take(&mut self.pending);
        let last = self.team().filter(|_| pending > 0);
        let last = last.and_then(|(team, barrier)| team.last_arrival(barrier.record as usize))?;
        if let Some(work) = last.work() {
            return Some((pending, work));
        }
        let place: ChargedPath = (last.context, last.path);
        blame.push(Blame { place: Some(place), ns: pending });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::states::State;
    use super::*;

    #[test]
    fn the_innermost_is_where_it_was_when_those_inside_are_over() {
        let mut waits = Waits::default();
        assert_eq!(waits.depth(), NO_WAIT);
        for depth in [3, 7, 9, 12] {
            waits.begin(Marker::Taskwait, depth, 10, (1, 0));
            assert_eq!(waits.depth(), depth);
        }
        // SAFETY: some have begun that are not over.
        unsafe { waits.forget_innermost() };
        assert_eq!(waits.depth(), 9);
        assert!(waits.end_short().is_some());
        assert_eq!(waits.depth(), 7);
        waits.end(|_, settled| assert_eq!(settled.unattributed, 0));
        assert_eq!(waits.depth(), 3);
        // SAFETY: some have begun that are not over.
        unsafe { waits.forget_innermost() };
        assert_eq!(waits.depth(), NO_WAIT);
    }

    /// One thread works in task 5; in task 7 one waits for a lock, and in task 8 one waits for children.
    #[test]
    fn tasks_that_wait_are_charged_only_while_none_works() {
        let workers = Workers::new(0);
        let of = |task: u32, state: State| {
            let account = workers.new_account(false);
            account.switch(state, 0);
            account.runs(task);
            account
        };
        let own = of(0, State::Taskwait);
        let busy = of(5, State::Task);
        of(7, State::LockWait);
        of(8, State::Taskwait);
        let charged = || {
            let wait = Waits::default().begun(Marker::Taskwait, 10, (0, 0));
            let mut blame = Vec::new();
            wait.charge_tasks(90_000, (10, 90_010), (Some(&workers), own), &mut blame);
            blame.iter().map(|part| (part.place.unwrap().0, part.ns)).collect::<Vec<_>>()
        };
        assert_eq!(charged(), [(5, 90_000)]);
        busy.switch(State::Communication, 0);
        assert_eq!(charged(), [(5, 90_000)], "another rank works for it");
        busy.switch(State::CriticalWait, 0);
        assert_eq!(charged(), [(5, 30_000), (7, 30_000), (8, 30_000)]);
    }

    #[test]
    fn a_wait_is_long_that_has_a_long_part() {
        let own = Account::new(0);
        let short = MIN_PART_NS - 1;
        for (parts, is_long) in [([short; 3], false), ([short, short + 1, 0], true)] {
            let (mut waits, mut at) = (Waits::default(), 10);
            waits.begin(Marker::Taskwait, 1, at, (1, 0));
            for part in parts {
                waits.pause(at + part, &own);
                at += part + 100;
                waits.resume(at);
            }
            let taken = parts.iter().sum();
            let ended = waits.end_short().map(|(_, taken, _)| taken);
            assert_eq!(ended, (!is_long).then_some(taken));
            if is_long {
                waits.end(|wait, settled| assert_eq!((wait.taken, settled.unattributed), (taken, taken)));
            }
            assert_eq!(waits.depth(), NO_WAIT);
        }
    }
}
