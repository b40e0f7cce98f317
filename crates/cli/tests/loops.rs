//! Loops in call paths, as compilers place them at each level of optimisation.

mod common;

use common::Compiler;
use common::call_paths::{How, TRACED, call_paths, line_of, program, rows};
use std::collections::BTreeSet;

/// The steps around each row of the top-down view that calls `function`, without the row itself.
fn paths_to(paths: &serde_json::Value, function: &str) -> BTreeSet<Vec<String>> {
    let mut open: Vec<String> = Vec::new();
    let mut found = BTreeSet::new();
    for row in rows(paths, "top_down") {
        open.truncate(row["depth"].as_u64().unwrap() as usize);
        if row["what"] == "function" && row["function"] == function {
            found.insert(open.clone());
        }
        open.push(row["name"].as_str().unwrap().to_string());
    }
    found
}

#[test]
fn rotated_and_nested_loops_are_steps_of_top_down_paths() {
    let source = program("loops");
    let loop_at = |function: &str, text| format!("{function} [loop at loops.c:{}]", line_of(&source, text));
    let march = ["main".into(), "march".into(), loop_at("march", "/* the rotated loop */")];
    let [outer, inner] = ["/* the outer loop */", "/* the inner loop */"].map(|text| loop_at("relax", text));
    let relax = ["main".into(), "relax".into(), outer, inner];
    let expected = BTreeSet::from([march.to_vec(), relax.to_vec()]);
    for compiler in Compiler::ALL {
        for level in ["-O1", "-O2", "-O3"] {
            let here = tempfile::tempdir().unwrap();
            let flags = [level, "-fno-optimize-sibling-calls"];
            let paths = call_paths(here.path(), &source, &How { compiler, flags: &flags, ..TRACED });
            assert_eq!(paths_to(&paths, "sweep"), expected, "{compiler:?} {level}");
            // The loop over chunks and the one over a chunk's iterations are one loop of the program.
            let shared = paths_to(&paths, "touch");
            let is_loop = |step: &String| step.contains("share [loop at");
            assert!(!shared.is_empty(), "{compiler:?} {level}");
            for path in shared {
                let loops: Vec<_> = path.iter().filter(|step| is_loop(step)).collect();
                let names: BTreeSet<_> = loops.iter().collect();
                assert!(!names.is_empty() && names.len() == loops.len(), "{compiler:?} {level}: {path:?}");
            }
            // With callees, the rotated loop has at least the time of the regions in it.
            let loops = rows(&paths, "loops");
            let total =
                |name: &String| loops.iter().find(|row| row["name"] == **name).unwrap()["total"].as_u64();
            let burns = loop_at("work", "/* burns */");
            assert!(
                total(&march[2]).unwrap() + total(&relax[2]).unwrap() >= total(&burns).unwrap(),
                "{loops:?}"
            );
        }
    }
}
