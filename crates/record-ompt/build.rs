//! Links the tool so that it is never unloaded: runtimes close their tools at shutdown, while
//! threads and exit handlers may still come here. And so that it brings no library into the program that is not there anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // `taskscope_name_data` of `taskscope.h` asks for it by this name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtaskscope_ompt.so");
    link_unwinder();
}

/// Rust's library unwinds by `libgcc_s.so.1`, which programs in C need not have: to load it takes a tenth of a millisecond of
/// their start. Where the compiler has the same code as an archive, that is linked in its place.
fn link_unwinder() {
    let variable = |name: &str| std::env::var(name).ok();
    let linker = variable("RUSTC_LINKER");
    let is_native = variable("TARGET") == variable("HOST");
    let is_gnu = variable("CARGO_CFG_TARGET_ENV").as_deref() == Some("gnu");
    let Some(out) = variable("OUT_DIR").filter(|_| is_gnu && (is_native || linker.is_some())) else { return };
    let linker = linker.as_deref().unwrap_or("cc");
    let found: Option<Vec<PathBuf>> =
        ["libgcc_eh.a", "libgcc.a"].into_iter().map(|name| archive(linker, name)).collect();
    let Some(archives) = found else { return };
    // A script for the linker, under the name of the library that it asks for.
    let input: Vec<String> = archives.iter().map(|path| format!("\"{}\"", path.display())).collect();
    if std::fs::write(Path::new(&out).join("libgcc_s.so"), format!("GROUP({})\n", input.join(" "))).is_ok() {
        println!("cargo:rustc-link-search=native={out}");
    }
}

/// Where the compiler has it.
fn archive(linker: &str, name: &str) -> Option<PathBuf> {
    let told = Command::new(linker).arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(told.stdout).ok()?.trim());
    // What it does not have it tells as it was asked.
    (path.is_absolute() && path.exists()).then_some(path)
}
