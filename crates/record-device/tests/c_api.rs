//! The example consumer, compiled and run against the library: it holds to Score-P's rule itself.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The place of the library that was built for the tests.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let directory = own.parent().unwrap();
    [directory.to_path_buf(), directory.join("..")]
        .into_iter()
        .find(|place| place.join("libtaskscope_device.so").is_file())
        .expect("the library was built")
}

/// A custom tool, as strict C99 and as C++11: every overflow policy, with old and new structs.
#[test]
fn a_tool_chooses_the_policy_for_full_memory() {
    let (library, directory) = (library(), tempfile::tempdir().unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, flags) in [("gcc", ["-std=c99", "-xc"]), ("g++", ["-std=c++11", "-xc++"])] {
        let program = directory.path().join(compiler);
        let built = Command::new(compiler)
            .args(flags)
            .args(["-Wall", "-Wextra", "-pedantic", "-Werror"])
            .arg(root.join("tests/programs/device_options.c"))
            .arg("-I")
            .arg(root.join("include"))
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(&library)
            .arg("-ltaskscope_device")
            .output();
        let Ok(built) = built else {
            taskscope_prerequisite::missing(format_args!("there is no {compiler}"));
            continue;
        };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = Command::new(&program).env("LD_LIBRARY_PATH", &library).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "old: held 19999 delivered 20000 lost 0 late 0\n\
             spill: held 19999 delivered 20000 lost 0 late 0\n\
             declare lost: held 383 delivered 19999 lost 1 late 1\n\
             block: held 383 delivered 20000 lost 0 late 0\n"
        );
    }
}

/// Installed files suffice for a tool.
#[test]
fn pkg_config_knows_header_and_library() {
    let installs = include_str!("../../../scripts/install");
    for file in
        ["lib/libtaskscope_device.so", "lib/pkgconfig/taskscope-device.pc", "include/taskscope_device.h"]
    {
        assert!(installs.lines().any(|line| line == file), "{file}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = include_str!("../taskscope-device.pc.in")
        .replace("@PREFIX@", "/opt/somewhere")
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    assert!(!file.contains('@'));
    std::fs::write(directory.path().join("taskscope-device.pc"), file).unwrap();
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", "taskscope-device"])
        .env("PKG_CONFIG_PATH", directory.path())
        .output();
    let Ok(output) = output else {
        taskscope_prerequisite::missing("there is no pkg-config");
        return;
    };
    let flags = String::from_utf8(output.stdout).unwrap();
    let flags: Vec<&str> = flags.split_whitespace().collect();
    assert_eq!(flags, ["-I/opt/somewhere/include", "-L/opt/somewhere/lib", "-ltaskscope_device"]);
}

#[test]
fn the_example_consumer_keeps_score_ps_rule_through_every_hazard() {
    let library = library();
    let directory = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join("device-records-consumer");
    let built = Command::new("gcc")
        .args(["-Wall", "-Wextra", "-Werror"])
        .arg(root.join("../../examples/device-records/consumer.c"))
        .arg("-I")
        .arg(root.join("include"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .args(["-ltaskscope_device", "-lpthread"])
        .output();
    let Ok(built) = built else {
        taskscope_prerequisite::missing("there is no gcc");
        return;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(&program).env("LD_LIBRARY_PATH", &library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "appended 6000 delivered 5976 untimed 12 cancelled 12 lost 12 duplicates 12 dropped 0\n"
    );
}
