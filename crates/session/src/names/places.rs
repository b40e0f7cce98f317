//! Places of an execution in words: `compute [parallel at heat.c:41]`.

use super::kernels;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use taskscope_execution::{
    Catalog, Construct, Execution, GapIndex, Joined, ObjectIndex, Place, PlaceKind, ProcessIndex, SiteIndex,
    State, TypeIndex, TypeKind,
};
use taskscope_symbol::{
    CodePlace, KeptModules, LoadedModule, Location, Missing, Symbolizer, VariablePlace, abbreviated,
    without_parameters,
};

/// Resolves code sites on demand, each once.
pub struct Places {
    catalog: Catalog,
    kept: KeptModules,
    symbolizers: RefCell<FxHashMap<ProcessIndex, Symbolizer>>,
    resolved: RefCell<FxHashMap<SiteIndex, Rc<CodePlace>>>,
    missing: RefCell<BTreeSet<Missing>>,
    /// First place of each lock's acquisition, and its number among the locks of that place.
    first_taken: FxHashMap<ObjectIndex, (SiteIndex, u32)>,
    /// Places of acquisitions, which are also the places of waits for locks.
    lock_sites: FxHashSet<SiteIndex>,
    /// The functions of MPI that are called from a site.
    call_sites: FxHashMap<SiteIndex, &'static str>,
    /// Labels of the kernels that constructs run.
    kernels: FxHashMap<SiteIndex, String>,
}

impl Places {
    /// The places of an execution.
    pub fn of(execution: &Execution) -> Places {
        Places::from_catalog(&execution.catalog).with_calls_of(execution)
    }

    /// Places without knowledge of lock acquisitions.
    pub(crate) fn from_catalog(catalog: &Catalog) -> Places {
        Places {
            catalog: catalog.clone(),
            kept: KeptModules::default(),
            symbolizers: RefCell::default(),
            resolved: RefCell::default(),
            missing: RefCell::default(),
            first_taken: FxHashMap::default(),
            lock_sites: FxHashSet::default(),
            call_sites: FxHashMap::default(),
            kernels: FxHashMap::default(),
        }
    }

    /// Adds files that were kept of modules.
    pub fn with_kept(self, kept: KeptModules) -> Places {
        Places { kept, ..self }
    }

    /// Adds the places of locks and of calls of MPI, and the labels of kernels.
    pub(crate) fn with_calls_of(self, execution: &Execution) -> Places {
        Places {
            first_taken: first_taken(execution),
            lock_sites: (execution.holds.iter().map(|hold| hold.site))
                .chain(execution.thread_waits.sites())
                .collect(),
            call_sites: (execution.communication.calls.iter())
                .filter_map(|call| match call.place.kind() {
                    PlaceKind::Site(site) => Some((site, call.function_name()?)),
                    _ => None,
                })
                .collect(),
            kernels: kernels::labels(execution),
            // The place of a lock acquisition is worded differently; and not every joined place is shown.
            resolved: RefCell::default(),
            missing: RefCell::default(),
            ..self
        }
    }

    /// Types of a process that have one name and are of one kind are one, and so are sites of one line in one function:
    /// compilers copy constructs.
    pub(crate) fn joined(&self) -> Joined {
        let mut known: FxHashMap<(ProcessIndex, String, Option<TypeKind>), TypeIndex> = FxHashMap::default();
        let types = self.catalog.types.iter().zip(0..).map(|(row, number)| {
            let ty = TypeIndex(number);
            let has_name = row.site.is_some() || !row.label.is_empty();
            if !has_name {
                return ty;
            }
            *known.entry((row.process, self.name_of_copies(ty), row.kind)).or_insert(ty)
        });
        let types = types.collect();
        let mut known: FxHashMap<Written, SiteIndex> = FxHashMap::default();
        let sites =
            (0..self.catalog.sites.len() as u32).map(SiteIndex).map(|site| match self.written(site) {
                Some(written) => *known.entry(written).or_insert(site),
                None => site,
            });
        Joined::of(types, sites.collect())
    }

