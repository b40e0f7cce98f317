//! The events selected by `--where` and `--range`, with the same meaning in every subcommand.
//!
//! Lists and counts use the events that *pass*. States (views, reports, slices) are replayed from those that pass, and
//! from facts of the whole trace: lives and CPUs of threads, and types, tasks, regions and names. So the shown states
//! are true, and unselected ones are missing.
//!
//! Reports also replay complete streams without a passing event, since their threads may be the culprits of waits.

mod event_record;

pub use event_record::{EVENT_FIELDS, EventRecord, FIELDS_OF_EVENTS, field_of_stream, model_name};

use crate::devices::read_devices;
use event_record::{STREAM_FIELDS, StreamRecord};
use taskscope_event::Code;
use taskscope_event::models::{dictionary, instrument, nanos6, nosv, omp, openmp, ovni, recorder};
use taskscope_filter::{Filter, TimeRange};
use taskscope_trace::{MergedEvent, Trace};

/// A filter and a range, as a user gave them.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Events must pass it.
    pub filter: Option<Filter>,
    /// The time range of selected events.
    pub range: TimeRange,
    /// Whether everything is opened in spite of a range, which is resolved all the same:
    /// [`Session::range`](crate::Session::range).
    pub whole: bool,
    /// Words for both, for headers; `None` if everything is selected.
    pub words: Option<String>,
}

impl Selection {
    /// The selection in a trace; shares refer to the trace's length.
    pub fn of<'a>(&'a self, trace: &'a Trace) -> Selected<'a> {
        let range = if self.whole { TimeRange::default() } else { self.range };
        let Extent { origin_ns, length_ns } = Extent::of(trace);
        let (begin_ns, end_ns) = range.resolve(length_ns);
        Selected { trace, filter: self.filter.as_ref(), begin_ns, end_ns, origin_ns }
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.filter.is_none() && (self.whole || self.range == TimeRange::default())
    }
}

/// The time that ranges refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Corrected clock of the trace's first event, which is time 0 of ranges.
    pub origin_ns: i64,
    /// Nanoseconds from it to the last event or sign of life.
    pub length_ns: i64,
}

impl Extent {
    /// The time of a trace: of its threads, or of the operations of its device queues if these are all that it has.
    pub fn of(trace: &Trace) -> Extent {
        if let Some(origin_ns) = trace.first_clock_ns() {
            return Extent { origin_ns, length_ns: trace.length_ns() };
        }
        let devices = read_devices(trace);
        let operations = || devices.queues.iter().flat_map(|queue| &queue.operations);
        let first = operations().map(|operation| operation.start).filter(|start| *start > 0).min();
        let last = operations().map(|operation| operation.end).max();
        let [first, last] = [first, last].map(|at| at.and_then(|at| i64::try_from(at).ok()).unwrap_or(0));
        Extent { origin_ns: first, length_ns: last.saturating_sub(first).max(0) }
    }
}

/// A selection in a trace.
#[derive(Clone, Copy)]
pub struct Selected<'a> {
    trace: &'a Trace,
    filter: Option<&'a Filter>,
    /// Begin (included), nanoseconds since the trace's first event.
    pub begin_ns: i64,
    /// End (not included), nanoseconds since the trace's first event.
    pub end_ns: i64,
    /// Corrected clock of the trace's first event.
    pub origin_ns: i64,
}

impl<'a> Selected<'a> {
    /// Time of an event since the trace's first one.
    #[inline]
    pub fn time_ns(&self, merged: &MergedEvent<'_>) -> i64 {
        merged.event.clock_ns.saturating_sub(self.origin_ns)
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.filter.is_none() && self.begin_ns == i64::MIN && self.end_ns == i64::MAX
    }

    /// The event as filters see it.
    pub fn record(&self, merged: MergedEvent<'a>) -> EventRecord<'a> {
        EventRecord { trace: self.trace, merged, time_ns: self.time_ns(&merged) }
    }

    /// Whether the event is selected.
    #[inline]
    pub fn passes(&self, merged: &MergedEvent<'a>) -> bool {
        let time_ns = self.time_ns(merged);
        self.begin_ns <= time_ns && time_ns < self.end_ns && self.passes_filter(merged)
    }

    /// Whether it passes the filter, at any time.
    #[inline]
    pub fn passes_filter(&self, merged: &MergedEvent<'a>) -> bool {
        self.filter.is_none_or(|filter| filter.matches(&self.record(*merged)))
    }

    /// Whether the event must be played for states to be true; events before the range must be played too.
    #[inline]
    pub fn plays(&self, merged: &MergedEvent<'a>) -> bool {
        self.filter.is_none() || is_fact(merged.event.code) || self.passes_filter(merged)
    }

    /// The selected part of a stream, as far as the stream alone decides.
    pub fn part_of(&self, stream: usize) -> Part {
        let record = StreamRecord { trace: self.trace, stream };
        let decided =
            self.filter.map(|filter| filter.decided_by(&record, &|name| STREAM_FIELDS.contains(&name)));
        match decided {
            None | Some(Some(true)) => Part::Whole,
            Some(Some(false)) => Part::Others,
            Some(None) => Part::Passing,
        }
    }
}

/// The replayed part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it is selected.
    Whole,
    /// The events that pass the filter.
    Passing,
    /// All of it, although unselected: its thread may have made others wait.
    Others,
}

/// Whether an event is a fact that all states depend on.
fn is_fact(code: Code) -> bool {
    matches!(
        code,
        ovni::THREAD_CREATES
            | ovni::THREAD_EXECUTES
            | ovni::THREAD_ENDS
            | ovni::THREAD_PAUSES
            | ovni::THREAD_RESUMES
            | ovni::THREAD_COOLS
            | ovni::THREAD_WARMS
            | ovni::SET_AFFINITY
            | ovni::REMOTE_AFFINITY
            | nanos6::TYPE_CREATE
            | nanos6::TASK_CREATE
            | nosv::TYPE_CREATE
            | nosv::TASK_CREATE
            | nosv::PARALLEL_TASK_CREATE
            | openmp::TYPE_CREATE
            | openmp::TASK_CREATE
            | omp::THREAD_TYPE
            | omp::REGION_BEGIN
            | omp::REGION_END
            | omp::TASK_DEPENDENCES
            | omp::TASK_DETACHED
    ) || matches!(code.model(), dictionary::LETTER | recorder::LETTER)
        || code == instrument::TASK_CREATE
        || instrument::NAMES.contains(&code)
}
