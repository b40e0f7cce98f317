//! Moves between sections with a matching name.

use super::Page;
use super::bars::{short, with_line};
use super::matches::{Matches, Pattern};
use super::operations::OperationFacts;
use super::queues::Queues;
use super::sample_facts::SampleFacts;
use super::sample_rows::SampleView;
use super::sections::SectionFacts;
use super::tasks::TaskQuery;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Arc, OnceLock, PoisonError};
use taskscope_cause::Group;
use taskscope_execution::lod::{Flags, Marks};
use taskscope_execution::{
    GapIndex, Place, ProcessNames, Section, SiteIndex, Span, Starts, State, TaskIndex, ThreadIndex, TypeIndex,
};
use taskscope_filter::{Fields, Filter, Kind, Record, SIGNED, UNSIGNED};

/// A search result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Found {
    /// A section of a track.
    Section(Box<SectionFacts>),
    /// An operation of a device queue.
    Operation(Box<OperationFacts>),
    /// Code by samples.
    Code(Box<SampleFacts>),
}

impl Found {
    /// Begin, nanoseconds since the start of the trace.
    pub fn start(&self) -> u64 {
        match self {
            Found::Section(section) => section.start,
            Found::Operation(operation) => operation.start,
            Found::Code(code) => code.bar.start,
        }
    }
}

/// Direction of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards later times.
    Next,
    /// Towards earlier times.
    Previous,
    /// Forward from the start of the run, including sections that begin with it.
    First,
    /// Backward from the end of the run.
    Last,
}

impl Direction {
    /// Whether the earliest result is wanted.
    pub(super) fn is_later(self) -> bool {
        matches!(self, Direction::Next | Direction::First)
    }
}

/// The position at which a search resumes.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Nanoseconds since the start of the trace.
    at: u64,
    /// The row: tracks, then lanes of device queues, then rows of code by samples. At equal times, rows after it
    /// follow it and rows before it precede it.
    row: Option<usize>,
}

impl From<u64> for Position {
    fn from(at: u64) -> Self {
        Position { at, row: None }
    }
}

impl Position {
    /// The sections that start at this time on a track.
    pub fn on_track(at: u64, track: ThreadIndex) -> Position {
        Position { at, row: Some(track.index()) }
    }

    /// The operations that start at this time on a lane of the device queues.
    pub fn on_lane(page: &Page, at: u64, lane: u32) -> Position {
        Position { at, row: Some(page.tracks() + lane as usize) }
    }

    /// The bars that start at this time on a row of code by samples.
    pub fn on_code(page: &Page, at: u64, row: u32) -> Position {
        Position { at, row: Some(page.tracks() + page.queues.len() + row as usize) }
    }

    /// Nanoseconds since the start of the trace.
    pub(super) fn at(self) -> u64 {
        self.at
    }

    /// Whether sections that start in the same nanosecond on another row are still ahead.
    pub(super) fn has_before_it(self, row: usize, later: bool) -> bool {
        self.row.is_some_and(|here| if later { here < row } else { row < here })
    }
}

/// The fields of a section in the filter language.
pub(super) const FIELDS: Fields = Fields {
    of: "sections",
    kind: |name| match name {
        "state" => Some(Kind::Words(State::ALL.map(State::name).to_vec())),
        "group" => Some(Kind::Words(Group::ALL.map(Group::name).to_vec())),
        "time" | "duration" => Some(Kind::Time(UNSIGNED)),
        "thread" | "process" => Some(Kind::Number(SIGNED)),
        "task" | "region" => Some(Kind::Number(UNSIGNED)),
        "thread_name" | "loom" | "place" | "type" => Some(Kind::Text),
        _ => None,
    },
    names: || {
        "state, group, time, duration, thread, thread_name, process, loom, task, region, place, type"
            .to_string()
    },
};

