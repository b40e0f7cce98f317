//! The one-file report: the page with its data inside.

use super::{bundle, document, policy};
use crate::page::page_data::{
    InstanceSections, InstanceTrack, NestedRows, PackedRows, PageData, StackedStates, StackedTypes, Stretch,
};
use crate::page::{
    BucketStart, CounterBuckets, CounterKind, Instance, Overview, Page, SampleView, View, counter_buckets,
    packed_model_rows, packed_rows,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use std::io::Write;
use taskscope_execution::lod::Window;
use taskscope_execution::{Execution, Starts, State, Thread, ThreadIndex};

/// Maximum size of a report, for any trace.
pub const MAX_REPORT_BYTES: usize = 5_000_000;
/// Maximum size of the overview's rows within it.
const MAX_ROWS_BYTES: usize = 2_000_000;
/// Buckets of the overview, before halving.
const BUCKETS: u32 = 2048;
/// Tracks of the overview at most, spread over all.
const TRACKS: usize = 4096;
/// Tracks of the small timeline of a finding.
const INSTANCE_TRACKS: usize = 16;
/// Sections of it.
const INSTANCE_SECTIONS: usize = 1500;
/// Maximum rows per table when tables are shortened: first attempt, last attempt.
const MAX_TABLE_ROWS: usize = 2000;
const MIN_TABLE_ROWS: usize = 30;
/// Rows of nested sections that are drawn.
const NESTED_ROWS: usize = 256;
/// Rows of code by samples that are drawn.
const SAMPLE_ROWS: usize = 256;
/// Lanes of device queues that are drawn.
const LANES: usize = 256;
/// Counters that are drawn; others are not listed.
const COUNTERS: usize = 48;

/// The report as one page of at most [`MAX_REPORT_BYTES`].
pub fn report(page: &Page) -> String {
    let program = bundle::program();
    let policy = policy(&program, bundle::STYLE, "");
    let title = format!("taskscope: {}", page.report.trace);
    let title: String = title.chars().take(200).collect();
    let page_of = |overview: &Overview<'_>, report: &Value, longest_name: Option<usize>| {
        let mut overview = json!(overview);
        if let Some(most) = longest_name {
            cut_names(&mut overview, most);
        }
        let data = [("overview", overview.to_string()), ("report", report.to_string())];
        document(&title, &policy, &program, &data)
    };
    let mut report = json!(page.report);
    let mut overview = overview_of(page, MAX_ROWS_BYTES);
    let mut text = page_of(&overview, &report, None);
    // With thousands of threads or places: first shorter tables, then fewer buckets, and at last shorter
    // names, if only very long names are left.
    let mut left_out = 0;
    let mut table_rows = MAX_TABLE_ROWS;
    while text.len() > MAX_REPORT_BYTES && table_rows >= MIN_TABLE_ROWS {
        left_out += shorten(&mut report, table_rows);
        overview.drawn.iter_mut().for_each(|drawn| drawn.left_out = left_out);
        text = page_of(&overview, &report, None);
        table_rows /= 2;
    }
    if text.len() > MAX_REPORT_BYTES {
        overview.drawn.iter_mut().for_each(|drawn| drawn.rows = rows(page, MAX_ROWS_BYTES / 8));
        cut_names(&mut report, 2000);
        text = page_of(&overview, &report, Some(2000));
    }
    text
}

/// The report of profiles, which have paths but no times of day, as one page.
pub fn profile_page(report: &crate::ProfileReport) -> String {
    let program = bundle::program();
    let policy = policy(&program, bundle::STYLE, "");
    let title: String = format!("taskscope: {}", report.trace).chars().take(200).collect();
    let mut report = json!(report);
    let mut text = document(&title, &policy, &program, &[("report", report.to_string())]);
    let mut rows = MAX_TABLE_ROWS;
    while text.len() > MAX_REPORT_BYTES && rows >= MIN_TABLE_ROWS {
        let left_out = shorten(&mut report, rows);
        report["left_out"] = (report["left_out"].as_u64().unwrap_or(0) + left_out as u64).into();
        text = document(&title, &policy, &program, &[("report", report.to_string())]);
        rows /= 2;
    }
    text
}

