//! What a thread waits for, and who is charged: for every wait but those for locks (`locks`).
//!
//! ```text
//!   wait    ├────────┤ task ├──────────┤       parts, between which the thread runs tasks
//!              part 1           part 2
//! ```
//! | wait | charged is |
//! | --- | --- |
//! | barrier | until the last arrives, that one: what it was sampled in since its last synchronisation, else its path to the barrier; then the team's tasks that run |
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
use super::run::Run;
use super::teams::{self, Team};

/// Parts below this have no cause.
pub const SHORTEST_NS: u64 = 1_000;

/// A barrier: whose, and which.
#[derive(Clone, Copy)]
pub struct InTeam {
    pub team: u32,
    /// Which of the team's records.
    pub record: usize,
    /// The how manieth with that record.
    pub round: u32,
}

/// A wait that a thread is in.
pub struct Wait {
    pub kind: Marker,
    /// How much the thread has open where this is innermost.
    pub depth: usize,
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
    blame: Vec<Blame>,
}

/// What is to be charged when a wait is over. `taken` is the sum of the rest.
pub struct Settled<'a> {
    pub nobody: u64,
    pub blame: &'a [Blame],
    /// For the work of the last to arrive, in equal shares.
    pub for_work: Option<(u64, &'static Recent)>,
}

impl Wait {
    /// A wait that begins.
    pub fn new(kind: Marker, depth: usize, at: u64, (context, codeptr): (u32, u64)) -> Wait {
        Wait {
            kind,
            depth,
            since: Some(at),
            context,
            codeptr,
            barrier: None,
            taken: 0,
            pending: 0,
            nobody: 0,
            blame: Vec::new(),
        }
    }

    fn team(&self) -> Option<(&'static Team, InTeam)> {
        let barrier = self.barrier?;
        Some((teams::team(barrier.team)?, barrier))
    }

    /// The part that goes on ends at `at`.
    pub fn pause(&mut self, at: u64, run: Option<&Run>, own: &Account) {
        let Some(since) = self.since.take() else { return };
        let length = at.saturating_sub(since);
        self.taken += length;
        let mut rest = length;
        if let Some((team, barrier)) = self.team() {
            let last = team.all_here(barrier.record, barrier.round).unwrap_or(u64::MAX);
            let before = last.clamp(since, at.max(since)) - since;
            self.pending += before;
            rest -= before;
        }
        self.charge_tasks(rest, (since, at), run, own);
    }

    /// Charges tasks of others: those that run, else the one that ended last in this part.
    fn charge_tasks(&mut self, ns: u64, (since, until): (u64, u64), run: Option<&Run>, own: &Account) {
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
                    self.blame.push(Blame { place: Some((runs, 0)), ns: part });
                    (left, running) = (left - part, running - 1);
                }
            }
        } else if last.1 != 0 {
            self.blame.push(Blame { place: Some((last.1, 0)), ns: left });
            left = 0;
        }
        self.nobody += left;
    }

    /// Whether somebody has been charged already.
    pub fn has_blame(&self) -> bool {
        !self.blame.is_empty()
    }

    /// The wait is over: who is to blame.
    pub fn settle(&mut self) -> Settled<'_> {
        let mut for_work = None;
        if let Some((team, barrier)) = self.team().filter(|_| self.pending > 0) {
            match team.last_arrival(barrier.record) {
                Some(last) if !last.work.is_empty() => for_work = Some((self.pending, &last.work)),
                Some(last) => {
                    let place: Place = (last.context, last.path);
                    self.blame.push(Blame { place: Some(place), ns: self.pending });
                }
                None => self.nobody += self.pending,
            }
        } else {
            self.nobody += self.pending;
        }
        self.pending = 0;
        Settled { nobody: self.nobody, blame: &self.blame, for_work }
    }
}
