//! Machine code of sampled functions: this program's own.

mod common;

use common::{page_of, small};
use taskscope_execution::samples::NewSample;
use taskscope_execution::{Change, ExecutionBuilder, Module, Observer, Section, State};

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
    let exe = std::env::current_exe().unwrap().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut own = maps.lines().filter(|line| line.ends_with(&exe));
    let bias = u64::from_str_radix(own.next().unwrap().split('-').next().unwrap(), 16).unwrap();
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
    let (build_id, path) = (String::new(), exe);
    execution.catalog.modules.push(Module {
        process,
        at: 0,
        start: bias,
        end: begin + (1 << 30),
        bias,
        build_id,
        path,
    });
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
