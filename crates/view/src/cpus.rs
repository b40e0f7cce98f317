//! The CPUs of a run: header text, JSON, and the shortage if there are more workers than CPUs.

use crate::documents::Notice;
use crate::format::{counted, cpu_count, cpu_limit, fit, percent};
use crate::runtime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskscope_analysis::Analysis;
use taskscope_cause::Runtime;
use taskscope_execution::{CpuFacts, CpuGroup, CpuSet, Execution, Process, Quota, ThreadIndex};
use taskscope_profile::{Profile, key};
use taskscope_session::Session;

/// Name of the notice about workers that share CPUs.
pub(crate) const MORE_WORKERS: &str = "more-workers-than-cpus";

/// Characters of a list of CPUs at most.
const LIST_WIDTH: usize = 32;

/// A node's CPUs, of all its processes that are known.
#[derive(Default)]
struct Node {
    allowed: CpuSet,
    online: Option<u32>,
    /// Lowest CPU quota of a process on the node, thousandths of a CPU, if below its CPU count.
    quota: Option<u64>,
}

fn nodes(execution: &Execution) -> BTreeMap<&str, Node> {
    let known =
        execution.processes.iter().filter_map(|process| Some((host(process), process.cpus.as_ref()?)));
    nodes_of(known)
}

fn nodes_of<'a>(processes: impl Iterator<Item = (&'a str, &'a CpuFacts)>) -> BTreeMap<&'a str, Node> {
    let mut nodes: BTreeMap<&str, Node> = BTreeMap::new();
    for (host, facts) in processes {
        let node = nodes.entry(host).or_default();
        node.allowed.add(&facts.allowed);
        node.online = node.online.max(facts.online);
        let quota = facts.quota.as_ref().map(|quota| quota.millicpus);
        node.quota = node.quota.into_iter().chain(quota).min();
    }
    for node in nodes.values_mut() {
        node.quota = node.quota.filter(|quota| *quota < 1000 * node.allowed.len() as u64);
    }
    nodes
}

fn host(process: &Process) -> &str {
    process.loom.split('.').next().unwrap_or_default()
}

/// CPUs that the processes may use, over all nodes; 0 if unknown.
pub(crate) fn allowed(execution: &Execution) -> usize {
    nodes(execution).values().map(|node| node.allowed.len()).sum()
}

/// CPUs that the processes may use, such as `1 of 2 CPUs (0)` or `2 CPUs (quota 1.5)`. `None` if unknown.
pub(crate) fn header(execution: &Execution) -> Option<String> {
    header_of(&nodes(execution))
}

/// The CPUs of profiles, in the same form.
pub(crate) fn header_of_profiles(processes: &[taskscope_profile::Process]) -> Option<String> {
    let rows: Vec<(&str, CpuFacts)> = processes.iter().filter_map(facts_of_profile).collect();
    header_of(&nodes_of(rows.iter().map(|(host, facts)| (*host, facts))))
}

/// Host and CPUs of a process, as its profile has them; `None` without a mask.
fn facts_of_profile(process: &taskscope_profile::Process) -> Option<(&str, CpuFacts)> {
    let mask = process.get(key::CPU_MASK)?.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        mask.map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect();
    let number = |key: &str| Profile::number(process, key).filter(|number| *number > 0);
    let facts = CpuFacts {
        allowed: CpuSet::from_mask(&bytes?),
        online: number(key::CPUS_ONLINE).and_then(|count| u32::try_from(count).ok()),
        quota: number(key::CPU_QUOTA).map(|millicpus| Quota { millicpus, cgroup: String::new() }),
        ..CpuFacts::default()
    };
    Some((process.get(key::HOST).map_or("", String::as_str), facts))
}

fn header_of(nodes: &BTreeMap<&str, Node>) -> Option<String> {
    let allowed: usize = nodes.values().map(|node| node.allowed.len()).sum();
    if allowed == 0 {
        return None;
    }
    let online = nodes.values().map(|node| node.online).sum::<Option<u32>>();
    let more = online.filter(|online| *online as usize > allowed);
    let mut text = match more {
        Some(online) => format!("{allowed} of {}", counted(online.into(), "CPU")),
        None => counted(allowed as u64, "CPU"),
    };
    match nodes.values().next() {
        Some(node) if nodes.len() == 1 => {
            let mask = more.map(|_| fit(&node.allowed.to_string(), LIST_WIDTH));
            let quota = node.quota.map(|quota| format!("quota {}", cpu_count(quota)));
            let details: Vec<String> = mask.into_iter().chain(quota).collect();
            if !details.is_empty() {
                text.push_str(&format!(" ({})", details.join(", ")));
            }
        }
        _ => text.push_str(&format!(" of {}", counted(nodes.len() as u64, "node"))),
    }
    Some(text)
}

