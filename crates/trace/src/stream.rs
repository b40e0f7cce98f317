//! A thread's stream: its metadata, its files, its events.

use crate::bytes::{FileBytes, Unfinished, load_unfinished};
use crate::clock_drift::ClockCorrection;
use crate::decode::{Decoder, Event, PlainEvents};
use crate::event_head::EventHead;
use crate::falling_clocks::Falls;
use crate::finding::Finding;
use crate::metadata::MAX_METADATA_BYTES;
use crate::options::{OpenOptions, ReadOrder};
use crate::problem::{Problem, ProblemKind};
use crate::survey::{Survey, survey};
use crate::turn_clocks::TurnClocks;
use std::ops::Range;
use std::path::{Path, PathBuf};
use taskscope_event::framing::{EVENT_HEADER_BYTES, FILE_HEADER_BYTES};
use taskscope_event::{Code, StreamFile, alive, layout};
use taskscope_files::read_regular;
use taskscope_metadata::{Defect, SharedLabels, ThreadMetadata};

/// One file of a stream, with the survey's result.
pub struct SurveyedFile {
    bytes: FileBytes,
    survey: Survey,
}

impl SurveyedFile {
    pub(crate) fn load(path: &Path, unfinished: bool, turns: bool) -> std::io::Result<SurveyedFile> {
        let loaded = match unfinished {
            true => load_unfinished(path)?,
            false => Unfinished { bytes: FileBytes::load(path)?, missing: 0, unusable_tail: None },
        };
        let Unfinished { bytes, missing, unusable_tail } = loaded;
        let mut survey = survey(&bytes, unfinished, turns);
        if let Some(why) = unusable_tail {
            survey.findings.push(Finding {
                kind: ProblemKind::Unreadable,
                offset: bytes.len(),
                clock: None,
                count: 1,
                text: format!("the file's tail, with its newest events, cannot be read: {why}"),
            });
        }
        if missing > 0 {
            survey.findings.push(Finding {
                kind: ProblemKind::TruncatedEvent,
                offset: bytes.len(),
                clock: None,
                count: 1,
                text: format!(
                    "{missing} bytes are missing between the file's end and its tail, and with them the tail"
                ),
            });
        }
        Ok(SurveyedFile { bytes, survey })
    }

    /// The clocks of its turns, if they were asked for, and no clock falls.
    fn turns(&self) -> Option<&TurnClocks> {
        self.survey.turns.as_ref()
    }

    /// Number of whole events.
    pub fn event_count(&self) -> u64 {
        self.survey.events
    }

    /// Bytes of header and whole events.
    pub fn used_bytes(&self) -> u64 {
        self.survey.end as u64
    }

    /// Whether the event that it stores last has this code, and no payload.
    pub fn ends_with(&self, code: Code) -> bool {
        let last = self.survey.end.checked_sub(EVENT_HEADER_BYTES);
        last.and_then(|last| EventHead::read(&self.bytes, last))
            .is_some_and(|head| head.code == code && head.end == self.survey.end)
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it has regions that must be sorted.
    pub fn needs_sorting(&self) -> bool {
        !self.survey.windows.is_empty()
    }

    /// Whether damage ends it before its last event.
    fn is_cut(&self) -> bool {
        let cuts = [
            ProblemKind::TruncatedEvent,
            ProblemKind::ZeroTail,
            ProblemKind::BadMagic,
            ProblemKind::StreamVersion,
        ];
        self.survey.findings.iter().any(|finding| cuts.contains(&finding.kind))
    }

    /// Problems of the file.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.survey.findings.iter()
    }

    /// Parts with events that are read in another order than stored: begin, end, and the byte ranges of the events in
    /// reading order.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (usize, usize, Vec<Range<usize>>)> + '_ {
        self.survey.windows.iter().map(|window| {
            let range =
                |begin: &usize| *begin..EventHead::read(&self.bytes, *begin).map_or(*begin, |head| head.end);
            (window.begin, window.end, window.order.iter().map(range).collect())
        })
    }

    pub(crate) fn decoder(&self, clock: ClockCorrection, order: ReadOrder) -> Decoder<'_> {
        let repaired = order == ReadOrder::Repaired;
        let windows: &[_] = if repaired { &self.survey.windows } else { &[] };
        // A correction keeps the order of clocks.
        let raise_clocks = repaired && self.survey.clocks_fall;
        Decoder::new(&self.bytes, FILE_HEADER_BYTES, self.survey.end, clock, windows, raise_clocks)
    }
}

