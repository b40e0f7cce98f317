//! Names of real compilers' code: the addresses that a program prints about itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use taskscope_symbol::{CodePlace, KeptModules, LoadedModule, Missing, Symbolizer};

const SOURCE: &str = include_str!("programs/places.c");

/// A compiled program and its output; `None` if the compiler is not installed.
struct Program {
    directory: tempfile::TempDir,
    path: PathBuf,
    addresses: HashMap<String, u64>,
}

fn compiled(compiler: &str, options: &[&str]) -> Option<Program> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("places");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/places.c");
    let made = Command::new(compiler)
        .current_dir(directory.path())
        .args(["-O1", "-fopenmp", "-no-pie"])
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(&path)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        taskscope_prerequisite::missing(format_args!("{compiler} with OpenMP is not installed"));
        return None;
    }
    let output = Command::new(&path).output().unwrap();
    let addresses = String::from_utf8(output.stdout).unwrap();
    let parse = |line: &str| -> Option<(String, u64)> {
        let (name, address) = line.split_once(" 0x")?;
        Some((name.to_string(), u64::from_str_radix(address, 16).ok()?))
    };
    Some(Program { directory, path, addresses: addresses.lines().filter_map(parse).collect() })
}

impl Program {
    fn symbolizer(&self, build_id: &str) -> Symbolizer {
        let path = self.path.display().to_string();
        let build_id = build_id.to_string();
        Symbolizer::new(vec![LoadedModule { since: 0, start: 0, end: 1 << 40, bias: 0, build_id, path }])
    }

    fn place(&self, name: &str) -> CodePlace {
        self.symbolizer("").call_place(self.addresses[name])
    }
}

/// The line of the source that calls `here` with this name.
fn line_of(name: &str) -> u32 {
    let wanted = format!("here(\"{name}\")");
    SOURCE.lines().position(|line| line.contains(&wanted)).unwrap() as u32 + 1
}

#[test]
fn functions_and_lines_are_those_of_the_source() {
    for compiler in ["gcc", "clang-19"] {
        if let Some(program) = compiled(compiler, &["-g"]) {
            everything_is_found(&program, compiler);
        }
    }
}

/// Split debug information is found in the compiler's files, beside a program that was moved, and in one
/// package.
#[test]
fn debug_information_that_was_split_off_is_found() {
    for (compiler, version) in
        ["gcc", "clang-19"].into_iter().flat_map(|compiler| [(compiler, "4"), (compiler, "5")])
    {
        let about = format!("{compiler} {version}");
        let options = ["-g", "-gsplit-dwarf", &format!("-gdwarf-{version}")];
        let Some(mut program) = compiled(compiler, &options) else { continue };
        everything_is_found(&program, &about);

        let moved = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(program.directory.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), moved.path().join(file.file_name())).unwrap();
            std::fs::remove_file(file.path()).unwrap();
        }
        (program.path, program.directory) = (moved.path().join("places"), moved);
        everything_is_found(&program, &about);

        let packed = ["llvm-dwp-19", "llvm-dwp"].into_iter().any(|tool| {
            let mut pack = Command::new(tool);
            pack.current_dir(program.directory.path()).args(["-o", "places.dwp"]);
            let parts = std::fs::read_dir(program.directory.path()).unwrap().map(|file| file.unwrap().path());
            pack.args(parts.filter(|path| path.extension().is_some_and(|end| end == "dwo")));
            pack.output().is_ok_and(|output| output.status.success())
        });
        for file in std::fs::read_dir(program.directory.path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "dwo") {
                std::fs::remove_file(path).unwrap();
            }
        }
        if packed {
            everything_is_found(&program, &about);
            std::fs::remove_file(program.directory.path().join("places.dwp")).unwrap();
        } else {
            taskscope_prerequisite::skip("llvm-dwp is not installed");
        }

        let place = program.place("inlined");
        assert_eq!(place.frame.function.as_deref(), Some("outer"), "{about}");
        assert_eq!(place.frame.line, Some(line_of("inlined")), "{about}");
        assert!(matches!(place.missing, Some(Missing::SplitGone { .. })), "{about}: {:?}", place.missing);
    }
}

