//! From a device's clock to the host's: one continuous, monotone, piecewise-linear map per device.
//!
//! Every operation bounds the map twice: it cannot start before it was submitted, and it was seen to
//! have ended by the time its record came.
//!
//! ```text
//!  host │        ×  ×/ ×   × observed ≥ map(end)
//!       │     × _/‾‾   the map is between; if one line cannot be, another continues,
//!       │    _/‾  ·    and a short steep piece joins them: never a step, never backwards
//!       │ _/‾  ·  · append ≤ map(start)
//!       └──────────────── device ticks
//! ```
//! No operation gets an anchor of its own: neighbours cannot be shifted against each other.

use std::collections::BTreeMap;

/// Side of the map that a pair of readings bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The map is not below.
    Lower,
    /// The map is not above.
    Upper,
}

/// Cells in which the tightest bounds are kept.
const MAX_CELLS: usize = 4096;

/// Collects bounds, in memory that does not grow with their number, and fits a map through them.
#[derive(Clone, Debug)]
pub struct ClockFit {
    nanos_per_tick: f64,
    /// Maximum difference of the rate from the nominal one, as a fraction.
    largest_drift: f64,
    /// Assumed offset without other data: host time of device time zero.
    assumed_offset: Option<i64>,
    origin: Option<(u64, i64)>,
    cell_ticks: u64,
    cells: BTreeMap<u64, Cell>,
    bounds: u64,
}

/// The tightest bounds in a span of device time: ticks, and host nanoseconds relative to the
/// nominal line.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    lower: Option<(u64, f64)>,
    upper: Option<(u64, f64)>,
}

/// A bound relative to the nominal line.
#[derive(Clone, Copy, Debug)]
struct Bound {
    x: f64,
    y: f64,
    side: Side,
}

/// A point at which the map changes its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// Device ticks.
    pub ticks: u64,
    /// Nanoseconds of the host's clock.
    pub nanos: i64,
}

/// The map, and how well it satisfies its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockMap {
    /// At least one. Before the first and after the last, the map continues at `nanos_per_tick`.
    pub knots: Vec<Knot>,
    /// The nominal rate.
    pub nanos_per_tick: f64,
    /// Bounds that were given.
    pub bounds: u64,
    /// The tightest bounds that the map violates, among the stored ones.
    pub violated: u64,
    /// The worst violation, nanoseconds.
    pub worst_violation: u64,
    /// Room between the map and its tightest lower and upper bound, nanoseconds; `None` without any.
    pub slack: (Option<u64>, Option<u64>),
    /// Jumps of the device's clock against the host's, nanoseconds, at these ticks.
    pub steps: Vec<(u64, i64)>,
    /// Difference from the nominal rate over the whole span, parts per million.
    pub drift_ppm: f64,
}

impl ClockFit {
    /// For a clock of this nominal rate that may run up to 500 ppm faster or slower.
    pub fn new(nanos_per_tick: f64) -> Self {
        ClockFit {
            nanos_per_tick,
            largest_drift: 500e-6,
            assumed_offset: None,
            origin: None,
            cell_ticks: 1,
            cells: BTreeMap::new(),
            bounds: 0,
        }
    }

    /// For stamps declared as nanoseconds of the host's clock plus `offset`, which is kept as long as no
    /// bound contradicts it.
    pub fn with_host_offset(offset: i64) -> Self {
        ClockFit { assumed_offset: Some(offset), ..ClockFit::new(1.0) }
    }

    /// The device showed `ticks` at `host_nanos` or later: an operation that was submitted then
    /// started at `ticks`.
    pub fn not_before(&mut self, ticks: u64, host_nanos: u64) {
        self.add(ticks, host_nanos, Side::Lower);
    }

    /// The device showed `ticks` at `host_nanos` or earlier: an operation that was seen to have
    /// ended then ended at `ticks`.
    pub fn not_after(&mut self, ticks: u64, host_nanos: u64) {
        self.add(ticks, host_nanos, Side::Upper);
    }

    fn add(&mut self, ticks: u64, host_nanos: u64, side: Side) {
        self.bounds += 1;
        let host = i64::try_from(host_nanos).unwrap_or(i64::MAX);
        let assumed = self.assumed_offset;
        let assumed = assumed.map_or(host, |offset| (i128::from(ticks) + i128::from(offset)) as i64);
        let (_, origin_nanos) = *self.origin.get_or_insert((ticks, assumed));
        let y =
            host.saturating_sub(origin_nanos) as f64 - self.ticks_since_origin(ticks) * self.nanos_per_tick;
        let cell = self.cells.entry(ticks / self.cell_ticks).or_default();
        cell.take(ticks, y, side);
        if self.cells.len() > MAX_CELLS {
            self.widen_cells();
        }
    }