/// The data of a timeline, whose rows have at most `rows_bytes`. The report is beside it.
pub(super) fn overview_of(page: &Page, rows_bytes: usize) -> Overview<'_> {
    let drawn = Some(data_of(page, rows_bytes));
    let mut overview = Overview { report: None, drawn, ..page.overview() };
    overview.counters.truncate(COUNTERS);
    overview.samples.retain(|list| page.report.samples_alone && list.name == SampleView::Code.name());
    overview.samples.iter_mut().for_each(|list| list.rows.truncate(SAMPLE_ROWS));
    overview
}

fn data_of(page: &Page, rows_bytes: usize) -> PageData {
    PageData {
        rows: rows(page, rows_bytes),
        device_rows: device_rows(page),
        nested: nested_rows(page),
        code_rows: code_rows(page),
        stack: stack(page),
        types: types(page),
        counter_rows: counters(page),
        instance_sections: instances(page),
        matrix: Some(page.communication_matrix(0, page.length() + 1))
            .filter(|matrix| !matrix.cells.is_empty()),
        left_out: 0,
    }
}

/// Leaves rows of long tables out, those at their ends; how many.
pub(super) fn shorten(report: &mut Value, most: usize) -> usize {
    let mut left_out = 0;
    for (_, value) in report.as_object_mut().into_iter().flatten() {
        if value.is_object() {
            left_out += shorten(value, most);
        }
        if let Value::Array(rows) = value
            && rows.len() > most
        {
            left_out += rows.len() - most;
            rows.truncate(most);
        }
    }
    left_out
}

fn cut_names(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.chars().count() > most => *text = crate::format::fit(text, most),
        Value::Array(rows) => rows.iter_mut().for_each(|row| cut_names(row, most)),
        // Packed buckets are not names.
        Value::Object(rows) => {
            rows.iter_mut().filter(|(key, _)| *key != "data").for_each(|(_, row)| cut_names(row, most));
        }
        _ => {}
    }
}

/// The overview's rows, packed, with so many buckets that they stay below a limit.
fn rows(page: &Page, limit: usize) -> PackedRows {
    let all = page.listed_tracks();
    let step = all.len().div_ceil(TRACKS).max(1);
    let tracks: Vec<ThreadIndex> = all.iter().copied().step_by(step).collect();
    let (start, end) = page.time();
    let mut least = BUCKETS;
    loop {
        let window = Window::covering(start, end.max(start + 1), least);
        let packed = packed_rows(page, View::State, &tracks, window);
        let text = STANDARD.encode(deflated(&planes(&packed)));
        if text.len() <= limit || least <= 32 {
            return PackedRows {
                window: BucketStart::of(page, window),
                buckets: window.count,
                tracks: tracks.iter().map(|track| track.0).collect(),
                left_out_tracks: Some(all.len() - tracks.len()),
                data: text,
            };
        }
        least /= 2;
    }
}

/// The lanes of device queues, packed in the same way; `None` without any. The values of each follow the
/// buckets.
fn device_rows(page: &Page) -> Option<PackedRows> {
    let lanes: Vec<u32> = (0..page.queues.len().min(LANES) as u32).collect();
    if lanes.is_empty() {
        return None;
    }
    let (start, end) = page.time();
    let window = Window::covering(start, end.max(start + 1), BUCKETS / 2);
    let packed = page.queues.packed(&lanes, window, None);
    Some(PackedRows {
        window: BucketStart::of(page, window),
        buckets: window.count,
        tracks: lanes,
        left_out_tracks: None,
        data: STANDARD.encode(deflated(&planes(&packed))),
    })
}

