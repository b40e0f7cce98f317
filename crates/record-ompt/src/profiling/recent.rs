//! The use of a thread's time since its last barrier: a few representative samples, and the tasks that it
//! waited for.
//!
//! ```text
//!   this thread     work ──────┤ taskwait: task T ├─ work ──┤ barrier, the last to arrive
//!   windows         [ s ][ s ] [        T         ] [ s ]
//!   another thread  work ───────────┤ barrier ─────────────┤
//!                                   └ charged: half of T, and s
//! ```
//! Entries are weighted by the time that they represent, and divided into windows of about equal weight. Each
//! window keeps one entry, chosen in proportion to its weight (weighted reservoir sampling, Chao 1982). When
//! there are too many windows, pairs are merged, and one of the two entries is kept, again by weight.
//!
//! A window also has the span of time of its entries. A thread that waits for this one charges a window by its overlap
//! with that waiting: earlier work caused no delay. A weight is spread evenly over its span.

use super::contexts::ChargedPath;

/// Number of windows; the last one may be partial.
const KEPT: usize = 16;
/// User frames of each, innermost first.
const DEEPEST: usize = 64;

/// Begin and end on the clock of events, nanoseconds.
pub type Span = (u64, u64);

/// The entries.
#[derive(Clone, Copy)]
pub struct Recent {
    kept: [Entry; KEPT],
    /// The windows' weights, nanoseconds.
    weights: [u64; KEPT],
    spans: [Span; KEPT],
    /// Windows, with the last one.
    used: usize,
    /// Weight of a full window.
    full: u64,
    /// When it was cleared. No span begins earlier: a sample may stand for work that an earlier one missed.
    since: u64,
    /// State of a generator of random numbers (xorshift).
    random: u32,
}

/// A sample of work.
#[derive(Clone, Copy)]
pub struct Sampled<'a> {
    pub context: u32,
    /// User frames, innermost first, of which all but the innermost are return addresses.
    pub addresses: &'a [u64],
    /// Whether frames further out are missing.
    pub is_cut: bool,
}

/// Use of time: what a part of it is charged to.
#[derive(Clone, Copy)]
pub enum Use<'a> {
    /// The thread's own work.
    Work(Sampled<'a>),
    /// The path that the thread waited for; `None` if it is not known.
    Awaited(Option<ChargedPath>),
}

/// A [`Use`]. Not an enum: the handler writes it in place, as its stack may be small.
#[derive(Clone, Copy)]
struct Entry {
    kind: Kind,
    context: u32,
    /// The awaited path in the context.
    path: u32,
    length: usize,
    is_cut: bool,
    addresses: [u64; DEEPEST],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Work,
    Awaited,
    AwaitedUnknown,
}

impl Default for Recent {
    fn default() -> Self {
        let (kind, addresses) = (Kind::AwaitedUnknown, [0; DEEPEST]);
        Recent {
            kept: [Entry { kind, context: 0, path: 0, length: 0, is_cut: false, addresses }; KEPT],
            weights: [0; KEPT],
            spans: [(0, 0); KEPT],
            used: 0,
            full: 0,
            since: 0,
            random: 0x9e37_79b9,
        }
    }
}

impl Entry {
    fn set_to(&mut self, Sampled { context, addresses, is_cut }: Sampled<'_>, calls: bool) {
        let length = addresses.len().min(DEEPEST);
        if let (Some(to), Some(from)) = (self.addresses.get_mut(..length), addresses.get(..length)) {
            to.copy_from_slice(from);
            if let Some(innermost) = to.first_mut().filter(|_| calls) {
                *innermost = innermost.wrapping_sub(1);
            }
        }
        (self.kind, self.context, self.length) = (Kind::Work, context, length);
        self.is_cut = is_cut || length < addresses.len();
    }

    fn shown(&self) -> Use<'_> {
        match self.kind {
            Kind::Work => Use::Work(Sampled {
                context: self.context,
                addresses: self.addresses.get(..self.length).unwrap_or_default(),
                is_cut: self.is_cut,
            }),
            Kind::Awaited => Use::Awaited(Some((self.context, self.path))),
            Kind::AwaitedUnknown => Use::Awaited(None),
        }
    }
}

