//! Task types, tasks and bodies of one process and one runtime.
//!
//! ```text
//! body   created ─execute▶ running ◀─resume─ paused
//!                             │  ─pause─▶
//!                            end
//!                             ▼
//!                            dead ─execute▶ running    only tasks that may run again
//! ```
//!
//! A plain task has one body; its state is in the task's cell of eight bytes. Cells are kept after a task's
//! end, since nOS-V and OpenMP tasks may run again. A parallel task has any number of bodies, kept by (task,
//! body).

use crate::payload::shown;
use rustc_hash::FxHashMap;

/// State of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyState {
    Created,
    Running,
    Paused,
    Dead,
}

/// Permitted actions of a runtime's tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskRules {
    pub(crate) may_pause: bool,
    pub(crate) may_run_again: bool,
    /// Whether a task may start on top of a running one.
    pub(crate) relaxed_nesting: bool,
}

/// A body on a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) task: u32,
    pub(crate) body: u32,
}

/// A task type.
#[derive(Clone, Debug)]
pub(crate) struct TaskType {
    /// Displayed name.
    pub(crate) label: String,
    /// Its value in views: a hash of the label's bytes.
    pub(crate) value: u32,
}

#[derive(Clone, Copy)]
struct Cell {
    task_type: u32,
    exists: bool,
    parallel: bool,
    state: BodyState,
}

const EMPTY: Cell = Cell { task_type: 0, exists: false, parallel: false, state: BodyState::Created };

/// Cells are grouped in pages, as ids come in blocks; small pages keep scattered ids cheap.
const PAGE_TASKS: usize = 32;
type Page = [Cell; PAGE_TASKS];
/// No page.
const NO_PAGE: u32 = u32::MAX;

/// The cells of all ids, by pages of consecutive ones.
#[derive(Default)]
struct Pages {
    pages: Vec<Page>,
    /// The page of each number, while numbers are few for the pages that there are: runtimes count
    /// tasks from one, and a table in that order stays in the cache however long the trace is.
    near: Vec<u32>,
    /// The pages of numbers beyond.
    far: FxHashMap<u32, u32>,
}

impl Pages {
    #[inline]
    fn page(&self, number: u32) -> Option<u32> {
        match self.near.get(number as usize) {
            Some(&page) if page != NO_PAGE => Some(page),
            // Ids that were far at their creation stay there.
            _ if self.far.is_empty() => None,
            _ => self.far.get(&number).copied(),
        }
    }

    #[inline]
    fn find(&self, id: u32) -> Option<&Cell> {
        let page = self.page(id / PAGE_TASKS as u32)?;
        Some(&self.pages[page as usize][id as usize % PAGE_TASKS])
    }

    #[inline]
    fn find_or_add(&mut self, id: u32) -> &mut Cell {
        let number = id / PAGE_TASKS as u32;
        let page = self.page(number).unwrap_or_else(|| self.add(number));
        &mut self.pages[page as usize][id as usize % PAGE_TASKS]
    }

    #[cold]
    fn add(&mut self, number: u32) -> u32 {
        let page = self.pages.len() as u32;
        self.pages.push([EMPTY; PAGE_TASKS]);
        if (number as usize) < 4 * self.pages.len() + 1024 {
            if self.near.len() <= number as usize {
                self.near.resize(number as usize + 1, NO_PAGE);
            }
            self.near[number as usize] = page;
        } else {
            self.far.insert(number, page);
        }
        page
    }
}

/// The tasks and types of one process and one runtime.
#[derive(Default)]
pub(crate) struct TaskTable {
    types: FxHashMap<u32, TaskType>,
    /// Type ids in the order of their creation.
    type_order: Vec<u32>,
    pages: Pages,
    parallel_bodies: FxHashMap<(u32, u32), BodyState>,
}

impl TaskTable {
    /// Adds a type; false if the id is taken.
    pub(crate) fn create_type(&mut self, id: u32, label: &[u8]) -> bool {
        if self.types.contains_key(&id) {
            return false;
        }
        let unlabeled = format!("(unlabeled task type {id})");
        let label = if label.is_empty() { unlabeled.as_bytes() } else { label };
        let (label, value) = (shown(label).into_owned(), label_value(label));
        self.types.insert(id, TaskType { label, value });
        self.type_order.push(id);
        true
    }

    pub(crate) fn task_type(&self, id: u32) -> Option<&TaskType> {
        self.types.get(&id)
    }

    /// Types in the order of their creation.
    pub(crate) fn types(&self) -> impl Iterator<Item = &TaskType> {
        self.type_order.iter().filter_map(|id| self.types.get(id))
    }

    /// Adds a task; false if the id is taken.
    #[inline]
    pub(crate) fn create_task(&mut self, id: u32, task_type: u32, parallel: bool) -> bool {
        let cell = self.cell_mut(id);
        if cell.exists {
            return false;
        }
        *cell = Cell { task_type, exists: true, parallel, state: BodyState::Created };
        true
    }

    #[inline]
    pub(crate) fn has_task(&self, id: u32) -> bool {
        self.cell(id).is_some()
    }

