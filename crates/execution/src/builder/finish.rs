//! Completes an execution: closes what is open, joins tables, numbers rows, chooses workers.

use super::ExecutionBuilder;
use crate::doubtful_cpus;
use crate::splice::Splice;
use crate::storing::Stored;
use crate::task_tables::TaskTables;
use crate::{
    Catalog, Execution, Hold, Joined, Loss, NO_NUMBER, NO_TIME, Numbers, Section, State, ThreadIndex,
    ThreadKind, Track, Uncertain, WorkShare,
};
use rustc_hash::FxHashSet;
use taskscope_event::models::wait;

impl ExecutionBuilder {
    /// The execution, with every open section, hold and share closed. A thread's state at its last event lasts to its
    /// end. If its end is not in the trace, it lasts to the last event of its process, as a killed program's threads
    /// all stop together.
    pub fn finish(self) -> Execution {
        self.finish_joining(|_| Joined::default())
    }

    /// Finishes, and joins constructs that the compiler has copied.
    pub fn finish_joining(self, joined: impl FnOnce(&Catalog) -> Joined) -> Execution {
        self.finish_doubting(joined, |_| Vec::new())
    }

    /// As [`ExecutionBuilder::finish_joining`]; `doubts` adds further uncertain intervals of threads, once their tracks
    /// are complete.
    pub fn finish_doubting(
        mut self,
        joined: impl FnOnce(&Catalog) -> Joined,
        doubts: impl FnOnce(&Execution) -> Vec<Uncertain>,
    ) -> Execution {
        for thread in self.execution.threads.iter().filter(|t| t.first != NO_TIME) {
            let process = &mut self.execution.processes[thread.process.index()];
            process.first = process.first.min(thread.first);
            process.last = process.last.max(thread.last);
        }
        for process in &mut self.execution.processes {
            process.first = process.first.min(process.last);
        }
        for (number, (thread, open)) in self.execution.threads.iter().zip(&mut self.open).enumerate() {
            if !open.shows.is_empty() || thread.first == NO_TIME {
                continue;
            }
            let last = self.execution.processes[thread.process.index()].last;
            if open.newest.is_empty() {
                let storing = &mut self.storing;
                open.newest
                    .set(thread.first, Section::of(State::Unknown), |rows| storing.store(number, rows));
            }
            open.newest.close(if thread.ended { open.newest.end() } else { last });
            let end = open.newest.end();
            if let Some((start, events)) = open.blind {
                let thread = ThreadIndex::of(number);
                self.execution.losses.push(Loss { thread, start, end: end.max(start), events });
            }
            self.execution
                .works
                .extend(open.works.drain(..).map(|w| WorkShare { end: end.max(w.start), ..w }));
        }
        let mut joined = joined(&self.execution.catalog);
        // Each copy of a call has paths of its own.
        joined.leave(self.samples.samples_mut().call_paths.keys().map(|(_, site)| *site));
        // Locks are taken by guards, with the same line in each function that they are inlined into.
        let holds = self.execution.holds.iter().chain(self.holders.iter().flatten());
        let is_lock = |hold: &&Hold| {
            let object = self.execution.catalog.objects.get(hold.object.index());
            object.is_some_and(|object| matches!(object.kind, wait::kind::LOCK | wait::kind::NEST_LOCK))
        };
        joined.leave(holds.filter(is_lock).map(|hold| hold.site));
        let last_of = |thread: ThreadIndex| {
            let row = self.execution.threads.get(thread.index());
            row.map_or(0, |row| self.execution.processes[row.process.index()].last)
        };
        self.execution.thread_waits = std::mem::take(&mut self.thread_waits).finish(last_of, |thread| {
            let row = self.execution.threads.get(thread.index())?;
            row.ended.then_some(row.last)
        });
        // So are the calls in which threads wait for each other.
        joined.leave(self.execution.thread_waits.sites());
        // Calls of several functions may be in one line.
        joined.leave(self.messages.call_sites());
        self.finish_stored(&joined);
        for hold in self.holders.into_iter().flatten() {
            // Locks held at a thread's end stay held.
            let process = self.execution.threads[hold.thread.index()].process;
            let end = self.execution.processes[process.index()].last.max(hold.start);
            self.execution.holds.to_mut().push(Hold { end, ..hold });
        }
        self.execution.join_tables(&joined);
        let reported = doubts(&self.execution);
        self.execution.uncertain.extend(reported);
        doubtful_cpus::doubt_cpus(&mut self.execution, &self.open);
        // Arrives in order of time per thread only.
        self.execution.uncertain.sort_by_key(|uncertain| uncertain.end);
        self.execution.samples = self.samples.finish();
        self.execution.choose_workers(&self.beside);
        let (threads, processes) = (&self.execution.threads, &self.execution.processes);
        let process_of = |thread: ThreadIndex| threads[thread.index()].process;
        let last = |thread: ThreadIndex| processes[process_of(thread).index()].last;
        self.execution.communication = self.messages.finish(process_of, last);
        self.execution
    }

