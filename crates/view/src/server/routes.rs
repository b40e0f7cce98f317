//! Routes of the viewer's requests.

use super::guard::{self, Guard};
use super::query::{Query, Refused, ViewOf, refused};
use crate::comparison::Comparison;
use crate::html;
use crate::page::{
    AssemblyFacts, Bars, CommunicationMatrix, CounterBuckets, CounterKind, Direction, Flows, Found,
    InstanceOf, MAX_NOTES_BYTES, MAX_SLICE_BYTES, Matches, ModelFamilies, NestedList, NoteFile,
    OperationFacts, Overview, Page, Position, RangeTimes, SampleFacts, SampleView, SearchTotals,
    SectionFacts, ShownList, ShownView, SliceError, SourceFacts, SourceOf, TaskFacts, TaskQuery, TypeFacts,
    ValueFacts, counter_buckets, packed_model_rows, packed_rows_with, stacked_rows,
};
use crate::report_json::Report;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use taskscope_session::instrumentation::{DrawnName, DrawnView};
use taskscope_session::model_views::{KeptView, ViewName};
use tokio::runtime::{Handle, RuntimeFlavor};

type Shared = State<Arc<Page>>;

/// Answers in JSON by address below `/api`; null if nothing is found. `rows`, `stack`, `code`, `types`,
/// `slice` and `page` are answered in bytes.
#[derive(JsonSchema)]
#[schemars(rename = "taskscope-viewer/1")]
#[expect(dead_code, reason = "names the answers for the schema")]
pub struct Answers<'p> {
    /// The data for the first drawing of a page.
    overview: Overview<'p>,
    /// Names of the rows by task type.
    type_names: Vec<String>,
    /// Named sections of a window.
    bars: Bars,
    /// All matches of a search.
    totals: SearchTotals,
    /// Arrows of a part of the time.
    flows: Flows,
    /// Communication between processes in a part of the time.
    matrix: CommunicationMatrix,
    /// A counter in a window.
    counter: CounterBuckets,
    /// A section of a thread, an operation of a device queue, code by samples, or a value of a view.
    section: Option<SectionAnswer>,
    /// Whether there is something to highlight.
    filter: bool,
    /// Views of models.
    models: ModelFamilies,
    /// Views of the program's instrumentation, or one of them.
    shown: ShownAnswer,
    /// Rows of nested sections, and recorded counters.
    nested: NestedList,
    /// Progress of playing the trace for a view.
    progress: Progress,
    /// A row of task types, with one of its instances.
    #[serde(rename = "type")]
    type_of_row: Option<TypeFacts>,
    /// A task.
    task: TaskFacts,
    /// The nearest match.
    search: Option<Found>,
    /// Time in a range.
    range: RangeTimes,
    /// The report of a range.
    report: Report,
    /// The source of a section, of a file of the run, or the one with most time.
    source: Option<SourceFacts>,
    /// The machine code of a function with samples.
    assembly: AssemblyFacts,
    /// Notes on the run, also after a change: `PUT` adds those of the body, `DELETE` removes the one of `id`.
    notes: NoteFile,
}

/// Answers to `section`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "names the answers for the schema")]
enum SectionAnswer {
    Section(Box<SectionFacts>),
    Operation(OperationFacts),
    Samples(Box<SampleFacts>),
    Value(ValueFacts),
}

/// Answers to `shown`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "names the answers for the schema")]
enum ShownAnswer {
    List(ShownList),
    View(ShownView),
}

/// Progress of playing the trace for a view.
#[derive(Serialize, JsonSchema)]
struct Progress {
    /// The replayed fraction; null if no replay is running.
    playing: Option<f64>,
}

/// The viewer's addresses, behind the guard.
pub fn router(page: Arc<Page>, token: String) -> Router {
    guarded(Router::new().route("/", get(document)).nest("/api", api(page)), token, &["/"])
}

