//! Crates depend only as allowed in `ARCHITECTURE.md`, and follow its rule on unsafe code.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The table "Crate map" of `ARCHITECTURE.md`: crate to the words of its third column.
fn allowed() -> BTreeMap<String, String> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let map = page.split("## Crate map").nth(1).expect("a section Crate map").split("\n## ").next().unwrap();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[0].trim_end_matches('`').to_owned(), cells[2].to_owned())
    })
    .collect()
}

/// Direct dependencies inside the workspace, without those of tests, by name without prefix.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let output = command
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output();
    let metadata: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| match value.as_str().unwrap() {
        "taskscope" => "cli".to_owned(),
        name => name.trim_start_matches("taskscope-").to_owned(),
    };
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let ours = dependencies.iter().filter(|one| one["kind"] != "dev" && !one["path"].is_null());
            (name(&package["name"]), ours.map(|one| name(&one["name"])).collect())
        })
        .collect()
}

/// Everything that may be reached from a crate by the table.
fn closure(table: &BTreeMap<String, String>, of: &str) -> Vec<String> {
    let cell = &table[of];
    match cell.as_str() {
        "all above" | "all but `cli`" => {
            return table.keys().filter(|name| *name != "cli" && *name != "testkit").cloned().collect();
        }
        _ => {}
    }
    let mut reached: Vec<String> = Vec::new();
    let direct = cell.split('`').skip(1).step_by(2).filter(|name| table.contains_key(*name));
    for name in direct {
        reached.push(name.to_owned());
        reached.extend(closure(table, name));
    }
    reached
}

#[test]
fn dependencies_point_only_downwards() {
    let table = allowed();
    let found = dependencies();
    assert!(found.len() >= 13, "only {} crates were found", found.len());
    for (name, dependencies) in &found {
        assert!(table.contains_key(name), "ARCHITECTURE.md does not list the crate {name}");
        let allowed = closure(&table, name);
        for dependency in dependencies {
            assert!(
                allowed.contains(dependency),
                "{name} must not depend on {dependency}; it may use {}",
                table[name]
            );
        }
    }
}

#[test]
fn the_table_names_existing_crates() {
    let found = dependencies();
    for name in allowed().keys() {
        assert!(found.contains_key(name), "ARCHITECTURE.md lists {name}, which is no crate of the workspace");
    }
}

/// Pairs of a file and a name behind it, each in backticks: "`crates/…/x.rs` `name`", with or without a comma.
fn files_with_names(page: &str) -> Vec<(String, Option<String>)> {
    let words: Vec<&str> = page.split('`').collect();
    let is_file = |word: &str| word.starts_with("crates/");
    (1..words.len())
        .step_by(2)
        .filter(|at| is_file(words[*at]))
        .map(|at| {
            let is_named =
                matches!(words[at + 1], " " | ", ") && words.len() > at + 2 && !is_file(words[at + 2]);
            (words[at].to_owned(), is_named.then(|| words[at + 2].to_owned()))
        })
        .collect()
}

#[test]
fn files_and_functions_of_architecture_exist() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let named = files_with_names(&page);
    assert!(named.iter().filter(|(_, name)| name.is_some()).count() > 30, "{named:?}");
    for (file, name) in named {
        let path = root().join(&file);
        let Some(name) = name else {
            assert!(path.exists(), "{file}");
            continue;
        };
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let is_defined =
            ["fn", "struct", "enum"].iter().any(|kind| has_words(&text, &format!("{kind} {name}")));
        assert!(is_defined, "{file} has no {name}");
    }
}

/// Whether the text has these words, which no letter follows.
fn has_words(text: &str, words: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
    text.match_indices(words).any(|(at, found)| is_end(&text[at + found.len()..]))
}

#[test]
fn files_to_read_first_exist() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for name in dependencies().keys() {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
        let files: Vec<&str> = row.split('|').nth(4).unwrap().split('`').skip(1).step_by(2).collect();
        assert!((1..=3).contains(&files.len()), "{row}");
        for file in files {
            assert!(root().join("crates").join(name).join("src").join(file).exists(), "{name}: {file}");
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_outside_the_recorders_and_three_files() {
    for name in dependencies().keys() {
        let source = root().join("crates").join(name).join("src");
        let entry =
            ["lib.rs", "main.rs"].iter().map(|file| source.join(file)).find(|file| file.exists()).unwrap();
        let entry = fs::read_to_string(entry).unwrap();
        match name.as_str() {
            name if name.starts_with("record") => {}
            // One maps finished streams; one asks the loaded libovni for its version, one starts the program as the command was
            // started.
            "trace" | "cli" => {
                assert!(entry.contains("#![deny(unsafe_code)]"), "{name}");
                assert_eq!(exempt_files(&source), if name == "cli" { 2 } else { 1 }, "{name}");
            }
            _ => assert!(entry.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code"),
        }
    }
}

/// Files below `source` that allow unsafe code.
fn exempt_files(source: &Path) -> usize {
    let entries = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    entries.fold(0, |found, path| {
        let is_exempt = || fs::read_to_string(&path).is_ok_and(|text| text.contains("allow(unsafe_code)"));
        found + if path.is_dir() { exempt_files(&path) } else { usize::from(is_exempt()) }
    })
}
