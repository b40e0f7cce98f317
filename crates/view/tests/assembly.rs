//! Sampled functions, this program's own: their machine code, and their rows over time.

mod common;

use common::{own_module, page_of, sampled, small};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use taskscope_execution::lod::Window;
use taskscope_execution::samples::NewSample;
use taskscope_execution::{Change, ExecutionBuilder, Observer, Section, State, ThreadIndex};
use taskscope_session::cache::Key;
use taskscope_view::html;
use taskscope_view::page::{Direction, Found, Page, Position, SampleView};

#[inline(never)]
fn added_for_a_test(sum: u64, number: u64) -> u64 {
    std::hint::black_box(sum) + number
}

/// Sums up numbers, to be sampled.
#[inline(never)]
fn sampled_for_a_test(numbers: &[u64]) -> u64 {
    let mut sum = 0;
    for number in numbers {
        sum = added_for_a_test(sum, *number);
    }
    sum
}

#[test]
fn instructions_have_their_samples_and_lines() {
    let begin = sampled_for_a_test as fn(&[u64]) -> u64 as usize as u64;
    assert_eq!(sampled_for_a_test(&[1, 2]), 3);
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.1", 1);
    let thread = builder.add_thread(process, 1);
    builder.event(thread, 1000);
    builder.change(thread, 1000, Change::Becomes(Section::of(State::Serial)));
    // Three samples at the begin, and one of code that no file has.
    for (at, address) in [(2000, begin), (3000, begin), (4000, begin), (5000, 8)] {
        let (levels, addresses) = (&[][..], &[address][..]);
        builder.sample(&NewSample { thread, at, weight_ns: 100, flags: 0, state: 0, levels, addresses });
    }
    builder.event(thread, 9000);
    builder.change(thread, 9000, Change::ThreadEnds);
    let mut execution = builder.finish();
    let module = own_module(process);
    let bias = module.bias;
    execution.catalog.modules.push(module);
    let page = page_of(execution);
    let found = page.assembly(None, None, None);
    assert_eq!(found.samples, (3, 4));
    assert!(found.functions[0].name.ends_with("sampled_for_a_test"), "{:?}", found.functions);
    if cfg!(not(target_arch = "x86_64")) {
        assert!(found.missing.unwrap().contains("only code for x86-64"));
        return;
    }
    assert_eq!((found.missing.as_deref(), found.shown), (None, Some(0)));
    let first = &found.instructions[0];
    assert_eq!((first.address.clone(), first.samples, first.ns), (format!("{:x}", begin - bias), 3, 300));
    assert!(first.file.as_deref().unwrap().ends_with("tests/assembly.rs"), "{first:?}");
    assert_eq!(found.instructions.iter().map(|row| row.samples).sum::<u64>(), 3);
    assert!(found.instructions.iter().any(|row| row.text.starts_with("ret")), "{:?}", found.instructions);
    let called = found.instructions.iter().find(|row| row.text.ends_with("added_for_a_test>"));
    assert!(called.is_some_and(|row| row.text.starts_with("call ")), "{:?}", found.instructions);
    let (file, line) = (first.file.clone().unwrap(), first.line);
    assert_eq!(page.assembly(Some(&file), line, None).shown, Some(0));
    let elsewhere = page.assembly(Some("other.c"), None, None);
    assert_eq!((elsewhere.shown, elsewhere.instructions.len()), (None, 0));
    assert!(elsewhere.missing.unwrap().contains("no sample was taken"));
    // Without samples there is a reason.
    assert!(page_of(small()).assembly(None, None, None).missing.unwrap().contains("no samples"));
}

/// The page of sampled threads, made once: the names of this program's functions take their time.
fn page_of_samples() -> &'static Page {
    static PAGE: OnceLock<Page> = OnceLock::new();
    PAGE.get_or_init(|| page_of(sampled()))
}

/// The bar of a row of code at a time.
fn code_at(page: &Page, row: u32, at: u64) -> Value {
    json!(page.sample_at(SampleView::Code, row, at, None))
}

/// Whether a name is that of a function of the test.
fn is_of(name: &Value, function: &str) -> bool {
    name.as_str().is_some_and(|name| name.ends_with(&format!("{function}_for_samples")))
}

