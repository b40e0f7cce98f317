//! Events of a location.

use super::definitions::{Definitions, Local, Location, LocationType};
use super::messages::{Event, Messages};
use super::records::{Chunked, Cursor, Error, Shape};
use crate::spans::{Kind, Operation, Queue, Run, Span, Thread, ThreadRow};
use rustc_hash::FxHashMap;
use taskscope_event::models::device;
use taskscope_otf2::event as kind;

/// A task: its team, the thread that created it, its number there.
type TaskId = (u32, u32, u32);

/// The implicit task of a location. Its number is 0 in each team, and switches to it name the team.
const IMPLICIT: TaskId = (u32::MAX, u32::MAX, 0);

/// Regions that are open: the region and the time since it is on the thread.
type Stack = Vec<(u32, u64)>;

/// Reads the events of a location.
pub(super) struct LocationReader<'r> {
    pub definitions: &'r Definitions,
    pub local: &'r Local,
    pub process: u32,
    pub id: u64,
    pub location: &'r Location,
    pub messages: &'r mut Messages,
}

impl LocationReader<'_> {
    pub fn read(&mut self, chunked: Chunked<'_>, run: &mut Run) -> Result<(), Error> {
        let thread = run.threads.len() as ThreadRow;
        let mut spans = Vec::new();
        let (mut first, mut now, mut ticks_before) = (None, None, 0);
        let mut open: Stack = Vec::new();
        let mut put_down: FxHashMap<TaskId, Stack> = FxHashMap::default();
        let mut current = IMPLICIT;
        let is_thread = self.location.ty == LocationType::Thread;
        let shape = |kind| match kind {
            kind::TIMESTAMP => Shape::EightBytes,
            kind::ENTER | kind::LEAVE => Shape::Number,
            _ => Shape::WithLength,
        };
        chunked.records(shape, |record| {
            let mut fields = record.fields;
            if record.kind == kind::TIMESTAMP {
                let ticks = fields.fixed_u64()?;
                if ticks < ticks_before {
                    return Err((
                        record.at,
                        format!("time {ticks} is before the time {ticks_before} of the event before"),
                    ));
                }
                ticks_before = ticks;
                let global = self.local.corrected(ticks).ok_or_else(|| {
                    (
                        record.at,
                        format!("time {ticks} is not on the global clock by the location's clock offsets"),
                    )
                })?;
                let ns = self.definitions.clock.nanoseconds(global);
                let ns =
                    ns.ok_or_else(|| (record.at, format!("time {ticks} is beyond the clock of 2^63 ns")))?;
                now = Some(now.map_or(ns, |before: u64| before.max(ns)));
                first = first.or(now);
                return Ok(());
            }
            let Some(at) = now else { return Err((record.at, "an event has no time".to_owned())) };
            match record.kind {
                kind::ENTER => open.push((self.region(&mut fields)?, at)),
                kind::LEAVE => {
                    let region = self.region(&mut fields)?;
                    match open.pop() {
                        Some((entered, since)) if entered == region => {
                            spans.push((entered, since, at));
                        }
                        Some(other) => {
                            open.push(other);
                            return Err((
                                record.at,
                                "the region that is left is not the one entered last".to_owned(),
                            ));
                        }
                        None => {
                            let place = || format!("location {}, byte {}", self.id, record.at);
                            run.losses.add("ends of sections", "they have no begin", place);
                        }
                    }
                }
                kind::MPI_SEND | kind::MPI_ISEND | kind::MPI_RECEIVE | kind::MPI_IRECEIVE if is_thread => {
                    let (peer, communicator) = (fields.u32()?, fields.u32()?);
                    let tag = fields.u32()?;
                    let is_send = matches!(record.kind, kind::MPI_SEND | kind::MPI_ISEND);
                    let communicator = self.local.communicator(communicator);
                    let location = self.id;
                    self.messages.add(
                        self.definitions,
                        &Event { location, is_send, peer, communicator, tag, thread, at },
                    );
                }
                kind::TASK_SWITCH => {
                    let next = (fields.u32()?, fields.u32()?, fields.u32()?);
                    let next = if next.2 == IMPLICIT.2 { IMPLICIT } else { next };
                    if next != current {
                        let left = std::mem::take(&mut open);
                        spans.extend(left.iter().map(|(region, since)| (*region, *since, at)));
                        if !left.is_empty() {
                            put_down.insert(current, left);
                        }
                        open = put_down.remove(&next).unwrap_or_default();
                        open.iter_mut().for_each(|(_, since)| *since = at);
                        current = next;
                    }
                }
                kind::METRIC => {
                    let why = "a trace has no counters of programs";
                    run.losses.add("values of metrics", why, || format!("location {}", self.id));
                }
                // Their times alone are used, or those of the messages and switches that belong to them.
                kind::MPI_ISEND_COMPLETE
                | kind::MPI_IRECEIVE_REQUEST
                | kind::MPI_COLLECTIVE_BEGIN
                | kind::TASK_CREATE
                | kind::TASK_COMPLETE
                | kind::PROGRAM_BEGIN
                | kind::PROGRAM_END => {}
                kind::MPI_COLLECTIVE_END => {
                    let why = "of collective operations, the regions are read";
                    let place = || format!("location {}, byte {}", self.id, record.at);
                    run.losses.add("communicators, roots and sizes of collective operations", why, place);
                }
                other if other >= kind::FIRST => {
                    let why = "of events, sections, task switches and messages are read";
                    let place = || format!("kind {other}, location {}, byte {}", self.id, record.at);
                    run.losses.add("events of other kinds", why, place);
                }
                _ => {}
            }
            Ok(())
        })?;
        let last = now.unwrap_or(0);
        // Their time before they were put down is in spans.
        let put_down = put_down.values().map(|regions| regions.len() as u64).sum();
        run.losses.add_many("ends of sections", "their tasks do not resume on this location", put_down);
        for (region, since) in open {
            let why = "the archive has none: they are open until the last event of their location";
            run.losses.add("ends of open sections", why, || format!("location {}", self.id));
            spans.push((region, since, last));
        }
        if self.location.ty == LocationType::Stream {
            self.add_queue(run, &spans);
        } else if now.is_some() {
            let kinds: Vec<Span> = spans
                .iter()
                .map(|(region, start, end)| Span { start: *start, end: *end, kind: self.kind(*region, run) })
                .collect();
            let name = self.definitions.text(self.location.name);
            run.threads.push(thread_of(self.process, self.id, name));
            if let Some(thread) = run.threads.last_mut() {
                thread.spans = kinds;
                thread.life = first.zip(now);
            }
        }
        Ok(())
    }

    /// The number of a region, which is defined.
    fn region(&self, fields: &mut Cursor<'_>) -> Result<u32, Error> {
        let at = fields.at;
        let own = fields.u32()?;
        let region = self.local.region(own);
        if !self.definitions.regions.contains_key(&region) {
            return Err((at, format!("region {own} is not defined")));
        }
        Ok(region)
    }

    fn kind(&self, region: u32, run: &mut Run) -> u32 {
        let defined = &self.definitions.regions[&region];
        let text = |id: u32| self.definitions.text(id).to_owned();
        run.kind(Kind {
            name: text(defined.name),
            file: text(defined.file),
            line: if defined.line == u32::MAX { 0 } else { defined.line },
            activity: defined.activity,
        })
    }

    fn add_queue(&self, run: &mut Run, spans: &[(u32, u64, u64)]) {
        let mut operations = Vec::new();
        for (region, start, end) in spans {
            if *start == 0 {
                let why = "this is the time of operations without times";
                run.losses.add("operations at time 0", why, || format!("location {}", self.id));
                continue;
            }
            let name = self.definitions.text(self.definitions.regions[region].name).to_owned();
            let kind = match crate::device_records::kind_of("", &name) {
                device::kind::OTHER => device::kind::KERNEL,
                kind => kind,
            };
            let name = run.name(&name);
            operations.push(Operation { start: *start, end: *end, name, kind, ..Operation::default() });
        }
        if !operations.is_empty() {
            let name = self.definitions.text(self.location.name).to_owned();
            run.queues.push(Queue { name, device: String::new(), process: self.process, operations });
        }
    }
}

/// A thread of a location.
fn thread_of(process: u32, id: u64, name: &str) -> Thread {
    Thread {
        process,
        tid: id.checked_add(1).and_then(|tid| i64::try_from(tid).ok()),
        name: name.to_owned(),
        ..Thread::default()
    }
}
