//! Names for the call paths of a profile.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{FrameKind, Marker, NO_MODULE, NodeId, Profile, ROOT, key};
use taskscope_symbol::{
    CodePlace, KeptModules, LoopCode, Missing, RUN_TIME_CODE, Symbolizer, UNKNOWN_CODE, are_of_one_template,
    is_outlined, is_python_interpreter, is_python_place, is_stub, starts_code, starts_rust_program,
    without_parameters,
};

/// Functions that start a program or a thread before its own first function.
const BEFORE_MAIN: [&str; 8] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "clone",
    "__clone",
    "clone3",
    "start_thread",
];

/// Libraries that start threads. Without debug information, none of the functions that do so has a name.
const C_LIBRARIES: [&str; 3] = ["libc.so.6", "libpthread.so.0", "libstdc++.so.6"];

/// Functions called once, by the entry code of the program's file.
const CALLS_MAIN: [&str; 3] = ["__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main"];

/// The call tree of a profile, with inlined functions as steps, and bodies of constructs named after the functions that
/// contain them. Startup code before `main` or the routine of a thread is left out, that of languages' libraries included. The second part has the reasons of missing names or lines,
/// each once. `kept` are files of modules that are gone.
pub fn name_call_paths(profile: &Profile, kept: KeptModules) -> (CallTree, Vec<Missing>) {
    let (tree, missing, _) = name_nodes(profile, kept);
    (tree, missing)
}

/// A node of a profile in its named tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedNode {
    /// The step; the root if the path is startup code alone.
    pub node: NodeId,
    /// File and line of its time, or of its call, in its innermost function; `None` if unknown.
    pub line: Option<(String, u32)>,
}

/// The call tree of [`name_call_paths`], and the named step of each node of the profile, by the nodes' numbers.
pub fn name_nodes(profile: &Profile, kept: KeptModules) -> (CallTree, Vec<Missing>, Vec<NamedNode>) {
    let mut naming = Naming {
        profile,
        symbolizer: Symbolizer::default().with_kept(kept).with_files(
            profile.modules.iter().map(|file| (file.path.clone(), file.build_id.clone())).collect(),
        ),
        places: FxHashMap::default(),
        tail_calls: FxHashMap::default(),
        loops: FxHashMap::default(),
        bodies: (profile.tree.ids())
            .map(|node| (node, profile.tree.frame(node)))
            .filter(|(_, frame)| frame.kind == FrameKind::Task && !frame.is_bare_body())
            .map(|(node, frame)| (profile.tree.parent(node), (frame.module, frame.offset)))
            .collect(),
        regions: FxHashMap::default(),
        above_python: nodes_above_python(profile),
        callers: profile.tree.ids().map(|node| profile.tree.parent(node)).collect(),
        tree: CallTree::without_paths(profile),
        missing: BTreeSet::new(),
    };
    for node in profile.tree.ids() {
        let frame = profile.tree.frame(node);
        if frame.kind == FrameKind::Region && !frame.is_bare_body() {
            let call = profile.tree.frame(profile.tree.parent(node));
            let bodies = naming.regions.entry((call.module, call.offset)).or_default();
            bodies.insert((frame.module, frame.offset));
        }
    }
    let mut made: Vec<Step> = vec![Step::ROOT];
    let mut nodes = Vec::with_capacity(profile.tree.ids().size_hint().0 + 1);
    nodes.push(naming.values(ROOT, &Step::ROOT));
    for node in profile.tree.ids() {
        let outer = made[profile.tree.parent(node).0 as usize].clone();
        let step = naming.step(node, &outer);
        nodes.push(naming.values(node, &step));
        made.push(step);
    }
    (naming.tree, naming.missing.into_iter().collect(), nodes)
}

/// Nodes that functions of Python are below, and these functions themselves.
fn nodes_above_python(profile: &Profile) -> FxHashSet<NodeId> {
    let mut found = FxHashSet::default();
    for node in profile.tree.ids().rev() {
        let frame = profile.tree.frame(node);
        let is_python = frame.module == NO_MODULE && is_python_place(frame.offset);
        if is_python || found.contains(&node) {
            found.insert(node);
            found.insert(profile.tree.parent(node));
        }
    }
    found
}

/// Function, file and line of a loop.
type LoopPlace = (String, String, u32);

