//! One single-producer ring per host thread, and the one collector that empties them.
//!
//! A completion may overtake its notice on another thread's ring, and a message that finds its ring
//! full goes another way: the ordering core takes them in any order, so nothing waits here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All rings, seen from the collector.
#[derive(Debug)]
pub struct Rings<M> {
    capacity: usize,
    consumers: Mutex<Vec<rtrb::Consumer<M>>>,
    /// Messages that found their ring full.
    overflow: Mutex<Vec<M>>,
    overflowed: AtomicU64,
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
            capacity,
            consumers: Mutex::default(),
            overflow: Mutex::default(),
            overflowed: AtomicU64::new(0),
        })
    }

    /// A ring for the calling thread.
    pub fn producer(self: &Arc<Self>) -> Producer<M> {
        let (ring, consumer) = rtrb::RingBuffer::new(self.capacity);
        lock(&self.consumers).push(consumer);
        Producer { ring, rings: Arc::clone(self) }
    }

    /// Takes everything that was put before the call, and perhaps more. Returns how many messages.
    ///
    /// A time that was read before the call is therefore one before which no operation can start
    /// whose notice is still to come: a notice is put before the operation is submitted.
    pub fn drain(&self, mut take: impl FnMut(M)) -> usize {
        let mut count = 0;
        lock(&self.consumers).retain_mut(|consumer| {
            let abandoned = consumer.is_abandoned();
            let there = consumer.slots();
            if let Ok(chunk) = consumer.read_chunk(there) {
                count += there;
                chunk.into_iter().for_each(&mut take);
            }
            !abandoned
        });
        let overflow = std::mem::take(&mut *lock(&self.overflow));
        count += overflow.len();
        overflow.into_iter().for_each(take);
        count
    }

    /// Messages that found their ring full so far.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Relaxed)
    }
}

impl<M> Producer<M> {
    /// Hands over a message. Never waits: when the ring is full, a shared list takes it.
    #[inline]
    pub fn put(&mut self, message: M) {
        if let Err(rtrb::PushError::Full(message)) = self.ring.push(message) {
            self.put_aside(message);
        }
    }

    #[cold]
    fn put_aside(&mut self, message: M) {
        self.rings.overflowed.fetch_add(1, Relaxed);
        lock(&self.rings.overflow).push(message);
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
    fn every_message_comes_once_from_any_number_of_threads() {
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
        assert!(lock(&rings.consumers).is_empty());
    }
}
