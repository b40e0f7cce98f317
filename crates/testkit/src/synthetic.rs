//! Executions of any size from a seed: teams of threads that create, run and wait for tasks.
//!
//! The same [`Shape`] gives the same execution on every machine. Time is uneven on purpose (bursts of
//! short tasks, rare long waits, a loss now and then), because even time hides mistakes in zooming.

use crate::dice::Dice;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use taskscope_event::models::wait::kind;
use taskscope_execution::{
    Change, Definition, Execution, ExecutionBuilder, Numbers, ObjectIndex, Observer, Place, ProcessIndex,
    RegionIndex, Section, SiteIndex, State, TaskIndex, ThreadIndex, ThreadKind, TypeIndex, TypeKind,
};

/// Size of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Threads in all.
    pub threads: usize,
    /// Threads of a process.
    pub team: usize,
    /// Processes of a node.
    pub processes_of_node: usize,
    /// Events in all, about.
    pub events: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Names of the task types of a synthetic execution; one holds markup, as labels may.
pub const TYPES: [&str; 6] = ["potrf", "trsm", "syrk", "gemm", "halo <b>exchange</b>", "checkpoint"];

/// Mean body times of the types, nanoseconds.
const BODY_NS: [u64; 6] = [40_000, 12_000, 9_000, 6_000, 25_000, 2_000_000];

/// Builds the execution of a shape.
pub fn execution(shape: Shape) -> Execution {
    let mut generator = Generator::new(shape);
    generator.run();
    let regions = vec![1; generator.tasks_of.len()];
    generator.builder.numbers(Numbers { tasks: generator.numbers, regions });
    generator.builder.finish()
}

struct Worker {
    process: usize,
    /// Its open tasks, innermost last.
    task: Option<TaskIndex>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Starts,
    Looks,
    Runs,
    Waits,
    WantsLock,
    HasLock,
}

struct Generator {
    shape: Shape,
    builder: ExecutionBuilder,
    workers: Vec<Worker>,
    /// Tasks of each process that have not started, with their types.
    ready: Vec<Vec<(TaskIndex, usize)>>,
    dice: Dice,
    next_task: u32,
    /// Tasks of each process, counted from 1 in each, as runtimes do.
    tasks_of: Vec<u64>,
    numbers: Vec<u64>,
    events: u64,
    longest_at: u64,
}

impl Generator {
    fn new(shape: Shape) -> Generator {
        let mut builder = ExecutionBuilder::new();
        let team = shape.team.max(1);
        let processes = shape.threads.div_ceil(team);
        let mut workers = Vec::with_capacity(shape.threads);
        for process in 0..processes {
            let node = process / shape.processes_of_node.max(1);
            let pid = 1000 + process as i64;
            let index = builder.add_process(&format!("node{node}.{pid}"), pid);
            define(&mut builder, index, process);
            for number in 0..team.min(shape.threads - process * team) {
                builder.add_thread(index, pid * 1000 + number as i64);
                workers.push(Worker { process, task: None, phase: Phase::Starts });
            }
        }
        Generator {
            shape,
            builder,
            workers,
            ready: vec![Vec::new(); processes],
            dice: Dice::new(shape.seed),
            next_task: 0,
            tasks_of: vec![0; processes],
            numbers: Vec::new(),
            events: 0,
            longest_at: 0,
        }
    }

    /// Runs the worker with the earliest turn, again and again.
    fn run(&mut self) {
        let mut turns: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::with_capacity(self.workers.len());
        for thread in 0..self.workers.len() as u32 {
            turns.push(Reverse((1_000_000 + self.dice.below(200_000), thread)));
        }
        while let Some(mut turn) = turns.peek_mut() {
            let Reverse((at, thread)) = *turn;
            if self.events >= self.shape.events {
                break;
            }
            let pause = self.step(at, ThreadIndex(thread));
            *turn = Reverse((at + pause.max(1), thread));
            self.longest_at = at;
        }
        let end = self.longest_at + 10_000;
        for thread in 0..self.workers.len() as u32 {
            self.change(ThreadIndex(thread), end, Change::ThreadEnds);
        }
    }

