//! Sets the library name that programs linked to ovni look for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libovni.so.1");
}
