//! The CPUs that processes and threads have, from the side streams of processes and from the metadata of streams.

use super::thread_ids::threads_by_id;
use crate::recorders::RecorderName;
use rustc_hash::FxHashMap;
use taskscope_event::models::system;
use taskscope_execution::{
    CpuFacts, CpuLoad, CpuSet, Execution, ProcessIndex, Quota, ThreadIndex, Throttled,
};
use taskscope_trace::{Event, Location, Stream, Trace};

/// Adds the known facts of the CPUs.
pub(crate) fn add_cpus(
    trace: &Trace,
    threads: &[ThreadIndex],
    processes: &FxHashMap<RecorderName, ProcessIndex>,
    execution: &mut Execution,
) {
    let by_id = threads_by_id(execution);
    for location in trace.locations().iter().filter(|location| location.metadata["kind"] == "os-time") {
        let metadata = &location.metadata;
        let name = metadata["loom"].as_str().map(str::to_owned).zip(metadata["pid"].as_i64());
        let Some(process) = name.and_then(|name| processes.get(&name)) else { continue };
        let read = Read::of(location);
        for (tid, masks) in read.threads {
            // Two recorders of a process found the same.
            if let Some(thread) = by_id.get(&(*process, tid)).and_then(|threads| threads.first()) {
                let thread = &mut execution.threads[thread.index()];
                thread.cpus = longest(masks, thread.last);
            }
        }
        if let Some(facts) = read.facts {
            execution.processes[process.index()].cpus.get_or_insert(facts);
        }
    }
    // Recorders of taskscope name the mask of their process's first thread as the CPUs of a loom of their own.
    for (stream, thread) in trace.streams().iter().zip(threads).filter(|(stream, _)| names_mask(stream)) {
        let process = execution.threads[thread.index()].process;
        let named = stream.metadata.loom_cpus.iter().flatten();
        let allowed = CpuSet::of(named.filter_map(|cpu| usize::try_from(cpu.phyid).ok()));
        let row = &mut execution.processes[process.index()].cpus;
        if row.is_none() && !allowed.is_empty() {
            *row = Some(CpuFacts { allowed, ..CpuFacts::default() });
        }
    }
    for index in 0..execution.threads.len() {
        let thread = &execution.threads[index];
        let process = &mut execution.processes[thread.process.index()];
        if process.has_cpus {
            // It is a CPU itself.
            execution.threads[index].cpus = usize::try_from(thread.tid).ok().map(|cpu| CpuSet::of([cpu]));
        } else if let (Some(facts), Some(own)) = (&mut process.cpus, &thread.cpus) {
            facts.allowed.add(own);
        }
    }
    add_cpus_of_looms(execution);
}

/// The mask that held longest: runtimes bind threads some time after their start, and free the initial one at the end.
fn longest(masks: Vec<(u64, CpuSet)>, end: u64) -> Option<CpuSet> {
    let mut times: Vec<(u64, CpuSet)> = Vec::new();
    let ends: Vec<u64> = masks.iter().skip(1).map(|(at, _)| *at).chain([end]).collect();
    for ((at, mask), end) in masks.into_iter().zip(ends) {
        let ns = end.saturating_sub(at);
        match times.iter_mut().find(|(_, known)| *known == mask) {
            Some((sum, _)) => *sum = sum.saturating_add(ns),
            None => times.push((ns, mask)),
        }
    }
    // Ties go to the one found later.
    times.into_iter().max_by_key(|(ns, _)| *ns).map(|(_, mask)| mask)
}

/// Holders of CPUs have the facts of the first process there of which they are known.
fn add_cpus_of_looms(execution: &mut Execution) {
    let mut looms: FxHashMap<&str, &CpuFacts> = FxHashMap::default();
    for process in &execution.processes {
        if let Some(facts) = &process.cpus {
            looms.entry(&process.loom).or_insert(facts);
        }
    }
    let holders = execution.processes.iter().enumerate().filter(|(_, process)| process.has_cpus);
    let found: Vec<(usize, CpuFacts)> = holders
        .filter_map(|(index, holder)| Some((index, (*looms.get(holder.loom.as_str())?).clone())))
        .collect();
    for (index, facts) in found {
        execution.processes[index].cpus = Some(facts);
    }
}