    /// Takes the stored tables of tasks, and tracks, when the sections of all threads are known.
    fn finish_stored(&mut self, joined: &Joined) {
        for (number, open) in self.open.iter().enumerate() {
            self.storing.store(number, open.newest.rows());
        }
        let Stored { tracks, activities, file, tasks } = std::mem::take(&mut self.storing).finish(joined);
        let open_threads = self.execution.threads.iter_mut().zip(&self.open);
        for ((thread, open), columns) in open_threads.zip(tracks) {
            // Those of CPUs are spliced when all others are there.
            if open.shows.is_empty() {
                thread.track = Track::of(columns.finish(open.newest.end(), &activities, file.as_ref()));
            }
        }
        self.execution.activities = activities;
        self.splice_cpus();
        let TaskTables { tasks, queued, dependences, wait_dependences, detached, .. } = tasks;
        self.execution.tasks = tasks;
        self.number();
        self.execution.queued = queued;
        self.execution.dependences = dependences.into();
        self.execution.wait_dependences = wait_dependences;
        self.execution.detached = detached;
    }

    /// Gives tasks and regions the numbers by which users know them.
    fn number(&mut self) {
        let Numbers { mut tasks, regions } = std::mem::take(&mut self.numbers);
        tasks.resize(self.execution.tasks.len(), NO_NUMBER);
        if tasks.iter().any(|number| *number != NO_NUMBER) {
            self.execution.tasks.number = tasks.into();
        }
        for (region, number) in self.execution.regions.iter_mut().zip(regions) {
            region.number = number;
        }
    }

    /// Builds the tracks of CPUs from those of their threads.
    fn splice_cpus(&mut self) {
        for number in 0..self.open.len() {
            let open = &self.open[number];
            if open.shows.is_empty() {
                continue;
            }
            let thread = &self.execution.threads[number];
            let last = self.execution.processes[thread.process.index()].last;
            let end = if thread.ended { open.newest.end() } else { last };
            let Execution { threads, activities, .. } = &self.execution;
            let columns = |thread: ThreadIndex| threads.get(thread.index())?.track.shared_columns();
            let splice = Splice::of(&open.shows, end, activities, columns);
            self.execution.threads[number].track = Track::spliced(splice);
        }
    }
}

impl Execution {
    /// Chooses the workers. A worker of OpenMP is a thread that ever was in a team. A process without such threads has
    /// one worker: its initial thread. If the CPUs of a loom are workers, none of its threads is; nor is one of `beside`.
    fn choose_workers(&mut self, beside: &FxHashSet<ThreadIndex>) {
        for thread in beside {
            self.threads[thread.index()].worker = false;
        }
        let holders = self.processes.iter().filter(|process| process.has_cpus);
        let looms_with_cpus: FxHashSet<&str> = holders.map(|process| process.loom.as_str()).collect();
        for (process, mut own) in self.processes.iter().zip(self.threads_by_process()) {
            if looms_with_cpus.contains(process.loom.as_str()) {
                continue;
            }
            own.retain(|thread| self.threads[thread.index()].events > 0 && !beside.contains(thread));
            let row = |thread: &&ThreadIndex| &self.threads[thread.index()];
            if own.iter().any(|thread| row(&thread).worker) {
                continue;
            }
            // The initial thread by its role, else by its id, else the first that did something.
            let initial = (own.iter().find(|thread| row(thread).kind == ThreadKind::Initial))
                .or_else(|| own.iter().find(|thread| row(thread).tid == process.pid))
                .or_else(|| own.iter().min_by_key(|thread| row(thread).first));
            if let Some(initial) = initial {
                self.threads[initial.index()].worker = true;
            }
        }
    }
}
