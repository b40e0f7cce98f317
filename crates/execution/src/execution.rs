//! The states of a run over time, in columns.

use crate::anomalies::Anomalies;
use crate::messages::Communication;
use crate::samples::Samples;
use crate::track_columns::TakesActivities;
use crate::uncertain::Uncertain;
use crate::{
    Activities, Catalog, Column, CpuSet, Dependence, Hold, NO_TIME, OffCpu, OsSource, OsTotals, Process,
    ProcessIndex, Queued, Region, RegionIndex, RuntimeRole, Section, Span, State, SystemTime, TaskIndex,
    Tasks, TeamLimits, ThreadIndex, ThreadKind, ThreadWaits, Track, TrackSpans, WaitDependence, WorkShare,
};
use std::sync::Arc;

/// A thread and its time.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its process.
    pub process: ProcessIndex,
    /// Thread id.
    pub tid: i64,
    /// Name given by the program; empty without one. Any text: escape it for display.
    pub name: String,
    /// Its role in the runtime.
    pub kind: ThreadKind,
    /// Its role in Nanos6 or nOS-V, if recorded.
    pub role: Option<RuntimeRole>,
    /// Whether it counts in the capacity of its process.
    pub worker: bool,
    /// Whether its time is selected. The others are kept because they may have made selected ones wait.
    pub selected: bool,
    /// Whether its end is in the trace.
    pub ended: bool,
    /// Time of its first event.
    pub first: u64,
    /// Time of its last event, or a later one at which it was still there.
    pub last: u64,
    /// Time of its last event.
    pub last_event: u64,
    /// Since when it used no CPU and waited in the kernel, until the end of its process; known of threads that did not end.
    pub asleep_since: Option<u64>,
    /// Number of its events.
    pub events: u64,
    /// Events that its recorder says were lost.
    pub lost_events: u64,
    /// Source of its times off the CPU.
    pub os_source: OsSource,
    /// The kernel's sums of it over the recording.
    pub os_totals: OsTotals,
    /// The CPUs that it may use, most of its time; `None` if not known.
    pub cpus: Option<CpuSet>,
    /// Its sections, from its first event to its end.
    pub track: Track,
}

impl Thread {
    /// The runtime's word for the thread, or its kind.
    pub fn role_name(&self) -> &'static str {
        self.role.map_or(self.kind.name(), RuntimeRole::name)
    }

    /// Whether a timeline has a row of it: CPUs, threads with events, and selected ones that are there in a part of a run in which they
    /// have no event, as a thread in one long task.
    pub fn has_row(&self) -> bool {
        self.kind == ThreadKind::Cpu || self.events > 0 || (self.selected && self.first != NO_TIME)
    }

    pub(crate) fn new(process: ProcessIndex, tid: i64) -> Thread {
        Thread {
            process,
            tid,
            name: String::new(),
            kind: ThreadKind::Unknown,
            role: None,
            worker: false,
            selected: true,
            ended: false,
            first: NO_TIME,
            last: 0,
            last_event: 0,
            asleep_since: None,
            events: 0,
            lost_events: 0,
            os_source: OsSource::Unknown,
            os_totals: OsTotals::default(),
            cpus: None,
            track: Track::default(),
        }
    }
}

/// A stretch of a thread's time in which events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The thread.
    pub thread: ThreadIndex,
    /// Time of the last event before it.
    pub start: u64,
    /// Time of the first event after it; if recording had to stop, the thread's end.
    pub end: u64,
    /// Number of events.
    pub events: u64,
}

/// A part of a wait for a lock that reaches beyond a part of the time, with its holder as of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutWait {
    /// The thread that waits.
    pub thread: ThreadIndex,
    /// Its first nanosecond.
    pub start: u64,
    /// The first nanosecond after it.
    pub end: u64,
    /// The holder to blame; none if the lock was free.
    pub holder: Option<Hold>,
}

/// A part of a thread's wait in a device construct, in which the device ran something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetWaitPart {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its first nanosecond.
    pub start: u64,
    /// The first nanosecond after it.
    pub end: u64,
    /// The running operation: row of [`Catalog::operations`].
    pub operation: u32,
}

