//! `taskscope view`: the local viewer.

use crate::ignored_signals::IgnoredSignals;
use crate::messages::Failure;
use crate::newest::{UNNAMED, choose};
use crate::opening::parse_range;
use crate::verbs::run_sets::side_of;
use crate::watch::Watch;
use anstyle::Style;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use taskscope_session::cache::Key;
use taskscope_session::selection::Selection;
use taskscope_terminal::Shown;
use taskscope_view::comparison::Comparison;
use taskscope_view::format::{self, shell_word};
use taskscope_view::page::Page;
use taskscope_view::server::Viewer;
use taskscope_view::source_files::SourceRoots;

/// Show a recorded run in a browser: a timeline at any zoom, served to this machine only.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory [default: the newest in the working directory].
    #[arg(value_name = "TRACE", default_value = UNNAMED, hide_default_value = true)]
    trace: PathBuf,
    /// Compare with this later run: TRACE is the run before.
    #[arg(value_name = "AFTER", conflicts_with_all = ["filter", "range"])]
    after: Option<PathBuf>,
    /// Listen on this port [default: one that follows from the trace's path, or any free one].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Also open a browser.
    #[arg(long)]
    open: bool,
    /// Dim sections that do not match this filter, such as 'state=barrier and duration>1ms' (docs/view.md).
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// Start with this time range, such as 1.5s..2s or 10%..20%.
    #[arg(long, value_name = "BEGIN..END")]
    range: Option<String>,
    /// Search source files below this directory too, besides the working directory; may be repeated.
    #[arg(long, value_name = "DIR")]
    source_path: Vec<PathBuf>,
    /// Do not read or write a cache beside the trace.
    #[arg(long)]
    no_cache: bool,
}

/// Traces with fewer events open fast enough without a cache.
const CACHED_EVENTS: u64 = 1_000_000;

