//! From a vendor's ids to operations of queues, for interfaces that hand over records by id.
//!
//! An operation is named when it is submitted, so ids may wrap or be reused. A record with an announced id
//! completes that operation; a second one is a duplicate. A record with other times than the first (a copy in
//! several parts, a node of a graph, a list that was repeated without notice), or with an unannounced id, is
//! an operation of a separate queue: *further records*, which are ordered by their starts. They are released
//! when a wait of the program excludes earlier records, at the latest at the end.

use crate::hub::{Device, Floor, Hub, KindAndName, Queue, lock, tid};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Mutex;
use taskscope_reorder::{Identities, Operation, QueueIndex, QueueOrder, VendorKey};

/// A vendor's name of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueueKey {
    pub device: u64,
    pub context: u64,
    pub queue: u64,
}

/// Stamps of an operation's record, in the device's time; 0 if missing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    pub append: u64,
    pub submit: u64,
    pub start: u64,
    pub end: u64,
}

/// A vendor's data on an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub what: KindAndName,
    pub bytes: u64,
    /// Id of the submitting thread; 0 if unknown.
    pub tid: u32,
}

/// All announcements of one interface.
pub(crate) struct Correlator {
    interface: &'static str,
    describe: fn(&QueueKey) -> String,
    new_device: fn(u64) -> Device,
    state: Mutex<Option<State>>,
}

#[derive(Default)]
struct State {
    identities: Identities,
    queues: FxHashMap<(QueueKey, bool), Numbered>,
    devices: FxHashMap<u64, u32>,
    /// An inner call's id, and the id of the call that it is part of; the older half is forgotten.
    aliases: [FxHashMap<VendorKey, VendorKey>; 2],
    /// By queue: operations with outstanding records, and the sequence below which they were given up.
    open: FxHashMap<QueueIndex, u64>,
    lost_before: FxHashMap<QueueIndex, u64>,
    /// By queue: the threads inside submitting calls, and the operations that they submit.
    submitting: FxHashMap<QueueIndex, Vec<(u32, u64)>>,
    /// Recently ended operations, with start and end: separates duplicates from parts and from the next use
    /// of an id.
    ended: [FxHashMap<VendorKey, (u64, u64, Operation)>; 2],
    /// Further records lately, by id and stamps.
    further: [FxHashMap<(VendorKey, u64, u64), Operation>; 2],
}

#[derive(Clone, Copy)]
struct Numbered {
    index: QueueIndex,
    next: u64,
}

/// Ids that are remembered in each half.
const REMEMBERED: usize = 1 << 16;

fn remember<K: Eq + Hash, V>(halves: &mut [FxHashMap<K, V>; 2], key: K, value: V) {
    if halves[0].len() >= REMEMBERED {
        halves[1] = std::mem::take(&mut halves[0]);
    }
    halves[0].insert(key, value);
}

fn remembered<K: Eq + Hash, V: Copy>(halves: &[FxHashMap<K, V>; 2], key: &K) -> Option<V> {
    halves.iter().find_map(|half| half.get(key)).copied()
}

impl State {
    fn ended_in(&mut self, queue: QueueIndex) {
        if let Some(open) = self.open.get_mut(&queue) {
            *open = open.saturating_sub(1);
        }
    }

    /// The operation that waits for a record with this id and these times.
    fn first(&mut self, id: VendorKey, start: u64, end: u64) -> Option<Operation> {
        // An id that is in use again may still come with the record of its earlier use.
        let is_earlier = remembered(&self.ended, &id).is_some_and(|last| is_copy(last, start, end));
        if is_earlier || !self.identities.is_open(id) {
            return None;
        }
        let operation = self.identities.completed(id)?;
        remember(&mut self.ended, id, (start, end, operation));
        Some(operation)
    }

    /// The operation of a record that came already.
    fn again(&self, id: VendorKey, start: u64, end: u64) -> Option<Operation> {
        let last = remembered(&self.ended, &id);
        // Without times, executions are indistinguishable: such a record adds nothing to an ended one.
        let says_nothing = |(_, last_end, _)| last_end == 0 || end == 0;
        last.filter(|last| is_copy(*last, start, end) || says_nothing(*last))
            .map(|(_, _, operation)| operation)
            .or_else(|| remembered(&self.further, &(id, start, end)))
    }
}

/// Whether a record with times is one that came before.
fn is_copy((last_start, last_end, _): (u64, u64, Operation), start: u64, end: u64) -> bool {
    end != 0 && (last_start, last_end) == (start, end)
}

