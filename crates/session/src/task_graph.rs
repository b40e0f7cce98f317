//! The task graph of a session's execution, with the names that its places have.

use crate::{Places, Session};
use rustc_hash::FxHashMap;
use taskscope_execution::devices::{Call, CallThread, Devices, Purpose};
use taskscope_execution::graph::{
    DeviceWait, GraphError, NamedAddress, Names, TaskGraph, TaskType, from_execution,
};
use taskscope_execution::{Execution, ObjectIndex, Place, SiteIndex, State, ThreadIndex};

impl Session {
    /// The task graph of the execution, and how many order relations contradict the clocks of threads and
    /// were dropped.
    ///
    /// # Errors
    /// As [`from_execution`].
    pub fn task_graph(&self) -> Result<(TaskGraph, u64), Vec<GraphError>> {
        let waits = device_waits(&self.execution, &self.devices);
        from_execution(&self.execution, &waits, &mut PlaceNames(&self.places))
    }
}

/// What threads waited for in calls that wait for devices: instant by instant the operation of the process's queues that
/// began first of those that ran, or that none did.
fn device_waits(execution: &Execution, devices: &Devices) -> Vec<DeviceWait> {
    let mut waits = Vec::new();
    for thread in &devices.calls {
        let Some(waiter) = thread_of(execution, thread) else { continue };
        let (ran, submitted) = (operations_of(devices, thread.pid), Submitted::of(devices, thread.pid));
        for call in &thread.calls {
            let Some((begin, finish)) = waiting_part(&submitted, call) else { continue };
            let name = thread.names.get(call.name as usize).map_or("", String::as_str);
            let mut at = begin;
            let mut add = |start: u64, end: u64, name: String| {
                waits.push(DeviceWait { thread: waiter, start, end, name });
            };
            let first = ran.partition_point(|(_, latest_end, ..)| *latest_end <= begin);
            for (start, _, end, what) in ran[first..].iter().take_while(|(start, ..)| *start < finish) {
                let (start, end) = ((*start).max(at), (*end).min(finish));
                if start >= end {
                    continue;
                }
                if start > at {
                    add(at, start, format!("nothing runs on the device ({name})"));
                }
                add(start, end, what.clone());
                at = end;
            }
            if at < finish {
                add(at, finish, format!("nothing runs on the device ({name})"));
            }
        }
    }
    waits
}

/// When operations were submitted and ended, by queue number and their numbers in it.
struct Submitted(FxHashMap<(u64, u64), (u64, u64)>);

impl Submitted {
    fn of(devices: &Devices, pid: u64) -> Submitted {
        let queues = devices.queues.iter().filter(|queue| queue.pid == Some(pid));
        let rows = queues.flat_map(|queue| {
            let operations = queue.operations.iter().filter(|operation| operation.start < operation.end);
            operations.map(|operation| ((queue.number, operation.seq), (operation.append, operation.end)))
        });
        Submitted(rows.collect())
    }
}

/// The part of a call in which it waits: all of one that is for waiting; of one that submits an operation and
/// comes back after that has ended (a blocking read), from the submission to that end.
fn waiting_part(submitted: &Submitted, call: &Call) -> Option<(u64, u64)> {
    let part = match call.purpose() {
        Purpose::Waits => (call.start, call.end),
        Purpose::Submits => {
            let (append, end) = *submitted.0.get(&call.operation?)?;
            if end > call.end {
                return None;
            }
            (append.max(call.start), end)
        }
        _ => return None,
    };
    (part.0 < part.1).then_some(part)
}

/// The thread of the execution that made these calls.
fn thread_of(execution: &Execution, calls: &CallThread) -> Option<ThreadIndex> {
    let found = execution.threads.iter().position(|thread| {
        let process = &execution.processes[thread.process.index()];
        thread.tid == calls.tid && process.pid == calls.pid && !process.has_cpus
    });
    found.map(|row| ThreadIndex(row as u32))
}

