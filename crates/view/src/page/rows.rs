//! Rows of buckets, packed for a browser.

use super::Page;
use super::matches::Matches;
use super::packing::packed;
use rayon::prelude::*;
use taskscope_execution::lod::{Bucket, Window};
use taskscope_execution::{PlaceKind, Spans, State, ThreadIndex, TypeIndex};

/// The attribute that colours a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// The state, dominant in the bucket.
    State,
    /// The task type or construct of the longest section.
    Type,
    /// The task of the longest section.
    Task,
    /// The parallel region of the longest section.
    Region,
    /// The place in the code of the longest section.
    Place,
    /// The object of the longest section's wait.
    Object,
}

impl View {
    /// All views.
    pub const ALL: [View; 6] = [View::State, View::Type, View::Task, View::Region, View::Place, View::Object];

    /// The name in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            View::State => "state",
            View::Type => "type",
            View::Task => "task",
            View::Region => "region",
            View::Place => "place",
            View::Object => "object",
        }
    }

    /// The words for a person.
    pub const fn label(self) -> &'static str {
        match self {
            View::State => "state",
            View::Type => "task type",
            View::Task => "task",
            View::Region => "parallel region",
            View::Place => "code place",
            View::Object => "waits for",
        }
    }

    /// The view of a name.
    pub fn named(name: &str) -> Option<View> {
        View::ALL.into_iter().find(|view| view.name() == name)
    }

    /// The value of the longest section of each bucket, little-endian.
    fn values(self, page: &Page, track: ThreadIndex, buckets: &[Bucket]) -> Vec<u8> {
        let Some(thread) = page.execution.threads.get(track.index()) else { return Vec::new() };
        let (spans, sections) = (thread.track.rows(), thread.track.len());
        let types: &[TypeIndex] = &page.execution.tasks.ty;
        let value = |bucket: &Bucket| match bucket.longest as usize {
            longest if longest < sections => self.value(types, &spans, longest),
            _ => 0,
        };
        // Task types have the numbers of their rows, and with them the colours.
        let slot = |index: u32| index.checked_sub(1).map_or(0, |ty| page.type_rows().slot(TypeIndex(ty)) + 1);
        let value = |bucket: &Bucket| if self == View::Type { slot(value(bucket)) } else { value(bucket) };
        let mut bytes = Vec::with_capacity(4 * buckets.len());
        bytes.extend(buckets.iter().flat_map(|bucket| value(bucket).to_le_bytes()));
        bytes
    }

    /// The value of a section, with these task types; 0 means none.
    fn value(self, types: &[TypeIndex], spans: &Spans<'_>, row: usize) -> u32 {
        let one_more = |index: u32| index.wrapping_add(1);
        let (state, place) = spans.activity_at(row);
        match self {
            View::State => state as u32 + 1,
            View::Task => one_more(spans.task_at(row).0),
            View::Region => one_more(spans.region_at(row).0),
            View::Object => one_more(spans.object_at(row).0),
            View::Type => match (state, place.kind()) {
                (State::Task | State::Worksharing, PlaceKind::Type(ty)) => one_more(ty.0),
                // A task that is none has no type.
                _ => types.get(spans.task_at(row).index()).map_or(0, |ty| one_more(ty.0)),
            },
            View::Place => match place.kind() {
                PlaceKind::Unknown => 0,
                PlaceKind::Site(site) => one_more(site.0).wrapping_mul(4) | 1,
                PlaceKind::Type(ty) => one_more(ty.0).wrapping_mul(4) | 2,
                PlaceKind::Gap(gap) => one_more(gap.0).wrapping_mul(4) | 3,
            },
        }
    }
}

/// Rows of buckets for some tracks, little-endian: all buckets track by track, then, unless the view
/// is of states, one value for each.
pub fn packed_rows(page: &Page, view: View, tracks: &[ThreadIndex], window: Window) -> Vec<u8> {
    packed_rows_with(page, view, tracks, window, None)
}

/// The same, with flags on the buckets that contain matches.
pub fn packed_rows_with(
    page: &Page,
    view: View,
    tracks: &[ThreadIndex],
    window: Window,
    matches: Option<&Matches>,
) -> Vec<u8> {
    let row = |track: &ThreadIndex| {
        let mut buckets = page.timeline.buckets(&page.execution, *track, window);
        if let Some(marks) = matches.and_then(|matches| matches.of(page, *track)) {
            marks.flag(window, &mut buckets);
        }
        let mut bytes = Vec::with_capacity(4 * buckets.len());
        bytes.extend(buckets.iter().flat_map(|bucket| packed(*bucket).to_le_bytes()));
        let values = if view == View::State { Vec::new() } else { view.values(page, *track, &buckets) };
        (bytes, values)
    };
    let rows: Vec<(Vec<u8>, Vec<u8>)> = tracks.par_iter().map(row).collect();
    let mut bytes =
        Vec::with_capacity(rows.iter().map(|(buckets, values)| buckets.len() + values.len()).sum());
    rows.iter().for_each(|(buckets, _)| bytes.extend_from_slice(buckets));
    rows.iter().for_each(|(_, values)| bytes.extend_from_slice(values));
    bytes
}

/// Thread-nanoseconds by state in every bucket, over some tracks: `[bucket][state]`, each a
/// little-endian 32-bit float of threads that were in the state on average.
pub fn stacked_rows(page: &Page, tracks: &[ThreadIndex], window: Window) -> Vec<u8> {
    let width = (window.end() - window.start()) as f64 / f64::from(window.count.max(1));
    let sums = page.timeline.breakdown(&page.execution, tracks, window);
    let mut bytes = Vec::with_capacity(sums.len() * State::ALL.len() * 4);
    for ns in sums.iter().flatten() {
        bytes.extend_from_slice(&((*ns as f64 / width) as f32).to_le_bytes());
    }
    bytes
}
