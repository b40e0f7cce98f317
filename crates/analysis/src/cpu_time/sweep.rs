//! The division of a host's CPUs among its threads, in each interval between two changes.

use taskscope_execution::ThreadIndex;

use super::activity::{Doing, MAX_PIECES, Piece};

/// Fraction bits of a charge in thousandths of a CPU-nanosecond.
pub(super) const BITS: u32 = 32;

/// Sums over time, up to each change of a host's threads, of the charge to one thread in each activity.
pub(super) struct Sweep {
    pub(super) times: Vec<u64>,
    pub(super) demand: Vec<u128>,
    pub(super) not_known: Vec<u128>,
    pub(super) alone: Vec<u128>,
    pub(super) sleeps: Vec<u128>,
    /// The charge of the time in which nothing is to be done.
    pub(super) idle: u128,
}

/// Numbers of threads by activity.
#[derive(Clone, Copy, Default)]
pub(super) struct Now {
    run: i64,
    no_cpu: i64,
    wait: i64,
    not_known: i64,
    sleep: i64,
    listen: i64,
}

impl Now {
    pub(super) fn of(&mut self, doing: Doing) -> Option<&mut i64> {
        Some(match doing {
            Doing::Runs => &mut self.run,
            Doing::HasNoCpu => &mut self.no_cpu,
            Doing::Waits(_) => &mut self.wait,
            Doing::WaitsUnknown(_) | Doing::NotKnown(_) => &mut self.not_known,
            Doing::Sleeps(_) => &mut self.sleep,
            Doing::Listens => &mut self.listen,
            Doing::Rests => return None,
        })
    }
}

impl Sweep {
    pub(super) fn over(millicpus: u64, (first, last): (u64, u64), pieces: &[Piece]) -> Sweep {
        let mut changes: Vec<(u64, i64, Doing)> = Vec::with_capacity(2 * pieces.len() + 2);
        for piece in pieces {
            changes.push((piece.from, 1, piece.doing));
            changes.push((piece.until, -1, piece.doing));
        }
        // Borders of the time are changes of nothing.
        changes.extend([(first, 0, Doing::Rests), (last, 0, Doing::Rests)]);
        changes.sort_unstable_by_key(|(at, ..)| *at);
        let mut sweep = Sweep {
            times: Vec::new(),
            demand: Vec::new(),
            not_known: Vec::new(),
            alone: Vec::new(),
            sleeps: Vec::new(),
            idle: 0,
        };
        let mut now = Now::default();
        let mut sums = [0_u128; 4];
        let mut before = changes.first().map_or(0, |change| change.0);
        for (at, step, doing) in changes {
            if at > before || sweep.times.is_empty() {
                if before >= first && at <= last {
                    sweep.take(millicpus, u128::from(at - before), &now, &mut sums);
                }
                sweep.times.push(at);
                let columns = [&mut sweep.demand, &mut sweep.not_known, &mut sweep.alone, &mut sweep.sleeps];
                for (column, sum) in columns.into_iter().zip(sums) {
                    column.push(sum);
                }
                before = at;
            }
            if let Some(count) = now.of(doing) {
                *count += step;
            }
        }
        sweep
    }

    /// Divides the CPUs of an interval.
    pub(super) fn take(&mut self, millicpus: u64, length: u128, now: &Now, sums: &mut [u128; 4]) {
        let mille = |count: i64| 1000 * count.max(0) as u64;
        let running = mille(now.run);
        let mut free = millicpus.saturating_sub(running);
        let mut give = |count: i64, sum: &mut u128| {
            let part = free.min(mille(count));
            free -= part;
            if part > 0 {
                *sum += ((length * u128::from(part)) << BITS) / count.max(1) as u128;
            }
        };
        let [demand, not_known, alone, sleeps] = sums;
        give(now.no_cpu + now.wait, demand);
        give(now.not_known, not_known);
        let active = (now.run + now.no_cpu).max(0);
        let rest = (length * u128::from(free)) << BITS;
        match () {
            () if active > 0 => *alone += rest / active as u128,
            () if now.sleep > 0 && now.listen <= 0 => *sleeps += rest / now.sleep as u128,
            () => self.idle += rest,
        }
    }

    /// The row of a time at which a thread's activity changes.
    pub(super) fn row(&self, at: u64) -> usize {
        self.times.partition_point(|time| *time < at).min(self.times.len() - 1)
    }

    /// The times of a piece in which too few other threads had work.
    pub(super) fn alone_parts(
        &self,
        piece: &Piece,
        from: usize,
        until: usize,
        to: &mut Vec<(ThreadIndex, u64, u64)>,
    ) {
        for row in from..until {
            if self.alone[row + 1] == self.alone[row] {
                continue;
            }
            let (start, end) = (self.times[row], self.times[row + 1]);
            let has_room = to.len() < MAX_PIECES;
            match to.last_mut() {
                Some((thread, _, last)) if *thread == piece.thread && *last == start => *last = end,
                _ if has_room => to.push((piece.thread, start, end)),
                _ => {}
            }
        }
    }
}
