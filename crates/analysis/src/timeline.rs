//! One worker's life as a sequence of instants at which something changes.

use crate::fine_nanos::Share;
use crate::slo::Deciding;
use rayon::prelude::*;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{Activity, ActivityKind, NONE, Piece, TaskGraph};

/// Time in which a worker is in one activity: an activity, or a part of one. Segments of one worker do not overlap.
pub(crate) type Segment = Activity;

/// The segments of every worker; those of the graph itself if its activities do not overlap, as is usual.
pub(crate) struct Segments<'a>(Vec<Cow<'a, [Segment]>>);

impl Segments<'_> {
    /// The segments of a worker, in order of time.
    #[inline]
    pub fn get(&self, worker: usize) -> &[Segment] {
        self.0.get(worker).map_or(&[], |own| own)
    }

    /// The segments of each worker.
    pub fn iter(&self) -> impl Iterator<Item = &[Segment]> {
        self.0.iter().map(|own| &**own)
    }
}

/// The runtime segments of every worker. If several intervals cover an instant, the one that sorts first by
/// (start, end, name) names it.
pub(crate) fn runtime_segments(graph: &TaskGraph) -> Segments<'_> {
    segments(graph, |activity| matches!(activity.kind, ActivityKind::Runtime(_)))
}

/// The segments in which each worker was in the runtime, started a library, or absorbed noise: overhead at a
/// known position.
pub(crate) fn overhead_segments(graph: &TaskGraph) -> Segments<'_> {
    use ActivityKind::{AbsorbingNoise, Runtime, Start};
    segments(graph, |activity| matches!(activity.kind, Runtime(_) | Start | AbsorbingNoise))
}

/// The segments in which each worker started or ended a library.
pub(crate) fn start_segments(graph: &TaskGraph) -> Segments<'_> {
    segments(graph, |activity| activity.kind == ActivityKind::Start)
}

/// The segments that no change of costs affects: starting or ending a library, and CPUs left free for noise.
pub(crate) fn fixed_segments(graph: &TaskGraph) -> Segments<'_> {
    segments(graph, |activity| matches!(activity.kind, ActivityKind::Start | ActivityKind::AbsorbingNoise))
}

/// The segments in which each worker had no CPU, or waited for something else than a task: no cost of the runtime.
pub(crate) fn away_segments(graph: &TaskGraph) -> Segments<'_> {
    use ActivityKind::{AbsorbingNoise, Runtime, Start};
    segments(graph, |activity| !matches!(activity.kind, Runtime(_) | Start | AbsorbingNoise))
}

/// The segments of all activities: if several cover an instant, the first kind decides, then the order above.
pub(crate) fn activity_segments(graph: &TaskGraph) -> Segments<'_> {
    segments(graph, |_| true)
}

fn segments(graph: &TaskGraph, wanted: impl Fn(&Activity) -> bool + Sync) -> Segments<'_> {
    let worker_segments = |worker: usize| {
        let activities = graph.activities.get(worker);
        let is_segment = |a: &Activity| wanted(a) && a.start < a.end;
        let apart = |pair: &[Activity]| pair[0].end <= pair[1].start && !continues(&pair[0], &pair[1]);
        if activities.iter().all(is_segment) && activities.windows(2).all(apart) {
            return Cow::Borrowed(activities);
        }
        let chosen: Vec<&Activity> = activities.iter().filter(|a| is_segment(a)).collect();
        let mut own = Vec::new();
        flatten(&chosen, &mut own);
        Cow::Owned(own)
    };
    Segments((0..graph.activities.len()).into_par_iter().map(worker_segments).collect())
}

/// Cuts activities, which come by start, into segments that do not overlap.
fn flatten(activities: &[&Activity], out: &mut Vec<Segment>) {
    let mut coming = 0;
    // The activity that comes first in it names the instant.
    let mut open: BinaryHeap<Reverse<(ActivityKind, usize)>> = BinaryHeap::new();
    let mut now = 0;
    loop {
        // Most overlap nothing.
        while open.is_empty()
            && let Some(activity) = activities.get(coming)
            && now <= activity.start
            && activities.get(coming + 1).is_none_or(|next| activity.end <= next.start)
        {
            append(out, activity, activity.start, activity.end);
            now = activity.end;
            coming += 1;
        }
        while let Some(activity) = activities.get(coming).filter(|a| a.start <= now || open.is_empty()) {
            now = now.max(activity.start);
            open.push(Reverse((activity.kind, coming)));
            coming += 1;
        }
        let Some(&Reverse((_, first))) = open.peek() else { return };
        let top = activities[first];
        if top.end <= now {
            open.pop();
            continue;
        }
        let end = activities.get(coming).map_or(top.end, |next| next.start.min(top.end));
        append(out, top, now, end);
        now = end;
    }
}

