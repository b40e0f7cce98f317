//! Number of threads that run tasks of each type over time: a row for each of the largest task types.

use super::background::apart;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::OnceLock;
use taskscope_execution::lod::{FlagRules, Pyramid, Steps, Window};
use taskscope_execution::{
    Execution, Place, PlaceKind, Starts, State, TaskIndex, Thread, ThreadKind, Track, TypeIndex,
};

/// Types with a row of their own; the classes of a pyramid leave room for no more.
const TYPES: usize = 60;
/// All other types together.
const OTHERS: u8 = TYPES as u8;
/// No task runs.
const NOTHING: u8 = TYPES as u8 + 1;

/// The time of every thread by task type, at any zoom.
#[derive(Debug, Default)]
pub struct TypeRows {
    /// Names of the rows, those with most tasks first.
    pub(super) labels: Vec<String>,
    /// Whether there are more.
    pub(super) others: bool,
    slots: Vec<u8>,
    /// Built on first use.
    pyramids: OnceLock<Vec<Pyramid>>,
}

/// A thread's sections, each in the class of its task's type.
struct ByType<'a> {
    execution: &'a Execution,
    track: &'a Track,
    slots: &'a [u8],
}

impl Steps for ByType<'_> {
    fn starts(&self) -> impl Starts {
        self.track.starts()
    }

    fn end(&self) -> u64 {
        self.track.end()
    }

    fn classes(&self) -> impl Fn(usize) -> u8 {
        let spans = self.track.rows();
        let types: &[TypeIndex] = &self.execution.tasks.ty;
        move |row| {
            let (state, place) = spans.activity_at(row);
            let ty = running_type(types, state, place, || spans.task_at(row));
            ty.map_or(NOTHING, |ty| self.slots.get(ty.index()).copied().unwrap_or(OTHERS))
        }
    }
}

/// The type of the task or construct that runs its body in a section; `types` are those of all tasks.
fn running_type(
    types: &[TypeIndex],
    state: State,
    place: Place,
    task: impl FnOnce() -> TaskIndex,
) -> Option<TypeIndex> {
    if !matches!(state, State::Task | State::Worksharing) {
        return None;
    }
    match place.kind() {
        PlaceKind::Type(ty) => Some(ty),
        _ => types.get(task().index()).copied().filter(|ty| ty.is_some()),
    }
}

