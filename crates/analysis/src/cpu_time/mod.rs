//! The CPU time of processes without a runtime, and the causes of its unused part.
//!
//! ```text
//!   capacity = CPUs that the processes may use × time
//!            = used + no CPU + waits + too few threads with work + nothing to do + not known
//! ```
//!
//! At each instant, each CPU that no thread of the program uses is charged in this order:
//!
//! 1. in equal parts to the threads that would use it: to the system for those that could run and had no CPU, and to the
//!    waits of those that would run otherwise;
//! 2. to what is not known, for threads that are blocked in calls that are not recorded;
//! 3. if threads run, to their code: no other thread has work (*alone*);
//! 4. otherwise to sleep, if no thread waits for the outside; else nothing is to be done (*idle*).
//!
//! A thread that waits for requests would not run otherwise: in a wait for a peer, a timer, or the end of a thread, in one that is
//! not over at the end, and in the last one before the thread ends. While a thread waits for one that has no CPU, the system is charged,
//! or, if that thread is bound to CPUs that others of the program use, its binding.

mod activity;
mod bound;
mod charges;
mod losses;
mod pieces;
mod scheduling;
mod sweep;
#[cfg(test)]
mod tests;
mod thread_states;

use taskscope_execution::{CpuFacts, CpuSet, Execution, OsSource, ThreadIndex};

use activity::Doing;
use bound::BoundThreads;
use charges::Charges;
pub use losses::{CpuLoss, CpuTime, LostTo};
use pieces::Pieces;
use scheduling::ends_of_scheduling;
pub use scheduling::lives_of_threads;
pub use thread_states::{ThreadActivities, ThreadActivity, ThreadStates, thread_states};

/// Accounts the CPU time of a run; `None` if the CPUs of a process are not known, if nothing is known of the
/// threads' scheduling, or if threads are not selected.
pub fn cpu_time(execution: &Execution) -> Option<CpuTime> {
    let threads = || (0..).map(ThreadIndex).zip(&execution.threads);
    let has_time = |row: &taskscope_execution::Thread| row.track.end() > row.track.start();
    if threads().any(|(_, row)| !row.selected)
        || threads().all(|(_, row)| !has_time(row) || row.os_source == OsSource::Unknown)
    {
        return None;
    }
    let hosts = hosts(execution)?;
    let ends = ends_of_scheduling(execution);
    let mut charges = Charges::default();
    let mut time = CpuTime {
        millicpus: 0,
        capacity_ns: 0,
        used_ns: 0,
        threads_ns: 0,
        losses: Vec::new(),
        alone: Vec::new(),
        is_estimated: threads().any(|(_, row)| row.os_source == OsSource::Estimated),
    };
    for host in &hosts {
        let bound = BoundThreads::of(execution, (&host.processes, &host.cpus), &ends);
        let mut pieces = Vec::new();
        for (thread, row) in threads().filter(|(_, row)| host.processes.contains(&row.process.index())) {
            time.threads_ns = time.threads_ns.saturating_add(row.track.end() - row.track.start());
            let (charges, to) = (&mut charges, &mut pieces);
            Pieces { execution, ends: &ends, bound: &bound, charges, to }.add(thread);
        }
        time.millicpus += host.millicpus;
        let wall = u128::from(host.last - host.first);
        let capacity = u64::try_from(wall * u128::from(host.millicpus) / 1000).unwrap_or(u64::MAX);
        time.capacity_ns = time.capacity_ns.saturating_add(capacity);
        charges.charge(host.millicpus, (host.first, host.last), &pieces, &mut time.alone);
        let ran = pieces.iter().filter(|piece| piece.doing == Doing::Runs);
        let ran = ran.map(|piece| piece.until - piece.from).fold(0, u64::saturating_add);
        time.used_ns = time.used_ns.saturating_add(ran);
    }
    charges.settle(&mut time);
    time.alone.sort_unstable();
    (time.capacity_ns > 0).then_some(time)
}

/// A host with processes that share its CPUs.
struct Host {
    processes: Vec<usize>,
    millicpus: u64,
    first: u64,
    last: u64,
    cpus: CpuSet,
}

/// The hosts; `None` if the CPUs of a process are not known.
fn hosts(execution: &Execution) -> Option<Vec<Host>> {
    let mut hosts: Vec<(&str, Host)> = Vec::new();
    for (number, process) in execution.processes.iter().enumerate() {
        if process.has_cpus || process.last <= process.first {
            continue;
        }
        let facts: &CpuFacts = process.cpus.as_ref().filter(|facts| !facts.allowed.is_empty())?;
        let name = taskscope_execution::host(&process.loom);
        let quota = facts.quota.as_ref().map_or(u64::MAX, |quota| quota.millicpus);
        let found = hosts.iter_mut().find(|(known, _)| *known == name);
        if let Some((_, host)) = found {
            host.processes.push(number);
            host.millicpus = host.millicpus.min(quota);
            (host.first, host.last) = (host.first.min(process.first), host.last.max(process.last));
            host.cpus.add(&facts.allowed);
        } else {
            let (first, last) = (process.first, process.last);
            let (processes, cpus) = (vec![number], facts.allowed.clone());
            hosts.push((name, Host { processes, millicpus: quota, first, last, cpus }));
        }
    }
    for (_, host) in &mut hosts {
        host.millicpus = host.millicpus.min(1000 * host.cpus.len() as u64);
    }
    Some(hosts.into_iter().map(|(_, host)| host).collect())
}