/// The place of a profile's node in the named tree.
#[derive(Clone)]
struct Step {
    node: NodeId,
    /// File and line in its innermost function: of its call, or of its time.
    line: Option<(String, u32)>,
    /// The user code that it is, by module and offset.
    code: Option<(u32, u64)>,
    /// At the root: the innermost startup function of a language's library, which is left out of the paths of the functions that it
    /// calls.
    start: Option<std::rc::Rc<Start>>,
}

/// A startup function: the step for its own time, which may be that of program code inlined into it.
struct Start {
    label: Label,
    line: Option<(String, u32)>,
    code: (u32, u64),
}

impl Step {
    const ROOT: Step = Step { node: ROOT, line: None, code: None, start: None };
}

struct Naming<'a> {
    profile: &'a Profile,
    symbolizer: Symbolizer,
    places: FxHashMap<(u32, u64), std::rc::Rc<CodePlace>>,
    tail_calls: FxHashMap<(u32, u64), Option<std::rc::Rc<CodePlace>>>,
    loops: FxHashMap<(u32, u64), std::rc::Rc<Vec<Vec<LoopPlace>>>>,
    /// A frame of the tasks that are created at a node.
    bodies: FxHashMap<NodeId, (u32, u64)>,
    /// Frames of the regions that are begun by a call at an address.
    regions: FxHashMap<(u32, u64), BTreeSet<(u32, u64)>>,
    /// Nodes that functions of Python are below.
    above_python: FxHashSet<NodeId>,
    /// Nodes that have called something.
    callers: FxHashSet<NodeId>,
    tree: CallTree,
    missing: BTreeSet<Missing>,
}