/// Rows of nested sections that are known, the first ones of many, if threads wait in them for each other: these have no states.
fn nested_rows(page: &Page) -> Option<NestedRows> {
    let nested = page.known_nested().filter(|_| !page.execution.thread_waits.waits.is_empty())?;
    let mut list = page.nested_list();
    list.rows.truncate(NESTED_ROWS);
    let (start, end) = page.time();
    let window = Window::covering(start, end.max(start + 1), BUCKETS / 2);
    let tracks: Vec<u32> = (0..list.rows.len() as u32).collect();
    let packed = packed_model_rows(&nested.view, &tracks, window);
    let data = STANDARD.encode(deflated(&planes(&packed)));
    let rows = PackedRows {
        window: BucketStart::of(page, window),
        buckets: window.count,
        tracks,
        left_out_tracks: None,
        data,
    };
    (!list.rows.is_empty()).then_some(NestedRows { list: list.rows, values: list.values, rows })
}

/// Rows of code by samples, the first ones of many, if samples are all that is known of threads.
fn code_rows(page: &Page) -> Option<PackedRows> {
    if !page.report.samples_alone || page.samples.is_empty() {
        return None;
    }
    let (start, end) = page.time();
    let window = Window::covering(start, end.max(start + 1), BUCKETS / 2);
    let count = page.sample_row_count(SampleView::Code).min(SAMPLE_ROWS) as u32;
    let tracks: Vec<u32> = (0..count).collect();
    let packed = page.packed_samples(SampleView::Code, &tracks, window, None);
    Some(PackedRows {
        window: BucketStart::of(page, window),
        buckets: window.count,
        tracks,
        left_out_tracks: None,
        data: STANDARD.encode(deflated(&planes(&packed))),
    })
}