impl Matches {
    /// The marks of a thread.
    pub(super) fn of(&self, page: &Page, thread: ThreadIndex) -> Option<&Marks> {
        let marks = self.marks.get(thread.index())?;
        Some(marks.get_or_init(|| {
            let track = &page.execution.threads[thread.index()].track;
            let matching = track.spans().filter(|span| self.pattern.matches(page, thread, span));
            Marks::new(Flags::MATCH, matching.map(|span| (span.start, span.end)).collect())
        }))
    }

    /// The marks of a lane of the device queues; operations match only by words.
    pub(super) fn lane_marks(&self, queues: &Queues, lane: u32) -> Option<&Marks> {
        let marks = self.lanes.get(lane as usize)?;
        Some(marks.get_or_init(|| queues.named_marks(lane, has_text(&self.text))))
    }
}

/// Whether the name of a device's operation has the text of a search.
pub(super) fn has_text(text: &str) -> impl Fn(&str) -> bool {
    let text = text.trim().to_lowercase();
    move |name| !text.is_empty() && name.to_lowercase().contains(&text)
}

/// The texts that a filter compares with.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split('=').skip(1).filter_map(|rest| {
        let rest = rest.trim_start();
        match rest.chars().next()? {
            quote @ ('\'' | '"') => rest[1..].split(quote).next(),
            _ => rest.split(|c: char| c.is_whitespace() || "()".contains(c)).next(),
        }
    })
}

impl Pattern {
    pub(super) fn matches(&self, page: &Page, thread: ThreadIndex, span: &Span) -> bool {
        let section: &Section = &span.section;
        match self {
            Pattern::Words { states, places, threads } => {
                states[section.state as usize] || places.contains(&section.place) || threads.contains(&thread)
            }
            Pattern::Tasks(tasks) => tasks.contains(&section.task),
            Pattern::Filter { filter, words } => filter.matches(&Shown { page, thread, span, words }),
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Pattern::Words { states, places, threads } => {
                places.is_empty() && threads.is_empty() && !states.contains(&true)
            }
            Pattern::Tasks(tasks) => tasks.is_empty(),
            Pattern::Filter { .. } => false,
        }
    }
}

/// A section as the filter language sees it; `docs/view.md` lists the fields.
struct Shown<'a> {
    page: &'a Page,
    thread: ThreadIndex,
    span: &'a Span,
    words: &'a FxHashMap<Place, String>,
}

impl Record for Shown<'_> {
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<taskscope_filter::Value<'_>>) -> R) -> R {
        let execution = &self.page.execution;
        let section = &self.span.section;
        let number = |value: u64| Some(taskscope_filter::Value::from(value));
        let thread = &execution.threads[self.thread.index()];
        let process = &execution.processes[thread.process.index()];
        let text = |place: &Place| self.words.get(place).map(|words| taskscope_filter::Value::Text(words));
        match name {
            "state" => with(Some(taskscope_filter::Value::Text(section.state.name()))),
            "group" => with(Some(taskscope_filter::Value::Text(section.state.group().name()))),
            "time" => with(number(self.page.since_start(self.span.start))),
            "duration" => with(number(self.span.nanos())),
            "thread" => with(Some(taskscope_filter::Value::from(thread.tid))),
            "thread_name" => with(Some(taskscope_filter::Value::Text(&thread.name))),
            "process" => with(Some(taskscope_filter::Value::from(process.pid))),
            "loom" => with(Some(taskscope_filter::Value::Text(&process.loom))),
            "task" => with(execution.tasks.number(section.task).and_then(number)),
            "region" => with(self.page.region_number(section.region).and_then(number)),
            "place" => with(text(&section.place)),
            "type" => {
                let ty = execution.tasks.ty.get(section.task.index()).copied();
                with(ty.and_then(|ty| text(&Place::task_type(ty))))
            }
            _ => with(None),
        }
    }
}