impl Naming<'_> {
    fn place(&mut self, module: u32, offset: u64) -> std::rc::Rc<CodePlace> {
        if let Some(known) = self.places.get(&(module, offset)) {
            return known.clone();
        }
        let place = match self.profile.modules.get(module as usize) {
            Some(file) => self.symbolizer.place_in_file(&file.path, &file.build_id, offset),
            None => self.symbolizer.place_of_run_time_code(offset),
        };
        let place = std::rc::Rc::new(place);
        self.places.insert((module, offset), place.clone());
        place
    }

    fn step(&mut self, node: NodeId, outer: &Step) -> Step {
        let frame = self.profile.tree.frame(node);
        let jumped;
        let outer = match frame.kind {
            FrameKind::State | FrameKind::Region | FrameKind::Task => {
                let outer = self.with_start(outer);
                let step = self.behind_tail_call(&outer);
                jumped = self.behind_pointer(node, &step).unwrap_or(step);
                &jumped
            }
            _ => outer,
        };
        match frame.kind {
            FrameKind::State => {
                let marker = frame.marker().unwrap_or(Marker::Runtime);
                // The line from which the program waits is part of the shown path.
                let from = self.line_below(outer);
                let mut state = taskscope_profile::Frame::state(marker);
                if from != outer.node && marker.is_wait() {
                    state.module = self.tree.tree.frame(from).module;
                }
                let node = self.tree.tree.child(from, state);
                Step { node, ..Step::ROOT }
            }
            FrameKind::Pending | FrameKind::Cut => {
                Step { node: self.not_known(outer.node, StepKind::Unknown), ..Step::ROOT }
            }
            FrameKind::Region | FrameKind::Task if frame.is_bare_body() => self.construct(node, outer),
            FrameKind::Region | FrameKind::Task => {
                let place = self.place(frame.module, frame.offset);
                let outermost = place.inlined_into.last().unwrap_or(&place.frame);
                // The function of the outlined body was reached by a tail call and has no frame; or it has no
                // name and is a step in its construct.
                let has_jumped = !outermost.cut_out;
                // In execution context, the outer step did not create the task.
                let has_jumped = has_jumped && (frame.kind == FrameKind::Region || !self.is_by_execution());
                let construct = has_jumped.then(|| self.construct(node, outer));
                let outer = construct.as_ref().unwrap_or(outer);
                self.code(frame.kind, frame.module, frame.offset, outer)
            }
            FrameKind::User if self.is_inside_interpreter(node, outer) => outer.clone(),
            FrameKind::User if outer.node == ROOT && self.starts_without_name(node) => outer.clone(),
            FrameKind::User if outer.node == ROOT && self.starts_rust(node) => {
                self.start(frame.module, frame.offset, "main".to_owned(), None)
            }
            FrameKind::User | FrameKind::Runtime => self.code(frame.kind, frame.module, frame.offset, outer),
        }
    }

    /// Whether a function is the interpreter's between functions of Python or before the first one, or one without a name that
    /// a function of Python has called: they are left out, and their time is that function's.
    fn is_inside_interpreter(&mut self, node: NodeId, outer: &Step) -> bool {
        if self.above_python.is_empty() {
            return false;
        }
        let frame = self.profile.tree.frame(node);
        let module = self.profile.modules.get(frame.module as usize);
        if !module.is_some_and(|module| is_python_interpreter(&module.path)) {
            return false;
        }
        let is_below = outer.node != ROOT && self.above_python.contains(&self.profile.tree.parent(node));
        self.above_python.contains(&node)
            || is_below && self.place(frame.module, frame.offset).frame.function.is_none()
    }

    /// Whether an outermost function belongs to the startup of threads and the like, and lacks a name.
    fn starts_without_name(&mut self, node: NodeId) -> bool {
        let frame = self.profile.tree.frame(node);
        let place = self.place(frame.module, frame.offset);
        let is_c_library =
            place.module.as_ref().is_some_and(|(file, _)| C_LIBRARIES.contains(&file.as_str()));
        is_c_library && place.frame.function.is_none() && self.callers.contains(&node)
    }

    /// Whether it is the `main` that Rust's compiler makes: it calls the library, which calls the program's own.
    fn starts_rust(&mut self, node: NodeId) -> bool {
        let frame = self.profile.tree.frame(node);
        let place = self.place(frame.module, frame.offset);
        if place.frame.function.as_deref() != Some("main") || !self.callers.contains(&node) {
            return false;
        }
        let profile = self.profile;
        let called = profile.tree.ids().filter(|other| profile.tree.parent(*other) == node);
        let called: Vec<_> = called.map(|other| profile.tree.frame(other)).collect();
        called.into_iter().filter(|frame| frame.kind == FrameKind::User).any(|frame| {
            let place = self.place(frame.module, frame.offset);
            let outermost = place.inlined_into.last().unwrap_or(&place.frame);
            outermost.function.as_deref().is_some_and(starts_rust_program)
        })
    }

    /// The step of a startup function of a language's library.
    fn start(&self, module: u32, offset: u64, function: String, line: Option<(String, u32)>) -> Step {
        let label = Label {
            what: StepKind::Function,
            function,
            file: None,
            line: None,
            module: self.file_name(module).to_owned(),
        };
        let start = Start { label, line, code: (module, offset) };
        Step { start: Some(std::rc::Rc::new(start)), ..Step::ROOT }
    }

    /// A startup function as a step: of its own time, and of what it calls that is not a function.
    fn with_start(&mut self, step: &Step) -> Step {
        let Some(Start { label, line, code }) = step.start.as_deref() else { return step.clone() };
        let node = self.tree.child(ROOT, FrameKind::User, label.clone());
        Step { node, line: line.clone(), code: Some(*code), start: None }
    }

    /// The name of a module's file.
    fn file_name(&self, module: u32) -> &str {
        let path = self.profile.modules.get(module as usize).map_or("", |file| file.path.as_str());
        path.rsplit('/').next().unwrap_or(path)
    }

    /// Whether callers of tasks are those of their execution.
    fn is_by_execution(&self) -> bool {
        let context = self.profile.processes.first().and_then(|process| process.get(key::TASK_CONTEXT));
        context.is_some_and(|context| context == "execution")
    }

    /// The step for an unknown part.
    fn not_known(&mut self, outer: NodeId, what: StepKind) -> NodeId {
        let (function, module) = (String::new(), String::new());
        let label = Label { what, function, file: None, line: None, module };
        self.tree.child(outer, FrameKind::Cut, label)
    }

    /// A step that calls the runtime. If the calling function ended with the call and its compiler made that a jump,
    /// the step is followed inwards by this function, which has no frame.
    fn behind_tail_call(&mut self, step: &Step) -> Step {
        let Some((module, offset)) = step.code else { return step.clone() };
        let place = match self.tail_calls.get(&(module, offset)) {
            Some(known) => known.clone(),
            None => {
                let file = self.profile.modules.get(module as usize);
                let found = file.and_then(|file| {
                    self.symbolizer.place_behind_tail_call(&file.path, &file.build_id, offset)
                });
                let found = found.map(std::rc::Rc::new);
                self.tail_calls.insert((module, offset), found.clone());
                found
            }
        };
        match place {
            Some(place) => {
                Step { code: None, ..self.functions(FrameKind::User, module, offset, &place, step) }
            }
            None => step.clone(),
        }
    }

    /// The same for a function that was called through a pointer. The nodes below such a call in `node` are named by the
    /// body of its region, or, without one, by the bodies of all regions there, if these are of one function.
    fn behind_pointer(&mut self, node: NodeId, step: &Step) -> Option<Step> {
        let (module, offset) = step.code?;
        let frame = self.profile.tree.frame(node);
        let bodies = match frame.kind {
            FrameKind::Region if !frame.is_bare_body() => BTreeSet::from([(frame.module, frame.offset)]),
            FrameKind::Region | FrameKind::State => self.regions.get(&(module, offset))?.clone(),
            _ => return None,
        };
        let file = self.profile.modules.get(module as usize)?;
        if !self.symbolizer.is_behind_pointer(&file.path, &file.build_id, offset) {
            return None;
        }
        let mut found: Option<Label> = None;
        for (module, offset) in bodies {
            let file = self.profile.modules.get(module as usize)?;
            let body = self.symbolizer.body_around(&file.path, &file.build_id, offset);
            let Some(CodePlace { frame, module, .. }) = body else { continue };
            let Some(function) = frame.function.filter(|_| !frame.is_nameless) else { continue };
            let function = without_parameters(&function).to_string();
            let (what, module) = (StepKind::Function, module.unwrap_or_default().0);
            let label = Label { what, function, file: frame.file, line: frame.line, module };
            match &mut found {
                None => found = Some(label),
                Some(known) if known.function != label.function => return None,
                // One of several constructs of the function.
                Some(known) if known.line != label.line => known.line = None,
                Some(_) => {}
            }
        }
        let found = found.filter(|found| {
            self.tree
                .label(step.node)
                .is_none_or(|caller| !are_of_one_template(&caller.function, &found.function))
        })?;
        let line = found.file.clone().zip(found.line);
        let (file, from) = step.line.clone().unzip();
        let label = Label { file, line: from, ..found };
        Some(Step { node: self.tree.child(step.node, FrameKind::User, label), line, ..Step::ROOT })
    }

    /// The body of a construct that has no frame of its own in `node`, below the step that creates it.
    fn construct(&mut self, node: NodeId, outer: &Step) -> Step {
        let Some(Label { function, module, .. }) = self.tree.label(outer.node).cloned() else {
            return outer.clone();
        };
        let what = if self.profile.tree.frame(node).kind == FrameKind::Task {
            StepKind::Task
        } else {
            StepKind::Parallel
        };
        // Other paths of the task have such a frame, and the same name.
        let known =
            self.bodies.get(&self.profile.tree.parent(node)).copied().filter(|_| what == StepKind::Task);
        let (file, line) = known
            .and_then(|(module, offset)| {
                let place = self.place(module, offset);
                let outermost = place.inlined_into.last().unwrap_or(&place.frame);
                outermost.construct_line.map(|line| (outermost.file.clone(), Some(line)))
            })
            .unwrap_or_else(|| outer.line.clone().unzip());
        let label = Label { what, function, file, line, module };
        Step { node: self.tree.child(outer.node, FrameKind::User, label), ..Step::ROOT }
    }

    fn code(&mut self, kind: FrameKind, module: u32, offset: u64, outer: &Step) -> Step {
        let place = self.place(module, offset);
        // A linker stub without source: the call is its caller's.
        let is_stub = place.frame.function.as_deref().is_some_and(is_stub);
        if is_stub && kind == FrameKind::User && outer.node != ROOT {
            return outer.clone();
        }
        self.functions(kind, module, offset, &place, outer)
    }

    /// The functions at an address, outermost first.
    fn functions(
        &mut self,
        kind: FrameKind,
        module: u32,
        offset: u64,
        place: &CodePlace,
        outer: &Step,
    ) -> Step {
        // Reasons for missing lines in the runtime or in system libraries are not relevant here.
        let is_relevant = |missing: &&Missing| {
            kind.is_user() && (place.frame.function.is_none() || matches!(missing, Missing::SplitGone { .. }))
        };
        if let Some(missing) = place.missing.as_ref().filter(is_relevant) {
            self.missing.insert(missing.clone());
        }
        let file_of_module = place.module.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        let name_of = |frame: &taskscope_symbol::Frame| match &frame.function {
            Some(name) => without_parameters(name).to_string(),
            None if place.missing == Some(Missing::RunTimeCode) => RUN_TIME_CODE.to_owned(),
            None if module == NO_MODULE => UNKNOWN_CODE.to_owned(),
            None => format!("{file_of_module}+{:#x}", place.unnamed.unwrap_or(offset)),
        };
        let loops = if kind.is_user() { self.loops(module, offset) } else { std::rc::Rc::default() };
        let chain = place.inlined_into.iter().rev().chain(std::iter::once(&place.frame));
        // A loop in a function that does not contain this address has its call around the address.
        let functions: Vec<String> = chain.clone().map(name_of).collect();
        let common = |entry: &Vec<LoopPlace>| {
            entry.iter().zip(&functions).take_while(|((one, ..), other)| one == *other).count()
        };
        let mut now = outer.clone();
        let creator = self.tree.label(outer.node).map(|label| label.function.clone());
        let creator = creator.filter(|creator| !creator.is_empty());
        let is_below_creator = self.tree.tree.frame(outer.node).kind == FrameKind::User
            && (kind == FrameKind::Region || kind == FrameKind::Task && !self.is_by_execution());
        for (depth, frame) in chain.enumerate() {
            let around = self.tree.label(now.node).map(|label| label.what);
            let is_in_wrapper =
                matches!(around, Some(StepKind::Parallel | StepKind::Task)) && kind == FrameKind::User;
            if frame.is_wrapped && depth == 0 && is_in_wrapper {
                // One construct to its author.
                now.line = frame.file.clone().zip(frame.line);
                now.code = Some((module, offset));
                continue;
            }
            let mut function = name_of(frame);
            // Lines of other declarations before a task need not end before it; and lines may be missing.
            let is_known = kind == FrameKind::Region
                && frame.function.as_deref().is_some_and(|function| !is_outlined(function));
            if let Some(creator) = creator.as_ref().filter(|_| frame.is_nameless && depth == 0)
                && (is_below_creator && !is_known || are_of_one_template(creator, &function))
            {
                function.clone_from(creator);
            }
            let starts = BEFORE_MAIN.contains(&function.as_str());
            if now.node == ROOT && kind.is_user() && starts {
                continue;
            }
            let is_rust =
                function == "main" && functions.get(depth + 1).is_some_and(|next| starts_rust_program(next));
            if now.node == ROOT
                && kind.is_user()
                && (is_rust || starts_code(&function, self.file_name(module), frame.file.as_deref()))
            {
                now = self.start(module, offset, function, frame.file.clone().zip(frame.line));
                continue;
            }
            // Further out is `_start`, which has no name in a stripped program.
            if kind.is_user() && CALLS_MAIN.contains(&function.as_str()) {
                now = Step::ROOT;
                continue;
            }
            let what = match kind {
                FrameKind::Runtime => StepKind::Function,
                FrameKind::Task if frame.cut_out && depth == 0 => StepKind::Task,
                _ if frame.cut_out && depth == 0 => StepKind::Parallel,
                _ => StepKind::Function,
            };
            // A task may be outside the place of its creation.
            let construct = frame.construct_line.filter(|_| what == StepKind::Task);
            let (file, line) = match &now.line {
                _ if construct.is_some() => (frame.file.clone(), construct),
                Some((file, line)) => (Some(file.clone()), Some(*line)),
                None if what == StepKind::Function => (None, None),
                None => (frame.file.clone(), frame.line),
            };
            let label = Label { what, function, file, line, module: file_of_module.clone() };
            let kind = if kind == FrameKind::Runtime { kind } else { FrameKind::User };
            let function = label.function.clone();
            // A part that its own function calls is one step with that.
            let is_part = frame.is_split_off
                && creator.as_ref() == Some(&function)
                && matches!(around, Some(StepKind::Parallel | StepKind::Task)) == frame.cut_out;
            now = Step {
                node: if is_part { now.node } else { self.tree.child(now.node, kind, label) },
                line: frame.file.clone().zip(frame.line),
                code: kind.is_user().then_some((module, offset)),
                start: None,
            };
            // Loops of this function contain its inlined and called code.
            for (_, file, line) in loops.iter().filter(|at| common(at) == depth + 1).map(|at| &at[depth]) {
                let label = Label {
                    what: StepKind::Loop,
                    function: function.clone(),
                    file: Some(file.clone()),
                    line: Some(*line),
                    module: file_of_module.clone(),
                };
                now.node = self.tree.child(now.node, kind, label);
            }
        }
        now
    }

    /// The functions, outermost first, that contain the source of the loops around an address; outer loops first.
    fn loops(&mut self, module: u32, offset: u64) -> std::rc::Rc<Vec<Vec<LoopPlace>>> {
        if let Some(known) = self.loops.get(&(module, offset)) {
            return known.clone();
        }
        let mut loops = Vec::new();
        if let Some(file) = self.profile.modules.get(module as usize) {
            for code in self.symbolizer.loops_around(&file.path, &file.build_id, offset) {
                loops.extend(self.loop_place(module, &code));
            }
        }
        // Compilers turn one loop into a nest: a loop over the chunks of a schedule around the loop over a chunk's iterations.
        loops.dedup();
        let loops = std::rc::Rc::new(loops);
        self.loops.insert((module, offset), loops.clone());
        loops
    }

    /// Functions, outermost first, of a loop's statement.
    ///
    /// The entry of a rotated loop may be in its body, or in a function that the body calls in line, and its condition in
    /// another one; the loop is written in the innermost function that all of them are in, at their first line there.
    fn loop_place(&mut self, module: u32, code: &LoopCode) -> Option<Vec<LoopPlace>> {
        let mut place: Option<Vec<LoopPlace>> = None;
        for at in &code.statement {
            let at = self.place(module, *at);
            let chain = at.inlined_into.iter().rev().chain(std::iter::once(&at.frame));
            let named = chain.map(|frame| {
                let function = without_parameters(frame.function.as_deref()?).to_string();
                Some((function, frame.file.clone()?, frame.line.filter(|line| *line != 0)?))
            });
            // Code that the compiler made has no line.
            let Some(named) = named.collect::<Option<Vec<LoopPlace>>>() else { continue };
            let Some(known) = &mut place else {
                place = Some(named);
                continue;
            };
            // Calls of one function at two lines are two copies of it.
            let is_same = |(one, other): &(&LoopPlace, &LoopPlace)| one.0 == other.0 && one.1 == other.1;
            let common = known.iter().zip(&named).take_while(is_same).count();
            let calls = known.iter().zip(&named).take_while(|(one, other)| one == other).count();
            if common == 0 {
                continue;
            }
            known.truncate(common.min(calls + 1));
            let last = known.len() - 1;
            known[last].2 = known[last].2.min(named[last].2);
        }
        place
    }

    /// The node of the line that a step is at.
    fn line_below(&mut self, step: &Step) -> NodeId {
        let Some((file, line)) = step.line.clone() else { return step.node };
        let Some(label) = self.tree.label(step.node) else { return step.node };
        let label = Label {
            what: StepKind::Line,
            function: label.function.clone(),
            file: Some(file),
            line: Some(line),
            module: label.module.clone(),
        };
        let kind = self.tree.tree.frame(step.node).kind;
        self.tree.child(step.node, kind, label)
    }

    /// Adds the values of a node at its step.
    fn values(&mut self, node: NodeId, step: &Step) -> NamedNode {
        let values: Vec<_> = self.profile.tree.values(node).collect();
        if values.is_empty() {
            return NamedNode { node: step.node, line: step.line.clone() };
        }
        let step = self.with_start(step);
        let below = match step.node {
            // Samples without a path, or only in startup code, are a row, too.
            ROOT => self.not_known(ROOT, StepKind::NoPath),
            _ => self.line_below(&step),
        };
        for (metric, value) in values {
            self.tree.tree.add(below, metric, value);
        }
        NamedNode { node: step.node, line: step.line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_profile::{Frame, Metric};

    #[test]
    fn time_without_a_path_and_time_without_callers_have_different_names() {
        let mut profile = Profile::default();
        profile.tree.add(ROOT, Metric::TIME, 3);
        let cut = profile.tree.child(ROOT, Frame::cut());
        profile.tree.add(cut, Metric::TIME, 5);
        let region = profile.tree.child(ROOT, Frame::body(FrameKind::Region));
        profile.tree.add(region, Metric::TIME, 7);
        let (named, _) = name_call_paths(&profile, KeptModules::default());
        let rows = named
            .tree
            .ids()
            .map(|node| (named.text_of(named.tree.frame(node)), named.tree.value(node, Metric::TIME)));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [("<path not known>".into(), 10), ("<callers not known>".into(), 5)]
        );
    }

    #[test]
    fn the_c_librarys_start_frames_are_left_out_also_without_debug_symbols() {
        let module = |path: &str| taskscope_profile::Module { path: path.into(), build_id: String::new() };
        let mut profile = Profile {
            modules: vec![module("/nowhere/libc.so.6"), module("/nowhere/program")],
            ..Default::default()
        };
        let frame = |module, offset| Frame { kind: FrameKind::User, module, offset };
        let clone = profile.tree.child(ROOT, frame(0, 0x10));
        let start = profile.tree.child(clone, frame(0, 0x20));
        let run = profile.tree.child(start, frame(1, 0x30));
        let wait = profile.tree.child(run, frame(0, 0x40));
        profile.tree.add(wait, Metric::TIME, 3);
        // A thread that belongs to the library.
        let other = profile.tree.child(start, frame(0, 0x50));
        profile.tree.add(other, Metric::TIME, 5);
        let (named, _) = name_call_paths(&profile, KeptModules::default());
        let rows: Vec<_> = named.tree.ids().map(|node| named.text_of(named.tree.frame(node))).collect();
        assert_eq!(rows, ["program+0x30", "libc.so.6+0x40", "libc.so.6+0x50"]);
    }

    /// A library of functions with these names, and the addresses of the functions in it.
    fn library_of(names: &[&str], directory: &std::path::Path) -> (String, Vec<u64>) {
        let functions = names.iter().enumerate().map(|(number, name)| {
            format!(
                "int f{number}(int) __asm__(\"{name}\"); int f{number}(int x) {{ return x + {number}; }}\n"
            )
        });
        let source = directory.join("named.c");
        std::fs::write(&source, functions.collect::<String>()).unwrap();
        let path = directory.join("libnamed.so");
        let mut compiler = std::process::Command::new("gcc");
        compiler.args(["-shared", "-fPIC", "-O0", "-o"]).arg(&path).arg(&source);
        assert!(compiler.status().unwrap().success());
        let path = path.to_str().unwrap().to_owned();
        let mut symbolizer = Symbolizer::default();
        let size = std::fs::metadata(&path).unwrap().len();
        let mut name_at = |offset| symbolizer.place_in_file(&path, "", offset).frame.function;
        let named: Vec<(u64, String)> =
            (0..size).filter_map(|offset| Some((offset, name_at(offset)?))).collect();
        let offset = |name: &&str| {
            let name = taskscope_symbol::demangle(name);
            named.iter().find(|(_, other)| *other == name).map(|(offset, _)| *offset)
        };
        let offsets = names.iter().map(|name| offset(name).unwrap_or_else(|| panic!("{name}")));
        let offsets = offsets.collect();
        (path, offsets)
    }

    /// Startup code of Rust and C++ is left out at the start of paths only; its own time and its waits stay.
    #[test]
    fn paths_begin_at_the_programs_own_functions() {
        if !taskscope_prerequisite::has("gcc") {
            return;
        }
        let here = tempfile::tempdir().unwrap();
        let (path, offsets) = library_of(
            &[
                "main",
                "_ZN3std2rt10lang_start17h0123456789abcdefE",
                "_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h0123456789abcdefE",
                "_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE",
                "_ZN4prog4main17h0123456789abcdefE",
                "_ZN3std9panicking3try17h0123456789abcdefE",
                "_ZN4prog4work17h0123456789abcdefE",
                "execute_native_thread_routine",
                "_ZSt8__invokev",
                "_Z4burnv",
                "_Z5otherv",
            ],
            here.path(),
        );
        let module = taskscope_profile::Module { path, build_id: String::new() };
        let mut profile = Profile { modules: vec![module], ..Default::default() };
        let child = |profile: &mut Profile, path: &[usize]| {
            path.iter().fold(ROOT, |outer, number| {
                let frame = Frame { kind: FrameKind::User, module: 0, offset: offsets[*number] };
                profile.tree.child(outer, frame)
            })
        };
        // The program itself catches panics, and calls functions of its library.
        let work = child(&mut profile, &[0, 1, 2, 3, 4, 5, 3, 6]);
        profile.tree.add(work, Metric::TIME, 7);
        let thread = child(&mut profile, &[2, 3, 6]);
        profile.tree.add(thread, Metric::TIME, 5);
        // Code that is inlined into the library's function.
        let own = child(&mut profile, &[2]);
        profile.tree.add(own, Metric::TIME, 3);
        let waits = profile.tree.child(own, Frame::state(Marker::Lock));
        profile.tree.add(waits, Metric::TIME, 2);
        let burn = child(&mut profile, &[7, 8, 9]);
        profile.tree.add(burn, Metric::TIME, 1);
        // Not at the start of the path.
        let plain = child(&mut profile, &[10, 8, 9]);
        profile.tree.add(plain, Metric::TIME, 1);
        let (named, _, nodes) = name_nodes(&profile, KeptModules::default());
        let path_of = |node: NodeId| {
            let mut steps: Vec<String> = Vec::new();
            let mut at = node;
            while at != ROOT {
                steps.insert(0, named.text_of(named.tree.frame(at)));
                at = named.tree.parent(at);
            }
            steps.join(" ▸ ")
        };
        let mut rows: Vec<(String, u64)> = (named.tree.ids())
            .map(|node| (path_of(node), named.tree.value(node, Metric::TIME)))
            .filter(|(_, value)| *value > 0)
            .collect();
        rows.sort();
        let start = "std::sys::backtrace::__rust_begin_short_backtrace";
        let expected = [
            ("burn".to_owned(), 1),
            ("other ▸ std::__invoke ▸ burn".to_owned(), 1),
            (
                "prog::main ▸ std::panicking::try ▸ core::ops::function::FnOnce::call_once ▸ prog::work"
                    .to_owned(),
                7,
            ),
            ("prog::work".to_owned(), 5),
            (start.to_owned(), 3),
            (format!("{start} ▸ <waiting for a lock>"), 2),
        ];
        assert_eq!(rows, expected);
        assert_eq!(named.tree.total(Metric::TIME), profile.tree.total(Metric::TIME));
        assert_eq!(path_of(nodes[own.0 as usize].node), start);
        // No step is left of what is skipped.
        let first = named.tree.ids().filter(|node| named.tree.parent(*node) == ROOT).map(path_of);
        assert_eq!(
            first.collect::<BTreeSet<_>>(),
            ["burn", "other", "prog::main", "prog::work", start].map(str::to_owned).into()
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_linkers_stubs_are_no_steps() {
        // A library that every process of the standard library's has, and that calls others.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library =
            maps.lines().filter_map(|line| line.split_once('/')).find(|(_, path)| path.contains("libgcc_s"));
        let path = format!("/{}", library.unwrap().1);
        let mut symbolizer = Symbolizer::default();
        let size = std::fs::metadata(&path).unwrap().len();
        let mut name_at = |offset| symbolizer.place_in_file(&path, "", offset).frame.function;
        let is_stub = |name: &Option<String>| name.as_deref().is_some_and(is_stub);
        let stub = (0..size).step_by(16).find(|offset| is_stub(&name_at(*offset))).unwrap();
        let mut beyond = (stub + 16..size).step_by(16).map(|offset| (offset, name_at(offset)));
        let (caller, name) = beyond.find(|(_, name)| name.is_some() && !is_stub(name)).unwrap();
        let mut profile = Profile {
            modules: vec![taskscope_profile::Module { path, build_id: String::new() }],
            ..Default::default()
        };
        let frame = |offset| Frame { kind: FrameKind::User, module: 0, offset };
        let caller = profile.tree.child(ROOT, frame(caller));
        let called = profile.tree.child(caller, frame(stub));
        profile.tree.add(called, Metric::TIME, 3);
        let (named, _) = name_call_paths(&profile, KeptModules::default());
        let rows: Vec<_> = (named.tree.ids())
            .map(|node| (named.text_of(named.tree.frame(node)), named.tree.value(node, Metric::TIME)))
            .collect();
        assert_eq!(rows, [(name.unwrap(), 3)]);
    }
}