/// A thread's stream.
pub struct Stream {
    /// Path of its directory below the trace's root, `/` between parts; the name of the root for that itself.
    pub relative_path: String,
    /// Path of its directory.
    pub directory: PathBuf,
    /// Content of `stream.json`.
    pub metadata: ThreadMetadata,
    /// Correction of its clocks.
    pub clock: ClockCorrection,
    pub(crate) standard: Option<SurveyedFile>,
    pub(crate) own: Option<SurveyedFile>,
    pub(crate) samples: Option<SurveyedFile>,
    pub(crate) order: ReadOrder,
    alive: Option<Alive>,
}

/// Data about a thread with an unfinished stream from its process's sign of life; uncorrected clocks, nanoseconds.
#[derive(Clone, Copy)]
struct Alive {
    until: i64,
    asleep_since: Option<i64>,
    /// The call that it is in since then: kind of wait, and object.
    asleep_in: Option<(u32, u64)>,
}

/// A sign of life that is later than the last event by more than this is damaged: 26 days.
const MAX_SILENCE_NS: i64 = 1 << 51;

impl Stream {
    /// Loads the stream in `directory`.
    pub(crate) fn load(
        directory: PathBuf,
        relative_path: String,
        options: &OpenOptions,
        labels: &SharedLabels,
    ) -> (Stream, Vec<Problem>) {
        let mut problems = Vec::new();
        let metadata = match read_regular(&directory.join(layout::STREAM_METADATA), MAX_METADATA_BYTES) {
            Ok(bytes) => ThreadMetadata::parse(&bytes, labels, |defect, text| {
                let kind = match defect {
                    Defect::Malformed => ProblemKind::BadMetadata,
                    Defect::Version => ProblemKind::MetadataVersion,
                };
                problems.push(Problem::in_stream(kind, &relative_path, text));
            }),
            Err(error) => {
                let text = format!("cannot read stream.json: {error}");
                problems.push(Problem::in_stream(ProblemKind::Unreadable, &relative_path, text));
                ThreadMetadata::default()
            }
        };
        let mut stream = Stream {
            relative_path,
            directory,
            metadata,
            clock: ClockCorrection::default(),
            standard: None,
            own: None,
            samples: None,
            order: options.order,
            alive: None,
        };
        if !stream.is_finished() {
            let text = format!(
                "missing ovni.finished: {}: the thread has not ended its stream (was the program killed?)",
                stream.relative_path
            );
            problems.push(Problem::in_stream(ProblemKind::UnfinishedStream, &stream.relative_path, text));
        }
        stream.standard = stream.load_file(StreamFile::Standard, options.turns, &mut problems);
        if options.own_events {
            stream.own = stream.load_file(StreamFile::Own, options.turns, &mut problems);
            stream.samples = stream.load_file(StreamFile::Samples, false, &mut problems);
            stream.alive = stream.load_alive();
        }
        (stream, problems)
    }

    /// Reads the sign of life beside the streams of its process, unless the process ended properly.
    fn load_alive(&self) -> Option<Alive> {
        let path = self.directory.parent().filter(|_| !self.is_finished())?.join(alive::FILE);
        let page = read_regular(&path, alive::BYTES as u64).ok()?;
        let last = [&self.standard, &self.own].into_iter().flatten().filter(|file| file.survey.events > 0);
        let last = last.map(|file| file.survey.highest_clock).max()?;
        let until = i64::try_from(alive::until(&page)?).ok()?;
        let is_later = until.checked_sub(last).is_some_and(|silence| (1..=MAX_SILENCE_NS).contains(&silence));
        let tid = self.tid()?;
        let mut asleep = alive::asleep(&page).filter(|asleep| i64::try_from(asleep.tid) == Ok(tid));
        // A thread that recorded something after the look was awake.
        let slept = alive::looked(&page)
            .is_some_and(|looked| i64::try_from(looked).is_ok_and(|looked| looked >= last));
        let asleep = asleep.find_map(|asleep| Some((i64::try_from(asleep.since).ok()?, asleep.call)));
        let asleep = asleep.filter(|(since, _)| slept && *since <= until);
        is_later.then_some(Alive {
            until,
            asleep_since: asleep.map(|(since, _)| since.max(last)),
            asleep_in: asleep.and_then(|(_, call)| call),
        })
    }