impl Recent {
    /// Removes all entries, after a barrier at `at`.
    #[inline(always)]
    pub fn clear(&mut self, at: u64) {
        (self.used, self.full, self.since) = (0, 0, at);
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Whether there are samples of work.
    pub fn has_work(&self) -> bool {
        self.kept.iter().take(self.used).any(|entry| entry.kind == Kind::Work)
    }

    /// Adds a sample, taken at `at`, of this weight. With `calls`, other code did the work that its innermost frame
    /// called, so the innermost address is a return address too. Async-signal-safe.
    pub fn add(&mut self, sample: Sampled<'_>, calls: bool, weight: u64, at: u64) {
        let span = (at.saturating_sub(weight).max(self.since).min(at), at);
        self.add_in(span, weight, |kept| kept.set_to(sample, calls));
    }

    /// Adds `ns` of a wait in `span` for a path; `None` if that is not known.
    pub fn add_awaited(&mut self, place: Option<ChargedPath>, ns: u64, span: Span) {
        if ns > 0 {
            self.add_in(span, ns, |kept| {
                kept.kind = if place.is_some() { Kind::Awaited } else { Kind::AwaitedUnknown };
                (kept.context, kept.path) = place.unwrap_or_default();
            });
        }
    }

    fn add_in(&mut self, (from, until): Span, weight: u64, keep: impl FnOnce(&mut Entry)) {
        // A coarse clock may give a weight of 0.
        let weight = weight.max(1);
        if self.used == 0 || self.weight_of(self.used - 1) >= self.full {
            if self.used == KEPT {
                self.join_windows();
            }
            self.used += 1;
            self.set(self.used - 1, 0, (from, until));
        }
        let last = self.used - 1;
        let all = self.weight_of(last).saturating_add(weight);
        let before = self.span_of(last);
        self.set(last, all, (before.0.min(from), before.1.max(until)));
        if self.happens(weight, all)
            && let Some(kept) = self.kept.get_mut(last)
        {
            keep(kept);
        }
    }

    fn weight_of(&self, window: usize) -> u64 {
        self.weights.get(window).copied().unwrap_or(0)
    }

    fn span_of(&self, window: usize) -> Span {
        self.spans.get(window).copied().unwrap_or_default()
    }

    fn set(&mut self, window: usize, ns: u64, span: Span) {
        if let Some((weight, of)) = self.weights.get_mut(window).zip(self.spans.get_mut(window)) {
            (*weight, *of) = (ns, span);
        }
    }

    #[cold]
    fn join_windows(&mut self) {
        for joined in 0..KEPT / 2 {
            let (first, second) = (joined * 2, joined * 2 + 1);
            let all = self.weight_of(first).saturating_add(self.weight_of(second));
            let kept = if self.happens(self.weight_of(first), all) { first } else { second };
            self.kept.copy_within(kept..=kept, joined);
            let (one, other) = (self.span_of(first), self.span_of(second));
            self.set(joined, all, (one.0.min(other.0), one.1.max(other.1)));
        }
        self.used = KEPT / 2;
        self.full = (0..self.used).map(|window| self.weight_of(window) / self.used as u64).sum();
    }

    /// Returns true with the probability `part / all`.
    fn happens(&mut self, part: u64, all: u64) -> bool {
        u128::from(self.next_random()) * u128::from(all) < u128::from(part) << 32
    }

    fn next_random(&mut self) -> u32 {
        let mut next = self.random;
        next ^= next << 13;
        next ^= next >> 17;
        next ^= next << 5;
        self.random = next;
        next
    }

    /// The kept samples of work, with their parts of all work.
    pub fn parts_of_work(&self) -> impl Iterator<Item = (Sampled<'_>, Part)> {
        let mut weights = self.weights;
        for (weight, entry) in weights.iter_mut().zip(&self.kept) {
            if entry.kind != Kind::Work {
                *weight = 0;
            }
        }
        self.parts_by(weights).filter_map(|(used, part)| match used {
            Use::Work(sample) => Some((sample, part)),
            Use::Awaited(_) => None,
        })
    }

    /// The kept entries, each with its part in the time of `waits`, the waits of another thread for this one. Parts of the whole
    /// if no entry is from that time.
    pub fn parts_during(&self, waits: &[Span]) -> impl Iterator<Item = (Use<'_>, Part)> {
        let mut weights = [0; KEPT];
        for (window, weight) in weights.iter_mut().enumerate().take(self.used) {
            let (from, until) = self.span_of(window);
            let overlap: u64 =
                waits.iter().map(|wait| wait.1.min(until).saturating_sub(wait.0.max(from))).sum();
            let all = u128::from(until.saturating_sub(from).max(1));
            let share = u128::from(self.weight_of(window)) * u128::from(overlap) / all;
            *weight = u64::try_from(share).unwrap_or(u64::MAX);
        }
        self.parts_by(if weights == [0; KEPT] { self.weights } else { weights })
    }

    fn parts_by(&self, weights: [u64; KEPT]) -> impl Iterator<Item = (Use<'_>, Part)> {
        let mut left: u64 = weights.iter().take(self.used).sum();
        let used = self.kept.get(..self.used).unwrap_or_default();
        used.iter().zip(weights).map(move |(entry, weight)| {
            let part = Part { weight, of: left };
            left -= weight;
            (entry.shown(), part)
        })
    }

    /// Adds the entries of `other`, each with the weight that it represents.
    pub fn absorb(&mut self, other: &Recent) {
        for ((entry, weight), span) in other.kept.iter().zip(other.weights).zip(other.spans).take(other.used)
        {
            self.add_in(span, weight, |kept| *kept = *entry);
        }
    }

    /// Replaces the entries with those of `other`.
    pub fn copy(&mut self, other: &Recent) {
        (self.used, self.full, self.since) = (other.used, other.full, other.since);
        (self.weights, self.spans) = (other.weights, other.spans);
        for (to, from) in self.kept.iter_mut().zip(&other.kept).take(other.used) {
            *to = *from;
        }
    }
}

/// A share of the remainder: shares that are taken one after the other leave no rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    weight: u64,
    of: u64,
}