impl Page {
    /// The nearest section that starts after (before) `at` and has `text` in its state, task type, construct
    /// or place, ignoring case; `task 123` and `task 123 of rank 1` find the tasks of that number, and a
    /// filter (`state=barrier and duration>1ms`) the sections that pass it.
    pub fn search(&self, text: &str, from: impl Into<Position>, direction: Direction) -> Option<Found> {
        let from = from.into();
        let at = from.at;
        let pattern = self.pattern(text);
        let operation = self.search_operations(text, from, direction);
        let code = self.search_code(text, from, direction);
        let time = match direction {
            Direction::First => 0,
            Direction::Last => u64::MAX,
            Direction::Next | Direction::Previous => at,
        };
        let at = self.start().saturating_add(at);
        let tracks = if pattern.is_nothing() { 0 } else { self.tracks() as u32 };
        let found = (0..tracks).into_par_iter().filter_map(|track| {
            let track = ThreadIndex(track);
            let sections = &self.execution.threads[track.index()].track;
            let starts = sections.starts();
            let same = from.has_before_it(track.index(), direction.is_later());
            let matching = |row: &usize| pattern.matches(self, track, &sections.span(*row));
            let row = match direction {
                Direction::Next => {
                    let first = starts.partition_point(|s| s < at || (s == at && !same));
                    (first..starts.len()).find(matching)
                }
                Direction::Previous => {
                    let end = starts.partition_point(|s| s < at || (s == at && same));
                    (0..end).rev().find(matching)
                }
                Direction::First => (0..starts.len()).find(matching),
                Direction::Last => (0..starts.len()).rev().find(matching),
            }?;
            Some((starts.at(row), track, row))
        });
        let (_, track, row) = if direction.is_later() { found.min() } else { found.max() }
            .map_or((0, ThreadIndex::NONE, 0), |found| found);
        let section = (track.is_some())
            .then(|| self.section(track, self.execution.threads[track.index()].track.span(row)))
            .map(|section| Found::Section(Box::new(section)));
        // The nearest; of those that start together the rows further up come first.
        let distance = |found: &Found| found.start().abs_diff(time);
        let found = [section, operation, code].into_iter().flatten();
        if direction.is_later() { found.min_by_key(distance) } else { found.rev().min_by_key(distance) }
    }

    /// The nearest operation of a device queue with the text in its name.
    fn search_operations(&self, text: &str, from: Position, direction: Direction) -> Option<Found> {
        let later = direction.is_later();
        let at = match direction {
            Direction::First => 0,
            Direction::Last => u64::MAX,
            Direction::Next | Direction::Previous => self.start().saturating_add(from.at),
        };
        let found = (0..self.queues.len() as u32).filter_map(|row| {
            let same = from.has_before_it(self.tracks() + row as usize, later);
            let start = self.queues.named_start(row, at, later, same, has_text(text))?;
            Some((start, row))
        });
        let (start, row) = if later { found.min() } else { found.max() }?;
        let operation = self.operation(row, start.saturating_sub(self.start()), None)?;
        Some(Found::Operation(Box::new(operation)))
    }

    /// The syntax error of a text meant as a filter; `None` for a valid filter, or for words.
    pub fn filter_problem(&self, text: &str) -> Option<String> {
        let error = Filter::parse(text, &FIELDS).err()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let asks_of_field = |pair: &[&str]| pair[1] == "in" && (FIELDS.kind)(pair[0]).is_some();
        let is_meant = text.contains(['=', '<', '>', '~', '(', ')']) || words.windows(2).any(asks_of_field);
        (is_meant && !self.is_word(text)).then(|| format!("this is not a filter: {error}"))
    }

    /// Whether some name has the text: names of types may have any characters.
    fn is_word(&self, text: &str) -> bool {
        let has_name = || self.queues.has_name(has_text(text)) || !self.named_spots(text).is_empty();
        !self.pattern(text).is_nothing() || has_name()
    }