    /// The common property of a type's copies: the name, or, without the lines on which names depend, the body's
    /// address.
    fn name_of_copies(&self, ty: TypeIndex) -> String {
        let site = self.catalog.type_site(ty);
        let body = self.catalog.constructs.get(&site).map(|construct| construct.body);
        match body.filter(|body| *body != 0 && self.code(site).frame.line.is_none()) {
            Some(body) => format!("{body:#x}"),
            // Whole: different functions may have one abbreviation.
            None => self.name_of_type(ty, |places, what, site| {
                let code = places.code(site);
                let function = code.frame.function.as_deref().map(without_parameters);
                places.construct_in(function.as_deref(), what, site)
            }),
        }
    }

    /// The common property of a construct's copies, if known.
    fn written(&self, site: SiteIndex) -> Option<Written> {
        let row = self.catalog.sites.get(site.index())?;
        let construct = self.catalog.constructs.get(&site);
        let code = self.code(site);
        let line = code.frame.file.clone().zip(code.frame.line);
        let place = match (line, construct) {
            (Some((file, line)), _) => {
                let column = construct.and_then(|construct| Location::parse(&construct.location));
                (file, u64::from(line), column.map_or(0, |location| location.column))
            }
            (None, Some(construct)) if construct.body != 0 => (String::new(), construct.body, 0),
            _ => return None,
        };
        let is_in_body = construct.is_none() && code.frame.cut_out;
        Some((row.process, code.frame.function.clone(), place, (construct.is_some(), is_in_body)))
    }

    /// The reasons for missing names or lines so far, each once.
    pub fn missing(&self) -> Vec<Missing> {
        self.missing.borrow().iter().cloned().collect()
    }