    fn ticks_since_origin(&self, ticks: u64) -> f64 {
        let origin = self.origin.map_or(0, |(ticks, _)| ticks);
        (i128::from(ticks) - i128::from(origin)) as f64
    }

    fn widen_cells(&mut self) {
        while self.cells.len() > MAX_CELLS / 2 {
            self.cell_ticks = self.cell_ticks.saturating_mul(2);
            for cell in std::mem::take(&mut self.cells).into_values() {
                let sides = [(cell.lower, Side::Lower), (cell.upper, Side::Upper)];
                for (ticks, y, side) in sides.into_iter().filter_map(|(b, side)| b.map(|(t, y)| (t, y, side)))
                {
                    self.cells.entry(ticks / self.cell_ticks).or_default().take(ticks, y, side);
                }
            }
        }
    }

    /// The map through the collected bounds; `None` without any bound.
    pub fn fit(&self) -> Option<ClockMap> {
        let (origin_ticks, origin_nanos) = self.origin?;
        let mut bounds: Vec<Bound> = Vec::with_capacity(2 * self.cells.len());
        for cell in self.cells.values() {
            for (bound, side) in [(cell.lower, Side::Lower), (cell.upper, Side::Upper)] {
                bounds.extend(bound.map(|(ticks, y)| Bound { x: self.ticks_since_origin(ticks), y, side }));
            }
        }
        bounds.sort_by(|a, b| a.x.total_cmp(&b.x));
        let pieces = self.pieces(&bounds);
        let mut knots: Vec<Knot> = Vec::with_capacity(2 * pieces.len());
        let mut steps = Vec::new();
        let mut before: Option<&Piece> = None;
        for piece in &pieces {
            if let Some(before) = before {
                // Latest meeting point of the lines; a jump beyond the drift is a step.
                let jump = piece.line.at(piece.first) - before.line.at(piece.first);
                let drift = (piece.first - before.last) * self.nanos_per_tick * 2.0 * self.largest_drift;
                if jump.abs() > drift + 1000.0 {
                    steps.push((offset_ticks(origin_ticks, piece.first), jump as i64));
                }
            }
            for x in [piece.first, piece.last] {
                let nanos = (x * self.nanos_per_tick + piece.line.at(x)).round() as i64;
                let nanos = origin_nanos.saturating_add(nanos);
                let knot = Knot { ticks: offset_ticks(origin_ticks, x), nanos };
                match knots.last() {
                    Some(last) if knot.ticks <= last.ticks => {}
                    // The device's clock jumped ahead: the map is constant rather than going back.
                    Some(last) if knot.nanos < last.nanos => knots.push(Knot { nanos: last.nanos, ..knot }),
                    _ => knots.push(knot),
                }
            }
            before = Some(piece);
        }
        let mut map = ClockMap {
            knots,
            nanos_per_tick: self.nanos_per_tick,
            bounds: self.bounds,
            violated: 0,
            worst_violation: 0,
            slack: (None, None),
            steps,
            drift_ppm: 0.0,
        };
        map.judge(&bounds, origin_ticks, origin_nanos);
        Some(map)
    }

    /// Cuts the bounds into spans that a line can pass, each as long as possible.
    fn pieces(&self, bounds: &[Bound]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut begin = 0;
        while begin < bounds.len() {
            // Double the span while a line passes, then halve the step.
            let (mut passed, mut step) = (begin + 1, 1);
            let mut line = self.line_through(&bounds[begin..passed]);
            let mut growing = true;
            while step > 0 {
                let end = (passed + step).min(bounds.len());
                let longer = (end > passed).then(|| self.line_through(&bounds[begin..end])).flatten();
                if longer.is_some() {
                    (passed, line) = (end, longer);
                    step = if growing { step * 2 } else { step / 2 };
                } else {
                    growing = false;
                    step /= 2;
                }
            }
            let line = line.unwrap_or(Line { slope: 0.0, y0: bounds[begin].y, x0: bounds[begin].x });
            pieces.push(Piece { first: bounds[begin].x, last: bounds[passed - 1].x, line });
            begin = passed;
        }
        pieces
    }