impl TypeRows {
    /// Chooses the types. Those of one name are one row: each process of a job has types of its own.
    pub fn of(execution: &Execution, names_of: impl FnOnce(Vec<TypeIndex>) -> Vec<String>) -> TypeRows {
        let mut counts = vec![0_u64; execution.catalog.types.len()];
        let constructs = execution.works.iter().map(|work| work.ty);
        for ty in execution.tasks.ty.iter().copied().chain(constructs) {
            if let Some(count) = counts.get_mut(ty.index()) {
                *count += 1;
            }
        }
        let types: Vec<TypeIndex> =
            (0..counts.len()).filter(|ty| counts[*ty] > 0).map(|ty| TypeIndex(ty as u32)).collect();
        let mut types_by_name: FxHashMap<String, (u64, Vec<TypeIndex>)> = FxHashMap::default();
        for (ty, name) in types.iter().zip(names_of(types.clone())) {
            let row = types_by_name.entry(name).or_default();
            row.0 += counts[ty.index()];
            row.1.push(*ty);
        }
        let mut rows: Vec<(String, (u64, Vec<TypeIndex>))> = types_by_name.into_iter().collect();
        rows.sort_by(|(_, a), (_, b)| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
        let others = rows.len() > TYPES;
        rows.truncate(TYPES);
        let mut slots = vec![OTHERS; counts.len()];
        for (slot, (_, (_, types))) in rows.iter().enumerate() {
            types.iter().for_each(|ty| slots[ty.index()] = slot as u8);
        }
        let labels = rows.into_iter().map(|(name, _)| name).collect();
        TypeRows { labels, others, slots, pyramids: OnceLock::new() }
    }

    /// Creates rows that walk over all sections for each answer; see [`Pyramid::without_buckets`].
    pub fn without_buckets(self, execution: &Execution) -> TypeRows {
        let pyramid = Pyramid::without_buckets(&FlagRules::default());
        TypeRows { pyramids: vec![pyramid; execution.threads.len()].into(), ..self }
    }

    /// The levels of detail of all threads, built in parallel.
    fn pyramids(&self, execution: &Execution) -> &[Pyramid] {
        self.pyramids.get_or_init(|| {
            let rules = FlagRules::default();
            let build = |thread: &Thread| {
                let steps = ByType { execution, track: &thread.track, slots: &self.slots };
                Pyramid::build(&steps, &rules)
            };
            apart(|| execution.threads.par_iter().map(build).collect())
        })
    }

    /// Thread-nanoseconds of each type in every bucket of a window: `[bucket][type]`, and at the end of
    /// each bucket those of all types without a row.
    pub fn shares(&self, execution: &Execution, window: Window) -> Vec<u64> {
        let rows = self.rows();
        let zero = || vec![0_u64; rows * window.count as usize];
        let tracks = execution.threads.par_iter().zip(self.pyramids(execution));
        // A CPU shows the sections of threads once more.
        tracks
            .filter(|(thread, _)| thread.kind != ThreadKind::Cpu)
            .fold(zero, |mut sums, (thread, pyramid)| {
                let steps = ByType { execution, track: &thread.track, slots: &self.slots };
                pyramid.shares_of(&steps, window, |bucket, class, ns| {
                    let slot = if class == OTHERS { self.labels.len() } else { class as usize };
                    if class != NOTHING && slot < rows {
                        sums[bucket * rows + slot] += ns;
                    }
                });
                sums
            })
            .reduce(zero, |mut left, right| {
                left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
                left
            })
    }

    /// The row of a type.
    pub fn slot(&self, ty: TypeIndex) -> u32 {
        match self.slots.get(ty.index()).copied().unwrap_or(OTHERS) {
            OTHERS => self.labels.len() as u32,
            slot => slot.into(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len() + usize::from(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::Section;

    #[test]
    fn the_time_of_each_type_is_that_of_a_walk_over_all_sections() {
        let mut execution = taskscope_testkit::synthetic::execution(taskscope_testkit::synthetic::Shape {
            threads: 6,
            team: 3,
            processes_of_node: 2,
            events: 20_000,
            seed: 8,
        });
        // A CPU shows the section of its thread.
        execution.threads[0].kind = ThreadKind::Cpu;
        // Two types share each name.
        let name = |ty: TypeIndex| format!("type {}", ty.0 / 2);
        let rows_of = || TypeRows::of(&execution, |types| types.into_iter().map(name).collect());
        let rows = rows_of();
        assert!(rows.labels.len() > 2 && !rows.others);
        assert!(rows.labels.len() <= execution.catalog.types.len().div_ceil(2));
        let (start, end) = execution.range();
        for window in
            [Window::covering(start, end, 40), Window::covering(start + end / 9, start + end / 8, 300)]
        {
            let shares = rows.shares(&execution, window);
            assert!(rows_of().without_buckets(&execution).shares(&execution, window) == shares);
            let mut expected = vec![0; shares.len()];
            for span in execution.threads[1..].iter().flat_map(|thread| thread.track.spans()) {
                let Section { state, place, task, .. } = span.section;
                let Some(ty) = running_type(&execution.tasks.ty, state, place, || task) else { continue };
                let slot = rows.labels.iter().position(|row| *row == name(ty)).unwrap();
                for bucket in 0..window.count as usize {
                    let from = (window.first + bucket as u64) << window.width_log2;
                    let to = from + (1 << window.width_log2);
                    let ns = span.end.min(to).saturating_sub(span.start.max(from));
                    expected[bucket * rows.rows() + slot] += ns;
                }
            }
            assert!(shares == expected && expected.iter().sum::<u64>() > 0);
        }
    }
}
