//! The first pass: which operations there are, in which order their queues run them, and which row is
//! about which operation.

use super::Options;
use super::table::{Row, Table};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_reorder::QueueOrder;

/// Number of simultaneous operations from which a queue is taken as out-of-order: clock errors make
/// neighbours overlap, so that two at once prove nothing.
const AT_ONCE: usize = 3;

/// Ids that leave a gap as large as this among them have wrapped at 2³².
const WRAP_GAP: u64 = 1 << 31;

/// Source of the order of a queue's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceFrom {
    Append,
    Submit,
    Id,
    Start,
}

impl SequenceFrom {
    pub fn name(self) -> &'static str {
        match self {
            SequenceFrom::Append => "append",
            SequenceFrom::Submit => "submit",
            SequenceFrom::Id => "id",
            SequenceFrom::Start => "start",
        }
    }
}

/// A queue and its operations.
pub struct PlannedQueue {
    /// The name for output and for selection.
    pub name: String,
    /// Index into [`Table::texts`].
    pub device: Option<u32>,
    /// Whether it is a thread's place for records without a queue.
    pub is_thread: bool,
    pub order: QueueOrder,
    /// Source of the queue's kind: `told`, `overlaps` or `assumed`.
    pub order_from: &'static str,
    pub sequence_from: SequenceFrom,
    /// The first row of each operation, by sequence.
    pub operations: Vec<u32>,
}

/// The operation of a row.
#[derive(Clone, Copy)]
pub struct At {
    pub queue: u32,
    pub seq: u64,
}

/// Result of the first pass.
pub struct Plan {
    pub queues: Vec<PlannedQueue>,
    /// Times by row.
    pub row_places: Vec<At>,
}

/// A row's place of origin: a queue of a device, or a thread if it names no queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Queue(Option<u32>, u32),
    Thread(u32),
}

impl Plan {
    pub fn of(table: &Table, options: &Options) -> Plan {
        let origins = origins(table);
        let mut numbers: FxHashMap<Origin, u32> = FxHashMap::default();
        let mut rows_of_queue: Vec<(Origin, Vec<u32>)> = Vec::new();
        for (row, origin) in origins.iter().enumerate() {
            let queue = *numbers.entry(*origin).or_insert_with(|| {
                rows_of_queue.push((*origin, Vec::new()));
                rows_of_queue.len() as u32 - 1
            });
            rows_of_queue[queue as usize].1.push(row as u32);
        }
        let wrapped = ids_wrapped(&table.rows);
        let mut row_places = vec![At { queue: 0, seq: 0 }; table.rows.len()];
        let mut queues: Vec<PlannedQueue> = Vec::with_capacity(rows_of_queue.len());
        let names = names(table, rows_of_queue.iter().map(|(origin, _)| *origin));
        for ((q, (origin, rows)), name) in rows_of_queue.into_iter().enumerate().zip(names) {
            let (firsts, about) = operations(&table.rows, &rows);
            let (sequence_from, sorted) = sequence(&table.rows, &firsts, wrapped);
            let mut seq_of = vec![0u64; firsts.len()];
            for (seq, operation) in sorted.iter().enumerate() {
                seq_of[*operation as usize] = seq as u64;
            }
            for (row, operation) in rows.iter().zip(&about) {
                row_places[*row as usize] = At { queue: q as u32, seq: seq_of[*operation as usize] };
            }
            let operations: Vec<u32> = sorted.iter().map(|operation| firsts[*operation as usize]).collect();
            let (order, order_from) = order(table, &name, origin, &operations, options);
            let device = match origin {
                Origin::Queue(device, _) => device,
                Origin::Thread(_) => None,
            };
            let is_thread = matches!(origin, Origin::Thread(_));
            queues.push(PlannedQueue {
                name,
                device,
                is_thread,
                order,
                order_from,
                sequence_from,
                operations,
            });
        }
        Plan { queues, row_places }
    }
}

/// The origin of each row. A queue that some rows name with its device, and others without, is one queue as long as
/// only one device has it.
fn origins(table: &Table) -> Vec<Origin> {
    let mut devices: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
    for row in &table.rows {
        if let (Some(queue), Some(device)) = (row.queue, row.device) {
            devices.entry(queue).or_default().insert(device);
        }
    }
    let origin = |row: &Row| match row.queue {
        None => Origin::Thread(row.thread_index),
        Some(queue) => match devices.get(&queue) {
            Some(devices) if devices.len() == 1 => Origin::Queue(devices.iter().next().copied(), queue),
            _ => Origin::Queue(row.device, queue),
        },
    };
    table.rows.iter().map(origin).collect()
}

