//! Finds the creation paths of regions and tasks, and writes those that are new.

use core::ffi::c_void;

use taskscope_event::models::samples::{self, flag};

use crate::abi::Data;
use crate::payload::two;
use crate::profiling;
use crate::sampler::blocking::OpenCall;
use crate::sampler::code_map::{self, Owner};
use crate::sampler::machine::{Registers, registers_here, stack_pointer_here};
use crate::sampler::{Bounds, OwnStack, is_active};
use crate::task_stacks::paths::{
    Content, Created, Creating, Creation, Found, REMEMBERED, Remembered, TYPES, WAYS, depth_of,
};
use crate::task_stacks::{levels, regions};
use crate::thread::Moment;

impl Moment<'_> {
    /// Begins a region for samples. A region that is the body of `teams` (`is_body`) has no construct of its
    /// own: its samples belong to the league. Returns its context in a profile.
    #[inline(always)]
    pub fn begin_sampled_region(&mut self, region: u32, creating: Creating, is_body: bool) -> u32 {
        self.catch_up();
        let mut context = 0;
        if profiling::is_on() && is_body {
            self.follow_works();
            self.follow_fork(None);
            context = creating.creator;
        } else if profiling::is_on() {
            context = match self.thread.paths.known_creation(creating) {
                Some(created) => {
                    self.follow_works();
                    self.follow_fork(Some(created.path));
                    self.count_region(created.context);
                    created.context
                }
                None => self.learn_region(creating),
            };
        }
        regions::begin(region, context);
        context
    }

    #[cold]
    #[inline(never)]
    fn learn_region(&mut self, creating: Creating) -> u32 {
        let found = self.find_path(creating.codeptr as *const c_void, creating.exit);
        self.follow_works();
        self.follow_fork(Some(found.path));
        let context = self.count_creation(creating.creator, found.path, false);
        self.remember(creating, &found, context);
        context
    }

    /// Returns the context of a task or region that is created here.
    #[inline(always)]
    pub fn create_context(&mut self, codeptr: *const c_void, exit: u64, is_task: bool) -> u32 {
        let path = self.path_here(codeptr, exit);
        let creator = self.context();
        self.count_creation(creator, path, is_task)
    }

    /// The context of a task that is created now, which is remembered.
    pub fn learn_creation(&mut self, creating: Creating) -> u32 {
        let found = self.find_path(creating.codeptr as *const c_void, creating.exit);
        let context = self.count_creation(creating.creator, found.path, true);
        // A context beyond the limit, which is a region's, is counted elsewhere.
        if profiling::is_of_tasks(context) {
            self.remember(creating, &found, context);
        }
        context
    }

    fn remember(&mut self, creating: Creating, found: &Found, context: u32) {
        let Creating { codeptr, exit, sp, creator } = creating;
        let Some(content) = self.thread.paths.0.as_deref_mut() else { return };
        let slots = content.remembered.get(found.place).filter(|known| known.path == found.path);
        let slots = slots.and_then(|known| {
            let from = |slot: &(u64, u64)| Some(((found.sp + slot.0).checked_sub(sp)?, slot.1));
            known.slots.iter().map(from).collect::<Option<Box<[_]>>>()
        });
        if let Some((slots, ways)) = slots.zip(content.creations.get_mut(creating.ways())) {
            // In the place of the one that was learnt first.
            ways.rotate_right(1);
            let (depth, created) = (depth_of(sp, exit), Created { path: found.path, context });
            if let Some(newest) = ways.first_mut() {
                *newest = Creation { codeptr, depth, creator, created, slots };
            }
        }
    }

    /// The context that this thread is in.
    pub(crate) fn context(&self) -> u32 {
        self.thread.context()
    }

    /// Ends the topmost region, which `task` forked; records its path if a member requested it.
    #[inline(never)]
    pub fn end_sampled_region(&mut self, task: *mut Data, codeptr: *const c_void, is_body: bool) {
        let Some(region) = self.thread.frames.top_region() else { return };
        if !regions::end(region) || profiling::is_on() {
            return;
        }
        let (parent_region, parent_task) = self.thread.frames.creator_of_top();
        // The path continues at the creation of the parent, if that was elsewhere.
        regions::ask(parent_region);
        if is_body {
            return;
        }
        let path =
            self.path_here(codeptr, levels::exit_of_forking(task, parent_task, &self.thread.undeferred));
        let mut payload = [0; 16];
        for (part, value) in payload.chunks_exact_mut(4).zip([region, path, parent_region, parent_task]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        self.recorder.own_point(self.at, samples::REGION_PATH, payload);
    }

    /// Records the creation path of a task type, unless it equals that of the previous task.
    #[inline(never)]
    pub fn record_task_path(&mut self, typeid: u32, exit: u64, codeptr: *const c_void) {
        let path = self.path_here(codeptr, exit);
        self.record_path_of_type(typeid, path);
    }

    /// Records an empty creation path: no frames of the program are between the running task and the
    /// creation.
    #[inline(never)]
    pub fn record_empty_path(&mut self, typeid: u32) {
        let mut path = self.thread.paths.0.as_deref().map_or(0, |content| content.empty_path);
        if path == 0 {
            path = self.path_number(&[], flag::REACHED_ROOT);
            if self.thread.paths.0.is_none() {
                self.thread.paths.0 = Content::new(self.thread.bounds);
            }
            if let Some(content) = &mut self.thread.paths.0 {
                content.empty_path = path;
            }
        }
        self.record_path_of_type(typeid, path);
    }

    fn record_path_of_type(&mut self, typeid: u32, path: u32) {
        let Some(content) = &mut self.thread.paths.0 else { return };
        let Some(last) = content.last_of_types.get_mut(typeid as usize % TYPES) else { return };
        if path != 0 && *last != (typeid, path) {
            *last = (typeid, path);
            self.recorder.own_point(self.at, samples::TASK_PATH, two(typeid, path));
        }
    }

    /// Records the call path of a wait or a lock acquisition at `site`, which returns to `codeptr`, unless it
    /// equals the previous one.
    #[inline(always)]
    pub fn record_call_path(&mut self, site: u32, codeptr: *const c_void) {
        if is_active() && site != 0 && !codeptr.is_null() && self.thread.profile.is_none() {
            self.record_path_of_call(site, codeptr);
        }
    }

    #[inline(never)]
    fn record_path_of_call(&mut self, site: u32, codeptr: *const c_void) {
        let path = self.path_here(codeptr, self.thread.exit_here());
        self.record_known_path_of_call(site, path);
    }

    /// Records the path of the program's call into this library; of another thread, the open one. Returns the site of that call, 0 if
    /// unknown.
    #[inline(never)]
    pub fn record_call_from_program(&mut self, open: Option<&OpenCall>) -> u32 {
        if !is_active() || self.thread.profile.is_some() {
            return 0;
        }
        let (caller, path) = self.call_from_program(open);
        let site = self.known_site(caller as *const c_void);
        if site != 0 {
            self.record_known_path_of_call(site, path);
        }
        site
    }

    /// The return address and the path of the program's call into this library; of another thread, the open one.
    pub(crate) fn call_from_program(&mut self, open: Option<&OpenCall>) -> (u64, u32) {
        let found = match open {
            None => self.find_path(core::ptr::null(), self.thread.exit_here()),
            // The runtime knows the tasks of the calling thread alone.
            Some(OpenCall { place, .. }) => {
                let exit = self.thread.frames.known_exit().unwrap_or(0);
                // That thread may go on meanwhile, and its stack may be gone: no memory is read directly from now on.
                self.thread.bounds = Bounds::NONE;
                if let Some(content) = &mut self.thread.paths.0 {
                    content.bounds = Bounds::NONE;
                }
                self.walk_path_elsewhere(0, exit, place.registers(), (0, place.sp))
            }
        };
        (found.caller, found.path)
    }

    fn record_known_path_of_call(&mut self, site: u32, path: u32) {
        let Some(content) = &mut self.thread.paths.0 else { return };
        let Some(last) = content.last_of_calls.get_mut(site as usize % TYPES) else { return };
        if path != 0 && *last != (site, path) {
            *last = (site, path);
            self.recorder.own_point(self.at, samples::CALL_PATH, two(site, path));
        }
    }

    /// Returns the path from here to the start of the current task, which the runtime entered at `exit` (0:
    /// an initial task); 0 if there is none.
    pub fn path_here(&mut self, codeptr: *const c_void, exit: u64) -> u32 {
        self.find_path(codeptr, exit).path
    }

    #[inline(never)]
    fn find_path(&mut self, codeptr: *const c_void, exit: u64) -> Found {
        let (codeptr, sp) = (codeptr as u64, stack_pointer_here());
        let depth = depth_of(sp, exit);
        let hash = (codeptr ^ depth.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let first = hash as usize % REMEMBERED / WAYS * WAYS;
        let content = self.thread.paths.0.as_deref();
        let ways =
            content.and_then(|content| content.remembered.get(first..first + WAYS)).unwrap_or_default();
        match ways.iter().position(|known| known.is_here(codeptr, sp, depth)) {
            Some(way) => {
                let (path, caller) = ways.get(way).map_or((0, 0), |known| (known.path, known.caller));
                Found { path, caller, place: first + way, sp }
            }
            None if self.thread.bounds.have_room_below(sp) => {
                self.walk_path(codeptr, exit, registers_here(), (first, sp))
            }
            None => self.walk_path_elsewhere(codeptr, exit, registers_here(), (first, sp)),
        }
    }

    /// The end of the program's stack is the program's.
    #[cold]
    #[inline(never)]
    fn walk_path_elsewhere(
        &mut self,
        codeptr: u64,
        exit: u64,
        from: (u64, Registers),
        (first_way, sp): (usize, u64),
    ) -> Found {
        let mut found = Found { path: 0, caller: 0, place: REMEMBERED, sp };
        if let Some(own) = self.thread.walk_stack.take().or_else(OwnStack::new) {
            own.call(|| found = self.walk_path(codeptr, exit, from, (first_way, sp)));
            self.thread.walk_stack = Some(own);
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn walk_path(
        &mut self,
        codeptr: u64,
        exit: u64,
        from: (u64, Registers),
        (first_way, sp): (usize, u64),
    ) -> Found {
        let depth = depth_of(sp, exit);
        if self.thread.paths.0.is_none() {
            self.thread.paths.0 = Content::new(self.thread.bounds);
        }
        self.catch_up();
        let (Some(mut content), Some(map)) = (self.thread.paths.0.take(), code_map::current()) else {
            return Found { path: 0, caller: 0, place: REMEMBERED, sp };
        };
        map.note_constructs(codeptr);
        content.frames.walk(map, &mut content.unwinding, from, content.bounds);
        if content.frames.met_unknown_code {
            code_map::suspect();
        }
        let (first, end) = content.segment(codeptr, exit);
        let complete = end < content.frames.addresses().len() || content.frames.reached_root;
        content.addresses.clear();
        let segment = (first..).zip(content.frames.addresses().get(first..end).unwrap_or_default());
        let others = segment.filter(|(index, _)| content.frames.owner(*index) != Some(Owner::Recorder));
        content.addresses.extend(others.map(|(_, address)| *address));
        let caller = content.addresses.first().copied().unwrap_or(0);
        let flags = if complete { flag::REACHED_ROOT } else { flag::CUT };
        let path = self.path_number(&content.addresses, flags);
        if profiling::is_on() {
            profiling::define_path(path, &content.addresses);
        }
        // A code pointer that is on the stack identifies the caller of the runtime.
        let is_pinned = content.frames.addresses().get(first) == Some(&codeptr);
        let slots = content.slots(if is_pinned { first + 1 } else { 1 }, end);
        content.turn = (content.turn + 1) % WAYS;
        let place = first_way + content.turn;
        if let Some(place) = content.remembered.get_mut(place) {
            *place = match slots {
                Some(slots) => Remembered { codeptr, depth, slots, path, caller },
                None => Remembered::default(),
            };
        }
        self.thread.paths.0 = Some(content);
        Found { path, caller, place, sp }
    }
}
