//! A part of a trace as a trace of its own: by time, threads and models.
//!
//! The state of each thread at the begin of the range is restored in the nanoseconds before it, two per thread and one
//! more for each further clock at which something was opened. The thread starts on its CPU with the locks that it
//! holds, and open tasks, regions, sections, marks and states are opened again, waits with their objects and places.
//! Members of a team come after its master. Sections open at the end of the range are closed after it, one nanosecond per
//! thread. Task types and the tasks that the range uses are created first, and numbers that later events use get their
//! names, whichever thread named them. If a removed thread moves a kept one to another CPU, the kept one moves itself.
//! Declarations of other streams' metadata (CPUs, marks, ranks) are added.
//!
//! Causes in the range depend on more: holds of locks that ended before it, messages and operations that are on their way, and
//! the operations of devices. They are restored in the same nanoseconds; of device queues the slice has the operations that the
//! range needs. The run file has the range, and readers cut all that is outside of it, so a slice reports no restored time.
//!
//! What depends on the whole run is analysed there, and its results are in the slice in place of events: times off the CPU
//! (`known_times`), and waits of threads for each other (`known_waits`).
//!
//! ```text
//! clock   … begin - 2              begin - 1      │ begin …  end - 1 │ end … end + threads - 1
//! events  each thread's open state, ended regions │ as recorded      │ each thread's ends
//! ```
//!
//! Threads that do not run come first and leave last, so that no CPU ever has two running threads.

mod bytes;
mod capacity;
mod devices;
mod instrument;
mod known_times;
mod known_waits;
mod messages;
mod metadata;
mod os_time;
mod regions;
mod request;
mod run_file;
mod slicer;
mod thread_state;
mod waits;

pub use self::request::{
    KeptOperation, KnownCall, KnownHold, KnownThread, KnownWait, KnownWaits, OffCpuOfRun, OffCpuTimes, Slice,
    Sliced,
};
