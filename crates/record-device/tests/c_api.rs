//! The example consumer, compiled and run against the library: it holds to Score-P's rule itself.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_consumer_keeps_score_ps_rule_through_every_hazard() {
    let own = std::env::current_exe().unwrap();
    let directory = own.parent().unwrap();
    let library = [directory.to_path_buf(), directory.join("..")]
        .into_iter()
        .find(|place| place.join("libtaskscope_device.so").is_file())
        .expect("the library was built");
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
        eprintln!("not tested: there is no gcc");
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
