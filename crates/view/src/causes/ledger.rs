//! The sections `ledger` and `blame`: the use of every worker-nanosecond, and the charged parties.

use crate::documents::{Named, some_text};
use crate::format::{self, Cell};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use taskscope_analysis::causes::{Causes, ReadyWork};
use taskscope_analysis::{ByCause, Letter, Who};
use taskscope_cause::{Blamed, Cause};
use taskscope_execution::graph::TaskGraph;

/// The use of every worker-nanosecond.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LedgerTimes {
    /// Sum of the lives of the workers.
    pub capacity_ns: u64,
    /// Time by cause; sums to `capacity_ns`.
    pub causes: CauseTimes,
    /// Time by letter; sums to `capacity_ns`.
    pub slow: SlowTimes,
    /// Idle time of each cause in `wait` by the place of ready tasks meanwhile; sums to the cause.
    pub ready_work: BTreeMap<Named<Cause>, ReadyTimes>,
    /// Times by worker id.
    pub by_worker: IndexMap<String, CauseTimes>,
    /// Times by node id.
    pub by_node: IndexMap<String, CauseTimes>,
}

/// Worker-nanoseconds of every cause.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct CauseTimes(
    #[schemars(extend("required" = Cause::ALL.map(Cause::name).to_vec()))] BTreeMap<Named<Cause>, u64>,
);

impl CauseTimes {
    fn of(times: &ByCause) -> CauseTimes {
        CauseTimes(Cause::ALL.map(Named).into_iter().zip(times.iter().copied()).collect())
    }
}

/// Worker-nanoseconds by letter of SLOW.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SlowTimes {
    /// Time in task bodies.
    pub work_ns: u64,
    /// Too little parallel work.
    pub starvation_ns: u64,
    /// Data under way.
    pub latency_ns: u64,
    /// The runtime and the system.
    pub overhead_ns: u64,
    /// Waiting for locks.
    pub contention_ns: u64,
}

/// Idle worker-nanoseconds by the place of ready tasks meanwhile.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReadyTimes {
    /// Ready on the worker's node.
    pub here: u64,
    /// Ready on other nodes only.
    pub elsewhere: u64,
    /// Nowhere.
    pub nowhere: u64,
}

/// The numbers of section `ledger`.
pub(super) fn times(graph: &TaskGraph, causes: &Causes) -> LedgerTimes {
    let workers = graph.workers.iter().zip(&causes.by_worker).filter(|(worker, _)| worker.selected);
    let waits = Cause::ALL.into_iter().filter(|cause| cause.is_in(Cause::Wait));
    let ready = waits.map(|cause| {
        let [here, elsewhere, nowhere] = causes.ready[cause as usize];
        (Named(cause), ReadyTimes { here, elsewhere, nowhere })
    });
    let slow = causes.slow;
    LedgerTimes {
        capacity_ns: causes.capacity_ns,
        causes: CauseTimes::of(&causes.by_cause),
        slow: SlowTimes {
            work_ns: slow.work_ns,
            starvation_ns: slow.starvation_ns,
            latency_ns: slow.latency_ns,
            overhead_ns: slow.overhead_ns,
            contention_ns: slow.contention_ns,
        },
        ready_work: ready.collect(),
        by_worker: workers.map(|(worker, times)| (worker.id.to_string(), CauseTimes::of(times))).collect(),
        by_node: by_node(graph, causes)
            .iter()
            .map(|(node, times)| (node.to_string(), CauseTimes::of(times)))
            .collect(),
    }
}

/// The times of each node's workers (a rank's, if processes have ranks), by node number.
fn by_node(graph: &TaskGraph, causes: &Causes) -> Vec<(u64, ByCause)> {
    let mut nodes: Vec<(u64, ByCause)> =
        graph.nodes.iter().map(|node| (node.id, [0; Cause::ALL.len()])).collect();
    for (worker, times) in graph.workers.iter().zip(&causes.by_worker) {
        if let Some((_, sums)) = nodes.get_mut(worker.node as usize) {
            sums.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
        }
    }
    nodes
}

/// The four largest causes of each node, if there are several.
fn nodes_text(ledger: &LedgerTimes, out: &mut String) {
    if ledger.by_node.len() < 2 {
        return;
    }
    for (node, CauseTimes(times)) in &ledger.by_node {
        let capacity: u64 = times.values().sum();
        // One of a process of which no thread is a worker.
        if capacity == 0 {
            continue;
        }
        let mut largest: Vec<(Named<Cause>, u64)> =
            times.iter().map(|(cause, ns)| (*cause, *ns)).filter(|(_, ns)| *ns > 0).collect();
        largest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let words = largest.iter().take(4);
        let words = words.map(|(cause, ns)| format!("{} {}", cause.0.name(), format::percent(*ns, capacity)));
        let words: Vec<String> = words.collect();
        let _ = writeln!(out, "   node {node:<8} {:>12}: {}", format::time(capacity), words.join(", "));
    }
}

/// Lost time with its charge.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChargedLoss {
    /// The cause; never work.
    pub cause: Named<Cause>,
    /// The charged party.
    pub blamed: Named<Blamed>,
    /// The letter of SLOW.
    pub letter: Named<Letter>,
    /// Worker-nanoseconds.
    pub ns: u64,
    /// `who` in words.
    pub label: String,
    /// The charged party, in detail.
    pub who: ChargedPlace,
    /// The code that lost the time.
    pub symptom: ChargedPlace,
    /// The same in words, for text.
    #[serde(skip)]
    seen_in: Option<String>,
}

