//! Uncertain intervals of CPUs: those of the shown threads, and those in which several threads run at once until the
//! end.

use crate::open_thread::OpenThread;
use crate::{Doubt, Execution, ThreadIndex, Uncertain};
use rustc_hash::FxHashMap;

/// Adds the uncertain intervals of CPUs, after their tracks are built.
pub(crate) fn doubt_cpus(execution: &mut Execution, open: &[OpenThread]) {
    // Stretches of one thread and kind follow each other.
    let mut doubts_by_thread: FxHashMap<(ThreadIndex, u8), Vec<Uncertain>> = FxHashMap::default();
    for part in &execution.uncertain {
        doubts_by_thread.entry((part.thread, part.doubt as u8)).or_default().push(*part);
    }
    doubts_by_thread.values_mut().for_each(|parts| parts.sort_by_key(|part| part.end));
    let mut cpu_doubts = Vec::new();
    for (number, cpu) in open.iter().enumerate().filter(|(_, open)| !open.shows.is_empty()) {
        let (thread, end) = (ThreadIndex::of(number), execution.threads[number].track.end());
        if let Some(start) = cpu.shared_since.filter(|since| *since < end) {
            cpu_doubts.push(Uncertain { thread, start, end, doubt: Doubt::CpuShared });
        }
        if doubts_by_thread.is_empty() {
            continue;
        }
        let ends = cpu.shows.iter().skip(1).map(|next| next.0).chain([end]);
        for ((from, shown), to) in cpu.shows.iter().zip(ends) {
            for doubt in Doubt::ALL {
                let Some(parts) = doubts_by_thread.get(&(*shown, doubt as u8)) else { continue };
                let first = parts.partition_point(|part| part.end <= *from);
                for part in parts[first..].iter().take_while(|part| part.start < to) {
                    let (start, end) = (part.start.max(*from), part.end.min(to));
                    if start < end {
                        cpu_doubts.push(Uncertain { thread, start, end, doubt });
                    }
                }
            }
        }
    }
    execution.uncertain.extend(cpu_doubts);
}
