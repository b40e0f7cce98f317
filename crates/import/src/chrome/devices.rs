//! Kineto's operations of devices, and the calls that submit them or wait for them.
//!
//! An operation has a stream, or a device. A call has a correlation; operations with the same one are its own.

use super::lanes::Lane;
use crate::spans::{ProcessRow, Run};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::device::kind;

/// Operations and calls by correlation.
#[derive(Default)]
pub(super) struct Devices {
    /// Labels of processes, which are names of devices.
    pub labels: FxHashMap<ProcessRow, String>,
    /// The call with a correlation; none if several have it.
    pub calls: FxHashMap<i64, Option<u32>>,
    /// Queue, place and correlation of each operation.
    pub submitted: Vec<(u32, u32, i64)>,
}

impl Devices {
    /// Connects operations with their calls, and queues with the processes that fill them.
    pub fn add_to(self, run: &mut Run, lanes: &[Lane]) {
        let host = run.threads.first().map(|thread| thread.process);
        let hosts: FxHashSet<ProcessRow> = run.threads.iter().map(|thread| thread.process).collect();
        for lane in lanes {
            if let Some(queue) = lane.queue {
                let labels = self.labels.get(&lane.process).filter(|labels| !labels.is_empty());
                // A process with threads is not a device.
                let name = Some(&run.processes[lane.process as usize].name);
                let name = name.filter(|_| !hosts.contains(&lane.process));
                let queue = &mut run.queues[queue as usize];
                queue.device = labels.or(name).cloned().unwrap_or_default();
                queue.process = host.unwrap_or(lane.process);
            }
        }
        for (queue, operation, correlation) in self.submitted {
            let Some(Some(row)) = self.calls.get(&correlation) else { continue };
            let call = &mut run.calls[*row as usize];
            if call.kind == kind::OTHER_CALL {
                call.kind = kind::SUBMITTING_CALL;
            }
            let queue = &mut run.queues[queue as usize];
            queue.operations[operation as usize].call = Some(*row);
            queue.process = run.threads[call.thread as usize].process;
        }
    }
}
