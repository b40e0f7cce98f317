//! Data of the viewer's requests, embedded in the HTML page.

use super::counters::{BucketStart, CounterBuckets};
use super::matrix::CommunicationMatrix;
use super::values::ViewRow;
use schemars::JsonSchema;
use serde::Serialize;

/// The data of the viewer's requests, embedded in the HTML page. Times are nanoseconds since the start of the
/// trace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PageData {
    /// Rows of tracks.
    pub rows: PackedRows,
    /// Rows of device queues; null without any. The values of all buckets follow the buckets.
    pub device_rows: Option<PackedRows>,
    /// Rows of nested sections; null if the rows of threads tell as much.
    pub nested: Option<NestedRows>,
    /// Rows of code by samples; null if other facts are known of threads. The values of all buckets follow the buckets.
    pub code_rows: Option<PackedRows>,
    /// Threads in each state.
    pub stack: StackedStates,
    /// Threads that run tasks of each type.
    pub types: StackedTypes,
    /// Counters, 48 at most.
    pub counter_rows: Vec<CounterBuckets>,
    /// The surroundings of the worst instance of each finding.
    pub instance_sections: Vec<InstanceSections>,
    /// Communication between processes over the run; null without any.
    pub matrix: Option<CommunicationMatrix>,
    /// Rows of long tables of the report that were left out.
    pub left_out: usize,
}

/// Rows of packed buckets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PackedRows {
    #[serde(flatten)]
    pub window: BucketStart,
    /// Number of buckets.
    pub buckets: u32,
    /// Numbers of the tracks.
    pub tracks: Vec<u32>,
    /// Tracks that were left out; only of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_tracks: Option<usize>,
    /// The buckets row by row, 32 bits each, byte by byte; deflated, in base 64.
    pub data: String,
}

/// Rows of nested sections.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NestedRows {
    /// The rows in words.
    pub list: Vec<ViewRow>,
    /// Words of values.
    pub values: Vec<(i64, String)>,
    /// The rows; the values of all buckets follow the buckets.
    pub rows: PackedRows,
}

/// Threads in each state over the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StackedStates {
    #[serde(flatten)]
    pub window: BucketStart,
    /// Number of buckets.
    pub buckets: u32,
    /// Number of states.
    pub states: usize,
    /// Number of workers, of which these are.
    pub workers: usize,
    /// Thousandths of a thread: `[bucket][state]`.
    pub data: Vec<u64>,
}

/// Threads that run tasks of each type over the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StackedTypes {
    #[serde(flatten)]
    pub window: BucketStart,
    /// Number of buckets.
    pub buckets: u32,
    /// Names of the types.
    pub labels: Vec<String>,
    /// Thousandths of a thread: `[bucket][type]`.
    pub data: Vec<u64>,
}

/// The surroundings of the worst instance of a finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InstanceSections {
    /// The finding: `F1`, …
    pub finding: String,
    /// Begin of the surroundings.
    pub from: u64,
    /// End of the surroundings.
    pub to: u64,
    /// Begin of the instance.
    pub start: u64,
    /// End of the instance.
    pub end: u64,
    /// Whether all sections are listed; else stretches by the state with most time.
    pub whole: bool,
    /// The instance's track, then others.
    pub tracks: Vec<InstanceTrack>,
}

/// A track in the surroundings of an instance, with its name: the list of tracks may lack it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InstanceTrack {
    /// Its number.
    pub track: u32,
    /// Thread id; of a CPU its physical id.
    pub tid: i64,
    /// The thread's name; empty for none.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// Whether it is a worker.
    pub worker: bool,
    /// Begin, end, number of the state.
    pub sections: Vec<Stretch>,
    /// Begin and end of the uncertain intervals.
    pub uncertain: Vec<(u64, u64)>,
}

/// Begin, end, state.
pub type Stretch = (u64, u64, u8);
