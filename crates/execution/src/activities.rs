//! Activities, pairs of state and place: a run has few, and tracks name them by number.

use crate::{Column, Joined, Place, State};
use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

/// A state at a place, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Activity {
    /// Number of the state.
    state: u32,
    place: Place,
}

impl Activity {
    fn of(state: State, place: Place) -> Activity {
        Activity { state: state as u32, place }
    }

    /// State and place.
    fn reported(self) -> (State, Place) {
        let state = State::ALL.get(self.state as usize).copied();
        (state.unwrap_or(State::Unknown), self.place)
    }
}

/// Marks an activity without a number: each row of a track then keeps its own.
pub(crate) const RARE: u16 = u16::MAX;

/// Activities by number, for the tracks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activities(Vec<(State, Place)>);

impl Activities {
    /// Number of numbers.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The activity with this number.
    pub fn get(&self, number: u16) -> Option<(State, Place)> {
        self.0.get(usize::from(number)).copied()
    }

    /// Activities by number; [`RARE`] is not among them.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[(State, Place)] {
        &self.0
    }

    /// The activities with these types joined. Joined activities may keep two numbers.
    pub(crate) fn joined(self, joined: &Joined) -> Activities {
        Activities(self.0.into_iter().map(|(state, place)| (state, joined.place(place))).collect())
    }

    /// The stored form.
    pub fn stored(&self) -> Column<Activity> {
        let stored = self.0.iter().map(|(state, place)| Activity::of(*state, *place));
        stored.collect::<Vec<_>>().into()
    }

    /// Restores stored activities.
    pub fn from_stored(stored: &[Activity]) -> Activities {
        Activities(stored.iter().take(usize::from(RARE)).map(|activity| activity.reported()).collect())
    }
}

/// A value of each activity, by default that of its kind.
#[derive(Clone, Debug)]
pub struct ByActivity<T> {
    by_number: Vec<T>,
    /// The numbers that may have other values, some of them several times; none if it may be any.
    set: Option<Vec<u16>>,
    rare: FxHashMap<(State, Place), T>,
}

/// Nanoseconds by activity.
pub type ActivityTimes = ByActivity<u64>;

impl<T: Clone + Default + PartialEq> ByActivity<T> {
    /// Nothing yet.
    pub fn of(activities: &Activities) -> ByActivity<T> {
        ByActivity {
            by_number: vec![T::default(); activities.0.len()],
            set: Some(Vec::new()),
            rare: FxHashMap::default(),
        }
    }

    /// Announces that values of the numbers of these rows are set. Without it [`ByActivity::take`] does not find them.
    pub(crate) fn will_set_those_of(&mut self, rows: &[u16]) {
        if let Some(set) = &mut self.set {
            if set.len() + rows.len() < self.by_number.len() {
                set.extend(rows);
            } else {
                self.set = None;
            }
        }
    }

    #[inline(always)]
    pub(crate) fn by_number(&mut self, number: u16) -> Option<&mut T> {
        self.by_number.get_mut(usize::from(number))
    }

    /// The value of an activity that may have no number.
    #[cold]
    pub(crate) fn rare(&mut self, activity: (State, Place)) -> &mut T {
        self.rare.entry(activity).or_default()
    }

    /// Takes out all that is not the default. An activity may come twice. Takes as long as there are values.
    pub fn take(&mut self, activities: &Activities) -> impl Iterator<Item = ((State, Place), T)> {
        let by_number = &mut self.by_number;
        let set = self.set.replace(Vec::new());
        let numbers = match set {
            Some(mut numbers) => {
                numbers.sort_unstable();
                numbers
            }
            None => (0..by_number.len() as u16).collect(),
        };
        let numbered = numbers.into_iter().filter_map(|number| {
            let value = std::mem::take(by_number.get_mut(usize::from(number))?);
            Some((activities.get(number)?, value))
        });
        numbered.chain(self.rare.drain()).filter(|(_, value)| *value != T::default())
    }
}

/// Activities that are found without a map; a power of two.
const RECENT: usize = 256;

/// Numbers of recently used activities: few of them alternate again and again.
#[derive(Debug)]
pub struct RecentNumbers<N> {
    /// The activity that came last of those that share a place here, as one number, and its number.
    places: Box<[(u64, N); RECENT]>,
}

impl<N: Copy> RecentNumbers<N> {
    /// Creates an empty cache; `nobody` is never requested.
    pub fn new(nobody: N) -> RecentNumbers<N> {
        RecentNumbers { places: Box::new([(u64::MAX, nobody); RECENT]) }
    }

    /// The number of an activity, from `look_up` if it was not requested lately.
    #[inline(always)]
    pub fn number(&mut self, state: State, place: Place, look_up: impl FnOnce() -> N) -> N {
        let key = u64::from(place.packed()) << 8 | state as u64;
        // Fibonacci hashing.
        let row = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT.ilog2())) as usize;
        let (known, number) = self.places[row];
        if known == key {
            return number;
        }
        let number = look_up();
        self.places[row] = (key, number);
        number
    }
}

/// Gives numbers to activities.
#[derive(Debug)]
pub(crate) struct ActivityNumbers {
    known: KnownNumbers,
    recent: RecentNumbers<u16>,
}

#[derive(Debug, Default)]
struct KnownNumbers {
    all: Vec<(State, Place)>,
    numbers: FxHashMap<(State, Place), u16>,
    /// Whether others rest on these numbers already, so that nothing gets a new one.
    is_complete: bool,
}