/// First bytes of all numbers, then second ones, and so on: like bytes together compress better.
fn planes(packed: &[u8]) -> Vec<u8> {
    (0..4).flat_map(|byte| packed.iter().skip(byte).step_by(4).copied()).collect()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Threads in each state over the run: `[bucket][state]`, in thousandths of a thread.
fn stack(page: &Page) -> StackedStates {
    let (start, end) = page.time();
    let window = Window::covering(start, end.max(start + 1), 256);
    let workers: Vec<ThreadIndex> = page.execution.workers().map(|(index, _)| index).collect();
    let sums = page.timeline.breakdown(&page.execution, &workers, window);
    let width = (window.end() - window.start()) as f64 / f64::from(window.count);
    let thousandths = |ns: &u64| (*ns as f64 / width * 1000.0).round() as u64;
    StackedStates {
        window: BucketStart::of(page, window),
        buckets: window.count,
        states: State::ALL.len(),
        workers: workers.len(),
        data: sums.iter().flatten().map(thousandths).collect(),
    }
}

/// Buckets of rows that are numbers.
const NUMBERS: u32 = 256;

/// Number of threads that run tasks of each type: `[bucket][type]`, in thousandths of a thread.
fn types(page: &Page) -> StackedTypes {
    let (start, end) = page.time();
    let window = Window::covering(start, end.max(start + 1), NUMBERS);
    let width = (window.end() - window.start()) as f64 / f64::from(window.count);
    let shares = page.type_rows().shares(&page.execution, window);
    StackedTypes {
        window: BucketStart::of(page, window),
        buckets: window.count,
        labels: page.type_labels(),
        data: shares.iter().map(|ns| (*ns as f64 / width * 1000.0).round() as u64).collect(),
    }
}

/// Counters at the same places.
fn counters(page: &Page) -> Vec<CounterBuckets> {
    let (start, end) = page.time();
    let window = Window::covering(start, end.max(start + 1), NUMBERS);
    let rows = CounterKind::all(page).into_iter().take(COUNTERS).map(|kind| CounterBuckets {
        window: Some(BucketStart::of(page, window)),
        ..counter_buckets(page, kind, window)
    });
    rows.collect()
}

/// Activity of the threads around each finding's worst instance: exact sections, or, if there are many,
/// intervals labelled with their longest state.
fn instances(page: &Page) -> Vec<InstanceSections> {
    let base = page.start();
    let rows = page.instances.iter().map(|instance| {
        let margin = ((instance.end - instance.start) / 8).max(1);
        let (from, to) =
            (instance.start.saturating_sub(margin).max(base), (instance.end + margin).min(page.time().1));
        let tracks = tracks_of(&page.execution, instance);
        let exact: Vec<Vec<Stretch>> =
            tracks.iter().map(|track| exact_stretches(page, *track, from, to)).collect();
        let whole = exact.iter().map(Vec::len).sum::<usize>() <= INSTANCE_SECTIONS;
        let stretches = if whole {
            exact
        } else {
            tracks.iter().map(|track| dominant_stretches(page, *track, from, to)).collect()
        };
        let doubts = page.execution.uncertain.iter().filter(|part| part.start < to && part.end > from);
        let doubts: Vec<_> = doubts.collect();
        let rows = tracks.iter().zip(stretches).map(|(track, row)| {
            let since = |at: u64| at.clamp(from, to) - base;
            let sections = row.into_iter().map(|(start, end, state)| (since(start), since(end), state));
            let track_doubts = doubts.iter().filter(|part| part.thread == *track).take(INSTANCE_SECTIONS);
            let uncertain = track_doubts.map(|part| (since(part.start), since(part.end)));
            // With its name: a filter may leave it out of the lists, and still it is to blame.
            let thread = &page.execution.threads[track.index()];
            InstanceTrack {
                track: track.0,
                tid: thread.tid,
                name: thread.name.to_string(),
                kind: thread.kind.name(),
                worker: thread.worker,
                sections: sections.collect(),
                uncertain: uncertain.collect(),
            }
        });
        InstanceSections {
            finding: instance.finding.clone(),
            from: from - base,
            to: to - base,
            start: instance.start - base,
            end: instance.end - base,
            whole,
            tracks: rows.collect(),
        }
    });
    rows.collect()
}

/// The thread of an instance, and other workers of its process: those that wait in its middle before those that work, and
/// those that are not there last.
fn tracks_of(execution: &Execution, instance: &Instance) -> Vec<ThreadIndex> {
    let process = execution.threads[instance.thread.index()].process;
    let middle = instance.start.midpoint(instance.end);
    let rank = |thread: &Thread| match thread.track.row_at(middle) {
        Some(row) if !thread.track.states().at(row).is_useful() => 0,
        Some(_) => 1,
        None => 2,
    };
    let others = execution.workers().filter(|(t, row)| row.process == process && *t != instance.thread);
    let mut others: Vec<(u8, ThreadIndex)> = others.map(|(index, row)| (rank(row), index)).collect();
    others.sort_unstable();
    others.truncate(INSTANCE_TRACKS - 1);
    others.sort_unstable_by_key(|(_, index)| *index);
    std::iter::once(instance.thread).chain(others.into_iter().map(|(_, index)| index)).collect()
}

/// Sections of a track in a range, split by off-CPU intervals; stops at the limit for exact drawing.
fn exact_stretches(page: &Page, track: ThreadIndex, from: u64, to: u64) -> Vec<Stretch> {
    let starts = page.execution.threads[track.index()].track.starts();
    let first = starts.partition_point(|start| start <= from).saturating_sub(1);
    let last = starts.partition_point(|start| start < to).max(first);
    let spans = page.execution.cut_spans_of_rows(track, first..last).map(|cut| cut.span);
    let there = spans.filter(|s| s.end > from).take_while(|s| s.start < to).take(INSTANCE_SECTIONS + 1);
    there.map(|s| (s.start, s.end, s.section.state as u8)).collect()
}

/// Neighbouring buckets in which a track was mostly in one state, joined; out of CPU too.
fn dominant_stretches(page: &Page, track: ThreadIndex, from: u64, to: u64) -> Vec<Stretch> {
    let window = Window::covering(from, to, 400);
    let width = 1_u64 << window.width_log2;
    let mut stretches: Vec<Stretch> = Vec::new();
    for (number, sums) in page.timeline.breakdown(&page.execution, &[track], window).iter().enumerate() {
        let start = window.start() + number as u64 * width;
        // The lower number of equals, as everywhere.
        let Some(state) = (0..sums.len()).rev().max_by_key(|state| sums[*state]).filter(|s| sums[*s] > 0)
        else {
            continue;
        };
        match stretches.last_mut() {
            Some(last) if usize::from(last.2) == state && last.1 == start => last.1 = start + width,
            _ => stretches.push((start, start + width, state as u8)),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::OsSource;
    use taskscope_session::Session;
    use taskscope_testkit::synthetic::{Shape, execution};

    #[test]
    fn those_that_wait_are_shown_beside_an_instance_before_others() {
        let shape = Shape { threads: 64, team: 64, processes_of_node: 1, events: 20_000, seed: 5 };
        let execution = execution(shape);
        let thread = ThreadIndex(40);
        let is_useful = |index: ThreadIndex, at: u64| {
            let track = &execution.threads[index.index()].track;
            track.row_at(at).map(|row| track.states().at(row).is_useful())
        };
        let all: Vec<ThreadIndex> =
            execution.workers().map(|(index, _)| index).filter(|t| *t != thread).collect();
        let (start, end) = execution.range();
        let mut some_are_shown = 0;
        for k in 1..100 {
            let at = start + (end - start) * k / 100;
            let instance = Instance { finding: "F1".into(), thread, start: at - 1, end: at + 1 };
            let tracks = tracks_of(&execution, &instance);
            assert_eq!((tracks.len(), tracks[0]), (INSTANCE_TRACKS, thread));
            assert!(tracks[1..].is_sorted());
            let waiting =
                |of: &[ThreadIndex]| of.iter().filter(|t| is_useful(**t, at) == Some(false)).count();
            assert_eq!(waiting(&tracks[1..]), waiting(&all).min(INSTANCE_TRACKS - 1), "at {at}");
            some_are_shown += usize::from(waiting(&all) > 0);
        }
        assert!(some_are_shown > 0);
    }

    #[test]
    fn stretches_of_many_sections_have_the_state_of_most_of_their_time() {
        let shape = Shape { threads: 4, team: 4, processes_of_node: 1, events: 20_000, seed: 3 };
        let mut execution = execution(shape);
        let thread = ThreadIndex(1);
        let (start, end) = execution.range();
        let third = (end - start) / 3;
        execution.add_off_cpu(thread, OsSource::Switches, &[(start + third, start + 2 * third)], &[]);
        execution.attribute_system_time();
        let session = Session::in_memory("synthetic.trace", execution);
        let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
        let page = Page::new(session, &analysis, &problems);
        let stretches = dominant_stretches(&page, thread, start, end);
        let off = State::OutOfCpu as u8;
        assert!(stretches.iter().any(|(.., state)| *state == off));
        assert!(stretches.iter().any(|(.., state)| *state != off));
        for (from, to, state) in stretches {
            let mut sums = [0_u64; State::ALL.len()];
            for span in page.execution.spans_of_run(thread) {
                sums[span.section.state as usize] += span.end.min(to).saturating_sub(span.start.max(from));
            }
            let most = sums.iter().copied().max().unwrap_or(0);
            // If each of several buckets has the state as its longest, so has their union.
            assert!(sums[usize::from(state)] * State::ALL.len() as u64 >= most && most > 0);
            let is_one = to - from == 1 << Window::covering(start, end, 400).width_log2;
            assert!(!is_one || sums[usize::from(state)] == most, "{from} {to} {state}");
        }
    }
}