/// Stripped release builds with a link to the debug file. A file of that name which belongs to another
/// program is not read.
#[test]
fn debug_information_that_was_stripped_is_found_by_its_link() {
    for (id, place) in [("none", ""), ("0x1234", ""), ("none", ".debug")] {
        let id = format!("-Wl,--build-id={id}");
        let Some(program) = compiled("gcc", &["-g", &id]) else { return };
        let place = program.directory.path().join(place);
        std::fs::create_dir_all(&place).unwrap();
        let debug = place.join("places.debug");
        let objcopy = |arguments: &[&std::ffi::OsStr]| {
            let made = Command::new("objcopy").args(arguments).output().unwrap();
            assert!(made.status.success(), "{made:?}");
        };
        let link = [std::ffi::OsStr::new("--add-gnu-debuglink"), debug.as_ref()].join("=".as_ref());
        objcopy(&["--only-keep-debug".as_ref(), program.path.as_ref(), debug.as_ref()]);
        objcopy(&["--strip-all".as_ref(), &link, program.path.as_ref()]);
        everything_is_found(&program, &id);

        let Some(other) = compiled("gcc", &["-g", "-O0", "-Wl,--build-id=0x5678"]) else { return };
        std::fs::copy(&other.path, &debug).unwrap();
        let place = program.place("outer");
        assert!(matches!(place.missing, Some(Missing::Stripped { .. })), "{id}: {:?}", place.missing);
    }
}

fn everything_is_found(program: &Program, compiler: &str) {
    for (name, function) in [("outer", "outer"), ("inlined", "inlined"), ("region", "team"), ("task", "team")]
    {
        let place = program.place(name);
        assert_eq!(place.frame.function.as_deref(), Some(function), "{compiler} {name}: {place:?}");
        assert_eq!(place.frame.line, Some(line_of(name)), "{compiler} {name}");
        assert!(place.frame.file.as_deref().unwrap().ends_with("places.c"));
        assert_eq!(place.missing, None);
    }
    let inlined = program.place("inlined");
    assert_eq!(inlined.inlined_into[0].function.as_deref(), Some("outer"));
}

#[test]
fn without_debug_information_the_function_and_offset_remain() {
    for compiler in ["gcc", "clang-19"] {
        let Some(program) = compiled(compiler, &[]) else { continue };
        for (name, function) in [("outer", "outer"), ("region", "team")] {
            let place = program.place(name);
            assert_eq!(place.frame.function.as_deref(), Some(function), "{compiler} {name}");
            assert!(place.offset.is_some() && place.frame.line.is_none());
            assert!(matches!(place.missing, Some(Missing::NoDebugInformation { .. })), "{:?}", place.missing);
        }
    }
}

#[test]
fn a_missing_name_has_its_reason() {
    let Some(stripped) = compiled("gcc", &["-s"]) else { return };
    let place = stripped.place("outer");
    assert!(place.frame.function.is_none() && place.module.is_some());
    assert!(matches!(place.missing, Some(Missing::Stripped { .. })), "{:?}", place.missing);

    let Some(program) = compiled("gcc", &["-g", "-Wl,--build-id=0x1234abcd"]) else { return };
    let address = program.addresses["outer"];
    assert_eq!(program.symbolizer("1234ABCD").call_place(address).missing, None);
    let other = program.symbolizer("ffff").call_place(address);
    assert!(matches!(other.missing, Some(Missing::Changed { .. })), "{:?}", other.missing);
    assert_eq!(other.frame.function, None);

    assert_eq!(program.symbolizer("").call_place(1 << 50).missing, Some(Missing::NoModule));
    std::fs::remove_file(&program.path).unwrap();
    let gone = program.symbolizer("").call_place(address);
    assert!(matches!(gone.missing, Some(Missing::FileGone { .. })), "{:?}", gone.missing);
    std::fs::write(&program.path, "no executable").unwrap();
    let garbage = program.symbolizer("").call_place(address);
    assert!(matches!(garbage.missing, Some(Missing::NotReadable { .. })), "{:?}", garbage.missing);
}

