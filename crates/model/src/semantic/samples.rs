//! Samples of call stacks, and creation paths of regions and tasks.

use super::{Interpreter, Short};
use crate::payload::{u32_at, u64_at};
use taskscope_event::Code;
use taskscope_event::models::samples;
use taskscope_execution::samples::{Level, NewSample};
use taskscope_execution::{
    Anomaly, Change, Definition, Observer, ProcessIndex, RegionIndex, TaskIndex, ThreadIndex, TypeIndex,
};

/// Bytes before the stack of a sample.
const HEAD_BYTES: usize = 36;

impl Interpreter {
    pub(super) fn path_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let process = self.threads[thread.index()].process;
        match code {
            samples::PATH => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let path = self.paths.number(process, number);
                let words = payload.get(8..).ok_or(Short)?.as_chunks::<8>().0;
                let addresses: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                out.define(Definition::Path { path, number, process, addresses: &addresses, at });
            }
            samples::REGION_PATH => {
                let region = self.region_of(process, u32_at(payload, 0).ok_or(Short)?);
                let number = u32_at(payload, 4).ok_or(Short)?;
                let path = self.paths.number(process, number);
                let parent_region = self.region_of(process, u32_at(payload, 8).ok_or(Short)?);
                let parent_task = self.tasks.known(process, u32_at(payload, 12).ok_or(Short)?);
                if number != 0 {
                    out.change(thread, at, Change::RegionPath { region, path, parent_region, parent_task });
                }
            }
            samples::TASK_PATH => {
                let ty = self.type_at(thread, payload, 0, out)?;
                let path = self.paths.number(process, u32_at(payload, 4).ok_or(Short)?);
                self.paths.sticky.insert((thread, ty), path);
                // It follows the creation that it belongs to.
                match self.threads[thread.index()].last_created {
                    Some((task, of)) if of == ty => {
                        out.change(thread, at, Change::TaskPath { task, path });
                    }
                    _ => {}
                }
            }
            samples::CALL_PATH => {
                let site = self.site_at(thread, payload, 0)?;
                let path = self.paths.number(process, u32_at(payload, 4).ok_or(Short)?);
                out.change(thread, at, Change::CallPath { site, path });
            }
            _ => out.anomaly(thread, at, Anomaly::UnknownEvent),
        }
        Ok(())
    }

    /// Records the creation of a task: its path is the newest one of its creator for the type.
    pub(super) fn note_creation<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        task: TaskIndex,
        ty: TypeIndex,
        out: &mut O,
    ) {
        self.threads[thread.index()].last_created = Some((task, ty));
        if self.paths.count > 0
            && let Some(path) = self.paths.sticky.get(&(thread, ty))
        {
            out.change(thread, at, Change::TaskPath { task, path: *path });
        }
    }

    /// The region with this id, if it has one; 0 is none.
    fn region_of(&self, process: ProcessIndex, id: u32) -> RegionIndex {
        self.regions_by_id.get(&(process, id)).copied().filter(|_| id != 0).unwrap_or(RegionIndex::NONE)
    }

    /// Takes a sample of `thread`, after all events: regions and tasks are known by then. `false` if its
    /// payload is too short.
    pub fn sample<O: Observer>(&self, thread: ThreadIndex, at: u64, payload: &[u8], out: &mut O) -> bool {
        self.try_sample(thread, at, payload, out).is_some()
    }

    fn try_sample<O: Observer>(
        &self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Option<()> {
        let process = self.threads[thread.index()].process;
        let weight_ns = u64_at(payload, 0)?;
        let (flags, state) = (u32_at(payload, 16)?, u32_at(payload, 20)?);
        let count = u32_at(payload, 32)? as usize;
        let stack = payload.get(HEAD_BYTES..)?;
        let (levels, frames) = stack.split_at_checked(count.checked_mul(samples::LEVEL_BYTES)?)?;
        let levels: Vec<Level> = (levels.chunks_exact(samples::LEVEL_BYTES))
            .map(|level| {
                let bounds = u32_at(level, 0)?;
                Some(Level {
                    first: bounds as u16,
                    end: (bounds >> 16) as u16,
                    region: self.region_of(process, u32_at(level, 4)?),
                    task: self.tasks.known(process, u32_at(level, 8)?),
                })
            })
            .collect::<Option<_>>()?;
        let words = frames.as_chunks::<8>().0;
        let addresses: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        out.sample(&NewSample {
            thread,
            at,
            weight_ns,
            flags,
            state,
            levels: &levels,
            addresses: &addresses,
        });
        Some(())
    }
}