impl Part {
    /// Subtracts the share from `left`, and returns it.
    pub fn take_from(self, left: &mut u64) -> u64 {
        let part = u128::from(*left) * u128::from(self.weight) / u128::from(self.of.max(1));
        *left -= part as u64;
        part as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_at(recent: &mut Recent, address: u64, weight: u64, at: u64) {
        recent.add(Sampled { context: 1, addresses: &[address, 7], is_cut: false }, false, weight, at);
    }

    fn add(recent: &mut Recent, address: u64, weight: u64) {
        add_at(recent, address, weight, 0);
    }

    fn number(used: Use<'_>) -> u64 {
        match used {
            Use::Work(sample) => sample.addresses[0],
            Use::Awaited(place) => u64::from(place.unwrap_or_default().0),
        }
    }

    /// Adds two kinds of samples (number, weight) in `turns`, the first one first, for each of the `rounds`.
    /// Returns the errors of the first one's share, in millionths: of the average, and the largest.
    fn shares_of(rounds: u64, turns: usize, parts: [(u64, u64); 2]) -> (u64, u64) {
        let mut recent = Recent::default();
        let (mut sum, mut most_wrong) = (0, 0);
        let [first, second] = parts.map(|(samples, weight)| samples * weight);
        let exact = 1_000_000 * first / (first + second);
        for _ in 0..rounds {
            recent.clear(0);
            for _ in 0..turns {
                for (address, (samples, weight)) in (1..).zip(parts) {
                    (0..samples).for_each(|_| add(&mut recent, address, weight));
                }
            }
            let mut left = 1_000_000;
            let parts: Vec<(u64, u64)> = recent
                .parts_during(&[])
                .map(|(used, part)| (number(used), part.take_from(&mut left)))
                .collect();
            assert_eq!((left, parts.iter().map(|part| part.1).sum::<u64>()), (0, 1_000_000));
            let first_ns: u64 = parts.iter().filter(|part| part.0 == 1).map(|part| part.1).sum();
            most_wrong = most_wrong.max(first_ns.abs_diff(exact));
            sum += first_ns;
        }
        ((sum / rounds).abs_diff(exact), most_wrong)
    }

    /// If a period is split in two at any point, each side gets its share: exact on average, and at most two
    /// windows off.
    #[test]
    fn kept_samples_represent_all() {
        for (first, second) in [(1, 1), (3, 1), (30, 10), (10, 30), (300, 100), (77, 1000)] {
            let (on_average, at_most) = shares_of(400, 1, [(first, 5), (second, 5)]);
            assert!(at_most <= 250_000 && on_average < 10_000, "{first} {second}: {on_average} {at_most}");
        }
    }

    /// As code that sleeps, of which there is one sample, at the end.
    #[test]
    fn a_sample_counts_by_its_weight() {
        for turns in [1, 7, 40] {
            let (on_average, at_most) = shares_of(1000, turns, [(6, 1_000_000), (1, 14_000_000)]);
            assert!(on_average < 15_000, "{turns} turns: {on_average}, {at_most} at most");
            assert!(turns > 2 || at_most == 0, "each has a window: {at_most}");
        }
        let (on_average, _) = shares_of(400, 1, [(1000, 1), (1, 1_000_000)]);
        assert!(on_average < 10_000, "{on_average}");
    }

    #[test]
    fn deep_stacks_are_cut_and_marked() {
        let mut recent = Recent::default();
        recent.add(Sampled { context: 3, addresses: &[9; DEEPEST + 1], is_cut: false }, true, 0, 0);
        let (sampled, _) = recent.parts_of_work().next().unwrap();
        assert_eq!((sampled.context, sampled.addresses.len(), sampled.is_cut), (3, DEEPEST, true));
        assert_eq!(sampled.addresses[..2], [8, 9], "inside the call");
    }

    fn shares_during(recent: &Recent, waits: &[Span], owed: u64) -> Vec<(u64, u64)> {
        let mut left = owed;
        let shares = recent.parts_during(waits).map(|(used, part)| (number(used), part.take_from(&mut left)));
        let shares = shares.filter(|share| share.1 > 0).collect();
        assert_eq!(left, 0);
        shares
    }

    #[test]
    fn others_charge_the_time_in_which_they_waited() {
        let mut recent = Recent::default();
        for at in [10, 20, 30] {
            add_at(&mut recent, 1, 10, at);
        }
        recent.add_awaited(Some((2, 0)), 30, (30, 70));
        recent.add_awaited(None, 10, (30, 70));
        add_at(&mut recent, 3, 10, 80);
        assert_eq!(shares_during(&recent, &[(70, 80)], 10), [(3, 10)]);
        assert_eq!(shares_during(&recent, &[(30, 80)], 50), [(2, 30), (0, 10), (3, 10)]);
        assert_eq!(
            shares_during(&recent, &[(25, 30), (30, 50), (75, 85)], 30),
            [(1, 5), (2, 15), (0, 5), (3, 5)]
        );
        assert_eq!(shares_during(&recent, &[(0, 30)], 60), [(1, 20), (1, 20), (1, 20)]);
        // Between two samples: they stand for it.
        assert_eq!(
            shares_during(&recent, &[(80, 81)], 80),
            [(1, 10), (1, 10), (1, 10), (2, 30), (0, 10), (3, 10)]
        );
        let work_samples: Vec<u64> = recent.parts_of_work().map(|(sample, _)| sample.addresses[0]).collect();
        assert_eq!(work_samples, [1, 1, 1, 3]);
    }

    /// As if the first part of the work had its sample after the barrier before.
    #[test]
    fn time_before_the_barrier_is_of_the_work_after_it() {
        let mut recent = Recent::default();
        recent.clear(100);
        add_at(&mut recent, 1, 60, 120);
        add_at(&mut recent, 2, 20, 140);
        assert_eq!(shares_during(&recent, &[(100, 140)], 80), [(1, 60), (2, 20)]);
    }

    #[test]
    fn joined_windows_keep_their_time() {
        let mut recent = Recent::default();
        for at in 1..=1000 {
            add_at(&mut recent, if at <= 500 { 1 } else { 2 }, 10, 10 * at);
        }
        let mut outer = Recent::default();
        outer.absorb(&recent);
        for recent in [&recent, &outer] {
            for (waits, only) in [((0, 4000), 1), ((6000, 10_000), 2)] {
                assert!(shares_during(recent, &[waits], 4000).iter().all(|share| share.0 == only));
            }
        }
    }
}
