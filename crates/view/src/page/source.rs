//! The source of a place, each line with the time of the run that belongs to it.
//!
//! ```text
//! sections of a range ── state, place ──▶ site ──▶ file, line ──▶ useful, waiting
//! the report's blame ── "… at file:line]" ─────────────────────▶ blamed      (whole run)
//! the report's call paths ── work by line ─────────────────────▶ work        (whole run)
//! ```
//!
//! Time of a section belongs to the line of its construct; only samples know the lines inside of a body. Blame names files
//! without directories, so it is given only if the run has constructs in no other file of that name.

use super::Page;
use super::run_files::RunFiles;
use crate::source_files::SourceRoots;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use taskscope_execution::{Group, Place, SiteIndex, State, ThreadIndex};

/// Most lines of an answer, around the line in question.
const MAX_LINES: usize = 4000;
/// Longest line, characters.
const MAX_COLUMNS: usize = 1000;
/// Most files that are listed.
const MAX_FILES: usize = 40;

/// A source file with the time of its lines. Times are of the range, unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SourceFacts {
    /// The file as the compiler recorded it; empty if no place of the range has a file.
    pub file: String,
    /// The line in question; null for none.
    pub line: Option<u32>,
    /// The file that was read; null if none was.
    pub path: Option<String>,
    /// The reason why none was read.
    pub missing: Option<String>,
    /// Whether the file was changed after the begin of the run; null if unknown.
    pub is_newer: Option<bool>,
    /// Number of the first line in `lines`.
    pub first_line: usize,
    /// Lines of the file, at most 4000 around the one in question.
    pub lines: Vec<String>,
    /// Lines of the whole file.
    pub lines_count: usize,
    /// Times of lines, by line.
    pub heat: Vec<LineHeat>,
    /// Whether the run has samples.
    pub has_samples: bool,
    /// Files with time in the range, most first, 40 at most.
    pub files: Vec<FileTime>,
}

/// Times of a line, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LineHeat {
    /// The line, from 1.
    pub line: u32,
    /// Useful work of the construct at the line.
    pub useful_ns: u64,
    /// Waiting and overhead there.
    pub lost_ns: u64,
    /// Waiting of others for it, of the whole run.
    pub blamed_ns: u64,
    /// Work in it and in code of other files that it calls, by samples of the whole run.
    pub work_ns: u64,
    /// Time of samples in it alone, waiting included.
    #[serde(skip)]
    pub sampled_ns: u64,
}

/// A file with its time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FileTime {
    /// The file as the compiler recorded it.
    pub file: String,
    /// Thread-nanoseconds, or samples if they are more.
    pub ns: u64,
}

/// The source in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOf {
    /// That of a section: its track and a time in it, nanoseconds since the start of the trace.
    Section(ThreadIndex, u64),
    /// A file, as the compiler recorded it, which must be one of the run.
    File(String),
    /// A line of such a file.
    Line(String, u32),
    /// The one with most time.
    Hottest,
}

type Lines = FxHashMap<(String, u32), LineHeat>;

/// The name with its directories of a file that was recorded without some of them, as GCC writes locations of constructs; `None` if
/// no other name ends with it, or several do.
fn whole_name(file: &str, names: &FxHashSet<&str>) -> Option<String> {
    if file.starts_with('/') {
        return None;
    }
    let end = format!("/{file}");
    let mut longer = names.iter().filter(|name| name.starts_with('/') && name.ends_with(&end));
    longer.next().filter(|_| longer.next().is_none()).map(|name| (*name).to_string())
}

impl Page {
    /// Searches sources below these directories from now on.
    pub fn look_for_sources(&mut self, roots: SourceRoots) {
        self.sources = roots;
    }

