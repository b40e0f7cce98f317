//! Opens and closes entries of a thread's stack, as events of the trace or in the profile.

use taskscope_event::models::omp;

use crate::abi::status;
use crate::frames::{DEEPEST_SHOWN, Device, Frame, Open, Phase};
use crate::payload::two;
use crate::profiling::{State, state_of};
use crate::sections::SectionCodes;
use crate::thread::Moment;

impl Moment<'_> {
    /// Opens something that has no event in taskscope's own models.
    #[inline(always)]
    pub fn open(&mut self, open: Open, site: u32) {
        self.open_with(open, site, |_| {});
    }

    /// Opens an entry. `own` writes the begin event of taskscope's own models; [`close_top`] writes the end.
    /// Without memory the entry is not opened, and its end is ignored later.
    ///
    /// [`close_top`]: Moment::close_top
    #[inline(always)]
    pub fn open_with(&mut self, open: Open, site: u32, own: impl FnOnce(&mut Self)) {
        let depth = self.thread.frames.stack.len();
        if depth == self.thread.frames.stack.capacity() && !self.thread.frames.grow() {
            return;
        }
        if self.thread.profile.is_some() {
            let state = state_of(open).unwrap_or_else(|| self.state_at(depth));
            // A task's place of the site holds the task beneath.
            let is_task = matches!(open, Open::Task { .. });
            let site = if is_task { self.thread.frames.task_on_top() } else { site };
            // SAFETY: there is room, as above.
            unsafe { self.thread.frames.push(Frame { open, site, state, shown: true, outer: 0 }) };
            return self.follow_open(open, state, depth);
        }
        own(self);
        if depth >= DEEPEST_SHOWN {
            self.hide_top();
        }
        let shown = !self.thread.is_paused;
        // SAFETY: there is room, as above.
        unsafe { self.thread.frames.push(Frame { open, site, state: State::Unknown, shown, outer: 0 }) };
        self.show(open);
    }

    /// The state of time at this depth of the stack.
    fn state_at(&self, depth: usize) -> State {
        let beneath = self.thread.frames.stack.get(depth.wrapping_sub(1));
        beneath.map_or_else(|| self.thread.state_outside(), |frame| frame.state)
    }

    /// Closes the innermost entry. With `suspended`, an OMPT status, a task is recorded as suspended rather
    /// than ended.
    #[inline(never)]
    pub fn close_top(&mut self, suspended: Option<u32>) {
        let Some(frame) = self.thread.frames.stack.pop() else { return };
        if frame.open.is_context() {
            self.thread.frames.forget_context(frame.open, frame.outer);
        }
        if self.thread.profile.is_some() {
            let depth = self.thread.frames.stack.len();
            return self.follow_close(frame.open, depth);
        }
        if frame.shown {
            self.hide(frame.open);
            self.end_own(frame.open, suspended);
        }
        if self.thread.frames.stack.len() >= DEEPEST_SHOWN {
            self.show_top();
        }
        if self.thread.is_pause_recorded {
            self.record_end_of_pause();
        }
    }

    /// Writes the end in taskscope's own models.
    fn end_own(&mut self, open: Open, suspended: Option<u32>) {
        match open {
            Open::Task { id } => {
                if let Some(status) = suspended {
                    self.record_suspended(id, status);
                }
            }
            Open::Region { region } => self.recorder.own_end(self.at, omp::REGION_END, region.to_le_bytes()),
            Open::Member { region, .. } => {
                self.recorder.own_end(self.at, omp::IMPLICIT_END, region.to_le_bytes());
            }
            Open::Taskgroup => self.recorder.own_end(self.at, omp::TASKGROUP_END, []),
            Open::Masked => self.recorder.own_end(self.at, omp::MASKED_END, []),
            Open::Reduction => self.recorder.own_end(self.at, omp::REDUCTION_END, []),
            Open::Device(Device::Target) => self.recorder.own_end(self.at, omp::TARGET_END, []),
            Open::Device(Device::Data) => self.recorder.own_end(self.at, omp::TARGET_DATA_END, []),
            Open::Device(Device::Submit) => self.recorder.own_end(self.at, omp::TARGET_SUBMIT_END, []),
            Open::Work { .. } | Open::Section { .. } | Open::Call { .. } => {}
        }
    }

    fn record_suspended(&mut self, task: u32, status: u32) {
        self.recorder.own_point(self.at, omp::TASK_SUSPENDED, two(task, status));
    }

    /// Closes the innermost entry if `wanted` accepts it: the usual case, without missing end events.
    #[inline(always)]
    fn close_if_on_top(&mut self, wanted: impl Fn(Open) -> bool) -> bool {
        let stack = &mut self.thread.frames.stack;
        let Some(&Frame { open, outer, shown, .. }) = stack.last() else { return false };
        if !wanted(open) || !shown || stack.len() > DEEPEST_SHOWN {
            return false;
        }
        stack.pop();
        let depth = stack.len();
        if open.is_context() {
            self.thread.frames.forget_context(open, outer);
        }
        if self.thread.profile.is_some() {
            self.follow_close(open, depth);
        } else {
            self.hide(open);
        }
        true
    }

    /// Closes a running task, after its open entries. Returns whether the task was found.
    #[inline(always)]
    pub fn close_task(&mut self, id: u32, status: u32) -> bool {
        let is_it = |open| matches!(open, Open::Task { id: known } if known == id);
        self.close_if_on_top(is_it) || self.close_task_beneath(Open::Task { id }, status)
    }

    #[cold]
    #[inline(never)]
    fn close_task_beneath(&mut self, task: Open, status: u32) -> bool {
        let found = self.uncover(status, |open| open == task);
        if found {
            self.close_top(None);
        }
        found
    }

    /// Closes the innermost section with these codes in the current context.
    #[inline(always)]
    pub fn close_section(&mut self, codes: SectionCodes) {
        let is_it = |open| matches!(open, Open::Section { codes: opened, .. } if opened == codes);
        if !self.close_if_on_top(is_it) {
            self.close_in_context(is_it);
        }
    }

    /// Closes the innermost entries.
    pub fn close_many(&mut self, count: usize, suspended: Option<u32>) {
        for more in (0..count).rev() {
            let is_own = self.is_own_on_top();
            self.close_top(suspended);
            if is_own && more > 0 {
                self.read_clock_again();
            }
        }
    }

    fn is_own_on_top(&self) -> bool {
        self.thread.frames.top().is_some_and(|frame| frame.open.is_own())
    }

    /// Closes the innermost entry of the current context that `wanted` accepts, and the entries above it that
    /// the runtime did not end. Has no effect if no entry matches.
    #[inline(never)]
    pub fn close_in_context(&mut self, wanted: impl Fn(Open) -> bool) {
        if let Some(above) = self.thread.frames.above(wanted) {
            self.close_many(above + 1, None);
        }
    }

    /// Closes all entries above the innermost context.
    #[inline(always)]
    pub fn close_to_context(&mut self) {
        let frames = &self.thread.frames;
        let above = frames.stack.len().saturating_sub(frames.context);
        if above > 0 {
            self.close_many(above, None);
        }
    }

    /// Closes entries until `wanted` accepts the innermost one, which stays; tasks among them count as
    /// suspended with `status`. Returns whether there is one; if not, no entry is closed.
    pub fn uncover(&mut self, status: u32, wanted: impl Fn(Open) -> bool) -> bool {
        let above = self.thread.frames.above_anywhere(wanted);
        self.close_many(above.unwrap_or(0), Some(status));
        above.is_some()
    }

    /// Closes everything.
    pub fn close_all(&mut self) {
        while !self.thread.frames.is_empty() {
            let is_own = self.is_own_on_top();
            self.close_top(None);
            if is_own {
                self.read_clock_again();
            }
        }
    }

    /// Moves the implicit task that is the innermost context to `phase`.
    pub fn set_phase(&mut self, phase: Phase) {
        let index = self.thread.frames.context.wrapping_sub(1);
        let Some(&Frame { open: Open::Member { region, .. }, .. }) = self.thread.frames.stack.get(index)
        else {
            return;
        };
        if self.thread.profile.is_none() {
            self.hide_top();
        }
        let open = Open::Member { region, phase };
        let state = state_of(open).unwrap_or_else(|| self.state_at(index));
        if let Some(frame) = self.thread.frames.stack.get_mut(index) {
            (frame.open, frame.state) = (open, state);
        }
        match phase {
            _ if self.thread.profile.is_none() => self.show_top(),
            Phase::Joining { .. } => self.follow_joining(index + 1),
            Phase::Joined => self.follow_behind_join(),
            Phase::Running => {}
        }
    }

    /// Ends the open entries in the trace; they stay on the stack.
    pub fn end_all_shown(&mut self) {
        let depth = self.thread.frames.stack.len();
        for index in (0..depth).rev() {
            let Some(frame) = self.thread.frames.stack.get_mut(index) else { continue };
            let (open, was_shown) = (frame.open, core::mem::replace(&mut frame.shown, false));
            // Beyond that depth only the innermost entry has standard events.
            let has_standard = index < DEEPEST_SHOWN || index + 1 == depth;
            if was_shown {
                if has_standard {
                    self.hide(open);
                }
                self.end_own(open, Some(status::SWITCH as u32));
                if open.is_own() {
                    self.read_clock_again();
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn show_top(&mut self) {
        if let Some(frame) = self.thread.frames.stack.last().filter(|frame| frame.shown) {
            self.show(frame.open);
        }
    }

    #[cold]
    #[inline(never)]
    fn hide_top(&mut self) {
        let Some(&Frame { open, shown: true, .. }) = self.thread.frames.stack.last() else { return };
        self.hide(open);
        if let Open::Task { id } = open {
            self.record_suspended(id, status::SWITCH as u32);
        }
    }
}
