//! Parallel regions and worksharing constructs: how evenly their teams were loaded.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{Execution, NO_TIME, Place, RegionIndex, SiteIndex, ThreadIndex, TypeIndex};

/// Distribution of work over teams, summed over executions of a construct.
///
/// For one execution by n threads with busy times b: the loss to imbalance is n·max(b) − Σ b, the time in
/// which the others wait for the one with most work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Executions by a team.
    pub executions: u64,
    /// Shares of threads in them.
    pub shares: u64,
    /// Busy time of all shares, nanoseconds.
    pub busy_ns: u64,
    /// Sum over executions of threads × the longest busy time, nanoseconds.
    pub longest_ns: u64,
}

impl Load {
    /// Worker-nanoseconds lost to imbalance.
    pub fn imbalance_ns(&self) -> u64 {
        self.longest_ns - self.busy_ns
    }

    /// Mean over maximum of busy times, weighted by their length: 1 is even. The load balance of POP.
    pub fn balance(&self) -> f64 {
        if self.longest_ns == 0 { 1.0 } else { self.busy_ns as f64 / self.longest_ns as f64 }
    }

    fn add(&mut self, busy: &[(ThreadIndex, u64)]) {
        let longest = busy.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        self.executions += 1;
        self.shares += busy.len() as u64;
        self.busy_ns += busy.iter().map(|(_, ns)| *ns).sum::<u64>();
        self.longest_ns += longest * busy.len() as u64;
    }
}

/// A worksharing construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worksharing {
    /// The construct.
    pub ty: TypeIndex,
    /// Distribution of the work.
    pub load: Load,
    /// Chunks reported.
    pub chunks: u64,
    /// Iterations in them.
    pub iterations: u64,
}

/// A parallel construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelConstruct {
    /// The construct.
    pub site: SiteIndex,
    /// Time from begin to end on the thread that began it, summed over executions, nanoseconds.
    pub duration_ns: u64,
    /// Useful work of the members, and how even it was.
    pub load: Load,
}

/// All worksharing constructs, those that lose most to imbalance first.
pub fn worksharing(execution: &Execution) -> Vec<Worksharing> {
    // Busy time of a share: its thread's time in the construct's own code.
    let mut by_thread: Vec<Vec<usize>> = vec![Vec::new(); execution.threads.len()];
    for (share, work) in execution.works.iter().enumerate() {
        by_thread[work.thread.index()].push(share);
    }
    let mut busy = vec![0_u64; execution.works.len()];
    for (thread, shares) in by_thread.iter_mut().enumerate().filter(|(_, shares)| !shares.is_empty()) {
        shares.sort_by_key(|share| (execution.works[*share].start, Reverse(execution.works[*share].end)));
        let mut open: Vec<usize> = Vec::new();
        let mut next = shares.iter().peekable();
        // Others wait for a member also while that is blocked.
        let spans = execution.cut_spans_of_run(ThreadIndex(thread as u32)).map(|cut| cut.span);
        let useful = spans.filter(|span| span.section.state.is_useful());
        useful.for_each(|span| {
            while let Some(share) = next.next_if(|share| execution.works[**share].start <= span.start) {
                open.push(*share);
            }
            open.retain(|share| execution.works[*share].end > span.start);
            let of = |share: &&usize| Place::task_type(execution.works[**share].ty) == span.section.place;
            if let Some(share) = open.iter().rev().find(of) {
                busy[*share] += span.nanos();
            }
        });
    }
    let mut executions: FxHashMap<(RegionIndex, TypeIndex, u32), Vec<(ThreadIndex, u64)>> =
        FxHashMap::default();
    let mut rows: FxHashMap<TypeIndex, Worksharing> = FxHashMap::default();
    for (work, busy) in execution.works.iter().zip(busy) {
        executions.entry((work.region, work.ty, work.ordinal)).or_default().push((work.thread, busy));
        let blank = Worksharing { ty: work.ty, load: Load::default(), chunks: 0, iterations: 0 };
        let row = rows.entry(work.ty).or_insert(blank);
        row.chunks += work.chunks as u64;
        row.iterations = row.iterations.saturating_add(work.iterations);
    }
    for ((_, ty, _), busy) in executions {
        if let Some(row) = rows.get_mut(&ty) {
            row.load.add(&busy);
        }
    }
    let mut rows: Vec<Worksharing> = rows.into_values().collect();
    rows.sort_by_key(|row| (Reverse(row.load.imbalance_ns()), Reverse(row.load.busy_ns), row.ty));
    rows
}

/// All parallel constructs, those that lose most to imbalance first.
pub fn parallel_constructs(execution: &Execution) -> Vec<ParallelConstruct> {
    if execution.regions.is_empty() {
        return Vec::new();
    }
    let mut busy: FxHashMap<RegionIndex, Vec<(ThreadIndex, u64)>> = FxHashMap::default();
    for index in (0..execution.threads.len()).map(|index| ThreadIndex(index as u32)) {
        let mut book = |region: RegionIndex, useful: u64| {
            let members = busy.entry(region).or_default();
            match members.last_mut() {
                Some((last, ns)) if *last == index => *ns += useful,
                _ => members.push((index, useful)),
            }
        };
        // Sections of one region follow each other: it is looked up when it changes.
        let (mut now, mut ns) = (RegionIndex::NONE, 0);
        let spans = execution.cut_spans_of_run(index).map(|cut| cut.span);
        spans.filter(|span| span.section.region.is_some()).for_each(|span| {
            if span.section.region != now {
                if now.is_some() {
                    book(now, ns);
                }
                (now, ns) = (span.section.region, 0);
            }
            ns += if span.section.state.is_useful() { span.nanos() } else { 0 };
        });
        if now.is_some() {
            book(now, ns);
        }
    }
    let mut rows: FxHashMap<SiteIndex, ParallelConstruct> = FxHashMap::default();
    for (index, region) in execution.regions.iter().enumerate() {
        let blank = ParallelConstruct { site: region.site, duration_ns: 0, load: Load::default() };
        let row = rows.entry(region.site).or_insert(blank);
        if region.begin != NO_TIME {
            // One that has not ended, in the run or in a part of it, lasts to the last event of its process.
            let last = || {
                let process =
                    execution.threads.get(region.master.index()).map(|thread| thread.process.index());
                process.and_then(|process| execution.processes.get(process)).map_or(0, |process| process.last)
            };
            let end = if region.end == NO_TIME { last() } else { region.end };
            row.duration_ns += end.saturating_sub(region.begin);
        }
        let members = busy.remove(&RegionIndex(index as u32)).unwrap_or_default();
        row.load.add(&members);
    }
    let mut rows: Vec<ParallelConstruct> = rows.into_values().collect();
    rows.sort_by_key(|row| (Reverse(row.load.imbalance_ns()), Reverse(row.duration_ns), row.site));
    rows
}
