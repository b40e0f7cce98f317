//! The parts of the system that a trace is about: looms, processes, threads, CPUs.
//!
//! A loom is a set of CPUs of one node with the processes that run on them, and one *virtual CPU* that
//! collects threads without a CPU of their own. The declarations of the streams are
//! merged by [`system_builder`](crate::system_builder).

use rustc_hash::FxHashMap;

/// A loom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loom {
    /// Name.
    pub name: String,
    /// Its physical CPUs in [`System::cpus`], followed by its virtual one.
    pub cpus: std::ops::Range<u32>,
    /// The CPU with each logical index.
    pub cpu_of_index: FxHashMap<i64, u32>,
}

impl Loom {
    /// The virtual CPU.
    pub fn virtual_cpu(&self) -> u32 {
        self.cpus.end - 1
    }
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Index of its loom.
    pub loom: u32,
    /// Process id.
    pub pid: i64,
    /// Application id; 0 if no thread declares it.
    pub app_id: i64,
    /// MPI rank.
    pub rank: Option<i64>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Index of its stream.
    pub stream: usize,
    /// Index of its process.
    pub process: u32,
    /// Index of its loom.
    pub loom: u32,
    /// Thread id.
    pub tid: i64,
    /// Whether the recording of its process ended before it.
    pub ends_with_process: bool,
}

/// A CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Index of its loom.
    pub loom: u32,
    /// Shown number; `None` for the virtual CPU.
    pub phyid: Option<i64>,
}

/// A user mark, merged over all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// 0 to 99.
    pub number: u32,
    /// Title of its view.
    pub title: String,
    /// Whether values are pushed and popped, or set.
    pub is_stack: bool,
    /// Values and labels.
    pub labels: Vec<(i64, String)>,
}

/// All parts, in the order of the rows of views.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// By lowest rank if all have ranks, else by name.
    pub looms: Vec<Loom>,
    /// By loom, then rank or process id.
    pub processes: Vec<Process>,
    /// By process, then thread id.
    pub threads: Vec<Thread>,
    /// By loom, then shown number; the virtual one last.
    pub cpus: Vec<Cpu>,
    /// The thread of each stream; `None` for streams that are not threads.
    pub thread_of_stream: Vec<Option<u32>>,
    /// Relative path of each stream.
    pub paths: Vec<String>,
    /// Letters of the models that some thread requires.
    pub models: Vec<u8>,
    /// User marks by number.
    pub marks: Vec<Mark>,
    /// Names of nOS-V's hardware counters.
    pub hardware_counters: Vec<String>,
    /// Number of threads that recorded enough for nOS-V's breakdown, and of those that use nOS-V.
    pub nosv_breakdown: (usize, usize),
    /// Index of a stream that uses nOS-V and does not state whether it recorded enough.
    pub nosv_breakdown_unknown: Option<usize>,
}

impl System {
    /// The label of a thread's row.
    pub fn thread_label(&self, thread: u32) -> String {
        let thread = &self.threads[thread as usize];
        format!("TH {}.{}", self.processes[thread.process as usize].app_id, thread.tid)
    }

    /// The label of a CPU's row.
    pub fn cpu_label(&self, cpu: u32) -> String {
        let cpu = &self.cpus[cpu as usize];
        match cpu.phyid {
            Some(phyid) => format!(" CPU {}.{}", cpu.loom, phyid),
            None => format!("vCPU {}.*", cpu.loom),
        }
    }

    /// Physical CPUs of all looms.
    pub fn physical_cpus(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.cpus.len() as u32).filter(|cpu| self.cpus[*cpu as usize].phyid.is_some())
    }
}