/// Appends a part of an activity; extends the last segment if it is the same activity.
fn append(out: &mut Vec<Segment>, of: &Activity, start: u64, end: u64) {
    let part = Segment { start, end, ..*of };
    match out.last_mut().filter(|last| continues(last, &part)) {
        Some(last) => last.end = end,
        None => out.push(part),
    }
}

/// Whether a segment continues in the next one.
fn continues(segment: &Segment, next: &Segment) -> bool {
    let what = |s: &Segment| (s.kind, s.name, s.holder, s.waiter);
    segment.end == next.start && what(segment) == what(next)
}

/// Nanoseconds of each task outside of `segments`.
pub(crate) fn time_outside(graph: &TaskGraph, segments: &Segments<'_>) -> Vec<u64> {
    let mut outside = vec![0; graph.tasks.len()];
    for (pieces, segments) in graph.pieces.iter().zip(segments.iter()) {
        for piece in pieces {
            outside[piece.task as usize] += piece_outside(piece, segments, u64::MAX);
        }
    }
    outside
}

/// Nanoseconds of a piece outside of its worker's `segments`, before `until`.
pub(crate) fn piece_outside(piece: &Piece, segments: &[Segment], until: u64) -> u64 {
    let end = piece.end.min(until);
    if end <= piece.start {
        return 0;
    }
    let first = segments.partition_point(|segment| segment.end <= piece.start);
    let inside: u64 = (segments[first..].iter().take_while(|segment| segment.start < end))
        .map(|segment| segment.end.min(end) - segment.start.max(piece.start))
        .sum();
    end - piece.start - inside
}

/// The share of each task's time outside of `segments` that is runtime work; empty if no task has any.
pub(crate) fn uniform_shares(graph: &TaskGraph, segments: &Segments<'_>) -> Vec<Share> {
    if graph.tasks.uniform.is_empty() {
        return Vec::new();
    }
    let outside = time_outside(graph, segments);
    let shares = graph.tasks.uniform.iter().zip(outside);
    shares.map(|(uniform, ns)| if *uniform == 0 { Share::ZERO } else { Share::of(*uniform, ns) }).collect()
}

/// The earliest possible start of a task: the times that classify an instant before its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Creation time; 0 if not distinguished.
    pub created: u64,
    /// Row of the worker that created it, or [`NONE`].
    pub creator_worker: u32,
    /// Production time of the last input; 0 if none has a producer.
    pub produced: u64,
    /// Row of the worker that produced it, or [`NONE`].
    pub producer_worker: u32,
    /// Whether that input is the end of a wait.
    pub synchronises: bool,
    /// Arrival of the last input; 0 without inputs.
    pub arrived: u64,
    /// Send time of its copy; 0 if not recorded.
    pub sent: u64,
    /// Row of the node from which it came.
    pub from: u32,
    /// Ready time in the runtime; 0 if not distinguished.
    pub ready: u64,
}

impl Limits {
    /// The limits of a task on `node` by its inputs alone.
    pub fn from_inputs(graph: &TaskGraph, deciding: Deciding, node: u32) -> Limits {
        let mut limits = Limits {
            created: 0,
            creator_worker: NONE,
            produced: 0,
            producer_worker: NONE,
            synchronises: false,
            arrived: 0,
            sent: 0,
            from: NONE,
            ready: 0,
        };
        if deciding.last_produced != NONE {
            let data = deciding.last_produced as usize;
            limits.produced = graph.data.produced[data];
            limits.producer_worker = graph.tasks.worker[graph.data.producer[data] as usize];
            limits.synchronises = graph.data.synchronises(data);
        }
        if deciding.last_arrived != NONE {
            limits.arrived = graph.available(deciding.last_arrived, node);
            limits.from = graph.origin(deciding.last_arrived);
            let copy = graph.copy(deciding.last_arrived, node);
            limits.sent = copy.map(|copy| copy.sent).filter(|sent| *sent != NO_TIME).unwrap_or(0);
        }
        limits
    }

    /// The limits of a task including its creation and readiness.
    pub fn of(graph: &TaskGraph, task: u32, deciding: Deciding, node: u32) -> Limits {
        let known = |time: u64| if time == NO_TIME { 0 } else { time };
        let mut limits = Limits::from_inputs(graph, deciding, node);
        limits.created = known(graph.tasks.created(task as usize));
        limits.ready = known(graph.tasks.ready(task as usize));
        let creator = graph.tasks.creator(task as usize);
        if creator != NONE {
            limits.creator_worker = graph.tasks.worker[creator as usize];
        }
        limits
    }
}

