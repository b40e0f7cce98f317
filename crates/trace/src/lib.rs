//! Trace directories on disk: discover, map, decode, correct clocks, merge, write.
//!
//! **The caller** gives a directory to [`Trace::open`] and walks [`Stream::events`] (one thread) or
//! [`Trace::merge`] (many threads, one total order).
//!
//! **The crate** finds every stream as ovni does (any directory with a `stream.json`, however
//! deep, sub-directories of a trace too), reads metadata version 3 (JSON with comments), maps
//! finished stream files and reads unfinished ones into memory, applies `clock-offsets.txt`, sorts
//! regions that were recorded unsorted, and merges `taskscope.obs` with the `stream.obs` beside it.
//! Decoding copies nothing: an event borrows its payload from the file.
//!
//! **Damage is not an error.** Damage of a stream is a [`Problem`] with stream, byte offset and time; the rest is
//! read. No input makes this crate panic, hang, or use memory beyond a small multiple of the input's size. [`OpenError`] is left for traces with nothing to read.
//!
//! **Not for** the meaning of events: that is in `taskscope-model`.
//!
//! **Modules**, each importing only those named before it:
//!
//! | modules | content |
//! | --- | --- |
//! | `event_head`, `unsorted`, `bytes`, `decode` | from the bytes of a file to events |
//! | `problem`, `finding`, `occurrences`, `falling_clocks`, `turn_clocks`, `survey` | one pass over a file before it is read |
//! | `metadata`, `clock_offsets`, `clock_drift` | files beside the events |
//! | `options`, `stream`, `location`, `discover` | a directory of a thread or another location |
//! | `merge`, `turns` | order among streams |
//! | `trace`, `rewrite`, `slice` | the whole trace; files written anew |
//!
//! A file that shrinks while it is mapped kills the reader with SIGBUS; therefore only streams with
//! `ovni.finished` or `taskscope.closed` in their metadata are mapped.
#![deny(unsafe_code)]

mod bytes;
mod clock_drift;
mod clock_offsets;
mod decode;
mod discover;
mod event_head;
mod falling_clocks;
mod finding;
mod location;
mod merge;
mod metadata;
mod occurrences;
mod options;
mod problem;
mod rewrite;
mod slice;
mod stream;
mod survey;
mod trace;
mod turn_clocks;
mod turns;
mod unsorted;

pub use bytes::UnchangingFile;
pub use clock_drift::{ClockCorrection, ClockDrift, drifts_to_text, load_drifts};
pub use clock_offsets::{ClockOffset, ClockOffsets};
pub use decode::{Decoder, Event};
pub use location::Location;
pub use merge::{Merged, MergedEvent};
pub use options::{ClockSource, OpenOptions, ReadOrder};
pub use problem::{Problem, ProblemKind};
pub use rewrite::replace_file;
pub use slice::{
    KeptOperation, KnownCall, KnownHold, KnownThread, KnownWait, KnownWaits, OffCpuOfRun, OffCpuTimes, Slice,
    Sliced,
};
pub use stream::{FoundEvents, Stream, SurveyedFile, ThreadEvents};
pub use taskscope_metadata::ThreadMetadata;
pub use trace::{OpenError, Trace};
pub use turns::Turns;