/// Serves until `^C`.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    if let Some(after) = &args.after {
        return run_of_two(&args, after, begun);
    }
    choose(&mut args.trace)?;
    let range = parse_range(args.range.as_deref())?;
    let key = if args.no_cache { None } else { Key::of(&args.trace) };
    let stored = key.as_ref().and_then(|key| Page::stored(&args.trace, key));
    let is_stored = stored.is_some();
    let mut watch = None;
    let page = match stored {
        Some(page) => page,
        None => {
            let watch = watch.insert(Watch::start());
            let session = super::open_soon(&args.trace, watch)?;
            watch.stage("analysing, building levels of detail");
            Page::analysed(session)
        }
    };
    if let Some(problem) = args.filter.as_deref().and_then(|filter| page.filter_problem(filter)) {
        return Err(Failure::new("cannot understand --where")
            .why(problem)
            .remedy("--where 'state=barrier and duration>1ms' (see docs/view.md)")
            .into());
    }
    let (from, to) = range.resolve(page.length() as i64);
    if args.range.is_some() && (from >= page.length() as i64 || to.max(0) <= from.max(0)) {
        let what = if to <= from { "--range is empty" } else { "--range is after the end of the run" };
        return Err(Failure::new(what)
            .why(format!("the run takes {}", format::time(page.length())))
            .remedy("--range 10%..20%")
            .into());
    }
    let opened_at = fragment(&args, (from, to), page.length());
    let events = page.report.events;
    let mut page = page;
    if let Some(key) = &key {
        page.keep_views(key.clone());
    }
    page.look_for_sources(source_roots(&args)?);
    let page = Arc::new(page);
    let stop = Arc::new(AtomicBool::new(false));
    // The cache has no waits of threads for each other: a page without them would lack what the first one had.
    let is_whole = page.execution.thread_waits.waits.is_empty();
    let keeper = key.filter(|_| !is_stored && is_whole && events >= CACHED_EVENTS);
    let interrupted = page.clone();
    let keeper = keeper.and_then(|key| keep(page.clone(), args.trace.clone(), key, stop.clone()));
    let viewer = start(page, &args).map_err(|error| cannot_start(&args, &error))?;
    let subject = format!("{}: {}", format::path(&args.trace), format::short_counted(events, "event"));
    serve(&args, &viewer, watch, (&subject, &opened_at, begun))?;
    // Half a cache is none: its writer takes it away.
    stop.store(true, Ordering::Relaxed);
    interrupted.stop();
    if let Some(keeper) = keeper {
        let _ = keeper.join();
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves a comparison until `^C`.
fn run_of_two(args: &Args, after: &Path, begun: Instant) -> anyhow::Result<ExitCode> {
    let selection = Selection::default();
    let (before, after) = (side_of(&args.trace, &selection)?, side_of(after, &selection)?);
    let comparison = Comparison::of(&before, &after);
    let subject = format!("{} and {}", format::path(&args.trace), format::path(Path::new(&after.name)));
    let (Some(mut first), Some(mut second)) = (before.shown, after.shown) else {
        let (before, after) = (shell_word(&args.trace), shell_word(Path::new(&after.name)));
        return Err(Failure::new("a side of the comparison has no timeline")
            .why("profiles and imported task graphs have sums only")
            .remedy(format!("taskscope report --html comparison.html --compare {before} {after}"))
            .into());
    };
    let sources = source_roots(args)?;
    first.page.look_for_sources(sources.clone());
    second.page.look_for_sources(sources);
    let pages = [Arc::new(first.page), Arc::new(second.page)];
    let viewer = Viewer::start_of_two(&comparison, pages.clone(), args.port)
        .map_err(|error| cannot_start(args, &error))?;
    serve(args, &viewer, None, (&subject, "", begun))?;
    pages.iter().for_each(|page| page.stop());
    Ok(ExitCode::SUCCESS)
}

/// Directories of sources: the named ones, then the working directory.
fn source_roots(args: &Args) -> anyhow::Result<SourceRoots> {
    if let Some(path) = args.source_path.iter().find(|path| !path.is_dir()) {
        let failure = Failure::new(format!("cannot search sources below {}", format::path(path)));
        return Err(failure.why("it is not a directory").into());
    }
    let here = std::env::current_dir().ok();
    Ok(SourceRoots::of(args.source_path.iter().cloned().chain(here)))
}

/// Ports of viewers, below those that systems give to connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Starts the viewer on the chosen port, else on the one that follows from the trace's path, so that links to the run still work
/// when it is viewed again; if that is taken, on any free one.
fn start(page: Arc<Page>, args: &Args) -> std::io::Result<Viewer> {
    if args.port != 0 {
        return Viewer::start(page, args.port);
    }
    let mut hasher = DefaultHasher::new();
    args.trace.canonicalize().unwrap_or_else(|_| args.trace.clone()).hash(&mut hasher);
    let port = PORTS.start + (hasher.finish() % PORTS.len() as u64) as u16;
    Viewer::start(page.clone(), port).or_else(|_| Viewer::start(page, 0))
}

fn cannot_start(args: &Args, error: &std::io::Error) -> Failure {
    let failure = Failure::new("cannot start the viewer").why(error.to_string());
    if args.port == 0 { failure } else { failure.remedy("leave --port out        (takes any free port)") }
}

/// Prints the address of what is viewed, and waits for `^C`. `opened_at` is the part of the address that selects the first view.
fn serve(
    args: &Args,
    viewer: &Viewer,
    watch: Option<Watch>,
    (subject, opened_at, begun): (&str, &str, Instant),
) -> anyhow::Result<()> {
    let interrupt = viewer.interrupt(IgnoredSignals::ending().map(|signal| signal as i32))?;
    // Only now, so that no `^C` falls between the two.
    if let Some(watch) = watch {
        watch.hand_over();
    }
    let port = viewer.port();
    let address = viewer.address() + opened_at;
    let dim = Style::new().dimmed();
    let took = format::time(begun.elapsed().as_nanos() as u64);
    let mut out = Shown::on(anstream::AutoStream::auto(std::io::stderr().lock()));
    // stderr may be closed, but `--open` may have opened a browser.
    let _ = writeln!(
        out,
        "viewing {subject}, ready in {took}\n  {address}\n  \
         {dim}from another machine: ssh -L {port}:127.0.0.1:{port} {}, then open the same address there; ^C ends the viewer{dim:#}",
        host_name(),
    );
    let _ = out.flush();
    drop(out);
    let redirect = args.open.then(|| open_browser(&address)).flatten();
    interrupt.wait();
    drop(redirect);
    Ok(())
}

/// The query of the address that selects the first view.
fn fragment(args: &Args, (from, to): (i64, i64), length: u64) -> String {
    let mut parts = Vec::new();
    if args.range.is_some() {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        parts.push(format!("from={}&to={}", from.max(0), to.min(length)));
    }
    if let Some(filter) = &args.filter {
        let escaped: String = filter.bytes().map(|byte| format!("%{byte:02x}")).collect();
        parts.push(format!("where={escaped}"));
    }
    if parts.is_empty() { String::new() } else { format!("#{}", parts.join("&")) }
}

/// Writes the cache while the viewer already answers, unless the trace has changed meanwhile.
fn keep(page: Arc<Page>, trace: PathBuf, key: Key, stop: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    let write = move || {
        if Key::of(&trace).as_ref() != Some(&key) {
            return;
        }
        if let Err(error) = page.store(&trace, &key, &stop)
            && !stop.load(Ordering::Relaxed)
        {
            eprintln!("note: the next opening will take as long: no cache could be written ({error})");
        }
    };
    // If the thread cannot start, no cache is written.
    std::thread::Builder::new().spawn(write).ok()
}

fn host_name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| "HOST".to_string())
}

/// A page that leads to the viewer, readable by its owner alone, removed on drop. All users of the machine can read
/// command lines, and the address has the token.
struct Redirect(PathBuf);

impl Redirect {
    fn to(address: &str) -> std::io::Result<Redirect> {
        let directory = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let directory = directory.unwrap_or_else(std::env::temp_dir);
        let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let path = directory.join(format!("taskscope-view-{}-{since_1970}.html", std::process::id()));
        // `create_new` follows no links.
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let redirect = Redirect(path);
        let address = address.replace('&', "&amp;").replace('"', "&quot;");
        writeln!(
            file,
            "<!doctype html>\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<a href=\"{address}\">taskscope view</a>"
        )?;
        Ok(redirect)
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Starts a browser, and reports a failure to start, which may show only after a while. The browser reads the returned
/// page.
fn open_browser(address: &str) -> Option<Redirect> {
    let failed = |why: String| {
        // stderr may be closed.
        let _ = writeln!(std::io::stderr(), "cannot open a browser (xdg-open {why}); open the address above");
    };
    let redirect = match Redirect::to(address) {
        Ok(redirect) => redirect,
        Err(error) => {
            failed(format!("has no page to open: {error}"));
            return None;
        }
    };
    let mut command = Command::new("xdg-open");
    // Out of this group, so that `^C` ends the viewer and not the browser.
    command
        .arg(&redirect.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    match command.spawn() {
        Err(error) => failed(format!("cannot be started: {error}")),
        Ok(mut child) => {
            let wait = move || match child.wait() {
                Ok(status) if !status.success() => failed(format!("ended with {status}")),
                _ => {}
            };
            // If the thread cannot start, the result is not reported.
            let _ = std::thread::Builder::new().spawn(wait);
        }
    }
    Some(redirect)
}
