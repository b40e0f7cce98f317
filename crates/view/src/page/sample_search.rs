//! The search in code by samples: stretches of time with a function in the call path that has a text in its name.

use super::Page;
use super::matches::Matches;
use super::sample_facts::SampleFacts;
use super::sample_rows::SampleView;
use super::samples::SampleTimes;
use super::search::{Direction, Found, Position, has_text};
use super::values::ValueFacts;
use rayon::prelude::*;
use taskscope_execution::lod::{Flags, Marks};

/// The spots with a text in a name of their path.
pub(super) struct NamedSpots(Vec<bool>);

impl NamedSpots {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }
}

impl Matches {
    /// The marks of a row of code by samples, which matches only by words.
    pub(super) fn code_marks(&self, page: &Page, row: u32) -> Option<&Marks> {
        let marks = self.code.get(row as usize)?;
        Some(
            marks.get_or_init(|| {
                Marks::new(Flags::MATCH, page.named_code(row, &page.named_spots(&self.text)))
            }),
        )
    }
}

impl Page {
    /// The spots with a text in the name of a function of their path.
    pub(super) fn named_spots(&self, text: &str) -> NamedSpots {
        let (samples, has_text) = (&self.samples, has_text(text));
        let named: Vec<bool> = samples.words.iter().map(|word| has_text(word)).collect();
        let mut steps: Vec<bool> = Vec::with_capacity(samples.steps.len());
        for step in &samples.steps {
            let is_outer_named = steps.get(step.outer as usize).copied().unwrap_or(false);
            steps.push(is_outer_named || named.get(step.name as usize).copied().unwrap_or(false));
        }
        let is_named = |step: u32| steps.get(step as usize).copied().unwrap_or(false);
        NamedSpots(samples.spots.iter().map(|spot| is_named(spot.step)).collect())
    }

    /// Begin and end of the stretches of a row of code at these spots, in order; none touches another.
    pub(super) fn named_code(&self, row: u32, spots: &NamedSpots) -> Vec<(u64, u64)> {
        let rows = &self.sample_rows(SampleView::Code).rows;
        let Some((thread, _)) = rows.get(row as usize) else { return Vec::new() };
        let pieces = SampleTimes::pieces(&self.execution, self.samples.during(*thread, 0, u64::MAX));
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for piece in pieces.iter().filter(|piece| spots.0.get(piece.spot as usize).copied().unwrap_or(false))
        {
            match stretches.last_mut() {
                Some((_, end)) if *end == piece.start => *end = piece.end,
                _ => stretches.push((piece.start, piece.end)),
            }
        }
        stretches
    }

    /// Number and nanoseconds of the stretches with a text in a name of their path.
    pub(super) fn count_code(&self, text: &str) -> (u64, u64) {
        let spots = self.named_spots(text);
        if spots.is_empty() {
            return (0, 0);
        }
        let rows = 0..self.sample_row_count(SampleView::Code) as u32;
        let sums = rows.into_par_iter().map(|row| {
            let stretches = self.named_code(row, &spots);
            let ns: u64 = stretches.iter().map(|(start, end)| end - start).sum();
            (stretches.len() as u64, ns)
        });
        sums.reduce(|| (0, 0), |one, two| (one.0 + two.0, one.1 + two.1))
    }

    /// The nearest stretch of code with a text in a name of its path.
    pub(super) fn search_code(&self, text: &str, from: Position, direction: Direction) -> Option<Found> {
        let spots = self.named_spots(text);
        if spots.is_empty() {
            return None;
        }
        let at = self.start().saturating_add(from.at());
        let before = self.tracks() + self.queues.len();
        let rows = 0..self.sample_row_count(SampleView::Code) as u32;
        let found = rows.into_par_iter().filter_map(|row| {
            let stretches = self.named_code(row, &spots);
            let same = from.has_before_it(before + row as usize, direction.is_later());
            let stretch = match direction {
                Direction::First => stretches.first(),
                Direction::Last => stretches.last(),
                Direction::Next => stretches
                    .get(stretches.partition_point(|(start, _)| *start < at || (*start == at && !same))),
                Direction::Previous => {
                    let end = stretches.partition_point(|(start, _)| *start < at || (*start == at && same));
                    stretches[..end].last()
                }
            };
            stretch.map(|(start, end)| (*start, row, *end))
        });
        let (start, row, end) = if direction.is_later() { found.min() } else { found.max() }?;
        let (start, end) = (self.since_start(start), self.since_start(end));
        let facts = self.sample_at(SampleView::Code, row, start, None)?;
        // All of the stretch, which may be several bars, or a part of one.
        let bar = ValueFacts { start, end, ..facts.bar };
        Some(Found::Code(Box::new(SampleFacts { bar, ..facts })))
    }
}
