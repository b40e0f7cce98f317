//! The records of a timeline in time order: a merge of its lanes.

use super::codes::{sections_of, thread_of};
use super::counters::{USEFUL_THREADS, WAITING_TASKS};
use super::export::{Export, Record, Section};
use super::lanes::{LaneKind, time_of, within};
use super::samples::Sample;
use super::tables::Timeline;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use taskscope_execution::{Group, ObjectIndex, RegionIndex, TaskIndex};

/// Order of records at one time: leaves, then enters, then ends of arrows, begins first.
const LEAVE: u8 = 0;
const ENTER: u8 = 1;
const ARROW: u8 = 2;

/// A lane that is being played.
struct Cursor<'t> {
    sections: Box<dyn Iterator<Item = Section> + 't>,
    /// The section that comes next or is open.
    current: Option<Section>,
    is_open: bool,
    /// Ends of arrows that no section took yet.
    ends: &'t [u32],
    /// Ends of arrows of the open section.
    own: &'t [u32],
    /// Number of those that were delivered.
    delivered: usize,
}

impl Timeline<'_> {
    /// Hands everything to an export, in time order.
    ///
    /// # Errors
    /// Those of the export.
    pub fn play(&self, export: &mut dyn Export) -> io::Result<()> {
        export.begin(self)?;
        let mut cursors: Vec<Cursor<'_>> = (0..self.lanes.rows.len()).map(|lane| self.cursor(lane)).collect();
        let mut heap: BinaryHeap<Reverse<(u64, u8, u32)>> = BinaryHeap::new();
        let next = |cursor: &Cursor<'_>| self.next_of(cursor);
        for (lane, cursor) in cursors.iter().enumerate() {
            heap.extend(next(cursor).map(|(at, rank)| Reverse((at, rank, lane as u32))));
        }
        let mut counts = Counts::of(self);
        let mut samples = self.samples.rows.as_slice();
        while let Some(Reverse((at, rank, lane))) = heap.pop() {
            self.samples_until(at, &mut samples, &mut counts, export)?;
            counts.until(at, self, export)?;
            let cursor = &mut cursors[lane as usize];
            match rank {
                LEAVE => self.leave(cursor, &mut counts, export)?,
                ENTER => self.enter(cursor, &mut counts, export)?,
                _ => {
                    let end = cursor.own[cursor.delivered];
                    cursor.delivered += 1;
                    let (number, arrow) = (end / 2, self.arrow(end / 2));
                    let record = match end % 2 {
                        0 => Record::ArrowStart { number, arrow },
                        _ => Record::ArrowEnd { number, arrow },
                    };
                    export.record(self, &record)?;
                }
            }
            heap.extend(next(&cursors[lane as usize]).map(|(at, rank)| Reverse((at, rank, lane))));
        }
        self.samples_until(u64::MAX, &mut samples, &mut counts, export)?;
        counts.until(u64::MAX, self, export)?;
        export.end(self)
    }

    /// Delivers the samples before a time.
    fn samples_until(
        &self,
        at: u64,
        samples: &mut &[Sample],
        counts: &mut Counts<'_>,
        export: &mut dyn Export,
    ) -> io::Result<()> {
        while let Some((sample, rest)) = samples.split_first().filter(|(sample, _)| sample.at < at) {
            counts.until(sample.at, self, export)?;
            export.record(self, &Record::Sample(*sample))?;
            *samples = rest;
        }
        Ok(())
    }

    fn enter(
        &self,
        cursor: &mut Cursor<'_>,
        counts: &mut Counts<'_>,
        export: &mut dyn Export,
    ) -> io::Result<()> {
        let Some(section) = cursor.current else { return Ok(()) };
        // Those before the section have no section that could hold them.
        let first = cursor.ends.partition_point(|end| self.position(*end) < section.start);
        let until = section.end.max(section.start + 1);
        let count = cursor.ends[first..].partition_point(|end| self.position(*end) < until);
        (cursor.own, cursor.ends) = cursor.ends[first..].split_at(count);
        (cursor.is_open, cursor.delivered) = (true, 0);
        counts.section(self, &section, 1);
        export.record(self, &Record::Enter { section, arrows: cursor.own })
    }

    fn leave(
        &self,
        cursor: &mut Cursor<'_>,
        counts: &mut Counts<'_>,
        export: &mut dyn Export,
    ) -> io::Result<()> {
        let Some(section) = cursor.current else { return Ok(()) };
        let arrows = std::mem::take(&mut cursor.own);
        (cursor.is_open, cursor.current) = (false, cursor.sections.next());
        counts.section(self, &section, -1);
        export.record(self, &Record::Leave { section, arrows })
    }

    /// Time and rank of the next record of a lane.
    fn next_of(&self, cursor: &Cursor<'_>) -> Option<(u64, u8)> {
        let section = cursor.current.as_ref()?;
        if !cursor.is_open {
            return Some((section.start, ENTER));
        }
        Some(match cursor.own.get(cursor.delivered) {
            Some(end) => (self.position(*end), ARROW),
            None => (section.end, LEAVE),
        })
    }

    fn cursor(&self, lane: usize) -> Cursor<'_> {
        let mut sections = self.sections(lane);
        let current = sections.next();
        let ends = self.arrows.ends[lane].as_slice();
        Cursor { sections, current, is_open: false, ends, own: &[], delivered: 0 }
    }

    /// The part of an interval in the selected time, which has some of it.
    fn within(&self, start: u64, end: u64) -> (u64, u64) {
        within(self.execution.part_of_time(), start, end).unwrap_or((start, start))
    }

    /// The sections of a lane in order.
    fn sections(&self, lane: usize) -> Box<dyn Iterator<Item = Section> + '_> {
        let rows = self.lanes.intervals[lane].iter();
        let blank = Section {
            lane: lane as u32,
            code: 0,
            start: 0,
            end: 0,
            task: TaskIndex::NONE,
            region: RegionIndex::NONE,
            object: ObjectIndex::NONE,
            amount: 0,
            part: None,
        };
        if let Some(thread) = thread_of(&self.lanes, lane) {
            return Box::new(sections_of(self.execution, thread).map(move |cut| {
                let of = cut.span.section;
                Section {
                    code: self.codes.section_code(of.state, of.place),
                    start: cut.span.start,
                    end: cut.span.end,
                    task: of.task,
                    region: of.region,
                    object: of.object,
                    ..blank
                }
            }));
        }
        match self.lanes.rows[lane].kind {
            LaneKind::Queue(number, _) => {
                let queue = &self.devices.queues[number as usize];
                Box::new(rows.map(move |row| {
                    let operation = &queue.operations[*row as usize];
                    let code = self.codes.operation_code(number, operation);
                    let (start, end) = self.within(operation.start, operation.end);
                    Section { code, start, end, amount: operation.bytes, ..blank }
                }))
            }
            LaneKind::Calls(number, _) => {
                let thread = &self.devices.calls[number as usize];
                Box::new(rows.map(move |row| {
                    let call = &thread.calls[*row as usize];
                    let code = self.codes.call_code(number, call.name, call.kind);
                    let (start, end) = self.within(call.start, call.end);
                    Section { code, start, end, ..blank }
                }))
            }
            LaneKind::Doubts(thread, _) => {
                let marks = self.lanes.marks_of(thread);
                Box::new(rows.map(move |row| {
                    let mark = marks[*row as usize];
                    let code = self.codes.doubt_code(mark.doubt);
                    Section { code, start: mark.start, end: mark.end, amount: mark.lost, ..blank }
                }))
            }
            LaneKind::Waits(..) => Box::new(rows.map(move |row| {
                let wait = &self.execution.thread_waits.waits[*row as usize];
                let (start, end) = self.within(wait.start, wait.end);
                Section { code: self.codes.wait_code(wait), start, end, object: wait.object, ..blank }
            })),
            LaneKind::Collectives(..) => {
                let last = self.execution.range().1;
                Box::new(rows.map(move |row| {
                    let part = &self.execution.communication.participations[*row as usize];
                    let (start, end) = time_of(part, last);
                    let (start, end) = self.within(start, end);
                    let amount = if part.bytes == u64::MAX { 0 } else { part.bytes };
                    let code = self.codes.collective_code(part);
                    Section { code, start, end, amount, part: Some(*row), ..blank }
                }))
            }
            LaneKind::Thread(_) | LaneKind::Cpu(_) => Box::new(std::iter::empty()),
        }
    }
}