#[test]
fn samples_are_bars_of_their_functions_with_gaps_off_the_cpu() {
    let page = page_of_samples();
    assert!(page.report.samples_alone);
    let lists = json!(page.sample_lists());
    assert_eq!((&lists[0]["name"], &lists[1]["name"]), (&json!("code"), &json!("path")));
    // `other` has 15 000 ns in all, `inner` 5000.
    let names: Vec<&Value> = (0..3).map(|at| &lists[0]["values"][at][1]).collect();
    assert!(is_of(names[0], "other") && is_of(names[1], "inner") && names[2] == "no CPU", "{names:?}");
    let threads: Vec<&Value> =
        lists[0]["rows"].as_array().unwrap().iter().map(|row| &row["thread"]).collect();
    assert_eq!(threads, [&json!(0), &json!(1)]);
    let inner = code_at(page, 0, 2500);
    assert!(is_of(&inner["label"], "inner"), "{inner}");
    assert_eq!((&inner["start"], &inner["end"], &inner["samples"]), (&json!(0), &json!(4000), &json!(4)));
    let path = inner["sample"]["path"].as_array().unwrap();
    assert!(
        path.len() == 2 && is_of(&path[0]["name"], "outer") && is_of(&path[1]["name"], "inner"),
        "{inner}"
    );
    assert!(path[1]["place"].as_str().unwrap().starts_with("mod.rs:"), "{inner}");
    assert!(inner["sample"]["file"].as_str().unwrap().ends_with("common/mod.rs"), "{inner}");
    // 5000 of the thread's 8000 ns on a CPU, of 20 000 of both.
    let share = |own: u64, total: u64, all: u64| json!({ "own_ns": own, "total_ns": total, "all_ns": all });
    assert_eq!(inner["shares"], json!([share(5000, 5000, 8000), share(5000, 5000, 20_000)]));
    let around = &inner["around"];
    assert_eq!((&around["samples"], &around["from"]), (&json!(8), &json!(0)));
    assert!(is_of(&around["functions"][0][0], "inner") && around["functions"][0][1] == 5, "{around}");
    let no_cpu = code_at(page, 0, 7200);
    assert_eq!((&no_cpu["label"], &no_cpu["start"]), (&json!("no CPU"), &json!(7000)));
    assert_eq!(no_cpu["away"], json!({ "start": 7000, "end": 7500, "is_blocked": false }));
    let blocked = code_at(page, 0, 9000);
    assert_eq!(
        (&blocked["value"], &blocked["label"], &blocked["samples"]),
        (&json!(0), &json!(""), &json!(0))
    );
    assert_eq!(blocked["away"], json!({ "start": 7500, "end": 10_000, "is_blocked": true }));
    // Before the first sample of the other thread is nothing, and after the last.
    assert_eq!(code_at(page, 1, 12_500), Value::Null);
    let next = json!(page.sample_at(SampleView::Code, 0, 2500, Some(true)));
    assert!(is_of(&next["label"], "other") && next["samples"] == 3, "{next}");
}

#[test]
fn levels_of_paths_and_stacks_add_up_to_the_samples() {
    let page = page_of_samples();
    let rows = json!(page.sample_lists())[1]["rows"].as_array().unwrap().clone();
    let labels: Vec<(&Value, &Value)> = rows.iter().map(|row| (&row["label"], &row["thread"])).collect();
    let (one, two) = (json!("level 1"), json!("level 2"));
    assert_eq!(labels, [(&one, &json!(0)), (&two, &json!(0)), (&one, &json!(1))]);
    let level = |row: u32, at: u64| json!(page.sample_at(SampleView::Path, row, at, None));
    let outer = level(0, 5000);
    assert!(is_of(&outer["label"], "outer"), "{outer}");
    assert_eq!((&outer["start"], &outer["end"], &outer["samples"]), (&json!(0), &json!(7000), &json!(7)));
    assert!(is_of(&level(1, 5000)["label"], "other"));
    // In buckets of 1024 ns: what all values have in all buckets is the time of both threads, without what is blocked.
    let window = Window { first: 0, count: 16, width_log2: 10 };
    let bytes = page.stacked_code(&[0, 1], window);
    let floats = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let sum: f32 = floats.map(|threads| threads * 1024.0).sum();
    assert!((sum - 20_500.0).abs() < 1.0, "{sum}");
}