/// The addresses of a comparison, behind the guard: its page, and a viewer of each side below `/before/` and `/after/`.
pub fn router_of_two(comparison: &Comparison, pages: [Arc<Page>; 2], token: String) -> Router {
    let (text, policy) = html::compared_viewer(comparison);
    let first = async move || html_page(text, &policy);
    let [before, after] = pages;
    let addresses = Router::new()
        .route("/", get(first))
        .route("/before/", get(document))
        .nest("/before/api", api(before))
        .route("/after/", get(document))
        .nest("/after/api", api(after));
    // The first page has the comparison in it.
    guarded(addresses, token, &["/before/", "/after/"])
}

fn guarded(addresses: Router, token: String, open: &'static [&'static str]) -> Router {
    let guard = Guard { token: token.into(), open };
    addresses
        .fallback(async || (StatusCode::NOT_FOUND, "there is no such address\n"))
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
}

/// The requests for data of one run.
fn api(page: Arc<Page>) -> Router {
    Router::new()
        .route("/overview", get(|State(page): Shared| answer(page, None, |page, _| json(&page.overview()))))
        .route("/rows", get(|State(page): Shared, RawQuery(q)| bytes(page, q, rows)))
        .route("/stack", get(|State(page): Shared, RawQuery(q)| bytes(page, q, stack)))
        .route("/code", get(|State(page): Shared, RawQuery(q)| bytes(page, q, code)))
        .route("/counter", get(|State(page): Shared, RawQuery(q)| answer(page, q, counter)))
        .route("/bars", get(|State(page): Shared, RawQuery(q)| answer(page, q, bars)))
        .route("/flows", get(|State(page): Shared, RawQuery(q)| answer(page, q, flows)))
        .route("/matrix", get(|State(page): Shared, RawQuery(q)| answer(page, q, matrix)))
        .route("/section", get(|State(page): Shared, RawQuery(q)| answer(page, q, section)))
        .route("/filter", get(|State(page): Shared, RawQuery(q)| answer(page, q, filter)))
        .route("/slice", get(|State(page): Shared, RawQuery(q)| bytes(page, q, slice)))
        .route("/types", get(|State(page): Shared, RawQuery(q)| bytes(page, q, types)))
        .route(
            "/type_names",
            get(|State(page): Shared| answer(page, None, |page, _| json(&page.type_labels()))),
        )
        .route(
            "/models",
            get(|State(page): Shared| answer(page, None, |page, _| json(&page.model_families()))),
        )
        .route("/nested", get(|State(page): Shared| answer(page, None, |page, _| json(&page.nested_list()))))
        .route("/shown", get(|State(page): Shared, RawQuery(q)| answer(page, q, shown)))
        .route("/progress", get(|State(page): Shared| answer(page, None, progress)))
        .route("/type", get(|State(page): Shared, RawQuery(q)| answer(page, q, type_of_row)))
        .route("/task", get(|State(page): Shared, RawQuery(q)| answer(page, q, task)))
        .route("/search", get(|State(page): Shared, RawQuery(q)| answer(page, q, search)))
        .route("/totals", get(|State(page): Shared, RawQuery(q)| answer(page, q, totals)))
        .route("/range", get(|State(page): Shared, RawQuery(q)| answer(page, q, range)))
        .route("/source", get(|State(page): Shared, RawQuery(q)| answer(page, q, source)))
        .route("/assembly", get(|State(page): Shared, RawQuery(q)| answer(page, q, assembly)))
        .route("/report", get(|State(page): Shared, RawQuery(q)| answer(page, q, report)))
        .route("/page", get(|State(page): Shared, RawQuery(q)| bytes(page, q, page_of_range)))
        .route(
            "/notes",
            get(|State(page): Shared| answer(page, None, |page, _| json(&page.notes().map_err(no_notes)?)))
                .put(add_notes)
                .delete(|State(page): Shared, RawQuery(q)| answer(page, q, remove_note))
                .layer(DefaultBodyLimit::max(MAX_NOTES_BYTES as usize)),
        )
        .with_state(page)
}

/// The page itself: everything but the data.
async fn document() -> Response {
    let (text, policy) = html::viewer();
    html_page(text, &policy)
}

