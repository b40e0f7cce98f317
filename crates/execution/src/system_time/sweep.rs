//! One walk over all threads of related processes in the order of time.

use super::activity::{Changes, Doing, Now};
use super::member::Member;
use super::ready::{PoolNumber, ReadyTasks};
use crate::system_cause::{SystemCause, SystemTime};
use crate::{Span, ThreadIndex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// More workers than CPUs, which they share.
pub(super) struct Crowd {
    pub workers: Vec<ThreadIndex>,
    /// Number of CPUs.
    pub cpus: u32,
}

/// A thread in the sweep.
pub(super) struct Lane {
    pub thread: ThreadIndex,
    /// Number of its process within the group.
    pub process: usize,
    /// Number of its crowd.
    pub crowd: Option<usize>,
    pub worker: bool,
    pub now: Now,
    /// The cause of its loss, and the begin.
    pub lost: Option<SystemCause>,
    pub since: u64,
    /// Whether it was among those that lose time to too little work.
    pub kept: bool,
    /// Whether it waits without a CPU for which there is a ready task.
    pub misses: bool,
}

impl Lane {
    /// Sets the loss of its time from `at` on.
    pub fn becomes(&mut self, lost: Option<SystemCause>, at: u64, out: &mut Vec<SystemTime>) {
        if self.lost == lost {
            return;
        }
        if let Some(cause) = self.lost.filter(|_| self.since < at) {
            out.push(SystemTime { thread: self.thread, start: self.since, end: at, cause });
        }
        (self.lost, self.since) = (lost, at);
    }
}

/// Numbers of a process's threads in each activity at an instant.
#[derive(Clone, Copy, Default)]
struct ProcessCounts {
    /// Run code, communicate, or wait for a device.
    working: u32,
    /// Have code to run, and no CPU, or wait in a call for another process that has none.
    could_work: u32,
    /// Wait, could run, and have no CPU.
    woken: u32,
}

impl ProcessCounts {
    /// Whether its waiting workers wait for the system: none works, and at least one would with a CPU.
    fn waits_for_system(self) -> bool {
        self.working == 0 && self.could_work + self.woken > 0
    }
}

/// Numbers of a crowd's workers in each activity at an instant.
#[derive(Clone, Copy, Default)]
struct CrowdCounts {
    cpus: u32,
    /// Run code, or could with a CPU.
    working: u32,
    /// Have a CPU.
    on_cpus: u32,
    waiting: u32,
}

impl CrowdCounts {
    /// Number of waiting workers that lose time to too little work.
    fn kept(&self) -> u32 {
        self.cpus.saturating_sub(self.working).min(self.waiting)
    }
}

/// One walk over all threads of a set of processes in the order of time.
pub(super) struct Sweep<'o> {
    lanes: Vec<Lane>,
    processes: Vec<ProcessCounts>,
    crowds: Vec<CrowdCounts>,
    ready: &'o ReadyTasks,
    /// The next of the changes of ready tasks.
    next_ready: usize,
    /// By pool: ready tasks.
    ready_now: Vec<u32>,
    /// The same of the pools of waiting workers and those around, without the tasks that are taken or missed by one.
    left: Vec<u32>,
    out: &'o mut Vec<SystemTime>,
}

