//! Events that concern devices: operations of streams, and calls of threads.

use super::events::Reader;
use super::number::integer;
use super::rows::{Args, Row};
use crate::device_records::kind_of;
use crate::spans::{Call, Operation, Queue};
use taskscope_event::models::device::kind;

/// Categories of operations.
const OPERATIONS: [&str; 6] = ["kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"];
/// Categories of operations in own exports, which have a stream, too.
const OWN_OPERATIONS: [(&str, u32); 10] = [
    ("copy-in", kind::COPY_IN),
    ("copy-out", kind::COPY_OUT),
    ("copy", kind::COPY),
    ("fill", kind::FILL),
    ("synchronisation", kind::SYNCHRONISATION),
    ("map", kind::MAP),
    ("host-code", kind::HOST_CODE),
    ("graph", kind::GRAPH),
    ("overhead", kind::OVERHEAD),
    ("other", kind::OTHER),
];
/// Rows of devices that are not operations.
const NOT_OPERATIONS: [&str; 2] = ["gpu_user_annotation", "cuda_sync"];

impl<'a> Reader<'_, 'a> {
    /// Takes a complete event that concerns a device. Returns whether it does.
    pub fn take_device_event(
        &mut self,
        number: usize,
        lane: u32,
        row: &Row<'a>,
        args: &Args<'a>,
        (start, end): (u64, u64),
    ) -> bool {
        let category = row.cat.as_deref().unwrap_or_default().to_ascii_lowercase();
        let name = row.name.as_deref().unwrap_or_default();
        let correlation = args.correlation.and_then(integer).filter(|correlation| *correlation != 0);
        let is_on_device = args.stream.is_some() || args.device.is_some();
        if NOT_OPERATIONS.contains(&category.as_str()) {
            self.lose(
                number,
                "annotations of devices and records of waits",
                "they are not operations of a queue",
            );
            return true;
        }
        let own = OWN_OPERATIONS.iter().find(|(own, _)| *own == category).filter(|_| args.stream.is_some());
        if (OPERATIONS.contains(&category.as_str()) && is_on_device) || own.is_some() {
            if start == 0 {
                self.lose(number, "operations at time 0", "this is the time of operations without times");
                return true;
            }
            let queue = self.queue(lane);
            let operation = Operation {
                start,
                end,
                name: self.run.name(name),
                kind: own.map_or_else(|| kind_of(&category, name), |(_, kind)| *kind),
                id: correlation.unwrap_or(0) as u64,
                bytes: args.bytes.and_then(integer).and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
                call: None,
            };
            let operations = &mut self.run.queues[queue as usize].operations;
            if let Some(correlation) = correlation {
                self.devices.submitted.push((queue, operations.len() as u32, correlation));
            }
            operations.push(operation);
            return true;
        }
        let is_interface = ["runtime", "driver"].iter().any(|end| category.ends_with(end));
        if is_interface && let Some(correlation) = correlation {
            let thread = self.thread(lane);
            let waits = name.contains("Synchronize");
            let kind = if waits { kind::WAITING_CALL } else { kind::OTHER_CALL };
            let row = self.run.calls.len() as u32;
            let name = self.run.name(name);
            self.run.calls.push(Call { thread, start, end, name, kind });
            self.devices.calls.entry(correlation).and_modify(|call| *call = None).or_insert(Some(row));
            return true;
        }
        false
    }

    fn queue(&mut self, lane: u32) -> u32 {
        let lane = &mut self.lanes[lane as usize];
        *lane.queue.get_or_insert_with(|| {
            self.run.queues.push(Queue { process: lane.process, ..Queue::default() });
            self.run.queues.len() as u32 - 1
        })
    }
}