    /// The thread's id; from the directory's name if the metadata lacks it.
    pub fn tid(&self) -> Option<i64> {
        self.metadata.tid.or_else(|| self.named(layout::THREAD_PREFIX)?.parse().ok())
    }

    /// The process's id; from the directory's name if the metadata lacks it.
    pub fn pid(&self) -> Option<i64> {
        self.metadata.pid.or_else(|| self.named(layout::PROCESS_PREFIX)?.parse().ok())
    }

    /// The loom's name; from the directory's name if the metadata lacks it.
    pub fn loom(&self) -> Option<&str> {
        self.metadata.loom.as_deref().or_else(|| self.named(layout::LOOM_PREFIX))
    }

    /// The rest of the innermost part of the path that starts with `prefix`.
    fn named(&self, prefix: &str) -> Option<&str> {
        self.relative_path.rsplit('/').find_map(|part| part.strip_prefix(prefix))
    }

    fn load_file(&self, file: StreamFile, turns: bool, problems: &mut Vec<Problem>) -> Option<SurveyedFile> {
        let report = |kind, text: String| {
            let mut problem = Problem::in_stream(kind, &self.relative_path, text);
            problem.file = Some(file);
            problem
        };
        let path = self.directory.join(file.name());
        let loaded = match SurveyedFile::load(&path, !self.is_finished(), turns) {
            Ok(loaded) => loaded,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if file == StreamFile::Standard {
                    problems.push(report(ProblemKind::MissingStream, "there is no stream.obs".to_owned()));
                }
                return None;
            }
            Err(error) => {
                problems.push(report(ProblemKind::Unreadable, format!("cannot read the file: {error}")));
                return None;
            }
        };
        for finding in &loaded.survey.findings {
            if finding.kind == ProblemKind::UnfinishedStream {
                continue;
            }
            let mut problem = report(finding.kind, finding.text.clone());
            problem.offset = Some(finding.offset as u64);
            problem.clock_ns = finding.clock;
            problem.count = finding.count;
            problems.push(problem);
        }
        if loaded.survey.events == 0 && loaded.survey.findings.is_empty() && file != StreamFile::Samples {
            problems.push(report(ProblemKind::EmptyStream, "the stream has zero events".to_owned()));
        }
        Some(loaded)
    }

    /// Whether the metadata says that the thread has ended its stream.
    pub fn is_finished(&self) -> bool {
        self.metadata.finished || self.metadata.recorder.closed
    }

    /// One of its files, if it is there. Without taskscope's own models there is only the standard one.
    pub fn file(&self, file: StreamFile) -> Option<&SurveyedFile> {
        match file {
            StreamFile::Standard => self.standard.as_ref(),
            StreamFile::Own => self.own.as_ref(),
            StreamFile::Samples => self.samples.as_ref(),
        }
    }

    /// Events of both files that [`Stream::events`] merges.
    pub fn event_count(&self) -> u64 {
        [&self.standard, &self.own].into_iter().flatten().map(SurveyedFile::event_count).sum()
    }

    /// Corrected clock of the first event in the order of reading, nanoseconds.
    pub fn first_clock_ns(&self) -> Option<i64> {
        self.events().map(|(_, event)| event.clock_ns).next()
    }

    /// The highest corrected clock, nanoseconds.
    pub fn last_clock_ns(&self) -> Option<i64> {
        [StreamFile::Standard, StreamFile::Own].into_iter().filter_map(|file| self.last_clock_of(file)).max()
    }

    /// Corrected clock of the last event of one file alone, nanoseconds.
    pub fn last_clock_of(&self, file: StreamFile) -> Option<i64> {
        let file = self.file(file).filter(|file| file.survey.events > 0)?;
        Some(self.clock.apply(file.survey.highest_clock))
    }

    /// Corrected clock, nanoseconds, until which the process of an unfinished stream is known to have lived. The thread
    /// recorded nothing between its last event and this time, unless the stream is cut ([`Stream::cut_at_ns`]).
    pub fn alive_until_ns(&self) -> Option<i64> {
        self.alive.map(|alive| self.clock.apply(alive.until))
    }

    /// Corrected clock, nanoseconds, since when the thread used no CPU and waited in the kernel, until the end of its process.
    pub fn asleep_since_ns(&self) -> Option<i64> {
        self.alive.and_then(|alive| alive.asleep_since).map(|since| self.clock.apply(since))
    }

    /// The call that the thread is in since [`asleep_since_ns`](Self::asleep_since_ns), if it is known: kind of wait, and object.
    pub fn asleep_in(&self) -> Option<(u32, u64)> {
        self.alive.and_then(|alive| alive.asleep_in)
    }

    /// Corrected clock, nanoseconds, after which events are missing because a file is truncated there; the other file
    /// may continue.
    pub fn cut_at_ns(&self) -> Option<i64> {
        [StreamFile::Standard, StreamFile::Own]
            .into_iter()
            .filter(|which| self.file(*which).is_some_and(SurveyedFile::is_cut))
            .filter_map(|which| self.last_clock_of(which).or_else(|| self.first_clock_ns()))
            .min()
    }

    /// Corrected clocks, nanoseconds, between which the thread's clock went back: ascending and disjoint. States in
    /// them are uncertain.
    pub fn clock_falls_ns(&self) -> Vec<(i64, i64)> {
        let files = [&self.standard, &self.own].into_iter().flatten();
        let falls = files.flat_map(|file| file.survey.falls.iter());
        Falls::joined(falls.map(|(from, to)| (self.clock.apply(from), self.clock.apply(to))))
    }

    /// The events of one file alone; none if it is absent.
    pub fn events_of(&self, file: StreamFile) -> impl Iterator<Item = Event<'_>> + Clone {
        let decoder = self.file(file).map(|file| file.decoder(self.clock, self.order));
        decoder.into_iter().flatten()
    }

    /// The events of both files by clock; on ties those of `stream.obs` come first.
    pub fn events(&self) -> ThreadEvents<'_> {
        ThreadEvents::new(
            self.standard.as_ref().map(|file| file.decoder(self.clock, self.order)),
            self.own.as_ref().map(|file| file.decoder(self.clock, self.order)),
        )
    }
}