    /// Function, file and line of a code site.
    pub fn code(&self, site: SiteIndex) -> Rc<CodePlace> {
        if let Some(known) = self.resolved.borrow().get(&site) {
            return known.clone();
        }
        let place = Rc::new(self.resolve(site));
        self.resolved.borrow_mut().insert(site, place.clone());
        place
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The static variable of a process at an address.
    pub(crate) fn variable(&self, process: ProcessIndex, address: u64) -> Option<VariablePlace> {
        self.with_symbolizer(process, |symbolizer| {
            symbolizer.set_time(u64::MAX);
            symbolizer.variable(address)
        })
    }

    pub(super) fn with_symbolizer<R>(
        &self,
        process: ProcessIndex,
        ask: impl FnOnce(&mut Symbolizer) -> R,
    ) -> R {
        let mut symbolizers = self.symbolizers.borrow_mut();
        ask(symbolizers.entry(process).or_insert_with(|| {
            let own = self.catalog.modules.iter().filter(|m| m.process == process);
            Symbolizer::new(
                own.map(|m| LoadedModule {
                    since: m.at,
                    start: m.start,
                    end: m.end,
                    bias: m.bias,
                    build_id: m.build_id.clone(),
                    path: m.path.clone(),
                })
                .collect(),
            )
            .with_kept(self.kept.clone())
        }))
    }

    /// The place of a step of a call path that was sampled at a time: of the instruction at an address, or of the call that
    /// returns to it.
    pub fn step(&self, process: ProcessIndex, address: u64, at: u64, is_return: bool) -> CodePlace {
        self.with_symbolizer(process, |symbolizer| {
            symbolizer.set_time(at);
            // A return address is after its call.
            symbolizer.call_place(if is_return { address } else { address.saturating_add(1) })
        })
    }

    fn resolve(&self, site: SiteIndex) -> CodePlace {
        let Some(row) = self.catalog.sites.get(site.index()).filter(|row| row.address != 0) else {
            return CodePlace::default();
        };
        let construct = self.catalog.constructs.get(&site);
        let mut place = self.with_symbolizer(row.process, |symbolizer| {
            symbolizer.set_time(row.at);
            match construct {
                Some(Construct { body, location }) => {
                    symbolizer.construct_place(row.address, *body, location)
                }
                None => symbolizer.runtime_call_place(row.address),
            }
        });
        if self.lock_sites.contains(&site) {
            // The code that uses guards and methods of locks: all of it would be one place else.
            place.leave_language_library();
        }
        if let Some(missing) = &place.missing {
            self.missing.borrow_mut().insert(missing.clone());
        }
        place
    }

    /// The words for a place of code with what is written there.
    pub fn construct_of(&self, what: &str, code: &CodePlace) -> String {
        words_of_code(what, code)
    }

    /// The words for a construct at a site: function, abbreviated, and the construct in brackets.
    pub fn construct(&self, what: &str, site: SiteIndex) -> String {
        let code = self.code(site);
        let function = code.frame.function.as_deref().map(without_parameters);
        self.construct_in(function.as_deref().map(abbreviated).as_deref(), what, site)
    }

    /// The words with this function, or with the label of the kernel that the construct runs.
    fn construct_in(&self, function: Option<&str>, what: &str, site: SiteIndex) -> String {
        let function = self.kernels.get(&site).map(String::as_str).or(function);
        construct_in(&self.code(site), function, what)
    }

    /// `heat.c:41` of a site, if known.
    pub fn line(&self, site: SiteIndex) -> Option<String> {
        let code = self.code(site);
        let file = code.frame.file.as_deref()?;
        Some(format!("{}:{}", short(file), code.frame.line?))
    }

    /// The site of a place; for serial code, the region before it, or else the one after.
    pub fn site_of(&self, place: Place) -> SiteIndex {
        match place.kind() {
            PlaceKind::Unknown => SiteIndex::NONE,
            PlaceKind::Site(site) => site,
            PlaceKind::Type(ty) => self.catalog.type_site(ty),
            PlaceKind::Gap(gap) => match self.catalog.gaps.get(gap.index()) {
                Some(gap) if gap.after.is_some() => gap.after,
                Some(gap) => gap.before,
                None => SiteIndex::NONE,
            },
        }
    }

    /// The words for the activity of a thread in `state` at `place`; empty if only the state is known.
    pub fn name(&self, state: State, place: Place) -> String {
        match place.kind() {
            PlaceKind::Unknown => String::new(),
            // An idle thread has left a region.
            PlaceKind::Site(site) if state == State::Idle => {
                format!("after {}", self.construct("parallel", site))
            }
            PlaceKind::Site(site) => match self.call_sites.get(&site) {
                Some(function) if matches!(state, State::Communication | State::MpiStart) => {
                    self.construct(&format!("MPI_{function}"), site)
                }
                _ => self.construct(word_of(state), site),
            },
            PlaceKind::Type(ty) => self.type_name(ty),
            PlaceKind::Gap(gap) => self.gap_name(gap),
        }
    }

    /// The words for a task type or worksharing construct.
    pub fn type_name(&self, ty: TypeIndex) -> String {
        self.name_of_type(ty, Places::construct)
    }

    /// The words for a type, with those for its construct.
    fn name_of_type(&self, ty: TypeIndex, construct: impl Fn(&Places, &str, SiteIndex) -> String) -> String {
        let Some(row) = self.catalog.types.get(ty.index()) else { return "task of unknown type".to_string() };
        let what = match row.kind {
            Some(TypeKind::Task { .. }) | None => "task",
            Some(TypeKind::Work { kind }) => work_word(kind),
        };
        let code = if row.site.is_some() { self.code(row.site) } else { Rc::default() };
        // Without a name of its own the recorder's or runtime's label says most.
        let is_nameless = code.frame == Default::default() && !self.kernels.contains_key(&row.site);
        if is_nameless && !row.label.is_empty() {
            return row.label.clone();
        }
        if !row.site.is_some() {
            return format!("{what} type {}", ty.0);
        }
        construct(self, what, row.site)
    }

    /// The words for serial code: the regions around it.
    pub fn gap_name(&self, gap: GapIndex) -> String {
        let Some(gap) = self.catalog.gaps.get(gap.index()) else { return "serial code".to_string() };
        let region = |site| self.construct("parallel", site);
        match (gap.after.is_some(), gap.before.is_some()) {
            (false, false) => "serial code".to_string(),
            (false, true) => format!("serial code before {}", region(gap.before)),
            (true, false) => format!("serial code after {}", region(gap.after)),
            (true, true) if gap.after == gap.before => {
                format!("serial code between executions of {}", region(gap.after))
            }
            (true, true) => {
                format!("serial code between {} and {}", region(gap.after), region(gap.before))
            }
        }
    }

    /// The code site of a type, if known.
    pub fn type_site(&self, ty: TypeIndex) -> SiteIndex {
        self.catalog.type_site(ty)
    }

    /// The place that took a lock first, and the lock's number among those of the place.
    pub(super) fn first_taken(&self, object: ObjectIndex) -> Option<(SiteIndex, u32)> {
        self.first_taken.get(&object).copied()
    }
}

/// Process, function, file with line and column or the body's address, and whether it is a construct with a
/// body or within one.
type Written = (ProcessIndex, Option<String>, (String, u64, u32), (bool, bool));

/// The words for a place of code with what is written there: function, abbreviated, and that in brackets.
pub fn words_of_code(what: &str, code: &CodePlace) -> String {
    let function = code.frame.function.as_deref().map(without_parameters);
    construct_in(code, function.as_deref().map(abbreviated).as_deref(), what)
}

/// The words for code with what is written there.
fn construct_in(code: &CodePlace, function: Option<&str>, what: &str) -> String {
    let line = match (&code.frame.file, code.frame.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", short(file))),
        _ => None,
    };
    let what = if code.is_caller { format!("{what} in code called") } else { what.to_owned() };
    let at = |place: &str| match what.trim() {
        "" => format!("[at {place}]"),
        what => format!("[{what} at {place}]"),
    };
    match (function, line, &code.module) {
        (Some(function), Some(line), _) => format!("{function} {}", at(&line)),
        (None, Some(line), _) => at(&line),
        (Some(function), None, _) => match code.offset {
            Some(offset) => format!("{function}+{offset:#x} [{what}]"),
            None => match &code.module {
                // For an outlined body, its own address: the function may have several.
                Some((module, body)) if code.frame.cut_out => {
                    format!("{function} {}", at(&format!("{module}+{body:#x}")))
                }
                _ => format!("{function} [{what}]"),
            },
        },
        (None, None, Some((module, offset))) => at(&format!("{module}+{offset:#x}")),
        (None, None, None) => format!("[{what}]"),
    }
}

/// Numbers locks by the place that took them first, in the order of time.
fn first_taken(execution: &Execution) -> FxHashMap<ObjectIndex, (SiteIndex, u32)> {
    let mut first: FxHashMap<ObjectIndex, (u64, SiteIndex)> = FxHashMap::default();
    for hold in execution.holds.iter().filter(|hold| hold.site.is_some()) {
        let known = first.entry(hold.object).or_insert((hold.start, hold.site));
        *known = (*known).min((hold.start, hold.site));
    }
    let mut order: Vec<(u64, ObjectIndex, SiteIndex)> =
        first.into_iter().map(|(object, (start, site))| (start, object, site)).collect();
    order.sort_unstable();
    let mut counts: FxHashMap<SiteIndex, u32> = FxHashMap::default();
    let mut number = |site| {
        let count = counts.entry(site).or_insert(0);
        *count += 1;
        *count
    };
    order.into_iter().map(|(_, object, site)| (object, (site, number(site)))).collect()
}

/// A source file's name without its directories.
fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The construct at a plain site, for a thread in this state.
fn word_of(state: State) -> &'static str {
    match state {
        State::ImplicitTask | State::ForkJoin | State::JoinBarrier => "parallel",
        State::Masked => "masked",
        State::Barrier => "barrier",
        State::Taskwait => "taskwait",
        State::TaskwaitDepend => "taskwait depend",
        State::Taskgroup => "taskgroup",
        State::Taskyield => "taskyield",
        State::CriticalWait => "critical",
        State::LockWait => "lock",
        State::OrderedWait => "ordered",
        State::AtomicWait => "atomic",
        State::TargetWait => "target",
        _ => "code",
    }
}

/// OMPT's `ompt_work_t` in the words of the directive.
fn work_word(kind: u32) -> &'static str {
    match kind {
        1 | 10..=13 => "loop",
        2 => "sections",
        3 | 4 => "single",
        5 => "workshare",
        6 => "distribute",
        7 => "taskloop",
        8 => "scope",
        _ => "worksharing",
    }
}