#[test]
fn a_search_finds_code_by_the_functions_of_its_path() {
    let page = page_of_samples();
    let found = |text: &str, at: u64, direction: Direction| match page.search(text, at, direction) {
        Some(Found::Code(code)) => Some((code.bar.track, code.bar.start, code.bar.end)),
        None => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(found("outer_for", 0, Direction::First), Some((0, 0, 7000)));
    assert_eq!(found("outer_for", 0, Direction::Next), None);
    assert_eq!(found("INNER_FOR", 0, Direction::Next), Some((0, 10_000, 11_000)));
    assert_eq!(found("other_for", 0, Direction::Last), Some((0, 4000, 7000)));
    assert_eq!(found("other_for", 4000, Direction::Previous), Some((1, 0, 12_000)));
    assert_eq!(found("nothing of it", 0, Direction::First), None);
    // Of two that begin together the one of the later row follows.
    let all = |from| page.search("_for_samples", from, Direction::Next).map(|found| found.start());
    assert_eq!(all(Position::on_code(page, 0, 0)), Some(0));
    assert_eq!(all(Position::on_code(page, 0, 1)), Some(10_000));
    let totals = page.search_totals("inner_for");
    assert_eq!((totals.sections, totals.code, totals.code_ns), (0, 2, 5000));
    let name = page.sample_lists()[0].values[1].1.clone();
    assert_eq!(page.filter_problem(&name), None);
    assert!(page.search_totals(&name.replace("inner", "iner")).hints.contains(&name));
    let functions = page.range(&page.all_tracks(), 2000, 6000).functions;
    let rows: Vec<(u64, u64, u64)> =
        functions.iter().map(|row| (row.own_ns, row.total_ns, row.samples)).collect();
    // `other` on both threads, `inner`, and `outer`, which only calls.
    assert_eq!(rows, [(6000, 6000, 6), (2000, 2000, 2), (0, 4000, 0)], "{functions:?}");
}

#[test]
fn findings_of_samples_have_their_longest_stretch() {
    let page = page_of_samples();
    let report = json!(page.report);
    let findings = report["findings"].as_array().unwrap();
    let instance_of = |cause: &str| {
        let finding = findings.iter().find(|row| row["cause"] == cause)?;
        let instance = page.instances.iter().find(|row| finding["id"] == row.finding.as_str())?;
        Some((instance.thread, instance.start, instance.end))
    };
    assert_eq!(instance_of("cpu.none"), Some((ThreadIndex(0), 8000, 8500)), "{findings:?}");
    assert_eq!(instance_of("blocked"), Some((ThreadIndex(0), 8500, 11_000)), "{findings:?}");
    // Most of the time of which nothing else is known is in the function of the second thread.
    assert_eq!(instance_of("unknown"), Some((ThreadIndex(1), 1000, 13_000)), "{findings:?}");
}

#[test]
fn samples_are_in_the_cache_and_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("sampled.trace");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("stream.obs"), b"stands for a trace").unwrap();
    let key = Key::of(&root).unwrap();
    let page = page_of_samples();
    page.store(&root, &key, &AtomicBool::new(false)).unwrap();
    let stored = Page::stored(&root, &key).expect("a cache that fits");
    assert!(stored.samples == page.samples && !page.samples.is_empty());
    assert_eq!(json!(stored.sample_lists()), json!(page.sample_lists()));
    for at in [0, 2500, 7200, 9000] {
        assert_eq!(code_at(&stored, 0, at), code_at(page, 0, at));
    }
    let text = html::report(page);
    let from = text.find("id=\"overview\">").unwrap();
    let overview = &text[from + "id=\"overview\">".len()..];
    let overview: Value = serde_json::from_str(&overview[..overview.find("</script>").unwrap()]).unwrap();
    assert_eq!(overview["samples"].as_array().unwrap().len(), 1);
    assert_eq!(overview["code_rows"]["tracks"], json!([0, 1]));
    // Where threads have states these rows would only make the file larger.
    let text = html::report(&page_of(small()));
    assert!(text.contains("\"code_rows\":null") && text.contains("\"samples\":[]"));
}