    /// The source in question with the times of its lines in `[from, to)`, nanoseconds since the start of the trace; `None` if
    /// the run has no such file.
    pub fn source(&self, of: &SourceOf, from: u64, to: u64) -> Option<SourceFacts> {
        let run_sources: FxHashSet<&str> = self.source_files().all.iter().map(String::as_str).collect();
        let heat = self.lines_in(from, to, &run_sources);
        let mut files: BTreeMap<&str, u64> = BTreeMap::new();
        for ((file, _), heat) in &heat {
            *files.entry(file).or_default() += (heat.useful_ns + heat.lost_ns).max(heat.sampled_ns);
        }
        let mut files: Vec<FileTime> =
            files.into_iter().map(|(file, ns)| FileTime { file: file.to_string(), ns }).collect();
        files.sort_by_key(|row| Reverse(row.ns));
        let (file, line) = match of {
            SourceOf::Section(track, at) => {
                let (file, line) = self.place_of_section(*track, *at)?;
                (whole_name(&file, &run_sources).unwrap_or(file), line)
            }
            // It may have no time in the range.
            SourceOf::File(file) | SourceOf::Line(file, _) if !run_sources.contains(file.as_str()) => {
                return None;
            }
            SourceOf::Line(file, line) => {
                (whole_name(file, &run_sources).unwrap_or_else(|| file.clone()), Some(*line))
            }
            SourceOf::File(file) => (whole_name(file, &run_sources).unwrap_or_else(|| file.clone()), None),
            SourceOf::Hottest => {
                // Files of libraries are seldom here.
                let first = files.iter().take(MAX_FILES).find(|row| self.sources.find(&row.file).is_ok());
                (first.or(files.first()).map(|row| row.file.clone()).unwrap_or_default(), None)
            }
        };
        let mut heat: Vec<LineHeat> =
            heat.into_iter().filter(|((of, _), _)| *of == file).map(|(_, heat)| heat).collect();
        heat.sort_by_key(|row| row.line);
        heat.retain(|row| row.useful_ns + row.lost_ns + row.work_ns > 0);
        let blame = self.blame_of_lines(&file);
        for (line, ns) in blame {
            match heat.binary_search_by_key(&line, |row| row.line) {
                Ok(at) => heat[at].blamed_ns += ns,
                Err(at) => heat.insert(at, LineHeat { line, blamed_ns: ns, ..LineHeat::default() }),
            }
        }
        let hottest = heat.iter().max_by_key(|row| (row.work_ns, row.useful_ns + row.lost_ns));
        let line = line.or(hottest.map(|row| row.line));
        files.truncate(MAX_FILES);
        let has_samples = self.report.call_paths.is_some();
        let mut facts = SourceFacts {
            file,
            line,
            path: None,
            missing: None,
            is_newer: None,
            first_line: 1,
            lines: Vec::new(),
            lines_count: 0,
            heat,
            has_samples,
            files,
        };
        if facts.file.is_empty() {
            facts.missing =
                Some("no place of the run has a file: it needs debug information (-g)".to_string());
            return Some(facts);
        }
        match self.sources.find(&facts.file) {
            Ok(found) => {
                let all: Vec<&str> = found.text.lines().collect();
                let middle = facts.line.map_or(0, |line| line as usize);
                let first = middle.saturating_sub(MAX_LINES / 2).min(all.len().saturating_sub(MAX_LINES));
                facts.first_line = first + 1;
                facts.lines_count = all.len();
                let shown = all.into_iter().skip(first).take(MAX_LINES);
                facts.lines = shown.map(|line| line.chars().take(MAX_COLUMNS).collect()).collect();
                facts.is_newer =
                    self.report.start_unix_ns.zip(found.changed_unix_ns).map(|(run, file)| file > run);
                facts.path = Some(found.path.display().to_string());
            }
            Err(why) => facts.missing = Some(why),
        }
        Some(facts)
    }

    /// File and line of a section's place.
    fn place_of_section(&self, track: ThreadIndex, at: u64) -> Option<(String, Option<u32>)> {
        let thread = self.execution.threads.get(track.index())?;
        let row = thread.track.row_at(self.start().checked_add(at)?)?;
        let place = thread.track.span(row).section.place;
        self.names.ask(move |places| {
            let code = places.code(places.site_of(place));
            Some((code.frame.file.clone()?, code.frame.line))
        })
    }

