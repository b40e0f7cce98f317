//! The question part of an address, read with limits.

use crate::page::{NESTED, Page, SampleView, View};
use axum::http::StatusCode;
use std::collections::HashMap;
use taskscope_execution::ThreadIndex;
use taskscope_execution::lod::Window;
use taskscope_session::instrumentation::DrawnName;
use taskscope_session::model_views::ViewName;

/// The reason why a request is not answered.
pub type Refused = (StatusCode, String);

/// Buckets of one answer, over all its rows, at most.
const MAX_BUCKETS: u64 = 8 << 20;

/// The subject of a view, which defines its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewOf {
    /// Threads, as the execution has them.
    Threads(View),
    /// Rows of a model's view.
    Model(ViewName),
    /// States of instrumented threads or tasks.
    Shown(DrawnName),
    /// Lanes of device queues.
    Devices,
    /// Levels of nested sections.
    Nested,
    /// Code by samples.
    Samples(SampleView),
}

/// The parameters of a request.
pub struct Query(HashMap<String, String>);

impl Query {
    /// Parses `name=value&…`. Unknown names are rejected by their users, not here.
    pub fn read(text: Option<&str>) -> Query {
        let pairs = form_urlencoded::parse(text.unwrap_or("").as_bytes());
        Query(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The text of a parameter; empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A whole number that must be there.
    pub fn number(&self, name: &str) -> Result<u64, Refused> {
        let text = self.text(name);
        text.parse()
            .map_err(|_| refused(format!("`{name}` must be a whole number, not `{}`", shortened(text))))
    }

    /// The view of a parameter; states if absent.
    pub fn view(&self) -> Result<ViewOf, Refused> {
        match self.text("view") {
            "" => Ok(ViewOf::Threads(View::State)),
            "devices" => Ok(ViewOf::Devices),
            NESTED => Ok(ViewOf::Nested),
            name => View::named(name)
                .map(ViewOf::Threads)
                .or_else(|| SampleView::named(name).map(ViewOf::Samples))
                .or_else(|| name.parse().ok().map(ViewOf::Model))
                .or_else(|| name.parse().ok().map(ViewOf::Shown))
                .ok_or_else(|| refused("there is no such view".to_string())),
        }
    }

    /// The track of a parameter.
    pub fn track(&self, page: &Page, name: &str) -> Result<ThreadIndex, Refused> {
        self.row(page.tracks(), name).map(ThreadIndex)
    }

    /// The row of a parameter, of so many.
    pub fn row(&self, rows: usize, name: &str) -> Result<u32, Refused> {
        let number = self.number(name)?;
        match u32::try_from(number) {
            Ok(row) if (row as usize) < rows => Ok(row),
            _ => Err(refused(format!("there is no track {number}"))),
        }
    }

    /// The tracks of `tracks=0-63,70`; all tracks if absent.
    pub fn tracks(&self, page: &Page) -> Result<Vec<ThreadIndex>, Refused> {
        if self.text("tracks").is_empty() {
            return Ok(page.all_tracks());
        }
        Ok(self.rows(page.tracks())?.into_iter().map(ThreadIndex).collect())
    }

    /// The rows of `tracks=0-63,70`, of so many; all if absent.
    pub fn rows(&self, count: usize) -> Result<Vec<u32>, Refused> {
        let text = self.text("tracks");
        if text.is_empty() {
            return Ok((0..count as u32).collect());
        }
        let bad = |part: &str| refused(format!("`{}` is not a range of tracks", shortened(part)));
        let mut tracks = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.parse().map_err(|_| bad(part))?;
            let last: u32 = last.parse().map_err(|_| bad(part))?;
            if first > last || last as usize >= count || tracks.len() > count {
                return Err(bad(part));
            }
            tracks.extend(first..=last);
        }
        Ok(tracks)
    }

    /// The window of `level`, `first` and `count`, for so many rows. Its buckets count from the one
    /// that holds the start of the trace.
    pub fn window(&self, page: &Page, rows: usize) -> Result<Window, Refused> {
        let level = self.number("level")?;
        let count = self.number("count")?;
        if level > 63 {
            return Err(refused("`level` is at most 63".to_string()));
        }
        if count == 0 || count.saturating_mul(rows.max(1) as u64) > MAX_BUCKETS {
            return Err(refused(format!("ask for 1 to {MAX_BUCKETS} buckets at once")));
        }
        let zero = page.start() >> level;
        let first = zero.checked_add(self.number("first")?);
        match first.filter(|first| first.leading_zeros() as u64 >= level) {
            Some(first) => Ok(Window { first, count: count as u32, width_log2: level as u8 }),
            None => Err(refused("`first` lies beyond the end of time".to_string())),
        }
    }
}

/// A question that cannot be answered.
pub fn refused(why: String) -> Refused {
    (StatusCode::BAD_REQUEST, why)
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