impl Default for ActivityNumbers {
    fn default() -> Self {
        ActivityNumbers { known: KnownNumbers::default(), recent: RecentNumbers::new(RARE) }
    }
}

impl ActivityNumbers {
    /// The numbers that others rest on.
    pub fn of(known: &Activities) -> ActivityNumbers {
        let numbers = known.0.iter().zip(0..).map(|(activity, number)| (*activity, number)).collect();
        let known = KnownNumbers { all: known.0.clone(), numbers, is_complete: true };
        ActivityNumbers { known, ..ActivityNumbers::default() }
    }

    /// The number, or [`RARE`].
    #[inline(always)]
    pub fn number(&mut self, state: State, place: Place) -> u16 {
        let known = &mut self.known;
        self.recent.number(state, place, || known.look_up((state, place)))
    }

    /// The activity with this number.
    pub fn activity(&self, number: u16) -> Option<(State, Place)> {
        self.known.all.get(usize::from(number)).copied()
    }

    /// The activities by number.
    pub fn finish(self) -> Activities {
        Activities(self.known.all)
    }
}

impl KnownNumbers {
    #[inline(never)]
    fn look_up(&mut self, activity: (State, Place)) -> u16 {
        if let Some(number) = self.numbers.get(&activity) {
            return *number;
        }
        if self.is_complete || self.all.len() == usize::from(RARE) {
            return RARE;
        }
        let number = self.all.len() as u16;
        self.numbers.insert(activity, number);
        self.all.push(activity);
        number
    }
}

/// A row of a track that keeps its own activity.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RareRow {
    row: u32,
    activity: Activity,
}

impl RareRow {
    pub(crate) fn join(&mut self, joined: &Joined) {
        self.activity.place = joined.place(self.activity.place);
    }
}

/// The activity of a row, among the sorted rows that keep their own.
pub(crate) fn rare_activity(rare: &[RareRow], row: usize) -> Option<(State, Place)> {
    let at = rare.binary_search_by_key(&row, |rare| rare.row as usize).ok()?;
    Some(rare[at].activity.reported())
}

/// Number of them before a row, which mostly is one of the next.
pub(crate) fn rare_rows_before(rare: &[RareRow], row: usize) -> usize {
    const NEAR: usize = 4;
    let is_before = |rare: &RareRow| (rare.row as usize) < row;
    let near = rare.iter().take(NEAR).take_while(|rare| is_before(rare)).count();
    if near < NEAR { near } else { near + rare[near..].partition_point(is_before) }
}

/// Sets a row, replacing an earlier value.
pub(crate) fn set_rare(rare: &mut Vec<RareRow>, row: usize, state: State, place: Place) {
    let new = RareRow { row: row as u32, activity: Activity::of(state, place) };
    let at = rare.partition_point(|other| other.row < new.row);
    match rare.get_mut(at).filter(|other| other.row == new.row) {
        Some(known) => *known = new,
        None => rare.insert(at, new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, ExecutionBuilder, LongestSections, Observer, Section, SiteIndex};
    use std::cell::Cell;

    /// As many processes as in a large job, each with code of its own: what is asked of one track takes as long as its
    /// sections, not as long as all activities.
    #[test]
    fn short_tracks_look_at_their_own_activities() {
        const THREADS: u32 = 100;
        let mut builder = ExecutionBuilder::new();
        for number in 0..THREADS {
            let process = builder.add_process("a", number.into());
            let thread = builder.add_thread(process, number.into());
            builder.event(thread, 0);
            for (at, state) in [(0, State::Task), (10, State::LockWait), (20, State::Task)] {
                let place = Place::site(SiteIndex(number));
                builder.change(thread, at, Change::Becomes(Section { place, ..Section::of(state) }));
            }
            builder.event(thread, 50);
            builder.change(thread, 50, Change::ThreadEnds);
        }
        let execution = builder.finish();
        let activities = &execution.activities;
        assert!(activities.count() >= 2 * THREADS as usize);
        // One table serves all threads, and has nothing of those before.
        let (mut times, mut longest) = (ActivityTimes::of(activities), LongestSections::of(activities));
        for (thread, number) in execution.threads.iter().zip(0..) {
            let (looks, mut found) = (Cell::new(0), Vec::new());
            let wanted = |state, _| {
                looks.set(looks.get() + 1);
                state == State::Task
            };
            thread.track.for_each_in(wanted, |span| found.push((span.start, span.end)));
            assert_eq!(found, [(0, 10), (20, 50)]);
            assert!(looks.get() <= thread.track.len(), "{} looks", looks.get());
            let place = Place::site(SiteIndex(number));
            thread.track.add_times(&mut times);
            let sums: Vec<_> = times.take(activities).collect();
            assert_eq!(sums, [((State::Task, place), 40), ((State::LockWait, place), 10)]);
            thread.track.find_longest(&mut longest);
            let all: Vec<_> =
                longest.take(activities).map(|(activity, found)| (activity.0, found.start)).collect();
            assert_eq!(all, [(State::Task, 20), (State::LockWait, 10)]);
        }
        // Many of them together are read as one.
        execution.threads.iter().for_each(|thread| thread.track.add_times(&mut times));
        let sums: Vec<u64> = times.take(activities).map(|(_, ns)| ns).collect();
        assert_eq!((sums.len(), sums.iter().sum::<u64>()), (2 * THREADS as usize, 50 * u64::from(THREADS)));
    }
}
