//! The part of waits without a CPU about which ready tasks decide nothing: whether one was ready is not known.
//!
//! A task of which that is not known ([`super::ready`]) was not ready before its creation, nor after its start. A wait without a CPU
//! between the two may have been a wait for that CPU, and counts as a wait for others.
//!
//! | task | ready, as far as known |
//! | --- | --- |
//! | of OpenMP, in order after tasks whose ends are known | exactly; nothing is unsure |
//! | of OpenMP, with accesses that exclude others, or after a task without a known end | perhaps, from its creation to its start |
//! | of OpenMP, never started | perhaps, from its creation on |
//! | of another runtime | perhaps, from its creation to its start |
//! | any, in a process with lost events | perhaps, at any time |

use super::activity::Doing;
use super::ready::{PoolKey, TaskFacts};
use crate::intervals::{add_parts, join_intervals};
use crate::{Execution, Span, TaskIndex, TypeKind};
use rustc_hash::FxHashMap;

/// Times in which a task may have been ready.
#[derive(Clone, Default)]
struct PerhapsReady {
    /// Tasks of OpenMP, for threads that wait where they may start one.
    openmp: Vec<(u64, u64)>,
    /// Tasks of other runtimes, for any wait.
    others: Vec<(u64, u64)>,
}

impl Execution {
    /// Nanoseconds in which workers waited, could run and had no CPU, while it is not known whether a task was ready for them. They
    /// count as waits for others.
    pub fn unsure_waits_ns(&self) -> u64 {
        // The partition is that of the whole run. A part has neither the begins of tasks after it nor all losses.
        let perhaps = self.whole().perhaps_ready();
        if perhaps.iter().all(|of| of.openmp.is_empty() && of.others.is_empty()) {
            return 0;
        }
        let mut unsure = 0;
        for (thread, row) in self.workers() {
            let (runnable, perhaps) = (self.runnable_times(thread), &perhaps[row.process.index()]);
            if runnable.is_empty() {
                continue;
            }
            let is_wait = |span: &Span| Doing::of(span.section.state) == Doing::Waits;
            for span in self.spans_of_run(thread).filter(is_wait) {
                let mut off = Vec::new();
                add_parts(&runnable, (span.start, span.end), &mut off);
                let starts_tasks = PoolKey::of(thread, &span.section).is_some();
                for time in off {
                    let mut parts = Vec::new();
                    add_parts(&perhaps.others, time, &mut parts);
                    if starts_tasks {
                        add_parts(&perhaps.openmp, time, &mut parts);
                    }
                    join_intervals(&mut parts);
                    unsure += parts.iter().map(|(start, end)| end - start).sum::<u64>();
                }
            }
        }
        unsure
    }

    /// By process: when tasks may have been ready.
    fn perhaps_ready(&self) -> Vec<PerhapsReady> {
        let mut perhaps = vec![PerhapsReady::default(); self.processes.len()];
        let (tasks, facts) = (&self.tasks, TaskFacts::of(self));
        for (row, (creator, ty)) in tasks.creator.iter().zip(&tasks.ty).enumerate() {
            let Some(process) = self.threads.get(creator.index()).map(|thread| thread.process) else {
                continue;
            };
            let is_openmp = match self.catalog.types.get(ty.index()).and_then(|ty| ty.kind) {
                Some(TypeKind::Work { .. }) => continue,
                Some(TypeKind::Task { .. }) => true,
                None => false,
            };
            let time = if facts.lossy.contains(&process) {
                (0, u64::MAX)
            } else if is_openmp && !facts.is_unsure(self, TaskIndex::of(row)) {
                continue;
            } else {
                // A task that never began may have been ready to the end, or until it was cancelled.
                (tasks.created[row], tasks.began[row].min(tasks.ended[row]))
            };
            let Some(of) = perhaps.get_mut(process.index()) else { continue };
            let times = if is_openmp { &mut of.openmp } else { &mut of.others };
            if time.0 < time.1 {
                times.push(time);
            }
        }
        // The CPUs of a runtime are a process of their own, and run the tasks of all others of their loom.
        let looms = self.processes.iter().filter(|row| row.has_cpus).map(|row| row.loom.as_str());
        let mut ready_by_loom: FxHashMap<&str, PerhapsReady> =
            looms.map(|loom| (loom, PerhapsReady::default())).collect();
        for (row, of) in self.processes.iter().zip(&perhaps).filter(|(row, _)| !row.has_cpus) {
            if let Some(all) = ready_by_loom.get_mut(row.loom.as_str()) {
                all.openmp.extend(&of.openmp);
                all.others.extend(&of.others);
            }
        }
        for (row, of) in self.processes.iter().zip(&mut perhaps).filter(|(row, _)| row.has_cpus) {
            let all = ready_by_loom.get(row.loom.as_str()).cloned().unwrap_or_default();
            of.openmp.extend(all.openmp);
            of.others.extend(all.others);
        }
        for of in &mut perhaps {
            join_intervals(&mut of.openmp);
            join_intervals(&mut of.others);
        }
        perhaps
    }
}
