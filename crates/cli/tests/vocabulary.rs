//! Every name of a cause, a state, a blamed party or a pattern, in any output and in the documentation, is
//! one of `causes.toml`; so are the words for states in text.

mod common;

use common::{output, side_by_side, taskscope, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use taskscope_cause::{Blamed, Cause, Group, Pattern, State};
use taskscope_event::models::{openmp, wait};
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NO_MODULE, Profile, ROOT, Tree, key};
use taskscope_testkit::script::Script;
use taskscope_view::explain;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The kind that a name in a document must have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Cause,
    Blamed,
    Pattern,
    /// A state, or a sum of several in call paths: a group of states, or a blamed party.
    State,
}

impl Kind {
    /// The kind of a key's value.
    fn of(key: &str) -> Option<Kind> {
        Some(match key {
            "cause" => Kind::Cause,
            "blamed" => Kind::Blamed,
            "pattern" => Kind::Pattern,
            "state" | "blamed_state" | "wait" => Kind::State,
            _ => return None,
        })
    }

    /// The kind of the keys in a key's object.
    fn nested_in(key: &str) -> Option<Kind> {
        Some(match key {
            "causes" | "ready_work" => Kind::Cause,
            "states" | "victims" => Kind::State,
            _ => return None,
        })
    }

    fn has(self, name: &str) -> bool {
        match self {
            Kind::Cause => Cause::named(name).is_some(),
            Kind::Blamed => Blamed::named(name).is_some(),
            Kind::Pattern => Pattern::named(name).is_some(),
            Kind::State => {
                State::named(name).is_some() || Group::named(name).is_some() || Blamed::named(name).is_some()
            }
        }
    }
}

/// Columns of call paths.
const COLUMNS: [&str; 11] = [
    "time_ns",
    "work_ns",
    "blocked_ns",
    "runtime_ns",
    "out_of_cpu_ns",
    "waiting_ns",
    "blame_ns",
    "idleness_ns",
    "samples",
    "tasks",
    "task_time_ns",
];

/// Files, which have dots as causes do.
const FILES: [&str; 6] = ["cpu.max", "cpu.stat", "cpu.prv", "device.prv", "runtime.csv", "lock.trace.cache"];

/// Names in outputs, and the first place of each.
#[derive(Default)]
struct Names(BTreeMap<(Kind, String), String>, BTreeMap<String, String>);

impl Names {
    fn add(&mut self, kind: Kind, name: &str, place: &str) {
        self.0.entry((kind, name.to_owned())).or_insert_with(|| place.to_owned());
    }

    fn add_document(&mut self, document: &Value, place: &str) {
        match document {
            Value::Array(rows) => rows.iter().for_each(|row| self.add_document(row, place)),
            Value::Object(fields) => {
                // Causes of two runs are rows of numbers.
                if let (Some("cause"), Some(name)) =
                    (fields.get("group").and_then(Value::as_str), fields.get("name").and_then(Value::as_str))
                {
                    self.add(Kind::Cause, name, &format!("{place}, rows"));
                }
                for (key, value) in fields {
                    if let (Some(kind), Some(name)) = (Kind::of(key), value.as_str()) {
                        self.add(kind, name, &format!("{place}, {key}"));
                    }
                    if let (Some(kind), Some(keys)) = (Kind::nested_in(key), value.as_object()) {
                        keys.keys().for_each(|name| self.add(kind, name, &format!("{place}, {key}")));
                    }
                    if key == "groups" {
                        let groups = value.as_array().into_iter().flatten().filter_map(Value::as_str);
                        groups.for_each(|name| self.add(Kind::State, name, &format!("{place}, {key}")));
                    }
                    if let Some(state_name) = state_of_key(key) {
                        self.add(Kind::State, state_name, &format!("{place}, {key}"));
                    }
                    let is_metric = COLUMNS.contains(&key.as_str()) || key.starts_with("idle_");
                    if is_metric || state_of_key(key).is_some() {
                        self.1.entry(key.clone()).or_insert_with(|| place.to_owned());
                    }
                    self.add_document(value, place);
                }
            }
            _ => {}
        }
    }

    /// Words with a dot after a category are causes, wherever they are.
    fn add_text(&mut self, text: &str, place: &str) {
        for word in text.split(|c: char| !(c.is_ascii_lowercase() || "._-".contains(c))) {
            let word = word.trim_matches(|c| ".-_".contains(c));
            let Some((category, leaf)) = word.split_once('.') else { continue };
            let is_name = leaf.len() > 2 && !leaf.contains('_') && !FILES.contains(&word);
            if is_name && Cause::named(category).is_some_and(|cause| cause.category() == cause) {
                self.add(Kind::Cause, word, place);
            }
        }
    }

