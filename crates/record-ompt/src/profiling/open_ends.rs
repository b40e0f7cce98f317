//! Waits at the ends of completed regions, of threads that have not learned of the end: they do at their next
//! work, or at their end. A profile written meanwhile takes these waits from the shared state.
//!
//! The part of such a wait before tasks that ran in it is not visible.

use taskscope_profile::{Marker, Tree};

use super::counts::Counts;
use super::locks::{Blame, MIN_WAIT_NS};
use super::teams::{self, JOIN, Team};
use super::waits::{Owed, Settled};
use super::workers::Workers;

/// Adds such waits of all threads, as the threads will count them. Waits counted before are already
/// collected.
pub fn add(tree: &mut Tree, workers: &Workers) {
    let mut counts = None;
    for account in workers.accounts() {
        let Some((number, since)) = account.waits_at_end() else { continue };
        teams::while_held(number, |team| {
            // It waits for the present use of this team, not for an earlier one with its number.
            if account.waits_at_end() == Some((number, since))
                && let Some(over) = team.over_since()
            {
                count(counts.get_or_insert_with(Counts::new), team, since, over);
            }
        });
    }
    if let Some(mut counts) = counts {
        counts.merge_into(tree);
    }
}

fn count(counts: &mut Counts, team: &Team, since: u64, over: u64) {
    let Some(last) = team.last_arrival(JOIN) else { return };
    let taken = over.saturating_sub(since);
    let all_here = team.all_here(JOIN, 0).unwrap_or(over).clamp(since, over.max(since)) - since;
    let pending = if taken < MIN_WAIT_NS { 0 } else { all_here };
    // All members are in the region's context.
    let place = (last.context, 0);
    let charged = [Blame { place: Some((last.context, last.path)), ns: pending }];
    let waits = [(since, since + all_here)];
    let (blame, for_last) = match last.work() {
        Some(to) => (&[][..], Some(Owed { ns: pending, to, waits: &waits })),
        None => (&charged[..], None),
    };
    counts.waited(
        Marker::JoinBarrier,
        place,
        taken,
        &Settled { unattributed: taken - pending, blame, for_last },
    );
}