/// The queue's own name; with the device's before it if several devices have it.
fn names(table: &Table, origins: impl Iterator<Item = Origin>) -> Vec<String> {
    let origins: Vec<Origin> = origins.collect();
    let mut count: FxHashMap<u32, u32> = FxHashMap::default();
    for origin in &origins {
        if let Origin::Queue(_, queue) = origin {
            *count.entry(*queue).or_default() += 1;
        }
    }
    let name = |origin: &Origin| match *origin {
        Origin::Thread(0) => "no queue".to_owned(),
        Origin::Thread(thread) => format!("thread {}", table.threads[thread as usize]),
        Origin::Queue(device, queue) if count[&queue] > 1 => {
            format!("{}:{}", table.text(device), table.texts[queue as usize])
        }
        Origin::Queue(_, queue) => table.texts[queue as usize].clone(),
    };
    origins.iter().map(name).collect()
}

/// The operations of a queue: the first row of each, and which operation each row is about.
fn operations(rows: &[Row], queue_rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
    // The last is a start, or none for all of them: an id may be that of many operations.
    type Key = (Option<u32>, Option<u64>, Option<u64>, Option<u64>);
    let (mut firsts, mut about) = (Vec::new(), Vec::with_capacity(queue_rows.len()));
    let mut with_id: FxHashMap<Key, Vec<u32>> = FxHashMap::default();
    let mut without_id: FxHashMap<(u64, u64, u32, Option<u32>), u32> = FxHashMap::default();
    for row_index in queue_rows {
        let row = &rows[*row_index as usize];
        let new = firsts.len() as u32;
        let operation = if row.id.is_some() {
            let key = |start: Option<u64>| (row.list, row.id, row.execution, start);
            let newest = |start: Option<u64>| {
                let known = with_id.get(&key(start))?.iter().rev();
                known.copied().find(|o| is_same(&rows[firsts[*o as usize] as usize], row))
            };
            let same = match row.start {
                0 => newest(None),
                start => newest(Some(start)).max(newest(Some(0))),
            };
            same.unwrap_or_else(|| {
                for start in [None, Some(row.start)] {
                    with_id.entry(key(start)).or_default().push(new);
                }
                new
            })
        } else if row.start != 0 && row.end > row.start {
            // Nothing runs twice in one queue from the same nanosecond to the same nanosecond.
            *without_id.entry((row.start, row.end, row.thread_index, row.name)).or_insert(new)
        } else {
            new
        };
        if operation == new {
            firsts.push(*row_index);
        }
        about.push(operation);
    }
    (firsts, about)
}

/// Whether two rows of one id are about one operation, rather than about an id that was used again or a recorded
/// operation that was executed again.
fn is_same(a: &Row, b: &Row) -> bool {
    let differ = |a: Option<u64>, b: Option<u64>| matches!((a, b), (Some(a), Some(b)) if a != b);
    !differ(a.append, b.append)
        && !differ(a.submit, b.submit)
        && (a.start == b.start || a.start == 0 || b.start == 0)
}

/// An execution of recorded work: its list, and its number or, if unknown, its submission.
type Execution = (u32, Option<u64>, Option<u64>);

fn execution(row: &Row) -> Option<Execution> {
    let list = row.list?;
    let known = row.execution.is_some() || row.submit.is_some();
    known.then_some((list, row.execution, row.submit.filter(|_| row.execution.is_none())))
}