impl Stream {
    /// Corrected clocks, nanoseconds, of the first event and of those that have a turn, if they are known.
    pub(crate) fn turn_clocks(&self) -> Option<Box<dyn Iterator<Item = i64> + Send + '_>> {
        let files = [&self.standard, &self.own].into_iter().flatten();
        let files: Vec<&TurnClocks> = files.map(|file| file.turns()).collect::<Option<_>>()?;
        // On ties the standard events come first.
        let first = (0..files.len()).min_by_key(|file| files[*file].first_clock().unwrap_or(i64::MAX))?;
        if let [clocks] = files[..] {
            return Some(Box::new(clocks.iter(true).map(|clock| self.clock.apply(clock))));
        }
        let clocks_in = |file: usize| files[file].iter(file == first).peekable();
        let (mut standard, mut own) = (clocks_in(0), clocks_in(1));
        let merged = std::iter::from_fn(move || match (standard.peek(), own.peek()) {
            (Some(clock), Some(other)) if other < clock => own.next(),
            (Some(_), _) => standard.next(),
            (None, _) => own.next(),
        });
        Some(Box::new(merged.map(|clock| self.clock.apply(clock))))
    }
}

/// The events of a thread's two files, merged by clock.
#[derive(Clone)]
pub struct ThreadEvents<'a> {
    standard: Decoder<'a>,
    /// Absent if there are no own events, so that they cost nothing.
    own: Option<Box<Decoder<'a>>>,
}