/// A page with its content-security policy.
fn html_page(text: String, policy: &str) -> Response {
    let mut response = axum::response::Html(text).into_response();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Answers with JSON, off the threads that wait for the network.
async fn answer(
    page: Arc<Page>,
    query: Option<String>,
    question: fn(&Page, &Query) -> Result<Vec<u8>, Refused>,
) -> Response {
    respond(run(page, query, question).await, "application/json")
}

/// The text of an answer; null if nothing is found.
fn json(answer: &impl Serialize) -> Result<Vec<u8>, Refused> {
    serde_json::to_vec(answer).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Answers with packed numbers.
async fn bytes(
    page: Arc<Page>,
    query: Option<String>,
    question: fn(&Page, &Query) -> Result<Vec<u8>, Refused>,
) -> Response {
    respond(run(page, query, question).await, "application/octet-stream")
}

async fn run(
    page: Arc<Page>,
    query: Option<String>,
    question: impl FnOnce(&Page, &Query) -> Result<Vec<u8>, Refused> + Send + 'static,
) -> Result<Vec<u8>, Refused> {
    let ask = move || question(&page, &Query::read(query.as_deref()));
    // The runtime has one thread only where no others can be made.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return ask();
    }
    let found = tokio::task::spawn_blocking(ask).await;
    found.unwrap_or_else(|_| {
        Err((StatusCode::INTERNAL_SERVER_ERROR, "this request failed; the viewer continues".to_string()))
    })
}

fn respond(found: Result<Vec<u8>, Refused>, kind: &'static str) -> Response {
    match found {
        Ok(bytes) => ([(header::CONTENT_TYPE, kind)], Bytes::from(bytes)).into_response(),
        Err((status, why)) => (status, format!("{why}\n")).into_response(),
    }
}

fn rows(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    match query.view()? {
        ViewOf::Threads(view) => {
            let tracks = query.tracks(page)?;
            let matches = highlighted(page, query)?;
            let window = query.window(page, tracks.len())?;
            Ok(packed_rows_with(page, view, &tracks, window, matches.as_deref()))
        }
        ViewOf::Devices => {
            let rows = query.rows(page.queues.len())?;
            let matches = highlighted(page, query)?;
            Ok(page.queues.packed(&rows, query.window(page, rows.len())?, matches.as_deref()))
        }
        ViewOf::Nested => {
            let nested = page.nested();
            let rows = query.rows(nested.view.rows.len())?;
            Ok(packed_model_rows(&nested.view, &rows, query.window(page, rows.len())?))
        }
        ViewOf::Samples(view) => {
            let rows = query.rows(page.sample_row_count(view))?;
            let matches = highlighted(page, query)?;
            Ok(page.packed_samples(view, &rows, query.window(page, rows.len())?, matches.as_deref()))
        }
        ViewOf::Model(name) => {
            let view = model_view(page, name)?;
            let rows = query.rows(view.rows.len())?;
            Ok(packed_model_rows(&view, &rows, query.window(page, rows.len())?))
        }
        ViewOf::Shown(name) => {
            let view = shown_view(page, name)?;
            let rows = query.rows(view.rows.len())?;
            Ok(packed_model_rows(&view.kept, &rows, query.window(page, rows.len())?))
        }
    }
}

/// The matches that `where=` requests to be flagged.
fn highlighted(page: &Page, query: &Query) -> Result<Option<Arc<Matches>>, Refused> {
    match query.text("where") {
        "" => Ok(None),
        text => match page.filter_problem(text) {
            Some(problem) => Err(refused(problem)),
            None => Ok(Some(page.matches(text))),
        },
    }
}

fn model_view(page: &Page, name: ViewName) -> Result<Arc<KeptView>, Refused> {
    page.model_view(name).ok_or_else(|| refused("this trace has no such view".to_string()))
}

fn shown_view(page: &Page, name: DrawnName) -> Result<Arc<DrawnView>, Refused> {
    page.shown_view(name).ok_or_else(|| refused("this trace has no such view".to_string()))
}

/// The available views of the program's instrumentation, or the rows of one view.
fn shown(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    match query.text("view") {
        "" => json(&page.shown_list()),
        name => {
            let known = name.parse().ok().and_then(|name| page.shown_view_facts(name));
            json(&known.ok_or_else(|| refused("this trace has no such view".to_string()))?)
        }
    }
}

fn progress(page: &Page, _query: &Query) -> Result<Vec<u8>, Refused> {
    json(&Progress { playing: page.playing() })
}

fn stack(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let tracks = query.tracks(page)?;
    Ok(stacked_rows(page, &tracks, query.window(page, tracks.len().max(27))?))
}

/// Threads by code, over rows of code by samples.
fn code(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let rows = query.rows(page.sample_row_count(SampleView::Code))?;
    Ok(page.stacked_code(&rows, query.window(page, rows.len().max(32))?))
}

fn counter(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let kind = CounterKind::named(page, query.text("name"))
        .ok_or_else(|| refused("there is no such counter".to_string()))?;
    json(&counter_buckets(page, kind, query.window(page, 1)?))
}

fn flows(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    json(&page.flows(query.number("from")?, query.number("to")?))
}

fn matrix(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    json(&page.communication_matrix(query.number("from")?, query.number("to")?))
}

/// The names of wide sections of threads; of other rows the page knows the names of values.
fn bars(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let ViewOf::Threads(view) = query.view()? else { return json(&Bars::default()) };
    let tracks = query.tracks(page)?;
    json(&page.bars(view, &tracks, query.window(page, tracks.len())?))
}

fn types(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    Ok(page.packed_types(query.window(page, page.type_rows().rows())?))
}

fn section(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let step = match query.text("step") {
        "" => None,
        "next" => Some(true),
        "previous" => Some(false),
        _ => return Err(refused("`step` is `next` or `previous`".to_string())),
    };
    let at = query.number("at")?;
    match query.view()? {
        ViewOf::Threads(_) => {
            let track = query.track(page, "track")?;
            json(&step.map_or_else(|| page.section_at(track, at), |later| page.neighbour(track, at, later)))
        }
        ViewOf::Devices => json(&page.operation(query.row(page.queues.len(), "track")?, at, step)),
        ViewOf::Nested => json(&page.nested_at(query.row(page.nested().view.rows.len(), "track")?, at, step)),
        ViewOf::Samples(view) => {
            let row = query.row(page.sample_row_count(view), "track")?;
            json(&page.sample_at(view, row, at, step))
        }
        ViewOf::Model(name) => {
            let row = query.row(model_view(page, name)?.rows.len(), "track")?;
            json(&page.value_at(name, row, at, step))
        }
        ViewOf::Shown(name) => {
            let row = query.row(shown_view(page, name)?.rows.len(), "track")?;
            json(&page.shown_at(name, row, at, step))
        }
    }
}

/// A row of task types, with the instance at a time or of a number.
fn type_of_row(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let slot = query.row(page.type_rows().rows(), "slot")?;
    let of = match query.text("number") {
        "" => InstanceOf::Time(query.number("at")?),
        _ => InstanceOf::Number(usize::try_from(query.number("number")?).unwrap_or(usize::MAX)),
    };
    json(&page.type_facts(slot, of))
}

fn task(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let number = if query.text("task").is_empty() { None } else { Some(query.number("task")?) };
    let at = if query.text("at").is_empty() { None } else { Some(query.number("at")?) };
    let pid = match query.text("pid") {
        "" => None,
        pid => Some(pid.parse().map_err(|_| refused("`pid` must be a whole number".to_string()))?),
    };
    if number.is_none() && at.is_none() {
        return Err(refused("`task` or `at` must be given".to_string()));
    }
    let found = page.find_tasks(&TaskQuery { number, pid, at });
    let task = found.first().and_then(|task| page.task(*task));
    json(&task.ok_or_else(|| (StatusCode::NOT_FOUND, "there is no such task".to_string()))?)
}

fn search(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let direction = match query.text("step") {
        "" | "next" => Direction::Next,
        "previous" => Direction::Previous,
        "first" => Direction::First,
        "last" => Direction::Last,
        _ => return Err(refused("`step` is `next`, `previous`, `first` or `last`".to_string())),
    };
    if let Some(problem) = page.filter_problem(query.text("text")) {
        return Err(refused(problem));
    }
    let at = query.number("at")?;
    let from = match query.view()? {
        _ if query.text("track").is_empty() => Position::from(at),
        ViewOf::Devices => Position::on_lane(page, at, query.row(page.queues.len(), "track")?),
        ViewOf::Samples(view) => {
            let row = query.row(page.sample_row_count(view), "track")?;
            Position::on_code(page, at, row)
        }
        _ => Position::on_track(at, query.track(page, "track")?),
    };
    json(&page.search(query.text("text"), from, direction))
}

fn totals(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    match page.filter_problem(query.text("text")) {
        Some(problem) => Err(refused(problem)),
        None => json(&page.search_totals(query.text("text"))),
    }
}

/// Whether a text is a filter or words that can be looked for.
fn filter(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    json(&highlighted(page, query)?.is_some())
}

fn slice(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let (from, to) = part(query)?;
    page.slice_archive(from, to, "slice.trace").map_err(|error| match error {
        SliceError::Io(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("the slice cannot be made: {error}"))
        }
        SliceError::Empty => {
            (StatusCode::NOT_FOUND, "no thread lives in this range, and a slice is of threads".to_string())
        }
        SliceError::TooLarge => {
            let most = MAX_SLICE_BYTES >> 20;
            (StatusCode::PAYLOAD_TOO_LARGE, format!("the slice has more than {most} MiB: use the command"))
        }
    })
}