/// The CPUs of a process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpus {
    /// Its node.
    pub host: String,
    /// Process id.
    pub pid: i64,
    /// CPUs that the process or one of its threads may use, such as `0-3,8`.
    pub allowed: String,
    /// Number of these.
    pub allowed_count: usize,
    /// CPUs online on the node; null if unknown.
    pub online: Option<u32>,
    /// Lowest limit of its control groups in thousandths of a CPU; null without one, or if unknown.
    pub quota_millicpus: Option<u64>,
    /// The control group that has the limit.
    pub quota_cgroup: Option<String>,
    /// Periods in which a limit was reached.
    pub throttled_periods: u64,
    /// Nanoseconds lost to limits, summed over CPUs.
    pub throttled_ns: u64,
    /// Times that signals (SIGSTOP, SIGTSTP) stopped the process.
    pub stops: usize,
    /// Nanoseconds in which it was stopped.
    pub stopped_ns: u64,
    /// Use of the allowed CPUs during the recording; null if unknown.
    pub load: Option<CpuUse>,
}

/// Use of a process's allowed CPUs. The kernel counts all but `own_ns` in ticks, mostly of 10 ms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// Nanoseconds between the first and the last reading.
    pub ns: u64,
    /// Nanoseconds in which the CPUs ran something, summed over them.
    pub busy_ns: u64,
    /// Nanoseconds in which the hypervisor kept them.
    pub stolen_ns: u64,
    /// CPU nanoseconds of the process.
    pub own_ns: u64,
    /// Busy nanoseconds of other processes, children included, and of the kernel.
    pub others_ns: u64,
}

/// The CPUs of each process of which they are known.
pub(crate) fn process_cpus(execution: &Execution) -> Vec<ProcessCpus> {
    let known = execution.processes.iter().filter_map(|process| Some((process, process.cpus.as_ref()?)));
    let row = |(process, facts): (&Process, &CpuFacts)| ProcessCpus {
        host: host(process).to_owned(),
        pid: process.pid,
        allowed: facts.allowed.to_string(),
        allowed_count: facts.allowed.len(),
        online: facts.online,
        quota_millicpus: facts.quota.as_ref().map(|quota| quota.millicpus),
        quota_cgroup: facts.quota.as_ref().map(|quota| quota.cgroup.clone()),
        throttled_periods: facts.throttled.iter().map(|part| part.periods).sum(),
        throttled_ns: facts.throttled_ns(),
        stops: facts.stopped.len(),
        stopped_ns: facts.stopped_ns(),
        load: facts.load().map(|load| CpuUse {
            ns: load.end.saturating_sub(load.start),
            busy_ns: load.busy_ns,
            stolen_ns: load.stolen_ns,
            own_ns: load.own_ns,
            others_ns: load.others_ns(),
        }),
    };
    known.filter(|(process, _)| !process.has_cpus).map(row).collect()
}

/// Worker-time in which threads could run and had no CPU, as the kernel counts it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuShortage {
    /// Nanoseconds lost by the workers themselves.
    pub own_ns: u64,
    /// Nanoseconds that workers waited for others that had no CPU.
    pub others_ns: u64,
    /// Nanoseconds without a CPU while the worker waited for others anyway.
    pub waiting_ns: u64,
    /// Nanoseconds without a CPU while signals had stopped the process.
    pub stopped_ns: u64,
    /// Nanoseconds runnable without a CPU: `own_ns` + `waiting_ns` − `stopped_ns`.
    pub runnable_ns: u64,
}

/// The workers' time without a CPU, split by its use; `None` unless it is known of all workers.
pub(crate) fn shortage(execution: &Execution, analysis: &Analysis) -> Option<CpuShortage> {
    let shortage = &analysis.shortage;
    execution.knows_off_cpu().then(|| CpuShortage {
        own_ns: shortage.own_ns,
        others_ns: shortage.others_ns,
        waiting_ns: shortage.waiting_ns,
        stopped_ns: shortage.stopped_ns,
        runnable_ns: shortage.runnable_ns(),
    })
}

/// The shortage in words; `None` if both the others' share and the waiting share are below 1 % of the
/// capacity.
pub(crate) fn shortage_text(
    shortage: &CpuShortage,
    processes: &[ProcessCpus],
    capacity_ns: u64,
) -> Option<String> {
    let is_large = |ns: u64| ns.saturating_mul(100) >= capacity_ns.max(1);
    if !(is_large(shortage.others_ns) || is_large(shortage.waiting_ns)) {
        return None;
    }
    let share = |ns: u64| percent(ns, capacity_ns);
    let stopped = match stopped_text(processes) {
        Some(text) => format!(" ({} {text})", share(shortage.stopped_ns)),
        None => String::new(),
    };
    Some(format!(
        "Workers could run and had no CPU for {} of the time{stopped}: {} lost, {} while they waited for others. {} more were \
         lost by workers that waited until others got a CPU.",
        share(shortage.own_ns + shortage.waiting_ns),
        share(shortage.own_ns),
        share(shortage.waiting_ns),
        share(shortage.others_ns)
    ))
}

