//! The observer that keeps an execution.

mod finish;

use crate::catalog::grown;
use crate::growing::ColumnFile;
use crate::messages_builder::MessagesBuilder;
use crate::open_thread::{OpenThread, OpenTrack};
use crate::samples::{CreationPath, NewSample, RegionPath, SamplesBuilder};
use crate::storing::Storing;
use crate::thread_waits::ThreadWaitChange;
use crate::thread_waits_builder::ThreadWaitsBuilder;
use crate::{
    Anomalies, Anomaly, Catalog, Change, Definition, Doubt, Execution, Gap, GapIndex, Hold, Loss, NO_NUMBER,
    NO_TIME, Numbers, Object, ObjectIndex, Observer, Process, ProcessIndex, Region, RegionIndex, Section,
    SiteIndex, State, Thread, ThreadIndex, ThreadKind, TypeIndex, Uncertain, WorkShare,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Builds an [`Execution`] from changes.
///
/// Changes must come in time order over all threads of a process, as a merged trace gives them: holders of locks and
/// members of regions are matched across threads. Changes of a thread's sections may come later than other threads'
/// changes.
#[derive(Debug, Default)]
pub struct ExecutionBuilder {
    numbers: Numbers,
    execution: Execution,
    open: Vec<OpenThread>,
    holders: Vec<Option<Hold>>,
    /// Holders with a release that has not been reported although the next holder has the object, since when.
    superseded: FxHashMap<(ObjectIndex, ThreadIndex), u64>,
    ordinals: FxHashMap<(ThreadIndex, RegionIndex, TypeIndex), u32>,
    messages: MessagesBuilder,
    thread_waits: ThreadWaitsBuilder,
    samples: SamplesBuilder,
    storing: Storing,
    /// Threads that never count as workers.
    beside: FxHashSet<ThreadIndex>,
}

impl ExecutionBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a process; threads refer to it.
    pub fn add_process(&mut self, loom: &str, pid: i64) -> ProcessIndex {
        let index = ProcessIndex::of(self.execution.processes.len());
        self.execution.processes.push(Process {
            loom: loom.to_string(),
            pid,
            has_cpus: false,
            first: NO_TIME,
            last: 0,
            cpus: None,
        });
        index
    }

    /// Adds the holder of a loom's CPUs, if these are the workers of all its processes. Its "threads" are the CPUs.
    pub fn add_cpus_of(&mut self, loom: &str) -> ProcessIndex {
        let index = self.add_process(loom, 0);
        self.execution.processes[index.index()].has_cpus = true;
        index
    }

    /// Adds a thread; changes refer to it.
    pub fn add_thread(&mut self, process: ProcessIndex, tid: i64) -> ThreadIndex {
        let index = ThreadIndex::of(self.execution.threads.len());
        let gap = self.new_gap(process, SiteIndex::NONE);
        self.execution.threads.push(Thread::new(process, tid));
        self.open.push(OpenThread::new(gap));
        index
    }

    /// Makes a thread a worker.
    pub fn thread_works(&mut self, thread: ThreadIndex) {
        if let Some(thread) = self.execution.threads.get_mut(thread.index()) {
            thread.worker = true;
        }
    }

    /// Makes a thread a row beside the workers: it is never chosen as one, and its process may have none.
    pub fn thread_is_beside(&mut self, thread: ThreadIndex) {
        self.beside.insert(thread);
    }

    /// Names a thread, if it has no name yet.
    pub fn name_thread(&mut self, thread: ThreadIndex, name: &str) {
        let named = self.execution.threads.get_mut(thread.index());
        if let Some(thread) = named.filter(|thread| thread.name.is_empty()) {
            thread.name = name.to_string();
        }
    }

    /// Sets the file that stores tracks with many expected sections instead of memory. To be called when all threads are
    /// added, and before anything of them is expected or changes.
    pub fn keep_long_tracks_in(&mut self, file: Arc<dyn ColumnFile>) {
        self.storing = Storing::in_file(file, 2 * self.open.len());
    }

    /// Stores the changes of threads and tasks on a separate thread from now on. A long run is built sooner by it, for
    /// more processor time: data written by one processor and read by another stalls.
    pub fn store_beside(&mut self) {
        self.storing = std::mem::take(&mut self.storing).beside();
    }

    /// The thread will have no more than about so many sections.
    pub fn expect_sections(&mut self, thread: ThreadIndex, sections: u64) {
        let sections = usize::try_from(sections).unwrap_or(0);
        self.storing.expect(thread.index(), sections);
    }

    /// Announces about so many tasks at most.
    pub fn expect_tasks(&mut self, tasks: u64) {
        self.storing.expect_tasks(usize::try_from(tasks).unwrap_or(0));
    }

    /// Records that an event of `thread` is at `at`, whether or not it changes anything.
    #[inline]
    pub fn event(&mut self, thread: ThreadIndex, at: u64) {
        self.events(thread, 1, at, at);
    }

    /// Records that so many events of `thread` are from `first` to `last`.
    #[inline]
    pub fn events(&mut self, thread: ThreadIndex, count: u64, first: u64, last: u64) {
        let thread = &mut self.execution.threads[thread.index()];
        thread.events += count;
        thread.first = thread.first.min(first);
        thread.last = thread.last.max(last);
        thread.last_event = thread.last_event.max(last);
    }

    /// The thread is still there at `at`, although no event of it is played.
    pub fn lives_at(&mut self, thread: ThreadIndex, at: u64) {
        let thread = &mut self.execution.threads[thread.index()];
        if thread.first != NO_TIME && !thread.ended {
            thread.last = thread.last.max(at);
        }
    }

    /// Takes the anomalies so far, at a border of the selected part.
    pub fn take_anomalies(&mut self) -> Anomalies {
        std::mem::take(&mut self.execution.anomalies)
    }

    /// Replaces the anomalies by those of the selected part.
    pub fn set_anomalies(&mut self, anomalies: Anomalies) {
        self.execution.anomalies = anomalies;
    }

    /// A CPU shows a thread from now on.
    fn shows(&mut self, cpu: ThreadIndex, at: u64, thread: ThreadIndex) {
        let shows = &mut self.open[cpu.index()].shows;
        let last = shows.last().map_or(0, |last| last.0);
        shows.push((at.max(last), thread));
        if at < last {
            self.execution.anomalies.count(cpu, at, Anomaly::TimeRunsBack { ns: last - at });
        }
    }

    /// Several threads run on a CPU from now on, or no longer.
    fn is_shared(&mut self, cpu: ThreadIndex, at: u64, is_shared: bool) {
        let since = std::mem::replace(&mut self.open[cpu.index()].shared_since, is_shared.then_some(at));
        // One that comes in the nanosecond in which another leaves does not share the CPU.
        if let Some(start) = since.filter(|since| *since < at) {
            let doubt = Doubt::CpuShared;
            self.execution.uncertain.push(Uncertain { thread: cpu, start, end: at, doubt });
        }
    }

    fn new_gap(&mut self, process: ProcessIndex, after: SiteIndex) -> GapIndex {
        let gaps = &mut self.execution.catalog.gaps;
        gaps.push(Gap { process, after, before: SiteIndex::NONE });
        GapIndex::of(gaps.len() - 1)
    }

    fn region_mut(&mut self, region: RegionIndex) -> &mut Region {
        let blank = Region {
            number: NO_NUMBER,
            site: SiteIndex::NONE,
            parent: RegionIndex::NONE,
            master: ThreadIndex::NONE,
            begin: NO_TIME,
            end: NO_TIME,
            requested: 0,
            members: 0,
            team: 0,
        };
        grown(&mut self.execution.regions, region.index(), &blank)
    }

    fn region_begins(&mut self, thread: ThreadIndex, at: u64, region: RegionIndex, begun: Region) {
        let row = self.region_mut(region);
        let (members, team) = (row.members, row.team);
        *row = Region { members, team, ..begun };
        if !begun.parent.is_some() {
            let gap = self.open[thread.index()].gap;
            if let Some(gap) = self.execution.catalog.gaps.get_mut(gap.index()) {
                gap.before = begun.site;
            }
        }
        // Serial code that is shown from this very instant on belongs to no gap.
        self.open[thread.index()].last_change = at;
    }

    fn region_ends(&mut self, thread: ThreadIndex, at: u64, region: RegionIndex) {
        let row = self.region_mut(region);
        row.end = at;
        let (site, parent) = (row.site, row.parent);
        if !parent.is_some() {
            let process = self.execution.threads[thread.index()].process;
            let gap = self.new_gap(process, site);
            let open = &mut self.open[thread.index()];
            open.gap = gap;
            let current = open.current();
            if current.state == State::Serial {
                self.open_track(thread).becomes(at, current);
            }
        }
    }

    fn acquires(&mut self, thread: ThreadIndex, at: u64, object: ObjectIndex, site: SiteIndex) {
        let task = self.open[thread.index()].current().task;
        // A thread that takes it again has released it before, and the report of that is lost.
        self.superseded.remove(&(object, thread));
        let holder = grown(&mut self.holders, object.index(), &None);
        match holder {
            Some(held) if held.thread == thread => {
                let depths = &mut self.open[thread.index()].depths;
                match depths.iter_mut().find(|(o, _)| *o == object) {
                    Some((_, depth)) => *depth += 1,
                    None => depths.push((object, 2)),
                }
                return;
            }
            Some(held) => {
                // The runtime reports a release after it has happened, so the next holder may be
                // reported first.
                self.superseded.insert((object, held.thread), at);
                self.execution.holds.to_mut().push(Hold { end: at.max(held.start), ..*held });
                self.open[held.thread.index()].depths.retain(|(o, _)| *o != object);
            }
            None => {}
        }
        *holder = Some(Hold { object, thread, site, task, start: at, end: NO_TIME });
    }

    fn releases(&mut self, thread: ThreadIndex, at: u64, object: ObjectIndex) {
        if let Some(since) = self.superseded.remove(&(object, thread)) {
            let ns = at.saturating_sub(since);
            self.execution.anomalies.late_releases.count(ns);
            return;
        }
        match self.holders.get_mut(object.index()) {
            Some(slot @ Some(_)) if slot.is_some_and(|held| held.thread == thread) => {
                let depths = &mut self.open[thread.index()].depths;
                if let Some(row) = depths.iter().position(|(o, _)| *o == object) {
                    depths[row].1 -= 1;
                    if depths[row].1 == 1 {
                        depths.swap_remove(row);
                    }
                } else if let Some(held) = slot.take() {
                    self.execution.holds.to_mut().push(Hold { end: at.max(held.start), ..held });
                }
            }
            _ => self.execution.anomalies.count(thread, at, Anomaly::EndWithoutBegin),
        }
    }

    fn lost(&mut self, thread: ThreadIndex, at: u64, events: u64, lasts: bool) {
        let lost = &mut self.execution.threads[thread.index()].lost_events;
        *lost = lost.saturating_add(events);
        if lasts {
            self.open_track(thread).becomes(at, Section::of(State::Unknown));
            let (_, lost) = self.open[thread.index()].blind.get_or_insert((at, 0));
            *lost = lost.saturating_add(events);
            return;
        }
        let open = &self.open[thread.index()];
        let (since, current) = (open.last_change, open.current());
        self.execution.losses.push(Loss { thread, start: since.min(at), end: at, events });
        if !open.newest.is_empty() {
            self.open_track(thread).becomes(since.min(at), Section::of(State::Unknown));
            self.open_track(thread).becomes(at, current);
        }
    }

    fn other_change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        match change {
            Change::ThreadBegins => {
                let thread = &mut self.execution.threads[thread.index()];
                thread.first = thread.first.min(at);
            }
            Change::Shows(shown) => self.shows(thread, at, shown),
            Change::IsShared(is_shared) => self.is_shared(thread, at, is_shared),
            Change::Was(section) => {
                let open = &mut self.open[thread.index()];
                if open.blind.is_none()
                    && let Some(amendment) = open.newest.amend(at, section)
                {
                    self.storing.amend(thread.index(), amendment);
                }
            }
            Change::ThreadServesAs(role) => {
                self.execution.threads[thread.index()].role.get_or_insert(role);
            }
            Change::ThreadIs(kind) => self.execution.threads[thread.index()].kind = kind,
            Change::ThreadWorks => self.execution.threads[thread.index()].worker = true,
            Change::ThreadEnds => {
                let open = &mut self.open[thread.index()];
                let thread = &mut self.execution.threads[thread.index()];
                thread.last = thread.last.max(at);
                thread.ended = true;
                open.newest.close(at);
            }
            Change::RegionBegins { region, parent, site, requested } => {
                let (members, team, end) = (0, 0, NO_TIME);
                let begun = Region {
                    number: NO_NUMBER,
                    site,
                    parent,
                    master: thread,
                    begin: at,
                    end,
                    requested,
                    members,
                    team,
                };
                self.region_begins(thread, at, region, begun);
            }
            Change::RegionJoins { region, team, .. } => {
                let row = self.region_mut(region);
                row.members += 1;
                row.team = row.team.max(team);
            }
            Change::TeamLimits { region, limits } => self.execution.team_limits.push((region, limits)),
            Change::RegionEnds { region } => self.region_ends(thread, at, region),
            Change::RegionPath { region, path, parent_region, parent_task } => {
                let row = RegionPath { path, parent_region, parent_task };
                self.samples.samples_mut().region_paths.insert(region, row);
            }
            Change::TaskPath { task, path } => {
                self.samples.samples_mut().task_paths.insert(task, path);
            }
            Change::CallPath { site, path } => {
                self.samples.samples_mut().know_call(thread, site, at, path);
            }
            Change::WorkBegins { ty, region } => self.work_begins(thread, at, ty, region),
            Change::WorkEnds => {
                if let Some(work) = self.open[thread.index()].works.pop() {
                    self.execution.works.push(WorkShare { end: at.max(work.start), ..work });
                }
            }
            Change::Chunk { iterations, .. } => {
                if let Some(work) = self.open[thread.index()].works.last_mut() {
                    work.chunks += 1;
                    work.iterations = work.iterations.saturating_add(iterations);
                }
            }
            Change::Acquires { object, site } => self.acquires(thread, at, object, site),
            Change::Releases { object } => self.releases(thread, at, object),
            Change::Lost { events, lasts } => self.lost(thread, at, events, lasts),
            Change::Message(change) => {
                let process = self.execution.threads[thread.index()].process;
                self.messages.change(thread, process, at, change);
            }
            Change::ThreadWait(change) => {
                if let ThreadWaitChange::Waited { site, begun, .. } = change {
                    self.samples.samples_mut().begin_last_call(thread, site, at.saturating_sub(begun));
                }
                let process = self.execution.threads[thread.index()].process;
                self.know_paths(thread, process, change);
                let objects = &self.execution.catalog.objects;
                let object_of = |object: ObjectIndex| objects.get(object.index()).copied();
                self.thread_waits.change(thread, process, at, change, object_of);
            }
            _ => self.storing.task_change(thread, at, change),
        }
    }

    /// Keeps the paths of the calls in a known wait or hold.
    fn know_paths(&mut self, thread: ThreadIndex, process: ProcessIndex, change: ThreadWaitChange) {
        let threads = || {
            let rows = self.execution.threads.iter().enumerate();
            let rows = rows.filter(|(_, row)| row.kind != ThreadKind::Cpu);
            rows.map(|(index, row)| (ThreadIndex::of(index), row.process, row.tid))
        };
        let mut of = |id| self.thread_waits.thread_by_id(process, id, threads());
        let calls = match change {
            ThreadWaitChange::KnownWait {
                site, path, start, waker, waker_site, waker_path, woken, ..
            } => {
                let waker_end = of(waker).map(|waker| (waker, waker_site, woken, waker_path));
                [Some((thread, site, start, path)), waker_end]
            }
            ThreadWaitChange::KnownHold { holder, site, end, path, .. } => {
                [of(holder).map(|holder| (holder, site, end, path)), None]
            }
            _ => return,
        };
        let samples = self.samples.samples_mut();
        for (thread, site, at, path) in calls.into_iter().flatten().filter(|(_, _, _, path)| path.is_some()) {
            samples.know_call(thread, site, at, path);
        }
    }

    fn work_begins(&mut self, thread: ThreadIndex, at: u64, ty: TypeIndex, region: RegionIndex) {
        let next = self.ordinals.entry((thread, region, ty)).or_insert(0);
        let ordinal = *next;
        *next += 1;
        let works = &mut self.open[thread.index()].works;
        works.push(WorkShare {
            ty,
            region,
            thread,
            ordinal,
            start: at,
            end: NO_TIME,
            chunks: 0,
            iterations: 0,
        });
    }
}