fn range(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let (from, to) = (query.number("from")?, query.number("to")?);
    if from > to {
        return Err(refused("`from` lies after `to`".to_string()));
    }
    json(&page.range(&query.tracks(page)?, from, to))
}

fn source(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let of = match query.text("file") {
        "" if query.text("track").is_empty() => SourceOf::Hottest,
        "" => SourceOf::Section(query.track(page, "track")?, query.number("at")?),
        file if query.text("line").is_empty() => SourceOf::File(file.to_string()),
        file => SourceOf::Line(file.to_string(), u32::try_from(query.number("line")?).unwrap_or(u32::MAX)),
    };
    json(&page.source(&of, query.number("from")?, query.number("to")?))
}

/// The code of the function with most samples, of a file, a line of it, or the one of a number in the list.
fn assembly(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let number = |name: &str| match query.text(name) {
        "" => Ok(None),
        _ => query.number(name).map(Some),
    };
    let file = Some(query.text("file")).filter(|file| !file.is_empty());
    let line = number("line")?.and_then(|line| u32::try_from(line).ok());
    let function = number("function")?.and_then(|function| usize::try_from(function).ok());
    json(&page.assembly(file, line, function))
}

/// The report of a range, for which the trace is replayed.
fn report(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let (from, to) = part(query)?;
    json(&*page.report_of_range(from, to).map_err(no_part)?)
}

/// The HTML report of a range.
fn page_of_range(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    let (from, to) = part(query)?;
    Ok(html::report(&page.page_of_range(from, to).map_err(no_part)?).into_bytes())
}

/// A range with time in it.
fn part(query: &Query) -> Result<(u64, u64), Refused> {
    match (query.number("from")?, query.number("to")?) {
        (from, to) if from < to => Ok((from, to)),
        _ => Err(refused("`from` must lie before `to`".to_string())),
    }
}

async fn add_notes(State(page): Shared, body: Bytes) -> Response {
    let add = move |page: &Page, _: &Query| {
        let notes = NoteFile::parse(&body).map_err(refused)?;
        json(&page.add_notes(notes).map_err(no_notes)?)
    };
    respond(run(page, None, add).await, "application/json")
}

fn remove_note(page: &Page, query: &Query) -> Result<Vec<u8>, Refused> {
    json(&page.remove_note(query.text("id")).map_err(no_notes)?)
}

fn no_notes(why: String) -> Refused {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("notes cannot be kept: {why}"))
}

fn no_part(why: String) -> Refused {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("the part cannot be reported: {why}"))
}
