//! The charges of unused CPUs to losses, and their sums.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use taskscope_execution::ThreadIndex;

use super::activity::{Doing, Piece};
use super::losses::{CpuLoss, CpuTime, LostTo};
use super::sweep::{BITS, Sweep};

/// The losses of a run while they are summed up.
#[derive(Default)]
pub(super) struct Charges {
    numbers: FxHashMap<LostTo, u32>,
    rows: Vec<(LostTo, Sum)>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    /// Thousandths of a CPU-nanosecond, with a fraction of [`BITS`] bits.
    charged: u128,
    threads_ns: u64,
}

impl Charges {
    pub(super) fn number(&mut self, to: LostTo) -> u32 {
        *self.numbers.entry(to).or_insert_with(|| {
            self.rows.push((to, Sum::default()));
            self.rows.len() as u32 - 1
        })
    }

    pub(super) fn add(&mut self, number: u32, charged: u128, threads_ns: u64) {
        if let Some((_, sum)) = self.rows.get_mut(number as usize) {
            sum.charged += charged;
            sum.threads_ns = sum.threads_ns.saturating_add(threads_ns);
        }
    }

    /// Charges the unused CPUs of a host.
    pub(super) fn charge(
        &mut self,
        millicpus: u64,
        (first, last): (u64, u64),
        pieces: &[Piece],
        alone: &mut Vec<(ThreadIndex, u64, u64)>,
    ) {
        let sweep = Sweep::over(millicpus, (first, last), pieces);
        let no_cpu = self.number(LostTo::NoCpu);
        for piece in pieces {
            let (from, until) = (sweep.row(piece.from), sweep.row(piece.until));
            let of = |sums: &[u128]| sums[until] - sums[from];
            let ns = piece.until - piece.from;
            match piece.doing {
                Doing::HasNoCpu => self.add(no_cpu, of(&sweep.demand), ns),
                Doing::Waits(number) => self.add(number, of(&sweep.demand), ns),
                Doing::Sleeps(number) => self.add(number, of(&sweep.sleeps), ns),
                Doing::WaitsUnknown(number) => self.add(number, of(&sweep.not_known), ns),
                Doing::NotKnown(is_blocked) => {
                    let to = if is_blocked { LostTo::BlockedUnknown } else { LostTo::Unknown };
                    let number = self.number(to);
                    self.add(number, of(&sweep.not_known), ns);
                }
                Doing::Runs | Doing::Listens | Doing::Rests => {}
            }
            if matches!(piece.doing, Doing::Runs | Doing::HasNoCpu) {
                let charged = of(&sweep.alone);
                if charged > 0 {
                    let number = self.number(LostTo::Alone);
                    self.add(number, charged, 0);
                    sweep.alone_parts(piece, from, until, alone);
                }
            }
            if matches!(piece.doing, Doing::Listens | Doing::Rests) {
                let number = self.number(LostTo::Idle);
                self.add(number, 0, ns);
            }
        }
        if sweep.idle > 0 {
            let number = self.number(LostTo::Idle);
            self.add(number, sweep.idle, 0);
        }
    }

    /// Makes the losses from the charges, in whole nanoseconds.
    pub(super) fn settle(self, time: &mut CpuTime) {
        let whole = |charged: u128| ((charged / 1000) >> BITS) as u64;
        let rows = self.rows.into_iter();
        time.losses = rows
            .map(|(to, sum)| CpuLoss { to, ns: whole(sum.charged), threads_ns: sum.threads_ns })
            .filter(|loss| loss.ns > 0 || loss.threads_ns > 0)
            .collect();
        let sum = time.losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.ns));
        // A limit that was exceeded for a moment is enforced by times without a CPU.
        let mut over = time.used_ns.saturating_add(sum).saturating_sub(time.capacity_ns);
        time.losses.sort_by_key(|loss| (loss.to != LostTo::NoCpu, Reverse(loss.ns), loss.to));
        for loss in &mut time.losses {
            let part = over.min(loss.ns);
            loss.ns -= part;
            over -= part;
        }
        time.used_ns -= over;
        time.losses.sort_by_key(|loss| (Reverse(loss.ns), loss.to));
        let lost = time.losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.ns));
        let rest = time.capacity_ns.saturating_sub(time.used_ns).saturating_sub(lost);
        match time.losses.first_mut() {
            // Fractions that were cut off, and time before the first or after the last thread.
            Some(loss) => loss.ns += rest,
            None if rest > 0 => time.losses.push(CpuLoss { to: LostTo::Idle, ns: rest, threads_ns: 0 }),
            None => {}
        }
    }
}
