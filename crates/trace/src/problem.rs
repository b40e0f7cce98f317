//! Problems of a trace, as facts with a place: nothing is lost silently.

use std::fmt;
use taskscope_event::StreamFile;

/// The kinds of damage and oddity that reading a trace can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A directory or file could not be read.
    Unreadable,
    /// `stream.json` is invalid JSON, or not an object.
    BadMetadata,
    /// `stream.obs` without `stream.json`: the thread of these events is not known.
    MissingMetadata,
    /// The metadata version is not 3.
    MetadataVersion,
    /// A required attribute is missing or has the wrong type.
    MissingAttribute,
    /// The stream is of a part that is not a thread.
    UnknownPart,
    /// The stream has neither `ovni.finished` nor `taskscope.closed`: the program was killed, became another one (exec), or still runs.
    UnfinishedStream,
    /// `stream.json` without `stream.obs`.
    MissingStream,
    /// The file does not start with the magic of a stream.
    BadMagic,
    /// The stream version is not 1.
    StreamVersion,
    /// The stream has no events.
    EmptyStream,
    /// The file ends within an event.
    TruncatedEvent,
    /// An event was being written when the program stopped: it has no model letter but other bytes.
    TornEvent,
    /// A finished stream ends in zeros.
    ZeroTail,
    /// A clock is lower than the one before it, outside a region of unsorted events.
    ClockGoesBack,
    /// A region of unsorted events was sorted while reading.
    UnsortedRegion,
    /// A clock is beyond 2^63 ns.
    ClockTooLarge,
    /// A region of unsorted events was opened and never closed.
    OpenUnsortedRegion,
    /// The clock offset file is malformed or names unknown hosts.
    ClockOffsets,
    /// The clock offset file is missing, or lacks hosts, although the trace spans several hosts.
    NoClockOffsets,
    /// The first events of streams are more than an hour apart.
    ClockGate,
}

impl ProblemKind {
    /// Whether events are missing. Of clocks that cannot be true the events are there, and the timeline is marked.
    pub fn is_damage(self) -> bool {
        !matches!(
            self,
            ProblemKind::UnfinishedStream
                | ProblemKind::ClockGoesBack
                | ProblemKind::ClockTooLarge
                | ProblemKind::MissingAttribute
                | ProblemKind::MetadataVersion
                | ProblemKind::EmptyStream
                | ProblemKind::UnsortedRegion
                | ProblemKind::OpenUnsortedRegion
                | ProblemKind::ClockOffsets
                | ProblemKind::NoClockOffsets
                | ProblemKind::ClockGate
                | ProblemKind::UnknownPart
        )
    }

    /// Whether a user should know of it. Regions that declare themselves unsorted are the way in which nOS-V records the
    /// kernel's events: they need no more than sorting while reading.
    pub fn is_reported(self) -> bool {
        self != ProblemKind::UnsortedRegion
    }

    /// The stable name of the kind, as in messages, `--json` and `--allow`.
    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::Unreadable => "unreadable",
            ProblemKind::BadMetadata => "bad-metadata",
            ProblemKind::MissingMetadata => "missing-metadata",
            ProblemKind::MetadataVersion => "metadata-version",
            ProblemKind::MissingAttribute => "missing-attribute",
            ProblemKind::UnknownPart => "unknown-part",
            ProblemKind::UnfinishedStream => "unfinished-stream",
            ProblemKind::MissingStream => "missing-stream",
            ProblemKind::BadMagic => "bad-magic",
            ProblemKind::StreamVersion => "stream-version",
            ProblemKind::EmptyStream => "empty-stream",
            ProblemKind::TruncatedEvent => "truncated-event",
            ProblemKind::TornEvent => "torn-event",
            ProblemKind::ZeroTail => "zero-tail",
            ProblemKind::ClockGoesBack => "clock-goes-back",
            ProblemKind::UnsortedRegion => "unsorted-region",
            ProblemKind::ClockTooLarge => "clock-too-large",
            ProblemKind::OpenUnsortedRegion => "open-unsorted-region",
            ProblemKind::ClockOffsets => "clock-offsets",
            ProblemKind::NoClockOffsets => "no-clock-offsets",
            ProblemKind::ClockGate => "clock-gate",
        }
    }
}

/// One fact, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Relative path of the stream's directory; empty for the trace as a whole.
    pub stream: String,
    /// The file of the stream that has the problem, if it is in one.
    pub file: Option<StreamFile>,
    /// Byte offset in that file.
    pub offset: Option<u64>,
    /// Corrected clock, nanoseconds, if known.
    pub clock_ns: Option<i64>,
    /// Number of occurrences; the place is that of the first.
    pub count: u64,
    /// A sentence without a final period: the meaning in this place.
    pub text: String,
}

impl Problem {
    pub(crate) fn in_stream(kind: ProblemKind, stream: &str, text: impl Into<String>) -> Problem {
        Problem {
            kind,
            stream: stream.to_owned(),
            file: None,
            offset: None,
            clock_ns: None,
            count: 1,
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind.name())?;
        if !self.stream.is_empty() {
            write!(f, "{}", self.stream)?;
            if let Some(file) = self.file {
                write!(f, "/{}", file.name())?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.text)?;
        if let Some(offset) = self.offset {
            write!(f, " (byte {offset}")?;
            if let Some(clock) = self.clock_ns {
                write!(f, ", clock {clock} ns")?;
            }
            if self.count > 1 {
                write!(f, ", {} times", self.count)?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}