impl<'a> ThreadEvents<'a> {
    fn new(standard: Option<Decoder<'a>>, own: Option<Decoder<'a>>) -> Self {
        let standard =
            standard.unwrap_or_else(|| Decoder::new(&[], 0, 0, ClockCorrection::default(), &[], false));
        ThreadEvents { standard, own: own.filter(|own| own.peek_clock_ns().is_some()).map(Box::new) }
    }

    /// The clock of the next event.
    #[inline(always)]
    pub fn peek_clock_ns(&self) -> Option<i64> {
        let standard = self.standard.peek_clock_ns();
        match self.own.as_ref().and_then(|own| own.peek_clock_ns()) {
            None => standard,
            Some(own) => Some(standard.map_or(own, |standard| standard.min(own))),
        }
    }

    /// Skips the events before the first one with a code that `stops` accepts.
    #[inline(always)]
    pub(crate) fn pass_until(&mut self, stops: impl Fn(Code) -> bool) {
        if self.own.is_none() {
            return self.standard.pass_until(stops);
        }
        while self.peek_code().is_some_and(|code| !stops(code)) {
            self.next();
        }
    }

    /// Clock and code of the events up to `last_ns`, with the result of `find` for each; ends before the first event
    /// without a result. Events are consumed when the iterator reaches that one.
    #[inline(always)]
    pub fn found<T, F: Fn(Code) -> Option<T>>(&mut self, last_ns: i64, find: F) -> FoundEvents<'_, 'a, F> {
        let is_plain = self.own.is_none() && self.standard.is_plain();
        FoundEvents { plain: self.standard.plain(), events: self, is_plain, last_ns, find }
    }

    /// The code of the next event, unless its clock is after `last_ns`.
    pub fn peek_code_until(&self, last_ns: i64) -> Option<Code> {
        self.peek_code().filter(|_| self.peek_clock_ns().is_some_and(|clock| clock <= last_ns))
    }

    /// The code of the next event.
    fn peek_code(&self) -> Option<Code> {
        match &self.own {
            Some(own) if self.is_own_next(own) => own.peek_code(),
            _ => self.standard.peek_code(),
        }
    }

    #[inline(always)]
    fn is_own_next(&self, own: &Decoder<'_>) -> bool {
        own.peek_clock_ns()
            .is_some_and(|own| self.standard.peek_clock_ns().is_none_or(|standard| own < standard))
    }
}

/// See [`ThreadEvents::found`].
pub struct FoundEvents<'r, 'a, F> {
    events: &'r mut ThreadEvents<'a>,
    /// Plain events, read up to here.
    plain: PlainEvents<'a>,
    is_plain: bool,
    last_ns: i64,
    find: F,
}

impl<T, F: Fn(Code) -> Option<T>> FoundEvents<'_, '_, F> {
    #[inline(always)]
    fn next_plain(&mut self) -> Option<(i64, Code, T)> {
        let head = self.plain.next()?;
        let found = (self.find)(head.code)?;
        let clock_ns = self.plain.clock_ns(&head);
        if clock_ns > self.last_ns {
            return None;
        }
        self.plain.pass(&head);
        Some((clock_ns, head.code, found))
    }

    #[inline(never)]
    fn next_mended(&mut self) -> Option<(i64, Code, T)> {
        let clock_ns = self.events.peek_clock_ns().filter(|clock_ns| *clock_ns <= self.last_ns)?;
        let code = self.events.peek_code()?;
        let found = (self.find)(code)?;
        self.events.next();
        Some((clock_ns, code, found))
    }
}

impl<T, F: Fn(Code) -> Option<T>> Iterator for FoundEvents<'_, '_, F> {
    type Item = (i64, Code, T);

    #[inline(always)]
    fn next(&mut self) -> Option<(i64, Code, T)> {
        if !self.is_plain {
            return self.next_mended();
        }
        let next = self.next_plain();
        if next.is_none() {
            self.events.standard.resume_at(&self.plain);
        }
        next
    }
}

impl<'a> Iterator for ThreadEvents<'a> {
    type Item = (StreamFile, Event<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<(StreamFile, Event<'a>)> {
        if let Some(own) = &self.own
            && self.is_own_next(own)
        {
            return self.own.as_mut()?.next().map(|event| (StreamFile::Own, event));
        }
        self.standard.next().map(|event| (StreamFile::Standard, event))
    }
}
