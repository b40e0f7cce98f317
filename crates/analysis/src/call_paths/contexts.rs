//! Roots of the bodies of regions and tasks in the tree: their creation paths, stitched.

use super::part::Part;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::samples::CreationPath;
use taskscope_execution::{
    Execution, Group, Hold, PathIndex, Place, PlaceKind, ProcessIndex, RegionIndex, Section, SiteIndex,
    State, TaskIndex, ThreadIndex, ThreadKind, TypeIndex,
};
use taskscope_profile::{Frame, FrameKind, Module, NO_MODULE, NodeId, Profile, ROOT, Tree};

/// The outer continuation of a task's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskContext {
    /// At its creation.
    #[default]
    Creation,
    /// At the section of the executing thread.
    Execution,
}

/// Distinct recursion levels of one kind of task within itself.
const RECURSION_LEVELS: u8 = 8;

/// A row of the table of contexts; 0 is outside any region and task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextId(pub u32);

/// No region, no task.
pub const OUTSIDE: ContextId = ContextId(0);

/// The identity of a context within its outer one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Outside,
    Region(SiteIndex, PathIndex),
    Task(TypeIndex, PathIndex),
}

struct Context {
    key: Key,
    outer: ContextId,
    /// Number of outer contexts with the same key.
    depth: u8,
    /// The node of the innermost frame of the creation path.
    node: NodeId,
}

/// The bodies of regions and tasks, and the selected part of the run.
///
/// Paths and their shares of the time are those of the whole run. Only the time of the part counts, so the times of a path in
/// consecutive parts sum to those of the run.
pub struct Contexts<'a> {
    /// The whole run: all numbers of tasks and regions are its own.
    pub execution: &'a Execution,
    /// The selected part of it.
    pub part: Part<'a>,
    task_context: TaskContext,
    table: Vec<Context>,
    by_key: FxHashMap<(u32, Key), ContextId>,
    task_contexts: FxHashMap<TaskIndex, ContextId>,
    region_contexts: FxHashMap<RegionIndex, ContextId>,
    /// A creation path that another region of the same construct has.
    path_of_site: FxHashMap<SiteIndex, RegionIndex>,
    /// Modules by process, latest first.
    modules: Vec<Vec<Loaded>>,
    /// Per process: whether several modules were at one address, one after the other.
    reuses: Vec<bool>,
    frames: FxHashMap<(ProcessIndex, u64), (u32, u64)>,
    /// Per process: whether a runtime reported its threads' activities.
    takes_tools: Vec<bool>,
    /// Modules that are an OpenMP runtime.
    runtimes: Vec<bool>,
    /// Nodes of user frames that samples have below a context, by context and frame.
    sampled: FxHashMap<(u32, u32, u64), NodeId>,
    /// Nodes of calls that wait, by context and path.
    calls: FxHashMap<(u32, PathIndex), NodeId>,
}

/// A module at its place in a process.
struct Loaded {
    /// Load time, nanoseconds of the trace's clock.
    at: u64,
    start: u64,
    end: u64,
    bias: u64,
    /// Number of the module in the profile.
    number: u32,
}

impl Loaded {
    fn overlaps(&self, other: &Loaded) -> bool {
        self.start < other.end && other.start < self.end && self.number != other.number
    }
}