    /// Fails if names are not in the vocabulary, or have no explanation.
    fn check(&self) {
        let is_right =
            |kind: Kind, name: &str| kind.has(name) && explain::find(name).iter().any(|row| row.name == name);
        let wrong = self.0.iter().filter(|((kind, name), _)| !is_right(*kind, name));
        let wrong: Vec<String> =
            wrong.map(|((kind, name), place)| format!("{place}: {name} is no {kind:?}")).collect();
        let unexplained = self.1.iter().filter(|(key, _)| explain::find(key).is_empty());
        let wrong = wrong.into_iter().chain(unexplained.map(|(key, place)| format!("{place}: {key}")));
        let wrong: Vec<String> = wrong.collect();
        assert!(wrong.is_empty(), "not in causes.toml, or not explained:\n{}", wrong.join("\n"));
    }
}

/// The state or group in a key of sums: of metrics of waiting, of totals of profiles.
fn state_of_key(key: &str) -> Option<&str> {
    let metric_name = ["taken_", "given_", "shared_"].iter().find_map(|family| key.strip_prefix(family));
    let metric_name = metric_name.and_then(|rest| rest.strip_suffix("_ns")).filter(|rest| !rest.is_empty());
    metric_name.or_else(|| key.strip_prefix("state.")).or_else(|| key.strip_prefix("no_cpu."))
}

/// Stored traces, and those of the corpus beside the project.
fn traces(imported: &Path) -> Vec<PathBuf> {
    let below = |directory: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let corpus = root().join("../shared/corpus");
    let mut traces = below(root().join("crates/cli/tests/traces"));
    traces.extend(below(corpus.join("runtimes")).into_iter().map(|case| case.join("trace")));
    traces.extend(below(corpus.join("ovni")).into_iter().map(|case| case.join("ovni")));
    let mut cases = below(corpus.join("slo/cases"));
    cases.push(root().join("crates/analysis/tests/cases/chain-of-idle-workers.json"));
    cases.retain(|case| !case.ends_with("manifest.json"));
    let import = |(number, case): (usize, PathBuf)| {
        let trace = imported.join(number.to_string());
        assert!(output(taskscope().arg("import").arg(case).arg("-o").arg(&trace)).status.success());
        trace
    };
    traces.extend(side_by_side(cases.into_iter().enumerate().collect(), import));
    traces.retain(|trace| trace.is_dir());
    traces
}

/// A run of two threads that hangs: each waits for the lock of the other.
fn write_hang(root: &Path) {
    let mut script = Script::new(2, 1_000_000, 9_000_000).killed();
    script.site(0, 1_000_000, 1, 0x100).site(0, 1_000_000, 2, 0x200);
    script.fork(0, 2_000_000, 1, 1, 2).join_team(1, 2_000_000, 1, 1, 2);
    script.lock(0, 2_100_000, 2_100_000, 0xa, 1).lock(1, 2_100_000, 2_100_000, 0xb, 2);
    for (thread, object, site) in [(0, 0xb_u64, 2_u32), (1, 0xa, 1)] {
        let wait = [&object.to_le_bytes()[..], &site.to_le_bytes(), &wait::kind::LOCK.to_le_bytes()].concat();
        script.emit(thread, 3_000_000, openmp::CRITICAL_ACQUIRING_BEGIN, &[]);
        script.emit(thread, 3_000_000, wait::WAIT_OBJECT, &wait);
    }
    script.write(root).unwrap();
}

/// A profile with time in every state, a part of each without a CPU, and waits of every kind at one path.
fn write_profile(root: &Path) {
    let mut tree = Tree::default();
    let body = tree.child(ROOT, Frame::body(FrameKind::Region));
    let step = tree.child(body, Frame::user(NO_MODULE, 0x1234));
    for metric in Metric::all() {
        tree.add(step, metric, 1000);
    }
    for marker in Marker::ALL {
        let state = tree.child(step, Frame::state(marker));
        tree.add(state, Metric::SAMPLES, 1);
        tree.add(state, Metric::TIME, 1_000_000);
    }
    let states = State::ALL.map(State::name);
    let state_totals =
        states.map(|name| [(format!("state.{name}"), 1_000_000), (format!("no_cpu.{name}"), 1000)]);
    let mut totals: BTreeMap<String, u64> = state_totals.into_iter().flatten().collect();
    totals.insert(key::WALL_NS.to_owned(), 40_000_000);
    let process = [(key::WORKERS, "4"), (key::CPUS, "2"), (key::NO_CPU, "schedstat"), (key::FINISHED, "yes")];
    let process = process.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let profile = Profile {
        processes: vec![process.into_iter().collect()],
        modules: Vec::new(),
        tree,
        totals,
        ..Profile::default()
    };
    std::fs::create_dir(root).unwrap();
    profile.write(&mut std::fs::File::create(root.join("host.1.tsprof")).unwrap()).unwrap();
}