/// However an executable or its split debug information is damaged, lookups return a result or none, without a panic.
#[test]
fn damaged_executables_do_no_harm() {
    let Some(program) = compiled("gcc", &["-g"]) else { return };
    survives_damage(&program, &program.path);
    let Some(program) = compiled("gcc", &["-g", "-gsplit-dwarf"]) else { return };
    let mut files = std::fs::read_dir(program.directory.path()).unwrap().map(|file| file.unwrap().path());
    let split = files.find(|path| path.extension().is_some_and(|end| end == "dwo")).unwrap();
    survives_damage(&program, &split);
}

fn survives_damage(program: &Program, file: &Path) {
    let whole = std::fs::read(file).unwrap();
    let mut seed = 11_u64;
    for round in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..=round % 20 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] = (seed >> 24) as u8;
        }
        if round % 5 == 0 {
            bytes.truncate((seed >> 33) as usize % whole.len());
        }
        std::fs::write(file, &bytes).unwrap();
        let mut symbolizer = program.symbolizer("");
        for address in program.addresses.values() {
            symbolizer.call_place(*address);
            symbolizer.variable(*address);
        }
    }
}

/// The return addresses of the calls of `function`.
fn calls_of(function: &str, program: &Path) -> Vec<u64> {
    let made = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output().unwrap();
    let text = String::from_utf8(made.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let address = |line: &str| u64::from_str_radix(line.trim().split(':').next()?, 16).ok();
    let calls = lines.windows(2).filter(|pair| pair[0].contains("call") && pair[0].contains(function));
    calls.filter_map(|pair| address(pair[1])).collect()
}

#[test]
fn a_task_is_named_after_its_function_despite_earlier_inlined_calls() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sorter");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sorter.cpp");
    let options = ["-O2", "-g", "-fopenmp", "-no-pie", "-w", "-o"];
    let made = Command::new("g++").args(options).arg(&path).arg(source).status();
    if !made.is_ok_and(|made| made.success()) {
        taskscope_prerequisite::missing("g++ with OpenMP is not installed");
        return;
    }
    let calls = calls_of("<GOMP_task@", &path);
    assert_eq!(calls.len(), 2);
    for call in calls {
        let path = path.display().to_string();
        let module =
            LoadedModule { since: 0, start: 0, end: 1 << 40, bias: 0, build_id: String::new(), path };
        let place = Symbolizer::new(vec![module]).runtime_call_place(call);
        let function = place.frame.function.as_deref();
        assert_eq!(function, Some("Sorter::sort(unsigned long, unsigned long)"), "{place:?}");
        assert!(place.frame.file.unwrap().ends_with("sorter.cpp"));
    }
}

#[test]
fn fortran_names_are_those_of_the_source() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fields");
    let sources = ["fields.f90", "here.c"].map(|name| format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR")));
    for options in [&["-O0"][..], &["-O2"]] {
        let mut compiler = Command::new("gfortran");
        compiler.current_dir(&directory).args([
            "-g",
            "-fopenmp",
            "-no-pie",
            "-fno-optimize-sibling-calls",
            "-o",
        ]);
        compiler.arg(&path);
        if !compiler.args(options).args(&sources).status().is_ok_and(|made| made.success()) {
            taskscope_prerequisite::missing("gfortran is not installed");
            return;
        }
        let output = String::from_utf8(Command::new(&path).output().unwrap().stdout).unwrap();
        let module = path.display().to_string();
        let module =
            LoadedModule { since: 0, start: 0, end: 1 << 40, bias: 0, build_id: String::new(), path: module };
        let mut symbolizer = Symbolizer::new(vec![module]);
        let function = |line: &str| {
            let (name, address) = line.split_once(" 0x").unwrap();
            let place = symbolizer.call_place(u64::from_str_radix(address, 16).unwrap());
            (name.to_string(), place.frame.function.unwrap())
        };
        let found: Vec<(String, String)> = output.lines().map(function).collect();
        let pair = |name: &str, written: &str| (name.to_string(), written.to_string());
        let wanted = [
            pair("smooth", "mesh::smooth"),
            pair("fill", "fill"),
            pair("inner", "inner"),
            pair("heat", "heat"),
        ];
        assert_eq!(found, wanted, "{options:?}");
    }
}

