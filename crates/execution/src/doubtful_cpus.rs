//! Uncertain intervals of CPUs: those of the shown threads, and those in which several threads run at once until the
//! end.

use crate::open_thread::OpenThread;
use crate::{Doubt, Execution, ThreadIndex, Uncertain};
use rustc_hash::FxHashMap;

/// Adds the uncertain intervals of CPUs, after their tracks are built.
pub(crate) fn doubt_cpus(execution: &mut Execution, open: &[OpenThread]) {
    // Stretches of one thread and kind follow each other.
    let mut of_threads: FxHashMap<(ThreadIndex, u8), Vec<Uncertain>> = FxHashMap::default();
    for part in &execution.uncertain {
        of_threads.entry((part.thread, part.doubt as u8)).or_default().push(*part);
    }
    of_threads.values_mut().for_each(|parts| parts.sort_by_key(|part| part.end));
    let mut of_cpus = Vec::new();
    for (number, cpu) in open.iter().enumerate().filter(|(_, open)| !open.shows.is_empty()) {
        let (thread, end) = (ThreadIndex::of(number), execution.threads[number].track.end());
        if let Some(start) = cpu.shared_since.filter(|since| *since < end) {
            of_cpus.push(Uncertain { thread, start, end, doubt: Doubt::CpuShared });
        }
        if of_threads.is_empty() {
            continue;
        }
        let ends = cpu.shows.iter().skip(1).map(|next| next.0).chain([end]);
        for ((from, shown), to) in cpu.shows.iter().zip(ends) {
            for doubt in Doubt::ALL {
                let Some(parts) = of_threads.get(&(*shown, doubt as u8)) else { continue };
                let first = parts.partition_point(|part| part.end <= *from);
                for part in parts[first..].iter().take_while(|part| part.start < to) {
                    let (start, end) = (part.start.max(*from), part.end.min(to));
                    if start < end {
                        of_cpus.push(Uncertain { thread, start, end, doubt });
                    }
                }
            }
        }
    }
    execution.uncertain.extend(of_cpus);
}
