//! Bodies of regions and tasks for which the runtime reports no exit.

use super::{Levels, Stack};
use crate::sampler::code_map::Owner;

impl Stack<'_> {
    /// Start of the function of frame `index`.
    fn function_of_frame(&self, index: usize) -> Option<u64> {
        let address = self.frames.addresses().get(index)?;
        self.map.function(address.wrapping_sub(u64::from(index > 0)))
    }

    /// The innermost frame, from this one on outwards, in the function that a call returns to.
    fn frame_in_function_of(&self, codeptr: u64, from: usize) -> Option<usize> {
        let function = self.map.function(codeptr.wrapping_sub(1))?;
        (from..self.frames.addresses().len()).find(|index| self.function_of_frame(*index) == Some(function))
    }

    /// Whether this is the frame pointer of one of the program's functions. If clang makes the program itself
    /// call a task's body (`if (0)`), the runtime reports the value of that register, even if the program
    /// keeps no frame pointers.
    pub(super) fn is_frame_pointer(&self, address: u64) -> bool {
        let is_programs = |index| matches!(self.frames.owner(index), Some(Owner::Program | Owner::Unknown));
        // Below the return address and the caller's frame pointer; on aarch64 at the frame's other end, and always kept.
        let frame = match cfg!(target_arch = "x86_64") {
            true => (0..self.frames.addresses().len())
                .find(|index| address.checked_add(16) == Some(self.frames.frame_end(*index))),
            false => self.frame_at(address),
        };
        frame.is_some_and(is_programs)
    }

    /// Stack pointer of the frame that created an undeferred task, which runs in it.
    pub(super) fn creator_of(&self, task: u32) -> Option<u64> {
        let frames = 0..self.frames.addresses().len();
        let is_here = |sp: &u64| frames.clone().any(|index| self.frames.stack_pointer(index) == *sp);
        self.undeferred.creators_of(task).find(is_here)
    }
}

impl Levels {
    /// Settles an innermost level that was never reported: in a member of a league it is the body of `teams`,
    /// and of the league's region. Otherwise it is about to be reported.
    pub(super) fn settle_unreported(&mut self, outer: u32, in_league: bool) {
        let last = self.count.checked_sub(1).and_then(|last| self.list.get_mut(last));
        if let Some(body) = last.filter(|level| level.is_teams_body && level.region == 0) {
            (body.is_teams_body, body.region) = if in_league { (true, outer) } else { (false, 0) };
        }
    }

    /// Finds the frames of a `teams` body. LLVM's runtime forks a region from it without a task of its own,
    /// and overwrites the exit of the `teams` body with that of the region's body; after the region the field
    /// is empty. So the end of the runtime's frames around the body is lost.
    pub(super) fn find_body_of_teams(&mut self, stack: &Stack<'_>) {
        let levels = self.list.get_mut(..self.count).unwrap_or_default();
        let Some(at) = levels.iter().position(|level| level.is_teams_body) else { return };
        // The league's member has no code; the creator of the league is further out.
        let limit = levels.get(at + 2).map_or(0, |level| level.enter);
        let (inner, body) = levels.split_at_mut(at);
        let Some(body) = body.first_mut() else { return };
        if let Some(member) = inner.last_mut().filter(|member| member.task == 0 && member.exit == 0) {
            (member.exit, body.exit) = (body.exit, 0);
        } else if stack.owner_at(body.exit) == Some(Owner::Runtime) && body.enter <= body.exit {
            return;
        }
        let frames = stack.frames;
        let is_runtime = |index| stack.frames.owner(index).map(|owner| owner == Owner::Runtime);
        body.exit = (1..frames.addresses().len())
            .take_while(|index| limit == 0 || frames.stack_pointer(*index) <= limit)
            .filter(|index| is_runtime(*index) == Some(true) && is_runtime(*index - 1) == Some(false))
            .last()
            .map_or(0, |index| frames.stack_pointer(index));
    }