/// Named like in the disassembler; the file needs no debug information for that.
#[cfg(target_arch = "x86_64")]
#[test]
fn stubs_of_calls_into_other_files_have_names() {
    for (compiler, options) in
        [("gcc", ["-g", "-fcf-protection=full"]), ("gcc", ["-s", "-Wl,-z,lazy"]), ("clang-19", ["-g", "-O2"])]
    {
        let Some(program) = compiled(compiler, &options) else { continue };
        let Ok(output) = Command::new("objdump").arg("-d").arg(&program.path).output() else {
            taskscope_prerequisite::missing("objdump is not installed");
            return;
        };
        let mut named = 0;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((address, name)) = line.split_once(" <") else { continue };
            let Some(name) = name.strip_suffix("@plt>:") else { continue };
            let address = u64::from_str_radix(address, 16).unwrap();
            for inside in [0, 4, 7] {
                let path = program.path.display().to_string();
                let place = program.symbolizer("").place_in_file(&path, "", address + inside);
                assert_eq!(place.frame.function, Some(format!("{name}@plt")), "{compiler} {address:#x}");
                assert_eq!(place.missing, None);
            }
            named += 1;
        }
        assert!(named > 0, "{compiler} {options:?}");
    }
}

/// Moves the code of stubs to the highest addresses, with their relocations.
#[cfg(target_arch = "x86_64")]
#[test]
fn stubs_of_damaged_files_are_accepted_at_any_address() {
    const SECTION_HEADER_BYTES: usize = 64;
    const RELOCATION_BYTES: usize = 24;
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let Some(program) = compiled("gcc", &["-g"]) else { return };
    let whole = std::fs::read(&program.path).unwrap();
    let headers = number(&whole, 0x28) as usize;
    let count = u16::from_le_bytes([whole[0x3c], whole[0x3d]]) as usize;
    let headers = (0..count).map(|index| headers + index * SECTION_HEADER_BYTES);
    // Type, flags, address, offset, size.
    let kind_of = |at: usize| u32::from_le_bytes(whole[at + 4..at + 8].try_into().unwrap());
    let is_code = |at: usize| kind_of(at) == 1 && number(&whole, at + 8) & 4 != 0;
    let stubs = |at: &usize| {
        let (offset, size) = (number(&whole, at + 24) as usize, number(&whole, at + 32) as usize);
        is_code(*at) && whole[offset..offset + size].windows(2).any(|jump| jump == [0xff, 0x25])
    };
    let relocations: Vec<usize> = headers.clone().filter(|at| kind_of(*at) == 4).collect();
    let mut moved = 0;
    for header in headers.filter(stubs) {
        for below_the_top in (0..64).step_by(4) {
            let mut bytes = whole.clone();
            let address = u64::MAX - below_the_top;
            let distance = address.wrapping_sub(number(&bytes, header + 16));
            bytes[header + 16..header + 24].copy_from_slice(&address.to_le_bytes());
            for at in &relocations {
                let (offset, size) = (number(&whole, at + 24) as usize, number(&whole, at + 32) as usize);
                for entry in (offset..offset + size).step_by(RELOCATION_BYTES) {
                    let slot = number(&whole, entry).wrapping_add(distance);
                    bytes[entry..entry + 8].copy_from_slice(&slot.to_le_bytes());
                }
            }
            let path = program.directory.path().join("damaged");
            std::fs::write(&path, bytes).unwrap();
            let path = path.display().to_string();
            let place = program.symbolizer("").place_in_file(&path, "", program.addresses["outer"]);
            assert_eq!(place.frame.function.as_deref(), Some("outer"), "{below_the_top}");
        }
        moved += 1;
    }
    assert!(moved > 0);
}