/// Operations of a process's queues by their starts: start, the latest end so far, end, name.
fn operations_of(devices: &Devices, pid: u64) -> Vec<(u64, u64, u64, String)> {
    let queues = devices.queues.iter().filter(|queue| queue.pid == Some(pid));
    let mut ran: Vec<(u64, u64, u64, String)> = queues
        .flat_map(|queue| {
            queue.operations.iter().filter(|operation| operation.start < operation.end).map(|operation| {
                let name = queue.name_of(operation.name);
                let name = if name.is_empty() { operation.kind_name() } else { name };
                (operation.start, 0, operation.end, format!("{name} on {}", queue.name))
            })
        })
        .collect();
    ran.sort_unstable();
    let mut latest = 0;
    for row in &mut ran {
        latest = latest.max(row.2);
        row.1 = latest;
    }
    ran
}

struct PlaceNames<'a>(&'a Places);

impl PlaceNames<'_> {
    fn at(&self, name: String, site: SiteIndex, implicit: bool) -> TaskType {
        let mut ty = TaskType { name, implicit, ..TaskType::default() };
        if site.is_some() {
            let code = self.0.code(site);
            ty.function = code.frame.function.clone().unwrap_or_default();
            ty.file = code.frame.file.clone().unwrap_or_default();
            ty.line = code.frame.line.unwrap_or(0);
        }
        ty
    }
}

impl Names for PlaceNames<'_> {
    fn code(&mut self, state: State, place: Place) -> TaskType {
        let name = self.0.name(state, place);
        let name = if name.is_empty() { state.label().to_owned() } else { name };
        self.at(name, self.0.site_of(place), state != State::Task)
    }

    fn site(&mut self, site: SiteIndex) -> TaskType {
        self.at(self.0.construct("lock", site), site, true)
    }

    fn object(&mut self, object: ObjectIndex) -> String {
        self.0.object_name(object)
    }

    fn data(&mut self, addresses: &[NamedAddress]) -> Vec<String> {
        self.0.data_names(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::device::kind;
    use taskscope_execution::ExecutionBuilder;
    use taskscope_execution::devices::{Operation, Queue};

    #[test]
    fn a_wait_is_split_by_what_the_device_did() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.7", 7);
        builder.add_thread(process, 70);
        let execution = builder.finish();
        let operation =
            |start, end, name| Operation { start, end, name, kind: kind::KERNEL, ..Operation::default() };
        let queue = Queue {
            name: "q".into(),
            pid: Some(7),
            operations: vec![
                operation(100, 200, 1),
                operation(150, 260, 2),
                Operation { seq: 8, append: 390, ..operation(400, 900, 1) },
            ],
            names: vec![String::new(), "a".into(), "b".into()],
            ..Queue::default()
        };
        let call = |start, end, kind| Call { start, end, name: 1, kind, operation: None };
        let calls = CallThread {
            path: String::new(),
            pid: 7,
            tid: 70,
            calls: vec![
                call(120, 300, kind::WAITING_CALL),
                Call { operation: Some((0, 8)), ..call(500, 600, kind::SUBMITTING_CALL) },
                Call { operation: Some((0, 8)), ..call(800, 950, kind::SUBMITTING_CALL) },
            ],
            names: vec![String::new(), "clFinish".into()],
        };
        let devices = Devices { queues: vec![queue], calls: vec![calls] };
        let waits = device_waits(&execution, &devices);
        let told: Vec<(u64, u64, &str)> = waits.iter().map(|w| (w.start, w.end, w.name.as_str())).collect();
        let idle = "nothing runs on the device (clFinish)";
        // The first call that submits comes back before its operation ends, the second does not.
        assert_eq!(
            told,
            [(120, 200, "a on q"), (200, 260, "b on q"), (260, 300, idle), (800, 900, "a on q")]
        );
    }
}
