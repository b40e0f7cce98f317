//! Numbers of tasks.

use rustc_hash::FxHashMap;
use taskscope_execution::{ProcessIndex, TaskIndex, TypeIndex};

/// Ids of a block: few enough that scattered ids of a damaged trace take little memory each.
const BLOCK: usize = 32;

/// Task ids of processes to numbers of the trace, in the order of creation.
#[derive(Default)]
pub struct TaskNumbers {
    /// By id, in blocks of ids that follow each other, as recorders give them out.
    pub blocks: Vec<[TaskIndex; BLOCK]>,
    /// Index of the block, by process and id.
    pub numbers: FxHashMap<(ProcessIndex, u32), u32>,
    pub types: Vec<TypeIndex>,
    /// The numbers that runtimes gave to them; [`NO_NUMBER`](taskscope_execution::NO_NUMBER) for none.
    pub ids: Vec<u64>,
    /// Number of times that an id was given to a further task.
    pub reuses: u32,
    /// First use of tasks that were used before their creation was seen.
    pub early: FxHashMap<TaskIndex, u64>,
}

/// The block of a thread's last lookup, which is mostly that of the next one.
#[derive(Clone, Copy)]
pub struct LastBlock {
    pub process: ProcessIndex,
    pub block: u32,
    /// Index of the block.
    pub at: u32,
}

/// The task that a thread named last: it often names it again, without a lookup.
#[derive(Clone, Copy)]
pub struct LastTask {
    pub process: ProcessIndex,
    pub id: u32,
    pub task: TaskIndex,
    /// [`TaskNumbers::reuses`] at that time: since then the id may have become another task's.
    pub reuses: u32,
}

impl TaskNumbers {
    /// Reserves room for this many tasks, if there is memory: unused room costs nothing.
    pub fn expect(&mut self, tasks: usize) {
        let _ = self.types.try_reserve_exact(tasks);
        let _ = self.ids.try_reserve_exact(tasks);
        let _ = self.blocks.try_reserve_exact(tasks / BLOCK);
        let _ = self.numbers.try_reserve(tasks / BLOCK);
    }

    /// The task, and whether it is new.
    pub fn number(
        &mut self,
        process: ProcessIndex,
        id: u32,
        last: &mut Option<LastBlock>,
    ) -> (TaskIndex, bool) {
        let next = TaskIndex::of(self.types.len());
        let task = self.slot(process, id, last);
        if task.is_some() {
            return (*task, false);
        }
        *task = next;
        self.add(TypeIndex::NONE, id.into());
        (next, true)
    }

    pub fn slot(&mut self, process: ProcessIndex, id: u32, last: &mut Option<LastBlock>) -> &mut TaskIndex {
        let block = id / BLOCK as u32;
        let at = match last {
            Some(last) if (last.process, last.block) == (process, block) => last.at,
            _ => self.find(process, block, last),
        };
        &mut self.blocks[at as usize][id as usize % BLOCK]
    }

    #[inline(never)]
    pub fn find(&mut self, process: ProcessIndex, block: u32, last: &mut Option<LastBlock>) -> u32 {
        let blocks = &mut self.blocks;
        let at = *self.numbers.entry((process, block)).or_insert_with(|| {
            blocks.push([TaskIndex::NONE; BLOCK]);
            (blocks.len() - 1) as u32
        });
        *last = Some(LastBlock { process, block, at });
        at
    }

    /// The task with this id, if there is one.
    pub fn with_id(&self, process: ProcessIndex, id: u32) -> Option<TaskIndex> {
        let block = *self.numbers.get(&(process, id / BLOCK as u32))?;
        Some(self.blocks[block as usize][id as usize % BLOCK]).filter(|task| task.is_some())
    }

    /// A new task, which no 32-bit id names; its runtime calls it `number`.
    pub fn fresh(&mut self, ty: TypeIndex, number: u64) -> TaskIndex {
        self.add(ty, number);
        TaskIndex::of(self.types.len() - 1)
    }

    #[inline(always)]
    pub fn add(&mut self, ty: TypeIndex, number: u64) {
        self.types.push(ty);
        self.ids.push(number);
    }

    /// The runtimes' numbers of all tasks; none is known from here on.
    pub fn take_numbers(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.ids)
    }

    /// The task with this id, if one is known; 0 is none.
    pub fn known(&self, process: ProcessIndex, id: u32) -> TaskIndex {
        self.with_id(process, id).filter(|_| id != 0).unwrap_or(TaskIndex::NONE)
    }

    pub fn ty(&self, task: TaskIndex) -> TypeIndex {
        self.types[task.index()]
    }
}
