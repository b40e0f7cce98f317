//! One section in full: what it was, what it waited for, who made it wait.

use super::Page;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use taskscope_execution::messages::Call;
use taskscope_execution::{
    Group, Hold, Holders, NO_NUMBER, NO_TIME, OsSource, Place, RegionIndex, Span, State, ThreadIndex,
};

impl Page {
    /// The section of a track at a time, with everything that is known of it; `None` where the track
    /// has nothing.
    pub fn section_at(&self, track: ThreadIndex, at: u64) -> Option<Value> {
        let thread = self.execution.threads.get(track.index())?;
        let row = thread.track.row_at(self.start().checked_add(at)?)?;
        Some(self.section(track, thread.track.span(row)))
    }

    /// The section after (or before) the one at a time on the same track.
    pub fn neighbour(&self, track: ThreadIndex, at: u64, later: bool) -> Option<Value> {
        let thread = self.execution.threads.get(track.index())?;
        let at = self.start().checked_add(at)?;
        let row = match thread.track.row_at(at) {
            Some(row) if later => row + 1,
            Some(row) => row.checked_sub(1)?,
            None if later == (at < thread.track.start()) => {
                if later {
                    0
                } else {
                    thread.track.len().checked_sub(1)?
                }
            }
            None => return None,
        };
        (row < thread.track.len()).then(|| self.section(track, thread.track.span(row)))
    }

    pub(super) fn section(&self, track: ThreadIndex, span: Span) -> Value {
        let section = span.section;
        let place = self.place_words(section.state, section.place);
        let mut row = Map::new();
        row.insert("track".into(), track.0.into());
        row.insert("start".into(), self.since_start(span.start).into());
        row.insert("end".into(), self.since_start(span.end).into());
        row.insert("state".into(), section.state.name().into());
        row.insert("label".into(), section.state.label().into());
        row.insert("group".into(), section.state.group().name().into());
        row.insert("place".into(), place.into());
        let line = self.names.ask(move |places| places.line(places.site_of(section.place)));
        row.insert("line".into(), line.into());
        row.insert("task".into(), self.execution.tasks.number(section.task).into());
        row.insert("task_ref".into(), self.task_reference(section.task));
        if let Some(ty) = self.execution.tasks.ty.get(section.task.index()).copied() {
            let (name, line) = self.names.ask(move |places| {
                (places.type_name(ty), places.line(places.type_site(ty)).unwrap_or_default())
            });
            row.insert("task_type".into(), name.into());
            row.insert("task_line".into(), line.into());
        }
        row.insert("region".into(), self.region_number(section.region).into());
        row.insert("region_name".into(), self.region_name(section.region).into());
        if section.object.is_some() {
            let object = section.object;
            row.insert("object".into(), self.names.ask(move |places| places.object_name(object)).into());
        }
        match section.state.group() {
            _ if section.state == State::Communication && self.add_peer(&mut row, track, span) => {}
            Group::Mutex => self.add_holders(&mut row, track, &span),
            Group::Sync | Group::Idle => self.add_workers_meanwhile(&mut row, track, span),
            _ => {}
        }
        if let Some(long) = self.timeline.long_wait_ns(section.state) {
            row.insert("long_from_ns".into(), long.into());
        }
        let off = self.timeline.off_cpu_ns(&self.execution, track, span.start, span.end);
        if off > 0 {
            let estimated = self.execution.threads[track.index()].os_source == OsSource::Estimated;
            row.insert("off_cpu_ns".into(), off.into());
            row.insert("off_cpu_estimated".into(), estimated.into());
        }
        let overlaps = |start: u64, end: u64| start < span.end && end.max(start + 1) > span.start;
        let losses = self.execution.losses.iter();
        let losses = losses.filter(|loss| loss.thread == track && overlaps(loss.start, loss.end));
        let lost: u64 = losses.map(|loss| loss.events).sum();
        if lost > 0 {
            row.insert("lost_events".into(), lost.into());
        }
        let doubts = self.execution.uncertain.iter();
        let mut doubts = doubts.filter(|part| part.thread == track && overlaps(part.start, part.end));
        if let Some(part) = doubts.next() {
            row.insert("uncertain".into(), part.doubt.name().into());
        }
        Value::Object(row)
    }

    pub(super) fn place_words(&self, state: State, place: Place) -> String {
        self.names.ask(move |places| places.name(state, place))
    }

