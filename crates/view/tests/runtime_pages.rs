//! The pages of runtimes have the names that `taskscope explain` has. `UPDATE_DOCS=1 cargo test -p taskscope-view --test
//! runtime_pages` writes their tables anew.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use taskscope_view::runtime_names::{Counts, RUNTIME_NAMES};

const BEGIN: &str = "<!-- names: ";
const END: &str = "<!-- end -->";

/// The tables of a runtime: one for each aspect, in the order of the names.
fn tables(runtime: &str) -> String {
    let names = || RUNTIME_NAMES.iter().filter(|name| name.runtime == runtime);
    let mut page = String::new();
    let mut done = BTreeSet::new();
    for aspect in names().map(|name| name.aspect).filter(|aspect| done.insert(*aspect)) {
        let _ = write!(page, "\n| {aspect} | events | meaning | counts as |\n| --- | --- | --- | --- |\n");
        for name in names().filter(|name| name.aspect == aspect) {
            let counts = match name.counts() {
                Counts::As(state) => format!("{} (`{}`)", state.label(), state.cause().name()),
                Counts::Around => "the code around it".to_owned(),
                Counts::Nothing => "–".to_owned(),
            };
            let events = name.events.split_whitespace().map(|code| format!("`{code}`"));
            let events = events.collect::<Vec<_>>().join(" ").replace('|', "\\|");
            let _ = writeln!(page, "| {} | {events} | {} | {counts} |", name.label, name.meaning);
        }
    }
    page + "\n"
}

#[test]
fn pages_have_the_names_of_their_runtimes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runtimes");
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let stored = fs::read_to_string(&file).unwrap();
        let mut page = String::new();
        let mut rest = stored.as_str();
        while let Some((before, behind)) = rest.split_once(BEGIN) {
            let (runtime, behind) = behind.split_once(" -->").unwrap();
            let (_, behind) = behind.split_once(END).unwrap();
            let names = tables(runtime);
            assert!(names.len() > 1, "{}: nothing is called {runtime}", file.display());
            page += &format!("{before}{BEGIN}{runtime} -->\n{names}{END}");
            rest = behind;
        }
        page += rest;
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&file, &page).unwrap();
        } else {
            let command = "UPDATE_DOCS=1 cargo test -p taskscope-view --test runtime_pages";
            assert!(stored == page, "{} is stale; run: {command}", file.display());
        }
    }
}
