//! Several recorders in one process: their streams become one process, with one thread per thread of the system.
//!
//! A program may use MPI (`libtaskscope_mpi.so`) and record through libovni or libtaskscope at once. Each recorder has
//! streams, a process directory and numbers of its own. Metadata has the process image
//! (`process_image` of `stream.json`) and the thread of the system (`os_tid`): streams of one thread that
//! overlap in time are one thread here. Numbers stay those of a recorder: it is a process to the interpreter.

use rustc_hash::FxHashMap;
use taskscope_execution::samples::NewSample;
use taskscope_execution::{
    Change, Definition, ExecutionBuilder, Numbers, Observer, OpenTrack, ProcessIndex, ThreadIndex,
};
use taskscope_trace::{Stream, Trace};

/// Loom and process id, which identify a recorder in a trace.
pub(crate) type RecorderName = (String, i64);

/// Which streams are one thread, and which recorders one process.
pub(crate) struct JoinedRecorders {
    /// First stream of each stream's thread.
    pub first_stream: Vec<usize>,
    /// The process that replaces a recorder's, if different.
    stands_for: FxHashMap<RecorderName, RecorderName>,
}

pub(crate) fn recorder_name(stream: &Stream) -> RecorderName {
    (stream.loom().unwrap_or_default().to_owned(), stream.pid().unwrap_or(0))
}

impl JoinedRecorders {
    pub fn of(trace: &Trace) -> JoinedRecorders {
        let mut joined = JoinedRecorders {
            first_stream: (0..trace.streams().len()).collect(),
            stands_for: FxHashMap::default(),
        };
        let mut lives: FxHashMap<(&str, u64), Vec<usize>> = FxHashMap::default();
        for (number, stream) in trace.streams().iter().enumerate() {
            let recorder = &stream.metadata.recorder;
            let (Some(image), Some(os_tid)) = (recorder.process_image.as_deref(), recorder.os_tid) else {
                continue;
            };
            let others = lives.entry((image, os_tid)).or_default();
            let same = |other: &&usize| {
                let other = &trace.streams()[**other];
                overlap(stream, other) && recorder_name(stream) != recorder_name(other)
            };
            match others.iter().find(same) {
                Some(other) => {
                    joined.first_stream[number] = *other;
                    joined.same_process(recorder_name(stream), recorder_name(&trace.streams()[*other]));
                }
                None => others.push(number),
            }
        }
        joined
    }

    /// Ids that are not the system's own are above it: the smaller one is shown.
    fn same_process(&mut self, a: RecorderName, b: RecorderName) {
        let (a, b) = (self.process_of(a), self.process_of(b));
        if a != b {
            let (shown, other) = if (a.1, &a.0) < (b.1, &b.0) { (a, b) } else { (b, a) };
            for name in self.stands_for.values_mut().filter(|name| **name == other) {
                *name = shown.clone();
            }
            self.stands_for.insert(other, shown);
        }
    }

    /// The process that a recorder's is shown as.
    pub fn process_of(&self, name: RecorderName) -> RecorderName {
        self.stands_for.get(&name).cloned().unwrap_or(name)
    }
}

fn overlap(a: &Stream, b: &Stream) -> bool {
    let life = |stream: &Stream| stream.first_clock_ns().zip(stream.last_clock_ns());
    life(a).zip(life(b)).is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
}

/// Passes changes on to a builder, with processes in the place of recorders.
pub(crate) struct ProcessObserver<'a> {
    pub builder: &'a mut ExecutionBuilder,
    /// The process of each recorder.
    pub processes: &'a [ProcessIndex],
}

impl ProcessObserver<'_> {
    fn process(&self, recorder: ProcessIndex) -> ProcessIndex {
        self.processes.get(recorder.index()).copied().unwrap_or(recorder)
    }
}

impl Observer for ProcessObserver<'_> {
    fn define(&mut self, mut definition: Definition<'_>) {
        match &mut definition {
            Definition::Module { process, .. }
            | Definition::Data { process, .. }
            | Definition::Site { process, .. }
            | Definition::Type { process, .. }
            | Definition::Path { process, .. }
            | Definition::Object { process, .. } => *process = self.process(*process),
            Definition::SiteBody { .. } | Definition::TypeSite { .. } => {}
        }
        self.builder.define(definition);
    }

    #[inline(always)]
    fn change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        self.builder.change(thread, at, change);
    }

    #[inline(always)]
    fn open_track(&mut self, thread: ThreadIndex) -> OpenTrack<'_> {
        self.builder.open_track(thread)
    }

    fn sample(&mut self, sample: &NewSample<'_>) {
        self.builder.sample(sample);
    }

    fn numbers(&mut self, numbers: Numbers) {
        self.builder.numbers(numbers);
    }

    fn complete_until(&mut self, at: u64) {
        self.builder.complete_until(at);
    }
}