    /// The line within the bounds, and within the drift, that keeps furthest from both sides.
    fn line_through(&self, bounds: &[Bound]) -> Option<Line> {
        let x0 = bounds.first()?.x;
        let span_of = |side| bounds.iter().filter(move |bound| bound.side == side);
        // Among all lines with a slope: the highest below all upper bounds, the lowest above all lower.
        let room = |slope: f64| {
            let above = |bound: &Bound| bound.y - slope * (bound.x - x0);
            let lowest = span_of(Side::Lower).map(above).fold(f64::NEG_INFINITY, f64::max);
            let highest = span_of(Side::Upper).map(above).fold(f64::INFINITY, f64::min);
            (lowest, highest)
        };
        let through = |slope: f64| {
            let (lowest, highest) = room(slope);
            let y0 = match (lowest.is_finite(), highest.is_finite()) {
                (true, true) => (lowest + highest) / 2.0,
                (true, false) => lowest,
                _ => highest,
            };
            Line { slope, y0, x0 }
        };
        let (lowest, highest) = room(0.0);
        if self.assumed_offset.is_some() && lowest <= 0.0 && highest >= 0.0 {
            return Some(Line { slope: 0.0, y0: 0.0, x0 });
        }
        if !(lowest.is_finite() && highest.is_finite()) {
            return Some(through(0.0));
        }
        // The room is a concave function of the slope.
        let limit = self.nanos_per_tick * self.largest_drift;
        let (mut low, mut high) = (-limit, limit);
        let width = |slope: f64| {
            let (lowest, highest) = room(slope);
            highest - lowest
        };
        for _ in 0..60 {
            let third = (high - low) / 3.0;
            if width(low + third) < width(high - third) { low += third } else { high -= third }
        }
        let slope = (low + high) / 2.0;
        // Rounding costs one nanosecond.
        (width(slope) >= -1.0).then(|| through(slope))
    }
}

impl Cell {
    fn take(&mut self, ticks: u64, y: f64, side: Side) {
        let place = match side {
            Side::Lower => &mut self.lower,
            Side::Upper => &mut self.upper,
        };
        let tighter = |known: f64| if side == Side::Lower { y > known } else { y < known };
        if place.is_none_or(|(_, known)| tighter(known)) {
            *place = Some((ticks, y));
        }
    }
}

/// Host nanoseconds relative to the nominal line, over ticks since the origin.
#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    x0: f64,
    y0: f64,
}

impl Line {
    fn at(&self, x: f64) -> f64 {
        self.y0 + self.slope * (x - self.x0)
    }
}

struct Piece {
    first: f64,
    last: f64,
    line: Line,
}

/// Damaged bounds may be further apart than the numbers of their kind reach.
fn nanos_between(first: Knot, second: Knot) -> f64 {
    (i128::from(second.nanos) - i128::from(first.nanos)) as f64
}

fn offset_ticks(origin: u64, x: f64) -> u64 {
    (i128::from(origin) + x as i128).clamp(0, i128::from(u64::MAX)) as u64
}

impl ClockMap {
    /// For stamps that are nanoseconds of the host's clock plus `offset`.
    pub fn with_host_offset(offset: i64) -> Self {
        ClockMap {
            knots: vec![Knot { ticks: 0, nanos: offset }],
            nanos_per_tick: 1.0,
            bounds: 0,
            violated: 0,
            worst_violation: 0,
            slack: (None, None),
            steps: Vec::new(),
            drift_ppm: 0.0,
        }
    }

    /// Nanoseconds of the host's clock at these device ticks; saturating.
    pub fn host_nanos(&self, ticks: u64) -> u64 {
        let after = self.knots.partition_point(|knot| knot.ticks <= ticks);
        let (Some(base), rate) = (match (after.checked_sub(1), self.knots.get(after)) {
            (Some(before), Some(next)) => {
                let base = self.knots[before];
                let rate = nanos_between(base, *next) / (next.ticks - base.ticks) as f64;
                (Some(base), rate)
            }
            (Some(before), None) => (Some(self.knots[before]), self.nanos_per_tick),
            (None, next) => (next.copied(), self.nanos_per_tick),
        }) else {
            return ticks;
        };
        let distance = i128::from(ticks) - i128::from(base.ticks);
        // Whole nanoseconds stay exact at any distance.
        let moved = if rate == 1.0 { distance } else { (distance as f64 * rate).round() as i128 };
        (i128::from(base.nanos) + moved).clamp(0, i128::from(u64::MAX)) as u64
    }

    fn judge(&mut self, bounds: &[Bound], origin_ticks: u64, origin_nanos: i64) {
        let room = |known: &mut Option<u64>, nanos: f64| {
            let nanos = nanos.max(0.0) as u64;
            *known = Some(known.map_or(nanos, |known| known.min(nanos)));
        };
        for bound in bounds {
            // Since the origin, within the exact range of floats.
            let host = bound.x * self.nanos_per_tick + bound.y;
            let mapped = self.host_nanos(offset_ticks(origin_ticks, bound.x));
            let mapped = (i128::from(mapped) - i128::from(origin_nanos)) as f64;
            let slack = match bound.side {
                Side::Lower => mapped - host,
                Side::Upper => host - mapped,
            };
            match bound.side {
                Side::Lower => room(&mut self.slack.0, slack),
                Side::Upper => room(&mut self.slack.1, slack),
            }
            if slack < -1.5 {
                self.violated += 1;
                self.worst_violation = self.worst_violation.max(-slack as u64);
            }
        }
        if let (Some(first), Some(last)) = (self.knots.first(), self.knots.last())
            && last.ticks > first.ticks
        {
            let nominal = (last.ticks - first.ticks) as f64 * self.nanos_per_tick;
            self.drift_ppm = (nanos_between(*first, *last) - nominal) / nominal * 1e6;
        }
    }
}