impl Correlator {
    /// For an interface of this name; queues are shown as `describe` returns.
    pub const fn new(
        interface: &'static str,
        describe: fn(&QueueKey) -> String,
        new_device: fn(u64) -> Device,
    ) -> Self {
        Correlator { interface, describe, new_device, state: Mutex::new(None) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(lock(&self.state).get_or_insert_default())
    }

    /// The number of a device.
    pub fn device(&self, hub: &Hub, device: u64) -> u32 {
        self.with(|state| self.device_in(state, hub, device))
    }

    fn device_in(&self, state: &mut State, hub: &Hub, device: u64) -> u32 {
        *state.devices.entry(device).or_insert_with(|| hub.add_device((self.new_device)(device)))
    }

    fn next(
        &self,
        state: &mut State,
        hub: &'static Hub,
        key: &QueueKey,
        further: bool,
        in_order: bool,
    ) -> (QueueIndex, u64) {
        if !state.queues.contains_key(&(*key, further)) {
            let device = self.device_in(state, hub, key.device);
            let name = (self.describe)(key);
            let queue = if further {
                let order = QueueOrder::OutOfOrder;
                let name = format!("{name}, further records");
                Queue { name, device, order, interface: self.interface, floor: Floor::Unknown, poll: None }
            } else {
                let order = if in_order { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
                Queue { name, device, order, interface: self.interface, floor: Floor::Now, poll: None }
            };
            let index = hub.add_queue(queue);
            state.queues.insert((*key, further), Numbered { index, next: 0 });
        }
        let Some(queue) = state.queues.get_mut(&(*key, further)) else { return (QueueIndex(u32::MAX), 0) };
        queue.next += 1;
        (queue.index, queue.next - 1)
    }

    /// An operation is about to be submitted, and its record will have this id.
    pub fn announce(
        &self,
        hub: &'static Hub,
        queue: &QueueKey,
        id: VendorKey,
        about: About,
        append: u64,
    ) -> Operation {
        self.announce_in(hub, queue, id, about, append, true)
    }

    /// As [`Correlator::announce`], in a queue that may not promise any order.
    pub fn announce_in(
        &self,
        hub: &'static Hub,
        queue: &QueueKey,
        id: VendorKey,
        about: About,
        append: u64,
        in_order: bool,
    ) -> Operation {
        self.with(|state| self.announce_under_lock(state, hub, queue, (id, about, append), in_order))
    }

    /// As [`Correlator::announce`], in a call that [`Correlator::submitted`] ends: while it runs, other
    /// threads may submit to the queue, and the driver's order of them is unknown.
    pub fn announce_call(
        &self,
        hub: &'static Hub,
        queue: &QueueKey,
        id: VendorKey,
        about: About,
        append: u64,
    ) -> Operation {
        self.with(|state| {
            let operation = self.announce_under_lock(state, hub, queue, (id, about, append), true);
            state.submitting.entry(operation.queue).or_default().push((about.tid, operation.seq));
            operation
        })
    }

    /// The calling thread's submission is over.
    pub fn submitted(&self, operation: Operation) {
        let tid = tid();
        self.with(|state| {
            if let Some(threads) = state.submitting.get_mut(&operation.queue)
                && let Some(place) = threads.iter().position(|known| *known == (tid, operation.seq))
            {
                threads.swap_remove(place);
            }
        });
    }

    /// The lock is held until the notice is on its way, so that it comes before its completion.
    fn announce_under_lock(
        &self,
        state: &mut State,
        hub: &'static Hub,
        queue: &QueueKey,
        (id, about, append): (VendorKey, About, u64),
        in_order: bool,
    ) -> Operation {
        let (index, seq) = self.next(state, hub, queue, false, in_order);
        let operation = Operation { queue: index, seq };
        while let Some(old) = state.identities.oldest(id)
            && state.lost_before.get(&old.queue).is_some_and(|before| old.seq < *before)
        {
            state.identities.withdrawn(id, old);
        }
        state.identities.submitted(id, operation);
        *state.open.entry(index).or_default() += 1;
        let submitting = state.submitting.get(&index);
        let others = submitting.into_iter().flatten().filter(|(tid, _)| *tid != about.tid);
        let beside = others.map(|(_, seq)| *seq).min();
        if beside.is_some() {
            hub.append_beside((index, seq, beside), about.what, id.id, about.bytes, append);
        } else {
            hub.append_at(index, seq, about.what, id.id, about.bytes, append, about.tid);
        }
        operation
    }

    /// The record of the operation with the id `outer` may come with the id `inner`.
    pub fn also_known_as(&self, outer: VendorKey, inner: VendorKey) {
        if outer != inner {
            self.with(|state| remember(&mut state.aliases, inner, outer));
        }
    }

    /// The submission has failed: no record will come.
    pub fn withdraw(&self, hub: &Hub, id: VendorKey, operation: Operation) {
        let was_open = self.with(|state| {
            let was_open = state.identities.withdrawn(id, operation);
            if was_open {
                state.ended_in(operation.queue);
            }
            was_open
        });
        if was_open {
            hub.cancel(operation.queue, operation.seq);
        }
    }

    /// A record came. Returns its operation.
    pub fn record(
        &self,
        hub: &'static Hub,
        queue: &QueueKey,
        id: VendorKey,
        about: About,
        stamps: Stamps,
    ) -> Operation {
        self.with(|state| {
            let Stamps { append, submit, start, end } = stamps;
            let outer = remembered(&state.aliases, &id);
            let ids = || outer.into_iter().chain([id]);
            if let Some(operation) = ids().find_map(|id| state.first(id, start, end)) {
                let Operation { queue, seq } = operation;
                state.ended_in(queue);
                hub.amend(queue, seq, about.what, about.bytes);
                hub.complete(queue, seq, submit, start, end);
                return operation;
            }
            if let Some(again) = ids().find_map(|id| state.again(id, start, end)) {
                hub.complete_again(again.queue, again.seq, submit, start, end);
                return again;
            }
            let (index, seq) = self.next(state, hub, queue, true, false);
            let operation = Operation { queue: index, seq };
            remember(&mut state.further, (id, start, end), operation);
            hub.append_at(index, seq, about.what, id.id, about.bytes, append, about.tid);
            hub.complete(index, seq, submit, start, end);
            operation
        })
    }

    /// Announced operations of each queue.
    pub fn announced(&self) -> Vec<Announced> {
        self.with(|state| {
            let call_queues = state.queues.iter().filter(|((_, further), _)| !further);
            let mut announced: Vec<_> = call_queues
                .map(|((key, _), queue)| {
                    let open = state.open.get(&queue.index).copied().unwrap_or(0);
                    Announced { queue: queue.index, context: key.context, count: queue.next, open }
                })
                .collect();
            announced.sort_unstable_by_key(|announced| announced.queue);
            announced
        })
    }

    /// Declares that all records of operations that started before `time`, by the clock of the stamps, have
    /// been handed over for the queues that `ended` selects: further records before it are released.
    pub fn none_before(&self, hub: &Hub, ended: impl Fn(&QueueKey) -> bool, time: u64) {
        self.with(|state| {
            let further = state.queues.iter().filter(|((key, further), _)| *further && ended(key));
            further.for_each(|(_, queue)| hub.none_before(queue.index, time));
        });
    }

    /// Declares that operations of the queue below `before` will have no record; their ids may be reused.
    pub fn lost(&self, hub: &Hub, queue: QueueIndex, before: u64) {
        self.with(|state| {
            state.lost_before.insert(queue, before);
            state.open.insert(queue, 0);
        });
        hub.lost(queue, before);
    }
}

/// Announced operations of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub queue: QueueIndex,
    pub context: u64,
    pub count: u64,
    /// Number of outstanding ones.
    pub open: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: u64) -> VendorKey {
        VendorKey { scope: 0, id, execution: 0 }
    }

    #[test]
    fn a_copy_is_that_of_the_earlier_use_of_its_id() {
        let mut state = State::default();
        let operation = |seq| Operation { queue: QueueIndex(0), seq };
        state.identities.submitted(id(7), operation(0));
        assert_eq!(state.first(id(7), 100, 110), Some(operation(0)));
        // The id is given away again, and the first record is delivered once more.
        state.identities.submitted(id(7), operation(1));
        assert_eq!(state.first(id(7), 100, 110), None);
        assert_eq!(state.again(id(7), 100, 110), Some(operation(0)));
        assert_eq!(state.first(id(7), 200, 210), Some(operation(1)));
        // A record without times that completes nothing is not an execution of its own; one with other times
        // is.
        assert_eq!(state.first(id(7), 0, 0), None);
        assert_eq!(state.again(id(7), 0, 0), Some(operation(1)));
        assert_eq!(state.again(id(7), 300, 310), None);
    }
}
