//! Gives the library the name by which `taskscope_name_data` of `taskscope.h` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtaskscope_threads.so");
}
