//! Names and origins: processes, modules, code sites, types, objects.

use std::collections::BTreeMap;

use crate::{CpuFacts, ProcessIndex, SiteIndex, TypeIndex};

/// A process of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The loom (node and CPU set) that it ran in; empty if not known.
    pub loom: String,
    /// Process id; 0 for the holder of a loom's CPUs.
    pub pid: i64,
    /// Whether it holds the CPUs of its loom, which are the workers of all processes there.
    pub has_cpus: bool,
    /// Time of its first event, nanoseconds of the trace's clock.
    pub first: u64,
    /// Time of its last event.
    pub last: u64,
    /// The CPUs that it has; `None` if not known.
    pub cpus: Option<CpuFacts>,
}

/// A file that was loaded into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The process.
    pub process: ProcessIndex,
    /// Since when it is known to be loaded, nanoseconds of the trace's clock.
    pub at: u64,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Address minus bias is an address of the file.
    pub bias: u64,
    /// Build id in hexadecimal; may be empty.
    pub build_id: String,
    /// Path at run time.
    pub path: String,
}

/// A name that the program gave to a part of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataName {
    /// The process.
    pub process: ProcessIndex,
    /// Since when, nanoseconds of the trace's clock.
    pub at: u64,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// The name; empty if names in the range are removed.
    pub name: String,
}

/// A place in the code of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The process.
    pub process: ProcessIndex,
    /// Its number in the events of the process; 0 if never defined.
    pub number: u32,
    /// Return address of the call into the runtime. If other constructs have the same one, the address after the first
    /// byte of the construct's [body](Construct::body). 0 if never defined.
    pub address: u64,
    /// First occurrence, nanoseconds of the trace's clock.
    pub at: u64,
}

/// A construct, by properties that do not depend on its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Construct {
    /// Address of its outlined body; 0 if not known: then its call is the last one of the body that holds the site's
    /// address.
    pub body: u64,
    /// Its location as its compiler wrote it (`;file;function;line;column;;`); may be empty.
    pub location: String,
}

/// Kinds of types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// Explicit tasks; OMPT task flags if known.
    Task {
        /// OMPT's `ompt_task_flag_t`.
        flags: u32,
    },
    /// A worksharing construct; OMPT work kind if known.
    Work {
        /// OMPT's `ompt_work_t`; 0 if not known.
        kind: u32,
    },
}

/// A task type or worksharing construct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The process.
    pub process: ProcessIndex,
    /// Label that the runtime or recorder gave; may be empty.
    pub label: String,
    /// Place of the construct, if known.
    pub site: SiteIndex,
    /// Kind of the type, if known.
    pub kind: Option<TypeKind>,
}

/// Something that threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The process.
    pub process: ProcessIndex,
    /// Address or other id in the process.
    pub id: u64,
    /// `taskscope_event::models::wait::kind`.
    pub kind: u32,
}

/// Serial code of a thread between two parallel regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gap {
    /// The process.
    pub process: ProcessIndex,
    /// Construct of the region before it; none at the start of the program.
    pub after: SiteIndex,
    /// Construct of the region after it; none at the end of the program.
    pub before: SiteIndex,
}

/// All names.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Loaded files.
    pub modules: Vec<Module>,
    /// Names of data, in no order.
    pub data: Vec<DataName>,
    /// Code sites, by [`SiteIndex`].
    pub sites: Vec<Site>,
    /// Constructs of sites, if known.
    pub constructs: BTreeMap<SiteIndex, Construct>,
    /// Types, by [`TypeIndex`].
    pub types: Vec<Type>,
    /// Objects, by [`ObjectIndex`](crate::ObjectIndex).
    pub objects: Vec<Object>,
    /// Serial code, by [`GapIndex`](crate::GapIndex).
    pub gaps: Vec<Gap>,
    /// Operations of devices that threads waited for in device constructs: name and queue.
    pub operations: Vec<String>,
}

impl Catalog {
    /// The code site of a type, if known.
    pub fn type_site(&self, ty: TypeIndex) -> SiteIndex {
        self.types.get(ty.index()).map_or(SiteIndex::NONE, |t| t.site)
    }

    /// The row of `site`, made if it is new.
    pub(crate) fn site_mut(&mut self, site: SiteIndex) -> &mut Site {
        let blank = Site { process: ProcessIndex::NONE, number: 0, address: 0, at: 0 };
        grown(&mut self.sites, site.index(), &blank)
    }

    /// The row of `ty`, made if it is new.
    pub(crate) fn type_mut(&mut self, ty: TypeIndex) -> &mut Type {
        let blank =
            Type { process: ProcessIndex::NONE, label: String::new(), site: SiteIndex::NONE, kind: None };
        grown(&mut self.types, ty.index(), &blank)
    }
}

/// `table[index]`, after filling it up with `blank`. Models number densely, so this grows by little.
pub(crate) fn grown<'a, T: Clone>(table: &'a mut Vec<T>, index: usize, blank: &T) -> &'a mut T {
    if index >= table.len() {
        table.resize(index + 1, blank.clone());
    }
    &mut table[index]
}
