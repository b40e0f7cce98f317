//! The calls of MPI by function and place: how many, how much data, how long, and for whom they waited.

use crate::words;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::cmp::Reverse;
use taskscope_analysis::LateProcess;
use taskscope_execution::messages::{Call, PeerWaitKind};
use taskscope_execution::{Execution, Place, PlaceKind, ProcessIndex, SiteIndex, State};
use taskscope_session::Session;

/// The calls of one function at one place. Times are nanoseconds, summed over all threads of all processes.
pub struct CallRow {
    /// `MPI_Recv`.
    pub function: String,
    /// In words, with the function's name.
    pub place: String,
    /// The code site; none where it is not known.
    pub site: SiteIndex,
    /// Calls.
    pub calls: u64,
    /// Sent, received, given to operations or accessed; of calls whose size is not known, nothing.
    pub bytes: u64,
    /// In the calls.
    pub ns: u64,
    /// Of that, waiting for a process that had not come.
    pub wait_ns: u64,
    /// Processes waited for, with how long, the longest first.
    pub late: Vec<(PeerWaitKind, LateProcess, u64)>,
}

/// The rows, those that took longest first. Calls at places of one name are one row.
pub fn rows(session: &Session) -> Vec<CallRow> {
    let execution = &session.execution;
    let mut by_place: FxHashMap<(u32, Place), Sum> = FxHashMap::default();
    for call in &execution.communication.calls {
        by_place.entry((call.function, call.place)).or_default().add(call);
    }
    let mut by_name: FxHashMap<(String, String), (SiteIndex, Sum)> = FxHashMap::default();
    let mut sums: Vec<_> = by_place.into_iter().collect();
    sums.sort_by_key(|(key, _)| *key);
    for ((function, place), sum) in sums {
        // What newer versions of the recorder add has no name.
        let name = match sum.function {
            Some(name) => format!("MPI_{name}"),
            None => format!("MPI function {function}"),
        };
        let site = match place.kind() {
            PlaceKind::Site(site) => site,
            _ => SiteIndex::NONE,
        };
        let words = match site.is_some() {
            true => session.places.construct(&name, site),
            false => session.places.name(State::Communication, place),
        };
        by_name.entry((name, words)).or_insert_with(|| (site, Sum::default())).1.merge(sum);
    }
    let mut rows: Vec<CallRow> = by_name
        .into_iter()
        .map(|((function, place), (site, sum))| {
            let mut late: Vec<_> = (sum.late.into_iter())
                .map(|((kind, process), ns)| (kind, late_process(execution, process), ns))
                .collect();
            late.sort_by_key(|(kind, process, ns)| (Reverse(*ns), *kind, *process));
            let Sum { calls, bytes, ns, wait_ns, .. } = sum;
            CallRow { function, place, site, calls, bytes, ns, wait_ns, late }
        })
        .collect();
    rows.sort_by(|a, b| (Reverse(a.ns), &a.function, &a.place).cmp(&(Reverse(b.ns), &b.function, &b.place)));
    rows
}

/// The rows as JSON.
pub fn json(session: &Session) -> Vec<Value> {
    let rows = rows(session).into_iter().map(|row| {
        let code = if row.site.is_some() { session.places.code(row.site) } else { Default::default() };
        let waits = row.late.iter().map(
            |(kind, late, ns)| json!({ "kind": kind.name(), "rank": late.rank, "pid": late.pid, "ns": ns }),
        );
        json!({
            "call": row.function,
            "where": if row.place.is_empty() { None } else { Some(&row.place) },
            "function": code.frame.function,
            "file": code.frame.file,
            "line": code.frame.line,
            "calls": row.calls,
            "bytes": row.bytes,
            "ns": row.ns,
            "wait_ns": row.wait_ns,
            "waits": waits.collect::<Vec<_>>(),
        })
    });
    rows.collect()
}

impl CallRow {
    /// Whom the calls waited for longest.
    pub fn latest(&self) -> Option<String> {
        let mut by_process: FxHashMap<LateProcess, u64> = FxHashMap::default();
        self.late.iter().for_each(|(_, late, ns)| *by_process.entry(*late).or_default() += ns);
        let most = by_process.into_iter().max_by_key(|(late, ns)| (*ns, Reverse(*late)));
        most.map(|(late, _)| words::who_is_late(late))
    }
}

fn late_process(execution: &Execution, process: ProcessIndex) -> LateProcess {
    let pid = execution.processes.get(process.index()).map_or(0, |process| process.pid);
    let rank = execution.communication.ranks.get(&process.0).map(|rank| rank.rank);
    LateProcess { process, pid, rank }
}

#[derive(Default)]
struct Sum {
    function: Option<&'static str>,
    calls: u64,
    bytes: u64,
    ns: u64,
    wait_ns: u64,
    late: FxHashMap<(PeerWaitKind, ProcessIndex), u64>,
}

impl Sum {
    fn add(&mut self, call: &Call) {
        self.function = call.function_name();
        self.calls += u64::from(call.count);
        self.bytes = self.bytes.saturating_add(if call.bytes == u64::MAX { 0 } else { call.bytes });
        self.ns += call.end.saturating_sub(call.start);
        if let Some(wait) = call.wait {
            let ns = wait.until.min(call.end).saturating_sub(call.start);
            self.wait_ns += ns;
            *self.late.entry((wait.kind, wait.culprit)).or_default() += ns;
        }
    }

    fn merge(&mut self, other: Sum) {
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns += other.ns;
        self.wait_ns += other.wait_ns;
        other.late.into_iter().for_each(|(key, ns)| *self.late.entry(key).or_default() += ns);
    }
}
