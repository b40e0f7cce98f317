//! The tables of the booked time.

use super::super::tables::{CauseRow, Causes, GraphCharge, GraphEntry, Queue, Slow};
use super::{Booked, Booking, Position, follows_another};
use crate::entries::Entries;
use crate::keys::Who;
use crate::ledger::{ByCause, Entry, Ledger};
use crate::timeline::{piece_outside, time_outside};
use crate::wait_for_graph::Letter;
use taskscope_execution::Cause;
use taskscope_execution::graph::{NONE, Piece};

impl Booking<'_> {
    pub(super) fn finish(self, booked: &Booked) -> Causes {
        let spent = self.entries(booked);
        let mut by_worker = vec![[0; Cause::ALL.len()]; self.graph.workers.len()];
        let mut by_cause = [0; Cause::ALL.len()];
        for (entry, ns) in spent.iter() {
            by_worker[entry.of.worker as usize][entry.cause as usize] += ns;
            by_cause[entry.cause as usize] += ns;
        }
        let charged = self.charged(&spent, booked);
        let rows: Vec<CauseRow> = (charged.largest_first().into_iter())
            .map(|(Entry { cause, of: GraphCharge { who, symptom } }, ns)| CauseRow {
                cause,
                who,
                symptom,
                ns,
            })
            .collect();
        let by_data = spent.by(|Entry { cause, of }| Some((*cause, of.data?)));
        let by_data = by_data.largest_first().into_iter().map(|((cause, data), ns)| (data, cause, ns));
        let (begin, end) = self.window;
        let inside = |from: u64, to: u64| to.min(end).saturating_sub(from.max(begin));
        let capacity = self.graph.selected_workers().map(|worker| inside(worker.begin, worker.end)).sum();
        Causes {
            capacity_ns: capacity,
            by_cause,
            slow: slow(&rows),
            rows,
            queues: self.queues(&by_worker),
            by_data: by_data.collect(),
            by_worker,
            ready: self.ready.table,
            entries: Ledger { spent, charged },
        }
    }

    /// The time that workers spent.
    fn entries(&self, booked: &Booked) -> Entries<Entry<GraphEntry>> {
        let entry = |((worker, position), ns): (&(u32, Position), &u64)| {
            let Position { cause, key, symptom, data } = *position;
            let is_own = !follows_another(cause) && cause != Cause::WaitDrain;
            let who = is_own.then(|| self.keys.who(key as usize));
            let of = GraphEntry { worker: *worker, who, symptom: (symptom != NONE).then_some(symptom), data };
            (Entry { cause, of }, *ns)
        };
        let spent = Entries::of(booked.spent.iter().map(entry));
        if self.uniform.is_empty() { spent } else { spent.moving(self.uniform_times()) }
    }

    /// The charges for it.
    fn charged(&self, spent: &Entries<Entry<GraphEntry>>, booked: &Booked) -> Entries<Entry<GraphCharge>> {
        let charge = |cause, who, symptom| Entry { cause, of: GraphCharge { who, symptom } };
        let own = spent.by(|Entry { cause, of }| of.who.map(|who| charge(*cause, who, of.symptom)));
        let mut charges: Vec<(Entry<GraphCharge>, u64)> = own.iter().map(|(key, ns)| (*key, ns)).collect();
        let classes = self.graph.types.len() as u32 + 1;
        charges.extend(booked.followed.iter().map(|((key, class), charged)| {
            let (cause, symptom) = (Cause::ALL[(class / classes) as usize], class % classes);
            let symptom = (symptom + 1 < classes).then_some(symptom);
            (charge(cause, self.keys.who(*key as usize), symptom), charged.whole_ns())
        }));
        let drained = booked.drained.iter();
        charges.extend(drained.map(|(ty, ns)| (charge(Cause::WaitDrain, Who::Task(*ty), None), *ns)));
        // No worker executes.
        for cause in [Cause::WaitCreate, Cause::WaitDepend, Cause::WaitSync, Cause::WaitDrain] {
            let given: u64 = charges.iter().filter(|(entry, _)| entry.cause == cause).map(|(_, ns)| ns).sum();
            let rest = spent.total(|entry| entry.cause == cause).saturating_sub(given);
            charges.push((charge(cause, Who::Nobody, None), rest));
        }
        Entries::of(charges)
    }

    /// The ready tasks of each node.
    fn queues(&self, by_worker: &[ByCause]) -> Vec<Queue> {
        let mut queues = vec![Queue { longest_task: NONE, ..Queue::default() }; self.graph.nodes.len()];
        for (worker, by_cause) in self.graph.workers.iter().zip(by_worker) {
            queues[worker.node as usize].idle_ns += by_cause[Cause::WaitDispatch as usize];
        }
        let tasks = &self.graph.tasks;
        for task in (0..tasks.len() as u32).filter(|task| tasks.worker[*task as usize] != NONE) {
            let Some(ready) = self.queued_since(task) else { continue };
            let (begin, end) = self.window;
            if ready >= end || tasks.start[task as usize] <= begin {
                continue;
            }
            let wait = tasks.start[task as usize].min(end) - ready.max(begin);
            let queue = &mut queues[self.graph.node_of_task(task) as usize];
            queue.tasks += 1;
            queue.wait_ns = queue.wait_ns.saturating_add(wait);
            if wait > queue.longest_ns {
                (queue.longest_ns, queue.longest_task) = (wait, task);
            }
        }
        for (queue, most) in queues.iter_mut().zip(self.ready.most()) {
            queue.most = most;
        }
        queues
    }

    /// Runtime work at unknown positions is inside task bodies; its amount is known, so it is moved. For a
    /// part of a body, the moved amount is that of the whole up to the part's end minus that up to its begin,
    /// so parts add up.
    fn uniform_times(&self) -> Entries<(Entry<GraphEntry>, Entry<GraphEntry>)> {
        let mut moves = Vec::new();
        let (graph, segments, (begin, end)) = (self.graph, self.segments, self.window);
        let outside = time_outside(graph, segments);
        let mut pieces: Vec<(usize, &Piece)> = Vec::new();
        for (worker, own) in graph.pieces.iter().enumerate() {
            let moved = own.iter().filter(|piece| graph.tasks.uniform(piece.task as usize) > 0);
            pieces.extend(moved.map(|piece| (worker, piece)));
        }
        pieces.sort_unstable_by_key(|(_, piece)| (piece.task, piece.start));
        let (mut task, mut before) = (NONE, 0);
        for (worker, piece) in pieces {
            if std::mem::replace(&mut task, piece.task) != piece.task {
                before = 0;
            }
            let outside = outside[task as usize];
            let owed = graph.tasks.uniform(task as usize).min(outside);
            let own = segments.get(worker);
            let until = |at: u64| {
                let passed = before + piece_outside(piece, own, at);
                (u128::from(owed) * u128::from(passed) / u128::from(outside.max(1))) as u64
            };
            let moved = until(end) - until(begin);
            before += piece_outside(piece, own, u64::MAX);
            if moved == 0 || !graph.workers[worker].selected {
                continue;
            }
            let ty = graph.tasks.ty[task as usize];
            let entry = |cause, who, symptom| {
                let of = GraphEntry { worker: worker as u32, who: Some(who), symptom, data: None };
                Entry { cause, of }
            };
            let work = entry(Cause::Work, Who::Task(ty), None);
            moves.push(((work, entry(Cause::Runtime, Who::Uniform(ty), Some(ty))), moved));
        }
        Entries::of(moves)
    }
}

fn slow(charges: &[CauseRow]) -> Slow {
    let mut slow = Slow::default();
    for charge in charges {
        let sum = match charge.who.letter() {
            _ if charge.cause == Cause::Work => &mut slow.work_ns,
            Letter::Starvation => &mut slow.starvation_ns,
            Letter::Latency => &mut slow.latency_ns,
            Letter::Overhead => &mut slow.overhead_ns,
            Letter::Contention => &mut slow.contention_ns,
        };
        *sum += charge.ns;
    }
    slow
}