/// Values of counters, delivered when the time of their changes is over.
struct Counts<'t> {
    tasks: std::iter::Peekable<Box<dyn Iterator<Item = (u64, taskscope_execution::ProcessIndex, i64)> + 't>>,
    values: Vec<i64>,
    /// Changed counters, and their values before.
    changed: BTreeMap<u32, i64>,
    at: u64,
}

impl<'t> Counts<'t> {
    fn of(timeline: &'t Timeline<'_>) -> Counts<'t> {
        let tasks: Box<dyn Iterator<Item = _>> = Box::new(timeline.tasks.iter(timeline.execution));
        let values = vec![0; timeline.counters().len()];
        Counts { tasks: tasks.peekable(), values, changed: BTreeMap::new(), at: 0 }
    }

    fn change(&mut self, counter: Option<u32>, by: i64) {
        let Some(counter) = counter else { return };
        let Some(value) = self.values.get_mut(counter as usize) else { return };
        self.changed.entry(counter).or_insert(*value);
        *value += by;
    }

    fn section(&mut self, timeline: &Timeline<'_>, section: &Section, by: i64) {
        let lane = &timeline.lanes.rows[section.lane as usize];
        let state = timeline.codes.rows[section.code as usize].state;
        if matches!(lane.kind, LaneKind::Thread(_))
            && state.is_some_and(|state| state.group() == Group::Useful)
        {
            self.change(timeline.tasks.counter(lane.process, USEFUL_THREADS), by);
        }
    }

    /// Delivers all changes before a time.
    fn until(&mut self, at: u64, timeline: &Timeline<'_>, export: &mut dyn Export) -> io::Result<()> {
        if at == self.at {
            return Ok(());
        }
        while let Some((then, process, by)) = self.tasks.next_if(|next| next.0 < at) {
            if then > self.at {
                self.deliver(timeline, export)?;
                self.at = then;
            }
            self.change(timeline.tasks.counter(process, WAITING_TASKS), by);
        }
        self.deliver(timeline, export)?;
        self.at = at;
        Ok(())
    }

    fn deliver(&mut self, timeline: &Timeline<'_>, export: &mut dyn Export) -> io::Result<()> {
        let at = self.at;
        for (counter, before) in std::mem::take(&mut self.changed) {
            let value = self.values[counter as usize];
            if value != before {
                export.record(timeline, &Record::Counter { counter, at, value })?;
            }
        }
        Ok(())
    }
}