impl Observer for ExecutionBuilder {
    fn define(&mut self, definition: Definition<'_>) {
        let catalog: &mut Catalog = &mut self.execution.catalog;
        match definition {
            Definition::Module { process, at, start, end, bias, build_id, path } => {
                catalog.modules.push(crate::Module {
                    process,
                    at,
                    start,
                    end,
                    bias,
                    build_id: build_id.to_string(),
                    path: path.to_string(),
                })
            }
            Definition::Data { process, at, start, end, name } => {
                catalog.data.push(crate::DataName { process, at, start, end, name: name.to_string() });
            }
            Definition::Site { site, number, process, address, at } => {
                *catalog.site_mut(site) = crate::Site { process, number, address, at };
            }
            Definition::SiteBody { site, body, location } => {
                let construct = crate::Construct { body, location: location.to_string() };
                catalog.constructs.insert(site, construct);
            }
            Definition::Type { ty, process, label } => {
                let row = catalog.type_mut(ty);
                row.process = process;
                // A blank name would be a blank line in every table.
                if !label.trim().is_empty() {
                    row.label = label.to_string();
                }
            }
            Definition::TypeSite { ty, site, kind } => {
                let row = catalog.type_mut(ty);
                row.site = site;
                row.kind = Some(kind);
            }
            Definition::Path { path, number, process, addresses, at } => {
                let paths = &mut self.samples.samples_mut().paths;
                let blank = CreationPath { process, number: 0, addresses: Vec::new(), at };
                *grown(paths, path.index(), &blank) =
                    CreationPath { process, number, addresses: addresses.to_vec(), at };
            }
            Definition::Object { object, process, id, kind } => {
                let blank = Object { process: ProcessIndex::NONE, id: 0, kind: 0 };
                *grown(&mut catalog.objects, object.index(), &blank) = Object { process, id, kind };
            }
        }
    }