/// The run that an execution is a part of.
#[derive(Clone, Debug)]
pub struct PartOf {
    /// All of it, with the time of all threads.
    pub whole: Arc<Execution>,
    /// Begin (included) and end (not included) of the part, nanoseconds of the trace's clock.
    pub time: (u64, u64),
    /// The numbers in the whole of the part's tasks and regions; none if they are the same.
    pub(crate) numbers: Option<(Vec<TaskIndex>, Vec<RegionIndex>)>,
}

/// Everything that is known of a run.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// Processes, by [`ProcessIndex`].
    pub processes: Vec<Process>,
    /// Threads, by [`ThreadIndex`].
    pub threads: Vec<Thread>,
    /// Names and origins.
    pub catalog: Catalog,
    /// The activities of threads, by their numbers in tracks.
    pub activities: Arc<Activities>,
    /// Task instances.
    pub tasks: Tasks,
    /// Parallel region instances, by [`RegionIndex`].
    pub regions: Vec<Region>,
    /// Limits under which teams were smaller than requested: of one region per place, by time on each thread.
    pub team_limits: Vec<(RegionIndex, TeamLimits)>,
    /// Shares of worksharing constructs, by their ends.
    pub works: Vec<WorkShare>,
    /// Holders of objects, sorted by end.
    pub holds: Column<Hold>,
    /// Parts of the waits for locks that the borders of a part of the time cut, by thread and time; empty of a whole.
    pub cut_waits: Vec<CutWait>,
    /// Running operations of devices while threads waited in device constructs, by thread and time; only if queues of
    /// devices are recorded.
    pub target_waits: Vec<TargetWaitPart>,
    /// Dependences of tasks, by creation.
    pub dependences: Column<Dependence>,
    /// Dependences of `taskwait depend`, in the order of each thread.
    pub wait_dependences: Vec<WaitDependence>,
    /// Tasks that end when their detach events are fulfilled, not with their bodies.
    pub detached: Vec<TaskIndex>,
    /// Intervals in which tasks of instrumented programs were ready and did not run, by the ends.
    pub queued: Vec<Queued>,
    /// Intervals of lost events, sorted by end.
    pub losses: Vec<Loss>,
    /// Times in which threads could run and had no CPU, by thread and time; they do not overlap.
    pub off_cpu: Vec<OffCpu>,
    /// Times in which threads were blocked in the kernel, by thread and time; they overlap neither each other nor
    /// [`off_cpu`](Execution::off_cpu).
    pub blocked: Vec<OffCpu>,
    /// Times of workers that the system took, by thread and time; they do not overlap.
    pub system_time: Vec<SystemTime>,
    /// Communication between processes.
    pub communication: Communication,
    /// Waits of threads for each other outside of a runtime's constructs.
    pub thread_waits: ThreadWaits,
    /// Uncertain intervals.
    pub uncertain: Vec<Uncertain>,
    /// Numbers of anomalies.
    pub anomalies: Anomalies,
    /// Whether a filter removed events: states and culprits follow from the others.
    pub filtered: bool,
    /// Samples of call stacks, and creation paths.
    pub samples: Samples,
    /// The run that this is a part of, by time or threads; none of a whole run.
    pub part: Option<PartOf>,
}

impl Execution {
    /// Whether samples are the only source of activity, as for a program without OpenMP. It is a fact of the whole run of the
    /// selected workers, or of the selected threads if none is a worker: parts of a run are judged alike.
    pub fn knows_samples_alone(&self) -> bool {
        let has_workers = self.selected_workers().next().is_some();
        let threads = self.threads.iter().zip(&self.whole().threads);
        let threads = threads.filter(|(thread, _)| thread.selected && thread.worker == has_workers);
        let mut states = threads.flat_map(|(_, whole)| whole.track.spans()).map(|span| span.section.state);
        // A thread of the program may outlive the initial one.
        let mut is_not_known = false;
        let is_silent = states.all(|state| {
            is_not_known |= state == State::Unknown;
            matches!(state, State::Unknown | State::NotStarted | State::Ended)
        });
        is_silent && is_not_known
    }

    /// Time of the first and after the last event of the trace; zero for an empty trace.
    pub fn range(&self) -> (u64, u64) {
        let first = self.processes.iter().filter(|p| p.last > 0).map(|p| p.first).min().unwrap_or(0);
        let last = self.processes.iter().map(|p| p.last).max().unwrap_or(0);
        (first, last)
    }