impl Sweep<'_> {
    pub fn of<'o>(
        members: &[Member],
        processes: usize,
        crowds: &[Crowd],
        ready: &'o ReadyTasks,
        out: &'o mut Vec<SystemTime>,
    ) -> Sweep<'o> {
        let lanes = members.iter().map(|member| Lane {
            thread: member.thread,
            process: member.process,
            crowd: member.crowd,
            worker: member.worker,
            now: Now::ELSEWHERE,
            kept: false,
            misses: false,
            lost: None,
            since: 0,
        });
        let crowds = crowds.iter().map(|crowd| CrowdCounts { cpus: crowd.cpus, ..CrowdCounts::default() });
        Sweep {
            lanes: lanes.collect(),
            processes: vec![ProcessCounts::default(); processes],
            crowds: crowds.collect(),
            ready,
            next_ready: 0,
            ready_now: vec![0; ready.pools()],
            left: vec![0; ready.pools()],
            out,
        }
    }

    /// Walks over the changes of all lanes from `begin` to `end`.
    pub fn run(&mut self, mut changes: Vec<Changes<'_, impl Iterator<Item = Span>>>, begin: u64, end: u64) {
        let mut coming: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut next: Vec<Option<(u64, Now)>> = Vec::with_capacity(changes.len());
        for (lane, changes) in changes.iter_mut().enumerate() {
            let first = changes.next();
            coming.extend(first.map(|(at, _)| Reverse((at, lane))));
            next.push(first);
        }
        self.pass_ready(begin);
        loop {
            let change = coming.peek().map(|Reverse((at, _))| (*at).max(begin)).filter(|at| *at < end);
            // A creation changes no thread's activity, so there may be some after the last change of a thread.
            if let Some(ready) = self.next_ready_at().filter(|ready| *ready < change.unwrap_or(end)) {
                self.pass_ready(ready);
                self.decide(ready);
                continue;
            }
            let Some(at) = change else { break };
            self.pass_ready(at);
            while let Some(Reverse((_, lane))) =
                coming.peek().copied().filter(|Reverse((next, _))| *next <= at)
            {
                coming.pop();
                let Some((_, now)) = next[lane] else { continue };
                self.lanes[lane].now = now;
                let over = changes[lane].at;
                next[lane] =
                    changes[lane].next().or((now != Now::ELSEWHERE).then_some((over, Now::ELSEWHERE)));
                coming.extend(next[lane].map(|(at, _)| Reverse((at, lane))));
            }
            self.decide(at);
        }
        for lane in &mut self.lanes {
            lane.becomes(None, end, self.out);
            (lane.now, lane.kept, lane.misses) = (Now::ELSEWHERE, false, false);
        }
    }

    /// The time of the next change of ready tasks.
    fn next_ready_at(&self) -> Option<u64> {
        self.ready.changes.get(self.next_ready).map(|(at, ..)| *at)
    }

    /// Makes the changes of ready tasks until a time.
    fn pass_ready(&mut self, until: u64) {
        let coming = self.ready.changes[self.next_ready..].iter();
        for (_, pool, count) in coming.take_while(|(at, ..)| *at <= until) {
            self.ready_now[*pool as usize] = *count;
            self.next_ready += 1;
        }
    }

    /// Decides the cause of each worker's loss from `at` on.
    fn decide(&mut self, at: u64) {
        self.count();
        self.keep();
        self.miss();
        for lane in &mut self.lanes {
            let process = self.processes[lane.process];
            let crowd = lane.crowd.map(|crowd| self.crowds[crowd]);
            let taken = match crowd {
                Some(crowd) if crowd.on_cpus >= crowd.cpus => SystemCause::MoreWorkers,
                _ => SystemCause::NoCpu,
            };
            let lost = match lane.now.doing {
                Doing::Works if lane.now.off => Some(taken),
                Doing::Works | Doing::Other | Doing::Elsewhere => None,
                doing if doing.is_wait() && crowd.is_some() && !lane.kept => Some(SystemCause::MoreWorkers),
                Doing::WaitsForLock { system } | Doing::Call { system } => system.then_some(taken),
                // Threads that are there have all CPUs.
                Doing::Absent if taken == SystemCause::MoreWorkers => Some(taken),
                Doing::Waits | Doing::Absent => (lane.misses || process.waits_for_system()).then_some(taken),
            };
            lane.becomes(lost.filter(|_| lane.worker), at, self.out);
        }
    }

    /// Counts the threads in each activity.
    fn count(&mut self) {
        self.processes.fill(ProcessCounts::default());
        for crowd in &mut self.crowds {
            *crowd = CrowdCounts { cpus: crowd.cpus, ..CrowdCounts::default() };
        }
        for lane in &self.lanes {
            let process = &mut self.processes[lane.process];
            let Now { doing, off, blocked, .. } = lane.now;
            match doing {
                Doing::Works if off => process.could_work += 1,
                Doing::Call { system: true } => process.could_work += 1,
                Doing::Works | Doing::Call { .. } | Doing::Other => process.working += 1,
                // It was woken, or looks whether there is work for it.
                Doing::Waits if off => process.woken += 1,
                _ => {}
            }
            if let Some(crowd) = lane.crowd.map(|crowd| &mut self.crowds[crowd]) {
                // One that sleeps in its own code leaves its CPU to others.
                crowd.working += u32::from(doing == Doing::Works && !blocked);
                crowd.waiting += u32::from(doing.is_wait());
                let is_there = !matches!(doing, Doing::Absent | Doing::Elsewhere);
                crowd.on_cpus += u32::from(is_there && !off && !blocked);
            }
        }
    }

    /// Chooses those of the waiting workers of crowds that lose time to too little work, first those that did before.
    fn keep(&mut self) {
        let mut left: Vec<u32> = self.crowds.iter().map(CrowdCounts::kept).collect();
        let mut take = |lane: &mut Lane, wanted: bool| {
            let Some(left) = lane.crowd.map(|crowd| &mut left[crowd]) else { return };
            let takes = wanted && *left > 0;
            *left -= u32::from(takes);
            lane.kept |= takes;
        };
        for lane in &mut self.lanes {
            let stays = std::mem::take(&mut lane.kept) && lane.now.doing.is_wait();
            take(lane, stays);
        }
        for lane in self.lanes.iter_mut().filter(|lane| !lane.kept) {
            let waits = lane.now.doing.is_wait();
            take(lane, waits);
        }
    }

    /// Chooses those of the waiting workers without a CPU that would have a ready task: at most as many as there are tasks beyond
    /// those for waiting workers on CPUs; first those that were chosen before.
    fn miss(&mut self) {
        let (ready, left) = (self.ready, &mut self.left);
        for pool in self.lanes.iter().filter_map(|lane| lane.now.pool) {
            for pool in ready.with_those_around(pool) {
                left[pool] = self.ready_now[pool];
            }
        }
        let mut take = |pool: PoolNumber| {
            // All pools of one task are in each other: tasks suffice if each pool has one for each wait in it.
            let takes = ready.with_those_around(pool).all(|pool| left[pool] > 0);
            if takes {
                ready.with_those_around(pool).for_each(|pool| left[pool] -= 1);
            }
            takes
        };
        let on_cpus = self.lanes.iter().filter(|lane| !lane.now.off && !lane.now.blocked);
        for pool in on_cpus.filter_map(|lane| lane.now.pool) {
            take(pool);
        }
        let asks = |lane: &Lane| match lane.now.off && (lane.crowd.is_none() || lane.kept) {
            true => lane.now.pool,
            false => None,
        };
        for lane in &mut self.lanes {
            lane.misses = lane.misses && asks(lane).is_some_and(&mut take);
        }
        for lane in self.lanes.iter_mut().filter(|lane| !lane.misses) {
            lane.misses = asks(lane).is_some_and(&mut take);
        }
    }
}
