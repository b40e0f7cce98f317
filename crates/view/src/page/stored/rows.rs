//! Rows of the header of a page's file: processes, CPUs, threads, modules, types.

use crate::documents::Named;
use serde::{Deserialize, Serialize};
use taskscope_execution::{
    CpuFacts, CpuLoad, CpuSet, Module, OsSource, OsTotals, Process, ProcessIndex, Quota, RuntimeRole,
    SiteIndex, Thread, ThreadKind, Throttled, Track, Type, TypeKind,
};

const KINDS: [ThreadKind; 5] =
    [ThreadKind::Initial, ThreadKind::Worker, ThreadKind::Helper, ThreadKind::Cpu, ThreadKind::Unknown];
const OS_SOURCES: [OsSource; 3] = [OsSource::Unknown, OsSource::Switches, OsSource::Estimated];

#[derive(Serialize, Deserialize)]
pub(super) struct InstanceRow {
    pub(super) finding: String,
    pub(super) thread: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The rules of the pyramids' flags, by class.
#[derive(Serialize, Deserialize)]
pub(super) struct RuleRow {
    pub(super) long_ns: Vec<u64>,
    pub(super) always: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ProcessRow {
    pub(super) loom: String,
    pub(super) pid: i64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) has_cpus: bool,
    pub(super) cpus: Option<CpuRow>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CpuRow {
    pub(super) allowed: String,
    pub(super) online: Option<u32>,
    /// Thousandths of a CPU, and the control group.
    pub(super) quota: Option<(u64, String)>,
    /// Begin, end, periods, nanoseconds.
    pub(super) throttled: Vec<(u64, u64, u64, u64)>,
    /// Begin, end; nanoseconds busy, stolen, own.
    pub(super) loads: Vec<(u64, u64, u64, u64, u64)>,
    pub(super) stopped: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ThreadRow {
    pub(super) process: u32,
    pub(super) tid: i64,
    pub(super) name: String,
    pub(super) kind: usize,
    pub(super) role: Option<Named<RuntimeRole>>,
    pub(super) worker: bool,
    pub(super) ended: bool,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) track_end: u64,
    pub(super) events: u64,
    pub(super) lost_events: u64,
    pub(super) os_source: usize,
    pub(super) on_cpu_ns: Option<u64>,
    pub(super) run_delay_ns: Option<u64>,
    pub(super) cpus: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct QueueRow {
    pub(super) name: String,
    pub(super) device: String,
    pub(super) pid: Option<i64>,
    pub(super) names: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RankRow {
    pub(super) process: u32,
    pub(super) job: u64,
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ModuleRow {
    pub(super) process: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) bias: u64,
    pub(super) build_id: String,
    pub(super) path: String,
    pub(super) at: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ConstructRow {
    pub(super) site: u32,
    pub(super) body: u64,
    pub(super) location: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TypeRow {
    pub(super) process: u32,
    pub(super) label: String,
    pub(super) site: u32,
    pub(super) kind: Option<KindRow>,
}

#[derive(Serialize, Deserialize)]
pub(super) enum KindRow {
    Task(u32),
    Work(u32),
}

impl ProcessRow {
    pub(super) fn of(process: &Process) -> ProcessRow {
        ProcessRow {
            loom: process.loom.clone(),
            pid: process.pid,
            first: process.first,
            last: process.last,
            has_cpus: process.has_cpus,
            cpus: process.cpus.as_ref().map(CpuRow::of),
        }
    }

    pub(super) fn process(&self) -> Option<Process> {
        let cpus = match &self.cpus {
            Some(row) => Some(row.facts()?),
            None => None,
        };
        let (loom, pid, has_cpus) = (self.loom.clone(), self.pid, self.has_cpus);
        Some(Process { loom, pid, has_cpus, first: self.first, last: self.last, cpus })
    }
}

impl CpuRow {
    pub(super) fn of(cpus: &CpuFacts) -> CpuRow {
        CpuRow {
            allowed: cpus.allowed.to_string(),
            online: cpus.online,
            quota: cpus.quota.as_ref().map(|quota| (quota.millicpus, quota.cgroup.clone())),
            throttled: cpus
                .throttled
                .iter()
                .map(|part| (part.start, part.end, part.periods, part.ns))
                .collect(),
            loads: (cpus.loads.iter())
                .map(|load| (load.start, load.end, load.busy_ns, load.stolen_ns, load.own_ns))
                .collect(),
            stopped: cpus.stopped.clone(),
        }
    }

    pub(super) fn facts(&self) -> Option<CpuFacts> {
        Some(CpuFacts {
            allowed: CpuSet::parse(&self.allowed)?,
            online: self.online,
            quota: (self.quota.as_ref())
                .map(|(millicpus, cgroup)| Quota { millicpus: *millicpus, cgroup: cgroup.clone() }),
            throttled: (self.throttled.iter())
                .map(|&(start, end, periods, ns)| Throttled { start, end, periods, ns })
                .collect(),
            loads: (self.loads.iter())
                .map(|&(start, end, busy_ns, stolen_ns, own_ns)| CpuLoad {
                    start,
                    end,
                    busy_ns,
                    stolen_ns,
                    own_ns,
                })
                .collect(),
            stopped: self.stopped.clone(),
        })
    }
}

impl ThreadRow {
    pub(super) fn of(thread: &Thread) -> ThreadRow {
        ThreadRow {
            process: thread.process.0,
            tid: thread.tid,
            name: thread.name.to_string(),
            kind: KINDS.iter().position(|kind| *kind == thread.kind).unwrap_or(KINDS.len()),
            role: thread.role.map(Named),
            worker: thread.worker,
            ended: thread.ended,
            first: thread.first,
            last: thread.last,
            track_end: thread.track.end(),
            events: thread.events,
            lost_events: thread.lost_events,
            os_source: OS_SOURCES.iter().position(|source| *source == thread.os_source).unwrap_or(0),
            on_cpu_ns: thread.os_totals.on_cpu_ns,
            run_delay_ns: thread.os_totals.run_delay_ns,
            cpus: thread.cpus.as_ref().map(CpuSet::to_string),
        }
    }

    pub(super) fn thread(&self, track: Track) -> Option<Thread> {
        Some(Thread {
            process: ProcessIndex(self.process),
            tid: self.tid,
            kind: *KINDS.get(self.kind)?,
            role: self.role.map(|role| role.0),
            worker: self.worker,
            // Pages are of whole traces.
            selected: true,
            ended: self.ended,
            first: self.first,
            name: self.name.clone(),
            last: self.last,
            // Only the analysis needs it, which was done before.
            last_event: self.last,
            asleep_since: None,
            events: self.events,
            lost_events: self.lost_events,
            os_source: *OS_SOURCES.get(self.os_source)?,
            os_totals: OsTotals { on_cpu_ns: self.on_cpu_ns, run_delay_ns: self.run_delay_ns },
            cpus: self.cpus.as_deref().and_then(CpuSet::parse),
            track,
        })
    }
}

impl ModuleRow {
    pub(super) fn of(module: &Module) -> ModuleRow {
        ModuleRow {
            process: module.process.0,
            start: module.start,
            end: module.end,
            bias: module.bias,
            build_id: module.build_id.clone(),
            path: module.path.clone(),
            at: module.at,
        }
    }

    pub(super) fn module(&self) -> Module {
        Module {
            process: ProcessIndex(self.process),
            start: self.start,
            end: self.end,
            bias: self.bias,
            build_id: self.build_id.clone(),
            path: self.path.clone(),
            at: self.at,
        }
    }
}

impl TypeRow {
    pub(super) fn of(ty: &Type) -> TypeRow {
        let kind = ty.kind.map(|kind| match kind {
            TypeKind::Task { flags } => KindRow::Task(flags),
            TypeKind::Work { kind } => KindRow::Work(kind),
        });
        TypeRow { process: ty.process.0, label: ty.label.clone(), site: ty.site.0, kind }
    }

    pub(super) fn ty(&self) -> Type {
        let kind = self.kind.as_ref().map(|kind| match *kind {
            KindRow::Task(flags) => TypeKind::Task { flags },
            KindRow::Work(kind) => TypeKind::Work { kind },
        });
        Type {
            process: ProcessIndex(self.process),
            label: self.label.clone(),
            site: SiteIndex(self.site),
            kind,
        }
    }
}
