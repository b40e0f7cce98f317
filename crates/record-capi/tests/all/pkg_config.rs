//! The `pkg-config` file gives the flags that compile and link a program.

use std::process::Command;

#[test]
fn pkg_config_knows_header_and_library() {
    let template = include_str!("../../taskscope.pc.in");
    let directory = tempfile::tempdir().unwrap();
    let file = template.replace("@PREFIX@", "/opt/somewhere").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    assert!(!file.contains('@'));
    std::fs::write(directory.path().join("taskscope.pc"), file).unwrap();
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", "taskscope"])
        .env("PKG_CONFIG_PATH", directory.path())
        .output();
    let version = Command::new("pkg-config")
        .args(["--modversion", "taskscope"])
        .env("PKG_CONFIG_PATH", directory.path())
        .output();
    std::fs::remove_dir_all(directory.path()).unwrap();
    let (Ok(output), Ok(version)) = (output, version) else {
        taskscope_prerequisite::missing("pkg-config is not installed");
        return;
    };
    let flags = String::from_utf8(output.stdout).unwrap();
    let flags: Vec<&str> = flags.split_whitespace().collect();
    assert_eq!(flags, ["-I/opt/somewhere/include", "-L/opt/somewhere/lib", "-ltaskscope"]);
    assert_eq!(String::from_utf8(version.stdout).unwrap().trim(), env!("CARGO_PKG_VERSION"));
}