    /// Who held or handed over what a section waited for, and for how long of it.
    fn add_holders(&self, row: &mut Map<String, Value>, track: ThreadIndex, wait: &Span) {
        let object = wait.section.object;
        let holders = Holders::of(self.execution.holds.iter().filter(|hold| hold.object == object));
        let mut rows: Vec<(u64, Hold)> = Vec::new();
        self.execution.split_wait(&holders, track, wait, |holder, start, end| {
            match (holder, rows.last_mut()) {
                (Some(hold), Some((ns, last))) if *last == hold => *ns += end - start,
                (Some(hold), _) => rows.push((end - start, hold)),
                (None, _) => {}
            }
        });
        rows.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let rows = rows.into_iter().take(8).map(|(ns, hold)| {
            json!({
                "track": hold.thread.0, "ns": ns,
                "place": self.place_words(State::LockWait, Place::site(hold.site)),
                "start": self.since_start(hold.start), "end": self.since_start(hold.end),
                "task": self.execution.tasks.number(hold.task),
                "task_name": self.task_name(hold.task),
            })
        });
        row.insert("holders".into(), rows.collect());
    }

    /// Whom a call of a communication library waited for; false where no call is known.
    fn add_peer(&self, row: &mut Map<String, Value>, track: ThreadIndex, span: Span) -> bool {
        let communication = &self.execution.communication;
        let covers = |call: &&Call| call.thread == track && call.start <= span.start && call.end >= span.end;
        let Some(call) = communication.calls.iter().rfind(covers) else { return false };
        row.insert("call".into(), call.function_name().into());
        if let Some(wait) = call.wait.filter(|wait| wait.until > span.start) {
            let process = self.execution.processes.get(wait.culprit.index());
            let value = json!({
                "kind": wait.kind.name(),
                "ns": wait.until.min(span.end) - span.start,
                "rank": communication.ranks.get(&wait.culprit.0).map(|rank| rank.rank),
                "pid": process.map(|process| process.pid),
            });
            row.insert("peer".into(), value);
        }
        true
    }

    /// What the other workers of the process did while this one waited: those that worked are to
    /// blame; and what ended last before the wait did.
    fn add_workers_meanwhile(&self, row: &mut Map<String, Value>, track: ThreadIndex, span: Span) {
        let process = self.execution.threads[track.index()].process;
        let mut busy: BTreeMap<(State, Place), (u64, u32)> = BTreeMap::new();
        let mut released: Option<(u64, ThreadIndex, Span)> = None;
        let mut workers = 0_u32;
        for (index, thread) in self.execution.workers().filter(|(_, thread)| thread.process == process) {
            workers += 1;
            if index == track {
                continue;
            }
            let sums = self.timeline.sums(&self.execution, index, span.start, span.end);
            let useful: u64 = State::ALL.iter().filter(|s| s.is_useful()).map(|s| sums[*s as usize]).sum();
            // The section in the middle stands for what it did: good enough to point at somebody.
            let middle = span.start + (span.end - span.start) / 2;
            let at = |time| thread.track.row_at(time).map(|row| thread.track.span(row));
            if let Some(there) = at(middle).filter(|there| useful > 0 && there.section.state.is_useful()) {
                let entry = busy.entry((there.section.state, there.section.place)).or_default();
                *entry = (entry.0 + useful, entry.1 + 1);
            }
            let Some(row) = thread.track.row_at(span.end.saturating_sub(1)) else { continue };
            for row in [row, row.saturating_sub(1)] {
                let ended = thread.track.span(row);
                let counts =
                    ended.section.state.is_useful() && ended.end <= span.end && ended.end > span.start;
                if counts && released.is_none_or(|(latest, _, _)| ended.end > latest) {
                    released = Some((ended.end, index, ended));
                }
            }
        }
        let mut busy: Vec<_> = busy.into_iter().collect();
        busy.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
        let culprits = busy.into_iter().take(4).map(|((state, place), (ns, threads))| {
            json!({ "state": state.label(), "place": self.place_words(state, place), "useful_ns": ns, "threads": threads })
        });
        row.insert("culprits".into(), culprits.collect());
        row.insert("workers".into(), workers.into());
        if let Some((end, thread, last)) = released {
            let value = json!({
                "track": thread.0, "end": self.since_start(end),
                "state": last.section.state.label(),
                "place": self.place_words(last.section.state, last.section.place),
                "task": self.execution.tasks.number(last.section.task),
                "task_name": self.task_name(last.section.task),
            });
            row.insert("ended_last".into(), value);
        }
    }

    /// The recorder's number of a region.
    pub(super) fn region_number(&self, region: RegionIndex) -> Option<u64> {
        let number = self.execution.regions.get(region.index())?.number;
        Some(number).filter(|number| *number != NO_NUMBER)
    }

    /// A region by its number, and its process where there are several.
    fn region_name(&self, region: RegionIndex) -> Option<String> {
        let number = self.region_number(region)?;
        let master = self.execution.regions[region.index()].master;
        let process = self.execution.threads.get(master.index()).map(|thread| thread.process);
        Some(match process.and_then(|process| self.execution.process_name(process)) {
            Some(process) => format!("{number} of {process}"),
            None => number.to_string(),
        })
    }

    pub(super) fn time_or_null(&self, at: u64) -> Value {
        if at == NO_TIME { Value::Null } else { self.since_start(at).into() }
    }
}
