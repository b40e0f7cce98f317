//! Names of constructs, from clang's and from gcc's programs: those that end functions, in libraries, without debug
//! information.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::common::{Compiler, Run, compile, compile_as};
use taskscope_execution::SiteIndex;
use taskscope_session::Session;
use taskscope_symbol::{LoadedModule, Symbolizer};

/// The trace of a run that must succeed.
fn session_of(mut run: Run) -> Session {
    let output = run.command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let session = Session::open(run.directory()).unwrap();
    let _ = std::fs::remove_dir_all(run.directory());
    session
}

/// How often each region and each task of `last_calls.c` was executed, by its name.
fn executed(session: &Session) -> BTreeMap<String, usize> {
    let execution = &session.execution;
    let mut counts = BTreeMap::new();
    let mut count = |name: String| *counts.entry(name).or_insert(0) += 1;
    for region in &execution.regions {
        count(session.places.construct("parallel", region.site));
    }
    for ty in execution.tasks.ty.iter() {
        count(session.places.type_name(*ty));
    }
    counts
}

/// Regions and tasks as `last_calls.c` has them, and the lines of their directives.
const LAST_CALLS: [(&str, &str, &str, usize); 10] = [
    ("first", "parallel", "first", 2),
    ("second", "parallel", "second", 1),
    ("copied", "parallel", "copied", 3),
    ("main", "parallel", "main", 1),
    ("fifth", "parallel", "fifth", 1),
    ("sixth", "parallel", "fifth", 2),
    ("seventh", "parallel", "seventh", 1),
    ("third", "task", "third", 2),
    ("fourth", "task", "fourth", 1),
    ("eighth", "task", "seventh", 2),
];

#[test]
fn constructs_that_end_functions_are_named_by_their_bodies() {
    let source = include_str!("../programs/last_calls.c");
    let line =
        |name: &str| source.lines().position(|line| line.contains(&format!("/* {name} */"))).unwrap() + 1;
    let named = |(name, what, function, count): (&str, &str, &str, usize)| {
        (format!("{function} [{what} at last_calls.c:{}]", line(name)), count)
    };
    let expected = BTreeMap::from(LAST_CALLS.map(named));
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|compiler| compiler.is_installed()) {
        for flags in [&["-O0"][..], &["-O1"], &["-O2"], &["-O3", "-no-pie", "-fno-pie"], &["-O2", "-fno-plt"]]
        {
            for levels in ["levels", "one"] {
                if compiler == Compiler::Gcc && matches!(flags[0], "-O0" | "-O1") && levels == "one" {
                    // The body of a nested region that is not forked is not known, and gcc assigns its call to the line before.
                    continue;
                }
                let mut run = Run::program(compiler, &compile(compiler, "last_calls", flags));
                run.command.arg(levels);
                let session = session_of(run);
                assert_eq!(executed(&session), expected, "{compiler:?} {flags:?} {levels}");
                let sites: HashSet<_> = session.execution.regions.iter().map(|region| region.site).collect();
                assert_eq!(sites.len(), 7, "{compiler:?} {flags:?} {levels}: one site a construct");
            }
        }
    }
}

#[test]
fn regions_of_a_library_are_named_by_their_bodies() {
    let source = include_str!("../programs/library_regions.c");
    let named = |(function, count): (&str, usize)| {
        let mark = format!("/* {function} */");
        let line = source.lines().position(|line| line.contains(&mark)).unwrap() + 1;
        (format!("{function} [parallel at library_regions.c:{line}]"), count)
    };
    // The program loads the library twice.
    let expected =
        BTreeMap::from([("set_up", 2), ("inward", 6), ("outward", 6), ("tear_down", 2)].map(named));
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|compiler| compiler.is_installed()) {
        for optimised in ["-O0", "-O1", "-O2", "-O3"] {
            let library = compile(compiler, "library_regions", &["-shared", "-fPIC", optimised]);
            let host = compile(Compiler::Clang, "host", &["-fno-openmp"]);
            // A runtime that is not unloaded with the library.
            let mut run = Run::program(compiler, &host).env("LD_PRELOAD", crate::common::LIBOMP);
            run.command.arg(library);
            assert_eq!(executed(&session_of(run)), expected, "{compiler:?} {optimised}");
        }
    }
}

