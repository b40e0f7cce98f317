//! The calls of MPI by function and place: count, bytes, time, and the processes that they waited for.

use crate::documents::{CodePlace, Word, some_text};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use taskscope_analysis::LateProcess;
use taskscope_execution::messages::{MpiCall, PeerWaitKind};
use taskscope_execution::{Place, PlaceKind, ProcessIndex, SiteIndex, State};
use taskscope_session::Session;

/// The calls of one function at one place. Times are summed over all threads of all processes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MpiCalls {
    /// The function, such as `MPI_Recv`.
    pub call: String,
    /// The place in words, with the function's name; null if unknown.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The code that calls.
    #[serde(flatten)]
    pub code: CodePlace,
    /// Number of calls.
    pub calls: u64,
    /// Bytes sent, received, given to operations, read, written or accessed; 0 for calls of unknown size.
    pub bytes: u64,
    /// Nanoseconds in the calls.
    pub ns: u64,
    /// Nanoseconds of these spent waiting for processes that had not come.
    pub wait_ns: u64,
    /// The late processes, the longest wait first.
    pub waits: Vec<PeerWaits>,
}

/// Waits for one process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PeerWaits {
    /// The kind of lateness.
    #[schemars(extend("enum" = PeerWaitKind::ALL.map(PeerWaitKind::name)))]
    pub kind: Word,
    /// Rank of the late process; null without one.
    pub rank: Option<u32>,
    /// Its process id.
    pub pid: i64,
    /// Nanoseconds of waiting.
    pub ns: u64,
}

/// The function of a call, such as `MPI_Recv`.
pub(crate) fn name_of(call: &MpiCall) -> String {
    words_of(call.function, call.function_name())
}

/// Functions added by newer recorders have no name here.
fn words_of(function: u32, name: Option<&str>) -> String {
    name.map_or_else(|| format!("MPI function {function}"), |name| format!("MPI_{name}"))
}

/// The rows, those that took longest first. Calls at places of one name are one row.
pub fn rows(session: &Session) -> Vec<MpiCalls> {
    let execution = &session.execution;
    let mut by_place: FxHashMap<(u32, Place), Sum> = FxHashMap::default();
    for call in &execution.communication.calls {
        by_place.entry((call.function, call.place)).or_default().add(call);
    }
    let mut by_name: FxHashMap<(String, String), (SiteIndex, Sum)> = FxHashMap::default();
    let mut sums: Vec<_> = by_place.into_iter().collect();
    sums.sort_by_key(|(key, _)| *key);
    for ((function, place), sum) in sums {
        let name = words_of(function, sum.function);
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
    let mut rows: Vec<MpiCalls> = by_name
        .into_iter()
        .map(|((function, place), (site, sum))| {
            let mut late: Vec<_> = (sum.late.into_iter())
                .map(|((kind, process), ns)| (kind, LateProcess::of(execution, process), ns))
                .collect();
            late.sort_by_key(|(kind, process, ns)| (Reverse(*ns), *kind, *process));
            let waits = late.into_iter().map(|(kind, late, ns)| PeerWaits {
                kind: kind.name().into(),
                rank: late.rank,
                pid: late.pid,
                ns,
            });
            MpiCalls {
                call: function,
                place: some_text(place),
                code: CodePlace::of(&session.places, site).unwrap_or_default(),
                calls: sum.calls,
                bytes: sum.bytes,
                ns: sum.ns,
                wait_ns: sum.wait_ns,
                waits: waits.collect(),
            }
        })
        .collect();
    rows.sort_by(|a, b| (Reverse(a.ns), &a.call, &a.place).cmp(&(Reverse(b.ns), &b.call, &b.place)));
    rows
}

impl MpiCalls {
    /// The process that the calls waited for longest.
    pub fn latest(&self) -> Option<String> {
        let mut by_process: FxHashMap<(Option<u32>, i64), u64> = FxHashMap::default();
        self.waits.iter().for_each(|wait| *by_process.entry((wait.rank, wait.pid)).or_default() += wait.ns);
        let most = by_process.into_iter().max_by_key(|(process, ns)| (*ns, Reverse(*process)));
        most.map(|((rank, pid), _)| crate::names::rank_or_process(rank, pid))
    }
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
    fn add(&mut self, call: &MpiCall) {
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