    /// The run that this is a part of, or itself: the basis for deciding causes.
    pub fn whole(&self) -> &Execution {
        self.part.as_ref().map_or(self, |part| &part.whole)
    }

    /// Begin (included) and end (not included) of this part of the run; all time of a whole one.
    pub fn part_of_time(&self) -> (u64, u64) {
        self.part.as_ref().map_or((0, u64::MAX), |part| part.time)
    }

    /// The number of a task in the whole run. There its creators are known also if they ended before the part.
    pub fn task_of_whole(&self, task: TaskIndex) -> TaskIndex {
        match self.part.as_ref().and_then(|part| part.numbers.as_ref()) {
            Some((tasks, _)) => tasks.get(task.index()).copied().unwrap_or(TaskIndex::NONE),
            None => task,
        }
    }

    /// The number of a region in the whole run.
    pub fn region_of_whole(&self, region: RegionIndex) -> RegionIndex {
        match self.part.as_ref().and_then(|part| part.numbers.as_ref()) {
            Some((_, regions)) => regions.get(region.index()).copied().unwrap_or(RegionIndex::NONE),
            None => region,
        }
    }

    /// Makes it a part of the run, from `begin` to `end`, before anything is cut off.
    pub(crate) fn become_part(&mut self, begin: u64, end: u64) {
        match &mut self.part {
            Some(part) => {
                let begin = part.time.0.max(begin);
                part.time = (begin, part.time.1.min(end).max(begin));
            }
            None => {
                let whole = Arc::new(self.clone());
                self.part = Some(PartOf { whole, time: (begin, end), numbers: None });
            }
        }
    }

    /// Asks about the time of some threads only, one value a thread.
    pub fn select(&mut self, selected: &[bool]) {
        self.become_part(0, u64::MAX);
        for (thread, selected) in self.threads.iter_mut().zip(selected) {
            thread.selected = *selected;
        }
    }

    /// The threads of each process, in order.
    pub fn threads_by_process(&self) -> Vec<Vec<ThreadIndex>> {
        let mut threads = vec![Vec::new(); self.processes.len()];
        for (thread, row) in self.threads.iter().enumerate() {
            threads[row.process.index()].push(ThreadIndex::of(thread));
        }
        threads
    }

    /// Number of processes that ran, without the holders of CPUs.
    pub fn process_count(&self) -> usize {
        self.processes.iter().filter(|process| !process.has_cpus).count()
    }

    /// The process in which a task has its number: that of its creator, else of the thread that ran it.
    pub fn process_of_task(&self, task: TaskIndex) -> Option<ProcessIndex> {
        let Tasks { creator, runner, .. } = &self.tasks;
        let thread = |column: &[ThreadIndex]| {
            let thread = column.get(task.index()).copied().filter(|thread| thread.is_some())?;
            self.threads.get(thread.index())
        };
        thread(creator).or_else(|| thread(runner)).map(|thread| thread.process)
    }

    /// The workers, in the order of threads.
    pub fn workers(&self) -> impl Iterator<Item = (ThreadIndex, &Thread)> {
        let all = self.threads.iter().enumerate().map(|(i, t)| (ThreadIndex(i as u32), t));
        all.filter(|(_, t)| t.worker)
    }

    /// The selected workers, in the order of threads.
    pub fn selected_workers(&self) -> impl Iterator<Item = (ThreadIndex, &Thread)> {
        self.workers().filter(|(_, t)| t.selected)
    }

    /// Whether the time of this thread is selected; true if no thread is known.
    pub fn is_selected(&self, thread: ThreadIndex) -> bool {
        self.threads.get(thread.index()).is_none_or(|thread| thread.selected)
    }

    /// Puts threads in the order of their processes' ranks, jobs one after the other, those of processes without
    /// rank last; else they stay as they are. (Processes are found in the order of their ids, which launchers give as they like.)
    pub fn sort_by_rank(&self, threads: &mut [ThreadIndex]) {
        let ranks = &self.communication.ranks;
        threads.sort_by_key(|thread| {
            let rank = self.threads.get(thread.index()).and_then(|row| ranks.get(&row.process.0));
            rank.map_or((true, 0, 0), |rank| (false, rank.job, rank.rank))
        });
    }