/// Code, or an object; null if unknown or not applicable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChargedPlace {
    /// The function.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    #[schemars(range(min = 1))]
    pub line: Option<u32>,
    /// The task type.
    pub task_type: Option<String>,
    /// A lock, a call, a section of the runtime, a link, an operation of a device.
    pub object: Option<String>,
}

/// Every charge but work itself, largest first; rows of one cause sum to it.
pub(super) fn charges(graph: &TaskGraph, causes: &Causes) -> Vec<ChargedLoss> {
    let lost = causes.rows.iter().filter(|charge| charge.cause != Cause::Work);
    lost.map(|charge| ChargedLoss {
        cause: Named(charge.cause),
        blamed: Named(charge.who.blamed()),
        letter: Named(charge.who.letter()),
        ns: charge.ns,
        label: charge.who.label(graph),
        who: who(graph, charge.who),
        symptom: place(graph, charge.symptom.unwrap_or(u32::MAX), None),
        seen_in: charge.symptom.and_then(|ty| Some(graph.types.get(ty as usize)?.name.clone())),
    })
    .collect()
}

fn who(graph: &TaskGraph, who: Who) -> ChargedPlace {
    let name = |row: u32| graph.names.get(row as usize).map(String::as_str);
    match who {
        Who::Task(ty) | Who::Uniform(ty) | Who::Dispatch(ty) | Who::Creator(ty) | Who::Blocked(ty) => {
            place(graph, ty, None)
        }
        Who::Lock(lock, holder) => place(graph, holder, name(lock)),
        Who::Runtime(row)
        | Who::Start(row)
        | Who::AbsorbingNoise(row)
        | Who::Call(row)
        | Who::Peer(row)
        | Who::Device(row)
        | Who::System(row) => place(graph, u32::MAX, name(row)),
        Who::Link(..) | Who::Delivery(_) | Who::Send | Who::Startup | Who::Nobody => {
            place(graph, u32::MAX, Some(&who.label(graph)))
        }
    }
}

/// Function, file, line and task type of a type's row, and an object; null if unknown.
fn place(graph: &TaskGraph, ty: u32, object: Option<&str>) -> ChargedPlace {
    let ty = graph.types.get(ty as usize);
    ChargedPlace {
        function: ty.and_then(|ty| some_text(&*ty.function)),
        file: ty.and_then(|ty| some_text(&*ty.file)),
        line: ty.map(|ty| ty.line).filter(|line| *line > 0),
        task_type: ty.filter(|ty| !ty.implicit).map(|ty| ty.name.clone()),
        object: object.map(str::to_owned),
    }
}

/// The section as text, without so many threads of the runtime.
pub(super) fn text(ledger: &LedgerTimes, runtime_threads: usize, out: &mut String) {
    let capacity = ledger.capacity_ns;
    let _ = writeln!(out, "  Where every worker-nanosecond went ({} of capacity)", format::time(capacity));
    if runtime_threads > 0 {
        let threads = format::counted(runtime_threads as u64, "thread");
        let _ = writeln!(out, "   without {threads} of the runtime, which execute no tasks");
    }
    for (cause, ns) in ledger.causes.0.iter().filter(|(_, ns)| **ns > 0) {
        let share = format::percent(*ns, capacity);
        let _ = write!(out, "   {:<18}{:>12}{share:>9}  ", cause.0.name(), format::time(*ns));
        if let Some(ReadyTimes { here, elsewhere, nowhere }) = ledger.ready_work.get(cause) {
            let words =
                ReadyWork::ALL.iter().zip([*here, *elsewhere, *nowhere]).filter(|(_, part)| *part > 0);
            let words: Vec<String> = words
                .map(|(place, part)| format!("{} {}", place.name(), format::percent(part, *ns)))
                .collect();
            let _ = write!(out, "ready work: {}", words.join(", "));
        }
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
    let slow = &ledger.slow;
    let parts = [
        ("work", slow.work_ns),
        ("starvation", slow.starvation_ns),
        ("latency", slow.latency_ns),
        ("overhead", slow.overhead_ns),
        ("contention", slow.contention_ns),
    ];
    let words = parts.map(|(name, ns)| format!("{name} {}", format::percent(ns, capacity)));
    let _ = writeln!(out, "   = {}", words.join(" + "));
    nodes_text(ledger, out);
}

/// The section `blame` as text; shares are of the capacity.
pub(super) fn blame_text(charges: &[ChargedLoss], capacity: u64, top: usize, out: &mut String) {
    let total: u64 = charges.iter().map(|charge| charge.ns).sum();
    let _ = writeln!(out, "  Who is to blame for {} of workers' time lost", format::time(total));
    for charge in charges.iter().take(top) {
        let who = Cell(format::fit(&charge.label, 38));
        let (time, share) = (format::time(charge.ns), format::percent(charge.ns, capacity));
        let _ = write!(out, "   {:<18} {who:<38}{time:>10}{share:>8}", charge.cause.0.name());
        if let Some(code) = &charge.seen_in {
            let _ = write!(out, "  seen before or in {}", format::fit(code, 60));
        }
        out.push('\n');
    }
    if charges.len() > top {
        let _ = writeln!(out, "   … and {} more (--top {})", charges.len() - top, charges.len());
    }
}