    fn change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        self.builder.event(thread, at);
        self.builder.change(thread, at, change);
        self.events += 1;
    }

    fn section(&self, worker: usize, state: State, place: Place) -> Section {
        let process = self.workers[worker].process as u32;
        let task = self.workers[worker].task.unwrap_or(TaskIndex::NONE);
        Section { state, place, task, region: RegionIndex(process), object: ObjectIndex::NONE }
    }

    /// One thing that a worker does at `at`; for how long.
    fn step(&mut self, at: u64, thread: ThreadIndex) -> u64 {
        let worker = thread.index();
        let process = self.workers[worker].process;
        let site = |number: u32| SiteIndex(process as u32 * SITES + number);
        match self.workers[worker].phase {
            Phase::Starts => {
                let region = RegionIndex(process as u32);
                self.change(thread, at, Change::ThreadIs(ThreadKind::Worker));
                if worker.is_multiple_of(self.shape.team.max(1)) {
                    let (parent, requested) = (RegionIndex::NONE, self.shape.team as u32);
                    self.change(
                        thread,
                        at,
                        Change::RegionBegins { region, parent, site: site(0), requested },
                    );
                }
                self.change(thread, at, Change::ThreadWorks);
                let section = self.section(worker, State::ImplicitTask, Place::site(site(0)));
                self.change(thread, at, Change::Becomes(section));
                self.workers[worker].phase = Phase::Looks;
                3_000
            }
            Phase::Looks => self.look(at, thread),
            Phase::Runs => {
                let task = self.workers[worker].task.take().unwrap_or(TaskIndex::NONE);
                self.change(thread, at, Change::TaskEnds { task });
                let section = self.section(worker, State::Scheduling, Place::site(site(1)));
                self.change(thread, at, Change::Becomes(section));
                self.workers[worker].phase = Phase::Looks;
                200 + self.dice.below(600)
            }
            Phase::Waits => {
                let section = self.section(worker, State::Scheduling, Place::site(site(1)));
                self.change(thread, at, Change::Becomes(section));
                self.workers[worker].phase = Phase::Looks;
                300
            }
            Phase::WantsLock => {
                let object = ObjectIndex(process as u32);
                self.change(thread, at, Change::Acquires { object, site: site(3) });
                let section = self.section(worker, State::Task, Place::task_type(self.ty(process, 3)));
                self.change(thread, at, Change::Becomes(section));
                self.workers[worker].phase = Phase::HasLock;
                500 + self.dice.below(3_000)
            }
            Phase::HasLock => {
                self.change(thread, at, Change::Releases { object: ObjectIndex(process as u32) });
                self.workers[worker].phase = Phase::Runs;
                1_000
            }
        }
    }

    /// Creates tasks, starts one, waits, or loses events.
    fn look(&mut self, at: u64, thread: ThreadIndex) -> u64 {
        let worker = thread.index();
        let process = self.workers[worker].process;
        let first_of_team = worker.is_multiple_of(self.shape.team.max(1));
        if self.dice.below(400_000) == 0 {
            let events = 1 + self.dice.below(500);
            self.change(thread, at, Change::Lost { events, lasts: false });
        }
        if self.ready[process].len() < 4 * self.shape.team && (first_of_team || self.dice.below(10) < 7) {
            let number = self.next_type();
            let (task, ty) = (TaskIndex(self.next_task), self.ty(process, number));
            self.next_task += 1;
            self.tasks_of[process] += 1;
            self.numbers.push(self.tasks_of[process]);
            let (parent, region) = (TaskIndex::NONE, RegionIndex(process as u32));
            self.change(thread, at, Change::TaskCreated { task, ty, parent, region });
            if number == 3 || number == 1 {
                for kind in [1, 2] {
                    let address = 0x1000 + 64 * self.dice.below(64);
                    self.change(thread, at, Change::TaskDepends { task, address, kind });
                }
            }
            self.ready[process].push((task, number));
        }
        // First come, first served, but for a few: so that queues have an order and a spread.
        let queue = &mut self.ready[process];
        let chosen = if queue.is_empty() { None } else { Some(queue.swap_remove(queue.len() / 2)) };
        match chosen {
            Some((task, number)) if self.dice.below(50) > 0 => {
                self.workers[worker].task = Some(task);
                self.change(thread, at, Change::TaskStarts { task });
                let section = self.section(worker, State::Task, Place::task_type(self.ty(process, number)));
                self.change(thread, at, Change::Becomes(section));
                self.workers[worker].phase = Phase::Runs;
                let body = spread(&mut self.dice, BODY_NS[number]);
                if number == 3 && self.dice.below(60) == 0 {
                    self.workers[worker].phase = Phase::WantsLock;
                    let mut section = self.section(
                        worker,
                        State::LockWait,
                        Place::site(SiteIndex(process as u32 * SITES + 3)),
                    );
                    section.object = ObjectIndex(process as u32);
                    self.change(thread, at + 50, Change::Becomes(section));
                    return 100 + spread(&mut self.dice, 4_000);
                }
                body
            }
            chosen => {
                self.ready[process].extend(chosen);
                let state = if self.dice.below(3) == 0 { State::Taskwait } else { State::Barrier };
                let site = SiteIndex(process as u32 * SITES + 2);
                let section = self.section(worker, state, Place::site(site));
                self.change(thread, at, Change::Becomes(section));
                self.workers[worker].phase = Phase::Waits;
                // One wait in five hundred is a hundred times longer than the others.
                let mean = if self.dice.below(500) == 0 { 400_000 } else { 4_000 };
                spread(&mut self.dice, mean)
            }
        }
    }

    fn ty(&self, process: usize, number: usize) -> TypeIndex {
        TypeIndex((process * TYPES.len() + number) as u32)
    }

    fn next_type(&mut self) -> usize {
        match self.dice.below(1000) {
            0..30 => 0,
            30..200 => 1,
            200..350 => 2,
            350..950 => 3,
            950..999 => 4,
            _ => 5,
        }
    }
}