#[test]
fn waits_that_end_functions_are_in_these() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let library = include_str!("../programs/last_waits_library.c");
    let program = include_str!("../programs/last_waits.c");
    let line = |source: &str, name: &str| {
        source.lines().position(|line| line.contains(&format!("/* {name} */"))).unwrap() + 1
    };
    let in_library =
        |function: &str| format!("{function} [wait at last_waits_library.c:{}]", line(library, function));
    let mut expected: HashSet<String> = ["settle", "line_up", "take"].map(in_library).into();
    // Which of its two waits it is, is unknown, as is the target of a pointer.
    expected.insert("either [wait]".to_string());
    expected.insert(format!("main [wait in code called at last_waits.c:{}]", line(program, "pointer")));
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let beside = programs.join("last_waits_library.c").display().to_string();
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|compiler| compiler.is_installed()) {
        for optimised in [&["-O2"][..], &["-O3", "-fno-plt"], &["-O2", "-no-pie", "-fno-pie"]] {
            for is_library in [false, true] {
                let other = match is_library {
                    true => {
                        let flags = ["-shared", "-fPIC", optimised[0]];
                        compile(compiler, "last_waits_library", &flags).display().to_string()
                    }
                    false => beside.clone(),
                };
                let flags = [optimised, &["-Wl,--no-as-needed", &other]].concat();
                // Programs are named after their flags, which have paths here.
                let name = format!("last_waits.{compiler:?}.{is_library}{}", optimised.concat());
                let session =
                    session_of(Run::program(compiler, &compile_as(&name, compiler, "last_waits", &flags)));
                let sites = (0..session.execution.catalog.sites.len() as u32).map(SiteIndex);
                let named: HashSet<String> = sites
                    .filter(|site| !session.execution.catalog.constructs.contains_key(site))
                    .map(|site| session.places.construct("wait", site))
                    .filter(|name| !name.contains("[wait at last_waits.c"))
                    .collect();
                assert_eq!(named, expected, "{compiler:?} {optimised:?} {is_library}");
            }
        }
    }
}

/// As in profiles and traces that do not have the bodies.
#[test]
fn calls_through_a_librarys_own_stubs_lead_to_its_regions() {
    if cfg!(not(target_arch = "x86_64")) || !Compiler::Clang.is_installed() {
        return;
    }
    for flags in [&["-shared", "-fPIC", "-O2"][..], &["-shared", "-fPIC", "-O2", "-fno-plt"]] {
        let library = compile(Compiler::Clang, "library_regions", flags);
        let host = compile(Compiler::Clang, "host", &["-fno-openmp"]);
        let mut run = Run::program(Compiler::Clang, &host);
        run.command.arg(library);
        let session = session_of(run);
        let catalog = &session.execution.catalog;
        let modules = catalog.modules.iter().map(|module| LoadedModule {
            since: module.at,
            start: module.start,
            end: module.end,
            bias: module.bias,
            build_id: module.build_id.clone(),
            path: module.path.clone(),
        });
        let mut symbolizer = Symbolizer::new(modules.collect());
        let mut function = |site: SiteIndex| {
            symbolizer.runtime_call_place(catalog.sites[site.index()].address).frame.function
        };
        let functions: HashSet<_> =
            session.execution.regions.iter().filter_map(|region| function(region.site)).collect();
        assert!(functions.contains("inward") && functions.contains("outward"), "{flags:?}: {functions:?}");
    }
}

#[test]
fn constructs_without_debug_information_are_distinguished() {
    let sorted = |counts: Vec<usize>| {
        let mut counts = counts;
        counts.sort_unstable();
        counts
    };
    let expected = sorted(LAST_CALLS.iter().map(|(.., count)| *count).collect());
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|compiler| compiler.is_installed()) {
        for flags in [&["-O2", "-g0"][..], &["-O2", "-g0", "-s"]] {
            let mut run = Run::program(compiler, &compile(compiler, "last_calls", flags));
            run.command.arg("levels");
            let executed = executed(&session_of(run));
            let counts = sorted(executed.values().copied().collect());
            assert_eq!(counts, expected, "{compiler:?} {flags:?}: {executed:#?}");
        }
    }
}