/// The reason for a worker's wait at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// The creation of the task.
    Creation,
    /// The production of the last input.
    Production,
    /// The sending of the last input.
    Send,
    /// The arrival of the last input.
    Transfer,
    /// The runtime's detection of the arrival.
    Delivery,
    /// The start of the task by the runtime.
    Dispatch,
}

/// Time between two pieces, or before the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub begin: u64,
    pub end: u64,
    /// The task that ends it.
    pub task: u32,
    pub limits: Limits,
    pub waits: Waits,
}

impl Idle {
    fn waits_at(&self, at: u64) -> Waits {
        let limits = &self.limits;
        if at < limits.created {
            Waits::Creation
        } else if at < limits.produced {
            Waits::Production
        } else if at < limits.arrived {
            if at < limits.sent { Waits::Send } else { Waits::Transfer }
        } else if at < limits.ready {
            Waits::Delivery
        } else {
            Waits::Dispatch
        }
    }

    fn next_change(&self, after: u64) -> u64 {
        let limits = &self.limits;
        let borders = [limits.created, limits.produced, limits.sent, limits.arrived, limits.ready];
        borders.into_iter().filter(|at| *at > after).min().unwrap_or(u64::MAX).min(self.end)
    }
}

/// A worker at an instant: its task, its activity, its wait.
pub(crate) struct Timeline<'a> {
    pieces: &'a [Piece],
    segments: &'a [Segment],
    begin: u64,
    end: u64,
    piece: usize,
    segment: usize,
    /// The instant of the next change; `u64::MAX` after the last.
    pub next: u64,
    pub begun: bool,
    /// The task that it executes, or [`NONE`].
    pub executes: u32,
    /// The activity that it is in.
    pub section: Option<Segment>,
    pub idle: Option<Idle>,
}

impl<'a> Timeline<'a> {
    pub fn new(graph: &'a TaskGraph, segments: &'a Segments<'a>, worker: usize) -> Self {
        let segments = segments.get(worker);
        let begin = graph.workers[worker].begin;
        Timeline {
            pieces: graph.pieces.get(worker),
            segments,
            begin,
            end: graph.workers[worker].end,
            piece: 0,
            segment: 0,
            next: segments.first().map_or(begin, |segment| segment.start.min(begin)),
            begun: false,
            executes: NONE,
            section: None,
            idle: None,
        }
    }

    /// Whether no piece is left.
    pub fn in_tail(&self) -> bool {
        self.begun && self.executes == NONE && self.idle.is_none()
    }

    /// Applies the change at `self.next`. `limits` returns those of a task. An idle interval that ends is
    /// passed to `ended`.
    pub fn step(&mut self, limits: impl FnOnce(u32) -> Limits, ended: impl FnOnce(&Idle)) {
        let now = self.next;
        if self.section.take_if(|section| section.end == now).is_some() {
            self.segment += 1;
        }
        if let Some(segment) = self.segments.get(self.segment).filter(|s| s.start == now) {
            self.section = Some(*segment);
        }
        let mut free = !self.begun && now == self.begin;
        self.begun |= free;
        if self.executes != NONE && self.pieces[self.piece].end == now {
            self.executes = NONE;
            self.piece += 1;
            free = true;
        }
        if let Some(idle) = self.idle.take_if(|idle| idle.end == now) {
            ended(&idle);
            free = true;
        }
        if free && let Some(piece) = self.pieces.get(self.piece) {
            if piece.start == now {
                self.executes = piece.task;
            } else {
                let mut idle = Idle {
                    begin: now,
                    end: piece.start,
                    task: piece.task,
                    limits: limits(piece.task),
                    waits: Waits::Dispatch,
                };
                idle.waits = idle.waits_at(now);
                self.idle = Some(idle);
            }
        } else if let Some(idle) = &mut self.idle {
            idle.waits = idle.waits_at(now);
        }
        self.next = self.next_change(now);
    }

    fn next_change(&self, now: u64) -> u64 {
        let own = if !self.begun {
            self.begin
        } else if self.executes != NONE {
            self.pieces[self.piece].end
        } else if let Some(idle) = &self.idle {
            idle.next_change(now)
        } else if now < self.end {
            self.end
        } else {
            u64::MAX
        };
        let activity = match self.section {
            Some(section) => section.end,
            None => self.segments.get(self.segment).map_or(u64::MAX, |segment| segment.start),
        };
        own.min(activity)
    }

    /// The time from the end of its last piece to the end of its life.
    pub fn tail(&self) -> (u64, u64) {
        (self.pieces.last().map_or(self.begin, |piece| piece.end), self.end)
    }
}