/// Number and time of the stops by signals of the longest stopped process; `None` without any.
pub(crate) fn stopped_text(processes: &[ProcessCpus]) -> Option<String> {
    let longest =
        processes.iter().filter(|process| process.stops > 0).max_by_key(|process| process.stopped_ns)?;
    Some(crate::format::stops(longest.stops as u64, longest.stopped_ns))
}

/// The affinity mask of a thread, if recorded per thread.
pub(crate) fn mask_of(execution: &Execution, thread: ThreadIndex) -> Option<String> {
    execution.threads[thread.index()].cpus.as_ref().map(CpuSet::to_string)
}

/// The warning that more workers share CPUs than there are.
pub(crate) fn more_workers(session: &Session) -> Option<Notice> {
    let execution = &session.execution;
    // Threads known only from samples may not have worked at the same time.
    let is_known = !execution.regions.is_empty()
        || !execution.tasks.is_empty()
        || execution.processes.iter().any(|process| process.has_cpus);
    let groups = execution.cpu_groups();
    let mut short: Vec<&CpuGroup> = groups.iter().filter(|group| group.is_oversubscribed()).collect();
    short.sort_by_key(|group| std::cmp::Reverse(group.workers_at_once));
    let group = short.first().filter(|_| is_known)?;
    let mut text = sentence(execution, group, runtime::of(session));
    let others = short.len() - 1;
    if others > 0 {
        let workers: usize = short[1..].iter().map(|group| group.workers_at_once).sum();
        let groups = counted(others as u64, "other group");
        text.push_str(&format!(
            "; the same holds for {} in {groups} of CPUs",
            counted(workers as u64, "worker")
        ));
    }
    Some(Notice::new(MORE_WORKERS, text))
}

fn sentence(execution: &Execution, group: &CpuGroup, runtime: Option<Runtime>) -> String {
    // Settings are those of the runtime that was recorded.
    let (number, binding) = match runtime {
        Some(Runtime::OpenMp) => (" (OMP_NUM_THREADS)", "OMP_PLACES, OMP_PROC_BIND, affinity calls"),
        _ => ("", "affinity calls, the launcher"),
    };
    let mut processes: Vec<_> =
        group.workers.iter().map(|thread| execution.threads[thread.index()].process).collect();
    processes.sort_unstable();
    processes.dedup();
    let workers = counted(group.workers_at_once as u64, "worker");
    let processes_text = match processes.len() {
        1 => String::new(),
        count => format!(" of {}", counted(count as u64, "process")),
    };
    let node = if nodes(execution).len() > 1 { format!(" of node {}", group.host) } else { String::new() };
    let at_once = (group.millicpus / 1000).max(1);
    let each = counted((at_once / processes.len() as u64).max(1), "worker");
    let each = match processes.len() {
        1 => format!("use {each}{number}"),
        _ => format!("use {each} a process{number}"),
    };
    if let Some(quota) = &group.quota {
        let limit = cpu_limit(quota.millicpus);
        let cgroup = fit(&quota.cgroup, LIST_WIDTH);
        return format!(
            "{workers}{processes_text} share a limit of {limit}{node} (control group {cgroup}); {each}, or raise the \
             limit (cpu.max, --cpus)"
        );
    }
    let cpus = counted(group.cpus.len() as u64, "CPU");
    let list = fit(&group.cpus.to_string(), LIST_WIDTH);
    let share = format!("{workers}{processes_text} share {cpus}{node} ({list})");
    let allowed = execution.processes[processes[0].index()].cpus.as_ref().map(|facts| &facts.allowed);
    let has_own_mask = |thread: &ThreadIndex| execution.threads[thread.index()].cpus.is_some();
    match allowed.filter(|allowed| allowed.len() > group.cpus.len()) {
        Some(allowed) if group.workers.iter().all(has_own_mask) => format!(
            "{share}, to which they are bound ({binding}), while the process may use {} \
             ({})",
            counted(allowed.len() as u64, "CPU"),
            fit(&allowed.to_string(), LIST_WIDTH)
        ),
        _ if processes.len() as u64 > at_once => {
            format!(
                "{share}; run fewer processes on the node, or bind each to CPUs of its own (mpirun --map-by, srun -c)"
            )
        }
        _ if processes.len() > 1 => {
            format!("{share}; {each}, or bind each process to CPUs of its own (mpirun --map-by, srun -c)")
        }
        _ => format!("{share}; {each}, or allow more CPUs (taskset, srun --cpus-per-task)"),
    }
}
