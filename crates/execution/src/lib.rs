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
//!
//! **Modules**, each importing only those named before it:
//!
//! | modules | content |
//! | --- | --- |
//! | `ids`, `intervals`, `column`, `runs`, `starts`, `kept_times`, `tables` | numbers of things; columns and tables |
//! | `joined`, `activities`, `longest`, `messages`, `message_change`, `change`, `newest`, `samples` | what is stored, and what changes it |
//! | `track_columns`, `columns_builder`, `track_builder`, `splice`, `track` | the sections of a thread or CPU |
//! | `cpus`, `os_times`, `system_cause`, `anomalies`, `uncertain`, `catalog`, `execution` | an execution |
//! | `growing`, `task_tables`, `storing`, `open_thread`, `observer`, `messages_builder`, `builder` | building one from changes |
//! | `process_names`, `cpu_groups`, `holders`, `accesses`, `off_cpu`, `late_peers`, `system_time`, `join_tables`, `cut` | what follows from one; a part of one |
//! | `lod`, `graph`, `devices`, `view` | modules of their own: levels of detail, task graph, device queues, views of models |
#![forbid(unsafe_code)]

mod accesses;
mod activities;
mod anomalies;
mod builder;
mod catalog;
mod change;
mod column;
mod columns_builder;
mod cpu_groups;
mod cpus;
mod cut;
pub mod devices;
mod doubtful_cpus;
mod execution;
pub mod graph;
mod growing;
mod holders;
mod ids;
mod intervals;
mod join_tables;
mod joined;
mod kept_times;
mod late_peers;
pub mod lod;
mod longest;
mod message_change;
pub mod messages;
mod messages_builder;
mod newest;
mod observer;
mod off_cpu;
mod open_thread;
mod os_times;
mod process_names;
mod runs;
pub mod samples;
mod splice;
mod starts;
mod storing;
mod system_cause;
mod system_time;
mod tables;
mod task_tables;
mod thread_waits;
mod thread_waits_builder;
mod track;
mod track_builder;
mod track_columns;
mod uncertain;
pub mod view;

pub use activities::{Activities, Activity, ActivityTimes, ByActivity, RareRow, RecentNumbers};
pub use anomalies::{Anomalies, Tally};
pub use builder::ExecutionBuilder;
pub use catalog::{Catalog, Construct, DataName, Gap, Module, Object, Process, Site, Type, TypeKind};
pub use change::{Anomaly, Change, Definition, Numbers, RuntimeRole, Section, ThreadKind};
pub use column::{Column, SharedBytes};
pub use cpu_groups::CpuGroup;
pub use cpus::{CpuFacts, CpuLoad, CpuSet, Quota, Throttled, host};
pub use execution::{CutWait, Execution, Loss, PartOf, TargetWaitPart, Thread};
pub use growing::ColumnFile;
pub use holders::Holders;
pub use ids::{
    GapIndex, ObjectIndex, PathIndex, Place, PlaceKind, ProcessIndex, RegionIndex, SiteIndex, TaskIndex,
    ThreadIndex, TypeIndex,
};
pub use intervals::join_intervals;
pub use joined::Joined;
pub use kept_times::KeptTimes;
pub use late_peers::{KeptBy, LatePart, LatePeers};
pub use longest::{LongestSections, Stretch};
pub use message_change::MessageChange;
pub use observer::Observer;
pub use off_cpu::{CutSpan, CutSpans};
pub use open_thread::OpenTrack;
pub use os_times::{OffCpu, OsSource, OsTimes, OsTotals, RunDelay};
pub use process_names::ProcessNames;
pub use runs::Runs;
pub use starts::{ByRow, RisingStarts, Starts, StartsInOrder, TrackStarts};
pub use system_cause::{SystemCause, SystemTime};
pub use system_time::CpuShortage;
pub use tables::{
    Dependence, Hold, NO_NUMBER, NO_TIME, Queued, Region, TaskStatus, Tasks, TeamLimits, WaitDependence,
    WorkShare,
};
pub use taskscope_cause::{Blamed, Cause, Group, Pattern, State};
pub use thread_waits::{KNOWN_OTHER_PROCESS, ThreadWait, ThreadWaitChange, ThreadWaits, WaitOutcome, Waker};
pub use track::{Track, TrackSpans, TrackStates};
pub use track_columns::{Span, Spans, TakesActivities, TrackColumns};
pub use uncertain::{Doubt, Uncertain};
