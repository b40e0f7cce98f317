//! What a thread waits for, and who is charged: for every wait but those for locks (`locks`).
//!
//! ```text
//!   wait    ├────────┤ task ├──────────┤       parts, between which the thread runs tasks
//!              part 1           part 2
//! ```
//! | wait | charged is |
//! | --- | --- |
//! | barrier | until the last arrives, that one: what it was sampled in since its last synchronisation, else its path to the barrier; then the team's tasks that run |
//! | device construct | itself: the device works for it |
//! | taskwait, taskgroup, taskwait depend | the children that run when a part ends, in equal shares; else the one that ended last |
//!
//! Parts below a microsecond are nobody's, as is what none of that explains. All of a wait is charged by the
//! thread that waited, when it knows: so what is given equals what is taken in every thread's counts at
//! every moment.

use taskscope_profile::Marker;

use super::account::Account;
use super::contexts;
use super::locks::{Blame, Place};
use super::recent::Recent;
use super::run::{self, Run};
use super::teams::{self, Team};

/// Parts below this have no cause.
pub const SHORTEST_NS: u64 = 1_000;

/// What [`Waits::depth`] says of none.
pub const NO_WAIT: usize = usize::MAX;

/// A barrier: whose, and which.
#[derive(Clone, Copy)]
pub struct InTeam {
    pub team: u32,
    /// Which of the team's records.
    pub record: u32,
    /// The how manieth with that record.
    pub round: u32,
}

/// A wait that a thread is in. Small and plain, since a program of small tasks has one a task: whom it
/// charges lies in [`Waits`].
#[derive(Clone, Copy)]
pub struct Wait {
    pub kind: Marker,
    /// [`Waits::depth`] without it.
    outer: usize,
    /// Since when the part that goes on does; none while a task runs inside.
    pub since: Option<u64>,
    /// Context of the waiting task.
    pub context: u32,
    /// Where the waiting call returns to; 0 where that is not known.
    pub codeptr: u64,
    pub barrier: Option<InTeam>,
    /// Waited so far.
    pub taken: u64,
    /// Of that: for the last to arrive, who is not known yet; and for nobody.
    pending: u64,
    nobody: u64,
    /// Where its blame begins in that of all waits.
    blame_from: usize,
}

/// The waits that a thread is in, innermost last, and their blame: that of the innermost lies at the end.
pub struct Waits {
    list: Vec<Wait>,
    blame: Vec<Blame>,
    /// The innermost's, which every callback of small tasks asks for.
    depth: usize,
}

impl Default for Waits {
    fn default() -> Self {
        Waits { list: Vec::new(), blame: Vec::new(), depth: NO_WAIT }
    }
}

/// What is to be charged when a wait is over. `taken` is the sum of the rest.
pub struct Settled<'a> {
    pub nobody: u64,
    pub blame: &'a [Blame],
    /// For the work of the last to arrive, in equal shares.
    pub for_work: Option<(u64, &'static Recent)>,
}

impl Waits {
    /// The innermost.
    #[inline(always)]
    pub fn innermost(&mut self) -> Option<&mut Wait> {
        self.list.last_mut()
    }

    /// How much the thread has open where the innermost is; [`NO_WAIT`] without one.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The innermost goes on, if it was interrupted.
    #[inline(always)]
    pub fn resume(&mut self, at: u64) {
        if let Some(wait) = self.list.last_mut() {
            wait.since.get_or_insert(at);
        }
    }

    /// A wait begins, in the call that returns to `codeptr`.
    #[inline(always)]
    pub fn begin(&mut self, kind: Marker, depth: usize, at: u64, (context, codeptr): (u32, u64)) {
        let wait = self.begun(kind, at, (context, codeptr));
        self.list.push(wait);
        self.depth = depth;
    }