impl<'a> Contexts<'a> {
    /// The contexts of a run, or of the run that this is a part of.
    pub fn new(part: &'a Execution, profile: &mut Profile, task_context: TaskContext) -> Contexts<'a> {
        let (execution, part) = (part.whole(), Part::of(part));
        let mut numbers: FxHashMap<(String, String), u32> = FxHashMap::default();
        let mut modules = (0..execution.processes.len()).map(|_| Vec::new()).collect::<Vec<Vec<Loaded>>>();
        for module in &execution.catalog.modules {
            let Some(own) = modules.get_mut(module.process.index()) else { continue };
            let same_by = if module.build_id.is_empty() { module.path.clone() } else { String::new() };
            let number = *numbers.entry((module.build_id.clone(), same_by)).or_insert_with(|| {
                profile.modules.push(Module { build_id: module.build_id.clone(), path: module.path.clone() });
                profile.modules.len() as u32 - 1
            });
            let &taskscope_execution::Module { at, start, end, bias, .. } = module;
            own.push(Loaded { at, start, end, bias, number });
        }
        modules.iter_mut().for_each(|own| own.sort_by_key(|module| std::cmp::Reverse(module.at)));
        let reuses = |own: &Vec<Loaded>| {
            own.iter().enumerate().any(|(index, one)| own[index + 1..].iter().any(|two| one.overlaps(two)))
        };
        let mut path_of_site = FxHashMap::default();
        let mut known: Vec<RegionIndex> = execution.samples.region_paths.keys().copied().collect();
        known.sort_unstable();
        for region in known {
            let has_path = execution.samples.region_paths.get(&region).is_some_and(|row| row.path.is_some());
            if let Some(row) = execution.regions.get(region.index()).filter(|_| has_path) {
                path_of_site.entry(row.site).or_insert(region);
            }
        }
        let mut takes_tools = vec![false; execution.processes.len()];
        for thread in execution.threads.iter().filter(|thread| thread.kind != ThreadKind::Unknown) {
            if let Some(takes_tools) = takes_tools.get_mut(thread.process.index()) {
                *takes_tools = true;
            }
        }
        Contexts {
            execution,
            part,
            takes_tools,
            task_context,
            table: vec![Context { key: Key::Outside, outer: OUTSIDE, depth: 0, node: ROOT }],
            by_key: FxHashMap::default(),
            task_contexts: FxHashMap::default(),
            region_contexts: FxHashMap::default(),
            path_of_site,
            reuses: modules.iter().map(reuses).collect(),
            modules,
            frames: FxHashMap::default(),
            runtimes: profile.modules.iter().map(|module| is_runtime(&module.path)).collect(),
            sampled: FxHashMap::default(),
            calls: FxHashMap::default(),
        }
    }

    /// The node of a context's creation; its body is below.
    pub fn node(&self, context: ContextId) -> NodeId {
        self.table[context.0 as usize].node
    }

    pub fn takes_execution(&self) -> bool {
        self.task_context == TaskContext::Execution
    }

    /// The frame of an address inside an instruction, at a time.
    pub fn frame(&mut self, kind: FrameKind, process: ProcessIndex, address: u64, at: u64) -> Frame {
        let own = self.modules.get(process.index()).map(Vec::as_slice).unwrap_or_default();
        if let Some((module, offset)) = self.frames.get(&(process, address)).copied() {
            return Frame { kind, module, offset };
        }
        let is_there = |module: &&Loaded| (module.start..module.end).contains(&address);
        let mut there = own.iter().filter(is_there).peekable();
        let mut first = there.next();
        let is_only = there.peek().is_none();
        // Before the first known load, the first module is assumed.
        while first.is_some_and(|module| module.at > at)
            && let Some(earlier) = there.next()
        {
            first = Some(earlier);
        }
        let (module, offset) =
            first.map_or((NO_MODULE, address), |module| (module.number, address.wrapping_sub(module.bias)));
        if is_only || self.reuses.get(process.index()) != Some(&true) {
            self.frames.insert((process, address), (module, offset));
        }
        Frame { kind, module, offset }
    }

    /// Whether a runtime reported the activities of a process's threads. Otherwise it is treated as an
    /// ordinary library.
    pub fn takes_tools(&self, process: ProcessIndex) -> bool {
        self.takes_tools.get(process.index()).copied().unwrap_or(false)
    }

    /// Whether an address is in an OpenMP runtime, at a time.
    pub fn in_runtime(&mut self, process: ProcessIndex, address: u64, at: u64) -> bool {
        let module = self.frame(FrameKind::User, process, address, at).module;
        self.runtimes.get(module as usize).copied().unwrap_or(false)
    }

    /// The node for a context's body without a known frame.
    pub fn body(&self, tree: &mut Tree, context: ContextId) -> NodeId {
        match self.first_kind(context) {
            FrameKind::User => self.node(context),
            kind => tree.child(self.node(context), Frame::body(kind)),
        }
    }

    /// The kind of the outermost frame of a body in this context.
    pub fn first_kind(&self, context: ContextId) -> FrameKind {
        match self.table[context.0 as usize].key {
            Key::Outside => FrameKind::User,
            Key::Region(..) => FrameKind::Region,
            Key::Task(..) => FrameKind::Task,
        }
    }

    /// Puts user frames of a time, innermost first, below a context.
    pub fn put(
        &mut self,
        tree: &mut Tree,
        context: ContextId,
        (process, at): (ProcessIndex, u64),
        addresses: impl DoubleEndedIterator<Item = u64>,
    ) -> NodeId {
        let mut kind = self.first_kind(context);
        let mut node = self.node(context);
        for address in addresses.rev() {
            let frame = self.frame(kind, process, address, at);
            node = tree.child(node, frame);
            kind = FrameKind::User;
        }
        node
    }

    /// Remembers that a sample's innermost user frame in this context is at `node`.
    pub fn note_sampled(&mut self, tree: &Tree, context: ContextId, node: NodeId) {
        let frame = tree.frame(node);
        self.sampled.entry((context.0, frame.module, frame.offset)).or_insert(node);
    }

    /// The node of a call into the runtime from `site` in a context: by a sample that was there too, else
    /// directly below the context.
    pub fn at_site(&mut self, tree: &mut Tree, context: ContextId, site: SiteIndex) -> NodeId {
        let Some(row) = self.execution.catalog.sites.get(site.index()).filter(|row| row.address != 0) else {
            return self.node(context);
        };
        let kind = self.first_kind(context);
        let frame = self.frame(kind, row.process, row.address.wrapping_sub(1), row.at);
        match self.sampled.get(&(context.0, frame.module, frame.offset)) {
            Some(node) => *node,
            None => tree.child(self.node(context), frame),
        }
    }

    /// The node of a wait, or of taking a lock, that a thread began at a time in a call at `site` in a
    /// context: by the recorded path, else as [`at_site`](Self::at_site).
    pub fn at_call(
        &mut self,
        tree: &mut Tree,
        context: ContextId,
        site: SiteIndex,
        (thread, at): (ThreadIndex, u64),
    ) -> NodeId {
        let samples = &self.execution.samples;
        let Some(path) = samples.path_of_call(thread, site, at) else {
            return self.at_site(tree, context, site);
        };
        if let Some(known) = self.calls.get(&(context.0, path)) {
            return *known;
        }
        let CreationPath { process, addresses, at, .. } = &samples.paths[path.index()];
        let calls = addresses.iter().map(|address| address.wrapping_sub(1));
        let node = self.put(tree, context, (*process, *at), calls);
        self.calls.insert((context.0, path), node);
        node
    }

    /// The node of a wait that a thread began at a time, without a marker of its state.
    pub fn wait_node(&mut self, tree: &mut Tree, section: &Section, begun: (ThreadIndex, u64)) -> NodeId {
        match section.place.kind() {
            PlaceKind::Site(site) if !self.is_own_site(section, site) => {
                let context = self.around(tree, section.task, section.region);
                self.at_call(tree, context, site, begun)
            }
            _ => self.section_node(tree, section).1,
        }
    }

    /// The node of a thread's section, without a marker of its state.
    pub fn section_node(&mut self, tree: &mut Tree, section: &Section) -> (ContextId, NodeId) {
        let context = self.around(tree, section.task, section.region);
        let node = match section.place.kind() {
            PlaceKind::Site(site) if !self.is_own_site(section, site) => self.at_site(tree, context, site),
            // For the task itself the type's place is that of its creation.
            PlaceKind::Type(ty) if self.execution.tasks.ty.get(section.task.index()) == Some(&ty) => {
                self.body(tree, context)
            }
            PlaceKind::Type(ty) => {
                let site = self.execution.catalog.type_site(ty);
                self.at_site(tree, context, site)
            }
            PlaceKind::Gap(gap) => match self.execution.catalog.gaps.get(gap.index()) {
                Some(gap) if gap.before.is_some() => self.at_site(tree, context, gap.before),
                Some(gap) => self.at_site(tree, context, gap.after),
                None => self.node(context),
            },
            _ if is_in_body(section.state) => self.body(tree, context),
            _ => self.node(context),
        };
        (context, node)
    }

    /// Whether a place is that of the region itself, which its creation path ends with.
    fn is_own_site(&self, section: &Section, site: SiteIndex) -> bool {
        section.state != State::ForkJoin
            && self.execution.regions.get(section.region.index()).is_some_and(|region| region.site == site)
    }

    /// The context of code in a task, or else in a region.
    pub fn around(&mut self, tree: &mut Tree, task: TaskIndex, region: RegionIndex) -> ContextId {
        if task.is_some() && self.task_context == TaskContext::Creation {
            self.created_at(tree, task)
        } else if region.is_some() {
            self.region_context(tree, region)
        } else {
            OUTSIDE
        }
    }

    /// The context of the code that took a lock.
    pub fn around_hold(&mut self, tree: &mut Tree, hold: &Hold) -> ContextId {
        if hold.task.is_some() && self.task_context == TaskContext::Creation {
            return self.created_at(tree, hold.task);
        }
        let track = &self.execution.threads[hold.thread.index()].track;
        match track.row_at(hold.start).map(|row| track.span(row).section.region) {
            Some(region) if region.is_some() => self.region_context(tree, region),
            _ => OUTSIDE,
        }
    }

    /// The context of a region's implicit tasks.
    pub fn region_context(&mut self, tree: &mut Tree, region: RegionIndex) -> ContextId {
        self.resolve(tree, Wanted::Region(region))
    }

    /// The context of a task's creation, independent of the option.
    pub fn created_at(&mut self, tree: &mut Tree, task: TaskIndex) -> ContextId {
        self.resolve(tree, Wanted::Task(task))
    }

    /// Without recursion: chains of tasks may be as long as a trace.
    fn resolve(&mut self, tree: &mut Tree, wanted: Wanted) -> ContextId {
        let mut open = Vec::new();
        let mut met = FxHashSet::default();
        let mut now = wanted;
        let mut outer = loop {
            if let Some(known) = self.known(now) {
                break known;
            }
            // A damaged trace may contain a cycle.
            if !met.insert(now) || open.len() > 1 << 20 {
                break OUTSIDE;
            }
            open.push(now);
            now = self.outer_of(now);
        };
        while let Some(inner) = open.pop() {
            outer = self.inner(tree, outer, inner);
            match inner {
                Wanted::Region(region) => self.region_contexts.insert(region, outer),
                Wanted::Task(task) => self.task_contexts.insert(task, outer),
                Wanted::Outside => None,
            };
        }
        outer
    }

    fn known(&self, wanted: Wanted) -> Option<ContextId> {
        match wanted {
            Wanted::Outside => Some(OUTSIDE),
            Wanted::Region(region) => self.region_contexts.get(&region).copied(),
            Wanted::Task(task) => self.task_contexts.get(&task).copied(),
        }
    }

    fn outer_of(&self, inner: Wanted) -> Wanted {
        let of = |task: TaskIndex, region: RegionIndex| {
            if task.is_some() {
                Wanted::Task(task)
            } else if region.is_some() {
                Wanted::Region(region)
            } else {
                Wanted::Outside
            }
        };
        match inner {
            Wanted::Outside => Wanted::Outside,
            Wanted::Region(region) => match self.path_of_region(region) {
                Some((_, parent_region, parent_task)) => of(parent_task, parent_region),
                None => of(
                    TaskIndex::NONE,
                    self.execution.regions.get(region.index()).map_or(RegionIndex::NONE, |r| r.parent),
                ),
            },
            Wanted::Task(task) => {
                let tasks = &self.execution.tasks;
                let row = task.index();
                match (tasks.parent.get(row), tasks.region.get(row)) {
                    (Some(parent), Some(region)) => of(*parent, *region),
                    _ => Wanted::Outside,
                }
            }
        }
    }

    /// The creation path of a region, its own or that of another instance of the same construct, with its
    /// creator. For another instance only the path counts, unless it was in no region.
    fn path_of_region(&self, region: RegionIndex) -> Option<(PathIndex, RegionIndex, TaskIndex)> {
        let samples = &self.execution.samples;
        if let Some(row) = samples.region_paths.get(&region) {
            return Some((row.path, row.parent_region, row.parent_task));
        }
        let own = self.execution.regions.get(region.index())?;
        let other = samples.region_paths.get(self.path_of_site.get(&own.site)?)?;
        let task = if own.parent.is_some() { TaskIndex::NONE } else { other.parent_task };
        Some((other.path, own.parent, task))
    }

    /// The context of a region or task within an outer one.
    fn inner(&mut self, tree: &mut Tree, outer: ContextId, inner: Wanted) -> ContextId {
        let samples = &self.execution.samples;
        let (key, site) = match inner {
            Wanted::Outside => return OUTSIDE,
            Wanted::Region(region) => {
                let site = self.execution.regions.get(region.index()).map_or(SiteIndex::NONE, |r| r.site);
                let path = self.path_of_region(region).map_or(PathIndex::NONE, |(path, ..)| path);
                (Key::Region(site, path), site)
            }
            Wanted::Task(task) => {
                let ty = self.execution.tasks.ty.get(task.index()).copied().unwrap_or(TypeIndex::NONE);
                let path = samples.task_paths.get(&task).copied().unwrap_or(PathIndex::NONE);
                (Key::Task(ty, path), self.execution.catalog.type_site(ty))
            }
        };
        // Forked by the runtime itself: the bodies of `teams`.
        if let Wanted::Region(region) = inner
            && samples.region_paths.get(&region).is_some_and(|row| !row.path.is_some())
        {
            return outer;
        }
        // Split by the runtime: a task of a taskloop that creates others of its kind.
        if let (Key::Task(ty, path), Key::Task(outer_type, _)) = (key, self.table[outer.0 as usize].key)
            && ty == outer_type
            && samples.paths.get(path.index()).is_some_and(|path| path.addresses.is_empty())
        {
            return outer;
        }
        if let Some(known) = self.by_key.get(&(outer.0, key)) {
            return *known;
        }
        let same = self.same_further_out(outer, key);
        let depth = same.map_or(0, |same| self.table[same.0 as usize].depth + 1);
        if let Some(same) = same.filter(|_| depth >= RECURSION_LEVELS) {
            self.by_key.insert((outer.0, key), same);
            return same;
        }
        let path = match key {
            Key::Region(_, path) | Key::Task(_, path) => samples.paths.get(path.index()),
            Key::Outside => None,
        };
        let node = match path {
            Some(CreationPath { process, addresses, at, .. }) if !addresses.is_empty() => {
                let calls = addresses.iter().map(|address| address.wrapping_sub(1));
                self.put(tree, outer, (*process, *at), calls)
            }
            // The body's last call was a tail call, and so were its callee's.
            Some(_) => self.body(tree, outer),
            None => self.at_site(tree, outer, site),
        };
        let context = ContextId(self.table.len() as u32);
        self.table.push(Context { key, outer, depth, node });
        self.by_key.insert((outer.0, key), context);
        context
    }

    fn same_further_out(&self, from: ContextId, key: Key) -> Option<ContextId> {
        let mut at = from;
        while at != OUTSIDE {
            let row = &self.table[at.0 as usize];
            if row.key == key {
                return Some(at);
            }
            at = row.outer;
        }
        None
    }

    /// The process of a thread.
    pub fn process(&self, thread: ThreadIndex) -> ProcessIndex {
        self.execution.threads[thread.index()].process
    }

    /// The section of a thread at a time.
    pub fn section_at(&self, thread: ThreadIndex, at: u64) -> Section {
        let track = &self.execution.threads[thread.index()].track;
        let section = track.row_at(at).map(|row| track.span(row).section);
        section.unwrap_or(Section { place: Place::UNKNOWN, ..Section::of(State::Unknown) })
    }
}

/// Whether this is done in the body of a region or task, rather than around bodies.
fn is_in_body(state: State) -> bool {
    match state.group() {
        Group::Useful | Group::Mutex | Group::Device => true,
        Group::Sync => state != State::JoinBarrier,
        _ => false,
    }
}

/// Whether a file is one of the OpenMP runtimes, by its name.
fn is_runtime(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["libomp.so", "libomp5", "libiomp5.so", "libgomp.so"].iter().any(|runtime| name.starts_with(runtime))
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Wanted {
    Outside,
    Region(RegionIndex),
    Task(TaskIndex),
}