/// A runtime that is linked into the program has no stubs that lead to it.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_tail_call_into_a_runtime_inside_the_program_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tail");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/tail.c");
    let mut compiler = Command::new("gcc");
    let made = compiler.args(["-O2", "-g", "-no-pie", "-o"]).arg(&path).arg(&source).output();
    if !made.is_ok_and(|made| made.status.success()) {
        taskscope_prerequisite::missing("gcc is not installed");
        return;
    }
    let printed = Command::new(&path).output().unwrap().stdout;
    let returns_to = u64::from_str_radix(String::from_utf8(printed).unwrap().trim(), 16).unwrap();
    let mut symbolizer = Symbolizer::new(Vec::new());
    let place = symbolizer.place_behind_tail_call(&path.display().to_string(), "", returns_to - 1).unwrap();
    let line = include_str!("programs/tail.c")
        .lines()
        .position(|line| line.contains("/* the construct */"))
        .unwrap() as u32
        + 1;
    assert_eq!((place.frame.function.as_deref(), place.frame.line), (Some("smooth"), Some(line)));
}

#[test]
fn exported_functions_have_names_without_a_section_table() {
    let here = tempfile::tempdir().unwrap();
    let library = here.path().join("a.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/exported.c");
    for style in ["gnu", "sysv"] {
        let built = std::process::Command::new("cc")
            .args(["-O1", "-g", "-shared", "-fPIC", &format!("-Wl,--hash-style={style}"), "-o"])
            .args([&library, &source])
            .status();
        assert!(built.unwrap().success());
        let path = library.to_str().unwrap();
        let whole = std::fs::read(path).unwrap();
        let table = u64::from_le_bytes(*whole[0x28..].first_chunk().unwrap()) as usize;
        // The loaded image ends before the sections that are not loaded.
        let mut image = whole[..table].to_vec();
        image[0x28..0x30].fill(0);
        image[0x3c..0x40].fill(0);
        std::fs::write(path, &image).unwrap();
        let mut symbolizer = Symbolizer::default();
        let named: Vec<String> = (0..image.len() as u64)
            .filter_map(|at| symbolizer.place_in_file(path, "", at).frame.function)
            .collect();
        for name in ["shown", "again"] {
            assert!(named.iter().any(|found| found == name), "{style}: {named:?}");
        }
        // Damaged ones give no names, and no panic.
        for at in (0..image.len()).step_by(7) {
            let mut damaged = image.clone();
            damaged[at] = 0xff;
            damaged.truncate(image.len() - at / 2);
            std::fs::write(path, &damaged).unwrap();
            let _ = Symbolizer::default().place_in_file(path, "", 0x1100);
        }
    }
}

/// A dump with these functions: start, bytes and name.
fn jit_dump(functions: &[(u64, u64, &str)]) -> Vec<u8> {
    let mut dump = Vec::new();
    [0x4a69_5444_u32, 1, 40, 62, 0, 7, 0, 0, 0, 0].iter().for_each(|word| dump.extend(word.to_le_bytes()));
    for (number, (start, bytes, name)) in functions.iter().enumerate() {
        let size = 56 + name.len() as u32 + 1;
        [0, size, 0, 0, 7, 7].iter().for_each(|word| dump.extend(word.to_le_bytes()));
        [*start, *start, *bytes, number as u64].iter().for_each(|word| dump.extend(word.to_le_bytes()));
        dump.extend([name.as_bytes(), &[0]].concat());
    }
    dump
}

#[test]
fn addresses_in_no_module_are_generated_code_only_where_that_is_known() {
    let trace = tempfile::tempdir().unwrap();
    let kept = trace.path().join(KeptModules::DIRECTORY);
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("generated-7.map"), "1000 2000 [anonymous]\n").unwrap();
    std::fs::write(kept.join("perf-7.map"), "2000 10 compiled\n").unwrap();
    std::fs::write(kept.join("jit-7.dump"), jit_dump(&[(0x2000, 0x10, "again"), (0x2800, 0x10, "dumped")]))
        .unwrap();
    let mut symbolizer = Symbolizer::default().with_kept(KeptModules::in_trace(trace.path()));
    let mut found = |address| {
        let place = symbolizer.place_of_run_time_code(address);
        (place.frame.function, place.missing)
    };
    assert_eq!(found(0x2008), (Some("compiled".to_string()), None));
    assert_eq!(found(0x2808), (Some("dumped".to_string()), None));
    assert_eq!(found(0x2010), (None, Some(Missing::RunTimeCode)));
    assert_eq!(found(0x3000), (None, Some(Missing::NoModule)));
}