    /// Whether one more needs no memory.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.list.len() < self.list.capacity()
    }

    /// [`begin`](Self::begin).
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
        self.depth = depth;
        // SAFETY: there is room by contract, and it is initialised before it counts.
        unsafe {
            self.list.as_mut_ptr().add(length).write(wait);
            self.list.set_len(length + 1);
        }
    }

    /// The innermost, if it goes on and has charged nobody: since when it goes on.
    #[inline(always)]
    pub fn short_so_far(&self) -> Option<(&Wait, u64)> {
        let wait = self.list.last()?;
        let is_plain = wait.barrier.is_none() && wait.blame_from == self.blame.len();
        Some((wait, wait.since.filter(|_| is_plain)?))
    }

    /// The innermost is over, and counted.
    #[inline(always)]
    pub fn forget_innermost(&mut self) {
        self.pop();
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Wait> {
        let wait = self.list.pop()?;
        self.depth = wait.outer;
        Some(wait)
    }

    #[inline(always)]
    fn begun(&self, kind: Marker, at: u64, (context, codeptr): (u32, u64)) -> Wait {
        let (since, barrier, outer) = (Some(at), None, self.depth);
        let (taken, pending, nobody, blame_from) = (0, 0, 0, self.blame.len());
        Wait { kind, outer, since, context, codeptr, barrier, taken, pending, nobody, blame_from }
    }

    /// [`pause`](Self::pause), if that charges nobody.
    #[inline(always)]
    pub fn pause_shortly(&mut self, at: u64) -> bool {
        let Some(wait) = self.list.last_mut() else { return false };
        let Some(since) = wait.since else { return false };
        let length = at.saturating_sub(since);
        let is_short = length < SHORTEST_NS && wait.barrier.is_none();
        if is_short {
            (wait.taken, wait.nobody, wait.since) = (wait.taken + length, wait.nobody + length, None);
        }
        is_short
    }

    /// The part of the innermost that goes on ends at `at`.
    #[inline(always)]
    pub fn pause(&mut self, at: u64, own: &Account) {
        let Some(wait) = self.list.last_mut() else { return };
        let Some(since) = wait.since.take() else { return };
        let length = at.saturating_sub(since);
        wait.taken += length;
        if (length < SHORTEST_NS && wait.barrier.is_none()) || wait.kind == Marker::Target {
            wait.nobody += length;
        } else {
            wait.charge((since, at), run::current(), own, &mut self.blame);
        }
    }

    /// The innermost is over, if it is short and charges nobody: where it was (kind, context, call), how
    /// long it was, and whether it was one for a barrier.
    #[inline(always)]
    pub fn end_short(&mut self) -> Option<((Marker, u32, u64), u64, bool)> {
        let Wait { kind, context, codeptr, taken, blame_from, ref barrier, .. } = *self.list.last()?;
        if taken >= SHORTEST_NS || blame_from != self.blame.len() {
            return None;
        }
        let is_barrier = barrier.is_some();
        self.pop();
        Some(((kind, context, codeptr), taken, is_barrier))
    }

    /// The innermost is over: `settle` learns who is to blame.
    pub fn end(&mut self, settle: impl FnOnce(&Wait, &Settled<'_>)) {
        let Some(mut wait) = self.pop() else { return };
        let for_work = wait.settle(&mut self.blame);
        let blame = self.blame.get(wait.blame_from..).unwrap_or_default();
        settle(&wait, &Settled { nobody: wait.nobody, blame, for_work });
        self.blame.truncate(wait.blame_from);
    }
}

impl Wait {
    fn team(&self) -> Option<(&'static Team, InTeam)> {
        let barrier = self.barrier?;
        Some((teams::team(barrier.team)?, barrier))
    }

    /// Charges a part to the last to arrive and to tasks.
    #[cold]
    #[inline(never)]
    fn charge(&mut self, part: (u64, u64), run: Option<&Run>, own: &Account, blame: &mut Vec<Blame>) {
        let (since, at) = part;
        let mut rest = at.saturating_sub(since);
        if let Some((team, barrier)) = self.team() {
            let last = team.all_here(barrier.record as usize, barrier.round).unwrap_or(u64::MAX);
            let before = last.clamp(since, at.max(since)) - since;
            self.pending += before;
            rest -= before;
        }
        self.charge_tasks(rest, part, (run, own), blame);
    }

    /// Charges tasks of others: those that run, else the one that ended last in this part.
    fn charge_tasks(
        &mut self,
        ns: u64,
        (since, until): (u64, u64),
        (run, own): (Option<&Run>, &Account),
        blame: &mut Vec<Blame>,
    ) {
        let Some(run) = run.filter(|_| ns >= SHORTEST_NS) else {
            self.nobody += ns;
            return;
        };
        let of_mine = |context: u32| context != 0 && contexts::may_descend(context, self.context);
        let (mut running, mut last) = (0, (0, 0));
        for account in run.accounts().filter(|account| !core::ptr::eq(*account, own)) {
            let (runs, ended, ended_at) = account.tasks();
            running += u64::from(of_mine(runs));
            if ended_at > last.0 && (since..=until).contains(&ended_at) && of_mine(ended) {
                last = (ended_at, ended);
            }
        }
        let mut left = ns;
        if running > 0 {
            // Tasks may have ended meanwhile: of those that are still met, each gets its part.
            for account in run.accounts().filter(|account| !core::ptr::eq(*account, own)) {
                let runs = account.tasks().0;
                if left > 0 && running > 0 && of_mine(runs) {
                    let part = left / running;
                    blame.push(Blame { place: Some((runs, 0)), ns: part });
                    (left, running) = (left - part, running - 1);
                }
            }
        } else if last.1 != 0 {
            blame.push(Blame { place: Some((last.1, 0)), ns: left });
            left = 0;
        }
        self.nobody += left;
    }

    /// The wait is over: charges what was left for the last to arrive. Returns what its work is charged with.
    fn settle(&mut self, blame: &mut Vec<Blame>) -> Option<(u64, &'static Recent)> {
        let pending = core::mem::take(&mut self.pending);
        let last = self.team().filter(|_| pending > 0);
        match last.and_then(|(team, barrier)| team.last_arrival(barrier.record as usize)) {
            Some(last) if !last.work.is_empty() => return Some((pending, &last.work)),
            Some(last) => {
                let place: Place = (last.context, last.path);
                blame.push(Blame { place: Some(place), ns: pending });
            }
            None => self.nobody += pending,
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_is_where_it_was_when_those_inside_are_over() {
        let mut waits = Waits::default();
        assert_eq!(waits.depth(), NO_WAIT);
        for depth in [3, 7, 9, 12] {
            waits.begin(Marker::Taskwait, depth, 10, (1, 0));
            assert_eq!(waits.depth(), depth);
        }
        waits.forget_innermost();
        assert_eq!(waits.depth(), 9);
        assert!(waits.end_short().is_some());
        assert_eq!(waits.depth(), 7);
        waits.end(|_, settled| assert_eq!(settled.nobody, 0));
        assert_eq!(waits.depth(), 3);
        waits.forget_innermost();
        assert_eq!(waits.depth(), NO_WAIT);
    }
}
