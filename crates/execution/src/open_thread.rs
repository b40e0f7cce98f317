//! State of one thread while its changes arrive.

use crate::newest::NewestSections;
use crate::splice::Shown;
use crate::storing::Storing;
use crate::{
    Anomalies, Anomaly, Doubt, GapIndex, ObjectIndex, Place, PlaceKind, Section, State, ThreadIndex,
    Uncertain, WorkShare,
};

/// A thread while its changes arrive.
#[derive(Debug)]
pub(crate) struct OpenThread {
    /// Time of the last change.
    pub last_change: u64,
    /// Serial code that the thread is in when it is in no region.
    pub gap: GapIndex,
    /// Worksharing shares that are open, innermost last.
    pub works: Vec<WorkShare>,
    /// Nesting of holds by object, if above one.
    pub depths: Vec<(ObjectIndex, u32)>,
    /// The time from which all begins are lost, and the number of lost events.
    pub blind: Option<(u64, u64)>,
    /// The thread's hidden section since then.
    unseen: Section,
    pub newest: NewestSections,
    /// For a CPU: the threads that it shows.
    pub shows: Vec<Shown>,
    /// For a CPU: begin of the time in which several threads run on it.
    pub shared_since: Option<u64>,
}

impl OpenThread {
    /// A thread of which nothing is known, before the first region of its process.
    pub fn new(gap: GapIndex) -> OpenThread {
        OpenThread {
            last_change: 0,
            gap,
            works: Vec::new(),
            depths: Vec::new(),
            blind: None,
            unseen: Section::of(State::Unknown),
            newest: NewestSections::default(),
            shows: Vec::new(),
            shared_since: None,
        }
    }

    /// The thread's current section.
    pub fn current(&self) -> Section {
        if self.blind.is_some() {
            return self.unseen;
        }
        let last = self.newest.rows().last().map_or(Section::of(State::Unknown), |row| row.section);
        match last.place.kind() {
            // The place of serial code may change when a region ends.
            PlaceKind::Gap(_) => Section { place: Place::UNKNOWN, ..last },
            _ => last,
        }
    }
}

/// Receives the sections of one thread, change by change.
#[derive(Debug)]
pub struct OpenTrack<'a> {
    pub(crate) thread: ThreadIndex,
    pub(crate) open: &'a mut OpenThread,
    pub(crate) storing: &'a mut Storing,
    pub(crate) anomalies: &'a mut Anomalies,
    pub(crate) uncertain: &'a mut Vec<Uncertain>,
}

impl OpenTrack<'_> {
    /// Sets the thread's section from `at` on, nanoseconds.
    #[inline(always)]
    pub fn becomes(&mut self, at: u64, section: Section) {
        self.open.last_change = at;
        if self.open.blind.is_some() {
            self.open.unseen = section;
            return;
        }
        let is_in_gap = section.state == State::Serial && section.place == Place::UNKNOWN;
        let place = if is_in_gap { Place::gap(self.open.gap) } else { section.place };
        let (storing, track) = (&mut *self.storing, self.thread.index());
        let shown = Section { place, ..section };
        let back = self.open.newest.set(at, shown, |rows| storing.store(track, rows));
        if back > 0 {
            self.anomalies.count(self.thread, at, Anomaly::TimeRunsBack { ns: back });
        }
    }

    /// As [`Observer::anomaly`](crate::Observer::anomaly).
    pub fn anomaly(&mut self, at: u64, anomaly: Anomaly) {
        self.anomalies.count(self.thread, at, anomaly);
        if anomaly.is_of_sections() {
            let start = self.open.last_change.min(at);
            self.uncertain.push(Uncertain { thread: self.thread, start, end: at, doubt: Doubt::DoesNotFit });
        }
    }
}
