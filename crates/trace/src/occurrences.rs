//! Frequent occurrences in one file. Each is reported once per clock, so that a range has its own; beyond a limit they
//! are only counted.

use crate::finding::Finding;
use crate::problem::ProblemKind;

/// A file with more places than this has no readable list of them anyway.
const MAX_PLACES: usize = 1000;

#[derive(Default)]
pub(crate) struct Occurrences {
    places: Vec<Occurrence>,
    /// Occurrences without a place of their own; its clock is that of the first of them.
    others: Option<Occurrence>,
}

struct Occurrence {
    offset: usize,
    clock: i64,
    count: u64,
}

impl Occurrences {
    pub(crate) fn add(&mut self, offset: usize, clock: i64) {
        let is_full = self.places.len() == MAX_PLACES;
        match self.places.last_mut() {
            Some(last) if last.clock == clock => last.count += 1,
            Some(_) if is_full => {
                self.others.get_or_insert(Occurrence { offset, clock, count: 0 }).count += 1
            }
            _ => self.places.push(Occurrence { offset, clock, count: 1 }),
        }
    }

    /// A finding for each place. That of the others has no clock, so it is in every range.
    pub(crate) fn report(self, kind: ProblemKind, text: &str, findings: &mut Vec<Finding>) {
        findings.extend(self.places.into_iter().map(|Occurrence { offset, clock, count }| Finding {
            kind,
            offset,
            clock: Some(clock),
            count,
            text: text.to_owned(),
        }));
        findings.extend(self.others.map(|Occurrence { offset, count, .. }| Finding {
            kind,
            offset,
            clock: None,
            count,
            text: format!("{text}; all beyond {MAX_PLACES} places of the file are counted together"),
        }));
    }
}
