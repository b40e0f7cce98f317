//! Device queues, and calls that concern them, as locations of the trace.

use super::numbers::{Numbers, loom};
use super::run::{Call, Operation, Queue, Run};
use super::stream::{EventFile, text};
use crate::device_records::{ImportedQueue, clock_json};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::models::device;
use taskscope_event::{StreamFile, layout};
use taskscope_files::{create_directory_below, write_file};
use taskscope_reorder::{Account, Lanes, clock::ClockMap};

/// Writes the location of each queue, and of each thread with calls.
///
/// # Errors
/// Those of the system.
pub(super) fn write_devices(run: &Run, numbers: &Numbers, root: &Path) -> io::Result<()> {
    // Queue and place of the operation that a call submits; the first of several.
    let mut submitted: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
    for (number, queue) in run.queues.iter().enumerate() {
        write_queue(run, queue, number as u64, numbers, &mut submitted, root)?;
    }
    let mut calls_by_thread: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (row, call) in run.calls.iter().enumerate() {
        calls_by_thread.entry(call.thread).or_default().push(row as u32);
    }
    let mut threads: Vec<(u32, Vec<u32>)> = calls_by_thread.into_iter().collect();
    threads.sort_unstable();
    for (thread, mut rows) in threads {
        rows.sort_by_key(|row| run.calls[*row as usize].start);
        write_calls(run, thread, &rows, numbers, &submitted, root)?;
    }
    Ok(())
}

fn write_queue(
    run: &Run,
    queue: &Queue,
    number: u64,
    numbers: &Numbers,
    submitted: &mut FxHashMap<u32, (u64, u64)>,
    root: &Path,
) -> io::Result<()> {
    let mut order: Vec<&Operation> = queue.operations.iter().collect();
    order.sort_by_key(|operation| (operation.start, operation.end));
    let (mut file, mut names, mut lanes) = (EventFile::new(), Names::default(), Lanes::default());
    let count = order.len() as u64;
    let mut account = Account { appended: count, delivered: count, ..Account::default() };
    let mut last_end = 0;
    for (seq, operation) in order.into_iter().enumerate() {
        let seq = seq as u64;
        let name = names.number(run, operation.name, operation.start, &mut file);
        let overlap = last_end.min(operation.end).saturating_sub(operation.start);
        account.overlaps += u64::from(overlap > 0);
        account.worst_overlap = account.worst_overlap.max(overlap);
        last_end = last_end.max(operation.end);
        let call = operation.call.map(|row| &run.calls[row as usize]);
        let thread = call.map_or(0, |call| numbers.tids[call.thread as usize] as u64);
        let append = call.map_or(0, |call: &Call| call.start);
        let words =
            [seq, operation.start, operation.end, append, 0, operation.id, thread, operation.bytes, 0];
        let lane = lanes.take(operation.start, operation.end);
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let tail = [lane, operation.kind, name, 0].map(u32::to_le_bytes).concat();
        file.jumbo(operation.start, device::OPERATION, &[&words, &tail]);
        if let Some(row) = operation.call {
            submitted.entry(row).or_insert((number, seq));
        }
    }
    account.lanes = lanes.count();
    let in_order = account.overlaps == 0;
    let metadata = json!({
        "kind": "device-queue",
        "number": number,
        "name": queue.name,
        "device": queue.device,
        "order": if in_order { "in-order" } else { "out-of-order" },
        "order_from": if in_order { "assumed" } else { "overlaps" },
        "clock": clock_json(&ClockMap::with_host_offset(0)),
        "account": ImportedQueue::json(&account),
    });
    let directory = format!("queue.{number}");
    write_location(run, queue.process, numbers, &directory, metadata, &file, root)
}

fn write_calls(
    run: &Run,
    thread: u32,
    rows: &[u32],
    numbers: &Numbers,
    submitted: &FxHashMap<u32, (u64, u64)>,
    root: &Path,
) -> io::Result<()> {
    let (mut file, mut names) = (EventFile::new(), Names::default());
    for row in rows {
        let call = &run.calls[*row as usize];
        let name = names.number(run, call.name, call.start, &mut file);
        let fields = [name, call.kind].map(u32::to_le_bytes).concat();
        file.plain(call.start, device::CALL, &[&call.end.to_le_bytes(), &fields]);
        if let Some((queue, seq)) = submitted.get(row) {
            let fields = [queue.to_le_bytes(), seq.to_le_bytes()].concat();
            file.plain(call.start, device::CALL_OPERATION, &[&fields]);
        }
    }
    let tid = numbers.tids[thread as usize];
    let metadata = json!({"kind": "device-calls", "tid": tid});
    let process = run.threads[thread as usize].process;
    write_location(run, process, numbers, &format!("calls.{tid}"), metadata, &file, root)
}

fn write_location(
    run: &Run,
    process: u32,
    numbers: &Numbers,
    name: &str,
    mut metadata: Value,
    file: &EventFile,
    root: &Path,
) -> io::Result<()> {
    let pid = numbers.pids[process as usize];
    let loom = loom(&run.processes[process as usize].host, pid);
    let directory = create_directory_below(root, format!("devices.{loom}/{name}"))?;
    metadata["version"] = 1.into();
    metadata["require"] = json!({"taskscope-device": device::VERSION});
    metadata["pid"] = pid.into();
    metadata["finished"] = 1.into();
    write_file(&directory.join(layout::LOCATION_METADATA), |out| writeln!(out, "{metadata:#}"))?;
    write_file(&directory.join(StreamFile::Own.name()), |out| out.write_all(file.bytes()))
}

/// Names that a location has announced.
#[derive(Default)]
struct Names(FxHashSet<u32>);

impl Names {
    fn number(&mut self, run: &Run, row: u32, at: u64, file: &mut EventFile) -> u32 {
        let number = row + 1;
        if self.0.insert(row) {
            file.jumbo(at, device::NAME, &[&number.to_le_bytes(), &text(&run.names[row as usize])]);
        }
        number
    }
}