    /// Finds bodies that the program calls itself. For a region of one thread compiled by clang (`if (0)`),
    /// the runtime names a function of its own that has already returned: the body is the only function that
    /// the forking function calls.
    pub(super) fn find_bodies_that_the_program_calls(&mut self, stack: &Stack<'_>) {
        if !stack.map.knows_runtime() {
            return;
        }
        let members = self.list.get_mut(..self.count).unwrap_or_default().iter_mut();
        for member in members.filter(|level| level.task == 0 && !level.is_initial && level.exit != 0) {
            let Some(index) = stack.frame_at(member.exit) else { continue };
            if matches!(stack.frames.owner(index), Some(Owner::Program | Owner::Unknown)) {
                let forked = stack.forks.iter().rev().find(|(region, _)| *region == member.region);
                let forking = forked.and_then(|(_, codeptr)| stack.frame_in_function_of(*codeptr, index));
                let end = stack.frames.frame_end(index);
                member.exit = forking.map_or(end, |forking| stack.frames.stack_pointer(forking));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{Data, OmptFrame};
    use crate::sampler::bounds::Bounds;
    use crate::sampler::code_map::CodeMap;
    use crate::sampler::walk::StackFrames;
    use crate::task_stacks::levels::{Entry, IMPLICIT, INITIAL};
    use crate::task_stacks::undeferred::Undeferred;
    use crate::tool_data::{LEAGUE, ToolData};
    use core::ffi::c_int;
    use std::cell::RefCell;

    type Known = (c_int, Data, OmptFrame);

    thread_local! {
        /// The runtime's tasks on the stack, innermost first.
        static TASKS: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
    }

    unsafe extern "C" fn get(
        ancestor: c_int,
        flags: *mut c_int,
        task: *mut *mut Data,
        frame: *mut *mut OmptFrame,
        region: *mut *mut Data,
        _index: *mut c_int,
    ) -> c_int {
        TASKS.with_borrow_mut(|tasks| {
            let Some((kind, word, known)) = tasks.get_mut(ancestor as usize) else { return 0 };
            // SAFETY: the tool's own variables.
            unsafe { (*flags, *task, *frame, *region) = (*kind, word, known, core::ptr::null_mut()) };
            2
        })
    }

    fn task(kind: c_int, word: ToolData, exit: u64, enter: u64) -> Known {
        let at = |value| Data { value };
        (kind, at(word.0), OmptFrame { exit: at(exit), enter: at(enter), exit_flags: 0, enter_flags: 0 })
    }

    /// Region and user frames of each level, for a stack of frames with the stack pointers 16, 32, … : 1xx
    /// are the program's, 2xx the runtime's.
    fn levels(addresses: &[u64], most: u32, tasks: Vec<Known>) -> Vec<(u32, Vec<u64>)> {
        let map = CodeMap::of(&[(100, 200, Owner::Program), (200, 300, Owner::Runtime)]);
        let frames = StackFrames::of(addresses, |address| map.owner(address));
        TASKS.set(tasks);
        let bounds = Bounds::everything();
        let stack = Stack {
            frames: &frames,
            map: &map,
            bounds,
            most,
            in_callback: false,
            forks: &[],
            undeferred: &Undeferred::default(),
        };
        let mut levels = Levels::new();
        levels.ask(&stack, get);
        levels.assign(&frames, Entry::default());
        let of = |(first, past): (u16, u16)| levels.addresses()[first.into()..past.into()].to_vec();
        levels.list().iter().map(|level| (level.region, of(level.frames))).collect()
    }

    /// As with Intel's runtime: only the league's member is reported, which does not count the body.
    #[test]
    fn an_unreported_body_of_teams_belongs_to_the_league() {
        let league = ToolData::new(7, 0, LEAGUE);
        let body = |exit, enter| task(IMPLICIT, ToolData(0), exit, enter);
        let (member, initial) = (task(IMPLICIT, league, 0, 0), task(INITIAL, ToolData(0), 0, 112));
        // In the body, of a worker.
        let stack = [110, 120, 210, 220];
        assert_eq!(levels(&stack, 1, vec![body(48, 0), member])[0], (7, vec![110, 120]));
        // In a region of one thread in the master's body, which has overwritten that body's exit.
        let inner = task(IMPLICIT, ToolData::new(8, 0, 0), 0, 0);
        let stack = [110, 210, 220, 120, 130, 230, 240, 140];
        let all = levels(&stack, 3, vec![inner, body(32, 48), member, initial]);
        assert_eq!(all, [(8, vec![110]), (7, vec![120, 130]), (7, vec![]), (0, vec![140])]);
    }

    #[test]
    fn a_task_about_to_be_reported_is_not_a_body_of_teams() {
        let member = task(IMPLICIT, ToolData::new(7, 0, 0), 80, 48);
        let all = levels(&[210, 220, 120, 130, 230], 1, vec![task(IMPLICIT, ToolData(0), 0, 0), member]);
        assert_eq!(all, [(0, vec![]), (7, vec![120, 130])]);
    }

    /// clang's region of one thread: the runtime has no frame on the stack.
    #[test]
    fn a_body_that_the_program_calls_has_its_frames() {
        let inner = task(IMPLICIT, ToolData::new(8, 0, 0), 40, 0);
        let outer = task(IMPLICIT, ToolData::new(7, 0, 0), 80, 40);
        let all = levels(&[110, 120, 130, 140, 210], 2, vec![inner, outer]);
        assert_eq!(all, [(8, vec![110, 120]), (7, vec![130, 140])]);
    }
}
