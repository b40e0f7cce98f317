//! An independent strict reader (`ptd`, from PyPI's `pertalde`) accepts our records. Skipped, with a message, if it
//! cannot be installed.

mod common;

use std::path::Path;
use std::process::Command;
use taskscope_model::MachineOptions;
use taskscope_testkit::generator::{Generator, Runtime};

/// Whether the reader accepts a file of records, and its output.
fn judge(ptd: &Path, prv: &Path) -> (bool, String) {
    let output = Command::new(ptd).args(["comprovar", "-e"]).arg(prv).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn check(ptd: &Path, trace: &Path) {
    let views = tempfile::tempdir().unwrap();
    common::emulate(trace, views.path(), MachineOptions { all_models: false, breakdown: true });
    for base in ["thread", "cpu", "nosv-breakdown", "nanos6-breakdown", "openmp-breakdown"] {
        let prv = views.path().join(format!("{base}.prv"));
        if !prv.exists() {
            continue;
        }
        let (accepts, talk) = judge(ptd, &prv);
        assert!(accepts && talk.is_empty(), "{}: {talk}", prv.display());
        let counted = Command::new(ptd).arg("comptar").arg(&prv).output().unwrap();
        assert!(counted.status.success() && !counted.stdout.is_empty(), "{}", prv.display());
        // The reader does judge: one record without its value, and it refuses.
        let broken = views.path().join(format!("{base}-broken.prv"));
        let text = std::fs::read_to_string(&prv).unwrap();
        let cut = text.trim_end().rsplit_once(':').unwrap().0;
        std::fs::write(&broken, format!("{cut}\n")).unwrap();
        std::fs::copy(prv.with_extension("pcf"), broken.with_extension("pcf")).unwrap();
        let (accepts, talk) = judge(ptd, &broken);
        assert!(!accepts, "{}: {talk}", broken.display());
    }
}

#[test]
fn ptd_accepts_our_records() {
    let Some(ptd) = taskscope_testkit::ptd::install(Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let root = tempfile::tempdir().unwrap();
    let generator =
        Generator { runtime: Runtime::Nosv, threads: 8, threads_per_loom: 4, events: 20_000, seed: 1 };
    generator.write(root.path()).unwrap();
    check(&ptd, root.path());
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/runtimes/nanos6-heat-l2/trace");
    if recorded.exists() {
        check(&ptd, &recorded);
    }
}