/// Sites of a process: region, scheduler, wait, lock, then one for each type.
const SITES: u32 = 4 + TYPES.len() as u32;

fn define(builder: &mut ExecutionBuilder, process: ProcessIndex, number: usize) {
    for site in 0..SITES {
        let address = 0x40_0000 + 16 * u64::from(site);
        builder.define(Definition::Site {
            site: SiteIndex(number as u32 * SITES + site),
            number: site + 1,
            process,
            address,
            at: 0,
        });
    }
    for (i, label) in TYPES.iter().enumerate() {
        let ty = TypeIndex((number * TYPES.len() + i) as u32);
        builder.define(Definition::Type { ty, process, label });
        let site = SiteIndex(number as u32 * SITES + 4 + i as u32);
        builder.define(Definition::TypeSite { ty, site, kind: TypeKind::Task { flags: 0x4 } });
    }
    let object = ObjectIndex(number as u32);
    builder.define(Definition::Object { object, process, id: 0x60_1000, kind: kind::LOCK });
}

/// About `mean`, from a tenth to some eight times it, more often short than long.
fn spread(dice: &mut Dice, mean: u64) -> u64 {
    let octaves = dice.below(60) + dice.below(60);
    mean / 10 + (mean >> 4) * (1 << (octaves / 17)) / 2 + dice.below(mean / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_shape_gives_the_same_execution() {
        let shape = Shape { threads: 8, team: 4, processes_of_node: 2, events: 20_000, seed: 5 };
        let (one, two) = (execution(shape), execution(shape));
        assert_eq!(one.threads.len(), 8);
        assert_eq!(one.processes.len(), 2);
        let events: u64 = one.threads.iter().map(|t| t.events).sum();
        assert!((20_000..20_100).contains(&events), "{events}");
        for (a, b) in one.threads.iter().zip(&two.threads) {
            assert!(a.track.spans().eq(b.track.spans()));
            assert!(a.track.len() > 500, "{}", a.track.len());
        }
        assert!(one.anomalies.by_name.is_empty(), "{:?}", one.anomalies);
    }
}