    /// The thread's time over the whole run of its process: `not_started` before its first event, `ended` after its
    /// end. Time taken by the system is in the state of its cause, and time blocked in code of the program in
    /// [`State::Blocked`]. The spans tile the process's time exactly.
    pub fn spans_of_run(&self, thread: ThreadIndex) -> impl Iterator<Item = Span> + '_ {
        self.shown_spans_of_run(thread).map(|cut| cut.span)
    }

    /// The track without off-CPU times.
    pub(crate) fn track_of_run(&self, thread: ThreadIndex) -> TrackOfRun<'_> {
        let [before, after] =
            self.edges_of_run(thread).map(|edge| Some(edge).filter(|edge| edge.end > edge.start));
        TrackOfRun { before, spans: self.threads[thread.index()].track.spans(), after }
    }

    /// The thread's time in the run of its process before its first event and after its end; both may be empty.
    pub fn edges_of_run(&self, thread: ThreadIndex) -> [Span; 2] {
        let thread = &self.threads[thread.index()];
        let &Process { first, last, .. } = &self.processes[thread.process.index()];
        let edge =
            |start: u64, end: u64, state| Span { start, end: end.max(start), section: Section::of(state) };
        // The track of a thread that is absent in a part of the run is before that part or after it.
        let within = |at: u64| at.clamp(first, last.max(first));
        let before = edge(first, within(thread.track.start()), State::NotStarted);
        let after = edge(within(thread.track.end()), last, State::Ended);
        [before, after]
    }
}

/// A thread's sections, with the time before and after them.
pub(crate) struct TrackOfRun<'a> {
    before: Option<Span>,
    spans: TrackSpans<'a>,
    after: Option<Span>,
}

impl TrackOfRun<'_> {
    /// As [`CutSpans::hand_over_activities`](crate::CutSpans::hand_over_activities).
    #[inline(always)]
    pub(crate) fn hand_over_activities(&mut self, to: &mut impl TakesActivities) -> bool {
        hand_over_edge(self.before.take(), to)
            && self.spans.hand_over_activities(to)
            && hand_over_edge(self.after.take(), to)
    }
}

#[inline(never)]
fn hand_over_edge(edge: Option<Span>, to: &mut impl TakesActivities) -> bool {
    edge.is_none_or(|Span { start, section: Section { state, place, .. }, .. }| to.other(start, state, place))
}

impl Iterator for TrackOfRun<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        // Sections without time are not shown.
        loop {
            let span = match self.before.take() {
                Some(before) => before,
                None => match self.spans.next() {
                    Some(span) => span,
                    None => return self.after.take(),
                },
            };
            if span.end > span.start {
                return Some(span);
            }
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, Span) -> B>(self, init: B, mut f: F) -> B {
        let spans = self.before.into_iter().chain(self.spans).chain(self.after);
        spans.filter(|span| span.end > span.start).fold(init, &mut f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExecutionBuilder;
    use crate::messages::Rank;

    #[test]
    fn threads_go_by_rank_and_stay_in_order_within_a_process() {
        let mut builder = ExecutionBuilder::new();
        for pid in 10..14 {
            let process = builder.add_process("host", pid);
            builder.add_thread(process, pid);
            builder.add_thread(process, pid + 100);
        }
        let mut execution = builder.finish();
        let all = |execution: &Execution| {
            let mut threads: Vec<ThreadIndex> = (0..8).map(ThreadIndex).collect();
            execution.sort_by_rank(&mut threads);
            threads.into_iter().map(|thread| execution.threads[thread.index()].tid).collect::<Vec<_>>()
        };
        assert_eq!(all(&execution), [10, 110, 11, 111, 12, 112, 13, 113]);
        // The first process is the launcher, the next ones are ranks 2, 0 and 1.
        for (process, rank) in [(1, 2), (2, 0), (3, 1)] {
            execution.communication.ranks.insert(process, Rank { job: 7, rank, ranks: 3 });
        }
        assert_eq!(all(&execution), [12, 112, 13, 113, 11, 111, 10, 110]);
    }
}