    #[inline]
    pub(crate) fn is_parallel(&self, id: u32) -> bool {
        self.cell(id).is_some_and(|cell| cell.parallel)
    }

    /// The value in views of a task's type; `None` for unknown types.
    #[inline]
    pub(crate) fn type_value(&self, task: u32) -> Option<i64> {
        let task_type = self.cell(task)?.task_type;
        self.types.get(&task_type).map(|known| i64::from(known.value))
    }

    /// The state of a body; `None` for a body that never ran.
    #[inline]
    pub(crate) fn state(&self, body: Body) -> Option<BodyState> {
        let cell = self.cell(body.task)?;
        if cell.parallel {
            self.parallel_bodies.get(&(body.task, body.body)).copied()
        } else {
            Some(cell.state).filter(|state| *state != BodyState::Created)
        }
    }

    #[inline]
    pub(crate) fn set_state(&mut self, body: Body, state: BodyState) {
        if self.is_parallel(body.task) {
            self.parallel_bodies.insert((body.task, body.body), state);
        } else {
            self.cell_mut(body.task).state = state;
        }
    }

    #[inline]
    fn cell(&self, id: u32) -> Option<Cell> {
        self.pages.find(id).copied().filter(|cell| cell.exists)
    }

    #[inline]
    fn cell_mut(&mut self, id: u32) -> &mut Cell {
        self.pages.find_or_add(id)
    }
}

/// The value of a label in views: Bob Jenkins' hash as ovni uses it (`lookup2`, 1996, with uthash's seed),
/// made positive and distinct from the small values of sections.
pub(crate) fn label_value(label: &[u8]) -> u32 {
    let value = jenkins(label).wrapping_add(666) & 0x7fff_ffff;
    if value < 1000 { value + 1000 } else { value }
}

fn jenkins(key: &[u8]) -> u32 {
    let (mut a, mut b, mut c) = (0x9e37_79b9_u32, 0x9e37_79b9_u32, 0xfeed_beef_u32);
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .take(4)
            .enumerate()
            .fold(0u32, |word, (index, byte)| word | u32::from(*byte) << (8 * index))
    };
    let mut blocks = key.chunks_exact(12);
    for block in blocks.by_ref() {
        a = a.wrapping_add(word(block));
        b = b.wrapping_add(word(&block[4..]));
        c = c.wrapping_add(word(&block[8..]));
        (a, b, c) = mix(a, b, c);
    }
    let rest = blocks.remainder();
    c = c.wrapping_add(key.len() as u32);
    a = a.wrapping_add(word(rest));
    b = b.wrapping_add(word(rest.get(4..).unwrap_or_default()));
    // The lowest byte of the last word belongs to the length.
    c = c.wrapping_add(word(rest.get(8..).unwrap_or_default()) << 8);
    mix(a, b, c).2
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for (right1, left, right2) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> right1);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << left);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> right2);
    }
    (a, b, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_the_values_of_recorded_outputs() {
        assert_eq!(label_value(b"testtype1"), 1_690_940_984);
        assert_eq!(label_value(b"main task.1"), 1_541_689_984);
        assert_eq!(label_value(b"testtype100"), 1_454_064_145);
        assert_eq!(label_value(b"(unlabeled task type 3)"), 887_262_191);
        assert_eq!(label_value(b"work \"A\""), 1_076_208_496);
        assert_eq!(label_value(b"t\xe2che"), 1_221_300_013);
        assert_eq!(label_value(b"t\xf4che"), 1_112_922_406);
    }

    #[test]
    fn near_and_far_tasks_are_found_again() {
        let mut table = TaskTable::default();
        // From far to near, so that far ones become near while they are there; every third stays away.
        let ids = || (0..200_000u32).rev().map(|id| id.wrapping_mul(7)).chain([u32::MAX, u32::MAX - 40]);
        for id in ids().filter(|id| id % 3 > 0) {
            assert!(table.create_task(id, id / 2, false));
        }
        for id in ids() {
            assert_eq!(table.has_task(id), id % 3 > 0, "{id}");
            assert_eq!(table.cell(id).map(|cell| cell.task_type), (id % 3 > 0).then_some(id / 2));
        }
        for id in ids().filter(|id| id % 3 > 0) {
            assert!(!table.create_task(id, 0, false), "{id} is taken");
        }
    }

    #[test]
    fn plain_and_parallel_bodies_have_states() {
        let mut table = TaskTable::default();
        assert!(table.create_task(5, 1, false));
        assert!(!table.create_task(5, 1, false));
        assert!(table.create_task(u32::MAX, 1, true));
        let plain = Body { task: 5, body: 1 };
        assert_eq!(table.state(plain), None);
        table.set_state(plain, BodyState::Running);
        assert_eq!(table.state(plain), Some(BodyState::Running));
        table.set_state(Body { task: u32::MAX, body: 3 }, BodyState::Dead);
        assert_eq!(table.state(Body { task: u32::MAX, body: 3 }), Some(BodyState::Dead));
        assert_eq!(table.state(Body { task: u32::MAX, body: 4 }), None);
    }
}