    #[inline(always)]
    fn open_track(&mut self, thread: ThreadIndex) -> OpenTrack<'_> {
        let Execution { anomalies, uncertain, .. } = &mut self.execution;
        let open = &mut self.open[thread.index()];
        OpenTrack { thread, open, storing: &mut self.storing, anomalies, uncertain }
    }

    #[inline(always)]
    fn change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        match change {
            Change::Becomes(section) => self.open_track(thread).becomes(at, section),
            // Inlined into the caller, so that the value is built in place: building it in pieces and copying
            // it as a whole would stall on store forwarding.
            Change::TaskCreated { .. }
            | Change::TaskStarts { .. }
            | Change::TaskEnds { .. }
            | Change::TaskSuspends { .. } => {
                self.storing.task_change(thread, at, change);
                self.open[thread.index()].last_change = at;
            }
            // Apart: nearly all changes are those above.
            other => {
                self.other_change(thread, at, other);
                self.open[thread.index()].last_change = at;
            }
        }
    }

    fn numbers(&mut self, numbers: Numbers) {
        self.numbers = numbers;
    }

    fn sample(&mut self, sample: &NewSample<'_>) {
        self.samples.push(sample);
    }

    fn anomaly(&mut self, thread: ThreadIndex, at: u64, anomaly: Anomaly) {
        self.open_track(thread).anomaly(at, anomaly);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report of the first release is lost, and the next one of that thread is not taken for it.
    #[test]
    fn a_lost_release_hides_no_later_one() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let [first, second] = [1, 2].map(|tid| builder.add_thread(process, tid));
        let object = ObjectIndex(0);
        let takes = |site| Change::Acquires { object, site: SiteIndex(site) };
        for (thread, at, change) in [
            (first, 10, takes(1)),
            (second, 20, takes(2)),
            (second, 30, Change::Releases { object }),
            (first, 40, takes(3)),
            (first, 50, Change::Releases { object }),
            (second, 90, takes(4)),
            (second, 95, Change::Releases { object }),
        ] {
            builder.event(thread, at);
            builder.change(thread, at, change);
        }
        let execution = builder.finish();
        let holds: Vec<_> = execution.holds.iter().map(|hold| (hold.site.0, hold.start, hold.end)).collect();
        assert_eq!(holds, [(1, 10, 20), (2, 20, 30), (3, 40, 50), (4, 90, 95)]);
        assert_eq!(execution.anomalies.late_releases.count, 0);
    }
}