    /// Files of the run: of its sites, resolved once, and of its samples.
    fn source_files(&self) -> &RunFiles {
        self.derived.source_files.get_or_init(|| {
            let sites = self.execution.catalog.sites.len() as u32;
            let site_files: FxHashSet<String> = self.names.ask(move |places| {
                (0..sites).filter_map(|site| places.code(SiteIndex(site)).frame.file.clone()).collect()
            });
            let mut all = site_files.clone();
            all.extend(self.sampled_lines().map(|((file, _), _)| file));
            RunFiles { site_files, all }
        })
    }

    /// Files, lines and nanoseconds of samples of time; paths of threads that are mostly blocked are sorted by their work.
    fn sampled_lines(&self) -> impl Iterator<Item = ((String, u32), u64)> {
        let is_time = |column: &str| matches!(column, "time_ns" | "work_ns");
        let sampled = self.report.call_paths.iter().filter(move |paths| is_time(&paths.sorted_by));
        let lines = sampled.flat_map(|paths| &paths.lines);
        lines.filter_map(|row| Some((row.file.clone().zip(row.line)?, row.own)))
    }

    /// Times of all lines in a range; a name is joined with the same one of the run in each range.
    fn lines_in(&self, from: u64, to: u64, run_sources: &FxHashSet<&str>) -> Lines {
        let (low, high) = (self.start().saturating_add(from), self.start().saturating_add(to));
        let places: Vec<((State, Place), u64)> = self
            .places_in(&self.all_tracks(), low, high)
            .into_iter()
            .map(|(key, (ns, _))| (key, ns))
            .collect();
        let mut lines: Lines = self.names.ask(move |names| {
            let mut lines = Lines::default();
            for ((state, place), ns) in places {
                let site = names.site_of(place);
                if site == SiteIndex::NONE {
                    continue;
                }
                let code = names.code(site);
                let Some((file, line)) = code.frame.file.clone().zip(code.frame.line) else { continue };
                let heat = lines.entry((file, line)).or_default();
                match state.group() {
                    Group::Useful => heat.useful_ns += ns,
                    _ => heat.lost_ns += ns,
                }
            }
            lines
        });
        for (line, ns) in self.sampled_lines() {
            lines.entry(line).or_default().sampled_ns += ns;
        }
        for row in self.report.call_paths.iter().flat_map(|paths| &paths.work_by_line) {
            lines.entry((row.file.clone(), row.line)).or_default().work_ns += row.work_ns;
        }
        let mut joined = Lines::default();
        for ((file, line), heat) in lines {
            let file = whole_name(&file, run_sources).unwrap_or(file);
            let sum = joined.entry((file, line)).or_default();
            sum.line = line;
            sum.useful_ns += heat.useful_ns;
            sum.lost_ns += heat.lost_ns;
            sum.sampled_ns += heat.sampled_ns;
            sum.work_ns += heat.work_ns;
        }
        joined
    }

    /// Blame of the lines of a file, if no construct of the run is in another file of its name.
    fn blame_of_lines(&self, file: &str) -> BTreeMap<u32, u64> {
        fn name_of(file: &str) -> &str {
            file.rsplit('/').next().unwrap_or(file)
        }
        let name = name_of(file).to_string();
        let mut lines = BTreeMap::new();
        let is_twin =
            |other: &String| other != file && name_of(other) == name && !file.ends_with(&format!("/{other}"));
        if name.is_empty() || self.source_files().site_files.iter().any(is_twin) {
            return lines;
        }
        let start = format!(" at {name}:");
        for row in &self.report.blame {
            let Some((_, after)) = row.place.as_deref().and_then(|place| place.rsplit_once(&start)) else {
                continue;
            };
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            if let Ok(line) = digits.parse() {
                *lines.entry(line).or_default() += row.ns;
            }
        }
        lines
    }
}
