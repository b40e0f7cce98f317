//! Chrome's trace events, Pajé, Firefox, CSV.

use crate::for_each_timeline;
use std::collections::BTreeMap;
use taskscope_export::chrome::ChromeWriter;
use taskscope_export::csv::{self, CsvWriter};
use taskscope_export::firefox::FirefoxWriter;
use taskscope_export::paje::PajeWriter;

#[test]
fn chrome_json_has_every_section_arrow_and_value() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = ChromeWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&export.into_inner()).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
        let counts = [of("X"), of("s"), of("f"), of("C")];
        assert_eq!(counts, [sums.sections, sums.arrows, sums.arrows, sums.values], "{name}");
        let lengths = events.iter().filter_map(|event| event["dur"].as_f64());
        let ns: f64 = lengths.map(|us| (us * 1000.0).round()).sum();
        assert_eq!(ns as u64, sums.ns.values().sum::<u64>(), "{name}");
        let samples = document["samples"].as_array().map_or(0, Vec::len);
        assert_eq!(samples as u64, sums.samples, "{name}");
    });
}

#[test]
fn paje_has_every_section_arrow_and_value_in_order() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = PajeWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let text = String::from_utf8(export.into_inner()).unwrap();
        let lines = || text.lines().filter(|line| !line.starts_with('%'));
        let of = |kind: &str| lines().filter(|line| line.split(' ').next() == Some(kind)).count() as u64;
        let counts = [of("7"), of("8"), of("9"), of("10"), of("11")];
        assert_eq!(counts, [sums.sections, sums.sections, sums.values, sums.arrows, sums.arrows], "{name}");
        let timed =
            lines().filter(|line| !["0", "1", "2", "3", "4"].contains(&line.split(' ').next().unwrap()));
        let times: Vec<f64> = timed.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        assert!(times.is_sorted(), "{name}");
    });
}

#[test]
fn firefox_profile_has_every_section_arrow_and_value() {
    let directory = tempfile::tempdir().unwrap();
    for_each_timeline(|name, timeline, sums| {
        let mut export = FirefoxWriter::new(Vec::new(), &directory.path().join("profile"));
        timeline.play(&mut export).unwrap();
        let profile: serde_json::Value = serde_json::from_slice(&export.into_inner()).unwrap();
        let threads = profile["threads"].as_array().unwrap();
        assert_eq!(threads.len(), timeline.lanes().len(), "{name}");
        let (mut counts, mut ns) = ([0u64; 3], 0.0);
        let mut flows: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (thread, lane) in threads.iter().zip(timeline.lanes()) {
            assert_eq!(thread["name"], lane.name);
            let strings = thread["stringArray"].as_array().unwrap();
            for (table, columns) in [
                ("samples", &["stack", "time", "weight"][..]),
                ("markers", &["data", "name", "startTime", "endTime", "phase", "category"]),
                ("stackTable", &["frame", "prefix"]),
                ("frameTable", &["func", "category", "line"]),
                ("funcTable", &["name", "fileName", "lineNumber"]),
            ] {
                for column in columns {
                    let length = thread[table][column].as_array().unwrap().len();
                    assert_eq!(thread[table]["length"], length, "{name}: {table}.{column}");
                }
            }
            let numbers = |table: &str, column: &str| {
                thread[table][column].as_array().unwrap().iter().map(|value| value.as_u64())
            };
            let stacks = thread["stackTable"]["length"].as_u64();
            assert!(numbers("samples", "stack").flatten().all(|stack| Some(stack) < stacks));
            assert!(numbers("markers", "name").flatten().all(|name| name < strings.len() as u64));
            assert!(numbers("funcTable", "name").flatten().all(|name| name < strings.len() as u64));
            let times: Vec<f64> =
                thread["samples"]["time"].as_array().unwrap().iter().map(|at| at.as_f64().unwrap()).collect();
            assert!(times.is_sorted(), "{name}");
            let weights = thread["samples"]["weight"].as_array().unwrap();
            ns += weights.iter().map(|ms| (ms.as_f64().unwrap() * 1e6).round()).sum::<f64>();
            for data in thread["markers"]["data"].as_array().unwrap() {
                match data["type"].as_str().unwrap() {
                    "section" => counts[0] += 1,
                    "arrow begin" | "arrow end" => {
                        counts[1] += 1;
                        let [begins, ends] = ["begins", "ends"].map(|field| data[field].as_u64());
                        let id = &strings[begins.or(ends).unwrap() as usize];
                        let halves = flows.entry(id.as_str().unwrap().to_owned()).or_default();
                        halves[usize::from(ends.is_some())] += 1;
                    }
                    _ => counts[2] += 1,
                }
            }
        }
        assert_eq!(counts, [sums.sections, 2 * sums.arrows, sums.values], "{name}");
        assert!(flows.values().all(|halves| *halves == [1, 1]), "{name}");
        assert_eq!(ns as u64, sums.ns.values().sum::<u64>(), "{name}");
    });
}

/// The fields of a CSV table, by RFC 4180.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' if is_quoted && rest.peek() == Some(&'"') => field.extend(rest.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {
                assert_eq!(rest.next(), Some('\n'));
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    assert!(row.is_empty() && field.is_empty());
    rows
}

#[test]
fn csv_has_every_section_arrow_and_value() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = CsvWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let rows = csv_rows(std::str::from_utf8(&export.into_inner()).unwrap());
        assert_eq!(rows[0], csv::COLUMNS);
        assert!(rows.iter().all(|row| row.len() == csv::COLUMNS.len()), "{name}");
        let (mut counts, mut ns, mut last) = ([0u64; 3], 0, 0);
        for row in &rows[1..] {
            let (start, end) = (row[3].parse::<u64>().unwrap(), row[4].parse::<u64>());
            // A dependence is placed in the section that ends at its time.
            assert!(start + 1 >= last, "{name}: {row:?}");
            last = start;
            match row[0].as_str() {
                "creation" | "dependence" | "message" | "submission" | "wake" => counts[1] += 1,
                "counter" => counts[2] += 1,
                _ => {
                    counts[0] += 1;
                    ns += end.unwrap() - start;
                }
            }
        }
        assert_eq!(counts, [sums.sections, sums.arrows, sums.values], "{name}");
        assert_eq!(ns, sums.ns.values().sum::<u64>(), "{name}");
    });
}