/// The order of the operations, as indices into `firsts`, and its source.
///
/// Recorded operations are appended once and run at each execution. An execution is placed by its submission, else by
/// its first start; `append` orders the operations within it.
fn sequence(rows: &[Row], firsts: &[u32], wrapped: bool) -> (SequenceFrom, Vec<u32>) {
    let row = |operation: u32| &rows[firsts[operation as usize] as usize];
    let id = |row: &Row| {
        let id = row.id.unwrap_or(0);
        if wrapped && id < WRAP_GAP { id + (1 << 32) } else { id }
    };
    let all = |has: fn(&Row) -> bool| firsts.iter().all(|first| has(&rows[*first as usize]));
    let has_lists = !all(|row| row.list.is_none());
    let ids_are_unique = || {
        let mut seen = FxHashSet::default();
        firsts.iter().all(|first| {
            let row = &rows[*first as usize];
            row.execution.is_none() && row.id.is_some_and(|id| seen.insert(id))
        })
    };
    let from = if !has_lists && all(|row| row.append.is_some()) {
        SequenceFrom::Append
    } else if all(|row| row.submit.is_some()) {
        SequenceFrom::Submit
    } else if !has_lists && ids_are_unique() {
        SequenceFrom::Id
    } else {
        SequenceFrom::Start
    };
    // The first submission and the first start of each execution.
    let mut executions: FxHashMap<Execution, (u64, u64)> = FxHashMap::default();
    for row in firsts.iter().map(|first| &rows[*first as usize]) {
        let Some(execution) = execution(row) else { continue };
        let first = executions.entry(execution).or_insert((u64::MAX, u64::MAX));
        first.0 = first.0.min(row.submit.unwrap_or(u64::MAX));
        first.1 = if row.start == 0 { first.1 } else { first.1.min(row.start) };
    }
    let key = |operation: &u32| {
        let row = row(*operation);
        let known_execution = execution(row).map(|execution| (execution, executions[&execution]));
        let first = match (from, known_execution) {
            (SequenceFrom::Append, _) => row.append.unwrap_or(0),
            (SequenceFrom::Submit, Some((_, (submit, _)))) => submit,
            (SequenceFrom::Submit, None) => row.submit.unwrap_or(0),
            (SequenceFrom::Id, _) => id(row),
            (SequenceFrom::Start, Some((_, (_, start)))) => start,
            (SequenceFrom::Start, None) => row.start,
        };
        // Lists may be submitted together: those of one stay together.
        let within =
            known_execution.map(|(execution, (_, start))| (start, execution, row.append.unwrap_or(0)));
        (first, within, id(row), row.start)
    };
    let mut sorted: Vec<u32> = (0..firsts.len() as u32).collect();
    sorted.sort_by_cached_key(key);
    (from, sorted)
}

/// Whether the ids of the dump went from 2³² − 1 to 0 within it.
fn ids_wrapped(rows: &[Row]) -> bool {
    let mut ids: Vec<u64> = rows.iter().filter_map(|row| row.id).collect();
    ids.sort_unstable();
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return false };
    let near_the_ends = *last < 1 << 32 && *last >= (1 << 32) - WRAP_GAP / 2 && *first < WRAP_GAP / 2;
    near_the_ends && ids.windows(2).any(|pair| pair[0] < WRAP_GAP && pair[1] - pair[0] > WRAP_GAP)
}

fn order(
    table: &Table,
    name: &str,
    origin: Origin,
    operations: &[u32],
    options: &Options,
) -> (QueueOrder, &'static str) {
    let reported = |names: &[String]| names.iter().any(|reported| reported == name);
    if matches!(origin, Origin::Thread(_)) {
        // Calls nest: they are ordered by time, not by the order of their ends.
        return (QueueOrder::OutOfOrder, "assumed");
    }
    if reported(&options.out_of_order) {
        return (QueueOrder::OutOfOrder, "told");
    }
    if reported(&options.in_order) {
        return (QueueOrder::InOrder, "told");
    }
    let rows = || operations.iter().map(|row| &table.rows[*row as usize]);
    if let Some(text) = rows().find_map(|row| row.order) {
        let out_of_order = table.texts[text as usize].to_ascii_lowercase().starts_with("out");
        return (if out_of_order { QueueOrder::OutOfOrder } else { QueueOrder::InOrder }, "told");
    }
    let timed = rows().filter(|row| row.start != 0 && row.end > row.start);
    let mut edges: Vec<(u64, i8)> = timed.flat_map(|row| [(row.start, 1), (row.end, -1)]).collect();
    edges.sort_unstable();
    let (mut running, mut most) = (0usize, 0);
    for (_, change) in edges {
        running = running.saturating_add_signed(isize::from(change));
        most = most.max(running);
    }
    let is_loose = most >= AT_ONCE || lists_overlap(rows());
    if is_loose { (QueueOrder::OutOfOrder, "overlaps") } else { (QueueOrder::InOrder, "assumed") }
}

/// Whether two recorded operations run at once. Only a barrier or an event keeps those apart, on any queue, so it says
/// nothing about the clock.
fn lists_overlap<'a>(rows: impl Iterator<Item = &'a Row>) -> bool {
    let recorded = rows.filter(|row| row.list.is_some() && row.start != 0 && row.end > row.start);
    let mut spans: Vec<(u64, u64)> = recorded.map(|row| (row.start, row.end)).collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].0 < pair[0].1)
}
