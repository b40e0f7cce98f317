//! One worker's life as a sequence of instants at which something changes.

use super::inputs::Limits;
use taskscope_execution::graph::{Activity, ActivityKind, Lists, NONE, Piece, TaskGraph};

/// Time in which a worker is in the runtime. Segments of one worker do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub start: u64,
    pub end: u64,
    /// Row of the graph's names.
    pub name: u32,
}

/// The runtime segments of every worker. Where several intervals cover an instant, the one that sorts
/// first by (start, end, name) names it.
pub(crate) fn runtime_segments(graph: &TaskGraph) -> Lists<Segment> {
    let mut all = Lists::with_capacity(graph.workers.len(), graph.activities.items().len());
    for activities in graph.activities.iter() {
        let mut covered = 0;
        let runtime = activities.iter().filter(|a| a.kind == ActivityKind::Runtime);
        // Earlier ones all start before this one, so together they cover it up to the latest end.
        all.push(runtime.filter_map(|&Activity { start, end, name, .. }| {
            let start = start.max(covered);
            covered = covered.max(end);
            (start < end).then_some(Segment { start, end, name })
        }));
    }
    all
}

/// Nanoseconds of `pieces` (of one worker) outside of `segments`, added up by task with uniform time.
pub(crate) fn add_time_outside(pieces: &[Piece], segments: &[Segment], mut add: impl FnMut(u32, u64)) {
    for piece in pieces {
        let first = segments.partition_point(|segment| segment.end <= piece.start);
        let inside: u64 = (segments[first..].iter().take_while(|segment| segment.start < piece.end))
            .map(|segment| segment.end.min(piece.end) - segment.start.max(piece.start))
            .sum();
        add(piece.task, piece.end - piece.start - inside);
    }
}

/// What an idle worker waits for at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// For the last input to be produced.
    Production,
    /// For it to be sent.
    Send,
    /// For the last input to arrive.
    Transfer,
    /// For the runtime to start the task.
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
        if at < limits.produced {
            Waits::Production
        } else if at < limits.arrived {
            if at < limits.sent { Waits::Send } else { Waits::Transfer }
        } else {
            Waits::Dispatch
        }
    }

    fn next_change(&self, after: u64) -> u64 {
        let limits = &self.limits;
        let borders = [limits.produced, limits.sent, limits.arrived];
        borders.into_iter().filter(|at| *at > after).min().unwrap_or(u64::MAX).min(self.end)
    }
}

/// A worker at an instant: what it executes, whether it is in the runtime, what it waits for.
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
    /// The runtime section that it is in, or [`NONE`].
    pub section: u32,
    pub idle: Option<Idle>,
}

impl<'a> Timeline<'a> {
    pub fn new(graph: &'a TaskGraph, segments: &'a Lists<Segment>, worker: usize) -> Self {
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
            section: NONE,
            idle: None,
        }
    }

    /// Whether its life has ended, or no piece is left.
    pub fn in_tail(&self) -> bool {
        self.begun && self.executes == NONE && self.idle.is_none()
    }

    /// Applies what happens at `self.next`. `limits` tells those of a task. An idle interval that ends is
    /// handed to `ended`.
    pub fn step(&mut self, limits: impl FnOnce(u32) -> Limits, ended: impl FnOnce(&Idle)) {
        let now = self.next;
        if self.section != NONE && self.segments[self.segment].end == now {
            self.section = NONE;
            self.segment += 1;
        }
        if let Some(segment) = self.segments.get(self.segment).filter(|s| s.start == now) {
            self.section = segment.name;
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
        } else {
            u64::MAX
        };
        let runtime = self
            .segments
            .get(self.segment)
            .map_or(u64::MAX, |segment| if self.section == NONE { segment.start } else { segment.end });
        own.min(runtime)
    }

    /// From the end of its last piece to the end of its life.
    pub fn tail(&self) -> (u64, u64) {
        (self.pieces.last().map_or(self.begin, |piece| piece.end), self.end)
    }
}