    /// The sections that contain a word or pass a filter, for highlighting. The last answer is cached.
    pub fn matches(&self, text: &str) -> Arc<Matches> {
        let mut kept = self.derived.highlighted.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(matches) if matches.text == text => matches.clone(),
            _ => {
                let unmarked = |rows: usize| (0..rows).map(|_| OnceLock::new()).collect();
                let matches = Arc::new(Matches {
                    text: text.to_string(),
                    pattern: self.pattern(text),
                    marks: unmarked(self.tracks()),
                    lanes: unmarked(self.queues.len()),
                    code: unmarked(self.sample_row_count(SampleView::Code)),
                });
                *kept = Some(matches.clone());
                matches
            }
        }
    }

    pub(super) fn pattern(&self, text: &str) -> Pattern {
        if let Ok(filter) = Filter::parse(text, &FIELDS) {
            let asks_for_words = text.contains("place") || text.contains("type");
            let words = if asks_for_words { self.words_of_places(|_| true) } else { Vec::new() };
            // `type=gemm` means `gemm [task at gemm.c:12]` too.
            let literals: Vec<&str> = literals(text).collect();
            let as_meant = |(place, words): (Place, String)| match (short(&words), with_line(&words)) {
                (name, _) if literals.contains(&name) => (place, name.to_owned()),
                (_, Some(name)) if literals.contains(&&*name) => (place, name),
                _ => (place, words),
            };
            return Pattern::Filter { filter, words: words.into_iter().map(as_meant).collect() };
        }
        let text = text.trim().to_lowercase();
        if let Some(tasks) = self.tasks_called(&text) {
            return Pattern::Tasks(tasks);
        }
        let mut states = [false; State::ALL.len()];
        let mut places = FxHashSet::default();
        let mut threads = FxHashSet::default();
        if !text.is_empty() {
            let all = self.execution.threads.iter().zip(0..);
            let named = all.filter(|(thread, _)| thread.name.to_lowercase().contains(&text));
            threads = named.map(|(_, index)| ThreadIndex(index)).collect();
            for state in State::ALL {
                states[state as usize] = state.label().contains(&text) || state.name().contains(&text);
            }
            let is_bar =
                |words: &str, text: &str| with_line(words).is_some_and(|name| name.to_lowercase() == text);
            let found = self
                .words_of_places(move |words| words.to_lowercase().contains(&text) || is_bar(words, &text));
            places = found.into_iter().map(|(place, _)| place).collect();
        }
        Pattern::Words { states, places, threads }
    }

    /// The tasks that `task 12`, or `task 12 of rank 1`, means; `None` for other texts.
    fn tasks_called(&self, text: &str) -> Option<FxHashSet<TaskIndex>> {
        let (number, process) = match text.strip_prefix("task ")?.split_once(" of ") {
            Some((number, process)) => (number, Some(process.trim())),
            None => (&text[5..], None),
        };
        let number = Some(number.trim().parse().ok()?);
        let found = self.find_tasks(&TaskQuery { number, ..TaskQuery::default() }).into_iter();
        let names = ProcessNames::of(&self.execution);
        let is_of = |task: &TaskIndex| {
            let of = self.execution.process_of_task(*task).and_then(|of| names.process(of));
            process.is_none_or(|process| of.is_some_and(|of| of.to_lowercase() == process))
        };
        Some(found.filter(is_of).collect())
    }

    /// All places with wanted words, and these words.
    pub(super) fn words_of_places(
        &self,
        wanted: impl Fn(&str) -> bool + Send + 'static,
    ) -> Vec<(Place, String)> {
        let catalog = &self.execution.catalog;
        let (types, sites, gaps) = (catalog.types.len(), catalog.sites.len(), catalog.gaps.len());
        self.names.ask(move |names| {
            let types =
                (0..types as u32).map(TypeIndex).map(|ty| (Place::task_type(ty), names.type_name(ty)));
            let sites =
                (0..sites as u32).map(SiteIndex).map(|site| (Place::site(site), names.construct("", site)));
            let gaps = (0..gaps as u32).map(GapIndex).map(|gap| (Place::gap(gap), names.gap_name(gap)));
            types.chain(sites).chain(gaps).filter(|(_, words)| wanted(words)).collect()
        })
    }
}