const GRAPH: &str = "ledger,blame,data,queues,diagnosis,idle,path,pop,whatif";

#[test]
fn outputs_use_the_vocabulary() {
    let imported = tempfile::tempdir().unwrap();
    let mut names = Names::default();
    let mut documents = 0;
    let stored = root().join("crates/cli/tests/traces");
    let printed_of = |path: PathBuf| {
        let mut printed = Vec::new();
        let trace = path.to_str().unwrap();
        let always_checked = [
            &["report", "--json", "--section", "all"][..],
            &["report", "--json", "--section", GRAPH],
            &["report", "--section", "all"],
        ];
        // The same names in other forms: a few traces are enough.
        let checked_if_stored = [
            &["report", "--section", GRAPH][..],
            &["report", "--json", "--section", "call-paths"],
            &["report", "--json", "--section", "idle", "--window", "10%..60%"],
            &["report", "--section", "idle", "--window", "10%..60%"],
            &["report", "--json", "--timeline"],
            &["report", "--section", "call-paths,devices,instrumentation,waits"],
            &["diff", "--json", trace],
            &["diff", trace],
            &["diff", "--json", "--paths", trace],
            &["explain", "F1"],
        ];
        let checked_if_stored = if path.starts_with(&stored) { &checked_if_stored[..] } else { &[] };
        for arguments in always_checked.iter().chain(checked_if_stored) {
            let place = format!("taskscope {} {trace}", arguments.join(" "));
            let output = output(taskscope().args(*arguments).arg(trace));
            // Damaged traces of the corpus have no report.
            if output.status.success() {
                printed.push((text(&output.stdout), place, arguments.contains(&"--json")));
            }
        }
        printed
    };
    for (printed, place, is_document) in
        side_by_side(traces(imported.path()), printed_of).into_iter().flatten()
    {
        names.add_text(&printed, &place);
        if is_document {
            names.add_document(&serde_json::from_str(&printed).unwrap(), &place);
            documents += 1;
        }
    }
    assert!(documents > 10, "{documents}");
    let kinds: BTreeSet<Kind> = names.0.keys().map(|(kind, _)| *kind).collect();
    assert!([Kind::Cause, Kind::Blamed, Kind::State].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    let has_key = |beginning: &str| names.1.keys().any(|key| key.starts_with(beginning));
    assert!(["taken_", "time_ns", "idle_"].into_iter().all(has_key), "{:?}", names.1);
    names.check();
}

/// Names that the stored traces do not lead to: those of hangs, and all of profiles.
#[test]
fn names_in_hangs_and_profiles_are_in_the_vocabulary() {
    let here = tempfile::tempdir().unwrap();
    let (hang, profile) = (here.path().join("hang"), here.path().join("profile"));
    write_hang(&hang);
    write_profile(&profile);
    let mut names = Names::default();
    for trace in [&hang, &profile] {
        let trace = trace.to_str().unwrap();
        let explain = ["explain", "F1"];
        let (json, text_of_all) = (["report", "--json"], ["report", "--section", "all"]);
        for arguments in [&json[..], &text_of_all, &explain, &["diff", "--json", trace]] {
            let place = format!("taskscope {} {trace}", arguments.join(" "));
            let printed = output(taskscope().args(arguments).arg(trace));
            assert!(printed.status.success(), "{place}: {}", text(&printed.stderr));
            let printed = text(&printed.stdout);
            names.add_text(&printed, &place);
            if arguments.contains(&"--json") {
                names.add_document(&serde_json::from_str(&printed).unwrap(), &place);
            }
        }
    }
    let names_of_kind =
        |kind: Kind| names.0.keys().filter(move |(own, _)| *own == kind).map(|(_, name)| &**name);
    assert!(names_of_kind(Kind::Pattern).any(|name| name == "hung"), "{:?}", names.0);
    let states: BTreeSet<&str> = names_of_kind(Kind::State).collect();
    assert!(State::ALL.iter().all(|state| states.contains(state.name())), "{states:?}");
    names.check();
}

/// The first words of each row of the table of states are a state's label.
#[test]
fn the_text_has_the_words_of_the_vocabulary_for_states() {
    let here = tempfile::tempdir().unwrap();
    let profile = here.path().join("profile");
    write_profile(&profile);
    let report = |trace: &Path| {
        let printed = output(taskscope().args(["report", "--section", "time", "--top", "1000"]).arg(trace));
        text(&printed.stdout)
    };
    let profile_report = report(&profile);
    for state in State::ALL {
        let is_of_state = |line: &str| {
            let words = line.split("%  ").nth(1).unwrap_or_default();
            words.strip_suffix(" (estimated)").unwrap_or(words) == state.label()
        };
        assert!(profile_report.lines().any(is_of_state), "{}: {profile_report}", state.name());
    }
    let mut rows = 0;
    let printed_of = |trace: PathBuf| (report(&trace), trace);
    for (printed, trace) in side_by_side(traces(here.path()), printed_of) {
        let table = printed.lines().skip_while(|line| !line.contains("Where the time went")).skip(1);
        // Places are indented further; a sentence about CPUs has no share.
        for line in table.filter(|line| line.ends_with('%') && !line.starts_with("   ")) {
            let is_of_state = |state: &State| line.trim_start().starts_with(state.label());
            let is_rest = line.contains(" other state");
            assert!(is_rest || State::ALL.iter().any(is_of_state), "{}: {line}", trace.display());
            rows += 1;
        }
    }
    assert!(rows > 20, "{rows}");
}

/// Columns of tables with causes, states or patterns in their title; and words that are causes.
#[test]
fn the_documentation_uses_the_vocabulary() {
    let mut names = Names::default();
    let mut cells = 0;
    for page in pages() {
        let place = page.display().to_string();
        let mut columns: Vec<Option<Kind>> = Vec::new();
        for line in std::fs::read_to_string(&page).unwrap().lines() {
            // Settings and files of runtimes have dots, too, but no backquotes alone.
            quoted(line).for_each(|words| names.add_text(words, &format!("{place}: {line}")));
            if !line.starts_with('|') {
                columns.clear();
            } else if columns.is_empty() {
                columns = line.split('|').map(|title| kind_of_column(title.trim())).collect();
            } else {
                let named = line.split('|').zip(&columns).filter_map(|(cell, kind)| Some((cell, (*kind)?)));
                for (cell, kind) in named {
                    names_in(cell).iter().for_each(|name| names.add(kind, name, &format!("{place}: {line}")));
                    cells += 1;
                }
            }
        }
    }
    assert!(cells > 20, "{cells}");
    names.check();
}

#[test]
fn the_table_of_groups_has_every_state_once() {
    let page = std::fs::read_to_string(root().join("docs/report.md")).unwrap();
    let table = page.split("| group | states |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let listed: Vec<(String, String)> = rows
        .flat_map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let group = quoted(cells[1]).next().unwrap();
            names_in(cells[2]).into_iter().map(|state| (group.to_owned(), state)).collect::<Vec<_>>()
        })
        .collect();
    let grouped = Group::ALL.into_iter().flat_map(|group| {
        let states = State::ALL.into_iter().filter(move |state| state.group() == group);
        states.map(move |state| (group.name().to_owned(), state.name().to_owned()))
    });
    let (listed, grouped): (BTreeSet<_>, BTreeSet<_>) = (listed.into_iter().collect(), grouped.collect());
    assert_eq!(listed, grouped);
}

/// Pages of the documentation.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![root().join("docs"), root().join("README.md"), root().join("examples")];
    let mut pages = Vec::new();
    while let Some(path) = found.pop() {
        if path.is_dir() {
            found.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// The kind of names in a column with this title.
fn kind_of_column(title: &str) -> Option<Kind> {
    match title {
        "state" | "states" => Some(Kind::State),
        "cause" | "causes" => Some(Kind::Cause),
        "pattern" => Some(Kind::Pattern),
        _ => None,
    }
}

/// Names in a cell: the words in backquotes before a colon or the word pattern, without those in parentheses.
fn names_in(cell: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let outside = cell.chars().filter(|c| {
        depth += usize::from(*c == '(');
        let is_outside = depth == 0;
        depth = depth.saturating_sub(usize::from(*c == ')'));
        is_outside
    });
    let outside: String = outside.collect();
    let names = outside.split(':').next().and_then(|cell| cell.split("pattern").next());
    quoted(names.unwrap_or_default()).map(str::to_owned).collect()
}

/// Words in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
