//! One single-producer ring per host thread, and one collector that empties them.
//!
//! A thread with a full ring continues in a new one and never waits; its messages stay in order. A completion
//! may overtake its notice on another thread's ring: the ordering core takes them in any order.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All rings, as the collector sees them.
#[derive(Debug)]
pub struct Rings<M> {
    capacity: usize,
    /// Rings known to the collector, which locks them while it drains.
    known: Mutex<Vec<rtrb::Consumer<M>>>,
    /// Rings that the collector has not seen yet: all that producers wait for each other at.
    fresh: Mutex<Vec<rtrb::Consumer<M>>>,
    outgrown: AtomicU64,
}

/// A thread's end of its ring. Keep it in a thread-local; dropping it ends the ring once it is empty.
#[derive(Debug)]
pub struct Producer<M> {
    ring: rtrb::Producer<M>,
    rings: Arc<Rings<M>>,
}

impl<M> Rings<M> {
    /// Rings for `capacity` messages each.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Rings {
            capacity: capacity.max(1),
            known: Mutex::default(),
            fresh: Mutex::default(),
            outgrown: AtomicU64::new(0),
        })
    }

    /// A ring for the calling thread.
    pub fn producer(self: &Arc<Self>) -> Producer<M> {
        Producer { ring: self.ring(), rings: Arc::clone(self) }
    }

    fn ring(&self) -> rtrb::Producer<M> {
        let (ring, consumer) = rtrb::RingBuffer::new(self.capacity);
        lock(&self.fresh).push(consumer);
        ring
    }

    /// Takes all messages put before the call, and perhaps more. Returns their number.
    ///
    /// A time read before the call is therefore a lower bound for the starts of all operations without a
    /// notice: a notice is put before the operation is submitted.
    pub fn drain(&self, mut take: impl FnMut(M)) -> usize {
        let mut count = 0;
        let mut known = lock(&self.known);
        // A ring that a thread has left precedes the one in which it continued.
        known.append(&mut lock(&self.fresh));
        known.retain_mut(|consumer| {
            let abandoned = consumer.is_abandoned();
            let there = consumer.slots();
            if let Ok(chunk) = consumer.read_chunk(there) {
                count += there;
                chunk.into_iter().for_each(&mut take);
            }
            !abandoned
        });
        count
    }

    /// Number of times that a thread found its ring full.
    pub fn outgrown(&self) -> u64 {
        self.outgrown.load(Relaxed)
    }
}

impl<M> Producer<M> {
    /// Hands over a message. Never waits for the collector.
    #[inline]
    pub fn put(&mut self, message: M) {
        if let Err(rtrb::PushError::Full(message)) = self.ring.push(message) {
            self.put_in_new_ring(message);
        }
    }

    #[cold]
    fn put_in_new_ring(&mut self, message: M) {
        self.rings.outgrown.fetch_add(1, Relaxed);
        self.ring = self.rings.ring();
        // An empty ring takes it.
        let _ = self.ring.push(message);
    }
}

/// A panic while the lock was held leaves these lists whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_once_from_any_number_of_threads() {
        let rings = Rings::new(8);
        let mut seen = vec![0u8; 4000];
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u32)
                .map(|thread| {
                    let mut producer = rings.producer();
                    scope.spawn(move || (0..1000).for_each(|n| producer.put(thread * 1000 + n)))
                })
                .collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                rings.drain(|message| seen[message as usize] += 1);
            }
        });
        rings.drain(|message| seen[message as usize] += 1);
        assert!(seen.iter().all(|count| *count == 1));
        assert_eq!(rings.drain(|_| ()), 0);
        assert!(lock(&rings.known).is_empty() && lock(&rings.fresh).is_empty());
    }

    #[test]
    fn a_thread_that_outgrows_its_ring_keeps_its_order() {
        let rings = Rings::new(8);
        let mut producer = rings.producer();
        (0..1000).for_each(|n| producer.put(n));
        assert_eq!(rings.outgrown(), 1000 / 8 - 1);
        let mut seen = Vec::new();
        rings.drain(|message| seen.push(message));
        (1000..1010).for_each(|n| producer.put(n));
        rings.drain(|message| seen.push(message));
        assert!(seen.into_iter().eq(0..1010));
        assert_eq!(lock(&rings.known).len(), 1);
    }
}