/// Whether the CPUs of the stream's loom are the mask of its process.
fn names_mask(stream: &Stream) -> bool {
    let recorder = &stream.metadata.recorder;
    recorder.process_image.is_some() && !recorder.threads_are_workers && recorder.has_openmp_tool
}

#[derive(Default)]
struct Read {
    facts: Option<CpuFacts>,
    /// Masks of each thread, by its id in the trace, and when they were found first.
    threads: FxHashMap<i64, Vec<(u64, CpuSet)>>,
}

impl Read {
    fn of(location: &Location) -> Read {
        let mut read = Read::default();
        let mut time = None;
        for event in location.events() {
            match event.code {
                system::CPUS => {
                    let online = event.payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
                    let facts = read.facts.get_or_insert_default();
                    facts.online = online.filter(|count| *count > 0);
                    facts.allowed.add(&CpuSet::from_mask(event.payload.get(4..).unwrap_or_default()));
                }
                system::BOUND => {
                    let mask = CpuSet::from_mask(event.payload.get(16..).unwrap_or_default());
                    let Some([at, tid]) = words(&event).filter(|_| !mask.is_empty()) else { continue };
                    read.threads.entry(tid.cast_signed()).or_default().push((at, mask));
                }
                system::QUOTA => {
                    let cgroup = event.payload.get(16..).unwrap_or_default();
                    let cgroup = cgroup.split(|byte| *byte == 0).next().unwrap_or_default();
                    let cgroup = String::from_utf8_lossy(cgroup).into_owned();
                    let quota = word(&event, 1).map(|millicpus| Quota { millicpus, cgroup });
                    let quota = quota.filter(|quota| quota.millicpus > 0);
                    let known = &mut read.facts.get_or_insert_default().quota;
                    let lower = |quota: &Quota| quota.millicpus;
                    *known = known.take().into_iter().chain(quota).min_by_key(lower);
                }
                system::THROTTLED => {
                    let Some([start, end, periods, ns]) = words(&event) else { continue };
                    let throttled = Throttled { start, end: end.max(start), periods, ns };
                    read.facts.get_or_insert_default().throttled.push(throttled);
                }
                system::CPU_TIME => {
                    let Some([at, busy, stolen, own]) = words(&event) else { continue };
                    if let Some([start, busy_before, stolen_before, own_before]) =
                        time.replace([at, busy, stolen, own])
                    {
                        read.facts.get_or_insert_default().loads.push(CpuLoad {
                            start,
                            end: at.max(start),
                            busy_ns: busy.saturating_sub(busy_before),
                            stolen_ns: stolen.saturating_sub(stolen_before),
                            own_ns: own.saturating_sub(own_before),
                        });
                    }
                }
                _ => {}
            }
        }
        read
    }
}

fn word(event: &Event<'_>, at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*event.payload.get(8 * at..)?.first_chunk()?))
}

fn words<const N: usize>(event: &Event<'_>) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (at, to) in words.iter_mut().enumerate() {
        *to = word(event, at)?;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_most_of_the_time_is_the_threads() {
        let [all, one] = [CpuSet::of(0..2), CpuSet::of([1])];
        let masks = |at: [u64; 3]| vec![(at[0], all.clone()), (at[1], one.clone()), (at[2], all.clone())];
        assert_eq!(longest(masks([0, 10, 90]), 100), Some(one.clone()));
        assert_eq!(longest(masks([0, 50, 90]), 100), Some(all.clone()));
        assert_eq!(longest(masks([100, 100, 100]), 0), Some(one));
        assert_eq!(longest(Vec::new(), 5), None);
    }
}
