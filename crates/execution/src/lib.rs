//! States over time: threads and their sections, tasks, regions, waits, holders of locks, samples.
//!
//! Models push [`Change`]s to an [`Observer`]; [`ExecutionBuilder`] is the observer that keeps the input of
//! analyses, in columns. The caller adds processes and threads first, hands every event's time
//! to [`ExecutionBuilder::event`], lets models push changes, and takes the [`Execution`] at the end.
//!
//! Invariants, whatever the input:
//! - the sections of a thread never overlap, never have negative length, and tile the time from its
//!   first event to its end;
//! - with "not started" and "ended" they tile the time of its process;
//! - edges that clocks put in the wrong order are clamped to zero length and counted.
//!
//! No I/O but through [`ColumnFile`], no names of functions (see `symbol`), no judgement (see `analysis`).
#![forbid(unsafe_code)]

mod activities;
mod builder;
mod catalog;
mod change;
mod column;
mod columns_builder;
mod cpus;
mod cut;
pub mod devices;
mod doubtful_cpus;
mod execution;
pub mod graph;
mod growing;
mod holders;
mod ids;
mod joined;
mod kept_times;
pub mod lod;
mod longest;
pub mod messages;
mod messages_builder;
mod newest;
mod off_cpu;
mod open_thread;
mod runs;
pub mod samples;
mod splice;
mod starts;
mod storing;
mod system_time;
mod tables;
mod task_tables;
mod thread_waits;
mod track;
mod track_builder;
pub mod view;

pub use activities::{Activities, Activity, ActivityTimes, ByActivity, RareRow, RecentNumbers};
pub use builder::ExecutionBuilder;
pub use catalog::{Catalog, Construct, DataName, Gap, Module, Object, Process, Site, Type};
pub use change::{
    Anomaly, Change, Definition, Numbers, Observer, RuntimeRole, Section, ThreadKind, TypeKind,
};
pub use column::{Column, SharedBytes};
pub use cpus::{CpuFacts, CpuGroup, CpuLoad, CpuSet, Quota, Throttled};
pub use execution::{
    Anomalies, CutWait, Doubt, Execution, Loss, PartOf, Tally, TargetWaitPart, Thread, Uncertain,
};
pub use growing::ColumnFile;
pub use holders::Holders;
pub use ids::{
    GapIndex, ObjectIndex, PathIndex, Place, PlaceKind, ProcessIndex, RegionIndex, SiteIndex, TaskIndex,
    ThreadIndex, TypeIndex,
};
pub use joined::Joined;
pub use kept_times::KeptTimes;
pub use longest::{LongestSections, Stretch};
pub use messages_builder::MessageChange;
pub use off_cpu::{CutSpan, CutSpans, OffCpu, OsSource, OsTimes, OsTotals, RunDelay};
pub use open_thread::OpenTrack;
pub use runs::Runs;
pub use starts::{ByRow, RisingStarts, Starts, StartsInOrder, TrackStarts};
pub use system_time::{CpuShortage, SystemCause, SystemTime, join_intervals};
pub use tables::{
    Dependence, Hold, NO_NUMBER, NO_TIME, Queued, Region, TaskStatus, Tasks, TeamLimits, WaitDependence,
    WorkShare,
};
pub use taskscope_cause::{Blamed, Cause, Group, Pattern, State};
pub use thread_waits::{ThreadWait, ThreadWaitChange, ThreadWaits, WaitOutcome, Waker};
pub use track::{Span, Spans, TakesActivities, Track, TrackColumns, TrackSpans, TrackStates};
