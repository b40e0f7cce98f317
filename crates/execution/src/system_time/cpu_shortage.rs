//! Sums of the time that workers had no CPU.

use super::join_intervals;
use crate::intervals::{Times, add_parts, overlap_ns};
use crate::{Execution, ThreadIndex, ThreadKind};

/// Time of workers without a CPU, by loss and by the thread without one; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShortage {
    /// Lost by workers that could run and had no CPU.
    pub own_ns: u64,
    /// Lost by workers that wait (asleep, or on a CPU) while those that they wait for have no CPU, or all CPUs are taken.
    pub others_ns: u64,
    /// Not lost to the system: workers that could run and had no CPU, waiting meanwhile for others that worked.
    pub waiting_ns: u64,
    /// The part of `own_ns` and `waiting_ns` in which a signal had stopped the process: no `run_delay`.
    pub stopped_ns: u64,
}

impl CpuShortage {
    /// The time lost to the system.
    pub fn lost_ns(&self) -> u64 {
        self.own_ns + self.others_ns
    }

    /// Time in which workers could run and had no CPU, as the kernel's `run_delay` counts it.
    pub fn runnable_ns(&self) -> u64 {
        (self.own_ns + self.waiting_ns).saturating_sub(self.stopped_ns)
    }
}

impl Execution {
    /// Time of all workers without a CPU.
    pub fn cpu_shortage(&self) -> CpuShortage {
        let mut shortage = CpuShortage::default();
        for (thread, _) in self.workers() {
            let runnable = self.runnable_times(thread);
            let lost = self.system_time_of(thread).iter().filter(|part| part.cause.is_off_cpu());
            let own = overlap_ns(&runnable, lost.clone().map(|part| (part.start, part.end)));
            let total = |times: &Times| times.iter().map(|time| time.1 - time.0).sum::<u64>();
            shortage.own_ns += own;
            shortage.others_ns += lost.map(|part| part.end - part.start).sum::<u64>() - own;
            shortage.waiting_ns += total(&runnable) - own;
            shortage.stopped_ns += overlap_ns(&runnable, self.stops_of(thread).into_iter());
        }
        shortage
    }

    /// Times in which a signal had stopped the process of a thread, in order; for a CPU, those of the threads that it
    /// shows, while it does. Empty if not known.
    pub fn stops_of(&self, thread: ThreadIndex) -> Vec<(u64, u64)> {
        if self.threads[thread.index()].kind != ThreadKind::Cpu {
            return self.stops_of_process(thread).to_vec();
        }
        let mut stops = Vec::new();
        for (start, end, on_it) in self.threads_on(thread) {
            add_parts(self.stops_of_process(on_it), (start, end), &mut stops);
        }
        join_intervals(&mut stops);
        stops
    }

    /// Nanoseconds of a thread's time without a CPU in which a signal had stopped its process.
    pub fn stopped_ns(&self, thread: ThreadIndex) -> u64 {
        overlap_ns(&self.runnable_times(thread), self.stops_of(thread).into_iter())
    }

    fn stops_of_process(&self, thread: ThreadIndex) -> &Times {
        let process = &self.processes[self.threads[thread.index()].process.index()];
        process.cpus.as_ref().map_or(&[], |cpus| &cpus.stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, CpuFacts, ExecutionBuilder, Observer, OsSource, Section, State};

    /// Two CPUs as workers. Thread 0 runs on CPU 0 all the time; thread 1 on CPU 1, and thread 2, of another process,
    /// from 60 on. Both processes are stopped for a while.
    fn run_on_cpus() -> Execution {
        let mut builder = ExecutionBuilder::new();
        let processes = [1, 2].map(|pid| builder.add_process("host.1", pid));
        let holder = builder.add_cpus_of("host.1");
        let threads = [0, 0, 1].map(|process| builder.add_thread(processes[process], 7));
        let cpus = [0, 1].map(|number| builder.add_thread(holder, number));
        for cpu in cpus {
            builder.change(cpu, 0, Change::ThreadIs(ThreadKind::Cpu));
            builder.change(cpu, 0, Change::ThreadWorks);
        }
        let states = [State::Task, State::Taskwait, State::Task];
        for (thread, state) in threads.into_iter().zip(states) {
            builder.event(thread, 0);
            builder.change(thread, 0, Change::Becomes(Section::of(state)));
        }
        for (cpu, at, thread) in [(0, 0, 0), (1, 0, 1), (1, 60, 2)] {
            builder.change(cpus[cpu], at, Change::Shows(threads[thread]));
        }
        for thread in threads.into_iter().chain(cpus) {
            builder.event(thread, 100);
            builder.change(thread, 100, Change::ThreadEnds);
        }
        let mut execution = builder.finish();
        for (process, stop) in processes.into_iter().zip([(25, 35), (82, 86)]) {
            let facts = CpuFacts { stopped: vec![stop], ..CpuFacts::default() };
            execution.processes[process.index()].cpus = Some(facts);
        }
        // Thread 1 has no CPU while thread 0 works, and after another one took its place.
        for (thread, off) in threads.into_iter().zip([(20, 40), (30, 70), (80, 95)]) {
            execution.add_off_cpu(thread, OsSource::Switches, &[off], &[]);
        }
        execution.attribute_system_time();
        execution
    }

    #[test]
    fn parts_of_the_time_of_cpus_add_up() {
        let whole = run_on_cpus();
        let workers: Vec<ThreadIndex> = whole.workers().map(|(thread, _)| thread).collect();
        assert_eq!(workers.len(), 2, "CPUs are the workers");
        let numbers = |shortage: CpuShortage| {
            [shortage.own_ns, shortage.others_ns, shortage.waiting_ns, shortage.stopped_ns]
        };
        let expected = whole.cpu_shortage();
        // Of CPU 1 the times of thread 1 until 60: from 30 to 40 it has lost time as CPU 0, whose task has no CPU.
        let lost =
            CpuShortage { own_ns: 20 + 10 + 15, others_ns: 10, waiting_ns: 20, stopped_ns: 10 + 5 + 4 };
        assert_eq!(expected, lost);
        assert_eq!(workers.iter().map(|cpu| whole.stopped_ns(*cpu)).collect::<Vec<_>>(), [10, 9]);
        for at in 1..100 {
            let (mut before, mut after) = (whole.clone(), whole.clone());
            before.cut(0, at);
            after.cut(at, 100);
            let mut sums = numbers(before.cpu_shortage());
            sums.iter_mut().zip(numbers(after.cpu_shortage())).for_each(|(sum, ns)| *sum += ns);
            assert_eq!(sums, numbers(expected), "cut at {at}");
        }
    }
}
