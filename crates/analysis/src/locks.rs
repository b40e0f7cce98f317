//! Locks and critical constructs: waiting times, and the holders waited for.

use crate::blame::Culprit;
use crate::ledger::Entry;
use crate::states::StateLedger;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{Execution, Group, ObjectIndex, PlaceKind, SiteIndex, State};

/// Waits of others that a place caused by holding an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderSite {
    /// The place of the holder's request.
    pub site: SiteIndex,
    /// Waiting during its holds and for its handing over, nanoseconds.
    pub ns: u64,
}

/// An object and the waiting for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The object; `NONE` if waits do not name it.
    pub object: ObjectIndex,
    /// Times that it was acquired.
    pub acquisitions: u64,
    /// Time that it was held, nanoseconds.
    pub held_ns: u64,
    /// The longest time that it was held, nanoseconds.
    pub longest_hold_ns: u64,
    /// Waits for it, contended or not.
    pub waits: u64,
    /// Waiting for it, nanoseconds; the sum of `holders` and `unheld_ns`.
    pub waited_ns: u64,
    /// Waits without another holder, nanoseconds: the cost of acquiring a free object.
    pub unheld_ns: u64,
    /// The holders charged with the waiting, largest first.
    pub holders: Vec<HolderSite>,
}

/// All locks, those most waited for first.
pub fn locks(execution: &Execution, ledger: &StateLedger) -> Vec<Lock> {
    let mut rows: FxHashMap<ObjectIndex, Lock> = FxHashMap::default();
    for hold in &execution.holds {
        let row = row_of(&mut rows, hold.object);
        row.acquisitions += 1;
        row.held_ns += hold.end - hold.start;
        row.longest_hold_ns = row.longest_hold_ns.max(hold.end - hold.start);
    }
    for (_, thread) in execution.selected_workers() {
        let is_wait = |state: State, _| state.group() == Group::Mutex;
        thread.track.for_each_in(is_wait, |wait| row_of(&mut rows, wait.section.object).waits += 1);
    }
    let is_wait = |state: State| state.group() == Group::Mutex;
    let waits = &ledger.entries.charged;
    let waits = waits.by(|Entry { of, .. }| is_wait(of.state).then_some((of.object, of.culprit)));
    let mut holders: FxHashMap<(ObjectIndex, SiteIndex), u64> = FxHashMap::default();
    for ((object, culprit), ns) in waits.iter() {
        let row = row_of(&mut rows, *object);
        row.waited_ns += ns;
        match culprit {
            Culprit::Holder(place) => {
                let site = if let PlaceKind::Site(site) = place.kind() { site } else { SiteIndex::NONE };
                *holders.entry((*object, site)).or_default() += ns;
            }
            _ => row.unheld_ns += ns,
        }
    }
    for ((object, site), ns) in holders {
        row_of(&mut rows, object).holders.push(HolderSite { site, ns });
    }
    let mut rows: Vec<Lock> = rows.into_values().collect();
    for row in &mut rows {
        row.holders.sort_by_key(|holder| (Reverse(holder.ns), holder.site));
    }
    rows.sort_by_key(|row| (Reverse(row.waited_ns), Reverse(row.held_ns), row.object));
    rows
}

fn row_of(rows: &mut FxHashMap<ObjectIndex, Lock>, object: ObjectIndex) -> &mut Lock {
    rows.entry(object).or_insert(Lock {
        object,
        acquisitions: 0,
        held_ns: 0,
        longest_hold_ns: 0,
        waits: 0,
        waited_ns: 0,
        unheld_ns: 0,
        holders: Vec::new(),
    })
}