/// Makes one growing count from a counter of few bits.
#[derive(Clone, Copy, Debug)]
pub struct Unwrap {
    bits: u32,
}

impl Unwrap {
    /// For a counter with so many valid bits, 1 to 64.
    pub fn new(bits: u32) -> Self {
        Unwrap { bits: bits.clamp(1, 64) }
    }

    /// The first count at or after `expected` that the counter can stand for. `expected` is the least count,
    /// known from the time of submission. A sixteenth of the period is left for its error.
    pub fn count(self, counter: u64, expected: u64) -> u64 {
        if self.bits == 64 {
            return counter;
        }
        let period = 1u64 << self.bits;
        let counter = counter & (period - 1);
        let count = (expected & !(period - 1)) | counter;
        if count.saturating_add(period / 16) < expected {
            count.saturating_add(period)
        } else if count > expected.saturating_add(period - period / 16) && count >= period {
            count - period
        } else {
            count
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_is_followed_within_its_bounds() {
        // 19.2 MHz, 40 ppm fast, bounds 10 to 60 µs away.
        let rate = 1e9 / 19.2e6;
        let truth = |ticks: u64| 5_000_000_000.0 + ticks as f64 * rate * (1.0 - 40e-6);
        let mut fit = ClockFit::new(rate);
        for i in 0..50_000u64 {
            let ticks = 1 << 33 | (i * 19_200);
            fit.not_before(ticks, (truth(ticks) - 10_000.0 - (i * 7919 % 50_000) as f64) as u64);
            fit.not_after(ticks, (truth(ticks) + 10_000.0 + (i * 104_729 % 50_000) as f64) as u64);
        }
        let map = fit.fit().unwrap();
        assert_eq!((map.violated, map.knots.len(), &map.steps[..]), (0, 2, &[][..]));
        assert!((map.drift_ppm + 40.0).abs() < 1.0, "{}", map.drift_ppm);
        for i in [0, 20_000, 49_999] {
            let ticks = 1 << 33 | (i * 19_200);
            assert!((map.host_nanos(ticks) as f64 - truth(ticks)).abs() < 10_000.0);
        }
    }

    #[test]
    fn knots_may_be_further_apart_than_their_numbers_reach() {
        let mut map = ClockMap::with_host_offset(0);
        map.knots = vec![Knot { ticks: 0, nanos: i64::MIN }, Knot { ticks: 4, nanos: i64::MAX }];
        assert_eq!((map.host_nanos(1), map.host_nanos(3)), (0, 1 << 62));
        map.judge(&[], 0, 0);
        assert!(map.drift_ppm > 1e20);
    }

    #[test]
    fn a_step_is_reported_and_bridged_monotonically() {
        let mut fit = ClockFit::new(1.0);
        for i in 0..1000u64 {
            let ticks = 1_000_000 + i * 10_000;
            let host = ticks + 77_000_000 + if i < 500 { 0 } else { 4_000_000 };
            fit.not_before(ticks, host - 1000);
            fit.not_after(ticks + 5, host + 1000);
        }
        let map = fit.fit().unwrap();
        assert_eq!((map.violated, map.steps.len()), (0, 1));
        let (ticks, jump) = map.steps[0];
        assert!(ticks.abs_diff(6_000_000) <= 10_000 && (jump - 4_000_000).abs() < 3000, "{:?}", map.steps);
        let mapped: Vec<u64> = (0..11_000).map(|i| map.host_nanos(i * 1000)).collect();
        assert!(mapped.is_sorted());
    }

    #[test]
    fn the_hosts_own_clock_is_kept_exactly() {
        let mut fit = ClockFit::with_host_offset(-248_600_000);
        for i in 0..10_000u64 {
            let stamp = 1_704_727_757_057_692_365 + i * 12_345;
            fit.not_before(stamp, stamp - 248_600_000 - 900);
        }
        let map = fit.fit().unwrap();
        assert_eq!(map.violated, 0);
        assert_eq!(map.host_nanos(1_704_727_757_057_692_366), 1_704_727_757_057_692_366 - 248_600_000);
    }

    #[test]
    fn a_short_counter_is_unwrapped_by_the_submission() {
        let short = Unwrap::new(32);
        assert_eq!(short.count(0xffff_fff0, 0xffff_ff00), 0xffff_fff0);
        assert_eq!(short.count(0x10, 0xffff_ff00), 0x1_0000_0010);
        assert_eq!(short.count(0xffff_fff0, 0x1_0000_0005), 0xffff_fff0);
        assert_eq!(Unwrap::new(64).count(7, 1 << 60), 7);
    }
}
